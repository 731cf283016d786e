/* SPDX-License-Identifier: Apache-2.0 */
/* units: durations and sizes that are accepted, those that are refused and their hints, and their text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "config/units.h"

static void
duration_is(const char *text, uint64_t want_ms)
{
	char why[256] = "";
	uint64_t ms = 12345;

	if (!duration_parse(text, &ms, why, sizeof(why)))
		fail_msg("%s: %s", text, why);
	assert_int_equal(ms, want_ms);
}

static void
size_is(const char *text, uint64_t want)
{
	char why[256] = "";
	uint64_t bytes = 12345;

	if (!size_parse(text, &bytes, why, sizeof(why)))
		fail_msg("%s: %s", text, why);
	assert_int_equal(bytes, want);
}

static void
durations_have_units_and_fractions(void **state)
{
	(void)state;
	duration_is("10s", 10000);
	duration_is("100ms", 100);
	duration_is("1.5h", 5400000);
	duration_is("0.25s", 250);
	duration_is("10m", 600000);
	duration_is("7d", 604800000);
	duration_is("2 s", 2000);
	duration_is("0", 0);
	duration_is("0.0", 0);
	duration_is("0s", 0);
	duration_is("213503982334d", UINT64_C(213503982334) * 86400000);
}

static void
sizes_have_units_of_1024_and_of_1000(void **state)
{
	(void)state;
	size_is("1B", 1);
	size_is("32KiB", 32768);
	size_is("8MiB", 8388608);
	size_is("1GiB", 1073741824);
	size_is("1TiB", UINT64_C(1099511627776));
	size_is("1.5GiB", 1610612736);
	size_is("1kB", 1000);
	size_is("3MB", 3000000);
	size_is("2GB", UINT64_C(2000000000));
	size_is("1TB", UINT64_C(1000000000000));
	size_is("0", 0);
}

static void
an_error_contains_its_hint(void **state)
{
	static const struct { const char *text, *why; } durations[] = {
		{ "10", "'10' has no unit: add one of ms, s, m, h, d" },
		{ "0.5", "'0.5' has no unit: add one of ms, s, m, h, d" },
		{ "10sec", "'10sec' has no such unit: write 10s" },
		{ "2 min", "'2 min' has no such unit: write 2m" },
		{ "1H", "'1H' has no such unit: write 1h" },
		{ "10us", "'10us' has no such unit: it is one of ms, s, m, h, d" },
		{ "1h30m", "'1h30m' has no such unit: it is one of ms, s, m, h, d" },
		{ "", "'' is not a duration: write a number and a unit (ms, s, m, h, d)" },
		{ "-1s", "'-1s' is not a duration: write a number and a unit (ms, s, m, h, d)" },
		{ ".5s", "'.5s' is not a duration: write a number and a unit (ms, s, m, h, d)" },
		{ "5.s", "'5.s' is not a duration: write a number and a unit (ms, s, m, h, d)" },
		{ "1.5ms", "'1.5ms' is not a whole number of milliseconds: use a smaller unit" },
		{ "213503982335d", "'213503982335d' is too large" },
		{ "99999999999999999999s",
		    "'99999999999999999999s' is not a duration: write a number and a unit (ms, s, m, h, d)" },
		{ "1.0000000001s",
		    "'1.0000000001s' is not a duration: write a number and a unit (ms, s, m, h, d)" },
	};
	static const struct { const char *text, *why; } sizes[] = {
		{ "32K", "'32K' has no such unit: write 32KiB" },
		{ "32KB", "'32KB' has no such unit: write 32kB" },
		{ "1.5g", "'1.5g' has no such unit: write 1.5GiB" },
		{ "10Mib", "'10Mib' has no such unit: write 10MiB" },
		{ "64", "'64' has no unit: add one of B, KiB, MiB, GiB, TiB" },
		{ "0.5B", "'0.5B' is not a whole number of bytes: use a smaller unit" },
		{ "16777216TiB", "'16777216TiB' is too large" },
		{ "10s", "'10s' has no such unit: it is one of B, KiB, MiB, GiB, TiB" },
		{ "1\n2", "'1\\n2' has no such unit: it is one of B, KiB, MiB, GiB, TiB" },
	};
	char why[256];
	uint64_t value = 7;

	(void)state;
	for (size_t i = 0; i < sizeof(durations) / sizeof(durations[0]); i++) {
		assert_false(duration_parse(durations[i].text, &value, why, sizeof(why)));
		assert_string_equal(why, durations[i].why);
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		assert_false(size_parse(sizes[i].text, &value, why, sizeof(why)));
		assert_string_equal(why, sizes[i].why);
	}
}

static void
text_parses_back_to_the_same(void **state)
{
	static const uint64_t values[] = { 0, 1, 999, 1000, 1500, 60000, 90000, 3600000, 86400000,
		1024, 1536, 1048576, 1073741824, UINT64_C(1) << 40, UINT64_MAX, UINT64_MAX - 1023 };
	char buf[UNITS_TEXT_SIZE], why[256];

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		uint64_t back = 1;

		assert_true(duration_parse(duration_text(values[i], buf), &back, why, sizeof(why)));
		assert_int_equal(back, values[i]);
		assert_true(size_parse(size_text(values[i], buf), &back, why, sizeof(why)));
		assert_int_equal(back, values[i]);
	}
	assert_string_equal(duration_text(90000, buf), "90s");
	assert_string_equal(duration_text(3600000, buf), "1h");
	assert_string_equal(size_text(32768, buf), "32KiB");
	assert_string_equal(size_text(1000, buf), "1000B");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations_have_units_and_fractions),
		cmocka_unit_test(sizes_have_units_of_1024_and_of_1000),
		cmocka_unit_test(an_error_contains_its_hint),
		cmocka_unit_test(text_parses_back_to_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
