/*
 * SPDX-License-Identifier: Apache-2.0
 * share: which users' records give way while the spool is almost full, so that none fills it at the others' expense.
 *
 * In the last eighth of what the segments may take, a user who has more in the spool than is free puts no more of what
 * its ends make up for: starts, Usage records and states of tasks and runs. In the last sixteenth nothing of it is put.
 * Nor is the write-ahead log then, which grows with its programs as well: the state file marks it as incomplete, until
 * an eighth is free again, or would be without the log, and the whole state is put. A small state is put before, if the
 * last one keeps the oldest segment from giving way.
 *
 * What is of the system's users has no share, as what belongs to no user (model/user.h): for it the oldest gives way
 * (room.c). So it does for a user who has little in the spool, however little is free: else those who have no share
 * could have all others refused.
 */
#include "spool/state.h"

#define SCARCE_SHARE 8		/* part of the segments' limit */
#define SCARCE_FOR_ENDS_SHARE 16
#define LITTLE_SHARE 64		/* which a user may always have */
#define SMALL_STATE_SHARE 32

/* Returns what the segments may take: those for which the files have no room are kept in memory. */
static uint64_t
limit_of(const struct spool *s)
{
	const uint64_t limit = s->files_max > s->memory_max ? s->files_max : s->memory_max;

	return limit < s->max_bytes ? limit : s->max_bytes;
}

/* Returns the size of all segments and batches. */
static uint64_t
taken_of(const struct spool *s)
{
	uint64_t taken = s->bytes;

	for (int q = 0; q < SPOOL_QUEUES; q++)
		taken += s->queues[q].batch.len;
	return taken;
}

static uint64_t
free_of(const struct spool *s)
{
	const uint64_t limit = limit_of(s), used = taken_of(s) + s->unknown_bytes;

	return used < limit ? limit - used : 0;
}

/* Returns what only the log needs: main segments, but the last one, of which all records are acknowledged. */
static uint64_t
logs_of(const struct spool *s)
{
	const struct spool_segment *seg;
	uint64_t bytes = 0;

	TAILQ_FOREACH(seg, &s->queues[SPOOL_MAIN].segments, at)
		if (TAILQ_NEXT(seg, at) != NULL && spool_waiting(seg) == 0)
			bytes += seg->size;
	return bytes;
}

bool
spool_share_takes_state(const struct spool *s)
{
	const uint64_t limit = limit_of(s);

	return free_of(s) + logs_of(s) >= limit / SCARCE_SHARE ||
	    (s->needs_checkpoint && s->checkpoint_bytes < limit / SMALL_STATE_SHARE);
}

bool
spool_share_is_over(const struct spool *s, const struct encoded_record *r)
{
	const int i = user_bytes_index(&r->user);
	const uint64_t limit = limit_of(s);
	uint64_t free;

	if (i < 0 || s->shares.of[i] <= limit / LITTLE_SHARE)
		return false;
	free = free_of(s);
	return free < limit / (r->is_end ? SCARCE_FOR_ENDS_SHARE : SCARCE_SHARE) && s->shares.of[i] > free;
}

void
spool_share_refuse(struct spool *s, const struct encoded_record *r)
{
	user_losses_count(&s->user_losses, &(struct user_loss){ .uid = r->user.value, .lost = 1 });
	s->stats.dropped[r->topic][SPOOL_DROP_SHARE]++;
}

void
spool_share_take(struct spool *s, const struct encoded_record *r, uint64_t bytes)
{
	const int i = user_bytes_index(&r->user);

	if (i < 0)
		return;
	s->shares.of[i] += bytes;
	s->has_shares = true;
}

void
spool_share_give_back(struct spool *s, uint64_t bytes)
{
	if (s->has_shares)
		s->has_shares = user_bytes_shrink(&s->shares, bytes, taken_of(s));
}

size_t
spool_user_losses(const struct spool *s, struct user_loss list[USER_LOSSES], size_t n)
{
	return user_losses_list(&s->user_losses, list, n);
}
