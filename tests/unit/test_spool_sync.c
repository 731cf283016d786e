/* SPDX-License-Identifier: Apache-2.0 */
/* spool_sync: rounds of the thread that syncs, which may last, fail or hang. */
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
#include "spool_kit.h"
#include "threads.h"

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* Calls of other threads that wait while they are stuck. The linker redirects the calls here (CMakeLists.txt). */
enum stuck {
	SYNC = 1,	/* fdatasync(2) */
	APPEND = 2,	/* pwritev(2) */
	WAKE = 4,	/* the caller's function, when a round has ended */
};

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	unsigned stuck;		/* enum stuck */
	unsigned waiting;	/* enum stuck: a call does */
	int error;		/* of fdatasync(2); 0: none */
	unsigned wakes;
} disk = { .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
ssize_t __real_pwritev(int fd, const struct iovec *iov, int n, off_t offset);
ssize_t __wrap_pwritev(int fd, const struct iovec *iov, int n, off_t offset);

/* Waits while a call is stuck. Returns the error of syncs. */
static int
pass(enum stuck call)
{
	int error;

	pthread_mutex_lock(&disk.mutex);
	disk.waiting |= call;
	pthread_cond_broadcast(&disk.changed);
	while (disk.stuck & call)
		pthread_cond_wait(&disk.changed, &disk.mutex);
	disk.waiting &= ~(unsigned)call;
	error = disk.error;
	pthread_mutex_unlock(&disk.mutex);
	return error;
}

int
__wrap_fdatasync(int fd)
{
	errno = pass(SYNC);
	return errno != 0 ? -1 : __real_fdatasync(fd);
}

ssize_t
__wrap_pwritev(int fd, const struct iovec *iov, int n, off_t offset)
{
	(void)pass(APPEND);
	return __real_pwritev(fd, iov, n, offset);
}

static _Thread_local int refused;	/* 1: the next allocation fails; 2: the one after it */

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *
__wrap_calloc(size_t n, size_t size)
{
	return refused > 0 && --refused == 0 ? NULL : __real_calloc(n, size);
}

static struct kit k;

static void
on_synced(void *arg)
{
	kit_expect(arg == &k, "it is called with its argument");
	(void)pass(WAKE);
	pthread_mutex_lock(&disk.mutex);
	disk.wakes++;
	pthread_mutex_unlock(&disk.mutex);
}

static void
set_disk(unsigned stuck, int error)
{
	pthread_mutex_lock(&disk.mutex);
	disk.stuck = stuck;
	disk.error = error;
	pthread_cond_broadcast(&disk.changed);
	pthread_mutex_unlock(&disk.mutex);
}

static void
wait_for(enum stuck call)
{
	pthread_mutex_lock(&disk.mutex);
	while (!(disk.waiting & call))
		pthread_cond_wait(&disk.changed, &disk.mutex);
	pthread_mutex_unlock(&disk.mutex);
}

static int
setup(void **state)
{
	(void)state;
	kit_init(&k);
	k.options.sync_ms = 0;
	k.options.on_synced = on_synced;
	k.options.on_synced_arg = &k;
	disk.wakes = 0;
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	set_disk(0, 0);
	kit_done(&k);
	return 0;
}

/* Opens a spool that hands out what is synced, has its thread begin, and keeps all batches in memory from now on. */
static void
begin_in_memory(void)
{
	k.options.is_sync_first = true;
	kit_open(&k);
	kit_tick(&k);
	k.spool->failed = -EIO;		/* as after a failed write */
	k.spool->retry_ns = UINT64_MAX;
}

/* Processes the round that is in progress, and each that follows from it, until so many have ended. */
static void
end_rounds(uint64_t syncs)
{
	for (int turns = 0; kit_stats(&k).syncs < syncs; turns++) {
		assert_true(turns < 60000);
		spool_sync(k.spool, k.now_ns);
		usleep(1000);
	}
	kit_check(&k);
}

/* Whether a round begins now, if none is in progress. */
static bool
begins(void)
{
	const uint64_t before = k.spool->synced_ns;

	spool_sync(k.spool, ++k.now_ns);
	return k.spool->synced_ns != before;
}

static void
what_is_in_memory_is_handed_out_once_the_state_with_its_seqs_is_synced(void **state)
{
	(void)state;
	begin_in_memory();
	for (uint64_t round = 1; round <= 3; round++) {
		set_disk(SYNC, 0);
		kit_put(&k, TOPIC_PROGRAM);
		kit_put(&k, TOPIC_USAGE);
		assert_int_equal(kit_commit(&k), -EIO);
		kit_expect_none(&k);
		set_disk(0, 0);
		end_rounds(round);
		assert_int_equal(kit_drain(&k), 2);
		/* There is nothing new, so that no round begins. */
		assert_false(begins());
	}
	assert_int_equal(kit_stats(&k).write_errors, 0);
}

/* The state file is not written while it is synced: it is written, and synced, after that. */
static void
what_is_committed_during_a_round_is_handed_out_after_the_next(void **state)
{
	(void)state;
	begin_in_memory();
	set_disk(SYNC, 0);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	wait_for(SYNC);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	assert_true(k.spool->is_state_behind);
	set_disk(0, 0);
	end_rounds(1);
	assert_false(k.spool->is_state_behind);
	end_rounds(2);
	assert_int_equal(kit_drain(&k), 2);
}

/* On a disk that fails for good they are handed out in spite of that. */
static void
a_state_that_cannot_be_synced_holds_nothing_up(void **state)
{
	(void)state;
	begin_in_memory();
	set_disk(0, EIO);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	end_rounds(1);
	assert_int_equal(kit_stats(&k).write_errors, 1);
	assert_int_equal(kit_drain(&k), 1);
	/* No round is made for it any more, before the state file is written again. */
	assert_false(begins());
	set_disk(SYNC, 0);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	wait_for(SYNC);
	kit_expect_none(&k);
	set_disk(0, 0);
	end_rounds(2);
	assert_int_equal(kit_drain(&k), 1);
}

static void
a_state_that_lacks_the_last_batch_is_not_synced_for_it(void **state)
{
	(void)state;
	k.options.sync_ms = 1000;
	begin_in_memory();
	kit_batch(&k, TOPIC_PROGRAM, 1);
	k.now_ns += 2 * KIT_SECOND;
	k.spool->is_state_behind = true;	/* as after a write that hangs */
	assert_false(begins());
	kit_expect_none(&k);
	k.spool->is_state_behind = false;
	assert_true(begins());
	end_rounds(1);
	assert_int_equal(kit_drain(&k), 1);
}

static void
without_a_descriptor_the_state_is_synced_later(void **state)
{
	int fd;

	(void)state;
	k.options.sync_ms = 1000;
	begin_in_memory();
	kit_batch(&k, TOPIC_PROGRAM, 1);
	k.now_ns += 2 * KIT_SECOND;
	fd = k.spool->state_fd;
	k.spool->state_fd = 1 << 30;	/* of which there is no duplicate */
	assert_false(begins());
	k.spool->state_fd = -1;
	assert_false(begins());
	k.spool->state_fd = fd;
	assert_true(begins());
	end_rounds(1);
	assert_int_equal(kit_drain(&k), 1);
}

/* The slot with the seqs of what was in memory is kept until a batch that has them, too, is synced. */
static void
a_round_that_fails_does_not_release_the_state(void **state)
{
	uint64_t n = 0;

	(void)state;
	begin_in_memory();
	kit_batch(&k, TOPIC_PROGRAM, 1);
	end_rounds(1);
	assert_true(k.spool->generation_safe > 0);
	set_disk(0, EIO);
	k.spool->retry_ns = 0;
	kit_tick(&k);
	assert_int_equal(kit_stats(&k).memory_bytes, 0);
	for (uint64_t round = 2; round <= 4; round++) {
		kit_batch(&k, TOPIC_PROGRAM, 1);
		assert_false(k.spool->is_state_needed);
		end_rounds(round);
		assert_true(k.spool->generation_safe > 0);
	}
	set_disk(0, 0);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	KIT_UNTIL_SYNCED(&k, (n += kit_drain(&k)) == 5 && k.spool->generation_safe == 0);
}

/* A round has at most seven segments: the last one, which alone has the seqs, is in the one after it. */
static void
nor_does_one_that_had_no_room_for_all(void **state)
{
	(void)state;
	begin_in_memory();
	kit_batch(&k, TOPIC_PROGRAM, 1);
	end_rounds(1);
	set_disk(SYNC, 0);
	k.spool->retry_ns = 0;
	kit_tick(&k);
	wait_for(SYNC);
	for (int i = 0; i < 9; i++) {
		TAILQ_LAST(&k.spool->queues[SPOOL_MAIN].segments, spool_segments)->is_sealed = true;
		kit_batch(&k, TOPIC_PROGRAM, 1);
	}
	set_disk(0, 0);
	end_rounds(3);
	assert_true(k.spool->generation_safe > 0);
	end_rounds(4);
	assert_int_equal(k.spool->generation_safe, 0);
}

static void
a_round_that_fails_is_no_failure_of_what_was_synced_before(void **state)
{
	struct spool_segment *first, *second;

	(void)state;
	kit_open(&k);
	kit_tick(&k);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	end_rounds(1);
	first = TAILQ_LAST(&k.spool->queues[SPOOL_MAIN].segments, spool_segments);
	first->is_sealed = true;
	set_disk(0, EIO);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	end_rounds(2);
	second = TAILQ_NEXT(first, at);
	assert_true(second->has_sync_failed);
	assert_true(k.spool->has_new_names);	/* the folder is synced again with the next one */
	assert_false(first->has_sync_failed);
	assert_int_equal(first->synced_to, first->size);
}

static void
a_thread_without_memory_begins_at_the_next_tick(void **state)
{
	(void)state;
	for (int which = 1; which <= 2; which++) {
		kit_open(&k);
		refused = which;
		kit_tick(&k);
		assert_int_equal(refused, 0);
		assert_int_equal(kit_stats(&k).last_error, -ENOMEM);
		kit_tick(&k);
		assert_int_equal(kit_stats(&k).last_error, 0);
		kit_batch(&k, TOPIC_PROGRAM, 1);
		KIT_UNTIL(&k, kit_stats(&k).syncs > 0);
		kit_close(&k);
	}
}

/* Has the disk hang, in a batch that is not the first of its segment. */
static void
hang(void)
{
	pthread_mutex_lock(&disk.mutex);
	disk.stuck |= APPEND;
	pthread_mutex_unlock(&disk.mutex);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	assert_int_equal(kit_stats(&k).last_error, -ETIMEDOUT);
	assert_true(disk_hangs(k.spool->disk));
}

/* The disk answers again, but not to calls of these kinds. */
static void
end_hang(unsigned stuck)
{
	set_disk(stuck, 0);
	disk_settle(k.spool->disk, 60000);
	assert_false(disk_hangs(k.spool->disk));
}

static struct spool_syncer *kept[3];	/* each is left to its thread, and found by who looks for lost memory */
static size_t n_kept;

static void
open_with_patience(void)
{
	k.options.patience_ms = 1000;
	kit_open(&k);
	kit_tick(&k);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	KIT_UNTIL_SYNCED(&k, kit_stats(&k).last_error == 0 && kit_stats(&k).syncs > 0);
	while (begins())
		end_rounds(kit_stats(&k).syncs + 1);
	disk_settle(k.spool->disk, 0);		/* which gives all of the patience back */
	assert_true(n_kept < sizeof(kept) / sizeof(kept[0]));
	kept[n_kept++] = k.spool->syncer;
}

static void
wait_for_threads(int n)
{
	for (int turns = 0; count_names("/proc/self/task") > n; turns++) {
		assert_true(turns < 60000);
		usleep(1000);
	}
}

static void
a_stop_does_not_wait_for_a_disk_that_hangs(void **state)
{
	unsigned files;
	int threads;

	(void)state;
	open_with_patience();
	files = kit_open_files();
	threads = count_names("/proc/self/task");
	hang();
	assert_int_equal(spool_sync_all(k.spool), -ETIMEDOUT);
	end_hang(0);
	wait_for_threads(threads - 1);
	assert_int_equal(kit_open_files(), files);
}

static void
a_round_that_hangs_has_its_files_until_it_ends(void **state)
{
	unsigned files, wakes;
	int threads;

	(void)state;
	open_with_patience();
	files = kit_open_files();
	threads = count_names("/proc/self/task");
	set_disk(SYNC, 0);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	wait_for(SYNC);
	wakes = disk.wakes;	/* of the rounds before */
	hang();
	assert_int_equal(spool_sync_all(k.spool), -ETIMEDOUT);
	end_hang(SYNC);
	assert_int_equal(kit_open_files(), files + 1);
	set_disk(0, 0);
	wait_for_threads(threads - 1);
	assert_int_equal(kit_open_files(), files);
	assert_int_equal(disk.wakes, wakes);	/* the caller is gone */
}

static void
a_round_that_had_not_begun_when_the_disk_hung_never_does(void **state)
{
	unsigned files;
	int threads;

	(void)state;
	open_with_patience();
	threads = count_names("/proc/self/task");
	set_disk(WAKE, 0);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	end_rounds(kit_stats(&k).syncs + 1);
	wait_for(WAKE);
	files = kit_open_files();
	kit_batch(&k, TOPIC_PROGRAM, 1);
	assert_int_equal(kit_open_files(), files + 1);
	hang();
	assert_int_equal(spool_sync_all(k.spool), -ETIMEDOUT);
	end_hang(WAKE);
	assert_int_equal(kit_open_files(), files);
	set_disk(0, 0);
	wait_for_threads(threads - 1);
	assert_int_equal(kit_open_files(), files);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(what_is_in_memory_is_handed_out_once_the_state_with_its_seqs_is_synced),
		T(what_is_committed_during_a_round_is_handed_out_after_the_next),
		T(a_state_that_cannot_be_synced_holds_nothing_up),
		T(a_state_that_lacks_the_last_batch_is_not_synced_for_it),
		T(without_a_descriptor_the_state_is_synced_later),
		T(a_round_that_fails_does_not_release_the_state),
		T(nor_does_one_that_had_no_room_for_all),
		T(a_round_that_fails_is_no_failure_of_what_was_synced_before),
		T(a_thread_without_memory_begins_at_the_next_tick),
		T(a_stop_does_not_wait_for_a_disk_that_hangs),
		T(a_round_that_hangs_has_its_files_until_it_ends),
		T(a_round_that_had_not_begun_when_the_disk_hung_never_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
