/*
 * SPDX-License-Identifier: Apache-2.0
 * variables: which variables of a program's environment the kernel side reads.
 */
#ifndef SLUICE_ATTACH_VARIABLES_H
#define SLUICE_ATTACH_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>

struct probes;

/* Can a variable of that name be asked for? Letters, digits and _, up to 63, no digit first. */
bool variable_is_name(const char *name);

/*
 * Of programs that start from now on; n 0: none, and no environment is touched. Costs no call into
 * the kernel. 0; -E2BIG for more than 8 names, -EINVAL for one that is none: then nothing changes.
 * Not twice within a moment: a program that starts just then may meet the names of both times.
 */
int probes_set_variables(struct probes *p, const char *const *names, size_t n);

#endif
