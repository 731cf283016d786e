/*
 * SPDX-License-Identifier: Apache-2.0
 * bound: what limited a task or run in one word, and shares of its time. Readers of demand and denied need neither.
 *
 *   STARVED   it was denied BOUND_STARVED_SHARE, and most of that by RUN_QUEUE or THROTTLED
 *   IO        demand STORAGE or NETWORK_FS
 *   IDLE      demand WAITING_FOR
 *   COMPUTE, MEMORY, NETWORK, MIXED    as demand
 *
 * Shares are parts of D = max(wall, cpu + run_delay + block_io). Programs and threads that run side by side add up, and
 * D grows with them:
 *
 *   cpu        user and system time on a CPU
 *   run_delay  runnable, but no CPU was free (or the cgroup was throttled); counts as 0 when unknown
 *   block_io   asleep for block I/O; unknown without the kernel's delay accounting
 *   idle       1 - cpu - run_delay - block_io
 *   memory     peak RSS / min(memory limit, host memory); not a part of the sum
 */
#ifndef SLUICE_CORRELATE_BOUND_H
#define SLUICE_CORRELATE_BOUND_H

#include <stdint.h>

#include "correlate/demand.h"
#include "model/record.h"

#define BOUND_STARVED_SHARE 0.30

/* Returns the word for a verdict. */
enum bound bound_of(const struct verdict *v);
/* Returns the shares, as far as their fields are known. */
struct bound_shares bound_shares_of(const struct usage *u, uint64_t wall_ns, const struct demand_limits *limits);

#endif
