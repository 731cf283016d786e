/*
 * SPDX-License-Identifier: Apache-2.0
 * room: removes acknowledged segments, and drops records when there is no room: Usage records first, and the
 * oldest of the main queue only when no Usage record is left.
 */
#include <stdlib.h>

#include "spool/state.h"

void
spool_remove(struct spool *s, struct spool_segment *seg)
{
	spool_cursor_leave(s, seg);
	if (s->safe.seg == seg)
		s->safe = (struct spool_checkpoint){ 0 };
	if (s->checkpoint.seg == seg)
		s->checkpoint = (struct spool_checkpoint){ 0 };
	if (seg->is_on_disk)
		spool_segment_unlink(s, seg);
	else
		s->memory_bytes -= seg->size;
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

/* Drops a segment: counts its waiting records as dropped, and removes it. */
static void
give_up(struct spool *s, struct spool_segment *seg, enum spool_drop reason)
{
	struct spool_flight *f = &s->queues[seg->queue].flight;

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
		/* It is counted below with the segment's other records. */
		spool_flight_finish(f, h);
	}
	for (int t = 0; t < TOPIC_COUNT; t++) {
		s->stats.dropped[t][reason] += seg->waiting[t];
		s->waiting -= seg->waiting[t];
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

void
spool_make_room(struct spool *s, uint64_t more)
{
	while (s->bytes + more > s->max_bytes) {
		struct spool_segment *seg = TAILQ_FIRST(&s->queues[SPOOL_USAGE].segments);

		if (seg == NULL) {
			seg = TAILQ_FIRST(&s->queues[SPOOL_MAIN].segments);
			if (seg == NULL)
				return;
			/* The limit may be exceeded by a quarter until the owner has written a checkpoint. */
			if (is_needed(s, seg)) {
				s->needs_checkpoint = true;
				if (s->bytes + more <= s->max_bytes + s->max_bytes / 4)
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
