/* SPDX-License-Identifier: Apache-2.0 */
/* delivery: records that are released or dropped, and an output that is full or not open yet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "delivery_kit.h"
#include "faults.h"
#include "timers.h"

static int drained;	/* as on_drained() has it */

static int
setup_sync_first(void **state)
{
	int r;

	is_sync_first = true;
	r = setup(state);
	is_sync_first = false;
	return r;
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

/* After the last commit, which is not followed by a wakeup. */
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
a_full_output_is_waited_for(void **state)
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
	fail_one(1, OUTPUT_AGAIN, "msg_timed_out");	/* 2 */
	turn();
	assert_int_equal(fake->recalled, 1);
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
	fail_one(0, OUTPUT_NEVER, "invalid_record");
	assert_int_equal(fake->recalled, 0);
	deliver_all();
	settle_letters();
	assert_int_equal(waiting(), 0);
	assert_int_equal(stats().n_dead, 2);
	assert_string_equal(stats().dead[0].reason, "never_ever");
	assert_string_equal(stats().dead[1].reason, "invalid_record");
	assert_int_equal(stats().dead[1].count[TOPIC_PROGRAM], 1);
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
		fail_one(0, OUTPUT_NEVER, "invalid_record");
	assert_int_equal(stats().dead[0].count[TOPIC_PROGRAM], 60);
	settle_letters();
	lost = stats().lost_full[TOPIC_PROGRAM];
	assert_true(lost > 0 && lost <= 60);
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
		fail_one(0, OUTPUT_NEVER, reason);
	}
	assert_int_equal(stats().n_dead, DELIVERY_REASONS);
	assert_string_equal(stats().dead[DELIVERY_REASONS - 1].reason, "other");
	for (int i = 0; i < DELIVERY_REASONS; i++)
		n += stats().dead[i].count[TOPIC_PROGRAM];
	assert_int_equal(n, 40);
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
		delivery_set_output(delivery, &fake->output);
		event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
		assert_int_equal(fake->n, cases[i].want);
	}
	deliver_all();
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
	delivery_set_output(other, &fake->output);
	delivery = other;
	put(TOPIC_PROGRAM, 1);
	put(TOPIC_FINDING, 2);
	turn();
	fail_one(0, OUTPUT_NEVER, "invalid_record");
	fail_one(0, OUTPUT_NEVER, "invalid_record");
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
nothing_happens_before_there_is_an_output(void **state)
{
	struct delivery_options o = { .per_turn = 100 };
	struct output_events events;
	struct delivery *other;

	(void)state;
	drained = 0;
	assert_int_equal(delivery_open(base, spool, &o, &events, &other), 0);
	put(TOPIC_PROGRAM, 1);
	turn();
	deliver_all();
	delivery_wake(other);
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
a_full_output_is_asked_again_at_a_tick(void **state)
{
	(void)state;
	fake->capacity = 1;
	put(TOPIC_PROGRAM, 3);
	turn();
	assert_int_equal(fake->n, 1);
	fake->capacity = HELD_MAX;
	delivery_wake(delivery);
	turn();
	assert_int_equal(fake->n, 1);		/* it said not now */
	delivery_tick(delivery, 0);		/* in case that it did not set a timer */
	turn();
	assert_int_equal(fake->n, 3);
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
	fail_one(0, OUTPUT_NEVER, "invalid_record");
	assert_string_equal(stats().failure, "invalid_record: a sentence");
	assert_true(stats().failure_us > 0);
	settle_letters();
	assert_int_equal(stats().in_flight, 2);
	assert_int_equal(stats().rewinds, 0);
	assert_int_equal(stats().n_dead, 1);
	fail_one(0, OUTPUT_NEVER, "invalid_timestamp");
	assert_string_equal(stats().failure, "invalid_timestamp: a sentence");
	deliver_all();
	fake->refuses = true;
	put(TOPIC_PROGRAM, 1);
	turn();
	assert_memory_equal(stats().failure, "never_ever: ", 12);
	settle_letters();
	assert_int_equal(stats().in_flight, 0);
}

/* As many reasons as are distinguished, and one more. */
static void
the_last_place_for_a_reason_is_for_all_others(void **state)
{
	(void)state;
	put(TOPIC_PROGRAM, DELIVERY_REASONS + 2);
	turn();
	for (int i = 0; i < DELIVERY_REASONS + 2; i++) {
		char reason[16];

		snprintf(reason, sizeof(reason), "reason_%d", i);
		fail_one(0, OUTPUT_NEVER, reason);
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
an_output_that_takes_nothing_is_not_asked_to(void **state)
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
	fail_one(0, OUTPUT_AGAIN, "msg_timed_out");
	turn();
	assert_int_equal(fake->recalled, 1);
	fake->events.ready(fake->events.arg);
	turn();
	assert_int_equal(fake->tried, 3);
	give_all_back();
	turn();
	assert_int_equal(drained, 0);
	/* Once all records are back there is room again, with or without an event of the output. */
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
one_topic_waits_and_the_others_are_delivered(void **state)
{
	struct spool_stats st;
	size_t tried;

	(void)state;
	fake->waits[TOPIC_USAGE] = "schema_refused";
	fake->waits[TOPIC_HOST] = "topic_missing";
	for (int i = 0; i < 5; i++) {
		put(TOPIC_HOST, 2);
		put(TOPIC_USAGE, 3);
		put(TOPIC_PROGRAM, 4);
	}
	turn();
	assert_int_equal(fake->taken[TOPIC_PROGRAM], 20);
	assert_int_equal(fake->n, 20);
	deliver_all();
	assert_string_equal(stats().waits[TOPIC_USAGE].reason, "schema_refused");
	assert_string_equal(stats().waits[TOPIC_HOST].reason, "topic_missing");
	assert_null(stats().waits[TOPIC_PROGRAM].reason);
	assert_true(stats().waits[TOPIC_HOST].since_us > 0);
	spool_stats(spool, &st);
	assert_int_equal(st.records, 25);
	assert_int_equal(st.waiting[TOPIC_USAGE], 15);
	assert_int_equal(st.waiting[TOPIC_HOST], 10);
	/* With each commit, only the others are offered. */
	tried = fake->tried;
	put(TOPIC_HOST, 1);
	turn();
	assert_int_equal(fake->tried, tried);
	put(TOPIC_TASK, 1);
	turn();
	assert_int_equal(fake->taken[TOPIC_TASK], 1);
	assert_int_equal(fake->tried, tried + 1);
	/* Of each that waits, one record is offered at a tick, or once the output is ready. */
	delivery_tick(delivery, 0);
	turn();
	assert_int_equal(fake->tried, tried + 3);
	fake->waits[TOPIC_HOST] = NULL;
	fake->events.ready(fake->events.arg);
	turn();
	assert_int_equal(fake->taken[TOPIC_HOST], 11);
	assert_null(stats().waits[TOPIC_HOST].reason);
	assert_int_equal(stats().rewinds, 0);
	deliver_all();
	fake->waits[TOPIC_USAGE] = NULL;
	delivery_tick(delivery, 0);
	turn();
	deliver_all();
	assert_int_equal(fake->taken[TOPIC_USAGE], 15);
	assert_int_equal(waiting(), 0);
	assert_int_equal(stats().delivered[TOPIC_USAGE], 15);
	assert_int_equal(stats().redelivered[TOPIC_USAGE] + stats().redelivered[TOPIC_HOST], 0);
}

/* An output that takes nothing is waited for as a whole, also while a topic waits. */
static void
a_full_output_and_a_topic_that_waits(void **state)
{
	(void)state;
	fake->capacity = 3;
	fake->waits[TOPIC_HOST] = "topic_missing";
	put(TOPIC_HOST, 2);
	put(TOPIC_PROGRAM, 10);
	turn();
	assert_int_equal(fake->n, 3);
	fail_one(0, OUTPUT_AGAIN, "msg_timed_out");
	turn();
	give_all_back();
	turn();
	fake->waits[TOPIC_HOST] = NULL;
	fake->capacity = HELD_MAX;
	for (int i = 0; i < 2000 && fake->n < 12; i++)
		turn_for(5);
	assert_int_equal(fake->n, 12);
	assert_int_equal(stats().redelivered[TOPIC_PROGRAM], 3);
	assert_int_equal(stats().redelivered[TOPIC_HOST], 0);
	deliver_all();
	assert_int_equal(waiting(), 0);
}

/* Its records stay for the next agent. */
static void
a_drain_ends_in_time_while_a_topic_waits(void **state)
{
	(void)state;
	drained = 0;
	fake->waits[TOPIC_HOST] = "topic_missing";
	put(TOPIC_HOST, 2);
	put(TOPIC_PROGRAM, 2);
	turn();
	deliver_all();
	delivery_drain(delivery, 30, on_drained, &drained);
	for (int i = 0; i < 2000 && drained == 0; i++)
		turn_for(5);
	assert_int_equal(drained, 2);
	assert_int_equal(waiting(), 2);
}

static void
without_memory_it_does_not_open(void **state)
{
	struct delivery_options o = { .per_turn = 100 };
	struct output_events events = { 0 };
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_record_is_released_when_it_is_delivered),
		T(a_turn_of_the_loop_has_a_bound),
		cmocka_unit_test_setup_teardown(what_is_synced_later_is_handed_over_by_a_tick, setup_sync_first,
		    teardown),
		T(a_full_output_is_waited_for),
		T(after_a_failure_all_comes_again_in_order_and_marked),
		T(what_can_never_be_delivered_is_a_dead_letter),
		T(dead_letters_beyond_the_bound_are_counted_as_lost),
		T(many_reasons_end_in_other),
		T(a_turns_share_is_what_was_asked_for_or_two_thousand),
		T(without_a_folder_for_dead_letters_they_are_lost_and_counted),
		T(nothing_happens_before_there_is_an_output),
		T(a_full_output_is_asked_again_at_a_tick),
		T(what_is_given_up_is_the_last_failure),
		T(the_last_place_for_a_reason_is_for_all_others),
		T(an_output_that_takes_nothing_is_not_asked_to),
		T(one_topic_waits_and_the_others_are_delivered),
		T(a_full_output_and_a_topic_that_waits),
		T(a_drain_ends_in_time_while_a_topic_waits),
		T(without_memory_it_does_not_open),
	};

	/* Before libevent does anything. */
	event_set_mem_functions(fault_library_alloc, fault_library_grow, free);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
