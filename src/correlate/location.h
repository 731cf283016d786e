/*
 * SPDX-License-Identifier: Apache-2.0
 * location: where programs run.
 */
#ifndef SLUICE_CORRELATE_LOCATION_H
#define SLUICE_CORRELATE_LOCATION_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "identify/placement.h"
#include "model/record.h"

#define LOCATIONS_KEPT_MAX 256		/* without a process in them */

struct candidate;
struct container;
struct correlator;
struct pod;
struct process;

/* Where programs run: the paths of their cgroups, and the job, container and limits that follow from them. */
struct location {
	UT_hash_handle hh;
	struct {
		uint64_t v2, v1;
	} key;
	uint64_t generation;		/* of the rules that judged it */
	bool is_known;			/* the paths were known then */
	unsigned refs;			/* held by processes; without any it is kept for a while if it is in the
					 * table */
	struct location *prev, *next;	/* while refs is 0 */
	struct placement placement;
	struct container *container;	/* a reference; NULL: none, or without an id */
	struct pod *pod;		/* a reference; NULL: none */
	struct opt_double cpus;
	struct opt_u64 memory_bytes;
	struct opt_u64 memory_high;	/* memory.high: only demand.c compares with it */
	bool is_apart_v2, is_apart_v1;	/* the path alone names a container, in which it is, or a step */
};

struct location *location_ref(struct location *l);		/* l may be NULL */
void location_unref(struct correlator *c, struct location *l);	/* l may be NULL */
/* Sets p's location from its cgroups and its parent's location; must precede location_refine() after an exec. */
void location_set(struct correlator *c, struct process *p, const struct process *parent, bool has_execed);
/* Refines p's location by the arguments of its program. */
void location_refine(struct correlator *c, struct process *p, const struct candidate *s);
/*
 * Return the name or image of the container at l, from the runtime or else from arguments; NULL: unknown, or no
 * container. l may be NULL.
 */
const char *location_name(const struct location *l);
const char *location_image(const struct location *l);
/*
 * Return what the kubelet calls the container, the pod, and its namespace at l; NULL: unknown, or none. A program that
 * serves a container is in the pod's control group, but not in the container. l may be NULL.
 */
const char *location_k8s_container(const struct location *l);
const char *location_k8s_pod(const struct location *l);
const char *location_k8s_namespace(const struct location *l);
/* Frees all locations; no process may refer to one. */
void locations_free(struct correlator *c);

#endif
