/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka: a record counts as delivered once a broker has returned its offset, not where librdkafka concludes
 * that a broker has it since it accepted a later one: a broker without state of this producer accepts any.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include "kafka_kit.h"

#define PRODUCE 0	/* Kafka's ApiKey */
#define RTT_MS 1000	/* a second request follows the first long before that is answered */

/* Two requests in flight at once, of which the broker refuses the first as one that leads no more. */
static void
put_two_and_refuse_the_first(void)
{
	rd_kafka_mock_cluster_t *mock;
	const char *reason;

	assert_true(wait_for(is_taking));
	assert_true(wait_for(is_settled));
	reported.n_delivered = 0;
	mock = rd_kafka_handle_mock_cluster(((struct kafka *)output)->client->rk);
	rd_kafka_mock_broker_set_rtt(mock, 1, RTT_MS);
	rd_kafka_mock_push_request_errors(mock, PRODUCE, 1, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION);
	assert_int_equal(put(42, 10, &reason), 0);
	assert_int_equal(put(43, 10, &reason), 0);
	assert_true(wait_for(is_settled));
}

static void
a_record_without_an_offset_is_recalled(void **state)
{
	(void)state;
	open_mock("batch.num.messages", "1");
	put_two_and_refuse_the_first();
	assert_int_equal(reported.n_delivered, 1);
	assert_int_equal(reported.delivered[0], 43);
	assert_int_equal(reported.n_failed, 1);
	assert_int_equal(reported.failed[0], 42);
	assert_int_equal(reported.failure, OUTPUT_AGAIN);
	assert_string_equal(reported.reason, "unconfirmed");
	assert_int_equal(status().delivered, reported.n_delivered + 1);	/* and the one before */
	assert_int_equal(status().state, OUTPUT_UP);
}

/* Without an acknowledgement no record has an offset: the user has asked for that. */
static void
with_acks_0_no_offset_is_asked_for(void **state)
{
	struct kafka_property p[] = { { "test.mock.num.brokers", "1" }, { "linger.ms", "1" },
		{ "enable.idempotence", "false" }, { "acks", "0" } };
	char error[256];
	const char *reason;

	(void)state;
	assert_int_equal(open_with(NULL, p, 4, error, sizeof(error)), 0);
	assert_true(wait_for(is_there));
	assert_int_equal(put(42, 10, &reason), 0);
	assert_true(wait_for(is_settled));
	assert_int_equal(reported.n_failed, 0);
	assert_int_equal(reported.n_delivered, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_record_without_an_offset_is_recalled, setup, teardown),
		cmocka_unit_test_setup_teardown(with_acks_0_no_offset_is_asked_for, setup, teardown),
	};

	return cmocka_run_group_tests(tests, threads_begin, threads_end);
}
