/* SPDX-License-Identifier: Apache-2.0 */
/* spell: text of others as people may read it. No root, no kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/spell.h"
#include "base/text.h"
#include "hostile.h"

/* The caller frees it. */
static char *
written(void (*write)(FILE *f, const char *text), const char *text)
{
	char *out = NULL;
	size_t size;
	FILE *f = open_memstream(&out, &size);

	assert_non_null(f);
	write(f, text);
	assert_int_equal(fclose(f), 0);
	return out;
}

static void
a_hostile_name_is_spelt_out(const struct hostile_name *h, void *arg)
{
	size_t size = SPELL_TEXT_MAX(h->len);
	char *out = malloc(size), *to;

	(void)arg;
	assert_non_null(out);
	assert_true(spell_text(h->name, out, size));
	hostile_equal(h, out, h->spelt);
	to = written(spell_to, h->name);
	hostile_equal(h, to, h->spelt);
	free(to);
	/* What is spelt out already stays. */
	to = written(spell_to, h->spelt);
	hostile_equal(h, to, h->spelt);
	free(to);
	free(out);
}

static void
hostile_names_are_spelt_out(void **state)
{
	(void)state;
	hostile_each(a_hostile_name_is_spelt_out, NULL);
}

static void
a_name_is_the_same_in_json(const struct hostile_name *h, void *arg)
{
	size_t size = TEXT_ESCAPE_MAX(h->len);
	char *text = malloc(size), *json, *out;
	json_t *root, *back;

	(void)arg;
	text_escape(h->name, h->len, text, size, NULL);		/* JSON is UTF-8 */
	root = json_pack("{sssi}", "name", text, "n", 1);
	json = json_dumps(root, JSON_INDENT(2));
	out = written(spell_json_to, json);
	hostile_is_safe(h, out, true);
	back = json_loads(out, 0, NULL);
	assert_non_null(back);
	assert_string_equal(json_string_value(json_object_get(back, "name")), text);
	json_decref(back);
	json_decref(root);
	free(text);
	free(json);
	free(out);
}

static void
json_keeps_its_values(void **state)
{
	(void)state;
	hostile_each(a_name_is_the_same_in_json, NULL);
}

static void
no_character_that_acts_on_a_terminal_is_left(void **state)
{
	(void)state;
	for (uint32_t code = 1; code < 0x110000; code++) {
		bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0);
		bool is_bidi = code == 0x61c || code == 0x200e || code == 0x200f ||
		    (code >= 0x202a && code <= 0x202e) ||
		    (code >= 0x2066 && code <= 0x2069);
		bool is_plain = (code >= 0x20 && code < 0x7f) || (code >= 0xc0 && code < 0x300) || code == 0x3042;
		char at[4];
		size_t n;

		if (code >= 0xd800 && code < 0xe000)
			continue;
		if (code < 0x80)
			n = 1, at[0] = (char)code;
		else if (code < 0x800)
			n = 2, at[0] = (char)(0xc0 | code >> 6);
		else if (code < 0x10000)
			n = 3, at[0] = (char)(0xe0 | code >> 12);
		else
			n = 4, at[0] = (char)(0xf0 | code >> 18);
		for (size_t i = 1; i < n; i++)
			at[i] = (char)(0x80 | (code >> 6 * (n - 1 - i) & 0x3f));
		assert_int_equal(text_char(at, n), n);
		if (is_control || is_bidi)
			assert_true(spell_is_hidden(at, n));
		if (is_plain)
			assert_false(spell_is_hidden(at, n));
	}
}

static void
text_is_cut_between_characters(void **state)
{
	char out[8];

	(void)state;
	assert_false(spell_text("abcdefgh", out, 8));
	assert_string_equal(out, "abcdefg");
	assert_true(spell_text("abcdefg", out, 8));
	assert_false(spell_text("abcde\x1b", out, 8));
	assert_string_equal(out, "abcde");
	assert_false(spell_text("abcdef\xc3\xa9", out, 8));
	assert_string_equal(out, "abcdef");
	assert_false(spell_text("a\x1b\x1b", out, 8));
	assert_string_equal(out, "a\\x1b");
	assert_false(spell_text("a", out, 1));
	assert_string_equal(out, "");
	assert_true(spell_text("", out, 1));
}

static void
a_line_ends_where_it_says(void **state)
{
	char *out = NULL;
	size_t size;
	FILE *f = open_memstream(&out, &size);

	(void)state;
	spell_line(f, "%s: %d\n", "a\nb\x1b", 3);
	spell_line(f, "%s", "no end");
	spell_line(f, "\n");
	spell_line(f, "%s", "");
	fclose(f);
	assert_string_equal(out, "a\\nb\\x1b: 3\nno end\n");
	free(out);
	out = written(spell_lines_to, "one\x07\ntwo\n");
	assert_string_equal(out, "one\\x07\ntwo\n");
	free(out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hostile_names_are_spelt_out),
		cmocka_unit_test(json_keeps_its_values),
		cmocka_unit_test(no_character_that_acts_on_a_terminal_is_left),
		cmocka_unit_test(text_is_cut_between_characters),
		cmocka_unit_test(a_line_ends_where_it_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
