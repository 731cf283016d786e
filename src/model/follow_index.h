/*
 * SPDX-License-Identifier: Apache-2.0
 * follow_index: finds the rules that may hold for a program without a look at each.
 *
 * A rule that can hold only for certain names, paths or cgroups is listed under each of those keys, all
 * others in one list. A key is necessary but not sufficient: the rule's condition must still be matched.
 * Plain data of the set.
 */
#ifndef SLUICE_MODEL_FOLLOW_INDEX_H
#define SLUICE_MODEL_FOLLOW_INDEX_H

#include "model/ruleset.h"

/* Numbers of rules, ascending. */
struct follow_numbers {
	const uint32_t *list;
	size_t n;
};

/* Builds the index of n rules in the set's memory. Returns NULL where memory ran out. */
const struct follow_index *follow_index_new(struct ruleset *set, const struct follow_rule *rules, size_t n);

/* Returns the rules under no key, which may hold for any program. */
struct follow_numbers follow_index_others(const struct follow_index *x);

/* Returns the rules under a text that is exactly this name. kind: CONDITION_EXE or CONDITION_COMM. */
struct follow_numbers follow_index_find(const struct follow_index *x, enum condition_kind kind, const char *name);

/* A position along a path; zeroed: its beginning. */
struct follow_walk {
	size_t at;
	uint64_t hash;
};

/*
 * Writes the rules under the next text that, up to its first star, is a beginning of path. Each call writes one list;
 * false: there are no more. kind: CONDITION_PATH or CONDITION_CGROUP.
 */
bool follow_index_walk(const struct follow_index *x, enum condition_kind kind, const char *path,
    struct follow_walk *w, struct follow_numbers *ret);

#endif
