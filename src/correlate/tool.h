/*
 * SPDX-License-Identifier: Apache-2.0
 * tool: what a person calls a program, from its exe, arguments and comm.
 *
 * A pure function; its tables are in tool_rules.c. The full rules (config/rules.d) come later and
 * take the place of those tables; the callers stay.
 */
#ifndef SLUICE_CORRELATE_TOOL_H
#define SLUICE_CORRELATE_TOOL_H

#include <stdbool.h>
#include <stddef.h>

/* Long enough for every sensible name; longer ones are cut at a whole character. */
#define TOOL_NAME_SIZE 64

/* Bytes of any kind, each NUL-terminated; the caller's. argv goes through redact_argv() first: a
 * subcommand is a word of it. */
struct tool_input {
	const char *exe;		/* path that was executed; NULL: unknown */
	const char *const *argv;	/* NULL: unknown */
	size_t argc;
	const char *comm;		/* NULL: unknown */
};

/*
 * Writes the tool's name to tool: NUL-terminated valid UTF-8, without control characters, "" only
 * where nothing at all is known. *ret_rule (may be NULL) becomes a static string that says which
 * rule named it:
 *   subcommand    a tool and its subcommand: bwa mem
 *   java-jar, java-class   what java(1) was asked to run: picard MarkDuplicates
 *   interpreter   the script or module that an interpreter runs: align.py
 *   inline        an interpreter with its program on the command line: python -c
 *   exe, argv0, comm   the file's, or failing that the argument's or the kernel's name
 *   shell, wrapper, glue   bash, env, cat: programs that only serve others
 * True when the name is a tool's own. False for the last line of that list, and when nothing is
 * known: such a program is part of the nearest ancestor that has a tool's name.
 */
bool tool_name(const struct tool_input *in, char *tool, size_t tool_size, const char **ret_rule);

#endif
