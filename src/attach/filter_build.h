/*
 * SPDX-License-Identifier: Apache-2.0
 * filter_build: an image under construction; shared by filter_image.c, which collects the keys that rules name,
 * and filter_values.c, which computes the combined value of all rules for each.
 */
#ifndef SLUICE_ATTACH_FILTER_BUILD_H
#define SLUICE_ATTACH_FILTER_BUILD_H

#include <string.h>

#include "attach/filter_conjuncts.h"
#include "attach/filter_image.h"

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(element) (b->is_out_of_memory = true)
#include <uthash.h>

#define RANGES_MAX ((FILTER_UID_RANGES - 2) / 2)

/* An entry under construction. */
struct made {
	struct filter_entry entry;
	const char *path;		/* text of a path; not NUL-terminated if it is a folder's */
	size_t path_len;
	uint32_t depth;
	bool is_in_ids;			/* named by a compound condition */
	uint32_t act, act_below;	/* verdict of the rules that name exactly this */
	UT_hash_handle hh;
};

struct uid_range {
	uint32_t low, high, act;
};

struct cgroup_rule {
	const char *text;
	uint32_t act;
};

/* The part that is kept after the build, for cgroups that are created later. */
struct filter_cgroups {
	struct cgroup_rule *rules;
	size_t n_rules;
	struct conjunct *ids;
	unsigned n_ids;
};

struct build {
	struct filter_image *image;
	struct made *made;		/* owned */
	struct conjunct ids[FILTER_IDS];
	unsigned n_ids;
	struct uid_range ranges[RANGES_MAX];
	unsigned n_ranges;
	struct cgroup_rule *cgroup_rules;
	size_t n_cgroup_rules;
	bool is_out_of_memory;
	struct conjuncts room;
};

/* Returns the key of a path, or of its beginning. hash: of its first depth names. */
static inline struct filter_key
path_key(uint64_t hash, uint32_t depth)
{
	struct filter_key key = { .space = FILTER_PATH };

	memcpy(key.name, &hash, sizeof(hash));
	memcpy(key.name + sizeof(hash), &depth, sizeof(depth));
	return key;
}

/* Computes image's values, bits and users from the collected keys. Returns 0 or -ENOMEM. */
int filter_build_finish(struct build *b);
/* Returns the compound conditions that hold, as far as one dimension is concerned. */
uint64_t filter_ids_that_hold(const struct conjunct *ids, unsigned n, enum filter_dim dim,
    const struct filter_view *v);

#endif
