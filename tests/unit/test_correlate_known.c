/* SPDX-License-Identifier: Apache-2.0 */
/* known: programs that an agent knows after it resumed from another one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "correlate/wal.h"
#include "correlate/wal_rows.h"
#include "one_world.h"

static void
a_program_is_known_from_its_start_on_and_as_a_zombie(void **state)
{
	struct being sh = forks(&w, NULL), b;

	(void)state;
	assert_false(correlator_knows(w.c, &sh.key));	/* no event of it yet */
	execs(&w, &sh, "sh");
	assert_true(correlator_knows(w.c, &sh.key));
	b = forks(&w, &sh);
	tells(&w, &b, STATE_LIVE, 0);
	assert_false(correlator_knows(w.c, &b.key));	/* it has no record before it is a second old */
	works(&w, &b, 1100);
	tells(&w, &b, STATE_LIVE, 0);
	assert_true(correlator_knows(w.c, &b.key));
	tells(&w, &b, STATE_ZOMBIE, 0);
	assert_true(correlator_knows(w.c, &b.key));	/* its END was sent: it needs no other START */
	exits(&w, &sh, 0);
	assert_true(correlator_knows(w.c, &sh.key));
}

static void
another_process_of_the_same_pid_is_not_known(void **state)
{
	struct being sh = forks(&w, NULL);
	struct program_key later = sh.key;

	(void)state;
	execs(&w, &sh, "sh");
	later.start_ns += SECOND;
	assert_false(correlator_knows(w.c, &later));
}

static void
the_live_are_forgotten_as_ends_that_nobody_saw(void **state)
{
	struct being sh = forks(&w, NULL), b, done;
	size_t starts;

	(void)state;
	execs(&w, &sh, "sh");
	b = forks(&w, &sh);
	execs(&w, &b, "bwa mem");
	done = forks(&w, &sh);
	execs(&w, &done, "true");
	exits(&w, &done, 0);
	assert_int_equal(totals(&w).live, 2);
	starts = record_count(&w, TOPIC_PROGRAM, PHASE_START);

	correlator_forget_live(w.c);
	assert_int_equal(totals(&w).live, 0);
	assert_int_equal(correlator_live(w.c), 0);
	assert_int_equal(totals(&w).lost_ends, 2);	/* not that of the one that had ended */
	assert_int_equal(totals(&w).programs, 3);
	assert_false(correlator_knows(w.c, &sh.key));
	assert_false(correlator_knows(w.c, &b.key));
	assert_int_equal(record_count(&w, TOPIC_PROGRAM, PHASE_END), 1);	/* nothing is made up */

	/* It still runs: it is discovered as a new process. */
	b.execed = false;
	execs(&w, &b, "bwa mem");
	assert_true(correlator_knows(w.c, &b.key));
	assert_int_equal(record_count(&w, TOPIC_PROGRAM, PHASE_START), starts + 1);
	exits(&w, &b, 0);
	assert_int_equal(record_count(&w, TOPIC_PROGRAM, PHASE_END), 2);
	assert_int_equal(totals(&w).lost_ends, 2);
}

static void
where_nothing_lives_nothing_is_lost(void **state)
{
	struct being sh = forks(&w, NULL);

	(void)state;
	correlator_forget_live(w.c);
	execs(&w, &sh, "sh");
	exits(&w, &sh, 0);
	correlator_forget_live(w.c);
	assert_int_equal(totals(&w).lost_ends, 0);
	assert_int_equal(totals(&w).programs, 1);
}

/* What was used since the log's last entry may have been sent by the agent before: no Usage record has it again. */
static void
usage_that_may_have_been_sent_is_not_sent_again(void **state)
{
	struct being sh = forks(&w, NULL);
	const struct being *all[] = { &sh };
	const struct kept_record *last;

	(void)state;
	execs(&w, &sh, "sh");
	works(&w, &sh, 500);
	snapshot(&w, true, all, 1);
	assert_true(record_has_cpu(&w.records[w.n - 1], 500));
	works(&w, &sh, 300);
	correlator_doubt_usage(w.c);
	snapshot(&w, false, all, 1);
	works(&w, &sh, 100);
	snapshot(&w, true, all, 1);
	last = &w.records[w.n - 1];
	assert_int_equal(last->topic, TOPIC_USAGE);
	assert_true(record_has_cpu(last, 100));
	assert_int_equal(last->interval_ns, 100 * MS);
	exits(&w, &sh, 0);
	assert_true(record_has_cpu(record_of(&w, &sh, sh.key.index, PHASE_END), 900));
}

/* A process that a record has been sent of, or whose END was, is not found anew, whatever the pass has of it. */
static void
who_is_known_is_not_discovered_again(void **state)
{
	struct being sh = forks(&w, NULL), b;
	struct state_event s;
	size_t n;

	(void)state;
	execs(&w, &sh, "sh");
	b = forks(&w, &sh);
	works(&w, &b, 1100);
	tells(&w, &b, STATE_LIVE, 0);
	n = w.n;
	s = state_of(&w, &sh, STATE_DISCOVERED, 0);
	correlator_discovered(w.c, &s);
	s = state_of(&w, &b, STATE_DISCOVERED, 0);
	correlator_discovered(w.c, &s);
	assert_int_equal(w.n, n);
	exits(&w, &b, 0);
	exits(&w, &sh, 0);
	assert_false(record_of(&w, &b, b.key.index, PHASE_END)->program.observed_time_us.known);
	assert_false(record_of(&w, &sh, sh.key.index, PHASE_END)->program.observed_time_us.known);
}

/* What is settled for one run, and who may tag a program, depends on the run that it is in, and how it came there. */
static void
a_program_belongs_to_its_run_alone(void **state)
{
	const struct tag tag = { .run_id = "00000000-0000-4000-8000-000000000001", .source = "sluice ctl tag" };
	struct correlator_options options = world_options();
	struct being batch, child, other;
	struct program_key unknown;
	struct belongings of;

	(void)state;
	options.run_id = options.pipeline = options.command = options.work_dir = NULL;
	world_begin(&w, &options, true);
	batch = forks(&w, NULL);
	execs(&w, &batch, "sh");
	other = forks(&w, NULL);
	execs(&w, &other, "sh");
	assert_true(correlator_belongings(w.c, &other.key, &of));
	assert_null(of.run_id);
	assert_false(of.is_by_hand);
	assert_true(correlator_tag(w.c, batch.key.pid, &tag, w.now) > 0);
	child = forks(&w, &batch);
	execs(&w, &child, "true");
	assert_true(correlator_belongings(w.c, &child.key, &of));
	assert_string_equal(of.run_id, tag.run_id);
	assert_true(of.is_by_hand);
	unknown = child.key;
	unknown.start_ns += SECOND;
	assert_true(correlator_is_of_run(w.c, &child.key, tag.run_id));
	assert_false(correlator_is_of_run(w.c, &child.key, "00000000-0000-4000-8000-000000000002"));
	assert_false(correlator_is_of_run(w.c, &other.key, tag.run_id));
	assert_false(correlator_is_of_run(w.c, &unknown, tag.run_id));
	assert_false(correlator_belongings(w.c, &unknown, &of));
}

static bool
has_known_uid(const struct being *b)
{
	struct belongings of;

	assert_true(correlator_belongings(w.c, &b->key, &of));
	return of.uid.known;
}

/* As what another user may become, whatever agent saw that; and what an older one did not log may be that. */
static void
an_elevated_program_is_so_for_the_next_agent(void **state)
{
	struct correlator_options options = world_options();
	struct being plain, sudo, child;
	size_t len, unlogged;

	(void)state;
	options.run_id = options.pipeline = options.command = options.work_dir = NULL;
	world_begin(&w, &options, true);
	plain = forks(&w, NULL);
	execs(&w, &plain, "sleep 1d");
	sudo = forks(&w, NULL);
	sudo.context.is_elevated = true;
	execs(&w, &sudo, "sudo sleep 1d");
	child = forks(&w, &sudo);
	works(&w, &child, 1100);
	tells(&w, &child, STATE_LIVE, 0);
	unlogged = w.kept.len;
	tells(&w, &child, STATE_LIVE, 0);
	assert_int_equal(w.kept.len, unlogged);		/* nothing is new */
	world_dies(&w, &options);
	assert_true(has_known_uid(&plain));
	assert_false(has_known_uid(&sudo));
	assert_false(has_known_uid(&child));

	world_begin(&w, &options, true);
	w.kept.len = 0;
	execs(&w, &plain, "sleep 2d");
	for (size_t at = 0; at < w.kept.len; at += sizeof(len) + len) {
		memcpy(&len, w.kept.data + at, sizeof(len));
		((uint8_t *)w.kept.data)[at + sizeof(len) + 1] = WAL_VERSION_ELEVATED - 1;
	}
	world_dies(&w, &options);
	assert_false(has_known_uid(&plain));
	execs(&w, &plain, "sleep 3d");
	assert_true(has_known_uid(&plain));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_program_is_known_from_its_start_on_and_as_a_zombie),
		T(another_process_of_the_same_pid_is_not_known),
		T(the_live_are_forgotten_as_ends_that_nobody_saw),
		T(where_nothing_lives_nothing_is_lost),
		T(usage_that_may_have_been_sent_is_not_sent_again),
		T(who_is_known_is_not_discovered_again),
		T(a_program_belongs_to_its_run_alone),
		T(an_elevated_program_is_so_for_the_next_agent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
