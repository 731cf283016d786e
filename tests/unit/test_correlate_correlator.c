/* SPDX-License-Identifier: Apache-2.0 */
/* correlator: life stories of processes, told as signals, and the records that come of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "signals.h"

static struct world w;

static int
setup(void **state)
{
	struct correlator_options options = world_options();

	(void)state;
	world_open(&w, &options);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	world_close(&w);	/* with ASan: whatever the story, nothing is left behind */
	return 0;
}

static int64_t
wall_us(uint64_t boot_ns)
{
	return CLOCK_US + (int64_t)(boot_ns / 1000);
}

static void
assert_cpu(const struct note *n, uint64_t ms)
{
	assert_non_null(n);
	assert_true(n->has_usage);
	assert_true(usage_has(&n->usage, USAGE_CPU_USER_NS));
	assert_int_equal(usage_cpu_ns(&n->usage), ms * MS);
}

static void
a_program_starts_and_ends(void **state)
{
	struct being sh = forks(&w, NULL), b;
	const struct note *n;

	(void)state;
	execs(&w, &sh, "sh pipeline.sh");
	b = forks(&w, &sh);
	works(&w, &b, 1);
	execs(&w, &b, "bwa mem ref.fa");
	n = note_of(&w, &b, 0, PHASE_START);
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
	assert_true(n->program.pid_ns.known && n->program.pid_ns.value == 11);
	assert_false(n->has_usage);
	assert_false(n->program.exit_code.known);
	assert_int_equal(n->program.end_reason, END_REASON_NONE);

	works(&w, &b, 250);
	exits(&w, &b, 3);
	n = note_of(&w, &b, 0, PHASE_END);
	assert_cpu(n, 251);
	assert_int_equal(n->time_us, wall_us(w.now));
	assert_int_equal(n->program.end_time_us.value, wall_us(w.now));
	assert_int_equal(n->program.end_reason, END_REASON_EXIT);
	assert_true(n->program.exit_code.known && n->program.exit_code.value == 3);
	assert_false(n->program.exit_signal.known);
	assert_string_equal(n->tool, "bwa mem");
	assert_string_equal(n->comm, "kernel-comm");	/* as it was called at the end */
	assert_string_equal(n->argv[1], "mem");
	assert_string_equal(n->program_id, note_of(&w, &b, 0, PHASE_START)->program_id);
	assert_string_equal(n->parent_program_id, note_of(&w, &sh, 0, PHASE_START)->program_id);
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
	struct state_signal s;

	(void)state;
	execs(&w, &sh, "sh");
	execs(&w, &a, "x");
	execs(&w, &b, "y");
	s = state_of(&w, &a, STATE_EXIT, 0);
	s.ppid = 1;
	correlator_state(w.c, &s);
	assert_int_equal(note_of(&w, &a, 0, PHASE_END)->id.ppid, 1);
	s = state_of(&w, &b, STATE_EXIT, 0);
	s.ppid = 0;			/* not known then */
	correlator_state(w.c, &s);
	assert_int_equal(note_of(&w, &b, 0, PHASE_END)->id.ppid, sh.key.pid);
}

static void
usage_is_told_under_the_programs_name(void **state)
{
	struct being b = forks(&w, NULL);
	const struct being *all[] = { &b };

	(void)state;
	execs(&w, &b, "bwa mem ref.fa");
	works(&w, &b, 10);
	snapshot(&w, true, all, 1);
	assert_string_equal(note_at(&w, TOPIC_USAGE, -1, 0)->comm, "bwa");
	assert_string_equal(note_at(&w, TOPIC_USAGE, -1, 0)->tool, "bwa mem");
}

static void
a_signal_is_told_from_a_code(void **state)
{
	struct being a = forks(&w, NULL), b = forks(&w, &a), c = forks(&w, &a);
	struct state_signal s;
	const struct note *n;

	(void)state;
	execs(&w, &b, "x");
	tells(&w, &b, STATE_EXIT, 0x86);	/* SIGABRT with a core */
	n = note_of(&w, &b, 0, PHASE_END);
	assert_true(n->program.exit_signal.known && n->program.exit_signal.value == 6);
	assert_false(n->program.exit_code.known);
	assert_true(n->program.core_dumped);
	assert_false(n->program.oom_killed);
	execs(&w, &c, "y");
	s = state_of(&w, &c, STATE_EXIT, 9);
	s.oom_killed = true;
	correlator_state(w.c, &s);
	n = note_of(&w, &c, 0, PHASE_END);
	assert_int_equal(n->program.exit_signal.value, 9);
	assert_false(n->program.core_dumped);
	assert_true(n->program.oom_killed);
	assert_int_equal(totals(&w).failed, 2);
}

static void
exec_ends_one_program_and_starts_the_next(void **state)
{
	struct being b = forks(&w, NULL);
	const struct note *first, *second;

	(void)state;
	execs(&w, &b, "sh -c bwa_mem");
	works(&w, &b, 5);
	execs(&w, &b, "bwa mem");
	first = note_of(&w, &b, 0, PHASE_END);
	assert_cpu(first, 5);
	assert_int_equal(first->program.end_reason, END_REASON_EXEC);
	assert_false(first->program.exit_code.known);
	assert_false(first->program.exit_signal.known);
	assert_string_equal(first->comm, "sh");
	assert_int_equal(first->program.end_time_us.value, wall_us(w.now));
	second = note_of(&w, &b, 1, PHASE_START);
	assert_non_null(second);
	assert_string_equal(second->parent_program_id, first->program_id);
	assert_string_not_equal(second->program_id, first->program_id);
	assert_int_equal(second->id.start_time_us, first->id.start_time_us);
	assert_int_equal(second->id.program_start_time_us, wall_us(w.now));
	works(&w, &b, 40);
	execs(&w, &b, "samtools sort");
	assert_cpu(note_of(&w, &b, 1, PHASE_END), 40);
	works(&w, &b, 2);
	exits(&w, &b, 0);
	assert_cpu(note_of(&w, &b, 2, PHASE_END), 2);
	assert_int_equal(note_count(&w, TOPIC_PROGRAM, PHASE_START), 3);
	assert_int_equal(note_count(&w, TOPIC_PROGRAM, PHASE_END), 3);
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
	const struct note *start, *end;

	(void)state;
	execs(&w, &sh, "bash -c x");
	b = forks(&w, &sh);
	works(&w, &b, 7);
	exits(&w, &b, 1);
	start = note_of(&w, &b, 0, PHASE_START);
	end = note_of(&w, &b, 0, PHASE_END);
	assert_non_null(start);
	assert_cpu(end, 7);
	assert_true(start->id.forked && end->id.forked);
	assert_string_equal(end->exe, "/usr/bin/bash");
	assert_string_equal(end->argv[1], "-c");
	assert_string_equal(end->tool, "bash");
	assert_string_equal(end->comm, "kernel-comm");
	assert_string_equal(end->parent_program_id, note_of(&w, &sh, 0, PHASE_START)->program_id);
	assert_true(end->program.uid.known && end->program.uid.value == 1000);
	assert_true(start->time_us <= end->time_us);
	assert_int_equal(totals(&w).programs, 2);
	assert_int_equal(totals(&w).live, 1);
}

/* Its parent began before we watched, and is found after its end: what the kernel calls it is known all the same. */
static void
a_child_of_nobody_known_has_its_own_name(void **state)
{
	struct being unknown = forks(&w, NULL), brief = forks(&w, &unknown), slow = forks(&w, &unknown);
	const struct being *all[] = { &slow };

	(void)state;
	exits(&w, &brief, 0);
	works(&w, &slow, 1100);
	snapshot(&w, false, all, 1);
	assert_string_equal(note_of(&w, &brief, 0, PHASE_END)->comm, "kernel-comm");
	assert_non_null(note_of(&w, &brief, 0, PHASE_START)->comm);
	assert_string_equal(note_of(&w, &brief, 0, PHASE_START)->comm, "kernel-comm");
	assert_null(note_of(&w, &brief, 0, PHASE_START)->exe);
	assert_string_equal(note_of(&w, &slow, 0, PHASE_START)->comm, "kernel-comm");
}

/* The record of an end comes after the reaping, and a grace period: a start is never later. */
static void
a_late_word_does_not_start_a_program_after_its_end(void **state)
{
	struct being sh = forks(&w, NULL), b;
	struct state_signal s;

	(void)state;
	execs(&w, &sh, "bash");
	b = forks(&w, &sh);
	works(&w, &b, 7);
	s = state_of(&w, &b, STATE_EXIT, 0);
	s.time_ns += 30 * MS;
	correlator_state(w.c, &s);
	assert_true(note_of(&w, &b, 0, PHASE_START)->time_us <= note_of(&w, &b, 0, PHASE_END)->time_us);
}

static void
a_child_that_does_not_exec_is_announced_after_a_second(void **state)
{
	struct being sh = forks(&w, NULL), b;
	const struct being *all[] = { &sh, &b };
	const struct note *n;

	(void)state;
	execs(&w, &sh, "python3 x.py");
	b = forks(&w, &sh);
	works(&w, &b, 900);
	snapshot(&w, false, all, 2);
	assert_null(note_of(&w, &b, 0, PHASE_START));
	assert_int_equal(correlator_live(w.c), 2);
	works(&w, &b, 200);
	snapshot(&w, false, all, 2);
	n = note_of(&w, &b, 0, PHASE_START);
	assert_non_null(n);
	assert_true(n->id.forked);
	assert_string_equal(n->exe, "/usr/bin/python3");
	snapshot(&w, false, all, 2);
	exits(&w, &b, 0);
	assert_int_equal(note_count(&w, TOPIC_PROGRAM, PHASE_START), 2);	/* once */
	assert_cpu(note_of(&w, &b, 0, PHASE_END), 1100);
}

/* A child is told a second after its fork, and its parent, that ended, may be told of later still. */
static void
a_child_of_one_that_is_not_told_yet_is_what_both_come_from(void **state)
{
	struct being sh = forks(&w, NULL), between, b;
	const struct being *all[] = { &sh, &b };
	const struct note *n;

	(void)state;
	execs(&w, &sh, "bash run.sh");
	between = forks(&w, &sh);
	b = forks(&w, &between);
	works(&w, &b, 1500);
	snapshot(&w, false, all, 2);
	n = note_of(&w, &b, 0, PHASE_START);
	assert_non_null(n);
	assert_string_equal(n->exe, "/usr/bin/bash");
	assert_true(n->program.uid.known && n->program.uid.value == 1000);
}

/* The kernel says what the child used until then, or, where that was lost, only that it is another now. */
static void
a_child_that_becomes_what_is_left_out_late_has_its_end(void **state)
{
	struct being sh = forks(&w, NULL), children[2];
	const struct being *all[] = { &sh, &children[0], &children[1] };

	(void)state;
	execs(&w, &sh, "bash run.sh");
	children[0] = forks(&w, &sh);
	children[1] = forks(&w, &sh);
	for (int i = 0; i < 2; i++)
		works(&w, &children[i], 1500);
	snapshot(&w, false, all, 3);
	for (int i = 0; i < 2; i++) {
		char words[] = "left-out", exe[256];
		const char *argv[1];
		size_t argv_len[1];
		struct exec_signal s;

		works(&w, &children[i], 100);
		exec_signal_fill(&w, &children[i], words, argv, argv_len, exe, &s);
		s.is_excluded = true;
		s.has_replaced = i == 0;
		correlator_exec(w.c, &s);
		assert_int_equal(totals(&w).live, 2 - i);
		assert_int_equal(totals(&w).lost_ends, i);
	}
	assert_cpu(note_of(&w, &children[0], 0, PHASE_END), 1600);
	assert_null(note_of(&w, &children[1], 0, PHASE_END));
}

static void
a_child_that_execs_late_ends_under_its_own_name(void **state)
{
	struct being sh = forks(&w, NULL), b;
	const struct being *all[] = { &sh, &b };
	const struct summary_row *rows;
	const struct note *n;

	(void)state;
	execs(&w, &sh, "bash run.sh");
	b = forks(&w, &sh);
	works(&w, &b, 1500);
	snapshot(&w, false, all, 2);
	assert_true(note_of(&w, &b, 0, PHASE_START)->id.forked);
	execs(&w, &b, "samtools sort");
	works(&w, &b, 10);
	exits(&w, &b, 0);
	n = note_of(&w, &b, 0, PHASE_END);
	assert_cpu(n, 1510);
	assert_string_equal(n->tool, "samtools sort");
	assert_false(n->id.forked);
	assert_int_equal(totals(&w).programs, 2);
	assert_int_equal(totals(&w).live, 1);
	/* and stands in the table under it */
	for (size_t i = 0, rows_n = correlator_summary(w.c, &rows); i < rows_n; i++) {
		if (rows[i].tool == NULL || strcmp(rows[i].tool, "samtools sort") != 0)
			continue;
		assert_int_equal(rows[i].programs, 1);
		assert_int_equal(usage_cpu_ns(&rows[i].usage), 1510 * MS);
		return;
	}
	fail();
}

static void
a_driver_that_execs_late_still_drives(void **state)
{
	struct being sh = forks(&w, NULL), b, c;
	const struct being *all[] = { &sh, &b };

	(void)state;
	execs(&w, &sh, "sh");
	b = forks(&w, &sh);
	works(&w, &b, 1500);
	snapshot(&w, false, all, 2);
	execs(&w, &b, "snakemake -c2");
	c = forks(&w, &b);
	execs(&w, &c, "samtools sort");
	assert_string_equal(note_of(&w, &c, 0, PHASE_START)->task, "samtools sort");
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
	assert_cpu(note_of(&w, &b, 0, PHASE_END), 5);
	assert_int_equal(correlator_live(w.c), 1);
	tells(&w, &b, STATE_ZOMBIE, 0);
	exits(&w, &b, 0);
	exits(&w, &b, 0);	/* said twice */
	c = forks(&w, &sh);
	tells(&w, &c, STATE_ZOMBIE, 0);	/* and one that never exec'd */
	exits(&w, &c, 0);
	assert_int_equal(note_count(&w, TOPIC_PROGRAM, PHASE_START), 3);
	assert_int_equal(note_count(&w, TOPIC_PROGRAM, PHASE_END), 2);
	assert_int_equal(totals(&w).live, 1);
	assert_int_equal(totals(&w).programs, 3);
}

static void
an_exec_after_the_end_changes_nothing(void **state)
{
	struct being sh = forks(&w, NULL), b, again;

	(void)state;
	execs(&w, &sh, "sh");
	b = again = forks(&w, &sh);
	execs(&w, &b, "x");
	tells(&w, &b, STATE_ZOMBIE, 0);
	execs(&w, &again, "x");
	exits(&w, &b, 0);
	assert_int_equal(note_count(&w, TOPIC_PROGRAM, PHASE_START), 2);
	assert_int_equal(note_count(&w, TOPIC_PROGRAM, PHASE_END), 1);
	assert_int_equal(totals(&w).live, 1);
}

/* The parent's own end may be told first. */
static void
a_late_child_still_knows_its_parent(void **state)
{
	struct being sh = forks(&w, NULL), parent, b, c;

	(void)state;
	execs(&w, &sh, "bash");
	parent = forks(&w, &sh);
	execs(&w, &parent, "python3 work.py");
	b = forks(&w, &parent);
	c = forks(&w, &parent);
	exits(&w, &parent, 0);
	works(&w, &b, 3);
	exits(&w, &b, 0);
	assert_string_equal(note_of(&w, &b, 0, PHASE_END)->tool, "work.py");
	execs(&w, &c, "samtools sort");
	assert_string_equal(note_of(&w, &c, 0, PHASE_START)->task, "work.py");
	snapshot(&w, false, NULL, 0);
	w.now += 10 * SECOND;
	snapshot(&w, false, NULL, 0);	/* but not for ever */
	b = forks(&w, &parent);
	exits(&w, &b, 0);
	assert_null(note_of(&w, &b, 0, PHASE_END)->tool);
}

static void
a_lost_exec_leaves_unknown_rather_than_wrong(void **state)
{
	struct being b = forks(&w, NULL);
	const struct note *n;

	(void)state;
	execs(&w, &b, "sh");
	works(&w, &b, 5);
	execs_unheard(&w, &b);		/* program 1 */
	works(&w, &b, 50);
	execs(&w, &b, "samtools sort");	/* program 2, with the totals at the end of program 1 */
	works(&w, &b, 500);
	exits(&w, &b, 0);
	assert_null(note_of(&w, &b, 0, PHASE_END));	/* its end was in the lost record */
	assert_null(note_of(&w, &b, 1, PHASE_START));
	n = note_of(&w, &b, 2, PHASE_END);
	assert_cpu(n, 500);
	assert_string_equal(n->tool, "samtools sort");
	assert_int_equal(totals(&w).lost_ends, 1);
	assert_int_equal(totals(&w).live, 0);
}

static void
a_lost_last_exec_leaves_an_end_without_usage(void **state)
{
	struct being b = forks(&w, NULL);
	const struct note *n;

	(void)state;
	execs(&w, &b, "sh");
	works(&w, &b, 5);
	execs_unheard(&w, &b);
	works(&w, &b, 50);
	exits(&w, &b, 2);
	n = note_of(&w, &b, 1, PHASE_END);
	assert_non_null(n);
	assert_true(n->has_usage);
	assert_int_equal(n->usage.known, 0);
	assert_null(n->exe);		/* not the one before's */
	assert_null(n->argv);
	assert_null(n->tool);
	assert_string_equal(n->comm, "kernel-comm");
	assert_int_equal(n->program.exit_code.value, 2);
	assert_int_equal(n->id.program_start_time_us, wall_us(b.program_start));
	assert_int_equal(totals(&w).lost_ends, 1);
	assert_int_equal(totals(&w).live, 0);
	assert_int_equal(totals(&w).programs, 2);
}

static void
a_lost_first_exec_keeps_its_totals(void **state)
{
	struct being sh = forks(&w, NULL), b, c;
	const struct note *n;

	(void)state;
	execs(&w, &sh, "bash");
	b = forks(&w, &sh);
	execs_unheard(&w, &b);
	works(&w, &b, 50);
	exits(&w, &b, 0);
	n = note_of(&w, &b, 0, PHASE_END);
	assert_cpu(n, 50);
	assert_false(n->id.forked);
	assert_null(n->tool);
	/* announced as its parent's copy before */
	c = forks(&w, &sh);
	works(&w, &c, 1100);
	tells(&w, &c, STATE_LIVE, 0);
	assert_string_equal(note_of(&w, &c, 0, PHASE_START)->exe, "/usr/bin/bash");
	execs_unheard(&w, &c);
	exits(&w, &c, 0);
	n = note_of(&w, &c, 0, PHASE_END);
	assert_cpu(n, 1100);
	assert_false(n->id.forked);
	assert_null(n->exe);		/* which it is no longer */
	assert_int_equal(totals(&w).lost_ends, 0);
	assert_int_equal(totals(&w).live, 1);
}

/* The iterator is ahead of the ring by what happened since the ring was drained. */
static void
a_snapshot_ahead_of_the_ring_does_no_harm(void **state)
{
	struct being sh = forks(&w, NULL), b, ahead;
	const struct being *all[] = { &ahead };

	(void)state;
	execs(&w, &sh, "bash");
	b = ahead = forks(&w, &sh);
	execs_unheard(&w, &ahead);	/* unheard yet */
	works(&w, &ahead, 5);
	execs_unheard(&w, &ahead);
	snapshot(&w, true, all, 1);
	assert_int_equal(note_count(&w, TOPIC_USAGE, -1), 0);
	execs(&w, &b, "sh -c x");
	works(&w, &b, 5);
	execs(&w, &b, "bwa mem");
	assert_cpu(note_of(&w, &b, 0, PHASE_END), 5);
	works(&w, &b, 6);
	exits(&w, &b, 0);
	assert_cpu(note_of(&w, &b, 1, PHASE_END), 6);
	assert_int_equal(note_count(&w, TOPIC_PROGRAM, PHASE_START), 3);
	assert_int_equal(note_count(&w, TOPIC_PROGRAM, PHASE_END), 2);
	assert_int_equal(totals(&w).lost_ends, 0);
}

static void
a_process_that_no_pass_meets_for_long_is_gone(void **state)
{
	struct being sh = forks(&w, NULL), b;
	const struct being *all[] = { &sh };

	(void)state;
	execs(&w, &sh, "sh");
	b = forks(&w, &sh);
	execs(&w, &b, "x");
	/* a burst of passes proves nothing: the kernel may still be about to let go of it */
	for (int i = 0; i < 50; i++) {
		w.now += 20 * MS;
		snapshot(&w, false, all, 1);
	}
	assert_int_equal(totals(&w).lost_ends, 0);
	assert_int_equal(totals(&w).live, 2);
	for (int i = 0; i < 20; i++) {
		w.now += SECOND;
		snapshot(&w, false, all, 1);
	}
	assert_int_equal(totals(&w).lost_ends, 1);
	assert_int_equal(totals(&w).live, 1);
	assert_int_equal(correlator_live(w.c), 1);
	assert_null(note_of(&w, &b, 0, PHASE_END));
}

static void
a_missed_pass_is_forgiven(void **state)
{
	struct being sh = forks(&w, NULL);
	const struct being *all[] = { &sh };

	(void)state;
	execs(&w, &sh, "sh");
	for (int i = 0; i < 100; i++) {
		w.now += SECOND;
		snapshot(&w, false, all, i % 10 == 0);
	}
	assert_int_equal(totals(&w).lost_ends, 0);
	assert_int_equal(totals(&w).live, 1);
}

static void
what_the_last_pass_did_not_meet_is_lost_at_the_end(void **state)
{
	struct being sh = forks(&w, NULL), b, c;
	const struct being *all[] = { &c };

	(void)state;
	execs(&w, &sh, "sh");
	b = forks(&w, &sh);
	execs(&w, &b, "x");
	c = forks(&w, &sh);
	execs(&w, &c, "sleep 100");
	exits(&w, &sh, 0);
	w.now += 20 * MS;
	snapshot(&w, false, all, 1);
	correlator_run_end(w.c, w.now, 0);
	assert_int_equal(totals(&w).lost_ends, 1);	/* b: nobody will hear of its end */
	assert_int_equal(totals(&w).live, 1);		/* c goes on */
	assert_int_equal(correlator_live(w.c), 1);
	assert_int_equal(note_at(&w, TOPIC_RUN, PHASE_END, 0)->work.live_programs, 1);
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
	b = forks(&w, &sh);		/* before the end of a is told */
	assert_int_equal(a.key.pid, b.key.pid);
	execs(&w, &b, "y");
	works(&w, &b, 4);
	exits(&w, &b, 0);
	exits(&w, &a, 0);
	assert_cpu(note_of(&w, &a, 0, PHASE_END), 3);
	assert_cpu(note_of(&w, &b, 0, PHASE_END), 4);
	assert_string_equal(note_of(&w, &a, 0, PHASE_END)->argv[0], "x");
	assert_string_equal(note_of(&w, &b, 0, PHASE_END)->argv[0], "y");
	assert_string_not_equal(note_of(&w, &a, 0, PHASE_END)->program_id,
	    note_of(&w, &b, 0, PHASE_END)->program_id);
	assert_int_equal(totals(&w).programs, 3);
}

static void
usage_records_are_differences_that_add_up(void **state)
{
	struct being b = forks(&w, NULL), idle;
	const struct being *all[] = { &b, &idle };
	uint64_t cpu = 0, rchar = 0, interval = 0;

	(void)state;
	execs(&w, &b, "bwa mem");
	idle = forks(&w, &b);
	execs(&w, &idle, "sleep 100");
	for (int i = 1; i <= 4; i++) {
		works(&w, &b, (uint64_t)i * 100);
		snapshot(&w, false, all, 2);		/* these tell nobody */
		snapshot(&w, true, all, 2);
	}
	for (size_t i = 0; i < 4; i++) {
		const struct note *n = NULL;

		for (size_t k = 0, met = 0; n == NULL && k < w.n; k++) {
			if (w.notes[k].topic == TOPIC_USAGE && w.notes[k].id.pid == b.key.pid && met++ == i)
				n = &w.notes[k];
		}
		assert_non_null(n);
		assert_string_equal(n->tool, "bwa mem");
		assert_string_equal(n->program_id, note_of(&w, &b, 0, PHASE_START)->program_id);
		assert_true(usage_has(&n->usage, USAGE_CPU_USER_NS));
		assert_true(usage_has(&n->usage, USAGE_RCHAR));
		cpu += usage_cpu_ns(&n->usage);
		rchar += n->usage.value[USAGE_RCHAR];
		interval += n->interval_ns;
		assert_int_equal(n->usage.value[USAGE_PEAK_RSS_BYTES], (i + 1) * 100 << 20);
	}
	assert_int_equal(cpu, 1000 * MS);
	assert_int_equal(rchar, 1000 * 1024);
	assert_int_equal(interval, w.now - b.key.start_ns);
	/* the sleeper said once that it is there */
	assert_int_equal(note_count(&w, TOPIC_USAGE, -1), 5);
}

static void
usage_starts_anew_with_each_program(void **state)
{
	struct being b = forks(&w, NULL);
	const struct being *all[] = { &b };
	const struct note *n;

	(void)state;
	execs(&w, &b, "sh");
	works(&w, &b, 100);
	snapshot(&w, true, all, 1);
	works(&w, &b, 30);
	execs(&w, &b, "bwa mem");
	works(&w, &b, 20);
	snapshot(&w, true, all, 1);
	n = note_at(&w, TOPIC_USAGE, -1, 1);
	assert_int_equal(n->id.program_index, 1);
	assert_int_equal(usage_cpu_ns(&n->usage), 20 * MS);
	assert_int_equal(n->interval_ns, 20 * MS);
}

static void
the_runs_usage_is_of_the_ended_and_the_live(void **state)
{
	struct being a = forks(&w, NULL), b;
	const struct being *all[] = { &a, &b };
	struct usage u;

	(void)state;
	execs(&w, &a, "sh");
	b = forks(&w, &a);
	execs(&w, &b, "bwa mem");
	works(&w, &b, 100);
	works(&w, &a, 10);
	snapshot(&w, false, all, 2);
	u = correlator_attributed_usage(w.c);
	assert_int_equal(usage_cpu_ns(&u), 110 * MS);
	assert_int_equal(correlator_attributed_rss(w.c), UINT64_C(110) << 20);
	assert_int_equal(u.value[USAGE_RSS_BYTES], UINT64_C(110) << 20);
	exits(&w, &b, 0);
	u = correlator_attributed_usage(w.c);
	assert_int_equal(usage_cpu_ns(&u), 110 * MS);
	assert_int_equal(u.value[USAGE_RSS_BYTES], UINT64_C(10) << 20);	/* what is gone holds none */
	assert_int_equal(u.value[USAGE_PEAK_RSS_BYTES], UINT64_C(100) << 20);
	assert_int_equal(correlator_attributed_rss(w.c), UINT64_C(10) << 20);
}

static void
cgroup_is(const char *v2, const char *v1)
{
	const struct note *n = note_at(&w, TOPIC_PROGRAM, PHASE_START, note_count(&w, TOPIC_PROGRAM, PHASE_START) - 1);

	if (v2 == NULL)
		assert_null(n->cgroup);
	else
		assert_string_equal(n->cgroup, v2);
	if (v1 == NULL)
		assert_null(n->cgroup_v1);
	else
		assert_string_equal(n->cgroup_v1, v1);
}

static void
in_cgroups(uint64_t v2, uint64_t v1)
{
	struct being b = forks(&w, NULL);

	b.context.cgroup_v2 = v2;
	b.context.cgroup_v1 = v1;
	execs(&w, &b, "x");
}

static void
the_cgroup_that_says_something_is_shown(void **state)
{
	(void)state;
	correlator_cgroup(w.c, &(struct cgroup_signal){ 1, true, "/" });
	correlator_cgroup(w.c, &(struct cgroup_signal){ 2, true, "/slice/x" });
	correlator_cgroup(w.c, &(struct cgroup_signal){ 2, false, "/slurm/\xff" });
	in_cgroups(2, 0);
	cgroup_is("/slice/x", NULL);
	in_cgroups(2, 2);
	cgroup_is("/slice/x", "/slurm/\\xff");
	in_cgroups(1, 2);		/* hybrid: v2 is there and empty */
	cgroup_is("/slurm/\\xff", "/slurm/\\xff");
	in_cgroups(1, 0);
	cgroup_is("/", NULL);
	in_cgroups(0, 2);
	cgroup_is("/slurm/\\xff", "/slurm/\\xff");
	in_cgroups(0, 0);
	cgroup_is(NULL, NULL);
	in_cgroups(77, 78);		/* never announced */
	cgroup_is(NULL, NULL);
}

static void
the_cgroups_used_least_are_forgotten(void **state)
{
	(void)state;
	for (uint64_t id = 1; id <= 16384; id++)
		correlator_cgroup(w.c, &(struct cgroup_signal){ id, true, "/x" });
	in_cgroups(1, 0);	/* used, so not the oldest any more */
	cgroup_is("/x", NULL);
	correlator_cgroup(w.c, &(struct cgroup_signal){ 20000, true, "/new" });
	in_cgroups(20000, 0);
	cgroup_is("/new", NULL);
	in_cgroups(1, 0);
	cgroup_is("/x", NULL);
	in_cgroups(2, 0);
	cgroup_is(NULL, NULL);
	in_cgroups(3, 0);
	cgroup_is("/x", NULL);
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
	tells(&w, &a, STATE_BYSTANDER, 0);	/* not ours to judge */
	assert_int_equal(correlator_live(w.c), 1);
}

static void
an_end_is_when_the_kernel_says(void **state)
{
	struct being a = forks(&w, NULL), b = forks(&w, NULL), c = forks(&w, NULL);
	uint64_t began_ns = w.now;
	struct state_signal s;

	(void)state;
	execs(&w, &a, "x");
	execs(&w, &b, "y");
	works(&w, &c, 40);
	execs(&w, &c, "z");
	execs(&w, &c, "zz");
	works(&w, &a, 100);
	s = state_of(&w, &a, STATE_EXIT, 0);
	s.end_ns = w.now - 50 * MS;	/* told later */
	correlator_state(w.c, &s);
	assert_int_equal(note_of(&w, &a, 0, PHASE_END)->time_us, wall_us(w.now - 50 * MS));
	assert_int_equal(note_of(&w, &a, 0, PHASE_END)->program.end_time_us.value, wall_us(w.now - 50 * MS));
	s = state_of(&w, &b, STATE_EXIT, 0);
	s.end_ns = 0;			/* not known: when it was told */
	correlator_state(w.c, &s);
	assert_int_equal(note_of(&w, &b, 0, PHASE_END)->time_us, wall_us(w.now));
	s = state_of(&w, &c, STATE_EXIT, 0);
	s.end_ns = began_ns;		/* never before its start */
	correlator_state(w.c, &s);
	assert_int_equal(note_of(&w, &c, 1, PHASE_END)->time_us, note_of(&w, &c, 1, PHASE_START)->time_us);
}

static void
of_what_is_not_known_an_exec_tells_nothing(void **state)
{
	struct being b = forks(&w, NULL);
	const struct note *n;

	(void)state;
	b.key.index = 1;		/* its first exec was lost, and this one tells no totals */
	execs(&w, &b, "sh");
	works(&w, &b, 50);
	execs(&w, &b, "true");
	n = note_of(&w, &b, 1, PHASE_END);
	assert_non_null(n);
	assert_int_equal(n->program.end_reason, END_REASON_EXEC);
	assert_int_equal(n->usage.known, 0);
	works(&w, &b, 7);
	exits(&w, &b, 0);
	assert_cpu(note_of(&w, &b, 2, PHASE_END), 7);	/* from here on it is known again */
}

static void
a_second_is_a_second(void **state)
{
	struct being sh = forks(&w, NULL), b;
	struct state_signal s;

	(void)state;
	execs(&w, &sh, "bash");
	b = forks(&w, &sh);
	works(&w, &b, 1000);
	s = state_of(&w, &b, STATE_LIVE, 0);
	s.time_ns--;
	correlator_state(w.c, &s);
	assert_null(note_of(&w, &b, 0, PHASE_START));
	s.time_ns++;
	correlator_state(w.c, &s);
	assert_non_null(note_of(&w, &b, 0, PHASE_START));
	assert_int_equal(note_of(&w, &b, 0, PHASE_START)->time_us, wall_us(w.now));
}

/* Each of them alone is something that a program did; that time went by is nothing. */
static void
whatever_moved_is_told_and_nothing_is_not(void **state)
{
	struct being b = forks(&w, NULL);
	const struct being *all[] = { &b };
	uint64_t *const counters[] = { &b.c.runtime_ns, &b.c.voluntary_switches, &b.c.rchar, &b.c.wchar };
	uint64_t told_ns;

	(void)state;
	execs(&w, &b, "bwa mem");
	works(&w, &b, 100);
	snapshot(&w, true, all, 1);
	assert_int_equal(note_count(&w, TOPIC_USAGE, -1), 1);
	told_ns = w.now;
	for (size_t i = 0; i < 4; i++) {
		w.now += SECOND;
		snapshot(&w, true, all, 1);
		assert_int_equal(note_count(&w, TOPIC_USAGE, -1), i + 1);
		w.now += SECOND;
		*counters[i] += i == 0 ? MS : 1;
		b.c.utime += i == 0;
		snapshot(&w, true, all, 1);
		assert_int_equal(note_count(&w, TOPIC_USAGE, -1), i + 2);
		/* Since the last record, not since the last look. */
		assert_int_equal(note_at(&w, TOPIC_USAGE, -1, i + 1)->interval_ns, w.now - told_ns);
		assert_int_equal(note_at(&w, TOPIC_USAGE, -1, i + 1)->time_us, wall_us(w.now));
		told_ns = w.now;
	}
	b.c.rchar += 1000;		/* of no time at all nothing is told, but it is with the next */
	snapshot(&w, true, all, 1);
	assert_int_equal(note_count(&w, TOPIC_USAGE, -1), 5);
	w.now += 1;
	snapshot(&w, true, all, 1);
	assert_int_equal(note_count(&w, TOPIC_USAGE, -1), 6);
	assert_int_equal(note_at(&w, TOPIC_USAGE, -1, 5)->usage.value[USAGE_RCHAR], 1000);
	assert_int_equal(note_at(&w, TOPIC_USAGE, -1, 5)->interval_ns, 1);
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
		struct state_signal s;
		size_t n = 0;

		execs(&w, &b, "bwa mem");
		works(&w, &b, 10);
		s = state_of(&w, &b, STATE_EXIT, cases[i].status);
		s.oom_killed = cases[i].is_marked;
		correlator_state(w.c, &s);
		for (size_t k = 0; k < w.n; k++)
			n += w.notes[k].topic == TOPIC_FINDING && strcmp(w.notes[k].finding.kind, "OOM_KILLED") == 0;
		assert_int_equal(n, cases[i].findings);
		assert_int_equal(note_of(&w, &b, 0, PHASE_END)->program.oom_killed, cases[i].is_marked);
	}
}

/* A program that another agent may have told of is told of once. */
static void
who_is_over_is_not_alive_again(void **state)
{
	struct being sh = forks(&w, NULL), b;
	const struct being *all[] = { &b };

	(void)state;
	execs(&w, &sh, "sh");
	b = forks(&w, &sh);
	execs(&w, &b, "x");
	works(&w, &b, 5);
	tells(&w, &b, STATE_ZOMBIE, 0);
	works(&w, &b, 2000);
	snapshot(&w, true, all, 1);
	tells(&w, &b, STATE_FOUND, 0);
	assert_int_equal(note_count(&w, TOPIC_USAGE, -1), 0);
	assert_int_equal(note_count(&w, TOPIC_PROGRAM, PHASE_START), 2);
	assert_int_equal(correlator_live(w.c), 1);
	assert_int_equal(totals(&w).live, 1);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_program_starts_and_ends),
		TEST(an_orphans_end_tells_who_has_taken_it),
		TEST(usage_is_told_under_the_programs_name),
		TEST(a_signal_is_told_from_a_code),
		TEST(exec_ends_one_program_and_starts_the_next),
		TEST(a_child_that_never_execs_is_its_parents_program),
		TEST(a_child_of_nobody_known_has_its_own_name),
		TEST(a_late_word_does_not_start_a_program_after_its_end),
		TEST(a_child_that_does_not_exec_is_announced_after_a_second),
		TEST(a_child_of_one_that_is_not_told_yet_is_what_both_come_from),
		TEST(a_child_that_becomes_what_is_left_out_late_has_its_end),
		TEST(a_child_that_execs_late_ends_under_its_own_name),
		TEST(a_driver_that_execs_late_still_drives),
		TEST(a_zombie_ends_once),
		TEST(an_exec_after_the_end_changes_nothing),
		TEST(a_late_child_still_knows_its_parent),
		TEST(a_lost_exec_leaves_unknown_rather_than_wrong),
		TEST(a_lost_last_exec_leaves_an_end_without_usage),
		TEST(a_lost_first_exec_keeps_its_totals),
		TEST(an_end_is_when_the_kernel_says),
		TEST(of_what_is_not_known_an_exec_tells_nothing),
		TEST(a_snapshot_ahead_of_the_ring_does_no_harm),
		TEST(a_process_that_no_pass_meets_for_long_is_gone),
		TEST(a_missed_pass_is_forgiven),
		TEST(what_the_last_pass_did_not_meet_is_lost_at_the_end),
		TEST(a_pid_that_comes_back_is_another_process),
		TEST(usage_records_are_differences_that_add_up),
		TEST(usage_starts_anew_with_each_program),
		TEST(the_runs_usage_is_of_the_ended_and_the_live),
		TEST(the_cgroup_that_says_something_is_shown),
		TEST(the_cgroups_used_least_are_forgotten),
		TEST(each_live_process_is_visited),
		TEST(a_second_is_a_second),
		TEST(whatever_moved_is_told_and_nothing_is_not),
		TEST(only_who_was_killed_was_killed_for_memory),
		TEST(who_is_over_is_not_alive_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
