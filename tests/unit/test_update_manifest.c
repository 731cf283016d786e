/* SPDX-License-Identifier: Apache-2.0 */
/* manifest: versions and their order, the trusted comment, and the list of checksums. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "update/manifest.h"
#include "update/program.h"
#include "update_kit.h"

#define NAME "sluice-1.2.3-linux-x86_64"
#define HEX "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"

static int
order(const char *a, const char *b)
{
	struct version va, vb;

	assert_int_equal(version_parse(a, &va), 0);
	assert_int_equal(version_parse(b, &vb), 0);
	assert_string_equal(va.text, a);
	return version_compare(&va, &vb);
}

static void
versions_are_ordered_by_their_numbers(void **state)
{
	(void)state;
	assert_true(order("0.1.0", "0.1.1") < 0);
	assert_true(order("0.9.0", "0.10.0") < 0);
	assert_true(order("1.0.0", "0.99.99") > 0);
	assert_true(order("2.0.0", "10.0.0") < 0);
	assert_true(order("1.2.10", "1.2.9") > 0);
	assert_int_equal(order("1.2.3", "1.2.3"), 0);
	assert_true(order("999999.999999.999999", "999999.999999.999998") > 0);
}

static void
what_is_no_version_is_refused(void **state)
{
	static const char *const texts[] = { "", "1", "1.2", "1.2.", "1.2.3.4", "1.2.3 ", " 1.2.3", "1.2.3-rc1", "1.2.x",
		"-1.2.3", "+1.2.3", "01.2.3", "1.00.3", "1.2.1234567", "1..3", "1.2.3\n", "v1.2.3" };
	struct version v;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (version_parse(texts[i], &v) != -EINVAL)
			fail_msg("'%s' is accepted", texts[i]);
	}
}

static void
the_comment_is_exactly_the_name_and_a_version(void **state)
{
	static const char *const wrong[] = { "", "sluice", "sluice ", "sluice  1.2.3", "Sluice 1.2.3", "sluice 1.2.3 ",
		"sluice 1.2.3\tfile:SHA256SUMS", "timestamp:1\tfile:SHA256SUMS", "other 1.2.3", "1.2.3" };
	struct version v;
	char why[256];

	(void)state;
	assert_int_equal(manifest_version("sluice 1.2.3", &v, why, sizeof(why)), 0);
	assert_string_equal(v.text, "1.2.3");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (manifest_version(wrong[i], &v, why, sizeof(why)) != -EINVAL)
			fail_msg("'%s' is accepted", wrong[i]);
	}
}

/* Finds NAME in a copy that ends where the text does. */
static int
find(const char *text, uint8_t *sha256, char *why)
{
	size_t len = strlen(text);
	char *copy = malloc(len + 1);
	int r;

	assert_non_null(copy);
	memcpy(copy, text, len);
	copy = realloc(copy, len > 0 ? len : 1);
	r = manifest_find(copy, len, NAME, sha256, why, 256);
	free(copy);
	return r;
}

static void
the_checksum_is_found(void **state)
{
	static const char *const texts[] = { SUMS_X86, SUMS, SUMS_ARM SUMS_X86, HEX " *" NAME "\n" };
	uint8_t sha256[MANIFEST_SHA256_SIZE];
	char why[256];

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		memset(sha256, 0, sizeof(sha256));
		assert_int_equal(find(texts[i], sha256, why), 0);
		assert_true(program_has_sha256("x", 1, sha256));
		assert_false(program_has_sha256("y", 1, sha256));
		assert_false(program_has_sha256("", 0, sha256));
	}
}

static void
a_file_that_is_not_listed_is_not_found(void **state)
{
	static const char *const texts[] = { "", SUMS_ARM, HEX "  sluice-1.2.3-linux-x86_64.tar.gz\n",
		HEX "  asluice-1.2.3-linux-x86_64\n", HEX "  sluice-1.2.3-linux-x86_6\n" };
	uint8_t sha256[MANIFEST_SHA256_SIZE];
	char why[256];

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(find(texts[i], sha256, why), -ENOENT);
	assert_string_equal(why, "it has no " NAME);
}

static void
a_list_with_one_wrong_line_is_refused(void **state)
{
	static const char *const lines[] = {
		"\n", " \n", HEX "\n", HEX "  \n", HEX " " NAME "\n", HEX "   " NAME "\n", HEX "\t" NAME "\n",
		"\\" HEX "  a\\nb\n", HEX "  ../" NAME "\n", HEX "  /etc/passwd\n", HEX "  .hidden\n", HEX "  a b\n",
		"2D711642B726B04401627CA9FBAC32F5C8530FB1903CC4DB02258717921A4881  a\n",
		"g" "d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881  a\n",
		"d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881  a\n", "SHA256 (a) = " HEX "\n",
		HEX "  \x80\n", HEX "  a\x01\n", HEX "  a\r\n", SUMS_X86,	/* a second time */
		HEX "  " NAME,							/* its newline is missing */
	};
	uint8_t sha256[MANIFEST_SHA256_SIZE];
	char why[256], text[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		snprintf(text, sizeof(text), "%s%s", SUMS, lines[i]);
		if (find(text, sha256, why) != -EINVAL)
			fail_msg("%s is accepted", lines[i]);
		assert_non_null(strstr(why, "line"));
	}
}

static void
a_list_has_a_limit(void **state)
{
	const size_t line = strlen(SUMS_ARM), n = MANIFEST_LINES_MAX;
	char *text = malloc((n + 1) * line + 1), why[256];
	uint8_t sha256[MANIFEST_SHA256_SIZE];

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i <= n; i++)
		memcpy(text + i * line, SUMS_ARM, line);
	assert_int_equal(manifest_find(text, n * line, NAME, sha256, why, sizeof(why)), -ENOENT);
	assert_int_equal(manifest_find(text, (n + 1) * line, NAME, sha256, why, sizeof(why)), -EINVAL);
	free(text);
	text = calloc(1, MANIFEST_BYTES_MAX + 1);
	assert_non_null(text);
	assert_int_equal(manifest_find(text, MANIFEST_BYTES_MAX + 1, NAME, sha256, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "longer than"));
	free(text);
}

static void
only_a_program_for_this_machine_is_ours(void **state)
{
	char head[4096] = "#!/bin/sh\n";
	FILE *f = fopen("/proc/self/exe", "rb");

	(void)state;
	assert_false(program_is_ours(head, sizeof(head)));
	assert_non_null(f);
	assert_int_equal(fread(head, 1, sizeof(head), f), sizeof(head));
	fclose(f);
	assert_true(program_is_ours(head, sizeof(head)));
	assert_false(program_is_ours(head, 63));
	assert_false(program_is_ours("", 0));
	head[18] ^= 1;		/* e_machine */
	assert_false(program_is_ours(head, sizeof(head)));
	head[18] ^= 1;
	head[4] = 1;		/* 32 bits */
	assert_false(program_is_ours(head, sizeof(head)));
	assert_true(strcmp(program_architecture(), "x86_64") == 0 || strcmp(program_architecture(), "aarch64") == 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions_are_ordered_by_their_numbers),
		cmocka_unit_test(what_is_no_version_is_refused),
		cmocka_unit_test(the_comment_is_exactly_the_name_and_a_version),
		cmocka_unit_test(the_checksum_is_found),
		cmocka_unit_test(a_file_that_is_not_listed_is_not_found),
		cmocka_unit_test(a_list_with_one_wrong_line_is_refused),
		cmocka_unit_test(a_list_has_a_limit),
		cmocka_unit_test(only_a_program_for_this_machine_is_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
