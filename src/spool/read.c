/*
 * SPDX-License-Identifier: Apache-2.0
 * read: hands records to the output, takes them back and acknowledges them.
 *
 * A record's id is its number, shifted left by one bit, with the queue in the lowest bit. Records that have to
 * be handed out again (in the flight, from redo on) precede those at the cursor.
 */
#include <errno.h>
#include <stdlib.h>

#include "spool/state.h"

void
spool_limit_to_committed(struct spool *s)
{
	for (int queue = 0; queue < SPOOL_QUEUES; queue++) {
		s->queues[queue].limit = s->queues[queue].next_number;
		s->queues[queue].has_limit = true;
	}
}

bool
spool_is_drained(struct spool *s)
{
	for (int queue = 0; queue < SPOOL_QUEUES && s->waiting > 0; queue++) {
		if (!s->queues[queue].has_limit || spool_done_below(s, queue) < s->queues[queue].limit)
			return false;
	}
	return true;
}

/* Counts the records of a segment that the cursor has skipped as corrupt. */
static void
write_off(struct spool *s, struct spool_queue_state *q, struct spool_segment *seg)
{
	uint64_t left[TOPIC_COUNT];

	if (spool_waiting(seg) == 0)
		return;
	for (int t = 0; t < TOPIC_COUNT; t++)
		left[t] = seg->waiting[t];
	for (uint64_t i = q->flight.head; i < q->flight.tail; i++) {
		const struct spool_handed *h = spool_flight_at(&q->flight, i);

		if (h->seg == seg && left[h->topic] > 0)
			left[h->topic]--;
	}
	for (int t = 0; t < TOPIC_COUNT; t++) {
		s->stats.dropped[t][SPOOL_DROP_CORRUPT] += left[t];
		seg->waiting[t] -= left[t];
		s->waiting -= left[t];
	}
}

/* Returns whether to give up the unreadable bytes; false: try again later. */
static bool
is_read_hopeless(struct spool *s, struct spool_queue_state *q, int error)
{
	if (error == -EBADMSG || error == -ENOENT || error == -ENODATA)
		return true;
	if (error != -ENOMEM && error != -EMFILE && error != -ENFILE) {
		if (q->read_failing_ns == 0)
			q->read_failing_ns = s->now_ns | 1;
		if (s->now_ns >= q->read_failing_ns + SPOOL_READ_PATIENCE_NS) {
			q->read_failing_ns = 0;
			return true;
		}
	}
	q->is_read_failing = true;
	return false;
}

/* Moves the cursor from the end of its segment to the next one. False: there is none yet. */
static bool
end_segment(struct spool *s, struct spool_queue_state *q)
{
	struct spool_segment *seg = q->cursor.seg, *next = TAILQ_NEXT(seg, at);

	if (q->has_passed_over || next != NULL)
		write_off(s, q, seg);
	q->has_passed_over = false;
	if (next == NULL)
		return false;
	spool_cursor_leave(s, seg);
	spool_segment_close_idle(s, seg);
	return true;
}

/* Reads the record at the queue's cursor. 1, or 0: none now. */
static int
peek(struct spool *s, struct spool_queue_state *q, struct spool_entry *ret)
{
	struct spool_walk *w = &q->cursor;
	struct spool_batch_head head;
	int r;

	while (w->seg != NULL && !q->is_read_failing) {
		r = spool_walk_entry(s, &q->reader, w, ret);
		if (r == 1) {
			if (ret->kind == SPOOL_ENTRY_RECORD && w->number >= q->done_below &&
			    !spool_is_skipped(q, w->number))
				return !q->has_limit || w->number < q->limit;
			spool_walk_on(w, ret);
			continue;
		}
		if (r == -EBADMSG) {
			q->has_passed_over = true;
			if (!spool_walk_over(s, &q->reader, w))
				spool_walk_leave(w);
			continue;
		}
		if (r == 0) {
			if (s->is_sync_first && w->seg->is_on_disk && !w->seg->has_sync_failed &&
			    w->at >= w->seg->synced_to && w->at < w->seg->size)
				return 0;
			r = spool_walk_batch(s, &q->reader, w, &head);
			q->has_passed_over = q->has_passed_over || w->passed > 0;
			/* Most batches of the main queue may contain no record. */
			if (r == 1 && (head.records == 0 || w->number_end <= q->done_below))
				spool_walk_leave(w);
			if (r == 0 && !end_segment(s, q))
				return 0;
		}
		if (r < 0 && is_read_hopeless(s, q, r)) {
			q->has_passed_over = true;
			w->is_in_batch = false;
			w->at = w->seg->size;
		}
	}
	return 0;
}

/* Fills ret from the entry e and marks the record at index as handed out. */
static void
hand(struct spool *s, enum spool_queue queue, uint64_t index, const struct spool_entry *e,
    struct spool_record *ret)
{
	struct spool_queue_state *q = &s->queues[queue];
	struct spool_handed *h = spool_flight_at(&q->flight, index);
	unsigned i = e->topic;

	*ret = (struct spool_record){
		.id = h->number << 1 | queue,
		.topic = h->topic,
		.is_again = (h->flags & SPOOL_IS_AGAIN) != 0,
		.schema = h->seg->schemas[i],
		.seq = e->seq,
		.time_us = e->time_us,
		.key = e->key,
		.data = e->data,
		.len = e->data_len,
	};
	h->flags |= SPOOL_IS_OUT;
	q->flight.n_out++;
	q->flight.redo = index + 1;
	q->read_failing_ns = 0;
	s->stats.handed_again += ret->is_again;
	s->last_queue = queue;
	s->last_index = index;
	s->has_last = true;
	s->was_ungot = false;
}

/* Finds the next record that was handed out before and has to be handed out again. */
static bool
next_again(struct spool *s, enum spool_queue queue, struct spool_record *ret)
{
	struct spool_queue_state *q = &s->queues[queue];
	struct spool_flight *f = &q->flight;

	while (f->redo < f->tail && !q->is_read_failing) {
		struct spool_handed *h = spool_flight_at(f, f->redo);
		struct spool_entry e;
		int r;

		if (h->flags & (SPOOL_IS_DONE | SPOOL_IS_OUT)) {
			f->redo++;
			continue;
		}
		r = spool_read_entry(s, &q->reader, h->seg, h->at, h->seg->size, &e);
		if (r == 0) {
			hand(s, queue, f->redo, &e, ret);
			return true;
		}
		if (is_read_hopeless(s, q, r)) {
			h->seg->waiting[h->topic]--;
			s->waiting--;
			s->stats.dropped[h->topic][SPOOL_DROP_CORRUPT]++;
			spool_flight_finish(f, h);
		}
	}
	return false;
}

static bool
next_new(struct spool *s, enum spool_queue queue, struct spool_record *ret)
{
	struct spool_queue_state *q = &s->queues[queue];
	struct spool_handed h;
	struct spool_entry e;

	if (peek(s, q, &e) == 0)
		return false;
	h = (struct spool_handed){
		.number = q->cursor.number,
		.seg = q->cursor.seg,
		.time_us = e.time_us,
		.at = (uint32_t)q->cursor.at,
		.topic = (uint8_t)q->cursor.seg->topics[e.topic],
		.flags = q->cursor.number < q->again_below ? SPOOL_IS_AGAIN : 0,
	};
	if (spool_flight_push(&q->flight, &h) < 0)
		return false;
	spool_walk_on(&q->cursor, &e);
	/*
	 * The state file is written before the first record that its mark does not cover is handed out: a
	 * record handed out before a crash is then always marked as a redelivery.
	 */
	if (h.number >= q->handed_mark) {
		q->handed_mark = h.number + SPOOL_HANDED_AHEAD;
		if (spool_marks_write(s, false) < 0)
			s->is_state_moved = true;
	}
	hand(s, queue, q->flight.tail - 1, &e, ret);
	return true;
}

bool
spool_next(struct spool *s, struct spool_record *ret)
{
	enum spool_queue first = s->was_ungot ? s->last_queue : SPOOL_MAIN;

	s->has_last = false;
	for (int i = 0; i < SPOOL_QUEUES; i++) {
		enum spool_queue queue = i == 0 ? first : SPOOL_QUEUES - 1 - first;

		if (next_again(s, queue, ret) || next_new(s, queue, ret))
			return true;
	}
	return false;
}

void
spool_unget(struct spool *s)
{
	struct spool_flight *f = &s->queues[s->last_queue].flight;
	struct spool_handed *h;

	if (!s->has_last || s->last_index < f->head || s->last_index >= f->tail)
		return;
	s->has_last = false;
	h = spool_flight_at(f, s->last_index);
	if (!(h->flags & SPOOL_IS_OUT))
		return;
	if (h->flags & SPOOL_IS_AGAIN)
		s->stats.handed_again--;
	h->flags &= (uint8_t)~SPOOL_IS_OUT;
	f->n_out--;
	if (h->seg == NULL) {	/* dropped meanwhile */
		s->stats.dropped[h->topic][SPOOL_DROP_FULL]++;
		s->waiting--;
		spool_flight_finish(f, h);
		return;
	}
	f->redo = s->last_index;
	s->was_ungot = true;
}

void
spool_ack(struct spool *s, uint64_t id)
{
	struct spool_flight *f = &s->queues[id & 1].flight;
	uint64_t index;
	struct spool_handed *h = spool_flight_find(f, id >> 1, &index);

	if (h == NULL || (h->flags & SPOOL_IS_DONE))
		return;
	if (h->seg != NULL)
		h->seg->waiting[h->topic]--;
	s->waiting--;
	s->stats.acknowledged++;
	s->is_state_moved = true;
	spool_flight_finish(f, h);
}

void
spool_rewind(struct spool *s)
{
	for (int queue = 0; queue < SPOOL_QUEUES; queue++) {
		struct spool_flight *f = &s->queues[queue].flight;

		f->redo = f->head;
		for (uint64_t i = f->head; i < f->tail; i++) {
			struct spool_handed *h = spool_flight_at(f, i);

			if (!(h->flags & SPOOL_IS_OUT))
				continue;
			h->flags = (uint8_t)((h->flags & ~SPOOL_IS_OUT) | SPOOL_IS_AGAIN);
			f->n_out--;
			if (h->seg != NULL)
				continue;
			/* Its segment is gone, and now the output's copy too. */
			s->stats.dropped[h->topic][SPOOL_DROP_FULL]++;
			s->waiting--;
			spool_flight_finish(f, h);
		}
	}
	s->was_ungot = false;
}

uint64_t
spool_in_flight(const struct spool *s)
{
	return s->queues[SPOOL_MAIN].flight.n_out + s->queues[SPOOL_USAGE].flight.n_out;
}

bool
spool_has_more(const struct spool *s)
{
	return s->waiting > spool_in_flight(s);
}

void
spool_find_oldest(struct spool *s, enum spool_queue queue)
{
	struct spool_queue_state *q = &s->queues[queue];
	struct spool_entry e;

	if (q->flight.head < q->flight.tail)
		q->oldest_us = spool_flight_at(&q->flight, q->flight.head)->time_us;
	else if (peek(s, q, &e) == 1)
		q->oldest_us = e.time_us;
	else
		q->oldest_us = 0;
}
