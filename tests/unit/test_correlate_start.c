/* SPDX-License-Identifier: Apache-2.0 */
/* correlator: a program has a START once it has lived for start_after, or if something needs it before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "correlate/wal.h"
#include "events.h"

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static struct world w;

static struct correlator_options
options_of(void)
{
	struct correlator_options options = world_options();

	options.run_id = NULL;	/* a whole host */
	options.start_after_ns = SECOND;
	return options;
}

static int
setup(void **state)
{
	struct correlator_options options = options_of();

	(void)state;
	world_open_as(&w, &options, true);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	world_close(&w);
	return 0;
}

static size_t
starts(void)
{
	return record_count(&w, TOPIC_PROGRAM, PHASE_START);
}

static void
passes(const struct being *b, bool with_usage)
{
	snapshot(&w, with_usage, &b, 1);
}

static void
a_short_program_has_an_end_alone_which_has_everything(void **state)
{
	struct being sh = forks(&w, NULL), b;
	const struct kept_record *end;

	(void)state;
	execs(&w, &sh, "bash run.sh");
	b = forks(&w, &sh);
	execs(&w, &b, "bwa mem ref.fa");
	assert_int_equal(totals(&w).live, 2);	/* it counts at once */
	assert_true(correlator_knows(w.c, &b.key));
	works(&w, &b, 999);
	passes(&b, false);
	exits(&w, &b, 3);
	assert_int_equal(starts(), 0);
	end = record_of(&w, &b, 0, PHASE_END);
	assert_non_null(end);
	assert_string_equal(end->exe, "/usr/bin/bwa");
	assert_string_equal(end->argv[1], "mem");
	assert_string_equal(end->tool, "bwa mem");
	assert_non_null(end->cwd);
	assert_non_null(end->parent_program_id);
	assert_int_equal(end->program.uid.value, 1000);
	assert_int_equal(end->program.pid_ns.value, NAMESPACE_PID_OF_HOST);
	assert_int_equal(end->id.start_time_us, wall_us(b.key.start_ns));
	assert_int_equal(end->program.exit_code.value, 3);
	assert_int_equal(totals(&w).live, 1);
	assert_int_equal(totals(&w).failed, 1);
}

static void
what_exec_replaces_within_the_second_has_an_end_alone(void **state)
{
	struct being b = forks(&w, NULL);

	(void)state;
	execs(&w, &b, "bash run.sh");
	works(&w, &b, 600);
	execs(&w, &b, "python3 x.py");
	works(&w, &b, 600);
	passes(&b, false);		/* the process is older than a second, the program is not */
	assert_int_equal(starts(), 0);
	assert_int_equal(record_of(&w, &b, 0, PHASE_END)->program.end_reason, END_REASON_EXEC);
	works(&w, &b, 400);
	passes(&b, false);
	assert_int_equal(starts(), 1);
	assert_string_equal(record_of(&w, &b, 1, PHASE_START)->exe, "/usr/bin/python3");
}

static void
a_start_describes_the_program_when_it_is_written(void **state)
{
	const struct tag tag = { .run_id = "by-hand", .pipeline = "p", .source = "test" };
	struct being b = forks(&w, NULL);
	const struct kept_record *start;

	(void)state;
	execs(&w, &b, "python3 x.py");
	works(&w, &b, 500);
	assert_int_equal(correlator_tag(w.c, b.key.pid, &tag, w.now), 1);
	works(&w, &b, 600);
	passes(&b, false);
	start = record_of(&w, &b, 0, PHASE_START);
	assert_string_equal(start->run_id, "by-hand");
	assert_int_equal(start->time_us, wall_us(w.now));
	assert_int_equal(start->id.program_start_time_us, wall_us(b.key.start_ns));
	assert_false(start->has_usage);
	passes(&b, false);
	exits(&w, &b, 0);
	assert_int_equal(starts(), 1);
}

/* The program of a process that waited for longer before its exec is old enough at once. */
static void
who_execs_late_has_a_start_at_once(void **state)
{
	struct being b = forks(&w, NULL);

	(void)state;
	works(&w, &b, 1000);
	execs(&w, &b, "python3 x.py");
	assert_int_equal(starts(), 1);
	assert_int_equal(record_of(&w, &b, 0, PHASE_START)->time_us, wall_us(w.now));
}

static void
a_usage_record_comes_after_its_start(void **state)
{
	struct being b = forks(&w, NULL);

	(void)state;
	execs(&w, &b, "python3 x.py");
	works(&w, &b, 100);
	passes(&b, true);
	assert_int_equal(w.n, 2);
	assert_int_equal(w.records[0].topic, TOPIC_PROGRAM);
	assert_int_equal(w.records[0].phase, PHASE_START);
	assert_int_equal(w.records[1].topic, TOPIC_USAGE);
	works(&w, &b, 1000);
	passes(&b, true);
	assert_int_equal(starts(), 1);
}

/* The forked child counts a second after its fork, whatever start_after is. */
static void
a_child_that_never_execs_is_treated_alike(void **state)
{
	struct being sh = forks(&w, NULL), brief, b;

	(void)state;
	correlator_set_start_after(w.c, 5 * SECOND);
	execs(&w, &sh, "python3 x.py");
	brief = forks(&w, &sh);
	works(&w, &brief, 10);
	exits(&w, &brief, 0);
	assert_non_null(record_of(&w, &brief, 0, PHASE_END));
	b = forks(&w, &sh);
	works(&w, &b, 1100);
	passes(&b, false);
	assert_int_equal(totals(&w).live, 2);
	assert_int_equal(starts(), 0);
	works(&w, &b, 3900);
	passes(&b, false);
	assert_int_equal(starts(), 1);
	assert_true(record_of(&w, &b, 0, PHASE_START)->id.forked);
}

static void
who_execs_after_it_counted_has_one_start(void **state)
{
	struct being sh = forks(&w, NULL), b;

	(void)state;
	correlator_set_start_after(w.c, 5 * SECOND);
	execs(&w, &sh, "bash run.sh");
	b = forks(&w, &sh);
	works(&w, &b, 1100);
	passes(&b, false);
	execs(&w, &b, "sleep 9");
	assert_int_equal(starts(), 0);
	works(&w, &b, 3900);
	passes(&b, false);
	assert_int_equal(starts(), 1);
	assert_string_equal(record_of(&w, &b, 0, PHASE_START)->exe, "/usr/bin/sleep");
}

static void
a_reload_holds_for_those_that_live(void **state)
{
	struct being b = forks(&w, NULL);

	(void)state;
	execs(&w, &b, "python3 x.py");
	works(&w, &b, 10);
	passes(&b, false);
	assert_int_equal(starts(), 0);
	correlator_set_start_after(w.c, 0);
	passes(&b, false);
	assert_int_equal(starts(), 1);
	execs(&w, &b, "sleep 9");
	assert_int_equal(starts(), 2);
	correlator_set_start_after(w.c, SECOND);
	execs(&w, &b, "sleep 10");
	assert_int_equal(starts(), 2);
}

static void
who_is_found_running_is_as_old_as_its_process(void **state)
{
	struct being old = forks(&w, NULL), young;
	static const char *const argv[] = { "bwa" };
	static const size_t argv_len[] = { 3 };
	struct exec_event s = { .exe = "/usr/bin/bwa", .cwd = "/", .argv = argv, .argv_len = argv_len,
		.argc = 1, .is_discovered = true, .comm = "bwa" };

	(void)state;
	w.now += 5 * SECOND;
	young = forks(&w, NULL);
	w.now += SECOND / 2;
	s.time_ns = w.now;
	s.self = old.key;
	correlator_exec(w.c, &s);
	assert_int_equal(starts(), 1);
	s.self = young.key;
	correlator_exec(w.c, &s);
	assert_int_equal(starts(), 1);
	old.execed = young.execed = true;
	w.now += SECOND / 2;
	passes(&young, false);
	assert_int_equal(starts(), 2);
	assert_int_equal(record_of(&w, &young, 0, PHASE_START)->program.observed_time_us.value,
	    wall_us(s.time_ns));
}

/* Its END was lost: it has a START, as any other program whose end was not seen. */
static void
a_lost_program_has_a_start(void **state)
{
	struct being b = forks(&w, NULL), other = forks(&w, NULL);

	(void)state;
	execs(&w, &b, "python3 x.py");
	execs(&w, &other, "sleep 100");
	execs_unheard(&w, &other);
	w.now += SECOND / 10;
	exits(&w, &other, 0);		/* the end of its first program was not reported */
	assert_int_equal(totals(&w).lost_ends, 1);
	assert_non_null(record_of(&w, &other, 0, PHASE_START));
	assert_null(record_of(&w, &other, 0, PHASE_END));
	assert_null(record_of(&w, &other, 1, PHASE_START));
	assert_non_null(record_of(&w, &other, 1, PHASE_END));
	correlator_forget_live(w.c);
	assert_int_equal(totals(&w).lost_ends, 2);
	assert_non_null(record_of(&w, &b, 0, PHASE_START));
	assert_int_equal(starts(), 2);
}

static void
at_the_stop_each_live_program_has_a_start(void **state)
{
	struct correlator_options options = options_of();
	struct being b = forks(&w, NULL), done = forks(&w, NULL);

	(void)state;
	execs(&w, &b, "python3 x.py");
	execs(&w, &done, "true");
	works(&w, &done, 1);
	exits(&w, &done, 0);
	works(&w, &b, 10);
	correlator_write_starts(w.c, b.key.start_ns - 1, w.now);	/* of those that began before it */
	assert_int_equal(starts(), 0);
	correlator_write_starts(w.c, w.now, w.now);
	assert_int_equal(starts(), 1);
	assert_int_equal(record_of(&w, &b, 0, PHASE_START)->time_us, wall_us(w.now));
	world_dies(&w, &options);
	works(&w, &b, 2000);
	passes(&b, true);
	correlator_write_starts(w.c, w.now, w.now);
	exits(&w, &b, 0);
	assert_int_equal(starts(), 1);
	assert_non_null(record_of(&w, &b, 0, PHASE_END));
}

static void
the_next_agent_writes_what_is_due_once(void **state)
{
	struct correlator_options options = options_of();
	struct being brief = forks(&w, NULL), b = forks(&w, NULL);

	(void)state;
	execs(&w, &brief, "true");
	execs(&w, &b, "python3 x.py");
	works(&w, &b, 100);
	world_dies(&w, &options);
	assert_true(correlator_knows(w.c, &b.key));	/* it is not discovered as another one */
	exits(&w, &brief, 0);
	assert_int_equal(starts(), 0);
	works(&w, &b, 1000);
	passes(&b, false);
	assert_int_equal(starts(), 1);
	world_dies(&w, &options);
	passes(&b, false);
	exits(&w, &b, 0);
	assert_int_equal(starts(), 1);
	assert_non_null(record_of(&w, &brief, 0, PHASE_END));
}

/* An agent of before wrote START with each exec: its entries are of a version without the flag. */
static void
what_an_older_agent_left_has_its_start(void **state)
{
	struct correlator_options options = options_of();
	struct being b = forks(&w, NULL);
	size_t len;

	(void)state;
	correlator_set_start_after(w.c, 0);
	execs(&w, &b, "python3 x.py");
	assert_int_equal(starts(), 1);
	for (size_t at = 0; at < w.kept.len; at += sizeof(len) + len) {
		memcpy(&len, w.kept.data + at, sizeof(len));
		((uint8_t *)w.kept.data)[at + sizeof(len) + 1] = WAL_VERSION - 1;
	}
	world_dies(&w, &options);
	works(&w, &b, 1100);
	passes(&b, true);
	exits(&w, &b, 0);
	assert_int_equal(starts(), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_short_program_has_an_end_alone_which_has_everything),
		T(what_exec_replaces_within_the_second_has_an_end_alone),
		T(a_start_describes_the_program_when_it_is_written),
		T(who_execs_late_has_a_start_at_once),
		T(a_usage_record_comes_after_its_start),
		T(a_child_that_never_execs_is_treated_alike),
		T(who_execs_after_it_counted_has_one_start),
		T(a_reload_holds_for_those_that_live),
		T(who_is_found_running_is_as_old_as_its_process),
		T(a_lost_program_has_a_start),
		T(at_the_stop_each_live_program_has_a_start),
		T(the_next_agent_writes_what_is_due_once),
		T(what_an_older_agent_left_has_its_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
