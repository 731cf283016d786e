/*
 * SPDX-License-Identifier: Apache-2.0
 * tool: the name that a user would give a program, from its exe, arguments and comm, by the rules `tools`.
 */
#ifndef SLUICE_IDENTIFY_TOOL_H
#define SLUICE_IDENTIFY_TOOL_H

#include <stdbool.h>
#include <stddef.h>

#include "model/candidate.h"
#include "model/tool_rules.h"

/* Bytes of a name with its NUL; a longer name is cut at a whole character. */
#define TOOL_NAME_SIZE 64

/*
 * Writes the tool's name to tool: NUL-terminated valid UTF-8 without control characters, "" only where
 * exe, arguments and comm are all unknown. Call redact_argv() on s->argv before, since a subcommand is
 * one of its words. Sets s->words (pointers into argv), s->tool (tool or NULL) and s->is_tool.
 *
 * *ret_rule (may be NULL) is the source of the name, valid as long as the rules:
 *   bioinformatics/samtools   the rule of a file, for known tools
 *   java-jar, java-class   the jar or class that java(1) runs: Main
 *   interpreter   the script or module that an interpreter runs: align.py
 *   inline        an interpreter with its program on the command line: python -c
 *   exe, argv0, comm   the name of the file, or else of the first argument or the kernel's
 *   shell, wrapper, glue   bash, env, cat: programs that only serve others
 * Returns true if the name is a tool's own. Returns false for the last line of that list and without a
 * name: such a program is part of the nearest ancestor that has a tool's name.
 *
 * rules may be NULL, or have no tools: then only exe, argv0 and comm are used.
 */
bool tool_name(const struct ruleset *rules, struct candidate *s, char *tool, size_t tool_size,
    const char **ret_rule);

/* Why a program has its name. */
struct tool_reason {
	const char *rule;		/* as *ret_rule of tool_name() */
	const struct rule_location *location;	/* source location of the rule that holds; NULL: none */
	enum tool_role role;
};

/* Does the same as tool_name(), and returns the reason. */
bool tool_explain(const struct ruleset *rules, struct candidate *s, char *tool, size_t tool_size,
    struct tool_reason *ret);

/* Returns the role of the program of that base name, judged by the name alone. */
enum tool_role tool_role(const struct ruleset *rules, const char *base);

#endif
