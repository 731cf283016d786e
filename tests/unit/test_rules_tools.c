/* SPDX-License-Identifier: Apache-2.0 */
/* rules_tools: the rules that a file may contain for tools, their effect, and errors with hints. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/tool_rules.h"
#include "config/config.h"
#include "rules/rules.h"
#include "identify/tool.h"

/* The set of one file, local.yaml, alone or before the shipped ones. The caller's. */
static struct ruleset *
set_of(const char *text, bool is_with_shipped)
{
	const struct rules_extra extra = { "local.yaml", text, strlen(text) };
	const struct rules_options o = { .is_without_shipped = !is_with_shipped, .extra = &extra, .n_extra = 1 };
	struct config_errors errors = { 0 };
	struct ruleset *set = NULL;

	if (rules_load(&o, &set, &errors) < 0)
		config_errors_print(&errors, stderr);
	config_errors_done(&errors);
	assert_non_null(set);
	return set;
}

/* The name of a command, its words apart at blanks; argv[0] is its path. */
static void
expect_name(const struct ruleset *set, const char *command, const char *wanted, const char *wanted_rule)
{
	char text[1024], tool[TOOL_NAME_SIZE];
	const char *argv[64], *rule;
	struct candidate s = { .argv = argv, .cwd = "/data/run7", .has_uid = true, .uid = 1000 };
	char *save;

	snprintf(text, sizeof(text), "%s", command);
	for (char *word = strtok_r(text, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save))
		argv[s.argc++] = word;
	s.exe = argv[0];
	tool_name(set, &s, tool, sizeof(tool), &rule);
	if (strcmp(tool, wanted) != 0 || strcmp(rule, wanted_rule) != 0)
		fail_msg("%s: got \"%s\" by %s, not \"%s\" by %s", command, tool, rule, wanted, wanted_rule);
}

static void
a_rule_is_found_by_each_of_its_names(void **state)
{
	struct ruleset *set = set_of("tools:\n"
	    "  - exe: [acme, acme2]\n"
	    "  - {name: aligners, exe: [al1, al2], tool: aligner}\n"
	    "  - {exe: tree, jar: tree-main, class: [org.tree.Main, Forest], tool: tree}\n", false);

	(void)state;
	assert_int_equal(set->tools->n_rules, 3);
	assert_int_equal(set->tools->n_keys, 8);
	assert_int_equal(set->n_rules, 3);
	expect_name(set, "/opt/acme", "acme", "local/acme");
	expect_name(set, "/opt/acme2 x", "acme2", "local/acme2");
	expect_name(set, "/opt/al2", "aligner", "local/aligners");
	expect_name(set, "/opt/other", "other", "exe");
	ruleset_unref(set);
	set = set_of("tools: [{exe: t, jar: tree-main, class: [org.tree.Main, Forest], tool: tree}]", true);
	expect_name(set, "/bin/java -jar /x/tree-main-2.1.0.jar", "tree", "local/tree");
	expect_name(set, "/bin/java -cp x org.tree.Main", "tree", "local/tree");
	expect_name(set, "/bin/java -cp x com.Forest", "tree", "local/tree");
	expect_name(set, "/bin/java -cp x com.Other", "Other", "java-class");
	ruleset_unref(set);
}

static void
subcommands_are_any_plain_word_or_those_of_a_list(void **state)
{
	struct ruleset *set = set_of("tools:\n"
	    "  - {exe: any, subcommands: true, values: [-C, --dir], skip: '+@'}\n"
	    "  - {exe: some, subcommands: [sort, index]}\n"
	    "  - {exe: none, subcommands: false}\n", false);

	(void)state;
	expect_name(set, "/b/any -C x --dir y -v +nightly @f build", "any build", "local/any");
	expect_name(set, "/b/any", "any", "local/any");
	expect_name(set, "/b/any ./x", "any", "local/any");
	expect_name(set, "/b/any ./x go", "any", "local/any");
	expect_name(set, "/b/any 7", "any", "local/any");
	expect_name(set, "/b/any -j 4 -o /x/y go", "any go", "local/any");
	/* A subcommand of a list may follow an option's value, but no other word. */
	expect_name(set, "/b/some -t 4 sort", "some sort", "local/some");
	expect_name(set, "/b/some -v sort", "some sort", "local/some");
	expect_name(set, "/b/some data sort", "some", "local/some");
	expect_name(set, "/b/some -t 4 data sort", "some", "local/some");
	expect_name(set, "/b/some view", "some", "local/some");
	expect_name(set, "/b/none sort", "none", "local/none");
	ruleset_unref(set);
}

static void
templates_leave_out_what_is_unknown(void **state)
{
	struct ruleset *set = set_of("tools:\n"
	    "  - {exe: cloud, tool: 'cloud {subcommand} {subcommand2}'}\n"
	    "  - {exe: run.sh, tool: 'lab {script} {first_arg}'}\n"
	    "  - {exe: braces, tool: '{{b}} {subcommand}'}\n"
	    "  - {exe: named, tool: other, subcommands: true}\n"
	    "  - {exe: as_is, tool: '{exe}!'}\n"
	    "  - {class: a.Main, tool: '{class} of {jar}'}\n", true);

	(void)state;
	expect_name(set, "/b/cloud s3 cp a b", "cloud s3 cp", "local/cloud");
	expect_name(set, "/b/cloud s3 --help", "cloud s3", "local/cloud");
	expect_name(set, "/b/cloud --help", "cloud", "local/cloud");
	expect_name(set, "/bin/bash /w/run.sh fast", "lab run.sh fast", "local/run.sh");
	expect_name(set, "/bin/bash /w/run.sh", "lab run.sh", "local/run.sh");
	expect_name(set, "/b/braces x", "{b} x", "local/braces");
	expect_name(set, "/b/braces", "{b}", "local/braces");
	expect_name(set, "/b/named go", "other go", "local/other");
	expect_name(set, "/b/as_is", "as_is!", "local/as_is");
	expect_name(set, "/bin/java a.Main", "a.Main of", "local/a.Main");
	ruleset_unref(set);
}

static void
conditions_see_the_words_of_their_own_rule(void **state)
{
	struct ruleset *set = set_of("tools:\n"
	    "  - {name: compose, exe: box, when: {subcommand: compose}, tool: 'box compose {subcommand2}', values: [-H]}\n"
	    "  - {exe: box, subcommands: true, values: [-H]}\n"
	    "  - {exe: python, versions: true, when: {script: train.py}, tool: 'training {subcommand}'}\n"
	    "  - {exe: convert, when: {argv_matches: '\\.png$'}, tool: imagemagick}\n"
	    "  - {name: lab, when: {path: /opt/lab/}, tool: 'lab {exe}', subcommands: [go]}\n"
	    "  - when: {cwd: /data/, argv: --special}\n"
	    "    tool: '{first_arg}: special'\n"
	    "  - {name: mine, when: {script: job.sh, uid: 1000}, tool: my job}\n"
	    "  - {exe: bash, role: shell, runs: {inline: [-c]}}\n", true);

	(void)state;
	expect_name(set, "/b/box -H x compose up", "box compose up", "local/compose");
	expect_name(set, "/b/box -H x run img", "box run", "local/box");
	expect_name(set, "/usr/bin/python3.11 /w/train.py fit", "training fit", "local/python");
	expect_name(set, "/usr/bin/python3.11 /w/test.py fit", "test.py", "interpreter");
	expect_name(set, "/b/convert a.png b.jpg", "imagemagick", "local/imagemagick");
	expect_name(set, "/b/convert data", "convert", "exe");
	expect_name(set, "/opt/lab/x", "lab x", "local/lab");
	/* Before the shipped rule for the same program, as all of the user's are. */
	expect_name(set, "/opt/lab/samtools view", "lab samtools", "local/lab");
	expect_name(set, "/usr/bin/samtools view --special", "view: special", "local.yaml:7");
	expect_name(set, "/usr/bin/samtools view", "samtools view", "bioinformatics/samtools");
	expect_name(set, "/bin/bash /w/job.sh", "my job", "local/mine");
	ruleset_unref(set);
}

/* Of such a program conditions on arguments do not hold, and those on the rest do. */
static void
programs_without_arguments_have_names_too(void **state)
{
	struct ruleset *set = set_of("tools:\n"
	    "  - {exe: a, when: {subcommand: go}, tool: never}\n"
	    "  - {exe: a, when: {not: {argv: x}}, tool: never}\n"
	    "  - {exe: a, when: {path: /opt/}, subcommands: true, tool: the a}\n"
	    "  - {exe: python, versions: true, runs: true}\n"
	    "  - {exe: box, role: multi_call}\n", false);
	static const char *const cases[][2] = {
		{ "/opt/a", "the a" }, { "/b/a", "a" }, { "/b/python3", "python" }, { "/b/box", "box" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct candidate s = { .exe = cases[i][0] };
		char tool[TOOL_NAME_SIZE];

		assert_true(tool_name(set, &s, tool, sizeof(tool), NULL));
		assert_string_equal(tool, cases[i][1]);
	}
	ruleset_unref(set);
}

static void
roles_say_what_serves_others(void **state)
{
	struct ruleset *set = set_of("tools:\n"
	    "  - {exe: w, role: wrapper}\n"
	    "  - {exe: g, role: glue}\n"
	    "  - {exe: s, role: shell, runs: {inline: [-c], next: [-o], value: [--rcfile]}}\n"
	    "  - {exe: m, role: multi_call}\n"
	    "  - {exe: t, role: tool}\n", false);

	(void)state;
	expect_name(set, "/b/w t", "w", "wrapper");
	expect_name(set, "/b/g", "g", "glue");
	expect_name(set, "/b/s -eo p -c t", "s", "shell");
	expect_name(set, "/b/s --rcfile x /w/t", "t", "local/t");
	expect_name(set, "/b/m t x", "t", "local/t");
	expect_name(set, "/b/m", "m", "local/m");
	assert_int_equal(tool_role(set, "w"), TOOL_WRAPPER);
	assert_int_equal(tool_role(set, "m"), TOOL_MULTI_CALL);
	ruleset_unref(set);
}

static void
interpreters_find_their_scripts(void **state)
{
	struct ruleset *set = set_of("tools:\n"
	    "  - {exe: lang, versions: true, runs: {inline: [-e, --eval], module: [-m], value: [-I, --path],\n"
	    "     attached: [-i], file: [-f, --file]}}\n"
	    "  - {exe: only, runs: {script: false, file: [-f]}}\n"
	    "  - {exe: plain, runs: true}\n"
	    "  - {exe: jvm, runs: {jar: [-jar], module: [-m], value: [-cp]}}\n"
	    "  - {exe: x.l, subcommands: true}\n", false);

	(void)state;
	expect_name(set, "/b/lang5.2 -I d x.l go", "x.l go", "local/x.l");
	expect_name(set, "/b/lang --path d --eval 1", "lang -e", "inline");
	expect_name(set, "/b/lang -ib y.l", "y.l", "interpreter");
	expect_name(set, "/b/lang -m mod", "mod", "interpreter");
	expect_name(set, "/b/lang --file=d/z.l", "z.l", "interpreter");
	expect_name(set, "/b/lang -v", "lang", "local/lang");
	expect_name(set, "/b/langx y.l", "langx", "exe");
	expect_name(set, "/b/only x.l", "only", "local/only");
	expect_name(set, "/b/only -f x.l", "x.l", "local/x.l");
	expect_name(set, "/b/plain5 x.l", "plain5", "exe");
	expect_name(set, "/b/plain x.l", "x.l", "local/x.l");
	expect_name(set, "/b/jvm -cp d a.b.Main", "Main", "java-class");
	expect_name(set, "/b/jvm -jar d/some-1.2.jar", "some", "java-jar");
	ruleset_unref(set);
}

static void
a_users_rule_wins_over_a_shipped_one(void **state)
{
	struct ruleset *set = set_of("tools:\n"
	    "  - {exe: samtools, tool: our samtools}\n"
	    "  - {exe: bwa, when: {cwd: /nowhere}, tool: never}\n"
	    "  - {exe: cat, role: tool}\n", true);
	const char *argv[] = { "samtools", "view" };
	struct candidate s = { .exe = "/b/samtools", .argv = argv, .argc = 2 };
	struct tool_reason reason;
	char tool[TOOL_NAME_SIZE];

	(void)state;
	expect_name(set, "/b/samtools view", "our samtools", "local/our samtools");
	expect_name(set, "/b/bwa mem", "bwa mem", "bioinformatics/bwa");
	expect_name(set, "/bin/cat x", "cat", "local/cat");
	assert_true(tool_explain(set, &s, tool, sizeof(tool), &reason));
	assert_string_equal(reason.rule, "local/our samtools");
	assert_string_equal(reason.location->file, "local.yaml");
	assert_int_equal(reason.location->line, 2);
	assert_int_equal(reason.role, TOOL_PLAIN);
	ruleset_unref(set);
}

static const struct {
	const char *text;
	const char *error;
} wrong[] = {
	{ "tools: samtools", "local.yaml:1:8: tools: this is a single value: expected a list of rules" },
	{ "tools:\n  - samtools", "local.yaml:2:5: this is a single value: expected a mapping with name, exe," },
	{ "tools:\n  - {exe: a, subcommand: true}",
	    "local.yaml:2:14: no key 'subcommand' here: did you mean 'subcommands'?" },
	{ "tools:\n  - {exe: a, colour: red}", "no key 'colour' here: there are name, exe, jar, class, when," },
	{ "tools:\n  - {tool: a}", "local.yaml:2:5: no program is selected: give exe," },
	{ "tools:\n  - {exe: /usr/bin/a}", "local.yaml:2:11: exe: '/usr/bin/a' is not a base name:" },
	{ "tools:\n  - exe: [a,\n      b/c]", "local.yaml:3:7: exe: 'b/c' is not a base name:" },
	{ "tools:\n  - {exe: []}", "local.yaml:2:11: exe: this is a list: expected a value or a list of values" },
	{ "tools:\n  - {exe: ''}", "exe: it is empty" },
	{ "tools:\n  - {jar: picard.jar}", "jar: 'picard.jar' must be without version and .jar" },
	{ "tools:\n  - {exe: a, role: wraper}", "local.yaml:2:20: role: 'wraper' is not a role: did you mean 'wrapper'?" },
	{ "tools:\n  - {exe: a, role: 7}", "role: '7' is not a role: there are tool, shell, wrapper, glue, multi_call" },
	{ "tools:\n  - {exe: a, subcommands: index}",
	    "local.yaml:2:27: subcommands: 'index' is neither true, for any plain word, nor a list" },
	{ "tools:\n  - {exe: a, subcommands: {a: b}}", "subcommands: this is a mapping: expected true," },
	{ "tools:\n  - {exe: a, subcommands: true, values: [-x, y]}",
	    "local.yaml:2:46: values: 'y' is no option: give one that begins with -" },
	{ "tools:\n  - {exe: a, tool: 'a {subcomand}'}", "tool: {subcomand} is not allowed here: did you mean {subcommand}?" },
	{ "tools:\n  - {exe: a, tool: 'a {'}", "local.yaml:2:20: tool: the { at character 3 begins no {name}" },
	{ "tools:\n  - {exe: a, tool: [b]}", "tool: this is a list: expected a single value" },
	{ "tools:\n  - {exe: a, versions: yes}", "versions: 'yes' is neither true nor false" },
	{ "tools:\n  - {exe: a, runs: false}", "runs: 'false' has no effect: remove it" },
	{ "tools:\n  - {exe: a, runs: {inlin: [-c]}}", "local.yaml:2:21: no key 'inlin' here: did you mean 'inline'?" },
	{ "tools:\n  - {exe: a, runs: {inline: [-c, cc]}}",
	    "local.yaml:2:34: inline: 'cc' is not allowed here: give - and one letter, or --name" },
	{ "tools:\n  - {exe: a, runs: {next: [--x]}}", "next: '--x' is not allowed here: give - and one letter" },
	{ "tools:\n  - {exe: a, runs: {jar: [-jar], inline: [-e]}}", "inline: cannot be combined with jar" },
	{ "tools:\n  - {exe: a, runs: {script: maybe}}", "script: 'maybe' is neither true nor false" },
	{ "tools:\n  - {exe: a, when: {tool: b}}", "local.yaml:2:21: condition 'tool' is not allowed here" },
	{ "tools:\n  - {exe: a, when: {argv_matches: '('}}", "argv_matches: not a regular expression:" },
	{ "tools:\n  - {exe: a, when: {}}", "there is no condition here" },
};

static void
errors_name_the_location_and_what_is_allowed(void **state)
{
	int failed = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const struct rules_extra extra = { "local.yaml", wrong[i].text, strlen(wrong[i].text) };
		const struct rules_options o = { .is_without_shipped = true, .extra = &extra, .n_extra = 1 };
		struct config_errors errors = { 0 };
		struct ruleset *set = NULL;
		char text[2048] = "none";
		int r = rules_load(&o, &set, &errors);

		if (errors.n > 0)
			config_error_text(&errors.list[0], text, sizeof(text));
		if (r != -EINVAL || set != NULL || strstr(text, wrong[i].error) == NULL) {
			print_error("%s\n  gives %d: %s\n  not: %s\n", wrong[i].text, r, text, wrong[i].error);
			failed++;
		}
		config_errors_done(&errors);
		ruleset_unref(set);
	}
	assert_int_equal(failed, 0);
}

static void
every_wrong_rule_is_reported_at_once(void **state)
{
	static const char text[] = "tools:\n  - {exe: a, role: b}\n  - {exe: c}\n  - {exe: d, role: e}\n";
	const struct rules_extra extra = { "local.yaml", text, strlen(text) };
	const struct rules_options o = { .is_without_shipped = true, .extra = &extra, .n_extra = 1 };
	struct config_errors errors = { 0 };
	struct ruleset *set = NULL;

	(void)state;
	assert_int_equal(rules_load(&o, &set, &errors), -EINVAL);
	assert_int_equal(errors.n, 2);
	assert_int_equal(errors.list[1].line, 4);
	config_errors_done(&errors);
}

static void
no_tools_at_all_are_fine(void **state)
{
	static const char *const texts[] = { "", "tools:\n", "tools: []\n", "exclude: [{exe: x}]\n" };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct ruleset *set = set_of(texts[i], false);

		assert_non_null(set->tools);
		assert_int_equal(set->tools->n_rules, 0);
		expect_name(set, "/b/bash -c x", "bash", "exe");
		ruleset_unref(set);
	}
}

static void
ten_thousand_rules_are_found_each(void **state)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	struct ruleset *set;

	(void)state;
	fputs("tools:\n", f);
	for (int i = 0; i < 10000; i++)
		fprintf(f, "  - {exe: tool%d, tool: the %d, subcommands: true}\n", i, i);
	fclose(f);
	set = set_of(text, false);
	free(text);
	assert_int_equal(set->tools->n_rules, 10000);
	for (int i = 0; i < 10000; i += 37) {
		char command[64], name[64], rule[64];

		snprintf(command, sizeof(command), "/b/tool%d go", i);
		snprintf(name, sizeof(name), "the %d go", i);
		snprintf(rule, sizeof(rule), "local/the %d", i);
		expect_name(set, command, name, rule);
	}
	/* Keys are spread: no bucket has more than a few. */
	for (size_t b = 0; b < set->tools->n_buckets; b++) {
		size_t n = 0;

		for (const struct tool_key *k = set->tools->buckets[b]; k != NULL; k = k->next)
			n++;
		assert_true(n < 12);
	}
	ruleset_unref(set);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rule_is_found_by_each_of_its_names),
		cmocka_unit_test(subcommands_are_any_plain_word_or_those_of_a_list),
		cmocka_unit_test(templates_leave_out_what_is_unknown),
		cmocka_unit_test(conditions_see_the_words_of_their_own_rule),
		cmocka_unit_test(programs_without_arguments_have_names_too),
		cmocka_unit_test(roles_say_what_serves_others),
		cmocka_unit_test(interpreters_find_their_scripts),
		cmocka_unit_test(a_users_rule_wins_over_a_shipped_one),
		cmocka_unit_test(errors_name_the_location_and_what_is_allowed),
		cmocka_unit_test(every_wrong_rule_is_reported_at_once),
		cmocka_unit_test(no_tools_at_all_are_fine),
		cmocka_unit_test(ten_thousand_rules_are_found_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
