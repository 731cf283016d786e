/*
 * SPDX-License-Identifier: Apache-2.0
 * bill: divides the time of threads into what they did and what they waited for.
 *
 *   cpu           CPU time
 *   run_queue     run_delay without throttled
 *   throttled     sampled, at most run_delay: the kernel counts it as a wait for a CPU
 *   block_io      with delay accounting as the kernel counted it, without what it counts as swap as well; else, and
 *                 where the samples are more than twice as much, sampled: a sum lacks the delay of one without any
 *   swap          likewise: pages from swap, and those that had been evicted not long before
 *   network_fs    sampled. The kernel counts waits for pages of such a file system as block I/O: where both were
 *                 sampled, its figure is divided as the samples are
 *   the others    sampled. Of the kernel's delays those of copies on write and of interrupts are in none of these: they
 *                 are CPU time, or reclaim
 *   unknown       what is left: of programs that no pass saw, and since the last pass
 *
 * A sample stands for the time since the pass before, in which the thread may have run too. Where all together are more
 * than there was, the sampled parts are reduced in proportion. The parts add up to thread_ns exactly.
 *
 * A task's own time is divided likewise, from one record to the next: first what its threads did, which is cpu, then
 * what they were denied, run_queue and throttled, then what they waited for in their work, block_io, swap, reclaim,
 * network_fs and network, and only then what they waited for in one another. Where several threads did more than there
 * was time, the kinds that come first have it all. child counts where nothing else does, for a child waits for
 * something. The parts add up to the wall time.
 */
#ifndef SLUICE_CORRELATE_BILL_H
#define SLUICE_CORRELATE_BILL_H

#include <stdint.h>

#include "model/bill.h"
#include "model/usage.h"

/* Returns the bill of what a program, or several together, used; all parts are unknown if thread_ns or CPU time is. */
struct bill bill_of_threads(const struct usage *u);

/* How the time of a task or run was divided so far; zeroed: it has not begun. */
struct own_bill {
	uint64_t own_ns[BILL_PARTS];
	uint64_t threads_ns[BILL_PARTS];	/* the bill of its threads, by then */
	uint64_t until_ns;			/* CLOCK_BOOTTIME; 0: nothing was divided yet */
	uint64_t queue_ns;			/* of run_queue, what its own threads took from one another */
};

/*
 * Divides the time since the last call, or since start_ns, up to until_ns. threads: the bill of its threads by then;
 * one whose parts are unknown divides nothing. cpus: that they may use at once; what they wanted beyond these, in that
 * time, they took from one another. Unknown: any number, so that others took all of it.
 */
void own_bill_add(struct own_bill *o, const struct bill *threads, uint64_t start_ns, uint64_t until_ns,
    struct opt_double cpus);
/* Adds what from has, of other threads, which took so much more time. */
void own_bill_merge(struct own_bill *to, const struct own_bill *from, uint64_t more_ns);
/* Sets queue_ns of one that was divided from start_ns on without it, as if that had been one interval. */
void own_bill_assume(struct own_bill *o, uint64_t start_ns, struct opt_double cpus);
/* Returns its parts, which add up to wall_ns: what was not divided is unknown. All are unknown if nothing was. */
struct bill own_bill_of(const struct own_bill *o, uint64_t wall_ns);

/* Returns a part in nanoseconds; 0 if it is not known. */
static inline uint64_t
bill_ns(const struct bill *b, enum bill_part part)
{
	return b->part[part].known ? b->part[part].value : 0;
}

#endif
