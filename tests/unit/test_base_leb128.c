/* SPDX-License-Identifier: Apache-2.0 */
/* leb128: numbers as groups of 7 bits. No root, no kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/leb128.h"

static void
is_written(uint64_t value)
{
	uint8_t out[LEB128_MAX_BYTES + 1], want[LEB128_MAX_BYTES];
	size_t n = 0;

	for (uint64_t rest = value; n == 0 || rest != 0; rest >>= 7)
		want[n++] = (uint8_t)((rest & 0x7f) | (rest >> 7 != 0 ? 0x80 : 0));
	memset(out, 0xaa, sizeof(out));
	assert_int_equal(leb128_write(out, value), n);
	assert_memory_equal(out, want, n);
	assert_int_equal(out[LEB128_MAX_BYTES], 0xaa);
}

static void
each_length_begins_and_ends(void **state)
{
	(void)state;
	is_written(0);
	for (unsigned bit = 0; bit < 64; bit++) {
		is_written(UINT64_C(1) << bit);
		is_written((UINT64_C(1) << bit) - 1);
		is_written(UINT64_MAX >> bit);
	}
}

static void
bits_of_all_groups_come_back(void **state)
{
	uint64_t value = 1;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		value = value * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		is_written(value >> value % 64);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_length_begins_and_ends),
		cmocka_unit_test(bits_of_all_groups_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
