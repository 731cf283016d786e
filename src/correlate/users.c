/*
 * SPDX-License-Identifier: Apache-2.0
 * users: a table by uid, and what each used lately.
 */
#include "correlate/users.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "correlate/state.h"
#include "identify/match.h"
#include "model/event.h"
#include "model/ruleset.h"
#include "model/user.h"

#define WINDOW_NS (USE_SECONDS * UINT64_C(1000000000))
#define NAME_KEPT 256			/* bytes of a path that any program has */

/*
 * Returns what was used within the last USE_SECONDS, as if what was used in the window before was used evenly. The
 * windows of all are the same, so that what users have used adds up to what all have. Events of several CPUs may come a
 * little out of order.
 */
static uint64_t
used_lately(struct recent_use *u, uint64_t now_ns)
{
	uint64_t window = now_ns / WINDOW_NS, passed_ns = 0;

	if (window > u->window)
		*u = (struct recent_use){ window, 0, window == u->window + 1 ? u->now : 0 };
	if (window == u->window)
		passed_ns = now_ns % WINDOW_NS;
	return u->now + u->before * (WINDOW_NS - passed_ns) / WINDOW_NS;
}

/* Returns what a user may use now: it has `each` a second, and as much as is free of `whole`. */
static uint64_t
room_of(struct recent_use *user, struct recent_use *all, uint64_t each, uint64_t whole, uint64_t now_ns)
{
	uint64_t used = used_lately(user, now_ns), used_by_all = used_lately(all, now_ns), free;

	whole *= USE_SECONDS;
	each *= USE_SECONDS;
	free = used_by_all < whole ? whole - used_by_all : 0;
	if (free > each)
		free = each;
	return used < free ? free - used : 0;
}

/* Returns the user, most recently used from now on; NULL without memory. */
static struct user *
user_use(struct correlator *c, uint32_t uid)
{
	struct user *u;

	HASH_FIND(hh, c->users, &uid, sizeof(uid), u);
	if (u != NULL && u->hh.next == NULL)
		return u;
	if (u != NULL) {
		HASH_DEL(c->users, u);
	} else if (HASH_COUNT(c->users) < USERS_MAX) {
		u = calloc(1, sizeof(*u));
		if (u == NULL)
			return NULL;
		u->uid = uid;
	} else {
		u = c->users;
		HASH_DEL(c->users, u);
		*u = (struct user){ .uid = uid };
	}
	HASH_ADD(hh, c->users, uid, sizeof(u->uid), u);
	return u;
}

static bool
is_known(owner_t owner)
{
	return owner != 0 && owner != owner_of(UINT32_MAX);
}

void
user_refused(struct correlator *c, owner_t owner)
{
	if (is_known(owner))
		user_losses_count(&c->user_losses, &(struct user_loss){ .uid = owner - 1, .refused = 1 });
}

void
user_cut(struct correlator *c, owner_t owner)
{
	if (is_known(owner))
		user_losses_count(&c->user_losses, &(struct user_loss){ .uid = owner - 1, .cut = 1 });
}

size_t
correlator_user_losses(const struct correlator *c, struct user_loss list[USER_LOSSES], size_t n)
{
	return user_losses_list(&c->user_losses, list, n);
}

/* Returns whose share a program is of. */
static owner_t
owner_behind(const struct program_context *of)
{
	return owner_of(user_behind(of->uid, of->user_uid));
}

static void
gave_up(struct correlator *c, owner_t owner)
{
	c->rules_gave_up++;
	user_cut(c, owner);
}

void
judgement_gave_up(struct correlator *c, const struct program_context *of)
{
	gave_up(c, owner_behind(of));
}

void
judgement_begin(struct correlator *c, struct judgement *j, const struct program_context *of, uint64_t now_ns)
{
	j->user = user_use(c, user_behind(of->uid, of->user_uid));
	j->owner = owner_behind(of);
	j->allowed = LEAST_STEPS;
	if (j->user != NULL)
		j->allowed += room_of(&j->user->steps, &c->all_steps, USER_STEPS, ALL_STEPS, now_ns);
	if (j->allowed > RULES_STEPS)
		j->allowed = RULES_STEPS;
	steps_begin(&j->steps, j->allowed);
}

void
judgement_end(struct correlator *c, struct judgement *j)
{
	uint64_t used = j->allowed - j->steps.left;

	if (steps_end(&j->steps))
		gave_up(c, j->owner);
	if (j->user == NULL || used <= LEAST_STEPS)
		return;
	j->user->steps.now += used - LEAST_STEPS;
	c->all_steps.now += used - LEAST_STEPS;
}

/* Returns the bytes that text takes in records; if they are more than most, some number that is, too. */
static size_t
size_as_text(const char *text, size_t len, size_t most)
{
	return len > most || text_is_plain(text, len) ? len : TEXT_ESCAPE_MAX(len);
}

static size_t
size_of_name(const char *text)
{
	return text != NULL ? size_as_text(text, strlen(text), SIZE_MAX) : 0;
}

/*
 * Returns how many of an event's arguments have no more than *room bytes together as text, each with its end, and takes
 * them from *room. No argument is read that is longer than what is left.
 */
static size_t
fitting_arguments(const struct exec_event *s, size_t *room)
{
	size_t n = 0;

	for (; s->argv != NULL && n < s->argc; n++) {
		size_t size = size_as_text(s->argv[n], s->argv_len[n], *room) + 1;

		if (size > *room)
			break;
		*room -= size;
	}
	return n;
}

/* Returns whether all text of the event fits into LEAST_TEXT, whatever its bytes are. */
static bool
is_short(const struct exec_event *s)
{
	size_t bytes = (s->exe != NULL ? strlen(s->exe) : 0) + (s->cwd != NULL ? strlen(s->cwd) : 0);

	for (size_t i = 0; s->argv != NULL && i < s->argc && bytes <= LEAST_TEXT; i++)
		bytes += s->argv_len[i] + 1;
	return TEXT_ESCAPE_MAX(bytes) <= LEAST_TEXT;
}

const struct exec_event *
users_trim(struct correlator *c, const struct exec_event *s, struct exec_event *ret)
{
	size_t names, room, whole = LEAST_TEXT;
	struct user *u;

	/* The command of `sluice run` shares with no other, and users of the system are trusted. */
	if (c->whole != NULL || user_is_of_system(s->context.uid, s->context.user_uid) || is_short(s))
		return s;
	names = size_of_name(s->exe) + size_of_name(s->cwd);
	u = user_use(c, user_behind(s->context.uid, s->context.user_uid));
	if (u == NULL)
		return s;
	whole += room_of(&u->text, &c->all_text, USER_TEXT, ALL_TEXT, s->time_ns);
	room = whole > names ? whole - names : 0;
	if (names <= whole && fitting_arguments(s, &room) == (s->argv != NULL ? s->argc : 0)) {
		if (whole - room > LEAST_TEXT) {
			u->text.now += whole - room - LEAST_TEXT;
			c->all_text.now += whole - room - LEAST_TEXT;
		}
		return s;
	}
	c->texts_trimmed++;
	user_cut(c, owner_behind(&s->context));
	*ret = *s;
	if (size_of_name(s->exe) > NAME_KEPT)
		ret->exe = NULL;
	if (size_of_name(s->cwd) > NAME_KEPT)
		ret->cwd = NULL;
	room = LEAST_TEXT - size_of_name(ret->exe) - size_of_name(ret->cwd);
	ret->argc = fitting_arguments(s, &room);
	ret->argv_truncated = s->argv_truncated || ret->argc < s->argc;
	return ret;
}

bool
share_take(struct correlator *c, enum share share, owner_t owner, size_t used, size_t most)
{
	if (used >= most ||
	    (owner != 0 && !c->wal.is_replaying && c->shares[share].held[owner_at(owner)] >= most - used)) {
		c->shares[share].n_refused++;
		user_refused(c, owner);
		return false;
	}
	share_add(c, share, owner);
	return true;
}

void
share_give_back(struct correlator *c, enum share share, owner_t owner)
{
	if (owner != 0)
		c->shares[share].held[owner_at(owner)]--;
}

void
share_add(struct correlator *c, enum share share, owner_t owner)
{
	if (owner != 0)
		c->shares[share].held[owner_at(owner)]++;
}

void
users_free(struct correlator *c)
{
	struct user *u, *next;

	HASH_ITER(hh, c->users, u, next) {
		HASH_DEL(c->users, u);
		free(u);
	}
	user_losses_free(&c->user_losses);
}
