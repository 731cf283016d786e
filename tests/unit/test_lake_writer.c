/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "samples.h"
#include "base/clock.h"
#include "lake/appender.h"
#include "lake/writer.h"

#define DONE "sluice.*/date=*/host=" SAMPLE_HOST "/[!.]*.avro"

/*
 * A disk whose calls the test delays and fails: fdatasync(2) of all threads waits while the disk is stuck, and fstat(2)
 * while it does not even answer that. The linker redirects them here (CMakeLists.txt).
 */
static pthread_mutex_t disk_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t disk_moves = PTHREAD_COND_INITIALIZER;
static bool is_stuck, is_stat_stuck;
static atomic_int waiting, syncs, failing;

int __real_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st);
int __wrap_fdatasync(int fd);

int
__wrap_fstat(int fd, struct stat *st)
{
	pthread_mutex_lock(&disk_mutex);
	waiting++;
	while (is_stat_stuck)
		pthread_cond_wait(&disk_moves, &disk_mutex);
	waiting--;
	pthread_mutex_unlock(&disk_mutex);
	return __real_fstat(fd, st);
}

int
__wrap_fdatasync(int fd)
{
	(void)fd;
	pthread_mutex_lock(&disk_mutex);
	waiting++;
	while (is_stuck)
		pthread_cond_wait(&disk_moves, &disk_mutex);
	waiting--;
	pthread_mutex_unlock(&disk_mutex);
	if (failing > 0) {
		failing--;
		errno = EIO;
		return -1;
	}
	syncs++;
	return 0;
}

static void
set_stuck(bool stuck)
{
	pthread_mutex_lock(&disk_mutex);
	is_stuck = stuck;
	pthread_cond_broadcast(&disk_moves);
	pthread_mutex_unlock(&disk_mutex);
}

static void
set_stat_stuck(bool stuck)
{
	pthread_mutex_lock(&disk_mutex);
	is_stat_stuck = stuck;
	pthread_cond_broadcast(&disk_moves);
	pthread_mutex_unlock(&disk_mutex);
}

static char lake[64];
static uint64_t synced, given_back;
static int syncs_at_report;		/* before the callback */
static bool was_given_back_first;
static struct lake_repair repaired;
static unsigned n_repaired;

static void
on_synced(unsigned series, uint64_t records, void *arg)
{
	(void)arg;
	assert_int_equal(series, TOPIC_PROGRAM);
	synced += records;
	syncs_at_report = syncs;
	was_given_back_first = given_back > 0;
}

static void
on_given_back(unsigned series, uint64_t records, void *arg)
{
	(void)arg;
	assert_int_equal(series, TOPIC_PROGRAM);
	given_back += records;
}

static void
on_repaired(const struct lake_repair *r, void *arg)
{
	(void)arg;
	repaired = *r;
	n_repaired++;
}

static int
setup(void **state)
{
	(void)state;
	synced = given_back = 0;
	syncs = failing = syncs_at_report = 0;
	n_repaired = 0;
	was_given_back_first = false;
	return sample_folder(lake) == NULL ? -1 : 0;
}

static int
teardown(void **state)
{
	(void)state;
	set_stuck(false);
	set_stat_stuck(false);
	sample_remove(lake);
	return 0;
}

static struct lake_writer_options
options(void)
{
	return (struct lake_writer_options){
	    .appender = { .lake = lake, .host_id = SAMPLE_HOST, .agent_id = SAMPLE_AGENT, .retry_us = 1000 },
	    .on_synced = on_synced, .on_given_back = on_given_back, .on_repaired = on_repaired };
}

static struct lake_writer *
open_writer(struct lake_writer_options o)
{
	struct lake_writer *w = NULL;

	assert_int_equal(lake_writer_open(&o, &w), 0);
	return w;
}

static int
put(struct lake_writer *w, uint64_t seq, size_t len)
{
	static char data[200000];

	return lake_writer_put(w, &(struct encoded_record){ TOPIC_PROGRAM, SAMPLE_TIME, seq, "key", data, len });
}

/* Reports until a condition holds, for at most half a minute. */
#define WAIT(w, condition) do {						\
	for (int i_ = 0; i_ < 30000 && !(condition); i_++) {		\
		lake_writer_report(w);					\
		usleep(1000);						\
	}								\
	assert_true(condition);						\
} while (0)

static size_t
files(void)
{
	char full[PATH_MAX];
	size_t n = 0;
	glob_t g;

	snprintf(full, sizeof(full), "%s/" DONE, lake);
	if (glob(full, GLOB_PERIOD, NULL, &g) == 0) {
		n = g.gl_pathc;
		globfree(&g);
	}
	return n;
}

static void
a_record_is_reported_after_its_sync(void **state)
{
	struct lake_writer *w = open_writer(options());

	(void)state;
	assert_int_equal(put(w, 0, 100), 0);
	assert_int_equal(put(w, 1, 100), 0);
	set_stuck(true);
	lake_writer_tick(w, SAMPLE_TIME);
	WAIT(w, waiting == 1);
	lake_writer_report(w);
	assert_int_equal(synced, 0);
	set_stuck(false);
	WAIT(w, synced == 2);
	assert_true(syncs_at_report >= 1);
	assert_int_equal(n_repaired, 1);
	assert_int_equal(lake_writer_close(w, 60000), 0);
	assert_int_equal(synced, 2);
	assert_int_equal(given_back, 0);
	assert_int_equal(files(), 1);
}

static void
one_sync_serves_all_records_before_a_tick(void **state)
{
	struct lake_writer_options o = options();
	struct lake_writer *w;

	(void)state;
	o.queue_bytes = 16 << 20;
	w = open_writer(o);
	for (uint64_t seq = 0; seq < 3000; seq++)
		assert_int_equal(put(w, seq, 1000), 0);		/* many blocks */
	lake_writer_tick(w, SAMPLE_TIME);
	WAIT(w, synced == 3000);
	assert_int_equal(syncs, 1);
	assert_int_equal(lake_writer_close(w, 60000), 0);
}

static void
a_stuck_disk_fills_the_queue_and_stops_nobody(void **state)
{
	struct lake_writer_options o = options();
	struct lake_writer_state at;
	struct lake_writer *w;
	uint64_t taken = 1, begin;
	int r = 0;

	(void)state;
	o.queue_bytes = 1 << 20;
	w = open_writer(o);
	lake_writer_state(w, &at);
	assert_null(at.waits_for);
	assert_int_equal(put(w, 0, 100), 0);
	set_stuck(true);
	lake_writer_tick(w, SAMPLE_TIME);
	WAIT(w, waiting == 1);
	begin = clock_ns(CLOCK_MONOTONIC);
	for (; r == 0 && taken < 100000; taken++)
		r = put(w, taken, 1000);
	taken--;
	assert_int_equal(r, -EAGAIN);
	assert_in_range(taken, 400, 600);	/* half a MiB */
	lake_writer_tick(w, SAMPLE_TIME);
	lake_writer_state(w, &at);
	assert_string_equal(at.waits_for, "fdatasync");
	assert_true(at.waits_since_ns <= begin);
	assert_in_range(at.queued_bytes, 1, 1 << 19);
	assert_int_equal(synced, 0);
	set_stuck(false);
	WAIT(w, synced >= 1);		/* the queue was taken, or is about to be */
	for (r = -EAGAIN; r == -EAGAIN; usleep(1000))
		r = put(w, taken, 1000);
	assert_int_equal(r, 0);
	taken++;
	lake_writer_tick(w, SAMPLE_TIME);
	WAIT(w, synced == taken);
	assert_int_equal(lake_writer_close(w, 60000), 0);
}

static void
a_server_that_does_not_even_answer_what_a_file_is_is_waited_for(void **state)
{
	struct lake_writer *w = open_writer(options());
	struct lake_writer_state at;

	(void)state;
	assert_int_equal(put(w, 0, 100), 0);
	lake_writer_tick(w, SAMPLE_TIME);
	WAIT(w, synced == 1);
	set_stat_stuck(true);
	assert_int_equal(put(w, 1, 100), 0);
	lake_writer_tick(w, SAMPLE_TIME);
	WAIT(w, waiting == 1);
	lake_writer_state(w, &at);
	assert_string_equal(at.waits_for, "looking at a file");
	set_stat_stuck(false);
	WAIT(w, synced == 2);
	WAIT(w, (lake_writer_state(w, &at), at.waits_for == NULL));
	assert_int_equal(lake_writer_close(w, 60000), 0);
}

static void
closing_on_a_stuck_disk_takes_bounded_time(void **state)
{
	struct lake_writer_stats stats = { 0 };
	struct lake_writer_options o = options();
	struct lake_writer *w;

	(void)state;
	o.final_stats = &stats;
	w = open_writer(o);
	assert_int_equal(put(w, 0, 100), 0);
	lake_writer_tick(w, SAMPLE_TIME);
	WAIT(w, synced == 1);
	assert_int_equal(put(w, 1, 100), 0);
	set_stuck(true);
	lake_writer_tick(w, SAMPLE_TIME);
	WAIT(w, waiting == 1);
	assert_int_equal(put(w, 2, 100), 0);
	assert_int_equal(lake_writer_close(w, 20), -ETIMEDOUT);
	assert_int_equal(synced, 1);
	assert_int_equal(stats.synced, 1);
	/* The thread that is left writes nothing more. */
	set_stuck(false);
	for (int i = 0; i < 100 && waiting > 0; i++)
		usleep(1000);
	assert_int_equal(files(), 0);
	assert_int_equal(synced, 1);
}

static void
what_a_failed_sync_leaves_out_is_given_back_with_all_behind_it(void **state)
{
	struct lake_writer *w = open_writer(options());
	struct lake_writer_state at;

	(void)state;
	assert_int_equal(put(w, 0, 100), 0);
	lake_writer_tick(w, SAMPLE_TIME);
	WAIT(w, synced == 1);
	assert_int_equal(put(w, 1, 100), 0);
	set_stuck(true);
	failing = 1;
	lake_writer_tick(w, SAMPLE_TIME);
	WAIT(w, waiting == 1);
	assert_int_equal(put(w, 2, 100), 0);	/* behind it, in the queue */
	set_stuck(false);
	WAIT(w, given_back == 2);
	assert_int_equal(synced, 1);
	lake_writer_state(w, &at);
	assert_int_equal(at.error, -EIO);
	/* All are put again, and come after the pause. */
	assert_int_equal(put(w, 1, 100), 0);
	assert_int_equal(put(w, 2, 100), 0);
	for (int i = 0; i < 30000 && synced < 3; i++) {
		lake_writer_tick(w, SAMPLE_TIME);
		usleep(1000);
	}
	assert_int_equal(synced, 3);
	assert_int_equal(given_back, 2);
	lake_writer_state(w, &at);
	assert_int_equal(at.error, 0);
	assert_int_equal(lake_writer_close(w, 60000), 0);
}

static void
synced_records_of_a_file_whose_sync_failed_are_readable_soon(void **state)
{
	struct lake_writer_options o = options();
	struct lake_writer *w;

	(void)state;
	o.repair_us = 1000;
	w = open_writer(o);
	assert_int_equal(put(w, 0, 100), 0);
	lake_writer_tick(w, SAMPLE_TIME);
	WAIT(w, synced == 1);
	assert_int_equal(repaired.files, 0);
	assert_int_equal(put(w, 1, 100), 0);
	failing = 1;
	lake_writer_tick(w, SAMPLE_TIME);
	WAIT(w, given_back == 1);
	assert_int_equal(files(), 0);
	for (int i = 0; i < 30000 && repaired.files == 0; i++) {
		(void)put(w, 1 + (uint64_t)i, 10);
		lake_writer_tick(w, SAMPLE_TIME);
		usleep(2000);
	}
	assert_int_equal(repaired.files, 1);
	assert_int_equal(repaired.records, 1);
	assert_int_equal(lake_writer_close(w, 60000), 0);
}

static void
put_refuses_until_what_is_recalled_is_reported(void **state)
{
	struct lake_writer *w = open_writer(options());

	(void)state;
	assert_int_equal(put(w, 0, 100), 0);
	lake_writer_recall(w);
	assert_int_equal(put(w, 1, 100), -EAGAIN);
	WAIT(w, given_back == 1);
	assert_int_equal(put(w, 0, 100), 0);
	lake_writer_recall(w);
	lake_writer_recall(w);
	WAIT(w, given_back == 2);
	assert_int_equal(put(w, 0, 100), 0);
	assert_int_equal(lake_writer_close(w, 60000), 0);
	assert_int_equal(synced, 1);
	assert_false(!was_given_back_first);
}

/* As `sluice run`: nothing keeps the records, and no caller asks when they are synced. */
static void
without_a_keeper_put_waits_once_for_room(void **state)
{
	struct lake_writer_stats stats = { 0 };
	struct lake_writer_options o = {
	    .appender = { .lake = lake, .host_id = SAMPLE_HOST, .agent_id = SAMPLE_AGENT, .rotate_bytes = 1 },
	    .queue_bytes = 1 << 20, .put_wait_ms = 300, .final_stats = &stats };
	struct lake_writer *w = open_writer(o);
	uint64_t refused = 0, begin;
	int r = 0;

	(void)state;
	set_stuck(true);
	for (uint64_t seq = 0; r == 0 && seq < 100000; seq++) {	/* each block ends a file, and that syncs */
		begin = clock_ns(CLOCK_MONOTONIC);
		r = put(w, seq, 1000);
	}
	assert_int_equal(r, -EAGAIN);
	assert_true(clock_ns(CLOCK_MONOTONIC) - begin >= 300000000);
	for (; refused < 1000; refused++)
		assert_int_equal(put(w, 0, 1000), -EAGAIN);
	assert_true(clock_ns(CLOCK_MONOTONIC) - begin < UINT64_C(1000) * 300000000);
	set_stuck(false);
	assert_int_equal(lake_writer_close(w, -1), 0);
	assert_int_equal(stats.refused, refused + 1);
	assert_int_equal(stats.written, stats.accepted);
	assert_int_equal(stats.dropped, 0);
	assert_int_equal(synced, 0);
}

static void
a_short_life_needs_no_thread_and_one_sync(void **state)
{
	struct lake_writer_stats stats = { 0 };
	struct lake_writer_options o = {
	    .appender = { .lake = lake, .host_id = SAMPLE_HOST, .agent_id = SAMPLE_AGENT }, .final_stats = &stats };
	struct lake_writer *w = open_writer(o);

	(void)state;
	assert_int_equal(put(w, 0, 100), 0);
	assert_int_equal(lake_writer_close(w, -1), 0);
	assert_int_equal(syncs, 1);
	assert_int_equal(files(), 1);
	assert_int_equal(stats.accepted, 1);
	assert_int_equal(stats.written, 1);
	assert_int_equal(stats.files, 1);
}

static void
a_failed_sync_without_a_keeper_is_counted(void **state)
{
	struct lake_writer_stats stats = { 0 };
	struct lake_writer_options o = {
	    .appender = { .lake = lake, .host_id = SAMPLE_HOST, .agent_id = SAMPLE_AGENT }, .final_stats = &stats };
	struct lake_writer *w = open_writer(o);

	(void)state;
	assert_int_equal(put(w, 0, 100), 0);
	failing = 1;
	assert_int_equal(lake_writer_close(w, -1), -EIO);
	assert_int_equal(stats.accepted, 1);
	assert_int_equal(stats.written, 0);
	assert_int_equal(stats.dropped, 1);
	assert_int_equal(stats.last_error, -EIO);
}

static void
a_file_whose_writer_lives_is_repaired_once_that_has_ended(void **state)
{
	struct lake_writer_options o = options();
	struct lake_writer *w;
	struct lake_appender_options a = { .lake = lake, .host_id = SAMPLE_HOST, .agent_id = SAMPLE_AGENT };
	struct lake_appender *appender;
	char path[PATH_MAX];
	glob_t g;

	(void)state;
	assert_int_equal(lake_appender_new(&a, &appender), 0);
	assert_int_equal(lake_appender_open(appender), 0);
	assert_int_equal(lake_appender_put(appender,
	    &(struct encoded_record){ TOPIC_PROGRAM, SAMPLE_TIME, 0, "key", "data", 4 }), 0);
	assert_int_equal(lake_appender_flush(appender, SAMPLE_TIME), 0);
	o.appender.agent_id = "11111111-2222-3333-4444-555555555555";
	o.repair_us = 1000;
	w = open_writer(o);
	assert_int_equal(put(w, 7, 10), 0);
	lake_writer_tick(w, SAMPLE_TIME);
	WAIT(w, synced == 1);
	assert_int_equal(repaired.live, 1);
	assert_int_equal(repaired.files, 0);
	/* The other one is dead: its file stays as it was, and its lock is gone. */
	snprintf(path, sizeof(path), "%s/sluice.*/date=*/host=*/." SAMPLE_AGENT "-0.avro.part", lake);
	assert_int_equal(glob(path, GLOB_PERIOD, NULL, &g), 0);
	snprintf(path, sizeof(path), "%s.saved", g.gl_pathv[0]);
	assert_int_equal(link(g.gl_pathv[0], path), 0);
	assert_int_equal(lake_appender_close(appender, NULL, NULL, NULL), 0);
	assert_int_equal(rename(path, g.gl_pathv[0]), 0);
	globfree(&g);
	for (int i = 0; i < 30000 && repaired.files == 0; i++) {
		assert_int_equal(put(w, 8 + (uint64_t)i, 10), 0);
		lake_writer_tick(w, SAMPLE_TIME);
		usleep(2000);
	}
	assert_int_equal(repaired.files, 1);
	assert_int_equal(lake_writer_close(w, 60000), 0);
}

static void
a_record_of_another_schema_begins_a_file(void **state)
{
	struct lake_writer *w = open_writer(options());
	char text[] = "{\"type\": \"string\"}";

	(void)state;
	assert_int_equal(lake_writer_set_schema(w, TOPIC_PROGRAM, text), 0);
	assert_int_equal(put(w, 0, 10), 0);
	memset(text, ' ', sizeof(text) - 1);	/* it was copied */
	assert_int_equal(lake_writer_set_schema(w, TOPIC_PROGRAM, NULL), 0);
	assert_int_equal(put(w, 1, 10), 0);
	assert_int_equal(lake_writer_close(w, 60000), 0);
	assert_int_equal(synced, 2);
	assert_int_equal(files(), 2);
}

static void
an_unusable_lake_is_refused_at_open(void **state)
{
	struct lake_writer_options o = options();
	struct lake_writer *w = NULL;

	(void)state;
	o.appender.lake = "/proc/nowhere/lake";
	assert_true(lake_writer_open(&o, &w) < 0);
	assert_null(w);
	o.open_wait_ms = 60000;		/* by the thread, too */
	assert_true(lake_writer_open(&o, &w) < 0);
	assert_null(w);
	assert_int_equal(lake_writer_close(NULL, -1), 0);
}

/* Starts a process that makes the lake's folder, and ends with a status once *ret_release is closed. */
static pid_t
slow_maker(int status, int *ret_release)
{
	int fds[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(fds[1]);
		(void)!read(fds[0], &c, 1);
		_exit(status);
	}
	close(fds[0]);
	*ret_release = fds[1];
	return pid;
}

static void
a_lake_whose_disk_does_not_answer_is_opened_when_it_does(void **state)
{
	struct lake_writer_options o = options();
	struct lake_writer_state st;
	struct lake_writer *w;
	int release;

	(void)state;
	o.open_wait_ms = 1;
	o.maker = slow_maker(0, &release);
	w = open_writer(o);
	assert_int_equal(put(w, 0, 100), 0);
	lake_writer_tick(w, SAMPLE_TIME);
	WAIT(w, (lake_writer_state(w, &st), st.waits_for != NULL));	/* the thread may not have begun */
	assert_false(st.is_open);
	assert_string_equal(st.waits_for, "opening the folder");
	assert_int_equal(st.error, 0);
	lake_writer_recall(w);
	assert_int_equal(put(w, 0, 100), -EAGAIN);
	close(release);
	WAIT(w, given_back == 1);
	assert_int_equal(put(w, 0, 100), 0);
	lake_writer_tick(w, SAMPLE_TIME);
	WAIT(w, synced == 1);
	lake_writer_state(w, &st);
	assert_true(st.is_open);
	assert_int_equal(lake_writer_close(w, 60000), 0);
	assert_int_equal(files(), 1);
}

static void
a_lake_that_cannot_be_opened_later_is_an_error_of_the_state(void **state)
{
	struct lake_writer_options o = options();
	struct lake_writer_state st = { 0 };
	struct lake_writer *w;
	int release;

	(void)state;
	o.open_wait_ms = 1;
	o.maker = slow_maker(ENOSPC, &release);
	w = open_writer(o);
	assert_int_equal(put(w, 0, 100), 0);
	close(release);
	WAIT(w, (lake_writer_state(w, &st), st.error != 0));
	assert_int_equal(st.error, -ENOSPC);
	assert_false(st.is_open);
	lake_writer_recall(w);
	WAIT(w, given_back == 1);
	lake_writer_tick(w, SAMPLE_TIME);
	lake_writer_state(w, &st);
	assert_int_equal(st.error, -ENOSPC);
	assert_int_equal(put(w, 0, 100), 0);
	assert_int_equal(lake_writer_close(w, 60000), -ENOSPC);
	assert_int_equal(synced, 0);
	assert_int_equal(files(), 0);
}

static void
a_writer_is_closed_while_its_lake_is_being_opened(void **state)
{
	struct lake_writer_options o = options();
	struct lake_writer *w;
	int release;

	(void)state;
	o.open_wait_ms = 1;
	o.maker = slow_maker(0, &release);
	w = open_writer(o);
	assert_int_equal(put(w, 0, 100), 0);
	assert_int_equal(lake_writer_close(w, 10), -ETIMEDOUT);
	close(release);
	assert_int_equal(synced + given_back, 0);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_record_is_reported_after_its_sync),
		TEST(one_sync_serves_all_records_before_a_tick),
		TEST(a_stuck_disk_fills_the_queue_and_stops_nobody),
		TEST(a_server_that_does_not_even_answer_what_a_file_is_is_waited_for),
		TEST(closing_on_a_stuck_disk_takes_bounded_time),
		TEST(what_a_failed_sync_leaves_out_is_given_back_with_all_behind_it),
		TEST(synced_records_of_a_file_whose_sync_failed_are_readable_soon),
		TEST(put_refuses_until_what_is_recalled_is_reported),
		TEST(without_a_keeper_put_waits_once_for_room),
		TEST(a_short_life_needs_no_thread_and_one_sync),
		TEST(a_failed_sync_without_a_keeper_is_counted),
		TEST(a_file_whose_writer_lives_is_repaired_once_that_has_ended),
		TEST(a_record_of_another_schema_begins_a_file),
		TEST(an_unusable_lake_is_refused_at_open),
		TEST(a_lake_whose_disk_does_not_answer_is_opened_when_it_does),
		TEST(a_lake_that_cannot_be_opened_later_is_an_error_of_the_state),
		TEST(a_writer_is_closed_while_its_lake_is_being_opened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
