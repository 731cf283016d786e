/*
 * SPDX-License-Identifier: Apache-2.0
 * demand: decides what a piece of work would be bound by on an idle host, and what its neighbours or limits denied it.
 *
 * Both follow from the bill of its threads' time (bill.h). Threads that wait for one another, for a request or for a
 * set time do nothing: only work counts, which is cpu, block_io, network_fs and network, added up over threads. Where
 * there is less of it than wall time, without what was denied, the rest was waiting. Each is a share of
 *
 *   whole = max(wall - denied, work)		less what is taken as others' part of a disk, of unknown time
 *
 * and what has SHARE_DECIDES of it is the demand:
 *
 *   COMPUTE      cpu, without what MEMORY has of it
 *   STORAGE      block_io
 *   NETWORK_FS   network_fs
 *   NETWORK      network
 *   WAITING_FOR  the rest; waiting_for names the largest of pipe, lock, timer, poll, stopped and other, else child
 *   MEMORY       swap and reclaim, with CPU time that went there, have SHARE_OF_MEMORY of whole, and its memory comes
 *                to MEMORY_IS_FULL of what it may have, or pages of files do, of which it has read more than twice as
 *                much and for which it had thrashing delays: it reads pages back. With MAJOR_FAULTS_PER_S of wall and
 *                MAJOR_FAULTS in all, block_io counts as such too. CPU time that went there is the kernel's delay of
 *                reclaim, or the stall of memory of its own control group, beyond what the bill has of it, but no more
 *                than its system time; all of that if it reads pages back and holds more than it may have, a part of
 *                which is in swap then. Where memory is not full, the kernel makes room for pages of files, which is no
 *                lack of memory
 *   MIXED        none has so much
 *   none         it is shorter than DEMAND_SHORT_NS, both of wall and of CPU time, or its bill is unknown, or most of
 *                what would be WAITING_FOR is
 *
 * Time that is unknown is guessed, where it is a part of the rest: network with NETWORK_BYTES_PER_S of wall over
 * internet sockets, else block_io with STORAGE_BYTES_PER_S, else waiting. confidence is the share of whole that was not
 * guessed, times 0.5 where the decision is close and 1 where the deciding share is CLOSE or more from SHARE_DECIDES.
 *
 * denied is the largest of these, if it has SHARE_IS_DENIED of whole and all that was denied:
 *
 *   RUN_QUEUE    it waited for a CPU, without what its own threads took from one another: they can have no more CPUs
 *                than it may use at any time, and others took no more than the time that they had on the host's CPUs
 *   THROTTLED    the quota of a control group was used up: as sampled, or for as long as its own group was, of all the
 *                time in which it waited for a CPU
 *   RECLAIM      swap and reclaim, with what counts as such: memory ran out
 *   IO           others' part of what the disk did, of block_io; see contention.h
 */
#ifndef SLUICE_CORRELATE_DEMAND_H
#define SLUICE_CORRELATE_DEMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "model/record.h"

struct demand_limits {
	struct opt_u64 memory_limit_bytes;	/* of the cgroup: what it kills beyond */
	struct opt_u64 host_memory_bytes;
	struct opt_double cpus;			/* that it may use at once; unknown: any number */
	struct opt_u64 peak_bytes;	/* that all of it held at most; unknown: that of its largest program counts */
	struct opt_double others_io;	/* part of what the disk did that was for others, 0 to 1 */
	bool is_limit_of_each;		/* of each of several control groups: compared with the largest program */
	struct opt_u64 memory_high;	/* beyond which the kernel takes memory back: a limit, too */
	struct opt_u64 own_queue_ns;	/* what its threads took from one another; unknown: over all its time */
	struct opt_u64 others_cpu_ns;	/* that others had on the host's CPUs meanwhile, at most */
	const struct group_use *group;	/* what the kernel counted of its own control group; NULL: unknown */
};

/* Decides for work that took wall_ns. Every member of the result is set. */
struct verdict demand_decide(const struct usage *u, const struct bill *b, uint64_t wall_ns,
    const struct demand_limits *limits);

#endif
