/* SPDX-License-Identifier: Apache-2.0 */
/* losses: whose they are, and of which users they are listed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/losses.h"

static void
what_several_components_lost_of_a_user_is_one_sum(void **state)
{
	static struct user_losses a, b;
	struct user_loss list[USER_LOSSES];
	size_t n;

	(void)state;
	user_losses_of(&a, 1001)->refused = 2;
	user_losses_of(&a, 1002)->lost = 4;
	user_losses_of(&b, 1001)->cut = 3;
	user_losses_of(&b, 1003)->cut = 1;
	user_losses_of(&b, 1004);	/* nothing was lost of it */
	n = user_losses_list(&b, list, user_losses_list(&a, list, 0));
	assert_int_equal(n, 3);
	assert_int_equal(list[0].uid, 1001);
	assert_int_equal(list[0].refused, 2);
	assert_int_equal(list[0].lost, 0);
	assert_int_equal(list[0].cut, 3);
	assert_int_equal(list[1].uid, 1002);
	assert_int_equal(list[2].uid, 1003);
}

static void
users_who_are_equal_modulo_their_number_are_one(void **state)
{
	static struct user_losses a;
	struct user_loss list[USER_LOSSES];

	(void)state;
	user_losses_of(&a, 7)->lost++;
	user_losses_of(&a, 7 + USERS_APART)->lost++;
	assert_int_equal(user_losses_list(&a, list, 0), 1);
	assert_int_equal(list[0].uid, 7 + USERS_APART);
	assert_int_equal(list[0].lost, 2);
}

static void
of_more_users_than_are_listed_those_who_lost_most_are(void **state)
{
	static struct user_losses a;
	struct user_loss list[USER_LOSSES];

	(void)state;
	for (uint32_t i = 1; i <= 100; i++)
		user_losses_of(&a, 1000 + i)->cut = i * 37 % 101;	/* each of 1 to 100 once */
	assert_int_equal(user_losses_list(&a, list, 0), USER_LOSSES);
	for (size_t i = 0; i < USER_LOSSES; i++)
		assert_int_equal(list[i].cut, 100 - i);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_several_components_lost_of_a_user_is_one_sum),
		cmocka_unit_test(users_who_are_equal_modulo_their_number_are_one),
		cmocka_unit_test(of_more_users_than_are_listed_those_who_lost_most_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
