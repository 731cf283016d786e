/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "model/record.h"

static void
topics_have_the_names_of_the_contract(void **state)
{
	static const char *const names[] = { "sluice.program", "sluice.usage", "sluice.task",
	    "sluice.run", "sluice.host", "sluice.finding", "sluice.agent" };

	(void)state;
	assert_int_equal(TOPIC_COUNT, 7);
	for (int t = 0; t < TOPIC_COUNT; t++)
		assert_string_equal(topic_name(t), names[t]);
	assert_null(topic_name(TOPIC_COUNT));
}

static void
enums_are_spelled_as_their_symbols(void **state)
{
	(void)state;
	assert_string_equal(record_phase_name(PHASE_START), "START");
	assert_string_equal(record_phase_name(PHASE_LIVE), "LIVE");
	assert_string_equal(record_phase_name(PHASE_END), "END");
	assert_null(record_phase_name(PHASE_END + 1));
	assert_string_equal(end_reason_name(END_REASON_EXIT), "EXIT");
	assert_string_equal(end_reason_name(END_REASON_EXEC), "EXEC");
	assert_string_equal(bound_name(BOUND_COMPUTE), "COMPUTE");
	assert_string_equal(bound_name(BOUND_MEMORY), "MEMORY");
	assert_string_equal(bound_name(BOUND_IO), "IO");
	assert_string_equal(bound_name(BOUND_NETWORK), "NETWORK");
	assert_string_equal(bound_name(BOUND_STARVED), "STARVED");
	assert_string_equal(bound_name(BOUND_IDLE), "IDLE");
	assert_string_equal(bound_name(BOUND_MIXED), "MIXED");
	assert_string_equal(finding_severity_name(SEVERITY_WARNING), "WARNING");
}

static void
none_is_null(void **state)
{
	(void)state;
	assert_null(end_reason_name(END_REASON_NONE));
	assert_null(bound_name(BOUND_NONE));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(topics_have_the_names_of_the_contract),
		cmocka_unit_test(enums_are_spelled_as_their_symbols),
		cmocka_unit_test(none_is_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
