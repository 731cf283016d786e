/*
 * SPDX-License-Identifier: Apache-2.0
 * wrapper_rules: the rules `wrappers`, and the tools with that role, as plain data: programs whose arguments hold the
 * command of another.
 *
 * All memory is the set's.
 */
#ifndef SLUICE_MODEL_WRAPPER_RULES_H
#define SLUICE_MODEL_WRAPPER_RULES_H

#include <stddef.h>

struct wrapper {
	const char *exe;		/* base name of the program */
	const char *const *after;	/* the command follows one of these words, NULL-terminated; NULL: any word */
	size_t order;			/* of the rule; SIZE_MAX: a tool */
};

struct wrapper_rules {
	const struct wrapper *list;	/* by exe, ascending; each once */
	size_t n;
};

#endif
