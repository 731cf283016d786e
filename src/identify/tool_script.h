/*
 * SPDX-License-Identifier: Apache-2.0
 * tool_script: the script, module, jar or class that an interpreter or java(1) runs. Private to tool.
 */
#ifndef SLUICE_IDENTIFY_TOOL_SCRIPT_H
#define SLUICE_IDENTIFY_TOOL_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "identify/tool_base.h"
#include "model/tool_rules.h"

enum tool_script_kind {
	SCRIPT_NONE,		/* interactive, read from stdin, or only options */
	SCRIPT_INLINE,		/* given on the command line: -c */
	SCRIPT_UNNAMED,		/* a file that only an open descriptor names */
	SCRIPT_FILE,		/* for this and the following kinds, name is set */
	SCRIPT_MODULE,
	SCRIPT_JAR,
	SCRIPT_CLASS,
};

struct tool_script {
	enum tool_script_kind kind;
	const char *name;	/* points into args */
	size_t next;		/* index of the first argument after it */
	char letter;		/* SCRIPT_INLINE: the option's letter */
};

/* Finds the script among the n arguments after the interpreter's own name. The result points into args. */
struct tool_script tool_script_find(const struct tool_interpreter *in, const char *const *args, size_t n);

/* Writes the base name of a script that has a name. */
void tool_script_base(const struct tool_script *script, char base[TOOL_BASE_SIZE]);

/* Returns whether path names an open file of the process, which means nothing after its end. */
bool tool_script_is_fd(const char *path);

#endif
