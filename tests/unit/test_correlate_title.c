/* SPDX-License-Identifier: Apache-2.0 */
/* title: attribution of programs that write a title over their arguments, by the shipped rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "events.h"

#define SESSION "/tmp/ray/session_2026-01-02_03-04-05_000006_77"
#define ARGV(...) (const char *const[]){ __VA_ARGS__, NULL }

static struct world w;

/* The write-ahead log, for the next life. */
static struct correlator_options
host(void)
{
	return (struct correlator_options){ .boot_id = BOOT_ID, .host_id = "host", .rules = world_options().rules };
}

static int
setup(void **state)
{
	struct correlator_options options = host();

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

static void
execs_as(struct being *b, const char *exe, const char *const *argv)
{
	struct exec_event s = { .time_ns = w.now, .exe = exe, .cwd = "/w", .argv = argv, .has_replaced = b->execed,
		.replaced = b->c, .context = b->context };
	size_t lens[16];

	for (; argv[s.argc] != NULL; s.argc++)
		lens[s.argc] = strlen(argv[s.argc]);
	b->key.index += b->execed;
	b->execed = true;
	s.argv_len = lens;
	s.self = b->key;
	s.parent = b->parent;
	s.anchor = b->anchor;
	snprintf(s.comm, sizeof(s.comm), "%.15s", strrchr(exe, '/') + 1);
	correlator_exec(w.c, &s);
}

static struct being
child(const struct being *parent, const char *exe, const char *const *argv)
{
	struct being b = forks(&w, parent);

	execs_as(&b, exe, argv);
	return b;
}

/* A pass, and then what the agent would read of those that are asked for. Returns how many those are. */
static size_t
reads(const struct being *const *beings, size_t n, const struct being *who, const char *title)
{
	struct titled titled[16];
	size_t asked, len = strlen(title);

	snapshot(&w, false, beings, n);
	asked = correlator_titled(w.c, titled, 16);
	for (size_t i = 0; i < asked; i++) {
		if (titled[i].key.pid == who->key.pid && titled[i].hash != correlator_title_hash(title, len))
			correlator_title(w.c, &titled[i].key, title, len, w.now);
	}
	correlator_tick(w.c, w.now, false);
	return asked;
}

static const struct kept_record *
task_entry(const char *name, enum record_phase phase)
{
	const struct kept_record *n;

	for (size_t i = 0; (n = record_at(&w, TOPIC_TASK, phase, i)) != NULL; i++) {
		if (n->task != NULL && strcmp(n->task, name) == 0)
			return n;
	}
	return NULL;
}

static uint64_t
user_ms(const struct kept_record *n)
{
	return n->usage.value[USAGE_CPU_USER_NS] / MS;
}

static struct being raylet, worker;

static void
start_ray(void)
{
	raylet = child(NULL, "/venv/ray/raylet", ARGV("/venv/ray/raylet", "--session_dir=" SESSION));
	worker = child(&raylet, "/usr/bin/python3.11", ARGV("python3", "/venv/ray/default_worker.py", "--port=0"));
}

static size_t
ray_title(const char *title)
{
	return reads((const struct being *const[]){ &raylet, &worker }, 2, &worker, title);
}

static void
a_ray_worker_goes_from_task_to_task(void **state)
{
	const struct kept_record *f, *g, *end;

	(void)state;
	start_ray();
	works(&w, &worker, 100);
	assert_int_equal(ray_title("ray::IDLE"), 1);
	works(&w, &worker, 1000);
	assert_int_equal(ray_title("ray::IDLE"), 1);
	assert_int_equal(record_count(&w, TOPIC_TASK, -1), 0);

	ray_title("ray::train_step");
	f = task_entry("train_step", PHASE_START);
	assert_non_null(f);
	assert_string_equal(f->engine, "ray");
	assert_string_equal(f->source, "title of the worker");
	assert_string_equal(f->run_id, record_at(&w, TOPIC_RUN, PHASE_START, 0)->run_id);
	works(&w, &worker, 3000);
	ray_title("ray::train_step");
	ray_title("ray::IDLE");
	works(&w, &worker, 500);
	ray_title("ray::IDLE");
	ray_title("ray::Model.evaluate()");
	works(&w, &worker, 2000);
	ray_title("ray::Model.evaluate()");
	works(&w, &worker, 200);
	exits(&w, &worker, 3);
	works(&w, &raylet, 3000);
	correlator_tick(w.c, w.now, false);

	f = task_entry("train_step", PHASE_END);
	g = task_entry("Model.evaluate", PHASE_END);
	assert_non_null(f);
	assert_non_null(g);
	assert_int_equal(user_ms(f), 3000);
	assert_int_equal(user_ms(g), 2200);
	assert_int_equal(f->work.wall_ns, 3000 * MS);
	assert_int_equal(f->work.programs, 1);
	assert_int_equal(g->work.programs, 1);
	assert_int_equal(f->work.live_programs, 0);
	assert_false(f->work.exit_code.known);		/* it did not end with its program */
	assert_int_equal(g->work.exit_code.value, 3);
	assert_string_not_equal(f->task_id, g->task_id);
	assert_int_equal(record_count(&w, TOPIC_TASK, PHASE_END), 2);
	end = record_of(&w, &worker, 0, PHASE_END);
	assert_string_equal(end->task, "Model.evaluate");
	assert_string_equal(end->comm, "kernel-comm");		/* read at the end, not kept from the exec */
	assert_string_equal(end->argv[1], "/venv/ray/default_worker.py");
	assert_int_equal(user_ms(end), 6800);
}

static void
the_same_title_again_is_the_same_task_while_it_lasts(void **state)
{
	const struct kept_record *end;

	(void)state;
	start_ray();
	ray_title("ray::f");
	works(&w, &worker, 400);
	ray_title("ray::IDLE");
	works(&w, &worker, 300);
	ray_title("ray::f");
	works(&w, &worker, 200);
	exits(&w, &worker, 0);
	works(&w, &raylet, 3000);
	correlator_tick(w.c, w.now, false);
	assert_int_equal(record_count(&w, TOPIC_TASK, PHASE_START), 1);
	assert_int_equal(record_count(&w, TOPIC_TASK, PHASE_END), 1);
	end = record_at(&w, TOPIC_TASK, PHASE_END, 0);
	assert_int_equal(user_ms(end), 600);
	assert_int_equal(end->work.programs, 2);	/* it came twice */
}

static void
what_is_no_title_changes_nothing(void **state)
{
	static const char *const titles[] = { "python3", "python3 something else", "", "ray::" };

	(void)state;
	start_ray();
	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		ray_title(titles[i]);
	assert_int_equal(record_count(&w, TOPIC_TASK, -1), 0);
	assert_false(record_of(&w, &worker, 0, PHASE_START)->program.overhead);
	exits(&w, &worker, 0);
	assert_false(record_of(&w, &worker, 0, PHASE_END)->program.overhead);
	assert_null(record_of(&w, &worker, 0, PHASE_END)->task);
}

static void
a_title_is_redacted(void **state)
{
	const struct kept_record *n;

	(void)state;
	start_ray();
	ray_title("ray::https://me:hunter2@host/f");
	n = record_at(&w, TOPIC_TASK, PHASE_START, 0);
	assert_non_null(n);
	assert_null(strstr(n->task, "hunter2"));
	assert_null(strstr(n->task_id, "hunter2"));
}

static void
a_title_is_read_as_text(void **state)
{
	const struct kept_record *n;

	(void)state;
	start_ray();
	ray_title("ray::login --password hunter2");
	n = record_at(&w, TOPIC_TASK, PHASE_START, 0);
	assert_non_null(n);
	assert_null(strstr(n->task, "hunter2"));
	assert_null(strstr(n->task_id, "hunter2"));
}

static void
only_those_are_asked_for_that_rules_name_and_each_gets_its_turn(void **state)
{
	struct being other;
	const struct being *all[10] = { &raylet, &other };
	struct being more[8];
	unsigned times[8] = { 0 };
	struct titled titled[3];

	(void)state;
	start_ray();
	other = child(NULL, "/usr/bin/python3.11", ARGV("python3", "train.py"));
	for (int i = 0; i < 8; i++) {
		more[i] = child(&raylet, "/usr/bin/python3.11", ARGV("python3", "/v/default_worker.py"));
		all[i + 2] = &more[i];
	}
	exits(&w, &worker, 0);
	/* Three of eight in each second; the last of these has one of the next round. */
	for (int i = 0; i < 3; i++) {
		snapshot(&w, false, all, 10);
		assert_int_equal(correlator_titled(w.c, titled, 3), 3);
		for (size_t k = 0; k < 3; k++) {
			assert_in_range(titled[k].key.pid, more[0].key.pid, more[7].key.pid);
			times[titled[k].key.pid - more[0].key.pid]++;
		}
	}
	for (int i = 0; i < 8; i++)
		assert_int_equal(times[i], i == 0 ? 2 : 1);
	snapshot(&w, false, all, 10);
	assert_int_equal(correlator_titled(w.c, titled, 3), 3);
	assert_int_equal(titled[0].key.pid, more[1].key.pid);
	assert_int_equal(totals(&w).titles_left_out, 4 * 5);
	snapshot(&w, false, all, 4);	/* the others are not seen any more */
	assert_int_equal(correlator_titled(w.c, titled, 3), 2);
	assert_int_equal(totals(&w).titles_left_out, 4 * 5);
}

static void
starts_titled(struct being *b, uint32_t uid)
{
	*b = forks(&w, NULL);
	b->context.uid = uid;
	execs_as(b, "/usr/bin/python3.11", ARGV("python3", "-c", "multiprocessing.spawn"));
}

/* A thousand of one user were before those of another in the table, which were read once in four seconds. */
static void
no_user_keeps_the_titles_of_another_from_being_read(void **state)
{
	enum { FLOOD = 1000, OTHERS = 3, ROOM = 256, SECONDS = 8 };
	static struct being flood[FLOOD], others[OTHERS], one;
	static const struct being *all[FLOOD + OTHERS + 1];
	static unsigned times[FLOOD];
	struct user_loss losses[USER_LOSSES];
	struct titled titled[ROOM];

	(void)state;
	for (size_t i = 0; i < FLOOD; i++) {
		starts_titled(&flood[i], 1001);
		all[i] = &flood[i];
	}
	for (size_t i = 0; i < OTHERS; i++) {
		starts_titled(&others[i], 1002);
		all[FLOOD + i] = &others[i];
	}
	starts_titled(&one, 1003);
	all[FLOOD + OTHERS] = &one;
	memset(times, 0, sizeof(times));
	for (size_t second = 1; second <= SECONDS; second++) {
		size_t n_others = 0;

		snapshot(&w, false, all, FLOOD + OTHERS + 1);
		assert_int_equal(correlator_titled(w.c, titled, ROOM), ROOM);
		for (size_t i = 0; i < ROOM; i++) {
			n_others += titled[i].user != 1001;
			for (size_t k = 0; k < FLOOD && titled[i].user == 1001; k++)
				times[k] += titled[i].key.pid == flood[k].key.pid;
		}
		assert_int_equal(n_others, OTHERS + 1);
		assert_int_equal(totals(&w).titles_left_out, second * (FLOOD + OTHERS + 1 - ROOM));
	}
	/* Its own take turns: 252 in a second are two rounds and 16 more. */
	for (size_t k = 0; k < FLOOD; k++)
		assert_int_equal(times[k], k < SECONDS * (ROOM - OTHERS - 1) - 2 * FLOOD ? 3 : 2);
	/* Only titles of the flood were left out. */
	assert_int_equal(correlator_user_losses(w.c, losses, 0), 1);
	assert_int_equal(losses[0].uid, 1001);
	assert_int_equal(losses[0].cut, SECONDS * (FLOOD + OTHERS + 1 - ROOM));
	/* Without room, all are left out; with room for fewer than there are users, these take turns. */
	assert_int_equal(correlator_titled(w.c, titled, 0), 0);
	assert_int_equal(totals(&w).titles_left_out, (SECONDS + 1) * (FLOOD + OTHERS + 1) - SECONDS * ROOM);
	for (size_t i = 0, seen = 0; i < 3; i++) {
		assert_int_equal(correlator_titled(w.c, titled, 1), 1);
		seen |= (size_t)1 << (titled[0].user - 1001);
		assert_true(i < 2 || seen == 7);
	}
}

static void
an_airflow_task_that_only_forked_is_in_the_run_of_its_dag(void **state)
{
	struct being scheduler, runner;
	const struct being *all[] = { &scheduler, &runner };
	const struct kept_record *n;

	(void)state;
	scheduler = child(NULL, "/usr/bin/python3.11", ARGV("/venv/bin/python3", "/venv/bin/airflow", "scheduler"));
	runner = forks(&w, &scheduler);
	works(&w, &runner, 200);
	/* Known from the first pass on, recorded after a second. */
	assert_int_equal(reads(all, 2, &runner, "airflow task runner: rna align manual__2026"), 2);
	assert_int_equal(record_count(&w, TOPIC_TASK, -1), 0);
	works(&w, &runner, 1000);
	reads(all, 2, &runner, "airflow task runner: rna align manual__2026");
	n = record_at(&w, TOPIC_TASK, PHASE_START, 0);
	assert_non_null(n);
	assert_string_equal(n->task_id, "align");
	assert_string_equal(n->pipeline, "rna");
	assert_string_equal(record_of(&w, &runner, 0, PHASE_START)->task_id, "align");
	exits(&w, &runner, 0);
	works(&w, &scheduler, 3000);
	correlator_tick(w.c, w.now, false);
	n = record_at(&w, TOPIC_TASK, PHASE_END, 0);
	assert_non_null(n);
	assert_int_equal(user_ms(n), 1200);
	assert_null(record_of(&w, &scheduler, 0, PHASE_START)->run_id);
}

static void
a_run_that_is_given_by_hand_stays(void **state)
{
	const struct tag tag = { .run_id = "mine", .task = "all of it", .source = "sluice ctl tag" };

	(void)state;
	start_ray();
	assert_int_equal(correlator_tag(w.c, worker.key.pid, &tag, w.now), 1);
	ray_title("ray::f");
	exits(&w, &worker, 0);
	assert_null(task_entry("f", PHASE_START));
	assert_string_equal(record_of(&w, &worker, 0, PHASE_END)->task, "all of it");
}

static void
an_exec_begins_anew(void **state)
{
	(void)state;
	start_ray();
	ray_title("ray::f");
	works(&w, &worker, 500);
	ray_title("ray::g");
	works(&w, &worker, 300);
	execs_as(&worker, "/bin/sleep", ARGV("sleep", "1"));
	works(&w, &worker, 100);
	assert_int_equal(ray_title("ray::h"), 0);
	exits(&w, &worker, 0);
	works(&w, &raylet, 3000);
	correlator_tick(w.c, w.now, false);
	assert_int_equal(user_ms(task_entry("f", PHASE_END)), 500);
	assert_int_equal(user_ms(task_entry("g", PHASE_END)), 400);
}

static void
the_next_life_knows_what_came_before_a_title(void **state)
{
	struct correlator_options options = host();
	struct titled titled[4];

	(void)state;
	start_ray();
	ray_title("ray::f");
	works(&w, &worker, 500);
	ray_title("ray::f");
	ray_title("ray::g");
	works(&w, &worker, 300);
	snapshot(&w, true, (const struct being *const[]){ &raylet, &worker }, 2);

	records_forget(&w);
	world_dies(&w, &options);
	snapshot(&w, false, (const struct being *const[]){ &raylet, &worker }, 2);
	assert_int_equal(correlator_titled(w.c, titled, 4), 1);
	correlator_title(w.c, &titled[0].key, "ray::g", 6, w.now);
	assert_int_equal(record_count(&w, TOPIC_TASK, PHASE_START), 0);
	works(&w, &worker, 100);
	exits(&w, &worker, 0);
	works(&w, &raylet, 3000);
	correlator_tick(w.c, w.now, false);
	assert_int_equal(user_ms(task_entry("f", PHASE_END)), 500);
	assert_int_equal(user_ms(task_entry("g", PHASE_END)), 400);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_ray_worker_goes_from_task_to_task, setup, teardown),
		cmocka_unit_test_setup_teardown(the_same_title_again_is_the_same_task_while_it_lasts, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_no_title_changes_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(a_title_is_redacted, setup, teardown),
		cmocka_unit_test_setup_teardown(a_title_is_read_as_text, setup, teardown),
		cmocka_unit_test_setup_teardown(only_those_are_asked_for_that_rules_name_and_each_gets_its_turn, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(no_user_keeps_the_titles_of_another_from_being_read, setup, teardown),
		cmocka_unit_test_setup_teardown(an_airflow_task_that_only_forked_is_in_the_run_of_its_dag, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(a_run_that_is_given_by_hand_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(an_exec_begins_anew, setup, teardown),
		cmocka_unit_test_setup_teardown(the_next_life_knows_what_came_before_a_title, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
