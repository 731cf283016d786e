/*
 * SPDX-License-Identifier: Apache-2.0
 * read: hands records to the output, takes them back and acknowledges them.
 *
 * A record's id is its number, shifted left by six bits, with its queue and its topic in these. Records that have to
 * be handed out again (in a flight, from redo on) precede those at the cursors; the queue's cursor and those of topics
 * that are set aside are read by turns.
 */
#include <errno.h>
#include <stdlib.h>

#include "spool/state.h"

enum {
	TOPIC_BITS = SPOOL_ID_BITS - 1,
};

_Static_assert((int)TOPIC_COUNT <= 1 << TOPIC_BITS && (int)SPOOL_QUEUES == 2, "an id has room for topic and queue");

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
	for (int queue = 0; queue < SPOOL_QUEUES && spool_all_waiting(s) > 0; queue++) {
		if (!s->queues[queue].has_limit || spool_done_below(s, queue) < s->queues[queue].limit)
			return false;
	}
	return true;
}

/*
 * Returns whether a cursor reads a topic; of: the topic whose own the cursor is, or NULL for the queue's. None reads a
 * topic that this version does not know.
 */
static bool
is_read_by(const struct spool_queue_state *q, const struct spool_topic_state *of, enum topic topic)
{
	if (topic == TOPIC_COUNT)
		return false;
	return of != NULL ? of == &q->topics[topic] : !q->topics[topic].is_aside;
}

/* Counts the records of the cursor's segment that it has skipped as corrupt. */
static void
write_off(struct spool *s, struct spool_queue_state *q, const struct spool_topic_state *of,
    struct spool_segment *seg)
{
	for (int t = 0; t < TOPIC_COUNT; t++) {
		const struct spool_flight *f = &q->topics[t].flight;
		uint64_t left = seg->waiting[t];

		if (left == 0 || !is_read_by(q, of, t))
			continue;
		for (uint64_t i = f->head; i < f->tail && left > 0; i++)
			left -= spool_flight_at(f, i)->seg == seg;
		s->stats.dropped[t][SPOOL_DROP_CORRUPT] += left;
		seg->waiting[t] -= left;
		s->waiting[t] -= left;
	}
}

/* Returns whether to give up the bytes that a cursor's reader cannot read; false: try again later. */
static bool
is_read_hopeless(const struct spool *s, struct spool_cursor *cursor, int error)
{
	if (error == -EBADMSG || error == -ENOENT || error == -ENODATA)
		return true;
	if (error != -ENOMEM && error != -EMFILE && error != -ENFILE && error != -ETIMEDOUT) {
		if (cursor->failing_ns == 0)
			cursor->failing_ns = s->now_ns | 1;
		if (s->now_ns >= cursor->failing_ns + SPOOL_READ_PATIENCE_NS) {
			cursor->failing_ns = 0;
			return true;
		}
	}
	cursor->is_failing = true;
	return false;
}

/* Returns the cursor whose reader reads a topic's records again: the window of another one stays where it is. */
static struct spool_cursor *
cursor_of(struct spool_queue_state *q, enum topic topic)
{
	return q->topics[topic].is_aside ? &q->topics[topic].cursor : &q->cursor;
}

/* Moves a cursor from the end of its segment to the next one. False: there is none yet. */
static bool
end_segment(struct spool *s, struct spool_queue_state *q, const struct spool_topic_state *of,
    struct spool_cursor *cursor)
{
	struct spool_segment *seg = cursor->walk.seg, *next = TAILQ_NEXT(seg, at);

	if (cursor->has_passed_over || next != NULL)
		write_off(s, q, of, seg);
	cursor->has_passed_over = false;
	if (next == NULL)
		return false;
	spool_cursor_leave(cursor);
	spool_segment_close_idle(s, seg);
	return true;
}

/* Returns whether the cursor may find a record in a batch; false: its head counts none of the cursor's topics. */
static bool
may_have_one(const struct spool_queue_state *q, const struct spool_topic_state *of,
    const struct spool_segment *seg, const struct spool_batch_head *h)
{
	uint64_t all = 0, wanted = 0;

	for (unsigned i = 0; i < seg->n_topics; i++) {
		all += h->counts[i];
		wanted += is_read_by(q, of, seg->topics[i]) ? h->counts[i] : 0;
	}
	return wanted > 0 || all != h->records || seg->has_wrong_counts;
}

/* Returns whether to hand out the record at the cursor; if not, it has to be passed over. */
static bool
is_next(const struct spool *s, struct spool_queue_state *q, const struct spool_topic_state *of,
    const struct spool_walk *w, enum topic topic)
{
	if (!is_read_by(q, of, topic) || w->number < q->topics[topic].done_below ||
	    spool_is_skipped(q, topic, w->number))
		return false;
	if (of != NULL || !spool_is_waiting(s, w->seg->queue, topic))
		return true;
	spool_set_aside(q, topic);
	return false;
}

/*
 * Returns whether a power cut, or a kill, could give the seq of the records at a walk out again. On a disk that fails
 * for good they are handed out in spite of that.
 */
static bool
is_unsynced(const struct spool *s, const struct spool_walk *w)
{
	if (!w->seg->is_on_disk)
		return !s->has_state_failed && w->at >= w->seg->seqs_to;
	/* A Usage batch whose main batch is in memory is cut off after a kill; only the state has its seqs. */
	if (w->seg->queue == SPOOL_USAGE && s->is_state_behind && !s->has_state_failed)
		return true;
	return !w->seg->has_sync_failed && w->at >= w->seg->synced_to;
}

/* Advances to the next batch, or to the next segment. 1; 0: there is none; or a negative errno. */
static int
next_batch(struct spool *s, struct spool_queue_state *q, const struct spool_topic_state *of,
    struct spool_cursor *cursor)
{
	struct spool_walk *w = &cursor->walk;
	struct spool_batch_head head;
	int r;

	if (s->is_sync_first && w->at < w->seg->size && is_unsynced(s, w))
		return 0;
	r = spool_walk_batch(s, &cursor->reader, w, &head);
	cursor->has_passed_over = cursor->has_passed_over || w->passed > 0;
	if (r == 0)
		return end_segment(s, q, of, cursor);
	/* Most batches of the main queue may contain no record. */
	if (r == 1 && (head.records == 0 || w->number_end <= q->done_below)) {
		spool_walk_leave(w);
	} else if (r == 1 && !may_have_one(q, of, w->seg, &head)) {
		cursor->has_passed_over = true;		/* in case the head is wrong */
		s->pass_left -= head.len < SPOOL_READ_BYTES ? head.len : SPOOL_READ_BYTES;
		spool_walk_leave(w);
	}
	return r;
}

/* Reads the record at the queue's cursor, or at a topic's own. 1, or 0: none now. */
static int
peek(struct spool *s, struct spool_queue_state *q, struct spool_topic_state *of, struct spool_entry *ret)
{
	struct spool_cursor *cursor = of != NULL ? &of->cursor : &q->cursor;
	struct spool_walk *w = &cursor->walk;
	int r;

	while (w->seg != NULL && !cursor->is_failing && s->pass_left > 0) {
		if (of != NULL && spool_join_up(q, (enum topic)(of - q->topics)))
			return 0;
		r = spool_walk_entry(s, &cursor->reader, w, ret);
		if (r == 1) {
			bool is_record = ret->kind == SPOOL_ENTRY_RECORD;

			if (is_record && is_next(s, q, of, w, w->seg->topics[ret->topic]))
				return !q->has_limit || w->number < q->limit;
			s->pass_left -= is_record ? (int64_t)ret->len : 0;
			spool_walk_on(w, ret);
			continue;
		}
		if (r == -EBADMSG) {
			cursor->has_passed_over = true;
			if (!spool_walk_over(s, &cursor->reader, w))
				spool_walk_leave(w);
			continue;
		}
		if (r == 0) {
			r = next_batch(s, q, of, cursor);
			if (r == 0)
				return 0;
		}
		if (r < 0 && is_read_hopeless(s, cursor, r)) {
			cursor->has_passed_over = true;
			w->is_in_batch = false;
			w->at = w->seg->size;
		}
	}
	return 0;
}

/* Fills ret from the entry e and marks the topic's record at index as handed out. */
static void
hand(struct spool *s, enum spool_queue queue, enum topic topic, uint64_t index, const struct spool_entry *e,
    struct spool_record *ret)
{
	struct spool_flight *f = &s->queues[queue].topics[topic].flight;
	struct spool_handed *h = spool_flight_at(f, index);
	unsigned i = e->topic;

	*ret = (struct spool_record){
		.id = h->number << SPOOL_ID_BITS | (uint64_t)queue << TOPIC_BITS | topic,
		.topic = h->topic,
		.is_again = (h->flags & SPOOL_IS_AGAIN) != 0,
		.schema = h->seg->schemas[i],
		.seq = e->seq,
		.time_us = e->time_us,
		.user = { .known = e->uid != 0, .value = e->uid },
		.key = e->key,
		.data = e->data,
		.len = e->data_len,
	};
	h->flags |= SPOOL_IS_OUT;
	f->n_out++;
	f->redo = index + 1;
	cursor_of(&s->queues[queue], topic)->failing_ns = 0;
	s->stats.handed_again += ret->is_again;
	s->last_queue = queue;
	s->last_topic = topic;
	s->last_index = index;
	s->has_last = true;
	s->was_ungot = false;
}

/* Returns the oldest record of a queue that was handed out before and has to be handed out again; NULL: none. */
static struct spool_handed *
oldest_again(struct spool *s, struct spool_queue_state *q)
{
	struct spool_handed *oldest = NULL;

	for (int t = 0; t < TOPIC_COUNT; t++) {
		struct spool_flight *f = &q->topics[t].flight;
		struct spool_handed *h;

		while (f->redo < f->tail && (spool_flight_at(f, f->redo)->flags & (SPOOL_IS_DONE | SPOOL_IS_OUT)) != 0)
			f->redo++;
		if (f->redo == f->tail || s->is_held[t] || cursor_of(q, t)->is_failing)
			continue;
		h = spool_flight_at(f, f->redo);
		if (oldest == NULL || h->number < oldest->number)
			oldest = h;
	}
	return oldest;
}

/* Finds the next record that was handed out before and has to be handed out again. */
static bool
next_again(struct spool *s, enum spool_queue queue, struct spool_record *ret)
{
	struct spool_queue_state *q = &s->queues[queue];
	struct spool_handed *h;

	while ((h = oldest_again(s, q)) != NULL) {
		struct spool_topic_state *t = &q->topics[h->topic];
		struct spool_cursor *cursor = cursor_of(q, h->topic);
		struct spool_entry e;
		int r = spool_read_entry(s, &cursor->reader, h->seg, h->at, h->seg->size, &e);

		if (r == 0) {
			hand(s, queue, h->topic, t->flight.redo, &e, ret);
			return true;
		}
		if (is_read_hopeless(s, cursor, r)) {
			h->seg->waiting[h->topic]--;
			s->waiting[h->topic]--;
			s->stats.dropped[h->topic][SPOOL_DROP_CORRUPT]++;
			spool_flight_finish(&t->flight, h);
		}
	}
	return false;
}

/* Finds the next record at the queue's cursor, or at a topic's own. */
static bool
next_new(struct spool *s, enum spool_queue queue, struct spool_topic_state *of, struct spool_record *ret)
{
	struct spool_queue_state *q = &s->queues[queue];
	struct spool_cursor *cursor = of != NULL ? &of->cursor : &q->cursor;
	struct spool_topic_state *t;
	struct spool_handed h;
	struct spool_entry e;

	if (peek(s, q, of, &e) == 0)
		return false;
	h = (struct spool_handed){
		.number = cursor->walk.number,
		.seg = cursor->walk.seg,
		.time_us = e.time_us,
		.at = (uint32_t)cursor->walk.at,
		.topic = (uint8_t)cursor->walk.seg->topics[e.topic],
		.flags = cursor->walk.number < q->again_below ? SPOOL_IS_AGAIN : 0,
	};
	t = &q->topics[h.topic];
	if (h.number >= q->handed_mark && s->is_sync_first && s->is_state_syncing)
		return false;	/* the mark can be written once that has ended */
	if (spool_flight_push(&t->flight, &h) < 0)
		return false;
	spool_walk_on(&cursor->walk, &e);
	/*
	 * The state file is written before the first record that its mark does not cover is handed out: a
	 * record handed out before a crash is then always marked as a redelivery.
	 */
	if (h.number >= q->handed_mark) {
		q->handed_mark = h.number + SPOOL_HANDED_AHEAD;
		if (spool_marks_write(s, false) < 0)
			s->is_state_moved = true;
	}
	hand(s, queue, h.topic, t->flight.tail - 1, &e, ret);
	return true;
}

/* Finds the next record of the topics that are set aside, by turns. */
static bool
next_aside(struct spool *s, enum spool_queue queue, struct spool_record *ret)
{
	struct spool_queue_state *q = &s->queues[queue];

	for (unsigned i = 0; i < TOPIC_COUNT && q->n_aside > 0; i++) {
		enum topic topic = (enum topic)((q->next_aside + i) % TOPIC_COUNT);

		if (!q->topics[topic].is_aside || spool_is_waiting(s, queue, topic) ||
		    !next_new(s, queue, &q->topics[topic], ret))
			continue;
		q->next_aside = topic + 1;
		return true;
	}
	return false;
}

/* Finds the next record at the queue's cursor. */
static bool
next_common(struct spool *s, enum spool_queue queue, struct spool_record *ret)
{
	bool is_any = false;

	/* It would pass over all records to come. */
	for (int t = 0; t < TOPIC_COUNT; t++)
		is_any |= spool_queue_of(t) == queue && !spool_is_waiting(s, queue, t);
	return is_any && next_new(s, queue, NULL, ret);
}

/* Finds the next record of a queue. */
static bool
next_of(struct spool *s, enum spool_queue queue, struct spool_record *ret)
{
	struct spool_queue_state *q = &s->queues[queue];
	bool is_asides_turn = q->is_asides_turn;

	q->is_asides_turn = !is_asides_turn;
	if (next_again(s, queue, ret))
		return true;
	if (is_asides_turn)
		return next_aside(s, queue, ret) || next_common(s, queue, ret);
	return next_common(s, queue, ret) || next_aside(s, queue, ret);
}

bool
spool_next(struct spool *s, struct spool_record *ret)
{
	enum spool_queue first = s->was_ungot ? s->last_queue : SPOOL_MAIN;

	s->has_last = false;
	s->pass_left = SPOOL_PASS_MAX;
	return next_of(s, first, ret) || next_of(s, SPOOL_QUEUES - 1 - first, ret);
}

bool
spool_is_interrupted(const struct spool *s)
{
	return s->pass_left <= 0;
}

void
spool_unget(struct spool *s)
{
	struct spool_flight *f = &s->queues[s->last_queue].topics[s->last_topic].flight;
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
		s->waiting[h->topic]--;
		spool_flight_finish(f, h);
		return;
	}
	f->redo = s->last_index;
	s->was_ungot = true;
}

void
spool_ack(struct spool *s, uint64_t id)
{
	unsigned topic = id & ((1u << TOPIC_BITS) - 1);
	struct spool_flight *f;
	struct spool_handed *h;
	uint64_t index;

	if (topic >= TOPIC_COUNT)
		return;
	f = &s->queues[id >> TOPIC_BITS & 1].topics[topic].flight;
	h = spool_flight_find(f, id >> SPOOL_ID_BITS, &index);
	if (h == NULL || (h->flags & SPOOL_IS_DONE))
		return;
	if (h->seg != NULL)
		h->seg->waiting[topic]--;
	s->waiting[topic]--;
	s->stats.acknowledged++;
	s->is_state_moved = true;
	spool_flight_finish(f, h);
}

/* Takes all records of a flight back that are handed out. */
static void
recall(struct spool *s, struct spool_flight *f)
{
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
		s->waiting[h->topic]--;
		spool_flight_finish(f, h);
	}
}

void
spool_rewind(struct spool *s)
{
	for (int queue = 0; queue < SPOOL_QUEUES; queue++)
		for (int t = 0; t < TOPIC_COUNT; t++)
			recall(s, &s->queues[queue].topics[t].flight);
	s->was_ungot = false;
}

void
spool_rewind_topic(struct spool *s, enum topic topic)
{
	recall(s, &s->queues[spool_queue_of(topic)].topics[topic].flight);
	if (s->last_topic == topic)
		s->was_ungot = false;
}

uint64_t
spool_in_flight(const struct spool *s)
{
	uint64_t n = 0;

	for (int queue = 0; queue < SPOOL_QUEUES; queue++)
		for (int t = 0; t < TOPIC_COUNT; t++)
			n += s->queues[queue].topics[t].flight.n_out;
	return n;
}

void
spool_find_oldest(struct spool *s, enum spool_queue queue)
{
	struct spool_queue_state *q = &s->queues[queue];
	struct spool_entry e;
	int64_t oldest = 0;

	s->pass_left = SPOOL_PASS_MAX;
	for (int t = 0; t < TOPIC_COUNT; t++) {
		struct spool_topic_state *topic = &q->topics[t];
		int64_t us = 0;

		if (topic->flight.head < topic->flight.tail)
			us = spool_flight_at(&topic->flight, topic->flight.head)->time_us;
		else if (topic->is_aside && peek(s, q, topic, &e) == 1)
			us = e.time_us;
		if (us != 0 && (oldest == 0 || us < oldest))
			oldest = us;
	}
	/* The records at the queue's cursor follow those in flight. */
	q->oldest_us = oldest == 0 && peek(s, q, NULL, &e) == 1 ? e.time_us : oldest;
}
