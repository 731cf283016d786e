/*
 * SPDX-License-Identifier: Apache-2.0
 * queue: a queue's segments in order, the cursors in them, and how far it is handed out and acknowledged.
 */
#include "spool/state.h"

void
spool_queue_append(struct spool *s, struct spool_segment *seg)
{
	struct spool_segments *segments = &s->queues[seg->queue].segments;
	struct spool_segment *before = TAILQ_LAST(segments, spool_segments);
	struct spool_walk *w = &s->queues[seg->queue].cursor.walk;

	TAILQ_INSERT_TAIL(segments, seg, at);
	if (w->seg == NULL)
		spool_walk_start(w, seg, 0, w->number);
	if (before != NULL)
		spool_segment_close_idle(s, before);
}

/* Returns a number that no record which a cursor has still to read is below. */
static uint64_t
cursor_reached(const struct spool_queue_state *q, const struct spool_cursor *cursor)
{
	return cursor->walk.seg != NULL ? cursor->walk.number : q->next_number;
}

uint64_t
spool_reached(const struct spool_queue_state *q, enum topic topic)
{
	return cursor_reached(q, q->topics[topic].is_aside ? &q->topics[topic].cursor : &q->cursor);
}

uint64_t
spool_handed_below(const struct spool *s, enum spool_queue queue)
{
	const struct spool_queue_state *q = &s->queues[queue];
	uint64_t below = cursor_reached(q, &q->cursor);

	return below > q->again_below ? below : q->again_below;
}

uint64_t
spool_topic_done_below(struct spool *s, enum spool_queue queue, enum topic topic)
{
	struct spool_queue_state *q = &s->queues[queue];
	struct spool_topic_state *t = &q->topics[topic];
	uint64_t below = spool_reached(q, topic);

	if (t->flight.head < t->flight.tail)
		below = spool_flight_at(&t->flight, t->flight.head)->number;
	if (below > t->done_below)
		t->done_below = below;
	return t->done_below;
}

uint64_t
spool_done_below(struct spool *s, enum spool_queue queue)
{
	struct spool_queue_state *q = &s->queues[queue];
	uint64_t below = UINT64_MAX;

	for (int t = 0; t < TOPIC_COUNT; t++) {
		uint64_t of_topic = spool_topic_done_below(s, queue, t);

		if (of_topic < below)
			below = of_topic;
	}
	if (below > q->done_below)
		q->done_below = below;
	return q->done_below;
}

static bool
is_in(const struct spool_skips *skips, uint64_t number)
{
	size_t low = 0, high = skips->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct spool_skip *skip = &skips->list[middle];

		if (number < skip->from)
			high = middle;
		else if (number - skip->from < skip->count)
			return true;
		else
			low = middle + 1;
	}
	return false;
}

bool
spool_is_skipped(const struct spool_queue_state *q, enum topic topic, uint64_t number)
{
	return is_in(&q->skips, number) || (topic < TOPIC_COUNT && is_in(&q->topics[topic].skips, number));
}

void
spool_cursor_leave(struct spool_cursor *cursor)
{
	struct spool_walk *w = &cursor->walk;
	uint64_t number = w->is_in_batch ? w->number_end : w->number;

	spool_walk_start(w, TAILQ_NEXT(w->seg, at), 0, number);
	cursor->has_passed_over = false;
}

void
spool_cursors_leave(struct spool *s, struct spool_segment *seg)
{
	struct spool_queue_state *q = &s->queues[seg->queue];

	if (q->cursor.walk.seg == seg)
		spool_cursor_leave(&q->cursor);
	for (int t = 0; t < TOPIC_COUNT; t++) {
		struct spool_topic_state *topic = &q->topics[t];

		if (topic->is_aside && topic->cursor.walk.seg == seg)
			spool_cursor_leave(&topic->cursor);
		(void)spool_join_up(q, t);
	}
}
