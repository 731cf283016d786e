/* SPDX-License-Identifier: Apache-2.0 */
/* match: each kind of condition holds, does not hold, and is unknown; and the order of many rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/steps.h"
#include "model/follow_index.h"
#include "identify/match.h"

#define ARGS(...) .argv = (const char *const[]){ __VA_ARGS__ }, \
	.argc = sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *)

static const struct candidate nothing;	/* all unknown */

static struct condition
leaf(enum condition_kind kind, const char *text)
{
	return (struct condition){ .kind = kind, .text = text };
}

/* Unknown is neither: then its not does not hold either. */
enum answer { HOLDS, HOLDS_NOT, UNKNOWN };

static void
answers_condition(const struct condition *c, const struct candidate *s, enum answer want)
{
	struct condition not = { .kind = CONDITION_NOT, .first = c };
	struct condition all = { .kind = CONDITION_ALL, .first = c }, any = { .kind = CONDITION_ANY, .first = c };
	struct condition not_not = { .kind = CONDITION_NOT, .first = &not };

	if (match(c, s) != (want == HOLDS))
		fail_msg("%s %s: %d", condition_kind_name(c->kind), c->text != NULL ? c->text : "", match(c, s));
	if (match(&not, s) != (want == HOLDS_NOT))
		fail_msg("not %s %s: %d", condition_kind_name(c->kind), c->text != NULL ? c->text : "", match(&not, s));
	assert_true(match(&not_not, s) == (want == HOLDS));
	assert_true(match(&all, s) == (want == HOLDS));
	assert_true(match(&any, s) == (want == HOLDS));
}

static void
answers(enum condition_kind kind, const char *text, const struct candidate *s, enum answer want)
{
	struct condition c = leaf(kind, text);
	bool is_pattern = kind == CONDITION_ARGV_MATCHES || kind == CONDITION_COMMAND_MATCHES ||
	    kind == CONDITION_CWD_MATCHES || kind == CONDITION_CGROUP_MATCHES;
	char error[256];

	if (is_pattern) {
		c.pattern = pattern_new(text, error, sizeof(error));
		assert_non_null(c.pattern);
	}
	answers_condition(&c, s, want);
	pattern_free(c.pattern);
}

static void
executables(void **state)
{
	const struct candidate bwa = { .exe = "/opt/bio/bwa", .comm = "bwa" }, bare = { .exe = "bwa" };

	(void)state;
	answers(CONDITION_EXE, "bwa", &bwa, HOLDS);
	answers(CONDITION_EXE, "bwa", &bare, HOLDS);
	answers(CONDITION_EXE, "bw", &bwa, HOLDS_NOT);
	answers(CONDITION_EXE, "bio", &bwa, HOLDS_NOT);
	answers(CONDITION_EXE, "bwa", &nothing, UNKNOWN);
	answers(CONDITION_PATH, "/opt/bio/bwa", &bwa, HOLDS);
	answers(CONDITION_PATH, "/opt/bio/", &bwa, HOLDS);
	answers(CONDITION_PATH, "/opt/", &bwa, HOLDS);
	answers(CONDITION_PATH, "/", &bwa, HOLDS);
	answers(CONDITION_PATH, "/opt/bio", &bwa, HOLDS_NOT);
	answers(CONDITION_PATH, "/opt/b/", &bwa, HOLDS_NOT);
	answers(CONDITION_PATH, "/opt/bio/bwa/", &bwa, HOLDS_NOT);
	answers(CONDITION_PATH, "/opt/", &nothing, UNKNOWN);
	answers(CONDITION_COMM, "bwa", &bwa, HOLDS);
	answers(CONDITION_COMM, "bw", &bwa, HOLDS_NOT);
	answers(CONDITION_COMM, "bwa", &bare, UNKNOWN);
}

static void
tools(void **state)
{
	const struct candidate sort = { .tool = "samtools sort" }, none = { .tool = "" };

	(void)state;
	answers(CONDITION_TOOL, "samtools sort", &sort, HOLDS);
	answers(CONDITION_TOOL, "samtools", &sort, HOLDS);
	answers(CONDITION_TOOL, "samtool", &sort, HOLDS_NOT);
	answers(CONDITION_TOOL, "sort", &sort, HOLDS_NOT);
	answers(CONDITION_TOOL, "samtools sort -n", &sort, HOLDS_NOT);
	answers(CONDITION_TOOL, "samtools", &none, HOLDS_NOT);
	answers(CONDITION_TOOL, "samtools", &nothing, UNKNOWN);
}

static void
arguments(void **state)
{
	const struct candidate s = { ARGS("bwa", "mem", "-t4", "", "my ref.fa") }, alone = { ARGS("bwa") };
	const struct candidate none = { .argv = (const char *const[]){ NULL }, .argc = 0 };

	(void)state;
	answers(CONDITION_ARGV, "mem", &s, HOLDS);
	answers(CONDITION_ARGV, "my ref.fa", &s, HOLDS);
	answers(CONDITION_ARGV, "ref.fa", &s, HOLDS_NOT);
	answers(CONDITION_ARGV, "bwa", &s, HOLDS_NOT);	/* argv[0] is none */
	answers(CONDITION_ARGV, "bwa", &alone, HOLDS_NOT);
	answers(CONDITION_ARGV, "bwa", &none, HOLDS_NOT);
	answers(CONDITION_ARGV, "mem", &nothing, UNKNOWN);
	answers(CONDITION_ARGV_CONTAINS, "ref", &s, HOLDS);
	answers(CONDITION_ARGV_CONTAINS, "mem -t", &s, HOLDS_NOT);
	answers(CONDITION_ARGV_CONTAINS, "bwa", &s, HOLDS_NOT);
	answers(CONDITION_ARGV_CONTAINS, "ref", &nothing, UNKNOWN);
	answers(CONDITION_ARGV_MATCHES, "^-t\\d$", &s, HOLDS);
	answers(CONDITION_ARGV_MATCHES, "^bwa$", &s, HOLDS_NOT);
	answers(CONDITION_ARGV_MATCHES, "mem.-t", &s, HOLDS_NOT);
	answers(CONDITION_ARGV_MATCHES, "^$", &s, HOLDS);
	answers(CONDITION_ARGV_MATCHES, "^", &nothing, UNKNOWN);
	answers(CONDITION_COMMAND_MATCHES, "^bwa mem -t4  my ref\\.fa$", &s, HOLDS);
	answers(CONDITION_COMMAND_MATCHES, "sort", &s, HOLDS_NOT);
	answers(CONDITION_COMMAND_MATCHES, "^$", &none, HOLDS);
	answers(CONDITION_COMMAND_MATCHES, "^", &nothing, UNKNOWN);
	answers(CONDITION_FIRST_ARG, "mem", &s, HOLDS);
	answers(CONDITION_FIRST_ARG, "-t4", &s, HOLDS_NOT);
	answers(CONDITION_FIRST_ARG, "mem", &alone, HOLDS_NOT);
	answers(CONDITION_FIRST_ARG, "mem", &nothing, UNKNOWN);
}

static void
words(void **state)
{
	const struct candidate s = { .words = { "mem", "/opt/run/align.py", "/x/picard-2.27.5.jar", "picard.Main" } };
	const struct candidate none = { .words = { "", "", "", "" } };

	(void)state;
	answers(CONDITION_SUBCOMMAND, "mem", &s, HOLDS);
	answers(CONDITION_SUBCOMMAND, "me", &s, HOLDS_NOT);
	answers(CONDITION_SUBCOMMAND, "mem", &none, HOLDS_NOT);
	answers(CONDITION_SUBCOMMAND, "mem", &nothing, UNKNOWN);
	answers(CONDITION_SCRIPT, "align.py", &s, HOLDS);
	answers(CONDITION_SCRIPT, "align", &s, HOLDS_NOT);
	answers(CONDITION_SCRIPT, "align.py", &none, HOLDS_NOT);
	answers(CONDITION_SCRIPT, "align.py", &nothing, UNKNOWN);
	answers(CONDITION_CLASS, "picard.Main", &s, HOLDS);
	answers(CONDITION_CLASS, "Main", &s, HOLDS_NOT);
	answers(CONDITION_CLASS, "Main", &nothing, UNKNOWN);
	answers(CONDITION_JAR, "picard", &none, HOLDS_NOT);
	answers(CONDITION_JAR, "picard", &nothing, UNKNOWN);
}

static void
jars_are_named_with_or_without_version(void **state)
{
	static const struct {
		const char *jar, *text;
		enum answer want;
	} jars[] = {
		{ "/x/picard-2.27.5.jar", "picard", HOLDS }, { "/x/picard-2.27.5.jar", "picard.jar", HOLDS },
		{ "picard-2.27.5.jar", "picard-2.27.5", HOLDS }, { "picard-2.27.5.jar", "picard-2.27.5.jar", HOLDS },
		{ "picard.jar", "picard", HOLDS }, { "picard", "picard", HOLDS }, { "picard.jar", "pic", HOLDS_NOT },
		{ "picard-2.27.5.jar", "picard-2", HOLDS_NOT }, { "picard-tools-1.1.jar", "picard", HOLDS_NOT },
		{ "gatk-package-4.2.0.0-local.jar", "gatk-package", HOLDS }, { "VarScan.v2.3.9.jar", "VarScan", HOLDS },
		{ "trimmomatic-0.39.jar", "trimmomatic", HOLDS }, { "x-all.jar", "x", HOLDS }, { "snpEff_v4_3.jar", "snpEff", HOLDS },
		{ "log4j.jar", "log", HOLDS_NOT }, { "-1.jar", "", HOLDS_NOT }, { "a-b.jar", "a", HOLDS_NOT },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(jars) / sizeof(jars[0]); i++)
		answers(CONDITION_JAR, jars[i].text, &(struct candidate){ .words.jar = jars[i].jar }, jars[i].want);
}

static void
working_directories(void **state)
{
	const struct candidate s = { .cwd = "/data/work/31" }, data = { .cwd = "/data" }, root = { .cwd = "/" };

	(void)state;
	answers(CONDITION_CWD, "/data/work/31", &s, HOLDS);
	answers(CONDITION_CWD, "/data/", &s, HOLDS);
	answers(CONDITION_CWD, "/data", &s, HOLDS_NOT);
	answers(CONDITION_CWD, "/data/", &data, HOLDS);
	answers(CONDITION_CWD, "/dat/", &data, HOLDS_NOT);
	answers(CONDITION_CWD, "/", &root, HOLDS);
	answers(CONDITION_CWD, "/data/", &root, HOLDS_NOT);
	answers(CONDITION_CWD, "/data/", &nothing, UNKNOWN);
	answers(CONDITION_CWD_MATCHES, "/work/[0-9a-f]{2}$", &s, HOLDS);
	answers(CONDITION_CWD_MATCHES, "^work", &s, HOLDS_NOT);
	answers(CONDITION_CWD_MATCHES, "", &nothing, UNKNOWN);
}

static void
cgroups(void **state)
{
	const struct candidate v2 = { .cgroup = "/system.slice/slurmstepd.scope/job_12/step_0" };
	const struct candidate v1 = { .cgroup_v1 = "/slurm/uid_1000/job_12" }, both = { .cgroup = "/", .cgroup_v1 = "/a/b" };

	(void)state;
	answers(CONDITION_CGROUP, "/system.slice/slurmstepd.scope", &v2, HOLDS);
	answers(CONDITION_CGROUP, "/system.slice/slurmstepd.scope/", &v2, HOLDS);
	answers(CONDITION_CGROUP, "/system.slice/slurmstepd.scope/job_12/step_0", &v2, HOLDS);
	answers(CONDITION_CGROUP, "/system.slice/slurmstepd.scope/job_*", &v2, HOLDS);
	answers(CONDITION_CGROUP, "/*/slurm*.scope/*/step_*", &v2, HOLDS);
	answers(CONDITION_CGROUP, "/", &v2, HOLDS);
	answers(CONDITION_CGROUP, "/system.slice/slurm", &v2, HOLDS_NOT);	/* whole names */
	answers(CONDITION_CGROUP, "/*/job_12", &v2, HOLDS_NOT);		/* a star is no slash */
	answers(CONDITION_CGROUP, "/slurmstepd.scope", &v2, HOLDS_NOT);
	answers(CONDITION_CGROUP, "/system.slice/slurmstepd.scope/job_12/step_0/task", &v2, HOLDS_NOT);
	answers(CONDITION_CGROUP, "/slurm/*/job_1*2", &v1, HOLDS);
	answers(CONDITION_CGROUP, "/slurm/*/job_1*3", &v1, HOLDS_NOT);
	answers(CONDITION_CGROUP, "/a/", &both, HOLDS);
	answers(CONDITION_CGROUP, "/c/", &both, HOLDS_NOT);
	answers(CONDITION_CGROUP, "/a", &nothing, UNKNOWN);
	answers(CONDITION_CGROUP_MATCHES, "job_\\d+", &v2, HOLDS);
	answers(CONDITION_CGROUP_MATCHES, "job_\\d+$", &v1, HOLDS);
	answers(CONDITION_CGROUP_MATCHES, "^job", &v1, HOLDS_NOT);
	answers(CONDITION_CGROUP_MATCHES, "", &nothing, UNKNOWN);
}

static void
users(void **state)
{
	const struct condition range = { .kind = CONDITION_UID, .low = 1000, .high = 2000 };

	(void)state;
	answers_condition(&range, &(struct candidate){ .has_uid = true, .uid = 1000 }, HOLDS);
	answers_condition(&range, &(struct candidate){ .has_uid = true, .uid = 2000 }, HOLDS);
	answers_condition(&range, &(struct candidate){ .has_uid = true, .uid = 999 }, HOLDS_NOT);
	answers_condition(&range, &(struct candidate){ .has_uid = true, .uid = 2001 }, HOLDS_NOT);
	answers_condition(&range, &(struct candidate){ .uid = 1500 }, UNKNOWN);
}

static void
images(void **state)
{
	const struct candidate s = { .image = "registry.example.org/bio/samtools:1.19" };

	(void)state;
	answers(CONDITION_IMAGE, "registry.example.org/bio/samtools:1.19", &s, HOLDS);
	answers(CONDITION_IMAGE, "*/samtools:*", &s, HOLDS);	/* here a star is any character */
	answers(CONDITION_IMAGE, "registry*1.1*9", &s, HOLDS);
	answers(CONDITION_IMAGE, "*", &s, HOLDS);
	answers(CONDITION_IMAGE, "samtools", &s, HOLDS_NOT);
	answers(CONDITION_IMAGE, "*samtools", &s, HOLDS_NOT);
	answers(CONDITION_IMAGE, "registry*", &nothing, UNKNOWN);
}

static void
parents(void **state)
{
	const struct candidate cron = { .exe = "/usr/sbin/cron" }, child = { .exe = "/bin/sh", .parent = &cron };
	const struct candidate grandchild = { .exe = "/usr/bin/curl", .parent = &child }, orphan = { .parent = &nothing };
	const struct condition exe = leaf(CONDITION_EXE, "cron"), parent = { .kind = CONDITION_PARENT, .first = &exe };
	const struct condition twice = { .kind = CONDITION_PARENT, .first = &parent };

	(void)state;
	answers_condition(&parent, &child, HOLDS);
	answers_condition(&parent, &grandchild, HOLDS_NOT);
	answers_condition(&twice, &grandchild, HOLDS);
	answers_condition(&twice, &child, UNKNOWN);
	answers_condition(&parent, &orphan, UNKNOWN);
	answers_condition(&parent, &nothing, UNKNOWN);
}

static void
many_are_all_or_any(void **state)
{
	const struct candidate s = { .exe = "/a" };	/* of comm nothing is known */
	struct condition yes = leaf(CONDITION_EXE, "a"), no = leaf(CONDITION_EXE, "b"), unknown = leaf(CONDITION_COMM, "c");
	struct condition *const kinds[] = { &yes, &no, &unknown };
	static const enum answer of[] = { HOLDS, HOLDS_NOT, UNKNOWN };
	struct condition all = { .kind = CONDITION_ALL }, any = { .kind = CONDITION_ANY };

	(void)state;
	for (int i = 0; i < 3; i++) {
		for (int j = 0; j < 3; j++) {
			struct condition first = *kinds[i], second = *kinds[j];

			first.next = &second;
			all.first = any.first = &first;
			answers_condition(&all, &s, of[i] == HOLDS_NOT || of[j] == HOLDS_NOT ? HOLDS_NOT :
			    of[i] == UNKNOWN || of[j] == UNKNOWN ? UNKNOWN : HOLDS);
			answers_condition(&any, &s, of[i] == HOLDS || of[j] == HOLDS ? HOLDS :
			    of[i] == UNKNOWN || of[j] == UNKNOWN ? UNKNOWN : HOLDS_NOT);
		}
	}
	all.first = any.first = NULL;
	answers_condition(&all, &s, HOLDS);
	answers_condition(&any, &s, HOLDS_NOT);
	assert_true(match(NULL, &nothing));
}

/* Rules of one condition each, with an index or without. */
struct rule_set {
	struct ruleset *set;
	struct follow_rule *rules;
	size_t n;
};

static struct follow_rules
excludes(struct rule_set *r, bool has_index)
{
	return (struct follow_rules){ .exclude = r->rules, .n_exclude = r->n,
	    .exclude_index = has_index ? follow_index_new(r->set, r->rules, r->n) : NULL };
}

static void
include_and_exclude_decide_together(void **state)
{
	const struct condition science = leaf(CONDITION_EXE, "nextflow"), noise = leaf(CONDITION_EXE, "ps");
	const struct condition both = leaf(CONDITION_EXE, "bash");
	const struct follow_rule include[] = { { .when = &science }, { .when = &both } };
	const struct follow_rule exclude[] = { { .when = &noise }, { .when = &both } };
	const struct follow_rules rules = { include, exclude, 2, 2 };
	const struct follow_rules only_exclude = { NULL, exclude, 0, 2 }, none = { 0 };
	static const struct {
		const char *exe;
		bool is_inside, is_excluded, inside_after;
		int rule;	/* include 0, 1; exclude 2, 3; none -1 */
	} cases[] = {
		{ "nextflow", false, false, true, 0 },
		{ "nextflow", true, false, true, 0 },
		{ "bwa", false, true, false, -1 },
		{ "bwa", true, false, true, -1 },
		{ "ps", false, true, false, 2 },
		{ "ps", true, true, true, 2 },		/* what it starts is still inside */
		{ "bash", false, true, true, 3 },	/* left out itself, but what it starts is not */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct candidate s = { .exe = cases[i].exe };
		const struct follow_rule *rule = (void *)1;
		bool inside = false;
		int n = cases[i].rule;

		assert_true(follow_excludes(&rules, &s, cases[i].is_inside, &rule, &inside) == cases[i].is_excluded);
		assert_true(inside == cases[i].inside_after);
		assert_ptr_equal(rule, n < 0 ? NULL : n < 2 ? &include[n] : &exclude[n - 2]);
		assert_true(follow_excludes(&rules, &s, cases[i].is_inside, NULL, NULL) == cases[i].is_excluded);
		assert_false(follow_excludes(&none, &s, false, &rule, &inside));
		assert_null(rule);
	}
	assert_true(follow_excludes(&only_exclude, &(struct candidate){ .exe = "/bin/ps" }, false, NULL, NULL));
	assert_false(follow_excludes(&only_exclude, &(struct candidate){ .exe = "/bin/bwa" }, false, NULL, NULL));
	assert_false(follow_excludes(&only_exclude, &nothing, false, NULL, NULL));
}

static unsigned
random_below(unsigned n)
{
	static uint32_t x = 2463534242;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return x % n;
}

static struct condition *random_condition(struct ruleset *set, int depth);

static struct condition *
random_children(struct ruleset *set, struct condition *c, int depth, unsigned n)
{
	const struct condition **end = &c->first;

	while (n-- > 0) {
		struct condition *child = random_condition(set, depth - 1);

		*end = child;
		end = &child->next;
	}
	return c;
}

static struct condition *
random_condition(struct ruleset *set, int depth)
{
	static const char *const names[] = { "a", "b", "c", "d", "e" };
	static const char *const paths[] = { "/", "/x/", "/x/a", "/x/y/", "/x/y/b", "/z/" };
	static const char *const cgroups[] = { "/", "/x", "/x/a*", "/*/y/", "/x/*/b", "/z/" };
	struct condition *c = ruleset_alloc(set, sizeof(*c));

	switch (random_below(depth > 0 ? 10 : 6)) {
	case 0:
	case 1:
		*c = leaf(CONDITION_EXE, names[random_below(5)]);
		return c;
	case 2:
		*c = leaf(CONDITION_PATH, paths[random_below(6)]);
		return c;
	case 3:
		*c = leaf(CONDITION_COMM, names[random_below(5)]);
		return c;
	case 4:
		c->kind = CONDITION_UID;
		c->low = random_below(4);
		c->high = c->low + random_below(2);
		return c;
	case 5:
		*c = leaf(CONDITION_CGROUP, cgroups[random_below(6)]);
		return c;
	case 6:
		c->kind = CONDITION_NOT;
		return random_children(set, c, depth, 1);
	case 7:
		c->kind = CONDITION_ANY;
		return random_children(set, c, depth, random_below(4));
	default:
		c->kind = CONDITION_ALL;
		return random_children(set, c, depth, 1 + random_below(3));
	}
}

/* Whatever the rules are, the index changes nothing but what it costs. */
static void
the_first_in_the_order_of_files_wins_with_an_index_too(void **state)
{
	static const char *const exes[] = { "/x/a", "/x/y/b", "/z/c", "/d", "e", "/x/y/q/a", NULL };
	static const char *const comms[] = { "a", "b", "q", NULL };
	static const char *const paths[] = { NULL, "/", "/x/a1", "/x/y/b", "/z" };

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct rule_set r = { .set = ruleset_new(), .n = random_below(12) };
		struct follow_rules indexed, plain;

		r.rules = ruleset_alloc(r.set, (r.n + 1) * sizeof(*r.rules));
		for (size_t i = 0; i < r.n; i++)
			r.rules[i].when = random_condition(r.set, 3);
		indexed = excludes(&r, true);
		plain = excludes(&r, false);
		for (size_t i = 0; i < 7 * 4 * 3; i++) {
			const struct candidate s = { .exe = exes[i % 7], .comm = comms[i / 7 % 4],
			    .has_uid = i / 28 < 2,
				.uid = (uint32_t)(i / 28) * 2, .cgroup = paths[i % 5], .cgroup_v1 = paths[i / 2 % 5] };
			const struct follow_rule *one = NULL, *other = NULL;

			assert_true(follow_excludes(&indexed, &s, false, &one, NULL) ==
			    follow_excludes(&plain, &s, false, &other, NULL));
			assert_ptr_equal(one, other);
		}
		ruleset_unref(r.set);
	}
}

/* A walk over all of them would take minutes. */
static void
ten_thousand_excludes_cost_no_walk(void **state)
{
	enum { N = 10000, TIMES = 300000 };
	struct rule_set r = { .set = ruleset_new(), .n = N };
	struct follow_rules rules;
	struct condition *c = ruleset_alloc(r.set, N * sizeof(*c));
	char name[32];

	(void)state;
	r.rules = ruleset_alloc(r.set, N * sizeof(*r.rules));
	for (int i = 0; i < N; i++) {
		snprintf(name, sizeof(name), "program-%d", i);
		c[i] = leaf(CONDITION_EXE, ruleset_string(r.set, name, strlen(name)));
		r.rules[i].when = &c[i];
	}
	rules = excludes(&r, true);
	for (int i = 0; i < TIMES; i++) {
		const struct follow_rule *rule;
		struct candidate s = { .exe = name };

		snprintf(name, sizeof(name), "/x/program-%d", i % (2 * N));
		assert_true(follow_excludes(&rules, &s, false, &rule, NULL) == (i % (2 * N) < N));
		assert_ptr_equal(rule, i % (2 * N) < N ? &r.rules[i % (2 * N)] : NULL);
	}
	ruleset_unref(r.set);
}

static void
nothing_is_left_out_once_the_steps_are_spent(void **state)
{
	const struct condition bwa = leaf(CONDITION_EXE, "bwa"), not = { .kind = CONDITION_NOT, .first = &bwa };
	const struct follow_rule is_bwa = { .when = &bwa }, is_other = { .when = &not };
	const struct follow_rules rules[] = {
		{ .exclude = &is_bwa, .n_exclude = 1 },
		{ .exclude = &is_other, .n_exclude = 1 },
		{ .include = &is_other, .n_include = 1 },
	};
	const struct candidate s = { .exe = "/bin/bwa" };
	const struct follow_rule *rule;
	struct steps steps;
	bool inside;

	(void)state;
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		assert_int_equal(follow_excludes(&rules[i], &s, false, NULL, NULL), i != 1);
		steps_begin(&steps, 0);
		assert_false(follow_excludes(&rules[i], &s, false, &rule, &inside));
		assert_null(rule);
		assert_false(inside);
		assert_false(match(&not, &s));
		assert_true(steps_end(&steps));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(executables),
		cmocka_unit_test(tools),
		cmocka_unit_test(arguments),
		cmocka_unit_test(words),
		cmocka_unit_test(jars_are_named_with_or_without_version),
		cmocka_unit_test(working_directories),
		cmocka_unit_test(cgroups),
		cmocka_unit_test(users),
		cmocka_unit_test(images),
		cmocka_unit_test(parents),
		cmocka_unit_test(many_are_all_or_any),
		cmocka_unit_test(include_and_exclude_decide_together),
		cmocka_unit_test(nothing_is_left_out_once_the_steps_are_spent),
		cmocka_unit_test(the_first_in_the_order_of_files_wins_with_an_index_too),
		cmocka_unit_test(ten_thousand_excludes_cost_no_walk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
