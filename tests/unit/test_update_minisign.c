/* SPDX-License-Identifier: Apache-2.0 */
/* minisign: keys and signatures that minisign made are accepted, and none that differs from them in anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "update/minisign.h"
#include "update_kit.h"

static int
parse_key(const char *text, char *why)
{
	struct minisign_key key;

	return minisign_key_parse(text, strlen(text), &key, why, 256);
}

static int
parse_signature(const char *text, char *why)
{
	struct minisign_signature s;

	return minisign_signature_parse(text, strlen(text), &s, why, 256);
}

/* Verifies data by texts, which are copied, so that reads past their end are found. */
static int
verify(const char *key_text, const char *signature_text, const char *data)
{
	char why[256], *copy = malloc(strlen(signature_text) + 1);
	struct minisign_signature s;
	struct minisign_key key;
	int r;

	assert_non_null(copy);
	memcpy(copy, signature_text, strlen(signature_text));
	r = minisign_key_parse(key_text, strlen(key_text), &key, why, sizeof(why));
	if (r == 0)
		r = minisign_signature_parse(copy, strlen(signature_text), &s, why, sizeof(why));
	if (r == 0)
		r = minisign_verify(&key, &s, data, strlen(data), why, sizeof(why));
	free(copy);
	return r;
}

static void
what_minisign_signed_is_accepted(void **state)
{
	(void)state;
	assert_int_equal(verify(KEY, SIGNATURE, SUMS), 0);
	assert_int_equal(verify(OTHER_KEY, OTHER_SIGNATURE, SUMS), 0);
	/* The last line may lack its newline, and lines may end as in files of other systems. */
	assert_int_equal(verify(KEY_COMMENT KEY_LINE, UNTRUSTED_LINE SIGNATURE_LINE TRUSTED_LINE GLOBAL_LINE, SUMS), 0);
	assert_int_equal(verify(KEY_COMMENT KEY_LINE "\r\n", SIGNATURE, SUMS), 0);
}

static void
the_trusted_comment_is_kept(void **state)
{
	struct minisign_signature s;
	char why[256];

	(void)state;
	assert_int_equal(minisign_signature_parse(SIGNATURE, strlen(SIGNATURE), &s, why, sizeof(why)), 0);
	assert_string_equal(s.comment, "sluice 1.2.3");
}

static void
another_key_is_refused(void **state)
{
	(void)state;
	assert_int_equal(verify(OTHER_KEY, SIGNATURE, SUMS), -EKEYREJECTED);
	assert_int_equal(verify(KEY, OTHER_SIGNATURE, SUMS), -EKEYREJECTED);
}

/* The id is no secret: a signature may claim any. */
static void
a_key_id_alone_is_not_enough(void **state)
{
	char why[256], *claims = strdup(OTHER_SIGNATURE);
	struct minisign_signature s;
	struct minisign_key key;

	(void)state;
	assert_non_null(claims);
	assert_int_equal(minisign_key_parse(KEY, strlen(KEY), &key, why, sizeof(why)), 0);
	assert_int_equal(minisign_signature_parse(claims, strlen(claims), &s, why, sizeof(why)), 0);
	memcpy(s.id, key.id, sizeof(s.id));
	assert_int_equal(minisign_verify(&key, &s, SUMS, strlen(SUMS), why, sizeof(why)), -EKEYREJECTED);
	assert_string_equal(why, "it is not of this file");
	free(claims);
}

static void
every_changed_byte_of_the_file_is_noticed(void **state)
{
	char data[] = SUMS;

	(void)state;
	for (size_t i = 0; i < sizeof(data) - 1; i++) {
		data[i] ^= 1;
		assert_int_equal(verify(KEY, SIGNATURE, data), -EKEYREJECTED);
		data[i] ^= 1;
	}
	assert_int_equal(verify(KEY, SIGNATURE, SUMS "\n"), -EKEYREJECTED);
	assert_int_equal(verify(KEY, SIGNATURE, SUMS_X86), -EKEYREJECTED);
	assert_int_equal(verify(KEY, SIGNATURE, ""), -EKEYREJECTED);
}

/* Of the untrusted comment nothing but its prefix counts. */
static void
every_changed_byte_of_the_signature_is_noticed(void **state)
{
	char text[] = SIGNATURE;
	size_t trusted = strlen(UNTRUSTED_LINE), n_refused = 0;

	(void)state;
	for (size_t i = trusted; i < sizeof(text) - 1; i++) {
		text[i] ^= 1;
		if (verify(KEY, text, SUMS) == 0)
			fail_msg("byte %zu may be changed", i);
		n_refused++;
		text[i] ^= 1;
	}
	assert_int_equal(n_refused, strlen(SIGNATURE) - strlen(UNTRUSTED_LINE));
	assert_int_equal(verify(KEY, text, SUMS), 0);
}

static void
a_changed_comment_is_named(void **state)
{
	static const char text[] = UNTRUSTED_LINE SIGNATURE_LINE "trusted comment: sluice 1.2.4\n" GLOBAL_LINE "\n";
	struct minisign_signature s;
	struct minisign_key key;
	char why[256];

	(void)state;
	assert_int_equal(minisign_key_parse(KEY, strlen(KEY), &key, why, sizeof(why)), 0);
	assert_int_equal(minisign_signature_parse(text, strlen(text), &s, why, sizeof(why)), 0);
	assert_int_equal(minisign_verify(&key, &s, SUMS, strlen(SUMS), why, sizeof(why)), -EKEYREJECTED);
	assert_string_equal(why, "its trusted comment was changed");
}

static void
the_former_kind_of_signature_is_refused(void **state)
{
	char why[256] = "";

	(void)state;
	assert_int_equal(parse_signature(FORMER_SIGNATURE, why), -EINVAL);
	assert_string_equal(why, "it is of minisign's former kind, over the file itself: sign without -l");
}

static void
what_is_no_key_is_refused(void **state)
{
	static const char *const texts[] = {
		"", "\n", "\n\n", KEY_COMMENT, KEY_LINE "\n", KEY_LINE "\n" KEY_COMMENT, KEY KEY_LINE "\n", KEY "\n",
		"trusted comment: x\n" KEY_LINE "\n", KEY_COMMENT KEY_LINE " \n", KEY_COMMENT " " KEY_LINE "\n",
		KEY_COMMENT "RWSyf5/a0oPGXHGtSNbrf5z/J75n2AR5m3KImXtKo0O6kM175taIzu==\n",
		KEY_COMMENT "RWSyf5/a0oPGXHGtSNbrf5z/J75n2AR5m3KImXtKo0O6kM175taIzun\n",
		KEY_COMMENT "RWSyf5/a0oPGXHGtSNbrf5z/J75n2AR5m3KImXtKo0O6kM175taIzunz====\n",
		KEY_COMMENT "RUSyf5/a0oPGXHGtSNbrf5z/J75n2AR5m3KImXtKo0O6kM175taIzunz\n",	/* "ED": of no key */
		KEY_COMMENT "RWSyf5_a0oPGXHGtSNbrf5z_J75n2AR5m3KImXtKo0O6kM175taIzunz\n",
		SIGNATURE,
	};
	char why[256], long_text[MINISIGN_FILE_MAX + 100];

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (parse_key(texts[i], why) != -EINVAL)
			fail_msg("%s is accepted", texts[i]);
	}
	memset(long_text, 'x', sizeof(long_text));
	memcpy(long_text, "untrusted comment:", 18);
	strcpy(long_text + MINISIGN_FILE_MAX, "\n" KEY_LINE);
	assert_int_equal(parse_key(long_text, why), -EINVAL);
	assert_int_equal(minisign_key_parse(KEY_COMMENT KEY_LINE "\0", strlen(KEY), &(struct minisign_key){ 0 }, why, 256), -EINVAL);
}

static void
what_is_no_signature_is_refused(void **state)
{
	static const char *const texts[] = {
		"", KEY, UNTRUSTED_LINE SIGNATURE_LINE, UNTRUSTED_LINE SIGNATURE_LINE TRUSTED_LINE, SIGNATURE "\n", SIGNATURE SIGNATURE,
		SIGNATURE_LINE TRUSTED_LINE GLOBAL_LINE "\n", UNTRUSTED_LINE GLOBAL_LINE "\n" TRUSTED_LINE SIGNATURE_LINE,
		UNTRUSTED_LINE SIGNATURE_LINE "trusted comment:sluice 1.2.3\n" GLOBAL_LINE "\n",
		UNTRUSTED_LINE SIGNATURE_LINE TRUSTED_LINE "\n",
		/* bits that no byte has, in the last character before the padding */
		UNTRUSTED_LINE SIGNATURE_LINE TRUSTED_LINE
		"X7sUJJ7/iPzb7EQSfUju2hvDKZP5Fy7Xn1mWSV6YO/l7qHnUm0rmUR4mLkdcVJ5FNsmr3BME8T3lI86LWwdqCB==\n",
	};
	char why[256], text[MINISIGN_FILE_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (parse_signature(texts[i], why) != -EINVAL)
			fail_msg("%s is accepted", texts[i]);
	}
	/* The longest comment fits, and one that is longer does not. */
	for (int more = 0; more < 2; more++) {
		snprintf(text, sizeof(text), UNTRUSTED_LINE SIGNATURE_LINE "trusted comment: %0*d\n" GLOBAL_LINE "\n",
		    MINISIGN_COMMENT_MAX + more, 0);
		assert_int_equal(parse_signature(text, why), more == 0 ? 0 : -EINVAL);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_minisign_signed_is_accepted),
		cmocka_unit_test(the_trusted_comment_is_kept),
		cmocka_unit_test(another_key_is_refused),
		cmocka_unit_test(a_key_id_alone_is_not_enough),
		cmocka_unit_test(every_changed_byte_of_the_file_is_noticed),
		cmocka_unit_test(every_changed_byte_of_the_signature_is_noticed),
		cmocka_unit_test(a_changed_comment_is_named),
		cmocka_unit_test(the_former_kind_of_signature_is_refused),
		cmocka_unit_test(what_is_no_key_is_refused),
		cmocka_unit_test(what_is_no_signature_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
