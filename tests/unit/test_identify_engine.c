/* SPDX-License-Identifier: Apache-2.0 */
/* engine: the shipped rules on real commands, and every feature of rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/text.h"
#include "identify/engine.h"
#include "identify/tool.h"
#include "shipped_rules.h"

#define ARGS(...) (const char *const[]){ __VA_ARGS__ }, sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *)

enum {
	ARGS_MAX = 64,
	PARENTS_MAX = 4,
};

/* A program of the fixtures with its ancestors. */
struct program {
	struct candidate s;
	const char *argv[ARGS_MAX];
	char tool[TOOL_NAME_SIZE];
};

static const struct candidate *
read_program(const json_t *from, struct program *p, size_t n)
{
	const json_t *argv = json_object_get(from, "argv"), *parent = json_object_get(from, "parent");
	const char *exe = json_string_value(json_object_get(from, "exe"));

	assert_true(n > 0);
	assert_true(json_array_size(argv) < ARGS_MAX);
	memset(p, 0, sizeof(*p));
	for (size_t i = 0; i < json_array_size(argv); i++)
		p->argv[i] = json_string_value(json_array_get(argv, i));
	p->s.exe = exe;
	p->s.cwd = json_string_value(json_object_get(from, "cwd"));
	p->s.argv = argv != NULL && !json_is_null(argv) ? p->argv : NULL;
	p->s.argc = json_array_size(argv);
	tool_name(shipped, &p->s, p->tool, sizeof(p->tool), NULL);
	if (parent != NULL)
		p->s.parent = read_program(parent, p + 1, n - 1);
	return &p->s;
}

static const char *
role_name(enum engine_role role)
{
	static const char *const names[] = {
		[ENGINE_NONE] = "none", [ENGINE_DRIVER] = "driver", [ENGINE_TASK] = "task", [ENGINE_JOINS] = "joins",
		[ENGINE_NAMES] = "names",
	};

	return names[role];
}

static unsigned wrong;

static void
check(const char *name, const char *field, const char *got, const json_t *want)
{
	const char *text = want != NULL ? json_string_value(want) : "";

	if (got == NULL)
		got = "";
	if (strcmp(got, text) != 0) {
		print_error("%s: %s is '%s', not '%s'\n", name, field, got, text);
		wrong++;
	}
}

static void
check_case(const json_t *c)
{
	const char *name = json_string_value(json_object_get(c, "name"));
	const json_t *expect = json_object_get(c, "expect"), *attempt = json_object_get(expect, "attempt");
	const char *strength = json_string_value(json_object_get(expect, "strength"));
	enum engine_strength strong = strength != NULL ? STRENGTH_WEAK : STRENGTH_ENGINE;
	struct program programs[PARENTS_MAX];
	struct engine_verdict v;
	bool is_good;

	memset(&v, 'x', sizeof(v));
	engine_judge(shipped, read_program(c, programs, PARENTS_MAX),
	    json_string_value(json_object_get(c, "inside")), &v);
	check(name, "role", role_name(v.role), json_object_get(c, "role"));
	check(name, "engine", v.engine, json_object_get(c, "engine"));
	check(name, "pipeline", v.pipeline, json_object_get(expect, "pipeline"));
	check(name, "run_name", v.run_name, json_object_get(expect, "run_name"));
	check(name, "run_key", v.run_key, json_object_get(expect, "run_key"));
	check(name, "root", v.root, json_object_get(expect, "root"));
	check(name, "task_id", v.task_id, json_object_get(expect, "task_id"));
	check(name, "task", v.task, json_object_get(expect, "task"));
	check(name, "sample", v.sample, json_object_get(expect, "sample"));
	check(name, "work_dir", v.work_dir, json_object_get(expect, "work_dir"));
	check(name, "header", v.header, json_object_get(expect, "header"));
	is_good = v.attempt.known == (attempt != NULL) &&
	    (attempt == NULL || v.attempt.value == (int32_t)json_integer_value(attempt)) &&
	    v.is_overhead == json_is_true(json_object_get(expect, "overhead")) &&
	    v.has_tasks == json_is_true(json_object_get(expect, "has_tasks")) &&
	    (v.role == ENGINE_NONE ? v.strength == STRENGTH_NONE : v.strength == strong) &&
	    ((v.rule != NULL && v.source != NULL && v.confidence > 0) == (v.role != ENGINE_NONE || v.is_overhead));
	if (!is_good) {
		print_error("%s: attempt %d (%d), overhead %d, has_tasks %d, strength %d, rule %s\n", name,
		    v.attempt.known, v.attempt.value, v.is_overhead, v.has_tasks, v.strength,
		    v.rule != NULL ? v.rule->name : "none");
		wrong++;
	}
}

static void
shipped_rules_know_the_engines(void **state)
{
	json_error_t error;
	json_t *all = json_load_file(SOURCE_TREE "/tests/fixtures/engines.json", 0, &error);
	const json_t *cases = json_object_get(all, "cases");

	(void)state;
	if (all == NULL)
		print_error("engines.json:%d: %s\n", error.line, error.text);
	assert_true(json_array_size(cases) >= 60);
	for (size_t i = 0; i < json_array_size(cases); i++)
		check_case(json_array_get(cases, i));
	json_decref(all);
	assert_int_equal(wrong, 0);
}

static void
nextflows_header_names_the_task(void **state)
{
	static const struct {
		const char *text, *task, *sample;
	} headers[] = {
		{ "#!/bin/bash\n# NEXTFLOW TASK: SUB:ALIGN (S1)\nset -e\n", "SUB:ALIGN", "S1" },
		{ "#!/bin/bash\n# NEXTFLOW TASK: INDEX\nset -e\n", "INDEX", "" },
		{ "#!/bin/bash\n# NEXTFLOW TASK: OKP (1)\n", "OKP", "" },	/* a number of its own */
		{ "#!/bin/bash\n# NEXTFLOW TASK: OKP (10045)\n", "OKP", "10045" },
		{ "#!/bin/bash\n### ---\n### name: 'NF:RNA:SORT (S 2 (old))'\n### container: 'x'\n", "NF:RNA:SORT",
		    "S 2 (old)" },
		{ "#!/bin/bash\n### ---\n### name: 'INDEX'\n", "INDEX", "" },
	};
	char task[ENGINE_NAME_SIZE], sample[ENGINE_NAME_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
		assert_true(engine_read_header(shipped, "nextflow", headers[i].text, strlen(headers[i].text), task,
		    sample));
		assert_string_equal(task, headers[i].task);
		assert_string_equal(sample, headers[i].sample);
	}
	assert_false(engine_read_header(shipped, "nextflow", "#!/bin/bash\nset -e\n", 19, task, sample));
	assert_string_equal(task, "");
	assert_string_equal(sample, "");
	assert_false(engine_read_header(shipped, "snakemake", headers[0].text, strlen(headers[0].text), task, sample));
	assert_false(engine_read_header(shipped, "nextflow", "", 0, task, sample));
}

static void
a_headers_bytes_become_utf8(void **state)
{
	static const char text[] = "# NEXTFLOW TASK: A\xff\xc3\xa9 (\xc3)\n";
	char task[ENGINE_NAME_SIZE], sample[ENGINE_NAME_SIZE];

	(void)state;
	assert_true(engine_read_header(shipped, "nextflow", text, sizeof(text) - 1, task, sample));
	assert_string_equal(task, "A?\xc3\xa9");
	assert_string_equal(sample, "?");
}

static struct engine_verdict
judge(const struct ruleset *rules, const char *exe, const char *cwd, const char *const *argv, size_t argc)
{
	struct candidate s = { .exe = exe, .cwd = cwd, .argv = argv, .argc = argc };
	char tool[TOOL_NAME_SIZE];
	struct engine_verdict v;

	tool_name(rules, &s, tool, sizeof(tool), NULL);
	engine_judge(rules, &s, NULL, &v);
	return v;
}

static void
long_names_are_cut_and_long_ids_stay_different(void **state)
{
	char job[2][2 * ENGINE_NAME_SIZE + 20];
	struct engine_verdict v[2];

	(void)state;
	for (size_t shift = 0; shift < 2; shift++) {
		for (size_t i = 0; i < 2; i++) {
			size_t n = shift;

			memset(job[i], 'r', shift);
			for (; n + 2 < sizeof(job[i]) - 10; n += 2)
				memcpy(job[i] + n, "\xc3\xa9", 2);
			strcpy(job[i] + n, i == 0 ? ":a=1" : ":a=2");
			v[i] = judge(shipped, "/usr/bin/python3", "/w", ARGS("python3", "/usr/bin/snakemake",
			    "--target-jobs", job[i]));
			assert_int_equal(v[i].role, ENGINE_TASK);
			assert_true(strlen(v[i].task) >= ENGINE_NAME_SIZE - 2);
			assert_true(text_is_plain(v[i].task, strlen(v[i].task)));
			assert_true(text_is_plain(v[i].task_id, strlen(v[i].task_id)));
			assert_true(strlen(v[i].task_id) >= ENGINE_NAME_SIZE - 3);
		}
		assert_string_equal(v[0].task, v[1].task);
		assert_string_not_equal(v[0].task_id, v[1].task_id);
	}
}

static void
a_driver_and_its_tasks_have_the_same_root(void **state)
{
	char root[ENGINE_PATH_SIZE];
	static const char *const works[] = { "work", "./work/", "../run/work", "/data//run/./work", "/data/run/x/../work" };

	(void)state;
	strcpy(root, judge(shipped, "/usr/bin/bash", "/data/run/work/31/3c1293c6965300653aca74c68fd5e2",
	    ARGS("/bin/bash", "-ue", ".command.run")).root);
	assert_string_equal(root, "/data/run/work");
	for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++) {
		assert_string_equal(judge(shipped, "/usr/bin/java", "/data/run", ARGS("java", "nextflow.cli.Launcher",
		    "run", "x.nf", "-w", works[i])).root, root);
	}
	/* an unknown value is no path */
	assert_string_equal(judge(shipped, "/usr/bin/java", NULL, ARGS("java", "nextflow.cli.Launcher", "run", "x.nf",
	    "-w", "work")).root, "");
	assert_string_equal(judge(shipped, "/usr/bin/java", "/", ARGS("java", "nextflow.cli.Launcher", "run", "x.nf",
	    "-w", "../..")).root, "/");
}

static void
a_path_that_does_not_fit_is_none(void **state)
{
	static char cwd[2 * ENGINE_PATH_SIZE];

	(void)state;
	memset(cwd, 'd', sizeof(cwd) - 1);
	cwd[0] = '/';
	assert_string_equal(judge(shipped, "/usr/bin/python3", cwd, ARGS("python3", "/usr/bin/snakemake")).root, "");
	cwd[ENGINE_PATH_SIZE - 1] = '\0';
	assert_string_equal(judge(shipped, "/usr/bin/python3", cwd, ARGS("python3", "/usr/bin/snakemake")).root, cwd);
}

static void
what_only_looks_like_a_snakemake_job_is_none(void **state)
{
	static const char exe[] = "/usr/bin/python3";
	static const char *const jobs[] = { "", ":sample=A", "align" };

	(void)state;
	assert_int_not_equal(judge(shipped, exe, "/w", ARGS("python3", "snakemake", "--target-jobs")).role, ENGINE_TASK);
	for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
		assert_int_not_equal(judge(shipped, exe, "/w", ARGS("python3", "snakemake", "--target-jobs",
		    jobs[i])).role, ENGINE_TASK);
	}
	assert_int_equal(judge(shipped, "/bin/sh", "/w", ARGS("sh", "-c", "x --target-jobs a:b=1")).role, ENGINE_NONE);
	assert_int_equal(judge(shipped, "/bin/sh", "/w", ARGS("sh", "-c", "snakemake --target-jobs '")).role, ENGINE_NONE);
}

/* Rules of a test, beside none that are shipped. */
static struct ruleset *
rules_of(const char *yaml)
{
	const struct rules_extra extra = { "f.yaml", yaml, strlen(yaml) };
	const struct rules_options o = { .is_without_shipped = true, .extra = &extra, .n_extra = 1 };
	struct config_errors errors = { 0 };
	struct ruleset *set = NULL;

	if (rules_load(&o, &set, &errors) < 0)
		config_errors_print(&errors, stderr);
	config_errors_done(&errors);
	assert_non_null(set);
	return set;
}

static void
the_surest_evidence_is_asked_first(void **state)
{
	struct ruleset *set = rules_of("engines:\n"
	    "- engine: a\n"
	    "  tasks: [{when: {exe: x}, joins: true, task: joined}]\n"
	    "- engine: b\n"
	    "  drivers: [{when: {exe: x, argv: drive}, pipeline: driven}]\n"
	    "- engine: c\n"
	    "  tasks: [{when: {exe: x, argv: task}, task: named}]\n");

	(void)state;
	assert_string_equal(judge(set, "/x", "/", ARGS("x", "drive", "task")).engine, "c");
	assert_string_equal(judge(set, "/x", "/", ARGS("x", "drive")).engine, "b");
	assert_string_equal(judge(set, "/x", "/", ARGS("x")).engine, "a");
	assert_int_equal(judge(set, "/x", "/", ARGS("x")).role, ENGINE_JOINS);
	ruleset_unref(set);
}

static void
pieces_are_found_in_their_order(void **state)
{
	struct ruleset *set = rules_of("engines:\n"
	    "- engine: e\n"
	    "  tasks:\n"
	    "  - when: {exe: x}\n"
	    "    options: {key: [-k, --key], n: --try}\n"
	    "    values: [-v]\n"
	    "    after: {word: [run, go]}\n"
	    "    find:\n"
	    "    - {cwd: '/(?<task>[a-z]+)$', exe: '/(?<task>[^/]+)$'}\n"
	    "    - {argv: ['(?<one>one)', '(?<two>two)'], optional: true}\n"
	    "    - {key: '^(?<head>.)', optional: true}\n"
	    "    task_id: ['{key}/{word}', '{word}', '{{none}}']\n"
	    "    sample: ['{two}', '{one}']\n"
	    "    attempt: '{n}'\n"
	    "    run_name: '{head}'\n");
	struct engine_verdict v = judge(set, "/bin/x", "/a/b", ARGS("x", "-k=K", "run", "-v", "no", "-x", "main", "one"));

	(void)state;
	assert_string_equal(v.task, "b");
	assert_string_equal(v.task_id, "K/main");
	assert_string_equal(v.sample, "one");
	assert_string_equal(v.run_name, "K");
	assert_false(v.attempt.known);
	assert_string_equal(v.source, "f.yaml:4");
	v = judge(set, "/bin/x", "/7", ARGS("x", "--key", "--try=3", "/usr/bin/go", "--", "-w", "two"));
	assert_string_equal(v.task, "x");
	assert_string_equal(v.task_id, "--try=3/-w");
	assert_string_equal(v.sample, "two");
	assert_int_equal(v.attempt.value, 3);
	v = judge(set, "/bin/x", "/7", ARGS("x", "--key"));
	assert_string_equal(v.task_id, "{none}");
	v = judge(set, "/bin/x", "/7", ARGS("x", "--try", "3x", "run"));
	assert_false(v.attempt.known);
	assert_string_equal(v.task_id, "{none}");
	ruleset_unref(set);
}

/* Rules are passed over by the names that a program has: never one that could hold. */
static void
a_rule_is_found_by_whatever_it_asks_for(void **state)
{
	static const char *const conditions[] = {
		"exe: x", "exe: [y, x]", "path: /bin/", "not: {exe: y}", "any: [{exe: y}, {argv: a}]",
		"any: [{exe: y}, {any: [{script: z}, {cwd: /w}]}]", "all: [{exe: x}, {argv: a}]", "argv: a, exe: [x, y, z]",
		"any: [{exe: x}, {script: s}]", "first_arg: a",
	};
	char yaml[256];

	(void)state;
	for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++) {
		struct ruleset *set;

		snprintf(yaml, sizeof(yaml), "engines: [{engine: e, drivers: [{when: {%s}}]}]\n", conditions[i]);
		set = rules_of(yaml);
		if (judge(set, "/bin/x", "/w", ARGS("x", "a")).role != ENGINE_DRIVER)
			fail_msg("%s", conditions[i]);
		ruleset_unref(set);
	}
	assert_string_equal(judge(shipped, "/usr/bin/python3", "/w", ARGS("python3", "-m", "snakemake")).engine, "snakemake");
	assert_string_equal(judge(shipped, "/opt/snakemake", "/w", ARGS("snakemake")).engine, "snakemake");
}

static void
a_users_rule_comes_before_the_shipped(void **state)
{
	static const char yaml[] = "engines:\n- engine: ours\n  drivers: [{when: {exe: make, argv: -j4}, tasks: true}]\n";
	const struct rules_extra extra = { "added", yaml, sizeof(yaml) - 1 };
	const struct rules_options o = { .extra = &extra, .n_extra = 1 };
	struct config_errors errors = { 0 };
	struct ruleset *set = NULL;

	(void)state;
	assert_int_equal(rules_load(&o, &set, &errors), 0);
	assert_string_equal(judge(set, "/usr/bin/make", "/s", ARGS("make", "-j4")).engine, "ours");
	assert_string_equal(judge(set, "/usr/bin/make", "/s", ARGS("make", "-j2")).engine, "make");
	ruleset_unref(set);
}

static void
without_rules_there_is_no_engine(void **state)
{
	struct ruleset *set = rules_of("exclude: [{exe: nobody}]\n");

	(void)state;
	assert_int_equal(judge(set, "/usr/bin/make", "/", ARGS("make")).role, ENGINE_NONE);
	ruleset_unref(set);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shipped_rules_know_the_engines),
		cmocka_unit_test(nextflows_header_names_the_task),
		cmocka_unit_test(a_headers_bytes_become_utf8),
		cmocka_unit_test(long_names_are_cut_and_long_ids_stay_different),
		cmocka_unit_test(a_driver_and_its_tasks_have_the_same_root),
		cmocka_unit_test(a_path_that_does_not_fit_is_none),
		cmocka_unit_test(what_only_looks_like_a_snakemake_job_is_none),
		cmocka_unit_test(the_surest_evidence_is_asked_first),
		cmocka_unit_test(pieces_are_found_in_their_order),
		cmocka_unit_test(a_rule_is_found_by_whatever_it_asks_for),
		cmocka_unit_test(a_users_rule_comes_before_the_shipped),
		cmocka_unit_test(without_rules_there_is_no_engine),
	};

	return cmocka_run_group_tests(tests, shipped_load, shipped_unload);
}
