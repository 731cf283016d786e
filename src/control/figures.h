/*
 * SPDX-License-Identifier: Apache-2.0
 * figures: the rows of figures.def as a table, which the outputs of a status loop over.
 */
#ifndef SLUICE_CONTROL_FIGURES_H
#define SLUICE_CONTROL_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/status.h"

/* The types of figures.def. */
enum figure_type {
	FIGURE_TEXT,
	FIGURE_SENTENCE,
	FIGURE_COUNT,
	FIGURE_NUMBER,
	FIGURE_MAYBE,
	FIGURE_BYTES,
	FIGURE_NS,
	FIGURE_TIME,
	FIGURE_FLAG,
};

enum figure_part {
#define PART(part) FIGURE_PART_##part,
#define END(part)
#define MEMBER(part, declaration)
#define FIGURE(part, member, type, ...)
#define DERIVED(part, name, type, ...)
#define LIST(part, name)
#include "control/figures.def"
#undef PART
#undef LIST
	FIGURE_PARTS,
};

enum figure_list {
	FIGURE_NO_LIST,
#define PART(part)
#define LIST(part, name) FIGURE_LIST_##name,
#include "control/figures.def"
#undef PART
#undef END
#undef MEMBER
#undef FIGURE
#undef DERIVED
#undef LIST
	FIGURE_LISTS,
};

enum {
	FIGURE_LABELS = 2,
};

struct figure_value {
	bool is_known;
	const char *text;	/* value of TEXT and SENTENCE; owned by the status, static, or buf */
	uint64_t number;	/* value of all other types: FLAG is 0 or 1, TIME microseconds */
	const char *label[FIGURE_LABELS];	/* values of the metric's labels */
	char buf[STATUS_PROBLEM_SIZE];
};

struct figure {
	enum figure_part part;
	enum figure_list list;	/* set if the row is a list; the rest of it is zero */
	enum figure_type type;
	size_t offset;		/* offset of the member in struct agent_status, if get is NULL */
	void (*get)(const struct agent_status *s, struct figure_value *v);	/* gets *v zeroed except for is_known */
	const char *key;	/* NULL: not in the JSON */
	const char *line;	/* title of the line that it begins, or NULL */
	const char *phrase;	/* text with one %s; NULL: not in the text */
	const char *phrase_many;	/* used if the number is not 1; NULL: phrase */
	const char *otherwise;
	bool (*is_shown)(const struct agent_status *s);	/* NULL: in the text whenever it is known */
	const char *metric;	/* NULL: no metric */
	const char *former_metric;	/* its name in an earlier version; NULL: none */
	const char *help;
	bool is_counter;
	const char *label[FIGURE_LABELS];
	const char *label_value;	/* value of the first label; NULL: figure_value has it */
};

/* All rows; those of one part are adjacent. */
extern const struct figure figures[];
extern const size_t n_figures;

/* Returns the figure's value in *s; *ret is valid as long as *s. */
void figure_get(const struct figure *f, const struct agent_status *s, struct figure_value *ret);
/* Returns true if this agent has the part. A part that it lacks is null in the JSON, and in no other output. */
bool figure_part_exists(enum figure_part part, const struct agent_status *s);

#endif
