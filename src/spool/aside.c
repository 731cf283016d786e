/*
 * SPDX-License-Identifier: Apache-2.0
 * aside: topics that are read behind the others of their queue, because the output does not take them now.
 *
 * A topic is set aside when the queue's cursor comes to a record of it that may not be handed out. From there on it has
 * a cursor of its own, and the queue's passes over its records. Once they may be handed out, its own cursor reads them,
 * and ends where it reaches the queue's. Each topic has a flight of its own, so that neither step moves a record from
 * one flight to another.
 */
#include "spool/state.h"

bool
spool_is_waiting(const struct spool *s, enum spool_queue queue, enum topic topic)
{
	const struct spool_flight *f = &s->queues[queue].topics[topic].flight;

	return s->is_held[topic] || f->tail - f->head >= SPOOL_FLIGHT_MAX;
}

void
spool_set_aside(struct spool_queue_state *q, enum topic topic)
{
	struct spool_topic_state *t = &q->topics[topic];

	t->cursor.walk = q->cursor.walk;
	t->cursor.has_passed_over = q->cursor.has_passed_over;
	t->cursor.failing_ns = 0;
	t->cursor.is_failing = false;
	t->is_aside = true;
	q->n_aside++;
}

/* Returns whether a cursor is before another one of the same queue. */
static bool
is_before(const struct spool_walk *a, const struct spool_walk *b)
{
	/* A cursor without a segment is behind all of them. */
	if (a->seg == NULL || b->seg == NULL)
		return a->seg != NULL;
	return a->seg == b->seg ? a->at < b->at : a->seg->number < b->seg->number;
}

bool
spool_join_up(struct spool_queue_state *q, enum topic topic)
{
	struct spool_topic_state *t = &q->topics[topic];

	if (!t->is_aside || is_before(&t->cursor.walk, &q->cursor.walk))
		return false;
	/* The queue's cursor counts what this one has not found, too. */
	if (t->cursor.walk.seg == q->cursor.walk.seg && t->cursor.has_passed_over)
		q->cursor.has_passed_over = true;
	spool_reader_done(&t->cursor.reader);
	t->is_aside = false;
	q->n_aside--;
	return true;
}

void
spool_hold(struct spool *s, enum topic topic)
{
	s->is_held[topic] = true;
	s->was_ungot = false;
}

void
spool_release(struct spool *s, enum topic topic)
{
	s->is_held[topic] = false;
}

bool
spool_has_more(const struct spool *s)
{
	for (int t = 0; t < TOPIC_COUNT; t++) {
		uint64_t out = 0;

		for (int queue = 0; queue < SPOOL_QUEUES; queue++)
			out += s->queues[queue].topics[t].flight.n_out;
		if (!s->is_held[t] && s->waiting[t] > out)
			return true;
	}
	return false;
}
