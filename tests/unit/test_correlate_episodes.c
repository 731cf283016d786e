/* SPDX-License-Identifier: Apache-2.0 */
/* episodes: what keeps tasks and runs from their work, recorded once for each time that it holds for long enough. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "correlate/episodes.h"
#include "correlate/process.h"
#include "findings_kit.h"

#define STEP (10 * SECOND)

static struct being driver, job, tool;

/* What a program does in a step: its threads' time in parts, in milliseconds. */
struct doing {
	uint32_t cpu, throttled, lock, disk, network_fs, pipe, timer, poll, network, reclaim, child;
	uint32_t uninterruptible, bytes, switches;
	uint32_t system, reclaimed;	/* CPU time in the kernel, and the kernel's delay of reclaim */
};

static const struct doing waits_for_child = { .child = 10000 };
static const struct doing locked = { .lock = 10000 };
static const struct doing hung = { .network_fs = 10000, .uninterruptible = 10000 };
static const struct doing sleeping = { .timer = 10000 };
static const struct doing computing = { .cpu = 10000, .switches = 3 };

static struct correlator_options
options_of(const char *run_id)
{
	struct correlator_options options = world_options();

	options.run_id = run_id;
	if (run_id == NULL)
		options.pipeline = options.command = options.work_dir = NULL;
	options.finding_limits = (struct finding_limits){ 300000, 60000, 600000, 60000, 60000, 10000 };
	return options;
}

/* A pipeline of the host, with a task of an engine in which a tool runs. */
static void
begins(void)
{
	struct correlator_options options = options_of(NULL);

	world_begin(&w, &options, true);
	forget_kept(&w);
	driver = child(NULL, "snakemake -c2");
	job = child(&driver, JOB);
	tool = child(&job, "bwa mem x");
}

static void
dies(void)
{
	struct correlator_options options = options_of(NULL);

	world_dies(&w, &options);
}

static void
does(struct being *b, const struct doing *d)
{
	struct counters *c = &b->c;

	c->runtime_ns += d->cpu * MS;
	c->utime += d->cpu;
	c->runtime_ns += d->system * MS;
	c->stime += d->system;
	c->reclaim_delay_ns += d->reclaimed * MS;
	c->has_block_io = true;
	c->run_delay_ns += d->throttled * MS;
	c->wait_throttled_ns += d->throttled * MS;
	c->wait_lock_ns += d->lock * MS;
	c->wait_block_ns += d->disk * MS;
	c->wait_network_fs_ns += d->network_fs * MS;
	c->wait_pipe_ns += d->pipe * MS;
	c->wait_timer_ns += d->timer * MS;
	c->wait_poll_ns += d->poll * MS;
	c->wait_network_ns += d->network * MS;
	c->wait_reclaim_ns += d->reclaim * MS;
	c->wait_child_ns += d->child * MS;
	c->wait_uninterruptible_ns += d->uninterruptible * MS;
	c->rchar += d->bytes;
	c->voluntary_switches += d->switches;
	c->thread_ns += STEP;
}

/* Steps of all three programs, in which the tool does this; the others wait for it. */
static void
steps(const struct doing *d, unsigned n)
{
	for (; n > 0; n--) {
		w.now += STEP;
		does(&driver, &waits_for_child);
		does(&job, &waits_for_child);
		does(&tool, d);
		snapshot(&w, true, (const struct being *[]){ &driver, &job, &tool }, 3);
		correlator_tick(w.c, w.now, true);
	}
}

static void
assert_found(size_t n, const char *kind)
{
	assert_int_equal(findings(), n);
	assert_string_equal(finding(n - 1)->finding.kind, kind);
}

static void
a_task_that_waits_for_a_lock_is_stuck(void **state)
{
	const struct kept_record *n;

	(void)state;
	begins();
	steps(&computing, 2);
	steps(&locked, 29);
	assert_int_equal(findings(), 0);
	steps(&locked, 1);
	assert_found(1, "STUCK");
	n = finding(0);
	assert_int_equal(n->finding.severity, SEVERITY_WARNING);
	assert_string_equal(n->task, "align");
	assert_non_null(strstr(n->finding.message, "task align (A) has made no progress for 5m00s; bwa mem (pid "));
	assert_non_null(strstr(n->finding.message, ") waits for a lock"));
	assert_true(evidence(n, "no_progress_ns") == 300.0 * SECOND && evidence(n, "wait_lock_ns") == 300.0 * SECOND);
	assert_string_equal(n->finding.tool, "bwa mem");
	steps(&locked, 100);
	assert_int_equal(findings(), 1);
}

static void
uninterruptible_sleep_is_stuck_sooner(void **state)
{
	(void)state;
	begins();
	steps(&computing, 2);
	steps(&hung, 5);
	assert_int_equal(findings(), 0);
	steps(&hung, 1);
	assert_found(1, "STUCK");
	assert_non_null(strstr(finding(0)->finding.message,
	    "waits for a network file system, in uninterruptible sleep"));
	assert_true(evidence(finding(0), "uninterruptible_ns") == 60.0 * SECOND);
}

static void
what_makes_any_progress_is_not_stuck(void **state)
{
	static const struct doing progress[] = {
		{ .lock = 9999, .cpu = 1 }, { .lock = 10000, .switches = 1 }, { .lock = 10000, .bytes = 50000 },
		{ .network_fs = 10000, .uninterruptible = 10000, .switches = 1 },
		{ .timer = 5000, .lock = 5000 }, { .poll = 10000 }, { .child = 10000 }, { .cpu = 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(progress) / sizeof(progress[0]); i++) {
		begins();
		steps(&progress[i], 55);
		assert_int_equal(findings(), 0);
	}
}

static void
programs_that_come_and_go_are_progress(void **state)
{
	struct being other;

	(void)state;
	begins();
	for (int i = 0; i < 40; i++) {
		steps(&locked, 1);
		other = child(&job, "true");
		exits(&w, &other, 0);
	}
	assert_int_equal(findings(), 0);
}

static void
what_is_moved_only_now_and_then_is_one_episode(void **state)
{
	(void)state;
	begins();
	steps(&computing, 2);
	steps(&locked, 30);
	assert_found(1, "STUCK");
	for (int i = 0; i < 5; i++) {
		steps(&computing, 2);	/* less than the time after which it ends */
		steps(&locked, 40);
	}
	assert_int_equal(findings(), 1);
	steps(&computing, 31);
	steps(&locked, 30);
	assert_found(2, "STUCK");
}

/* What its shell and the inner engine wait for is the work of that one's own tasks. */
static void
a_task_with_an_engine_in_it_is_neither(void **state)
{
	struct correlator_options options = options_of(NULL);
	struct being inner;

	(void)state;
	world_begin(&w, &options, true);
	forget_kept(&w);
	driver = child(NULL, "make -j2");
	job = child(&driver, "sh -c all");
	tool = child(&job, "tee log");
	inner = child(&job, "snakemake -c2");
	for (unsigned n = 0; n < 100; n++) {
		w.now += STEP;
		does(&driver, &waits_for_child);
		does(&job, &waits_for_child);
		does(&tool, &locked);
		does(&inner, &locked);
		snapshot(&w, true, (const struct being *[]){ &driver, &job, &tool, &inner }, 4);
		correlator_tick(w.c, w.now, true);
	}
	assert_int_equal(findings(), 0);
	exits(&w, &inner, 0);
	steps(&locked, 31);
	assert_found(1, "STUCK");
}

/* Many tasks hang at once: each has its finding, some in a later tick. */
static void
so_many_are_described_in_a_tick(void **state)
{
	struct being jobs[DESCRIBED_MAX + 5], tools[DESCRIBED_MAX + 5];
	const struct being *all[2 * (DESCRIBED_MAX + 5)];
	size_t seen = 0;

	(void)state;
	begins();
	for (size_t i = 0; i < DESCRIBED_MAX + 5; i++) {
		char command[128];

		snprintf(command, sizeof(command), "sh -c python_-m_snakemake_--target-jobs_'align:sample=B%zu'", i);
		jobs[i] = child(&driver, command);
		tools[i] = child(&jobs[i], "bwa mem x");
		all[2 * i] = &jobs[i];
		all[2 * i + 1] = &tools[i];
	}
	for (unsigned n = 0; n < 40; n++) {
		w.now += STEP;
		for (size_t i = 0; i < DESCRIBED_MAX + 5; i++) {
			does(&jobs[i], &waits_for_child);
			does(&tools[i], &locked);
		}
		snapshot(&w, true, all, sizeof(all) / sizeof(all[0]));
		correlator_tick(w.c, w.now, true);
		assert_true(findings() <= seen + DESCRIBED_MAX);
		seen = findings();
	}
	assert_int_equal(findings(), DESCRIBED_MAX + 5);
}

static void
a_task_that_sleeps_is_idle(void **state)
{
	const struct kept_record *n;

	(void)state;
	begins();
	steps(&computing, 2);
	steps(&sleeping, 59);
	assert_int_equal(findings(), 0);
	steps(&sleeping, 1);
	assert_found(1, "IDLE");
	n = finding(0);
	assert_int_equal(n->finding.severity, SEVERITY_INFO);
	assert_non_null(strstr(n->finding.message, "has been idle for 10m00s; bwa mem (pid "));
	assert_non_null(strstr(n->finding.message, "sleeps for a set time"));
	assert_true(evidence(n, "idle_ns") == 600.0 * SECOND && evidence(n, "cpu_ns") == 0);
	steps(&sleeping, 200);
	assert_int_equal(findings(), 1);
}

static void
what_is_stuck_is_not_idle_too(void **state)
{
	(void)state;
	begins();
	steps(&locked, 200);
	assert_found(1, "STUCK");
}

static void
what_works_a_little_is_not_idle(void **state)
{
	static const struct doing work[] = {
		{ .timer = 9800, .cpu = 200 }, { .timer = 10000, .bytes = 50000 }, { .disk = 10000, .switches = 9 },
		{ .network_fs = 10000, .switches = 9 }, { .child = 10000 },
		{ .timer = 5000, .disk = 5000, .switches = 9 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(work) / sizeof(work[0]); i++) {
		begins();
		steps(&work[i], 100);
		assert_int_equal(findings(), 0);
	}
}

static void
a_quota_that_is_used_up(void **state)
{
	static const struct doing throttled = { .cpu = 5000, .throttled = 5000, .switches = 9 };
	static const struct doing less = { .cpu = 8000, .throttled = 2000, .switches = 9 };
	static const struct doing hardly = { .cpu = 9500, .throttled = 500, .switches = 9 };
	const struct kept_record *n;

	(void)state;
	begins();
	steps(&less, 20);		/* below the share at which it begins */
	assert_int_equal(findings(), 0);
	steps(&throttled, 5);
	assert_int_equal(findings(), 0);
	steps(&throttled, 1);
	assert_found(1, "THROTTLED");
	n = finding(0);
	assert_non_null(strstr(n->finding.message, "task align (A) was denied a CPU for 50% of the time in which it"));
	assert_non_null(strstr(n->finding.message, "wanted one, for 1m00s: its control group had used up its quota"));
	assert_true(evidence(n, "throttled_ns") == 30.0 * SECOND && evidence(n, "cpu_ns") == 30.0 * SECOND);
	steps(&less, 30);		/* above that at which it ends */
	steps(&throttled, 10);
	assert_int_equal(findings(), 1);
	steps(&hardly, 6);
	steps(&throttled, 6);
	assert_found(2, "THROTTLED");
}

static void
a_short_burst_is_not_throttled(void **state)
{
	static const struct doing burst = { .cpu = 300, .throttled = 300, .timer = 9400, .switches = 9 };

	(void)state;
	begins();
	steps(&burst, 100);
	assert_int_equal(findings(), 0);
}

static void
memory_that_is_made_free(void **state)
{
	static const struct doing pressure = { .cpu = 6000, .reclaim = 4000, .switches = 9 };
	static const struct doing little = { .cpu = 9000, .reclaim = 1000, .switches = 9 };

	(void)state;
	begins();
	steps(&little, 30);
	assert_int_equal(findings(), 0);
	steps(&pressure, 6);
	assert_found(1, "MEMORY_PRESSURE");
	assert_non_null(strstr(finding(0)->finding.message, "task align (A) lost 40% of its time for 1m00s"));
	assert_true(evidence(finding(0), "pressure_ns") == 24.0 * SECOND);
	assert_true(evidence(finding(0), "host_memory_bytes") == 8.0 * (1 << 30));
}

/* What the kernel counts as a delay of reclaim it did in the program's CPU time, of which there is no more. */
static void
memory_that_is_made_free_in_cpu_time(void **state)
{
	static const struct doing pressure = { .cpu = 5400, .system = 4600, .reclaimed = 4600, .switches = 9 };
	static const struct doing just = { .cpu = 7900, .system = 2100, .reclaimed = 2100, .switches = 9 };
	static const struct doing waits = { .cpu = 5000, .system = 1000, .reclaim = 4000, .reclaimed = 5000,
		.switches = 9 };

	(void)state;
	begins();
	steps(&pressure, 7);
	assert_found(1, "MEMORY_PRESSURE");
	assert_non_null(strstr(finding(0)->finding.message, "task align (A) lost 46% of its time for 1m00s"));
	assert_true(evidence(finding(0), "pressure_ns") == 27.6 * SECOND && evidence(finding(0), "cpu_ns") == 60.0 * SECOND);
	begins();
	steps(&just, 7);
	assert_found(2, "MEMORY_PRESSURE");
	begins();
	steps(&waits, 7);
	assert_found(3, "MEMORY_PRESSURE");
	assert_non_null(strstr(finding(2)->finding.message, "task align (A) lost 50% of its time for 1m00s"));
}

static void
none_is_recorded_twice_over_a_restart(void **state)
{
	(void)state;
	begins();
	steps(&computing, 2);
	steps(&locked, 30);
	assert_found(1, "STUCK");
	for (int i = 0; i < 3; i++) {
		dies();
		steps(&locked, 60);
	}
	assert_int_equal(findings(), 1);
	/* one that has not held for long enough is recorded by the next agent */
	steps(&computing, 60);
	steps(&locked, 20);
	dies();
	steps(&locked, 29);
	assert_int_equal(findings(), 1);
	steps(&locked, 5);
	assert_found(2, "STUCK");
	/* one that ended while no agent looked has ended */
	dies();
	steps(&computing, 32);
	steps(&locked, 30);
	assert_found(3, "STUCK");
}

static void
there_is_a_limit_for_each_task(void **state)
{
	(void)state;
	begins();
	for (int i = 0; i < FINDINGS_OF_TASK_MAX + 2; i++) {
		steps(&hung, 7);
		steps(&computing, 31);
		if (i == 5)
			dies();
	}
	assert_int_equal(findings(), FINDINGS_OF_TASK_MAX);
	assert_int_equal(totals(&w).findings_left_out, 2);
}

/* `sluice run SERVER`: only what cannot go on by itself is a finding. */
static void
a_run_without_an_engine(void **state)
{
	static const struct doing accepts = { .network = 10000 };
	struct correlator_options options = options_of("run-1");
	static const struct doing *const none[] = { &accepts, &sleeping, &locked };

	(void)state;
	world_begin(&w, &options, false);
	correlator_run_start(w.c, w.now);
	tool = child(NULL, "python3 server.py");
	for (size_t i = 0; i < 3 * 100; i++) {
		w.now += STEP;
		does(&tool, none[i / 100]);
		snapshot(&w, true, (const struct being *[]){ &tool }, 1);
		correlator_tick(w.c, w.now, true);
	}
	assert_int_equal(findings(), 0);
	for (size_t i = 0; i < 7; i++) {
		w.now += STEP;
		does(&tool, &hung);
		snapshot(&w, true, (const struct being *[]){ &tool }, 1);
		correlator_tick(w.c, w.now, true);
	}
	assert_found(1, "STUCK");
	assert_non_null(strstr(finding(0)->finding.message, "the run has made no progress"));
}

static struct disk_space room;
static uint32_t asked_as;
static bool was_asked_anew;

static bool
space(const char *folder, uint32_t pid, uint64_t start_ns, uint32_t mnt_ns, bool is_anew, struct disk_space *ret,
    void *arg)
{
	(void)arg;
	assert_true((pid > 0 || is_anew) && start_ns > 0);
	assert_string_equal(folder, "/w");
	asked_as = pid;
	was_asked_anew = is_anew;
	*ret = room;
	return mnt_ns == 12;
}

static void
begins_with_room(uint64_t free_bytes)
{
	begins();
	w.c->ops.space = space;
	room = (struct disk_space){ free_bytes, UINT64_C(100) << 30, 5, 100 };
}

static void
a_disk_without_room(void **state)
{
	const struct kept_record *n;

	(void)state;
	begins_with_room(UINT64_C(2) << 30);
	steps(&computing, 20);
	assert_int_equal(findings(), 0);
	room.free_bytes = 5 << 20;
	steps(&computing, 1);
	assert_found(1, "DISK_FULL");
	n = finding(0);
	assert_int_equal(n->finding.severity, SEVERITY_ERROR);
	assert_string_equal(n->task, "align");
	assert_non_null(strstr(n->finding.message, "the disk of /w, where task align (A) works, is full: 5.0 MiB is left of 100 GiB"));
	assert_true(evidence(n, "free_bytes") == 5 << 20 && evidence(n, "total_bytes") == 100.0 * (1 << 30));
	/* it ends with twice as much as the limit, and not before; and over a restart it is the same one */
	room.free_bytes = (UINT64_C(3) << 30) / 2;
	steps(&computing, 20);
	room.free_bytes = 5 << 20;
	steps(&computing, 20);
	dies();
	w.c->ops.space = space;
	steps(&computing, 20);
	assert_int_equal(findings(), 1);
	room.free_bytes = UINT64_C(3) << 30;
	steps(&computing, 3);
	room.free_bytes = 0;
	steps(&computing, 3);
	assert_found(2, "DISK_FULL");
}

static void
a_disk_without_files(void **state)
{
	(void)state;
	begins_with_room(UINT64_C(50) << 30);
	room.free_files = 0;
	steps(&computing, 2);
	assert_found(1, "DISK_FULL");
	assert_non_null(strstr(finding(0)->finding.message, "which can have no more files"));
	assert_true(evidence(finding(0), "free_files") == 0);
}

/* In another mount namespace, as a container has, the folder may be any. */
static void
what_is_not_known_to_be_full_is_not(void **state)
{
	(void)state;
	begins_with_room(0);
	w.c->ops.space = NULL;
	steps(&computing, 20);
	assert_int_equal(findings(), 0);
	w.c->ops.space = space;
	for (struct process *p = w.c->processes; p != NULL; p = p->next)
		p->context.mnt_ns = 13;
	steps(&computing, 20);
	assert_int_equal(findings(), 0);
}

/* The task's shell ends with it, before anything was looked at. */
static void
what_dies_of_a_full_disk_is_found_at_once(void **state)
{
	const struct kept_record *n;
	char text[64];

	(void)state;
	begins_with_room(5 << 20);
	exits_after(&job, 100, 1);
	assert_true(was_asked_anew && asked_as == driver.key.pid);
	room.free_bytes = UINT64_C(3) << 30;
	/* its program ended before, on another CPU, and the agent with it */
	w.now -= 1 * MS;
	exits(&w, &tool, 1);
	w.now += 1 * MS;
	dies();
	w.c->ops.space = space;
	assert_int_equal(findings(), 0);
	settles();
	assert_found(2, "FAILED");
	n = finding(0);
	assert_string_equal(n->finding.kind, "DISK_FULL");
	assert_string_equal(finding(1)->program_id, n->program_id);
	assert_int_equal(n->finding.severity, SEVERITY_ERROR);
	assert_string_equal(n->task, "align");
	assert_non_null(strstr(n->finding.message, "the disk of /w, where task align (A) works, is full: 5.0 MiB is left of 100 GiB"));
	snprintf(text, sizeof(text), "; bwa mem (pid %u) ended with exit code 1", tool.key.pid);
	assert_non_null(strstr(n->finding.message, text));
	assert_string_equal(n->program_id, id_of(&tool));
	assert_true(evidence(n, "free_bytes") == 5 << 20 && evidence(n, "total_bytes") == 100.0 * (1 << 30));
	assert_true(evidence(n, "exit_code") == 1);
	/* the run is the same episode, also for the next agent */
	room.free_bytes = 0;
	dies();
	w.c->ops.space = space;
	exits_after(&driver, 100, 1);
	settles();
	assert_int_equal(findings(), 2);
}

static void
the_next_of_a_run_is_the_same_episode(void **state)
{
	(void)state;
	begins_with_room(0);
	exits_after(&tool, 100, 1);
	exits_after(&job, 1, 1);
	settles();
	assert_found(2, "FAILED");
	assert_string_equal(finding(0)->finding.kind, "DISK_FULL");
	job = child(&driver, "sh -c python_-m_snakemake_--target-jobs_'align:sample=B'");
	tool = child(&job, "bwa mem x");
	steps(&computing, 5);
	exits_after(&tool, 100, 0);
	exits_after(&job, 1, 1);
	settles();
	assert_found(3, "FAILED");
	/* it ends as any other does, and then there is another one */
	room.free_bytes = UINT64_C(3) << 30;
	job = child(&driver, "sh -c python_-m_snakemake_--target-jobs_'align:sample=C'");
	tool = child(&job, "bwa mem x");
	steps(&computing, 3);
	assert_found(3, "FAILED");
	room.free_bytes = 0;
	exits_after(&job, 1, 1);
	settles();
	assert_found(5, "FAILED");
	assert_string_equal(finding(3)->finding.kind, "DISK_FULL");
}

static void
a_full_disk_is_found_as_often_as_other_episodes(void **state)
{
	(void)state;
	begins_with_room(0);
	correlator_set_finding_limits(w.c, &(struct finding_limits){ .disk_full_ms = 1000 });
	for (int i = 0; i < FINDINGS_OF_TASK_MAX + 2; i++) {
		char command[128];

		snprintf(command, sizeof(command), "sh -c python_-m_snakemake_--target-jobs_'align:sample=D%d'", i);
		job = child(&driver, command);
		tool = child(&job, "bwa mem x");
		room.free_bytes = 0;
		exits_after(&tool, 1, 0);
		exits_after(&job, 1, 1);
		room.free_bytes = UINT64_C(3) << 30;
		steps(&computing, 3);
	}
	assert_int_equal(totals(&w).findings_left_out, 2);
}

static void
what_ends_otherwise_is_not_of_a_full_disk(void **state)
{
	(void)state;
	begins_with_room(0);
	exits_after(&tool, 100, 0);	/* all are well */
	exits_after(&job, 1, 0);
	exits_after(&driver, 100, 0);
	settles();
	assert_int_equal(findings(), 0);
	begins_with_room(UINT64_C(2) << 30);
	exits_after(&tool, 100, 1);
	exits_after(&job, 1, 1);
	assert_int_equal(findings(), 0);
	begins_with_room(0);
	tool.context.mnt_ns = 13;	/* its shell's mounts are asked, and no other's */
	exits_after(&tool, 100, 1);
	exits_after(&job, 1, 0);	/* as `write || true` */
	assert_found(1, "DISK_FULL");
	assert_null(finding(0)->finding.tool);
}

/* `sluice run COMMAND`: above its first program there is none. */
static void
a_run_that_dies_of_a_full_disk(void **state)
{
	struct correlator_options options = options_of("run-1");

	(void)state;
	options.work_dir = "/w";
	world_begin(&w, &options, false);
	w.c->ops.space = space;
	room = (struct disk_space){ 0, 8 << 20, 5, 100 };
	correlator_run_start(w.c, w.now);
	tool = child(NULL, "bwa mem x");
	exits_after(&tool, 100, 2);
	assert_true(was_asked_anew && asked_as == 0);
	correlator_run_end(w.c, w.now, 2 << 8);
	assert_found(2, "FAILED");
	assert_string_equal(finding(0)->finding.kind, "DISK_FULL");
	assert_non_null(strstr(finding(0)->finding.message, "the disk of /w, where the run works, is full: "));
	assert_non_null(strstr(finding(0)->finding.message, ") ended with exit code 2"));
}

static void
what_is_off_is_not_judged(void **state)
{
	(void)state;
	begins();
	correlator_set_finding_limits(w.c, &(struct finding_limits){ 0 });
	w.c->ops.space = space;
	room = (struct disk_space){ 0, 100 << 20, 0, 0 };
	steps(&hung, 100);
	steps(&sleeping, 100);
	exits_after(&tool, 1, 1);
	exits_after(&job, 1, 1);
	assert_int_equal(findings(), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_task_that_waits_for_a_lock_is_stuck),
		T(uninterruptible_sleep_is_stuck_sooner),
		T(what_makes_any_progress_is_not_stuck),
		T(programs_that_come_and_go_are_progress),
		T(what_is_moved_only_now_and_then_is_one_episode),
		T(a_task_with_an_engine_in_it_is_neither),
		T(so_many_are_described_in_a_tick),
		T(a_task_that_sleeps_is_idle),
		T(what_is_stuck_is_not_idle_too),
		T(what_works_a_little_is_not_idle),
		T(a_quota_that_is_used_up),
		T(a_short_burst_is_not_throttled),
		T(memory_that_is_made_free),
		T(memory_that_is_made_free_in_cpu_time),
		T(none_is_recorded_twice_over_a_restart),
		T(there_is_a_limit_for_each_task),
		T(a_run_without_an_engine),
		T(a_disk_without_room),
		T(a_disk_without_files),
		T(what_is_not_known_to_be_full_is_not),
		T(what_dies_of_a_full_disk_is_found_at_once),
		T(the_next_of_a_run_is_the_same_episode),
		T(a_full_disk_is_found_as_often_as_other_episodes),
		T(what_ends_otherwise_is_not_of_a_full_disk),
		T(a_run_that_dies_of_a_full_disk),
		T(what_is_off_is_not_judged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
