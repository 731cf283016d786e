/* SPDX-License-Identifier: Apache-2.0 */
/* spool_behind: rounds that are still writing, that cannot write, or that write what is not needed any more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/uio.h>

#include "base/disk.h"
#include "base/endian.h"
#include "spool_kit.h"
#include "threads.h"

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define SLOW_US 120000	/* of a round after which the loop does not wait for the disk */

/* A disk on which writes wait, or new files cannot be written. The linker redirects the calls here (CMakeLists.txt). */
static struct {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool is_stuck, is_waiting;
	int error;		/* of writes to an empty file; 0: none */
} disk = { .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static _Thread_local int refused;	/* 1: the next allocation fails; 2: the one after it */

ssize_t __real_pwritev(int fd, const struct iovec *iov, int n, off_t offset);
ssize_t __wrap_pwritev(int fd, const struct iovec *iov, int n, off_t offset);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

ssize_t
__wrap_pwritev(int fd, const struct iovec *iov, int n, off_t offset)
{
	struct stat st;
	int error;

	pthread_mutex_lock(&disk.mutex);
	disk.is_waiting = true;
	pthread_cond_broadcast(&disk.changed);
	while (disk.is_stuck)
		pthread_cond_wait(&disk.changed, &disk.mutex);
	disk.is_waiting = false;
	error = disk.error;
	pthread_mutex_unlock(&disk.mutex);
	if (error == 0 || fstat(fd, &st) < 0 || st.st_size > 0)
		return __real_pwritev(fd, iov, n, offset);
	errno = error;
	return -1;
}

void *
__wrap_calloc(size_t n, size_t size)
{
	return refused > 0 && --refused == 0 ? NULL : __real_calloc(n, size);
}

static void
set_disk(bool is_stuck, int error)
{
	pthread_mutex_lock(&disk.mutex);
	disk.is_stuck = is_stuck;
	disk.error = error;
	pthread_cond_broadcast(&disk.changed);
	pthread_mutex_unlock(&disk.mutex);
}

static struct kit k;

static int
setup(void **state)
{
	(void)state;
	kit_init(&k);
	k.options.patience_ms = 100;
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	set_disk(false, 0);
	kit_done(&k);
	return 0;
}

/* Waits for the call or round that the disk is at. */
static void
settle(void)
{
	disk_settle(k.spool->disk, 60000);
	assert_false(disk_hangs(k.spool->disk));
}

/* Whether the thread that syncs has no duplicates of descriptors, and needs none. */
static bool
is_synced(void)
{
	const struct spool_segment *seg;
	bool is_so = !k.spool->is_state_syncing;

	for (int q = 0; q < SPOOL_QUEUES; q++)
		TAILQ_FOREACH(seg, &k.spool->queues[q].segments, at)
			is_so = is_so && !seg->is_dirty && !seg->is_syncing;
	return is_so;
}

/* Opens a spool that has a batch in memory, since the disk hung, and no round yet. */
static void
begin(void)
{
	kit_open(&k);
	kit_tick(&k);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	KIT_UNTIL(&k, kit_stats(&k).last_error == 0 && kit_stats(&k).syncs > 0 && is_synced());
	set_disk(true, 0);
	kit_batch(&k, TOPIC_PROGRAM, 2);
	assert_int_equal(kit_stats(&k).last_error, -ETIMEDOUT);
	set_disk(false, 0);
	settle();
}

/* Begins a round, which does not end. */
static void
begin_round(void)
{
	set_disk(true, 0);
	kit_tick(&k);
	assert_non_null(k.spool->behind);
	pthread_mutex_lock(&disk.mutex);
	while (!disk.is_waiting)
		pthread_cond_wait(&disk.changed, &disk.mutex);
	pthread_mutex_unlock(&disk.mutex);
}

/* Lets it end, with new files that cannot be written if there is an error. */
static void
end_round(int error)
{
	usleep(SLOW_US);
	set_disk(false, error);
	settle();
}

/* All that was put is delivered, and nothing of it is left. */
static void
expect_all(void)
{
	KIT_UNTIL(&k, kit_stats(&k).last_error == 0 && kit_stats(&k).memory_bytes == 0);
	assert_false(k.spool->is_state_behind);
	assert_int_equal(kit_drain(&k), k.seq[TOPIC_PROGRAM] + k.seq[TOPIC_USAGE]);
	kit_reopen(&k);
	assert_true(k.recovery.was_clean);
	assert_int_equal(k.recovery.records, 0);
}

static void
after_a_slow_round_comes_another(void **state)
{
	(void)state;
	begin();
	begin_round();
	end_round(0);
	kit_tick(&k);
	assert_int_equal(kit_stats(&k).memory_bytes, 0);
	assert_int_equal(kit_stats(&k).last_error, -ETIMEDOUT);
	assert_non_null(k.spool->behind);
	expect_all();
}

static void
what_is_committed_during_a_round_is_in_the_next(void **state)
{
	struct stat st;
	char path[512];

	(void)state;
	begin();
	begin_round();
	for (int i = 0; i < 3; i++) {
		kit_batch(&k, TOPIC_PROGRAM, 2);
		kit_batch(&k, TOPIC_USAGE, 2);
	}
	end_round(0);
	KIT_UNTIL(&k, kit_stats(&k).last_error == 0);
	/* Their files are the owner's alone. */
	assert_int_equal(kit_files(&k, "main-", ".seg", path), 3);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(kit_files(&k, "usage-", ".seg", NULL), 1);
	expect_all();
}

static uint64_t
generation_of_file(void)
{
	uint64_t generation = 0;
	struct kit_file f;
	char path[512];

	snprintf(path, sizeof(path), "%s/state", k.dir);
	f = kit_load(path);
	for (size_t at = 0; at + SPOOL_SLOT <= f.len; at += SPOOL_SLOT)
		if (le_get64(f.data + at + 8) > generation)
			generation = le_get64(f.data + at + 8);
	free(f.data);
	return generation;
}

static void
a_round_writes_the_state_which_is_behind_until_then(void **state)
{
	(void)state;
	begin();
	k.spool->is_state_behind = false;
	begin_round();
	assert_true(k.spool->is_state_behind);
	assert_false(k.spool->is_state_moved);
	assert_true(generation_of_file() < k.spool->generation);
	end_round(0);
	assert_int_equal(generation_of_file(), k.spool->generation);
	expect_all();
}

/* Nor a descriptor: a file that was there could not be made anew. */
static void
what_cannot_be_written_leaves_no_file(void **state)
{
	unsigned files;

	(void)state;
	begin();
	files = kit_open_files();
	begin_round();
	end_round(ENOSPC);
	kit_tick(&k);
	assert_int_equal(kit_stats(&k).last_error, -ENOSPC);
	assert_true(k.spool->is_state_moved);
	assert_int_equal(kit_open_files(), files);
	assert_int_equal(kit_files(&k, "main-", ".seg", NULL), 1);
	set_disk(false, 0);
	expect_all();
}

/* Usage waits for the state file while that lacks the seqs of a batch, and no longer. */
static void
after_a_round_that_failed_usage_is_handed_out_as_ever(void **state)
{
	const struct spool_segments *segments;

	(void)state;
	k.options.is_sync_first = true;
	begin();
	begin_round();
	end_round(ENOSPC);
	kit_tick(&k);
	assert_int_equal(kit_stats(&k).last_error, -ENOSPC);
	set_disk(false, 0);
	KIT_UNTIL(&k, kit_stats(&k).last_error == 0);
	kit_batch(&k, TOPIC_USAGE, 2);
	segments = &k.spool->queues[SPOOL_USAGE].segments;
	KIT_UNTIL(&k, TAILQ_LAST(segments, spool_segments)->synced_to == TAILQ_LAST(segments, spool_segments)->size);
	KIT_UNTIL(&k, TAILQ_LAST(&k.spool->queues[SPOOL_MAIN].segments, spool_segments)->synced_to > 0);
	assert_int_equal(kit_drain(&k), k.seq[TOPIC_PROGRAM] + 2);
}

static void
what_is_dropped_during_a_round_leaves_neither_file_nor_descriptor(void **state)
{
	unsigned others;

	(void)state;
	k.options.memory_bytes = 256 << 10;
	begin();
	others = kit_open_files() - k.spool->open_fds;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(kit_put_len(&k, TOPIC_PROGRAM, 60 << 10), 0);
		(void)kit_commit(&k);
	}
	begin_round();
	for (int i = 0; i < 4; i++) {
		assert_int_equal(kit_put_len(&k, TOPIC_PROGRAM, 60 << 10), 0);
		(void)kit_commit(&k);
	}
	assert_in_range(kit_stats(&k).dropped[TOPIC_PROGRAM][SPOOL_DROP_MEMORY], 3, 6);
	end_round(0);
	KIT_UNTIL(&k, kit_stats(&k).last_error == 0 && is_synced());
	assert_int_equal(kit_files(&k, "main-", ".seg", NULL), k.spool->open_fds);
	assert_int_equal(kit_open_files() - k.spool->open_fds, others);
	assert_int_equal(kit_drain(&k) + kit_stats(&k).dropped[TOPIC_PROGRAM][SPOOL_DROP_MEMORY], k.seq[TOPIC_PROGRAM]);
}

static void
without_memory_no_round_begins(void **state)
{
	(void)state;
	for (int which = 1; which <= 2; which++) {
		const bool has_input = fcntl(STDIN_FILENO, F_GETFD) >= 0;

		begin();
		k.spool->is_state_moved = k.spool->is_state_behind = false;	/* as after a round */
		refused = which;
		kit_tick(&k);
		assert_int_equal(refused, 0);
		assert_int_equal(kit_stats(&k).last_error, -ENOMEM);
		assert_null(k.spool->behind);
		assert_int_equal(fcntl(STDIN_FILENO, F_GETFD) >= 0, has_input);	/* it was no descriptor of the round */
		if (which == 2)
			assert_true(k.spool->is_state_moved);
		expect_all();
		kit_done(&k);
		setup(NULL);
	}
}

static void
without_room_above_the_floor_no_round_begins(void **state)
{
	(void)state;
	begin();
	k.spool->files_max = 0;
	kit_tick(&k);
	assert_int_equal(kit_stats(&k).last_error, -ENOSPC);
	assert_null(k.spool->behind);
	k.spool->files_max = UINT64_MAX;
	expect_all();
}

/* Nor into one that was moved away: the next owner would not find it there. */
static void
nothing_is_written_into_a_folder_that_was_replaced(void **state)
{
	char aside[512];

	(void)state;
	for (int is_replaced = 0; is_replaced < 2; is_replaced++) {
		begin();
		assert_int_equal(kit_drain(&k), 3);
		kit_batch(&k, TOPIC_PROGRAM, 5);
		snprintf(aside, sizeof(aside), "%s/aside", k.tree.root);
		assert_int_equal(rename(k.dir, aside), 0);
		if (is_replaced)
			assert_int_equal(mkdir(k.dir, 0700), 0);
		kit_tick(&k);
		settle();
		kit_tick(&k);
		assert_int_equal(kit_stats(&k).last_error, -ENOENT);
		KIT_UNTIL(&k, kit_stats(&k).last_error == 0);
		kit_reopen(&k);
		assert_int_equal(kit_drain(&k), 5);
		kit_done(&k);
		setup(NULL);
	}
}

static void
a_stop_waits_for_a_round_no_longer_than_it_may(void **state)
{
	(void)state;
	begin();
	begin_round();
	spool_behind_close(k.spool, 20);
	assert_true(disk_hangs(k.spool->disk));
	assert_true(kit_stats(&k).memory_bytes > 0);
	end_round(0);
	expect_all();
}

static struct spool_syncer *kept;	/* it is left to its thread, and found by who looks for lost memory */

static void
a_round_that_outlives_the_spool_ends_by_itself(void **state)
{
	const unsigned files = kit_open_files();
	const int threads = count_names("/proc/self/task");

	(void)state;
	begin();
	begin_round();
	kept = k.spool->syncer;
	k.spool->is_behind = false;	/* as after the time that a stop waits */
	assert_int_equal(spool_close(k.spool), -ETIMEDOUT);
	k.spool = NULL;
	set_disk(false, 0);
	for (int turns = 0; count_names("/proc/self/task") > threads; turns++) {
		assert_true(turns < 60000);
		usleep(1000);
	}
	assert_int_equal(kit_open_files(), files);
	kit_open(&k);
	assert_int_equal(kit_drain(&k), 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(after_a_slow_round_comes_another),
		T(what_is_committed_during_a_round_is_in_the_next),
		T(a_round_writes_the_state_which_is_behind_until_then),
		T(what_cannot_be_written_leaves_no_file),
		T(after_a_round_that_failed_usage_is_handed_out_as_ever),
		T(what_is_dropped_during_a_round_leaves_neither_file_nor_descriptor),
		T(without_memory_no_round_begins),
		T(without_room_above_the_floor_no_round_begins),
		T(nothing_is_written_into_a_folder_that_was_replaced),
		T(a_stop_waits_for_a_round_no_longer_than_it_may),
		T(a_round_that_outlives_the_spool_ends_by_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
