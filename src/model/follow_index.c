/*
 * SPDX-License-Identifier: Apache-2.0
 * follow_index: which of many rules may hold for a program, without asking each. The hash table is our own because
 * uthash keeps a handle of 56 bytes in each key, and its buckets outside of the set's memory: with 262,144 paths it
 * takes 88 bytes a key instead of 52, and 1.6 times as long to find all beginnings of a path.
 */
#include "model/follow_index.h"

#include <stdlib.h>
#include <string.h>

enum { KEY_LEN_MAX = 511 };	/* of a longer one the beginning */

/* A rule under a key, while the index is made. */
struct entry {
	enum condition_kind kind;
	const char *text;	/* the set's; not terminated */
	size_t len;
	uint32_t number;
};

/* How long keys of a kind are. */
struct lengths {
	uint64_t bits[(KEY_LEN_MAX + 1) / 64];
	size_t longest;
};

/* A key, and its part of follow_index.numbers. */
struct slot {
	const char *text;	/* the set's; NULL: empty */
	uint32_t len;
	uint32_t kind;
	uint32_t first, n;
};

struct follow_index {
	struct slot *slots;	/* open addressing, at most half of them taken */
	size_t mask;
	uint32_t *numbers;
	struct follow_numbers others;
	struct lengths lengths[CONDITION_KINDS];	/* longest 0: none of that kind */
};

struct builder {
	struct entry *entries;	/* owned */
	size_t n, cap;
	uint32_t *others;	/* owned */
	size_t n_others;
	bool has_failed;	/* no memory */
};

/* What must be there for c to hold: all of its text or, of a path, where that begins. 0: nothing. */
static size_t
key_len(const struct condition *c)
{
	size_t len;

	switch (c->kind) {
	case CONDITION_EXE:
	case CONDITION_COMM:
		len = strlen(c->text);
		return len <= KEY_LEN_MAX ? len : 0;
	case CONDITION_PATH:
		len = strlen(c->text);
		break;
	case CONDITION_CGROUP:
		if (strstr(c->text, "//") != NULL)
			return 0;
		len = strcspn(c->text, "*");
		if (c->text[len] == '\0')
			len -= len > 1 && c->text[len - 1] == '/';	/* /a/ is /a too */
		break;
	default:
		return 0;
	}
	return len < KEY_LEN_MAX ? len : KEY_LEN_MAX;
}

/* Can c hold only where one of the keys beneath it does? */
static bool
has_keys(const struct condition *c)
{
	const struct condition *child;

	if (c == NULL)
		return false;	/* holds always */
	child = c->first;
	if (c->kind == CONDITION_ALL) {
		while (child != NULL && !has_keys(child))
			child = child->next;
		return child != NULL;
	}
	if (c->kind == CONDITION_ANY) {
		while (child != NULL && has_keys(child))
			child = child->next;
		return child == NULL;	/* an empty one never holds, and needs no key */
	}
	return key_len(c) > 0;
}

static void
add_entry(struct builder *b, const struct condition *c, uint32_t number)
{
	if (b->n == b->cap) {
		size_t cap = b->cap > 0 ? 2 * b->cap : 64;
		struct entry *more = realloc(b->entries, cap * sizeof(*more));

		if (more == NULL) {
			b->has_failed = true;
			return;
		}
		b->entries = more;
		b->cap = cap;
	}
	b->entries[b->n++] = (struct entry){ c->kind, c->text, key_len(c), number };
}

static void
add_keys(struct builder *b, const struct condition *c, uint32_t number)
{
	if (key_len(c) > 0) {
		add_entry(b, c, number);
		return;
	}
	for (const struct condition *child = c->first; child != NULL; child = child->next) {
		if (c->kind == CONDITION_ALL && !has_keys(child))
			continue;
		add_keys(b, child, number);
		if (c->kind == CONDITION_ALL)
			return;		/* the keys of one child are enough: all must hold */
	}
}

static int
by_key(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = (x->kind > y->kind) - (x->kind < y->kind);

	if (order == 0)
		order = (x->len > y->len) - (x->len < y->len);
	if (order == 0)
		order = memcmp(x->text, y->text, x->len);
	return order != 0 ? order : (x->number > y->number) - (x->number < y->number);
}

/* FNV-1a, a byte at a time: the hash of each beginning of a path comes by the way. */
static uint64_t
hash_begin(enum condition_kind kind)
{
	return UINT64_C(0xcbf29ce484222325) ^ kind;
}

static uint64_t
hash_add(uint64_t h, char c)
{
	return (h ^ (unsigned char)c) * UINT64_C(0x100000001b3);
}

static uint64_t
hash_text(enum condition_kind kind, const char *text, size_t len)
{
	uint64_t h = hash_begin(kind);

	for (size_t i = 0; i < len; i++)
		h = hash_add(h, text[i]);
	return h;
}

static bool
is_slot_of(const struct slot *s, enum condition_kind kind, const char *text, size_t len)
{
	return s->kind == kind && s->len == len && memcmp(s->text, text, len) == 0;
}

/* The key's slot, or the empty one where it belongs. */
static struct slot *
find_slot(const struct follow_index *x, enum condition_kind kind, const char *text, size_t len, uint64_t hash)
{
	size_t i = (hash ^ hash >> 32) & x->mask;

	while (x->slots[i].text != NULL && !is_slot_of(&x->slots[i], kind, text, len))
		i = (i + 1) & x->mask;
	return &x->slots[i];
}

/* Entries are sorted: those of one key follow each other. */
static void
fill(struct follow_index *x, const struct builder *b)
{
	uint32_t n = 0;

	for (size_t i = 0; i < b->n; i++) {
		const struct entry *e = &b->entries[i];
		struct slot *s = find_slot(x, e->kind, e->text, e->len, hash_text(e->kind, e->text, e->len));
		struct lengths *l = &x->lengths[e->kind];

		if (s->text == NULL)
			*s = (struct slot){ e->text, (uint32_t)e->len, e->kind, n, 0 };
		else if (x->numbers[n - 1] == e->number)
			continue;	/* the rule has the key twice */
		x->numbers[n++] = e->number;
		s->n++;
		l->bits[e->len / 64] |= UINT64_C(1) << e->len % 64;
		if (e->len > l->longest)
			l->longest = e->len;
	}
}

const struct follow_index *
follow_index_new(struct ruleset *set, const struct follow_rule *rules, size_t n)
{
	struct follow_index *x = NULL;
	struct builder b = { 0 };
	size_t size = 2;
	uint32_t *others;

	b.others = calloc(n + 1, sizeof(b.others[0]));
	b.has_failed = b.others == NULL;
	for (size_t i = 0; i < n && !b.has_failed; i++) {
		if (has_keys(rules[i].when))
			add_keys(&b, rules[i].when, (uint32_t)i);
		else
			b.others[b.n_others++] = (uint32_t)i;
	}
	if (b.has_failed)
		goto out;
	if (b.n > 0)
		qsort(b.entries, b.n, sizeof(b.entries[0]), by_key);
	while (size < 2 * b.n)
		size *= 2;
	x = ruleset_alloc(set, sizeof(*x));
	others = ruleset_alloc(set, (b.n_others + 1) * sizeof(*others));
	if (x == NULL || others == NULL) {
		x = NULL;
		goto out;
	}
	x->slots = ruleset_alloc(set, size * sizeof(x->slots[0]));
	x->numbers = ruleset_alloc(set, (b.n + 1) * sizeof(x->numbers[0]));
	if (x->slots == NULL || x->numbers == NULL) {
		x = NULL;
		goto out;
	}
	x->mask = size - 1;
	memcpy(others, b.others, b.n_others * sizeof(*others));
	x->others = (struct follow_numbers){ others, b.n_others };
	fill(x, &b);
out:
	free(b.entries);
	free(b.others);
	return x;
}

struct follow_numbers
follow_index_others(const struct follow_index *x)
{
	return x->others;
}

static struct follow_numbers
numbers_of(const struct follow_index *x, const struct slot *s)
{
	return (struct follow_numbers){ x->numbers + s->first, s->n };
}

struct follow_numbers
follow_index_find(const struct follow_index *x, enum condition_kind kind, const char *name)
{
	size_t len = strnlen(name, x->lengths[kind].longest + 1);

	if (len > x->lengths[kind].longest)
		return (struct follow_numbers){ 0 };
	return numbers_of(x, find_slot(x, kind, name, len, hash_text(kind, name, len)));
}

bool
follow_index_walk(const struct follow_index *x, enum condition_kind kind, const char *path,
    struct follow_walk *w, struct follow_numbers *ret)
{
	const struct lengths *l = &x->lengths[kind];

	if (w->at == 0)
		w->hash = hash_begin(kind);
	while (w->at < l->longest && path[w->at] != '\0') {
		w->hash = hash_add(w->hash, path[w->at++]);
		if ((l->bits[w->at / 64] >> w->at % 64 & 1) == 0)
			continue;
		*ret = numbers_of(x, find_slot(x, kind, path, w->at, w->hash));
		if (ret->n > 0)
			return true;
	}
	return false;
}
