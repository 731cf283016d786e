/* SPDX-License-Identifier: Apache-2.0 */
/* spool: at the limits of its process and its size: failed writes, files that cannot be opened. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/endian.h"
#include "spool_kit.h"
#include "base/crc32c.h"

static struct kit k;

static int
setup(void **state)
{
	(void)state;
	kit_init(&k);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	kit_done(&k);
	return 0;
}

/* No file may be written beyond so many bytes: the disk fails with EFBIG. */
static void
limit_files(rlim_t bytes)
{
	struct rlimit limit;

	signal(SIGXFSZ, SIG_IGN);
	if (getrlimit(RLIMIT_FSIZE, &limit) < 0)
		abort();
	limit.rlim_cur = bytes;
	if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
		abort();
}

static void
lift_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) < 0)
		abort();
	limit_files(limit.rlim_max);
}

static void
entry(size_t len)
{
	static const char text[1 << 20];

	assert_true(len <= sizeof(text));
	assert_int_equal(spool_put_wal(k.spool, text, len), 0);
}

static void
a_batch_holds_its_largest_size_to_the_byte(void **state)
{
	static const char text[SPOOL_RECORD_MAX + 1];
	size_t left;

	(void)state;
	kit_open(&k);
	assert_int_equal(spool_put_wal(k.spool, text, SPOOL_RECORD_MAX + 1), -ENOMEM);
	for (int i = 0; i < 3; i++)
		assert_int_equal(spool_put_wal(k.spool, text, SPOOL_RECORD_MAX), 0);
	left = SPOOL_BATCH_MAX - k.spool->queues[SPOOL_MAIN].batch.len - spool_entry_size(0, 0);
	assert_int_equal(spool_put_wal(k.spool, text, left + 1), -ENOMEM);
	assert_int_equal(spool_put_wal(k.spool, text, left), 0);
	assert_int_equal(spool_put_wal(k.spool, text, 0), -ENOMEM);
}

static void
put_on_a_disk_that_fails(struct kit *at)
{
	limit_files(0);
	kit_batch(at, TOPIC_PROGRAM, 7);
	lift_limit();
	kit_tick(at);
}

static void
the_seq_of_what_was_dropped_is_not_given_out_again(void **state)
{
	(void)state;
	k.options.memory_bytes = 1;	/* so that nothing can wait there */
	kit_crash(&k, put_on_a_disk_that_fails);
	kit_open(&k);
	assert_int_equal(spool_next_seq(k.spool, TOPIC_PROGRAM), 7);
}

static void
what_a_failed_write_left_is_not_there(void **state)
{
	(void)state;
	kit_open(&k);
	kit_batch(&k, TOPIC_PROGRAM, 5);
	limit_files(9000);		/* in the middle of a batch; the state has its 8 KiB */
	for (int i = 0; i < 10; i++)
		kit_batch(&k, TOPIC_PROGRAM, 50);
	lift_limit();
	assert_int_equal(kit_stats(&k).last_error, -EFBIG);
	assert_true(kit_stats(&k).write_errors > 0);
	assert_true(kit_stats(&k).memory_bytes > 0);
	kit_tick(&k);
	assert_int_equal(kit_stats(&k).last_error, 0);
	assert_int_equal(kit_stats(&k).memory_bytes, 0);
	kit_reopen(&k);
	assert_int_equal(k.recovery.torn_bytes, 0);
	assert_int_equal(k.recovery.corrupt_bytes, 0);
	assert_int_equal(kit_drain(&k), 505);
}

static void
a_disk_that_works_makes_no_errors(void **state)
{
	(void)state;
	kit_open(&k);
	for (int i = 0; i < 20; i++) {
		kit_batch(&k, TOPIC_PROGRAM, 10);
		kit_batch(&k, TOPIC_USAGE, 10);
		kit_tick(&k);
	}
	KIT_UNTIL(&k, kit_stats(&k).syncs > 0);
	assert_true(kit_stats(&k).syncs > 0);
	assert_int_equal(kit_stats(&k).write_errors, 0);
	assert_int_equal(kit_stats(&k).last_error, 0);
}

/* SigBlk of a thread. */
static uint64_t
blocked(const char *tid)
{
	char path[300], line[256];
	unsigned long long mask = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%s/status", tid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL)
		(void)sscanf(line, "SigBlk: %llx", &mask);
	fclose(f);
	return mask;
}

static void
signals_are_not_for_the_thread_that_syncs(void **state)
{
	const uint64_t term = UINT64_C(1) << (SIGTERM - 1);
	unsigned others = 0;
	char self[32];
	DIR *tasks;
	struct dirent *e;

	(void)state;
	snprintf(self, sizeof(self), "%d", (int)getpid());
	kit_open(&k);
	tasks = opendir("/proc/self/task");
	assert_non_null(tasks);
	while ((e = readdir(tasks)) != NULL)
		assert_true(e->d_name[0] == '.' || strcmp(e->d_name, self) == 0);	/* none before the first tick */
	kit_tick(&k);
	rewinddir(tasks);
	while ((e = readdir(tasks)) != NULL) {
		if (e->d_name[0] == '.' || strcmp(e->d_name, self) == 0)
			continue;
		others++;
		assert_true(blocked(e->d_name) & term);
	}
	closedir(tasks);
	assert_int_equal(others, 1);
	assert_false(blocked(self) & term);
}

static void
a_folder_that_cannot_be_made_says_why(void **state)
{
	struct spool *other = NULL;
	char error[256];
	int r;

	(void)state;
	k.options.dir = "/sys/sluice-test/deep/spool";
	r = spool_open(&k.options, &other, NULL, error, sizeof(error));
	/* Why the first could not be made; of the last one would hear only that its parent is not there. */
	assert_true(r == -EPERM || r == -EACCES || r == -EROFS);
	assert_null(other);
	assert_non_null(strstr(error, strerror(-r)));
}

static void
a_new_folder_wants_a_checkpoint_and_leaves_no_file_open(void **state)
{
	unsigned files;

	(void)state;
	kit_open(&k);
	spool_checkpoint_begin(k.spool);
	entry(200000);
	kit_commit(&k);
	kit_tick(&k);
	assert_int_equal(spool_close(k.spool), 0);	/* nothing is in flight to the disk */
	kit_open(&k);
	kit_tick(&k);
	KIT_UNTIL(&k, kit_stats(&k).syncs > 0);
	assert_false(spool_wants_checkpoint(k.spool));
	files = kit_open_files();
	tree_done(&k.tree);
	kit_tick(&k);
	assert_int_equal(access(k.dir, F_OK), 0);
	assert_true(spool_wants_checkpoint(k.spool));
	assert_int_equal(kit_open_files(), files);
}

/* Descriptor 0 is one as any other: it is the folder's, and free once the folder was made anew. */
static void
use_without_standard_input(struct kit *at)
{
	unsigned files = kit_open_files();

	for (int i = 0; i < 3; i++) {
		struct tree again = at->tree;

		kit_batch(at, TOPIC_PROGRAM, 5);
		kit_expect(kit_drain(at) == 5, "what was put comes");
		tree_done(&again);
		kit_tick(at);
		kit_expect(access(at->dir, F_OK) == 0, "the folder is there again");
		kit_batch(at, TOPIC_USAGE, 5);
		kit_expect(kit_drain(at) == 5, "what was put comes");
	}
	/* A segment of each queue; those of the folders that went are reaped when their syncs have come back. */
	KIT_UNTIL(at, kit_open_files() <= files + 2);
}

static void
close_standard_input(struct kit *at)
{
	kit_expect(spool_close(at->spool) == 0, "it closes");
	close(0);
	kit_open(at);
	use_without_standard_input(at);
	kit_expect(spool_close(at->spool) == 0, "it closes");
	kit_open(at);
	kit_expect(at->seq[TOPIC_PROGRAM] == 15 && at->seq[TOPIC_USAGE] == 15, "numbering goes on");
}

static void
it_works_where_standard_input_is_closed(void **state)
{
	(void)state;
	kit_crash(&k, close_standard_input);
}

/* The last main segment is on what cannot be synced from now on. */
static void
break_syncs(void)
{
	struct spool_segment *seg = TAILQ_LAST(&k.spool->queues[SPOOL_MAIN].segments, spool_segments);
	int fd = open(k.tree.root, O_PATH | O_CLOEXEC);

	assert_true(seg != NULL && seg->fd >= 0 && fd >= 0);
	assert_int_equal(dup3(fd, seg->fd, O_CLOEXEC), seg->fd);
	close(fd);
}

static void
a_sync_that_fails_is_told(void **state)
{
	(void)state;
	kit_open(&k);
	kit_batch(&k, TOPIC_PROGRAM, 3);
	assert_true(k.spool->has_new_names);	/* its own file's */
	break_syncs();
	kit_tick(&k);
	/* Nor can it be read now: ten seconds later it would be given up. */
	KIT_UNTIL_SYNCED(&k, kit_stats(&k).syncs > 0);
	assert_int_equal(kit_stats(&k).last_error, -EBADF);
	assert_int_equal(kit_stats(&k).write_errors, 1);
	/* Nothing is added to a file that may not be on the disk. */
	assert_int_equal(kit_files(&k, "main-", ".seg", NULL), 1);
	kit_batch(&k, TOPIC_PROGRAM, 3);
	assert_int_equal(kit_files(&k, "main-", ".seg", NULL), 2);
	kit_tick(&k);
	KIT_UNTIL_SYNCED(&k, kit_stats(&k).last_error == 0);
	assert_int_equal(kit_stats(&k).last_error, 0);
	assert_false(k.spool->has_new_names);
	assert_int_equal(kit_stats(&k).write_errors, 1);

	kit_batch(&k, TOPIC_PROGRAM, 3);
	break_syncs();
	assert_int_equal(spool_close(k.spool), -EBADF);
	kit_open(&k);
	assert_int_equal(kit_drain(&k), 9);
}

static void
a_round_of_syncs_takes_as_many_files_as_it_has_room_for(void **state)
{
	struct spool_segment *seg;
	unsigned syncing = 0, dirty = 0;

	(void)state;
	k.options.segment_bytes = 4096;
	kit_open(&k);
	for (int i = 0; i < 20; i++)
		kit_batch(&k, TOPIC_PROGRAM, 30);
	spool_tick(k.spool, k.now_ns += KIT_SECOND);
	TAILQ_FOREACH(seg, &k.spool->queues[SPOOL_MAIN].segments, at) {
		syncing += seg->is_syncing;
		dirty += seg->is_dirty;
	}
	assert_int_equal(syncing, 7);	/* and the folder */
	assert_int_equal(dirty, 13);
}

static void
without_descriptors_reading_waits(void **state)
{
	struct rlimit before, none;
	struct spool_record r;
	uint64_t n = 0;

	(void)state;
	k.options.segment_bytes = 4096;
	kit_open(&k);
	for (int i = 0; i < 100; i++)
		kit_batch(&k, TOPIC_PROGRAM, 30);
	kit_reopen(&k);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	while (spool_next(k.spool, &r)) {
		assert_true(kit_is_whole(&r));
		n++;
	}
	/* Any number of ticks does not matter. */
	for (int i = 0; i < 30; i++)
		kit_tick(&k);
	assert_false(spool_next(k.spool, &r));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(n < 3000);
	assert_int_equal(kit_stats(&k).dropped[TOPIC_PROGRAM][SPOOL_DROP_CORRUPT], 0);
	kit_tick(&k);
	spool_rewind(k.spool);
	assert_int_equal(kit_drain(&k), 3000);
}

static void
a_file_that_cannot_be_read_is_given_up_after_ten_seconds(void **state)
{
	struct spool_segment *seg, *closed = NULL;
	char name[64], path[256];
	uint64_t lost;

	(void)state;
	k.options.segment_bytes = 4096;
	kit_open(&k);
	for (int i = 0; i < 100; i++)
		kit_batch(&k, TOPIC_PROGRAM, 30);
	kit_reopen(&k);
	TAILQ_FOREACH(seg, &k.spool->queues[SPOOL_MAIN].segments, at)
		if (closed == NULL && seg->fd < 0)
			closed = seg;
	assert_non_null(closed);
	spool_segment_name(closed, name);
	snprintf(path, sizeof(path), "%s/%s", k.dir, name);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("elsewhere", path), 0);
	lost = spool_waiting(closed);
	assert_true(lost > 0);
	kit_tick(&k);
	kit_drain(&k);
	for (int i = 0; i < 9; i++) {
		kit_tick(&k);
		assert_int_equal(kit_drain(&k), 0);
	}
	assert_int_equal(kit_stats(&k).dropped[TOPIC_PROGRAM][SPOOL_DROP_CORRUPT], 0);
	assert_true(kit_stats(&k).records > lost);
	kit_tick(&k);
	kit_tick(&k);
	assert_true(kit_drain(&k) > 0);
	assert_int_equal(kit_stats(&k).dropped[TOPIC_PROGRAM][SPOOL_DROP_CORRUPT], lost);
	assert_int_equal(kit_stats(&k).records, 0);
	assert_int_equal(kit_stats(&k).acknowledged, 3000 - lost);
}

static void
unget_after_none_gives_nothing_back(void **state)
{
	struct spool_record r;

	(void)state;
	kit_open(&k);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	assert_true(spool_next(k.spool, &r));
	assert_false(spool_next(k.spool, &r));
	spool_unget(k.spool);
	assert_int_equal(spool_in_flight(k.spool), 1);
	assert_false(spool_next(k.spool, &r));
}

static void
a_segment_goes_on_unless_its_schemas_are_others(void **state)
{
	(void)state;
	kit_open(&k);
	kit_batch(&k, TOPIC_PROGRAM, 3);
	kit_reopen(&k);
	kit_batch(&k, TOPIC_PROGRAM, 3);
	assert_int_equal(kit_files(&k, "main-", ".seg", NULL), 1);
	k.options.schemas[TOPIC_COUNT - 1] = "another";
	kit_reopen(&k);
	kit_batch(&k, TOPIC_PROGRAM, 3);
	assert_int_equal(kit_files(&k, "main-", ".seg", NULL), 2);
	assert_int_equal(kit_drain(&k), 9);
}

/* Offset of the n-th batch from the end of a file's bytes; 1: the last. */
static size_t
batch_from_end(const struct kit_file *f, unsigned n)
{
	for (size_t at = f->len - 4;; at--) {
		assert_true(at > 0);
		if (memcmp(f->data + at, SPOOL_BATCH_MAGIC, 4) == 0 && --n == 0)
			return at;
	}
}

static void
a_damaged_end_of_an_older_segment_does_not_count(void **state)
{
	char path[512];
	struct kit_file f;
	size_t at;
	uint64_t bytes;

	(void)state;
	kit_open(&k);
	kit_batch(&k, TOPIC_PROGRAM, 3);
	kit_batch(&k, TOPIC_PROGRAM, 3);
	k.options.schemas[TOPIC_PROGRAM] = "another";	/* in a segment of its own */
	kit_reopen(&k);
	kit_batch(&k, TOPIC_PROGRAM, 3);
	bytes = kit_stats(&k).bytes;
	assert_int_equal(spool_close(k.spool), 0);
	k.spool = NULL;
	assert_int_equal(kit_files(&k, "main-", "1.seg", path), 1);
	f = kit_load(path);
	at = batch_from_end(&f, 1);
	f.data[at + 9] ^= 1;
	kit_store(path, f.data, f.len);
	free(f.data);
	kit_open(&k);
	assert_int_equal(k.recovery.corrupt_bytes, f.len - at);
	assert_int_equal(k.recovery.corrupt_batches, 1);
	assert_int_equal(k.recovery.torn_bytes, 0);
	assert_int_equal(kit_stats(&k).bytes, bytes - (f.len - at));
	assert_int_equal(kit_drain(&k), 6);
}

/* Sets the counts of entries and records in the last batch's head, with a valid checksum. */
static void
claim(unsigned entries, unsigned records)
{
	const size_t len = spool_batch_head_size(TOPIC_COUNT);
	char path[512];
	struct kit_file f;
	uint8_t *head;

	kit_files(&k, "main-", ".seg", path);
	f = kit_load(path);
	head = f.data + batch_from_end(&f, 2);
	le_put32(head + 12, entries);
	le_put32(head + 16, records);
	le_put32(head + 4, crc32c(0, head + 8, len - 8));
	kit_store(path, f.data, f.len);
	free(f.data);
}

static void
a_batch_whose_counts_are_not_its_entries_is_damaged(void **state)
{
	static const struct {
		unsigned entries, records, damaged;
	} cases[] = { { 3, 2, 0 }, { 2, 2, 1 }, { 3, 3, 1 }, { 4, 2, 1 }, { 3, 1, 1 } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		kit_open(&k);
		kit_put(&k, TOPIC_PROGRAM);
		kit_put(&k, TOPIC_PROGRAM);
		entry(10);
		kit_commit(&k);
		kit_batch(&k, TOPIC_PROGRAM, 1);
		assert_int_equal(spool_close(k.spool), 0);
		k.spool = NULL;
		claim(cases[i].entries, cases[i].records);
		kit_open(&k);
		assert_int_equal(k.recovery.corrupt_batches, cases[i].damaged);
		assert_in_range(kit_drain(&k), 1, 3);
		assert_int_equal(kit_stats(&k).records, 0);
		kit_done(&k);
		setup(NULL);
	}
}

static void
room_is_made_by_a_checkpoint_that_is_asked_for(void **state)
{
	uint64_t most = 0;

	(void)state;
	k.options.max_bytes = 2 << 20;
	k.options.segment_bytes = 256 << 10;
	kit_open(&k);
	spool_checkpoint_begin(k.spool);
	entry(600000);		/* so large that nothing but want of room asks for another soon */
	kit_commit(&k);
	while (kit_stats(&k).bytes < (2 << 20) - (64 << 10)) {
		assert_false(spool_wants_checkpoint(k.spool));
		kit_batch(&k, TOPIC_PROGRAM, 100);
	}
	for (int i = 0; i < 10; i++)
		kit_batch(&k, TOPIC_PROGRAM, 100);
	assert_true(spool_wants_checkpoint(k.spool));
	assert_int_equal(kit_stats(&k).dropped[TOPIC_PROGRAM][SPOOL_DROP_FULL], 0);
	/* One that never arrives is waited for up to a quarter more, and no longer. */
	for (int i = 0; i < 200; i++) {
		kit_batch(&k, TOPIC_PROGRAM, 100);
		assert_true(kit_stats(&k).bytes <= (2 << 20) + (2 << 20) / 4);
		most = kit_stats(&k).bytes > most ? kit_stats(&k).bytes : most;
	}
	assert_true(most > (2 << 20) + (2 << 20) / 4 - (32 << 10));
	assert_true(kit_stats(&k).dropped[TOPIC_PROGRAM][SPOOL_DROP_FULL] > 0);
	assert_true(spool_wants_checkpoint(k.spool));
}

static void
memory_that_gives_up_entries_wants_a_checkpoint(void **state)
{
	(void)state;
	for (int with_entries = 0; with_entries < 2; with_entries++) {
		k.options.memory_bytes = 1 << 20;
		kit_open(&k);
		spool_checkpoint_begin(k.spool);
		entry(1000000);
		kit_commit(&k);
		limit_files(8192);
		if (with_entries)
			entry(10);
		kit_batch(&k, TOPIC_PROGRAM, 1);
		while (kit_stats(&k).dropped[TOPIC_PROGRAM][SPOOL_DROP_MEMORY] == 0) {
			assert_false(spool_wants_checkpoint(k.spool));
			kit_batch(&k, TOPIC_PROGRAM, 100);
			assert_true(kit_stats(&k).memory_bytes <= 1 << 20);
		}
		assert_int_equal(spool_wants_checkpoint(k.spool), with_entries);
		/* Entries that found no room at all are missed as well. */
		if (!with_entries) {
			entry(10);
			for (int i = 0; i < 1000; i++)
				kit_put_len(&k, TOPIC_PROGRAM, 2000);
			kit_commit(&k);
			assert_true(spool_wants_checkpoint(k.spool));
		}
		lift_limit();
		kit_done(&k);
		setup(NULL);
	}
}

static void
what_the_output_has_of_a_dropped_segment_is_acknowledged_as_ever(void **state)
{
	struct spool_record r;
	uint64_t ids[20], before;

	(void)state;
	k.options.max_bytes = 1 << 20;
	k.options.segment_bytes = 64 << 10;
	kit_open(&k);
	kit_batch(&k, TOPIC_USAGE, 20);
	for (int i = 0; i < 20; i++) {
		assert_true(spool_next(k.spool, &r));
		ids[i] = r.id;
	}
	spool_ack(k.spool, ids[0]);
	while (kit_stats(&k).dropped[TOPIC_USAGE][SPOOL_DROP_FULL] == 0)
		kit_batch(&k, TOPIC_USAGE, 100);
	kit_check(&k);
	before = kit_stats(&k).records;
	assert_int_equal(spool_in_flight(k.spool), 19);
	for (int i = 1; i < 10; i++)
		spool_ack(k.spool, ids[i]);
	assert_int_equal(kit_stats(&k).acknowledged, 10);
	assert_int_equal(kit_stats(&k).records, before - 9);
	assert_int_equal(spool_in_flight(k.spool), 10);
	before = kit_stats(&k).dropped[TOPIC_USAGE][SPOOL_DROP_FULL];
	spool_rewind(k.spool);		/* the output has lost the others: now they are gone */
	assert_int_equal(kit_stats(&k).dropped[TOPIC_USAGE][SPOOL_DROP_FULL], before + 10);
	assert_int_equal(spool_in_flight(k.spool), 0);
	kit_check(&k);
	kit_drain(&k);
	assert_int_equal(kit_stats(&k).records, 0);
}

static void
what_lies_in_other_segments_stays_when_one_is_dropped(void **state)
{
	struct spool_record r;

	(void)state;
	k.options.max_bytes = 1 << 20;
	k.options.segment_bytes = 64 << 10;
	kit_open(&k);
	for (int i = 0; i < 20; i++)
		kit_batch(&k, TOPIC_USAGE, 100);
	assert_true(kit_files(&k, "usage-", ".seg", NULL) > 2);
	while (spool_next(k.spool, &r))
		;
	spool_rewind(k.spool);
	for (int i = 0; i < 1500; i++)	/* some of them are out again, in several segments, and some are not */
		assert_true(spool_next(k.spool, &r));
	while (kit_stats(&k).dropped[TOPIC_USAGE][SPOOL_DROP_FULL] == 0)
		kit_batch(&k, TOPIC_USAGE, 100);
	kit_check(&k);
	assert_int_equal(spool_in_flight(k.spool), 1500);
	spool_rewind(k.spool);
	assert_int_equal(kit_drain(&k) + kit_stats(&k).dropped[TOPIC_USAGE][SPOOL_DROP_FULL], kit_stats(&k).put);
	assert_true(kit_stats(&k).acknowledged > kit_stats(&k).dropped[TOPIC_USAGE][SPOOL_DROP_FULL]);
}

static void
a_folder_beside_us_is_made_and_a_second_owner_leaves_nothing_open(void **state)
{
	struct spool *other = NULL;
	char error[256], before[512];
	unsigned files;

	(void)state;
	assert_non_null(getcwd(before, sizeof(before)));
	assert_int_equal(chdir(k.tree.root), 0);
	k.options.dir = "beside";
	kit_open(&k);
	files = kit_open_files();
	assert_int_equal(spool_open(&k.options, &other, NULL, error, sizeof(error)), -EBUSY);
	assert_int_equal(kit_open_files(), files);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	assert_int_equal(kit_drain(&k), 1);
	assert_int_equal(chdir(before), 0);
}

static void
one_that_the_output_did_not_take_of_a_dropped_segment_is_dropped(void **state)
{
	struct spool_record r;
	uint64_t before;

	(void)state;
	k.options.max_bytes = 1 << 20;
	k.options.segment_bytes = 64 << 10;
	kit_open(&k);
	kit_batch(&k, TOPIC_USAGE, 1);
	assert_true(spool_next(k.spool, &r));
	while (k.spool->queues[SPOOL_USAGE].flight.n_out > 0 &&
	    kit_stats(&k).dropped[TOPIC_USAGE][SPOOL_DROP_FULL] == 0)
		kit_batch(&k, TOPIC_USAGE, 100);
	before = kit_stats(&k).dropped[TOPIC_USAGE][SPOOL_DROP_FULL];
	spool_unget(k.spool);
	assert_int_equal(kit_stats(&k).dropped[TOPIC_USAGE][SPOOL_DROP_FULL], before + 1);
	assert_int_equal(spool_in_flight(k.spool), 0);
	kit_check(&k);
}

static void
what_waits_in_memory_is_not_delivered_yet(void **state)
{
	struct spool *spool;

	(void)state;
	kit_open(&k);
	spool = k.spool;
	kit_batch(&k, TOPIC_PROGRAM, 4);
	limit_files(8192);
	kit_batch(&k, TOPIC_USAGE, 100);
	kit_batch(&k, TOPIC_PROGRAM, 100);
	assert_int_equal(spool_delivered(spool), 4);
	lift_limit();
	kit_tick(&k);
	assert_int_equal(spool_delivered(spool), 204);
}

static void
what_found_no_room_in_memory_is_not_delivered(void **state)
{
	struct spool *spool;

	(void)state;
	k.options.memory_bytes = 1;
	kit_open(&k);
	spool = k.spool;
	kit_batch(&k, TOPIC_PROGRAM, 4);
	limit_files(8192);
	for (int t = 0; t < TOPIC_COUNT; t++)
		for (int i = 0; i < 20; i++)
			kit_put_len(&k, t, 1000);
	kit_commit(&k);
	lift_limit();
	for (int t = 0; t < TOPIC_COUNT; t++)
		assert_int_equal(kit_stats(&k).dropped[t][SPOOL_DROP_MEMORY], 20);
	assert_int_equal(spool_delivered(spool), 4);
	kit_tick(&k);
	assert_int_equal(kit_drain(&k), 4);
}

static void
open_without_rights(struct kit *at)
{
	struct spool *spool = NULL;
	char error[512] = "";

	if (geteuid() == 0 && seteuid(65534) < 0)
		abort();
	kit_expect(spool_open(&at->options, &spool, NULL, error, sizeof(error)) == -EACCES, "it is refused");
	kit_expect(strstr(error, "no permission to write in the spool's directory") != NULL, error);
	kit_expect(strstr(error, at->dir) != NULL, "the folder is named");
}

static void
a_folder_that_is_not_ours_says_so(void **state)
{
	int status = -1;
	pid_t pid;

	(void)state;
	snprintf(k.dir, sizeof(k.dir), "%s/others", k.tree.root);
	assert_int_equal(chmod(k.tree.root, 0755), 0);
	assert_int_equal(mkdir(k.dir, 0555), 0);
	pid = fork();
	if (pid == 0) {
		open_without_rights(&k);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_batch_holds_its_largest_size_to_the_byte),
		T(the_seq_of_what_was_dropped_is_not_given_out_again),
		T(what_a_failed_write_left_is_not_there),
		T(a_disk_that_works_makes_no_errors),
		T(signals_are_not_for_the_thread_that_syncs),
		T(a_folder_that_cannot_be_made_says_why),
		T(a_new_folder_wants_a_checkpoint_and_leaves_no_file_open),
		T(it_works_where_standard_input_is_closed),
		T(a_sync_that_fails_is_told),
		T(a_round_of_syncs_takes_as_many_files_as_it_has_room_for),
		T(without_descriptors_reading_waits),
		T(a_file_that_cannot_be_read_is_given_up_after_ten_seconds),
		T(unget_after_none_gives_nothing_back),
		T(a_segment_goes_on_unless_its_schemas_are_others),
		T(a_damaged_end_of_an_older_segment_does_not_count),
		T(a_batch_whose_counts_are_not_its_entries_is_damaged),
		T(room_is_made_by_a_checkpoint_that_is_asked_for),
		T(memory_that_gives_up_entries_wants_a_checkpoint),
		T(what_the_output_has_of_a_dropped_segment_is_acknowledged_as_ever),
		T(what_lies_in_other_segments_stays_when_one_is_dropped),
		T(a_folder_beside_us_is_made_and_a_second_owner_leaves_nothing_open),
		T(one_that_the_output_did_not_take_of_a_dropped_segment_is_dropped),
		T(what_waits_in_memory_is_not_delivered_yet),
		T(what_found_no_room_in_memory_is_not_delivered),
		T(a_folder_that_is_not_ours_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
