/* SPDX-License-Identifier: Apache-2.0 */
/* steps: accounts are spent once, nest, and bound what patterns do together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/pattern.h"
#include "base/steps.h"

static void
without_an_account_all_is_allowed(void **state)
{
	(void)state;
	assert_true(steps_take(UINT64_MAX));
	assert_true(steps_left() == UINT64_MAX);
	assert_false(steps_are_spent());
}

static void
what_asks_for_more_than_is_left_spends_it(void **state)
{
	struct steps s;

	(void)state;
	steps_begin(&s, 10);
	assert_true(steps_take(10));
	assert_false(steps_are_spent());
	assert_false(steps_take(1));
	assert_true(steps_are_spent());
	assert_false(steps_take(0));	/* nothing more is done, however little */
	assert_true(steps_end(&s));
	assert_true(steps_take(1));
}

static void
the_innermost_counts(void **state)
{
	struct steps outer, inner;

	(void)state;
	steps_begin(&outer, 10);
	steps_begin(&inner, 5);
	assert_false(steps_walk(STEPS_BYTES * 5));
	assert_true(steps_end(&inner));
	assert_false(steps_are_spent());
	assert_true(steps_left() == 10);
	assert_true(steps_walk(STEPS_BYTES * 5));
	assert_true(steps_left() == 4);
	assert_false(steps_end(&outer));
}

/* Returns how many of n searches were made before an account of `allowed` steps was spent. */
static size_t
searches_made(struct pattern *p, const char *text, size_t n, uint64_t allowed)
{
	struct steps s;
	size_t made = 0;

	steps_begin(&s, allowed);
	for (size_t i = 0; i < n; i++) {
		pattern_find(p, text, strlen(text), NULL, 0);
		made += !steps_are_spent();
	}
	assert_int_equal(steps_end(&s), made < n);
	return made;
}

static void
patterns_share_it(void **state)
{
	char error[128], hard[201] = "";
	struct pattern *p = pattern_new("(x+x+)+[yz]", error, sizeof(error));
	struct pattern *easy = pattern_new("^/work/", error, sizeof(error));
	struct steps s;
	size_t made;

	(void)state;
	memset(hard, 'x', sizeof(hard) - 1);
	made = searches_made(p, hard, 1000, 100000);
	assert_in_range(made, 2, 20);		/* each takes no more than its own share */
	assert_int_equal(searches_made(p, hard, 1000, 100000), made);	/* no clock decides */
	assert_int_equal(searches_made(easy, hard, 1000, 100000), 1000);
	/* Once it is spent, what would match at once does not, either. */
	steps_begin(&s, 1);
	pattern_find(p, hard, strlen(hard), NULL, 0);
	assert_false(pattern_find(easy, "/work/", 6, NULL, 0));
	assert_true(steps_end(&s));
	assert_true(pattern_find(easy, "/work/", 6, NULL, 0));
	pattern_free(easy);
	pattern_free(p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_an_account_all_is_allowed),
		cmocka_unit_test(what_asks_for_more_than_is_left_spends_it),
		cmocka_unit_test(the_innermost_counts),
		cmocka_unit_test(patterns_share_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
