/*
 * SPDX-License-Identifier: Apache-2.0
 * tool: what a person calls a program, from its exe, arguments and comm, by the rules `tools`.
 */
#ifndef SLUICE_IDENTIFY_TOOL_H
#define SLUICE_IDENTIFY_TOOL_H

#include <stdbool.h>
#include <stddef.h>

#include "model/subject.h"
#include "model/tool_rules.h"

/* Long enough for every sensible name; longer ones are cut at a whole character. */
#define TOOL_NAME_SIZE 64

/*
 * Writes the tool's name to tool: NUL-terminated valid UTF-8, without control characters, "" only
 * where nothing at all is known. s->argv goes through redact_argv() first: a subcommand is a word
 * of it. Sets s->words, in argv, s->tool, which is tool or NULL, and s->is_tool.
 *
 * *ret_rule (may be NULL) says what named it, for as long as the rules live:
 *   bioinformatics/samtools   the rule of a file, for tools that are known
 *   java-jar, java-class   what java(1) was asked to run: Main
 *   interpreter   the script or module that an interpreter runs: align.py
 *   inline        an interpreter with its program on the command line: python -c
 *   exe, argv0, comm   the file's, or failing that the argument's or the kernel's name
 *   shell, wrapper, glue   bash, env, cat: programs that only serve others
 * True when the name is a tool's own. False for the last line of that list, and when nothing is
 * known: such a program is part of the nearest ancestor that has a tool's name.
 *
 * rules may be NULL, or have no tools: then only exe, argv0 and comm are left.
 */
bool tool_name(const struct ruleset *rules, struct subject *s, char *tool, size_t tool_size,
    const char **ret_rule);

/* Likewise, and says why. */
struct tool_reason {
	const char *rule;		/* as above */
	const struct rule_place *place;	/* of the rule that holds; NULL: none does */
	enum tool_role role;
};

bool tool_explain(const struct ruleset *rules, struct subject *s, char *tool, size_t tool_size,
    struct tool_reason *ret);

/* What the program of that base name is to others; by its name alone. */
enum tool_role tool_role(const struct ruleset *rules, const char *base);

#endif
