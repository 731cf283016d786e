/*
 * SPDX-License-Identifier: Apache-2.0
 * tool_rules: from a name to the rules for it. The hash table is our own because several rules may have one name,
 * and count in their order, whereas uthash has one entry for each key; its handle would also add 56 bytes to each of
 * thousands of keys, and its buckets would be outside of the set's memory.
 */
#include "model/tool_rules.h"

#include <string.h>

/* FNV-1a: names are short, and hash collisions cost only the author of the rules. */
uint32_t
tool_key_hash(enum tool_key_kind kind, const char *name)
{
	uint32_t hash = 2166136261u ^ (uint32_t)kind;

	for (; *name != '\0'; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619u;
	return hash ^ hash >> 15;
}

static const struct tool_key *
find_from(const struct tool_key *k, enum tool_key_kind kind, uint32_t hash, const char *name)
{
	while (k != NULL && (k->hash != hash || k->kind != kind || strcmp(k->name, name) != 0))
		k = k->next;
	return k;
}

const struct tool_key *
tool_rules_find(const struct tool_rules *t, enum tool_key_kind kind, const char *name)
{
	uint32_t hash;

	if (t == NULL || t->n_buckets == 0)
		return NULL;
	hash = tool_key_hash(kind, name);
	return find_from(t->buckets[hash & (t->n_buckets - 1)], kind, hash, name);
}

const struct tool_key *
tool_key_next(const struct tool_key *k)
{
	return find_from(k->next, k->kind, k->hash, k->name);
}

const char *
tool_role_name(enum tool_role role)
{
	static const char *const names[] = { "tool", "shell", "wrapper", "glue", "multi_call" };

	_Static_assert(sizeof(names) / sizeof(names[0]) == TOOL_ROLES, "a name for each");
	return names[role];
}
