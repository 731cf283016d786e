/*
 * SPDX-License-Identifier: Apache-2.0
 * file_output: the file lake as an output, for a daemon without Kafka.
 *
 * The writer reports how many records of a series of files are on the disk, in the order of put: their ids wait here in
 * the same order.
 */
#include "base/clock.h"
#include "base/format.h"
#include "deliver/file_output.h"

#include <errno.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TICK_US INT64_C(900000)	/* a second, as the ticks come every half, and not quite evenly */
#define NS_PER_MS UINT64_C(1000000)
#define HANGS_NS UINT64_C(5000000000)	/* a call to the disk that takes longer is reported */
#define CLOSE_MS 5000
#define OPEN_MS 1000		/* the start waits so long; then the disk of a lake that is not open counts as hung */

/* Ids of a series' records that the writer has: n from ids[first] on. */
struct queue {
	uint64_t	*ids;		/* owned */
	size_t		 cap;
	size_t		 first;
	size_t		 n;
	uint64_t	 schema;	/* fingerprint of the records */
	bool		 has_schema;
};

struct file_output {
	struct output		 output;	/* first: outputs are cast */
	struct output_events	 events;
	struct event		*report;	/* owned: the writer has something to report */
	struct lake_writer	*writer;	/* owned */
	const char		*(*schema)(void *arg, uint64_t fingerprint);
	void			*schema_arg;
	void			(*on_repaired)(const struct lake_repair *repair, void *arg);
	void			*repaired_arg;
	char			*lake;		/* owned; shown in errors */
	char			*hint;		/* owned; the same */
	struct output_status	 status;
	struct lake_retention_stats lake_stats;
	int64_t			 ticked_us;	/* wall clock, of the last tick passed on */
	int			 error;		/* of the writer, as shown */
	uint64_t		 errors;	/* of the writer, counted in it */
	uint64_t		 synced_then;	/* records that were on the disk when it failed last */
	bool			 has_failed;	/* and none since */
	uint64_t		 hangs_since_ns;	/* of the call that is shown to hang; 0: none */
	bool			 is_waiting;	/* put returned -EAGAIN */
	struct queue		 queues[LAKE_SERIES];
};

/* Says why the lake cannot be written. */
static void
say_error(struct file_output *f, const struct lake_writer_state *state)
{
	const struct lake_retention_stats *lake = &f->lake_stats;
	struct output_status *s = &f->status;
	char left[FORMAT_SIZE], floor[FORMAT_SIZE];

	if (state->error == -ENOSPC && lake->is_at_floor)
		snprintf(s->error, sizeof(s->error), "disk_floor: the disk of the lake %s has %s free, of which disk_free_min "
		    "keeps %s, and the lake has no files left that may be removed: free some room there, or lower "
		    "disk_free_min", f->lake, format_bytes(lake->free_bytes, left, sizeof(left)),
		    format_bytes(lake->floor_bytes, floor, sizeof(floor)));
	else
		snprintf(s->error, sizeof(s->error), "the lake %s cannot be %s: %s%s%s", f->lake,
		    state->is_open ? "written" : "opened", strerror(-state->error),
		    state->is_open || f->hint[0] == '\0' ? "" : "; ", state->is_open ? "" : f->hint);
}

/* Updates the state, by what the writer's thread is at. */
static void
update(struct file_output *f)
{
	struct output_status *s = &f->status;
	struct lake_writer_state state;
	struct lake_writer_stats stats;
	uint64_t now_ns;

	lake_writer_state(f->writer, &state);
	now_ns = clock_ns(CLOCK_MONOTONIC);	/* after the state, whose call may have begun just now */
	lake_writer_stats(f->writer, &stats);
	lake_writer_retention(f->writer, &f->lake_stats);
	s->queued_bytes = state.queued_bytes;
	if (state.waits_for != NULL &&
	    now_ns - state.waits_since_ns >= (state.is_open ? HANGS_NS : OPEN_MS * NS_PER_MS)) {
		int64_t since_us = clock_us(CLOCK_REALTIME) - (int64_t)((now_ns - state.waits_since_ns) / 1000);
		time_t since = (time_t)(since_us / 1000000);
		char text[32] = "";
		struct tm tm;

		s->state = OUTPUT_DOWN;
		if (f->hangs_since_ns == state.waits_since_ns)
			return;
		f->hangs_since_ns = state.waits_since_ns;
		s->error_us = since_us;
		if (gmtime_r(&since, &tm) != NULL)
			strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
		snprintf(s->error, sizeof(s->error), "the disk of the lake %s has not answered since %s (%s)", f->lake, text,
		    state.waits_for);
		return;
	}
	f->hangs_since_ns = 0;
	if (state.error < 0) {
		s->state = OUTPUT_DOWN;
		if (f->error != state.error || stats.errors != f->errors) {
			s->error_us = clock_us(CLOCK_REALTIME);
			say_error(f, &state);
		}
		f->synced_then = stats.synced;
		f->has_failed = true;
	} else if (stats.synced > f->synced_then) {
		/* Not before: after a failed sync, what is recalled and written again shows nothing of the disk. */
		s->state = OUTPUT_UP;
		f->has_failed = false;
	} else if (s->state == OUTPUT_DOWN && !f->has_failed) {
		s->state = OUTPUT_STARTING;
	}
	f->error = state.error;
	f->errors = stats.errors;
}

static void
on_synced(unsigned series, uint64_t records, void *arg)
{
	struct file_output *f = arg;
	struct queue *q = &f->queues[series];
	const enum topic topic = series % TOPIC_COUNT;

	f->status.delivered += records;
	f->status.in_flight -= records;
	for (; records > 0; records--, q->n--)
		f->events.delivered(topic, q->ids[q->first++], f->events.arg);
}

static void
on_given_back(unsigned series, uint64_t records, void *arg)
{
	struct file_output *f = arg;
	struct queue *q = &f->queues[series];
	const enum topic topic = series % TOPIC_COUNT;

	update(f);	/* the error may be as new as the news */
	f->status.in_flight -= records;
	for (; records > 0; records--, q->n--) {
		struct spool_record r = { .id = q->ids[q->first++], .topic = topic };

		f->events.failed(&r, OUTPUT_AGAIN, "not_synced", f->status.error, f->events.arg);
	}
}

static void
on_repaired(const struct lake_repair *repair, void *arg)
{
	struct file_output *f = arg;

	if (f->on_repaired != NULL)
		f->on_repaired(repair, f->repaired_arg);
}

static void
report(struct file_output *f)
{
	update(f);
	lake_writer_report(f->writer);
	for (unsigned t = 0; t < LAKE_SERIES; t++) {
		if (f->queues[t].n == 0)
			f->queues[t].first = 0;
	}
	if (f->is_waiting) {
		f->is_waiting = false;
		f->events.ready(f->events.arg);
	}
}

static void
on_report(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	report(arg);
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
		return errno == ENOENT ? -ENOKEY : -EAGAIN;
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
	struct encoded_record record = { .topic = r->topic, .time_us = r->time_us, .seq = r->seq, .key = r->key,
		.data = r->data, .len = r->len, .user = r->user, .is_over = lake_writer_is_over(f->writer, &r->user) };
	struct queue *q = &f->queues[lake_series(&record)];
	int error;

	error = use_schema(f, r);
	if (error == -ENOKEY) {
		*reason = "schema_unknown";
		return error;
	}
	if (error == 0)
		error = reserve(q);
	if (error == 0)
		error = lake_writer_put(f->writer, &record);
	if (error == 0) {
		q->ids[q->first + q->n++] = r->id;
		f->status.in_flight++;
		return 0;
	}
	if (error == -EMSGSIZE) {
		*reason = "msg_size_too_large";
		return error;
	}
	f->is_waiting = true;	/* until the thread has taken the queue, or the next tick */
	return -EAGAIN;
}

/* Not from within a method of the output: callbacks come from the loop. */
static void
wake_report(struct file_output *f)
{
	event_active(f->report, EV_READ, 0);
}

static void
flush(struct file_output *f, int64_t now_us)
{
	f->ticked_us = now_us;
	lake_writer_tick(f->writer, now_us);
}

static void
on_tick(struct output *o, int64_t now_us)
{
	struct file_output *f = (struct file_output *)o;

	update(f);
	/* Blocks are written and synced only once a second: small ones compress badly, and each sync costs the disk. */
	if (now_us - f->ticked_us >= TICK_US || now_us < f->ticked_us)
		flush(f, now_us);
	if (f->is_waiting)
		wake_report(f);
}

static void
on_flush(struct output *o)
{
	flush((struct file_output *)o, clock_us(CLOCK_REALTIME));
}

static void
on_recall(struct output *o)
{
	lake_writer_recall(((struct file_output *)o)->writer);
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
	if (f->report != NULL)
		event_free(f->report);
	/* It reports the last blocks too, or the next agent would write them again. */
	lake_writer_close(f->writer, f->hangs_since_ns != 0 ? 0 : CLOSE_MS);
	for (unsigned t = 0; t < LAKE_SERIES; t++)
		free(f->queues[t].ids);
	free(f->lake);
	free(f->hint);
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
    const struct output_events *events, struct output **ret)
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
	f->on_repaired = writer.on_repaired;
	f->repaired_arg = writer.arg;
	f->status.kind = "files";
	f->status.lake = &f->lake_stats;
	f->lake = strdup(writer.appender.lake != NULL ? writer.appender.lake : "");
	f->hint = strdup(o->hint != NULL ? o->hint : "");
	if (f->lake == NULL || f->hint == NULL)
		goto fail;
	writer.open_wait_ms = OPEN_MS;
	writer.on_synced = on_synced;
	writer.on_given_back = on_given_back;
	writer.on_repaired = on_repaired;
	writer.arg = f;
	r = lake_writer_open(&writer, &f->writer);
	if (r < 0)
		goto fail;
	r = -ENOMEM;
	f->report = event_new(base, lake_writer_fd(f->writer), EV_READ | EV_PERSIST, on_report, f);
	if (f->report == NULL || event_add(f->report, NULL) < 0)
		goto fail;
	update(f);
	*ret = &f->output;
	return 0;

fail:
	on_close(&f->output);
	return r;
}
