/*
 * SPDX-License-Identifier: Apache-2.0
 * memory: what the programs of a task or run hold together, and the most that they held at once.
 *
 * Of each program that a pass sees alive counts what is its own, anonymous and swapped memory; shared memory counts
 * once for all of a task, as much as the program has that maps most. Mapped pages of files do not count: the kernel
 * takes them back when memory runs out.
 *
 * A process that forked and has not exec'd shares its parent's anonymous memory until one of both writes to it, which
 * is a page fault of the writer. Its own is what it has beyond what it began with, and as many of those pages as it
 * had faults.
 *
 * Between passes a program may hold more. Where its own high-water mark has risen since the last pass, by more than a
 * sixty-fourth and a MiB, that counts instead, without shared memory and the pages of files that it has: in the next
 * pass, or as it ends beside what the others hold. A mark that it had reached before is of another time, and counts no
 * more; nor does the first one of a program that ran before the agent did. What is remembered of each program is within
 * an eighth of what the last pass saw: so the write-ahead log has an entry only where memory grows or shrinks by more,
 * or the mark rises.
 */
#ifndef SLUICE_CORRELATE_MEMORY_H
#define SLUICE_CORRELATE_MEMORY_H

#include <stdint.h>

#include "model/record.h"

struct correlator;
struct counters;
struct process;
struct usage;

/* Memory of one program in bytes. */
struct held {
	struct {
		uint64_t pass;		/* that saw this; 0: none did */
		uint64_t anon;
		uint64_t swap;
		uint64_t shmem;
		uint64_t file;
		uint64_t faulted;	/* pages that it got by faults */
		uint64_t mark;
	} now;
	uint64_t own;			/* remembered over a restart, as the next three */
	uint64_t file;
	uint64_t mark;			/* 0: none was seen */
	uint64_t forked;		/* the anonymous memory that it began with, if it has not exec'd; 0: unknown */
};

/* Memory of several programs in bytes. */
struct held_together {
	struct {			/* by the pass under way, or the last one */
		uint64_t own;
		uint64_t risen;		/* what they had besides since the last pass */
		uint64_t shmem;
	} now;
	uint64_t own;			/* the sum of what is remembered of those that live */
	uint64_t peak;			/* 0: no pass saw one, and none ended */
	enum peak_source peak_source;
};

/* Takes what the pass under way saw of p's program, which lives. */
void memory_seen(const struct correlator *c, struct process *p, const struct counters *now);
/* Adds up what it saw, at its end, for all tasks, runs and rows. */
void memory_pass(struct correlator *c);
/* Counts the high-water mark of p's program, which ends, before it leaves its task and run. */
void memory_ended(struct process *p, const struct usage *usage);
/* p's program is now one of these programs; after memory_leave() it is none of them. */
void memory_enter(struct held_together *t, const struct process *p);
void memory_leave(struct held_together *t, const struct process *p);
/* Counts what programs held that have ended: the larger peak of both, for what both held at once is not known. */
void memory_merge(struct held_together *to, const struct held_together *from);
/* Adds up what was remembered, after a replay. */
void memory_replayed(struct correlator *c);

#endif
