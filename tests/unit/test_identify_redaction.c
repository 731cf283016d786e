/* SPDX-License-Identifier: Apache-2.0 */
/* redaction: the user's own patterns, and how many arguments are kept. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/text.h"
#include "identify/redact.h"

#define ARGS_MAX 8
#define HOST "0123456789abcdef0123456789abcdef"

static struct arena arena;

static struct redaction *
made(enum redact_keep keep, const char *salt, size_t n, const char *const *patterns)
{
	const struct redaction_options o = { patterns, n, keep, salt };
	struct redaction *r = NULL;
	char error[256];

	assert_int_equal(redaction_new(&o, &r, error, sizeof(error)), 0);
	assert_string_equal(error, "");
	return r;
}

#define MADE(keep, salt, ...)                                                                      \
	made(keep, salt, sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *), (const char *[]){ __VA_ARGS__ })

/* Returns one argument after "x", redacted. */
static const char *
redacted(const struct redaction *r, const char *argument)
{
	const char *argv[] = { "x", argument };

	redaction_apply(r, NULL, argv, 2, &arena);
	assert_string_equal(argv[0], "x");
	return argv[1];
}

static int
setup(void **state)
{
	(void)state;
	return arena_init(&arena, 1 << 20);
}

static int
teardown(void **state)
{
	(void)state;
	arena_done(&arena);
	return 0;
}

static void
the_secret_group_goes_or_all_that_is_found(void **state)
{
	struct redaction *r = MADE(REDACT_KEEP_ALL, NULL, "builtin", "--pin=(?<secret>.*)", "PAT-[0-9]+",
	    "(?<who>[a-z]+)/(?<secret>[a-z]+)@(?<where>[a-z]+)");

	(void)state;
	assert_string_equal(redacted(r, "--pin=1234 5"), "--pin=***");
	assert_string_equal(redacted(r, "--pin="), "--pin=");
	assert_string_equal(redacted(r, "PAT-1"), "***");
	assert_string_equal(redacted(r, "a PAT-12, PAT-3; no PAT-x"), "a ***, ***; no PAT-x");
	assert_string_equal(redacted(r, "scott/tiger@db and joe/cat@db"), "scott/***@db and joe/***@db");
	/* both kinds at once, also where they overlap */
	assert_string_equal(redacted(r, "--password=PAT-7x"), "--password=***");
	assert_string_equal(redacted(r, "https://me:hunter2@h/?n=PAT-7"), "https://me:***@h/?n=***");
	assert_string_equal(redacted(r, "nothing of it"), "nothing of it");
	redaction_free(r);
}

static void
the_first_argument_is_searched_too(void **state)
{
	struct redaction *r = MADE(REDACT_KEEP_ALL, NULL, "PAT-[0-9]+");
	const char *argv[] = { "tool: PAT-5" };

	(void)state;
	assert_int_equal(redaction_apply(r, NULL, argv, 1, &arena), 1);
	assert_string_equal(argv[0], "tool: ***");
	redaction_free(r);
}

static void
without_builtin_what_is_shipped_is_off(void **state)
{
	struct redaction *none = made(REDACT_KEEP_ALL, NULL, 0, NULL), *own = MADE(REDACT_KEEP_ALL, NULL, "b+");

	(void)state;
	assert_string_equal(redacted(none, "--password=abba"), "--password=abba");
	assert_string_equal(redacted(own, "--password=abba"), "--password=a***a");
	assert_string_equal(redacted(NULL, "--password=abba"), "--password=***");
	redaction_free(none);
	redaction_free(own);
	redaction_free(NULL);
}

static void
anchors_and_lookbehinds_see_the_whole_argument(void **state)
{
	struct redaction *start = MADE(REDACT_KEEP_ALL, NULL, "^a"), *behind = MADE(REDACT_KEEP_ALL, NULL, "(?<=k)[0-9]"),
	    *back = MADE(REDACT_KEEP_ALL, NULL, "(['\"])k[a-z]*\\1");

	(void)state;
	assert_string_equal(redacted(start, "aaa"), "***aa");
	assert_string_equal(redacted(behind, "k12 3 k4"), "k***2 3 k***");
	assert_string_equal(redacted(back, "say 'kx' or \"ky\" or 'kz"), "say *** or *** or 'kz");
	redaction_free(start);
	redaction_free(behind);
	redaction_free(back);
}

static void
an_empty_find_takes_nothing_and_ends(void **state)
{
	struct redaction *r = MADE(REDACT_KEEP_ALL, NULL, "y*", "(?<secret>)a", "z|(?<secret>q)");

	(void)state;
	assert_string_equal(redacted(r, "ayyb"), "a***b");
	assert_string_equal(redacted(r, "aaa"), "aaa");
	assert_string_equal(redacted(r, "zqz"), "z***z");	/* a group that took no part takes nothing */
	redaction_free(r);
}

static void
characters_are_kept_whole(void **state)
{
	/* the bytes of é, one at a time */
	struct redaction *first = MADE(REDACT_KEEP_ALL, NULL, "\\xc3"), *second = MADE(REDACT_KEEP_ALL, NULL, "\\xa9");
	const struct redaction *both[] = { first, second };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		const char *out = redacted(both[i], "caf\xc3\xa9 \xc3\xa9t\xc3\xa9");

		assert_string_equal(out, "caf*** ***t***");
		assert_true(text_is_plain(out, strlen(out)));
	}
	redaction_free(first);
	redaction_free(second);
}

static void
more_finds_than_are_noted_all_go(void **state)
{
	struct redaction *r = MADE(REDACT_KEEP_ALL, NULL, "n[0-9]+;"), *empty = MADE(REDACT_KEEP_ALL, NULL, "(?<secret>)n[0-9]+;");
	struct redaction *nothing = MADE(REDACT_KEEP_ALL, NULL, "y*");
	char text[8192];
	size_t len = 0;
	const char *out;

	(void)state;
	for (int i = 0; i < 1000; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "n%d;o", i);
	out = redacted(r, text);
	assert_null(strstr(out, "n9"));
	assert_memory_equal(out, "***o***o***o", 12);
	/* Nothing is redacted, but after so many matches the search ends: the rest is. */
	out = redacted(empty, text);
	assert_memory_equal(out, "n0;on1;o", 8);
	assert_null(strstr(out, "n999;"));
	/* From a whole character on, though 256 empty finds end within one. */
	memset(text, 'x', 255);
	strcpy(text + 255, "\xc3\xa9zz");
	out = redacted(nothing, text);
	assert_memory_equal(out, text, 255);
	assert_string_equal(out + 255, "***");
	redaction_free(r);
	redaction_free(empty);
	redaction_free(nothing);
}

/* Its contents are unknown: it is redacted as a whole, and does not delay the others for long. */
static void
an_argument_that_takes_too_long_goes(void **state)
{
	struct redaction *r = MADE(REDACT_KEEP_ALL, NULL, "(a+)+$");
	static char evil[900], harmless[] = "bcd";
	const char *argv[64];

	(void)state;
	memset(evil, 'a', sizeof(evil) - 2);
	evil[sizeof(evil) - 2] = '!';
	assert_string_equal(redacted(r, evil), REDACTED);
	for (size_t i = 0; i < 64; i++)
		argv[i] = i % 2 == 0 ? harmless : evil;
	assert_true(redaction_apply(r, NULL, argv, 64, &arena) >= 32);
	for (size_t i = 1; i < 64; i += 2)
		assert_string_equal(argv[i], REDACTED);
	assert_string_equal(argv[0], "bcd");
	assert_string_equal(argv[62], REDACTED);	/* unread, after a few of those */
	redaction_free(r);
}

static void
a_full_arena_leaks_nothing(void **state)
{
	struct redaction *r = MADE(REDACT_KEEP_HASH, HOST, "hunter2");
	const char *argv[] = { "x", "-phunter2", "--quiet" };
	struct arena small;

	(void)state;
	assert_int_equal(arena_init(&small, 4), 0);
	assert_int_equal(redaction_apply(r, NULL, argv, 3, &small), 1);
	assert_string_equal(argv[1], REDACTED);
	assert_int_equal(redaction_keep(r, argv, 3, &small), 1);
	arena_done(&small);
	redaction_free(r);
}

static void
a_wrong_pattern_says_where(void **state)
{
	const char *const patterns[] = { "builtin", "a(b" };
	const struct redaction_options o = { patterns, 2, REDACT_KEEP_ALL, NULL };
	struct redaction *r = (void *)&arena;
	char error[256];

	(void)state;
	assert_int_equal(redaction_new(&o, &r, error, sizeof(error)), -EINVAL);
	assert_ptr_equal(r, &arena);
	assert_string_equal(error, "'a(b': missing closing parenthesis, at character 4");
}

/* What is kept of argv, joined by blanks. */
static const char *
kept(const struct redaction *r, size_t argc, const char **argv)
{
	static char text[4][128];
	static unsigned next;
	char *at = text[next++ % 4];
	const char *begin = at;

	redaction_apply(r, NULL, argv, argc, &arena);
	argc = redaction_keep(r, argv, argc, &arena);
	*at = '\0';
	for (size_t i = 0; i < argc; i++)
		at += sprintf(at, "%s%s", i > 0 ? " " : "", argv[i]);
	return begin;
}

#define KEPT(r, ...) kept(r, sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *), (const char *[]){ __VA_ARGS__ })

static void
all_the_first_or_a_hash_is_kept(void **state)
{
	struct redaction *all = MADE(REDACT_KEEP_ALL, HOST, "builtin"), *first = MADE(REDACT_KEEP_FIRST, HOST, "builtin"),
	    *hash = MADE(REDACT_KEEP_HASH, HOST, "builtin");

	(void)state;
	assert_true(redaction_drops(hash) && redaction_drops(first) && !redaction_drops(all) && !redaction_drops(NULL));
	assert_string_equal(KEPT(all, "bwa", "mem", "ref.fa"), "bwa mem ref.fa");
	assert_string_equal(KEPT(NULL, "bwa", "mem", "ref.fa"), "bwa mem ref.fa");
	assert_string_equal(KEPT(first, "bwa", "mem", "ref.fa"), "bwa");
	/* reproducible by any user: SHA-256 of "HOST\0mem\0ref.fa\0" */
	assert_string_equal(KEPT(hash, "bwa", "mem", "ref.fa"), "bwa sha256:e054cb00f8fdcf804b0f9596140bf38a");
	assert_string_equal(KEPT(first, "bwa"), "bwa");
	assert_string_equal(KEPT(hash, "bwa"), "bwa");
	assert_string_equal(kept(hash, 0, NULL), "");
	redaction_free(all);
	redaction_free(first);
	redaction_free(hash);
}

/* At the edges of its blocks too. By another implementation: printf 'HOST\0aaa\0' | sha256sum. */
static void
a_hash_is_sha256_whatever_the_length(void **state)
{
	static const struct {
		size_t n;
		const char *hash;
	} rows[] = {
		{ 0, "02930b4fd59229f4c5bdbd5b673389ec" },
		{ 1, "1e851857624249d0e988a527e896f1e0" },
		{ 21, "3b428a252fed72e10bba6d3d2bf6b0c5" },
		{ 22, "c963a9e1d2156c38b16c10d94aae7c7e" },
		{ 23, "7833eae04168101e357df47d864eedd0" },
		{ 30, "5b0cb3ef42011f946e390623bffd5ce0" },
		{ 31, "7540867c907a0559fbeb2f343ab627cd" },
		{ 64, "0c1f633a02916acd4d7a088dbdb0886d" },
		{ 65, "76604ef6d517d9edefffb136eaa20b71" },
		{ 119, "d26179e7071390323d0c8ebeefa67e8d" },
		{ 128, "ed900d38273fdba20f96666eb877d5a4" },
		{ 32000, "5cf2c8c2d8be0a13830528ad1f6ebe43" },
	};
	struct redaction *r = MADE(REDACT_KEEP_HASH, HOST, "builtin");
	static char text[32001];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *argv[] = { "x", text };

		memset(text, 'a', rows[i].n);
		text[rows[i].n] = '\0';
		assert_int_equal(redaction_keep(r, argv, 2, &arena), 2);
		assert_string_equal(argv[1] + strlen(REDACT_HASH_PREFIX), rows[i].hash);
	}
	redaction_free(r);
}

static void
hashes_distinguish_command_lines_but_not_secrets(void **state)
{
	struct redaction *r = MADE(REDACT_KEEP_HASH, HOST, "builtin"), *other = MADE(REDACT_KEEP_HASH, "other", "builtin"),
	    *bare = MADE(REDACT_KEEP_HASH, NULL, "builtin");

	(void)state;
	assert_string_equal(KEPT(r, "x", "a", "b"), KEPT(r, "x", "a", "b"));
	assert_string_not_equal(KEPT(r, "x", "a", "b"), KEPT(r, "x", "b", "a"));
	assert_string_not_equal(KEPT(r, "x", "ab", ""), KEPT(r, "x", "a", "b"));
	assert_string_not_equal(KEPT(r, "x", "a", "b"), KEPT(other, "x", "a", "b"));
	assert_string_not_equal(KEPT(r, "x", "a", "b"), KEPT(bare, "x", "a", "b"));
	/* Else a password could be guessed from it, try by try. */
	assert_string_equal(KEPT(r, "x", "--password", "one"), KEPT(r, "x", "--password", "two"));
	redaction_free(r);
	redaction_free(other);
	redaction_free(bare);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_secret_group_goes_or_all_that_is_found),
		cmocka_unit_test(the_first_argument_is_searched_too),
		cmocka_unit_test(without_builtin_what_is_shipped_is_off),
		cmocka_unit_test(anchors_and_lookbehinds_see_the_whole_argument),
		cmocka_unit_test(an_empty_find_takes_nothing_and_ends),
		cmocka_unit_test(characters_are_kept_whole),
		cmocka_unit_test(more_finds_than_are_noted_all_go),
		cmocka_unit_test(an_argument_that_takes_too_long_goes),
		cmocka_unit_test(a_full_arena_leaks_nothing),
		cmocka_unit_test(a_wrong_pattern_says_where),
		cmocka_unit_test(all_the_first_or_a_hash_is_kept),
		cmocka_unit_test(a_hash_is_sha256_whatever_the_length),
		cmocka_unit_test(hashes_distinguish_command_lines_but_not_secrets),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
