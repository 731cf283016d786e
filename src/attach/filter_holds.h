/*
 * SPDX-License-Identifier: Apache-2.0
 * filter_holds: conditions as far as the kernel can see. Each function returns the same as its counterpart in
 * identify/match.h; tests/unit/test_attach_filter.c compares them.
 */
#ifndef SLUICE_ATTACH_FILTER_HOLDS_H
#define SLUICE_ATTACH_FILTER_HOLDS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/ruleset.h"
#include "filter_map.h"

/* Represents every name that no rule has. */
#define FILTER_OTHER_NAME "\001"

/* One dimension of a program; the others are not looked at. */
struct filter_view {
	const char *exe;		/* base name */
	const char *path;
	const char *cgroup;		/* path in one hierarchy */
	uint32_t uid;
};

/* Dimensions that the kernel cannot see, beside the bits of enum filter_dim in the result of filter_dims_of(). */
#define FILTER_DIM_NONE (1u << FILTER_DIMS)
uint32_t filter_dims_of(const struct condition *c);

/* Returns true if c holds; c must look only at the dimension that the view has, or at none. */
bool filter_holds(const struct condition *c, const struct filter_view *v);

#endif
