/* SPDX-License-Identifier: Apache-2.0 */
/* job_share: one user with a thousand folders, and others with one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/job_share.h"

#define MS UINT64_C(1000000)
#define BEGIN (UINT64_C(5000) * 1000 * MS)

enum {
	MANY = 1000, ONE, ANOTHER,
};

static void
one_user_alone_has_all_the_time(void **state)
{
	struct job_shares s = { 0 };
	uint64_t now = BEGIN;

	(void)state;
	for (int i = 0; i < 100; i++, now += 10 * MS) {
		assert_true(job_shares_may(&s, MANY, JOB_SHARE_LEAST, now));
		job_shares_use(&s, MANY, 5 * MS, now);
	}
	assert_false(job_shares_may(&s, MANY, JOB_SHARE_LEAST - 1, now));
}

static void
where_time_is_scarce_a_user_of_little_comes_first(void **state)
{
	struct job_shares s = { 0 };
	uint64_t now = BEGIN;
	int n_many = 0, n_one = 0;

	(void)state;
	for (int i = 0; i < 1000; i++, now += 10 * MS) {
		if (job_shares_may(&s, MANY, JOB_SHARE_LEAST, now)) {
			job_shares_use(&s, MANY, 5 * MS, now);
			n_many++;
		}
		if (i % 100 == 0) {
			assert_true(i == 0 || job_shares_may(&s, ONE, JOB_SHARE_LEAST, now));
			job_shares_use(&s, ONE, 5 * MS, now);
			n_one++;
		}
	}
	assert_int_equal(n_one, 10);
	/* Both have as much once both have asked. */
	assert_in_range(n_many, 10, 40);
	assert_true(job_shares_may(&s, MANY, JOB_SHARE_LOW, now));
	/* No other user asks any more. */
	now += 11 * 1000 * MS;
	for (int i = 0; i < 10; i++) {
		assert_true(job_shares_may(&s, MANY, JOB_SHARE_LEAST, now));
		job_shares_use(&s, MANY, 5 * MS, now);
	}
}

static void
the_table_of_users_is_bounded(void **state)
{
	struct job_shares s = { 0 };

	(void)state;
	job_shares_use(&s, MANY, 1000 * MS, BEGIN);
	for (uint32_t uid = 1; uid < 100; uid++)
		assert_true(job_shares_may(&s, uid, JOB_SHARE_LEAST, BEGIN + uid * MS));
	assert_false(job_shares_may(&s, MANY, JOB_SHARE_LEAST, BEGIN + 100 * MS));
}

static void
a_user_with_many_folders_loses_its_own(void **state)
{
	struct job_place places[4] = { { MANY, 10 }, { ONE, 1 }, { MANY, 5 } };

	(void)state;
	assert_int_equal(job_place_for(places, 4, MANY), 3);
	places[3] = (struct job_place){ MANY, 20 };
	assert_int_equal(job_place_for(places, 4, MANY), 2);
	assert_int_equal(job_place_for(places, 4, ANOTHER), 2);
	assert_int_equal(job_place_for(places, 4, ONE), 2);
	places[2] = (struct job_place){ ONE, 30 };
	/* Of two with as many it is the one's who asks. */
	assert_int_equal(job_place_for(places, 4, ONE), 1);
	assert_int_equal(job_place_for(places, 4, MANY), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_user_alone_has_all_the_time),
		cmocka_unit_test(where_time_is_scarce_a_user_of_little_comes_first),
		cmocka_unit_test(the_table_of_users_is_bounded),
		cmocka_unit_test(a_user_with_many_folders_loses_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
