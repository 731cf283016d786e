/*
 * SPDX-License-Identifier: Apache-2.0
 * containers: their names and images, and the pods that they are in, shared by the locations in them.
 */
#ifndef SLUICE_CORRELATE_CONTAINERS_H
#define SLUICE_CORRELATE_CONTAINERS_H

#include <stdbool.h>
#include <uthash.h>

#include "identify/placement.h"

struct correlator;

/* A pod of Kubernetes, shared by its containers and locations; the key is its uid. */
struct pod {
	UT_hash_handle hh;
	unsigned refs;			/* held by locations and containers; without any it is freed */
	bool is_reported;
	char *name;			/* owned, as the kubelet reports it; NULL unknown */
	char *name_space;		/* owned, likewise */
	char uid[];
};

/* A container, shared by its locations; the key is its id. */
struct container {
	UT_hash_handle hh;
	unsigned refs;			/* held by locations; without any it is freed */
	const char *runtime;		/* kept_name(); NULL unknown */
	struct pod *pod;		/* a reference, of the first location; NULL: in none */
	bool is_reported;		/* by its runtime */
	bool is_in_pod;			/* the kubelet has reported it */
	char *name;			/* owned, as its runtime reports it; NULL unknown */
	char *image;			/* owned, likewise, or as the kubelet does */
	char *k8s_name;			/* owned, as the kubelet reports it; NULL unknown */
	char id[];
};

/* Returns a reference to the pod of this placement; NULL: it is in none, or no memory. */
struct pod *pod_get(struct correlator *c, const struct placement *placement);
void pod_unref(struct correlator *c, struct pod *p);	/* p may be NULL */

/* Returns a reference to the container of this placement; NULL: it has no id, or no memory. */
struct container *container_get(struct correlator *c, const struct placement *placement);
void container_unref(struct correlator *c, struct container *k);	/* k may be NULL */

#endif
