/* SPDX-License-Identifier: Apache-2.0 */
/* format: numbers for people. No root, no kernel. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/format.h"

#define CHECK(function, value, want) do { \
	char buf[FORMAT_SIZE]; \
	assert_string_equal(function(value, buf, sizeof(buf)), want); \
} while (0)

#define MS UINT64_C(1000000)
#define S (1000 * MS)
#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

static void
bytes_have_units(void **state)
{
	(void)state;
	CHECK(format_bytes, 0, "0");
	CHECK(format_bytes, 1, "1 B");
	CHECK(format_bytes, 512, "512 B");
	CHECK(format_bytes, 1023, "1023 B");
	CHECK(format_bytes, 1024, "1.0 KiB");
	CHECK(format_bytes, 310 * MIB, "310 MiB");
	CHECK(format_bytes, 1229 * MIB, "1.2 GiB");
	CHECK(format_bytes, 922 * MIB, "922 MiB");
	CHECK(format_bytes, 10 * MIB - 1, "10 MiB");	/* not 10.0 */
	CHECK(format_bytes, MIB - 1, "1.0 MiB");	/* not 1024 KiB */
	CHECK(format_bytes, GIB - 1, "1.0 GiB");
	CHECK(format_bytes, UINT64_MAX, "16 EiB");
}

static void
durations_have_two_parts_at_most(void **state)
{
	(void)state;
	CHECK(format_duration, 0, "0s");
	CHECK(format_duration, 1, "<1us");
	CHECK(format_duration, 200000, "200us");
	CHECK(format_duration, MS - 1, "1ms");		/* not 1000us */
	CHECK(format_duration, 480 * MS, "480ms");
	CHECK(format_duration, S - 1, "1.0s");
	CHECK(format_duration, 12 * S + 100 * MS, "12.1s");
	CHECK(format_duration, 59 * S + 949 * MS, "59.9s");
	CHECK(format_duration, 59 * S + 950 * MS, "1m00s");	/* not 60.0s */
	CHECK(format_duration, 184 * S, "3m04s");
	CHECK(format_duration, 3599 * S + 500 * MS, "1h00m");
	CHECK(format_duration, 7800 * S, "2h10m");
	CHECK(format_duration, 86400 * S, "1d00h");
	CHECK(format_duration, UINT64_MAX, "213503d23h");
}

static void
counts_have_separators(void **state)
{
	(void)state;
	CHECK(format_count, 0, "0");
	CHECK(format_count, 999, "999");
	CHECK(format_count, 1204, "1,204");
	CHECK(format_count, 1000000, "1,000,000");
	CHECK(format_count, UINT64_MAX, "18,446,744,073,709,551,615");
}

static void
shares_are_percents(void **state)
{
	(void)state;
	CHECK(format_percent, 0, "0%");
	CHECK(format_percent, 0.03, "3%");
	CHECK(format_percent, 1, "100%");
	CHECK(format_percent, 1.5, "150%");
	CHECK(format_percent, -0.1, "0%");
	CHECK(format_percent, 0.0 / 0.0, "0%");
	CHECK(format_percent, 1e300, "9999%");
}

static void
cores_keep_two_digits(void **state)
{
	(void)state;
	CHECK(format_cores, 0, "0.0");
	CHECK(format_cores, 0.001, "0.0");
	CHECK(format_cores, 0.04, "0.04");
	CHECK(format_cores, 0.0949, "0.09");
	CHECK(format_cores, 0.0951, "0.1");
	CHECK(format_cores, 1, "1.0");
	CHECK(format_cores, 1.74, "1.7");
	CHECK(format_cores, 9.96, "10");
	CHECK(format_cores, 128, "128");
	CHECK(format_cores, -1, "0.0");
	CHECK(format_cores, 1e300, "1000000");
}

static void
a_small_buffer_is_terminated(void **state)
{
	char buf[4] = "xxx";

	(void)state;
	assert_string_equal(format_count(1234567, buf, sizeof(buf)), "1,2");
	assert_string_equal(format_bytes(310 * MIB, buf, sizeof(buf)), "310");
}

static void
signals_have_the_names_of_the_c_library(void **state)
{
	(void)state;
	for (int signo = -1; signo <= SIGRTMAX + 1; signo++) {
		const char *name = sigabbrev_np(signo), *ours = format_signal(signo);

		assert_int_equal(name == NULL, ours == NULL);
		if (name != NULL)
			assert_string_equal(name, ours);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_have_units),
		cmocka_unit_test(durations_have_two_parts_at_most),
		cmocka_unit_test(counts_have_separators),
		cmocka_unit_test(shares_are_percents),
		cmocka_unit_test(cores_keep_two_digits),
		cmocka_unit_test(a_small_buffer_is_terminated),
		cmocka_unit_test(signals_have_the_names_of_the_c_library),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
