/* SPDX-License-Identifier: Apache-2.0 */
/* suggest: the nearest name, the distance of names, and its limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "config/suggest.h"

enum { ANY = 2 * SUGGEST_NAME_MAX };	/* a limit that no distance exceeds */

static void
distance_counts_what_a_hand_does_wrong(void **state)
{
	(void)state;
	assert_int_equal(suggest_distance("interval", "interval", ANY), 0);
	assert_int_equal(suggest_distance("", "", ANY), 0);
	assert_int_equal(suggest_distance("", "abc", ANY), 6);
	assert_int_equal(suggest_distance("intervl", "interval", ANY), 2);	/* left out */
	assert_int_equal(suggest_distance("intervall", "interval", ANY), 2);	/* too many */
	assert_int_equal(suggest_distance("intervsl", "interval", ANY), 2);	/* another */
	assert_int_equal(suggest_distance("intevral", "interval", ANY), 2);	/* swapped */
	assert_int_equal(suggest_distance("Interval", "interval", ANY), 1);
	assert_int_equal(suggest_distance("max-bytes", "max_bytes", ANY), 1);
	assert_int_equal(suggest_distance("kitten", "sitting", ANY), 6);
	assert_int_equal(suggest_distance("ca", "abc", ANY), 6);	/* no letter is moved twice */
}

static void
distance_goes_both_ways_and_is_exact_up_to_its_limit(void **state)
{
	static const char *const names[] = { "brokers", "broker", "borker", "properties", "Propertys", "x", "",
		"porpertise", "interval", "max_bytes", "max-bytes", "bytes_max",
		"a_very_long_name_that_goes_on_and_on_and_on_until_nobody_reads_it_any_more_at_all" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		for (size_t j = 0; j < sizeof(names) / sizeof(names[0]); j++) {
			unsigned all = suggest_distance(names[i], names[j], ANY);

			assert_int_equal(suggest_distance(names[j], names[i], ANY), all);
			for (unsigned most = 0; most < ANY; most++)
				assert_int_equal(suggest_distance(names[i], names[j], most),
				    all <= most ? all : most + 1);
		}
	}
}

static const char *
nearest(const char *wrong)
{
	static const char *const candidates[] = { "user", "urls", "brokers", "properties", "dir", "max" };
	struct suggestion s = { 0 };

	for (size_t i = 0; i < sizeof(candidates) / sizeof(candidates[0]); i++)
		suggest_offer(&s, wrong, candidates[i]);
	return s.name;
}

static void
the_nearest_is_offered_and_nothing_far(void **state)
{
	(void)state;
	assert_string_equal(nearest("url"), "urls");
	assert_string_equal(nearest("usr"), "user");
	assert_string_equal(nearest("brokrs"), "brokers");
	assert_string_equal(nearest("propretys"), "properties");
	assert_null(nearest("something"));
	assert_null(nearest(""));
	assert_null(nearest("minimum"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(distance_counts_what_a_hand_does_wrong),
		cmocka_unit_test(distance_goes_both_ways_and_is_exact_up_to_its_limit),
		cmocka_unit_test(the_nearest_is_offered_and_nothing_far),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
