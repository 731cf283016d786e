/*
 * SPDX-License-Identifier: Apache-2.0
 * filter_image: the include and exclude rules in the form of bpf/filter_map.h, before any map is made.
 *
 * An exclude rule is split into alternatives. The kernel gets the ones that it can judge, the others are left to
 * correlate/. An include rule is loaded only with all others, since a program that none includes is left out. A
 * condition on one base name, path, cgroup or range of users is a bit in a value; up to 64 others have an id each.
 */
#ifndef SLUICE_ATTACH_FILTER_IMAGE_H
#define SLUICE_ATTACH_FILTER_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/ruleset.h"
#include "filter_map.h"

struct filter_entry {
	struct filter_key key;
	struct filter_value value;
};

struct filter_cgroups;		/* the rules about cgroups; opaque */

struct filter_image {
	struct filter_entry *entries;		/* owned; without cgroups */
	size_t n_entries;
	struct filter_slot slot;
	struct filter_table table;
	struct filter_cgroups *cgroups;		/* owned; NULL: no rule looks at them */
	uint32_t rules;				/* rules that are wholly in the kernel */
	uint32_t rules_outside;			/* rules that are not, or only in part */
};

/* Builds an image of rules, which must outlive it. Returns 0, or -ENOMEM with *ret untouched. */
int filter_image_new(const struct follow_rules *rules, struct filter_image **ret);
void filter_image_free(struct filter_image *image);	/* NULL is fine */

/* Adds one name to the hash of a path, as bpf/path.h computes it. */
uint64_t filter_hash_path_name(uint64_t hash, const char *name, size_t len);

/* Computes the entry of a cgroup; only if image->cgroups is set. Two threads may call it at once. */
void filter_image_cgroup(const struct filter_image *image, uint64_t id, bool is_v2, const char *path,
    struct filter_entry *ret);

#endif
