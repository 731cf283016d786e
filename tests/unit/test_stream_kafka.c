/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <event2/event.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "samples.h"
#include "stream/encode.h"
#include "stream/kafka.h"
#include "stream/kafka_client.h"
#include "stream/kafka_frame.h"

/* What an outlet told, and what it was told. */
static struct told {
	uint64_t delivered[4096];
	size_t n_delivered;
	uint64_t failed[4096];
	size_t n_failed;
	enum outlet_failure failure;	/* of the last */
	char reason[64];
	char key[64];
	uint64_t seq, schema;
	size_t len;
	unsigned ready;
	int schema_error;	/* what schema_id() returns */
	unsigned asked;		/* how often */
	char subject[64];
	char log[128];
	int log_level;
} told;

static enum topic used;		/* of all records that are put and come back */

static void
on_delivered(enum topic topic, uint64_t id, void *arg)
{
	(void)arg;
	assert_int_equal(topic, used);
	told.delivered[told.n_delivered++] = id;
}

static void
on_failed(const struct spool_record *r, enum outlet_failure failure, const char *reason,
    const char *detail, void *arg)
{
	(void)arg;
	assert_true(strlen(detail) > 0);
	assert_int_equal(r->topic, used);
	told.failed[told.n_failed++] = r->id;
	told.failure = failure;
	snprintf(told.reason, sizeof(told.reason), "%s", reason);
	snprintf(told.key, sizeof(told.key), "%s", r->key);
	told.seq = r->seq;
	told.schema = r->schema;
	told.len = r->len;
}

static void
on_ready(void *arg)
{
	(void)arg;
	told.ready++;
}

static int
schema_id(void *arg, const char *subject, const struct spool_record *r, int32_t *ret)
{
	(void)arg;
	told.asked++;
	snprintf(told.subject, sizeof(told.subject), "%s", subject);
	assert_true(r->schema == 77 || r->schema == 78);
	*ret = 0x01020304;
	return told.schema_error;
}

static struct event_base *base;
static struct outlet *outlet;
static struct encoder *encoder;

static int
open_with(const char *broker, const struct kafka_property *properties, size_t n, char *error,
    size_t error_size)
{
	struct outlet_events events = { on_delivered, on_failed, on_ready, NULL };
	struct kafka_options o = { .brokers = &broker, .n_brokers = broker != NULL, .properties = properties,
	    .n_properties = n, .topic_prefix = "t.", .create_topics = true, .partitions = 2,
	    .agent_version = "1.2.3", .schema_id = schema_id };

	return kafka_open(base, &o, &events, &outlet, error, error_size);
}

/* librdkafka's own stand-in for a broker, within the process. */
static void
open_mock(const char *name, const char *value)
{
	struct kafka_property properties[] = { { "test.mock.num.brokers", "1" }, { "linger.ms", "1" },
		{ name, value } };
	char error[256] = "";

	if (open_with(NULL, properties, name != NULL ? 3 : 2, error, sizeof(error)) < 0)
		fail_msg("%s", error);
}

static int
setup(void **state)
{
	struct stream_identity identity = sample_identity();
	char error[256];

	(void)state;
	memset(&told, 0, sizeof(told));
	used = TOPIC_PROGRAM;
	outlet = NULL;
	base = event_base_new();
	return encoder_open(&identity, &encoder, error, sizeof(error));
}

static int
teardown(void **state)
{
	struct timespec moment = { 0, 300 * 1000 * 1000 };

	(void)state;
	if (outlet != NULL)
		outlet->ops->close(outlet);
	encoder_close(encoder);
	event_base_free(base);
	nanosleep(&moment, NULL);	/* the thread that takes the producer down */
	return 0;
}

static int
put_with(uint64_t id, uint64_t schema, size_t argument, const char **reason)
{
	char *text = malloc(argument + 1);
	const char *argv[] = { text };
	struct program_record program = sample_program_start();
	struct spool_record r = { .id = id, .topic = used, .schema = schema, .seq = id,
	    .time_us = SAMPLE_TIME, .key = "host:run-1" };
	const uint8_t *data;
	int error;

	memset(text, 'x', argument);
	text[argument] = '\0';
	program.argv = argv;
	program.argc = 1;
	assert_int_equal(encode(encoder, TOPIC_PROGRAM, &program, id, &data, &r.len), 0);
	r.data = data;
	error = outlet->ops->put(outlet, &r, reason);
	free(text);
	return error;
}

static int
put(uint64_t id, size_t argument, const char **reason)
{
	return put_with(id, 77, argument, reason);
}

/* Turns of the loop with ticks, until what is wanted or for a few seconds. */
static bool
wait_for(bool (*is_done)(void))
{
	for (int i = 0; i < 500; i++) {
		struct timeval tv = { 0, 10000 };

		event_base_loopexit(base, &tv);
		event_base_dispatch(base);
		if (is_done())
			return true;
		if (outlet != NULL && i % 10 == 9)
			outlet->ops->tick(outlet, 0);
	}
	return false;
}

static struct outlet_status
status(void)
{
	struct outlet_status s;

	outlet->ops->status(outlet, &s);
	return s;
}

static bool
is_taking(void)
{
	static uint64_t id;
	const char *reason;

	return put(id++, 10, &reason) == 0;
}

static bool
is_settled(void)
{
	return status().in_flight == 0;
}

static bool
is_down(void)
{
	return status().state == OUTLET_DOWN;
}

static void
the_frame_is_a_zero_the_id_and_the_record(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	assert_int_equal(kafka_frame(&b, 0x01020304, "abc", 3), 0);
	assert_int_equal(b.len, 8);
	assert_memory_equal(b.data, "\0\1\2\3\4abc", 8);
	assert_int_equal(kafka_frame_id(b.data), 0x01020304);
	assert_int_equal(kafka_frame(&b, 7, NULL, 0), 0);
	assert_int_equal(b.len, KAFKA_FRAME_BYTES);
	bytes_done(&b);
}

static void
the_head_is_read_from_any_record(void **state)
{
	const struct program_record program = sample_program_end();
	const struct usage_record usage = sample_usage_record();
	const struct work_record work = sample_work();
	const struct host_record host = sample_host();
	const struct finding_record finding = sample_finding();
	const struct agent_record agent = sample_agent();
	const void *records[TOPIC_COUNT] = { &program, &usage, &work, &work, &host, &finding, &agent };
	struct kafka_record_head head;
	const uint8_t *data;
	size_t len;

	(void)state;
	for (int t = 0; t < TOPIC_COUNT; t++) {
		assert_int_equal(encode(encoder, t, records[t], 1000 + (uint64_t)t, &data, &len), 0);
		assert_true(kafka_record_head(data, len, &head));
		assert_int_equal(head.time_us, SAMPLE_TIME);
		assert_int_equal(head.seq, 1000 + t);
		assert_int_equal(head.schema_version, RECORD_SCHEMA_VERSION);
	}
}

static void
a_head_that_is_cut_or_wrong_is_none(void **state)
{
	const struct program_record program = sample_program_start();
	struct kafka_record_head head;
	const uint8_t *data;
	uint8_t *copy;
	size_t len;

	(void)state;
	assert_int_equal(encode(encoder, TOPIC_PROGRAM, &program, 5, &data, &len), 0);
	for (size_t n = 0; n < 120; n++) {
		copy = malloc(n + 1);	/* so that reading on is noticed */
		memcpy(copy, data, n);
		assert_false(kafka_record_head(copy, n, &head));
		free(copy);
	}
	assert_false(kafka_record_head("\2\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 11, &head));
	assert_false(kafka_record_head("\2\1", 2, &head));
}

static void
errors_pass_or_never_will(void **state)
{
	static const struct {
		rd_kafka_resp_err_t err;
		enum outlet_failure failure;
		const char *reason;
		bool is_topic_gone;
	} want[] = {
		{ RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, OUTLET_NEVER, "msg_size_too_large" },
		{ RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, OUTLET_NEVER, "topic_authorization_failed" },
		{ RD_KAFKA_RESP_ERR_INVALID_RECORD, OUTLET_NEVER, "invalid_record" },
		{ RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, OUTLET_AGAIN, "msg_timed_out" },
		{ RD_KAFKA_RESP_ERR__TRANSPORT, OUTLET_AGAIN, "transport" },
		{ RD_KAFKA_RESP_ERR__PURGE_QUEUE, OUTLET_AGAIN, "given_back" },
		{ RD_KAFKA_RESP_ERR__PURGE_INFLIGHT, OUTLET_AGAIN, "given_back" },
		{ RD_KAFKA_RESP_ERR__AUTHENTICATION, OUTLET_AGAIN, "authentication" },
		{ RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, OUTLET_AGAIN, "not_enough_replicas" },
		{ RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, OUTLET_AGAIN, "unknown_topic_or_partition", true },
		{ RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, OUTLET_AGAIN, "unknown_topic_or_partition", true },
		{ RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, OUTLET_AGAIN, "unknown_topic_or_partition", true },
		{ 4711, OUTLET_AGAIN, "broker_error" },
		{ -4711, OUTLET_AGAIN, "library_error" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct kafka_failure f = kafka_failure(want[i].err);

		assert_int_equal(f.failure, want[i].failure);
		assert_string_equal(f.reason, want[i].reason);
		assert_int_equal(f.is_topic_gone, want[i].is_topic_gone);
	}
}

static void
a_wrong_property_is_named(void **state)
{
	static const struct {
		struct kafka_property property;
		const char *error;
	} wrong[] = {
		{ { "compresson.type", "lz4" }, "compresson.type" },
		{ { "compression.type", "best" }, "compression" },
		{ { "linger.ms", "-3" }, "linger.ms" },
		{ { "acks", "1" }, "acks" },	/* does not go with idempotence: only opening tells */
	};
	const char *broker = "127.0.0.1:1";

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct kafka_options o = { .brokers = &broker, .n_brokers = 1,
		    .properties = &wrong[i].property, .n_properties = 1 };
		char error[256] = "";

		assert_int_equal(open_with(broker, &wrong[i].property, 1, error, sizeof(error)), -EINVAL);
		assert_null(outlet);
		assert_non_null(strstr(error, wrong[i].error));
		if (i < 3) {
			error[0] = '\0';
			assert_int_equal(kafka_check(&o, error, sizeof(error)), -EINVAL);
			assert_non_null(strstr(error, wrong[i].error));
		}
	}
}

static void
no_broker_is_an_error_of_the_configuration(void **state)
{
	struct kafka_options o = { 0 };
	char error[256] = "";

	(void)state;
	assert_int_equal(kafka_check(&o, error, sizeof(error)), -EINVAL);
	assert_non_null(strstr(error, "broker"));
}

static void
the_users_properties_win(void **state)
{
	const char *broker = "a:1";
	struct kafka_property p[] = { { "linger.ms", "7" }, { "client.id", "other" } };
	struct kafka_options o = { .brokers = &broker, .n_brokers = 1, .properties = p, .n_properties = 2 };
	char error[256], text[64];
	rd_kafka_conf_t *conf = kafka_conf_new(&o, error, sizeof(error));

	(void)state;
	assert_non_null(conf);
	assert_string_equal(kafka_conf_get(conf, "client.id", text, sizeof(text)), "other");
	assert_int_equal(atof(kafka_conf_get(conf, "linger.ms", text, sizeof(text))), 7);
	assert_string_equal(kafka_conf_get(conf, "enable.idempotence", text, sizeof(text)), "true");
	assert_string_equal(kafka_conf_get(conf, "partitioner", text, sizeof(text)), "murmur2_random");
	assert_string_equal(kafka_conf_get(conf, "compression.codec", text, sizeof(text)), "lz4");
	assert_null(kafka_conf_get(conf, "no.such", text, sizeof(text)));
	rd_kafka_conf_destroy(conf);
}

static void
scram_with_an_old_library_is_known(void **state)
{
	struct kafka_property p[] = { { "sasl.mechanism", "SCRAM-SHA-512" } };
	struct kafka_options o = { .properties = p, .n_properties = 1 };
	struct kafka_library library;
	char error[256];
	rd_kafka_conf_t *conf = kafka_conf_new(&o, error, sizeof(error));

	(void)state;
	assert_non_null(conf);
	kafka_library_describe(&library);
	assert_int_equal(kafka_conf_has_broken_scram(conf), !library.has_modern_scram);
	rd_kafka_conf_destroy(conf);
	o.n_properties = 0;
	conf = kafka_conf_new(&o, error, sizeof(error));
	assert_false(kafka_conf_has_broken_scram(conf));
	rd_kafka_conf_destroy(conf);
}

static void
the_library_says_what_it_can_do(void **state)
{
	struct kafka_library l;

	(void)state;
	kafka_library_describe(&l);
	assert_string_equal(l.version, rd_kafka_version_str());
	assert_int_equal(l.n, KAFKA_ABILITIES);
	for (size_t i = 0; i < l.n; i++) {
		assert_true(strlen(l.abilities[i].name) > 0);
		/* Any that is fit for use has these; the rest only must not be claimed without a try. */
		if (strcmp(l.abilities[i].name, "lz4") == 0 || strcmp(l.abilities[i].name, "PLAIN") == 0)
			assert_true(l.abilities[i].works);
		assert_true(l.abilities[i].works || l.abilities[i].error[0] != '\0');
	}
}

static void
a_record_is_delivered_by_its_report(void **state)
{
	const char *reason;
	uint64_t id;

	(void)state;
	open_mock(NULL, NULL);
	assert_int_equal(put(1, 10, &reason), -EAGAIN);	/* nobody knows yet whether the topic is there */
	assert_true(wait_for(is_taking));
	assert_true(told.ready > 0);
	for (id = 1000; id < 1100; id++)
		assert_int_equal(put(id, 10, &reason), 0);
	assert_true(status().queued_bytes > 100 * 50);
	assert_true(wait_for(is_settled));
	assert_int_equal(told.n_delivered, 101);
	assert_int_equal(told.n_failed, 0);
	assert_int_equal(status().delivered, 101);
	assert_int_equal(status().queued_bytes, 0);
	assert_int_equal(status().state, OUTLET_UP);
	assert_int_equal(told.asked, 1);	/* an id is asked for once */
	assert_string_equal(told.subject, "t.sluice.program-value");
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
		assert_int_equal(told.n_delivered, (size_t)used + 1);
		snprintf(subject, sizeof(subject), "t.%s-value", topic_name(used));
		assert_string_equal(told.subject, subject);
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
a_full_queue_is_told_when_it_has_room(void **state)
{
	const char *reason;
	unsigned n = 0;

	(void)state;
	open_mock("queue.buffering.max.messages", "50");
	assert_true(wait_for(is_taking));
	assert_true(wait_for(is_settled));
	while (put(100 + n, 10, &reason) == 0)
		assert_true(++n < 100);
	assert_true(n >= 49);
	told.ready = 0;
	assert_true(wait_for(is_settled));
	assert_true(told.ready > 0);
	assert_int_equal(put(999, 10, &reason), 0);
}

static void
a_schema_without_an_id_is_waited_for(void **state)
{
	const char *reason = NULL;

	(void)state;
	open_mock(NULL, NULL);
	told.schema_error = -EACCES;
	assert_false(is_taking());
	for (int i = 0; i < 50 && told.ready == 0; i++)
		wait_for(is_settled);
	assert_int_equal(put(1, 10, &reason), -EAGAIN);
	assert_true(told.asked > 0);
	told.ready = 0;
	told.schema_error = 0;
	kafka_registry_changed(outlet);
	assert_int_equal(told.ready, 1);
	assert_int_equal(put(1, 10, &reason), 0);
	assert_true(wait_for(is_settled));
}

static void
a_schema_that_nobody_knows_never_goes(void **state)
{
	const char *reason = NULL;

	(void)state;
	open_mock(NULL, NULL);
	told.schema_error = -ENOENT;
	for (int i = 0; i < 50 && put(1, 10, &reason) == -EAGAIN; i++)
		wait_for(is_settled);
	assert_int_equal(put(1, 10, &reason), -ENOENT);
	assert_string_equal(reason, "schema_unknown");
}

static void
what_is_given_back_has_the_same_ids_and_another_producer_follows(void **state)
{
	struct kafka_stats stats;
	const char *reason;
	uint64_t sum = 0;

	(void)state;
	open_mock("linger.ms", "60000");
	assert_true(wait_for(is_taking));
	for (uint64_t id = 500; id < 600; id++)
		assert_int_equal(put(id, 10, &reason), 0);
	told.ready = 0;
	outlet->ops->give_back(outlet);
	assert_int_equal(put(1, 10, &reason), -EAGAIN);
	assert_true(wait_for(is_settled));
	assert_int_equal(told.n_failed, 101);
	assert_int_equal(told.failure, OUTLET_AGAIN);
	assert_string_equal(told.reason, "given_back");
	assert_string_equal(told.key, "host:run-1");
	assert_int_equal(told.seq, told.failed[100]);
	assert_int_equal(told.schema, 77);
	for (size_t i = 0; i < 101; i++)
		sum += told.failed[i] >= 500 ? told.failed[i] : 0;
	assert_int_equal(sum, 100 * (500 + 599) / 2);
	for (int i = 0; i < 50 && told.ready == 0; i++)
		wait_for(is_settled);
	assert_int_equal(told.ready, 1);
	kafka_stats(outlet, &stats);
	assert_int_equal(stats.producers, 2);
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
	assert_true(wait_for(is_taking));
	assert_true(wait_for(is_settled));
	k = (struct kafka *)outlet;
	mock = rd_kafka_handle_mock_cluster(k->client->rk);
	assert_non_null(mock);
	rd_kafka_mock_broker_set_down(mock, 1);
	assert_int_equal(put(42, 10, &reason), 0);
	assert_true(wait_for(is_settled));
	assert_int_equal(told.n_failed, 1);
	assert_int_equal(told.failed[0], 42);
	assert_int_equal(told.failure, OUTLET_AGAIN);
	assert_string_equal(told.reason, "msg_timed_out");
	assert_int_equal(status().state, OUTLET_DOWN);
}

static void
what_a_broker_forbids_comes_with_the_record(void **state)
{
	const char *reason;
	struct kafka *k;

	(void)state;
	open_mock(NULL, NULL);
	assert_true(wait_for(is_taking));
	assert_true(wait_for(is_settled));
	k = (struct kafka *)outlet;
	rd_kafka_mock_push_request_errors(rd_kafka_handle_mock_cluster(k->client->rk), 0 /* Produce */, 1,
	    RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
	assert_int_equal(put(42, 10, &reason), 0);
	assert_true(wait_for(is_settled));
	assert_int_equal(told.n_failed, 1);
	assert_int_equal(told.failure, OUTLET_NEVER);
	assert_string_equal(told.reason, "topic_authorization_failed");
	assert_string_equal(told.key, "host:run-1");
	assert_int_equal(told.seq, 42);
	assert_int_equal(told.schema, 77);
	assert_true(told.len > 100);
	assert_non_null(strstr(status().error, "t.sluice.program"));
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
	k = (struct kafka *)outlet;
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
	told.ready = 0;
	assert_true(wait_for(is_taking));
	assert_true(told.ready > 0);
	assert_true(wait_for(is_settled));
}

static bool
is_replaced(void)
{
	struct kafka_stats stats;

	kafka_stats(outlet, &stats);
	return stats.producers == 2 && status().in_flight == 0;
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
	k = (struct kafka *)outlet;
	rd_kafka_test_fatal_error(k->client->rk, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, "made up");
	assert_true(wait_for(is_replaced));
	assert_int_equal(told.n_failed, 2);
	assert_int_equal(told.failure, OUTLET_AGAIN);
	assert_non_null(strstr(status().error, "made up"));
	assert_true(wait_for(is_taking));
}

static void
on_log(int level, const char *facility, const char *text, void *arg)
{
	(void)arg;
	if (strcmp(facility, "BATCH") != 0 && strcmp(facility, "CONFIG") != 0)
		return;
	told.log_level = level;
	snprintf(told.log, sizeof(told.log), "%s", text);
}

static bool
has_three_producers(void)
{
	struct kafka_stats stats;

	kafka_stats(outlet, &stats);
	return stats.producers == 3;
}

static void
batches_shrink_with_the_next_producer(void **state)
{
	char text[16];
	struct kafka *k;

	(void)state;
	open_mock("batch.size", "3000");
	k = (struct kafka *)outlet;
	k->on_log = on_log;
	k->wants_smaller = true;
	outlet->ops->give_back(outlet);
	assert_true(wait_for(is_replaced));
	assert_string_equal(told.log, "a broker refuses batches of 3000 bytes: half of that from now on");
	assert_int_equal(told.log_level, 4);
	assert_int_equal(k->batch_bytes, 1500);
	assert_string_equal(kafka_conf_get(k->conf, "batch.size", text, sizeof(text)), "1500");
	assert_false(k->wants_smaller);
	told.log[0] = '\0';
	outlet->ops->give_back(outlet);
	assert_true(wait_for(has_three_producers));
	assert_string_equal(told.log, "");	/* only where one was too large */
	assert_int_equal(k->batch_bytes, 1500);
}

static void
a_promise_that_is_given_away_is_told(void **state)
{
	static const struct {
		struct kafka_property acks;
		const char *says;
	} cases[] = {
		{ { "acks", "0" }, "with acks=0 a record counts as delivered before a broker has it" },
		{ { "acks", "1" }, "" },
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		const struct kafka_property p[] = { { "enable.idempotence", "false" }, cases[i].acks };
		const char *broker = "127.0.0.1:1";
		struct outlet_events events = { on_delivered, on_failed, on_ready, NULL };
		struct kafka_options o = { .brokers = &broker, .n_brokers = 1, .properties = p, .n_properties = 2,
			.schema_id = schema_id, .on_log = on_log };
		char error[256];

		told.log[0] = '\0';
		assert_int_equal(kafka_open(base, &o, &events, &outlet, error, sizeof(error)), 0);
		assert_string_equal(told.log, cases[i].says);
		outlet->ops->close(outlet);
		outlet = NULL;
	}
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
		k = (struct kafka *)outlet;
		k->batch_bytes = sizes[i];
		k->wants_smaller = true;
		outlet->ops->give_back(outlet);
		assert_true(wait_for(is_replaced));
		assert_int_equal(k->batch_bytes, 1);
		assert_string_equal(kafka_conf_get(k->conf, "batch.size", text, sizeof(text)), "1");
		outlet->ops->close(outlet);
		outlet = NULL;
	}
}

/* All that an outlet says of itself while nothing is wrong, and as a producer after another is counted. */
static void
what_was_retried_is_summed_over_all_producers(void **state)
{
	struct kafka_stats stats;
	struct kafka *k;

	(void)state;
	open_mock(NULL, NULL);
	k = (struct kafka *)outlet;
	assert_string_equal(status().kind, "kafka");
	assert_int_equal(status().state, OUTLET_STARTING);
	kafka_stats(outlet, &stats);
	assert_int_equal(stats.producers, 1);
	k->retried_before = 5;
	k->retried_now = 3;
	outlet->ops->give_back(outlet);
	assert_true(wait_for(is_replaced));
	assert_int_equal(k->retried_before, 8);
	assert_int_equal(k->retried_now, 0);
	assert_false(k->is_giving_back || k->is_failed || k->is_waiting || k->is_creating);
	assert_int_equal(told.ready > 0, true);
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
	k = (struct kafka *)outlet;
	rd_kafka_test_fatal_error(k->client->rk, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, "made up");
	assert_int_equal(put(42, 10, &reason), -EAGAIN);
	assert_true(k->is_failed);
	assert_int_equal(status().in_flight, 0);
	assert_int_equal(status().queued_bytes, 0);
	assert_int_equal(put(43, 10, &reason), -EAGAIN);
	assert_true(wait_for(is_replaced));
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
	k = (struct kafka *)outlet;
	k->is_failed = true;
	k->replace_at_us = INT64_MAX;
	for (int i = 0; i < 3; i++)
		outlet->ops->tick(outlet, 0);
	kafka_stats(outlet, &stats);
	assert_int_equal(stats.producers, 1);
	assert_true(k->is_giving_back);		/* so much is done at once */
	k->replace_at_us = 0;
	outlet->ops->tick(outlet, 0);
	kafka_stats(outlet, &stats);
	assert_int_equal(stats.producers, 2);
	assert_false(k->is_failed || k->is_giving_back);
	assert_int_equal(k->replace_at_us, k->now_us + 2000000);
	/* Where none could be made the next try has to wait too. */
	kafka_client_release(k->client);
	k->client = NULL;
	outlet->ops->tick(outlet, 0);
	assert_null(k->client);
	k->replace_at_us = 0;
	outlet->ops->tick(outlet, 0);
	assert_non_null(k->client);
	kafka_stats(outlet, &stats);
	assert_int_equal(stats.producers, 3);
}

static bool
is_there(void)
{
	return kafka_topic_is_there((struct kafka *)outlet, TOPIC_PROGRAM);
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
		for (size_t i = 0; rd_kafka_header_get_all(headers, i, &name, &value, &size) == 0; i++)
			at += (size_t)snprintf(sent.headers + at, sizeof(sent.headers) - at, "%s=%.*s;", name, (int)size,
			    (const char *)value);
	}
	sent.then(rk, m, arg);
}

/* Puts it and waits until it is delivered. */
static void
deliver_one(const struct spool_record *r)
{
	const char *reason;
	unsigned n = sent.n;

	assert_int_equal(outlet->ops->put(outlet, r, &reason), 0);
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
	/* The next producer tells us first. */
	k = (struct kafka *)outlet;
	memset(&sent, 0, sizeof(sent));
	assert_int_equal(sscanf(kafka_conf_get(k->conf, "dr_msg_cb", headers, sizeof(headers)), "%p", &p), 1);
	memcpy(&sent.then, &p, sizeof(p));
	rd_kafka_conf_set_dr_msg_cb(k->conf, on_sent);
	outlet->ops->give_back(outlet);
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

static void
each_schema_is_asked_for_once(void **state)
{
	const char *reason;

	(void)state;
	open_mock(NULL, NULL);
	assert_true(wait_for(is_there));
	for (uint64_t id = 0; id < 6; id++)
		assert_int_equal(put_with(id, 77 + id % 2, 10, &reason), 0);
	assert_int_equal(told.asked, 2);	/* an older program's records and ours, in turn */
	assert_true(wait_for(is_settled));
	assert_int_equal(told.n_delivered, 6);
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
	k = (struct kafka *)outlet;
	assert_true(k->is_waiting);
	assert_int_equal(k->room, status().in_flight - status().in_flight / 4);
	/* One more than that is no room, that many are. */
	told.ready = 0;
	k->room = status().in_flight - 1;
	outlet->ops->tick(outlet, 0);
	assert_int_equal(told.ready, 0);
	k->room = status().in_flight;
	outlet->ops->tick(outlet, 0);
	assert_int_equal(told.ready, 1);
	assert_false(k->is_waiting);
	assert_true(wait_for(is_settled));
}

static void
no_broker_is_a_state_with_a_sentence(void **state)
{
	char error[256];

	(void)state;
	assert_int_equal(open_with("127.0.0.1:1", NULL, 0, error, sizeof(error)), 0);
	assert_int_equal(status().state, OUTLET_STARTING);
	assert_true(wait_for(is_down));
	assert_non_null(strstr(status().error, "no broker can be reached"));
	assert_non_null(strstr(status().error, "127.0.0.1:1"));
	assert_true(status().error_us > 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_frame_is_a_zero_the_id_and_the_record),
		T(the_head_is_read_from_any_record),
		T(a_head_that_is_cut_or_wrong_is_none),
		T(errors_pass_or_never_will),
		T(a_wrong_property_is_named),
		T(no_broker_is_an_error_of_the_configuration),
		T(the_users_properties_win),
		T(scram_with_an_old_library_is_known),
		T(the_library_says_what_it_can_do),
		T(a_record_is_delivered_by_its_report),
		T(a_record_comes_back_as_one_of_its_topic),
		T(a_record_that_is_too_large_never_goes),
		T(a_full_queue_is_told_when_it_has_room),
		T(a_schema_without_an_id_is_waited_for),
		T(a_schema_that_nobody_knows_never_goes),
		T(what_is_given_back_has_the_same_ids_and_another_producer_follows),
		T(time_that_runs_out_gives_a_record_back),
		T(what_a_broker_forbids_comes_with_the_record),
		T(a_topic_that_is_gone_is_looked_for),
		T(after_a_fatal_error_another_producer_goes_on),
		T(batches_shrink_with_the_next_producer),
		T(a_batch_shrinks_to_a_byte_and_no_further),
		T(what_was_retried_is_summed_over_all_producers),
		T(after_a_fatal_error_no_record_is_taken),
		T(a_producer_that_failed_is_replaced_after_a_while),
		T(a_promise_that_is_given_away_is_told),
		T(a_full_queue_has_room_with_a_quarter_gone),
		T(each_schema_is_asked_for_once),
		T(a_message_is_the_frame_under_the_records_key_with_its_headers),
		T(no_broker_is_a_state_with_a_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
