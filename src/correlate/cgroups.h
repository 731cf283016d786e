/*
 * SPDX-License-Identifier: Apache-2.0
 * cgroups: the paths and limits of cgroups, by their ids. One is of the user of the first program that begins in it. If
 * there is no room for another, the user whose paths take most loses the one that was used least recently.
 */
#ifndef SLUICE_CORRELATE_CGROUPS_H
#define SLUICE_CORRELATE_CGROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include "correlate/users.h"
#include "model/event.h"
#include "model/record.h"

#define CGROUPS_KNOWN_MAX 16384
#define CGROUPS_BYTES_MAX (8u << 20)	/* in total */

struct correlator;

/* A user with its paths. There is none without. */
struct cgroup_owner {
	UT_hash_handle hh;
	owner_t id;			/* 0: of those in which no program has begun */
	struct cgroup_path *first;	/* least recently used first */
	size_t bytes;			/* of CGROUPS_BYTES_MAX */
};

struct cgroup_path {
	UT_hash_handle hh;
	struct cgroup_path *prev, *next;	/* of its owner's */
	struct cgroup_owner *owner;
	struct {
		uint64_t id;
		uint64_t is_v2;
	} key;
	struct opt_double cpus;		/* its limits */
	struct opt_u64 memory_bytes;
	struct opt_u64 memory_high;
	uint32_t users_names;		/* as in struct cgroup_event */
	uint64_t only_task;		/* of groups.c: number of the task whose programs alone were seen; 0: none */
	uint64_t counted_in, asked_in;	/* passes */
	char path[];
};

/* Returns a cgroup's path; NULL if it is not known or id is 0. Valid until the next cgroup event. */
struct cgroup_path *cgroup_find(struct correlator *c, uint64_t id, bool is_v2);
/* Records that a program of this context began: its cgroups are its user's, if they are not another's. */
void cgroups_own(struct correlator *c, const struct program_context *context);
/* Returns a cgroup's path for a record, like cgroup_find(), and marks it as used: unused ones are dropped first. */
struct cgroup_path *cgroup_use(struct correlator *c, uint64_t id, bool is_v2);
/* Adds a path (UTF-8); drops others if there is no room. NULL: known already, or no memory. */
struct cgroup_path *cgroup_add(struct correlator *c, uint64_t id, bool is_v2, const char *path, size_t len);
/* Frees all paths. */
void cgroups_free(struct correlator *c);

#endif
