/* SPDX-License-Identifier: Apache-2.0 */
/* kafka_frame: the bytes of a message's frame. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kafka/frame.h"

static void
the_frame_is_a_zero_the_id_and_the_record(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	assert_int_equal(kafka_frame(&b, 0x01020304, "abc", 3), 0);
	assert_int_equal(b.len, 8);
	assert_memory_equal(b.data, "\0\1\2\3\4abc", 8);
	assert_int_equal(kafka_frame_id(b.data), 0x01020304);
	assert_int_equal(kafka_frame(&b, 7, NULL, 0), 0);
	assert_int_equal(b.len, KAFKA_FRAME_BYTES);
	bytes_done(&b);
}

static void
a_frame_is_made_anew_each_time(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	assert_int_equal(kafka_frame(&b, -2, "abcdef", 6), 0);
	assert_memory_equal(b.data, "\0\xff\xff\xff\xfe" "abcdef", 11);
	assert_int_equal(kafka_frame_id(b.data), -2);
	assert_int_equal(kafka_frame(&b, 0x7f80ff01, "x", 1), 0);
	assert_int_equal(b.len, 6);
	assert_memory_equal(b.data, "\0\x7f\x80\xff\x01x", 6);
	assert_int_equal(kafka_frame_id(b.data), 0x7f80ff01);
	bytes_done(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_frame_is_a_zero_the_id_and_the_record),
		cmocka_unit_test(a_frame_is_made_anew_each_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
