/*
 * SPDX-License-Identifier: Apache-2.0
 * lane: a lane's segments in their order, its cursor, and how far it is handed out and acknowledged.
 */
#include "spool/state.h"

void
spool_lane_append(struct spool *s, struct spool_segment *seg)
{
	struct spool_segments *segments = &s->lanes[seg->lane].segments;
	struct spool_segment *before = TAILQ_LAST(segments, spool_segments);
	struct spool_lane_state *l = &s->lanes[seg->lane];

	TAILQ_INSERT_TAIL(segments, seg, at);
	if (l->cursor.seg == NULL)
		spool_walk_start(&l->cursor, seg, 0, l->cursor.number);
	if (before != NULL)
		spool_segment_rest(s, before);
}

/* The number at the cursor. */
static uint64_t
reached(const struct spool_lane_state *l)
{
	return l->cursor.seg != NULL ? l->cursor.number : l->next_number;
}

uint64_t
spool_handed_below(const struct spool *s, enum spool_lane lane)
{
	const struct spool_lane_state *l = &s->lanes[lane];
	uint64_t below = reached(l);

	return below > l->again_below ? below : l->again_below;
}

uint64_t
spool_done_below(struct spool *s, enum spool_lane lane)
{
	struct spool_lane_state *l = &s->lanes[lane];
	uint64_t below = reached(l);

	if (l->flight.head < l->flight.tail)
		below = spool_flight_at(&l->flight, l->flight.head)->number;
	if (below > l->done_below)
		l->done_below = below;
	return l->done_below;
}

bool
spool_is_skipped(const struct spool_lane_state *l, uint64_t number)
{
	size_t low = 0, high = l->n_skips;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct spool_skip *skip = &l->skips[middle];

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
	struct spool_lane_state *l = &s->lanes[seg->lane];
	uint64_t number = l->cursor.is_in_batch ? l->cursor.number_end : l->cursor.number;

	if (l->cursor.seg != seg)
		return;
	spool_walk_start(&l->cursor, TAILQ_NEXT(seg, at), 0, number);
	l->has_passed_over = false;
}
