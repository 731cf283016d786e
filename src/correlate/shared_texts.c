/*
 * SPDX-License-Identifier: Apache-2.0
 * A table of one text for each value of a hash, which a later text of that value replaces.
 */
#include "correlate/shared_texts.h"

#include <string.h>

#include "correlate/program_text.h"
#include "correlate/state.h"

/* Returns true if a text depends on nothing but names and arguments that are whole. */
static bool
is_whole(const struct exec_event *s)
{
	return s->exe != NULL && s->cwd != NULL && s->argv != NULL && !s->argv_truncated && s->n_variables == 0;
}

/* FNV-1a; what it finds is compared. */
static uint32_t
hash_of(const struct exec_event *s)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < s->argc; i++) {
		for (size_t k = 0; k < s->argv_len[i]; k++)
			h = (h ^ (unsigned char)s->argv[i][k]) * 16777619u;
		h = (h ^ 0xff) * 16777619u;
	}
	return h ^ h >> 16;
}

static bool
is_same(const struct text *t, const struct exec_event *s)
{
	if (t->argc != s->argc || strcmp(t->exe, s->exe) != 0 || strcmp(t->comm, s->comm) != 0 ||
	    strcmp(t->cwd, s->cwd) != 0)
		return false;
	for (size_t i = 0; i < s->argc; i++) {
		if (strncmp(t->argv[i], s->argv[i], s->argv_len[i]) != 0 || t->argv[i][s->argv_len[i]] != '\0')
			return false;
	}
	return true;
}

/* Returns true if programs like that of s can share t, its text. */
static bool
can_be_shared(const struct text *t, const struct exec_event *s)
{
	return t != NULL && t->size <= SHARED_TEXT_BYTES && t->exe != NULL && t->comm != NULL && t->cwd != NULL &&
	    t->argv != NULL && !t->argv_truncated && is_same(t, s);
}

struct text *
shared_text_of(struct correlator *c, const struct exec_event *s, const struct text *known, struct candidate *ret)
{
	bool can_share = is_whole(s);
	uint32_t hash = can_share ? hash_of(s) : 0;
	struct text **slot = can_share ? &c->shared_texts[hash % SHARED_TEXTS] : NULL, *t;

	if (slot != NULL && *slot != NULL && is_same(*slot, s)) {
		program_text_candidate(*slot, ret);
		return program_text_ref(*slot);
	}
	t = program_text_new(c, s, known, ret);
	if (slot != NULL && can_be_shared(t, s)) {
		program_text_unref(c, *slot);
		*slot = program_text_ref(t);
		t->is_shared = true;
		t->hash = hash;
	}
	return t;
}

void
shared_texts_forget(struct correlator *c)
{
	for (size_t i = 0; i < SHARED_TEXTS; i++) {
		program_text_unref(c, c->shared_texts[i]);
		c->shared_texts[i] = NULL;
	}
}
