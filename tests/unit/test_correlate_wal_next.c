/* SPDX-License-Identifier: Apache-2.0 */
/* wal: what the next agent knows of programs and control groups that are gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "wal_kit.h"

/* Its program ends, and the next one is never reported, neither to this agent nor to the next. */
static void
who_becomes_a_program_that_is_left_out_is_forgotten(void **state)
{
	struct correlator_options options = host_options();
	struct being shell, other;
	struct exec_event s;
	char words[] = "left-out", exe[256];
	const char *argv[1];
	size_t argv_len[1];
	struct program_key was;
	struct life l;

	(void)state;
	life_open(&l, &options);
	shell = forks(&l.w, NULL);
	other = forks(&l.w, NULL);
	execs(&l.w, &shell, "sh -c x");
	execs(&l.w, &other, "sleep 9");
	was = shell.key;
	exec_event_fill(&l.w, &shell, words, argv, argv_len, exe, &s);
	s.is_excluded = true;
	assert_true(s.has_replaced);
	correlator_exec(l.w.c, &s);
	works(&l.w, &other, 10);
	exits(&l.w, &other, 0);
	for (int life = 0; life < 2; life++) {
		assert_false(correlator_knows(l.w.c, &was));
		assert_int_equal(correlator_live(l.w.c), 0);
		dies(&l);
	}
	life_close(&l);
}

/* Processes that ended while no agent ran, and whose end was not recorded. */
static void
who_died_in_between_is_let_go(void **state)
{
	struct correlator_options options = host_options();
	struct life l;
	struct being a, b;

	(void)state;
	life_open(&l, &options);
	a = forks(&l.w, NULL);
	execs(&l.w, &a, "sleep 100");
	b = forks(&l.w, NULL);
	execs(&l.w, &b, "sleep 200");
	dies(&l);
	assert_int_equal(correlator_live(l.w.c), 2);
	for (int i = 0; i < 17; i++) {
		l.w.now += SECOND;
		snapshot(&l.w, false, (const struct being *[]){ &a }, 1);
	}
	assert_int_equal(correlator_live(l.w.c), 1);
	assert_int_equal(totals(&l.w).lost_ends, 1);
	assert_int_equal(totals(&l.w).live, 1);
	dies(&l);
	assert_int_equal(correlator_live(l.w.c), 1);
	life_close(&l);
}

/* Whose child it is was learnt once, while the parent was known, and is not learnt again. */
static void
what_a_child_has_of_its_parent_outlives_the_parent(void **state)
{
	struct correlator_options options = host_options();
	struct being shell, b;
	struct life l;

	(void)state;
	for (int deaths = 0; deaths < 2; deaths++) {
		life_open(&l, &options);
		shell = forks(&l.w, NULL);
		b = forks(&l.w, &shell);
		tells(&l.w, &b, STATE_LIVE, 0);		/* before anything is known of its parent */
		execs(&l.w, &shell, "bash run.sh");
		tells(&l.w, &b, STATE_LIVE, 0);
		exits(&l.w, &shell, 0);
		l.w.now += 11 * SECOND;
		snapshot(&l.w, false, NULL, 0);		/* the shell is forgotten */
		if (deaths > 0)
			dies(&l);
		l.records.len = 0;
		snapshot(&l.w, false, (const struct being *[]){ &b }, 1);
		assert_true(l.records.len > 0);		/* its START */
		assert_non_null(memmem(l.records.data, l.records.len, "/usr/bin/bash", 13));
		life_close(&l);
	}
}

/* A zombie that was let go is kept for a while for what its children have of it, and then no more. */
static void
that_a_zombie_is_gone_is_known_in_the_next_life(void **state)
{
	struct correlator_options options = host_options();
	struct being shell, b, late;
	struct life l;

	(void)state;
	for (int deaths = 0; deaths < 2; deaths++) {
		life_open(&l, &options);
		shell = forks(&l.w, NULL);
		execs(&l.w, &shell, "sh -c x");
		b = forks(&l.w, &shell);
		execs(&l.w, &b, "python3 work.py");
		late = forks(&l.w, &b);
		tells(&l.w, &b, STATE_ZOMBIE, 0);
		exits(&l.w, &b, 0);
		if (deaths > 0)
			dies(&l);
		l.w.now += 11 * SECOND;
		snapshot(&l.w, false, (const struct being *[]){ &shell }, 1);
		assert_false(correlator_knows(l.w.c, &b.key));
		l.records.len = 0;
		exits(&l.w, &late, 0);
		assert_null(memmem(l.records.data, l.records.len, "work.py", 7));
		life_close(&l);
	}
}

/* The control group that no record needed for the longest time is let go first, in the next life as in this one. */
static void
what_was_needed_last_is_known_in_the_next_life(void **state)
{
	static const struct cgroup_event groups[] = { { .id = 7, .is_v2 = true, .path = "/a" },
		{ .id = 8, .is_v2 = true, .path = "/b" } };
	struct correlator_options options = host_options();
	char *before = NULL;
	struct life l;

	(void)state;
	for (int deaths = 0; deaths < 2; deaths++) {
		struct being b[2];

		life_open(&l, &options);
		for (int i = 0; i < 2; i++) {
			correlator_cgroup(l.w.c, &groups[i]);
			b[i] = forks(&l.w, NULL);
			b[i].context.cgroup_v2 = groups[i].id;
			execs(&l.w, &b[i], "python3 work.py");
		}
		exits(&l.w, &b[0], 0);	/* its END was the last to need /a */
		if (deaths > 0)
			dies(&l);
		checkpoints(&l);	/* in the order in which they would be let go */
		if (deaths == 0) {
			before = malloc(l.entries.len);
			memcpy(before, l.entries.data, l.entries.len);
			assert_true((char *)memmem(before, l.entries.len, "/b", 2) < (char *)memmem(before, l.entries.len, "/a", 2));
		} else {
			assert_memory_equal(l.entries.data, before, l.entries.len);
		}
		life_close(&l);
	}
	free(before);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_becomes_a_program_that_is_left_out_is_forgotten),
		cmocka_unit_test(who_died_in_between_is_let_go),
		cmocka_unit_test(what_a_child_has_of_its_parent_outlives_the_parent),
		cmocka_unit_test(that_a_zombie_is_gone_is_known_in_the_next_life),
		cmocka_unit_test(what_was_needed_last_is_known_in_the_next_life),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
