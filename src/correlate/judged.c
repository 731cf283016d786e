/*
 * SPDX-License-Identifier: Apache-2.0
 * A table of one program for each value of a hash, which a later program of that value replaces.
 */
#include "correlate/judged.h"

#include <string.h>

#include "correlate/process.h"
#include "correlate/program_text.h"
#include "correlate/state.h"

#define TEXT_BYTES 4096		/* of the largest text that the table holds */

_Static_assert(sizeof(struct judged) == JUDGED_DEPTH * 40 + 16, "compared as bytes");

bool
judged_add(struct judged *key, int depth, const struct process *p, struct text *text)
{
	if (text != NULL && text->size > TEXT_BYTES)
		return false;
	key->at[depth].text = text;
	if (p->has_context) {
		key->at[depth].cgroup_v2 = p->context.cgroup_v2;
		key->at[depth].cgroup_v1 = p->context.cgroup_v1;
		key->at[depth].uid = p->context.uid;
		key->at[depth].user_uid = p->context.user_uid;
		key->at[depth].has_context = true;
		key->at[depth].is_exe_of_root = p->context.is_exe_of_root;
	}
	return true;
}

static size_t
slot_of(const struct judged *key)
{
	uint64_t h = 0;

	for (int i = 0; i < JUDGED_DEPTH; i++)
		h = (h ^ (key->at[i].text != NULL ? key->at[i].text->hash : 0)) * UINT64_C(0x9e3779b97f4a7c15);
	return (size_t)(h >> 32) % JUDGED;
}

bool
judged_find(struct correlator *c, const struct judged *key, bool *ret_inside)
{
	size_t i = slot_of(key);

	if (!c->judged_programs[i].is_set || memcmp(&c->judged_programs[i].key, key, sizeof(*key)) != 0)
		return false;
	*ret_inside = c->judged_programs[i].is_inside;
	return true;
}

static void
drop(struct correlator *c, size_t i)
{
	for (int k = 0; k < JUDGED_DEPTH; k++)
		program_text_unref(c, c->judged_programs[i].key.at[k].text);
	memset(&c->judged_programs[i], 0, sizeof(c->judged_programs[i]));
}

void
judged_keep(struct correlator *c, const struct judged *key, bool is_inside)
{
	size_t i = slot_of(key);

	for (int k = 0; k < JUDGED_DEPTH; k++)
		(void)program_text_ref(key->at[k].text);
	drop(c, i);
	c->judged_programs[i].key = *key;
	c->judged_programs[i].is_inside = is_inside;
	c->judged_programs[i].is_set = true;
}

void
judged_forget(struct correlator *c)
{
	for (size_t i = 0; i < JUDGED; i++)
		if (c->judged_programs[i].is_set)
			drop(c, i);
}
