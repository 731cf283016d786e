/* SPDX-License-Identifier: Apache-2.0 */
/* RULES_STEPS: no arguments cost the rules more than that, and it is said of such a program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "correlate/state.h"
#include "identify/match.h"
#include "one_world.h"

enum { HARD = 172 };

static double
cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Execs bash with arguments over which the shipped patterns take as long as they can. */
static void
execs_hard(struct being *b)
{
	static const char *const words[] = { "--target-jobs", "/execution/script", "_toil_worker", "/slurm_script",
		"x/.command.run/ab/0123456789abcdef0123456789abcd/.command.sh ", "/mnt/miniwdl_task_container/",
		"/galaxy_1.sh", "multiprocessing.spawn", "/call-x/execution/script.submit", "/toilwf-" };
	enum { WORDS = sizeof(words) / sizeof(words[0]), ARGC = 1 + HARD + WORDS };
	static char slashes[201];
	const char *argv[ARGC];
	size_t argv_len[ARGC];
	char first[] = "bash", exe[256];
	struct exec_event s;

	memset(slashes, '/', sizeof(slashes) - 1);
	exec_event_fill(&w, b, first, argv, argv_len, exe, &s);
	argv[0] = "bash";
	for (size_t i = 1; i <= HARD; i++)
		argv[i] = slashes;
	memcpy(argv + 1 + HARD, words, sizeof(words));
	for (size_t i = 0; i < ARGC; i++)
		argv_len[i] = strlen(argv[i]);
	s.argv = argv;
	s.argv_len = argv_len;
	s.argc = ARGC;
	correlator_exec(w.c, &s);
}

static uint64_t
gave_up(void)
{
	return correlator_totals(w.c, w.now).rules_gave_up;
}

static void
a_program_costs_the_rules_a_bounded_time(void **state)
{
	struct being sh = forks(&w, NULL), hard, next;
	const struct kept_record *n;
	double before;

	(void)state;
	execs(&w, &sh, "sh");
	hard = forks(&w, &sh);
	before = cpu_seconds();
	execs_hard(&hard);
	/* Without a bound some 0.2 s, and several times as much in this build. */
	assert_true(cpu_seconds() - before < 0.1);
	assert_int_equal(gave_up(), 1);
	exits(&w, &hard, 0);
	n = record_of(&w, &hard, 0, PHASE_END);
	assert_non_null(n->run_id);		/* by descent, whatever the rules know */
	assert_false(n->program.confidence.known);

	next = forks(&w, &sh);
	execs(&w, &next, "samtools sort");
	exits(&w, &next, 0);
	assert_true(record_of(&w, &next, 0, PHASE_END)->program.confidence.known);
	assert_int_equal(gave_up(), 1);
}

/* Returns the steps beyond LEAST_STEPS that a user's programs have cost lately. */
static uint64_t
used_by(uint32_t uid)
{
	const struct user *u;

	HASH_FIND(hh, w.c->users, &uid, sizeof(uid), u);
	assert_non_null(u);
	return u->steps.now;
}

static void
execs_as(uint32_t uid, const char *command)
{
	struct being b = forks(&w, NULL);

	b.context.uid = uid;
	if (command == NULL)
		execs_hard(&b);
	else
		execs(&w, &b, command);
}

/* Begins a window, in which nothing was used in the one before. */
static void
wait_for_a_window(void)
{
	const uint64_t ns = USE_SECONDS * SECOND;

	w.now = (w.now / ns + 2) * ns;
}

static void
a_user_costs_the_rules_a_bounded_time(void **state)
{
	const uint64_t most = USE_SECONDS * USER_STEPS, each = RULES_STEPS - LEAST_STEPS;
	struct user_loss losses[USER_LOSSES];
	uint64_t n = 0;

	(void)state;
	wait_for_a_window();
	do {
		execs_as(1, NULL);
		assert_int_equal(gave_up(), ++n);
	} while (used_by(1) < most);
	assert_int_equal(n, (most + each - 1) / each);
	execs_as(1, NULL);
	assert_int_equal(gave_up(), ++n);
	assert_int_equal(used_by(1), most);
	/* A usual command is judged all the same, and others pay nothing for it. */
	execs_as(1, "samtools sort");
	execs_as(2, "samtools sort");
	assert_int_equal(used_by(2), 0);
	assert_int_equal(gave_up(), n);
	/* Whose programs they were. */
	assert_int_equal(correlator_user_losses(w.c, losses, 0), 1);
	assert_int_equal(losses[0].uid, 1);
	assert_int_equal(losses[0].cut, n);

	/* Half of the next window later half of it may be used again. */
	w.now += (USE_SECONDS + USE_SECONDS / 2) * SECOND;
	for (uint64_t i = 0; i < 2 * most / each; i++)
		execs_as(1, NULL);
	assert_int_equal(used_by(1), most / 2);
	wait_for_a_window();
	execs_as(1, NULL);
	assert_int_equal(used_by(1), each);
}

/* Many users together, such as those of one's user namespaces, have no more than some of a CPU. */
static void
all_users_cost_the_rules_a_bounded_time(void **state)
{
	const uint64_t most = USE_SECONDS * ALL_STEPS;
	uint32_t uid = 1;

	(void)state;
	wait_for_a_window();
	for (; uid <= 200; uid++)
		execs_as(uid, NULL);
	assert_in_range(w.c->all_steps.now, most / 2, most);
	for (; uid < 2 * USERS_MAX; uid++)
		execs_as(uid, "sleep 1");
	assert_int_equal(HASH_COUNT(w.c->users), USERS_MAX);
}

/* Those who use as much as they can leave what another needs, whatever time has passed. */
static void
a_user_below_its_share_is_judged(void **state)
{
	(void)state;
	wait_for_a_window();
	for (int i = 0; i < 40; i++, w.now += SECOND) {
		uint64_t before, used;

		for (int k = 0; k < 20; k++) {
			for (uint32_t uid = 1; uid <= 8; uid++)
				execs_as(uid, NULL);
		}
		before = used_by(1);
		execs_as(1, NULL);
		assert_in_range(used_by(1) - before, 0, RULES_STEPS / 2);
		execs_as(9, "sleep 1");
		used = used_by(9);
		execs_as(9, NULL);
		assert_int_equal(used_by(9) - used, RULES_STEPS - LEAST_STEPS);
	}
}

/* The arguments of a usual command are far from the bound, however many they are. */
static void
a_thousand_files_are_judged(void **state)
{
	static char names[1000][48];
	const char *argv[1001];
	size_t argv_len[1001];
	char first[] = "bash", exe[256];
	struct being b = forks(&w, NULL);
	struct exec_event s;

	(void)state;
	exec_event_fill(&w, &b, first, argv, argv_len, exe, &s);
	argv[0] = "bash";
	argv_len[0] = 4;
	for (size_t i = 0; i < 1000; i++) {
		argv_len[i + 1] = (size_t)snprintf(names[i], sizeof(names[i]), "data/sample_%04zu_R1.fastq.gz", i);
		argv[i + 1] = names[i];
	}
	s.argv = argv;
	s.argv_len = argv_len;
	s.argc = 1001;
	correlator_exec(w.c, &s);
	assert_int_equal(gave_up(), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_program_costs_the_rules_a_bounded_time),
		T(a_thousand_files_are_judged),
		T(a_user_costs_the_rules_a_bounded_time),
		T(all_users_cost_the_rules_a_bounded_time),
		T(a_user_below_its_share_is_judged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
