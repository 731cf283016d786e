/*
 * SPDX-License-Identifier: Apache-2.0
 * episode_words: what episodes.c looks at, and how its findings are described. Private to these two.
 */
#ifndef SLUICE_CORRELATE_EPISODE_WORDS_H
#define SLUICE_CORRELATE_EPISODE_WORDS_H

#include "correlate/episodes.h"
#include "correlate/finding_draft.h"
#include "model/usage.h"

struct correlator;
struct work;

#define EPISODE_MOST 0.8		/* of a time: nearly all of it, as a sample has it */

/* What is judged: a task, or a run without tasks. */
struct subject {
	struct run *run;
	struct task *task;		/* NULL: the run itself */
	const struct work *work;
	const struct usage *live;
	struct vigil **vigil;
	uint32_t *recorded;		/* kinds that are recorded, as bits */
	uint32_t *count;		/* findings */
	bool is_driven;			/* an engine started it */
};

/* A part of the bill that is a wait. */
struct episode_wait {
	enum bill_part part;
	enum usage_field field;
	bool is_stuck;			/* only something outside the program can end it */
	bool is_idle;			/* in it there is no work of the task */
	const char *words;
};

enum { EPISODE_WAITS = 11 };
extern const struct episode_wait episode_waits[EPISODE_WAITS];

/* Returns a field; 0 if it is not known. */
static inline uint64_t
episode_number(const struct usage *u, enum usage_field field)
{
	return usage_has(u, field) ? u->value[field] : 0;
}

/*
 * Returns the wait that has most of the time; NULL: there is none. Of BILL_POLL half counts: timeout(1), and others
 * that wait for a signal, wait so for what they have started.
 */
const struct episode_wait *episode_largest_wait(const struct look *d);

/* Returns true if nothing of it has used a CPU, switched, moved a byte, begun or ended. */
static inline bool
episode_is_still(const struct look *d)
{
	return d->cpu_ns == 0 && d->switches == 0 && d->bytes == 0 && d->programs == 0;
}

/* Returns true if a thread was in uninterruptible sleep all the time: without a switch it was always the same one. */
static inline bool
episode_is_in_io(const struct look *d)
{
	return episode_is_still(d) && (double)d->uninterruptible_ns >= EPISODE_MOST * (double)d->at_ns;
}

/* Returns the time in which its threads wanted to work; CPU time that went into making memory free is in it once. */
static inline double
episode_wanted_ns(const struct look *d)
{
	uint64_t twice = d->reclaim_ns < d->system_ns ? d->reclaim_ns : d->system_ns;

	return (double)(d->cpu_ns - (twice < d->cpu_ns ? twice : d->cpu_ns) + d->delay_ns + d->pressure_ns);
}

/* Writes message and evidence of what was so in change. Returns false if what is known does not suffice. */
bool episode_describe(const struct correlator *c, const struct subject *s, enum episode_kind kind,
    const struct look *change, struct finding_draft *d);

#endif
