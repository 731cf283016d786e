/* SPDX-License-Identifier: Apache-2.0 */
/* attribute_job: tasks that their engine does not name, as its records of its jobs are found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "events.h"
#include "identify/jobs.h"

static struct world w;
static struct being driver;

/* What the next searches find: NULL nothing. */
static struct {
	const char *running, *at_end;
	const char *sample;
	size_t n_running, n_at_end;
	struct job_sought last;		/* its texts are invalid */
	char folder[64];
} jobs;

static bool
find_job(const struct job_sought *s, struct job_found *ret, void *arg)
{
	const char *name = s->is_over ? jobs.at_end : jobs.running;

	(void)arg;
	*(s->is_over ? &jobs.n_at_end : &jobs.n_running) += 1;
	jobs.last = *s;
	snprintf(jobs.folder, sizeof(jobs.folder), "%s", s->folder);
	assert_true(s->is_over == (s->text == NULL));
	if (name == NULL)
		return false;
	memset(ret, 0, sizeof(*ret));
	snprintf(ret->task, sizeof(ret->task), "%s", name);
	snprintf(ret->sample, sizeof(ret->sample), "%s", jobs.sample != NULL ? jobs.sample : "");
	ret->source = s->is_over ? "record" : "log";
	ret->confidence = s->is_over ? 0.95 : 0.8;
	ret->is_sure = s->is_over;
	return true;
}

static int
setup(void **state)
{
	const struct correlator_ops ops = { record_program, record_usage_record, record_task, record_run,
		.job = find_job };
	struct correlator_options options = world_options();

	(void)state;
	world_open(&w, &options);
	correlator_free(w.c);
	assert_int_equal(correlator_new(&options, &ops, &w, &w.c), 0);
	correlator_set_clock(w.c, CLOCK_US * 1000);
	correlator_run_start(w.c, w.now);
	memset(&jobs, 0, sizeof(jobs));
	driver = forks(&w, NULL);
	execs(&w, &driver, "snakemake -c2");
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	world_close(&w);
	return 0;
}

static struct being
shell(const char *command)
{
	struct being b = forks(&w, &driver);

	execs(&w, &b, command);
	return b;
}

/* Runs the shell for ms, and lets a tick of the agent end its task. */
static void
ends(struct being *b, uint64_t ms)
{
	works(&w, b, ms);
	exits(&w, b, 0);
	w.now += 2 * SECOND;
	correlator_tick(w.c, w.now, false);
}

static const struct kept_record *
task_at(enum record_phase phase, size_t i)
{
	const struct kept_record *r = record_at(&w, TOPIC_TASK, phase, i);

	assert_non_null(r);
	return r;
}

static void
a_task_is_named_from_its_first_program_on(void **state)
{
	struct being b;

	(void)state;
	jobs.running = jobs.at_end = "align";
	jobs.sample = "A";
	b = shell("bash -c set_-euo_pipefail;__bwa_mem");
	assert_string_equal(jobs.folder, "/w");
	assert_int_equal(jobs.last.uid, 1000);
	assert_true(jobs.last.driver_pid == driver.key.pid && jobs.last.driver_start_ns == driver.key.start_ns);
	assert_true(jobs.last.command == job_command("bwa mem", 7) && jobs.last.task != 0);
	ends(&b, 10);
	assert_string_equal(task_at(PHASE_START, 0)->task, "align");
	assert_string_equal(task_at(PHASE_START, 0)->sample, "A");
	assert_string_equal(task_at(PHASE_START, 0)->source, "log");
	assert_string_equal(record_of(&w, &b, 0, PHASE_END)->task, "align");
	assert_string_equal(task_at(PHASE_END, 0)->task, "align");
	assert_string_equal(task_at(PHASE_END, 0)->source, "record");
	assert_int_equal(jobs.n_at_end, 1);
}

static void
a_task_is_named_at_its_end(void **state)
{
	struct being b;

	(void)state;
	jobs.at_end = "align";
	b = shell("bash -c set_-euo_pipefail;__bwa_mem");
	ends(&b, 10);
	assert_string_equal(task_at(PHASE_START, 0)->task, "bwa mem");
	assert_string_equal(task_at(PHASE_END, 0)->task, "align");
	assert_string_equal(task_at(PHASE_START, 0)->task_id, task_at(PHASE_END, 0)->task_id);
}

static void
a_task_is_sought_again_until_it_is_found(void **state)
{
	struct being b;

	(void)state;
	b = shell("bash -c set_-euo_pipefail;__bwa_mem");
	correlator_tick(w.c, w.now, true);
	assert_int_equal(jobs.n_running, 2);
	assert_string_equal(task_at(PHASE_LIVE, 0)->task, "bwa mem");
	jobs.running = "align";
	w.now += SECOND;
	correlator_tick(w.c, w.now, true);
	w.now += 2 * SECOND;
	correlator_tick(w.c, w.now, true);
	assert_int_equal(jobs.n_running, 3);
	assert_string_equal(task_at(PHASE_LIVE, 1)->task, "align");
	execs(&w, &b, "bwa mem");
	correlator_tick(w.c, w.now, true);
	ends(&b, 10);
	assert_string_equal(task_at(PHASE_END, 0)->task, "align");	/* nothing else was found */
}

static void
a_search_that_finds_nothing_is_made_ever_more_rarely_and_ends(void **state)
{
	struct being b;

	(void)state;
	b = shell("bash -c set_-euo_pipefail;__bwa_mem");
	for (int i = 0; i < 10; i++) {
		correlator_tick(w.c, w.now, false);
		w.now += SECOND;
	}
	assert_int_equal(jobs.n_running, 1 + 4);	/* at 0, 1, 3 and 6 s */
	for (int i = 0; i < 1000; i++) {
		correlator_tick(w.c, w.now, false);
		w.now += SECOND;
	}
	assert_int_equal(jobs.n_running, 1 + 30);
	ends(&b, 10);
	assert_int_equal(jobs.n_at_end, 1);
}

static void
twenty_are_sought_in_a_tick_and_each_user_has_a_share(void **state)
{
	struct being b;

	(void)state;
	for (int i = 0; i < 100; i++)
		shell("bash -c set_-euo_pipefail;__bwa_mem");
	jobs.n_running = 0;
	correlator_tick(w.c, w.now, false);
	assert_int_equal(jobs.n_running, 20);
	b = forks(&w, &driver);
	b.context.uid = 2000;
	execs(&w, &b, "bash -c set_-euo_pipefail;__bwa_mem");
	jobs.n_running = 0;
	correlator_tick(w.c, w.now, false);
	assert_int_equal(jobs.n_running, 11);
	assert_int_equal(jobs.last.uid, 2000);		/* began last, and has its turn */
}

static void
another_program_is_not_asked_about(void **state)
{
	struct being b;

	(void)state;
	b = shell("bash -c set_-euo_pipefail;__bwa_mem");
	execs(&w, &b, "bash -c bwa_index");
	correlator_tick(w.c, w.now, true);
	assert_int_equal(jobs.n_running, 1);
	ends(&b, 10);
	assert_int_equal(jobs.n_at_end, 1);
}

static void
programs_that_are_no_job_of_it_are_not_sought(void **state)
{
	struct being b, other;

	(void)state;
	b = shell("bash script.sh");			/* no command */
	ends(&b, 1);
	b = shell("bwa mem");				/* no shell */
	ends(&b, 1);
	b = forks(&w, NULL);
	execs(&w, &b, "make all");			/* no engine that keeps jobs */
	other = forks(&w, &b);
	execs(&w, &other, "sh -c bwa_mem");
	ends(&other, 1);
	assert_int_equal(jobs.n_running + jobs.n_at_end, 0);
}

static void
a_shadow_folder_is_one_of_the_workflow(void **state)
{
	static const char *const argv[] = { "bash", "-c", "set -euo pipefail;  bwa mem" };
	static const size_t lens[] = { 4, 2, 27 };
	struct being b = forks(&w, &driver);
	struct exec_event s = { .time_ns = w.now, .exe = "/bin/bash", .cwd = "/w/.snakemake/shadow/tmpx", .argv = argv,
		.argc = 3, .argv_len = lens, .self = b.key, .parent = b.parent, .anchor = b.anchor,
		.context = b.context };

	(void)state;
	correlator_exec(w.c, &s);
	assert_int_equal(jobs.n_running, 1);
	assert_string_equal(jobs.folder, "/w");
}

static const struct summary_row *
row_of_task(const char *task, const char *tool)
{
	const struct summary_row *rows, *found = NULL;
	size_t n = correlator_summary(w.c, &rows);

	for (size_t i = 0; i < n; i++) {
		if (rows[i].task != NULL && strcmp(rows[i].task, task) == 0 &&
		    (tool != NULL ? rows[i].tool != NULL && strcmp(rows[i].tool, tool) == 0 : rows[i].tool == NULL)) {
			assert_null(found);
			found = &rows[i];
		}
	}
	return found;
}

static void
programs_of_a_task_that_is_named_late_are_in_its_row(void **state)
{
	struct being a, b, tool;
	const struct summary_row *row;

	(void)state;
	jobs.at_end = "align";
	a = shell("bash -c set_-euo_pipefail;__bwa_mem");
	tool = forks(&w, &a);
	execs(&w, &tool, "bwa mem");
	works(&w, &tool, 30);
	tool.c.peak_rss_bytes = 2000000;
	exits(&w, &tool, 0);
	ends(&a, 10);
	b = shell("bash -c set_-euo_pipefail;__bwa_mem");
	tool = forks(&w, &b);
	execs(&w, &tool, "bwa mem");
	works(&w, &tool, 50);
	tool.c.peak_rss_bytes = 3000000;
	exits(&w, &tool, 1);
	ends(&b, 10);
	assert_null(row_of_task("bwa mem", "bwa mem"));
	row = row_of_task("align", "bwa mem");
	assert_non_null(row);
	assert_int_equal(row->programs, 2);
	assert_int_equal(row->failed, 1);
	assert_int_equal(row->wall_ns, 80 * MS);
	assert_int_equal(usage_cpu_ns(&row->usage), 80 * MS);
	assert_true(row->peak_memory_bytes.known);
	assert_int_equal(row->peak_memory_bytes.value, 3000000);
	row = row_of_task("align", NULL);
	assert_non_null(row);
	assert_int_equal(row->programs, 2);
}

static void
a_task_that_is_cut_off_is_named(void **state)
{
	(void)state;
	jobs.at_end = "align";
	shell("bash -c set_-euo_pipefail;__bwa_mem");
	w.now += SECOND;
	correlator_run_end(w.c, w.now, 0);
	assert_string_equal(task_at(PHASE_END, 0)->task, "align");
	assert_non_null(row_of_task("align", NULL));
	assert_null(row_of_task("bwa mem", NULL));
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_task_is_named_from_its_first_program_on),
		TEST(a_task_is_named_at_its_end),
		TEST(a_task_is_sought_again_until_it_is_found),
		TEST(a_search_that_finds_nothing_is_made_ever_more_rarely_and_ends),
		TEST(twenty_are_sought_in_a_tick_and_each_user_has_a_share),
		TEST(another_program_is_not_asked_about),
		TEST(programs_that_are_no_job_of_it_are_not_sought),
		TEST(a_shadow_folder_is_one_of_the_workflow),
		TEST(programs_of_a_task_that_is_named_late_are_in_its_row),
		TEST(a_task_that_is_cut_off_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
