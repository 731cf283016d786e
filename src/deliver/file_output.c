/*
 * SPDX-License-Identifier: Apache-2.0
 * file_output: the file lake as an output, for a daemon without Kafka.
 *
 * The writer writes each topic's records in the order of put, and reports how many each block had: their ids
 * wait here in the same order.
 */
#include "base/clock.h"
#include "deliver/file_output.h"

#include <errno.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TICK_US INT64_C(900000)	/* a second, as the ticks come every half, and not quite evenly */

/* Records of a topic that the writer has: n ids from ids[first] on, of which the first `written` are in blocks. */
struct queue {
	uint64_t	*ids;		/* owned */
	size_t		 cap;
	size_t		 first;
	size_t		 n;
	size_t		 written;
	size_t		 discarded;	/* last ones of the queue, recalled */
	uint64_t	 schema;	/* fingerprint of the records */
	bool		 has_schema;
};

struct file_output {
	struct output		 output;	/* first: outputs are cast */
	struct output_events	 events;
	struct event		*report;	/* owned: calls the callbacks from the loop */
	struct lake_writer	*writer;	/* owned */
	const char		*(*schema)(void *arg, uint64_t fingerprint);
	void			*schema_arg;
	char			*lake;		/* owned; shown in errors */
	struct output_status	 status;
	int64_t			 ticked_us;	/* wall clock, of the last tick passed on */
	bool			 is_waiting;	/* put returned -EAGAIN */
	struct queue		 queues[TOPIC_COUNT];
};

static void
set_error(struct file_output *f, int error)
{
	f->status.state = OUTPUT_DOWN;
	f->status.error_us = clock_us(CLOCK_REALTIME);
	snprintf(f->status.error, sizeof(f->status.error), "the lake %s cannot be written: %s", f->lake,
	    strerror(-error));
}

static void
on_block(enum topic topic, uint64_t records, int error, void *arg)
{
	struct file_output *f = arg;

	if (error < 0) {
		set_error(f, error);
		return;
	}
	f->status.state = OUTPUT_UP;
	f->queues[topic].written += records;
	event_active(f->report, EV_TIMEOUT, 0);
}

/* Calls the callbacks for written records, then for recalled ones. */
static void
report_queue(struct file_output *f, enum topic topic)
{
	struct queue *q = &f->queues[topic];

	for (; q->written > 0; q->written--, q->n--) {
		f->status.delivered++;
		f->status.in_flight--;
		f->events.delivered(topic, q->ids[q->first++], f->events.arg);
	}
	for (; q->discarded > 0; q->discarded--, q->n--) {
		struct spool_record r = { .id = q->ids[q->first++], .topic = topic };

		f->status.in_flight--;
		f->events.failed(&r, OUTPUT_AGAIN, "recalled", f->status.error, f->events.arg);
	}
	if (q->n == 0)
		q->first = 0;
}

static void
on_report(evutil_socket_t fd, short what, void *arg)
{
	struct file_output *f = arg;

	(void)fd;
	(void)what;
	for (int t = 0; t < TOPIC_COUNT; t++)
		report_queue(f, t);
	if (f->is_waiting) {
		f->is_waiting = false;
		f->events.ready(f->events.arg);
	}
}

/* Reserves room for one more id. 0 or -ENOMEM. */
static int
reserve(struct queue *q)
{
	uint64_t *grown;
	size_t cap;

	if (q->first + q->n < q->cap)
		return 0;
	if (q->first > q->cap / 2) {
		memmove(q->ids, q->ids + q->first, q->n * sizeof(*q->ids));
		q->first = 0;
		return 0;
	}
	cap = q->cap > 0 ? 2 * q->cap : 256;
	grown = realloc(q->ids, cap * sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	q->ids = grown;
	q->cap = cap;
	return 0;
}

/* Sets the schema of the topic's file. 0; -ENOKEY: the schema is unknown; or the writer's error. */
static int
use_schema(struct file_output *f, const struct spool_record *r)
{
	struct queue *q = &f->queues[r->topic];
	const char *text;
	int error;

	if (f->schema == NULL || (q->has_schema && q->schema == r->schema))
		return 0;
	text = f->schema(f->schema_arg, r->schema);
	if (text == NULL)
		return -ENOKEY;
	error = lake_writer_set_schema(f->writer, r->topic, text);
	if (error == 0) {
		q->schema = r->schema;
		q->has_schema = true;
	}
	return error;
}

static int
on_put(struct output *o, const struct spool_record *r, const char **reason)
{
	struct file_output *f = (struct file_output *)o;
	struct queue *q = &f->queues[r->topic];
	int error;

	if (q->discarded > 0)
		goto not_now;
	error = use_schema(f, r);
	if (error == -ENOKEY) {
		*reason = "schema_unknown";
		return error;
	}
	if (error == 0)
		error = reserve(q);
	if (error < 0)
		goto not_now;
	/* The id is queued first, because the writer may call on_block before it returns. */
	q->ids[q->first + q->n++] = r->id;
	error = lake_writer_put(f->writer,
	    &(struct encoded_record){ r->topic, r->time_us, r->seq, r->key, r->data, r->len });
	if (error == 0) {
		f->status.in_flight++;
		return 0;
	}
	q->n--;
	if (error == -EMSGSIZE) {
		*reason = "msg_size_too_large";
		return error;
	}
	set_error(f, error);

not_now:
	f->is_waiting = true;	/* until a block is written, or the next tick */
	return -EAGAIN;
}

static void
flush(struct file_output *f, int64_t now_us)
{
	f->ticked_us = now_us;
	lake_writer_tick(f->writer, now_us);
	if (f->is_waiting)
		event_active(f->report, EV_TIMEOUT, 0);
}

static void
on_tick(struct output *o, int64_t now_us)
{
	struct file_output *f = (struct file_output *)o;

	/* Blocks are written only once a second, because small ones compress badly. */
	if (now_us - f->ticked_us >= TICK_US || now_us < f->ticked_us)
		flush(f, now_us);
}

static void
on_flush(struct output *o)
{
	flush((struct file_output *)o, clock_us(CLOCK_REALTIME));
}

static void
on_recall(struct output *o)
{
	struct file_output *f = (struct file_output *)o;

	for (int t = 0; t < TOPIC_COUNT; t++)
		f->queues[t].discarded += (size_t)lake_writer_discard(f->writer, t);
	event_active(f->report, EV_TIMEOUT, 0);
}

static void
on_status(const struct output *o, struct output_status *ret)
{
	*ret = ((const struct file_output *)o)->status;
}

static void
on_close(struct output *o)
{
	struct file_output *f = (struct file_output *)o;

	if (f == NULL)
		return;
	/* Report the writer's last blocks too, or the next agent would write them again. */
	lake_writer_close(f->writer);
	for (int t = 0; t < TOPIC_COUNT; t++) {
		report_queue(f, t);
		free(f->queues[t].ids);
	}
	if (f->report != NULL)
		event_free(f->report);
	free(f->lake);
	free(f);
}

static const struct output_ops ops = {
	.put = on_put,
	.tick = on_tick,
	.flush = on_flush,
	.recall = on_recall,
	.status = on_status,
	.close = on_close,
};

int
file_output_open(struct event_base *base, const struct file_output_options *o,
    const struct output_events *events, struct output **ret, struct lake_repair *repair)
{
	struct lake_writer_options writer = o->writer;
	struct file_output *f = calloc(1, sizeof(*f));
	int r = -ENOMEM;

	if (f == NULL)
		return -ENOMEM;
	f->output.ops = &ops;
	f->events = *events;
	f->schema = o->schema;
	f->schema_arg = o->schema_arg;
	f->status.kind = "files";
	f->report = evtimer_new(base, on_report, f);
	f->lake = strdup(writer.lake != NULL ? writer.lake : "");
	if (f->report == NULL || f->lake == NULL)
		goto fail;
	writer.on_block = on_block;
	writer.on_block_arg = f;
	r = lake_writer_open(&writer, &f->writer, repair);
	if (r < 0)
		goto fail;
	*ret = &f->output;
	return 0;

fail:
	on_close(&f->output);
	return r;
}
