/*
 * SPDX-License-Identifier: Apache-2.0
 * penalty: for how long a user's items are not read after one hung.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "reader/penalty.h"

#define S UINT64_C(1000000000)

static void
it_doubles_up_to_a_minute(void **state)
{
	static const uint64_t lengths_s[] = { 1, 2, 4, 8, 16, 32, 64, 64 };
	struct penalties p = { 0 };
	uint64_t now = 5 * S;

	(void)state;
	for (size_t i = 0; i < sizeof(lengths_s) / sizeof(lengths_s[0]); i++) {
		penalty_set(&p, 7, now);
		assert_true(penalty_holds(&p, 7, now + lengths_s[i] * S - 1));
		assert_false(penalty_holds(&p, 7, now + lengths_s[i] * S));
		assert_false(penalty_holds(&p, 8, now));
		now += lengths_s[i] * S;
	}
	now += 601 * S;
	penalty_set(&p, 7, now);
	assert_false(penalty_holds(&p, 7, now + S));	/* it begins anew */
}

static void
many_users_leave_the_last_ones(void **state)
{
	struct penalties p = { 0 };
	uint32_t uid;

	(void)state;
	for (uid = 1; uid <= 10 * PENALTIES_MAX; uid++)
		penalty_set(&p, uid, 5 * S + uid);
	for (uid = 9 * PENALTIES_MAX + 1; uid <= 10 * PENALTIES_MAX; uid++)
		assert_true(penalty_holds(&p, uid, 6 * S));
	assert_false(penalty_holds(&p, 1, 6 * S));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_doubles_up_to_a_minute),
		cmocka_unit_test(many_users_leave_the_last_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
