/* SPDX-License-Identifier: Apache-2.0 */
/* correlator: events that are late, repeated, out of order or lost cause no wrong records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "one_world.h"

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
	assert_string_equal(record_of(&w, &brief, 0, PHASE_END)->comm, "kernel-comm");
	assert_non_null(record_of(&w, &brief, 0, PHASE_START)->comm);
	assert_string_equal(record_of(&w, &brief, 0, PHASE_START)->comm, "kernel-comm");
	assert_null(record_of(&w, &brief, 0, PHASE_START)->exe);
	assert_string_equal(record_of(&w, &slow, 0, PHASE_START)->comm, "kernel-comm");
}

/* As after a restart, when a pass comes before what waits in the ring. */
static void
a_child_that_a_pass_saw_before_the_exec_of_its_ancestor_is_what_that_is(void **state)
{
	struct being sh = forks(&w, NULL), child, grandchild;
	const struct being *all[] = { &child, &grandchild };
	char words[] = "bash run.sh", exe[256];
	const char *argv[64];
	struct exec_event s;
	size_t argv_len[64];

	(void)state;
	exec_event_fill(&w, &sh, words, argv, argv_len, exe, &s);
	child = forks(&w, &sh);
	grandchild = forks(&w, &child);
	snapshot(&w, false, all, 2);
	correlator_exec(w.c, &s);
	works(&w, &grandchild, 7);
	exits(&w, &grandchild, 0);
	exits(&w, &child, 0);
	assert_string_equal(record_of(&w, &grandchild, 0, PHASE_END)->exe, "/usr/bin/bash");
	assert_string_equal(record_of(&w, &child, 0, PHASE_END)->exe, "/usr/bin/bash");
}

/* An end is recorded after the reaping and a grace period: a start is never later. */
static void
a_late_word_does_not_start_a_program_after_its_end(void **state)
{
	struct being sh = forks(&w, NULL), b;
	struct state_event s;

	(void)state;
	execs(&w, &sh, "bash");
	b = forks(&w, &sh);
	works(&w, &b, 7);
	s = state_of(&w, &b, STATE_EXIT, 0);
	s.time_ns += 30 * MS;
	correlator_state(w.c, &s);
	assert_true(record_of(&w, &b, 0, PHASE_START)->time_us <= record_of(&w, &b, 0, PHASE_END)->time_us);
}

static void
a_child_that_does_not_exec_is_announced_after_a_second(void **state)
{
	struct being sh = forks(&w, NULL), b;
	const struct being *all[] = { &sh, &b };
	const struct kept_record *n;

	(void)state;
	execs(&w, &sh, "python3 x.py");
	b = forks(&w, &sh);
	works(&w, &b, 900);
	snapshot(&w, false, all, 2);
	assert_null(record_of(&w, &b, 0, PHASE_START));
	assert_int_equal(correlator_live(w.c), 2);
	works(&w, &b, 200);
	snapshot(&w, false, all, 2);
	n = record_of(&w, &b, 0, PHASE_START);
	assert_non_null(n);
	assert_true(n->id.forked);
	assert_string_equal(n->exe, "/usr/bin/python3");
	snapshot(&w, false, all, 2);
	exits(&w, &b, 0);
	assert_int_equal(record_count(&w, TOPIC_PROGRAM, PHASE_START), 2);	/* once */
	assert_true(record_has_cpu(record_of(&w, &b, 0, PHASE_END), 1100));
}

/* A child is recorded a second after its fork; the end of its parent may be reported even later. */
static void
a_child_of_one_that_is_not_reported_yet_is_what_both_come_from(void **state)
{
	struct being sh = forks(&w, NULL), between, b;
	const struct being *all[] = { &sh, &b };
	const struct kept_record *n;

	(void)state;
	execs(&w, &sh, "bash run.sh");
	between = forks(&w, &sh);
	b = forks(&w, &between);
	works(&w, &b, 1500);
	snapshot(&w, false, all, 2);
	n = record_of(&w, &b, 0, PHASE_START);
	assert_non_null(n);
	assert_string_equal(n->exe, "/usr/bin/bash");
	assert_true(n->program.uid.known && n->program.uid.value == 1000);
}

/* The kernel reports the usage of the child until then, or, if that was lost, only the new program. */
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
		struct exec_event s;

		works(&w, &children[i], 100);
		exec_event_fill(&w, &children[i], words, argv, argv_len, exe, &s);
		s.is_excluded = true;
		s.has_replaced = i == 0;
		correlator_exec(w.c, &s);
		assert_int_equal(totals(&w).live, 2 - i);
		assert_int_equal(totals(&w).lost_ends, i);
	}
	assert_true(record_has_cpu(record_of(&w, &children[0], 0, PHASE_END), 1600));
	assert_null(record_of(&w, &children[1], 0, PHASE_END));
}

static void
a_child_that_execs_late_ends_under_its_own_name(void **state)
{
	struct being sh = forks(&w, NULL), b;
	const struct being *all[] = { &sh, &b };
	const struct summary_row *rows;
	const struct kept_record *n;

	(void)state;
	execs(&w, &sh, "bash run.sh");
	b = forks(&w, &sh);
	works(&w, &b, 1500);
	snapshot(&w, false, all, 2);
	assert_true(record_of(&w, &b, 0, PHASE_START)->id.forked);
	execs(&w, &b, "samtools sort");
	works(&w, &b, 10);
	exits(&w, &b, 0);
	n = record_of(&w, &b, 0, PHASE_END);
	assert_true(record_has_cpu(n, 1510));
	assert_string_equal(n->tool, "samtools sort");
	assert_false(n->id.forked);
	assert_int_equal(totals(&w).programs, 2);
	assert_int_equal(totals(&w).live, 1);
	/* and is in the table under it */
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
	assert_string_equal(record_of(&w, &c, 0, PHASE_START)->task, "samtools sort");
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
	assert_int_equal(record_count(&w, TOPIC_PROGRAM, PHASE_START), 2);
	assert_int_equal(record_count(&w, TOPIC_PROGRAM, PHASE_END), 1);
	assert_int_equal(totals(&w).live, 1);
}

/* The parent's own end may be reported first. */
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
	assert_string_equal(record_of(&w, &b, 0, PHASE_END)->tool, "work.py");
	execs(&w, &c, "samtools sort");
	assert_string_equal(record_of(&w, &c, 0, PHASE_START)->task, "work.py");
	snapshot(&w, false, NULL, 0);
	w.now += 10 * SECOND;
	snapshot(&w, false, NULL, 0);	/* but not for ever */
	b = forks(&w, &parent);
	exits(&w, &b, 0);
	assert_null(record_of(&w, &b, 0, PHASE_END)->tool);
}

static void
a_lost_exec_leaves_unknown_rather_than_wrong(void **state)
{
	struct being b = forks(&w, NULL);
	const struct kept_record *n;

	(void)state;
	execs(&w, &b, "sh");
	works(&w, &b, 5);
	execs_unheard(&w, &b);		/* program 1 */
	works(&w, &b, 50);
	execs(&w, &b, "samtools sort");	/* program 2, with the totals at the end of program 1 */
	works(&w, &b, 500);
	exits(&w, &b, 0);
	assert_null(record_of(&w, &b, 0, PHASE_END));	/* its end was in the lost record */
	assert_null(record_of(&w, &b, 1, PHASE_START));
	n = record_of(&w, &b, 2, PHASE_END);
	assert_true(record_has_cpu(n, 500));
	assert_string_equal(n->tool, "samtools sort");
	assert_int_equal(totals(&w).lost_ends, 1);
	assert_int_equal(totals(&w).live, 0);
}

static void
a_lost_last_exec_leaves_an_end_without_usage(void **state)
{
	struct being b = forks(&w, NULL);
	const struct kept_record *n;

	(void)state;
	execs(&w, &b, "sh");
	works(&w, &b, 5);
	execs_unheard(&w, &b);
	works(&w, &b, 50);
	exits(&w, &b, 2);
	n = record_of(&w, &b, 1, PHASE_END);
	assert_non_null(n);
	assert_true(n->has_usage);
	assert_int_equal(n->usage.known, 0);
	assert_false(n->has_bill);
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
	const struct kept_record *n;

	(void)state;
	execs(&w, &sh, "bash");
	b = forks(&w, &sh);
	execs_unheard(&w, &b);
	works(&w, &b, 50);
	exits(&w, &b, 0);
	n = record_of(&w, &b, 0, PHASE_END);
	assert_true(record_has_cpu(n, 50));
	assert_false(n->id.forked);
	assert_null(n->tool);
	/* announced as its parent's copy before */
	c = forks(&w, &sh);
	works(&w, &c, 1100);
	tells(&w, &c, STATE_LIVE, 0);
	assert_string_equal(record_of(&w, &c, 0, PHASE_START)->exe, "/usr/bin/bash");
	execs_unheard(&w, &c);
	exits(&w, &c, 0);
	n = record_of(&w, &c, 0, PHASE_END);
	assert_true(record_has_cpu(n, 1100));
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
	assert_int_equal(record_count(&w, TOPIC_USAGE, -1), 0);
	execs(&w, &b, "sh -c x");
	works(&w, &b, 5);
	execs(&w, &b, "bwa mem");
	assert_true(record_has_cpu(record_of(&w, &b, 0, PHASE_END), 5));
	works(&w, &b, 6);
	exits(&w, &b, 0);
	assert_true(record_has_cpu(record_of(&w, &b, 1, PHASE_END), 6));
	assert_int_equal(record_count(&w, TOPIC_PROGRAM, PHASE_START), 3);
	assert_int_equal(record_count(&w, TOPIC_PROGRAM, PHASE_END), 2);
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
	assert_null(record_of(&w, &b, 0, PHASE_END));
}

/* A pass may take longer than ended processes are kept: the kernel may still free a process that it swept. */
static void
a_process_that_a_slow_pass_swept_has_one_end(void **state)
{
	struct being b = forks(&w, NULL);

	(void)state;
	execs(&w, &b, "x");
	correlator_snapshot_begin(w.c, false);
	tells(&w, &b, STATE_STALE, 0);
	w.now += 2 * SECOND;
	correlator_snapshot_end(w.c, w.now);
	exits(&w, &b, 0);
	assert_int_equal(record_count(&w, TOPIC_PROGRAM, PHASE_END), 1);
	w.now += 2 * SECOND;
	snapshot(&w, false, NULL, 0);
	assert_false(correlator_knows(w.c, &b.key));
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
	assert_int_equal(totals(&w).lost_ends, 1);	/* b: its end will never be reported */
	assert_int_equal(totals(&w).live, 1);		/* c still runs */
	assert_int_equal(correlator_live(w.c), 1);
	assert_int_equal(record_at(&w, TOPIC_RUN, PHASE_END, 0)->work.live_programs, 1);
}

static void
of_what_is_not_known_an_exec_tells_nothing(void **state)
{
	struct being b = forks(&w, NULL);
	const struct kept_record *n;

	(void)state;
	b.key.index = 1;		/* its first exec was lost, and this one has no totals */
	execs(&w, &b, "sh");
	works(&w, &b, 50);
	execs(&w, &b, "true");
	n = record_of(&w, &b, 1, PHASE_END);
	assert_non_null(n);
	assert_int_equal(n->program.end_reason, END_REASON_EXEC);
	assert_int_equal(n->usage.known, 0);
	works(&w, &b, 7);
	exits(&w, &b, 0);
	assert_true(record_has_cpu(record_of(&w, &b, 2, PHASE_END), 7));	/* from here on it is known again */
}

/* A program that another agent may have recorded is recorded once. */
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
	tells(&w, &b, STATE_DISCOVERED, 0);
	assert_int_equal(record_count(&w, TOPIC_USAGE, -1), 0);
	assert_int_equal(record_count(&w, TOPIC_PROGRAM, PHASE_START), 2);
	assert_int_equal(correlator_live(w.c), 1);
	assert_int_equal(totals(&w).live, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_child_of_nobody_known_has_its_own_name),
		T(a_child_that_a_pass_saw_before_the_exec_of_its_ancestor_is_what_that_is),
		T(a_late_word_does_not_start_a_program_after_its_end),
		T(a_child_that_does_not_exec_is_announced_after_a_second),
		T(a_child_of_one_that_is_not_reported_yet_is_what_both_come_from),
		T(a_child_that_becomes_what_is_left_out_late_has_its_end),
		T(a_child_that_execs_late_ends_under_its_own_name),
		T(a_driver_that_execs_late_still_drives),
		T(an_exec_after_the_end_changes_nothing),
		T(a_late_child_still_knows_its_parent),
		T(a_lost_exec_leaves_unknown_rather_than_wrong),
		T(a_lost_last_exec_leaves_an_end_without_usage),
		T(a_lost_first_exec_keeps_its_totals),
		T(a_snapshot_ahead_of_the_ring_does_no_harm),
		T(a_process_that_no_pass_meets_for_long_is_gone),
		T(a_process_that_a_slow_pass_swept_has_one_end),
		T(a_missed_pass_is_forgiven),
		T(what_the_last_pass_did_not_meet_is_lost_at_the_end),
		T(of_what_is_not_known_an_exec_tells_nothing),
		T(who_is_over_is_not_alive_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
