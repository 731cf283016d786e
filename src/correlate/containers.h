/*
 * SPDX-License-Identifier: Apache-2.0
 * containers: their names and images, shared by the locations in them.
 */
#ifndef SLUICE_CORRELATE_CONTAINERS_H
#define SLUICE_CORRELATE_CONTAINERS_H

#include <stdbool.h>
#include <uthash.h>

#include "identify/placement.h"

struct correlator;

/* A container, shared by its locations; the key is its id. */
struct container {
	UT_hash_handle hh;
	unsigned refs;			/* held by locations; without any it is freed */
	const char *runtime;		/* kept_name(); NULL unknown */
	bool is_reported;
	char *name;			/* owned, as its runtime reports it; NULL unknown */
	char *image;			/* owned, likewise */
	char id[];
};

/* Returns a reference to the container of this placement; NULL: it has no id, or no memory. */
struct container *container_get(struct correlator *c, const struct placement *placement);
void container_unref(struct correlator *c, struct container *k);	/* k may be NULL */

#endif
