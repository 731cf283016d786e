/* SPDX-License-Identifier: Apache-2.0 */
/* kafka_config and kafka_errors: properties, files, sizes, errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kafka/client.h"
#include "tree.h"

static char error[256];

/* A property's value, as it is with these of the user's. */
static const char *
value(const struct kafka_options *o, const char *name)
{
	static char text[512];
	rd_kafka_conf_t *conf = kafka_conf_new(o, error, sizeof(error));
	const char *found;

	assert_non_null(conf);
	found = kafka_conf_get(conf, name, text, sizeof(text));
	rd_kafka_conf_destroy(conf);
	return found;
}

static void
ours_are_what_is_promised(void **state)
{
	static const struct kafka_property want[] = {
		{ "client.id", "sluice" },
		{ "enable.idempotence", "true" },
		{ "acks", "-1" },
		{ "compression.codec", "lz4" },
		{ "partitioner", "murmur2_random" },
		{ "queue.buffering.max.messages", "20000" },
		{ "queue.buffering.max.kbytes", "16384" },
		{ "socket.keepalive.enable", "true" },
		{ "topic.metadata.propagation.max.ms", "5000" },
		{ "message.timeout.ms", "300000" },
		{ "statistics.interval.ms", "30000" },
		{ "log.queue", "true" },
	};
	struct kafka_options o = { 0 };
	struct kafka_property stderr_log[] = { { "log.queue", "false" } };
	struct kafka_property metrics[] = { { "enable.metrics.push", "true" } };

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		assert_string_equal(value(&o, want[i].name), want[i].value);
	assert_int_equal(atof(value(&o, "linger.ms")), 10);
	o.stats_ms = 1234;
	assert_string_equal(value(&o, "statistics.interval.ms"), "1234");
	o.properties = stderr_log;	/* the one that does not win */
	o.n_properties = 1;
	assert_string_equal(value(&o, "log.queue"), "true");
	if (rd_kafka_version() < 0x020500ff) {
		o.n_properties = 0;
		assert_null(value(&o, "enable.metrics.push"));
		return;
	}
	assert_string_equal(value(&o, "enable.metrics.push"), "false");
	o.properties = metrics;
	assert_string_equal(value(&o, "enable.metrics.push"), "true");
}

static void
no_broker_is_an_error_of_the_configuration(void **state)
{
	struct kafka_options o = { 0 };

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
	char text[64];
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
brokers_are_joined(void **state)
{
	const char *brokers[] = { "a:1", "b.example:9092", "[::1]:2" };
	static const char *const want[] = { "", "a:1", "a:1,b.example:9092", "a:1,b.example:9092,[::1]:2" };

	(void)state;
	for (size_t n = 0; n <= 3; n++) {
		struct kafka_options o = { .brokers = brokers, .n_brokers = n };
		char *joined = kafka_join_brokers(&o);

		assert_string_equal(joined, want[n]);
		free(joined);
		assert_int_equal(kafka_check(&o, error, sizeof(error)), n > 0 ? 0 : -22);
		if (n > 0)
			assert_string_equal(value(&o, "bootstrap.servers"), want[n]);
	}
	assert_int_equal(kafka_check(&(struct kafka_options){ 0 }, error, sizeof(error)), -22);
	assert_string_equal(error, "no broker is configured");
}

static void
files_are_looked_at_before_librdkafka_does(void **state)
{
	struct tree t;
	char there[128], none[128], want[400];
	struct kafka_property p[] = { { "ssl.ca.location", "probe" }, { ".location", there }, { "location", none },
		{ "ssl.key.location", none }, { "ssl.certificate.location", there } };
	struct kafka_options o = { .properties = p, .n_properties = 3 };

	(void)state;
	tree_init(&t);
	tree_write(&t, "there", "x");
	snprintf(there, sizeof(there), "%s", tree_path(&t, "there"));
	snprintf(none, sizeof(none), "%s", tree_path(&t, "none"));
	assert_true(kafka_files_can_be_read(&o, error, sizeof(error)));
	o.n_properties = 5;
	assert_false(kafka_files_can_be_read(&o, error, sizeof(error)));
	snprintf(want, sizeof(want), "ssl.key.location: %s cannot be read by uid %u, the agent's account: "
	    "No such file or directory", none, (unsigned)getuid());
	assert_string_equal(error, want);
	p[3].value = there;
	assert_false(kafka_files_can_be_read(&(struct kafka_options){ .properties = (struct kafka_property[]){
	    { "ssl.ca.location", none } }, .n_properties = 1 }, error, sizeof(error)));
	assert_true(kafka_files_can_be_read(&o, error, sizeof(error)));
	p[1].value = none;		/* of nine letters, which is the shortest that counts */
	assert_false(kafka_files_can_be_read(&o, error, sizeof(error)));
	tree_done(&t);
}

static void
a_batch_is_no_larger_than_a_message_may_be(void **state)
{
	static const struct {
		const char *batch, *message;
		int want;
	} cases[] = {
		{ "1000", "5000", 1000 }, { "5000", "5000", 5000 }, { "5001", "5000", 5000 }, { "1", "5000", 1 },
		{ "1000000", "1000", 1000 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct kafka_property p[] = { { "batch.size", cases[i].batch },
			{ "message.max.bytes", cases[i].message } };
		struct kafka_options o = { .properties = p, .n_properties = 2 };
		rd_kafka_conf_t *conf = kafka_conf_new(&o, error, sizeof(error));

		assert_non_null(conf);
		assert_int_equal(kafka_conf_batch_bytes(conf), cases[i].want);
		rd_kafka_conf_destroy(conf);
	}
}

static void
scram_is_known_by_its_mechanism(void **state)
{
	static const struct {
		const char *mechanism;
		bool is_scram;
	} cases[] = { { "SCRAM-SHA-256", true }, { "scram-sha-512", true }, { "PLAIN", false }, { "GSSAPI", false } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct kafka_property p[] = { { "sasl.mechanisms", cases[i].mechanism } };
		struct kafka_options o = { .properties = p, .n_properties = 1 };
		rd_kafka_conf_t *conf = kafka_conf_new(&o, error, sizeof(error));

		assert_non_null(conf);
		assert_int_equal(kafka_conf_has_broken_scram(conf),
		    cases[i].is_scram && rd_kafka_version() < 0x020601ff);
		rd_kafka_conf_destroy(conf);
	}
}

static void
errors_have_a_remedy_and_a_reason(void **state)
{
	static const struct {
		rd_kafka_resp_err_t err;
		enum kafka_remedy remedy;
		const char *reason;
	} want[] = {
		{ RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, KAFKA_BATCH_TOO_LARGE, "msg_size_too_large" },
		{ RD_KAFKA_RESP_ERR_INVALID_RECORD, KAFKA_BATCH_REFUSED, "invalid_record" },
		{ RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, KAFKA_TIME_REFUSED, "invalid_timestamp" },
		{ -138, KAFKA_PASSES, "batch_refused" },	/* _INVALID_DIFFERENT_RECORD */
		{ RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, KAFKA_TOPIC_WAITS, "topic_authorization_failed" },
		{ RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, KAFKA_PASSES, "msg_timed_out" },
		{ RD_KAFKA_RESP_ERR__TRANSPORT, KAFKA_PASSES, "transport" },
		{ RD_KAFKA_RESP_ERR__PURGE_QUEUE, KAFKA_PASSES, "recalled" },
		{ RD_KAFKA_RESP_ERR__PURGE_INFLIGHT, KAFKA_PASSES, "recalled" },
		{ RD_KAFKA_RESP_ERR__AUTHENTICATION, KAFKA_PASSES, "authentication" },
		{ RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, KAFKA_PASSES, "not_enough_replicas" },
		{ RD_KAFKA_RESP_ERR_INVALID_MSG, KAFKA_PASSES, "corrupt_message" },
		{ RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, KAFKA_TOPIC_GONE, "unknown_topic_or_partition" },
		{ RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, KAFKA_TOPIC_GONE, "unknown_topic_or_partition" },
		{ RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, KAFKA_TOPIC_GONE, "unknown_topic_or_partition" },
		{ 100, KAFKA_TOPIC_GONE, "unknown_topic_or_partition" },	/* UNKNOWN_TOPIC_ID */
		{ 4711, KAFKA_PASSES, "broker_error" },
		{ -4711, KAFKA_PASSES, "library_error" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct kafka_failure f = kafka_failure(want[i].err);

		assert_int_equal(f.remedy, want[i].remedy);
		assert_string_equal(f.reason, want[i].reason);
	}
}

/* Whatever an administrator may change is waited for; only what a record's own message has is the record's. */
static void
few_errors_are_a_records_or_a_topics_own(void **state)
{
	static const struct {
		enum kafka_remedy remedy;
		int errors[10];
	} want[] = {
		{ KAFKA_RECORD_AT_FAULT, { RD_KAFKA_RESP_ERR__INVALID_ARG } },
		{ KAFKA_BATCH_REFUSED, { RD_KAFKA_RESP_ERR_INVALID_RECORD } },
		{ KAFKA_TIME_REFUSED, { RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP } },
		{ KAFKA_BATCH_TOO_LARGE,
		    { RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE } },
		{ KAFKA_TOPIC_WAITS, { RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
		    RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED,
		    RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED, RD_KAFKA_RESP_ERR_POLICY_VIOLATION,
		    RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT,
		    RD_KAFKA_RESP_ERR_UNSUPPORTED_COMPRESSION_TYPE, RD_KAFKA_RESP_ERR_INVALID_REQUIRED_ACKS } },
		{ KAFKA_TOPIC_GONE, { RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC,
		    RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, 100 } },
	};

	(void)state;
	for (int err = -200; err < 200; err++) {
		struct kafka_failure f = kafka_failure(err);
		enum kafka_remedy remedy = KAFKA_PASSES;

		for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
			for (size_t j = 0; want[i].errors[j] != 0; j++) {
				if (want[i].errors[j] == err)
					remedy = want[i].remedy;
			}
		}
		assert_int_equal(f.remedy, remedy);
		assert_true(strlen(f.reason) > 0);
	}
	assert_string_equal(kafka_failure(RD_KAFKA_RESP_ERR__FATAL).reason, "fatal");
	assert_string_equal(kafka_failure(-1).reason, "library_error");
	assert_string_equal(kafka_failure(199).reason, "broker_error");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ours_are_what_is_promised),
		cmocka_unit_test(no_broker_is_an_error_of_the_configuration),
		cmocka_unit_test(the_users_properties_win),
		cmocka_unit_test(brokers_are_joined),
		cmocka_unit_test(files_are_looked_at_before_librdkafka_does),
		cmocka_unit_test(a_batch_is_no_larger_than_a_message_may_be),
		cmocka_unit_test(scram_is_known_by_its_mechanism),
		cmocka_unit_test(errors_have_a_remedy_and_a_reason),
		cmocka_unit_test(few_errors_are_a_records_or_a_topics_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
