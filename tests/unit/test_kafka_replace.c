/* SPDX-License-Identifier: Apache-2.0 */
/* kafka: recalled records, and the replacement of a failed producer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "kafka_kit.h"

static void
what_is_recalled_has_the_same_ids_and_another_producer_follows(void **state)
{
	struct kafka_stats stats;
	const char *reason;
	uint64_t sum = 0;

	(void)state;
	open_mock("linger.ms", "60000");
	assert_true(wait_for(is_taking));
	for (uint64_t id = 500; id < 600; id++)
		assert_int_equal(put(id, 10, &reason), 0);
	reported.ready = 0;
	output->ops->recall(output);
	assert_int_equal(put(1, 10, &reason), -EAGAIN);
	assert_true(wait_for(is_settled));
	assert_int_equal(reported.n_failed, 101);
	assert_int_equal(reported.failure, OUTPUT_AGAIN);
	assert_string_equal(reported.reason, "recalled");
	assert_string_equal(reported.key, "host:run-1");
	assert_int_equal(reported.seq, reported.failed[100]);
	assert_int_equal(reported.schema, 77);
	for (size_t i = 0; i < 101; i++)
		sum += reported.failed[i] >= 500 ? reported.failed[i] : 0;
	assert_int_equal(sum, 100 * (500 + 599) / 2);
	for (int i = 0; i < 50 && reported.ready == 0; i++)
		wait_for(is_settled);
	assert_int_equal(reported.ready, 1);
	kafka_stats(output, &stats);
	assert_int_equal(stats.producers, 2);
}

static void
after_a_fatal_error_another_producer_goes_on(void **state)
{
	const char *reason;
	struct kafka *k;

	(void)state;
	open_mock("linger.ms", "60000");
	assert_true(wait_for(is_taking));
	assert_int_equal(put(42, 10, &reason), 0);
	k = (struct kafka *)output;
	rd_kafka_test_fatal_error(k->client->rk, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, "made up");
	assert_true(wait_for(is_replaced));
	assert_int_equal(reported.n_failed, 2);
	assert_int_equal(reported.failure, OUTPUT_AGAIN);
	assert_non_null(strstr(status().error, "made up"));
	assert_true(wait_for(is_taking));
}

/* Between the error and the loop's next turn records may still come. */
static void
after_a_fatal_error_no_record_is_taken(void **state)
{
	const char *reason;
	struct kafka *k;

	(void)state;
	open_mock(NULL, NULL);
	assert_true(wait_for(is_taking));
	assert_true(wait_for(is_settled));
	k = (struct kafka *)output;
	rd_kafka_test_fatal_error(k->client->rk, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, "made up");
	assert_int_equal(put(42, 10, &reason), -EAGAIN);
	assert_true(k->is_failed);
	assert_int_equal(status().in_flight, 0);
	assert_int_equal(status().queued_bytes, 0);
	assert_int_equal(put(43, 10, &reason), -EAGAIN);
	assert_true(wait_for(is_replaced));
	assert_true(wait_for(is_taking));
}

/* The threads of librdkafka wait by the wall clock, which may have been hours ahead when they began. */
static void
a_producer_is_replaced_when_the_clock_is_set_back(void **state)
{
	struct kafka *k;

	(void)state;
	open_mock("linger.ms", "60000");
	assert_true(wait_for(is_taking));
	k = (struct kafka *)output;
	output->ops->tick(output, SAMPLE_TIME);
	output->ops->tick(output, SAMPLE_TIME + INT64_C(7200000000));	/* ahead: what waits ends */
	assert_false(k->is_recalling);
	output->ops->tick(output, SAMPLE_TIME + INT64_C(7195000000));	/* a little */
	assert_false(k->is_recalling);
	output->ops->tick(output, SAMPLE_TIME);
	assert_true(k->is_recalling);
	assert_true(wait_for(is_replaced));
	assert_int_equal(reported.n_failed, 1);
	assert_string_equal(reported.reason, "recalled");
	assert_true(wait_for(is_taking));
}

/* Its time is measured from the last one's, so that one which fails at once is not made all the time. */
static void
a_producer_that_failed_is_replaced_after_a_while(void **state)
{
	struct kafka_stats stats;
	struct kafka *k;

	(void)state;
	open_mock(NULL, NULL);
	k = (struct kafka *)output;
	k->is_failed = true;
	k->replace_at_us = INT64_MAX;
	for (int i = 0; i < 3; i++)
		output->ops->tick(output, 0);
	kafka_stats(output, &stats);
	assert_int_equal(stats.producers, 1);
	assert_true(k->is_recalling);		/* so much is done at once */
	k->replace_at_us = 0;
	output->ops->tick(output, 0);
	kafka_stats(output, &stats);
	assert_int_equal(stats.producers, 2);
	assert_false(k->is_failed || k->is_recalling);
	assert_int_equal(k->replace_at_us, k->now_us + 2000000);
	/* Where none could be made the next try has to wait too. */
	kafka_client_release(k->client);
	k->client = NULL;
	output->ops->tick(output, 0);
	assert_null(k->client);
	k->replace_at_us = 0;
	output->ops->tick(output, 0);
	assert_non_null(k->client);
	kafka_stats(output, &stats);
	assert_int_equal(stats.producers, 3);
}

/* The whole status of an output without errors, and the count of producers. */
static void
what_was_retried_is_summed_over_all_producers(void **state)
{
	struct kafka_stats stats;
	struct kafka *k;

	(void)state;
	open_mock(NULL, NULL);
	k = (struct kafka *)output;
	assert_string_equal(status().kind, "kafka");
	assert_int_equal(status().state, OUTPUT_STARTING);
	kafka_stats(output, &stats);
	assert_int_equal(stats.producers, 1);
	k->retried_before = 5;
	k->retried_now = 3;
	output->ops->recall(output);
	assert_true(wait_for(is_replaced));
	assert_int_equal(k->retried_before, 8);
	assert_int_equal(k->retried_now, 0);
	assert_false(k->is_recalling || k->is_failed || k->is_waiting || k->is_creating);
	assert_int_equal(reported.ready > 0, true);
}

static bool
has_three_producers(void)
{
	struct kafka_stats stats;

	kafka_stats(output, &stats);
	return stats.producers == 3;
}

static void
batches_shrink_with_the_next_producer(void **state)
{
	char text[16];
	struct kafka *k;

	(void)state;
	open_mock("batch.size", "3000");
	k = (struct kafka *)output;
	k->on_log = on_log;
	k->wants_smaller = true;
	output->ops->recall(output);
	assert_true(wait_for(is_replaced));
	assert_string_equal(reported.log, "a broker refuses batches of 3000 bytes: batch.size is halved");
	assert_int_equal(reported.log_level, 4);
	assert_int_equal(k->batch_bytes, 1500);
	assert_string_equal(kafka_conf_get(k->conf, "batch.size", text, sizeof(text)), "1500");
	assert_false(k->wants_smaller);
	reported.log[0] = '\0';
	output->ops->recall(output);
	assert_true(wait_for(has_three_producers));
	assert_string_equal(reported.log, "");	/* only where one was too large */
	assert_int_equal(k->batch_bytes, 1500);
}

/* The least is one byte, and stays so. */
static void
a_batch_shrinks_to_a_byte_and_no_further(void **state)
{
	static const int sizes[] = { 3, 2, 1 };
	char text[16];
	struct kafka *k;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		open_mock("batch.size", "3000");
		k = (struct kafka *)output;
		k->batch_bytes = sizes[i];
		k->wants_smaller = true;
		output->ops->recall(output);
		assert_true(wait_for(is_replaced));
		assert_int_equal(k->batch_bytes, 1);
		assert_string_equal(kafka_conf_get(k->conf, "batch.size", text, sizeof(text)), "1");
		output->ops->close(output);
		output = NULL;
	}
}

/* More than an iteration of the loop handles: the rest follows in the next ones, without a tick. */
static void
any_number_of_records_comes_back(void **state)
{
	struct pollfd p = { .events = POLLIN };
	const char *reason;
	bool is_quiet = false;

	(void)state;
	open_mock("linger.ms", "60000");
	assert_true(wait_for(is_there));
	for (uint64_t id = 0; id < 8100; id++)
		assert_int_equal(put(id, 0, &reason), 0);
	output->ops->recall(output);
	assert_true(wait_in_the_loop_for(is_replaced));
	assert_int_equal(reported.n_delivered + reported.n_failed, 8100);	/* full batches do not linger */
	/* After that the loop has nothing to do. */
	p.fd = ((struct kafka *)output)->fd;
	for (int i = 0; i < 500 && !is_quiet; i++) {
		wait_in_the_loop_for(is_replaced);
		is_quiet = poll(&p, 1, 0) == 0;
	}
	assert_true(is_quiet);
}

static unsigned warnings;

static void
on_warning(int level, const char *facility, const char *text, void *arg)
{
	(void)level;
	(void)arg;
	warnings += strcmp(facility, "CONFWARN") == 0 && strstr(text, "group.id") != NULL;
}

static bool
has_warned(void)
{
	return warnings > 0;
}

/* librdkafka signals only the first event of a queue, which may precede the registration. */
static void
what_a_producer_says_as_it_is_made_is_heard(void **state)
{
	struct kafka *k;

	(void)state;
	open_mock("group.id", "a consumer's");
	assert_true(wait_for(is_there));
	k = (struct kafka *)output;
	k->on_log = on_warning;
	warnings = 0;
	output->ops->recall(output);
	assert_true(wait_in_the_loop_for(is_replaced));
	assert_true(wait_in_the_loop_for(has_warned));
	assert_int_equal(warnings, 1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(what_is_recalled_has_the_same_ids_and_another_producer_follows),
		T(after_a_fatal_error_another_producer_goes_on),
		T(batches_shrink_with_the_next_producer),
		T(a_batch_shrinks_to_a_byte_and_no_further),
		T(any_number_of_records_comes_back),
		T(what_a_producer_says_as_it_is_made_is_heard),
		T(what_was_retried_is_summed_over_all_producers),
		T(after_a_fatal_error_no_record_is_taken),
		T(a_producer_is_replaced_when_the_clock_is_set_back),
		T(a_producer_that_failed_is_replaced_after_a_while),
	};

	return cmocka_run_group_tests(tests, threads_begin, threads_end);
}
