/*
 * SPDX-License-Identifier: Apache-2.0
 * tool_script: what an interpreter, or java(1), was asked to run. Private to tool.
 */
#ifndef SLUICE_IDENTIFY_TOOL_SCRIPT_H
#define SLUICE_IDENTIFY_TOOL_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "identify/tool_base.h"
#include "model/tool_rules.h"

enum tool_script_kind {
	SCRIPT_NONE,		/* interactive, from stdin, or only options */
	SCRIPT_INLINE,		/* on the command line */
	SCRIPT_UNNAMED,		/* a file that nothing but an open descriptor names */
	SCRIPT_FILE,		/* from here on name says which */
	SCRIPT_MODULE,
	SCRIPT_JAR,
	SCRIPT_CLASS,
};

struct tool_script {
	enum tool_script_kind kind;
	const char *name;	/* in args */
	size_t next;		/* the arguments behind it start here */
	char letter;		/* INLINE: the option */
};

/* args: behind the interpreter's own name. */
struct tool_script tool_script_find(const struct tool_interpreter *in, const char *const *args, size_t n);

/* What to call it, of one that has a name. */
void tool_script_base(const struct tool_script *script, char base[TOOL_BASE_SIZE]);

/* A path that names an open file of the process and nothing that outlives it. */
bool tool_script_is_fd(const char *path);

#endif
