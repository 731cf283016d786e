/* SPDX-License-Identifier: Apache-2.0 */
/* shares: what a uid owes, and for how long it waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "control/shares.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define BEGIN (5 * SECOND)

static struct shares shares;

static int
setup(void **state)
{
	(void)state;
	shares = (struct shares){ 0 };
	return 0;
}

static void
one_has_a_hundredth_of_a_cpu(void **state)
{
	struct share *one = shares_of(&shares, 1000, BEGIN);

	(void)state;
	for (int i = 0; i < 100; i++) {
		assert_int_equal(shares_wait_ns(&shares, one, BEGIN), 0);
		shares_charge(&shares, one, MS, BEGIN);
	}
	assert_int_equal(shares_wait_ns(&shares, one, BEGIN), 0);	/* the burst: 100 ms of CPU time */
	shares_charge(&shares, one, MS, BEGIN);
	assert_int_equal(shares_wait_ns(&shares, one, BEGIN), 100 * MS);
	assert_int_equal(shares_wait_ns(&shares, one, BEGIN + 99 * MS), MS);
	assert_int_equal(shares_wait_ns(&shares, one, BEGIN + 100 * MS), 0);
	/* From then on a millisecond every 100. */
	for (uint64_t now = BEGIN + 100 * MS; now < BEGIN + 2 * SECOND; now += 100 * MS) {
		assert_int_equal(shares_wait_ns(&shares, one, now), 0);
		shares_charge(&shares, one, MS, now);
		assert_int_equal(shares_wait_ns(&shares, one, now), 100 * MS);
	}
	/* A rest earns the burst again, and no more. */
	assert_int_equal(shares_wait_ns(&shares, one, BEGIN + 100 * SECOND), 0);
	shares_charge(&shares, one, 101 * MS, BEGIN + 100 * SECOND);
	assert_int_equal(shares_wait_ns(&shares, one, BEGIN + 100 * SECOND), 100 * MS);
}

static void
all_have_two_hundredths_together(void **state)
{
	(void)state;
	for (uint32_t uid = 1; uid <= 20; uid++)
		shares_charge(&shares, shares_of(&shares, uid, BEGIN), 10 * MS, BEGIN);
	assert_int_equal(shares_wait_ns(&shares, shares_of(&shares, 21, BEGIN), BEGIN), 0);
	shares_charge(&shares, shares_of(&shares, 1, BEGIN), MS, BEGIN);
	assert_int_equal(shares_wait_ns(&shares, shares_of(&shares, 21, BEGIN), BEGIN), 50 * MS);
}

static void
a_share_is_free_once_all_is_paid_for(void **state)
{
	struct share *last = NULL;

	(void)state;
	for (uint32_t uid = 0; uid < SHARES; uid++) {
		last = shares_of(&shares, uid, BEGIN);
		assert_non_null(last);
		assert_ptr_equal(shares_of(&shares, uid, BEGIN), last);
		shares_charge(&shares, last, MS, BEGIN);
	}
	assert_null(shares_of(&shares, 5000, BEGIN));
	last->connections = 1;
	for (struct share *one = shares.list; one < last; one++)
		one->connections = 1;
	shares.list[7].connections = 0;
	assert_null(shares_of(&shares, 5000, BEGIN + 99 * MS));
	assert_ptr_equal(shares_of(&shares, 5000, BEGIN + 100 * MS), &shares.list[7]);
	assert_int_equal(shares.list[7].uid, 5000);
	assert_int_equal(shares.list[7].pace.paid_ns, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(one_has_a_hundredth_of_a_cpu, setup),
		cmocka_unit_test_setup(all_have_two_hundredths_together, setup),
		cmocka_unit_test_setup(a_share_is_free_once_all_is_paid_for, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
