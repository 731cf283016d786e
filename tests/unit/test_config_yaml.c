/* SPDX-License-Identifier: Apache-2.0 */
/* yaml: files that cannot be parsed, each error with its line and column. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "base/bytes.h"
#include "config/errors.h"
#include "config/yaml.h"
#include "config/yaml_pack.h"
#include "configs.h"

static void
syntax_errors_have_their_location(void **state)
{
	(void)state;
	wrong_is("interval: [\n", "f:2:1: not YAML: did not find expected node content, while parsing a "
	    "flow node (line 2)\n");
	wrong_is("interval: 10s\nlog:\n\tlevel: info\n", "f:3:1: not YAML: found a character that cannot "
	    "start any token; YAML is indented by spaces, not by tabs, while scanning for the next token "
	    "(line 3)\n");
	wrong_is("interval: 5s\n  lake: /x\n",
	    "f:2:7: not YAML: mapping values are not allowed in this context\n");
	wrong_is("lake: \"/a", "f:1:10: not YAML: found unexpected end of stream, while scanning a quoted "
	    "scalar (line 1)\n");
	wrong_is("interval: 1s\nlake: /\xff\n", "f:2:8: not YAML: invalid leading UTF-8 octet\n");
}

static void
what_yaml_has_and_we_do_not_is_refused(void **state)
{
	(void)state;
	wrong_is("interval: &x 1s\n", "f:1:11: anchors (&name) are not allowed: write the value out\n");
	wrong_is("log: &x {level: info}\n",
	    "f:1:6: anchors (&name) are not allowed: write the value out\n");
	wrong_is("trace_env:\n  - *x\n", "f:2:5: aliases (*name) are not allowed: write the value out\n");
	wrong_is("*x : 1s\n", "f:1:1: aliases (*name) are not allowed: write the value out\n");
	wrong_is("interval: !!str 1s\n", "f:1:11: tags (!name) are not allowed: remove the tag\n");
	wrong_is("trace_env: !x [A]\n", "f:1:12: tags (!name) are not allowed: remove the tag\n");
	wrong_is("interval: 1s\n---\nlake: /x\n",
	    "f:2:1: a second document begins here: one file has one; remove the ---\n");
	wrong_is("? [a]\n: b\n", "f:1:3: expected a name, such as `interval:`\n");
	wrong_is("lake: \"/a\\0b\"\n", "f:1:7: the value holds a NUL character: remove it\n");
	wrong_is("- interval\n",
	    "f:1:1: the file is a list: it must be a mapping, lines such as `interval: 10s`\n");
	wrong_is("interval\n",
	    "f:1:1: the file is a single value: it must be a mapping, lines such as `interval: 10s`\n");
}

static void
nothing_at_all_is_the_defaults(void **state)
{
	static const char *const empty[] = { "", "\n", "# only a comment\n", "---\n", "---\n...\n", "{}",
		"~", "\xef\xbb\xbf" };

	(void)state;
	for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++)
		wrong_is(empty[i], "");
}

static void
every_name_that_occurs_twice_is_reported(void **state)
{
	(void)state;
	wrong_is("interval: 1s\nlake: /a\ninterval: 2s\nlog: {level: info, level: debug}\n",
	    "f:3:1: 'interval' is set twice, first in line 1: remove one\n"
	    "f:4:20: 'level' is set twice, first in line 4: remove one\n");
	wrong_is("kafka:\n  brokers: [a:1]\n  properties:\n    acks: all\n    acks: all\n"
		 "registry: {urls: [\"http://h:1\"]}\n",
	    "f:5:5: 'acks' is set twice, first in line 4: remove one\n");
}

/* times pieces between before and after. The caller frees it. */
static char *
repeated(const char *before, const char *piece, size_t times, const char *after)
{
	char *text = malloc(strlen(before) + times * strlen(piece) + strlen(after) + 1), *p;

	p = stpcpy(text, before);
	for (size_t i = 0; i < times; i++)
		p = stpcpy(p, piece);
	strcpy(p, after);
	return text;
}

static void
depth_number_and_size_are_bounded(void **state)
{
	char *text = repeated("trace_env: ", "[", 200000, "");
	char *got = wrong_with(text);

	(void)state;
	assert_string_equal(got, "f:1:27: nested more than 16 levels deep; no key needs that\n");
	free(got);
	free(text);

	text = repeated("trace_env: ", "[", 14, "]]]]]]]]]]]]]]");	/* deep and wrong, not too deep */
	got = wrong_with(text);
	assert_string_equal(got, "f:1:13: trace_env: this item is a list: expected a single value\n");
	free(got);
	free(text);

	text = repeated("trace_env: [", "A,", 5000, "]\n");
	got = wrong_with(text);
	assert_non_null(strstr(got, ": more than 4096 values in one file"));
	free(got);
	free(text);

	text = repeated("", "# 14 bytes...\n", (1 << 20) / 14 + 1, "");
	got = wrong_with(text);
	assert_string_equal(got, "f: larger than 1 MiB: that is no configuration\n");
	free(got);
	free(text);
}

static void
a_node_knows_its_line_and_quotes(void **state)
{
	static const char yaml[] = "a: 1\nb:\n  - 'x'\n  - ~\nc: {d: \"\"}\n";
	struct config_errors errors = { 0 };
	struct yaml_node *root = NULL, *b, *c;

	(void)state;
	assert_int_equal(yaml_read(&yaml_config, "f", yaml, strlen(yaml), &root, &errors), 0);
	assert_int_equal(root->kind, YAML_NODE_MAP);
	assert_string_equal(root->first->name, "a");
	assert_true(root->first->is_plain);
	assert_int_equal(root->first->column, 4);
	b = root->first->next;
	assert_int_equal(b->kind, YAML_NODE_LIST);
	assert_int_equal(b->name_line, 2);
	assert_int_equal(b->first->line, 3);
	assert_int_equal(b->first->column, 5);
	assert_false(b->first->is_plain);
	assert_int_equal(b->first->next->kind, YAML_NODE_NULL);
	c = b->next;
	assert_int_equal(c->first->kind, YAML_NODE_TEXT);	/* quoted: empty, not nothing */
	assert_string_equal(c->first->text, "");
	yaml_node_free(root);
	config_errors_done(&errors);
}

static void
assert_same_tree(const struct yaml_node *a, const struct yaml_node *b)
{
	for (; a != NULL && b != NULL; a = a->next, b = b->next) {
		assert_int_equal(a->kind, b->kind);
		assert_int_equal(a->is_plain, b->is_plain);
		assert_int_equal(a->line, b->line);
		assert_int_equal(a->column, b->column);
		assert_int_equal(a->name_line, b->name_line);
		assert_int_equal(a->name_column, b->name_column);
		assert_int_equal(a->name != NULL, b->name != NULL);
		assert_int_equal(a->text != NULL, b->text != NULL);
		if (a->name != NULL)
			assert_string_equal(a->name, b->name);
		if (a->text != NULL)
			assert_string_equal(a->text, b->text);
		assert_same_tree(a->first, b->first);
	}
	assert_null(a);
	assert_null(b);
}

static void
a_packed_tree_is_the_same_one(void **state)
{
	static const char *const yaml[] = { "", "a: 1\nb:\n  - 'x'\n  - ~\n  - [[], {}]\nc: {d: \"\", e: }\n'': \xc3\xb6\n" };
	struct config_errors errors = { 0 };
	struct bytes packed = { 0 };
	struct yaml_node *root, *again;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(yaml_read(&yaml_config, "f", yaml[i], strlen(yaml[i]), &root, &errors), 0);
		packed.len = 0;
		assert_int_equal(yaml_pack(root, &packed), 0);
		assert_int_equal(yaml_unpack(packed.data, &again), 0);
		assert_same_tree(root, again);
		yaml_node_free(again);
		root->line = 65536;
		assert_int_equal(yaml_pack(root, &packed), -E2BIG);
		yaml_node_free(root);
	}
	bytes_done(&packed);
	config_errors_done(&errors);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(syntax_errors_have_their_location),
		cmocka_unit_test(what_yaml_has_and_we_do_not_is_refused),
		cmocka_unit_test(nothing_at_all_is_the_defaults),
		cmocka_unit_test(every_name_that_occurs_twice_is_reported),
		cmocka_unit_test(depth_number_and_size_are_bounded),
		cmocka_unit_test(a_node_knows_its_line_and_quotes),
		cmocka_unit_test(a_packed_tree_is_the_same_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
