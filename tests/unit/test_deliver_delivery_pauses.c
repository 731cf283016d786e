/* SPDX-License-Identifier: Apache-2.0 */
/* delivery: a failed record is delivered again after a pause, and the wakeups for that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "delivery_kit.h"
#include "timers.h"

static void
each_failure_asks_for_all_back_once(void **state)
{
	(void)state;
	put(TOPIC_PROGRAM, 3);
	turn();
	for (unsigned round = 1; round <= 3; round++) {
		assert_int_equal(fake->n, 3);
		fail_one(0, OUTPUT_AGAIN, "msg_timed_out");
		for (int i = 0; i < 3; i++)
			turn();
		assert_int_equal(fake->recalled, round);
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

	fail_one(0, OUTPUT_AGAIN, "again");
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
	delivery_set_output(delivery, &fake->output);
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
			fail_one(0, OUTPUT_AGAIN, "again");
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
a_pause_ends_what_the_output_said_before_it(void **state)
{
	(void)state;
	fake->capacity = 2;
	put(TOPIC_PROGRAM, 3);
	turn();
	assert_int_equal(fake->n, 2);
	fail_one(0, OUTPUT_AGAIN, "msg_timed_out");
	turn();
	give_all_back();
	turn();
	assert_int_equal(stats().rewinds, 1);
	/* No ready event and no tick. */
	for (int i = 0; i < 2000 && fake->n == 0; i++)
		turn_for(5);
	assert_int_equal(fake->n, 2);
	deliver_all();
}

/* The output gives back what it can; the rest it has sent, and hears so. */
static void
what_is_delivered_while_the_rest_is_recalled_ends_that_too(void **state)
{
	(void)state;
	put(TOPIC_PROGRAM, 3);
	turn();
	fail_one(0, OUTPUT_AGAIN, "msg_timed_out");
	turn();
	assert_int_equal(fake->recalled, 1);
	fail_one(0, OUTPUT_AGAIN, "recalled");
	turn();
	assert_int_equal(stats().rewinds, 0);
	deliver_all();
	fake->is_recalling = false;
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
			fail_one(0, OUTPUT_NEVER, "invalid_record");
		deliver_all();
		delivery_wake(delivery);
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
	fail_one(0, OUTPUT_AGAIN, "msg_timed_out");
	turn();
	assert_int_equal(fake->recalled, 0);
	delivery_tick(delivery, 0);
	turn();
	assert_int_equal(fake->recalled, 1);
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(each_failure_asks_for_all_back_once),
		T(pauses_grow_until_one_is_delivered),
		T(pauses_are_those_of_the_options_to_the_millisecond),
		T(a_pause_ends_what_the_output_said_before_it),
		T(what_is_delivered_while_the_rest_is_recalled_ends_that_too),
		T(it_is_woken_for_work_only),
		T(without_memory_for_a_timer_it_goes_on_at_a_tick),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
