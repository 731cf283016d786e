/*
 * SPDX-License-Identifier: Apache-2.0
 * kafka_kit: an output over librdkafka's mock broker, records for it, and the events that it reports.
 */
#ifndef SLUICE_TESTS_UNIT_KAFKA_KIT_H
#define SLUICE_TESTS_UNIT_KAFKA_KIT_H

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "samples.h"
#include "codec/encode.h"
#include "kafka/client.h"
#include "threads.h"

/* The calls that the output made, and the answers that it gets. */
static struct reported {
	uint64_t delivered[8192];
	size_t n_delivered;
	uint64_t failed[8192];
	size_t n_failed;
	enum output_failure failure;	/* of the last failed record, as are the next members */
	char reason[64];
	char key[64];
	uint64_t seq, schema;
	size_t len;
	unsigned ready;
	int schema_error;	/* what schema_id() returns */
	unsigned asked;		/* calls of schema_id() */
	int32_t id;		/* what schema_id() returns; 0: 0x01020304 */
	char subject[64];
	char log[128];
	int log_level;
} reported;

static enum topic used;		/* topic of all records that are put and answered */

static inline void
on_delivered(enum topic topic, uint64_t id, void *arg)
{
	assert_ptr_equal(arg, &reported);
	assert_int_equal(topic, used);
	reported.delivered[reported.n_delivered++] = id;
}

static inline void
on_failed(const struct spool_record *r, enum output_failure failure, const char *reason,
    const char *detail, void *arg)
{
	assert_ptr_equal(arg, &reported);
	assert_true(strlen(detail) > 0);
	assert_int_equal(r->topic, used);
	reported.failed[reported.n_failed++] = r->id;
	reported.failure = failure;
	snprintf(reported.reason, sizeof(reported.reason), "%s", reason);
	snprintf(reported.key, sizeof(reported.key), "%s", r->key);
	reported.seq = r->seq;
	reported.schema = r->schema;
	reported.len = r->len;
}

static inline void
on_ready(void *arg)
{
	assert_ptr_equal(arg, &reported);
	reported.ready++;
}

static inline int
schema_id(void *arg, const char *subject, const struct spool_record *r, int32_t *ret)
{
	assert_ptr_equal(arg, &reported);
	reported.asked++;
	snprintf(reported.subject, sizeof(reported.subject), "%s", subject);
	assert_true(r->schema >= 77 && r->schema < 87);
	*ret = reported.id != 0 ? reported.id : 0x01020304;
	return reported.schema_error;
}

static inline void
on_log(int level, const char *facility, const char *text, void *arg)
{
	(void)arg;
	if (strcmp(facility, "BATCH") != 0 && strcmp(facility, "CONFIG") != 0 && strcmp(facility, "TIME") != 0)
		return;
	reported.log_level = level;
	snprintf(reported.log, sizeof(reported.log), "%s", text);
}

static struct event_base *base;
static struct output *output;
static struct encoder *encoder;

static inline int
open_with(const char *broker, const struct kafka_property *properties, size_t n, char *error,
    size_t error_size)
{
	struct output_events events = { on_delivered, on_failed, on_ready, &reported };
	struct kafka_options o = { .brokers = &broker, .n_brokers = broker != NULL, .properties = properties,
	    .n_properties = n, .topic_prefix = "t.", .create_topics = true, .partitions = 2,
	    .agent_version = "1.2.3", .schema_id = schema_id, .arg = &reported };

	return kafka_open(base, &o, &events, &output, error, error_size);
}

/* Opens the output with librdkafka's mock broker, which runs in the process. */
static inline void
open_mock(const char *name, const char *value)
{
	struct kafka_property properties[] = { { "test.mock.num.brokers", "1" }, { "linger.ms", "1" },
		{ name, value } };
	char error[256] = "";

	if (open_with(NULL, properties, name != NULL ? 3 : 2, error, sizeof(error)) < 0)
		fail_msg("%s", error);
}

static inline int
setup(void **state)
{
	struct agent_identity identity = sample_identity();
	char error[256];

	(void)state;
	memset(&reported, 0, sizeof(reported));
	used = TOPIC_PROGRAM;
	output = NULL;
	base = event_base_new();
	return encoder_open(&identity, &encoder, error, sizeof(error));
}

static inline int
teardown(void **state)
{
	(void)state;
	if (output != NULL)
		output->ops->close(output);
	encoder_close(encoder);
	event_base_free(base);
	return 0;
}

static inline int
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
	error = output->ops->put(output, &r, reason);
	free(text);
	return error;
}

static inline int
put(uint64_t id, size_t argument, const char **reason)
{
	return put_with(id, 77, argument, reason);
}

/* Runs the loop with ticks until is_done(), or for a few seconds. */
static inline bool
wait_for(bool (*is_done)(void))
{
	for (int i = 0; i < 500; i++) {
		struct timeval tv = { 0, 10000 };

		event_base_loopexit(base, &tv);
		event_base_dispatch(base);
		if (is_done())
			return true;
		if (output != NULL && i % 10 == 9)
			output->ops->tick(output, 0);
	}
	return false;
}

/* Does the same without ticks: only events of the output count. */
static inline bool
wait_in_the_loop_for(bool (*is_done)(void))
{
	for (int i = 0; i < 500; i++) {
		struct timeval tv = { 0, 10000 };

		event_base_loopexit(base, &tv);
		event_base_dispatch(base);
		if (is_done())
			return true;
	}
	return false;
}

static inline struct output_status
status(void)
{
	struct output_status s;

	output->ops->status(output, &s);
	return s;
}

static inline bool
is_taking(void)
{
	static uint64_t id;
	const char *reason;

	return put(id++, 10, &reason) == 0;
}

static inline bool
is_settled(void)
{
	return status().in_flight == 0;
}

static inline bool
is_there(void)
{
	return kafka_topic_is_there((struct kafka *)output, TOPIC_PROGRAM);
}

static inline bool
is_replaced(void)
{
	struct kafka_stats stats;

	kafka_stats(output, &stats);
	return stats.producers == 2 && status().in_flight == 0;
}

#endif
