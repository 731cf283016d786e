/* SPDX-License-Identifier: Apache-2.0 */
/* traceparent: W3C's trace context, and invalid ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "identify/traceparent.h"

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN "00f067aa0ba902b7"

static void
ids_and_flags_are_taken(void **state)
{
	struct traceparent t;

	(void)state;
	assert_true(traceparent_parse("00-" TRACE "-" SPAN "-01", &t));
	assert_string_equal(t.trace_id, TRACE);
	assert_string_equal(t.span_id, SPAN);
	assert_int_equal(t.flags, 1);
	assert_true(traceparent_parse("00-" TRACE "-" SPAN "-af", &t));
	assert_int_equal(t.flags, 0xaf);
	/* a later version may add to the end */
	assert_true(traceparent_parse("01-" TRACE "-" SPAN "-00", &t));
	assert_true(traceparent_parse("cc-" TRACE "-" SPAN "-00-what-comes", &t));
	assert_string_equal(t.span_id, SPAN);
	assert_int_equal(t.flags, 0);
}

static void
anything_else_is_refused_and_changes_nothing(void **state)
{
	static const char *const wrong[] = {
		"", "0", "00", "00-", "00-" TRACE, "00-" TRACE "-" SPAN, "00-" TRACE "-" SPAN "-", "00-" TRACE "-" SPAN "-0",
		"00-" TRACE "-" SPAN "-011", "00-" TRACE "-" SPAN "-01-", "00-" TRACE "-" SPAN "-01 ", " 00-" TRACE "-" SPAN "-01",
		"01-" TRACE "-" SPAN "-01x", "ff-" TRACE "-" SPAN "-01", "0g-" TRACE "-" SPAN "-01", "00_" TRACE "-" SPAN "-01",
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-" SPAN "-01", "00-" TRACE "-00F067AA0BA902B7-01", "00-" TRACE "-" SPAN "-0G",
		"00-00000000000000000000000000000000-" SPAN "-01", "00-" TRACE "-0000000000000000-01",
		"00-" TRACE "x" SPAN "-01", "00-" TRACE "-" SPAN "x01", "00-4bf92f3577b34da6a3ce929d0e0e473-" SPAN "-011",
		"00-" TRACE "-" SPAN "\n01", "TRACEPARENT=00-" TRACE "-" SPAN "-01",
	};
	struct traceparent t = { "t", "s", 7 };

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (traceparent_parse(wrong[i], &t))
			fail_msg("'%s' was taken", wrong[i]);
	}
	assert_string_equal(t.trace_id, "t");
	assert_string_equal(t.span_id, "s");
	assert_int_equal(t.flags, 7);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_and_flags_are_taken),
		cmocka_unit_test(anything_else_is_refused_and_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
