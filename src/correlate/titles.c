/*
 * SPDX-License-Identifier: Apache-2.0
 * titles: programs of some engines write their current work over their own arguments, and then continue with the
 * next. Rules select these programs; the agent reads their titles once a second.
 *
 * In a second in which more are due than are read, each user has as many read as any other, or all of its own. Programs
 * of one user take turns, round after round.
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

static bool
is_due(struct correlator *c, struct process *p)
{
	return !p->is_over && !p->is_excluded && p->pass == c->pass && title_is_read(c, p) && title_of(p) != NULL;
}

static struct titled
titled_of(const struct process *p)
{
	return (struct titled){ p->self, p->title->hash, user_behind(p->context.uid, p->context.user_uid) };
}

static struct title_share *
share_of(struct correlator *c, const struct process *p)
{
	return &c->title_shares[owner_at(process_owner(p))];
}

/* Returns whether p's title was read in the present round of its owner. */
static bool
is_read(const struct title_share *s, const struct process *p)
{
	return p->title->round == s->round + 1;
}

static void
count_by_owner(struct correlator *c)
{
	struct process *p;

	for (size_t i = 0; i < OWNERS; i++) {
		struct title_share *s = &c->title_shares[i];

		*s = (struct title_share){ .round = s->round + (s->n > 0 && s->n_due == 0) };
	}
	for (p = c->processes; p != NULL; p = p->next) {
		struct title_share *s = share_of(c, p);

		if (!is_due(c, p))
			continue;
		s->n++;
		s->n_due += !is_read(s, p);
	}
}

/* Divides max titles among the owners: each has as many as any other, or all of its own. The odd ones go round. */
static void
divide(struct correlator *c, size_t max)
{
	uint16_t owners[OWNERS];
	size_t n_owners = 0;

	for (size_t i = 0; i < OWNERS; i++) {
		size_t owner = (c->first_titled + i) % OWNERS;

		if (c->title_shares[owner].n > 0)
			owners[n_owners++] = (uint16_t)owner;
	}
	while (max > 0 && n_owners > 0) {
		const size_t each = max > n_owners ? max / n_owners : 1, n = n_owners;

		n_owners = 0;
		for (size_t i = 0; i < n && max > 0; i++) {
			struct title_share *s = &c->title_shares[owners[i]];
			size_t taken = each < s->n - s->quota ? each : s->n - s->quota;

			s->quota += (uint32_t)taken;
			max -= taken;
			c->first_titled = (owners[i] + 1) % OWNERS;
			if (s->quota < s->n)
				owners[n_owners++] = owners[i];
		}
	}
}

/* Fills in max of more titles than that: of each owner those first that are not read in its round. Counts the rest. */
static size_t
share_out(struct correlator *c, struct titled *titled, size_t max)
{
	struct process *p;
	size_t n = 0;

	count_by_owner(c);
	divide(c, max);
	for (size_t i = 0; i < OWNERS; i++) {
		struct title_share *s = &c->title_shares[i];

		s->n_again = s->quota > s->n_due ? s->quota - s->n_due : 0;
		s->quota -= s->n_again;
	}
	for (p = c->processes; p != NULL; p = p->next) {
		struct title_share *s = share_of(c, p);
		bool again;

		if (!is_due(c, p))
			continue;
		again = is_read(s, p);
		if ((again ? s->n_again : s->quota) == 0) {
			c->titles_left_out++;
			user_cut(c, process_owner(p));
			continue;
		}
		if (again) {
			s->n_again--;
		} else {
			s->quota--;
			s->n_due--;
		}
		p->title->round = s->round + 1 + again;
		titled[n++] = titled_of(p);
	}
	return n;
}

size_t
correlator_titled(struct correlator *c, struct titled *titled, size_t max)
{
	struct process *p;
	size_t n = 0;

	if (!engine_has_titles(c->rules))
		return 0;
	for (p = c->processes; p != NULL; p = p->next) {
		if (!is_due(c, p))
			continue;
		if (n < max)
			titled[n] = titled_of(p);
		n++;
	}
	return n <= max ? n : share_out(c, titled, max);
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
