/* SPDX-License-Identifier: Apache-2.0 */
/* spool: files that cannot be synced, opened or read, or that are damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include "base/crc32c.h"
#include "base/endian.h"
#include "faults.h"
#include "one_spool.h"

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
a_sync_that_fails_is_reported(void **state)
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

/* Changes the head of the last batch but one, which gets a valid checksum. */
static void
change_head(void (*change)(uint8_t *head, const unsigned *by), const unsigned *by)
{
	const size_t len = spool_batch_head_size(TOPIC_COUNT);
	char path[512];
	struct kit_file f;
	uint8_t *head;

	kit_files(&k, "main-", ".seg", path);
	f = kit_load(path);
	head = f.data + batch_from_end(&f, 2);
	change(head, by);
	le_put32(head + 4, crc32c(0, head + 8, len - 8));
	kit_store(path, f.data, f.len);
	free(f.data);
}

/* Sets the counts of entries and of records. */
static void
claim(uint8_t *head, const unsigned *by)
{
	le_put32(head + 12, by[0]);
	le_put32(head + 16, by[1]);
}

static void
a_batch_whose_counts_are_not_its_entries_is_damaged(void **state)
{
	static const struct {
		unsigned counts[2], damaged;
	} cases[] = { { { 3, 2 }, 0 }, { { 2, 2 }, 1 }, { { 3, 3 }, 1 }, { { 4, 2 }, 1 }, { { 3, 1 }, 1 } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		kit_open(&k);
		kit_put(&k, TOPIC_PROGRAM);
		kit_put(&k, TOPIC_PROGRAM);
		kit_put_entry(&k, 10);
		kit_commit(&k);
		kit_batch(&k, TOPIC_PROGRAM, 1);
		assert_int_equal(spool_close(k.spool), 0);
		k.spool = NULL;
		change_head(claim, cases[i].counts);
		kit_open(&k);
		assert_int_equal(k.recovery.corrupt_batches, cases[i].damaged);
		assert_in_range(kit_drain(&k), 1, 3);
		assert_int_equal(kit_stats(&k).records, 0);
		kit_done(&k);
		setup(NULL);
	}
}

/* Moves the count of records of one topic to another. */
static void
claim_other(uint8_t *head, const unsigned *by)
{
	uint8_t *from = head + 96 + by[0] * 16 + 8, *to = head + 96 + by[1] * 16 + 8;

	le_put32(to, le_get32(to) + le_get32(from));
	le_put32(from, 0);
}

/* Else what a head does not count would be passed over, and then be lost as damaged. */
static void
records_are_read_whichever_topic_their_head_counts(void **state)
{
	struct spool_record r;

	(void)state;
	kit_open(&k);
	kit_batch(&k, TOPIC_TASK, 1);
	kit_batch(&k, TOPIC_TASK, 1);		/* at which the topic gets a cursor of its own */
	kit_batch(&k, TOPIC_PROGRAM, 2);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	assert_int_equal(spool_close(k.spool), 0);
	k.spool = NULL;
	change_head(claim_other, (const unsigned[]){ TOPIC_PROGRAM, TOPIC_TASK });
	kit_open(&k);
	assert_int_equal(k.recovery.corrupt_batches, 0);
	assert_int_equal(k.recovery.records, 5);
	assert_true(spool_next(k.spool, &r));
	assert_int_equal(r.topic, TOPIC_TASK);
	spool_unget(k.spool);
	spool_hold(k.spool, TOPIC_TASK);
	assert_int_equal(kit_drain(&k), 3);
	spool_release(k.spool, TOPIC_TASK);
	assert_int_equal(kit_drain(&k), 2);
	assert_int_equal(kit_stats(&k).dropped[TOPIC_PROGRAM][SPOOL_DROP_CORRUPT], 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_disk_that_works_makes_no_errors),
		T(signals_are_not_for_the_thread_that_syncs),
		T(a_sync_that_fails_is_reported),
		T(a_round_of_syncs_takes_as_many_files_as_it_has_room_for),
		T(without_descriptors_reading_waits),
		T(a_file_that_cannot_be_read_is_given_up_after_ten_seconds),
		T(unget_after_none_gives_nothing_back),
		T(a_segment_goes_on_unless_its_schemas_are_others),
		T(a_damaged_end_of_an_older_segment_does_not_count),
		T(a_batch_whose_counts_are_not_its_entries_is_damaged),
		T(records_are_read_whichever_topic_their_head_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
