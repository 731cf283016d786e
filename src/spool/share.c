/*
 * SPDX-License-Identifier: Apache-2.0
 * share: which users' records give way while the spool is almost full, so that none fills it at the others' expense.
 *
 * In the last eighth of what the segments may take, a user who has more in the spool than is free puts no more of what
 * its ends make up for: starts, Usage records and states of tasks and runs. In the last sixteenth nothing of it is put.
 * Nor is the write-ahead log then, which grows with its programs as well: the state file marks it as incomplete, until
 * an eighth is free again and the whole state is put.
 *
 * Users of the system have no share, nor has what belongs to no user: for them the oldest gives way (room.c).
 *
 * Segments do not say whose their records are. With one that is removed goes the same part of what each user has.
 */
#include "model/losses.h"
#include "model/ruleset.h"
#include "spool/state.h"

#define SCARCE_SHARE 8		/* part of the segments' limit */
#define SCARCE_FOR_ENDS_SHARE 16

static struct spool_user *
user_of(struct spool *s, const struct encoded_record *r)
{
	if (!r->user.known || r->user.value <= SYSTEM_UID_MAX)
		return NULL;
	return &s->users[r->user.value % SPOOL_USERS];
}

/* Returns what the segments may take. */
static uint64_t
limit_of(const struct spool *s)
{
	return s->files_max < s->max_bytes ? s->files_max : s->max_bytes;
}

static uint64_t
free_of(const struct spool *s)
{
	const uint64_t limit = limit_of(s);
	uint64_t used = s->bytes + s->unknown_bytes;

	for (int q = 0; q < SPOOL_QUEUES; q++)
		used += s->queues[q].batch.len;
	return used < limit ? limit - used : 0;
}

bool
spool_share_has_room(const struct spool *s)
{
	return free_of(s) >= limit_of(s) / SCARCE_SHARE;
}

static void
cut_log(struct spool *s)
{
	if (s->is_log_cut)
		return;
	s->is_log_cut = true;
	s->is_lacking_by_cut = !s->is_lacking;	/* which spool_put() stores */
}

bool
spool_share_refuses(struct spool *s, const struct encoded_record *r)
{
	struct spool_user *u = user_of(s, r);
	uint64_t free;

	if (u == NULL)
		return false;
	free = free_of(s);
	if (free >= limit_of(s) / (r->is_end ? SCARCE_FOR_ENDS_SHARE : SCARCE_SHARE) || u->bytes <= free)
		return false;
	if (r->is_end)
		cut_log(s);
	u->uid = r->user.value;
	u->lost++;
	s->stats.dropped[r->topic][SPOOL_DROP_SHARE]++;
	return true;
}

void
spool_share_take(struct spool *s, const struct encoded_record *r, uint64_t bytes)
{
	struct spool_user *u = user_of(s, r);

	if (u != NULL)
		u->bytes += bytes;
}

void
spool_share_give_back(struct spool *s, uint64_t bytes)
{
	const double part = s->bytes > 0 ? (double)bytes / (double)s->bytes : 1;

	for (size_t i = 0; i < SPOOL_USERS; i++)
		s->users[i].bytes -= (uint64_t)(part * (double)s->users[i].bytes);
}

size_t
spool_user_losses(const struct spool *s, struct user_loss ret[USER_LOSSES])
{
	size_t n = 0;

	for (size_t i = 0; i < SPOOL_USERS; i++)
		n = user_losses_add(ret, n, &(struct user_loss){ .uid = s->users[i].uid, .lost = s->users[i].lost });
	return n;
}
