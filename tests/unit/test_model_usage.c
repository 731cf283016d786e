/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "model/usage.h"

static struct usage
all(uint64_t value)
{
	struct usage u = { 0 };

	for (int i = 0; i < USAGE_FIELDS; i++)
		usage_set(&u, i, value);
	return u;
}

static void
every_field_has_a_name_of_its_own(void **state)
{
	(void)state;
	for (int i = 0; i < USAGE_FIELDS; i++) {
		assert_non_null(usage_name(i));
		for (int j = 0; j < i; j++)
			assert_string_not_equal(usage_name(i), usage_name(j));
	}
	assert_null(usage_name(USAGE_FIELDS));
}

static void
adding_sums_counters_and_rss_and_keeps_the_largest_peak(void **state)
{
	struct usage sum = all(10), part = all(3);

	(void)state;
	usage_add(&sum, &part);
	for (int i = 0; i < USAGE_FIELDS; i++) {
		assert_true(usage_has(&sum, i));
		if (i == USAGE_PEAK_RSS_BYTES || i == USAGE_THREADS_PEAK)
			assert_int_equal(sum.value[i], 10);
		else
			assert_int_equal(sum.value[i], 13);
	}
	part = all(50);
	usage_add(&sum, &part);
	assert_int_equal(sum.value[USAGE_PEAK_RSS_BYTES], 50);
}

static void
an_unknown_part_leaves_the_sum_alone(void **state)
{
	struct usage sum = { 0 }, nothing = { 0 }, part = { 0 };

	(void)state;
	usage_add(&sum, &nothing);
	assert_int_equal(sum.known, 0);
	usage_set(&part, USAGE_RCHAR, 7);
	usage_add(&sum, &part);
	usage_add(&sum, &nothing);
	assert_true(usage_has(&sum, USAGE_RCHAR));
	assert_int_equal(sum.value[USAGE_RCHAR], 7);
	assert_false(usage_has(&sum, USAGE_WCHAR));
}

static void
what_stands_in_an_unknown_field_is_not_added(void **state)
{
	struct usage sum = { 0 }, part = all(5);

	(void)state;
	sum.value[USAGE_RCHAR] = 1000;	/* left over; known is not set */
	usage_add(&sum, &part);
	assert_int_equal(sum.value[USAGE_RCHAR], 5);
}

static void
a_sum_does_not_wrap(void **state)
{
	struct usage sum = all(UINT64_MAX - 1), part = all(5);

	(void)state;
	usage_add(&sum, &part);
	assert_true(sum.value[USAGE_RCHAR] == UINT64_MAX);
}

static void
since_is_the_difference_of_counters_and_the_later_level(void **state)
{
	struct usage later = all(10), earlier = all(4), diff;

	(void)state;
	later.value[USAGE_SYSCR] = 3;	/* went back: 0, not a huge number */
	diff = usage_since(&later, &earlier);
	assert_int_equal(diff.value[USAGE_CPU_USER_NS], 6);
	assert_int_equal(diff.value[USAGE_SYSCR], 0);
	assert_true(usage_has(&diff, USAGE_SYSCR));
	assert_int_equal(diff.value[USAGE_PEAK_RSS_BYTES], 10);
	assert_int_equal(diff.value[USAGE_RSS_BYTES], 10);
	assert_int_equal(diff.value[USAGE_THREADS_PEAK], 10);
}

static void
cpu_time_since_is_exact_in_sum_where_a_part_runs_backwards(void **state)
{
	struct usage earlier = all(10), later = all(10), diff;

	(void)state;
	later.value[USAGE_CPU_USER_NS] = 8;
	later.value[USAGE_CPU_SYSTEM_NS] = 17;
	diff = usage_since(&later, &earlier);
	assert_int_equal(diff.value[USAGE_CPU_USER_NS], 0);
	assert_int_equal(diff.value[USAGE_CPU_SYSTEM_NS], 5);
	later.value[USAGE_CPU_USER_NS] = 17;
	later.value[USAGE_CPU_SYSTEM_NS] = 8;
	diff = usage_since(&later, &earlier);
	assert_int_equal(diff.value[USAGE_CPU_USER_NS], 5);
	assert_int_equal(diff.value[USAGE_CPU_SYSTEM_NS], 0);
}

static void
since_knows_a_counter_only_when_both_do(void **state)
{
	struct usage full = all(10), none = { 0 }, diff;

	(void)state;
	diff = usage_since(&full, &none);
	assert_false(usage_has(&diff, USAGE_CPU_USER_NS));
	assert_true(usage_has(&diff, USAGE_RSS_BYTES));
	diff = usage_since(&none, &full);
	assert_int_equal(diff.known, 0);
}

static void
cpu_time_is_user_and_system_as_far_as_known(void **state)
{
	struct usage u = { 0 };

	(void)state;
	assert_int_equal(usage_cpu_ns(&u), 0);
	usage_set(&u, USAGE_CPU_USER_NS, 5);
	assert_int_equal(usage_cpu_ns(&u), 5);
	usage_set(&u, USAGE_CPU_SYSTEM_NS, 6);
	assert_int_equal(usage_cpu_ns(&u), 11);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field_has_a_name_of_its_own),
		cmocka_unit_test(adding_sums_counters_and_rss_and_keeps_the_largest_peak),
		cmocka_unit_test(an_unknown_part_leaves_the_sum_alone),
		cmocka_unit_test(what_stands_in_an_unknown_field_is_not_added),
		cmocka_unit_test(a_sum_does_not_wrap),
		cmocka_unit_test(since_is_the_difference_of_counters_and_the_later_level),
		cmocka_unit_test(cpu_time_since_is_exact_in_sum_where_a_part_runs_backwards),
		cmocka_unit_test(since_knows_a_counter_only_when_both_do),
		cmocka_unit_test(cpu_time_is_user_and_system_as_far_as_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
