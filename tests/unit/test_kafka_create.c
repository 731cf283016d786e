/* SPDX-License-Identifier: Apache-2.0 */
/* kafka_topics: missing topics are created: the request to the broker, and the effect of its answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "kafka_broker.h"
#include "kafka_kit.h"

static struct broker broker;

static int
setup_broker(void **state)
{
	return broker_start(&broker) < 0 ? -1 : setup(state);
}

static int
teardown_broker(void **state)
{
	int r = teardown(state);

	broker_stop(&broker);
	return r;
}

static void
open_here(struct kafka_options o)
{
	/* This broker gives no producer a number, which idempotence takes. */
	const struct kafka_property p[] = { { "enable.idempotence", "false" } };
	const struct output_events events = { on_delivered, on_failed, on_ready, &reported };
	const char *address = broker.address;
	char error[256] = "";

	o.brokers = &address;
	o.n_brokers = 1;
	o.properties = p;
	o.n_properties = 1;
	o.topic_prefix = "t.";
	o.schema_id = schema_id;
	o.arg = &reported;
	if (kafka_open(base, &o, &events, &output, error, sizeof(error)) < 0)
		fail_msg("%s", error);
}

static bool
are_all_there(void)
{
	const struct kafka *k = (struct kafka *)output;

	for (int t = 0; t < TOPIC_COUNT; t++) {
		if (k->topics[t].state != KAFKA_TOPIC_THERE)
			return false;
	}
	return true;
}

static bool
was_asked_to_create(void)
{
	return broker_look(&broker).created > 0;
}

/* Down, although nothing was put since: by the answer alone. */
static bool
is_complained_of(void)
{
	return status().state == OUTPUT_DOWN && strstr(status().error, "cannot be created") != NULL;
}

/* What a broker is asked for: each of these topics in this way. */
static void
expect_wanted(int from, const char *how)
{
	char want[1024];
	size_t at = 0;

	for (int t = from; t < TOPIC_COUNT; t++)
		at += (size_t)snprintf(want + at, sizeof(want) - at, "t.%s %s;", topic_name(t), how);
	assert_string_equal(broker_look(&broker).wanted, want);
}

static void
missing_topics_are_made_as_is_wanted(void **state)
{
	struct kafka_stats stats;

	(void)state;
	open_here((struct kafka_options){ .create_topics = true, .partitions = 3, .replication = 2,
		.retention_ms = 86400000 });
	assert_false(is_there());	/* a record waits */
	assert_true(wait_for(are_all_there));
	assert_int_equal(broker_look(&broker).created, 1);
	expect_wanted(0, "3 2 retention.ms=86400000");
	assert_true(reported.ready > 0);
	assert_int_equal(status().state, OUTPUT_STARTING);
	assert_string_equal(status().error, "");
	kafka_stats(output, &stats);
	assert_string_equal(stats.missing_topic, "");
}

static void
what_is_not_said_is_left_to_the_broker(void **state)
{
	(void)state;
	open_here((struct kafka_options){ .create_topics = true });
	assert_true(wait_for(are_all_there));
	expect_wanted(0, "-1 -1");
}

static void
one_partition_and_one_copy_are_not_the_brokers_default(void **state)
{
	(void)state;
	open_here((struct kafka_options){ .create_topics = true, .partitions = 1, .replication = 1,
		.retention_ms = -1 });
	assert_true(wait_for(are_all_there));
	expect_wanted(0, "1 1 retention.ms=-1");
}

static void
only_those_that_are_missing_are_made(void **state)
{
	char name[64];

	(void)state;
	for (int t = 0; t < TOPIC_COUNT - 2; t++) {
		snprintf(name, sizeof(name), "t.%s", topic_name(t));
		broker_make(&broker, name);
	}
	open_here((struct kafka_options){ .create_topics = true, .partitions = 1, .replication = 1 });
	assert_true(wait_for(are_all_there));
	assert_int_equal(broker_look(&broker).created, 1);
	expect_wanted(TOPIC_COUNT - 2, "1 1");
}

/* Not even in the answer, as with a broker that does not list every topic. */
static void
one_that_is_left_out_is_missing_too(void **state)
{
	(void)state;
	broker.leaves_out = true;
	open_here((struct kafka_options){ .create_topics = true, .partitions = 1, .replication = 1 });
	assert_true(wait_for(are_all_there));
	expect_wanted(0, "1 1");
}

static bool
is_left_to_a_person(void)
{
	return status().state == OUTPUT_DOWN && strstr(status().error, "create it: ") != NULL;
}

static void
topics_that_are_there_are_not_made(void **state)
{
	char name[64];

	(void)state;
	for (int t = 0; t < TOPIC_COUNT; t++) {
		snprintf(name, sizeof(name), "t.%s", topic_name(t));
		broker_make(&broker, name);
	}
	open_here((struct kafka_options){ .create_topics = true });
	assert_true(wait_for(are_all_there));
	assert_int_equal(broker_look(&broker).created, 0);
}

static void
nobody_makes_topics_unless_asked_to(void **state)
{
	(void)state;
	open_here((struct kafka_options){ .partitions = 6 });
	assert_false(is_there());
	assert_true(wait_for(is_left_to_a_person));
	assert_non_null(strstr(status().error, " --partitions 6"));
	assert_null(strstr(status().error, "--replication-factor"));
	assert_int_equal(broker_look(&broker).created, 0);
}

static void
refuse(int16_t error, const char *text)
{
	pthread_mutex_lock(&broker.lock);
	broker.error = error;
	broker.text = text;
	if (error != 0)
		broker.n_topics = 0;
	pthread_mutex_unlock(&broker.lock);
}

static void
a_refusal_is_reported_in_the_brokers_words(void **state)
{
	const char *const texts[] = { "no more than 2 partitions here", NULL };
	char want[256];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		refuse(RD_KAFKA_RESP_ERR_POLICY_VIOLATION, texts[i]);
		open_here((struct kafka_options){ .create_topics = true, .partitions = 3 });
		assert_false(is_there());
		assert_true(wait_for(is_complained_of));
		snprintf(want, sizeof(want), "topic t.sluice.program is missing and cannot be created: %s",
		    texts[i] != NULL ? texts[i] : rd_kafka_err2str(RD_KAFKA_RESP_ERR_POLICY_VIOLATION));
		assert_string_equal(status().error, want);
		/* It is tried again, and then there is nothing to complain of any more. */
		refuse(0, NULL);
		assert_true(wait_for(are_all_there));
		assert_string_equal(((struct kafka *)output)->topics[TOPIC_PROGRAM].error, "");
		output->ops->close(output);
		output = NULL;
	}
}

static void
one_that_somebody_else_has_made_is_no_error(void **state)
{
	(void)state;
	refuse(RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS, "it is there");
	open_here((struct kafka_options){ .create_topics = true });
	assert_false(is_there());
	assert_true(wait_for(was_asked_to_create));
	refuse(0, NULL);
	assert_true(wait_for(are_all_there));
	assert_string_equal(status().error, "");
}

static void
set_mood(enum broker_mood mood)
{
	pthread_mutex_lock(&broker.lock);
	broker.mood = mood;
	pthread_mutex_unlock(&broker.lock);
}

static void
an_answer_that_nobody_understands_is_reported_and_asked_for_again(void **state)
{
	(void)state;
	set_mood(BROKER_GARBLES);
	refuse(RD_KAFKA_RESP_ERR_POLICY_VIOLATION, NULL);
	open_here((struct kafka_options){ .create_topics = true });
	assert_false(is_there());
	assert_true(wait_for(is_complained_of));
	set_mood(BROKER_ANSWERS);
	refuse(0, NULL);
	assert_true(wait_for(are_all_there));
}

/* Its answer would have come to the producer that is gone. */
static void
the_next_producer_asks_anew(void **state)
{
	(void)state;
	set_mood(BROKER_IS_SILENT);
	refuse(RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, NULL);
	open_here((struct kafka_options){ .create_topics = true });
	assert_true(wait_for(was_asked_to_create));
	set_mood(BROKER_ANSWERS);
	refuse(0, NULL);
	output->ops->recall(output);
	assert_true(wait_for(is_replaced));
	assert_true(wait_for(are_all_there));
	assert_int_equal(broker_look(&broker).created, 2);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup_broker, teardown_broker)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(missing_topics_are_made_as_is_wanted),
		T(what_is_not_said_is_left_to_the_broker),
		T(one_partition_and_one_copy_are_not_the_brokers_default),
		T(only_those_that_are_missing_are_made),
		T(one_that_is_left_out_is_missing_too),
		T(topics_that_are_there_are_not_made),
		T(nobody_makes_topics_unless_asked_to),
		T(a_refusal_is_reported_in_the_brokers_words),
		T(one_that_somebody_else_has_made_is_no_error),
		T(an_answer_that_nobody_understands_is_reported_and_asked_for_again),
		T(the_next_producer_asks_anew),
	};

	return cmocka_run_group_tests(tests, threads_begin, threads_end);
}
