/*
 * SPDX-License-Identifier: Apache-2.0
 * delivery_kit: a delivery with a spool of its own and an output that a test controls.
 */
#ifndef SLUICE_TESTS_UNIT_DELIVERY_KIT_H
#define SLUICE_TESTS_UNIT_DELIVERY_KIT_H

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "samples.h"
#include "deliver/dead_letter.h"
#include "deliver/delivery.h"
#include "codec/encode.h"
#include "timers.h"

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

enum {
	HELD_MAX = 10000,
};

/* An output that a test controls. */
struct fake {
	struct output output;
	struct output_events events;
	struct spool_record held[HELD_MAX];	/* records that were put and not answered, without their data */
	size_t n;
	size_t capacity;
	uint64_t seen[HELD_MAX];	/* seq of each record that was put, in order */
	bool again[HELD_MAX];
	size_t n_seen;
	bool refuses;		/* the next put refuses its record for good */
	const char *waits[TOPIC_COUNT];	/* put takes no record of the topic now, for this reason */
	size_t taken[TOPIC_COUNT];	/* records that put took */
	bool is_recalling;
	unsigned tried;		/* calls of put */
	int64_t ticked_us;	/* time of the last tick */
	unsigned recalled, flushed, closed;
};

static char spool_dir[64], dead_dir[80];
static struct event_base *base;
static struct spool *spool;
static struct dead_letters *dead;
static struct delivery *delivery;
static struct fake *fake;
static uint64_t next_seq[TOPIC_COUNT];
static bool is_sync_first;	/* for the next setup() */

static inline int
on_put(struct output *o, const struct spool_record *r, const char **reason)
{
	struct fake *f = (struct fake *)o;

	f->tried++;
	if (f->n >= f->capacity || f->is_recalling)
		return -EAGAIN;
	if (f->waits[r->topic] != NULL) {
		*reason = f->waits[r->topic];
		return -EAGAIN;
	}
	f->taken[r->topic]++;
	if (f->refuses) {
		f->refuses = false;
		*reason = "never_ever";
		return -EMSGSIZE;
	}
	f->again[f->n_seen] = r->is_again;
	f->seen[f->n_seen++] = r->seq;
	f->held[f->n] = *r;
	f->held[f->n].data = f->held[f->n].key = NULL;	/* owned by the spool, and invalid after put */
	f->n++;
	return 0;
}

static inline void
on_tick(struct output *o, int64_t now_us)
{
	((struct fake *)o)->ticked_us = now_us;
}

static inline void
on_flush(struct output *o)
{
	((struct fake *)o)->flushed++;
}

static inline void
on_recall(struct output *o)
{
	struct fake *f = (struct fake *)o;

	f->recalled++;
	f->is_recalling = true;
}

static inline void
on_status(const struct output *o, struct output_status *ret)
{
	(void)o;
	*ret = (struct output_status){ .kind = "fake" };
}

static inline void
on_close(struct output *o)
{
	((struct fake *)o)->closed++;
}

static const struct output_ops ops = { on_put, on_tick, on_flush, on_recall, on_status, on_close };

/* Removes the i-th record that the output holds, and returns it. */
static inline struct spool_record
take(size_t i)
{
	struct spool_record r = fake->held[i];

	memmove(&fake->held[i], &fake->held[i + 1], (fake->n - i - 1) * sizeof(r));
	fake->n--;
	return r;
}

static inline void
deliver(size_t i)
{
	struct spool_record r = take(i);

	fake->events.delivered(r.topic, r.id, fake->events.arg);
}

static inline void
deliver_all(void)
{
	while (fake->n > 0)
		deliver(0);
}

static inline void
fail_one(size_t i, enum output_failure failure, const char *reason)
{
	struct spool_record r = take(i);

	r.key = "h:r";
	r.data = "abc";
	r.len = 3;
	fake->events.failed(&r, failure, reason, "a sentence", fake->events.arg);
}

static inline void
give_all_back(void)
{
	while (fake->n > 0)
		fail_one(0, OUTPUT_AGAIN, "recalled");
	fake->is_recalling = false;
}

static inline void
turn(void)
{
	event_base_loop(base, EVLOOP_NONBLOCK);
}

/* Runs the loop for ms, such as until the pause after a rewind is over. */
static inline void
turn_for(unsigned ms)
{
	struct timeval tv = { 0, ms * 1000 };

	event_base_loopexit(base, &tv);
	event_base_dispatch(base);
}

static inline void
put(enum topic topic, unsigned n)
{
	struct spool *s = spool;

	for (unsigned i = 0; i < n; i++)
		assert_int_equal(spool_put(s, &(struct encoded_record){ topic, SAMPLE_TIME, next_seq[topic]++, "h:r", "abc", 3 }), 0);
	assert_int_equal(spool_commit(spool, NULL, next_seq), 0);
	delivery_wake(delivery);
}

static inline struct delivery_stats
stats(void)
{
	struct delivery_stats s;

	delivery_stats(delivery, &s);
	return s;
}

static inline uint64_t
waiting(void)
{
	struct spool_stats s;

	spool_stats(spool, &s);
	return s.records;
}

/* Ticks until all dead letters are synced, and their records are released. */
static inline void
settle_letters(void)
{
	for (int i = 0; i < 10000 && stats().in_flight > fake->n; i++) {
		delivery_tick(delivery, SAMPLE_TIME);
		turn_for(1);
	}
	assert_int_equal(stats().in_flight, fake->n);
}

static inline int
setup(void **state)
{
	struct spool_options spool_options = { .dir = spool_dir, .sync_ms = 100, .is_sync_first = is_sync_first };
	struct delivery_options o = { .per_turn = 100, .pause_min_ms = 20, .pause_max_ms = 50 };
	struct spool_recovery recovery;
	char error[256];

	(void)state;
	assert_non_null(sample_folder(spool_dir));
	snprintf(dead_dir, sizeof(dead_dir), "%s/dead", spool_dir);
	for (int t = 0; t < TOPIC_COUNT; t++)
		spool_options.schemas[t] = encode_schema(t, NULL);
	memset(next_seq, 0, sizeof(next_seq));
	base = event_base_new();
	timers = (struct timers){ 0 };
	assert_int_equal(spool_open(&spool_options, &spool, &recovery, error, sizeof(error)), 0);
	assert_int_equal(dead_letters_open(dead_dir, 2000, 0, &dead), 0);
	o.dead = dead;
	fake = calloc(1, sizeof(*fake));
	fake->output.ops = &ops;
	fake->capacity = HELD_MAX;
	assert_int_equal(delivery_open(base, spool, &o, &fake->events, &delivery), 0);
	delivery_set_output(delivery, &fake->output);
	return 0;
}

static inline int
teardown(void **state)
{
	(void)state;
	delivery_close(delivery);
	assert_int_equal(fake->closed, 1);
	free(fake);
	dead_letters_close(dead);
	spool_close(spool);
	event_base_free(base);
	sample_remove(spool_dir);
	return 0;
}

/* Sets *arg, an int, to 1 where the spool is empty, to 2 on a timeout. */
static inline void
on_drained(bool is_empty, void *arg)
{
	*(int *)arg = is_empty ? 1 : 2;
}

#endif
