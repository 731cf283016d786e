/* SPDX-License-Identifier: Apache-2.0 */
/* users: no user uses up what the correlator has for all: its runs, and what it does over long arguments. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "correlate/facts.h"
#include "correlate/process.h"
#include "correlate/program_record.h"
#include "correlate/runs.h"
#include "correlate/state.h"
#include "correlate/tasks.h"
#include "correlate/text_budget.h"
#include "one_world.h"

static struct correlator_options
begin_host(bool has_log)
{
	struct correlator_options options = world_options();

	options.run_id = options.pipeline = options.command = options.work_dir = NULL;
	world_begin(&w, &options, has_log);
	return options;
}

static struct being
child_of(struct being *parent, uint32_t uid, const char *words)
{
	struct being b = forks(&w, parent);

	b.context.uid = uid;
	execs(&w, &b, words);
	return b;
}

/* The same, as one of the many ids that this user uses in user namespaces. */
static struct being
mapped_child_of(struct being *parent, uint32_t user, uint32_t uid, const char *words)
{
	struct being b = forks(&w, parent);

	b.context.uid = uid;
	b.context.user_uid = user;
	execs(&w, &b, words);
	return b;
}

/* Execs tool with one argument of len bytes, as an id of this user. */
static struct being
execs_long_of(uint32_t user, uint32_t uid, size_t len)
{
	static char text[32768];
	const char *argv[2];
	size_t argv_len[2];
	char first[] = "tool", exe[256];
	struct being b = forks(&w, NULL);
	struct exec_event s;

	b.context.uid = uid;
	b.context.user_uid = user;
	exec_event_fill(&w, &b, first, argv, argv_len, exe, &s);
	memset(text, 'x', sizeof(text));
	argv[1] = text;
	argv_len[1] = len;
	s.argc = 2;
	correlator_exec(w.c, &s);
	return b;
}

static struct being
execs_long(uint32_t uid, size_t len)
{
	return execs_long_of(uid, uid, len);
}

static const struct kept_record *
end_of(const struct being *b)
{
	exits(&w, b, 0);
	return record_of(&w, b, 0, PHASE_END);
}

static void
two_users_leave_room_for_the_runs_of_a_third(void **state)
{
	struct being make, other;
	size_t n = 0;

	(void)state;
	begin_host(false);
	/* Each of these is the driver of a run, and lives. */
	for (; correlator_totals(w.c, w.now).runs_refused == 0; n++)
		make = child_of(NULL, 1001, "make");
	assert_int_equal(n - 1, RUNS_MAX / 2);
	for (n = 0; correlator_totals(w.c, w.now).runs_refused == 1; n++)
		make = child_of(NULL, 1002, "make");
	assert_int_equal(n - 1, RUNS_MAX / 4);
	assert_null(end_of(&make)->run_id);
	make = child_of(NULL, 1003, "make");
	other = child_of(&make, 1003, "cc");
	assert_non_null(end_of(&other)->run_id);
	assert_non_null(end_of(&make)->run_id);
	assert_int_equal(correlator_totals(w.c, w.now).refused, 0);
}

/* Tags a new process of that user, which lives, as the first of run number i. */
static int
begin_by_hand(uint32_t uid, size_t i)
{
	struct being b = child_of(NULL, uid, "sleep 1d");
	char id[32];

	snprintf(id, sizeof(id), "by hand %zu.u%u", i, uid);
	return correlator_tag(w.c, b.key.pid, &(struct tag){ .run_id = id, .source = "sluice run" }, w.now);
}

static void
runs_made_by_hand_are_of_their_users_share(void **state)
{
	struct correlator_options options;
	size_t n = 0;

	(void)state;
	options = begin_host(true);
	while (begin_by_hand(1001, n) == 1)
		n++;
	assert_int_equal(n, RUNS_MAX / 2);
	assert_int_equal(begin_by_hand(1002, 0), 1);
	assert_int_equal(begin_by_hand(0, 0), 1);
	assert_int_equal(w.c->shares[SHARE_RUNS].held[owner_at(owner_of(0))], 0);
	world_dies(&w, &options);
	assert_int_equal(w.c->shares[SHARE_RUNS].held[owner_at(owner_of(1001))], RUNS_MAX / 2);
	assert_int_equal(w.c->shares[SHARE_RUNS].held[owner_at(owner_of(0))], 0);
	assert_int_equal(begin_by_hand(1001, n), -ENOSPC);
	assert_int_equal(begin_by_hand(1002, 1), 1);
}

/* What is given back can be had again. */
static void
runs_that_are_over_count_no_longer(void **state)
{
	uint32_t held;

	(void)state;
	begin_host(false);
	for (int i = 0; i < 100; i++) {
		struct being make = child_of(NULL, 1001, "make");

		exits(&w, &make, 0);
	}
	held = w.c->shares[SHARE_RUNS].held[owner_at(owner_of(1001))];
	assert_int_equal(held, 100);
	for (int i = 0; i < 200; i++) {
		w.now += SECOND;
		correlator_snapshot_begin(w.c, false);
		correlator_snapshot_end(w.c, w.now);
		correlator_tick(w.c, w.now, false);
	}
	held = w.c->shares[SHARE_RUNS].held[owner_at(owner_of(1001))];
	assert_int_equal(held, 0);
	assert_int_equal(HASH_COUNT(w.c->runs), 0);
}

static void
long_arguments_of_one_user_leave_those_of_another(void **state)
{
	const size_t len = 30000;
	struct being b;
	size_t n = 0;

	(void)state;
	begin_host(false);
	for (; correlator_totals(w.c, w.now).texts_trimmed == 0; n++)
		b = execs_long(1001, len);
	assert_in_range(n - 1, 2 * USER_TEXT / len - 1, 2 * USER_TEXT / (len - LEAST_TEXT));
	assert_true(end_of(&b)->program.argv_truncated);
	assert_int_equal(end_of(&b)->program.argc, 1);
	assert_string_equal(end_of(&b)->exe, "/usr/bin/tool");
	/* Another user, and short arguments. */
	b = execs_long(1002, len);
	assert_false(end_of(&b)->program.argv_truncated);
	b = execs_long(1001, 900);
	assert_int_equal(strlen(end_of(&b)->argv[1]), 900);
	assert_int_equal(correlator_totals(w.c, w.now).texts_trimmed, 1);
	/* Early in the next window there is room for some again. */
	w.now += (USE_SECONDS + 1) * SECOND;
	b = execs_long(1001, len);
	assert_false(end_of(&b)->program.argv_truncated);
}

/* Others use up all that they may, all the time. */
static void
a_user_below_its_share_keeps_its_arguments(void **state)
{
	uint64_t trimmed;

	(void)state;
	begin_host(false);
	for (int i = 0; i < 40; i++, w.now += SECOND / 2) {
		struct being b;

		for (int k = 0; k < 20; k++) {
			for (uint32_t uid = 1001; uid <= 1008; uid++)
				execs_long(uid, 30000);
		}
		trimmed = correlator_totals(w.c, w.now).texts_trimmed;
		assert_true(trimmed > 0);
		b = execs_long(1009, 30000);
		assert_false(end_of(&b)->program.argv_truncated);
		assert_int_equal(correlator_totals(w.c, w.now).texts_trimmed, trimmed);
		assert_true(w.c->all_text.now <= USE_SECONDS * ALL_TEXT);
		records_forget(&w);
	}
}

/* As newuidmap allows: each id is another, and was a user of its own with a share like any other. */
static void
five_hundred_ids_of_one_user_are_one_user(void **state)
{
	const uint32_t first = 100000, ids = 500;
	struct correlator_options options;
	struct being make;
	uint32_t n = 0;

	(void)state;
	options = begin_host(true);
	while (correlator_totals(w.c, w.now).runs_refused == 0)
		make = mapped_child_of(NULL, 1001, first + n++ % ids, "make");
	assert_int_equal(n - 1, RUNS_MAX / 2);
	assert_null(end_of(&make)->run_id);
	make = child_of(NULL, 1002, "make");
	assert_non_null(end_of(&make)->run_id);
	/* So it is for the next agent. */
	world_dies(&w, &options);
	assert_int_equal(w.c->shares[SHARE_RUNS].held[owner_at(owner_of(1001))], RUNS_MAX / 2);
	assert_int_equal(w.c->shares[SHARE_RUNS].held[owner_at(owner_of(first))], 0);
	assert_null(run_get(w.c, "one more", owner_of(1001)));
	assert_non_null(run_get(w.c, "of another", owner_of(1002)));
}

static void
text_of_five_hundred_ids_is_that_of_one_user(void **state)
{
	const size_t len = 30000;
	const uint32_t ids = 500;
	uint64_t whole = 0;
	struct being b;

	(void)state;
	begin_host(false);
	for (uint32_t i = 0; i < ids; i++) {
		b = execs_long_of(1001, i, len);	/* among them 0: root of the namespace, and not of the host */
		whole += !end_of(&b)->program.argv_truncated;
		records_forget(&w);
	}
	assert_in_range(whole, 2 * USER_TEXT / len - 1, 2 * USER_TEXT / (len - LEAST_TEXT));
	assert_int_equal(HASH_COUNT(w.c->users), 1);
	b = execs_long(1002, len);
	assert_false(end_of(&b)->program.argv_truncated);
}

/* Returns what was lost of a user; all 0: nothing. */
static struct user_loss
lost_of(uint32_t uid)
{
	struct user_loss list[USER_LOSSES];
	size_t n = correlator_user_losses(w.c, list, 0);

	for (size_t i = 0; i < n; i++) {
		if (list[i].uid == uid)
			return list[i];
	}
	return (struct user_loss){ .uid = uid };
}

/* So that it can be seen who attacks. All ids that a user has in namespaces are that user. */
static void
what_is_refused_is_counted_by_user(void **state)
{
	struct correlator_options options;
	const struct process *p;
	struct run *r;
	struct being make;

	(void)state;
	options = begin_host(true);
	for (uint32_t i = 0; correlator_totals(w.c, w.now).runs_refused < 3; i++)
		make = mapped_child_of(NULL, 1001, 100000 + i % 500, "make");
	assert_int_equal(lost_of(1001).refused, 3);
	/* Two that have one share are one, with the id of the last. */
	make = child_of(NULL, 1001 + OWNERS, "make");
	assert_int_equal(lost_of(1001).refused, 0);
	assert_int_equal(lost_of(1001 + OWNERS).refused, 4);
	make = child_of(NULL, 1002, "make");
	p = process_of(w.c, &make.key);
	r = p->run;
	assert_non_null(r);
	assert_int_equal(lost_of(1002).refused, 0);
	assert_false(share_take(w.c, SHARE_TASKS, r->owner, TASKS_MAX, TASKS_MAX));
	assert_false(share_take(w.c, SHARE_FACTS, r->owner, FACTS_MAX, FACTS_MAX));
	assert_int_equal(lost_of(1002).refused, 2);
	/* What is of no user, or of one that is not known, is in the totals alone. */
	assert_false(share_take(w.c, SHARE_TASKS, 0, TASKS_MAX, TASKS_MAX));
	assert_false(share_take(w.c, SHARE_TASKS, owner_of(UINT32_MAX), TASKS_MAX, TASKS_MAX));
	assert_int_equal(correlator_totals(w.c, w.now).tasks_refused, 3);
	assert_int_equal(correlator_user_losses(w.c, (struct user_loss[USER_LOSSES]){ { 0 } }, 0), 2);
	/* As the totals, it begins anew with the next agent. */
	world_dies(&w, &options);
	assert_int_equal(correlator_totals(w.c, w.now).runs_refused, 0);
	assert_int_equal(correlator_user_losses(w.c, (struct user_loss[USER_LOSSES]){ { 0 } }, 0), 0);
}

static void
what_is_cut_is_counted_by_user(void **state)
{
	struct run_totals totals;

	(void)state;
	begin_host(false);
	while (correlator_totals(w.c, w.now).texts_trimmed < 3)
		execs_long_of(1001, 100007, 30000);
	while (correlator_totals(w.c, w.now).texts_trimmed < 5)
		execs_long(1002, 30000);
	execs_long(1003, 30000);
	assert_int_equal(lost_of(1001).cut, 3);
	assert_int_equal(lost_of(1002).cut, 2);
	assert_int_equal(lost_of(1003).cut, 0);
	assert_int_equal(lost_of(100007).cut, 0);
	/* The budget of all texts. */
	text_budget_take(w.c, TEXT_BUDGET_BYTES);
	execs_long(1003, 900);
	text_budget_give_back(w.c, TEXT_BUDGET_BYTES);
	totals = correlator_totals(w.c, w.now);
	assert_int_equal(lost_of(1003).cut, 1);
	assert_int_equal(totals.texts_cut, 1);
	assert_int_equal(totals.rules_gave_up, 0);
}

/* What the spool goes by. */
static void
records_take_the_share_of_the_user_behind_them(void **state)
{
	const struct {
		uint32_t user, uid;
		struct opt_u64 share;
	} cases[] = {
		{ 0, 1001, { 1001, true } },		/* not known to the kernel side */
		{ 1001, 1001, { 1001, true } },
		{ 1001, 100007, { 1001, true } },
		{ 1001, 7, { 1001, true } },
		{ 1001, 0, { 1001, true } },
		{ 100007, 100007, { 100007, true } },	/* root owns the namespace */
		{ 7, 100007, { 7, true } },		/* a system user's containers are not trusted as it is */
		{ 7, 7, { 7, false } },
		{ 0, 0, { 0, false } },
	};

	(void)state;
	begin_host(false);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct being make = mapped_child_of(NULL, cases[i].user, cases[i].uid, "make");
		struct process *p = process_of(w.c, &make.key);
		struct record_head head = { 0 };

		program_head_fill(w.c, p, &head);
		assert_int_equal(head.user.value, cases[i].share.value);
		assert_int_equal(head.user.known, cases[i].share.known);
		assert_non_null(p->run);
		assert_int_equal(run_share(p->run).value, cases[i].share.value);
		assert_int_equal(run_share(p->run).known, cases[i].share.known);
	}
}

static void
a_run_of_its_own_shares_with_no_other(void **state)
{
	(void)state;
	for (int i = 0; i < 500; i++)
		execs_long(1001, 30000);
	assert_int_equal(correlator_totals(w.c, w.now).texts_trimmed, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(two_users_leave_room_for_the_runs_of_a_third),
		T(runs_made_by_hand_are_of_their_users_share),
		T(runs_that_are_over_count_no_longer),
		T(long_arguments_of_one_user_leave_those_of_another),
		T(a_user_below_its_share_keeps_its_arguments),
		T(five_hundred_ids_of_one_user_are_one_user),
		T(text_of_five_hundred_ids_is_that_of_one_user),
		T(what_is_refused_is_counted_by_user),
		T(what_is_cut_is_counted_by_user),
		T(records_take_the_share_of_the_user_behind_them),
		T(a_run_of_its_own_shares_with_no_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
