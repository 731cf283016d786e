/* SPDX-License-Identifier: Apache-2.0 */
/* findings: when they are recorded, how many, and none twice; programs that the kernel ended because memory ran out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "findings_kit.h"

static struct correlator_options
host(void)
{
	struct correlator_options options = world_options();

	options.run_id = options.pipeline = options.command = options.work_dir = NULL;
	return options;
}

/* Of the whole host, with a write-ahead log. */
static void
open_host(void)
{
	struct correlator_options options = host();

	world_begin(&w, &options, true);
	forget_kept(&w);
}

/* kill -9, and the next life. */
static void
dies(void)
{
	struct correlator_options options = host();

	world_dies(&w, &options);
}

/* A second later: a pass that finds this one ended, and its last word yet to come. */
static void
pass_while_ending(const struct state_event *s)
{
	w.now += SECOND;
	correlator_snapshot_begin(w.c, false);
	if (s != NULL)
		correlator_ending(w.c, s);
	correlator_snapshot_end(w.c, w.now);
	correlator_tick(w.c, w.now, false);
}

/* The end of the cause is reported seconds late; its ancestors have ended and are recorded. */
static void
a_cause_that_has_ended_and_is_not_reported_is_waited_for(void **state)
{
	struct being driver, job, python, tool;
	struct state_event late;

	(void)state;
	driver = child(NULL, "snakemake -c2");
	job = child(&driver, JOB);
	python = child(&job, "python3 wrap.py");
	tool = child(&python, "bwa mem x");
	works(&w, &tool, 70);
	late = state_of(&w, &tool, STATE_EXIT, 3 << 8);
	exits_after(&python, 200, 1);
	exits_after(&job, 10, 1);
	for (int i = 0; i < 4; i++)
		pass_while_ending(&late);
	assert_int_equal(findings(), 0);
	correlator_state(w.c, &late);
	pass_while_ending(NULL);
	assert_int_equal(findings(), 1);
	assert_chain(finding(0), &tool, &python, &job, NULL);
}

static struct correlator_held
held(uint64_t since_ns)
{
	struct correlator_held h;

	correlator_held(w.c, since_ns, &h);
	return h;
}

static void
what_has_no_program_any_more_is_held_until_it_is_reported(void **state)
{
	struct being driver, job;
	uint64_t job_ns;

	(void)state;
	open_host();
	driver = child(NULL, "snakemake -c2");
	job = child(&driver, JOB);
	assert_int_equal(held(UINT64_MAX).tasks + held(UINT64_MAX).runs, 0);
	exits_after(&job, 70, 1);
	job_ns = w.now;
	assert_int_equal(held(job_ns).tasks, 1);
	assert_int_equal(held(job_ns).failures, 1);
	assert_int_equal(held(job_ns).runs, 0);		/* its driver runs */
	assert_int_equal(held(job_ns - SECOND / 2).tasks, 0);
	assert_int_equal(held(job_ns - SECOND / 2).failures, 0);
	w.now += 500 * MS;
	exits_after(&driver, 70, 1);
	assert_int_equal(held(w.now).runs, 1);
	assert_int_equal(held(job_ns).runs, 0);		/* of that moment it is not */
	settles();
	assert_int_equal(held(w.now).tasks + held(w.now).runs + held(w.now).failures, 0);
	assert_int_equal(record_count(&w, TOPIC_RUN, PHASE_END), 1);
}

static void
an_end_reported_late_counts(void **state)
{
	struct being driver, job, tool, next;
	struct state_event late;

	(void)state;
	driver = child(NULL, "snakemake -c2");
	job = child(&driver, JOB);
	tool = child(&job, "bwa mem x");
	works(&w, &tool, 5);
	late = state_of(&w, &tool, STATE_EXIT, 4 << 8);
	exits_after(&job, 1, 4);
	correlator_state(w.c, &late);
	settles();
	assert_chain(finding(0), &tool, &job, NULL);
	/* what began since it ended was heard of before that */
	job = child(&driver, "sh -c python_-m_snakemake_--target-jobs_'call:sample=B'");
	tool = child(&job, "grep x y");
	works(&w, &tool, 5);
	late = state_of(&w, &tool, STATE_EXIT, 1 << 8);
	w.now += MS;
	next = child(&job, "bwa mem x");
	correlator_state(w.c, &late);
	exits_after(&next, 5, 0);
	exits_after(&job, 1, 1);
	settles();
	assert_chain(finding(1), &job, NULL);
}

static void
an_oom_kill_is_recorded_at_once(void **state)
{
	struct cgroup_event cgroup = { .id = 7, .is_v2 = true, .path = "/job", .memory_bytes = { 512 << 20, true } };
	struct being driver, job, worker, other;
	const struct kept_record *n;

	(void)state;
	correlator_cgroup(w.c, &cgroup);
	driver = child(NULL, "snakemake -c2");
	job = child(&driver, JOB);
	worker = forks(&w, &job);
	worker.context.cgroup_v2 = 7;
	execs(&w, &worker, "python3 work.py");
	works(&w, &worker, 500);
	is_killed(&worker, SIGKILL, true);
	assert_int_equal(findings(), 1);
	n = finding(0);
	assert_string_equal(n->finding.kind, "OOM_KILLED");
	assert_string_equal(n->task, "align");
	assert_chain(n, &worker, NULL);
	assert_true(evidence(n, "peak_rss_bytes") == 500 << 20 && evidence(n, "memory_limit_bytes") == 512 << 20);
	assert_true(evidence(n, "host_memory_bytes") == 8.0 * (1 << 30) && evidence(n, "exit_signal") == SIGKILL);
	assert_non_null(strstr(n->finding.message, "killed by the kernel because memory ran out, peak 500 MiB, limit 512 MiB"));
	/* the task fails of that, whatever it does in between */
	other = child(&job, "samtools sort x");
	exits_after(&other, 5000, 4);
	exits_after(&job, 10, 1);
	settles();
	assert_int_equal(findings(), 2);
	n = finding(1);
	assert_string_equal(n->finding.kind, "FAILED");
	assert_chain(n, &worker, &job, NULL);
	assert_true(evidence(n, "oom_killed") == 1 && evidence(n, "oom_kills") == 1);
	assert_non_null(strstr(n->finding.message, "memory ran out, peak 500 MiB, limit 512 MiB; task align (A) failed because"));
	/* one that was ending as the kernel chose it */
	worker = child(&driver, "python3 late.py");
	is_killed(&worker, 0, true);
	settles();
	assert_int_equal(findings(), 2);
}

static void
there_is_a_limit_to_a_runs_findings(void **state)
{
	struct user_loss losses[USER_LOSSES];
	struct being driver, job;
	char command[128];

	(void)state;
	open_host();
	driver = child(NULL, "snakemake -c2");
	for (int i = 0; i < FINDINGS_OF_RUN_MAX + 7; i++) {
		snprintf(command, sizeof(command), "sh -c python_-m_snakemake_--target-jobs_'align:sample=%d'", i);
		job = child(&driver, command);
		exits_after(&job, 1, 1);
	}
	settles();
	assert_int_equal(findings(), FINDINGS_OF_RUN_MAX);
	assert_int_equal(totals(&w).findings_left_out, 7);
	assert_int_equal(correlator_user_losses(w.c, losses, 0), 1);
	assert_int_equal(losses[0].refused, 7);
	assert_true(HASH_COUNT(w.c->failures) < FINDINGS_OF_RUN_MAX + 100);
}

static void
there_is_a_limit_to_oom_kills(void **state)
{
	struct being driver, job, b;

	(void)state;
	driver = child(NULL, "snakemake -c2");
	job = child(&driver, JOB);
	for (int i = 0; i < FINDINGS_OF_TASK_MAX + 3; i++) {
		b = child(&job, "python3 w.py");
		works(&w, &b, 1);
		is_killed(&b, SIGKILL, true);
	}
	assert_int_equal(findings(), FINDINGS_OF_TASK_MAX);
	assert_int_equal(totals(&w).findings_left_out, 3);
	exits_after(&job, 1, 1);
	settles();
	assert_int_equal(findings(), FINDINGS_OF_TASK_MAX + 1);
	assert_true(evidence(finding(FINDINGS_OF_TASK_MAX), "oom_kills") == FINDINGS_OF_TASK_MAX + 3);
	assert_true(evidence(finding(FINDINGS_OF_TASK_MAX), "oom_killed") == 1);
}

static void
programs_of_no_run_are_recorded_for_oom_alone(void **state)
{
	struct being sshd, b;

	(void)state;
	open_host();
	sshd = child(NULL, "sshd -D");
	b = child(&sshd, "false");
	exits_after(&b, 1, 1);
	assert_null(w.c->failures);
	for (int i = 0; i < FINDINGS_OF_NONE_MAX / 2 + 5; i++) {
		b = child(&sshd, "python3 x.py");
		is_killed(&b, SIGKILL, true);
	}
	assert_int_equal(findings(), FINDINGS_OF_NONE_MAX / 2);
	assert_null(finding(0)->run_id);
	assert_int_equal(totals(&w).findings_left_out, 5);
	w.now += 61 * SECOND;
	b = child(&sshd, "python3 x.py");
	is_killed(&b, SIGKILL, true);
	settles();
	assert_int_equal(findings(), FINDINGS_OF_NONE_MAX / 2 + 1);
}

/* A program that another user runs; its children are that user's too. */
static struct being
child_of(const struct being *parent, uint32_t uid, const char *command)
{
	struct being b = forks(&w, parent);

	b.context.uid = uid;
	execs(&w, &b, command);
	return b;
}

/* Returns how many of n kills are reported. */
static size_t
reports_oom_kills(uint32_t uid, size_t n)
{
	size_t before = findings();

	for (size_t i = 0; i < n; i++) {
		struct being b = child_of(NULL, uid, "python3 x.py");

		is_killed(&b, SIGKILL, true);
	}
	return findings() - before;
}

static void
oom_kills_of_one_user_leave_room_for_those_of_another(void **state)
{
	struct user_loss losses[USER_LOSSES];
	struct being late;

	(void)state;
	open_host();
	w.now += 120 * SECOND - w.now % (60 * SECOND);
	late = child_of(NULL, 64001, "python3 x.py");
	w.now += 60 * SECOND;
	assert_int_equal(reports_oom_kills(64001, 70), FINDINGS_OF_NONE_MAX / 2);
	assert_int_equal(reports_oom_kills(1002, 70), FINDINGS_OF_NONE_MAX / 4);
	assert_int_equal(reports_oom_kills(1003, 1), 1);
	assert_int_equal(totals(&w).findings_left_out, 40 + 55);
	assert_int_equal(correlator_user_losses(w.c, losses, 0), 2);
	assert_true(losses[0].uid == 1002 && losses[0].refused == 55);
	assert_true(losses[1].uid == 64001 && losses[1].refused == 40);
	/* The end of a minute before, reported now, begins no other. */
	w.now -= 30 * SECOND;
	is_killed(&late, SIGKILL, true);
	w.now += 30 * SECOND;
	assert_int_equal(reports_oom_kills(64001, 1), 0);
	assert_int_equal(totals(&w).findings_left_out, 40 + 55 + 2);
	w.now += 60 * SECOND;
	assert_int_equal(reports_oom_kills(64001, 70), FINDINGS_OF_NONE_MAX / 2);
}

static uint32_t
failures_of(uint32_t uid)
{
	return w.c->shares[SHARE_FAILURES].held[owner_at(owner_of(uid))];
}

/* A program that lives, with as many failures below it as may be. */
static struct being
keeps_failures(const struct being *driver, uint32_t uid)
{
	struct being sh = child_of(driver, uid, "sh -c all"), b;

	for (int code = 2; code < 2 + FAILURES_BELOW_MAX; code++) {
		b = child_of(&sh, uid, "false");
		exits(&w, &b, code);
	}
	records_forget(&w);
	return sh;
}

static void
failures_of_one_user_leave_room_for_those_of_another(void **state)
{
	static struct being shells[FAILURES_MAX / FAILURES_BELOW_MAX];
	struct being flood, driver, job, tool;
	size_t n = 0;

	(void)state;
	open_host();
	flood = child_of(NULL, 64001, "make");
	while (totals(&w).failures_left_out == 0 && n < FAILURES_MAX / FAILURES_BELOW_MAX)
		shells[n++] = keeps_failures(&flood, 64001);
	assert_int_equal(failures_of(64001), FAILURES_MAX / 2);
	driver = child_of(NULL, 1002, "snakemake -c2");
	for (int i = 0; i < 2; i++) {
		job = child_of(&driver, 1002, JOB);
		tool = child_of(&job, 1002, "bwa mem x");
		exits(&w, &tool, 3);
		exits(&w, &job, 3);
		settles();
		assert_int_equal(findings(), 1);
		assert_chain(finding(0), &tool, &job, NULL);
		assert_int_equal(failures_of(1002), 2 * (i + 1));
		/* The next life counts as this one did. */
		if (i == 0)
			dies();
		assert_int_equal(HASH_COUNT(w.c->failures), failures_of(64001) + failures_of(1002));
		assert_int_equal(failures_of(64001), FAILURES_MAX / 2);
		assert_int_equal(failures_of(1002), 2 * (i + 1));
		records_forget(&w);
	}
	/* What is over is given back. */
	while (n > 0)
		exits(&w, &shells[--n], 0);
	exits(&w, &flood, 0);
	for (int i = 0; i < 100; i++) {
		w.now += SECOND;
		snapshot(&w, false, (const struct being *[]){ &driver }, 1);
		correlator_tick(w.c, w.now, false);
	}
	assert_int_equal(failures_of(64001), 0);
	assert_int_equal(HASH_COUNT(w.c->failures), failures_of(1002));
}

/* Programs that end from the innermost outwards, and are reported the other way: each link is added below the last. */
static void
a_chain_of_any_length_is_restored(void **state)
{
	enum { DEPTH = 100 };
	struct being driver, shells[DEPTH];
	const struct failure *f;
	struct state_event s;
	unsigned links = 0;

	(void)state;
	open_host();
	driver = child(NULL, "snakemake -c2");
	shells[0] = child(&driver, JOB);
	for (int i = 1; i < DEPTH; i++)
		shells[i] = child(&shells[i - 1], "sh -c exit_7");
	for (int i = 0; i < DEPTH; i++) {
		works(&w, &shells[i], 1);
		s = state_of(&w, &shells[i], STATE_EXIT, 7 << 8);
		s.end_ns -= (uint64_t)i * 2 * MS;
		correlator_state(w.c, &s);
	}
	correlator_checkpoint(w.c);
	dies();
	for (f = failure_find(w.c, &shells[0].key); f != NULL && f->of != NULL; f = f->of)
		links++;
	assert_int_equal(links, DEPTH - 1);
}

/* An agent that is killed after each step records the same findings, once. */
static void
restarts_record_nothing_twice(void **state)
{
	struct being sh, driver, job, python, tool, good;

	(void)state;
	open_host();
	sh = child(NULL, "bash run.sh");
	driver = child(&sh, "snakemake -c2");
	job = child(&driver, JOB);
	python = child(&job, "python3 wrap.py");
	good = child(&python, "samtools sort x");
	tool = child(&python, "bwa mem x");
	dies();
	works(&w, &tool, 5);
	is_killed(&tool, SIGKILL, true);
	assert_int_equal(findings(), 1);
	dies();
	exits_after(&good, 3000, 0);
	dies();
	exits_after(&python, 200, 1);
	dies();
	exits_after(&job, 10, 1);
	dies();
	forget_kept(&w);
	correlator_checkpoint(w.c);
	dies();
	settles();
	assert_int_equal(findings(), 2);
	assert_chain(finding(1), &tool, &python, &job, NULL);
	dies();
	settles();
	exits_after(&driver, 4000, 1);
	dies();
	settles();
	dies();
	settles();
	assert_int_equal(record_count(&w, TOPIC_RUN, PHASE_END), 1);
	assert_int_equal(findings(), 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_cause_that_has_ended_and_is_not_reported_is_waited_for),
		T(what_has_no_program_any_more_is_held_until_it_is_reported),
		T(an_end_reported_late_counts),
		T(an_oom_kill_is_recorded_at_once),
		T(there_is_a_limit_to_a_runs_findings),
		T(there_is_a_limit_to_oom_kills),
		T(programs_of_no_run_are_recorded_for_oom_alone),
		T(oom_kills_of_one_user_leave_room_for_those_of_another),
		T(failures_of_one_user_leave_room_for_those_of_another),
		T(a_chain_of_any_length_is_restored),
		T(restarts_record_nothing_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
