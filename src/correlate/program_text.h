/*
 * SPDX-License-Identifier: Apache-2.0
 * program_text: the names of a program, kept for its END record and shared with the children that never exec.
 */
#ifndef SLUICE_CORRELATE_PROGRAM_TEXT_H
#define SLUICE_CORRELATE_PROGRAM_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "correlate/state.h"
#include "model/candidate.h"
#include "model/event.h"

/* A program's names, in one block of memory: pointers, then all strings in the order of the members. */
struct text {
	unsigned refs;
	size_t size;			/* bytes of the block, for the budget */
	owner_t owner;			/* whose share of it they are */
	struct process_id logged_by;	/* the process whose entry contains it ... */
	uint32_t logged_in;		/* ... since this checkpoint; 0: none */
	const char *exe;
	const char *comm;
	const char *cwd;
	const char *tool;
	struct candidate_words words;
	const char *trace_id;
	const char *span_id;
	const struct named_text *variables;	/* of the environment; NULL: none */
	size_t n_variables;
	const char *tool_rule;		/* kept_name() */
	bool is_tool;			/* false: a shell or other glue */
	bool argv_truncated;
	bool is_shared;			/* it was in the table of shared texts, ... */
	uint32_t hash;			/* ... by this hash; else 0 */
	const char *const *argv;	/* NULL: unknown, or over the budget, as are exe, cwd, words and variables */
	size_t argc;
	char block[];
};

/* The parts of a program's text. */
struct text_parts {
	owner_t owner;			/* whose share they are of; 0: of none */
	const char *const *argv;	/* NULL unknown */
	size_t argc;
	bool argv_truncated;
	const char *exe;
	const char *comm;
	const char *cwd;
	const char *tool;
	struct candidate_words words;
	const char *trace_id;
	const char *span_id;
	const struct named_text *variables;
	size_t n_variables;
	const char *tool_rule;		/* not copied: a kept_name() */
	bool is_tool;
};
struct text *program_text_of(struct correlator *c, const struct text_parts *parts);	/* keeps the budget */
/* Fills in what a text has of a candidate; valid as long as t. */
void program_text_candidate(const struct text *t, struct candidate *ret);
/*
 * Makes the text of a program that exec'd. *ret is filled with all arguments, also those that are not kept; valid
 * until the arena is used again. known: text of the same program from before, for an exe and a cwd that s lacks;
 * NULL: none.
 */
struct text *program_text_new(struct correlator *c, const struct exec_event *s, const struct text *known,
    struct candidate *ret);
/* Takes a reference and returns t, which may be NULL. */
struct text *program_text_ref(struct text *t);
void program_text_unref(struct correlator *c, struct text *t);	/* t may be NULL */

#endif
