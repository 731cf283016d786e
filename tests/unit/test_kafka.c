/* SPDX-License-Identifier: Apache-2.0 */
/* kafka: records that are put are sent and delivered, refused, or must wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdlib.h>
#include <string.h>

#include "kafka_kit.h"
#include "kafka/frame.h"

static void
a_record_is_delivered_by_its_report(void **state)
{
	const char *reason;
	uint64_t id;

	(void)state;
	open_mock(NULL, NULL);
	assert_int_equal(put(1, 10, &reason), -EAGAIN);	/* it is not known yet whether the topic exists */
	assert_true(wait_for(is_taking));
	assert_true(reported.ready > 0);
	for (id = 1000; id < 1100; id++)
		assert_int_equal(put(id, 10, &reason), 0);
	assert_true(status().queued_bytes > 100 * 50);
	assert_true(wait_for(is_settled));
	assert_int_equal(reported.n_delivered, 101);
	assert_int_equal(reported.n_failed, 0);
	assert_int_equal(status().delivered, 101);
	assert_int_equal(status().queued_bytes, 0);
	assert_int_equal(status().state, OUTPUT_UP);
	assert_int_equal(reported.asked, 1);	/* an id is asked for once */
	assert_string_equal(reported.subject, "t.sluice.program-value");
}

static void
a_record_comes_back_as_one_of_its_topic(void **state)
{
	(void)state;
	open_mock(NULL, NULL);
	for (used = 0; used < TOPIC_COUNT; used++) {
		char subject[64];

		assert_true(wait_for(is_taking));
		assert_true(wait_for(is_settled));
		assert_int_equal(reported.n_delivered, (size_t)used + 1);
		snprintf(subject, sizeof(subject), "t.%s-value", topic_name(used));
		assert_string_equal(reported.subject, subject);
	}
}

static void
a_record_that_is_too_large_never_goes(void **state)
{
	const char *reason = NULL;

	(void)state;
	open_mock("message.max.bytes", "2000");
	assert_true(wait_for(is_taking));
	assert_int_equal(put(5, 5000, &reason), -EMSGSIZE);
	assert_string_equal(reason, "msg_size_too_large");
	assert_int_equal(put(6, 50, &reason), 0);
	assert_true(wait_for(is_settled));
}

static void
room_in_a_full_queue_is_reported(void **state)
{
	const char *reason;
	unsigned n = 0;

	(void)state;
	open_mock("queue.buffering.max.messages", "50");
	assert_true(wait_for(is_taking));
	assert_true(wait_for(is_settled));
	while (put(100 + n, 10, &reason) == 0)
		assert_true(++n < 100);
	assert_int_equal(n, 25);	/* one topic may take half of it */
	reported.ready = 0;
	assert_true(wait_for(is_settled));
	assert_true(reported.ready > 0);
	assert_int_equal(put(999, 10, &reason), 0);
}

static void
a_full_queue_has_room_with_a_quarter_gone(void **state)
{
	const char *reason;
	struct kafka *k;

	(void)state;
	open_mock("queue.buffering.max.messages", "40");
	assert_true(wait_for(is_taking));
	assert_true(wait_for(is_settled));
	while (put(7, 10, &reason) == 0)
		;
	k = (struct kafka *)output;
	assert_true(k->is_waiting);
	assert_int_equal(k->room, status().in_flight - status().in_flight / 4);
	/* One more than that is no room, that many are. */
	reported.ready = 0;
	k->room = status().in_flight - 1;
	output->ops->tick(output, 0);
	assert_int_equal(reported.ready, 0);
	k->room = status().in_flight;
	output->ops->tick(output, 0);
	assert_int_equal(reported.ready, 1);
	assert_false(k->is_waiting);
	assert_true(wait_for(is_settled));
}

static void
a_schema_without_an_id_is_waited_for(void **state)
{
	const char *reason = NULL;

	(void)state;
	open_mock(NULL, NULL);
	reported.schema_error = -EACCES;
	assert_false(is_taking());
	for (int i = 0; i < 50 && reported.ready == 0; i++)
		wait_for(is_settled);
	assert_int_equal(put(1, 10, &reason), -EAGAIN);
	assert_string_equal(reason, "schema_refused");
	assert_true(reported.asked > 0);
	/* Only its topic waits, also before any id is known: the registry may have those of the others. */
	reported.schema_error = -EAGAIN;
	reason = NULL;
	assert_int_equal(put(1, 10, &reason), -EAGAIN);
	assert_string_equal(reason, "schema_id_unknown");
	reported.ready = 0;
	reported.schema_error = 0;
	kafka_registry_changed(output, 0);
	assert_int_equal(reported.ready, 1);
	assert_int_equal(put(1, 10, &reason), 0);
	assert_true(wait_for(is_settled));
}

/* Messages that wait to be sent come back, and are made of the new id. */
static void
another_epoch_of_the_registry_recalls_what_was_not_sent(void **state)
{
	const char *reason;
	struct kafka *k;

	(void)state;
	open_mock("linger.ms", "60000");
	assert_true(wait_for(is_there));
	k = (struct kafka *)output;
	reported.id = 7;
	assert_int_equal(put(1, 10, &reason), 0);
	kafka_registry_changed(output, 0);	/* the same epoch */
	assert_false(k->is_recalling);
	assert_int_equal(put(2, 10, &reason), 0);
	assert_int_equal(reported.asked, 1);
	reported.id = 8;
	reported.ready = 0;
	kafka_registry_changed(output, 1);
	assert_int_equal(put(3, 10, &reason), -EAGAIN);
	assert_true(wait_for(is_replaced));
	assert_true(reported.ready > 0);
	assert_int_equal(reported.n_failed, 2);
	assert_int_equal(reported.failure, OUTPUT_AGAIN);
	assert_int_equal(reported.schema, 77);	/* found by the id of the epoch before */
	assert_int_equal(put(1, 10, &reason), 0);
	assert_int_equal(reported.asked, 2);
	assert_int_equal(kafka_frame_id(k->frame.data), 8);
	/* The same id in another epoch takes no other place. */
	output->ops->recall(output);
	assert_true(wait_for(is_settled));
	kafka_registry_changed(output, 2);
	assert_true(wait_for(is_taking));
	assert_int_equal(reported.asked, 3);
	assert_int_equal(k->topics[TOPIC_PROGRAM].next_id, 2);
	assert_int_equal(kafka_frame_id(k->frame.data), 8);
}

static void
a_schema_that_nobody_knows_never_goes(void **state)
{
	const char *reason = NULL;

	(void)state;
	open_mock(NULL, NULL);
	reported.schema_error = -ENOENT;
	for (int i = 0; i < 50 && put(1, 10, &reason) == -EAGAIN; i++)
		wait_for(is_settled);
	assert_int_equal(put(1, 10, &reason), -ENOENT);
	assert_string_equal(reason, "schema_unknown");
}

static void
each_schema_is_asked_for_once(void **state)
{
	const char *reason;

	(void)state;
	open_mock(NULL, NULL);
	assert_true(wait_for(is_there));
	for (uint64_t id = 0; id < 6; id++)
		assert_int_equal(put_with(id, 77 + id % 2, 10, &reason), 0);
	assert_int_equal(reported.asked, 2);	/* an older program's records and ours, in turn */
	/* As many as four at once; of a fifth one the eldest is forgotten, and nothing else. */
	for (uint64_t id = 6; id < 14; id++)
		assert_int_equal(put_with(id, 77 + id % 4, 10, &reason), 0);
	assert_int_equal(reported.asked, 4);
	assert_int_equal(put_with(14, 81, 10, &reason), 0);
	assert_int_equal(reported.asked, 5);
	for (uint64_t schema = 78; schema <= 81; schema++)
		assert_int_equal(put_with(15, schema, 10, &reason), 0);
	assert_int_equal(reported.asked, 5);
	assert_int_equal(put_with(16, 77, 10, &reason), 0);
	assert_int_equal(reported.asked, 6);
	assert_true(wait_for(is_settled));
	assert_int_equal(reported.n_delivered, 20);
}

static void
time_that_runs_out_gives_a_record_back(void **state)
{
	struct kafka_property p[] = { { "test.mock.num.brokers", "1" }, { "message.timeout.ms", "100" },
		{ "linger.ms", "1" } };
	char error[256];
	struct kafka *k;
	rd_kafka_mock_cluster_t *mock;
	const char *reason;

	(void)state;
	assert_int_equal(open_with(NULL, p, 3, error, sizeof(error)), 0);
	/* On a busy machine the first record's time may run out while its broker is still being connected to. */
	for (int i = 0; i < 50 && reported.n_delivered == 0; i++) {
		assert_true(wait_for(is_taking));
		assert_true(wait_for(is_settled));
	}
	assert_int_equal(status().state, OUTPUT_UP);
	reported.n_failed = 0;
	k = (struct kafka *)output;
	mock = rd_kafka_handle_mock_cluster(k->client->rk);
	assert_non_null(mock);
	rd_kafka_mock_broker_set_down(mock, 1);
	assert_int_equal(put(42, 10, &reason), 0);
	assert_true(wait_for(is_settled));
	assert_int_equal(reported.n_failed, 1);
	assert_int_equal(reported.failed[0], 42);
	assert_int_equal(reported.failure, OUTPUT_AGAIN);
	assert_string_equal(reported.reason, "msg_timed_out");
	assert_int_equal(status().state, OUTPUT_DOWN);
}

static void
what_a_broker_forbids_is_waited_for(void **state)
{
	const char *reason;
	struct kafka *k;

	(void)state;
	open_mock(NULL, NULL);
	assert_true(wait_for(is_taking));
	assert_true(wait_for(is_settled));
	k = (struct kafka *)output;
	rd_kafka_mock_push_request_errors(rd_kafka_handle_mock_cluster(k->client->rk), 0 /* Produce */, 1,
	    RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
	assert_int_equal(put(42, 10, &reason), 0);
	assert_true(wait_for(is_settled));
	assert_int_equal(reported.n_failed, 1);
	assert_int_equal(reported.failure, OUTPUT_TOPIC_AGAIN);
	assert_string_equal(reported.reason, "topic_authorization_failed");
	assert_int_equal(reported.seq, 42);
	assert_string_equal(status().error, "topic t.sluice.program: its records wait, because brokers refuse them: "
	    "Broker: Topic authorization failed");
	assert_int_equal(status().state, OUTPUT_UP);	/* for the other topics */
	reason = NULL;
	assert_int_equal(put(42, 10, &reason), -EAGAIN);
	assert_string_equal(reason, "topic_authorization_failed");
	/* After a pause one record is tried alone, and then all. */
	reported.ready = 0;
	assert_true(wait_for(is_there));
	assert_true(reported.ready > 0);
	assert_int_equal(put(42, 10, &reason), 0);
	assert_int_equal(put(43, 10, &reason), -EAGAIN);
	assert_string_equal(reason, "topic_authorization_failed");
	reported.ready = 0;
	assert_true(wait_for(is_settled));
	assert_int_equal(reported.ready, 1);
	assert_int_equal(status().state, OUTPUT_UP);
	assert_int_equal(put(43, 10, &reason), 0);
	assert_int_equal(put(44, 10, &reason), 0);
	assert_true(wait_for(is_settled));
}

static void
a_topic_that_is_gone_is_looked_for(void **state)
{
	const char *reason;
	struct kafka *k;

	(void)state;
	open_mock(NULL, NULL);
	assert_true(wait_for(is_taking));
	assert_true(wait_for(is_settled));
	k = (struct kafka *)output;
	/* At once for all tries that librdkafka makes of its own. */
	rd_kafka_mock_topic_set_error(rd_kafka_handle_mock_cluster(k->client->rk), "t.sluice.program",
	    RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
	kafka_topic_lost(k, TOPIC_PROGRAM);
	assert_int_equal(put(1, 10, &reason), -EAGAIN);
	for (int i = 0; i < 30; i++)
		wait_for(is_settled);
	assert_int_equal(put(1, 10, &reason), -EAGAIN);
	rd_kafka_mock_topic_set_error(rd_kafka_handle_mock_cluster(k->client->rk), "t.sluice.program",
	    RD_KAFKA_RESP_ERR_NO_ERROR);
	reported.ready = 0;
	assert_true(wait_for(is_taking));
	assert_true(reported.ready > 0);
	assert_true(wait_for(is_settled));
}

static bool
is_settled_in_a_hurry(void)
{
	output->ops->flush(output);
	return is_settled();
}

/* As an agent that is about to stop asks for at each tick. */
static void
what_lingers_is_sent_in_a_hurry(void **state)
{
	const char *reason;

	(void)state;
	open_mock("linger.ms", "60000");
	assert_true(wait_for(is_there));
	assert_int_equal(put(42, 10, &reason), 0);
	assert_true(wait_for(is_settled_in_a_hurry));
	assert_int_equal(reported.n_delivered, 1);
}

/* The message that was delivered last, as librdkafka had it. */
static struct {
	void (*then)(rd_kafka_t *rk, const rd_kafka_message_t *m, void *arg);
	unsigned n;
	char key[64], headers[256];
	size_t len;
	uint8_t value[16];
} sent;

static void
on_sent(rd_kafka_t *rk, const rd_kafka_message_t *m, void *arg)
{
	rd_kafka_headers_t *headers;
	const char *name;
	const void *value;
	size_t size, at = 0;

	sent.n++;
	snprintf(sent.key, sizeof(sent.key), "%.*s", (int)m->key_len, (const char *)m->key);
	sent.len = m->len;
	memcpy(sent.value, m->payload, m->len < sizeof(sent.value) ? m->len : sizeof(sent.value));
	sent.headers[0] = '\0';
	if (rd_kafka_message_headers(m, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR) {
		for (size_t i = 0; rd_kafka_header_get_all(headers, i, &name, &value, &size) == 0; i++) {
			assert_int_equal(strnlen(value, size), size);	/* a text, without its end */
			at += (size_t)snprintf(sent.headers + at, sizeof(sent.headers) - at, "%s=%.*s;", name, (int)size,
			    (const char *)value);
		}
	}
	sent.then(rk, m, arg);
}

/* Puts it and waits until it is delivered. */
static void
deliver_one(const struct spool_record *r)
{
	const char *reason;
	unsigned n = sent.n;

	assert_int_equal(output->ops->put(output, r, &reason), 0);
	assert_true(wait_for(is_settled));
	assert_int_equal(sent.n, n + 1);
}

static void
a_message_is_the_frame_under_the_records_key_with_its_headers(void **state)
{
	struct spool_record r = { .id = 9, .topic = TOPIC_PROGRAM, .schema = 77, .time_us = SAMPLE_TIME,
		.key = "host:run-1" };
	const struct program_record program = sample_program_start();
	char headers[128];
	const uint8_t *data;
	struct kafka *k;
	void *p;

	(void)state;
	open_mock(NULL, NULL);
	assert_true(wait_for(is_there));
	/* The next producer reports first. */
	k = (struct kafka *)output;
	memset(&sent, 0, sizeof(sent));
	assert_int_equal(sscanf(kafka_conf_get(k->conf, "dr_msg_cb", headers, sizeof(headers)), "%p", &p), 1);
	memcpy(&sent.then, &p, sizeof(p));
	rd_kafka_conf_set_dr_msg_cb(k->conf, on_sent);
	output->ops->recall(output);
	assert_true(wait_for(is_replaced));
	rd_kafka_mock_topic_create(rd_kafka_handle_mock_cluster(k->client->rk), "t.sluice.program", 1, 1);
	assert_int_equal(encode(encoder, TOPIC_PROGRAM, &program, 9, &data, &r.len), 0);
	r.data = data;
	for (int again = 0; again < 3; again++) {
		r.is_again = again == 1;
		deliver_one(&r);
		assert_string_equal(sent.key, "host:run-1");
		assert_int_equal(sent.len, KAFKA_FRAME_BYTES + r.len);
		assert_memory_equal(sent.value, "\0\1\2\3\4", 5);
		assert_memory_equal(sent.value + 5, r.data, 11);
		snprintf(headers, sizeof(headers), "schema_version=%d;agent_version=1.2.3;%s", RECORD_SCHEMA_VERSION,
		    again == 1 ? "redelivery=1;" : "");
		assert_string_equal(sent.headers, headers);
	}
	/* What is no record of ours has no version; another version is not the one before's. */
	r.len = 3;
	deliver_one(&r);
	assert_string_equal(sent.headers, "agent_version=1.2.3;");
	r.data = "\2\0\0\0\0\4\0\0\0\0\0\6";
	r.len = 12;
	deliver_one(&r);
	assert_string_equal(sent.headers, "schema_version=3;agent_version=1.2.3;");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_record_is_delivered_by_its_report),
		T(a_record_comes_back_as_one_of_its_topic),
		T(a_record_that_is_too_large_never_goes),
		T(room_in_a_full_queue_is_reported),
		T(a_schema_without_an_id_is_waited_for),
		T(another_epoch_of_the_registry_recalls_what_was_not_sent),
		T(a_schema_that_nobody_knows_never_goes),
		T(time_that_runs_out_gives_a_record_back),
		T(what_a_broker_forbids_is_waited_for),
		T(a_topic_that_is_gone_is_looked_for),
		T(a_full_queue_has_room_with_a_quarter_gone),
		T(each_schema_is_asked_for_once),
		T(what_lingers_is_sent_in_a_hurry),
		T(a_message_is_the_frame_under_the_records_key_with_its_headers),
	};

	return cmocka_run_group_tests(tests, threads_begin, threads_end);
}
