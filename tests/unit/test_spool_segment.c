/* SPDX-License-Identifier: Apache-2.0 */
/* spool_segment and spool_sync: a file is read in windows, appended to, and synced in rounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>

#include "faults.h"
#include "one_spool.h"

static void
put_len(size_t len)
{
	assert_int_equal(kit_put_len(&k, TOPIC_PROGRAM, len), 0);
}

/* Records of all sizes beside a window's, one batch each: several windows, and one that a record is larger than. */
static const size_t sizes[] = { 10, 200000, 50, 100000, 262000, 20, 600000, 30, 262144, 40 };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void
put_sizes(void)
{
	for (size_t i = 0; i < SIZES; i++) {
		put_len(sizes[i]);
		assert_int_equal(kit_commit(&k), 0);
	}
	assert_int_equal(kit_files(&k, "main-", ".seg", NULL), 1);
}

static int
is_private(const char *path, const struct stat *st, int flag, struct FTW *where)
{
	(void)where;
	if ((st->st_mode & 0777) != (flag == FTW_D ? 0700 : 0600))
		fail_msg("%s: mode %o", path, (unsigned)st->st_mode);
	return 0;
}

/* Arguments of programs are in it. */
static void
what_waits_is_for_its_owner_alone(void **state)
{
	mode_t mask = umask(0);

	(void)state;
	kit_open(&k);
	put_sizes();
	umask(mask);
	assert_int_equal(nftw(k.dir, is_private, 8, FTW_PHYS), 0);
}

/* For any failure of the n-th read, each record is read once, and again after a rewind. */
static void
what_a_window_holds_is_never_taken_for_something_else(void **state)
{
	static const struct { int error, then; } faults[] = { { 0, 0 }, { EINTR, 0 }, { EIO, 0 }, { 0, EIO } };

	(void)state;
	for (size_t e = 0; e < sizeof(faults) / sizeof(faults[0]); e++) {
		for (unsigned n = 0;; n++) {
			bool came[SIZES] = { false };
			struct spool_record r;
			unsigned total = 0;

			kit_open(&k);
			put_sizes();
			fault = (struct fault){ .calls = FAULT_READ, .skip = n, .times = 1,
			    .error = faults[e].error, .then = faults[e].then };
			for (int turn = 0; turn < 3; turn++) {
				while (spool_next(k.spool, &r)) {
					assert_true(kit_is_whole(&r));
					assert_int_equal(r.len, sizes[r.seq]);
					assert_int_equal(r.is_again, came[r.seq]);
					came[r.seq] = true;
					total++;
					/* From the first one on, which another window holds. */
					if (turn == 0 && total == 6)
						break;
				}
				spool_rewind(k.spool);
				kit_tick(&k);
			}
			fault.calls = 0;
			assert_int_equal(kit_drain(&k), SIZES);
			assert_true(total > SIZES);
			assert_int_equal(kit_stats(&k).acknowledged, SIZES);
			for (int d = 0; d < SPOOL_DROPS; d++)
				assert_int_equal(kit_stats(&k).dropped[TOPIC_PROGRAM][d], 0);
			/* What the large one needed is not kept for small ones. */
			assert_int_equal(k.spool->queues[SPOOL_MAIN].cursor.reader.cap, SPOOL_READ_BYTES);
			kit_done(&k);
			kit_init(&k);
			if (!fault.hit)
				break;
		}
	}
}

static void
without_memory_for_a_window_reading_waits(void **state)
{
	(void)state;
	for (unsigned n = 0;; n++) {
		uint64_t came;

		kit_open(&k);
		put_sizes();
		assert_true(kit_files(&k, "main-", ".seg", NULL) == 1);
		fault = (struct fault){ .calls = FAULT_MEMORY, .skip = n, .times = 1, .error = ENOMEM };
		came = kit_drain(&k);
		fault.calls = 0;
		kit_tick(&k);
		came += kit_drain(&k);
		assert_int_equal(came, SIZES);
		kit_done(&k);
		kit_init(&k);
		if (!fault.hit)
			break;
	}
}

static void
a_torn_write_goes_on_where_it_began(void **state)
{
	(void)state;
	k.options.memory_bytes = 1;	/* so that the batch is dropped, and the next may go to the same file */
	for (int is_cut = 0; is_cut < 2; is_cut++) {
		kit_open(&k);
		kit_batch(&k, TOPIC_PROGRAM, 3);
		/* All but its end is written, or nothing and the cut fails too. */
		fault = (struct fault){ .calls = FAULT_WRITE, .times = 1, .error = 0, .then = ENOSPC };
		if (!is_cut)
			fault = (struct fault){ .calls = FAULT_WRITE | FAULT_CUT, .times = 2, .error = ENOSPC };
		kit_batch(&k, TOPIC_PROGRAM, 2);
		fault.calls = 0;
		assert_int_equal(kit_stats(&k).last_error, -ENOSPC);
		assert_int_equal(kit_stats(&k).dropped[TOPIC_PROGRAM][SPOOL_DROP_MEMORY], 2);
		kit_tick(&k);
		kit_tick(&k);
		assert_int_equal(kit_stats(&k).last_error, 0);
		kit_batch(&k, TOPIC_PROGRAM, 4);
		/* What could not be cut off is left alone. */
		assert_int_equal(kit_files(&k, "main-", ".seg", NULL), is_cut ? 1 : 2);
		kit_reopen(&k);
		assert_int_equal(k.recovery.corrupt_bytes, 0);
		assert_int_equal(k.recovery.records, 7);
		assert_int_equal(kit_drain(&k), 7);
		kit_done(&k);
		setup(NULL);
		k.options.memory_bytes = 1;
	}
}

static void
a_file_that_may_only_be_read_is_read(void **state)
{
	static const int errors[] = { EACCES, EROFS };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		/* Opening the segment is the third: the folder, the state, the folder's names come first. */
		for (unsigned n = 0;; n++) {
			struct spool *spool = NULL;
			char error[512];
			int r;

			kit_open(&k);
			kit_batch(&k, TOPIC_PROGRAM, 3);
			assert_int_equal(spool_close(k.spool), 0);
			k.spool = NULL;
			fault = (struct fault){ .calls = FAULT_OPEN, .skip = n, .times = 1, .error = errors[i] };
			r = spool_open(&k.options, &spool, &k.recovery, error, sizeof(error));
			fault.calls = 0;
			k.spool = spool;
			assert_true(r == 0 || r == -errors[i]);
			if (r == 0) {
				assert_int_equal(k.recovery.unreadable, 0);
				assert_int_equal(k.recovery.records, 3);
				kit_batch(&k, TOPIC_TASK, 2);
				kit_tick(&k);
				kit_tick(&k);
				assert_int_equal(kit_stats(&k).last_error, 0);
				assert_int_equal(kit_drain(&k), 5);
			}
			kit_done(&k);
			setup(NULL);
			if (!fault.hit)
				break;
		}
	}
}

/* One that was closed is opened again: only to be read, where it may not be written. */
static void
a_file_that_cannot_be_opened_again_is_waited_for(void **state)
{
	static const int errors[] = { EACCES, EROFS, EIO, EMFILE };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		uint64_t came;

		k.options.segment_bytes = 4096;
		kit_open(&k);
		for (int n = 0; n < 100; n++)
			kit_batch(&k, TOPIC_PROGRAM, 30);
		kit_reopen(&k);
		fault = (struct fault){ .calls = FAULT_OPEN, .times = 1, .error = errors[i] };
		came = kit_drain(&k);
		assert_true(fault.hit);
		fault.calls = 0;
		assert_int_equal(came == 3000, i < 2);
		kit_tick(&k);
		assert_int_equal(came + kit_drain(&k), 3000);
		kit_done(&k);
		setup(NULL);
	}
}

static void
few_files_stay_open(void **state)
{
	uint64_t n = 0;
	struct spool_record r;

	(void)state;
	k.options.segment_bytes = 4096;
	kit_open(&k);
	for (int i = 0; i < 200; i++) {
		kit_batch(&k, TOPIC_PROGRAM, 30);
		if (i % 5 == 0) {
			kit_tick(&k);
			spool_sync_stop(k.spool);
		}
	}
	assert_true(kit_files(&k, "main-", ".seg", NULL) >= 200);
	assert_in_range(k.spool->open_fds, SPOOL_FDS_KEPT, SPOOL_FDS_KEPT + 8);
	kit_reopen(&k);
	assert_in_range(k.spool->open_fds, SPOOL_FDS_KEPT, SPOOL_FDS_KEPT + 1);
	for (; spool_next(k.spool, &r); n++) {
		assert_true(kit_is_whole(&r));
		assert_in_range(k.spool->open_fds, SPOOL_FDS_KEPT, SPOOL_FDS_KEPT + 2);
	}
	assert_int_equal(n, 6000);
}

/* Each is synced while it is the last one, which stays open. */
static void
a_file_is_closed_once_the_next_one_has_begun(void **state)
{
	(void)state;
	k.options.segment_bytes = 4096;
	kit_open(&k);
	for (int i = 0; i < SPOOL_FDS_KEPT + 20; i++) {
		kit_batch(&k, TOPIC_PROGRAM, 30);
		assert_in_range(k.spool->open_fds, 1, SPOOL_FDS_KEPT);
		assert_int_equal(spool_sync_all(k.spool), 0);
	}
	assert_true(kit_files(&k, "main-", ".seg", NULL) >= SPOOL_FDS_KEPT + 20);
}

/* Many are open, and what is read is elsewhere. */
static void
the_last_file_is_opened_again_to_be_written(void **state)
{
	const struct spool_segment *last;
	struct spool_record r;
	unsigned files;

	(void)state;
	k.options.segment_bytes = 4096;
	kit_open(&k);
	for (int i = 0; i < SPOOL_FDS_KEPT + 10; i++)
		kit_batch(&k, TOPIC_PROGRAM, 25);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	assert_int_equal(spool_sync_all(k.spool), 0);
	while (spool_next(k.spool, &r))
		;
	spool_rewind(k.spool);
	assert_int_equal(kit_next(&k).seq, 0);
	last = TAILQ_LAST(&k.spool->queues[SPOOL_MAIN].segments, spool_segments);
	assert_int_equal(last->fd, -1);
	files = kit_files(&k, "main-", ".seg", NULL);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	assert_int_equal(kit_stats(&k).last_error, 0);
	assert_int_equal(kit_files(&k, "main-", ".seg", NULL), files);
	spool_rewind(k.spool);
	assert_int_equal(kit_drain(&k), k.seq[TOPIC_PROGRAM]);
}

static void
put_segments(int n)
{
	for (int i = 0; i < n; i++)
		kit_batch(&k, i % 2 ? TOPIC_PROGRAM : TOPIC_USAGE, 30);
}

static void
all_rounds_are_made_and_the_first_error_is_reported(void **state)
{
	unsigned files;

	(void)state;
	k.options.segment_bytes = 4096;
	kit_open(&k);
	put_segments(20);
	files = kit_open_files();
	fault = (struct fault){ .calls = FAULT_SYNC };	/* which counts them */
	assert_int_equal(spool_sync_all(k.spool), 0);
	/* A file each, and the folder once, in as few rounds as there is room for. */
	assert_int_equal(fault.count,
	    kit_files(&k, "main-", ".seg", NULL) + kit_files(&k, "usage-", ".seg", NULL) + 1);
	assert_int_equal(kit_stats(&k).syncs, (fault.count + 5) / 7);
	assert_int_equal(kit_open_files(), files);
	assert_int_equal(spool_sync_all(k.spool), 0);
	assert_int_equal(kit_stats(&k).last_error, 0);
	for (unsigned n = 0;; n++) {
		struct spool_stats before;
		int r;

		put_segments(20);
		before = kit_stats(&k);
		fault = (struct fault){ .calls = FAULT_SYNC, .skip = n, .times = 1, .error = EIO, .then = EDQUOT };
		r = spool_sync_all(k.spool);
		assert_int_equal(r, fault.hit ? -EIO : 0);
		if (!fault.hit)
			break;
		assert_in_range(kit_stats(&k).write_errors, before.write_errors + 1, before.write_errors + 2);
		fault.calls = 0;
		kit_drain(&k);
		kit_tick(&k);
		spool_sync_stop(k.spool);
	}
}

static void
a_folder_that_has_nothing_to_sync_is_no_error(void **state)
{
	struct spool_mark mark;

	(void)state;
	kit_open(&k);
	kit_batch(&k, TOPIC_PROGRAM, 3);
	spool_mark(k.spool, &mark);
	fault = (struct fault){ .calls = FAULT_SYNC, .times = 100, .error = EINVAL };
	assert_int_equal(spool_sync_all(k.spool), 0);
	fault.calls = 0;
	assert_int_equal(kit_stats(&k).last_error, 0);
	assert_int_equal(kit_stats(&k).write_errors, 0);
	assert_int_equal(spool_sync_up_to(k.spool, &mark), 0);
}

/* Where no descriptor can be had it is synced the next time: the file, and the name that it has. */
static void
without_a_descriptor_it_is_synced_later(void **state)
{
	(void)state;
	for (unsigned n = 0; n < 2; n++) {
		struct spool_mark mark;

		kit_open(&k);
		kit_batch(&k, TOPIC_PROGRAM, 3);
		spool_mark(k.spool, &mark);
		fault = (struct fault){ .calls = FAULT_DUP, .skip = n, .times = 1, .error = EMFILE };
		assert_int_equal(spool_sync_all(k.spool), 0);
		assert_int_equal(fault.hit, FAULT_DUP);
		fault.calls = 0;
		assert_int_equal(spool_sync_up_to(k.spool, &mark), n == 0 ? 3 : 0);
		kit_batch(&k, TOPIC_PROGRAM, 3);
		fault = (struct fault){ .calls = FAULT_SYNC };
		assert_int_equal(spool_sync_all(k.spool), 0);
		assert_int_equal(fault.count, 2);
		fault.count = 0;
		kit_batch(&k, TOPIC_PROGRAM, 3);
		assert_int_equal(spool_sync_all(k.spool), 0);
		assert_int_equal(fault.count, 1);
		assert_int_equal(spool_sync_up_to(k.spool, &mark), 0);
		kit_done(&k);
		setup(NULL);
	}
}

/* So it is when the disk's thread has written what was in memory. */
static void
a_file_that_another_thread_made_is_synced_with_its_name(void **state)
{
	struct spool_segment *seg;
	char name[64], path[512];
	int fd;

	(void)state;
	kit_open(&k);
	assert_int_equal(spool_sync_all(k.spool), 0);
	fault = (struct fault){ .calls = FAULT_CREATE, .times = 1000, .error = ENOSPC };
	kit_batch(&k, TOPIC_PROGRAM, 3);
	seg = TAILQ_FIRST(&k.spool->queues[SPOOL_MAIN].segments);
	assert_int_equal(kit_stats(&k).memory_bytes, seg->size);
	fault.calls = 0;
	spool_segment_name(seg, name);
	snprintf(path, sizeof(path), "%s/%s", k.dir, name);
	kit_store(path, seg->memory.data, seg->memory.len);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	spool_segment_written(k.spool, seg, fd);
	kit_check(&k);
	assert_int_equal(kit_stats(&k).memory_bytes, 0);
	fault = (struct fault){ .calls = FAULT_SYNC };	/* which counts them */
	assert_int_equal(spool_sync_all(k.spool), 0);
	assert_int_equal(fault.count, 2);
	fault.calls = 0;
	kit_tick(&k);
	assert_int_equal(kit_stats(&k).last_error, 0);
	assert_int_equal(kit_drain(&k), 3);
}

static void
without_a_thread_it_is_reported_until_there_is_one(void **state)
{
	(void)state;
	kit_open(&k);
	kit_batch(&k, TOPIC_PROGRAM, 3);
	fault = (struct fault){ .calls = FAULT_THREAD, .times = 2 };
	kit_tick(&k);
	assert_int_equal(kit_stats(&k).last_error, -EAGAIN);
	kit_tick(&k);
	assert_int_equal(kit_stats(&k).last_error, -EAGAIN);
	assert_int_equal(kit_stats(&k).syncs, 0);
	kit_tick(&k);
	assert_int_equal(kit_stats(&k).last_error, 0);
	spool_sync_stop(k.spool);
	assert_int_equal(kit_stats(&k).syncs, 1);
	fault = (struct fault){ .calls = FAULT_MEMORY, .times = 1 };
	kit_tick(&k);
	assert_int_equal(kit_stats(&k).last_error, -ENOMEM);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(what_waits_is_for_its_owner_alone),
		T(what_a_window_holds_is_never_taken_for_something_else),
		T(without_memory_for_a_window_reading_waits),
		T(a_torn_write_goes_on_where_it_began),
		T(a_file_that_may_only_be_read_is_read),
		T(a_file_that_cannot_be_opened_again_is_waited_for),
		T(few_files_stay_open),
		T(a_file_is_closed_once_the_next_one_has_begun),
		T(the_last_file_is_opened_again_to_be_written),
		T(all_rounds_are_made_and_the_first_error_is_reported),
		T(a_folder_that_has_nothing_to_sync_is_no_error),
		T(without_a_descriptor_it_is_synced_later),
		T(a_file_that_another_thread_made_is_synced_with_its_name),
		T(without_a_thread_it_is_reported_until_there_is_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
