/*
 * SPDX-License-Identifier: Apache-2.0
 * host: since when there was no agent, although the wall clock may have been set meanwhile.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/host_state.h"

#define S_US INT64_C(1000000)
#define NOW (INT64_C(1800000000) * S_US)

/* Returns the gap before an agent that starts 90000 s after the boot: how far each clock has advanced in it. */
static int64_t
gap_s(int64_t wall_s, int64_t boot_s)
{
	struct sign_of_life last = sign_of_life(NOW - wall_s * S_US, (90000 - boot_s) * S_US);
	struct sign_of_life now = sign_of_life(NOW, 90000 * S_US);

	return (int64_t)(gap_between(&last, &now) / 1000000000);
}

static void
a_step_of_the_wall_clock_does_not_count(void **state)
{
	(void)state;
	assert_int_equal(60, gap_s(60, 60));
	assert_int_equal(60, gap_s(60 + 7200, 60));	/* set ahead */
	assert_int_equal(60, gap_s(60 - 7200, 60));	/* set back */
	assert_int_equal(60, gap_s(60 - 32000, 60));
	assert_int_equal(61, gap_s(61, 60));		/* slewed */
	assert_int_equal(0, gap_s(60, -5));		/* no later one has ended before */
}

static void
without_the_other_clock_the_wall_clock_decides(void **state)
{
	struct sign_of_life last = { NOW - 300 * S_US, 0 }, now = sign_of_life(NOW, 5 * S_US);

	(void)state;
	assert_int_equal(300, gap_between(&last, &now) / 1000000000);
	last.wall_us = NOW + 300 * S_US;
	assert_int_equal(0, gap_between(&last, &now));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_of_the_wall_clock_does_not_count),
		cmocka_unit_test(without_the_other_clock_the_wall_clock_decides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
