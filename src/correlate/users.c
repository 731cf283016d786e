/*
 * SPDX-License-Identifier: Apache-2.0
 * users: a table by uid, and allowances that time fills.
 */
#include "correlate/users.h"

#include <stdlib.h>

#include "correlate/state.h"
#include "identify/match.h"

#define SECOND_NS UINT64_C(1000000000)
#define SECONDS_KEPT 2			/* of use that a burst may have at once */

/* Adds what has grown since it was used last. Events of several CPUs may come a little out of order. */
static void
grow(struct allowance *a, uint64_t each_second, uint64_t now_ns)
{
	uint64_t most = SECONDS_KEPT * each_second, ns;

	if (a->at_ns == 0) {
		*a = (struct allowance){ most, now_ns };
		return;
	}
	if (now_ns <= a->at_ns)
		return;
	ns = now_ns - a->at_ns;
	a->left += ns < SECONDS_KEPT * SECOND_NS ? each_second * ns / SECOND_NS : most;
	if (a->left > most)
		a->left = most;
	a->at_ns = now_ns;
}

static void
take(struct allowance *a, uint64_t n)
{
	a->left -= n < a->left ? n : a->left;
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

void
judgement_gave_up(struct correlator *c)
{
	c->rules_gave_up++;
}

void
judgement_begin(struct correlator *c, struct judgement *j, uint32_t uid, uint64_t now_ns)
{
	struct user *u = user_use(c, uid);

	grow(&c->all_steps, ALL_STEPS, now_ns);
	j->user = u;
	j->allowed = c->all_steps.left < RULES_STEPS ? c->all_steps.left : RULES_STEPS;
	if (u != NULL) {
		grow(&u->steps, USER_STEPS, now_ns);
		if (u->steps.left < j->allowed)
			j->allowed = u->steps.left;
	}
	if (j->allowed < LEAST_STEPS)
		j->allowed = LEAST_STEPS;
	steps_begin(&j->steps, j->allowed);
}

void
judgement_end(struct correlator *c, struct judgement *j)
{
	uint64_t used = j->allowed - j->steps.left;

	if (steps_end(&j->steps))
		judgement_gave_up(c);
	take(&c->all_steps, used);
	if (j->user != NULL)
		take(&j->user->steps, used);
}

void
users_free(struct correlator *c)
{
	struct user *u, *next;

	HASH_ITER(hh, c->users, u, next) {
		HASH_DEL(c->users, u);
		free(u);
	}
}
