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
	struct user_losses a = { 0 }, b = { 0 };
	struct user_loss list[USER_LOSSES];
	size_t n;

	(void)state;
	user_losses_count(&a, &(struct user_loss){ .uid = 1001, .refused = 2 });
	user_losses_count(&a, &(struct user_loss){ .uid = 1002, .lost = 4 });
	user_losses_count(&b, &(struct user_loss){ .uid = 1001, .cut = 3 });
	user_losses_count(&b, &(struct user_loss){ .uid = 1003, .cut = 1 });
	user_losses_count(&b, &(struct user_loss){ .uid = 1004 });	/* nothing was lost of it */
	n = user_losses_list(&b, list, user_losses_list(&a, list, 0));
	assert_int_equal(n, 3);
	assert_int_equal(list[0].uid, 1001);
	assert_int_equal(list[0].refused, 2);
	assert_int_equal(list[0].lost, 0);
	assert_int_equal(list[0].cut, 3);
	assert_int_equal(list[1].uid, 1002);
	assert_int_equal(list[2].uid, 1003);
	user_losses_free(&a);
	user_losses_free(&b);
}

static void
users_who_are_equal_modulo_their_number_are_one(void **state)
{
	struct user_losses a = { 0 };
	struct user_loss list[USER_LOSSES];

	(void)state;
	user_losses_count(&a, &(struct user_loss){ .uid = 7, .lost = 1 });
	user_losses_count(&a, &(struct user_loss){ .uid = 7 + USERS_APART, .lost = 1 });
	assert_int_equal(user_losses_list(&a, list, 0), 1);
	assert_int_equal(list[0].uid, 7 + USERS_APART);
	assert_int_equal(list[0].lost, 2);
	user_losses_free(&a);
}

static void
of_more_users_than_are_listed_those_who_lost_most_are(void **state)
{
	struct user_losses a = { 0 };
	struct user_loss list[USER_LOSSES];

	(void)state;
	for (uint32_t i = 1; i <= 100; i++)		/* each of 1 to 100 once */
		user_losses_count(&a, &(struct user_loss){ .uid = 1000 + i, .cut = i * 37 % 101 });
	assert_int_equal(user_losses_list(&a, list, 0), USER_LOSSES);
	for (size_t i = 0; i < USER_LOSSES; i++)
		assert_int_equal(list[i].cut, 100 - i);
	user_losses_free(&a);
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
