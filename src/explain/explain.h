/*
 * SPDX-License-Identifier: Apache-2.0
 * explain: what the rules make of one program, in words.
 */
#ifndef SLUICE_EXPLAIN_EXPLAIN_H
#define SLUICE_EXPLAIN_EXPLAIN_H

#include <stdbool.h>
#include <stdio.h>

#include "model/ruleset.h"
#include "model/subject.h"

/* A command line, as if it were run here. NULL: as this process has it, and of exe as PATH has it. */
struct explain_options {
	const char *exe;
	const char *cwd;
	const char *cgroup;		/* "": unknown */
	bool has_uid;
	uint32_t uid;
	const char *const *argv;	/* redacted before it is shown */
	size_t argc;			/* 1 at least */
};

/* The program that the kernel would see: behind symbolic links, and of a script its interpreter. 0 or -ENOMEM. */
int explain_command(const struct ruleset *rules, const struct explain_options *o, FILE *f);

/* What a subject does not say itself. */
struct explain_around {
	bool is_inside;			/* as follow_excludes() wants it, ... */
	const char *engine;		/* ... and engine_judge(); NULL none */
	const char *const *argv;	/* what may be shown of its arguments; NULL: all, its words too */
	size_t argc;
	const char *no_exe;		/* why its path may be unknown */
};

/*
 * Of a subject that is already known: which tool it is, whether it is followed, its engine, scheduler
 * and container, each with the rule. Fills in s->words, tool and is_tool.
 */
void explain_subject(const struct ruleset *rules, struct subject *s, const struct explain_around *around,
    FILE *f);

#endif
