/*
 * SPDX-License-Identifier: Apache-2.0
 * filter_holds: conditions as far as the kernel can see. Each function says the same as
 * identify/match.h does; tests/unit/test_attach_filter.c holds them together.
 */
#ifndef SLUICE_ATTACH_FILTER_HOLDS_H
#define SLUICE_ATTACH_FILTER_HOLDS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/ruleset.h"
#include "filter_map.h"

/* Stands for every name that no rule has. */
#define FILTER_OTHER_NAME "\001"

/* One dimension of a program; of the others nothing is asked. */
struct filter_view {
	const char *exe;		/* base name */
	const char *path;
	const char *cgroup;		/* of one hierarchy */
	uint32_t uid;
};

/* The dimensions that it looks at, by bits of enum filter_dim; FILTER_DIM_NONE: what the kernel cannot see, too. */
#define FILTER_DIM_NONE (1u << FILTER_DIMS)
uint32_t filter_dims_of(const struct condition *c);

/* c looks at the one dimension that the view has, or at none. */
bool filter_holds(const struct condition *c, const struct filter_view *v);

bool filter_path_holds(const char *text, const char *path);

/* No more than this does the kernel have of a path in a rule: names of a length that it reads. */
bool filter_path_fits(const char *text);

#endif
