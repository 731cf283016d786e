/* SPDX-License-Identifier: Apache-2.0 */
/* energy: readings of a meter, divided by CPU time among tasks and runs of a host. No root, no kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "events.h"

#define JOULE UINT64_C(1000000)
#define CPUS 4
#define JOB "sh -c python_-m_snakemake_--target-jobs_'%s:sample=A'"

static struct world w;
static uint64_t residue;

static struct correlator_options
host(void)
{
	return (struct correlator_options){ .boot_id = BOOT_ID, .host_id = "host", .rules = world_options().rules };
}

static int
set_up(void **state)
{
	struct correlator_options options = host();

	(void)state;
	world_open_as(&w, &options, true);
	residue = 0;
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	world_close(&w);
	return 0;
}

static struct being
child(const struct being *parent, const char *command)
{
	struct being b = forks(&w, parent);

	execs(&w, &b, command);
	return b;
}

static struct being
job(const struct being *driver, const char *name)
{
	char command[128];

	snprintf(command, sizeof(command), JOB, name);
	return child(driver, command);
}

/* Uses a CPU for ms, side by side with the others. */
static void
uses(struct being *b, uint64_t ms)
{
	uint64_t now = w.now;

	works(&w, b, ms);
	w.now = now;
}

/* A second passes, with a pass at its end and a reading of so many joules. Returns joules that runs have of it. */
static uint64_t
second(const struct being *const *beings, size_t n, uint64_t joules)
{
	uint64_t divided;

	w.now += SECOND;
	snapshot(&w, false, beings, n);
	divided = correlator_charge(w.c, joules * JOULE, joules > 0 ? ENERGY_POWERCAP : ENERGY_UNKNOWN, CPUS * SECOND);
	assert_true(divided <= joules * JOULE);
	residue += joules * JOULE - divided;
	correlator_tick(w.c, w.now, false);
	return divided / JOULE;
}

static const struct kept_record *
task_record(const char *name, enum record_phase phase)
{
	const struct kept_record *n, *found = NULL;

	for (size_t i = 0; (n = record_at(&w, TOPIC_TASK, (int)phase, i)) != NULL; i++) {
		if (n->task != NULL && strcmp(n->task, name) == 0)
			found = n;
	}
	assert_non_null(found);
	return found;
}

static const struct kept_record *
run_record(enum record_phase phase)
{
	size_t n = record_count(&w, TOPIC_RUN, (int)phase);

	assert_true(n > 0);
	return record_at(&w, TOPIC_RUN, (int)phase, n - 1);
}

static void
has(const struct kept_record *n, uint64_t joules)
{
	assert_true(n->work.energy_uj.known);
	assert_int_equal(n->work.energy_source, ENERGY_POWERCAP);
	assert_int_equal(n->work.energy_uj.value, joules * JOULE);
}

static void
shares_and_residue_add_up(void **state)
{
	struct being driver = child(NULL, "snakemake -c2"), a, b, other;

	(void)state;
	a = job(&driver, "align");
	b = job(&driver, "call");
	other = child(NULL, "stress");		/* of no run */
	for (int i = 0; i < 5; i++) {
		const struct being *all[] = { &driver, &a, &b, &other };

		uses(&a, 1000);
		uses(&b, 500);
		uses(&driver, 100);
		uses(&other, 1000);
		/* 1600 ms of 4000 are of the run */
		assert_int_equal(second(all, 4, 100), 40);
	}
	uses(&a, 400);
	exits(&w, &a, 0);
	exits(&w, &b, 0);
	assert_int_equal(second((const struct being *[]){ &driver, &other }, 2, 100), 10);
	exits(&w, &driver, 0);
	assert_int_equal(second((const struct being *[]){ &other }, 1, 100), 0);
	for (int i = 0; i < 7; i++)
		second((const struct being *[]){ &other }, 1, 100);
	has(task_record("align", PHASE_END), 135);
	assert_int_equal(task_record("call", PHASE_END)->work.energy_uj.value, 62500000);
	has(run_record(PHASE_END), 210);
	assert_int_equal(run_record(PHASE_END)->work.energy_uj.value + residue, 14 * 100 * JOULE);
}

static void
what_ends_between_two_readings_has_its_share(void **state)
{
	struct being driver = child(NULL, "snakemake -c2"), a = job(&driver, "align"), tool;

	(void)state;
	for (int i = 0; i < 10; i++) {
		tool = child(&a, "bwa mem x");
		uses(&tool, 40);
		exits(&w, &tool, 0);
	}
	uses(&a, 400);
	execs(&w, &a, "samtools sort x");	/* the shell's time is of the task, too */
	assert_int_equal(second((const struct being *[]){ &driver, &a }, 2, 50), 10);
	exits(&w, &a, 0);
	second((const struct being *[]){ &driver }, 1, 50);
	second((const struct being *[]){ &driver }, 1, 50);
	has(task_record("align", PHASE_END), 10);
}

static void
without_a_reading_cpu_time_costs_nothing(void **state)
{
	struct being driver = child(NULL, "snakemake -c2"), a = job(&driver, "align"), tool;
	const struct being *all[] = { &driver, &a };

	(void)state;
	uses(&a, 1000);
	tool = child(&a, "bwa mem x");
	uses(&tool, 1000);
	exits(&w, &tool, 0);
	assert_int_equal(second(all, 2, 0), 0);
	correlator_tick(w.c, w.now, true);
	assert_false(task_record("align", PHASE_LIVE)->work.energy_uj.known);
	assert_int_equal(task_record("align", PHASE_LIVE)->work.energy_source, ENERGY_UNKNOWN);
	uses(&a, 1000);
	assert_int_equal(second(all, 2, 100), 25);	/* of that second alone */
	correlator_tick(w.c, w.now, true);
	has(task_record("align", PHASE_LIVE), 25);
}

/* The kernel reports some ends late: all CPU time of them counts in one interval. */
static void
more_than_was_counted_is_never_divided(void **state)
{
	struct being driver = child(NULL, "snakemake -c2"), a = job(&driver, "align"), b = job(&driver, "call");

	(void)state;
	uses(&a, 9000);
	uses(&b, 3000);
	exits(&w, &a, 0);
	exits(&w, &b, 0);
	assert_int_equal(second((const struct being *[]){ &driver }, 1, 100), 100);
	second((const struct being *[]){ &driver }, 1, 100);
	second((const struct being *[]){ &driver }, 1, 100);
	has(task_record("align", PHASE_END), 75);
	has(task_record("call", PHASE_END), 25);
}

static void
a_program_that_changes_its_run_takes_its_energy_along(void **state)
{
	struct being driver = child(NULL, "snakemake -c2"), a = job(&driver, "align");
	const struct being *all[] = { &driver, &a };
	const struct tag tag = { .run_id = "mine", .source = "ctl", .task = "own" };

	(void)state;
	uses(&a, 1000);
	second(all, 2, 100);
	assert_int_equal(correlator_tag(w.c, a.key.pid, &tag, w.now), 1);
	uses(&a, 1000);
	uses(&driver, 400);
	assert_int_equal(second(all, 2, 100), 35);
	correlator_tick(w.c, w.now, true);
	has(task_record("own", PHASE_LIVE), 50);
	for (size_t i = 0; i < record_count(&w, TOPIC_RUN, PHASE_LIVE); i++) {
		const struct kept_record *n = record_at(&w, TOPIC_RUN, PHASE_LIVE, i);

		has(n, strcmp(n->run_id, "mine") == 0 ? 50 : 10);
	}
	assert_int_equal(residue, 140 * JOULE);
}

/* The next agent continues from what LIVE records had, and does not charge what it has not seen. */
static void
a_restart_forgets_no_energy_and_makes_up_none(void **state)
{
	struct being driver = child(NULL, "snakemake -c2"), a = job(&driver, "align");
	const struct being *all[] = { &driver, &a };
	struct correlator_options options = host();

	(void)state;
	for (int i = 0; i < 3; i++) {
		uses(&a, 1000);
		second(all, 2, 100);
	}
	correlator_tick(w.c, w.now, true);
	has(task_record("align", PHASE_LIVE), 75);
	uses(&a, 3000);			/* while no agent runs */
	world_dies(&w, &options);
	snapshot(&w, false, all, 2);
	uses(&a, 1000);
	assert_int_equal(second(all, 2, 100), 25);
	exits(&w, &a, 0);
	second((const struct being *[]){ &driver }, 1, 100);
	second((const struct being *[]){ &driver }, 1, 100);
	has(task_record("align", PHASE_END), 100);
}

/* Its end is the first that the next agent hears of it. */
static void
what_ended_while_no_agent_ran_costs_no_more(void **state)
{
	struct being driver = child(NULL, "snakemake -c2"), a = job(&driver, "align");
	struct correlator_options options = host();

	(void)state;
	uses(&a, 1000);
	second((const struct being *[]){ &driver, &a }, 2, 100);
	correlator_tick(w.c, w.now, true);
	uses(&a, 9000);
	world_dies(&w, &options);
	exits(&w, &a, 0);
	second((const struct being *[]){ &driver }, 1, 100);
	second((const struct being *[]){ &driver }, 1, 100);
	has(task_record("align", PHASE_END), 25);
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(shares_and_residue_add_up),
		T(what_ends_between_two_readings_has_its_share),
		T(without_a_reading_cpu_time_costs_nothing),
		T(more_than_was_counted_is_never_divided),
		T(a_program_that_changes_its_run_takes_its_energy_along),
		T(a_restart_forgets_no_energy_and_makes_up_none),
		T(what_ended_while_no_agent_ran_costs_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
