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
		T(an_elevated_program_is_so_for_the_next_agent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
