/* SPDX-License-Identifier: Apache-2.0 */
/* keys: the table agrees with the shipped file and sluice.yaml(5) on each key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>

#include "base/file.h"
#include "config/keys.h"
#include "configs.h"

#define SHIPPED SOURCE_TREE "/config/sluice.yaml"
#define PAGE SOURCE_TREE "/docs/sluice.yaml.5"

static struct file_text
read_all(const char *path)
{
	struct file_text text = { 0 };

	assert_int_equal(file_read(AT_FDCWD, path, &text, 1 << 20), 0);
	return text;
}

static void
each_key_stands_once_behind_its_section(void **state)
{
	(void)state;
	for (size_t i = 0; i < config_keys_n; i++) {
		const struct key *k = &config_keys[i];
		const char *dot = strrchr(k->name, '.');
		char section[64];

		assert_ptr_equal(key_find(k->name), k);
		if (dot == NULL)
			continue;
		snprintf(section, sizeof(section), "%.*s", (int)(dot - k->name), k->name);
		assert_non_null(key_find(section));
		assert_int_equal(key_find(section)->type, KEY_SECTION);
		assert_true(key_find(section) < k);
	}
}

static void
the_page_says_of_each_key_what_the_table_says(void **state)
{
	struct file_text page = read_all(PAGE);
	char *at = strstr(page.text, ".SH KEYS\n");

	(void)state;
	assert_non_null(at);
	for (size_t i = 0; config_key_name(i) != NULL; i++) {
		char facts[256], want[512];

		snprintf(want, sizeof(want), ".TP\n.B %s\n%s\n", config_key_name(i),
		    config_key_facts(i, facts, sizeof(facts)));
		at = strstr(at, want);		/* in the order of the table */
		if (at == NULL)
			fail_msg("sluice.yaml(5) lacks, or has out of order:\n%s", want);
	}
	file_text_done(&page);
}

static void
the_shipped_file_is_the_defaults(void **state)
{
	struct file_text shipped = read_all(SHIPPED);
	struct config *c = config_of(shipped.text), *defaults = NULL;
	struct config_changes changes;

	(void)state;
	assert_int_equal(config_defaults(&defaults), 0);
	config_differs(defaults, c, &changes);
	for (size_t i = 0; i < changes.n; i++)
		print_error("%s\n", changes.list[i].key);
	assert_int_equal(changes.n, 0);
	for (size_t i = 0; i < config_keys_n; i++) {
		const char *name = config_keys[i].name;

		if (strncmp(name, "kafka", 5) != 0 && strncmp(name, "registry", 8) != 0 && strncmp(name, "update", 6) != 0 &&
		    ((strncmp(name, "containers.kubelet.", 19) != 0 && strncmp(name, "host.", 5) != 0) ||
		    config_keys[i].initial != NULL) &&
		    !config_keys[i].zero_is_none && c->locations[i].line == 0)
			fail_msg("the shipped file does not set %s", name);
	}
	config_free(c);
	config_free(defaults);
	file_text_done(&shipped);
}

/* Removes the # of lines that are settings: prose has one blank behind it, settings none or more. */
static void
uncomment(char *text)
{
	char *to = text;

	for (char *line = text; *line != '\0';) {
		char *end = strchrnul(line, '\n');

		if (line[0] == '#' && line[1] != '\n' && (line[1] != ' ' || line[2] == ' '))
			line++;
		while (line < end)
			*to++ = *line++;
		if (*end == '\n')
			*to++ = *line++;
	}
	*to = '\0';
}

static void
the_shipped_file_without_comment_signs_is_right_too(void **state)
{
	struct file_text shipped = read_all(SHIPPED);
	struct config_changes changes;
	struct config *c, *defaults = NULL;

	(void)state;
	uncomment(shipped.text);
	c = config_of(shipped.text);
	assert_int_equal(config_defaults(&defaults), 0);
	config_differs(defaults, c, &changes);
	assert_true(changes.n > 0);
	for (size_t i = 0; i < changes.n; i++) {
		const char *name = changes.list[i].key;

		/* What has a default has it here too, but for the places of the servers. */
		if (strncmp(name, "kafka", 5) != 0 && strncmp(name, "registry", 8) != 0 && strncmp(name, "update", 6) != 0 &&
		    strcmp(name, "probes.max_processes") != 0 && strcmp(name, "probes.ring") != 0 &&
		    strcmp(name, "lake_keep") != 0)
			fail_msg("%s is not its default", name);
	}
	for (size_t i = 0; i < config_keys_n; i++) {
		const struct key *k = &config_keys[i];
		char commented[96];

		/* Alternatives, such as a token instead of a password, remain comments. */
		snprintf(commented, sizeof(commented), "  #%s: ", key_leaf(k));
		if (c->locations[i].line == 0 && strstr(shipped.text, commented) == NULL)
			fail_msg("the shipped file does not show %s", k->name);
	}
	config_free(c);
	config_free(defaults);
	file_text_done(&shipped);
}

static void
facts_are_cut_not_overrun(void **state)
{
	char small[8];

	(void)state;
	memset(small, 'x', sizeof(small));
	config_key_facts(0, small, 6);
	assert_string_equal(small, "durat");
	assert_int_equal(small[6], 'x');
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_key_stands_once_behind_its_section),
		cmocka_unit_test(the_page_says_of_each_key_what_the_table_says),
		cmocka_unit_test(the_shipped_file_is_the_defaults),
		cmocka_unit_test(the_shipped_file_without_comment_signs_is_right_too),
		cmocka_unit_test(facts_are_cut_not_overrun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
