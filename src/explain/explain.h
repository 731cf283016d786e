/*
 * SPDX-License-Identifier: Apache-2.0
 * explain: prints how the rules classify one program.
 */
#ifndef SLUICE_EXPLAIN_EXPLAIN_H
#define SLUICE_EXPLAIN_EXPLAIN_H

#include <stdbool.h>
#include <stdio.h>

#include "model/ruleset.h"
#include "model/candidate.h"

/*
 * A command line to explain as if it were run here. NULL: the value of this process; for exe, the program
 * that PATH finds.
 */
struct explain_options {
	const char *exe;
	const char *cwd;
	const char *cgroup;		/* "": unknown */
	bool has_uid;
	uint32_t uid;
	const char *const *argv;	/* redacted before it is printed */
	size_t argc;			/* at least 1 */
};

/*
 * Explains the program that the kernel would run for a command line, which follows symbolic links and runs
 * a script's interpreter. Returns 0 or -ENOMEM.
 */
int explain_command(const struct ruleset *rules, const struct explain_options *o, FILE *f);

/* The context of a candidate. */
struct explain_around {
	bool is_inside;			/* argument of follow_excludes() */
	const char *engine;		/* argument of engine_judge(); NULL: none */
	const char *const *argv;	/* arguments that may be printed; NULL: all, and the words too */
	size_t argc;
	const char *no_exe;		/* reason to print where exe is unknown */
};

/*
 * Explains a candidate: its tool, whether it is followed, its engine, scheduler and container, each with the
 * rule. Sets s->words, s->tool, s->is_tool and, where it is NULL, s->image.
 */
void explain_candidate(const struct ruleset *rules, struct candidate *s, const struct explain_around *around,
    FILE *f);

#endif
