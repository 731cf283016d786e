/* SPDX-License-Identifier: Apache-2.0 */
/* work: the task of a program, and the totals of tasks, of the table's rows and of the run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "correlate/state.h"
#include "one_world.h"

static const char *
task_of(const struct being *b)
{
	const struct kept_record *n = record_of(&w, b, b->key.index, PHASE_START);

	assert_non_null(n);
	return n->task;
}

static const char *
task_id_of(const struct being *b)
{
	return record_of(&w, b, b->key.index, PHASE_START)->task_id;
}

static struct being
child(const struct being *parent, const char *command)
{
	struct being b = forks(&w, parent);

	execs(&w, &b, command);
	return b;
}

static void
each_child_of_the_command_is_a_task(void **state)
{
	struct being sh, a, b, inner;
	const struct kept_record *n;

	(void)state;
	sh = child(NULL, "bash pipeline.sh");
	assert_null(task_of(&sh));
	a = child(&sh, "bwa index ref.fa");
	b = child(&sh, "bash -c samtools_sort_x_|_bcftools_view");
	inner = child(&b, "samtools sort x");
	assert_string_equal(task_of(&a), "bwa index");
	assert_string_equal(task_of(&b), "samtools sort | bcftools view");
	assert_string_equal(task_of(&inner), "samtools sort | bcftools view");
	assert_string_equal(task_id_of(&inner), task_id_of(&b));
	assert_string_not_equal(task_id_of(&a), task_id_of(&b));
	assert_int_equal(record_count(&w, TOPIC_TASK, PHASE_START), 2);
	n = record_at(&w, TOPIC_TASK, PHASE_START, 1);
	assert_string_equal(n->task, "samtools sort | bcftools view");
	assert_string_equal(n->engine, "sluice");
	assert_string_equal(n->work_dir, "/w");
	assert_true(n->work.confidence.known);
	assert_non_null(record_of(&w, &a, 0, PHASE_START)->source);
}

static void
exec_stays_in_its_task(void **state)
{
	struct being sh, a;

	(void)state;
	sh = child(NULL, "bash");
	a = child(&sh, "bash -c bwa_mem_x");
	works(&w, &a, 1);
	execs(&w, &a, "bwa mem x");
	assert_string_equal(task_of(&a), "bwa mem");
	assert_int_equal(record_count(&w, TOPIC_TASK, PHASE_START), 1);
	exits(&w, &a, 0);
	w.now += 3 * SECOND;
	correlator_tick(w.c, w.now, false);
	assert_int_equal(record_at(&w, TOPIC_TASK, PHASE_END, 0)->work.programs, 2);
}

static void
what_a_driver_forks_are_tasks_wherever_it_stands(void **state)
{
	struct being sh, snakemake, a, b;

	(void)state;
	sh = child(NULL, "sh run.sh");
	snakemake = child(&sh, "snakemake -c2");
	a = child(&snakemake, "bash -c set_-e;_bwa_mem_r_|_samtools_sort");
	b = child(&a, "bwa mem r");
	assert_string_equal(task_of(&a), "bwa mem | samtools sort");
	assert_string_equal(task_of(&b), "bwa mem | samtools sort");
	assert_string_not_equal(task_id_of(&snakemake), task_id_of(&a));
}

static void
an_engine_names_its_own_jobs(void **state)
{
	struct being sh, job, inner, tool;
	const struct kept_record *n;

	(void)state;
	sh = child(NULL, "snakemake -c2");
	job = child(&sh, "sh -c python_-m_snakemake_--target-jobs_'align:sample=A'");
	inner = child(&job, "python -m snakemake --target-jobs align:sample=A");
	tool = child(&inner, "bwa mem x");
	assert_string_equal(task_of(&job), "align");
	assert_string_equal(task_id_of(&tool), "align:sample=A");
	assert_string_equal(record_of(&w, &tool, 0, PHASE_START)->sample, "A");
	/* one task, said twice */
	assert_int_equal(record_count(&w, TOPIC_TASK, PHASE_START), 1);
	exits(&w, &tool, 0);
	exits(&w, &inner, 0);
	exits(&w, &job, 0);
	correlator_run_end(w.c, w.now + SECOND, 0);
	assert_int_equal(record_count(&w, TOPIC_TASK, PHASE_END), 1);
	n = record_at(&w, TOPIC_TASK, PHASE_END, 0);
	assert_int_equal(n->work.programs, 3);
	assert_string_equal(n->engine, "snakemake");
	assert_string_equal(n->work_dir, "/w");
	assert_true(n->work.exit_code.known);
}

static void
a_retry_is_another_task(void **state)
{
	struct being sh, a, b;

	(void)state;
	sh = child(NULL, "snakemake -c2");
	a = child(&sh, "sh -c python_-m_snakemake_--target-jobs_'align:sample=A'");
	exits(&w, &a, 1);
	b = child(&sh, "sh -c python_-m_snakemake_--target-jobs_'align:sample=A'");
	exits(&w, &b, 0);
	assert_int_equal(record_count(&w, TOPIC_TASK, PHASE_START), 2);
}

static void
commands_of_one_subshell_are_one_task(void **state)
{
	struct being sh, subshell, a, b;

	(void)state;
	sh = child(NULL, "bash pipeline.sh");
	subshell = forks(&w, &sh);	/* ( bwa index; samtools faidx ): nothing is heard of it yet */
	a = child(&subshell, "bwa index x");
	b = child(&subshell, "samtools faidx x");
	assert_non_null(task_id_of(&a));
	assert_string_equal(task_id_of(&a), task_id_of(&b));
	exits(&w, &a, 0);
	exits(&w, &b, 0);
	exits(&w, &subshell, 0);
	assert_string_equal(record_of(&w, &subshell, 0, PHASE_END)->task_id, task_id_of(&a));
	assert_int_equal(record_count(&w, TOPIC_TASK, PHASE_START), 1);
	assert_int_equal(totals(&w).live, 1);
	assert_int_equal(correlator_live(w.c), 1);
}

static void
with_task_all_is_one(void **state)
{
	struct correlator_options options = world_options();
	struct being sh, a, b;
	char name[2 * 128 + 1];

	(void)state;
	world_close(&w);
	/* cut where it must be, but at a whole character */
	for (size_t i = 0; i + 1 < sizeof(name); i += 2)
		memcpy(name + i, "\xc3\xa9", 2);
	name[sizeof(name) - 1] = '\0';
	options.task = name;
	options.sample = "S1";
	world_open(&w, &options);
	sh = child(NULL, "snakemake -c2");
	a = child(&sh, "sh -c python_-m_snakemake_--target-jobs_'align:sample=A'");
	b = forks(&w, &a);
	exits(&w, &b, 0);
	assert_memory_equal(task_of(&sh), name, 100);
	assert_true(text_is_plain(task_of(&sh), strlen(task_of(&sh))));
	assert_string_equal(task_of(&a), task_of(&sh));
	assert_string_equal(task_of(&b), task_of(&sh));
	assert_string_equal(record_of(&w, &a, 0, PHASE_START)->sample, "S1");
	assert_int_equal(record_count(&w, TOPIC_TASK, PHASE_START), 1);
}

static void
a_lost_exec_stays_with_its_parents_task(void **state)
{
	struct being sh, a, b;

	(void)state;
	sh = child(NULL, "bash");
	a = child(&sh, "bwa mem x");
	b = forks(&w, &a);
	execs_unheard(&w, &b);
	exits(&w, &b, 0);
	assert_string_equal(record_of(&w, &b, 0, PHASE_END)->task_id, task_id_of(&a));
}

static void
a_task_ends_after_a_quiet_second(void **state)
{
	struct being sh, a, b;
	const struct kept_record *n;

	(void)state;
	sh = child(NULL, "bash");
	a = child(&sh, "bash -c bwa_mem_x");
	b = child(&a, "bwa mem x");
	works(&w, &b, 2000);
	exits(&w, &b, 1);
	works(&w, &a, 100);
	exits(&w, &a, 3);
	correlator_tick(w.c, w.now + 900 * MS, false);
	assert_int_equal(record_count(&w, TOPIC_TASK, PHASE_END), 0);
	correlator_tick(w.c, w.now + 1100 * MS, false);
	assert_int_equal(record_count(&w, TOPIC_TASK, PHASE_END), 1);
	n = record_at(&w, TOPIC_TASK, PHASE_END, 0);
	assert_int_equal(n->work.wall_ns, 2100 * MS);
	assert_int_equal(n->time_us, CLOCK_US + (int64_t)(w.now / 1000));
	assert_int_equal(n->work.end_time_us.value, n->time_us);
	assert_int_equal(n->work.start_time_us, CLOCK_US + (int64_t)(a.key.start_ns / 1000));
	assert_int_equal(n->work.programs, 2);
	assert_int_equal(n->work.failed_programs, 2);
	assert_int_equal(n->work.live_programs, 0);
	assert_int_equal(n->work.exit_code.value, 3);	/* of the process that it began with */
	assert_int_equal(usage_cpu_ns(&n->usage), 2100 * MS);
	assert_true(n->work.parallelism > 0.99 && n->work.parallelism < 1.01);
	assert_int_equal(n->work.bound, BOUND_COMPUTE);
	correlator_tick(w.c, w.now + 5 * SECOND, true);
	correlator_run_end(w.c, w.now + 6 * SECOND, 0);
	assert_int_equal(record_count(&w, TOPIC_TASK, PHASE_END), 1);
	assert_int_equal(record_count(&w, TOPIC_TASK, PHASE_LIVE), 0);
}

static void
live_records_hold_the_ended_and_the_live(void **state)
{
	struct being sh, a, b, c;
	const struct being *all[] = { &sh, &a, &c };
	const struct kept_record *n;

	(void)state;
	sh = child(NULL, "bash");
	a = child(&sh, "python3 a.py");
	b = child(&a, "bwa mem x");
	c = child(&sh, "python3 c.py");
	works(&w, &b, 100);
	exits(&w, &b, 0);
	works(&w, &a, 30);
	works(&w, &c, 7);
	snapshot(&w, false, all, 3);
	correlator_tick(w.c, w.now, true);
	assert_int_equal(record_count(&w, TOPIC_TASK, PHASE_LIVE), 2);
	n = record_at(&w, TOPIC_TASK, PHASE_LIVE, 0);
	assert_string_equal(n->task, "a.py");
	assert_int_equal(usage_cpu_ns(&n->usage), 130 * MS);
	assert_int_equal(n->usage.value[USAGE_RSS_BYTES], UINT64_C(30) << 20);
	assert_int_equal(n->usage.value[USAGE_PEAK_RSS_BYTES], UINT64_C(100) << 20);
	assert_int_equal(n->work.live_programs, 1);
	n = record_at(&w, TOPIC_TASK, PHASE_LIVE, 1);
	assert_int_equal(usage_cpu_ns(&n->usage), 7 * MS);
	n = record_at(&w, TOPIC_RUN, PHASE_LIVE, 0);
	assert_int_equal(usage_cpu_ns(&n->usage), 137 * MS);
	assert_int_equal(n->work.programs, 4);
	assert_int_equal(n->work.wall_ns, 137 * MS);
	/* an END adds nothing of what an older pass saw */
	works(&w, &a, 1);
	exits(&w, &a, 0);
	works(&w, &c, 1);
	correlator_run_end(w.c, w.now, 0);
	n = record_at(&w, TOPIC_TASK, PHASE_END, 0);
	assert_int_equal(usage_cpu_ns(&n->usage), 131 * MS);
	assert_true(!usage_has(&n->usage, USAGE_RSS_BYTES) || n->usage.value[USAGE_RSS_BYTES] == 0);
	n = record_at(&w, TOPIC_TASK, PHASE_END, 1);	/* it still runs: totals as last seen */
	assert_int_equal(usage_cpu_ns(&n->usage), 7 * MS);
	assert_int_equal(n->work.live_programs, 1);
	assert_false(n->work.exit_code.known);
}

static void
the_run_is_the_sum_of_its_programs(void **state)
{
	struct being sh, some[5];
	const struct kept_record *n;
	uint64_t cpu = 0, rchar = 0, peak = 0;

	(void)state;
	assert_int_equal(record_count(&w, TOPIC_RUN, PHASE_START), 1);
	sh = child(NULL, "bash");
	for (size_t i = 0; i < 5; i++) {
		some[i] = child(&sh, "bwa mem x");
		works(&w, &some[i], 10 * i + 1);
		if (i == 2)
			execs(&w, &some[i], "samtools sort");
		works(&w, &some[i], 5);
		exits(&w, &some[i], i == 3);
	}
	works(&w, &sh, 3);
	exits(&w, &sh, 0);
	correlator_lose(w.c, 17);
	correlator_run_end(w.c, w.now, 3 << 8);
	for (size_t i = 0; (n = record_at(&w, TOPIC_PROGRAM, PHASE_END, i)) != NULL; i++) {
		cpu += usage_cpu_ns(&n->usage);
		rchar += n->usage.value[USAGE_RCHAR];
		if (n->usage.value[USAGE_PEAK_RSS_BYTES] > peak)
			peak = n->usage.value[USAGE_PEAK_RSS_BYTES];
	}
	n = record_at(&w, TOPIC_RUN, PHASE_END, 0);
	assert_int_equal(usage_cpu_ns(&n->usage), cpu);
	assert_int_equal(cpu, 133 * MS);
	assert_int_equal(n->usage.value[USAGE_RCHAR], rchar);
	assert_int_equal(n->usage.value[USAGE_PEAK_RSS_BYTES], peak);
	assert_int_equal(n->work.programs, 7);
	assert_int_equal(n->work.failed_programs, 1);
	assert_int_equal(n->work.lost_events, 17);
	assert_int_equal(n->work.exit_code.value, 3);
	assert_int_equal(totals(&w).lost_events, 17);
	assert_int_equal(totals(&w).wall_ns, 133 * MS);
	assert_int_equal(usage_cpu_ns(&(struct usage){ .value = { totals(&w).usage.value[0],
	    totals(&w).usage.value[1] }, .known = 3 }), cpu);
}

static const struct summary_row *
row(const char *task, const char *tool)
{
	const struct summary_row *rows;
	size_t n = correlator_summary(w.c, &rows);

	for (size_t i = 0; i < n; i++) {
		if ((task == NULL ? rows[i].task == NULL : rows[i].task != NULL && strcmp(rows[i].task, task) == 0) &&
		    (tool == NULL ? rows[i].tool == NULL : rows[i].tool != NULL && strcmp(rows[i].tool, tool) == 0))
			return &rows[i];
	}
	return NULL;
}

static void
the_table_has_a_row_for_each_task_and_tool(void **state)
{
	struct being sh, task, tool;
	const struct summary_row *r;

	(void)state;
	sh = child(NULL, "bash");
	for (int i = 0; i < 3; i++) {
		task = child(&sh, "bash -c bwa_mem_|_samtools_sort");
		tool = child(&task, "bwa mem x");
		works(&w, &tool, 100);
		exits(&w, &tool, i == 0);
		tool = child(&task, "samtools sort x");
		works(&w, &tool, 10);
		exits(&w, &tool, 0);
		exits(&w, &task, 0);
		w.now += 50 * MS;
	}
	exits(&w, &sh, 0);
	r = row("bwa mem | samtools sort", "bwa mem");
	assert_non_null(r);
	assert_int_equal(r->programs, 3);
	assert_int_equal(r->failed, 1);
	assert_int_equal(r->wall_ns, 300 * MS);
	assert_int_equal(usage_cpu_ns(&r->usage), 300 * MS);
	assert_int_equal(r->bound, BOUND_COMPUTE);
	r = row("bwa mem | samtools sort", "samtools sort");
	assert_int_equal(r->wall_ns, 30 * MS);
	r = row("bwa mem | samtools sort", NULL);	/* the shells */
	assert_int_equal(r->programs, 3);
	r = row(NULL, NULL);				/* the driver */
	assert_int_equal(r->programs, 1);
	assert_null(row("bwa mem", NULL));
}

/* Sixteen threads on two CPUs, twice for ten seconds: pauses between have no CPUs that others could have taken. */
static void
a_row_denies_itself_nothing(void **state)
{
	struct being sh, tool;
	const struct summary_row *r;

	(void)state;
	w.c->options.host_cpus = (struct opt_double){ 2, true };
	sh = child(NULL, "bash");
	for (int i = 0; i < 2; i++) {
		tool = child(&sh, "bwa mem x");
		w.now += 10 * SECOND;
		tool.c.thread_ns = 160 * SECOND;
		tool.c.runtime_ns = 20 * SECOND;
		tool.c.utime = 20000;
		tool.c.run_delay_ns = 140 * SECOND;
		exits(&w, &tool, 0);
		for (int k = 0; k < 10; k++) {
			w.now += 10 * SECOND;
			correlator_tick(w.c, w.now, true);
		}
	}
	exits(&w, &sh, 0);
	r = row("bwa mem", "bwa mem");
	assert_non_null(r);
	assert_int_equal(r->verdict.demand, DEMAND_COMPUTE);
	assert_int_equal(r->verdict.denied, DENIED_NOTHING);
}

static void
wall_time_counts_overlapping_programs_once(void **state)
{
	struct being sh, a, b, c, first;

	(void)state;
	sh = child(NULL, "bash");
	first = child(&sh, "x");
	/* a |-----|      0 to 300
	 *   b |----|   100 to 500, reported before c
	 *      c |-|   400 to 450, reported last
	 */
	a = child(&first, "bwa mem");
	w.now += 100 * MS;
	b = child(&first, "bwa mem");
	w.now += 200 * MS;
	exits(&w, &a, 0);
	w.now += 100 * MS;
	c = child(&first, "bwa mem");
	w.now += 100 * MS;
	exits(&w, &b, 0);
	{
		struct state_event s = state_of(&w, &c, STATE_EXIT, 0);

		s.end_ns = w.now - 50 * MS;
		correlator_state(w.c, &s);
	}
	assert_int_equal(row("x", "bwa mem")->wall_ns, 500 * MS);
	/* and a gap is none of it */
	w.now += SECOND;
	a = child(&first, "bwa mem");
	w.now += 100 * MS;
	exits(&w, &a, 0);
	assert_int_equal(row("x", "bwa mem")->wall_ns, 600 * MS);
}

static void
a_program_reported_late_counts_from_its_start(void **state)
{
	struct being sh, first, a, b;

	(void)state;
	sh = child(NULL, "bash");
	first = child(&sh, "x");
	a = forks(&w, &first);
	w.now += 100 * MS;
	b = forks(&w, &first);
	execs(&w, &first, "z");
	w.now += 1100 * MS;
	tells(&w, &b, STATE_LIVE, 0);	/* reported before a, which began earlier */
	tells(&w, &a, STATE_LIVE, 0);
	w.now += 300 * MS;
	exits(&w, &a, 0);
	exits(&w, &b, 0);
	exits(&w, &first, 0);
	assert_int_equal(row("x", "z")->wall_ns, 1500 * MS);
}

static void
ten_thousand_tasks_are_recorded_in_one_pass(void **state)
{
	static struct being some[10000];
	struct being sh;

	(void)state;
	sh = child(NULL, "bash");
	for (size_t i = 0; i < 10000; i++)
		some[i] = child(&sh, "bwa mem");
	correlator_snapshot_begin(w.c, false);
	for (size_t i = 0; i < 10000; i++) {
		some[i].c.runtime_ns = (i + 1) * MS;
		tells(&w, &some[i], STATE_LIVE, 0);
	}
	correlator_snapshot_end(w.c, w.now);
	records_forget(&w);
	correlator_tick(w.c, w.now, true);	/* a walk for each would be 100 million steps */
	assert_int_equal(record_count(&w, TOPIC_RUN, PHASE_LIVE), 1);
	for (size_t i = 0; i < 10000; i++) {
		assert_int_equal(w.records[i].topic, TOPIC_TASK);
		assert_int_equal(usage_cpu_ns(&w.records[i].usage), (i + 1) * MS);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(each_child_of_the_command_is_a_task),
		T(exec_stays_in_its_task),
		T(what_a_driver_forks_are_tasks_wherever_it_stands),
		T(an_engine_names_its_own_jobs),
		T(a_retry_is_another_task),
		T(commands_of_one_subshell_are_one_task),
		T(with_task_all_is_one),
		T(a_lost_exec_stays_with_its_parents_task),
		T(a_task_ends_after_a_quiet_second),
		T(live_records_hold_the_ended_and_the_live),
		T(the_run_is_the_sum_of_its_programs),
		T(the_table_has_a_row_for_each_task_and_tool),
		T(a_row_denies_itself_nothing),
		T(wall_time_counts_overlapping_programs_once),
		T(a_program_reported_late_counts_from_its_start),
		T(ten_thousand_tasks_are_recorded_in_one_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
