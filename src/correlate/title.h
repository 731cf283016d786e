/*
 * SPDX-License-Identifier: Apache-2.0
 * title: what programs that write titles over their arguments are doing.
 */
#ifndef SLUICE_CORRELATE_TITLE_H
#define SLUICE_CORRELATE_TITLE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/usage.h"

struct correlator;
struct process;

/* Whether a program writes titles over its arguments; TITLES_UNKNOWN until the rules are asked. */
enum titles {
	TITLES_UNKNOWN,
	TITLES_NONE,
	TITLES_READ,
};

struct title {
	uint64_t hash;			/* of the title judged last; see correlator_title_hash() */
	uint32_t round;			/* number of the round of its owner in which it was read last */
	bool is_taken;			/* a title attributed the program to a task or its engine */
	struct usage before;		/* usage of its program before the task that it is in now */
};

/* What is read of the titles of an owner in a second in which not all are read. */
struct title_share {
	uint32_t round;			/* rounds in which each was read once */
	uint32_t n;			/* its titles */
	uint32_t n_due;			/* those of them that are not read in the present round */
	uint32_t quota;			/* how many may be read, and then, of those that are due */
	uint32_t n_again;		/* of the next round */
};

struct title *title_of(struct process *p);	/* makes one if there is none; NULL: no memory */
/* Frees what is kept of p's title; whether it is read is judged anew. */
void title_forget(struct process *p);
/* Returns whether p's program writes titles, by the rules. */
bool title_is_read(struct correlator *c, struct process *p);
void titles_judge_anew(struct correlator *c);	/* by other rules */
/* Records that usage up to before belongs to the task before. p->title must be set, as for title_take(). */
void title_split(struct correlator *c, struct process *p, const struct usage *before);
/* Records that a title attributed p's program. */
void title_take(struct correlator *c, struct process *p);
/* Returns the part of the usage of p's program that belongs to its current task. */
struct usage title_usage(const struct process *p, const struct usage *usage);

#endif
