/* SPDX-License-Identifier: Apache-2.0 */
/* groups: which control group is a task's alone, and what its records have of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "correlate/groups.h"
#include "correlate/state.h"
#include "findings_kit.h"

#define STEP_PATH "/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0"
#define STEP UINT64_C(71)

static uint64_t peak;			/* of each group that is asked; 0: it is gone */
static unsigned asked;

static bool
group(const char *v2_path, const char *v1_path, struct group_use *ret, void *arg)
{
	(void)arg;
	assert_null(v1_path);
	assert_string_equal(v2_path, STEP_PATH);
	asked++;
	*ret = (struct group_use){ .memory_peak_bytes = { peak, true } };
	return peak != 0;
}

static struct correlator_options
host(void)
{
	struct correlator_options options = world_options();

	options.run_id = options.pipeline = options.command = options.work_dir = NULL;
	return options;
}

static void
begins(void)
{
	struct correlator_options options = host();

	world_begin(&w, &options, true);
	forget_kept(&w);
	w.c->ops.group = group;
	asked = 0;
	correlator_cgroup(w.c, &(struct cgroup_event){ STEP, true, STEP_PATH });
	correlator_cgroup(w.c, &(struct cgroup_event){ STEP + 1, true, "/user.slice/session-1.scope" });
}

static struct being
child_in(const struct being *parent, uint64_t v2, const char *command)
{
	struct being b = forks(&w, parent);

	b.context.cgroup_v2 = v2;
	execs(&w, &b, command);
	return b;
}

static void
pass(const struct being *const *beings, size_t n)
{
	w.now += SECOND;
	snapshot(&w, true, beings, n);
	correlator_tick(w.c, w.now, true);
}

/* Returns the last record of the step. */
static const struct kept_record *
last(void)
{
	const struct kept_record *n = NULL;

	for (size_t i = 0; i < record_count(&w, TOPIC_TASK, -1); i++)
		n = record_at(&w, TOPIC_TASK, -1, i);
	assert_non_null(n);
	return n;
}

static void
a_step_has_its_group(void **state)
{
	struct being tool;
	const struct being *all[] = { &tool };

	(void)state;
	begins();
	tool = child_in(NULL, STEP, "bwa mem x");
	peak = 5 << 20;
	pass(all, 1);
	assert_true(last()->has_group && last()->group.memory_peak_bytes.value == 5 << 20);
	peak = 7 << 20;
	pass(all, 1);
	peak = 0;			/* the group is gone before its last program is seen to be */
	pass(all, 1);
	exits(&w, &tool, 0);
	w.now += 60 * SECOND;
	correlator_tick(w.c, w.now, true);
	assert_int_equal(last()->phase, PHASE_END);
	assert_true(last()->has_group && last()->group.memory_peak_bytes.value == 7 << 20);
	assert_false(last()->group.throttled_ns.known);
}

static void
a_session_is_no_group_of_its_own(void **state)
{
	struct being driver, job;
	const struct being *all[] = { &job };

	(void)state;
	begins();
	driver = child_in(NULL, STEP + 1, "snakemake -c2");
	job = child_in(&driver, STEP + 1, JOB);
	exits(&w, &driver, 0);
	pass(all, 1);
	assert_int_equal(asked, 0);
	assert_false(last()->has_group);
}

static void
what_others_use_too_is_not(void **state)
{
	struct correlator_options options = host();
	struct being driver, first, second;
	const struct being *all[] = { &driver, &first, &second };

	(void)state;
	begins();
	peak = 5 << 20;
	driver = child_in(NULL, STEP + 1, "snakemake -c2");
	first = child_in(&driver, STEP, "sh -c python_-m_snakemake_--target-jobs_'align:sample=A'");
	second = child_in(&driver, STEP, "sh -c python_-m_snakemake_--target-jobs_'align:sample=B'");
	pass(all, 3);
	assert_int_equal(asked, 0);
	exits(&w, &second, 0);
	pass(all, 2);			/* its numbers are of both */
	assert_int_equal(asked, 0);
	world_dies(&w, &options);
	w.c->ops.group = group;
	pass(all, 2);
	assert_int_equal(asked, 0);
}

/* No pass has seen the first, which may have had any amount of memory. */
static void
what_another_one_had_for_a_moment_is_not(void **state)
{
	struct being driver, first, second;
	const struct being *all[] = { &driver, &second };

	(void)state;
	begins();
	peak = 5 << 20;
	driver = child_in(NULL, STEP + 1, "snakemake -c2");
	first = child_in(&driver, STEP, "sh -c python_-m_snakemake_--target-jobs_'align:sample=A'");
	exits(&w, &first, 0);
	second = child_in(&driver, STEP, "sh -c python_-m_snakemake_--target-jobs_'align:sample=B'");
	pass(all, 2);
	assert_int_equal(asked, 0);
}

/* Its figures are of the group as it was, and what the kernel counts of it is of both from then on. */
static void
what_another_one_comes_to_use_is_dropped(void **state)
{
	struct being driver, first, second;
	const struct being *all[] = { &driver, &first, &second };

	(void)state;
	begins();
	peak = 5 << 20;
	driver = child_in(NULL, STEP + 1, "snakemake -c2");
	first = child_in(&driver, STEP, "sh -c python_-m_snakemake_--target-jobs_'align:sample=A'");
	pass(all, 2);
	assert_true(last()->has_group);
	second = child_in(&driver, STEP, "sh -c python_-m_snakemake_--target-jobs_'align:sample=B'");
	pass(all, 3);
	forget_kept(&w);
	exits(&w, &first, 0);
	exits(&w, &second, 0);
	w.now += 60 * SECOND;
	correlator_tick(w.c, w.now, true);
	assert_int_equal(record_count(&w, TOPIC_TASK, PHASE_END), 2);
	for (size_t i = 0; i < 2; i++)
		assert_false(record_at(&w, TOPIC_TASK, PHASE_END, i)->has_group);
}

static void
the_next_agent_has_what_was_read(void **state)
{
	struct correlator_options options = host();
	struct being tool;
	const struct being *all[] = { &tool };

	(void)state;
	begins();
	tool = child_in(NULL, STEP, "bwa mem x");
	peak = 9 << 20;
	pass(all, 1);
	world_dies(&w, &options);
	w.c->ops.group = group;
	peak = 0;
	pass(all, 1);
	assert_true(last()->has_group && last()->group.memory_peak_bytes.value == 9 << 20);
	peak = 9 << 20;
	pass(all, 1);
	assert_true(last()->has_group && last()->group.memory_peak_bytes.value == 9 << 20);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_step_has_its_group),
		T(a_session_is_no_group_of_its_own),
		T(what_others_use_too_is_not),
		T(what_another_one_comes_to_use_is_dropped),
		T(what_another_one_had_for_a_moment_is_not),
		T(the_next_agent_has_what_was_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
