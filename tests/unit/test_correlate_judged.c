/* SPDX-License-Identifier: Apache-2.0 */
/* shared_texts, judged: what is known of a program is used for the next one that is the same, and for no other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "correlate/program_text.h"
#include "correlate/process.h"
#include "identify/redact.h"
#include "one_world.h"

static struct being
child(struct being *parent, const char *words)
{
	struct being b = forks(&w, parent);

	execs(&w, &b, words);
	return b;
}

/* Returns the record of a process at its end; NULL: it has none. */
static const struct kept_record *
end_of(const struct being *b)
{
	exits(&w, b, 0);
	return record_of(&w, b, 0, PHASE_END);
}

static const struct kept_record *
runs(struct being *parent, const char *words)
{
	struct being b = child(parent, words);

	return end_of(&b);
}

static void
begin_host(const struct ruleset *rules)
{
	struct correlator_options options = world_options();

	options.rules = (struct ruleset *)(uintptr_t)rules;
	options.run_id = options.pipeline = options.command = options.work_dir = NULL;
	world_begin(&w, &options, false);
}

static void
the_same_program_shares_its_text(void **state)
{
	struct being sh = child(NULL, "sh"), a = child(&sh, "samtools sort x.bam"), b = child(&sh, "samtools sort x.bam"),
	    other = child(&sh, "samtools sort y.bam");
	const struct text *text = process_of(w.c, &a.key)->text;
	const struct kept_record *n = end_of(&b);

	(void)state;
	assert_ptr_equal(process_of(w.c, &b.key)->text, text);
	assert_ptr_not_equal(process_of(w.c, &other.key)->text, text);
	assert_string_equal(n->tool, "samtools sort");
	assert_string_equal(n->argv[2], "x.bam");
	assert_string_equal(n->exe, "/usr/bin/samtools");
	assert_int_equal(n->program.argc, 3);
}

static void
a_text_that_redaction_changed_is_not_shared(void **state)
{
	struct being sh = child(NULL, "sh"), a = child(&sh, "mysql --password=hunter2"),
	    b = child(&sh, "mysql --password=hunter2");

	(void)state;
	assert_ptr_not_equal(process_of(w.c, &a.key)->text, process_of(w.c, &b.key)->text);
	assert_null(strstr(end_of(&a)->argv[1], "hunter2"));
	assert_null(strstr(end_of(&b)->argv[1], "hunter2"));
}

static void
another_redaction_redacts_what_was_shared(void **state)
{
	static const char *const patterns[] = { "secret-[a-z]+" };
	const struct redaction_options options = { .patterns = patterns, .n_patterns = 1 };
	struct being sh = child(NULL, "sh");
	struct redaction *redaction;
	char error[256];

	(void)state;
	assert_string_equal(runs(&sh, "tool secret-word")->argv[1], "secret-word");
	assert_string_equal(runs(&sh, "tool secret-word")->argv[1], "secret-word");
	assert_int_equal(redaction_new(&options, &redaction, error, sizeof(error)), 0);
	correlator_set_redaction(w.c, redaction);
	assert_string_equal(runs(&sh, "tool secret-word")->argv[1], REDACTED);
}

static void
other_rules_judge_anew(void **state)
{
	const struct condition noise = { .kind = CONDITION_EXE, .text = "noise" };
	const struct follow_rule exclude = { .when = &noise };
	struct ruleset rules = *world_options().rules, none = rules;
	struct being sh;

	(void)state;
	rules.follow = (struct follow_rules){ .exclude = &exclude, .n_exclude = 1 };
	none.follow = (struct follow_rules){ 0 };
	begin_host(&none);
	sh = child(NULL, "sh");
	assert_non_null(runs(&sh, "noise"));
	assert_non_null(runs(&sh, "noise"));
	correlator_set_rules(w.c, &rules);
	assert_null(runs(&sh, "noise"));
	assert_null(runs(&sh, "noise"));
	correlator_set_rules(w.c, &none);
	assert_non_null(runs(&sh, "noise"));
}

/* Only what descends from an included program is recorded. */
static void
the_same_program_of_other_parents_is_judged_by_them(void **state)
{
	const struct condition start = { .kind = CONDITION_EXE, .text = "start" };
	const struct follow_rule include = { .when = &start };
	struct ruleset rules = *world_options().rules;
	struct being outside, inside;

	(void)state;
	rules.follow = (struct follow_rules){ .include = &include, .n_include = 1 };
	begin_host(&rules);
	outside = child(NULL, "sh");
	inside = child(&outside, "start");
	for (int i = 0; i < 3; i++) {
		assert_non_null(runs(&inside, "work"));
		assert_null(runs(&outside, "work"));
	}
}

/* The path of a cgroup may arrive after the first program in it. */
static void
a_path_of_a_cgroup_judges_anew(void **state)
{
	const struct condition batch = { .kind = CONDITION_CGROUP, .text = "/batch" };
	const struct follow_rule exclude = { .when = &batch };
	const struct cgroup_event path = { .id = 77, .is_v2 = true, .path = "/batch" };
	struct ruleset rules = *world_options().rules;
	struct being sh, b[3];

	(void)state;
	rules.follow = (struct follow_rules){ .exclude = &exclude, .n_exclude = 1 };
	begin_host(&rules);
	sh = child(NULL, "sh");
	for (int i = 0; i < 3; i++) {
		if (i == 2)
			correlator_cgroup(w.c, &path);
		b[i] = forks(&w, &sh);
		b[i].context.cgroup_v2 = 77;
		execs(&w, &b[i], "work");
	}
	assert_non_null(end_of(&b[1]));
	assert_null(end_of(&b[2]));
	assert_non_null(runs(&sh, "work"));	/* in another cgroup */
}

/* A task of its own, as each child of a driver, has its own id. */
static void
what_no_rule_knows_is_attributed_all_the_same(void **state)
{
	struct being command = child(NULL, "sh"), a = child(&command, "date"), b = child(&command, "date");
	const struct kept_record *first = end_of(&a), *second = end_of(&b);

	(void)state;
	assert_string_equal(first->task, "date");
	assert_string_equal(second->task, "date");
	assert_string_not_equal(first->task_id, second->task_id);
	assert_string_equal(first->run_id, second->run_id);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_same_program_shares_its_text),
		T(a_text_that_redaction_changed_is_not_shared),
		T(another_redaction_redacts_what_was_shared),
		T(other_rules_judge_anew),
		T(the_same_program_of_other_parents_is_judged_by_them),
		T(a_path_of_a_cgroup_judges_anew),
		T(what_no_rule_knows_is_attributed_all_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
