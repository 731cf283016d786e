/* SPDX-License-Identifier: Apache-2.0 */
/* kafka_report: the effects of librdkafka's reports, made by the test or by a producer without a broker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "faults.h"
#include "samples.h"
#include "codec/encode.h"
#include "kafka/client.h"
#include "kafka/frame.h"

/* The callbacks that the owner received. */
static struct {
	enum topic topic;
	uint64_t id;
	unsigned delivered, failed;
	enum output_failure failure;
	char reason[64], detail[128], key[128];
	uint64_t seq, schema;
	int64_t time_us;
	size_t len;
	unsigned logged;
	int level;
} reported;

#define SECOND INT64_C(1000000)

/* The callbacks, as librdkafka would call them. */
static void (*dr_msg)(rd_kafka_t *rk, const rd_kafka_message_t *m, void *arg);
static void (*error)(rd_kafka_t *rk, int err, const char *text, void *arg);
static int (*stats)(rd_kafka_t *rk, char *text, size_t len, void *arg);

static int64_t latency_us = -1;	/* of each message: librdkafka has it of its own ones only */

int64_t __wrap_rd_kafka_message_latency(const rd_kafka_message_t *m);

int64_t
__wrap_rd_kafka_message_latency(const rd_kafka_message_t *m)
{
	(void)m;
	return latency_us;
}

static struct kafka k;
static rd_kafka_t *rk;	/* one for all tests: the library takes a second to end it */
static rd_kafka_topic_t *topic;
static struct encoder *encoder;
static struct bytes frame;
static char brokers[] = "b:1", topic_name_of_all[] = "t.sluice.task";

static void
on_delivered(enum topic t, uint64_t id, void *arg)
{
	assert_ptr_equal(arg, &reported);
	reported.topic = t;
	reported.id = id;
	reported.delivered++;
}

static void
on_failed(const struct spool_record *r, enum output_failure failure, const char *reason, const char *detail,
    void *arg)
{
	assert_ptr_equal(arg, &reported);
	reported.failed++;
	reported.failure = failure;
	reported.topic = r->topic;
	reported.id = r->id;
	reported.seq = r->seq;
	reported.schema = r->schema;
	reported.time_us = r->time_us;
	reported.len = r->len;
	snprintf(reported.reason, sizeof(reported.reason), "%s", reason);
	snprintf(reported.detail, sizeof(reported.detail), "%s", detail);
	snprintf(reported.key, sizeof(reported.key), "%s", r->key);
}

static void
on_log(int level, const char *facility, const char *text, void *arg)
{
	assert_ptr_equal(arg, &reported);
	if (strcmp(facility, "FAIL") != 0 || strcmp(text, "b:1 is away") != 0)
		return;		/* the library's own */
	reported.level = level;
	reported.logged++;
}

/* A function that was set; librdkafka returns it as a pointer's text. */
static void *
callback(const rd_kafka_conf_t *conf, const char *name)
{
	char text[32];
	void *function;

	assert_non_null(kafka_conf_get(conf, name, text, sizeof(text)));
	assert_int_equal(sscanf(text, "%p", &function), 1);
	return function;
}

static int
setup_group(void **state)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_topic_conf_t *topic_conf = rd_kafka_topic_conf_new();
	char text[256];
	void *p;

	(void)state;
	rd_kafka_conf_set_opaque(conf, &k);
	kafka_report_set(conf);
	p = callback(conf, "dr_msg_cb");
	memcpy(&dr_msg, &p, sizeof(p));
	p = callback(conf, "error_cb");
	memcpy(&error, &p, sizeof(p));
	p = callback(conf, "stats_cb");
	memcpy(&stats, &p, sizeof(p));
	rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
	assert_non_null(rk);
	rd_kafka_topic_conf_set_opaque(topic_conf, (void *)(uintptr_t)TOPIC_TASK);
	topic = rd_kafka_topic_new(rk, "t.sluice.task", topic_conf);
	assert_non_null(topic);
	return 0;
}

static int
teardown_group(void **state)
{
	(void)state;
	rd_kafka_topic_destroy(topic);
	rd_kafka_destroy_flags(rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
	return 0;
}

static int
setup(void **state)
{
	struct agent_identity identity = sample_identity();
	char text[256];

	(void)state;
	memset(&reported, 0, sizeof(reported));
	memset(&k, 0, sizeof(k));
	k.events = (struct output_events){ .delivered = on_delivered, .failed = on_failed, .arg = &reported };
	k.on_log = on_log;
	k.arg = &reported;
	k.budget = 100;
	k.now_us = 1000 * SECOND;
	latency_us = -1;
	k.batch_bytes = 1000000;
	k.brokers = brokers;
	for (int t = 0; t < TOPIC_COUNT; t++) {
		k.topics[t].name = topic_name_of_all;
		k.topics[t].state = KAFKA_TOPIC_THERE;
	}
	return encoder_open(&identity, &encoder, text, sizeof(text));
}

static int
teardown(void **state)
{
	(void)state;
	encoder_close(encoder);
	bytes_done(&frame);
	free(k.key);
	return 0;
}

/* A message as kafka.c makes it, with a record of this seq. */
static rd_kafka_message_t
message(rd_kafka_resp_err_t err, uint64_t id, const char *key)
{
	const struct work_record work = sample_work();
	const uint8_t *data;
	size_t len;

	assert_int_equal(encode(encoder, TOPIC_TASK, &work, 4321, &data, &len), 0);
	assert_int_equal(kafka_frame(&frame, 9, data, len), 0);
	return (rd_kafka_message_t){ .err = err, .rkt = topic, .payload = frame.data, .len = frame.len,
		.key = (void *)(uintptr_t)key, .key_len = strlen(key), ._private = (void *)(uintptr_t)id };
}

static void
tell(const rd_kafka_message_t *m)
{
	k.status.in_flight++;
	k.status.queued_bytes += m->len + m->key_len;
	dr_msg(rk, m, &k);
}

static void
a_delivery_is_reported_and_counted(void **state)
{
	rd_kafka_message_t m = message(RD_KAFKA_RESP_ERR_NO_ERROR, 77, "host:run");

	(void)state;
	k.status.state = OUTPUT_DOWN;
	k.status.in_flight = 5;
	k.status.queued_bytes = 1000;
	tell(&m);
	assert_int_equal(reported.delivered, 1);
	assert_int_equal(reported.failed, 0);
	assert_int_equal(reported.topic, TOPIC_TASK);
	assert_int_equal(reported.id, 77);
	assert_int_equal(k.status.in_flight, 5);
	assert_int_equal(k.status.queued_bytes, 1000);
	assert_int_equal(k.status.delivered, 1);
	assert_int_equal(k.status.state, OUTPUT_UP);
	assert_false(k.has_more);
}

/* The one record that tries a refused topic may be one without an offset: the next one tries it then. */
static void
an_unconfirmed_try_is_an_answer(void **state)
{
	struct kafka_topic *t = &k.topics[TOPIC_TASK];
	rd_kafka_message_t m = message(RD_KAFKA_RESP_ERR_NO_ERROR, 77, "host:run");

	(void)state;
	m.offset = -1;
	t->refused_pause_us = 500000;
	kafka_topic_tried(&k, TOPIC_TASK);
	assert_false(kafka_topic_is_there(&k, TOPIC_TASK));
	tell(&m);
	assert_int_equal(reported.failure, OUTPUT_AGAIN);
	assert_string_equal(reported.reason, "unconfirmed");
	assert_true(kafka_topic_is_there(&k, TOPIC_TASK));
	assert_int_equal(t->refused_pause_us, 500000);
}

static void
a_failure_comes_with_its_record(void **state)
{
	rd_kafka_message_t m = message(RD_KAFKA_RESP_ERR_INVALID_RECORD, 78, "host:run");

	(void)state;
	k.topics[TOPIC_TASK].ids[2].is_set = true;
	k.topics[TOPIC_TASK].ids[2].id = 9;
	k.topics[TOPIC_TASK].ids[2].fingerprint = 555;
	k.topics[TOPIC_TASK].ids[3].id = 9;		/* never set */
	k.topics[TOPIC_TASK].ids[3].fingerprint = 666;
	k.topics[TOPIC_TASK].ids[0].is_set = true;
	k.topics[TOPIC_TASK].ids[0].id = 8;
	k.topics[TOPIC_TASK].ids[0].fingerprint = 444;
	k.topics[TOPIC_TASK].is_timeless = true;
	k.is_apart = true;		/* it has no other to blame */
	tell(&m);
	assert_int_equal(reported.failed, 1);
	assert_int_equal(reported.failure, OUTPUT_NEVER);
	assert_string_equal(reported.reason, "invalid_record");
	assert_int_equal(reported.topic, TOPIC_TASK);
	assert_int_equal(reported.id, 78);
	assert_int_equal(reported.seq, 4321);
	assert_int_equal(reported.time_us, SAMPLE_TIME);
	assert_int_equal(reported.schema, 555);
	assert_string_equal(reported.key, "host:run");
	assert_int_equal(reported.len, m.len - KAFKA_FRAME_BYTES);
	assert_int_equal(k.status.in_flight, 0);
	assert_int_equal(k.status.queued_bytes, 0);
	assert_int_equal(k.status.delivered, 0);
	/* It is the record's fault: no outage. */
	assert_int_equal(k.status.state, OUTPUT_STARTING);
	assert_non_null(strstr(k.status.error, "t.sluice.task: "));
	assert_non_null(strstr(k.status.error, reported.detail));
	assert_true(k.status.error_us > 0);
}

static void
keys_of_any_length_come_whole(void **state)
{
	char key[101] = "";

	(void)state;
	for (size_t len = 0; len < sizeof(key) - 1; len++) {
		rd_kafka_message_t m = message(RD_KAFKA_RESP_ERR_INVALID_RECORD, 1, key);

		/* Others than its own bytes lie behind a message's key. */
		m.key = malloc(len + 1);
		memset(m.key, '#', len + 1);
		memcpy(m.key, key, len);
		tell(&m);
		free(m.key);
		assert_string_equal(reported.key, key);
		k.budget = 100;
		key[len] = (char)('a' + len % 26);
		key[len + 1 < sizeof(key) ? len + 1 : len] = '\0';
	}
}

/* It is reported anyway, without text that needs memory. */
static void
a_failure_without_memory_has_no_key(void **state)
{
	rd_kafka_message_t m = message(RD_KAFKA_RESP_ERR_INVALID_RECORD, 78, "host:run");

	(void)state;
	for (int i = 0; i < 2; i++) {
		fault = (struct fault){ .calls = FAULT_MEMORY, .times = i == 0, .error = ENOMEM };
		tell(&m);
		fault.calls = 0;
		assert_int_equal(reported.failed, i + 1);
		assert_int_equal(reported.id, 78);
		assert_int_equal(reported.seq, 4321);
		assert_int_equal(reported.time_us, SAMPLE_TIME);
		assert_string_equal(reported.key, i == 0 ? "" : "host:run");
	}
}

static void
a_message_without_a_record_is_reported_by_its_id(void **state)
{
	rd_kafka_message_t m = message(RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, 79, "host:run");

	(void)state;
	m.payload = NULL;
	m.len = 0;
	tell(&m);
	assert_int_equal(reported.failure, OUTPUT_AGAIN);
	assert_int_equal(reported.id, 79);
	assert_int_equal(reported.len, 0);
	assert_string_equal(reported.key, "");
	m = message(RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, 80, "host:run");
	m.len = KAFKA_FRAME_BYTES - 1;
	tell(&m);
	assert_int_equal(reported.id, 80);
	assert_int_equal(reported.len, 0);
	m.len = KAFKA_FRAME_BYTES;	/* a record of no bytes has no seq */
	tell(&m);
	assert_int_equal(reported.seq, 0);
	assert_string_equal(reported.key, "host:run");
}

static void
what_passes_is_an_outage_with_the_first_reason(void **state)
{
	rd_kafka_message_t m = message(RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, 1, "key");

	(void)state;
	k.status.state = OUTPUT_UP;
	tell(&m);
	assert_int_equal(reported.failure, OUTPUT_AGAIN);
	assert_string_equal(reported.reason, "not_enough_replicas");
	assert_int_equal(k.status.state, OUTPUT_DOWN);
	assert_non_null(strstr(k.status.error, rd_kafka_err2str(m.err)));
	m.err = RD_KAFKA_RESP_ERR__MSG_TIMED_OUT;
	tell(&m);
	assert_null(strstr(k.status.error, rd_kafka_err2str(m.err)));
	/* Not so what can never go: that is another matter. */
	k.topics[TOPIC_TASK].is_timeless = k.is_apart = true;
	m.err = RD_KAFKA_RESP_ERR_INVALID_RECORD;
	tell(&m);
	assert_non_null(strstr(k.status.error, rd_kafka_err2str(m.err)));
	assert_int_equal(k.status.state, OUTPUT_DOWN);
}

/* Brokers have taken other messages since it was put. */
static void
what_times_out_while_others_are_delivered_is_no_outage(void **state)
{
	rd_kafka_message_t m = message(RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, 1, "key");

	(void)state;
	k.status.state = OUTPUT_UP;
	latency_us = 300 * SECOND;
	k.topics[TOPIC_HOST].delivered_us = 700 * SECOND + 1;
	tell(&m);
	assert_int_equal(reported.failure, OUTPUT_TOPIC_AGAIN);
	assert_string_equal(reported.reason, "msg_timed_out");
	assert_int_equal(k.status.state, OUTPUT_UP);
	assert_non_null(strstr(k.status.error, rd_kafka_err2str(m.err)));
	m.err = RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS;
	tell(&m);
	assert_int_equal(reported.failure, OUTPUT_AGAIN);
	assert_int_equal(k.status.state, OUTPUT_UP);
	/* Other partitions of its topic have a leader, and need not wait until all of its messages have timed out. */
	m.err = RD_KAFKA_RESP_ERR__MSG_TIMED_OUT;
	k.topics[TOPIC_TASK].delivered_us = 700 * SECOND + 1;
	tell(&m);
	assert_int_equal(reported.failure, OUTPUT_AGAIN);
	assert_int_equal(k.status.state, OUTPUT_UP);
	k.topics[TOPIC_TASK].delivered_us = k.topics[TOPIC_HOST].delivered_us = 700 * SECOND;
	tell(&m);
	assert_int_equal(reported.failure, OUTPUT_AGAIN);
	assert_int_equal(k.status.state, OUTPUT_DOWN);
}

static void
what_was_taken_back_is_no_error(void **state)
{
	static const rd_kafka_resp_err_t errors[] = { RD_KAFKA_RESP_ERR__PURGE_QUEUE,
		RD_KAFKA_RESP_ERR__PURGE_INFLIGHT };

	(void)state;
	k.status.state = OUTPUT_UP;
	for (size_t i = 0; i < 2; i++) {
		rd_kafka_message_t m = message(errors[i], 1, "key");

		tell(&m);
		assert_int_equal(reported.failed, i + 1);
		assert_string_equal(reported.reason, "recalled");
		assert_int_equal(k.status.state, OUTPUT_UP);
		assert_string_equal(k.status.error, "");
	}
}

static void
a_topic_that_is_gone_is_missing(void **state)
{
	rd_kafka_message_t m = message(RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, 1, "key");

	(void)state;
	tell(&m);
	assert_int_equal(reported.failure, OUTPUT_TOPIC_AGAIN);
	assert_int_equal(k.topics[TOPIC_TASK].state, KAFKA_TOPIC_MISSING);
	assert_int_equal(k.topics[TOPIC_RUN].state, KAFKA_TOPIC_THERE);
	assert_int_equal(k.status.state, OUTPUT_STARTING);	/* the others' records are delivered */
	assert_string_equal(k.status.error, "topic t.sluice.task is missing; create it: kafka-topics.sh "
	    "--bootstrap-server b:1 --create --topic t.sluice.task");
	assert_string_equal(k.stats.missing_topic, "t.sluice.task");
}

static void
a_batch_that_is_too_large_is_the_batchs_fault(void **state)
{
	static const rd_kafka_resp_err_t errors[] = { RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
		RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		rd_kafka_message_t m = message(errors[i], 1, "key");

		k.wants_smaller = false;
		k.batch_bytes = (int)(m.len + m.key_len + 1);
		tell(&m);
		assert_int_equal(reported.failure, OUTPUT_AGAIN);
		assert_string_equal(reported.reason, "batch_too_large");
		assert_true(k.wants_smaller);

		/* It was alone in its batch. */
		k.wants_smaller = false;
		k.batch_bytes--;
		tell(&m);
		assert_int_equal(reported.failure, OUTPUT_NEVER);
		assert_false(k.wants_smaller);
	}
}

static void
a_turn_tells_no_more_than_its_budget(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++) {
		rd_kafka_message_t m = message(0, 1, "key");

		assert_int_equal(rd_kafka_produce(topic, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, m.payload, m.len,
		    m.key, m.key_len, (void *)(uintptr_t)(i + 1)), 0);
		k.status.in_flight++;
		k.status.queued_bytes += m.len + m.key_len;
	}
	rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE);
	k.budget = 4;
	while (reported.failed == 0)
		rd_kafka_poll(rk, 100);
	assert_int_equal(reported.failed, 4);
	assert_true(k.has_more);
	k.budget = 100;
	k.has_more = false;
	for (int i = 0; i < 100 && reported.failed < 10; i++)
		rd_kafka_poll(rk, 100);
	assert_int_equal(reported.failed, 10);
	assert_int_equal(k.status.in_flight, 0);
	assert_int_equal(k.status.queued_bytes, 0);
	assert_false(k.has_more);
}

#define UNREACHED "no broker can be reached: check kafka.brokers, and that a broker runs there which accepts " \
	"connections from this host: "

static void
no_broker_is_down_for_the_reason_that_came_before(void **state)
{
	(void)state;
	error(rk, RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, "2/2 brokers are down", &k);
	assert_int_equal(k.status.state, OUTPUT_DOWN);
	assert_string_equal(k.status.error, UNREACHED "2/2 brokers are down");
	error(rk, RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, "3/3 brokers are down", &k);
	assert_string_equal(k.status.error, UNREACHED "3/3 brokers are down");
	k.status.state = OUTPUT_UP;
	error(rk, RD_KAFKA_RESP_ERR__TRANSPORT, "b:1: connection refused", &k);
	assert_int_equal(k.status.state, OUTPUT_UP);	/* others may be there */
	error(rk, RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, "2/2 brokers are down", &k);
	assert_int_equal(k.status.state, OUTPUT_DOWN);
	assert_string_equal(k.status.error, UNREACHED "b:1: connection refused");
	assert_false(k.is_failed);
}

static void
refused_credentials_are_an_outage_at_once(void **state)
{
	static const int errors[] = { RD_KAFKA_RESP_ERR__AUTHENTICATION, RD_KAFKA_RESP_ERR__SSL };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		k.status.state = OUTPUT_UP;
		error(rk, errors[i], "who are you?", &k);
		assert_int_equal(k.status.state, OUTPUT_DOWN);
		assert_string_equal(k.status.error, "who are you?");
	}
}

static void
what_the_librarys_words_do_not_say_stands_before_them(void **state)
{
	static const char *const words[] = { "sslv3 alert certificate unknown", "ssl: alert bad certificate",
		"tlsv1 alert unknown ca", "certificate required" };

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		error(rk, RD_KAFKA_RESP_ERR__SSL, words[i], &k);
		assert_non_null(strstr(k.status.error, "the broker does not accept our certificate"));
		assert_non_null(strstr(k.status.error, words[i]));
	}
	k.is_scram_broken = true;
	error(rk, RD_KAFKA_RESP_ERR__AUTHENTICATION, "SASL failed", &k);
	assert_non_null(strstr(k.status.error, "older than 2.6.1"));
	assert_non_null(strstr(k.status.error, ": SASL failed"));
}

static void
a_fatal_error_ends_this_producer(void **state)
{
	(void)state;
	rd_kafka_test_fatal_error(rk, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, "made up");
	error(rk, RD_KAFKA_RESP_ERR__FATAL, "fatal", &k);
	assert_true(k.is_failed);
	assert_int_equal(k.status.state, OUTPUT_DOWN);
	assert_non_null(strstr(k.status.error, "made up"));
	assert_non_null(strstr(k.status.error, "; the producer is replaced"));
}

static void
what_would_move_a_cursor_is_blanked(void **state)
{
	(void)state;
	kafka_set_error(&k, "a\033b\nc\x7f" "d %d", 5);
	assert_string_equal(k.status.error, "a b c d 5");
	assert_int_equal(k.status.state, OUTPUT_STARTING);
	kafka_set_down(&k, "%s", "gone");
	assert_string_equal(k.status.error, "gone");
	assert_int_equal(k.status.state, OUTPUT_DOWN);
}

static void
the_log_comes_with_its_level(void **state)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	void (*log)(const rd_kafka_t *, int, const char *, const char *);
	void *p;

	(void)state;
	kafka_report_set(conf);
	p = callback(conf, "log_cb");
	memcpy(&log, &p, sizeof(p));
	rd_kafka_conf_destroy(conf);
	log(rk, 5, "FAIL", "b:1 is away");
	assert_int_equal(reported.logged, 1);
	assert_int_equal(reported.level, 5);
	k.on_log = NULL;
	log(rk, 5, "FAIL", "b:1 is away");
	assert_int_equal(reported.logged, 1);
}

static void
tell_stats(const char *text)
{
	char *copy = strdup(text);

	assert_int_equal(stats(rk, copy, strlen(copy), &k), 0);	/* 0: the text stays librdkafka's */
	free(copy);
}

static void
the_slowest_broker_that_is_known_counts(void **state)
{
	(void)state;
	tell_stats("{\"brokers\":{"
	    "\"boot/bootstrap\":{\"nodeid\":-1,\"state\":\"UP\",\"txretries\":1,\"req_timeouts\":10},"
	    "\"a:1/0\":{\"nodeid\":0,\"state\":\"UP\",\"txretries\":2,\"req_timeouts\":20,"
	    "\"rtt\":{\"cnt\":5,\"avg\":300,\"p99\":900}},"
	    "\"b:1/1\":{\"nodeid\":1,\"state\":\"DOWN\",\"txretries\":4,\"req_timeouts\":40,"
	    "\"rtt\":{\"cnt\":0,\"avg\":9999,\"p99\":9999}},"
	    "\"d:1/2\":{\"nodeid\":2,\"state\":\"UP\",\"rtt\":{\"cnt\":1,\"avg\":200,\"p99\":1000}}}}");
	assert_int_equal(k.stats.brokers, 3);
	assert_int_equal(k.stats.brokers_up, 2);
	assert_int_equal(k.stats.retried, 7);
	assert_int_equal(k.status.retried, 7);
	assert_int_equal(k.stats.request_timeouts, 70);
	assert_int_equal(k.stats.rtt_us, 300);
	assert_int_equal(k.stats.rtt_p99_us, 1000);

	/* Nothing was sent since: the times stay, the rest is as it is now. */
	tell_stats("{\"brokers\":{\"a:1/0\":{\"nodeid\":0,\"state\":\"INIT\",\"txretries\":3,\"rtt\":{\"cnt\":0}}}}");
	assert_int_equal(k.stats.brokers, 1);
	assert_int_equal(k.stats.brokers_up, 0);
	assert_int_equal(k.stats.retried, 3);
	assert_int_equal(k.stats.request_timeouts, 0);
	assert_int_equal(k.stats.rtt_us, 300);
	assert_int_equal(k.stats.rtt_p99_us, 1000);

	/* Another producer counts from nothing. */
	k.retried_before = 3;
	tell_stats("{\"brokers\":{\"a:1/0\":{\"nodeid\":0,\"txretries\":2}}}");
	assert_int_equal(k.stats.retried, 5);
	assert_int_equal(k.retried_now, 2);
	tell_stats("{}");
	assert_int_equal(k.stats.brokers, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_delivery_is_reported_and_counted),
		T(an_unconfirmed_try_is_an_answer),
		T(a_failure_comes_with_its_record),
		T(keys_of_any_length_come_whole),
		T(a_failure_without_memory_has_no_key),
		T(a_message_without_a_record_is_reported_by_its_id),
		T(what_passes_is_an_outage_with_the_first_reason),
		T(what_times_out_while_others_are_delivered_is_no_outage),
		T(what_was_taken_back_is_no_error),
		T(a_topic_that_is_gone_is_missing),
		T(a_batch_that_is_too_large_is_the_batchs_fault),
		T(a_turn_tells_no_more_than_its_budget),
		T(no_broker_is_down_for_the_reason_that_came_before),
		T(refused_credentials_are_an_outage_at_once),
		T(what_the_librarys_words_do_not_say_stands_before_them),
		T(what_would_move_a_cursor_is_blanked),
		T(the_log_comes_with_its_level),
		T(the_slowest_broker_that_is_known_counts),
		T(a_fatal_error_ends_this_producer),	/* the last: it can do no more */
	};

	return cmocka_run_group_tests(tests, setup_group, teardown_group);
}
