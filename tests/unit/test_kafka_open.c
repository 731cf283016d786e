/* SPDX-License-Identifier: Apache-2.0 */
/* kafka: checks of properties and brokers when an output is opened. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "kafka_kit.h"

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
		{ { "acks", "1" }, "acks" },	/* excludes idempotence, which only opening checks */
	};
	const char *broker = "127.0.0.1:1";

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct kafka_options o = { .brokers = &broker, .n_brokers = 1,
		    .properties = &wrong[i].property, .n_properties = 1 };
		char error[256] = "";

		assert_int_equal(open_with(broker, &wrong[i].property, 1, error, sizeof(error)), -EINVAL);
		assert_null(output);
		assert_non_null(strstr(error, wrong[i].error));
		if (i < 3) {
			error[0] = '\0';
			assert_int_equal(kafka_check(&o, error, sizeof(error)), -EINVAL);
			assert_non_null(strstr(error, wrong[i].error));
		}
	}
}

static void
a_promise_that_is_given_away_is_reported(void **state)
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
		struct output_events events = { on_delivered, on_failed, on_ready, &reported };
		struct kafka_options o = { .brokers = &broker, .n_brokers = 1, .properties = p, .n_properties = 2,
			.schema_id = schema_id, .on_log = on_log };
		char error[256];

		reported.log[0] = '\0';
		assert_int_equal(kafka_open(base, &o, &events, &output, error, sizeof(error)), 0);
		assert_string_equal(reported.log, cases[i].says);
		output->ops->close(output);
		output = NULL;
	}
}

static bool
is_down(void)
{
	return status().state == OUTPUT_DOWN;
}

static void
no_broker_is_a_state_with_a_sentence(void **state)
{
	char error[256];

	(void)state;
	assert_int_equal(open_with("127.0.0.1:1", NULL, 0, error, sizeof(error)), 0);
	assert_int_equal(status().state, OUTPUT_STARTING);
	assert_true(wait_for(is_down));
	assert_non_null(strstr(status().error, "no broker can be reached"));
	assert_non_null(strstr(status().error, "127.0.0.1:1"));
	assert_true(status().error_us > 0);
}

static void
the_end_of_a_process_waits_for_those_that_were_closed(void **state)
{
	(void)state;
	open_mock(NULL, NULL);
	assert_false(kafka_process_wait(20));
	output->ops->close(output);
	output = NULL;
	assert_true(kafka_process_wait(30000));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_wrong_property_is_named),
		T(a_promise_that_is_given_away_is_reported),
		T(no_broker_is_a_state_with_a_sentence),
		T(the_end_of_a_process_waits_for_those_that_were_closed),
	};

	return cmocka_run_group_tests(tests, threads_begin, threads_end);
}
