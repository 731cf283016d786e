/*
 * SPDX-License-Identifier: Apache-2.0
 * tool_rules: the tables behind tool_name(), until config/rules.d takes their place.
 */
#ifndef SLUICE_CORRELATE_TOOL_RULES_H
#define SLUICE_CORRELATE_TOOL_RULES_H

#include <stdbool.h>
#include <stddef.h>

/* What a program is to others. */
enum tool_class {
	TOOL_OTHER,
	TOOL_SHELL,
	TOOL_WRAPPER,		/* env, sudo: a moment before the program that counts */
	TOOL_GLUE,		/* cat, mkdir: a part of somebody's script */
	TOOL_MULTI_CALL,	/* busybox: argv[0], or else the first argument, says which */
};

/*
 * Programs that run another file's code. Options are single letters, alone or bundled:
 *   inline	the program is on the command line		python -c
 *   module	the rest of the bundle, or the next argument, is its name	python -m
 *   value	takes the rest of the bundle, or the next argument
 *   attached	takes the rest of the bundle and never the next argument	perl -i.bak
 *   next	takes the next argument; the bundle goes on	bash -euo pipefail
 *   file	the next argument is the script			R -f
 * and long ones, each list separated by spaces:
 *   long_value	takes the next argument unless it holds "="
 *   long_inline	as inline, shown by its first letter
 *   long_file	--name=script
 * options_only: what is no option is not the script either.
 */
struct tool_interpreter {
	const char *name;
	const char *inline_, *module, *value, *attached, *next, *file;
	const char *long_value, *long_inline, *long_file;
	bool options_only;
};

/*
 * Tools that do different work by subcommand. values: the options before the subcommand that take
 * the next argument, separated by spaces.
 */
struct tool_command {
	const char *name;
	const char *values;
};

enum tool_class tool_class(const char *base);
/* NULL: none. python3.11, python3 and python are one; shells are interpreters too. */
const struct tool_interpreter *tool_interpreter(const char *base);
const struct tool_command *tool_command(const char *base);	/* NULL: has no subcommands */
/* What people say for a jar's or a class's name; NULL: the name itself. */
const char *tool_java_name(const char *name);

#endif
