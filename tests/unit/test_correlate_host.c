/* SPDX-License-Identifier: Apache-2.0 */
/* correlator without a run: a whole host, for months, with programs that ran before it started. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "correlate/cgroups.h"
#include "correlate/process.h"
#include "correlate/wal.h"
#include "events.h"

static struct world w;
static size_t logged[WAL_KINDS], entry_bytes;

static int
setup(void **state)
{
	struct correlator_options options = { .boot_id = BOOT_ID, .rules = world_options().rules };

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

/* What a checkpoint holds is what is kept in memory. */
static void
count_kept(void)
{
	size_t len;

	forget_kept(&w);
	correlator_checkpoint(w.c);
	memset(logged, 0, sizeof(logged));
	entry_bytes = 0;
	for (size_t at = 0; at < w.kept.len; at += len) {
		memcpy(&len, w.kept.data + at, sizeof(len));
		at += sizeof(len);
		logged[(unsigned char)w.kept.data[at]]++;
		entry_bytes += len;
	}
}

static void
finds(struct being *b, const char *command)
{
	char words[1024], exe[256];
	const char *argv[64];
	size_t argv_len[64];
	struct exec_event s;

	snprintf(words, sizeof(words), "%s", command);
	exec_event_fill(&w, b, words, argv, argv_len, exe, &s);
	s.replaced = b->c;
	s.is_discovered = true;
	correlator_exec(w.c, &s);
}

static void
programs_belong_to_no_run(void **state)
{
	struct being shell = forks(&w, NULL), other, step;
	const struct kept_record *n;

	(void)state;
	execs(&w, &shell, "bash");
	other = forks(&w, &shell);
	execs(&w, &other, "python3 server.py");	/* drives nothing that a rule knows */
	step = forks(&w, &other);
	execs(&w, &step, "bwa mem ref.fa");
	works(&w, &step, 30);
	snapshot(&w, true, (const struct being *[]){ &shell, &other, &step }, 3);
	correlator_tick(w.c, w.now, true);
	exits(&w, &step, 1);
	correlator_run_end(w.c, w.now, 0);
	assert_int_equal(record_count(&w, TOPIC_RUN, -1), 0);
	assert_int_equal(record_count(&w, TOPIC_TASK, -1), 0);
	assert_int_equal(record_count(&w, TOPIC_USAGE, -1), 3);
	for (size_t i = 0; i < w.n; i++) {
		assert_null(w.records[i].run_id);
		assert_null(w.records[i].pipeline);
		assert_null(w.records[i].task_id);
		assert_null(w.records[i].task);
		assert_null(w.records[i].sample);
		assert_null(w.records[i].source);
		assert_null(w.records[i].program.run_source);
		assert_false(w.records[i].program.confidence.known);
	}
	n = record_of(&w, &step, 0, PHASE_END);
	assert_string_equal(n->tool, "bwa mem");
	assert_int_equal(usage_cpu_ns(&n->usage), 30 * MS);
	assert_string_equal(n->parent_program_id, record_of(&w, &other, 0, PHASE_START)->program_id);
}

static void
an_engines_driver_begins_a_run(void **state)
{
	struct being shell = forks(&w, NULL), driver, step, tool;
	const struct kept_record *run, *task;

	(void)state;
	execs(&w, &shell, "bash");
	driver = forks(&w, &shell);
	execs(&w, &driver, "snakemake --jobs 2");
	step = forks(&w, &driver);
	execs(&w, &step, "bash -c bwa_mem_ref.fa");
	tool = forks(&w, &step);
	execs(&w, &tool, "bwa mem ref.fa");
	works(&w, &tool, 30);
	assert_null(record_of(&w, &shell, 0, PHASE_START)->run_id);
	assert_int_equal(record_count(&w, TOPIC_RUN, PHASE_START), 1);
	run = record_at(&w, TOPIC_RUN, PHASE_START, 0);
	assert_string_equal(run->engine, "snakemake");
	assert_string_equal(record_of(&w, &driver, 0, PHASE_START)->run_id, run->run_id);
	assert_null(record_of(&w, &driver, 0, PHASE_START)->task);
	assert_string_equal(record_of(&w, &tool, 0, PHASE_START)->run_id, run->run_id);
	assert_string_equal(record_of(&w, &tool, 0, PHASE_START)->task, "bwa mem");
	exits(&w, &tool, 0);
	exits(&w, &step, 0);
	exits(&w, &driver, 1);
	exits(&w, &shell, 0);
	w.now += 3 * SECOND;
	correlator_tick(w.c, w.now, false);
	task = record_at(&w, TOPIC_TASK, PHASE_END, 0);
	assert_int_equal(task->work.programs, 2);
	assert_string_equal(task->run_id, run->run_id);
	run = record_at(&w, TOPIC_RUN, PHASE_END, 0);
	assert_int_equal(run->work.programs, 3);
	assert_int_equal(run->work.exit_code.value, 1);
	assert_int_equal(usage_cpu_ns(&run->usage), 30 * MS);
	assert_int_equal(record_count(&w, TOPIC_RUN, PHASE_END), 1);
}

/* A driver that a restarted agent discovers again is the same run. */
static void
a_runs_id_is_its_drivers(void **state)
{
	struct being a = forks(&w, NULL), b = forks(&w, NULL);

	(void)state;
	execs(&w, &a, "snakemake --jobs 2");
	execs(&w, &b, "snakemake --jobs 2");
	assert_string_not_equal(record_of(&w, &a, 0, PHASE_START)->run_id, record_of(&w, &b, 0, PHASE_START)->run_id);
	assert_int_equal(strlen(record_of(&w, &a, 0, PHASE_START)->run_id), 36);
}

/* A run that an engine drives is not taken over by who is given to it. */
static void
a_process_may_be_given_to_a_run_that_is_there(void **state)
{
	struct being driver = forks(&w, NULL), stray = forks(&w, NULL), child;
	struct tag tag = { .source = "sluice ctl tag" };
	const struct kept_record *run;

	(void)state;
	execs(&w, &driver, "snakemake --jobs 2");
	execs(&w, &stray, "bwa mem ref.fa");
	assert_null(record_of(&w, &stray, 0, PHASE_START)->run_id);
	tag.run_id = record_of(&w, &driver, 0, PHASE_START)->run_id;
	assert_int_equal(correlator_tag(w.c, stray.key.pid, &tag, w.now), 1);
	child = forks(&w, &stray);
	execs(&w, &child, "samtools view x");
	assert_string_equal(record_of(&w, &child, 0, PHASE_START)->run_id, tag.run_id);
	exits(&w, &child, 0);
	exits(&w, &stray, 0);
	exits(&w, &driver, 3);
	w.now += 3 * SECOND;
	correlator_tick(w.c, w.now, false);
	run = record_at(&w, TOPIC_RUN, PHASE_END, 0);
	assert_string_equal(run->engine, "snakemake");
	assert_int_equal(run->work.programs, 3);
	assert_int_equal(run->work.exit_code.value, 3);
	assert_int_equal(correlator_tag(w.c, 4000000, &tag, w.now), -ESRCH);
}

static bool
is_of_root(const struct belongings *of, const void *arg)
{
	assert_string_equal(arg, "arg");
	return of->run_id != NULL && of->run_uid.known && of->run_uid.value == 0;
}

static void
a_descendant_in_a_run_of_others_stays_there(void **state)
{
	struct being own = forks(&w, NULL), sudo, driver, task, tool;
	struct tag tag = { .run_id = "mine", .source = "sluice ctl tag", .leaves_out = is_of_root, .arg = "arg" };

	(void)state;
	own.context.uid = 1000;
	assert_false(correlator_has_descendants(w.c, own.key.pid));
	execs(&w, &own, "bash");
	assert_false(correlator_has_descendants(w.c, own.key.pid));
	sudo = forks(&w, &own);
	sudo.context.uid = 0;
	execs(&w, &sudo, "sudo snakemake --jobs 2");
	assert_true(correlator_has_descendants(w.c, own.key.pid));
	driver = forks(&w, &sudo);
	driver.context.uid = 0;
	execs(&w, &driver, "snakemake --jobs 2");
	tool = forks(&w, &own);
	tool.context.uid = 1000;
	execs(&w, &tool, "bwa mem ref.fa");
	assert_int_equal(correlator_tag(w.c, own.key.pid, &tag, w.now), 3);
	task = forks(&w, &driver);
	execs(&w, &task, "samtools view x");
	assert_string_equal(record_of(&w, &task, 0, PHASE_START)->run_id,
	    record_of(&w, &driver, 0, PHASE_START)->run_id);
	exits(&w, &task, 0);
	exits(&w, &driver, 0);
	exits(&w, &sudo, 0);
	exits(&w, &tool, 0);
	assert_string_equal(record_of(&w, &tool, 0, PHASE_END)->run_id, "mine");
	assert_string_not_equal(record_of(&w, &driver, 0, PHASE_END)->run_id, "mine");
	assert_false(correlator_has_descendants(w.c, own.key.pid));
}

/* What two hosts see of one job is one run. */
static void
a_jobs_run_is_the_same_on_all_its_hosts(void **state)
{
	static const char path[] = "/system.slice/slurmstepd.scope/job_4711/step_0/user/task_";
	const struct kept_record *runs[2];
	static struct world hosts[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct correlator_options options = { .boot_id = i == 0 ? BOOT_ID : "c9a1f8a1-0c5e-4f5e-8f7e-2f3f6d1f0b11",
			.host_id = i == 0 ? "a" : "b", .cluster = "north", .rules = world_options().rules };
		struct world *h = &hosts[i];
		struct being step;
		char own[sizeof(path) + 1];

		memset(h, 0, sizeof(*h));
		h->now = (uint64_t)(1000 + 7 * i) * SECOND;
		h->next_pid = (uint32_t)(100 + 13 * i);
		world_begin(h, &options, false);
		snprintf(own, sizeof(own), "%s%d", path, i);
		correlator_cgroup(h->c, &(struct cgroup_event){ .id = 9, .is_v2 = true, .path = own });
		step = forks(h, NULL);
		step.context.cgroup_v2 = 9;
		execs(h, &step, "xhpl");
		runs[i] = record_at(h, TOPIC_RUN, PHASE_START, 0);
		assert_string_equal(runs[i]->engine, "slurm");
		assert_string_equal(record_of(h, &step, 0, PHASE_START)->run_id, runs[i]->run_id);
		assert_string_equal(record_of(h, &step, 0, PHASE_START)->task_id, "4711.0");
	}
	assert_string_equal(runs[0]->run_id, runs[1]->run_id);
	world_close(&hosts[0]);
	world_close(&hosts[1]);
}

static void
nothing_is_attributed_but_programs_are_counted(void **state)
{
	struct being a = forks(&w, NULL), b = forks(&w, NULL);
	const struct summary_row *rows;
	struct usage u;

	(void)state;
	execs(&w, &a, "a");
	execs(&w, &b, "b");
	works(&w, &a, 100);
	works(&w, &b, 100);
	exits(&w, &a, 1);
	snapshot(&w, true, (const struct being *[]){ &b }, 1);
	u = correlator_attributed_usage(w.c);
	assert_int_equal(usage_cpu_ns(&u), 0);
	for (int i = 0; i < USAGE_FIELDS; i++) {
		assert_true(usage_has(&u, i));
		assert_int_equal(u.value[i], 0);
	}
	assert_int_equal(correlator_attributed_rss(w.c), 0);
	assert_int_equal(correlator_summary(w.c, &rows), 0);
	assert_int_equal(totals(&w).programs, 2);
	assert_int_equal(totals(&w).failed, 1);
	assert_int_equal(totals(&w).live, 1);
}

static void
a_found_program_counts_from_when_it_was_found(void **state)
{
	struct being b = forks(&w, NULL);
	const struct kept_record *start, *end, *usage;
	uint64_t found_ns;

	(void)state;
	works(&w, &b, 60000);
	b.c.wchar = 1 << 30;
	found_ns = w.now;
	finds(&b, "nginx -g daemon");
	start = record_of(&w, &b, 0, PHASE_START);
	assert_non_null(start);
	assert_int_equal(start->time_us, wall_us(found_ns));
	assert_int_equal(start->id.start_time_us, wall_us(b.key.start_ns));
	assert_int_equal(start->id.program_start_time_us, wall_us(b.key.start_ns));
	assert_true(start->program.observed_time_us.known);
	assert_int_equal(start->program.observed_time_us.value, wall_us(found_ns));
	assert_false(start->id.forked);
	assert_string_equal(start->exe, "/usr/bin/nginx");
	assert_int_equal(start->program.argc, 3);

	works(&w, &b, 4000);
	snapshot(&w, true, (const struct being *[]){ &b }, 1);
	usage = record_at(&w, TOPIC_USAGE, -1, 0);
	assert_int_equal(usage->interval_ns, 4000 * MS);
	assert_int_equal(usage_cpu_ns(&usage->usage), 4000 * MS);

	works(&w, &b, 1000);
	exits(&w, &b, 0);
	end = record_of(&w, &b, 0, PHASE_END);
	assert_int_equal(usage_cpu_ns(&end->usage), 5000 * MS);
	assert_int_equal(end->usage.value[USAGE_WCHAR], 5000 * 1024);
	assert_int_equal(end->usage.value[USAGE_PEAK_RSS_BYTES], UINT64_C(4000) << 20);
	assert_int_equal(end->program.observed_time_us.value, wall_us(found_ns));
	assert_string_equal(end->program_id, start->program_id);
	assert_int_equal(record_count(&w, TOPIC_PROGRAM, -1), 2);
}

static void
what_a_found_process_execs_is_seen_from_its_start(void **state)
{
	struct being b = forks(&w, NULL);
	const struct kept_record *n;

	(void)state;
	works(&w, &b, 500);
	finds(&b, "bash");
	works(&w, &b, 20);
	execs(&w, &b, "true");
	n = record_of(&w, &b, 0, PHASE_END);
	assert_int_equal(n->program.end_reason, END_REASON_EXEC);
	assert_int_equal(usage_cpu_ns(&n->usage), 20 * MS);
	assert_true(n->program.observed_time_us.known);
	n = record_of(&w, &b, 1, PHASE_START);
	assert_false(n->program.observed_time_us.known);
	assert_int_equal(n->id.program_start_time_us, wall_us(w.now));
	works(&w, &b, 7);
	exits(&w, &b, 0);
	assert_int_equal(usage_cpu_ns(&record_of(&w, &b, 1, PHASE_END)->usage), 7 * MS);
}

static void
what_was_found_and_execs_unheard_ends_as_seen_from_its_start(void **state)
{
	struct being b = forks(&w, NULL);
	const struct kept_record *n;

	(void)state;
	works(&w, &b, 500);
	finds(&b, "bash");
	works(&w, &b, 20);
	execs_unheard(&w, &b);
	works(&w, &b, 7);
	exits(&w, &b, 0);
	n = record_of(&w, &b, 1, PHASE_END);
	assert_non_null(n);
	assert_false(n->program.observed_time_us.known);
	assert_int_equal(n->id.program_start_time_us, wall_us(b.program_start));
}

static void
who_is_known_is_not_found(void **state)
{
	struct being b = forks(&w, NULL), same;
	const struct kept_record *n;

	(void)state;
	execs(&w, &b, "bash");
	works(&w, &b, 10);
	same = b;
	same.execed = false;
	finds(&same, "other");
	works(&w, &b, 10);
	exits(&w, &b, 0);
	n = record_of(&w, &b, 0, PHASE_END);
	assert_int_equal(usage_cpu_ns(&n->usage), 20 * MS);
	assert_string_equal(n->exe, "/usr/bin/bash");
	assert_false(n->program.observed_time_us.known);
	same.execed = false;
	finds(&same, "bash");		/* and the dead are not found */
	assert_int_equal(record_count(&w, TOPIC_PROGRAM, -1), 2);
}

/* A child was reported before its parent was discovered: an entry is kept for the parent. */
static void
a_kept_place_is_found_too(void **state)
{
	struct being top = forks(&w, NULL), shell, child;
	const struct kept_record *n;

	(void)state;
	finds(&top, "sshd");
	shell = forks(&w, &top);
	child = forks(&w, &shell);
	works(&w, &child, 3);
	execs(&w, &child, "ls");	/* keeps a place for shell, a child of top */
	works(&w, &shell, 900);
	shell.execed = false;
	finds(&shell, "bash");
	n = record_of(&w, &shell, 0, PHASE_START);
	assert_non_null(n);
	assert_true(n->program.observed_time_us.known);
	assert_string_equal(n->exe, "/usr/bin/bash");
	works(&w, &shell, 5);
	exits(&w, &shell, 0);
	assert_int_equal(usage_cpu_ns(&record_of(&w, &shell, 0, PHASE_END)->usage), 5 * MS);
}

/* What only /proc has of it is unknown then, but not that it ran before; a kill of the agent changes nothing. */
static void
who_ends_before_its_text_is_read_was_found_too(void **state)
{
	struct correlator_options options = { .boot_id = BOOT_ID, .rules = world_options().rules };
	struct being b = forks(&w, NULL), execed = forks(&w, NULL);
	const struct kept_record *n;
	struct state_event s;
	uint64_t found_ns;

	(void)state;
	works(&w, &b, 60000);
	b.execed = execed.execed = true;
	found_ns = w.now;
	s = state_of(&w, &b, STATE_DISCOVERED, 0);
	correlator_discovered(w.c, &s);
	s = state_of(&w, &execed, STATE_DISCOVERED, 0);
	correlator_discovered(w.c, &s);
	assert_false(correlator_knows(w.c, &b.key));
	world_dies(&w, &options);
	works(&w, &b, 5);
	exits(&w, &b, 0);
	for (int i = 0; i < 2; i++) {
		n = record_of(&w, &b, 0, i == 0 ? PHASE_START : PHASE_END);
		assert_non_null(n);
		assert_true(n->program.observed_time_us.known);
		assert_int_equal(n->program.observed_time_us.value, wall_us(found_ns));
		assert_null(n->exe);
	}
	assert_int_equal(usage_cpu_ns(&n->usage), 5 * MS);
	execs(&w, &execed, "true");	/* of what ran before nothing is known */
	exits(&w, &execed, 0);
	n = record_of(&w, &execed, 1, PHASE_END);
	assert_false(n->program.observed_time_us.known);
	assert_string_equal(n->exe, "/usr/bin/true");
	assert_null(record_of(&w, &execed, 0, PHASE_END));
	assert_int_equal(totals(&w).lost_ends, 0);
}

/* A pass was ahead of the ring, from which its exec follows. */
static void
whose_exec_follows_was_not_found(void **state)
{
	struct being b = forks(&w, NULL), running;
	const struct kept_record *n;
	struct state_event s;

	(void)state;
	works(&w, &b, 30);
	running = b;
	running.execed = true;
	s = state_of(&w, &running, STATE_LIVE, 0);
	correlator_discovered(w.c, &s);
	execs(&w, &b, "samtools sort");
	works(&w, &b, 5);
	exits(&w, &b, 0);
	n = record_of(&w, &b, 0, PHASE_END);
	assert_non_null(n);
	assert_false(n->program.observed_time_us.known);
	assert_int_equal(usage_cpu_ns(&n->usage), 35 * MS);
}

/* bounds */

static void
what_has_ended_is_forgotten_even_without_passes(void **state)
{
	struct being shell = forks(&w, NULL), b;

	(void)state;
	execs(&w, &shell, "bash");
	for (int i = 0; i < 3 * GONE_MAX; i++) {
		b = forks(&w, &shell);
		execs(&w, &b, "true");
		exits(&w, &b, 0);
		records_forget(&w);
	}
	count_kept();
	assert_int_equal(logged[WAL_PROCESS], GONE_MAX + 1);
	w.now += 2 * SECOND;
	snapshot(&w, false, (const struct being *[]){ &shell }, 1);
	count_kept();
	assert_int_equal(logged[WAL_PROCESS], 1);
	assert_true(entry_bytes < 512);
}

static void
lost_ends_do_not_pile_up(void **state)
{
	struct being shell = forks(&w, NULL), b;

	(void)state;
	execs(&w, &shell, "bash");
	for (int i = 0; i < 2000; i++) {
		b = forks(&w, &shell);
		if (i % 2 == 0)
			execs(&w, &b, "true");
		else
			tells(&w, &b, STATE_ZOMBIE, 0);
	}
	for (int i = 0; i < 17; i++) {
		w.now += SECOND;
		snapshot(&w, true, (const struct being *[]){ &shell }, 1);
		records_forget(&w);
	}
	count_kept();
	assert_int_equal(logged[WAL_PROCESS], 1);
	assert_int_equal(totals(&w).lost_ends, 1000);
	assert_int_equal(totals(&w).live, 1);
}

static void
passes_see(const struct being *const *beings, size_t n)
{
	for (int i = 0; i < 40; i++) {
		w.now += SECOND;
		snapshot(&w, false, beings, n);
	}
}

/* A missing end is one of the events that were lost, unless those were lost long before. */
static void
each_loss_is_counted_once(void **state)
{
	struct being b[5];
	const struct being *all[5];

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		b[i] = forks(&w, NULL);
		execs(&w, &b[i], "bash");
		all[i] = &b[i];
	}
	passes_see(all, 5);
	correlator_lose(w.c, 3);		/* the third is of no end */
	passes_see(all, 3);
	assert_int_equal(totals(&w).lost_ends, 0);
	passes_see(all, 2);
	assert_int_equal(totals(&w).lost_ends, 1);
	correlator_lose(w.c, 1);
	passes_see(all, 1);
	assert_int_equal(totals(&w).lost_ends, 1);
	/* Also if events are lost all the time. */
	for (int i = 0; i < 10; i++) {
		correlator_lose(w.c, i < 5);
		w.now += 10 * SECOND;
		snapshot(&w, false, all, 1);
	}
	passes_see(all, 0);
	assert_int_equal(totals(&w).lost_ends, 2);
	assert_int_equal(totals(&w).lost_events, 9);
}

static void
there_is_a_limit_to_those_alive(void **state)
{
	struct being b;

	(void)state;
	for (int i = 0; i < PROCESSES_MAX + 10; i++) {
		b = forks(&w, NULL);
		execs(&w, &b, "sleep 1");
		records_forget(&w);
	}
	assert_int_equal(totals(&w).refused, 10);
	assert_int_equal(correlator_live(w.c), PROCESSES_MAX);
}

static void
there_is_a_limit_to_cgroup_paths(void **state)
{
	char path[4096];

	(void)state;
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	path[0] = '/';
	for (uint64_t id = 1; id <= 3 * CGROUPS_BYTES_MAX / sizeof(path); id++)
		correlator_cgroup(w.c, &(struct cgroup_event){ .id = id, .is_v2 = true, .path = path });
	count_kept();
	assert_int_equal(logged[WAL_CGROUP], CGROUPS_BYTES_MAX / (sizeof(path) + sizeof(struct cgroup_path)));
}

static struct being
runs_in_group(uint32_t uid, uint64_t id, const char *path)
{
	struct being b = forks(&w, NULL);

	correlator_cgroup(w.c, &(struct cgroup_event){ .id = id, .is_v2 = true, .path = path });
	b.context.uid = uid;
	b.context.cgroup_v2 = id;
	execs(&w, &b, "tool");
	return b;
}

/* A user who makes many loses paths of its own, though they were used later than another's. */
static void
cgroups_of_one_user_leave_those_of_another(void **state)
{
	char path[4096], name[32];
	struct being b[10];

	(void)state;
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	path[0] = '/';
	for (int i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "/of-another/%d", i);
		b[i] = runs_in_group(1002, 1 + (uint64_t)i, name);
	}
	for (uint64_t i = 0; i < 3 * CGROUPS_BYTES_MAX / sizeof(path); i++) {
		struct being other = runs_in_group(1001, 100 + i, path);

		exits(&w, &other, 0);
		records_forget(&w);
	}
	for (int i = 0; i < 10; i++) {
		const struct kept_record *n;

		exits(&w, &b[i], 0);
		n = record_of(&w, &b[i], 0, PHASE_END);
		snprintf(name, sizeof(name), "/of-another/%d", i);
		assert_non_null(n->cgroup);
		assert_string_equal(n->cgroup, name);
	}
	/* Many of them are short. */
	for (uint64_t i = 0; i < 2 * CGROUPS_KNOWN_MAX; i++)
		correlator_cgroup(w.c, &(struct cgroup_event){ .id = 100000 + i, .is_v2 = true, .path = "/short" });
	assert_int_equal(HASH_COUNT(w.c->cgroups), CGROUPS_KNOWN_MAX);
	for (int i = 0; i < 10; i++)
		assert_non_null(cgroup_find(w.c, 1 + (uint64_t)i, true));
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(programs_belong_to_no_run),
		TEST(an_engines_driver_begins_a_run),
		TEST(a_runs_id_is_its_drivers),
		TEST(a_process_may_be_given_to_a_run_that_is_there),
		TEST(a_descendant_in_a_run_of_others_stays_there),
		TEST(a_jobs_run_is_the_same_on_all_its_hosts),
		TEST(nothing_is_attributed_but_programs_are_counted),
		TEST(a_found_program_counts_from_when_it_was_found),
		TEST(what_a_found_process_execs_is_seen_from_its_start),
		TEST(who_is_known_is_not_found),
		TEST(a_kept_place_is_found_too),
		TEST(who_ends_before_its_text_is_read_was_found_too),
		TEST(whose_exec_follows_was_not_found),
		TEST(what_was_found_and_execs_unheard_ends_as_seen_from_its_start),
		TEST(what_has_ended_is_forgotten_even_without_passes),
		TEST(lost_ends_do_not_pile_up),
		TEST(each_loss_is_counted_once),
		TEST(there_is_a_limit_to_those_alive),
		TEST(there_is_a_limit_to_cgroup_paths),
		TEST(cgroups_of_one_user_leave_those_of_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
