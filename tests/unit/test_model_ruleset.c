/* SPDX-License-Identifier: Apache-2.0 */
/* ruleset, template, follow_index: memory that is freed at once, names made of parts, a correct index. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/follow_index.h"
#include "model/ruleset.h"
#include "model/template.h"
#include "base/text.h"

static void
memory_is_zeroed_aligned_and_apart(void **state)
{
	struct ruleset *r = ruleset_new();
	char *pieces[300];
	const char *text;

	(void)state;
	for (size_t i = 0; i < 300; i++) {
		size_t size = i * 97 % 20011;

		pieces[i] = ruleset_alloc(r, size);
		assert_non_null(pieces[i]);
		assert_int_equal((uintptr_t)pieces[i] % _Alignof(max_align_t), 0);
		for (size_t j = 0; j < size; j++)
			assert_int_equal(pieces[i][j], 0);
		memset(pieces[i], (int)i + 1, size);
		text = ruleset_string(r, "abcdef", i % 7);
		assert_int_equal(strlen(text), i % 7);
		assert_memory_equal(text, "abcdef", i % 7);
	}
	for (size_t i = 0; i < 300; i++) {
		for (size_t j = 0; j < i * 97 % 20011; j++)
			assert_int_equal((unsigned char)pieces[i][j], (unsigned char)(i + 1));
	}
	assert_null(ruleset_alloc(r, SIZE_MAX));
	assert_null(ruleset_alloc(r, SIZE_MAX - 8));
	assert_null(ruleset_string(r, "", SIZE_MAX));
	ruleset_unref(r);
}

static void
the_last_reference_frees_patterns_too(void **state)
{
	struct ruleset *r = ruleset_new();
	char error[64];

	(void)state;
	for (int i = 0; i < 40; i++)
		assert_int_equal(ruleset_keep_pattern(r, pattern_new("a(?<b>c)", error, sizeof(error))), 0);
	assert_ptr_equal(ruleset_ref(r), r);
	ruleset_unref(r);
	r->generation = 7;	/* still there */
	ruleset_unref(r);	/* the leak checker sees the rest */
	ruleset_unref(NULL);
}

static void
every_kind_of_condition_has_a_name_of_its_own(void **state)
{
	(void)state;
	for (unsigned i = 0; i < CONDITION_KINDS; i++) {
		assert_non_null(condition_kind_name(i));
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(condition_kind_name(i), condition_kind_name(j));
	}
	assert_null(condition_kind_name(CONDITION_KINDS));
	assert_string_equal(condition_kind_name(CONDITION_ARGV_CONTAINS), "argv_contains");
	for (unsigned i = 0; i < RULE_SECTIONS; i++)
		assert_non_null(rule_section_name(i));
	assert_null(rule_section_name(RULE_SECTIONS));
}

/* "a" is "1", "long" ten letters, "umlaut" two bytes of one, "half" the first of them, "empty" nothing. */
static bool
value(const char *name, const char **ret, size_t *ret_len, void *arg)
{
	static const struct {
		const char *name, *value;
		size_t len;
	} values[] = {
		{ "a", "1", 1 }, { "long", "abcdefghij", 10 }, { "umlaut", "\xc3\xa4", 2 }, { "half", "\xc3\xa4", 1 },
		{ "empty", "", 0 }, { "nul", "a\0b", 3 },
	};

	++*(int *)arg;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		if (strcmp(values[i].name, name) == 0) {
			*ret = values[i].value;
			*ret_len = values[i].len;
			return true;
		}
	}
	return false;
}

/* text filled with the values above; NULL: it is not filled, and then it is "". */
static void
fills_to(const char *text, size_t size, const char *want)
{
	struct ruleset *r = ruleset_new();
	char error[256], out[64];
	const struct template *t = template_new(r, text, strlen(text), error, sizeof(error));
	int asked = 0;
	bool is_filled;

	if (t == NULL)
		fail_msg("%s: %s", text, error);
	assert_string_equal(error, "");
	memset(out, 'x', sizeof(out));
	is_filled = template_fill(t, out, size, value, &asked);
	assert_true(is_filled == (want != NULL));
	if (size > 0)
		assert_string_equal(out, want != NULL ? want : "");
	assert_int_equal(out[size], 'x');
	ruleset_unref(r);
}

static void
templates_are_filled(void **state)
{
	(void)state;
	fills_to("plain", 32, "plain");
	fills_to("", 32, "");
	fills_to("{a}", 32, "1");
	fills_to("x {a}{long} {a}", 32, "x 1abcdefghij 1");
	fills_to("[{empty}]", 32, "[]");
	fills_to("{{a}} {{{a}}} }}{{", 32, "{a} {1} }{");
	fills_to("{a}{b}", 32, NULL);
	fills_to("{b}", 0, NULL);
}

static void
what_is_too_long_is_cut_at_a_character(void **state)
{
	(void)state;
	fills_to("{long}", 11, "abcdefghij");
	fills_to("{long}", 10, "abcdefghi");
	fills_to("ab{umlaut}c", 6, "ab\xc3\xa4" "c");
	fills_to("ab{umlaut}c", 5, "ab\xc3\xa4");
	fills_to("ab{umlaut}c", 4, "ab");		/* and no c behind the cut */
	fills_to("abc", 1, "");
	fills_to("{a}", 0, "");
	fills_to("{long}{b}", 4, NULL);			/* unknown, also behind the cut */
}

static void
half_a_character_is_escaped(void **state)
{
	(void)state;
	fills_to("x{half}y", 32, "x\\xc3y");
	fills_to("x{half}y", 6, "x\\xc3");
	fills_to("x{half}y", 5, "x");
	fills_to("{nul}", 32, "a\\x00b");
}

static void
a_template_knows_its_names(void **state)
{
	struct ruleset *r = ruleset_new();
	char error[256];
	const struct template *t = template_new(r, "{x}{{y}} {x_1} {X2}", 19, error, sizeof(error));

	(void)state;
	assert_string_equal(template_name(t, 0), "x");
	assert_string_equal(template_name(t, 1), "x_1");
	assert_string_equal(template_name(t, 2), "X2");
	assert_null(template_name(t, 3));
	/* Only the bytes that were given. */
	t = template_new(r, "ab{c}", 2, error, sizeof(error));
	assert_null(template_name(t, 0));
	ruleset_unref(r);
}

static void
wrong_templates_are_reported(void **state)
{
	static const struct {
		const char *text, *want;
	} wrong[] = {
		{ "a{", "the { at character 2 begins no {name} of letters, digits and _: write {{ for a brace" },
		{ "{a", "the { at character 1 begins no {name} of letters, digits and _: write {{ for a brace" },
		{ "ab{c d}", "the { at character 3 begins no {name} of letters, digits and _: write {{ for a brace" },
		{ "{a{b}}", "the { at character 1 begins no {name} of letters, digits and _: write {{ for a brace" },
		{ "a{}", "the {} at character 2 holds no name" },
		{ "a}b", "the } at character 2 ends no {name}: write }} for a brace" },
		{ "{a}}", "the } at character 4 ends no {name}: write }} for a brace" },
	};
	struct ruleset *r = ruleset_new();
	char error[256], many[65 * 3 + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_null(template_new(r, wrong[i].text, strlen(wrong[i].text), error, sizeof(error)));
		assert_string_equal(error, wrong[i].want);
	}
	for (size_t i = 0; i < 65; i++)
		memcpy(many + 3 * i, "{a}", 4);
	assert_null(template_new(r, many, strlen(many), error, sizeof(error)));
	assert_string_equal(error, "more than 64 names and pieces of text");
	ruleset_unref(r);
}

static struct condition
leaf(enum condition_kind kind, const char *text)
{
	return (struct condition){ .kind = kind, .text = text };
}

/* The numbers as a text: "0 4 ". */
static const char *
numbers(struct follow_numbers n)
{
	static char buf[4][64];
	static unsigned next;
	char *text = buf[next++ % 4];
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < n.n; i++)
		len += (size_t)snprintf(text + len, sizeof(buf[0]) - len, "%u ", (unsigned)n.list[i]);
	return text;
}

/* All that is found on the way along a path. */
static const char *
walked(const struct follow_index *x, enum condition_kind kind, const char *path)
{
	static char text[256];
	struct follow_walk w = { 0 };
	struct follow_numbers n;

	text[0] = '\0';
	while (follow_index_walk(x, kind, path, &w, &n))
		strcat(text, numbers(n));
	return text;
}

static void
paths_are_found_where_they_begin(void **state)
{
	static const char *const paths[] = { "/opt/", "/opt/x", "/", "/opt/x" };
	static const char *const cgroups[] = { "/a.slice/", "/a.slice/job_*/x", "/*/b", "/", "/a//b", NULL };
	char long_path[2001] = "/", same[2001];
	struct condition c[10];
	struct follow_rule rules[10];
	struct ruleset *r = ruleset_new();
	const struct follow_index *x;

	(void)state;
	memset(long_path + 1, 'x', 1999);
	strcpy(same, long_path);
	same[1500] = 'y';
	for (size_t i = 0; i < 10; i++) {
		c[i] = i < 4 ? leaf(CONDITION_PATH, paths[i]) :
		    leaf(CONDITION_CGROUP, i < 9 ? cgroups[i - 4] : long_path);
		rules[i] = (struct follow_rule){ .when = &c[i] };
	}
	x = follow_index_new(r, rules, 10);
	assert_string_equal(walked(x, CONDITION_PATH, "/opt/x"), "2 0 1 3 ");
	assert_string_equal(walked(x, CONDITION_PATH, "/opt"), "2 ");
	assert_string_equal(walked(x, CONDITION_PATH, "/opt/xy/z"), "2 0 1 3 ");	/* to be asked, no more */
	assert_string_equal(walked(x, CONDITION_PATH, ""), "");
	assert_string_equal(walked(x, CONDITION_CGROUP, "/a.slice"), "6 7 4 ");
	assert_string_equal(walked(x, CONDITION_CGROUP, "/a.slice/job_12/x/y"), "6 7 4 5 ");
	assert_string_equal(walked(x, CONDITION_CGROUP, "/b/b"), "6 7 ");
	assert_string_equal(numbers(follow_index_others(x)), "8 ");
	/* Of a very long one the beginning is the key. */
	assert_string_equal(walked(x, CONDITION_CGROUP, long_path), "6 7 9 ");
	assert_string_equal(walked(x, CONDITION_CGROUP, same), "6 7 9 ");
	ruleset_unref(r);
}

static void
rules_stand_under_the_keys_that_they_need(void **state)
{
	struct condition bwa = leaf(CONDITION_EXE, "bwa"), again = leaf(CONDITION_EXE, "bwa"), star = leaf(CONDITION_EXE, "STAR");
	struct condition folder = leaf(CONDITION_PATH, "/opt/"), uid = { .kind = CONDITION_UID }, comm = leaf(CONDITION_COMM, "bwa");
	struct condition not = { .kind = CONDITION_NOT, .first = &star };
	struct condition parent = { .kind = CONDITION_PARENT, .first = &star };
	struct condition either = { .kind = CONDITION_ANY, .first = &bwa };
	struct condition either_not = { .kind = CONDITION_ANY, .first = &folder };
	struct condition both = { .kind = CONDITION_ALL, .first = &uid };
	struct condition empty = { .kind = CONDITION_ANY };
	struct follow_rule rules[] = {
		{ .when = &either }, { .when = &again }, { .when = &either_not }, { .when = &both }, { .when = &not },
		{ .when = NULL }, { .when = &empty }, { .when = &parent },
	};
	struct ruleset *r = ruleset_new();
	struct condition twin = star, other_uid = uid;
	const struct follow_index *x;

	(void)state;
	bwa.next = &twin;		/* any: [bwa, STAR] */
	folder.next = &other_uid;	/* any: [/opt/, uid] */
	uid.next = &comm;		/* all: [uid, comm bwa] */
	x = follow_index_new(r, rules, sizeof(rules) / sizeof(rules[0]));
	assert_string_equal(numbers(follow_index_find(x, CONDITION_EXE, "bwa")), "0 1 ");
	assert_string_equal(numbers(follow_index_find(x, CONDITION_EXE, "STAR")), "0 ");
	assert_string_equal(numbers(follow_index_find(x, CONDITION_COMM, "bwa")), "3 ");
	assert_string_equal(numbers(follow_index_find(x, CONDITION_COMM, "bw")), "");
	assert_string_equal(numbers(follow_index_find(x, CONDITION_COMM, "a name of any length")), "");
	assert_string_equal(walked(x, CONDITION_PATH, "/opt/x"), "");
	assert_string_equal(numbers(follow_index_others(x)), "2 4 5 7 ");	/* the empty any: nowhere */
	x = follow_index_new(r, NULL, 0);
	assert_string_equal(numbers(follow_index_find(x, CONDITION_EXE, "bwa")), "");
	assert_string_equal(numbers(follow_index_others(x)), "");
	ruleset_unref(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_is_zeroed_aligned_and_apart),
		cmocka_unit_test(the_last_reference_frees_patterns_too),
		cmocka_unit_test(every_kind_of_condition_has_a_name_of_its_own),
		cmocka_unit_test(templates_are_filled),
		cmocka_unit_test(what_is_too_long_is_cut_at_a_character),
		cmocka_unit_test(half_a_character_is_escaped),
		cmocka_unit_test(a_template_knows_its_names),
		cmocka_unit_test(wrong_templates_are_reported),
		cmocka_unit_test(paths_are_found_where_they_begin),
		cmocka_unit_test(rules_stand_under_the_keys_that_they_need),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
