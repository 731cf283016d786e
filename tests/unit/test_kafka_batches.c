/* SPDX-License-Identifier: Apache-2.0 */
/* kafka: refused batches: what the next producer sends otherwise, which record is at fault, and the way back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "kafka_kit.h"
#include <librdkafka/rdkafka_mock.h>

#define SECOND INT64_C(1000000)
#define MINUTE (60 * SECOND)

static struct kafka *k;

/* What happens to a record whose batch a broker has refused. */
static enum output_failure
judge(rd_kafka_resp_err_t err, uint64_t id, size_t bytes, const char **ret_reason)
{
	struct spool_record r = { .id = id, .topic = TOPIC_PROGRAM, .time_us = clock_us(CLOCK_REALTIME) };
	struct kafka_failure f = kafka_failure(err);
	enum output_failure failure = kafka_batch_refused(k, &r, bytes, &f);

	*ret_reason = f.reason;
	return failure;
}

static int
setup_alone(void **state)
{
	int r = setup(state);

	open_mock("batch.size", "4000");
	k = (struct kafka *)output;
	k->on_log = on_log;
	k->now_us = 1000 * MINUTE;
	return r;
}

static const char *
batch_size(void)
{
	static char text[16];

	return kafka_conf_get(k->conf, "batch.size", text, sizeof(text));
}

static void
a_refused_record_is_at_fault_once_it_is_timeless_and_alone(void **state)
{
	const rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_INVALID_RECORD;
	const char *reason;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct kafka_topic *t = &k->topics[TOPIC_PROGRAM];

		assert_int_equal(judge(err, 7, 100, &reason), OUTPUT_AGAIN);
		assert_string_equal(reason, "timestamp_refused");
		assert_false(t->is_timeless);		/* this producer's messages have one */
		assert_int_equal(judge(err, 8, 100, &reason), OUTPUT_AGAIN);
		assert_string_equal(reason, "timestamp_refused");
		assert_true(kafka_batches_want_other(k));
		kafka_batches_next(k);
		assert_true(t->is_timeless);
		assert_false(k->topics[TOPIC_USAGE].is_timeless);
		assert_memory_equal(reported.log, status().warning, sizeof(reported.log) - 1);
		assert_non_null(strstr(status().warning, "messages to topic t.sluice.program have no timestamp"));
		assert_non_null(strstr(status().warning, "message.timestamp.after.max.ms"));

		assert_int_equal(judge(err, 7, 100, &reason), OUTPUT_AGAIN);
		assert_string_equal(reason, "batch_refused");
		assert_int_equal(judge(err, 6, 100, &reason), OUTPUT_AGAIN);
		assert_int_equal(t->apart_before, 8);
		assert_int_equal(kafka_batch_limit(k), 4000);
		kafka_batches_next(k);
		assert_int_equal(kafka_batch_limit(k), 1);
		assert_string_equal(batch_size(), "1");

		assert_int_equal(judge(err, 7, 100, &reason), OUTPUT_NEVER);
		assert_string_equal(reason, "invalid_record");
		assert_false(kafka_batches_want_other(k));
		/* The time was not at fault: with the end of single batches messages have one again. */
		kafka_batches_tick(k);
		assert_true(t->is_timeless);
		kafka_batches_handed_over(k, &(struct spool_record){ .id = 6, .topic = TOPIC_PROGRAM });
		assert_false(k->wants_larger);
		kafka_batches_handed_over(k, &(struct spool_record){ .id = 9, .topic = TOPIC_USAGE });
		assert_false(k->wants_larger);
		kafka_batches_handed_over(k, &(struct spool_record){ .id = 7, .topic = TOPIC_PROGRAM });
		assert_true(k->wants_larger);
		kafka_batches_next(k);
		assert_false(k->wants_larger);
		assert_string_equal(batch_size(), "4000");
		kafka_batches_tick(k);
		assert_false(t->is_timeless);
		assert_string_equal(status().warning, "");
		kafka_batches_delivered(k, TOPIC_PROGRAM);
	}
}

/* Not every record is at fault: the topic has a rule, such as a broker's check of schemas. */
static void
a_topic_of_which_each_record_is_refused_waits(void **state)
{
	const rd_kafka_resp_err_t err = RD_KAFKA_RESP_ERR_INVALID_RECORD;
	struct kafka_topic *t = &k->topics[TOPIC_PROGRAM];
	const char *reason;

	(void)state;
	assert_true(wait_for(is_there));
	k->is_apart = t->is_timeless = true;
	t->apart_before = 100;
	for (int i = 0; i < 7; i++)
		assert_int_equal(judge(err, 7 + i, 100, &reason), OUTPUT_NEVER);
	kafka_batches_delivered(k, TOPIC_PROGRAM);	/* it takes records: those were at fault */
	for (int i = 0; i < 7; i++)
		assert_int_equal(judge(err, 17 + i, 100, &reason), OUTPUT_NEVER);
	assert_int_equal(t->state, KAFKA_TOPIC_THERE);
	assert_false(k->wants_larger);
	assert_int_equal(judge(err, 27, 100, &reason), OUTPUT_TOPIC_AGAIN);
	assert_string_equal(reason, "invalid_record");
	assert_int_equal(t->state, KAFKA_TOPIC_REFUSED);
	assert_true(k->wants_larger);		/* the other topics' batches */
	k->is_apart = k->wants_larger = t->is_timeless = false;
	/* One record tries it again: it is alone, however large batches are. */
	t->state = KAFKA_TOPIC_THERE;
	assert_int_equal(judge(err, 27, 100, &reason), OUTPUT_TOPIC_AGAIN);
	assert_int_equal(t->state, KAFKA_TOPIC_REFUSED);
	assert_false(kafka_batches_want_other(k));
	kafka_batches_delivered(k, TOPIC_PROGRAM);
	assert_int_equal(judge(err, 27, 100, &reason), OUTPUT_AGAIN);
}

/* A time is never a record's own fault. */
static void
a_time_that_is_refused_without_a_timestamp_is_waited_for(void **state)
{
	struct kafka_topic *t = &k->topics[TOPIC_PROGRAM];
	const char *reason;

	(void)state;
	assert_true(wait_for(is_there));
	assert_int_equal(judge(RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, 7, 100, &reason), OUTPUT_AGAIN);
	assert_string_equal(reason, "timestamp_refused");
	kafka_batches_next(k);
	k->is_apart = true;
	assert_int_equal(judge(RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, 7, 100, &reason), OUTPUT_TOPIC_AGAIN);
	assert_string_equal(reason, "invalid_timestamp");
	assert_int_equal(t->state, KAFKA_TOPIC_REFUSED);
	assert_false(kafka_batches_want_other(k));
}

static void
a_record_as_large_as_a_batch_is_alone_in_it(void **state)
{
	const char *reason;

	(void)state;
	k->topics[TOPIC_PROGRAM].is_timeless = true;
	assert_int_equal(judge(RD_KAFKA_RESP_ERR_INVALID_RECORD, 7, 4000, &reason), OUTPUT_NEVER);
	assert_int_equal(judge(RD_KAFKA_RESP_ERR_INVALID_RECORD, 7, 3999, &reason), OUTPUT_AGAIN);
	assert_int_equal(judge(RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, 7, 4000, &reason), OUTPUT_NEVER);
	assert_string_equal(reason, "msg_size_too_large");
	assert_int_equal(judge(RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, 7, 3999, &reason), OUTPUT_AGAIN);
	assert_string_equal(reason, "batch_too_large");
}

/* A producer with larger batches follows once all messages of this one are answered. */
static void
before_batches_grow_nothing_is_on_its_way(void **state)
{
	const char *reason = "";
	struct kafka_stats stats;

	(void)state;
	assert_true(wait_for(is_there));
	assert_int_equal(put(1, 10, &reason), 0);
	k->wants_larger = true;
	assert_int_equal(put(2, 10, &reason), -EAGAIN);
	kafka_stats(output, &stats);
	assert_int_equal(stats.producers, 1);
	assert_true(wait_in_the_loop_for(is_replaced));
	assert_int_equal(reported.n_delivered, 1);
	assert_int_equal(reported.n_failed, 0);
	assert_int_equal(put(2, 10, &reason), 0);
	assert_true(wait_for(is_settled));
}

/* All topics wait for that: a partition without a leader must not make it last. */
static void
what_stays_on_its_way_is_recalled_before_batches_grow(void **state)
{
	const char *reason = "";

	(void)state;
	assert_true(wait_for(is_there));
	rd_kafka_mock_broker_set_rtt(rd_kafka_handle_mock_cluster(k->client->rk), 1, 60000);
	assert_int_equal(put(1, 10, &reason), 0);
	k->batch_bytes = 2000;
	output->ops->tick(output, 0);
	assert_true(k->wants_larger);
	assert_int_equal(put(2, 10, &reason), -EAGAIN);
	output->ops->tick(output, 0);
	assert_false(k->is_recalling);
	k->wants_larger_us -= 3 * SECOND + 1;
	output->ops->tick(output, 0);
	assert_true(k->is_recalling);
}

static void
an_old_record_explains_itself(void **state)
{
	struct spool_record r = { .topic = TOPIC_PROGRAM, .time_us = clock_us(CLOCK_REALTIME) - 180 * MINUTE };
	struct kafka_failure f = kafka_failure(RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP);

	(void)state;
	assert_int_equal(kafka_batch_refused(k, &r, 10, &f), OUTPUT_AGAIN);
	assert_non_null(strstr(status().warning, "a record that is 3h00m old"));
	assert_non_null(strstr(status().warning, "message.timestamp.before.max.ms"));
}

static void
timestamps_return_after_a_pause_that_doubles_to_an_hour(void **state)
{
	static const int64_t minutes[] = { 10, 20, 40, 60, 60 };
	struct kafka_topic *t = &k->topics[TOPIC_PROGRAM];
	const char *reason;

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		judge(RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, 7, 100, &reason);
		kafka_batches_next(k);
		k->now_us += minutes[i] * MINUTE - 1;
		kafka_batches_tick(k);
		kafka_batches_delivered(k, TOPIC_PROGRAM);
		assert_true(t->is_timeless);
		assert_string_not_equal(status().warning, "");
		k->now_us++;
		kafka_batches_tick(k);
		assert_false(t->is_timeless);
		assert_string_equal(status().warning, "");
	}
	kafka_batches_delivered(k, TOPIC_PROGRAM);	/* with one */
	judge(RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, 7, 100, &reason);
	kafka_batches_next(k);
	assert_int_equal(t->timeless_until_us, k->now_us + 10 * MINUTE);
}

static void
a_batch_size_recovers_after_a_pause_that_doubles_where_it_is_in_vain(void **state)
{
	const char *reason;

	(void)state;
	for (int i = 0; i < 2; i++) {
		judge(RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, 7, 10, &reason);
		assert_true(k->wants_smaller);
		kafka_batches_next(k);
	}
	assert_string_equal(batch_size(), "1000");
	k->now_us += 10 * MINUTE - 1;
	kafka_batches_tick(k);
	assert_false(k->wants_larger);
	k->now_us++;
	kafka_batches_tick(k);
	assert_true(k->wants_larger);
	kafka_batches_next(k);
	assert_string_equal(batch_size(), "2000");
	/* Refused again: the next time is later. */
	judge(RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, 7, 10, &reason);
	kafka_batches_next(k);
	assert_string_equal(batch_size(), "1000");
	assert_int_equal(k->grow_at_us, k->now_us + 20 * MINUTE);
	for (int i = 0; i < 2; i++) {
		k->now_us += 20 * MINUTE;
		kafka_batches_tick(k);
		assert_true(k->wants_larger);
		kafka_batches_next(k);
	}
	assert_string_equal(batch_size(), "4000");
	k->now_us += 1000 * MINUTE;
	kafka_batches_tick(k);
	assert_false(k->wants_larger);	/* as configured */
}

/* --- with librdkafka's mock broker, of which each producer has its own --- */

static bool
has_answered_all(void)
{
	return reported.n_delivered + reported.n_failed == 20;
}

/* Hands 20 records over, to a broker that refuses the request after the first good ones. */
static void
hand_over_20(unsigned good, rd_kafka_resp_err_t err)
{
	rd_kafka_mock_cluster_t *mock = rd_kafka_handle_mock_cluster(k->client->rk);
	const char *reason;

	for (unsigned i = 0; i < good; i++)
		rd_kafka_mock_push_request_errors(mock, 0 /* Produce */, 1, RD_KAFKA_RESP_ERR_NO_ERROR);
	if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
		rd_kafka_mock_push_request_errors(mock, 0, 1, err);
	reported.n_delivered = reported.n_failed = 0;
	for (uint64_t id = 0; id < 20; id++)
		assert_int_equal(put(id, 10, &reason), 0);
	assert_true(wait_for(has_answered_all));
}

static uint64_t producers;

static bool
has_next_producer(void)
{
	struct kafka_stats stats;

	kafka_stats(output, &stats);
	return stats.producers > producers;
}

static void
next_producer(void)
{
	struct kafka_stats stats;

	kafka_stats(output, &stats);
	producers = stats.producers;
	assert_true(wait_for(has_next_producer));
	assert_true(wait_for(is_there));
}

static bool
has_whole_batches(void)
{
	return !k->is_apart && !k->wants_larger;
}

static void
of_a_refused_batch_only_the_record_at_fault_is_given_up(void **state)
{
	(void)state;
	output->ops->close(output);
	open_mock("linger.ms", "200");
	k = (struct kafka *)output;
	assert_true(wait_for(is_there));
	hand_over_20(0, RD_KAFKA_RESP_ERR_INVALID_RECORD);
	assert_int_equal(reported.n_failed, 20);
	assert_int_equal(reported.failure, OUTPUT_AGAIN);
	assert_string_equal(reported.reason, "timestamp_refused");
	next_producer();	/* even without a recall */
	hand_over_20(0, RD_KAFKA_RESP_ERR_INVALID_RECORD);
	assert_int_equal(reported.n_failed, 20);
	assert_string_equal(reported.reason, "batch_refused");
	next_producer();
	hand_over_20(7, RD_KAFKA_RESP_ERR_INVALID_RECORD);
	assert_int_equal(reported.n_delivered, 19);
	assert_int_equal(reported.n_failed, 1);
	assert_int_equal(reported.failure, OUTPUT_NEVER);
	assert_string_equal(reported.reason, "invalid_record");
	assert_string_equal(reported.key, "host:run-1");
	assert_int_equal(reported.seq, 7);
	assert_int_equal(reported.schema, 77);
	assert_true(reported.len > 100);
	assert_non_null(strstr(status().error, "t.sluice.program"));
	/* All of the batch were handed over: the next producer has whole batches again. */
	assert_true(wait_for(has_whole_batches));
	hand_over_20(0, RD_KAFKA_RESP_ERR_NO_ERROR);
	assert_int_equal(reported.n_delivered, 20);
}


#define T(name) cmocka_unit_test_setup_teardown(name, setup_alone, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_refused_record_is_at_fault_once_it_is_timeless_and_alone),
		T(a_topic_of_which_each_record_is_refused_waits),
		T(a_time_that_is_refused_without_a_timestamp_is_waited_for),
		T(a_record_as_large_as_a_batch_is_alone_in_it),
		T(before_batches_grow_nothing_is_on_its_way),
		T(what_stays_on_its_way_is_recalled_before_batches_grow),
		T(an_old_record_explains_itself),
		T(timestamps_return_after_a_pause_that_doubles_to_an_hour),
		T(a_batch_size_recovers_after_a_pause_that_doubles_where_it_is_in_vain),
		T(of_a_refused_batch_only_the_record_at_fault_is_given_up),
	};

	return cmocka_run_group_tests(tests, threads_begin, threads_end);
}
