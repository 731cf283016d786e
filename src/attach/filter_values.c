/*
 * SPDX-License-Identifier: Apache-2.0
 * Computes the combined value of all rules for each key, and for programs without a key.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "attach/filter_build.h"

uint64_t
filter_hash_path_name(uint64_t hash, const char *name, size_t len)
{
	hash = filter_hash_word(hash, len);
	for (size_t at = 0; at < len; at += sizeof(uint64_t)) {
		uint64_t word = 0;

		memcpy(&word, name + at, len - at < sizeof(word) ? len - at : sizeof(word));
		hash = filter_hash_word(hash, word);
	}
	return hash;
}

uint64_t
filter_ids_that_hold(const struct conjunct *ids, unsigned n, enum filter_dim dim,
    const struct filter_view *v)
{
	uint64_t bits = n == FILTER_IDS ? 0 : ~UINT64_C(0) << n;

	for (unsigned i = 0; i < n; i++) {
		if (conjunct_holds(&ids[i], dim, v))
			bits |= UINT64_C(1) << i;
	}
	return bits;
}

static uint64_t
ids_of(const struct build *b, enum filter_dim dim, const struct filter_view *v)
{
	return filter_ids_that_hold(b->ids, b->n_ids, dim, v);
}

static uint64_t
ids_of_path(const struct build *b, const char *path, size_t len, const char *below)
{
	struct filter_view v = { 0 };
	char text[PATH_MAX];

	if (snprintf(text, sizeof(text), "%.*s%s", (int)len, path, below) >= (int)sizeof(text))
		return 0;	/* the kernel reads no name that long */
	v.path = text;
	return ids_of(b, FILTER_DIM_PATH, &v);
}

/* Returns the deepest folder above m that has a value; NULL: there is none. */
static const struct made *
folder_of(const struct build *b, const struct made *m)
{
	uint64_t hash = b->image->slot.seed;
	const char *at = m->path;
	const struct made *up = NULL;

	for (uint32_t depth = 1; depth < m->depth; depth++) {
		size_t len = strcspn(++at, "/");
		struct filter_key key;
		struct made *found;

		hash = filter_hash_path_name(hash, at, len);
		at += len;
		if ((b->image->slot.path_depths >> depth & 1) == 0)
			continue;
		key = path_key(hash, depth);
		HASH_FIND(hh, b->made, &key, sizeof(key), found);
		if (found != NULL)
			up = found;
	}
	return up;
}

/* Computes the value of a path; the folders above it must be finished. */
static void
path_finish(const struct build *b, struct made *m)
{
	const struct filter_slot *slot = &b->image->slot;
	const struct made *folder = folder_of(b, m);
	uint32_t act = folder != NULL ? folder->entry.value.act_below : slot->path_act;
	uint64_t ids = folder != NULL ? folder->entry.value.ids_below : slot->path_ids;
	struct filter_value *v = &m->entry.value;

	v->act = m->act | act;
	v->act_below = m->act_below | act;
	v->ids = v->ids_below = ids;
	if (m->is_in_ids) {
		v->ids = ids_of_path(b, m->path, m->path_len, "");
		v->ids_below = ids_of_path(b, m->path, m->path_len, "/" FILTER_OTHER_NAME);
	}
}

static uint32_t
ranges_act(const struct build *b, uint32_t uid)
{
	uint32_t act = 0;

	for (unsigned i = 0; i < b->n_ranges; i++) {
		if (uid >= b->ranges[i].low && uid <= b->ranges[i].high)
			act |= b->ranges[i].act;
	}
	return act;
}

static int
by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Returns a user in from..to that has no key of its own; to, if all have one. */
static uint32_t
uid_without_key(struct build *b, uint32_t from, uint32_t to)
{
	struct filter_key key = { .space = FILTER_UID };
	struct made *m;

	for (uint32_t uid = from; uid < to; uid++) {
		memcpy(key.name, &uid, sizeof(uid));
		HASH_FIND(hh, b->made, &key, sizeof(key), m);
		if (m == NULL)
			return uid;
	}
	return to;
}

/* Cuts the users into ranges where any rule's range begins or ends. */
static void
ranges_finish(struct build *b)
{
	struct filter_slot *slot = &b->image->slot;
	uint32_t cuts[2 * RANGES_MAX + 1] = { 0 };
	unsigned n = 1;

	for (unsigned i = 0; i < b->n_ranges; i++) {
		cuts[n++] = b->ranges[i].low;
		if (b->ranges[i].high != UINT32_MAX)
			cuts[n++] = b->ranges[i].high + 1;
	}
	qsort(cuts, n, sizeof(cuts[0]), by_value);
	for (unsigned i = 0; i < n; i++) {
		struct filter_view v = { 0 };

		if (i > 0 && cuts[i] == cuts[i - 1])
			continue;
		for (unsigned next = i + 1;; next++) {
			if (next < n && cuts[next] == cuts[i])
				continue;
			v.uid = uid_without_key(b, cuts[i], next < n ? cuts[next] - 1 : UINT32_MAX);
			break;
		}
		b->image->table.uids[slot->n_uids++] = (struct filter_uids){ cuts[i], ranges_act(b, cuts[i]),
			ids_of(b, FILTER_DIM_UID, &v) };
	}
}

static void
others_finish(struct build *b)
{
	const struct filter_view other = { .exe = FILTER_OTHER_NAME, .path = "/" FILTER_OTHER_NAME };
	struct filter_slot *slot = &b->image->slot;

	slot->exe_ids = ids_of(b, FILTER_DIM_EXE, &other);
	slot->path_ids = ids_of(b, FILTER_DIM_PATH, &other);
	for (unsigned dim = 0; dim < FILTER_DIMS; dim++) {
		b->image->table.unknown_ids[dim] = ~UINT64_C(0);
		for (unsigned i = 0; i < b->n_ids; i++) {
			if (conjunct_looks_at(&b->ids[i], (enum filter_dim)dim))
				b->image->table.unknown_ids[dim] &= ~(UINT64_C(1) << i);
		}
	}
	slot->is_on = slot->dims != 0 || slot->is_include_on ||
	    (slot->exclude_ids | slot->exclude_exe_ids | slot->exclude_user_ids) != 0;
}

static void
value_finish(const struct build *b, struct made *m)
{
	struct filter_value *v = &m->entry.value;
	struct filter_view view = { 0 };
	char name[FILTER_NAME_SIZE];

	if (m->entry.key.space == FILTER_EXE) {
		memcpy(name, m->entry.key.name, sizeof(name));
		view.exe = name;
		v->act = m->act;
		v->ids = m->is_in_ids ? ids_of(b, FILTER_DIM_EXE, &view) : b->image->slot.exe_ids;
	} else if (m->entry.key.space == FILTER_UID) {
		memcpy(&view.uid, m->entry.key.name, sizeof(view.uid));
		v->act = m->act | ranges_act(b, view.uid);
		v->ids = ids_of(b, FILTER_DIM_UID, &view);
	} else {
		path_finish(b, m);
	}
}

static uint64_t
hash_of(const struct build *b, const struct filter_key *key)
{
	_Alignas(8) struct filter_key aligned = *key;
	uint64_t hash;

	uint32_t uid;

	if (key->space == FILTER_UID) {
		memcpy(&uid, key->name, sizeof(uid));
		return filter_hash_uid(b->image->slot.seed, uid);
	}
	if (key->space == FILTER_EXE)
		return filter_hash_key(b->image->slot.seed, &aligned, (uint32_t)strlen(key->name) + 1);
	memcpy(&hash, key->name, sizeof(hash));
	return hash;
}

/* Sets a bit for each key, in a table so large that most programs hit no bit. */
static void
bits_finish(const struct build *b)
{
	struct filter_image *image = b->image;
	__u64 *bits = image->slot.few_bits;
	uint32_t n = FILTER_BITS_MIN;

	while (n < FILTER_BITS_MAX && n < 16 * image->n_entries)
		n *= 2;
	image->slot.bits_mask = n - 1;
	if (n > FILTER_BITS_MIN)
		bits = image->table.bits;
	for (size_t i = 0; i < image->n_entries; i++) {
		uint32_t bit = (uint32_t)hash_of(b, &image->entries[i].key) & (n - 1);

		bits[bit / 64] |= UINT64_C(1) << bit % 64;
	}
}

static int
cgroups_finish(struct build *b)
{
	struct filter_image *image = b->image;
	struct filter_cgroups *g;

	if ((image->slot.dims & 1u << FILTER_DIM_CGROUP) == 0)
		return 0;
	g = image->cgroups = calloc(1, sizeof(*g));
	if (g == NULL)
		return -ENOMEM;
	g->rules = b->cgroup_rules;
	g->n_rules = b->n_cgroup_rules;
	b->cgroup_rules = NULL;
	g->ids = calloc(b->n_ids + 1, sizeof(*g->ids));
	if (g->ids == NULL)
		return -ENOMEM;
	memcpy(g->ids, b->ids, b->n_ids * sizeof(*g->ids));
	g->n_ids = b->n_ids;
	return 0;
}

static int
by_depth(const void *a, const void *b)
{
	uint32_t x = (*(struct made *const *)a)->depth, y = (*(struct made *const *)b)->depth;

	return x < y ? -1 : x > y;
}

int
filter_build_finish(struct build *b)
{
	struct filter_image *image = b->image;
	struct made **order;
	size_t n = 0;

	if (b->is_out_of_memory)
		return -ENOMEM;
	image->entries = calloc(HASH_COUNT(b->made) + 1, sizeof(*image->entries));
	order = calloc(HASH_COUNT(b->made) + 1, sizeof(struct made *));
	if (image->entries == NULL || order == NULL) {
		free(order);
		return -ENOMEM;
	}
	others_finish(b);
	ranges_finish(b);
	image->slot.uid_act = image->table.uids[0].act;
	image->slot.uid_ids = image->table.uids[0].ids;
	for (struct made *m = b->made; m != NULL; m = m->hh.next)
		order[n++] = m;
	qsort(order, n, sizeof(struct made *), by_depth);
	for (size_t i = 0; i < n; i++) {
		value_finish(b, order[i]);
		image->entries[i] = order[i]->entry;
	}
	free(order);
	image->n_entries = n;
	bits_finish(b);
	return cgroups_finish(b);
}
