/*
 * SPDX-License-Identifier: Apache-2.0
 * variables: which variables of a program's environment the kernel side reads.
 */
#ifndef SLUICE_ATTACH_VARIABLES_H
#define SLUICE_ATTACH_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>

struct probes;

/* Returns true if a variable of that name can be configured: letters, digits and _, up to 63, no digit first. */
bool variable_is_name(const char *name);

/*
 * Sets the variables that are read of programs that start from now on; n 0: none, and no environment is read.
 * Needs no call into the kernel. Returns 0, -E2BIG for more than 8 names, or -EINVAL for an invalid one; nothing
 * changes on failure. Two calls must not follow within a moment: a program that starts just then may get the
 * names of both.
 */
int probes_set_variables(struct probes *p, const char *const *names, size_t n);

#endif
