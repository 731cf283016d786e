/*
 * SPDX-License-Identifier: Apache-2.0
 * agent: in which of its passes, one a second and each a little early or late, the records of an interval are due.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/state.h"

#define MS UINT64_C(1000000)
#define LAST (UINT64_C(5000) * MS)

static bool
is_due(uint64_t interval_ms, uint64_t after_ms)
{
	struct agent a = { .interval_ns = interval_ms * MS };

	return agent_is_due(&a, LAST, LAST + after_ms * MS);
}

static void
test_each_pass_is_due_where_the_interval_is_a_second(void **state)
{
	(void)state;
	assert_true(is_due(1000, 1050));
	assert_true(is_due(1000, 950));		/* the pass before it was late */
	assert_true(is_due(1000, 700));
	assert_false(is_due(1000, 400));
}

static void
test_the_pass_nearest_to_the_end_of_the_interval_is_due(void **state)
{
	(void)state;
	assert_false(is_due(10000, 8900));
	assert_false(is_due(10000, 9300));
	assert_true(is_due(10000, 9600));	/* the next is at 10.6 s, farther from the end */
	assert_true(is_due(10000, 10400));
	assert_true(is_due(10000, 25000));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_pass_is_due_where_the_interval_is_a_second),
		cmocka_unit_test(test_the_pass_nearest_to_the_end_of_the_interval_is_due),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
