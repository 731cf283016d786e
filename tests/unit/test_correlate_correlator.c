/* SPDX-License-Identifier: Apache-2.0 */
/* correlator: the events of processes' lives, and the records made of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "correlate/bill.h"
#include "one_world.h"

static void
a_program_starts_and_ends(void **state)
{
	struct being sh = forks(&w, NULL), b;
	const struct kept_record *n;
	struct bill bill;

	(void)state;
	execs(&w, &sh, "sh pipeline.sh");
	b = forks(&w, &sh);
	works(&w, &b, 1);
	execs(&w, &b, "bwa mem ref.fa");
	n = record_of(&w, &b, 0, PHASE_START);
	assert_non_null(n);
	assert_int_equal(n->time_us, wall_us(w.now));
	assert_int_equal(n->id.start_time_us, wall_us(b.key.start_ns));
	assert_int_equal(n->id.program_start_time_us, n->id.start_time_us);	/* fork to exec is its own */
	assert_int_equal(n->id.ppid, sh.key.pid);
	assert_false(n->id.forked);
	assert_string_equal(n->run_id, "run-1");
	assert_string_equal(n->pipeline, "demo");
	assert_string_equal(n->exe, "/usr/bin/bwa");
	assert_string_equal(n->comm, "bwa");
	assert_string_equal(n->cwd, "/w");
	assert_string_equal(n->tool, "bwa mem");
	assert_int_equal(n->program.argc, 3);
	assert_string_equal(n->argv[2], "ref.fa");
	assert_true(n->program.uid.known && n->program.uid.value == 1000);
	assert_true(n->program.gid.known && n->program.gid.value == 1001);
	assert_true(n->program.pid_ns.known && n->program.pid_ns.value == NAMESPACE_PID_OF_HOST);
	assert_false(n->has_usage || n->has_bill);
	assert_false(n->program.exit_code.known);
	assert_int_equal(n->program.end_reason, END_REASON_NONE);

	works(&w, &b, 250);
	exits(&w, &b, 3);
	n = record_of(&w, &b, 0, PHASE_END);
	assert_true(record_has_cpu(n, 251));
	assert_true(n->has_bill);
	bill = bill_of_threads(&n->usage);
	for (int i = 0; i < BILL_PARTS; i++)
		assert_int_equal(bill_ns(&n->bill, i), bill_ns(&bill, i));
	assert_int_equal(bill_ns(&n->bill, BILL_CPU), n->usage.value[USAGE_THREAD_NS]);
	assert_int_equal(n->time_us, wall_us(w.now));
	assert_int_equal(n->program.end_time_us.value, wall_us(w.now));
	assert_int_equal(n->program.end_reason, END_REASON_EXIT);
	assert_true(n->program.exit_code.known && n->program.exit_code.value == 3);
	assert_false(n->program.exit_signal.known);
	assert_string_equal(n->tool, "bwa mem");
	assert_string_equal(n->comm, "kernel-comm");	/* as it was called at the end */
	assert_string_equal(n->argv[1], "mem");
	assert_string_equal(n->program_id, record_of(&w, &b, 0, PHASE_START)->program_id);
	assert_string_equal(n->parent_program_id, record_of(&w, &sh, 0, PHASE_START)->program_id);
	assert_int_equal(n->usage.value[USAGE_PEAK_RSS_BYTES], UINT64_C(250) << 20);
	assert_int_equal(totals(&w).programs, 2);
	assert_int_equal(totals(&w).failed, 1);
	assert_int_equal(totals(&w).live, 1);
	assert_int_equal(correlator_live(w.c), 1);
}

static void
an_orphans_end_tells_who_has_taken_it(void **state)
{
	struct being sh = forks(&w, NULL), a = forks(&w, &sh), b = forks(&w, &sh);
	struct state_event s;

	(void)state;
	execs(&w, &sh, "sh");
	execs(&w, &a, "x");
	execs(&w, &b, "y");
	s = state_of(&w, &a, STATE_EXIT, 0);
	s.ppid = 1;
	correlator_state(w.c, &s);
	assert_int_equal(record_of(&w, &a, 0, PHASE_END)->id.ppid, 1);
	s = state_of(&w, &b, STATE_EXIT, 0);
	s.ppid = 0;			/* not known then */
	correlator_state(w.c, &s);
	assert_int_equal(record_of(&w, &b, 0, PHASE_END)->id.ppid, sh.key.pid);
}

static void
a_signal_is_distinguished_from_a_code(void **state)
{
	struct being a = forks(&w, NULL), b = forks(&w, &a), c = forks(&w, &a);
	struct state_event s;
	const struct kept_record *n;

	(void)state;
	execs(&w, &b, "x");
	tells(&w, &b, STATE_EXIT, 0x86);	/* SIGABRT with a core */
	n = record_of(&w, &b, 0, PHASE_END);
	assert_true(n->program.exit_signal.known && n->program.exit_signal.value == 6);
	assert_false(n->program.exit_code.known);
	assert_true(n->program.core_dumped);
	assert_false(n->program.oom_killed);
	execs(&w, &c, "y");
	s = state_of(&w, &c, STATE_EXIT, 9);
	s.oom_killed = true;
	correlator_state(w.c, &s);
	n = record_of(&w, &c, 0, PHASE_END);
	assert_int_equal(n->program.exit_signal.value, 9);
	assert_false(n->program.core_dumped);
	assert_true(n->program.oom_killed);
	assert_int_equal(totals(&w).failed, 2);
}

static void
exec_ends_one_program_and_starts_the_next(void **state)
{
	struct being b = forks(&w, NULL);
	const struct kept_record *first, *second;

	(void)state;
	execs(&w, &b, "sh -c bwa_mem");
	works(&w, &b, 5);
	execs(&w, &b, "bwa mem");
	first = record_of(&w, &b, 0, PHASE_END);
	assert_true(record_has_cpu(first, 5));
	assert_int_equal(first->program.end_reason, END_REASON_EXEC);
	assert_false(first->program.exit_code.known);
	assert_false(first->program.exit_signal.known);
	assert_string_equal(first->comm, "sh");
	assert_int_equal(first->program.end_time_us.value, wall_us(w.now));
	second = record_of(&w, &b, 1, PHASE_START);
	assert_non_null(second);
	assert_string_equal(second->parent_program_id, first->program_id);
	assert_string_not_equal(second->program_id, first->program_id);
	assert_int_equal(second->id.start_time_us, first->id.start_time_us);
	assert_int_equal(second->id.program_start_time_us, wall_us(w.now));
	works(&w, &b, 40);
	execs(&w, &b, "samtools sort");
	assert_true(record_has_cpu(record_of(&w, &b, 1, PHASE_END), 40));
	works(&w, &b, 2);
	exits(&w, &b, 0);
	assert_true(record_has_cpu(record_of(&w, &b, 2, PHASE_END), 2));
	assert_int_equal(record_count(&w, TOPIC_PROGRAM, PHASE_START), 3);
	assert_int_equal(record_count(&w, TOPIC_PROGRAM, PHASE_END), 3);
	assert_int_equal(totals(&w).programs, 3);
	assert_int_equal(totals(&w).failed, 0);
	assert_int_equal(totals(&w).lost_ends, 0);
	assert_int_equal(usage_cpu_ns(&(struct usage){ .value = { totals(&w).usage.value[0],
	    totals(&w).usage.value[1] }, .known = 3 }), 47 * MS);
}

static void
a_child_that_never_execs_is_its_parents_program(void **state)
{
	struct being sh = forks(&w, NULL), b;
	const struct kept_record *start, *end;

	(void)state;
	execs(&w, &sh, "bash -c x");
	b = forks(&w, &sh);
	works(&w, &b, 7);
	exits(&w, &b, 1);
	start = record_of(&w, &b, 0, PHASE_START);
	end = record_of(&w, &b, 0, PHASE_END);
	assert_non_null(start);
	assert_true(record_has_cpu(end, 7));
	assert_true(start->id.forked && end->id.forked);
	assert_string_equal(end->exe, "/usr/bin/bash");
	assert_string_equal(end->argv[1], "-c");
	assert_string_equal(end->tool, "bash");
	assert_string_equal(end->comm, "kernel-comm");
	assert_string_equal(end->parent_program_id, record_of(&w, &sh, 0, PHASE_START)->program_id);
	assert_true(end->program.uid.known && end->program.uid.value == 1000);
	assert_true(start->time_us <= end->time_us);
	assert_int_equal(totals(&w).programs, 2);
	assert_int_equal(totals(&w).live, 1);
}

static void
a_zombie_ends_once(void **state)
{
	struct being sh = forks(&w, NULL), b, c;

	(void)state;
	execs(&w, &sh, "sh");
	b = forks(&w, &sh);
	execs(&w, &b, "x");
	works(&w, &b, 5);
	tells(&w, &b, STATE_ZOMBIE, 0);
	assert_true(record_has_cpu(record_of(&w, &b, 0, PHASE_END), 5));
	assert_int_equal(correlator_live(w.c), 1);
	tells(&w, &b, STATE_ZOMBIE, 0);
	exits(&w, &b, 0);
	exits(&w, &b, 0);	/* said twice */
	c = forks(&w, &sh);
	tells(&w, &c, STATE_ZOMBIE, 0);	/* and one that never exec'd */
	exits(&w, &c, 0);
	assert_int_equal(record_count(&w, TOPIC_PROGRAM, PHASE_START), 3);
	assert_int_equal(record_count(&w, TOPIC_PROGRAM, PHASE_END), 2);
	assert_int_equal(totals(&w).live, 1);
	assert_int_equal(totals(&w).programs, 3);
}

static void
a_pid_that_comes_back_is_another_process(void **state)
{
	struct being sh = forks(&w, NULL), a, b;

	(void)state;
	execs(&w, &sh, "sh");
	a = forks(&w, &sh);
	execs(&w, &a, "x");
	works(&w, &a, 3);
	w.next_pid--;
	b = forks(&w, &sh);		/* before the end of a is reported */
	assert_int_equal(a.key.pid, b.key.pid);
	execs(&w, &b, "y");
	works(&w, &b, 4);
	exits(&w, &b, 0);
	exits(&w, &a, 0);
	assert_true(record_has_cpu(record_of(&w, &a, 0, PHASE_END), 3));
	assert_true(record_has_cpu(record_of(&w, &b, 0, PHASE_END), 4));
	assert_string_equal(record_of(&w, &a, 0, PHASE_END)->argv[0], "x");
	assert_string_equal(record_of(&w, &b, 0, PHASE_END)->argv[0], "y");
	assert_string_not_equal(record_of(&w, &a, 0, PHASE_END)->program_id,
	    record_of(&w, &b, 0, PHASE_END)->program_id);
	assert_int_equal(totals(&w).programs, 3);
}

static void
on_live(uint32_t pid, const char *comm, const char *exe, void *arg)
{
	char *seen = arg;

	snprintf(seen + strlen(seen), 256 - strlen(seen), "%u %s %s;", pid, comm != NULL ? comm : "?",
	    exe != NULL ? exe : "?");
}

static void
each_live_process_is_visited(void **state)
{
	struct being a = forks(&w, NULL), b, c;
	char seen[256] = "";

	(void)state;
	execs(&w, &a, "sh");
	b = forks(&w, &a);
	execs(&w, &b, "x");
	c = forks(&w, &a);
	tells(&w, &c, STATE_LIVE, 0);
	correlator_each_live(w.c, on_live, seen);
	assert_string_equal(seen, "100 sh /usr/bin/sh;101 x /usr/bin/x;102 sh /usr/bin/sh;");
	assert_int_equal(correlator_live(w.c), 3);
	tells(&w, &b, STATE_ZOMBIE, 0);
	exits(&w, &c, 0);
	seen[0] = '\0';
	correlator_each_live(w.c, on_live, seen);
	assert_string_equal(seen, "100 sh /usr/bin/sh;");
	assert_int_equal(correlator_live(w.c), 1);
	tells(&w, &a, STATE_UNTRACKED, 0);	/* not ours to judge */
	assert_int_equal(correlator_live(w.c), 1);
}

static void
an_end_is_when_the_kernel_says(void **state)
{
	struct being a = forks(&w, NULL), b = forks(&w, NULL), c = forks(&w, NULL);
	uint64_t began_ns = w.now;
	struct state_event s;

	(void)state;
	execs(&w, &a, "x");
	execs(&w, &b, "y");
	works(&w, &c, 40);
	execs(&w, &c, "z");
	execs(&w, &c, "zz");
	works(&w, &a, 100);
	s = state_of(&w, &a, STATE_EXIT, 0);
	s.end_ns = w.now - 50 * MS;	/* reported later */
	correlator_state(w.c, &s);
	assert_int_equal(record_of(&w, &a, 0, PHASE_END)->time_us, wall_us(w.now - 50 * MS));
	assert_int_equal(record_of(&w, &a, 0, PHASE_END)->program.end_time_us.value, wall_us(w.now - 50 * MS));
	s = state_of(&w, &b, STATE_EXIT, 0);
	s.end_ns = 0;			/* unknown: the time of the report counts */
	correlator_state(w.c, &s);
	assert_int_equal(record_of(&w, &b, 0, PHASE_END)->time_us, wall_us(w.now));
	s = state_of(&w, &c, STATE_EXIT, 0);
	s.end_ns = began_ns;		/* never before its start */
	correlator_state(w.c, &s);
	assert_int_equal(record_of(&w, &c, 1, PHASE_END)->time_us, record_of(&w, &c, 1, PHASE_START)->time_us);
}

/* One that was ending when the kernel chose it ends as it would have: that is no finding. */
static void
only_who_was_killed_was_killed_for_memory(void **state)
{
	static const struct {
		int status;
		bool is_marked;
		size_t findings;
	} cases[] = { { 15, true, 0 }, { 0, true, 0 }, { 9, false, 0 }, { 9, true, 1 } };
	struct being sh = forks(&w, NULL);

	(void)state;
	execs(&w, &sh, "sh");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct being b = forks(&w, &sh);
		struct state_event s;
		size_t n = 0;

		execs(&w, &b, "bwa mem");
		works(&w, &b, 10);
		s = state_of(&w, &b, STATE_EXIT, cases[i].status);
		s.oom_killed = cases[i].is_marked;
		correlator_state(w.c, &s);
		for (size_t k = 0; k < w.n; k++)
			n += w.records[k].topic == TOPIC_FINDING &&
			    strcmp(w.records[k].finding.kind, "OOM_KILLED") == 0;
		assert_int_equal(n, cases[i].findings);
		assert_int_equal(record_of(&w, &b, 0, PHASE_END)->program.oom_killed, cases[i].is_marked);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_program_starts_and_ends),
		T(an_orphans_end_tells_who_has_taken_it),
		T(a_signal_is_distinguished_from_a_code),
		T(exec_ends_one_program_and_starts_the_next),
		T(a_child_that_never_execs_is_its_parents_program),
		T(a_zombie_ends_once),
		T(a_pid_that_comes_back_is_another_process),
		T(each_live_process_is_visited),
		T(an_end_is_when_the_kernel_says),
		T(only_who_was_killed_was_killed_for_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
