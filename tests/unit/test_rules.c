/* SPDX-License-Identifier: Apache-2.0 */
/* rules: files combined into one set, their precedence, conditions, and errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pwd.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "model/wrapper_rules.h"
#include "rules/rules.h"
#include "configs.h"
#include "tree.h"

/* What is wrong with a file of that text, one a line; "" nothing. The caller frees it. */
static char *
rules_wrong_with(const char *yaml, struct ruleset **ret)
{
	const struct rules_extra extra = { "f", yaml, strlen(yaml) };
	const struct rules_options o = { .is_without_shipped = true, .extra = &extra, .n_extra = 1 };
	struct config_errors errors = { 0 };
	struct ruleset *set = NULL;
	int r = rules_load(&o, &set, &errors);

	assert_int_equal(r, errors.n > 0 ? -EINVAL : 0);
	assert_true((set == NULL) == (r < 0));
	if (ret != NULL)
		*ret = set;
	else
		ruleset_unref(set);
	return errors_text(&errors);
}

static void
rules_wrong(const char *yaml, const char *want)
{
	char *got = rules_wrong_with(yaml, NULL);

	assert_string_equal(got, want);
	free(got);
}

/* A set that must be right. */
static struct ruleset *
rules_of(const char *yaml)
{
	struct ruleset *set;
	char *got = rules_wrong_with(yaml, &set);

	assert_string_equal(got, "");
	free(got);
	return set;
}

static struct ruleset *
rules_in(const char *dir, bool is_without_shipped)
{
	const struct rules_options o = { .dir = dir, .is_without_shipped = is_without_shipped };
	struct config_errors errors = { 0 };
	struct ruleset *set = NULL;
	char *text;

	rules_load(&o, &set, &errors);
	text = errors_text(&errors);
	assert_string_equal(text, "");
	free(text);
	return set;
}

/* A condition in brackets: "all(exe=a any(uid=1-2 not(comm=x)))". */
static void
write_condition(const struct condition *c, FILE *f)
{
	const char *space = "";

	fputs(condition_kind_name(c->kind), f);
	if (c->pattern != NULL)
		fprintf(f, "~%s", pattern_text(c->pattern));
	else if (c->kind == CONDITION_UID)
		fprintf(f, "=%u-%u", c->low, c->high);
	else if (c->text != NULL)
		fprintf(f, "=%s", c->text);
	if (c->first == NULL)
		return;
	fputc('(', f);
	for (const struct condition *child = c->first; child != NULL; child = child->next, space = " ") {
		fputs(space, f);
		write_condition(child, f);
	}
	fputc(')', f);
}

static void
condition_is(const char *yaml, const char *want)
{
	char *file, *got = NULL;
	struct ruleset *set;
	size_t size;
	FILE *f = open_memstream(&got, &size);

	assert_true(asprintf(&file, "exclude:\n  - %s\n", yaml) > 0);
	set = rules_of(file);
	assert_int_equal(set->follow.n_exclude, 1);
	write_condition(set->follow.exclude[0].when, f);
	fclose(f);
	assert_string_equal(got, want);
	free(got);
	free(file);
	ruleset_unref(set);
}

static void
conditions_are_read(void **state)
{
	(void)state;
	condition_is("exe: bwa", "exe=bwa");
	condition_is("{exe: [bwa, STAR]}", "any(exe=bwa exe=STAR)");
	condition_is("{exe: [bwa], path: /opt/}", "all(any(exe=bwa) path=/opt/)");
	condition_is("{name: x, comm: a, tool: b c, argv: -x, argv_contains: y, first_arg: z}",
	    "all(comm=a tool=b c argv=-x argv_contains=y first_arg=z)");
	condition_is("{subcommand: mem, script: a.py, jar: picard, class: a.B, cwd: /w, cgroup: /a/*/b, image: 'x/*'}",
	    "all(subcommand=mem script=a.py jar=picard class=a.B cwd=/w cgroup=/a/*/b image=x/*)");
	condition_is("{argv_matches: a+, command_matches: ['b$', c], cwd_matches: d, cgroup_matches: '^/e'}",
	    "all(argv_matches~a+ any(command_matches~b$ command_matches~c) cwd_matches~d cgroup_matches~^/e)");
	condition_is("{not: {exe: a, uid: 0}}", "not(all(exe=a uid=0-0))");
	condition_is("{not: {exe: a}}", "not(exe=a)");
	condition_is("{parent: {exe: cron, not: {uid: 0}}}", "parent(all(exe=cron not(uid=0-0)))");
	condition_is("{any: [{exe: a}, {all: [{comm: b}, {comm: c}]}]}", "any(exe=a all(comm=b comm=c))");
	condition_is("{name: n, when: {exe: a}}", "exe=a");
	condition_is("{first_arg: 1}", "first_arg=1");
}

static void
users_are_numbers_ranges_or_names(void **state)
{
	const struct passwd *me = getpwuid(0);
	char yaml[128], want[128];

	(void)state;
	condition_is("uid: 1000", "uid=1000-1000");
	condition_is("uid: 1000-60000", "uid=1000-60000");
	condition_is("uid: [5, 7-7]", "any(uid=5-5 uid=7-7)");
	condition_is("uid: 4294967294", "uid=4294967294-4294967294");
	snprintf(yaml, sizeof(yaml), "uid: %s", me->pw_name);
	snprintf(want, sizeof(want), "uid=%u-%u", (unsigned)me->pw_uid, (unsigned)me->pw_uid);
	condition_is(yaml, want);
	rules_wrong("exclude: [{uid: 60000-1000}]",
	    "f:1:17: uid: no number is in '60000-1000': write the lower one first\n");
	rules_wrong("exclude: [{uid: 4294967295}]", "f:1:17: uid: '4294967295' is no uid: give a number up to "
	    "4294967294, two of them as 1000-60000, or a user's name\n");
	rules_wrong("exclude: [{uid: -1}]", "f:1:17: uid: '-1' is no uid: give a number up to 4294967294, two of "
	    "them as 1000-60000, or a user's name\n");
	rules_wrong("exclude: [{uid: no-such-user}]", "f:1:17: uid: no user 'no-such-user' on this host: give a "
	    "name that it knows, or a number\n");
}

static void
trust_is(const char *rule, enum follow_trust want)
{
	char *file;
	struct ruleset *set;

	assert_true(asprintf(&file, "exclude:\n  - %s\n", rule) > 0);
	set = rules_of(file);
	if (set->follow.exclude[0].trust != want)
		fail_msg("%s: trust is %d, not %d", rule, set->follow.exclude[0].trust, want);
	ruleset_unref(set);
	free(file);
}

static void
an_exclude_rule_trusts_whom_no_user_can_pass_for(void **state)
{
	struct ruleset *set;

	(void)state;
	trust_is("{exe: sshd}", TRUST_EXE);
	trust_is("{path: /opt/}", TRUST_EXE);
	trust_is("{uid: 1000-2000}", TRUST_ANY);
	trust_is("{cgroup: /system.slice/x.service}", TRUST_ANY);
	trust_is("{cgroup: /a, uid: 5}", TRUST_ANY);
	trust_is("{cgroup_matches: x}", TRUST_USER);
	trust_is("{exe: sshd, cgroup: /a}", TRUST_EXE);
	trust_is("{exe: bash, argv_contains: x}", TRUST_USER);
	trust_is("{script: x}", TRUST_USER);
	trust_is("{uid: 5, not: {comm: x}}", TRUST_USER);
	trust_is("{any: [{uid: 5}, {exe: x}]}", TRUST_EXE);
	trust_is("{parent: {exe: x}}", TRUST_USER);
	trust_is("{exe: sshd, trust: any}", TRUST_ANY);
	trust_is("{name: x, trust: any, when: {argv: x}}", TRUST_ANY);
	trust_is("{when: {argv: x}, trust: system}", TRUST_USER);
	set = rules_of("include: [{exe: x}]\n");
	assert_int_equal(set->follow.include[0].trust, TRUST_ANY);
	ruleset_unref(set);
	rules_wrong("exclude: [{exe: x, trust: all}]", "f:1:27: trust: no 'all' here: there are system, any\n");
	rules_wrong("exclude: [{exe: x, trust: }]", "f:1:27: trust: no value: give a single value, or remove it\n");
	rules_wrong("include: [{exe: x, trust: any}]", "f:1:20: no condition 'trust': there are all, any, not, parent, "
	    "exe, path, comm, tool, argv, argv_contains, argv_matches, command_matches, first_arg, subcommand, script, jar, "
	    "class, cwd, cwd_matches, cgroup, cgroup_matches, uid, image\n");
	rules_wrong("include: [{trust: any, when: {exe: x}}]", "f:1:12: no key 'trust' here: there are name, when\n");
}

static void
unknown_names_get_the_nearest_right_one(void **state)
{
	(void)state;
	rules_wrong("exclud: []\nincludes: []\ntoools: []\nfoo: 1\n",
	    "f:1:1: no section 'exclud': did you mean 'exclude'?\n"
	    "f:2:1: no section 'includes': did you mean 'include'?\n"
	    "f:3:1: no section 'toools': did you mean 'tools'?\n"
	    "f:4:1: no section 'foo': there are include, exclude, tools, engines, schedulers, containers, wrappers\n");
	rules_wrong("exclude:\n  - exee: bwa\n  - nmae: x\n    exe: bwa\n  - {not: {argv_contain: x}}\n",
	    "f:2:5: no condition 'exee': did you mean 'exe'?\n"
	    "f:3:5: no condition 'nmae': did you mean 'name'?\n"
	    "f:5:12: no condition 'argv_contain': did you mean 'argv_contains'?\n");
	rules_wrong("exclude: [{colour: red}]", "f:1:12: no condition 'colour': there are all, any, not, parent, exe, "
	    "path, comm, tool, argv, argv_contains, argv_matches, command_matches, first_arg, subcommand, script, jar, "
	    "class, cwd, cwd_matches, cgroup, cgroup_matches, uid, image\n");
	rules_wrong("exclude: [{name: x, when: {exe: a}, whne: b}]",
	    "f:1:37: no key 'whne' here: did you mean 'when'?\n");
	rules_wrong("exclude: [{when: {exe: a}, comm: b}]", "f:1:28: 'comm' is beside `when`: move it under `when`\n");
	rules_wrong("exclude: [{when: {name: a, exe: b}}]", "f:1:19: no condition 'name': there are all, any, not, "
	    "parent, exe, path, comm, tool, argv, argv_contains, argv_matches, command_matches, first_arg, subcommand, "
	    "script, jar, class, cwd, cwd_matches, cgroup, cgroup_matches, uid, image\n");
}

static void
values_of_the_wrong_kind_are_reported(void **state)
{
	(void)state;
	rules_wrong("exclude: bwa\n", "f:1:10: exclude is a list of rules, each a line such as `- exe: sshd`, not a "
	    "single value\n");
	rules_wrong("include: {exe: a}\n", "f:1:10: include is a list of rules, each a line such as `- exe: sshd`, not "
	    "a mapping\n");
	rules_wrong("exclude: [bwa, [a], ~]\n",
	    "f:1:11: this is a single value: a rule is a mapping of conditions, such as {exe: sshd}\n"
	    "f:1:16: this is a list: a rule is a mapping of conditions, such as {exe: sshd}\n"
	    "f:1:21: this is nothing: a rule is a mapping of conditions, such as {exe: sshd}\n");
	rules_wrong("exclude: [{}, {name: x}]\n",
	    "f:1:11: there is no condition here: it would hold for every program; give one, such as exe: bwa\n"
	    "f:1:15: there is no condition here: it would hold for every program; give one, such as exe: bwa\n");
	rules_wrong("exclude: [{exe: }]\n", "f:1:17: exe: no value: give a single value, or remove it\n");
	rules_wrong("exclude: [{exe: ''}]\n", "f:1:17: exe: it is empty: give a value, or remove it\n");
	rules_wrong("exclude: [{exe: []}]\n", "f:1:17: exe: the list is empty: give a value, or remove it\n");
	rules_wrong("exclude: [{exe: [a, [b], {c: d}]}]\n", "f:1:21: this is a list: expected a single value\n"
	    "f:1:26: this is a mapping: expected a single value\n");
	rules_wrong("exclude: [{any: {exe: a}}]\n",
	    "f:1:17: any: this is a mapping: expected a list of mappings, such as [{exe: a}, {exe: b}]\n");
	rules_wrong("exclude: [{all: [a]}]\n",
	    "f:1:18: this is a single value: expected a mapping of conditions, such as {exe: bwa}\n");
	rules_wrong("exclude: [{all: []}]\n", "f:1:17: all: the list is empty: give a value, or remove it\n");
	rules_wrong("exclude: [{not: [{exe: a}]}]\n",
	    "f:1:17: this is a list: expected a mapping of conditions, such as {exe: bwa}\n");
	rules_wrong("exclude: [{parent: cron}]\n",
	    "f:1:20: this is a single value: expected a mapping of conditions, such as {exe: bwa}\n");
	rules_wrong("exclude: [{name: [a], exe: b}]\n", "f:1:18: name: this is a list: expected a single value\n");
	rules_wrong("exclude: [{argv_matches: 'a(b'}]\n",
	    "f:1:26: argv_matches: not a regular expression: missing closing parenthesis, at character 4\n");
}

static void
what_can_never_hold_is_reported(void **state)
{
	(void)state;
	rules_wrong("exclude: [{exe: /usr/bin/bwa}]\n",
	    "f:1:17: exe: '/usr/bin/bwa' is a path: give its last part, or write path:\n");
	rules_wrong("exclude: [{exe: 'python*'}]\n",
	    "f:1:17: exe: takes no *: list the names, or use command_matches\n");
	rules_wrong("exclude: [{script: a/b.py}]\n", "f:1:20: script: 'a/b.py' is a path: give its last part\n");
	rules_wrong("exclude: [{path: bwa}, {cwd: a/b}, {cgroup: x.slice}]\n",
	    "f:1:18: path: 'bwa' is not an absolute path: begin it with /\n"
	    "f:1:30: cwd: 'a/b' is not an absolute path: begin it with /\n"
	    "f:1:45: cgroup: 'x.slice' is not an absolute path: begin it with /\n");
	rules_wrong("exclude: [{cwd: '/work/*'}]\n",
	    "f:1:17: cwd: takes no *: end it in / to mean all below, or use cwd_matches\n");
	rules_wrong("exclude: [{comm: 0123456789abcdef}]\n",
	    "f:1:18: comm: the kernel keeps 15 bytes of a name: write '0123456789abcde'\n");
	rules_wrong("exclude: [{comm: \"a\\nb\\tc0123456789abcdef\"}]\n",
	    "f:1:18: comm: the kernel keeps 15 bytes of a name: write 'a\\nb\\tc0123456789'\n");
}

static void
rules_know_their_location(void **state)
{
	struct ruleset *set = rules_of("exclude:\n- exe: a\n- {name: my rule, exe: b}\ninclude:\n  - exe: c\n");

	(void)state;
	assert_string_equal(set->follow.exclude[0].location.file, "f");
	assert_int_equal(set->follow.exclude[0].location.line, 2);
	assert_string_equal(set->follow.exclude[0].location.name, "f:2");
	assert_string_equal(set->follow.exclude[1].location.name, "my rule");
	assert_int_equal(set->follow.include[0].location.line, 5);
	assert_int_equal(set->n_rules, 3);
	assert_int_equal(set->counts[RULE_EXCLUDE], 2);
	assert_int_equal(set->counts[RULE_INCLUDE], 1);
	assert_int_equal(set->refs, 1);
	ruleset_unref(set);
}

static void
nothing_at_all_is_a_set_without_rules(void **state)
{
	static const char *const empty[] = { "", "# none\n", "exclude:\n", "exclude: []\ninclude: ~\n", "tools:\n",
		"engines:\nschedulers:\ncontainers:\n" };

	(void)state;
	for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
		struct ruleset *set = rules_of(empty[i]);

		assert_int_equal(set->n_rules, 0);
		assert_non_null(set->tools);
		assert_non_null(set->engines);
		assert_non_null(set->placements);
		ruleset_unref(set);
	}
}

static void
files_of_a_folder_are_added_in_order(void **state)
{
	struct ruleset *set;
	struct tree t;

	(void)state;
	tree_init(&t);
	tree_write(&t, "rules/b.yaml", "exclude: [{exe: b}]\n");
	tree_write(&t, "rules/a.yaml", "exclude: [{exe: a}]\n");
	tree_write(&t, "rules/.hidden.yaml", "exclude: [{exe: h}]\n");
	tree_write(&t, "rules/a.yaml.bak", "exclude: [{exe: k}]\n");
	set = rules_in(tree_path(&t, "rules"), true);
	assert_int_equal(set->follow.n_exclude, 2);
	assert_string_equal(set->follow.exclude[0].when->text, "a");
	assert_string_equal(set->follow.exclude[0].location.file, "a.yaml");
	assert_string_equal(set->follow.exclude[1].when->text, "b");
	ruleset_unref(set);
	set = rules_in(tree_path(&t, "not-there"), true);
	assert_int_equal(set->n_rules, 0);
	ruleset_unref(set);
	tree_done(&t);
}

static void
a_file_takes_the_place_of_the_shipped_one_of_its_name(void **state)
{
	struct ruleset *shipped = rules_shipped(), *set;
	size_t n = shipped->follow.n_exclude;
	struct tree t;

	(void)state;
	assert_true(n > 0);
	tree_init(&t);
	/* A user's own come first, whatever their names. */
	tree_write(&t, "rules/zzz.yaml", "exclude: [{name: mine, exe: sshd}]\n");
	set = rules_in(tree_path(&t, "rules"), false);
	assert_int_equal(set->follow.n_exclude, n + 1);
	assert_string_equal(set->follow.exclude[0].location.name, "mine");
	ruleset_unref(set);
	tree_write(&t, "rules/exclude.yaml", "exclude: [{name: other, exe: x}]\n");
	set = rules_in(tree_path(&t, "rules"), false);
	assert_int_equal(set->follow.n_exclude, 2);
	assert_string_equal(set->follow.exclude[1].location.name, "other");
	assert_int_equal(set->n_rules, shipped->n_rules - n + 2);	/* all other shipped files are as they were */
	ruleset_unref(set);
	tree_write(&t, "rules/exclude.yaml", "");
	set = rules_in(tree_path(&t, "rules"), false);
	assert_int_equal(set->follow.n_exclude, 1);
	ruleset_unref(set);
	ruleset_unref(shipped);
	tree_done(&t);
}

static void
added_rules_come_before_all_others(void **state)
{
	const struct rules_extra extra[] = { { "ctl/one", "exclude: [{exe: a}]", 19 }, { "two", "exclude: [{exe: b}] ", 19 } };
	struct rules_options o = { .extra = extra, .n_extra = 2 };
	struct config_errors errors = { 0 };
	struct ruleset *set = NULL;

	(void)state;
	assert_int_equal(rules_load(&o, &set, &errors), 0);
	assert_string_equal(set->follow.exclude[0].when->text, "a");
	assert_string_equal(set->follow.exclude[0].location.name, "one:1");
	assert_string_equal(set->follow.exclude[1].when->text, "b");
	ruleset_unref(set);
}

static void
what_is_shipped_is_right(void **state)
{
	struct ruleset *set = rules_shipped();
	size_t sum = 0;

	(void)state;
	assert_int_equal(set->follow.n_include, 0);
	assert_true(set->follow.n_exclude > 10);
	for (unsigned i = 0; i < RULE_SECTIONS; i++)
		sum += set->counts[i];
	assert_int_equal(sum, set->n_rules);
	for (size_t i = 0; i < set->follow.n_exclude; i++)
		assert_string_equal(set->follow.exclude[i].location.file, "exclude.yaml");
	ruleset_unref(set);
}

/* Errors of several files, in the order of reading. The caller frees them. */
static char *
wrong_in(const struct tree *t)
{
	const struct rules_options o = { .dir = tree_path(t, "rules"), .is_without_shipped = true };
	struct config_errors errors = { 0 };
	struct ruleset *set = NULL;

	assert_int_equal(rules_load(&o, &set, &errors), -EINVAL);
	assert_null(set);
	return errors_text(&errors);
}

static void
wrappers_are_sorted_by_name_and_the_first_rule_wins(void **state)
{
	struct ruleset *set = rules_of("wrappers:\n"
	    "  - exe: [srun, docker]\n    after: [exec, run]\n"
	    "  - exe: [env, docker]\n"
	    "tools: [{exe: [sudo, docker], role: wrapper}, {exe: cat, role: glue}, {exe: x}]\n");
	const struct wrapper_rules *w = set->wrappers;

	(void)state;
	assert_int_equal(set->counts[RULE_WRAPPERS], 2);
	assert_int_equal(w->n, 4);
	assert_string_equal(w->list[0].exe, "docker");
	assert_string_equal(w->list[0].after[0], "exec");
	assert_string_equal(w->list[0].after[1], "run");
	assert_null(w->list[0].after[2]);
	assert_string_equal(w->list[1].exe, "env");
	assert_null(w->list[1].after);
	assert_string_equal(w->list[2].exe, "srun");
	assert_string_equal(w->list[3].exe, "sudo");
	assert_null(w->list[3].after);
	ruleset_unref(set);
	rules_wrong("wrappers: [{after: exec}]", "f:1:12: no program is selected: give exe\n");
	rules_wrong("wrappers: [{exe: /bin/env}]",
	    "f:1:18: exe: '/bin/env' has a path: give the base name of the program\n");
	rules_wrong("wrappers: [{exe: env, befor: x}]",
	    "f:1:23: no key 'befor' here: there are name, exe, after\n");
	rules_wrong("wrappers: {}", "f:1:11: wrappers: this is a mapping: expected a list of rules, such as "
	    "[{exe: docker, after: [exec, run]}]\n");
}

static void
all_errors_of_all_files_are_reported(void **state)
{
	struct tree t;
	char want[1024], *got;

	(void)state;
	tree_init(&t);
	tree_write(&t, "rules/1.yaml", "exclude: [{exe: a}\n");
	tree_write(&t, "rules/2.yaml", "exclude: [{exee: a}]\nexclude: [{cmm: b}]\n");
	tree_write(&t, "rules/3.yml", "");
	snprintf(want, sizeof(want), "%s/1.yaml:2:1: not YAML: did not find expected ',' or ']', while parsing a flow "
	    "sequence (line 1)\n"
	    "%s/2.yaml:1:12: no condition 'exee': did you mean 'exe'?\n"
	    "%s/2.yaml:2:1: 'exclude' is set twice, first in line 1: remove one\n"
	    "%s/2.yaml:2:12: no condition 'cmm': did you mean 'comm'?\n"
	    "%s: 3.yml is ignored: its name must end in .yaml\n", tree_path(&t, "rules"), tree_path(&t, "rules"),
	    tree_path(&t, "rules"), tree_path(&t, "rules"), tree_path(&t, "rules"));
	got = wrong_in(&t);
	assert_string_equal(got, want);
	free(got);
	tree_done(&t);
}

static void
a_file_that_anybody_may_write_is_refused(void **state)
{
	struct tree t;
	char want[512], *got;

	(void)state;
	tree_init(&t);
	tree_write(&t, "rules/1.yaml", "");
	assert_int_equal(chmod(tree_path(&t, "rules/1.yaml"), 0646), 0);
	snprintf(want, sizeof(want), "%s: is world-writable, so any user could hide what runs here: "
	    "run `chmod o-w %s`\n", tree_path(&t, "rules/1.yaml"), tree_path(&t, "rules/1.yaml"));
	got = wrong_in(&t);
	assert_string_equal(got, want);
	free(got);
	tree_done(&t);
}

static char *
many_rules(size_t n)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	fputs("exclude:\n", f);
	for (size_t i = 0; i < n; i++)
		fprintf(f, "  - name: rule %zu\n    when: {exe: [tool-%zu, tool-%zu-bin], not: {uid: [0, 1000-2000]}}\n", i, i, i);
	fclose(f);
	return text;
}

static void
ten_thousand_rules_are_read_in_less_than_a_second(void **state)
{
	struct timespec before, after;
	char *text = many_rules(10000);
	struct ruleset *set;
	double took;

	(void)state;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
	set = rules_of(text);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
	took = (double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) / 1e9;
	assert_int_equal(set->follow.n_exclude, 10000);
	assert_string_equal(set->follow.exclude[9999].location.name, "rule 9999");
	/* Sanitizers make it three times as slow. */
	if (took > 3)
		fail_msg("it took %g s", took);
	ruleset_unref(set);
	free(text);
}

static void
bounds_are_reported(void **state)
{
	char *text = many_rules(25000), *got = rules_wrong_with(text, NULL);

	(void)state;
	assert_non_null(strstr(got, ": more than 262144 values in one file: make several files of it"));
	free(got);
	text = realloc(text, RULES_FILE_BYTES_MAX + 2);
	memset(text, '\n', RULES_FILE_BYTES_MAX + 1);
	text[RULES_FILE_BYTES_MAX + 1] = '\0';
	got = rules_wrong_with(text, NULL);
	assert_string_equal(got, "f: larger than 4 MiB: make several files of it\n");
	free(got);
	free(text);
}

static void
all_files_together_are_bounded(void **state)
{
	enum { N = RULES_BYTES_MAX / RULES_FILE_BYTES_MAX + 1 };
	struct rules_extra extra[N];
	struct rules_options o = { .is_without_shipped = true, .extra = extra, .n_extra = N };
	struct config_errors errors = { 0 };
	struct ruleset *set = NULL;
	char *text = malloc(RULES_FILE_BYTES_MAX);

	(void)state;
	memset(text, '\n', RULES_FILE_BYTES_MAX);
	for (size_t i = 0; i < N; i++)
		extra[i] = (struct rules_extra){ "f", text, i + 1 < N ? RULES_FILE_BYTES_MAX : 1 };
	assert_int_equal(rules_load(&o, &set, &errors), -EINVAL);
	free(text);
	text = errors_text(&errors);
	assert_string_equal(text, "f: with this file all rules together are larger than 16 MiB\n");
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conditions_are_read),
		cmocka_unit_test(users_are_numbers_ranges_or_names),
		cmocka_unit_test(an_exclude_rule_trusts_whom_no_user_can_pass_for),
		cmocka_unit_test(unknown_names_get_the_nearest_right_one),
		cmocka_unit_test(values_of_the_wrong_kind_are_reported),
		cmocka_unit_test(what_can_never_hold_is_reported),
		cmocka_unit_test(rules_know_their_location),
		cmocka_unit_test(nothing_at_all_is_a_set_without_rules),
		cmocka_unit_test(files_of_a_folder_are_added_in_order),
		cmocka_unit_test(a_file_takes_the_place_of_the_shipped_one_of_its_name),
		cmocka_unit_test(added_rules_come_before_all_others),
		cmocka_unit_test(what_is_shipped_is_right),
		cmocka_unit_test(wrappers_are_sorted_by_name_and_the_first_rule_wins),
		cmocka_unit_test(all_errors_of_all_files_are_reported),
		cmocka_unit_test(a_file_that_anybody_may_write_is_refused),
		cmocka_unit_test(ten_thousand_rules_are_read_in_less_than_a_second),
		cmocka_unit_test(bounds_are_reported),
		cmocka_unit_test(all_files_together_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
