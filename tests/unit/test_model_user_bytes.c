/* SPDX-License-Identifier: Apache-2.0 */
/* user_bytes: whose bytes are counted, and what is left of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/user.h"
#include "model/user_bytes.h"

static int
index_of(uint64_t uid)
{
	return user_bytes_index(&(struct opt_u64){ .known = true, .value = uid });
}

static void
who_has_no_share_is_not_counted(void **state)
{
	const struct opt_u64 of_system = user_share(500, 0);

	(void)state;
	assert_int_equal(user_bytes_index(&(struct opt_u64){ 0 }), -1);
	assert_int_equal(user_bytes_index(&of_system), -1);
}

static void
each_uid_has_a_place_in_the_table(void **state)
{
	(void)state;
	assert_int_equal(index_of(USERS_APART + 5), 5);
	assert_int_equal(index_of(UINT32_MAX), USERS_APART - 1);
	assert_int_equal(index_of(UINT64_MAX), USERS_APART - 1);
}

static void
each_user_loses_its_part_of_what_is_removed(void **state)
{
	static struct user_bytes b = { .of = { [1] = 1000, [2] = 101, [3] = 1 } };

	(void)state;
	assert_true(user_bytes_shrink(&b, 500, 2000));
	assert_int_equal(b.of[0], 0);
	assert_int_equal(b.of[1], 749);
	assert_int_equal(b.of[2], 75);
	assert_int_equal(b.of[3], 0);		/* no byte stays for ever */
	assert_false(user_bytes_shrink(&b, 1, 0));
	assert_int_equal(b.of[1], 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_has_no_share_is_not_counted),
		cmocka_unit_test(each_uid_has_a_place_in_the_table),
		cmocka_unit_test(each_user_loses_its_part_of_what_is_removed),
	};

	return cmocka_run_group_tests_name("user_bytes", tests, NULL, NULL);
}
