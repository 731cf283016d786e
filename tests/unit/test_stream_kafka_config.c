/* SPDX-License-Identifier: Apache-2.0 */
/* kafka_config, kafka_errors and kafka_frame to the byte: properties, files, sizes, errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stream/kafka_client.h"
#include "stream/kafka_frame.h"
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

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		assert_string_equal(value(&o, want[i].name), want[i].value);
	assert_int_equal(atof(value(&o, "linger.ms")), 50);
	o.stats_ms = 1234;
	assert_string_equal(value(&o, "statistics.interval.ms"), "1234");
	o.properties = stderr_log;	/* the one that does not win */
	o.n_properties = 1;
	assert_string_equal(value(&o, "log.queue"), "true");
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
	assert_string_equal(error, "no broker is named");
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
errors_that_pass_are_told_apart_from_those_that_never_will(void **state)
{
	static const rd_kafka_resp_err_t never[] = { RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
		RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE, RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE,
		RD_KAFKA_RESP_ERR_INVALID_MSG, RD_KAFKA_RESP_ERR_INVALID_RECORD,
		RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, RD_KAFKA_RESP_ERR__INVALID_ARG,
		RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED,
		RD_KAFKA_RESP_ERR_POLICY_VIOLATION, RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION,
		RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT };
	unsigned found = 0;

	(void)state;
	for (int err = -200; err < 200; err++) {
		struct kafka_failure f = kafka_failure(err);
		bool is_never = false;

		for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
			is_never |= (int)never[i] == err;
		assert_int_equal(f.failure, is_never ? OUTLET_NEVER : OUTLET_AGAIN);
		if (is_never)
			found++;
		assert_true(strlen(f.reason) > 0);
		assert_int_equal(f.is_topic_gone, strcmp(f.reason, "unknown_topic_or_partition") == 0);
	}
	assert_int_equal(found, sizeof(never) / sizeof(never[0]));
	assert_string_equal(kafka_failure(RD_KAFKA_RESP_ERR__FATAL).reason, "fatal");
	assert_true(kafka_failure(100).is_topic_gone);	/* UNKNOWN_TOPIC_ID */
	assert_string_equal(kafka_failure(-1).reason, "library_error");
	assert_string_equal(kafka_failure(199).reason, "broker_error");
}

static void
a_frame_is_made_anew_each_time(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	assert_int_equal(kafka_frame(&b, -2, "abcdef", 6), 0);
	assert_memory_equal(b.data, "\0\xff\xff\xff\xfe" "abcdef", 11);
	assert_int_equal(kafka_frame_id(b.data), -2);
	assert_int_equal(kafka_frame(&b, 0x7f80ff01, "x", 1), 0);
	assert_int_equal(b.len, 6);
	assert_memory_equal(b.data, "\0\x7f\x80\xff\x01x", 6);
	assert_int_equal(kafka_frame_id(b.data), 0x7f80ff01);
	bytes_done(&b);
}

/* Bytes of a head, at their end in memory so that reading on is noticed. */
static bool
has_head(const char *bytes, size_t len, struct kafka_record_head *ret)
{
	char *copy = malloc(len);
	bool has;

	memcpy(copy, bytes, len);
	has = kafka_record_head(copy, len, ret);
	free(copy);
	return has;
}

static void
a_head_is_read_to_its_last_byte(void **state)
{
	/* time 1, "h" "n" "b" "a", seq 2, "r", null, "t", null, null, version 3 */
	static const char head[] = "\2\2h\2n\2b\2a\4\2\2r\0\2\2t\0\0\6";
	const size_t len = sizeof(head) - 1;
	struct kafka_record_head h = { 0 };
	char other[sizeof(head)];

	(void)state;
	assert_true(has_head(head, len, &h));
	assert_int_equal(h.time_us, 1);
	assert_int_equal(h.seq, 2);
	assert_int_equal(h.schema_version, 3);
	for (size_t n = 1; n < len; n++)
		assert_false(has_head(head, n, &h));
	memcpy(other, head, sizeof(head));
	other[10] = 4;			/* a branch that there is not */
	assert_false(has_head(other, len, &h));
	other[10] = 1;
	assert_false(has_head(other, len, &h));
	memcpy(other, head, sizeof(head));
	other[18] = 4;			/* likewise where no string would follow */
	assert_false(has_head(other, len, &h));
	other[18] = 1;
	assert_false(has_head(other, len, &h));
	memcpy(other, head, sizeof(head));
	other[1] = 1;			/* a string of -1 bytes */
	assert_false(has_head(other, len, &h));
	assert_true(has_head("\2\0\0\0\0\4\0\0\0\0\0\6", 12, &h));
	assert_false(has_head("\2\1\0\0\0\4\0\0\0\0\0\6", 12, &h));
	assert_false(has_head("\2\0\0\0\0\4\0\0\0\0\2\1\6", 13, &h));
	memcpy(other, head, sizeof(head));
	other[len - 1] = 5;		/* version -3 */
	assert_false(has_head(other, len, &h));
	other[len - 1] = 0;
	assert_true(has_head(other, len, &h));
	assert_int_equal(h.schema_version, 0);
	/* The largest version, and one more. */
	assert_true(has_head("\2\0\0\0\0\4\0\0\0\0\0\xfe\xff\xff\xff\x0f", 16, &h));
	assert_int_equal(h.schema_version, INT32_MAX);
	assert_false(has_head("\2\0\0\0\0\4\0\0\0\0\0\x80\x80\x80\x80\x10", 16, &h));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ours_are_what_is_promised),
		cmocka_unit_test(brokers_are_joined),
		cmocka_unit_test(files_are_looked_at_before_librdkafka_does),
		cmocka_unit_test(a_batch_is_no_larger_than_a_message_may_be),
		cmocka_unit_test(scram_is_known_by_its_mechanism),
		cmocka_unit_test(errors_that_pass_are_told_apart_from_those_that_never_will),
		cmocka_unit_test(a_frame_is_made_anew_each_time),
		cmocka_unit_test(a_head_is_read_to_its_last_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
