/* SPDX-License-Identifier: Apache-2.0 */
/* contention: others' part of what a disk, or CPUs, did while work waited for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "correlate/contention.h"
#include "correlate/state.h"
#include "findings_kit.h"

#define MIB (UINT64_C(1) << 20)

static struct disk_counts counts;

static bool
disk(const char *folder, uint32_t pid, uint64_t start_ns, uint32_t mnt_ns, struct disk_counts *ret, void *arg)
{
	(void)arg;
	if (folder == NULL) {
		assert_true(ret->major == counts.major && ret->minor == counts.minor);
	} else {
		assert_string_equal(folder, "/w");
		assert_true(pid > 0 && start_ns > 0 && mnt_ns == 12);
	}
	*ret = counts;
	return counts.major != 0;
}

static struct correlator_options
host(void)
{
	struct correlator_options options = world_options();

	options.run_id = options.pipeline = options.command = options.work_dir = NULL;
	return options;
}

/* A task that waits for its disk for 9 of 10 s, in which that does so much for it and for others. Returns its end. */
static const struct kept_record *
task_that_waits(uint64_t own, uint64_t others, uint64_t busy_ms, bool dies)
{
	struct correlator_options options = host();
	struct being driver, job;

	world_begin(&w, &options, true);
	forget_kept(&w);
	counts = (struct disk_counts){ 8, 1, 5000 * MIB, 77 * SECOND };
	w.c->ops.disk = disk;
	driver = child(NULL, "snakemake -c2");
	job = child(&driver, JOB);
	if (dies) {
		world_dies(&w, &options);
		w.c->ops.disk = disk;
	}
	w.now += 9 * SECOND;
	works(&w, &job, 1000);
	job.c.thread_ns += 9 * SECOND;
	job.c.wait_block_ns += 9 * SECOND;
	job.c.read_bytes += own;
	counts.bytes += own + others;
	counts.busy_ns += busy_ms * MS;
	exits(&w, &job, 0);
	counts.bytes += 800 * MIB;	/* what others do with it later */
	counts.busy_ns += 60 * SECOND;
	w.now += 60 * SECOND;
	correlator_tick(w.c, w.now, true);
	assert_int_equal(record_count(&w, TOPIC_TASK, PHASE_END), 1);
	return record_at(&w, TOPIC_TASK, PHASE_END, 0);
}

static void
others_who_use_the_disk_deny_it(void **state)
{
	(void)state;
	assert_int_equal(task_that_waits(10 * MIB, 80 * MIB, 9000, false)->work.verdict.denied, DENIED_IO);
}

static void
what_it_uses_alone_is_not_denied(void **state)	/* others use it later */
{
	(void)state;
	assert_int_equal(task_that_waits(90 * MIB, 0, 9000, false)->work.verdict.denied, DENIED_NOTHING);
}

static void
a_disk_that_idles_denies_nothing(void **state)
{
	(void)state;
	assert_int_equal(task_that_waits(10 * MIB, 80 * MIB, 400, false)->work.verdict.denied, DENIED_NOTHING);
}

static void
it_outlives_the_agent(void **state)
{
	(void)state;
	assert_int_equal(task_that_waits(10 * MIB, 80 * MIB, 9000, true)->work.verdict.denied, DENIED_IO);
}

static struct cpu_busy busy;

static bool
cpus(struct cpu_busy *ret, void *arg)
{
	(void)arg;
	*ret = busy;
	return busy.cpus > 0;
}

static void
busy_is(uint64_t ns, uint64_t at_ns)
{
	busy = (struct cpu_busy){ at_ns, ns, ns, 8 };
}

/*
 * A task that computes on one of 8 CPUs for 10 s and waits for one for 10 s more, while others have theirs. The CPUs
 * were last asked so long before its begin and its end, or are asked so long after its begin. Returns its end.
 */
static const struct kept_record *
task_that_queues(uint64_t others_ns, uint64_t before_ns, uint64_t after_ns, bool dies)
{
	struct correlator_options options = host();
	struct being driver, job;

	world_begin(&w, &options, true);
	forget_kept(&w);
	counts = (struct disk_counts){ 0 };
	w.c->ops.cpus = cpus;
	driver = child(NULL, "snakemake -c2");
	w.now += 5 * SECOND;
	busy_is(1000 * SECOND, w.now - before_ns + after_ns);
	job = child(&driver, JOB);
	if (dies) {
		world_dies(&w, &options);
		w.c->ops.cpus = cpus;
	}
	w.now += 10 * SECOND;
	works(&w, &job, 10000);
	job.c.thread_ns += 10 * SECOND;
	job.c.run_delay_ns += 10 * SECOND;
	busy_is(1010 * SECOND + others_ns, w.now - before_ns);
	exits(&w, &job, 0);
	busy_is(1600 * SECOND, w.now);	/* what others do later */
	w.now += 60 * SECOND;
	correlator_tick(w.c, w.now, true);
	return record_at(&w, TOPIC_TASK, PHASE_END, record_count(&w, TOPIC_TASK, PHASE_END) - 1);
}

static void
others_who_use_the_cpus_deny_them(void **state)
{
	(void)state;
	assert_int_equal(task_that_queues(40 * SECOND, 0, 0, false)->work.verdict.denied, DENIED_RUN_QUEUE);
	assert_int_equal(task_that_queues(40 * SECOND, 0, 0, true)->work.verdict.denied, DENIED_RUN_QUEUE);
}

static void
none_can_take_cpus_that_idle(void **state)
{
	(void)state;
	assert_int_equal(task_that_queues(SECOND / 10, 0, 0, false)->work.verdict.denied, DENIED_NOTHING);
	assert_int_equal(task_that_queues(SECOND / 10, 0, 0, true)->work.verdict.denied, DENIED_NOTHING);
}

/* Between the task's begin or end and the time at which the CPUs were asked others may have had all of them. */
static void
what_is_not_known_was_others(void **state)
{
	(void)state;
	assert_int_equal(task_that_queues(0, SECOND, 0, false)->work.verdict.denied, DENIED_RUN_QUEUE);
	assert_int_equal(task_that_queues(0, 0, SECOND, false)->work.verdict.denied, DENIED_RUN_QUEUE);
	assert_int_equal(task_that_queues(0, SECOND / 100, 0, false)->work.verdict.denied, DENIED_NOTHING);
	assert_int_equal(task_that_queues(0, 0, SECOND / 100, false)->work.verdict.denied, DENIED_NOTHING);
}

/* A program that began before all others of a task, and joins it later, has used its CPU time since then. */
static void
it_counts_from_the_begin_of_the_oldest(void **state)
{
	struct work work = { .live = 1, .busy_since_ns = 90 * SECOND };
	struct correlator_options options = host();
	struct usage usage = { .known = USAGE_ALL };

	(void)state;
	world_begin(&w, &options, false);
	w.c->ops.cpus = cpus;
	busy_is(1000 * SECOND, 90 * SECOND);
	contention_reach(w.c, &work, 90 * SECOND);
	work.live = 2;
	contention_reach(w.c, &work, 10 * SECOND);
	usage.value[USAGE_CPU_USER_NS] = 100 * SECOND;
	busy_is(1010 * SECOND, 100 * SECOND);
	assert_int_equal(contention_of_cpus(w.c, &work, &usage, 100 * SECOND).value,
	    10 * SECOND + 8 * 80 * SECOND - 100 * SECOND);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(others_who_use_the_disk_deny_it),
		T(what_it_uses_alone_is_not_denied),
		T(a_disk_that_idles_denies_nothing),
		T(it_outlives_the_agent),
		T(others_who_use_the_cpus_deny_them),
		T(none_can_take_cpus_that_idle),
		T(what_is_not_known_was_others),
		T(it_counts_from_the_begin_of_the_oldest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
