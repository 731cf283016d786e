/* SPDX-License-Identifier: Apache-2.0 */
/* life: records of processes with lost events, of one that changes its run, and of the last in a run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "one_world.h"

/* With a write-ahead log. */
static void
open_with_wal(void)
{
	struct correlator_options options = world_options();

	world_begin(&w, &options, true);
	correlator_run_start(w.c, w.now);
}

static struct being
child(const struct being *parent, const char *command)
{
	struct being b = forks(&w, parent);

	execs(&w, &b, command);
	return b;
}

/* How many entries a word makes that a pass has of it. */
static size_t
entries_of(const struct being *b, uint32_t ppid)
{
	struct state_event s = state_of(&w, b, STATE_LIVE, 0);
	size_t before = w.kept.n;

	s.ppid = ppid;
	correlator_state(w.c, &s);
	return w.kept.n - before;
}

static void
a_program_whose_exec_was_lost_comes_of_the_one_before(void **state)
{
	struct being sh = child(NULL, "sh"), b = child(&sh, "bash");
	struct state_event s;
	const struct kept_record *n;

	(void)state;
	works(&w, &b, 5);
	execs_unheard(&w, &b);
	s = state_of(&w, &b, STATE_EXIT, 0);
	strcpy(s.comm, "R");
	correlator_state(w.c, &s);
	n = record_of(&w, &b, 1, PHASE_START);
	assert_non_null(n);
	assert_string_equal(n->comm, "R");	/* only its comm is known */
	assert_string_equal(n->parent_program_id, record_of(&w, &b, 0, PHASE_START)->program_id);
	assert_non_null(record_of(&w, &b, 1, PHASE_END));
	/* The lost end is unknown, and must not count as a failure. */
	assert_null(record_of(&w, &b, 0, PHASE_END));
	assert_int_equal(totals(&w).lost_ends, 1);
	assert_int_equal(totals(&w).failed, 0);

	/* Two lost execs of one that was known as a copy of its parent. */
	b = forks(&w, &sh);
	tells(&w, &b, STATE_LIVE, 0);
	execs_unheard(&w, &b);
	execs_unheard(&w, &b);
	exits(&w, &b, 0);
	n = record_of(&w, &b, 1, PHASE_END);
	assert_non_null(n);
	assert_false(n->id.forked);
}

/* A pass may read the index of a later program while an exec is being noted, and the flags from before it. */
static void
a_child_is_not_begun_by_a_snapshot_of_another_program(void **state)
{
	struct being sh = child(NULL, "sh"), b = forks(&w, &sh);
	struct state_event s;
	uint64_t before = totals(&w).programs;

	(void)state;
	tells(&w, &b, STATE_LIVE, 0);
	works(&w, &b, 1100);
	s = state_of(&w, &b, STATE_LIVE, 0);
	s.self.index = 1;
	correlator_state(w.c, &s);
	assert_int_equal(totals(&w).programs, before);
	tells(&w, &b, STATE_LIVE, 0);
	assert_int_equal(totals(&w).programs, before + 1);
	assert_non_null(record_of(&w, &b, 0, PHASE_START));
	exits(&w, &b, 0);
	assert_non_null(record_of(&w, &b, 0, PHASE_END));
	assert_int_equal(totals(&w).lost_ends, 0);
}

/* It has been through setuid(2) or unshare(2) since its parent forked it. */
static void
a_child_that_never_execs_begins_as_what_it_is(void **state)
{
	struct being sh = child(NULL, "sh"), b = forks(&w, &sh);
	const struct kept_record *n;

	(void)state;
	b.context = (struct program_context){ .uid = 4711, .gid = 4712, .pid_ns = 21, .mnt_ns = 22, .net_ns = 23 };
	works(&w, &b, 1100);
	tells(&w, &b, STATE_LIVE, 0);
	n = record_of(&w, &b, 0, PHASE_START);
	assert_non_null(n);
	assert_int_equal(n->program.uid.value, 4711);
	assert_int_equal(n->program.gid.value, 4712);
	assert_int_equal(n->program.pid_ns.value, 21);
	assert_int_equal(n->program.mnt_ns.value, 22);
	assert_int_equal(n->program.net_ns.value, 23);
	assert_int_equal(record_of(&w, &sh, 0, PHASE_START)->program.uid.value, 1000);
}

/* The first pass has the credentials of all processes: an END has those of the program at its exec. */
static void
a_program_ends_as_whose_it_began(void **state)
{
	struct being b = child(NULL, "sshd");
	struct state_event s = state_of(&w, &b, STATE_LIVE, 0);

	(void)state;
	s.has_context = true;
	s.context = (struct program_context){ .uid = 4711 };
	correlator_state(w.c, &s);
	exits(&w, &b, 0);
	assert_int_equal(record_of(&w, &b, 0, PHASE_END)->program.uid.value, 1000);
}

static void
a_program_without_a_name_has_none(void **state)
{
	struct being sh = child(NULL, "sh"), b = child(&sh, "bash");
	struct state_event s;

	(void)state;
	execs_unheard(&w, &b);
	s = state_of(&w, &b, STATE_EXIT, 0);
	s.comm[0] = '\0';
	correlator_state(w.c, &s);
	assert_null(record_of(&w, &b, 1, PHASE_START)->comm);
}

static void
who_has_taken_an_orphan_is_known_while_it_lives(void **state)
{
	struct being sh = child(NULL, "sh"), b = child(&sh, "x");
	struct state_event s = state_of(&w, &b, STATE_LIVE, 0);

	(void)state;
	s.ppid = 1;
	correlator_state(w.c, &s);
	s = state_of(&w, &b, STATE_EXIT, 0);
	s.ppid = 0;			/* not known any more */
	correlator_state(w.c, &s);
	assert_int_equal(record_of(&w, &b, 0, PHASE_END)->id.ppid, 1);
}

static void
a_child_is_the_one_of_whom_the_kernel_says_at_last(void **state)
{
	struct being a = child(NULL, "sh"), other = child(&a, "bash"), b = forks(&w, &a);

	(void)state;
	w.now += 100 * MS;
	tells(&w, &b, STATE_LIVE, 0);
	b.parent = other.key;
	w.now += 1000 * MS;
	tells(&w, &b, STATE_LIVE, 0);
	assert_string_equal(record_of(&w, &b, 0, PHASE_START)->parent_program_id,
	    record_of(&w, &other, 0, PHASE_START)->program_id);
	assert_string_equal(record_of(&w, &b, 0, PHASE_START)->exe, "/usr/bin/sh");	/* its parent's program */
}

static void
a_pass_that_brings_nothing_new_is_not_noted(void **state)
{
	struct being sh, other, b, late, nobodys;

	(void)state;
	open_with_wal();
	late = forks(&w, NULL);
	nobodys = forks(&w, &late);
	sh = child(NULL, "sh");
	other = child(&sh, "bash");
	b = forks(&w, &sh);
	w.now += 100 * MS;
	assert_int_not_equal(entries_of(&b, sh.key.pid), 0);	/* it is new */
	assert_int_equal(entries_of(&b, sh.key.pid), 0);
	assert_int_not_equal(entries_of(&b, 1), 0);		/* whose child it is */
	assert_int_equal(entries_of(&b, 1), 0);
	b.parent = other.key;
	assert_int_not_equal(entries_of(&b, 1), 0);		/* and whose copy */
	assert_int_equal(entries_of(&b, 1), 0);
	assert_int_equal(entries_of(&other, sh.key.pid), 0);
	assert_int_not_equal(entries_of(&nobodys, 1), 0);		/* new, and its parent is unknown */
	assert_int_equal(entries_of(&nobodys, 1), 0);
	execs(&w, &late, "bash");
	assert_int_not_equal(entries_of(&nobodys, 1), 0);		/* what it is */
	assert_int_equal(entries_of(&nobodys, 1), 0);
	assert_int_not_equal(entries_of(&other, 1), 0);
}

static void
usage_is_logged_where_there_is_some(void **state)
{
	const struct being *all[1];
	struct being sh;
	size_t before;

	(void)state;
	open_with_wal();
	sh = child(NULL, "sh");
	all[0] = &sh;
	for (int i = 0; i < 2; i++) {
		works(&w, &sh, 5);
		before = w.kept.n;
		snapshot(&w, true, all, 1);
		assert_int_not_equal(w.kept.n, before);
	}
	w.now += 10 * SECOND;
	before = w.kept.n;
	snapshot(&w, true, all, 1);
	assert_int_equal(w.kept.n, before);
	sh.c.rss_bytes += 1 << 20;		/* nothing that a record is made of */
	snapshot(&w, true, all, 1);
	assert_int_not_equal(w.kept.n, before);
}

/* A driver of which no more events arrive: its result is never known. */
static void
a_run_whose_drivers_end_is_not_heard_has_not_failed(void **state)
{
	struct correlator_options options = world_options();
	struct being driver, job;
	struct exec_event s;
	char words[] = "left-out", exe[256];
	const char *argv[1];
	size_t argv_len[1];
	const struct kept_record *n;

	(void)state;
	options.run_id = options.pipeline = options.command = options.work_dir = NULL;
	world_close(&w);
	world_open(&w, &options);
	driver = child(NULL, "snakemake -c2");
	job = child(&driver, "sh -c python_-m_snakemake_--target-jobs_'align:sample=A'_--attempt_1");
	works(&w, &job, 5);
	exits(&w, &job, 0);
	exec_event_fill(&w, &driver, words, argv, argv_len, exe, &s);
	s.is_excluded = true;
	correlator_exec(w.c, &s);
	for (int i = 0; i < 200; i++) {
		w.now += SECOND;
		correlator_tick(w.c, w.now, false);
	}
	n = record_at(&w, TOPIC_RUN, PHASE_END, 0);
	assert_non_null(n);
	assert_false(n->work.exit_code.known);
	assert_false(n->work.exit_signal.known);
	assert_int_equal(record_count(&w, TOPIC_FINDING, -1), 0);
}

static void
tries(const struct being *driver, const char *sample, int attempt, int code)
{
	char command[128];
	struct being b;

	snprintf(command, sizeof(command),
	    "sh -c python_-m_snakemake_--target-jobs_'align:sample=%s'_--attempt_%d", sample, attempt);
	b = child(driver, command);
	works(&w, &b, 5);
	exits(&w, &b, code);
}

/* The end of an attempt may be reported after the next one began: the engine has stated what that is. */
static void
a_late_failure_does_not_change_a_stated_attempt(void **state)
{
	struct being driver = child(NULL, "snakemake -c2"), job, next;
	const struct kept_record *end = NULL;
	uint64_t ended, now;

	(void)state;
	job = child(&driver, "sh -c python_-m_snakemake_--target-jobs_'align:sample=A'_--attempt_1");
	works(&w, &job, 5);
	ended = w.now;
	w.now += SECOND;
	next = child(&driver, "sh -c python_-m_snakemake_--target-jobs_'align:sample=A'_--attempt_2");
	works(&w, &next, 5);
	now = w.now;
	w.now = ended;
	exits(&w, &job, 1);
	w.now = now;
	exits(&w, &next, 0);
	w.now += 2 * SECOND;
	correlator_tick(w.c, w.now, false);
	for (size_t i = 0; record_at(&w, TOPIC_TASK, PHASE_END, i) != NULL; i++) {
		end = record_at(&w, TOPIC_TASK, PHASE_END, i);
		assert_in_range(end->work.attempt.value, 1, 2);
	}
	assert_non_null(end);
}

/* How many findings the run has of its own, when it fails. */
static size_t
own_findings(struct being *driver)
{
	size_t before;

	w.now += 1100 * MS;
	correlator_tick(w.c, w.now, false);
	before = record_count(&w, TOPIC_FINDING, -1);
	works(&w, driver, 5);
	exits(&w, driver, 1);
	correlator_run_end(w.c, w.now, 1 << 8);
	return record_count(&w, TOPIC_FINDING, -1) - before;
}

static void
each_attempt_that_failed_is_made_good_by_the_one_that_did_not(void **state)
{
	struct being driver = child(NULL, "snakemake -c2");

	(void)state;
	tries(&driver, "A", 1, 1);
	tries(&driver, "A", 2, 1);
	tries(&driver, "A", 3, 0);
	assert_int_equal(own_findings(&driver), 1);
}

static void
what_nobody_made_good_is_why_the_run_failed(void **state)
{
	struct being driver = child(NULL, "snakemake -c2");

	(void)state;
	tries(&driver, "B", 1, 1);
	tries(&driver, "A", 1, 1);
	tries(&driver, "A", 2, 0);
	assert_int_equal(own_findings(&driver), 0);
}

/* The end is recorded once, by the agent that gets the event. */
static void
a_zombie_that_was_recorded_is_not_recorded_again_by_the_next_life(void **state)
{
	struct correlator_options options = world_options();
	struct being sh, b;

	(void)state;
	open_with_wal();
	sh = child(NULL, "sh");
	b = child(&sh, "x");
	for (int i = 0; i < 3; i++) {	/* passes see it until its parent waits for it */
		correlator_snapshot_begin(w.c, true);
		tells(&w, &b, STATE_ZOMBIE, 3 << 8);
		tells(&w, &sh, STATE_LIVE, 0);
		w.now += 10 * SECOND;
		correlator_snapshot_end(w.c, w.now);
	}
	assert_int_equal(record_count(&w, TOPIC_PROGRAM, PHASE_END), 1);
	world_dies(&w, &options);
	tells(&w, &b, STATE_EXIT, 3 << 8);
	assert_int_equal(record_count(&w, TOPIC_PROGRAM, PHASE_END), 1);
}

/* The id of a task finds it, with and without stated attempts, also after the agent was killed. */
static void
programs_of_one_attempt_are_one_task_in_every_life(void **state)
{
	static const char toil[] = "~toil~worker align file:/s job-1";
	static const char snakemake[] = "sh -c python_-m_snakemake_--target-jobs_'align:sample=A'_--attempt_2";
	struct correlator_options options = world_options();
	struct being driver;

	(void)state;
	for (int i = 0; i < 2; i++) {
		const char *job = i == 0 ? toil : snakemake;

		world_close(&w);
		world_open_as(&w, &options, true);
		driver = child(NULL, i == 0 ? "toil-cwl-runner --jobStore /s flow.cwl" : "snakemake -c2");
		child(&driver, job);
		child(&driver, job);
		assert_int_equal(record_count(&w, TOPIC_TASK, PHASE_START), 1);
		world_dies(&w, &options);
		child(&driver, job);
		assert_int_equal(record_count(&w, TOPIC_TASK, PHASE_START), 1);
		assert_int_equal(record_at(&w, TOPIC_TASK, PHASE_START, 0)->work.attempt.value, i + 1);
	}
	/* Another attempt that the engine states is another task, even if the one before is not known to have ended. */
	child(&driver, "sh -c python_-m_snakemake_--target-jobs_'align:sample=A'_--attempt_3");
	assert_int_equal(record_count(&w, TOPIC_TASK, PHASE_START), 2);
	assert_int_equal(record_at(&w, TOPIC_TASK, PHASE_START, 1)->work.attempt.value, 3);
}

static void
context_at_the_end_is_recorded_only_from_an_event_that_has_it(void **state)
{
	struct being sh = child(NULL, "sh"), a = child(&sh, "a"), b = child(&sh, "b");
	struct state_event s = state_of(&w, &a, STATE_EXIT, 0);

	(void)state;
	s.has_context = true;
	s.context = a.context;
	s.context.uid = 4711;
	correlator_state(w.c, &s);
	assert_int_equal(record_of(&w, &a, 0, PHASE_END)->program.uid.value, 4711);
	s = state_of(&w, &b, STATE_EXIT, 0);
	s.has_context = false;
	s.context.uid = 4711;		/* no event contained this uid */
	correlator_state(w.c, &s);
	assert_int_equal(record_of(&w, &b, 0, PHASE_END)->program.uid.value, 1000);
}

/* Only the end of the program that a shell became is known: it did not fail of the shell's children. */
static void
an_unheard_program_did_not_fail_of_the_children_before_it(void **state)
{
	struct being driver = child(NULL, "snakemake -c2"), job, x;
	struct state_event s;
	const struct kept_record *n;

	(void)state;
	job = child(&driver, "sh -c python_-m_snakemake_--target-jobs_'align:sample=A'");
	x = child(&job, "x");
	works(&w, &x, 5);
	exits(&w, &x, 3);
	works(&w, &job, 5);
	execs_unheard(&w, &job);
	works(&w, &job, 5);
	s = state_of(&w, &job, STATE_EXIT, 3 << 8);
	correlator_state(w.c, &s);
	w.now += 1100 * MS;
	correlator_tick(w.c, w.now, false);
	n = record_at(&w, TOPIC_FINDING, -1, 0);
	assert_non_null(n);
	assert_string_equal(n->program_id, record_of(&w, &job, 1, PHASE_END)->program_id);
	assert_int_equal(n->finding.n_causes, 0);
}

static void
what_the_rules_leave_out_is_counted_and_never_recorded(void **state)
{
	const struct condition noise = { .kind = CONDITION_EXE, .text = "noise" };
	const struct follow_rule exclude = { .when = &noise };
	struct correlator_options options = world_options();
	struct ruleset rules = *options.rules;
	struct being sh, b;

	(void)state;
	rules.follow = (struct follow_rules){ .exclude = &exclude, .n_exclude = 1 };
	options.rules = &rules;
	options.run_id = options.pipeline = options.command = options.work_dir = NULL;
	world_begin(&w, &options, true);
	sh = child(NULL, "sh");
	b = child(&sh, "noise");
	assert_int_equal(totals(&w).excluded, 1);
	world_dies(&w, &options);
	works(&w, &b, 5);
	exits(&w, &b, 1);
	works(&w, &sh, 5);
	exits(&w, &sh, 0);
	assert_int_equal(record_count(&w, TOPIC_PROGRAM, -1), 2);
	assert_non_null(record_of(&w, &sh, 0, PHASE_END));
	world_close(&w);	/* before the rules go */
	memset(&w, 0, sizeof(w));
}

/* Without its privileges, an agent can read arguments in /proc, but neither exe nor cwd. */
static void
finds(const struct being *b, const char *comm)
{
	const size_t argv_len[] = { strlen(comm) };
	struct exec_event s = { .is_discovered = true, .time_ns = w.now, .self = b->key, .parent = b->parent,
		.anchor = b->anchor, .argv = &comm, .argv_len = argv_len, .argc = 1, .replaced = b->c,
		.context = b->context };

	snprintf(s.comm, sizeof(s.comm), "%s", comm);
	correlator_exec(w.c, &s);
}

static void
what_runs_already_is_judged_anew_by_what_was_reported_of_it(void **state)
{
	const struct condition noise = { .kind = CONDITION_EXE, .text = "noise" };
	const struct follow_rule exclude = { .when = &noise };
	struct correlator_options options = world_options();
	struct ruleset rules = *options.rules, none = rules;
	struct being sh, b, replaced;
	const struct kept_record *n;

	(void)state;
	rules.follow = (struct follow_rules){ .exclude = &exclude, .n_exclude = 1 };
	none.follow = (struct follow_rules){ 0 };
	options.rules = &rules;
	options.run_id = options.pipeline = options.command = options.work_dir = NULL;
	world_begin(&w, &options, false);
	sh = child(NULL, "sh");
	b = child(&sh, "noise");
	replaced = child(&sh, "noise");
	works(&w, &b, 5);
	finds(&b, "noise");
	assert_null(record_of(&w, &b, 0, PHASE_START));	/* rules have changed, those on it have not */

	correlator_set_rules(w.c, &none);
	finds(&b, "noise");
	n = record_of(&w, &b, 0, PHASE_START);
	assert_non_null(n);
	assert_string_equal(n->exe, "/usr/bin/noise");
	assert_string_equal(n->cwd, "/w");
	works(&w, &b, 3);
	exits(&w, &b, 0);
	assert_true(record_has_cpu(record_of(&w, &b, 0, PHASE_END), 3));	/* from then on */
	/* The same for a process that was not reported before. */
	b = forks(&w, &sh);
	b.execed = true;
	b.key.index = 3;
	works(&w, &b, 7);
	finds(&b, "noise");
	works(&w, &b, 4);
	exits(&w, &b, 0);
	assert_true(record_has_cpu(record_of(&w, &b, 3, PHASE_END), 4));

	/* The values of the previous program do not apply to one whose exec was lost. */
	execs_unheard(&w, &replaced);
	finds(&replaced, "other");
	n = record_of(&w, &replaced, 1, PHASE_START);
	assert_non_null(n);
	assert_null(n->exe);
	assert_null(n->cwd);
	/* Nor what a child has from its parent. */
	replaced = forks(&w, &sh);
	tells(&w, &replaced, STATE_LIVE, 0);
	finds(&replaced, "other");
	n = record_of(&w, &replaced, 0, PHASE_START);
	assert_non_null(n);
	assert_null(n->exe);
	world_close(&w);	/* before the rules go */
	memset(&w, 0, sizeof(w));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_program_whose_exec_was_lost_comes_of_the_one_before),
		T(a_child_is_not_begun_by_a_snapshot_of_another_program),
		T(a_child_that_never_execs_begins_as_what_it_is),
		T(a_program_ends_as_whose_it_began),
		T(a_program_without_a_name_has_none),
		T(who_has_taken_an_orphan_is_known_while_it_lives),
		T(a_child_is_the_one_of_whom_the_kernel_says_at_last),
		T(a_pass_that_brings_nothing_new_is_not_noted),
		T(usage_is_logged_where_there_is_some),
		T(a_run_whose_drivers_end_is_not_heard_has_not_failed),
		T(a_late_failure_does_not_change_a_stated_attempt),
		T(each_attempt_that_failed_is_made_good_by_the_one_that_did_not),
		T(programs_of_one_attempt_are_one_task_in_every_life),
		T(a_zombie_that_was_recorded_is_not_recorded_again_by_the_next_life),
		T(context_at_the_end_is_recorded_only_from_an_event_that_has_it),
		T(an_unheard_program_did_not_fail_of_the_children_before_it),
		T(what_the_rules_leave_out_is_counted_and_never_recorded),
		T(what_runs_already_is_judged_anew_by_what_was_reported_of_it),
		T(what_nobody_made_good_is_why_the_run_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
