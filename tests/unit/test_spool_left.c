/* SPDX-License-Identifier: Apache-2.0 */
/* spool_recover: files of any name and kind, segments of an older version, and unsynced data after a kill. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "faults.h"
#include "one_spool.h"

static const char *
in_dir(const char *name)
{
	static char path[300];

	snprintf(path, sizeof(path), "%s/%s", k.dir, name);
	return path;
}

static bool
is_there(const char *name)
{
	struct stat st;

	return lstat(in_dir(name), &st) == 0;
}

/* A segment with one batch of a few records of the first topic of its list. */
static void
make_segment(const char *name, const struct spool_segment_head *h, unsigned records)
{
	uint8_t data[8192], text[100];
	struct spool_batch_head b = { .entries = records, .records = records, .queue = h->queue, .segment = h->number,
	    .first = h->first, .counts = { records }, .next_seq = { records, 55 } };
	size_t len = spool_segment_head_pack(data, h), at = len + spool_batch_head_size(h->n_topics);

	b.offset = len;
	for (unsigned seq = 0; seq < records; seq++) {
		char key[64];
		enum topic topic = TOPIC_TASK;
		struct spool_entry e = { .kind = SPOOL_ENTRY_RECORD, .topic = 0, .seq = seq,
		    .time_us = KIT_TIME + (int64_t)seq, .key = key, .data = text,
		    .data_len = kit_data(topic, seq, 30, text) };

		snprintf(key, sizeof(key), "host:run-%u", seq);
		e.key_len = strlen(key);
		spool_entry_pack(data + at, &e);
		at += spool_entry_size(e.key_len, e.data_len);
		b.len += (uint32_t)spool_entry_size(e.key_len, e.data_len);
	}
	spool_batch_head_pack(data + len, &b, h->n_topics);
	kit_store(in_dir(name), data, at);
}

static const struct spool_segment_head older = { .queue = SPOOL_MAIN, .number = 4, .first = 10, .needed_from = 4,
	.n_topics = 2, .topics = { { "sluice.task", 4711, 2 }, { "sluice.program", 4712, 54 } } };

static void
a_segment_of_an_older_program_is_read_and_left_as_it_is(void **state)
{
	struct spool_record r;

	(void)state;
	kit_open(&k);
	kit_close(&k);
	make_segment("main-0000000004.seg", &older, 3);
	kit_open(&k);
	assert_int_equal(k.recovery.records, 3);
	assert_int_equal(k.recovery.corrupt_batches, 0);
	assert_int_equal(k.seq[TOPIC_TASK], 3);
	assert_int_equal(k.seq[TOPIC_PROGRAM], 55);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	assert_true(is_there("main-0000000005.seg"));
	for (uint64_t seq = 0; seq < 3; seq++) {
		assert_true(spool_next(k.spool, &r));
		assert_true(kit_is_whole(&r));
		assert_int_equal(r.topic, TOPIC_TASK);
		assert_int_equal(r.seq, seq);
		assert_int_equal(r.schema, 4711);
		assert_int_equal(r.id >> SPOOL_ID_BITS, 10 + seq);
		spool_ack(k.spool, r.id);
	}
	assert_int_equal(kit_drain(&k), 1);
}

static void
a_segment_that_is_not_what_its_name_says_is_put_aside(void **state)
{
	struct spool_segment_head h[] = { older, older, older, older, older, older };
	const unsigned good[] = { 1, 1, 0, 0, 0, 1 };

	(void)state;
	h[1].first = SPOOL_NUMBER_MAX;
	h[2].first = SPOOL_NUMBER_MAX + 1;
	h[3].queue = SPOOL_USAGE;
	h[4].number = 3;
	strcpy(h[5].topics[1].name, "sluice.gpu");
	for (size_t i = 0; i < sizeof(h) / sizeof(h[0]); i++) {
		kit_open(&k);
		kit_close(&k);
		make_segment("main-0000000004.seg", &h[i], 2);
		kit_open(&k);
		assert_int_equal(k.recovery.unreadable, !good[i]);
		assert_int_equal(is_there("main-0000000004.seg"), good[i]);
		assert_int_equal(is_there("main-0000000004.seg.bad"), !good[i]);
		assert_int_equal(k.recovery.records, good[i] ? 2 : 0);
		assert_int_equal(kit_stats(&k).records, k.recovery.records);
		kit_done(&k);
		setup(NULL);
	}
}

static void
files_of_other_names_and_kinds_are_left_alone(void **state)
{
	static const char *const names[] = { "main-", "main-1.seg", "main-x.seg", "usage-00000000009.seg", "entries",
	    "main-0000000003.seq", "main-18446744073709551615.seg", "main-9223372036854775808.seg" };
	char target[300];

	(void)state;
	kit_open(&k);
	kit_close(&k);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		kit_store(in_dir(names[i]), "text", 4);
	kit_store(in_dir("usage-0000000007.seg.bad"), "text", 4);
	/* What is a segment by its name only. */
	assert_int_equal(mkdir(in_dir("main-0000000002.seg"), 0700), 0);
	assert_int_equal(mkfifo(in_dir("main-0000000003.seg"), 0600), 0);
	snprintf(target, sizeof(target), "%s", in_dir("main-0000000004.seg"));
	assert_int_equal(symlink("entries", target), 0);
	for (int turn = 0; turn < 2; turn++) {
		kit_open(&k);
		assert_int_equal(k.recovery.unreadable, turn == 0 ? 3 : 0);
		assert_int_equal(k.recovery.torn_bytes, 0);
		assert_false(k.recovery.is_fresh);
		kit_close(&k);
	}
	kit_open(&k);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct kit_file f = kit_load(in_dir(names[i]));

		assert_int_equal(f.len, 4);
		free(f.data);
	}
	assert_true(is_there("main-0000000002.seg.bad"));
	assert_true(is_there("main-0000000004.seg.bad"));
	kit_batch(&k, TOPIC_PROGRAM, 1);
	kit_batch(&k, TOPIC_USAGE, 1);
	assert_true(is_there("main-0000000005.seg"));
	assert_true(is_there("usage-0000000008.seg"));
}

static void
no_spool_was_there_only_if_nothing_of_one_is(void **state)
{
	(void)state;
	for (int what = 0; what < 4; what++) {
		kit_open(&k);
		assert_true(k.recovery.is_fresh);
		if (what > 0)
			kit_batch(&k, what == 1 ? TOPIC_PROGRAM : TOPIC_USAGE, 1);
		kit_close(&k);
		if (what > 0)
			assert_int_equal(unlink(in_dir("state")), 0);
		if (what == 3)
			assert_int_equal(unlink(in_dir("main-0000000001.seg")), 0);
		kit_open(&k);
		assert_false(k.recovery.is_fresh);
		assert_int_equal(k.recovery.was_clean, what == 0);
		kit_done(&k);
		setup(NULL);
	}
}

static unsigned n_segments;

static void
put_segments(struct kit *at)
{
	for (unsigned i = 0; i < n_segments; i++)
		kit_batch(at, TOPIC_PROGRAM, 30);
}

/* What a killed owner wrote is synced at once; the last segment's records are handed out with the next round. */
static void
what_a_kill_left_is_put_on_the_disk(void **state)
{
	(void)state;
	k.options.segment_bytes = 4096;
	for (n_segments = 1; n_segments < 100; n_segments += 49) {
		struct spool_mark mark;

		kit_crash(&k, put_segments);
		fault = (struct fault){ .calls = FAULT_SYNC };	/* which counts them */
		kit_open(&k);
		assert_int_equal(k.recovery.records, n_segments * 30);
		assert_int_equal(fault.count, 2 + n_segments);	/* the folder and the state file, too */
		spool_mark(k.spool, &mark);
		assert_int_equal(spool_sync_up_to(k.spool, &mark), 30);
		fault.count = 0;
		assert_int_equal(spool_sync_all(k.spool), 0);
		assert_int_equal(fault.count, 1);
		assert_int_equal(spool_sync_up_to(k.spool, &mark), 0);
		assert_int_equal(kit_drain(&k), n_segments * 30);
		kit_done(&k);
		setup(NULL);
		k.options.segment_bytes = 4096;
	}
	/* One that cannot be is never called safe; it is handed out all the same. */
	n_segments = 3;
	for (unsigned n = 0; n < 4; n++) {	/* the state file, the folder, two segments */
		struct spool_mark mark;

		k.options.is_sync_first = true;
		kit_crash(&k, put_segments);
		fault = (struct fault){ .calls = FAULT_SYNC, .skip = n, .times = 1, .error = EIO };
		kit_open(&k);
		fault.calls = 0;
		assert_int_equal(spool_sync_all(k.spool), 0);
		spool_mark(k.spool, &mark);
		assert_int_equal(spool_sync_up_to(k.spool, &mark), n < 2 ? 0 : 30);
		assert_int_equal(kit_drain(&k), 90);
		kit_close(&k);
		fault = (struct fault){ .calls = FAULT_SYNC };
		kit_open(&k);		/* after a clean end none is needed */
		assert_int_equal(fault.count, 0);
		kit_done(&k);
		setup(NULL);
		k.options.segment_bytes = 4096;
	}
}

static unsigned n_handed;

static void
hand_out(struct kit *at)
{
	struct spool_record r;

	kit_batch(at, TOPIC_PROGRAM, 10000);
	for (unsigned i = 0; i < n_handed; i++)
		kit_expect(spool_next(at->spool, &r), "one more comes");
}

/* From the first one on, and where the promise is made anew. */
static void
not_one_that_was_handed_out_before_a_kill_comes_unmarked(void **state)
{
	static const unsigned handed[] = { 1, 2, 8192, 8193, 8194 };

	(void)state;
	for (size_t i = 0; i < sizeof(handed) / sizeof(handed[0]); i++) {
		struct spool_record r;

		n_handed = handed[i];
		kit_crash(&k, hand_out);
		kit_open(&k);
		for (unsigned n = 0; n < 10000; n++) {
			assert_true(spool_next(k.spool, &r));
			assert_int_equal(r.seq, n);
			if (n < n_handed)
				assert_true(r.is_again);
		}
		assert_int_equal(kit_stats(&k).handed_again, n_handed <= 8192 ? 8192 : 10000);
		kit_done(&k);
		setup(NULL);
	}
}

/* Segments of which all is acknowledged and that were not removed in time, unless a replay needs them. */
static void
what_nobody_needs_any_more_is_removed(void **state)
{
	(void)state;
	for (int with_entries = 0; with_entries < 2; with_entries++) {
		struct kit_file files[3][2];
		struct spool_record r;
		char name[64];

		k.options.segment_bytes = 4096;
		kit_open(&k);
		for (int i = 1; i <= 4; i++) {
			if (with_entries && i == 2)
				assert_int_equal(spool_put_wal(k.spool, "entry", 4), 0);
			kit_batch(&k, TOPIC_PROGRAM, 30);
			kit_batch(&k, TOPIC_USAGE, 30);
		}
		for (int i = 0; i < 3; i++) {
			for (int q = 0; q < SPOOL_QUEUES; q++) {
				snprintf(name, sizeof(name), "%s-%010d.seg", q == SPOOL_MAIN ? "main" : "usage", i + 1);
				files[i][q] = kit_load(in_dir(name));
				/* Damaged, so that reading it fails. */
				if (!with_entries)
					files[i][q].data[files[i][q].len - 10] ^= 1;
			}
		}
		/* All but the last segment of each queue. */
		for (int i = 0; i < 2 * 90 + 30; i++) {
			assert_true(spool_next(k.spool, &r));
			if (r.seq < 90)
				spool_ack(k.spool, r.id);
		}
		kit_tick(&k);
		assert_int_equal(kit_files(&k, "usage-", ".seg", NULL), 1);
		kit_close(&k);
		for (int i = 0; i < 3; i++) {
			for (int q = 0; q < SPOOL_QUEUES; q++) {
				snprintf(name, sizeof(name), "%s-%010d.seg", q == SPOOL_MAIN ? "main" : "usage", i + 1);
				kit_store(in_dir(name), files[i][q].data, files[i][q].len);
				free(files[i][q].data);
			}
		}
		kit_open(&k);
		assert_int_equal(k.recovery.records, 60);
		assert_int_equal(k.recovery.corrupt_batches, 0);
		assert_int_equal(kit_files(&k, "usage-", ".seg", NULL), 1);
		assert_false(is_there("main-0000000001.seg"));
		assert_int_equal(is_there("main-0000000002.seg"), with_entries);
		kit_batch(&k, TOPIC_PROGRAM, 3);
		kit_batch(&k, TOPIC_USAGE, 3);
		assert_int_equal(kit_drain(&k), 66);
		kit_done(&k);
		setup(NULL);
	}
}

/* A read that fails while the spool is opened: data after it does not count, and is left unchanged. */
static void
what_cannot_be_read_is_not_written_over(void **state)
{
	unsigned n_bad = 0;

	(void)state;
	for (unsigned n = 0;; n++) {
		struct kit_file before, after;
		uint64_t bad;

		kit_open(&k);
		for (int i = 0; i < 3; i++) {
			assert_int_equal(kit_put_len(&k, TOPIC_PROGRAM, 150000), 0);
			kit_commit(&k);
		}
		kit_close(&k);
		before = kit_load(in_dir("main-0000000001.seg"));
		fault = (struct fault){ .calls = FAULT_READ, .skip = n, .times = 1, .error = EIO };
		kit_open(&k);
		fault.calls = 0;
		bad = k.recovery.corrupt_bytes;
		n_bad += bad > 0;
		assert_int_equal(k.recovery.corrupt_batches, bad > 0);
		assert_true(bad == 0 || kit_stats(&k).bytes + bad == before.len);
		kit_batch(&k, TOPIC_TASK, 1);
		assert_int_equal(is_there("main-0000000002.seg"), bad > 0 || k.recovery.unreadable > 0);
		assert_int_equal(kit_drain(&k), k.recovery.records + 1);
		assert_int_equal(kit_stats(&k).records, 0);
		after = kit_load(in_dir(k.recovery.unreadable ? "main-0000000001.seg.bad" : "main-0000000001.seg"));
		assert_true(after.len >= before.len);
		assert_memory_equal(after.data, before.data, before.len);
		free(before.data);
		free(after.data);
		kit_done(&k);
		setup(NULL);
		if (!fault.hit)
			break;
	}
	assert_true(n_bad > 1);
}

static void
a_torn_end_that_cannot_be_cut_off_is_not_added_to(void **state)
{
	(void)state;
	for (int is_failing = 0; is_failing < 2; is_failing++) {
		struct kit_file f;

		kit_open(&k);
		kit_batch(&k, TOPIC_PROGRAM, 3);
		kit_batch(&k, TOPIC_PROGRAM, 3);
		kit_close(&k);
		f = kit_load(in_dir("main-0000000001.seg"));
		kit_store(in_dir("main-0000000001.seg"), f.data, f.len - 5);
		free(f.data);
		fault = (struct fault){ .calls = FAULT_CUT, .times = (unsigned)is_failing, .error = EIO };
		kit_open(&k);
		fault.calls = 0;
		assert_true(k.recovery.torn_bytes > 0);
		assert_int_equal(k.recovery.records, 3);
		kit_batch(&k, TOPIC_PROGRAM, 2);
		assert_int_equal(is_there("main-0000000002.seg"), is_failing);
		kit_reopen(&k);
		assert_int_equal(k.recovery.torn_bytes, 0);
		assert_int_equal(k.recovery.corrupt_batches, is_failing);
		assert_int_equal(kit_drain(&k), 5);
		kit_done(&k);
		setup(NULL);
	}
}

/* A disk that was read-only as the spool was opened, and is not any more. */
static void
what_could_only_be_read_is_not_added_to(void **state)
{
	struct spool_segment *old;
	unsigned seen = 0;

	(void)state;
	for (unsigned n = 0; n < 8; n++) {
		kit_open(&k);
		kit_put(&k, TOPIC_PROGRAM);
		kit_put(&k, TOPIC_USAGE);
		assert_int_equal(kit_commit(&k), 0);
		spool_close(k.spool);
		k.spool = NULL;
		fault = (struct fault){ .calls = FAULT_OPEN, .skip = n, .times = 1, .error = EROFS };
		if (spool_open(&k.options, &k.spool, &k.recovery, (char[512]){ 0 }, 512) < 0) {
			k.spool = NULL;		/* it was the folder itself */
			continue;
		}
		fault.calls = 0;
		for (int q = 0; q < SPOOL_QUEUES; q++) {
			old = TAILQ_LAST(&k.spool->queues[q].segments, spool_segments);
			seen += old != NULL && old->fd >= 0 && (fcntl(old->fd, F_GETFL, 0) & O_ACCMODE) == O_RDONLY;
		}
		kit_put(&k, TOPIC_PROGRAM);
		kit_put(&k, TOPIC_USAGE);
		assert_int_equal(kit_commit(&k), 0);
		spool_close(k.spool);
		k.spool = NULL;
	}
	assert_int_equal(seen, SPOOL_QUEUES);	/* of the queues' last, each once */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_segment_of_an_older_program_is_read_and_left_as_it_is),
		T(a_segment_that_is_not_what_its_name_says_is_put_aside),
		T(files_of_other_names_and_kinds_are_left_alone),
		T(no_spool_was_there_only_if_nothing_of_one_is),
		T(what_a_kill_left_is_put_on_the_disk),
		T(not_one_that_was_handed_out_before_a_kill_comes_unmarked),
		T(what_nobody_needs_any_more_is_removed),
		T(what_cannot_be_read_is_not_written_over),
		T(a_torn_end_that_cannot_be_cut_off_is_not_added_to),
		T(what_could_only_be_read_is_not_added_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
