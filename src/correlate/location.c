/*
 * SPDX-License-Identifier: Apache-2.0
 * Locations: job, container and limits from the paths of a program's two cgroups, computed once for all programs in
 * them. Unused locations are kept for a while, since batches of short programs return to the same cgroup.
 */
#include "correlate/location.h"

#include <stdlib.h>
#include <string.h>

#include "base/steps.h"
#include "correlate/cgroups.h"
#include "correlate/containers.h"
#include "correlate/process.h"
#include "correlate/state.h"
#include "correlate/users.h"
#include "identify/match.h"

static void
idle_leave(struct correlator *c, struct location *l)
{
	DL_DELETE(c->idle_locations, l);
	c->n_idle_locations--;
}

static void
location_free(struct correlator *c, struct location *l)
{
	if (l->hh.tbl != NULL)
		HASH_DEL(c->locations, l);
	container_unref(c, l->container);
	pod_unref(c, l->pod);
	free(l);
}

struct location *
location_ref(struct location *l)
{
	if (l != NULL)
		l->refs++;
	return l;
}

void
location_unref(struct correlator *c, struct location *l)
{
	if (l == NULL || --l->refs > 0)
		return;
	if (l->hh.tbl == NULL) {	/* belongs to one program */
		location_free(c, l);
		return;
	}
	DL_APPEND(c->idle_locations, l);
	c->n_idle_locations++;
	while (c->n_idle_locations > LOCATIONS_KEPT_MAX) {
		struct location *oldest = c->idle_locations;

		idle_leave(c, oldest);
		location_free(c, oldest);
	}
}

/* Limits nest: the strictest applies. */
static void
take_limits(struct location *l, const struct cgroup_path *g)
{
	if (g == NULL)
		return;
	if (g->cpus.known && (!l->cpus.known || g->cpus.value < l->cpus.value))
		l->cpus = g->cpus;
	if (g->memory_bytes.known && (!l->memory_bytes.known || g->memory_bytes.value < l->memory_bytes.value))
		l->memory_bytes = g->memory_bytes;
	if (g->memory_high.known && (!l->memory_high.known || g->memory_high.value < l->memory_high.value))
		l->memory_high = g->memory_high;
}

/* The rule set may be freed before the location. */
static void
keep_names(struct correlator *c, struct placement *placement)
{
	placement->scheduler = kept_name(c, placement->scheduler);
	placement->runtime = kept_name(c, placement->runtime);
	placement->scheduler_source = kept_name(c, placement->scheduler_source);
	placement->container_source = kept_name(c, placement->container_source);
}

static struct placement_group
group_of(const struct cgroup_path *g)
{
	return g != NULL ? (struct placement_group){ g->path, g->users_names } : (struct placement_group){ 0 };
}

/* Returns whether a control group is a container's, or that of a step of a job, and not one that serves them. */
static bool
is_apart(struct correlator *c, const struct cgroup_path *g)
{
	const struct placement_group groups[] = { group_of(g), { 0 } };
	struct placement placement;

	return g != NULL && placement_of_groups(c->rules, groups, &placement) && !placement.is_outside &&
	    (placement.has_container || placement.step[0] != '\0');
}

/* of: the program whose location it is. */
static void
judge(struct correlator *c, struct location *l, const struct program_context *of)
{
	struct container *before = l->container;
	struct pod *pod_before = l->pod;
	const struct cgroup_path *v2 = cgroup_find(c, l->key.v2, true), *v1 = cgroup_find(c, l->key.v1, false);
	struct steps rules;
	const struct placement_group groups[] = { group_of(v2), group_of(v1) };

	l->generation = c->rules->generation;
	l->is_known = (v2 != NULL || l->key.v2 == 0) && (v1 != NULL || l->key.v1 == 0);
	l->cpus = (struct opt_double){ 0 };
	l->memory_bytes = l->memory_high = (struct opt_u64){ 0 };
	take_limits(l, v2);
	take_limits(l, v1);
	steps_begin(&rules, RULES_STEPS);
	placement_of_groups(c->rules, groups, &l->placement);
	l->is_apart_v2 = is_apart(c, v2);
	l->is_apart_v1 = is_apart(c, v1);
	if (steps_end(&rules))
		judgement_gave_up(c, of);
	keep_names(c, &l->placement);
	l->container = container_get(c, &l->placement);
	l->pod = pod_get(c, &l->placement);
	container_unref(c, before);	/* last, since both may be the same */
	pod_unref(c, pod_before);
}

/* Returns a reference to the location of a program's cgroups; NULL: both ids are 0, or no memory. */
static struct location *
location_of(struct correlator *c, const struct program_context *of)
{
	struct { uint64_t v2, v1; } key = { of->cgroup_v2, of->cgroup_v1 };
	struct location *l;

	if (key.v2 == 0 && key.v1 == 0)
		return NULL;
	HASH_FIND(hh, c->locations, &key, sizeof(key), l);
	if (l == NULL) {
		l = calloc(1, sizeof(*l));
		if (l == NULL)
			return NULL;
		l->key.v2 = key.v2;
		l->key.v1 = key.v1;
		HASH_ADD(hh, c->locations, key, sizeof(l->key), l);
		judge(c, l, of);
	} else {
		if (l->refs == 0)
			idle_leave(c, l);
		if (!l->is_known || l->generation != c->rules->generation)
			judge(c, l, of);
	}
	l->refs++;
	return l;
}

/* Returns a location for one program, a copy of l (may be NULL) with this placement. Without memory: l itself. */
static struct location *
location_own(struct correlator *c, struct location *l, const struct placement *placement)
{
	struct location *own = calloc(1, sizeof(*own));

	if (own == NULL)
		return l;
	if (l != NULL)
		*own = *l;
	memset(&own->hh, 0, sizeof(own->hh));
	own->prev = own->next = NULL;
	own->refs = 1;
	own->placement = *placement;
	keep_names(c, &own->placement);
	own->container = container_get(c, &own->placement);
	own->pod = pod_get(c, &own->placement);
	location_unref(c, l);
	return own;
}

void
location_refine(struct correlator *c, struct process *p, const struct candidate *s)
{
	struct location *l = p->location;
	struct placement placement = { 0 };

	if (l != NULL)
		placement = l->placement;
	if (placement_of_program(c->rules, s, &placement))
		p->location = location_own(c, l, &placement);
}

/*
 * Adds what arguments showed of from, the location of the parent or of the replaced program; takes over the
 * reference to l.
 */
static struct location *
location_inherit(struct correlator *c, struct location *l, const struct location *from)
{
	struct placement placement = { 0 };
	bool is_same;

	if (from == NULL)
		return l;
	if (l != NULL)
		placement = l->placement;
	is_same = l != NULL && l->key.v2 == from->key.v2 && l->key.v1 == from->key.v1;
	return placement_inherit(&from->placement, &placement, is_same) ? location_own(c, l, &placement) : l;
}

void
location_set(struct correlator *c, struct process *p, const struct process *parent, bool has_execed)
{
	/* A child that has not exec'd has its parent's context until its own cgroups are known. */
	const struct process *known = p->has_context || parent == NULL ? p : parent;
	struct location *old = p->location;
	struct location *from = old != NULL ? old : parent != NULL ? parent->location : NULL;

	if (!known->has_context)
		return;
	if (from != NULL && from->is_known && from->generation == c->rules->generation &&
	    (!has_execed || !from->placement.is_outside || from->placement.has_group) &&
	    from->key.v2 == known->context.cgroup_v2 && from->key.v1 == known->context.cgroup_v1)
		p->location = location_ref(from);
	else
		p->location = location_inherit(c, location_of(c, &known->context), from);
	location_unref(c, old);
}

const char *
location_name(const struct location *l)
{
	if (l == NULL || l->placement.is_outside)
		return NULL;
	if (l->container != NULL && l->container->name != NULL)
		return l->container->name;
	return l->placement.name[0] != '\0' ? l->placement.name : NULL;
}

const char *
location_image(const struct location *l)
{
	if (l == NULL || l->placement.is_outside)
		return NULL;
	if (l->container != NULL && l->container->image != NULL)
		return l->container->image;
	return l->placement.image[0] != '\0' ? l->placement.image : NULL;
}

const char *
location_k8s_container(const struct location *l)
{
	return l != NULL && !l->placement.is_outside && l->container != NULL ? l->container->k8s_name : NULL;
}

const char *
location_k8s_pod(const struct location *l)
{
	return l != NULL && l->pod != NULL ? l->pod->name : NULL;
}

const char *
location_k8s_namespace(const struct location *l)
{
	return l != NULL && l->pod != NULL ? l->pod->name_space : NULL;
}

void
locations_free(struct correlator *c)
{
	struct location *l, *next;

	HASH_ITER(hh, c->locations, l, next)
		location_free(c, l);
	c->idle_locations = NULL;
	c->n_idle_locations = 0;
}
