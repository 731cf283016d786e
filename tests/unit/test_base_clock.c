/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"

#define SECOND_NS INT64_C(1000000000)

static void
one_moment_has_one_wall_clock_time(void **state)
{
	int64_t ahead_ns = clock_wall_ahead_ns(0);

	(void)state;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(clock_wall_ahead_ns(ahead_ns), ahead_ns);
	assert_int_equal(clock_wall_ahead_ns(ahead_ns + CLOCK_NOISE_NS / 2), ahead_ns + CLOCK_NOISE_NS / 2);
}

static void
a_clock_that_was_set_is_followed(void **state)
{
	int64_t ahead_ns = clock_wall_ahead_ns(0);

	(void)state;
	for (int64_t set_ns = -SECOND_NS; set_ns <= SECOND_NS; set_ns += 2 * SECOND_NS) {
		int64_t off_ns = clock_wall_ahead_ns(ahead_ns + set_ns) - ahead_ns;

		assert_in_range(off_ns + CLOCK_NOISE_NS, 0, 2 * CLOCK_NOISE_NS);
	}
	assert_true(ahead_ns + (int64_t)clock_ns(CLOCK_BOOTTIME) <= (int64_t)clock_ns(CLOCK_REALTIME) + CLOCK_NOISE_NS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_moment_has_one_wall_clock_time),
		cmocka_unit_test(a_clock_that_was_set_is_followed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
