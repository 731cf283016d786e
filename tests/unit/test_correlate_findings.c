/* SPDX-License-Identifier: Apache-2.0 */
/* findings: the program that made a task or a run fail, the finding, and cases without one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "findings_kit.h"

static void
a_tasks_failure_goes_back_to_its_cause(void **state)
{
	struct being driver, job, python, tool;
	const struct kept_record *n;

	(void)state;
	driver = child(NULL, "snakemake -c2");
	job = child(&driver, JOB);
	python = child(&job, "python3 wrap.py");
	tool = child(&python, "bwa mem x");
	exits_after(&tool, 70, 3);
	exits_after(&python, 200, 1);
	exits_after(&job, 10, 1);
	correlator_tick(w.c, w.now + 900 * MS, false);
	assert_int_equal(findings(), 0);	/* ends may be reported in any order */
	settles();
	assert_int_equal(findings(), 1);
	n = finding(0);
	assert_string_equal(n->finding.kind, "FAILED");
	assert_int_equal(n->finding.severity, SEVERITY_ERROR);
	assert_chain(n, &tool, &python, &job, NULL);
	assert_string_equal(n->tool, "bwa mem");
	assert_string_equal(n->task, "align");
	assert_string_equal(n->task_id, "align:sample=A");
	assert_string_equal(n->sample, "A");
	assert_string_equal(n->run_id, "run-1");
	assert_string_equal(n->pipeline, "demo");
	assert_int_equal(n->time_us, record_of(&w, &job, 0, PHASE_END)->time_us);
	assert_true(evidence(n, "exit_code") == 3 && evidence(n, "task_exit_code") == 1);
	assert_true(evidence(n, "exit_signal") < 0 && evidence(n, "causes_left_out") < 0);
	assert_true(evidence(n, "wall_ns") == 70e6 && evidence(n, "before_ns") == 210e6);
	assert_true(evidence(n, "peak_rss_bytes") == 70 << 20);
	assert_non_null(strstr(n->finding.message, "bwa mem (pid "));
	assert_non_null(strstr(n->finding.message, " ended with exit code 3; task align (A) failed because of it"));
	/* its END follows, and nothing is repeated; the driver fails because its task did */
	exits_after(&driver, 100, 1);
	settles();
	settles();
	correlator_run_end(w.c, w.now, 1 << 8);
	assert_int_equal(findings(), 1);
	assert_int_equal(record_count(&w, TOPIC_TASK, PHASE_END), 1);
}

static void
what_succeeds_is_no_finding(void **state)
{
	struct being driver, job, grep, a, b;

	(void)state;
	driver = child(NULL, "snakemake -c2");
	job = child(&driver, JOB);
	grep = child(&job, "grep x y");
	exits_after(&grep, 5, 1);
	a = child(&job, "false");
	b = child(&job, "true");		/* false | true */
	exits(&w, &a, 1);
	exits_after(&b, 1, 0);
	is_killed(&grep, SIGKILL, false);	/* it has ended already */
	exits_after(&job, 5, 0);
	exits_after(&driver, 5, 0);
	settles();
	correlator_run_end(w.c, w.now, 0);
	assert_int_equal(findings(), 0);
	w.now += SECOND;
	snapshot(&w, false, NULL, 0);	/* those that are gone are forgotten */
	assert_null(w.c->failures);
}

static void
of_a_pipe_the_first_to_end_failed(void **state)
{
	struct being driver, job, a, b;

	(void)state;
	driver = child(NULL, "snakemake -c2");
	job = child(&driver, JOB);
	a = child(&job, "bwa mem x");
	b = child(&job, "samtools sort -");
	exits_after(&b, 50, 1);
	works(&w, &a, 5);
	is_killed(&a, SIGPIPE, false);
	exits_after(&job, 1, 1);
	settles();
	assert_chain(finding(0), &b, &job, NULL);
	/* false | true under pipefail */
	job = child(&driver, "sh -c python_-m_snakemake_--target-jobs_'call:sample=B'");
	a = child(&job, "false");
	b = child(&job, "true");
	exits_after(&a, 2, 1);
	exits_after(&b, 2, 0);
	exits_after(&job, 1, 1);
	settles();
	assert_int_equal(findings(), 2);
	assert_chain(finding(1), &a, &job, NULL);
}

static void
what_a_shell_went_on_after_is_passed_over(void **state)
{
	struct being driver, job, grep, tool, rm;

	(void)state;
	driver = child(NULL, "snakemake -c2");
	job = child(&driver, JOB);
	grep = child(&job, "grep x y");
	exits_after(&grep, 5, 2);
	tool = child(&job, "bwa mem x");
	exits_after(&tool, 5, 2);
	exits_after(&job, 1, 2);
	settles();
	assert_chain(finding(0), &tool, &job, NULL);
	/* nothing that it started failed last: the shell did itself */
	job = child(&driver, "sh -c python_-m_snakemake_--target-jobs_'call:sample=B'");
	grep = child(&job, "grep x y");
	exits_after(&grep, 5, 1);
	rm = child(&job, "rm x");
	exits_after(&rm, 5, 0);
	exits_after(&job, 1, 1);
	settles();
	assert_chain(finding(1), &job, NULL);
	/* a trap ran after it */
	job = child(&driver, "sh -c python_-m_snakemake_--target-jobs_'call:sample=C'");
	tool = child(&job, "bwa mem x");
	exits_after(&tool, 5, 3);
	rm = child(&job, "rm x");
	exits_after(&rm, 5, 0);
	exits_after(&job, 1, 3);
	settles();
	assert_chain(finding(2), &tool, &job, NULL);
	assert_int_equal(findings(), 3);
}

static void
another_code_counts_only_promptly(void **state)
{
	struct being driver, job, tool, slow;

	(void)state;
	driver = child(NULL, "snakemake -c2");
	job = child(&driver, JOB);
	tool = child(&job, "bwa mem x");
	exits_after(&tool, 5, 3);
	exits_after(&job, 2100, 1);
	settles();
	assert_chain(finding(0), &job, NULL);
	job = child(&driver, "sh -c python_-m_snakemake_--target-jobs_'call:sample=B'");
	tool = child(&job, "bwa mem x");
	exits_after(&tool, 5, 3);
	exits_after(&job, 60000, 3);		/* a shell's own: whenever */
	settles();
	assert_chain(finding(1), &tool, &job, NULL);
	job = child(&driver, "sh -c python_-m_snakemake_--target-jobs_'call:sample=C'");
	tool = child(&job, "bwa mem x");
	slow = child(&job, "samtools sort x");
	exits_after(&tool, 5, 3);
	exits_after(&slow, 60000, 0);		/* xargs -P waits for the others */
	exits_after(&job, 5, 123);
	settles();
	assert_chain(finding(2), &tool, &job, NULL);
}

static void
exec_and_subshells_stand_for_their_programs(void **state)
{
	struct being driver, job, subshell, tool, inner;

	(void)state;
	driver = child(NULL, "snakemake -c2");
	job = child(&driver, JOB);
	subshell = forks(&w, &job);
	tool = child(&subshell, "sh tool.sh");
	inner = child(&tool, "grep x y");
	exits_after(&inner, 5, 1);
	execs(&w, &tool, "bwa mem x");		/* what sh's children did is no matter now */
	works(&w, &tool, 5);
	is_killed(&tool, SIGSEGV, false);
	exits_after(&subshell, 1, 139);
	exits_after(&job, 1, 139);
	settles();
	assert_int_equal(findings(), 1);
	assert_int_equal(tool.key.index, 1);
	assert_chain(finding(0), &tool, &subshell, &job, NULL);
	assert_true(evidence(finding(0), "exit_signal") == SIGSEGV && evidence(finding(0), "exit_code") < 0);
	assert_non_null(strstr(finding(0)->finding.message, " was ended by SIGSEGV; task align"));
}

static void
a_long_chain_is_cut_in_its_middle(void **state)
{
	enum { DEPTH = 40 };
	struct being driver, shells[DEPTH];
	const struct kept_record *n;

	(void)state;
	driver = child(NULL, "snakemake -c2");
	shells[0] = child(&driver, JOB);
	for (int i = 1; i < DEPTH; i++)
		shells[i] = child(&shells[i - 1], "sh -c exit_7");
	for (int i = DEPTH; i-- > 0;)
		exits_after(&shells[i], 1, 7);
	settles();
	n = finding(0);
	assert_string_equal(n->program_id, id_of(&shells[DEPTH - 1]));
	assert_int_equal(n->finding.n_causes, FAILURE_CHAIN_MAX);
	assert_string_equal(n->finding.causes[0], id_of(&shells[DEPTH - 2]));
	assert_string_equal(n->finding.causes[FAILURE_CHAIN_MAX - 1], id_of(&shells[0]));
	assert_true(evidence(n, "causes_left_out") == DEPTH - 1 - FAILURE_CHAIN_MAX);
}

static void
of_many_children_the_first_is_kept(void **state)
{
	enum { CHILDREN = 50 };
	struct being driver, job, some[CHILDREN];

	(void)state;
	driver = child(NULL, "snakemake -c2");
	job = child(&driver, JOB);
	for (int i = 0; i < CHILDREN; i++)
		some[i] = child(&job, "bwa mem x");
	for (int i = 0; i < CHILDREN; i++)
		exits_after(&some[i], 1, 1 + i % 200);
	assert_int_equal(HASH_COUNT(w.c->failures), CHILDREN);	/* while their processes are kept */
	exits_after(&job, 1, 123);
	settles();
	assert_chain(finding(0), &some[0], &job, NULL);
	assert_int_equal(totals(&w).failures_left_out, 0);	/* nothing is missing for it */
	snapshot(&w, false, (const struct being *[]){ &driver }, 1);
	w.now += 3 * SECOND;
	snapshot(&w, false, (const struct being *[]){ &driver }, 1);
	settles();
	assert_true(HASH_COUNT(w.c->failures) <= 2);	/* what the driver may yet pass on */
	/* one after the other, each with a code of its own; then the shell ends with the first */
	job = child(&driver, "sh -c python_-m_snakemake_--target-jobs_'call:sample=B'");
	for (int i = 0; i < CHILDREN; i++) {
		some[i] = child(&job, "bwa mem x");
		exits_after(&some[i], 1, 2 + i);
	}
	assert_int_equal(totals(&w).failures_left_out, 0);
	w.now += MS;
	some[0] = child(&job, "true");
	exits_after(&some[0], 1, 0);
	exits_after(&job, 1, 2);
	settles();
	assert_chain(finding(1), &job, NULL);
	assert_int_equal(totals(&w).failures_left_out, 1);
}

static void
a_script_fails_as_a_whole(void **state)
{
	struct being sh, tool, grep;
	const struct kept_record *n;

	(void)state;
	sh = child(NULL, "bash pipeline.sh");
	grep = child(&sh, "grep x y");
	exits_after(&grep, 5, 1);		/* a task by descent, and none that an engine wanted */
	settles();
	settles();
	assert_int_equal(record_count(&w, TOPIC_TASK, PHASE_END), 1);
	tool = child(&sh, "samtools sort x");
	exits_after(&tool, 5, 2);
	exits_after(&sh, 5, 2);
	assert_int_equal(findings(), 0);
	correlator_run_end(w.c, w.now, 2 << 8);
	assert_int_equal(findings(), 1);
	n = finding(0);
	assert_chain(n, &tool, &sh, NULL);
	assert_string_equal(n->task, "samtools sort");
	assert_true(evidence(n, "run_exit_code") == 2 && evidence(n, "task_exit_code") < 0);
	assert_non_null(strstr(n->finding.message, "exit code 2; the run failed because of it"));
}

static void
a_run_whose_first_program_was_not_seen_still_failed(void **state)
{
	const struct kept_record *n;

	(void)state;
	correlator_run_end(w.c, w.now, SIGKILL);
	n = finding(0);
	assert_null(n->program_id);
	assert_true(evidence(n, "run_exit_signal") == SIGKILL);
	assert_non_null(strstr(n->finding.message, "SIGKILL; the run failed because of it"));
}

/* bash run.sh, which starts an engine, which starts a task. */
static void
engines_within_fail_of_their_tasks(void **state)
{
	struct being sh, driver, job, make, recipe;

	(void)state;
	sh = child(NULL, "bash run.sh");
	driver = child(&sh, "snakemake -c2");
	job = child(&driver, JOB);
	make = child(&driver, "make all");	/* a rule whose work is a make */
	recipe = child(&make, "bwa mem x");
	exits_after(&job, 5, 1);
	exits_after(&recipe, 5, 3);
	exits_after(&make, 5, 2);
	exits_after(&driver, 5000, 1);		/* too late to be by descent alone */
	exits_after(&sh, 5, 1);
	settles();
	correlator_run_end(w.c, w.now, 1 << 8);
	assert_int_equal(findings(), 2);
	assert_chain(finding(0), &job, NULL);
	assert_chain(finding(1), &recipe, NULL);
}

static void
what_a_later_attempt_made_good_did_not_fail_the_run(void **state)
{
	struct being driver, a, b;

	(void)state;
	driver = child(NULL, "snakemake -c2");
	a = child(&driver, "sh -c python_-m_snakemake_--target-jobs_'align:sample=A'_--attempt_1");
	exits_after(&a, 5, 1);
	b = child(&driver, "sh -c python_-m_snakemake_--target-jobs_'align:sample=A'_--attempt_2");
	exits_after(&b, 5, 0);
	settles();
	assert_int_equal(findings(), 1);
	assert_chain(finding(0), &a, NULL);
	assert_true(evidence(finding(0), "attempt") == 1);
	exits_after(&driver, 5, 1);		/* of something else */
	correlator_run_end(w.c, w.now, 1 << 8);
	assert_int_equal(findings(), 2);
	assert_chain(finding(1), &driver, NULL);
	assert_true(evidence(finding(1), "run_exit_code") == 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_tasks_failure_goes_back_to_its_cause),
		T(what_succeeds_is_no_finding),
		T(of_a_pipe_the_first_to_end_failed),
		T(what_a_shell_went_on_after_is_passed_over),
		T(another_code_counts_only_promptly),
		T(exec_and_subshells_stand_for_their_programs),
		T(a_long_chain_is_cut_in_its_middle),
		T(of_many_children_the_first_is_kept),
		T(a_script_fails_as_a_whole),
		T(a_run_whose_first_program_was_not_seen_still_failed),
		T(engines_within_fail_of_their_tasks),
		T(what_a_later_attempt_made_good_did_not_fail_the_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
