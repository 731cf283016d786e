/* SPDX-License-Identifier: Apache-2.0 */
/* rules_engines: errors in an engine's rule, with source location and hint. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/engine_rules.h"
#include "rules/rules.h"
#include "configs.h"

/* The set, or NULL with what is wrong in *ret_wrong, which the caller frees. */
static struct ruleset *
rules_of(const char *yaml, char **ret_wrong)
{
	const struct rules_extra extra = { "f", yaml, strlen(yaml) };
	const struct rules_options o = { .is_without_shipped = true, .extra = &extra, .n_extra = 1 };
	struct config_errors errors = { 0 };
	struct ruleset *set = NULL;
	int r = rules_load(&o, &set, &errors);

	assert_true((r == 0) == (set != NULL));
	*ret_wrong = errors_text(&errors);
	return set;
}

static void
good(const char *yaml)
{
	char *wrong;
	struct ruleset *set = rules_of(yaml, &wrong);

	if (set == NULL)
		print_error("%s", wrong);
	assert_non_null(set);
	ruleset_unref(set);
	free(wrong);
}

/* says: the start of its only error, after the name of the file; and: a text that the error contains. */
static void
bad(const char *yaml, const char *location, const char *says)
{
	char *wrong;
	struct ruleset *set = rules_of(yaml, &wrong);

	assert_null(set);
	if (strncmp(wrong, location, strlen(location)) != 0 || strstr(wrong, says) == NULL ||
	    strchr(wrong, '\n') != wrong + strlen(wrong) - 1)
		fail_msg("wanted %s %s, got %s", location, says, wrong);
	free(wrong);
}

static void
all_that_a_rule_may_have_is_read(void **state)
{
	static const char yaml[] =
	    "engines:\n"
	    "- engine: e\n"
	    "  strength: weak\n"
	    "  drivers:\n"
	    "  - name: d\n"
	    "    when: {exe: d}\n"
	    "    options: {o: [-o, --out]}\n"
	    "    values: -v\n"
	    "    after: {w: run}\n"
	    "    find: [{cwd: '(?<c>.)'}, {o: '(?<p>.)', optional: true}]\n"
	    "    pipeline: '{w}'\n"
	    "    root: ['{o}', '{cwd}']\n"
	    "    tasks: true\n"
	    "    confidence: 0.5\n"
	    "    source: looks\n"
	    "  tasks:\n"
	    "  - when: {exe: t}\n"
	    "    joins: true\n"
	    "    counts_attempts: true\n"
	    "  - {when: {exe: n}, names: true}\n"
	    "  overhead: [{when: {exe: o}}]\n"
	    "  header: '(?<task>.)'\n";
	const struct engine *e;
	const struct engine_rule *rule;
	struct ruleset *set;
	char *wrong;

	(void)state;
	set = rules_of(yaml, &wrong);
	assert_string_equal(wrong, "");
	free(wrong);
	e = set->engines->first;
	assert_string_equal(e->name, "e");
	assert_true(e->is_weak);
	assert_null(e->next);
	rule = e->drivers;
	assert_string_equal(rule->location.name, "d");
	assert_int_equal(rule->location.line, 5);
	assert_non_null(rule->when);
	assert_string_equal(rule->options->name, "o");
	assert_string_equal(rule->options->words[1], "--out");
	assert_string_equal(rule->values[0], "-v");
	assert_string_equal(rule->after->name, "w");
	assert_int_equal(rule->finds->look->text, ENGINE_TEXT_CWD);
	assert_false(rule->finds->is_optional);
	assert_int_equal(rule->finds->next->look->text, ENGINE_TEXT_PIECE);
	assert_true(rule->finds->next->is_optional);
	assert_non_null(rule->fields[ENGINE_FIELD_PIPELINE]);
	assert_non_null(rule->fields[ENGINE_FIELD_ROOT]->next);
	assert_null(rule->fields[ENGINE_FIELD_SAMPLE]);
	assert_true(rule->has_tasks);
	assert_true(rule->confidence == 0.5);
	assert_string_equal(rule->source, "looks");
	assert_null(rule->next);
	assert_true(e->tasks->joins);
	assert_true(e->tasks->counts_attempts);
	assert_true(e->tasks->confidence == 0.9);
	assert_string_equal(e->tasks->source, "f:17");
	assert_true(e->tasks->next->names);
	assert_non_null(e->overhead);
	assert_non_null(e->headers);
	ruleset_unref(set);
}

static void
no_engines_are_fine(void **state)
{
	struct ruleset *set;
	char *wrong;

	(void)state;
	set = rules_of("engines:\n", &wrong);
	assert_non_null(set);
	assert_null(set->engines->first);
	ruleset_unref(set);
	free(wrong);
	good("engines: []\n");
	good("engines: [{engine: e}]\n");
	good("engines: [{engine: e, jobs: snakemake}]\n");
	good("engines: [{engine: e, tasks: [{find: [{cwd: '^/x/(?<task>.*)'}]}]}]\n");
}

static void
errors_are_reported_with_their_location(void **state)
{
	(void)state;
	bad("engines: {engine: e}\n", "f:1:10:", "expected a list of engines");
	bad("engines: [e]\n", "f:1:11:", "expected a mapping");
	bad("engines:\n- drivers: []\n", "f:2:3:", "add engine: NAME");
	bad("engines:\n- engine: e\n  driver: []\n", "f:3:3:", "did you mean 'drivers'?");
	bad("engines:\n- engine: e\n  strength: strong\n", "f:3:13:", "'strong' is not a strength");
	bad("engines:\n- engine: e\n  jobs: make\n", "f:3:9:", "'make' is not a format of job records");
	bad("engines:\n- engine: e\n  tasks: {when: {exe: x}}\n", "f:3:10:", "expected a list of rules");
	bad("engines:\n- engine: e\n  tasks: [{when: {exe: x}, roots: x}]\n", "f:3:28:", "did you mean 'root'?");
	bad("engines:\n- engine: e\n  drivers: [{when: {exe: x}, task_id: x}]\n", "f:3:30:", "no key 'task_id' here");
	bad("engines:\n- engine: e\n  overhead: [{when: {exe: x}, root: x}]\n", "f:3:31:", "no key 'root' here");
	bad("engines:\n- engine: e\n  tasks: [{task: x}]\n", "f:3:11:", "would hold for every program");
	bad("engines:\n- engine: e\n  tasks: [{find: [{cwd: x, optional: true}]}]\n", "f:3:11:",
	    "would hold for every program");
	bad("engines:\n- engine: e\n  overhead: [{name: x}]\n", "f:3:14:", "would hold for every program");
	bad("engines:\n- engine: e\n  tasks: [{when: {exe: x}, joins: true, names: true}]\n", "f:3:11:",
	    "keep joins or names");
	bad("engines:\n- engine: e\n  tasks: [{when: {exe: x}, joins: yes}]\n", "f:3:35:", "neither true nor false");
	bad("engines:\n- engine: e\n  tasks: [{when: {exe: x}, confidence: 2}]\n", "f:3:40:", "give 0 to 1");
	bad("engines:\n- engine: e\n  tasks: [{when: {exe: x}, task: '{rule}'}]\n", "f:3:34:", "{rule} is not allowed here");
	bad("engines:\n- engine: e\n  tasks: [{when: {exe: x}, find: [{cwd: '/(?<rule>.)'}], task: '{rul}'}]\n", "f:3:64:",
	    "did you mean {rule}?");
	bad("engines:\n- engine: e\n  tasks: [{when: {exe: x}, find: [{cw: x}]}]\n", "f:3:40:", "did you mean 'cwd'?");
	bad("engines:\n- engine: e\n  tasks: [{when: {exe: x}, find: [{optional: true}]}]\n", "f:3:35:",
	    "there is no pattern here");
	bad("engines:\n- engine: e\n  tasks: [{when: {exe: x}, find: [{cwd: '('}]}]\n", "f:3:41:",
	    "not a regular expression");
	bad("engines:\n- engine: e\n  tasks: [{when: {exe: x}, options: [-w]}]\n", "f:3:37:", "expected a mapping");
	bad("engines:\n- engine: e\n  tasks: [{when: {exe: x}, options: {cwd: -w}}]\n", "f:3:43:", "use another name");
	bad("engines:\n- engine: e\n  tasks: [{when: {exe: x}, after: {w: []}}]\n", "f:3:39:", "a value or a list");
	bad("engines:\n- engine: e\n  tasks: [{when: {exe: x}, task: []}]\n", "f:3:34:", "the list is empty");
	bad("engines:\n- engine: e\n  header: '^x$'\n", "f:3:11:", "names no task");
}

static void
names_are_bounded(void **state)
{
	char yaml[4096] = "engines:\n- engine: e\n  tasks:\n  - when: {exe: x}\n    options:\n";

	(void)state;
	for (int i = 0; i <= ENGINE_PIECES_MAX; i++)
		snprintf(yaml + strlen(yaml), sizeof(yaml) - strlen(yaml), "      o%d: -o\n", i);
	bad(yaml, "f:38:12:", "more than 32 names");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_that_a_rule_may_have_is_read),
		cmocka_unit_test(no_engines_are_fine),
		cmocka_unit_test(errors_are_reported_with_their_location),
		cmocka_unit_test(names_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
