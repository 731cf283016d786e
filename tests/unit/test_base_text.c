/* SPDX-License-Identifier: Apache-2.0 */
/* text: any bytes become valid UTF-8, and can be restored. No root, no kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

#define BYTES(literal) (literal), sizeof(literal) - 1

static void
escapes_to(const char *bytes, size_t len, const char *want)
{
	char out[TEXT_ESCAPE_MAX(64)], back[TEXT_ESCAPE_MAX(64)];
	size_t used, n;

	assert_true(len <= 64);
	n = text_escape(bytes, len, out, sizeof(out), &used);
	assert_int_equal(used, len);
	assert_int_equal(n, strlen(want));
	assert_string_equal(out, want);
	assert_int_equal(text_unescape(out, n, back), len);
	if (len > 0)
		assert_memory_equal(back, bytes, len);
	assert_int_equal(text_is_plain(bytes, len), n == len && (len == 0 || memcmp(out, bytes, len) == 0));
}

static void
words_are_joined_while_they_fit(void **state)
{
	static const char *const words[] = { "bwa", "mem", "", "ref.fa" };
	char out[32];

	(void)state;
	assert_int_equal(text_join(words, 4, out, sizeof(out)), 15);
	assert_string_equal(out, "bwa mem  ref.fa");
	assert_int_equal(text_join(words, 4, out, 16), 15);
	assert_int_equal(text_join(words, 4, out, 15), 8);
	assert_string_equal(out, "bwa mem ");
	assert_int_equal(text_join(words, 4, out, 4), 3);
	assert_int_equal(text_join(words, 4, out, 3), 0);
	assert_string_equal(out, "");
	assert_int_equal(text_join(words, 0, out, sizeof(out)), 0);
	assert_int_equal(text_join(words, 4, out, 0), 0);
}

static void
valid_text_stays(void **state)
{
	(void)state;
	escapes_to(NULL, 0, "");
	escapes_to(BYTES("bwa mem -R '@RG\\tID:1' ref.fa"), "bwa mem -R '@RG\\tID:1' ref.fa");
	escapes_to(BYTES("a\nb\tc\033\x01\x7f"), "a\nb\tc\033\x01\x7f");
	escapes_to(BYTES("gr\xc3\xb6\xc3\x9f" "er \xe2\x82\xac \xf0\x9f\xa7\xac"),
	    "gr\xc3\xb6\xc3\x9f" "er \xe2\x82\xac \xf0\x9f\xa7\xac");
	escapes_to(BYTES("\\ \\x \\x4 \\xg0 C:\\xyz\\"), "\\ \\x \\x4 \\xg0 C:\\xyz\\");
}

static void
other_bytes_become_hex(void **state)
{
	(void)state;
	escapes_to(BYTES("a\0b"), "a\\x00b");
	escapes_to(BYTES("\x80\xff"), "\\x80\\xff");
	escapes_to(BYTES("\xc3"), "\\xc3");			/* cut */
	escapes_to(BYTES("\xc3("), "\\xc3(");
	escapes_to(BYTES("\xe2\x82"), "\\xe2\\x82");
	escapes_to(BYTES("\xc0\xaf"), "\\xc0\\xaf");		/* overlong */
	escapes_to(BYTES("\xe0\x9f\xbf"), "\\xe0\\x9f\\xbf");
	escapes_to(BYTES("\xf0\x8f\xbf\xbf"), "\\xf0\\x8f\\xbf\\xbf");
	escapes_to(BYTES("\xed\xa0\x80"), "\\xed\\xa0\\x80");	/* a surrogate */
	escapes_to(BYTES("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");	/* beyond U+10FFFF */
	escapes_to(BYTES("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80");
	escapes_to(BYTES("0123456\xff" "89abcdef\xfe"), "0123456\\xff" "89abcdef\\xfe");
}

static void
the_edges_of_utf8_are_valid(void **state)
{
	static const char *const chars[] = {
		"\x01", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
		"\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(chars) / sizeof(chars[0]); i++)
		assert_int_equal(text_char(chars[i], strlen(chars[i])), strlen(chars[i]));
}

static void
what_looks_like_an_escape_is_escaped(void **state)
{
	(void)state;
	escapes_to(BYTES("\\x41"), "\\x5cx41");
	escapes_to(BYTES("\\xAf"), "\\x5cxAf");
	escapes_to(BYTES("\\\\x41"), "\\\\x5cx41");
	escapes_to(BYTES("\\x5cx41"), "\\x5cx5cx41");
	escapes_to(BYTES("\\\xff"), "\\\\xff");
	escapes_to(BYTES("\\x\xff"), "\\x\\xff");
	escapes_to(BYTES("\\x4\0"), "\\x4\\x00");
}

static void
a_small_buffer_gets_whole_characters(void **state)
{
	const char bytes[] = "ab\xc3\xb6\xff" "cdefghijklmnop";
	char out[64];
	size_t used;

	(void)state;
	memset(out, 'x', sizeof(out));
	assert_int_equal(text_escape(bytes, sizeof(bytes) - 1, out, 0, &used), 0);
	assert_int_equal(used, 0);
	assert_int_equal(out[0], 'x');
	assert_int_equal(text_escape(bytes, sizeof(bytes) - 1, out, 1, &used), 0);
	assert_string_equal(out, "");
	assert_int_equal(text_escape(bytes, sizeof(bytes) - 1, out, 4, &used), 2);
	assert_string_equal(out, "ab");
	assert_int_equal(used, 2);
	text_escape(bytes, sizeof(bytes) - 1, out, 5, &used);
	assert_string_equal(out, "ab\xc3\xb6");
	assert_int_equal(text_escape(bytes, sizeof(bytes) - 1, out, 8, &used), 4);
	assert_int_equal(text_escape(bytes, sizeof(bytes) - 1, out, 9, &used), 8);
	assert_string_equal(out, "ab\xc3\xb6\\xff");
	assert_int_equal(used, 5);
	assert_int_equal(text_escape(bytes, sizeof(bytes) - 1, out, 12, &used), 11);
	assert_string_equal(out, "ab\xc3\xb6\\xff" "cde");
}

/* xorshift: the same bytes in every run, so that a failure can be reproduced. */
static uint64_t
next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

static void
random_bytes_come_back(void **state)
{
	static const char alphabet[] = "\\\\x04afg\xc3\xb6\xe2\x82\xac\xed\xf0\x9f\x00\xff ";
	uint64_t x = 88172645463325252u;
	char bytes[64], out[TEXT_ESCAPE_MAX(64)], back[TEXT_ESCAPE_MAX(64)];

	(void)state;
	for (int round = 0; round < 50000; round++) {
		size_t len = next_random(&x) % sizeof(bytes), used, n;

		for (size_t i = 0; i < len; i++)
			bytes[i] = round & 1 ? (char)next_random(&x) :
			    alphabet[next_random(&x) % (sizeof(alphabet) - 1)];
		n = text_escape(bytes, len, out, sizeof(out), &used);
		assert_int_equal(used, len);
		assert_int_equal(strlen(out), n);
		for (size_t i = 0; i < n;) {
			size_t width = text_char(out + i, n - i);

			assert_true(width > 0);
			i += width;
		}
		assert_int_equal(text_unescape(out, n, back), len);
		assert_memory_equal(back, bytes, len);
		assert_int_equal(text_unescape(out, n, out), len);	/* in place */
		assert_memory_equal(out, bytes, len);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_joined_while_they_fit),
		cmocka_unit_test(valid_text_stays),
		cmocka_unit_test(other_bytes_become_hex),
		cmocka_unit_test(the_edges_of_utf8_are_valid),
		cmocka_unit_test(what_looks_like_an_escape_is_escaped),
		cmocka_unit_test(a_small_buffer_gets_whole_characters),
		cmocka_unit_test(random_bytes_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
