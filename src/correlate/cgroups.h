/*
 * SPDX-License-Identifier: Apache-2.0
 * cgroups: the paths and limits of cgroups, by their ids.
 */
#ifndef SLUICE_CORRELATE_CGROUPS_H
#define SLUICE_CORRELATE_CGROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include "model/record.h"

#define CGROUPS_KNOWN_MAX 16384
#define CGROUPS_BYTES_MAX (8u << 20)	/* of paths, in total */

struct correlator;

struct cgroup_path {
	UT_hash_handle hh;
	struct {
		uint64_t id;
		uint64_t is_v2;
	} key;
	struct opt_double cpus;		/* its limits */
	struct opt_u64 memory_bytes;
	uint32_t users_names;		/* as in struct cgroup_event */
	char path[];
};

/* Returns a cgroup's path; NULL if it is not known or id is 0. Valid until the next cgroup event. */
struct cgroup_path *cgroup_find(struct correlator *c, uint64_t id, bool is_v2);
/* Returns a cgroup's path for a record, like cgroup_find(), and marks it as used: unused ones are dropped first. */
struct cgroup_path *cgroup_use(struct correlator *c, uint64_t id, bool is_v2);
/* Adds a path (UTF-8); drops the least used ones if there is no room. NULL: known already, or no memory. */
struct cgroup_path *cgroup_add(struct correlator *c, uint64_t id, bool is_v2, const char *path, size_t len);
/* Frees all paths. */
void cgroups_free(struct correlator *c);

#endif
