/* SPDX-License-Identifier: Apache-2.0 */
/* pattern: matches, errors of a pattern, and the limit on time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/pattern.h"

static struct pattern *
pattern_of(const char *text)
{
	char error[256];
	struct pattern *p = pattern_new(text, error, sizeof(error));

	if (p == NULL)
		fail_msg("%s: %s", text, error);
	assert_string_equal(error, "");
	assert_string_equal(pattern_text(p), text);
	return p;
}

static bool
finds(const char *text, const char *in)
{
	struct pattern *p = pattern_of(text);
	bool found = pattern_find(p, in, strlen(in), NULL, 0);

	pattern_free(p);
	return found;
}

static void
it_is_found_anywhere_unless_bound(void **state)
{
	(void)state;
	assert_true(finds("wor", "/data/work"));
	assert_false(finds("^wor", "/data/work"));
	assert_true(finds("work$", "/data/work"));
	assert_false(finds("Work", "/data/work"));
	assert_true(finds("(?i)Work", "/data/work"));
	assert_true(finds("", ""));
	assert_false(finds("a.b", "a\nb"));
	assert_true(finds("\\d{2,3}/[0-9a-f]+(?!x)", "work/31/3c12"));
}

static void
bytes_that_are_no_characters_are_bytes(void **state)
{
	struct pattern *p = pattern_of("^(?<c>.)\\xff(?<d>.*)$");
	struct pattern_part parts[2];

	(void)state;
	assert_true(pattern_find(p, "\xc3\xff\0z", 4, parts, 2));
	assert_int_equal(parts[0].len, 1);
	assert_int_equal(parts[1].len, 2);
	pattern_free(p);
	/* Not even where the pattern asks for characters. */
	assert_null(pattern_new("(*UTF)a", (char[128]){ 0 }, 128));
	assert_null(pattern_new("(*UCP)a", (char[128]){ 0 }, 128));
}

static void
groups_have_names_in_their_order(void **state)
{
	struct pattern *p = pattern_of("(?<zz>a)(b)(?P<aa>c)?(?<mm>d|)");
	struct pattern_part parts[3];

	(void)state;
	assert_string_equal(pattern_group(p, 0), "zz");
	assert_string_equal(pattern_group(p, 1), "aa");
	assert_string_equal(pattern_group(p, 2), "mm");
	assert_null(pattern_group(p, 3));
	assert_true(pattern_find(p, "xabd", 4, parts, 3));
	assert_int_equal(parts[0].len, 1);
	assert_memory_equal(parts[0].at, "a", 1);
	assert_null(parts[1].at);		/* took no part */
	assert_memory_equal(parts[2].at, "d", 1);
	assert_true(pattern_find(p, "ab", 2, parts, 3));
	assert_non_null(parts[2].at);		/* took part, with nothing */
	assert_int_equal(parts[2].len, 0);
	/* No more than there is room for. */
	parts[1].at = "untouched";
	assert_true(pattern_find(p, "abc", 3, parts, 1));
	assert_string_equal(parts[1].at, "untouched");
	pattern_free(p);
}

static void
one_comes_after_the_other(void **state)
{
	struct pattern *p = pattern_of("(?<n>\\d)+");
	struct pattern_part whole, part;

	(void)state;
	assert_int_equal(pattern_find_from(p, "a12b345", 7, 0, &whole, &part, 1), 1);
	assert_memory_equal(whole.at, "12", 2);
	assert_int_equal(whole.len, 2);
	assert_memory_equal(part.at, "2", 1);
	assert_int_equal(pattern_find_from(p, "a12b345", 7, 3, &whole, &part, 1), 1);
	assert_memory_equal(whole.at, "345", 3);
	assert_int_equal(pattern_find_from(p, "a12b345", 7, 7, &whole, &part, 1), 0);
	pattern_free(p);
}

static void
is_wrong(const char *text, const char *want)
{
	char error[256] = "";

	assert_null(pattern_new(text, error, sizeof(error)));
	assert_string_equal(error, want);
}

static void
errors_say_at_which_character(void **state)
{
	(void)state;
	is_wrong("ab(c", "missing closing parenthesis, at character 5");
	is_wrong("*a", "quantifier does not follow a repeatable item, at character 1");
	is_wrong("\xc3\xa4\xc3\xa4[a", "missing terminating ] for character class, at character 5");
	is_wrong("(?<a>x)(?<a>y)", "two named subpatterns have the same name (PCRE2_DUPNAMES not set), "
	    "at character 13");
	is_wrong("(?J)(?<a>x)(?<a>y)", "group 'a' is defined twice");
}

/* times pieces and an end. The caller frees it. */
static char *
repeated(const char *piece, size_t times, const char *end)
{
	char *text = malloc(times * strlen(piece) + strlen(end) + 1), *p = text;

	for (size_t i = 0; i < times; i++)
		p = stpcpy(p, piece);
	strcpy(p, end);
	return text;
}

static void
patterns_are_bounded(void **state)
{
	char *long_one = repeated("a", 5000, ""), *groups = repeated("(a)", 64, ""), *deep = repeated("(", 200, "a");
	char error[256];

	(void)state;
	assert_null(pattern_new(long_one, error, sizeof(error)));
	is_wrong(groups, "more than 63 groups: write (?:...) for groups that need no value");
	groups[3 * 63] = '\0';
	assert_true(finds(groups, groups) == false);
	assert_null(pattern_new(deep, error, sizeof(error)));
	free(long_one);
	free(groups);
	free(deep);
}

static double
seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
none_takes_long(void **state)
{
	static const struct {
		const char *pattern, *piece;
		size_t times;
		const char *end;
	} slow[] = {
		/* None ends in a character that PCRE2 misses at once. */
		{ "(a+)+$", "a", 40, "b" },
		{ "^(([a-z])+.)+[A-Z]([a-z])+$", "a", 1000, "" },
		{ "(x+x+)+[yz]", "x", 1000, "" },
		{ "(x+x+)+[yz]", "x", 100000, "" },
		{ "x*[yz]", "x", 1000, "" },
		{ "x*[yz]", "x", 130000, "" },
		{ "(?:.*)*(?:.*)*(?:.*)*[!?]", "ab", 60000, "" },
		{ "(?:(?:a|b)+c?)*[de]", "ab", 500, "" },
		{ "x{1000}[yz]", "x", 130000, "" },
		{ "(?:x{60000})?[yz]", "x", 130000, "" },
		{ "(?:x{1000,})?(?:x{1000,})?[yz]", "x", 130000, "" },
		{ "a.*b.*c.*d.*[ef]", "abcd", 10000, "" },
		{ "(?=(a+))a*b\\1", "a", 20000, "bc" },
		{ "(?:((?:a?){30}a){30})+[bc]", "a", 900, "" },
		{ "(?:a(?R)?)+[bc]", "a", 900, "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(slow) / sizeof(slow[0]); i++) {
		char *text = repeated(slow[i].piece, slow[i].times, slow[i].end);
		struct pattern *p = pattern_of(slow[i].pattern);
		double before = seconds();
		bool found = pattern_find(p, text, strlen(text), NULL, 0);
		double took = seconds() - before;

		assert_false(found);
		/* Of a millisecond or so, with sanitizers and on a busy machine. */
		if (took > 0.1)
			fail_msg("%s took %g s", slow[i].pattern, took);
		pattern_free(p);
		free(text);
	}
}

static void
long_texts_are_searched_to_their_end(void **state)
{
	char *text = repeated("samtools view -b in.bam | ", 3000, "/work/31/3c1293 --end=7");
	struct pattern *p = pattern_of("/work/(?<a>[0-9a-f]{2})/(?<b>[0-9a-f]+)\\s+--end=(?<n>\\d+)$");
	struct pattern_part parts[3];

	(void)state;
	assert_true(pattern_find(p, text, strlen(text), parts, 3));
	assert_memory_equal(parts[0].at, "31", 2);
	assert_int_equal(parts[1].len, 6);
	assert_memory_equal(parts[2].at, "7", 1);
	pattern_free(p);
	free(text);
}

static void
backtracking_finds_what_is_there(void **state)
{
	char *text = repeated("b", 40, "aaaaaaaaaaaaaaaaaaaac");
	struct pattern *p = pattern_of("(?<x>(?:a|aa|b)+)c$");
	struct pattern_part part;

	(void)state;
	assert_true(pattern_find(p, text, strlen(text), &part, 1));
	assert_int_equal(part.len, 60);
	pattern_free(p);
	free(text);
	text = repeated("ab", 250, "!");
	assert_true(finds("a.*b.*a.*b.*!$", text));
	assert_false(finds("b.*a.*b.*a\\?", text));
	free(text);
}

static void
free_takes_null(void **state)
{
	(void)state;
	pattern_free(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_found_anywhere_unless_bound),
		cmocka_unit_test(bytes_that_are_no_characters_are_bytes),
		cmocka_unit_test(groups_have_names_in_their_order),
		cmocka_unit_test(one_comes_after_the_other),
		cmocka_unit_test(errors_say_at_which_character),
		cmocka_unit_test(patterns_are_bounded),
		cmocka_unit_test(none_takes_long),
		cmocka_unit_test(long_texts_are_searched_to_their_end),
		cmocka_unit_test(backtracking_finds_what_is_there),
		cmocka_unit_test(free_takes_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
