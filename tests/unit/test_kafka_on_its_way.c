/* SPDX-License-Identifier: Apache-2.0 */
/* kafka: a recall while some records are in flight and not acknowledged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "kafka_broker.h"
#include "kafka_kit.h"

#define SECOND INT64_C(1000000)

static struct broker broker;

static int
teardown_broker(void **state)
{
	int r = teardown(state);

	broker_stop(&broker);
	return r;
}

/* An output that sends a record and then waits for the answer before it sends the next. */
static int
setup_broker(void **state)
{
	static const struct kafka_property p[] = { { "enable.idempotence", "false" }, { "linger.ms", "1" },
		{ "max.in.flight.requests.per.connection", "1" } };
	char error[256], name[64];

	if (broker_start(&broker) < 0 || setup(state) < 0)
		return -1;
	for (int t = 0; t < TOPIC_COUNT; t++) {
		snprintf(name, sizeof(name), "t.%s", topic_name(t));
		broker_make(&broker, name);
	}
	if (open_with(broker.address, p, 3, error, sizeof(error)) == 0)
		return 0;
	teardown_broker(state);
	return -1;
}

static bool
has_arrived(void)
{
	return broker_look(&broker).produced > 0;
}

static bool
has_one_failed(void)
{
	return reported.n_failed == 1;
}

/* Room for what must not happen. */
static void
turn(int turns)
{
	while (turns-- > 0) {
		struct timeval tv = { 0, 5000 };

		event_base_loopexit(base, &tv);
		event_base_dispatch(base);
	}
}

/* Of two the first is on its way, the second is queued. */
static void
put_two(void)
{
	const char *reason;

	assert_true(wait_for(is_there));
	assert_int_equal(put(42, 10, &reason), 0);
	assert_true(wait_for(has_arrived));
	assert_int_equal(put(43, 10, &reason), 0);
}

static void
what_is_on_its_way_may_still_be_answered(void **state)
{
	struct kafka *k = (struct kafka *)output;
	struct kafka_stats stats;

	(void)state;
	put_two();
	for (int i = 0; i < 3; i++)
		output->ops->tick(output, 0);
	turn(20);
	assert_int_equal(reported.n_failed, 0);		/* nothing is recalled yet */
	assert_int_equal(status().in_flight, 2);

	output->ops->recall(output);
	assert_true(wait_in_the_loop_for(has_one_failed));
	assert_int_equal(reported.failed[0], 43);
	assert_string_equal(reported.reason, "recalled");
	k->recalled_us = clock_us(CLOCK_MONOTONIC) + 60 * SECOND;	/* as long as its time is not over */
	output->ops->tick(output, 0);
	turn(20);
	assert_int_equal(reported.n_failed, 1);
	assert_int_equal(status().in_flight, 1);
	kafka_stats(output, &stats);
	assert_int_equal(stats.producers, 1);

	k->recalled_us = clock_us(CLOCK_MONOTONIC) - 3 * SECOND - 1;
	output->ops->tick(output, 0);
	assert_true(wait_in_the_loop_for(is_settled));
	assert_int_equal(reported.n_failed, 2);
	assert_int_equal(reported.failed[1], 42);
	assert_int_equal(reported.failure, OUTPUT_AGAIN);
	assert_string_equal(reported.reason, "recalled");
	assert_true(wait_in_the_loop_for(is_replaced));
}

/* When that began is measured, and once. */
static void
the_time_of_an_answer_begins_as_records_are_recalled(void **state)
{
	struct kafka *k = (struct kafka *)output;
	int64_t before, after;

	(void)state;
	put_two();
	before = clock_us(CLOCK_MONOTONIC);
	output->ops->recall(output);
	after = clock_us(CLOCK_MONOTONIC);
	assert_in_range(k->recalled_us, before, after);
	k->recalled_us = 1;
	output->ops->recall(output);
	assert_int_equal(k->recalled_us, 1);
}

/* A producer that failed is not answered any more. */
static void
what_a_failed_producer_sent_comes_back_at_once(void **state)
{
	struct kafka *k = (struct kafka *)output;

	(void)state;
	put_two();
	k->is_failed = true;
	output->ops->recall(output);
	assert_true(wait_in_the_loop_for(is_settled));
	assert_int_equal(reported.n_failed, 2);
	assert_string_equal(reported.reason, "recalled");
}

/* An output that is closed then closes its producer, with all records in flight. */
static void
an_output_closes_without_an_answer(void **state)
{
	(void)state;
	put_two();
	output->ops->close(output);
	output = NULL;
	assert_int_equal(reported.n_failed, 0);
	assert_int_equal(reported.n_delivered, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup_broker, teardown_broker)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(what_is_on_its_way_may_still_be_answered),
		T(the_time_of_an_answer_begins_as_records_are_recalled),
		T(what_a_failed_producer_sent_comes_back_at_once),
		T(an_output_closes_without_an_answer),
	};

	return cmocka_run_group_tests(tests, threads_begin, threads_end);
}
