/*
 * SPDX-License-Identifier: Apache-2.0
 * room: removes acknowledged segments, and drops records when there is no room: first those of unknown topics, then
 * those of topics that are set aside, so that these cost the others nothing, then Usage records, and the oldest of the
 * main queue only when no Usage record is left.
 */
#include <stdlib.h>

#include "spool/state.h"

void
spool_remove(struct spool *s, struct spool_segment *seg)
{
	struct spool_segment *before = TAILQ_PREV(seg, spool_segments, at);

	/* The cursors that were in the last segment continue in the next new one: nothing may be added before that. */
	if (before != NULL && TAILQ_NEXT(seg, at) == NULL)
		before->is_sealed = true;
	spool_cursors_leave(s, seg);
	if (seg->has_wal && (s->checkpoint.seg == NULL || seg->number >= s->checkpoint.seg->number))
		s->is_log_lost = true;
	if (s->safe.seg == seg)
		s->safe = (struct spool_checkpoint){ 0 };
	if (s->checkpoint.seg == seg)
		s->checkpoint = (struct spool_checkpoint){ 0 };
	if (seg->is_on_disk)
		spool_segment_unlink(s, seg);
	else
		s->memory_bytes -= seg->size;
	spool_share_give_back(s, seg->size);
	s->bytes -= seg->size;
	TAILQ_REMOVE(&s->queues[seg->queue].segments, seg, at);
	spool_segment_free(s, seg);
}

void
spool_reap(struct spool *s)
{
	struct spool_segment *needed, *seg, *next;

	/* The older checkpoint is kept until the newer one is synced to the disk. */
	seg = s->checkpoint.seg;
	if (seg != NULL && seg->synced_to > s->checkpoint.at)
		s->safe = s->checkpoint;
	needed = spool_needed_from(s);
	for (int q = 0; q < SPOOL_QUEUES; q++) {
		for (seg = TAILQ_FIRST(&s->queues[q].segments); seg != NULL; seg = next) {
			next = TAILQ_NEXT(seg, at);
			/* The last segment is kept: it is appended to, and its head has the next numbers. */
			if (next == NULL ||
			    (q == SPOOL_MAIN && needed != NULL && seg->number >= needed->number))
				break;
			if (spool_waiting(seg) == 0)
				spool_remove(s, seg);
		}
	}
}

/* Finishes the records in flight of a segment that is dropped. */
static void
let_go(struct spool_flight *f, struct spool_segment *seg)
{
	for (uint64_t i = f->head; i < f->tail; i++) {
		struct spool_handed *h = spool_flight_at(f, i);

		if (h->seg != seg)
			continue;
		if (h->flags & SPOOL_IS_OUT) {
			/* The output has a copy, and may still deliver it. */
			h->seg = NULL;
			seg->waiting[h->topic]--;
			continue;
		}
		/* It is counted with the segment's other records. */
		spool_flight_finish(f, h);
	}
}

/* Drops a segment: counts its waiting records as dropped, and removes it. */
static void
give_up(struct spool *s, struct spool_segment *seg, enum spool_drop reason)
{
	for (int t = 0; t < TOPIC_COUNT; t++) {
		let_go(&s->queues[seg->queue].topics[t].flight, seg);
		s->stats.dropped[t][reason] += seg->waiting[t];
		s->waiting[t] -= seg->waiting[t];
		seg->waiting[t] = 0;
	}
	s->is_state_moved = true;
	spool_remove(s, seg);
}

/* Returns whether a replay needs a main segment: it is not before the latest checkpoint. */
static bool
is_needed(const struct spool *s, const struct spool_segment *seg)
{
	const struct spool_segment *needed = s->checkpoint.seg;

	if (needed == NULL || !needed->is_on_disk)
		needed = spool_needed_from(s);
	return needed != NULL && seg->number >= needed->number;
}

/* Returns whether all records that wait in a segment are of topics that are set aside or held. */
static bool
is_set_aside(const struct spool *s, const struct spool_segment *seg)
{
	const struct spool_queue_state *q = &s->queues[seg->queue];

	for (int t = 0; t < TOPIC_COUNT; t++)
		if (seg->waiting[t] > 0 && !q->topics[t].is_aside && !s->is_held[t])
			return false;
	return spool_waiting(seg) > 0;
}

/* Returns the oldest segment that only topics hold which are set aside, Usage first; NULL: none. */
static struct spool_segment *
oldest_aside(struct spool *s)
{
	for (int queue = SPOOL_QUEUES - 1; queue >= 0; queue--) {
		struct spool_segment *seg;

		TAILQ_FOREACH(seg, &s->queues[queue].segments, at) {
			if (queue == SPOOL_MAIN && is_needed(s, seg))
				break;
			if (is_set_aside(s, seg))
				return seg;
		}
	}
	return NULL;
}

/* Returns whether more bytes exceed what all segments may take, or their files, while these are written. */
static bool
exceeds(const struct spool *s, uint64_t more, uint64_t max_bytes)
{
	return s->bytes + s->unknown_bytes + more > max_bytes || (s->failed == 0 && !spool_floor_has(s, more));
}

void
spool_make_room(struct spool *s, uint64_t more)
{
	/* What is acknowledged costs nothing, and is else removed at the next tick. */
	if (exceeds(s, more, s->max_bytes))
		spool_reap(s);
	while (exceeds(s, more, s->max_bytes)) {
		struct spool_segment *seg;

		if (spool_unknown_drop(s))
			continue;
		/* No checkpoint is to come that would release them. */
		seg = s->abandoned_bytes > 0 ? TAILQ_FIRST(&s->queues[SPOOL_MAIN].segments) : NULL;
		if (seg != NULL && TAILQ_NEXT(seg, at) != NULL && spool_waiting(seg) == 0) {
			spool_remove(s, seg);
			continue;
		}
		seg = oldest_aside(s);
		if (seg == NULL)
			seg = TAILQ_FIRST(&s->queues[SPOOL_USAGE].segments);
		if (seg == NULL) {
			seg = TAILQ_FIRST(&s->queues[SPOOL_MAIN].segments);
			if (seg == NULL)
				return;
			/* max_bytes may be exceeded by a quarter until the owner has written a checkpoint. */
			if (is_needed(s, seg)) {
				s->needs_checkpoint = true;
				if (!exceeds(s, more, s->max_bytes + s->max_bytes / 4))
					return;
			}
		}
		give_up(s, seg, SPOOL_DROP_FULL);
	}
}

static struct spool_segment *
oldest_in_memory(struct spool *s, enum spool_queue queue)
{
	struct spool_segment *seg;

	TAILQ_FOREACH(seg, &s->queues[queue].segments, at)
		if (!seg->is_on_disk)
			return seg;
	return NULL;
}

bool
spool_make_memory(struct spool *s, uint64_t more)
{
	if (more > s->memory_max)
		return false;
	while (s->memory_bytes + more > s->memory_max) {
		struct spool_segment *seg = oldest_in_memory(s, SPOOL_USAGE);

		if (seg == NULL) {
			seg = oldest_in_memory(s, SPOOL_MAIN);
			if (seg == NULL)
				return false;
			s->needs_checkpoint = s->needs_checkpoint || seg->has_wal;
		}
		give_up(s, seg, SPOOL_DROP_MEMORY);
	}
	return true;
}
