/*
 * SPDX-License-Identifier: Apache-2.0
 * Rules → keys and values. Each key that any rule names gets the combined value of all rules, so that the kernel
 * looks each dimension up once.
 */
#include "attach/filter_image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "attach/filter_build.h"
#include "base/glob.h"
#include "model/user.h"

#define NARROW 16		/* a range of users up to this width is stored as a key for each */

static struct made *
made_get(struct build *b, const struct filter_key *key)
{
	struct made *m;

	HASH_FIND(hh, b->made, key, sizeof(*key), m);
	if (m != NULL)
		return m;
	m = calloc(1, sizeof(*m));
	if (m == NULL) {
		b->is_out_of_memory = true;
		return NULL;
	}
	m->entry.key = *key;
	HASH_ADD(hh, b->made, entry.key, sizeof(*key), m);
	if (b->is_out_of_memory) {
		free(m);
		m = NULL;
	}
	return m;
}

static struct made *
made_name(struct build *b, uint32_t space, const char *name, size_t len)
{
	struct filter_key key = { .space = space };

	memcpy(key.name, name, len);
	return made_get(b, &key);
}

static struct made *
made_uid(struct build *b, uint32_t uid)
{
	return made_name(b, FILTER_UID, (const char *)&uid, sizeof(uid));
}

/* Returns the entry of a path; "/a/b" and "/a/b/" are the same key. NULL: out of memory. */
static struct made *
made_path(struct build *b, const char *path)
{
	uint64_t hash = b->image->slot.seed;
	const char *at = path;
	uint32_t depth = 0;
	struct filter_key key;
	struct made *m;

	while (*at == '/' && at[1] != '\0') {
		size_t len = strcspn(++at, "/");

		hash = filter_hash_path_name(hash, at, len);
		depth++;
		at += len;
	}
	key = path_key(hash, depth);
	m = made_get(b, &key);
	if (m == NULL)
		return NULL;
	m->path = path;
	m->path_len = (size_t)(at - path);
	m->depth = depth;
	b->image->slot.path_depths |= UINT64_C(1) << depth;
	return m;
}

static bool
uid_add(struct build *b, const struct condition *c, uint32_t act, bool is_in_ids)
{
	if (c->high < c->low)
		return true;
	if (c->high - c->low < NARROW) {
		for (uint64_t uid = c->low; uid <= c->high; uid++) {
			struct made *m = made_uid(b, (uint32_t)uid);

			if (m == NULL)
				return false;
			m->act |= act;
			m->is_in_ids |= is_in_ids;
		}
		return true;
	}
	for (unsigned i = 0; i < b->n_ranges; i++) {
		if (b->ranges[i].low == c->low && b->ranges[i].high == c->high) {
			b->ranges[i].act |= act;
			return true;
		}
	}
	if (b->n_ranges == RANGES_MAX)
		return false;
	b->ranges[b->n_ranges++] = (struct uid_range){ c->low, c->high, act };
	return true;
}

static bool
cgroup_add(struct build *b, const char *text, uint32_t act)
{
	struct cgroup_rule *grown;

	if ((b->n_cgroup_rules & (b->n_cgroup_rules - 1)) == 0) {
		size_t room = b->n_cgroup_rules == 0 ? 1 : 2 * b->n_cgroup_rules;

		grown = realloc(b->cgroup_rules, room * sizeof(*grown));
		if (grown == NULL) {
			b->is_out_of_memory = true;
			return false;
		}
		b->cgroup_rules = grown;
	}
	b->cgroup_rules[b->n_cgroup_rules++] = (struct cgroup_rule){ text, act };
	return true;
}

/* Adds a condition with a single value. Returns false if the kernel has no room for it. */
static bool
atom_add(struct build *b, const struct condition *c, uint32_t act)
{
	struct filter_slot *slot = &b->image->slot;
	size_t len = c->text != NULL ? strlen(c->text) : 0;
	struct made *m;

	switch (c->kind) {
	case CONDITION_EXE:
		m = made_name(b, FILTER_EXE, c->text, len);
		if (m != NULL)
			m->act |= act;
		return m != NULL;
	case CONDITION_PATH:
		if (len == 1) {
			slot->path_act |= act;
			return true;
		}
		m = made_path(b, c->text);
		if (m != NULL && c->text[len - 1] == '/')
			m->act_below |= act;
		else if (m != NULL)
			m->act |= act;
		return m != NULL;
	case CONDITION_CGROUP:
		return cgroup_add(b, c->text, act);
	default:
		return uid_add(b, c, act, false);
	}
}

/* Makes the keys that a compound condition names. Returns false if there is no room. */
static bool
id_keys(struct build *b, const struct condition *c)
{
	size_t len = c->text != NULL ? strlen(c->text) : 0;
	struct made *m;

	for (const struct condition *child = c->first; child != NULL; child = child->next) {
		if (!id_keys(b, child))
			return false;
	}
	switch (c->kind) {
	case CONDITION_EXE:
		m = made_name(b, FILTER_EXE, c->text, len);
		if (m != NULL)
			m->is_in_ids = true;
		return m != NULL;
	case CONDITION_PATH:
		if (len == 1)
			return true;
		m = made_path(b, c->text);
		if (m != NULL)
			m->is_in_ids = true;
		return m != NULL;
	case CONDITION_UID:
		return uid_add(b, c, 0, true);
	default:
		return true;
	}
}

static bool
id_add(struct build *b, const struct conjunct *c, uint32_t act)
{
	struct filter_slot *slot = &b->image->slot;
	uint64_t bit;

	if (c->is_outside || b->n_ids == FILTER_IDS)
		return false;
	for (unsigned i = 0; i < c->n; i++) {
		if (!id_keys(b, c->literals[i].condition))
			return false;
	}
	bit = UINT64_C(1) << b->n_ids;
	b->ids[b->n_ids++] = *c;
	switch (act) {
	case FILTER_EXCLUDE:
		slot->exclude_ids |= bit;
		break;
	case FILTER_EXCLUDE_EXE:
		slot->exclude_exe_ids |= bit;
		break;
	case FILTER_EXCLUDE_USER:
		slot->exclude_user_ids |= bit;
		break;
	default:
		slot->include_ids |= bit;
	}
	if (conjunct_denies_cgroup(c))
		b->image->table.cgroup_not_ids |= bit;
	for (unsigned i = 0; i < c->n; i++)
		slot->dims |= 1u << c->literals[i].dim;
	return true;
}

/* Adds a condition. Returns false if a part of it is not in the kernel. */
static bool
condition_add(struct build *b, const struct condition *c, uint32_t act)
{
	uint32_t dims;
	bool is_whole = true;

	while ((c->kind == CONDITION_ALL && c->first != NULL && c->first->next == NULL) ||
	    (c->kind == CONDITION_NOT && c->first->kind == CONDITION_NOT))
		c = c->kind == CONDITION_NOT ? c->first->first : c->first;
	if (c->kind == CONDITION_ANY) {
		for (const struct condition *child = c->first; child != NULL; child = child->next)
			is_whole &= condition_add(b, child, act);
		return is_whole;
	}
	dims = filter_dims_of(c);
	if (c->first == NULL && c->kind != CONDITION_ALL) {
		if (dims == FILTER_DIM_NONE || !atom_add(b, c, act))
			return false;
		b->image->slot.dims |= dims;
		return true;
	}
	conjuncts_of(c, &b->room);
	for (unsigned i = 0; i < b->room.n; i++)
		is_whole &= id_add(b, &b->room.of[i], act);
	return is_whole;
}

static bool
rule_add(struct build *b, const struct follow_rule *rule, uint32_t act)
{
	static const struct condition always = { .kind = CONDITION_ALL };

	return condition_add(b, rule->when != NULL ? rule->when : &always, act);
}

/* Adds all include rules or none: a program that a missing one includes must be reported. */
static void
add_includes(struct build *b, const struct follow_rules *rules)
{
	struct filter_image *image = b->image;
	bool are_whole = rules->n_include > 0;

	for (size_t i = 0; i < rules->n_include; i++) {
		const struct condition *when = rules->include[i].when;
		uint32_t dims = when != NULL ? filter_dims_of(when) : 0;

		are_whole &= (dims & FILTER_DIM_NONE) == 0;
		image->slot.include_dims |= dims;
	}
	for (size_t i = 0; i < rules->n_include && are_whole; i++)
		are_whole = rule_add(b, &rules->include[i], FILTER_INCLUDE);
	image->slot.is_include_on = are_whole;
	if (are_whole)
		image->rules += (uint32_t)rules->n_include;
	else
		image->rules_outside += (uint32_t)rules->n_include;
}

_Static_assert(FILTER_SYSTEM_UID_MAX == SYSTEM_UID_MAX, "the kernel side trusts other users");

static const uint32_t exclude_acts[] = {
	[TRUST_ANY] = FILTER_EXCLUDE,
	[TRUST_EXE] = FILTER_EXCLUDE_EXE,
	[TRUST_USER] = FILTER_EXCLUDE_USER,
};

static bool
seed_draw(__u64 *ret)
{
	ssize_t n;

	while ((n = getrandom(ret, sizeof(*ret), 0)) < 0 && errno == EINTR)
		continue;
	return n == sizeof(*ret);
}

int
filter_image_new(const struct follow_rules *rules, struct filter_image **ret)
{
	struct build *b = calloc(1, sizeof(*b));
	struct filter_image *image = calloc(1, sizeof(*image));
	struct made *m, *next;
	int r = -ENOMEM;

	if (b != NULL && image != NULL && seed_draw(&image->slot.seed)) {
		b->image = image;
		add_includes(b, rules);
		for (size_t i = 0; i < rules->n_exclude; i++) {
			if (rule_add(b, &rules->exclude[i], exclude_acts[rules->exclude[i].trust]))
				image->rules++;
			else
				image->rules_outside++;
		}
		r = filter_build_finish(b);
		HASH_ITER(hh, b->made, m, next) {
			HASH_DEL(b->made, m);
			free(m);
		}
		free(b->cgroup_rules);
	}
	free(b);
	if (r < 0)
		filter_image_free(image);
	else
		*ret = image;
	return r;
}

void
filter_image_free(struct filter_image *image)
{
	if (image == NULL)
		return;
	if (image->cgroups != NULL) {
		free(image->cgroups->rules);
		free(image->cgroups->ids);
	}
	free(image->cgroups);
	free(image->entries);
	free(image);
}

void
filter_image_cgroup(const struct filter_image *image, uint64_t id, bool is_v2, const char *path,
    struct filter_entry *ret)
{
	const struct filter_cgroups *g = image->cgroups;
	const struct filter_view v = { .cgroup = path };

	memset(ret, 0, sizeof(*ret));
	ret->key.space = is_v2 ? FILTER_CGROUP_V2 : FILTER_CGROUP_V1;
	memcpy(ret->key.name, &id, sizeof(id));
	for (size_t i = 0; i < g->n_rules; i++) {
		if (glob_holds_path(g->rules[i].text, path))
			ret->value.act |= g->rules[i].act;
	}
	ret->value.ids = filter_ids_that_hold(g->ids, g->n_ids, FILTER_DIM_CGROUP, &v);
}
