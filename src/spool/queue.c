/*
 * SPDX-License-Identifier: Apache-2.0
 * queue: a queue's segments in order, its cursor, and how far it is handed out and acknowledged.
 */
#include "spool/state.h"

void
spool_queue_append(struct spool *s, struct spool_segment *seg)
{
	struct spool_segments *segments = &s->queues[seg->queue].segments;
	struct spool_segment *before = TAILQ_LAST(segments, spool_segments);
	struct spool_queue_state *q = &s->queues[seg->queue];

	TAILQ_INSERT_TAIL(segments, seg, at);
	if (q->cursor.seg == NULL)
		spool_walk_start(&q->cursor, seg, 0, q->cursor.number);
	if (before != NULL)
		spool_segment_close_idle(s, before);
}

/* Returns the number of the next record at the cursor. */
static uint64_t
reached(const struct spool_queue_state *q)
{
	return q->cursor.seg != NULL ? q->cursor.number : q->next_number;
}

uint64_t
spool_handed_below(const struct spool *s, enum spool_queue queue)
{
	const struct spool_queue_state *q = &s->queues[queue];
	uint64_t below = reached(q);

	return below > q->again_below ? below : q->again_below;
}

uint64_t
spool_done_below(struct spool *s, enum spool_queue queue)
{
	struct spool_queue_state *q = &s->queues[queue];
	uint64_t below = reached(q);

	if (q->flight.head < q->flight.tail)
		below = spool_flight_at(&q->flight, q->flight.head)->number;
	if (below > q->done_below)
		q->done_below = below;
	return q->done_below;
}

bool
spool_is_skipped(const struct spool_queue_state *q, uint64_t number)
{
	size_t low = 0, high = q->n_skips;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct spool_skip *skip = &q->skips[middle];

		if (number < skip->from)
			high = middle;
		else if (number - skip->from < skip->count)
			return true;
		else
			low = middle + 1;
	}
	return false;
}

void
spool_cursor_leave(struct spool *s, struct spool_segment *seg)
{
	struct spool_queue_state *q = &s->queues[seg->queue];
	uint64_t number = q->cursor.is_in_batch ? q->cursor.number_end : q->cursor.number;

	if (q->cursor.seg != seg)
		return;
	spool_walk_start(&q->cursor, TAILQ_NEXT(seg, at), 0, number);
	q->has_passed_over = false;
}
