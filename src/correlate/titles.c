/*
 * SPDX-License-Identifier: Apache-2.0
 * titles: programs of some engines write their current work over their own arguments, and then continue with the
 * next. Rules select these programs; the agent reads their titles once a second.
 *
 * A program belongs to one task at a time. Usage up to a new title stays with the task before; the first title
 * applies to all usage before it.
 */
#include <string.h>

#include "base/text.h"
#include "correlate/attribute.h"
#include "correlate/process.h"
#include "correlate/program_record.h"
#include "correlate/program_text.h"
#include "correlate/state.h"
#include "correlate/title.h"
#include "correlate/users.h"
#include "correlate/wal.h"
#include "identify/engine.h"
#include "identify/redact.h"
#include "model/user.h"

uint64_t
correlator_title_hash(const char *title, size_t len)
{
	uint64_t hash = UINT64_C(14695981039346656037);		/* FNV-1a */

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)title[i]) * UINT64_C(1099511628211);
	return hash;
}

size_t
correlator_titled(struct correlator *c, struct titled *titled, size_t max)
{
	struct process *p;
	size_t n = 0;

	if (!engine_has_titles(c->rules))
		return 0;
	for (p = c->processes; p != NULL; p = p->next) {
		if (p->is_over || p->is_excluded || p->pass != c->pass || !title_is_read(c, p) || title_of(p) == NULL ||
		    p->title->round == c->title_round + 1)
			continue;
		if (n == max)
			return n;	/* the rest follow in the next call */
		p->title->round = c->title_round + 1;
		titled[n++] = (struct titled){ p->self, p->title->hash,
		    user_behind(p->context.uid, p->context.user_uid) };
	}
	c->title_round++;
	return n;
}

void
correlator_title(struct correlator *c, const struct program_key *key, const char *title, size_t len,
    uint64_t now_ns)
{
	struct process *p = process_of(c, key), *parent;
	struct candidate s, up;
	const char *argv[1];
	struct judgement rules;
	char *text;

	if (p == NULL || p->title == NULL || p->text == NULL || p->is_over || p->is_excluded ||
	    p->self.index != key->index)
		return;
	p->title->hash = correlator_title_hash(title, len);
	arena_reset(&c->arena);
	text = arena_bytes(&c->arena, TEXT_ESCAPE_MAX(len));
	if (text == NULL)
		return;
	text_escape(title, len, text, TEXT_ESCAPE_MAX(len), NULL);
	argv[0] = text;
	judgement_begin(c, &rules, &p->context, now_ns);
	redaction_apply(c->redaction, c->rules, argv, 1, &c->arena);
	/* Equal to argv[0]: these are the arguments that it was started with, not a title. */
	if (p->text->argv == NULL || p->text->argc == 0 || strcmp(p->text->argv[0], argv[0]) != 0) {
		program_candidate(c, p, &s);
		s.argv = argv;
		s.argc = 1;
		s.words = (struct candidate_words){ 0 };
		parent = attribute_parent(c, p);
		if (parent != NULL) {
			program_candidate(c, parent, &up);
			s.parent = &up;
		}
		attribute_title(c, p, parent, &s, now_ns);
	}
	judgement_end(c, &rules);
	wal_flush(c);
	arena_wipe(&c->arena);
}
