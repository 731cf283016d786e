/* SPDX-License-Identifier: Apache-2.0 */
/* decode_head: the head of records of each topic, and of bytes that are cut or wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "samples.h"
#include "codec/decode_head.h"
#include "codec/encode.h"

static struct encoder *encoder;

static int
setup(void **state)
{
	struct agent_identity identity = sample_identity();
	char error[256];

	(void)state;
	return encoder_open(&identity, &encoder, error, sizeof(error));
}

static int
teardown(void **state)
{
	(void)state;
	encoder_close(encoder);
	return 0;
}

static void
the_head_is_read_from_any_record(void **state)
{
	const struct program_record program = sample_program_end();
	const struct usage_record usage = sample_usage_record();
	const struct work_record work = sample_work();
	const struct host_record host = sample_host();
	const struct finding_record finding = sample_finding();
	const struct agent_record agent = sample_agent();
	const void *records[TOPIC_COUNT] = { &program, &usage, &work, &work, &host, &finding, &agent };
	struct decoded_head head;
	const uint8_t *data;
	size_t len;

	(void)state;
	for (int t = 0; t < TOPIC_COUNT; t++) {
		assert_int_equal(encode(encoder, t, records[t], 1000 + (uint64_t)t, &data, &len), 0);
		assert_true(decode_head(data, len, &head));
		assert_int_equal(head.time_us, SAMPLE_TIME);
		assert_int_equal(head.seq, 1000 + t);
		assert_int_equal(head.schema_version, RECORD_SCHEMA_VERSION);
	}
}

static void
a_head_that_is_cut_or_wrong_is_none(void **state)
{
	const struct program_record program = sample_program_start();
	struct decoded_head head;
	const uint8_t *data;
	uint8_t *copy;
	size_t len;

	(void)state;
	assert_int_equal(encode(encoder, TOPIC_PROGRAM, &program, 5, &data, &len), 0);
	for (size_t n = 0; n < 120; n++) {
		copy = malloc(n + 1);	/* so that reading on is noticed */
		memcpy(copy, data, n);
		assert_false(decode_head(copy, n, &head));
		free(copy);
	}
	assert_false(decode_head("\2\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 11, &head));
	assert_false(decode_head("\2\1", 2, &head));
}

/* Bytes of a head, at their end in memory so that reading on is noticed. */
static bool
has_head(const char *bytes, size_t len, struct decoded_head *ret)
{
	char *copy = malloc(len);
	bool has;

	memcpy(copy, bytes, len);
	has = decode_head(copy, len, ret);
	free(copy);
	return has;
}

static void
a_head_is_read_to_its_last_byte(void **state)
{
	/* time 1, "h" "n" "b" "a", seq 2, "r", null, "t", null, null, version 3 */
	static const char head[] = "\2\2h\2n\2b\2a\4\2\2r\0\2\2t\0\0\6";
	const size_t len = sizeof(head) - 1;
	struct decoded_head h = { 0 };
	char other[sizeof(head)];

	(void)state;
	assert_true(has_head(head, len, &h));
	assert_int_equal(h.time_us, 1);
	assert_int_equal(h.seq, 2);
	assert_int_equal(h.schema_version, 3);
	for (size_t n = 1; n < len; n++)
		assert_false(has_head(head, n, &h));
	memcpy(other, head, sizeof(head));
	other[10] = 4;			/* a branch that there is not */
	assert_false(has_head(other, len, &h));
	other[10] = 1;
	assert_false(has_head(other, len, &h));
	memcpy(other, head, sizeof(head));
	other[18] = 4;			/* likewise where no string would follow */
	assert_false(has_head(other, len, &h));
	other[18] = 1;
	assert_false(has_head(other, len, &h));
	memcpy(other, head, sizeof(head));
	other[1] = 1;			/* a string of -1 bytes */
	assert_false(has_head(other, len, &h));
	assert_true(has_head("\2\0\0\0\0\4\0\0\0\0\0\6", 12, &h));
	assert_false(has_head("\2\1\0\0\0\4\0\0\0\0\0\6", 12, &h));
	/* A branch that there is not, before so many strings. */
	assert_false(has_head("\2\0\0\0\0\4\4\0\0\0\0\0\0\6", 14, &h));
	assert_false(has_head("\2\0\0\0\0\4\0\0\0\0\2\1\6", 13, &h));
	memcpy(other, head, sizeof(head));
	other[len - 1] = 5;		/* version -3 */
	assert_false(has_head(other, len, &h));
	other[len - 1] = 0;
	assert_true(has_head(other, len, &h));
	assert_int_equal(h.schema_version, 0);
	assert_true(has_head("\2\0\0\0\0\x80\x80\x80\x80\x20\0\0\0\0\0\6", 16, &h));
	assert_int_equal(h.seq, INT64_C(1) << 32);
	/* The largest version, and one more. */
	assert_true(has_head("\2\0\0\0\0\4\0\0\0\0\0\xfe\xff\xff\xff\x0f", 16, &h));
	assert_int_equal(h.schema_version, INT32_MAX);
	assert_false(has_head("\2\0\0\0\0\4\0\0\0\0\0\x80\x80\x80\x80\x10", 16, &h));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_head_is_read_from_any_record),
		cmocka_unit_test(a_head_that_is_cut_or_wrong_is_none),
		cmocka_unit_test(a_head_is_read_to_its_last_byte),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
