/*
 * SPDX-License-Identifier: Apache-2.0
 * bill: divides the time of threads into what they did and what they waited for.
 *
 *   cpu           CPU time
 *   run_queue     run_delay without throttled
 *   throttled     sampled, at most run_delay: the kernel counts it as a wait for a CPU
 *   block_io      with delay accounting as the kernel counted it, without what it counts as swap as well; else sampled
 *   swap          likewise: pages from swap, and those that had been evicted not long before
 *   network_fs    sampled. The kernel counts waits for pages of such a file system as block I/O: where both were
 *                 sampled, its figure is divided as the samples are
 *   the others    sampled
 *   unknown       what is left: of programs that no pass saw, and since the last pass
 *
 * A sample stands for the time since the pass before, in which the thread may have run too. Where all together are more
 * than there was, the sampled parts are reduced in proportion. The parts add up to thread_ns exactly.
 */
#ifndef SLUICE_CORRELATE_BILL_H
#define SLUICE_CORRELATE_BILL_H

#include <stdint.h>

#include "model/bill.h"
#include "model/usage.h"

/* Returns the bill of what a program, or several together, used; all parts are unknown if thread_ns or CPU time is. */
struct bill bill_of_threads(const struct usage *u);

/* Returns a part in nanoseconds; 0 if it is not known. */
static inline uint64_t
bill_ns(const struct bill *b, enum bill_part part)
{
	return b->part[part].known ? b->part[part].value : 0;
}

#endif
