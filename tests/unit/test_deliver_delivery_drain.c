/* SPDX-License-Identifier: Apache-2.0 */
/* delivery: a drain, which ends when everything is delivered or on its timeout. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "delivery_kit.h"
#include "timers.h"

static int drained;	/* as on_drained() has it */

static void
a_drain_ends_when_all_is_delivered(void **state)
{
	(void)state;
	drained = 0;
	put(TOPIC_PROGRAM, 250);
	delivery_drain(delivery, 5000, on_drained, &drained);
	assert_true(fake->flushed > 0);
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
	fail_one(0, OUTPUT_AGAIN, "msg_timed_out");
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
a_drain_hurries_at_each_tick_and_is_reported_once(void **state)
{
	unsigned flushed;

	(void)state;
	drained = 0;
	delivery_tick(delivery, 0);
	assert_int_equal(fake->flushed, 0);
	put(TOPIC_PROGRAM, 1);
	turn();
	delivery_drain(delivery, 20, on_drained, &drained);
	flushed = fake->flushed;
	delivery_tick(delivery, 1234);
	assert_int_equal(fake->ticked_us, 1234);
	assert_int_equal(fake->flushed, flushed + 1);
	turn();
	deliver_all();
	turn();
	assert_int_equal(drained, 1);
	drained = 0;
	turn_for(60);			/* beyond its deadline */
	delivery_tick(delivery, 0);
	turn();
	assert_int_equal(drained, 0);
	assert_int_equal(fake->flushed, flushed + 1);
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
	fail_one(0, OUTPUT_NEVER, "invalid_record");
	turn();
	assert_int_equal(drained, 0);	/* its letter is not synced yet */
	settle_letters();
	turn();
	assert_int_equal(drained, 1);
	assert_int_equal(fake->recalled, 0);
}

static void
a_hurry_hands_over_what_waits_and_hastens_the_output(void **state)
{
	struct spool *s = spool;

	(void)state;
	turn();
	assert_int_equal(spool_put(s, &(struct encoded_record){ TOPIC_PROGRAM, SAMPLE_TIME, next_seq[TOPIC_PROGRAM]++, "h:r", "abc", 3 }), 0);
	assert_int_equal(spool_commit(spool, NULL, next_seq), 0);	/* without a wakeup */
	turn();
	assert_int_equal(fake->n, 0);
	delivery_flush(delivery);
	assert_int_equal(fake->flushed, 1);
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
	assert_int_equal(drained, 0);	/* it is reported once */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_drain_ends_when_all_is_delivered),
		T(a_drain_of_nothing_ends_at_once),
		T(a_drain_has_an_end),
		T(a_drain_outlives_a_failure),
		T(a_drain_hurries_at_each_tick_and_is_reported_once),
		T(a_record_that_can_never_go_ends_a_drain_too),
		T(a_hurry_hands_over_what_waits_and_hastens_the_output),
		T(a_drain_waits_for_the_last_that_is_on_its_way),
		T(a_drain_has_its_time_to_the_millisecond),
		T(a_drain_that_cannot_be_timed_ends_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
