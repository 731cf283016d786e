/* SPDX-License-Identifier: Apache-2.0 */
/* variables: names that can be configured. test_privacy.py tests that they are read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "attach/variables.h"

static void
names_are_what_a_shell_can_set(void **state)
{
	char longest[64 + 1];

	(void)state;
	assert_true(variable_is_name("TRACEPARENT"));
	assert_true(variable_is_name("_"));
	assert_true(variable_is_name("x1_Y2"));
	assert_false(variable_is_name(""));
	assert_false(variable_is_name("1A"));
	assert_false(variable_is_name("A-B"));
	assert_false(variable_is_name("A="));
	assert_false(variable_is_name("A B"));
	assert_false(variable_is_name("A*"));
	assert_false(variable_is_name("\xc3\xa9"));
	memset(longest, 'A', sizeof(longest));
	longest[64] = '\0';
	assert_false(variable_is_name(longest));
	longest[63] = '\0';
	assert_true(variable_is_name(longest));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_what_a_shell_can_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
