/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "faults.h"
#include "samples.h"
#include "stream/dead_letter.h"
#include "stream/delivery.h"
#include "stream/encode.h"
#include "stream/sink.h"
#include "timers.h"

enum {
	HELD_MAX = 10000,
};

/* An outlet that does with its records what a test says. */
struct fake {
	struct outlet outlet;
	struct outlet_events events;
	struct spool_record held[HELD_MAX];	/* taken and not answered; without their data */
	size_t n;
	size_t capacity;
	uint64_t seen[HELD_MAX];	/* the seq of each that was taken, in order */
	bool again[HELD_MAX];
	size_t n_seen;
	bool refuses;		/* the next put says never */
	bool is_giving_back;
	unsigned tried;		/* puts */
	int64_t ticked_us;	/* of the last tick */
	unsigned given_back, hurried, closed;
};

static char dir[64], dead_dir[80];
static struct event_base *base;
static struct spool *spool;
static struct dead_letters *dead;
static struct delivery *delivery;
static struct fake *fake;
static uint64_t next_seq[TOPIC_COUNT];
static bool is_sync_first;	/* for the next setup() */

static int
on_put(struct outlet *o, const struct spool_record *r, const char **reason)
{
	struct fake *f = (struct fake *)o;

	f->tried++;
	if (f->n >= f->capacity || f->is_giving_back)
		return -EAGAIN;
	if (f->refuses) {
		f->refuses = false;
		*reason = "never_ever";
		return -EMSGSIZE;
	}
	f->again[f->n_seen] = r->is_again;
	f->seen[f->n_seen++] = r->seq;
	f->held[f->n] = *r;
	f->held[f->n].data = f->held[f->n].key = NULL;	/* the spool's, and good no longer */
	f->n++;
	return 0;
}

static void
on_tick(struct outlet *o, int64_t now_us)
{
	((struct fake *)o)->ticked_us = now_us;
}

static void
on_hurry(struct outlet *o)
{
	((struct fake *)o)->hurried++;
}

static void
on_give_back(struct outlet *o)
{
	struct fake *f = (struct fake *)o;

	f->given_back++;
	f->is_giving_back = true;
}

static void
on_status(const struct outlet *o, struct outlet_status *ret)
{
	(void)o;
	*ret = (struct outlet_status){ .kind = "fake" };
}

static void
on_close(struct outlet *o)
{
	((struct fake *)o)->closed++;
}

static const struct outlet_ops ops = { on_put, on_tick, on_hurry, on_give_back, on_status, on_close };

/* Takes the i-th of what the outlet holds out. */
static struct spool_record
take(size_t i)
{
	struct spool_record r = fake->held[i];

	memmove(&fake->held[i], &fake->held[i + 1], (fake->n - i - 1) * sizeof(r));
	fake->n--;
	return r;
}

static void
deliver(size_t i)
{
	struct spool_record r = take(i);

	fake->events.delivered(r.topic, r.id, fake->events.arg);
}

static void
deliver_all(void)
{
	while (fake->n > 0)
		deliver(0);
}

static void
fail_one(size_t i, enum outlet_failure failure, const char *reason)
{
	struct spool_record r = take(i);

	r.key = "h:r";
	r.data = "abc";
	r.len = 3;
	fake->events.failed(&r, failure, reason, "a sentence", fake->events.arg);
}

static void
give_all_back(void)
{
	while (fake->n > 0)
		fail_one(0, OUTLET_AGAIN, "given_back");
	fake->is_giving_back = false;
}

static void
turn(void)
{
	event_base_loop(base, EVLOOP_NONBLOCK);
}

/* Until the pause after a rewind is over. */
static void
turn_for(unsigned ms)
{
	struct timeval tv = { 0, ms * 1000 };

	event_base_loopexit(base, &tv);
	event_base_dispatch(base);
}

static void
put(enum topic topic, unsigned n)
{
	struct sink *s = spool_sink(spool);

	for (unsigned i = 0; i < n; i++)
		assert_int_equal(s->ops->put(s, topic, SAMPLE_TIME, next_seq[topic]++, "h:r", "abc", 3), 0);
	assert_int_equal(spool_commit(spool, NULL, next_seq), 0);
	delivery_kick(delivery);
}

static struct delivery_stats
stats(void)
{
	struct delivery_stats s;

	delivery_stats(delivery, &s);
	return s;
}

static uint64_t
waiting(void)
{
	struct spool_stats s;

	spool_stats(spool, &s);
	return s.records;
}

static int
setup(void **state)
{
	struct spool_options spool_options = { .dir = dir, .sync_ms = 100, .is_sync_first = is_sync_first };
	struct delivery_options o = { .per_turn = 100, .pause_min_ms = 20, .pause_max_ms = 50 };
	struct spool_recovery recovery;
	char error[256];

	(void)state;
	assert_non_null(sample_folder(dir));
	snprintf(dead_dir, sizeof(dead_dir), "%s/dead", dir);
	for (int t = 0; t < TOPIC_COUNT; t++)
		spool_options.schemas[t] = encode_schema(t, NULL);
	memset(next_seq, 0, sizeof(next_seq));
	base = event_base_new();
	timers = (struct timers){ 0 };
	assert_int_equal(spool_open(&spool_options, &spool, &recovery, error, sizeof(error)), 0);
	assert_int_equal(dead_letters_open(dead_dir, 2000, &dead), 0);
	o.dead = dead;
	fake = calloc(1, sizeof(*fake));
	fake->outlet.ops = &ops;
	fake->capacity = HELD_MAX;
	assert_int_equal(delivery_open(base, spool, &o, &fake->events, &delivery), 0);
	delivery_set_outlet(delivery, &fake->outlet);
	return 0;
}

static int
setup_sync_first(void **state)
{
	int r;

	is_sync_first = true;
	r = setup(state);
	is_sync_first = false;
	return r;
}

static int
teardown(void **state)
{
	(void)state;
	delivery_close(delivery);
	assert_int_equal(fake->closed, 1);
	free(fake);
	dead_letters_close(dead);
	spool_close(spool);
	event_base_free(base);
	sample_remove(dir);
	return 0;
}

static void
a_record_is_released_when_it_is_delivered(void **state)
{
	(void)state;
	put(TOPIC_PROGRAM, 3);
	turn();
	assert_int_equal(fake->n, 3);
	assert_int_equal(waiting(), 3);
	deliver(1);
	assert_int_equal(spool_in_flight(spool), 2);
	deliver_all();
	assert_int_equal(waiting(), 0);
	assert_int_equal(stats().delivered[TOPIC_PROGRAM], 3);
	assert_int_equal(stats().in_flight, 0);
}

static void
a_turn_of_the_loop_has_a_bound(void **state)
{
	(void)state;
	put(TOPIC_PROGRAM, 250);
	event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	assert_int_equal(fake->n, 100);
	for (int i = 0; i < 5; i++)
		turn();
	assert_int_equal(fake->n, 250);
}

/* After the last commit, when nobody kicks. */
static void
what_is_synced_later_is_handed_over_by_a_tick(void **state)
{
	uint64_t now_ns = 0;

	(void)state;
	put(TOPIC_PROGRAM, 3);
	turn();
	assert_int_equal(fake->n, 0);
	assert_true(spool_has_more(spool));
	for (int i = 0; i < 10000 && fake->n == 0; i++) {
		usleep(1000);
		spool_tick(spool, now_ns += 100000000);
		delivery_tick(delivery, 0);
		turn();
	}
	assert_int_equal(fake->n, 3);
	assert_false(spool_has_more(spool));
	deliver_all();
}

static void
a_full_outlet_is_waited_for(void **state)
{
	(void)state;
	fake->capacity = 10;
	put(TOPIC_PROGRAM, 25);
	turn();
	assert_int_equal(fake->n, 10);
	put(TOPIC_PROGRAM, 1);
	turn();
	assert_int_equal(fake->n, 10);
	deliver_all();
	fake->events.ready(fake->events.arg);
	turn();
	assert_int_equal(fake->n, 10);
	deliver_all();
	delivery_tick(delivery, 0);	/* as good as ready */
	turn();
	assert_int_equal(fake->n, 6);
	for (uint64_t i = 0; i < 26; i++)
		assert_int_equal(fake->seen[i], i);
}

static void
after_a_failure_all_comes_again_in_order_and_marked(void **state)
{
	(void)state;
	put(TOPIC_PROGRAM, 6);
	turn();
	deliver(0);		/* 0 */
	deliver(3);		/* 4 */
	fail_one(1, OUTLET_AGAIN, "msg_timed_out");	/* 2 */
	turn();
	assert_int_equal(fake->given_back, 1);
	put(TOPIC_PROGRAM, 1);
	turn();
	assert_int_equal(fake->n_seen, 6);	/* nothing more meanwhile */
	give_all_back();
	turn();
	assert_int_equal(stats().rewinds, 1);
	assert_int_equal(fake->n, 0);		/* it pauses first */
	turn_for(60);
	assert_int_equal(fake->n, 5);
	{
		const uint64_t want[] = { 1, 2, 3, 5, 6 };

		for (int i = 0; i < 5; i++) {
			assert_int_equal(fake->seen[6 + i], want[i]);
			assert_int_equal(fake->again[6 + i], want[i] != 6);
		}
	}
	assert_int_equal(stats().redelivered[TOPIC_PROGRAM], 4);
	assert_string_equal(stats().failure, "msg_timed_out: a sentence");
	deliver_all();
	assert_int_equal(waiting(), 0);
}

static void
what_can_never_be_delivered_is_a_dead_letter(void **state)
{
	(void)state;
	fake->refuses = true;
	put(TOPIC_PROGRAM, 3);
	turn();
	assert_int_equal(fake->n, 2);
	fail_one(0, OUTLET_NEVER, "invalid_record");
	assert_int_equal(fake->given_back, 0);
	deliver_all();
	assert_int_equal(waiting(), 0);
	assert_int_equal(stats().n_dead, 2);
	assert_string_equal(stats().dead[0].reason, "never_ever");
	assert_string_equal(stats().dead[1].reason, "invalid_record");
	assert_int_equal(stats().dead[1].count[TOPIC_PROGRAM], 1);
	assert_true(dead_letters_bytes(dead) > 0);
	assert_int_equal(stats().lost_full[TOPIC_PROGRAM], 0);
	assert_int_equal(stats().lost_unwritable[TOPIC_PROGRAM], 0);
}

static void
dead_letters_beyond_the_bound_are_counted_as_lost(void **state)
{
	uint64_t lost;

	(void)state;
	put(TOPIC_PROGRAM, 60);
	turn();
	while (fake->n > 0)
		fail_one(0, OUTLET_NEVER, "invalid_record");
	lost = stats().lost_full[TOPIC_PROGRAM];
	assert_true(lost > 0 && lost <= 60);
	assert_int_equal(stats().dead[0].count[TOPIC_PROGRAM], 60);
	assert_int_equal(waiting(), 0);
}

static void
many_reasons_end_in_other(void **state)
{
	uint64_t n = 0;

	(void)state;
	put(TOPIC_PROGRAM, 40);
	turn();
	for (int i = 0; i < 40; i++) {
		char reason[16];

		snprintf(reason, sizeof(reason), "reason_%d", i);
		fail_one(0, OUTLET_NEVER, reason);
	}
	assert_int_equal(stats().n_dead, DELIVERY_REASONS);
	assert_string_equal(stats().dead[DELIVERY_REASONS - 1].reason, "other");
	for (int i = 0; i < DELIVERY_REASONS; i++)
		n += stats().dead[i].count[TOPIC_PROGRAM];
	assert_int_equal(n, 40);
}

static int drained;	/* 1: empty, 2: out of time */

static void
on_drained(bool is_empty, void *arg)
{
	*(int *)arg = is_empty ? 1 : 2;
}

static void
a_drain_ends_when_all_is_delivered(void **state)
{
	(void)state;
	drained = 0;
	put(TOPIC_PROGRAM, 250);
	delivery_drain(delivery, 5000, on_drained, &drained);
	assert_true(fake->hurried > 0);
	for (int i = 0; i < 5; i++)
		turn();
	assert_int_equal(drained, 0);
	deliver_all();
	turn();
	assert_int_equal(drained, 1);
}

static void
a_drain_of_nothing_ends_at_once(void **state)
{
	(void)state;
	drained = 0;
	turn();
	delivery_drain(delivery, 5000, on_drained, &drained);
	assert_int_equal(drained, 0);	/* never from within the call */
	turn();
	assert_int_equal(drained, 1);
}

static void
a_drain_has_an_end(void **state)
{
	(void)state;
	drained = 0;
	put(TOPIC_PROGRAM, 2);
	delivery_drain(delivery, 30, on_drained, &drained);
	turn_for(80);
	assert_int_equal(drained, 2);
	assert_int_equal(waiting(), 2);
}

static void
a_drain_outlives_a_failure(void **state)
{
	(void)state;
	drained = 0;
	put(TOPIC_PROGRAM, 4);
	delivery_drain(delivery, 5000, on_drained, &drained);
	turn();
	fail_one(0, OUTLET_AGAIN, "msg_timed_out");
	turn();
	give_all_back();
	turn();
	assert_int_equal(drained, 0);
	turn_for(60);
	assert_int_equal(fake->n, 4);
	deliver_all();
	turn();
	assert_int_equal(drained, 1);
}

static void
a_turns_share_is_what_was_asked_for_or_two_thousand(void **state)
{
	static const struct {
		unsigned per_turn;
		size_t want;
	} cases[] = { { 1, 1 }, { 0, 2000 } };

	(void)state;
	put(TOPIC_PROGRAM, 2500);
	for (size_t i = 0; i < 2; i++) {
		struct delivery_options o = { .per_turn = cases[i].per_turn };

		delivery_close(delivery);
		fake->closed = 0;
		fake->n = 0;
		spool_rewind(spool);
		assert_int_equal(delivery_open(base, spool, &o, &fake->events, &delivery), 0);
		delivery_set_outlet(delivery, &fake->outlet);
		event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
		assert_int_equal(fake->n, cases[i].want);
	}
	deliver_all();
}

static void
each_failure_asks_for_all_back_once(void **state)
{
	(void)state;
	put(TOPIC_PROGRAM, 3);
	turn();
	for (unsigned round = 1; round <= 3; round++) {
		assert_int_equal(fake->n, 3);
		fail_one(0, OUTLET_AGAIN, "msg_timed_out");
		for (int i = 0; i < 3; i++)
			turn();
		assert_int_equal(fake->given_back, round);
		assert_int_equal(stats().rewinds, round - 1);	/* not while it has some */
		give_all_back();
		turn();
		assert_int_equal(stats().rewinds, round);
		assert_int_equal(stats().in_flight, 0);
		assert_int_equal(stats().redelivered[TOPIC_PROGRAM], 3 * (round - 1));
		turn();
		assert_int_equal(fake->n, 0);			/* a pause first */
		for (int i = 0; i < 200 && fake->n < 3; i++)
			turn_for(5);
	}
	assert_int_equal(stats().redelivered[TOPIC_PROGRAM], 9);
	assert_non_null(strstr(stats().failure, "msg_timed_out: a sentence"));
	assert_true(stats().failure_us > 0);
	deliver_all();
	assert_int_equal(stats().delivered[TOPIC_PROGRAM], 3);
	assert_int_equal(waiting(), 0);
}

/* Milliseconds from a failure until it is tried again. */
static int64_t
pause_after_a_failure(void)
{
	int64_t began = clock_us(CLOCK_MONOTONIC);

	fail_one(0, OUTLET_AGAIN, "again");
	turn();
	give_all_back();
	for (int i = 0; i < 2000 && fake->n == 0; i++)
		turn_for(1);
	assert_int_equal(fake->n, 1);
	return (clock_us(CLOCK_MONOTONIC) - began) / 1000;
}

static void
pauses_grow_until_one_is_delivered(void **state)
{
	(void)state;
	put(TOPIC_PROGRAM, 1);
	turn();
	/* No less than these, by a clock as coarse as libevent's; how much more is the machine's. */
	assert_true(pause_after_a_failure() >= 15);
	assert_true(pause_after_a_failure() >= 35);
	assert_true(pause_after_a_failure() >= 44);
	assert_true(pause_after_a_failure() >= 44);
	deliver_all();
	put(TOPIC_PROGRAM, 1);
	turn();
	assert_true(pause_after_a_failure() >= 15);
	assert_true(pause_after_a_failure() >= 35);
}

static void
without_a_folder_for_dead_letters_they_are_lost_and_counted(void **state)
{
	struct delivery_options o = { .per_turn = 100 };
	struct delivery *other;

	(void)state;
	delivery_close(delivery);
	fake->closed = 0;
	assert_int_equal(delivery_open(base, spool, &o, &fake->events, &other), 0);
	delivery_set_outlet(other, &fake->outlet);
	delivery = other;
	put(TOPIC_PROGRAM, 1);
	put(TOPIC_FINDING, 2);
	turn();
	fail_one(0, OUTLET_NEVER, "invalid_record");
	fail_one(0, OUTLET_NEVER, "invalid_record");
	assert_int_equal(stats().lost_unwritable[TOPIC_PROGRAM], 1);
	assert_int_equal(stats().lost_unwritable[TOPIC_FINDING], 1);
	assert_int_equal(stats().lost_full[TOPIC_FINDING], 0);
	assert_int_equal(stats().n_dead, 1);
	assert_int_equal(stats().dead[0].count[TOPIC_FINDING], 1);
	assert_int_equal(stats().in_flight, 1);
	assert_int_equal(waiting(), 1);
	deliver_all();
}

static void
nothing_happens_before_there_is_an_outlet(void **state)
{
	struct delivery_options o = { .per_turn = 100 };
	struct outlet_events events;
	struct delivery *other;

	(void)state;
	drained = 0;
	assert_int_equal(delivery_open(base, spool, &o, &events, &other), 0);
	put(TOPIC_PROGRAM, 1);
	turn();
	deliver_all();
	delivery_kick(other);
	delivery_tick(other, 0);
	turn();
	delivery_drain(other, 30, on_drained, &drained);
	turn();
	assert_int_equal(drained, 0);
	for (int i = 0; i < 200 && drained == 0; i++)
		turn_for(10);
	assert_int_equal(drained, 2);
	delivery_close(other);
	delivery_close(NULL);
}

static void
a_drain_hurries_at_each_tick_and_is_told_once(void **state)
{
	unsigned hurried;

	(void)state;
	drained = 0;
	delivery_tick(delivery, 0);
	assert_int_equal(fake->hurried, 0);
	put(TOPIC_PROGRAM, 1);
	turn();
	delivery_drain(delivery, 20, on_drained, &drained);
	hurried = fake->hurried;
	delivery_tick(delivery, 1234);
	assert_int_equal(fake->ticked_us, 1234);
	assert_int_equal(fake->hurried, hurried + 1);
	turn();
	deliver_all();
	turn();
	assert_int_equal(drained, 1);
	drained = 0;
	turn_for(60);			/* beyond its deadline */
	delivery_tick(delivery, 0);
	turn();
	assert_int_equal(drained, 0);
	assert_int_equal(fake->hurried, hurried + 1);
}

static void
a_record_that_can_never_go_ends_a_drain_too(void **state)
{
	(void)state;
	drained = 0;
	put(TOPIC_PROGRAM, 2);
	turn();
	delivery_drain(delivery, 5000, on_drained, &drained);
	turn();
	deliver(0);
	fail_one(0, OUTLET_NEVER, "invalid_record");
	turn();
	assert_int_equal(drained, 1);
	assert_int_equal(fake->given_back, 0);
}

static void
a_full_outlet_is_asked_again_at_a_tick(void **state)
{
	(void)state;
	fake->capacity = 1;
	put(TOPIC_PROGRAM, 3);
	turn();
	assert_int_equal(fake->n, 1);
	fake->capacity = HELD_MAX;
	delivery_kick(delivery);
	turn();
	assert_int_equal(fake->n, 1);		/* it said not now */
	delivery_tick(delivery, 0);		/* in case that it forgot to say when */
	turn();
	assert_int_equal(fake->n, 3);
	deliver_all();
}

static void
a_hurry_hands_over_what_waits_and_hastens_the_outlet(void **state)
{
	struct sink *s = spool_sink(spool);

	(void)state;
	turn();
	assert_int_equal(s->ops->put(s, TOPIC_PROGRAM, SAMPLE_TIME, next_seq[TOPIC_PROGRAM]++, "h:r", "abc", 3), 0);
	assert_int_equal(spool_commit(spool, NULL, next_seq), 0);	/* and nobody kicks */
	turn();
	assert_int_equal(fake->n, 0);
	delivery_hurry(delivery);
	assert_int_equal(fake->hurried, 1);
	turn();
	assert_int_equal(fake->n, 1);
	deliver_all();
}

static void
a_drain_waits_for_the_last_that_is_on_its_way(void **state)
{
	(void)state;
	drained = 0;
	put(TOPIC_PROGRAM, 1);
	turn();
	delivery_drain(delivery, 5000, on_drained, &drained);
	put(TOPIC_PROGRAM, 3);		/* these are for the next owner */
	for (int i = 0; i < 3; i++)
		turn();
	assert_int_equal(fake->n, 1);
	assert_int_equal(drained, 0);
	deliver_all();
	turn();
	assert_int_equal(drained, 1);
	assert_int_equal(waiting(), 3);
}

/* Another delivery, of these options, in place of the one that setup() has made. */
static void
open_anew(const struct delivery_options *o)
{
	delivery_close(delivery);
	fake->closed = 0;
	fake->n = 0;
	spool_rewind(spool);
	assert_int_equal(delivery_open(base, spool, o, &fake->events, &delivery), 0);
	timers.arg = delivery;
	delivery_set_outlet(delivery, &fake->outlet);
}

static void
pauses_are_those_of_the_options_to_the_millisecond(void **state)
{
	static const struct {
		uint32_t min_ms, max_ms;
		int64_t want_ms[6];
	} cases[] = {
		{ 0, 0, { 100, 200, 400, 800, 1600, 3200 } },
		{ 1, 1, { 1, 1, 1, 1, 1, 1 } },
		{ 1, 9, { 1, 2, 4, 8, 9, 9 } },
		{ 1999, 100000, { 1999, 3998, 7996, 15992, 31984, 63968 } },
		{ 3000, 6000, { 3000, 6000, 6000, 6000, 6000, 6000 } },
		{ 0, 1, { 100, 1, 1, 1, 1, 1 } },
		{ 1600, 0, { 1600, 3200, 5000, 5000, 5000, 5000 } },
	};

	(void)state;
	put(TOPIC_PROGRAM, 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct delivery_options o = { .pause_min_ms = cases[i].min_ms, .pause_max_ms = cases[i].max_ms };

		open_anew(&o);
		timers.over_at_once = SIZE_MAX;
		turn();
		for (int n = 0; n < 7; n++) {
			assert_int_equal(fake->n, 1);
			timers.n = 0;
			fail_one(0, OUTLET_AGAIN, "again");
			turn();
			give_all_back();
			/* At once to give back, then after the pause. */
			assert_int_equal(timers.n, 2);
			assert_int_equal(timers.waits_us[0], 0);
			assert_int_equal(timers.waits_us[1], cases[i].want_ms[n % 6] * 1000);
			fake->events.ready(fake->events.arg);
			turn();
			if (n == 5) {		/* a delivery, and they begin anew */
				deliver_all();
				put(TOPIC_PROGRAM, 1);
				turn();
			}
		}
	}
	deliver_all();
	timers.arg = NULL;
}

static void
a_drain_has_its_time_to_the_millisecond(void **state)
{
	static const uint32_t times_ms[] = { 1, 999, 1000, 1001, 5000, 5999, 123456 };

	(void)state;
	put(TOPIC_PROGRAM, 1);
	turn();
	timers.arg = delivery;
	for (size_t i = 0; i < sizeof(times_ms) / sizeof(times_ms[0]); i++) {
		timers.n = 0;
		delivery_drain(delivery, times_ms[i], on_drained, &drained);
		assert_int_equal(timers.waits_us[0], (int64_t)times_ms[i] * 1000);
	}
	timers.arg = NULL;
	deliver_all();
}

/* The last failure is of the record that is given up, with what is counted of it. */
static void
what_is_given_up_is_the_last_failure(void **state)
{
	(void)state;
	put(TOPIC_PROGRAM, 3);
	turn();
	assert_string_equal(stats().failure, "");
	assert_int_equal(stats().failure_us, 0);
	fail_one(0, OUTLET_NEVER, "invalid_record");
	assert_string_equal(stats().failure, "invalid_record: a sentence");
	assert_true(stats().failure_us > 0);
	assert_int_equal(stats().in_flight, 2);
	assert_int_equal(stats().rewinds, 0);
	assert_int_equal(stats().n_dead, 1);
	fail_one(0, OUTLET_NEVER, "invalid_timestamp");
	assert_string_equal(stats().failure, "invalid_timestamp: a sentence");
	deliver_all();
	fake->refuses = true;
	put(TOPIC_PROGRAM, 1);
	turn();
	assert_memory_equal(stats().failure, "never_ever: ", 12);
	assert_int_equal(stats().in_flight, 0);
}

/* As many as are told apart, and one more. */
static void
the_last_place_for_a_reason_is_for_all_others(void **state)
{
	(void)state;
	put(TOPIC_PROGRAM, DELIVERY_REASONS + 2);
	turn();
	for (int i = 0; i < DELIVERY_REASONS + 2; i++) {
		char reason[16];

		snprintf(reason, sizeof(reason), "reason_%d", i);
		fail_one(0, OUTLET_NEVER, reason);
		assert_int_equal(stats().n_dead, i < DELIVERY_REASONS ? i + 1 : DELIVERY_REASONS);
		if (i < DELIVERY_REASONS - 1)
			assert_string_equal(stats().dead[i].reason, reason);
	}
	for (int i = 0; i < DELIVERY_REASONS; i++)
		assert_int_equal(stats().dead[i].count[TOPIC_PROGRAM], i < DELIVERY_REASONS - 1 ? 1 : 3);
	assert_string_equal(stats().dead[DELIVERY_REASONS - 1].reason, "other");
}

/* It has said not now, or gives back: each put more would be in vain. */
static void
an_outlet_that_takes_nothing_is_not_asked_to(void **state)
{
	(void)state;
	fake->capacity = 2;
	put(TOPIC_PROGRAM, 4);
	turn();
	assert_int_equal(fake->tried, 3);
	drained = 0;
	delivery_drain(delivery, 3600000, on_drained, &drained);
	turn();
	assert_int_equal(fake->tried, 3);
	fake->events.ready(fake->events.arg);
	fail_one(0, OUTLET_AGAIN, "msg_timed_out");
	turn();
	assert_int_equal(fake->given_back, 1);
	fake->events.ready(fake->events.arg);
	turn();
	assert_int_equal(fake->tried, 3);
	give_all_back();
	turn();
	assert_int_equal(drained, 0);
	/* Once all is back there is room again, whether the outlet says so or not. */
	for (int i = 0; i < 2000 && fake->n == 0; i++)
		turn_for(5);
	assert_int_equal(fake->n, 2);
	deliver_all();
	fake->events.ready(fake->events.arg);
	turn();
	deliver_all();
	turn();
	assert_int_equal(drained, 1);
}

static void
a_pause_ends_what_the_outlet_said_before_it(void **state)
{
	(void)state;
	fake->capacity = 2;
	put(TOPIC_PROGRAM, 3);
	turn();
	assert_int_equal(fake->n, 2);
	fail_one(0, OUTLET_AGAIN, "msg_timed_out");
	turn();
	give_all_back();
	turn();
	assert_int_equal(stats().rewinds, 1);
	/* Nobody says that it is ready, and no tick comes. */
	for (int i = 0; i < 2000 && fake->n == 0; i++)
		turn_for(5);
	assert_int_equal(fake->n, 2);
	deliver_all();
}

static void
without_memory_it_does_not_open(void **state)
{
	struct delivery_options o = { .per_turn = 100 };
	struct outlet_events events = { 0 };
	struct delivery *other = NULL;
	unsigned n;

	(void)state;
	for (n = 0; n < 100; n++) {
		int opened;

		fault = (struct fault){ .calls = FAULT_MEMORY | FAULT_LIBRARY, .skip = n, .times = 1, .error = ENOMEM };
		opened = delivery_open(base, spool, &o, &events, &other);
		fault.calls = 0;
		if (fault.hit == 0)
			break;
		assert_int_equal(opened, -ENOMEM);
		assert_null(other);
		assert_null(events.delivered);
	}
	assert_int_equal(n, 3);
	assert_non_null(other);
	delivery_close(other);
}

/* The outlet gives back what it can; the rest it has sent, and hears so. */
static void
what_is_delivered_while_the_rest_is_given_back_ends_that_too(void **state)
{
	(void)state;
	put(TOPIC_PROGRAM, 3);
	turn();
	fail_one(0, OUTLET_AGAIN, "msg_timed_out");
	turn();
	assert_int_equal(fake->given_back, 1);
	fail_one(0, OUTLET_AGAIN, "given_back");
	turn();
	assert_int_equal(stats().rewinds, 0);
	deliver_all();
	fake->is_giving_back = false;
	turn();
	assert_int_equal(stats().rewinds, 1);
	turn_for(60);
	assert_int_equal(fake->n, 2);
	deliver_all();
	assert_int_equal(waiting(), 0);
}

/* Each time that it is woken costs a program's time. */
static void
it_is_woken_for_work_only(void **state)
{
	(void)state;
	for (int is_given_up = 0; is_given_up < 2; is_given_up++) {
		put(TOPIC_PROGRAM, 2);
		turn();
		timers.arg = delivery;
		deliver(0);
		if (is_given_up)
			fail_one(0, OUTLET_NEVER, "invalid_record");
		deliver_all();
		delivery_kick(delivery);
		delivery_tick(delivery, 0);
		assert_int_equal(timers.n, 0);
		timers.arg = NULL;
	}
}

static void
without_memory_for_a_timer_it_goes_on_at_a_tick(void **state)
{
	(void)state;
	put(TOPIC_PROGRAM, 2);
	turn();
	timers.arg = delivery;
	deliver_all();
	/* When there is more, */
	timers.fails = 1;
	put(TOPIC_PROGRAM, 2);
	turn();
	assert_int_equal(fake->n, 0);
	delivery_tick(delivery, 0);
	turn();
	assert_int_equal(fake->n, 2);
	/* when one has failed, */
	timers.fails = 1;
	fail_one(0, OUTLET_AGAIN, "msg_timed_out");
	turn();
	assert_int_equal(fake->given_back, 0);
	delivery_tick(delivery, 0);
	turn();
	assert_int_equal(fake->given_back, 1);
	/* and for the pause after that. */
	give_all_back();
	timers.fails = 1;
	turn();
	assert_int_equal(timers.fails, 0);
	assert_int_equal(stats().rewinds, 1);
	assert_int_equal(fake->n, 0);
	delivery_tick(delivery, 0);
	turn();
	assert_int_equal(fake->n, 2);
	deliver_all();
	assert_int_equal(waiting(), 0);
}

static void
a_drain_that_cannot_be_timed_ends_at_once(void **state)
{
	(void)state;
	drained = 0;
	put(TOPIC_PROGRAM, 2);
	turn();
	timers.arg = delivery;
	timers.fails = 1;
	delivery_drain(delivery, 3600000, on_drained, &drained);
	assert_int_equal(timers.fails, 0);
	assert_int_equal(drained, 0);	/* never from within the call */
	turn();
	assert_int_equal(drained, 2);
	deliver_all();
	drained = 0;
	turn();
	delivery_tick(delivery, 0);
	turn();
	assert_int_equal(drained, 0);	/* it is told once */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_record_is_released_when_it_is_delivered, setup, teardown),
		cmocka_unit_test_setup_teardown(a_turn_of_the_loop_has_a_bound, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_synced_later_is_handed_over_by_a_tick, setup_sync_first,
		    teardown),
		cmocka_unit_test_setup_teardown(a_full_outlet_is_waited_for, setup, teardown),
		cmocka_unit_test_setup_teardown(after_a_failure_all_comes_again_in_order_and_marked, setup, teardown),
		cmocka_unit_test_setup_teardown(what_can_never_be_delivered_is_a_dead_letter, setup, teardown),
		cmocka_unit_test_setup_teardown(dead_letters_beyond_the_bound_are_counted_as_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(many_reasons_end_in_other, setup, teardown),
		cmocka_unit_test_setup_teardown(a_drain_ends_when_all_is_delivered, setup, teardown),
		cmocka_unit_test_setup_teardown(a_drain_of_nothing_ends_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(a_drain_waits_for_the_last_that_is_on_its_way, setup, teardown),
		cmocka_unit_test_setup_teardown(a_hurry_hands_over_what_waits_and_hastens_the_outlet, setup, teardown),
		cmocka_unit_test_setup_teardown(a_drain_has_an_end, setup, teardown),
		cmocka_unit_test_setup_teardown(a_drain_outlives_a_failure, setup, teardown),
		cmocka_unit_test_setup_teardown(a_turns_share_is_what_was_asked_for_or_two_thousand, setup, teardown),
		cmocka_unit_test_setup_teardown(each_failure_asks_for_all_back_once, setup, teardown),
		cmocka_unit_test_setup_teardown(pauses_grow_until_one_is_delivered, setup, teardown),
		cmocka_unit_test_setup_teardown(without_a_folder_for_dead_letters_they_are_lost_and_counted,
		    setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_happens_before_there_is_an_outlet, setup, teardown),
		cmocka_unit_test_setup_teardown(a_drain_hurries_at_each_tick_and_is_told_once, setup, teardown),
		cmocka_unit_test_setup_teardown(a_record_that_can_never_go_ends_a_drain_too, setup, teardown),
		cmocka_unit_test_setup_teardown(a_full_outlet_is_asked_again_at_a_tick, setup, teardown),
		cmocka_unit_test_setup_teardown(pauses_are_those_of_the_options_to_the_millisecond, setup, teardown),
		cmocka_unit_test_setup_teardown(a_drain_has_its_time_to_the_millisecond, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_given_up_is_the_last_failure, setup, teardown),
		cmocka_unit_test_setup_teardown(the_last_place_for_a_reason_is_for_all_others, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_delivered_while_the_rest_is_given_back_ends_that_too,
		    setup, teardown),
		cmocka_unit_test_setup_teardown(an_outlet_that_takes_nothing_is_not_asked_to, setup, teardown),
		cmocka_unit_test_setup_teardown(a_pause_ends_what_the_outlet_said_before_it, setup, teardown),
		cmocka_unit_test_setup_teardown(without_memory_it_does_not_open, setup, teardown),
		cmocka_unit_test_setup_teardown(it_is_woken_for_work_only, setup, teardown),
		cmocka_unit_test_setup_teardown(without_memory_for_a_timer_it_goes_on_at_a_tick, setup, teardown),
		cmocka_unit_test_setup_teardown(a_drain_that_cannot_be_timed_ends_at_once, setup, teardown),
	};

	/* Before libevent does anything. */
	event_set_mem_functions(fault_library_alloc, fault_library_grow, free);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
