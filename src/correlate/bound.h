/*
 * SPDX-License-Identifier: Apache-2.0
 * bound: decides what limited a program, task or run.
 *
 * Shares are parts of D = max(wall, cpu + run_delay + block_io). Programs and threads that run side
 * by side add up, and D grows with them: a share is of the time in which any of them had work. One
 * busy thread is enough for COMPUTE however many idle shells run beside it, and a shell that
 * waits for its child does not make the task idle. The rest is idle:
 *
 *   cpu        user and system time on a CPU
 *   run_delay  runnable, but no CPU was free (or the cgroup was throttled); counts as 0 when unknown
 *   block_io   asleep for block I/O; unknown without the kernel's delay accounting
 *   idle       1 - cpu - run_delay - block_io: pipes, sockets, locks, timers, other programs, and
 *              block I/O where that is unknown
 *   memory     peak RSS / min(memory limit, host memory); not a part of the sum
 *
 * "waiting" below is 1 - cpu - run_delay. The first condition that holds decides:
 *
 *   none      CPU time unknown, or less than BOUND_SHORT_NS both of wall and of CPU time
 *   STARVED   run_delay >= BOUND_STARVED_SHARE
 *   MEMORY    memory >= BOUND_MEMORY_SHARE; or cpu < BOUND_COMPUTE_SHARE with at least
 *             BOUND_MAJOR_FAULTS_PER_S of wall, BOUND_MAJOR_FAULTS in total (a cold start has fewer):
 *             it reads its own pages back
 *   COMPUTE   cpu >= BOUND_COMPUTE_SHARE
 *   IO        block_io >= BOUND_IO_SHARE; where block_io is unknown, waiting >=
 *             BOUND_WAITING_SHARE with BOUND_STORAGE_BYTES_PER_S of wall from and to storage (a program
 *             that waits for another one also writes some megabytes in that time)
 *   NETWORK   waiting >= BOUND_WAITING_SHARE with BOUND_NETWORK_BYTES_PER_S over internet sockets
 *   IDLE      cpu < BOUND_IDLE_SHARE
 *   MIXED     otherwise
 */
#ifndef SLUICE_CORRELATE_BOUND_H
#define SLUICE_CORRELATE_BOUND_H

#include <stdint.h>

#include "model/record.h"

#define BOUND_SHORT_NS			UINT64_C(10000000)
#define BOUND_STARVED_SHARE		0.30
#define BOUND_MEMORY_SHARE		0.90
#define BOUND_MAJOR_FAULTS_PER_S	100.0
#define BOUND_MAJOR_FAULTS		100.0
#define BOUND_COMPUTE_SHARE		0.70
#define BOUND_IO_SHARE			0.30
#define BOUND_WAITING_SHARE		0.50
#define BOUND_STORAGE_BYTES_PER_S	(16.0 * 1024.0 * 1024.0)
#define BOUND_NETWORK_BYTES_PER_S	(1024.0 * 1024.0)
#define BOUND_IDLE_SHARE		0.05

struct bound_limits {
	struct opt_u64 memory_limit_bytes;	/* of the cgroup or the scheduler */
	struct opt_u64 host_memory_bytes;
};

/* Decides from the known fields of u. Fills *ret_shares (may be NULL) in every case. */
enum bound bound_decide(const struct usage *u, uint64_t wall_ns,
    const struct bound_limits *limits, struct bound_shares *ret_shares);

#endif
