/* SPDX-License-Identifier: Apache-2.0 */
/* kills: who sent the signal of which a program ended, and which of these ends is a finding. */
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

/* Of the whole host, with a write-ahead log: a pipeline and a task. */
static void
begins(struct being *driver, struct being *job)
{
	struct correlator_options options = host();

	world_begin(&w, &options, true);
	forget_kept(&w);
	*driver = child(NULL, "snakemake -c2");
	*job = child(driver, JOB);
}

static void
dies(void)
{
	struct correlator_options options = host();

	world_dies(&w, &options);
}

/* The signal that ends to. from: NULL: a program that is not followed. */
static void
signalled(const struct being *to, const struct being *from, uint32_t signal)
{
	struct signal_event s = { .time_ns = w.now, .self = to->key, .signal = signal, .is_of_program = true,
		.sender_pid = 4242, .sender_uid = 1007, .comm = "kill" };

	if (from != NULL) {
		s.sender = from->key;
		s.anchor = from->execed ? from->key : from->anchor;
		s.sender_pid = from->key.pid;
	}
	correlator_signal(w.c, &s);
}

static void
signalled_by_kernel(const struct being *to, uint32_t signal)
{
	correlator_signal(w.c, &(struct signal_event){ .time_ns = w.now, .self = to->key, .signal = signal });
}

static void
ends_of(struct being *b, int signal)
{
	works(&w, b, 30);
	is_killed(b, signal, false);
}

static void
a_program_that_an_outsider_ends(void **state)
{
	struct being driver, job, tool;
	const struct kept_record *n;

	(void)state;
	begins(&driver, &job);
	tool = child(&job, "bwa mem x");
	works(&w, &tool, 70);
	signalled(&tool, NULL, SIGKILL);
	ends_of(&tool, SIGKILL);
	assert_int_equal(findings(), 1);
	n = finding(0);
	assert_string_equal(n->finding.kind, "KILLED");
	assert_int_equal(n->finding.severity, SEVERITY_ERROR);
	assert_string_equal(n->task, "align");
	assert_chain(n, &tool, NULL);
	assert_true(evidence(n, "exit_signal") == SIGKILL && evidence(n, "sender_is_kernel") == 0);
	assert_true(evidence(n, "sender_pid") == 4242 && evidence(n, "sender_uid") == 1007);
	assert_true(evidence(n, "after_signal_ns") == 30 * MS && evidence(n, "wall_ns") >= 100 * MS);
	assert_non_null(strstr(n->finding.message, "was ended by SIGKILL, which kill (pid 4242) of uid 1007 sent"));
	/* and the task fails of it */
	exits_after(&job, 10, 137);
	settles();
	assert_int_equal(findings(), 2);
	assert_string_equal(finding(1)->finding.kind, "FAILED");
	assert_chain(finding(1), &tool, &job, NULL);
}

static void
the_sender_and_what_started_it_are_named(void **state)
{
	struct being driver, job, shell, sender;
	const struct kept_record *n;

	(void)state;
	begins(&driver, &job);
	shell = child(NULL, "tcsh -l");
	sender = child(&shell, "kill -9 7");
	signalled(&job, &sender, SIGTERM);
	exits(&w, &sender, 0);
	exits(&w, &shell, 0);
	ends_of(&job, SIGTERM);
	settles();
	assert_true(findings() >= 1);
	n = finding(0);
	assert_string_equal(n->finding.kind, "KILLED");
	assert_chain(n, &job, &sender, &shell, NULL);
	assert_non_null(strstr(n->finding.message, "SIGTERM, which kill (pid "));
	assert_non_null(strstr(n->finding.message, "sent, started by tcsh (pid "));
}

static void
the_kernel_is_named(void **state)
{
	struct being driver, job;

	(void)state;
	begins(&driver, &job);
	signalled_by_kernel(&job, SIGKILL);
	ends_of(&job, SIGKILL);
	assert_int_equal(findings(), 1);
	assert_true(evidence(finding(0), "sender_is_kernel") == 1 && evidence(finding(0), "sender_pid") == -1);
	assert_non_null(strstr(finding(0)->finding.message, "SIGKILL, which the kernel sent"));
}

static void
the_kernel_ends_what_its_user_asks_for(void **state)
{
	static const int none[] = { SIGINT, SIGQUIT, SIGSEGV, SIGPIPE }, some[] = { SIGXCPU, SIGHUP };
	struct being driver, job;

	(void)state;
	begins(&driver, &job);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		job = child(&driver, JOB);
		signalled_by_kernel(&job, (uint32_t)none[i]);
		ends_of(&job, none[i]);
	}
	for (size_t i = 0; i < findings(); i++)
		assert_string_not_equal(finding(i)->finding.kind, "KILLED");
	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		size_t before = findings();

		job = child(&driver, JOB);
		signalled_by_kernel(&job, (uint32_t)some[i]);
		ends_of(&job, some[i]);
		assert_true(findings() > before);
		assert_string_equal(finding(before)->finding.kind, "KILLED");
	}
}

/* As its first process ends, the kernel kills the others; docker kill ends the first. */
static void
what_a_container_leaves_has_no_finding(void **state)
{
	struct being driver, job, first, left;

	(void)state;
	begins(&driver, &job);
	first = forks(&w, &job);
	first.context.pid_ns = 77;
	execs(&w, &first, "sh run.sh");
	left = forks(&w, &first);
	left.context.pid_ns = 77;
	execs(&w, &left, "helper --daemon");
	works(&w, &first, 10);
	signalled_by_kernel(&left, SIGKILL);
	ends_of(&left, SIGKILL);
	assert_int_equal(findings(), 0);
	/* What came into it by docker exec is no child of the first. */
	left = forks(&w, &job);
	left.context.pid_ns = 77;
	execs(&w, &left, "healthcheck");
	signalled_by_kernel(&left, SIGKILL);
	ends_of(&left, SIGKILL);
	assert_int_equal(findings(), 0);
	signalled_by_kernel(&first, SIGKILL);
	ends_of(&first, SIGKILL);
	assert_int_equal(findings(), 1);
	assert_chain(finding(0), &first, NULL);
}

/* slurmstepd is in the control groups of the job, and so of its run. */
static void
another_user_does_other_work(void **state)
{
	struct being script, step, tool;

	(void)state;
	script = child(NULL, "bash -c all");
	step = forks(&w, &script);
	step.context.uid = 0;
	execs(&w, &step, "slurmstepd: [1.batch]");
	tool = child(&script, "python3 work.py");
	signalled(&tool, &step, SIGTERM);
	ends_of(&tool, SIGTERM);
	assert_int_equal(findings(), 1);
	assert_string_equal(finding(0)->finding.kind, "KILLED");
}

/* What a batch script has left in the background is ended by the step's daemon as the script ends. */
static void
what_a_script_leaves_has_no_finding(void **state)
{
	struct being step, script, left;

	(void)state;
	step = forks(&w, NULL);
	step.context.uid = 0;
	execs(&w, &step, "slurmstepd: [1.batch]");
	script = child(&step, "bash -c all");
	left = child(&script, "dask-worker x");
	signalled(&script, &step, SIGTERM);	/* the limit of time */
	ends_of(&script, SIGTERM);
	assert_int_equal(findings(), 1);
	script = child(&step, "bash -c all");
	left = child(&script, "dask-worker x");
	exits(&w, &script, 0);
	signalled(&left, &step, SIGKILL);
	ends_of(&left, SIGKILL);
	assert_int_equal(findings(), 1);
}

/* ( sleep 1; kill $! ) & of a script: what the kernel knows of the sender is what it forked from. */
static void
a_young_fork_of_the_same_work_is_own(void **state)
{
	struct being driver, job, script, shell, helper;

	(void)state;
	begins(&driver, &job);
	helper = child(&job, "python3 helper.py");
	shell = forks(&w, &job);
	signalled(&helper, &shell, SIGTERM);
	ends_of(&helper, SIGTERM);
	assert_int_equal(findings(), 0);
	helper = child(&job, "python3 helper.py");
	script = child(NULL, "bash -c other");
	shell = forks(&w, &script);
	signalled(&helper, &shell, SIGTERM);
	ends_of(&helper, SIGTERM);
	exits(&w, &script, 0);
	assert_int_equal(findings(), 1);
	assert_chain(finding(0), &helper, &script, NULL);
}

static void
what_the_engine_ends(void **state)
{
	struct being driver, job;

	(void)state;
	begins(&driver, &job);
	signalled(&job, &driver, SIGTERM);
	ends_of(&job, SIGTERM);
	assert_int_equal(findings(), 1);
	assert_int_equal(finding(0)->finding.n_causes, 1);
}

static void
what_a_task_does_to_its_own_programs_is_none(void **state)
{
	struct being driver, job, timeout, tool;

	(void)state;
	begins(&driver, &job);
	timeout = child(&job, "timeout 5 bwa mem x");
	tool = child(&timeout, "bwa mem x");
	signalled(&tool, &timeout, SIGTERM);
	ends_of(&tool, SIGTERM);
	assert_int_equal(findings(), 0);
}

/* Here every program that a script starts is a task, and no engine has started any. */
static void
what_a_script_does_to_its_own_programs_is_none(void **state)
{
	struct being script, helper;

	(void)state;
	script = child(NULL, "bash -c all");
	helper = child(&script, "python3 helper.py");
	signalled(&helper, &script, SIGTERM);
	ends_of(&helper, SIGTERM);
	assert_int_equal(findings(), 0);
	helper = child(&script, "python3 helper.py");
	signalled(&helper, NULL, SIGTERM);
	ends_of(&helper, SIGTERM);
	assert_int_equal(findings(), 1);
}

/* As a signal to a group, or the end of a container's first process, ends all that it started. */
static void
what_ends_with_its_parent_has_no_finding_of_its_own(void **state)
{
	struct being driver, job, shell, tool;

	(void)state;
	begins(&driver, &job);
	shell = child(&job, "sh -c x");
	tool = child(&shell, "bwa mem x");
	signalled(&job, NULL, SIGTERM);
	signalled(&shell, NULL, SIGTERM);
	signalled_by_kernel(&tool, SIGKILL);
	ends_of(&tool, SIGKILL);
	ends_of(&shell, SIGTERM);
	assert_int_equal(findings(), 0);
	ends_of(&job, SIGTERM);
	assert_int_equal(findings(), 1);
	assert_chain(finding(0), &job, NULL);
}

/* It has much memory to give back, and other processes that ended meanwhile are forgotten. */
static void
what_ends_seconds_after_its_parent_has_none_either(void **state)
{
	struct being driver, job, shell, tool;

	(void)state;
	begins(&driver, &job);
	shell = child(&job, "sh -c x");
	tool = child(&shell, "bwa mem x");
	signalled(&shell, NULL, SIGKILL);
	signalled(&tool, NULL, SIGKILL);
	ends_of(&shell, SIGKILL);
	assert_int_equal(findings(), 1);
	for (int i = 0; i < 3; i++) {
		const struct being *live[] = { &driver, &job, &tool };

		w.now += SECOND;
		snapshot(&w, false, live, 3);
	}
	ends_of(&tool, SIGKILL);
	assert_int_equal(findings(), 1);
}

static void
an_oom_kill_is_that_alone(void **state)
{
	struct being driver, job;

	(void)state;
	begins(&driver, &job);
	signalled_by_kernel(&job, SIGKILL);
	is_killed(&job, SIGKILL, true);
	assert_int_equal(findings(), 1);
	assert_string_equal(finding(0)->finding.kind, "OOM_KILLED");
}

static void
another_end_than_by_the_signal_is_none(void **state)
{
	struct being driver, job, tool;

	(void)state;
	begins(&driver, &job);
	tool = child(&job, "bwa mem x");
	signalled(&tool, NULL, SIGTERM);
	exits_after(&tool, 5, 0);	/* it was exiting already */
	tool = child(&job, "bwa mem x");
	signalled(&tool, NULL, SIGTERM);
	ends_of(&tool, SIGSEGV);
	tool = child(&job, "bwa mem x");
	ends_of(&tool, SIGKILL);	/* the sender is not known */
	assert_int_equal(findings(), 0);
}

static void
a_program_of_no_run_has_none(void **state)
{
	struct being driver, job, other;

	(void)state;
	begins(&driver, &job);
	other = child(NULL, "sleep 9");
	signalled(&other, NULL, SIGTERM);
	ends_of(&other, SIGTERM);
	assert_int_equal(findings(), 0);
}

static void
the_sender_outlives_the_agent(void **state)
{
	struct being driver, job, shell, sender;

	(void)state;
	begins(&driver, &job);
	shell = child(NULL, "tcsh -l");
	sender = child(&shell, "kill -9 7");
	signalled(&job, &sender, SIGKILL);
	exits(&w, &sender, 0);
	dies();
	ends_of(&job, SIGKILL);
	assert_int_equal(findings(), 1);
	assert_int_equal(finding(0)->finding.n_causes, 2);
	assert_non_null(strstr(finding(0)->finding.message, "which kill (pid "));
	assert_non_null(strstr(finding(0)->finding.message, "sent, started by tcsh (pid "));
	dies();
	settles();
	for (size_t i = 1; i < findings(); i++)
		assert_string_not_equal(finding(i)->finding.kind, "KILLED");
}

static void
there_is_a_limit_to_kills_of_a_task(void **state)
{
	struct being driver, job, tool;

	(void)state;
	begins(&driver, &job);
	for (int i = 0; i < FINDINGS_OF_TASK_MAX + 3; i++) {
		if (i == FINDINGS_OF_TASK_MAX / 2)
			dies();
		tool = child(&job, "bwa mem x");
		signalled(&tool, NULL, SIGKILL);
		ends_of(&tool, SIGKILL);
	}
	assert_int_equal(totals(&w).findings_left_out, 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_program_that_an_outsider_ends),
		T(the_sender_and_what_started_it_are_named),
		T(the_kernel_is_named),
		T(the_kernel_ends_what_its_user_asks_for),
		T(what_a_container_leaves_has_no_finding),
		T(another_user_does_other_work),
		T(what_a_script_leaves_has_no_finding),
		T(a_young_fork_of_the_same_work_is_own),
		T(what_the_engine_ends),
		T(what_a_task_does_to_its_own_programs_is_none),
		T(what_a_script_does_to_its_own_programs_is_none),
		T(what_ends_with_its_parent_has_no_finding_of_its_own),
		T(what_ends_seconds_after_its_parent_has_none_either),
		T(an_oom_kill_is_that_alone),
		T(another_end_than_by_the_signal_is_none),
		T(a_program_of_no_run_has_none),
		T(the_sender_outlives_the_agent),
		T(there_is_a_limit_to_kills_of_a_task),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
