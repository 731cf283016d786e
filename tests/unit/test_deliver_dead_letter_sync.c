/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "delivery_kit.h"
#include "timers.h"

/*
 * A disk on which fdatasync(2) waits while it is stuck, and fails where the test asks for it. The linker redirects the
 * calls here (CMakeLists.txt).
 */
static struct {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool is_stuck;
	int error;
	unsigned files, folders;	/* synced */
} disk = { .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

int
__wrap_fdatasync(int fd)
{
	struct stat st;
	int error;

	pthread_mutex_lock(&disk.mutex);
	while (disk.is_stuck)
		pthread_cond_wait(&disk.changed, &disk.mutex);
	error = disk.error;
	if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
		disk.folders++;
	else
		disk.files++;
	pthread_mutex_unlock(&disk.mutex);
	errno = error;
	return error != 0 ? -1 : 0;
}

static void
set_disk(bool is_stuck, int error)
{
	pthread_mutex_lock(&disk.mutex);
	disk.is_stuck = is_stuck;
	disk.error = error;
	disk.files = disk.folders = 0;
	pthread_cond_broadcast(&disk.changed);
	pthread_mutex_unlock(&disk.mutex);
}

static void
tick_for(int ms)
{
	for (int i = 0; i < ms / 10; i++) {
		delivery_tick(delivery, SAMPLE_TIME);
		turn_for(10);
	}
}

static void
a_record_is_released_once_its_letter_is_synced(void **state)
{
	(void)state;
	put(TOPIC_PROGRAM, 2);
	turn();
	set_disk(true, 0);
	fail_one(0, OUTPUT_NEVER, "invalid_record");
	fail_one(0, OUTPUT_NEVER, "invalid_record");
	tick_for(50);
	assert_int_equal(waiting(), 2);
	assert_int_equal(stats().in_flight, 2);
	set_disk(false, 0);
	settle_letters();
	assert_int_equal(waiting(), 0);
	assert_int_equal(stats().lost_unwritable[TOPIC_PROGRAM], 0);
	/* The second one was written while the first one was being synced. */
	assert_int_equal(disk.files, 2);
	assert_int_equal(disk.folders, 2);
}

/* Other records are delivered meanwhile, and what is given up is not handed over again with those that failed. */
static void
a_disk_that_hangs_keeps_only_what_is_given_up(void **state)
{
	(void)state;
	put(TOPIC_PROGRAM, 3);
	turn();
	set_disk(true, 0);
	fail_one(0, OUTPUT_NEVER, "invalid_record");
	deliver(0);
	put(TOPIC_FINDING, 1);
	turn();
	assert_int_equal(fake->n, 2);
	fail_one(0, OUTPUT_AGAIN, "msg_timed_out");
	turn();
	give_all_back();
	tick_for(100);
	assert_int_equal(fake->n, 1);	/* the other topic does not wait for the letter */
	assert_int_equal(fake->held[0].topic, TOPIC_FINDING);
	assert_int_equal(stats().rewinds, 1);
	deliver_all();
	set_disk(false, 0);
	settle_letters();
	turn_for(100);
	assert_int_equal(stats().rewinds, 2);
	assert_int_equal(fake->n, 1);
	assert_int_equal(fake->held[0].topic, TOPIC_PROGRAM);
	assert_int_equal(stats().dead[0].count[TOPIC_PROGRAM], 1);
	deliver_all();
	assert_int_equal(waiting(), 0);
}

static void
a_letter_that_is_not_synced_is_counted_as_lost(void **state)
{
	(void)state;
	set_disk(false, EIO);
	put(TOPIC_FINDING, 1);
	turn();
	fail_one(0, OUTPUT_NEVER, "invalid_record");
	settle_letters();
	assert_int_equal(stats().lost_unwritable[TOPIC_FINDING], 1);
	assert_int_equal(waiting(), 0);
	/* A file system that cannot sync a folder is none that fails. */
	set_disk(false, EINVAL);
	put(TOPIC_FINDING, 1);
	turn();
	fail_one(0, OUTPUT_NEVER, "invalid_record");
	settle_letters();
	assert_int_equal(stats().lost_unwritable[TOPIC_FINDING], 1);
	set_disk(false, 0);
}

/* The name of a new file is synced with the next letter if that failed with the first one. */
static void
a_name_that_is_not_synced_is_synced_with_the_next_letter(void **state)
{
	(void)state;
	set_disk(false, EIO);
	put(TOPIC_FINDING, 2);
	turn();
	fail_one(0, OUTPUT_NEVER, "invalid_record");
	settle_letters();
	assert_int_equal(stats().lost_unwritable[TOPIC_FINDING], 1);
	set_disk(false, 0);
	fail_one(0, OUTPUT_NEVER, "invalid_record");
	settle_letters();
	assert_int_equal(stats().lost_unwritable[TOPIC_FINDING], 1);
	assert_int_equal(disk.files, 1);
	assert_int_equal(disk.folders, 2);
}

/* What waits for a disk that hangs is in memory: no further record of that topic is handed out. */
static void
letters_that_wait_are_bounded(void **state)
{
	static char large[1 << 20];

	(void)state;
	put(TOPIC_PROGRAM, 6);
	turn();
	assert_int_equal(fake->n, 6);
	set_disk(true, 0);
	fail_one(0, OUTPUT_NEVER, "invalid_record");
	while (fake->n > 0) {
		struct spool_record r = take(0);

		r.key = "h:r";
		r.data = large;
		r.len = sizeof(large);
		fake->events.failed(&r, OUTPUT_NEVER, "msg_size_too_large", "a sentence", fake->events.arg);
	}
	put(TOPIC_PROGRAM, 1);
	tick_for(50);
	assert_int_equal(fake->n, 0);
	assert_int_equal(stats().in_flight, 6);
	assert_string_equal(stats().waits[TOPIC_PROGRAM].reason, "dead_letters_wait");
	put(TOPIC_FINDING, 1);
	turn();
	assert_int_equal(fake->n, 1);
	deliver_all();
	set_disk(false, 0);
	for (int i = 0; i < 1000 && fake->n == 0; i++)
		tick_for(10);
	assert_int_equal(fake->n, 1);
	/* The folder of this test is smaller than they are. */
	assert_int_equal(stats().lost_full[TOPIC_PROGRAM], 5);
	deliver_all();
	assert_int_equal(waiting(), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_record_is_released_once_its_letter_is_synced),
		T(a_disk_that_hangs_keeps_only_what_is_given_up),
		T(a_letter_that_is_not_synced_is_counted_as_lost),
		T(a_name_that_is_not_synced_is_synced_with_the_next_letter),
		T(letters_that_wait_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
