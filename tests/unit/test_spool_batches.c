/* SPDX-License-Identifier: Apache-2.0 */
/* spool: the exact bytes of batches, the exact size that needs a checkpoint, the exact time of a tick's work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "faults.h"
#include "one_spool.h"

/* Returns the head of the n-th batch of a segment, from 0; *head: the segment's own head. */
static struct spool_batch_head
batch_of(const char *path, unsigned n, struct spool_segment_head *head)
{
	struct kit_file f = kit_load(path);
	struct spool_batch_head h;
	size_t at;

	assert_int_equal(spool_segment_head_unpack(f.data, f.len, head), 0);
	for (at = head->len;; at += spool_batch_head_size(TOPIC_COUNT) + h.len) {
		assert_true(at + spool_batch_head_size(TOPIC_COUNT) <= f.len);
		assert_int_equal(spool_batch_head_unpack(f.data + at, TOPIC_COUNT, &h), 0);
		assert_int_equal(h.offset, at);
		if (n-- == 0)
			break;
	}
	free(f.data);
	return h;
}

static void
heads_say_what_is_behind_them(void **state)
{
	const size_t entry = spool_entry_size(strlen("host:run-0"), 20);
	struct spool_segment_head s;
	struct spool_batch_head h;
	char path[512];

	(void)state;
	kit_open(&k);
	assert_int_equal(kit_put_len(&k, TOPIC_PROGRAM, 20), 0);
	assert_int_equal(kit_put_len(&k, TOPIC_TASK, 20), 0);
	assert_int_equal(kit_put_len(&k, TOPIC_PROGRAM, 20), 0);
	assert_int_equal(kit_put_len(&k, TOPIC_USAGE, 20), 0);
	k.seq[TOPIC_HOST] = 5;
	assert_int_equal(kit_commit_at(&k, 77), 0);
	kit_put_entry(&k, 9);
	assert_int_equal(kit_put_len(&k, TOPIC_PROGRAM, 20), 0);
	assert_int_equal(kit_commit_at(&k, 78), 0);
	spool_checkpoint_begin(k.spool);
	kit_put_entry(&k, 3);
	assert_int_equal(kit_commit(&k), 0);
	assert_int_equal(kit_stats(&k).commits, 3);

	assert_int_equal(kit_files(&k, "usage-", ".seg", path), 1);
	h = batch_of(path, 0, &s);
	assert_int_equal(s.queue, SPOOL_USAGE);
	assert_int_equal(s.number, 1);
	assert_int_equal(s.needed_from, 1);
	assert_int_equal(h.queue, SPOOL_USAGE);
	assert_int_equal(h.records, 1);
	assert_int_equal(h.flags, 0);
	assert_int_equal(h.counts[TOPIC_USAGE], 1);
	assert_int_equal(h.counts[TOPIC_PROGRAM], 0);

	assert_int_equal(kit_files(&k, "main-", ".seg", path), 1);
	h = batch_of(path, 0, &s);
	assert_int_equal(s.queue, SPOOL_MAIN);
	assert_int_equal(s.first, 0);
	assert_int_equal(s.n_topics, TOPIC_COUNT);
	for (int t = 0; t < TOPIC_COUNT; t++) {
		assert_string_equal(s.topics[t].name, topic_name(t));
		assert_int_equal(s.topics[t].schema, spool_fingerprint(topic_name(t), strlen(topic_name(t))));
		assert_int_equal(s.topics[t].next_seq, 0);
	}
	assert_int_equal(h.len, 3 * entry);
	assert_int_equal(h.entries, 3);
	assert_int_equal(h.records, 3);
	assert_int_equal(h.flags, SPOOL_BATCH_RING_OFFSET);
	assert_int_equal(h.queue, SPOOL_MAIN);
	assert_int_equal(h.segment, 1);
	assert_int_equal(h.first, 0);
	assert_int_equal(h.ring_offset.position, 77);
	assert_int_equal(h.ring_offset.ring_id, 7);
	assert_string_equal(h.ring_offset.boot_id, "b3f1f8a1-0c5e-4f5e-8f7e-2f3f6d1f0b11");
	for (int t = 0; t < TOPIC_COUNT; t++) {
		assert_int_equal(h.counts[t], t == TOPIC_PROGRAM ? 2 : t == TOPIC_TASK);
		assert_int_equal(h.next_seq[t],
		    t == TOPIC_PROGRAM ? 2 : t == TOPIC_HOST ? 5 : t == TOPIC_TASK || t == TOPIC_USAGE);
	}
	h = batch_of(path, 1, &s);
	assert_int_equal(h.len, spool_entry_size(0, 9) + entry);
	assert_int_equal(h.entries, 2);
	assert_int_equal(h.records, 1);
	assert_int_equal(h.first, 3);
	assert_int_equal(h.flags, SPOOL_BATCH_RING_OFFSET | SPOOL_BATCH_WAL);
	assert_int_equal(h.ring_offset.position, 78);
	assert_int_equal(h.counts[TOPIC_PROGRAM], 1);
	assert_int_equal(h.counts[TOPIC_TASK], 0);
	h = batch_of(path, 2, &s);
	assert_int_equal(h.entries, 2);
	assert_int_equal(h.records, 0);
	assert_int_equal(h.first, 4);
	assert_int_equal(h.flags, SPOOL_BATCH_RING_OFFSET | SPOOL_BATCH_WAL | SPOOL_BATCH_CHECKPOINT);
	assert_int_equal(h.ring_offset.position, 78);		/* none was given: it is where it was */

	/* The next segment knows where numbering is, and from where on a replay needs segments. */
	k.options.schemas[TOPIC_RUN] = "another";
	kit_reopen(&k);
	kit_batch(&k, TOPIC_PROGRAM, 2);
	assert_int_equal(kit_files(&k, "main-", ".seg", path), 2);
	h = batch_of(path, 0, &s);
	assert_int_equal(s.number, 2);
	assert_int_equal(s.first, 4);
	assert_int_equal(s.needed_from, 1);
	assert_int_equal(s.topics[TOPIC_PROGRAM].next_seq, 3);
	assert_int_equal(s.topics[TOPIC_HOST].next_seq, 5);
	assert_int_equal(h.segment, 2);
	assert_int_equal(h.first, 4);
	assert_int_equal(h.next_seq[TOPIC_PROGRAM], 5);
}

static const struct ring_offset offsets[] = {
	{ "b3f1f8a1-0c5e-4f5e-8f7e-2f3f6d1f0b11", 7, 0 },
	{ "b3f1f8a1-0c5e-4f5e-8f7e-2f3f6d1f0b11", 8, 0 },
	{ "b3f1f8a1-0c5e-4f5e-8f7e-2f3f6d1f0b12", 8, 0 },
	{ "b3f1f8a1-0c5e-4f5e-8f7e-2f3f6d1f0b12", 8, 1 },
};
static unsigned at_offset;

static void
commit_an_offset(struct kit *at)
{
	for (int i = 0; i < 3; i++)
		kit_expect(spool_commit(at->spool, &offsets[at_offset], NULL) == 0, "it is committed");
	kit_expect(kit_stats(at).commits == 1, "and once");
}

static void
commit_a_seq(struct kit *at)
{
	uint64_t next_seq[TOPIC_COUNT] = { 0 };

	next_seq[TOPIC_HOST] = 77;
	for (int i = 0; i < 3; i++)
		kit_expect(spool_commit(at->spool, NULL, next_seq) == 0, "it is committed");
	next_seq[TOPIC_HOST] = 76;	/* it never falls */
	kit_expect(spool_commit(at->spool, NULL, next_seq) == 0, "it is committed");
	kit_expect(kit_stats(at).commits == 1, "and once");
	kit_expect(spool_next_seq(at->spool, TOPIC_HOST) == 77, "it is the highest");
}

static void
an_offset_or_a_seq_alone_outlives_a_crash(void **state)
{
	struct ring_offset ring_offset;

	(void)state;
	for (at_offset = 0; at_offset < sizeof(offsets) / sizeof(offsets[0]); at_offset++) {
		memset(&ring_offset, 0xee, sizeof(ring_offset));
		kit_crash(&k, commit_an_offset);
		kit_open(&k);
		assert_true(spool_ring_offset(k.spool, &ring_offset));
		assert_memory_equal(&ring_offset, &offsets[at_offset], sizeof(ring_offset));
		kit_close(&k);
	}
	kit_crash(&k, commit_a_seq);
	kit_open(&k);
	for (int t = 0; t < TOPIC_COUNT; t++)
		assert_int_equal(spool_next_seq(k.spool, t), t == TOPIC_HOST ? 77 : 0);
}

static void
entries_want_a_checkpoint_at_a_quarter_of_a_segment(void **state)
{
	const size_t quarter = 16 << 10, overhead = spool_entry_size(0, 0);

	(void)state;
	k.options.segment_bytes = 4 * quarter;
	kit_open(&k);
	assert_true(spool_wants_checkpoint(k.spool));
	kit_put_entry(&k, 1000);			/* before a checkpoint, or in its batch: they do not count */
	spool_checkpoint_begin(k.spool);
	kit_put_entry(&k, 1000);
	kit_commit(&k);
	for (int i = 0; i < 10; i++) {
		assert_false(spool_wants_checkpoint(k.spool));
		kit_batch(&k, TOPIC_PROGRAM, 2);	/* records alone never want one */
		kit_batch(&k, TOPIC_USAGE, 1);
	}
	kit_put_entry(&k, quarter / 2 - overhead);
	kit_commit(&k);
	kit_put_entry(&k, quarter / 4 - overhead);
	kit_put_entry(&k, quarter / 4 - overhead);
	kit_commit(&k);
	assert_false(spool_wants_checkpoint(k.spool));
	kit_batch(&k, TOPIC_PROGRAM, 1);
	assert_false(spool_wants_checkpoint(k.spool));
	kit_put_entry(&k, 0);
	assert_false(spool_wants_checkpoint(k.spool));	/* not before its commit */
	kit_commit(&k);
	assert_true(spool_wants_checkpoint(k.spool));
	/* A large one lasts longer: for four times its own size. */
	spool_checkpoint_begin(k.spool);
	kit_commit(&k);
	kit_reopen(&k);
	assert_false(spool_wants_checkpoint(k.spool));
	kit_put_entry(&k, quarter - overhead);
	kit_commit(&k);
	assert_false(spool_wants_checkpoint(k.spool));
	kit_reopen(&k);
	assert_false(spool_wants_checkpoint(k.spool));
	kit_put_entry(&k, 0);
	kit_commit(&k);
	assert_true(spool_wants_checkpoint(k.spool));
	kit_reopen(&k);
	assert_true(spool_wants_checkpoint(k.spool));
}

static void
a_large_checkpoint_is_wanted_again_after_four_times_its_size(void **state)
{
	const size_t head = spool_batch_head_size(TOPIC_COUNT);
	const size_t large = head + spool_entry_size(0, 0) + spool_entry_size(0, 7000);

	(void)state;
	k.options.segment_bytes = 16 << 10;
	for (int more = -1; more <= 1; more++) {
		size_t since = 0;

		kit_open(&k);
		spool_checkpoint_begin(k.spool);
		kit_put_entry(&k, 7000);
		kit_commit(&k);
		/* In three batches, of which the last ones are in other segments. */
		for (int i = 0; i < 3; i++) {
			size_t len = (i < 2 ? large : 2 * large + (size_t)more) - head;

			assert_false(spool_wants_checkpoint(k.spool));
			assert_int_equal(kit_put_len(&k, TOPIC_PROGRAM,
			    len - spool_entry_size(strlen("host:run-0"), 0)), 0);
			kit_commit(&k);
			since += head + len;
		}
		assert_int_equal(since, 4 * large + (size_t)more);
		assert_int_equal(kit_files(&k, "main-", ".seg", NULL), 3);
		assert_int_equal(spool_wants_checkpoint(k.spool), more >= 0);
		kit_done(&k);
		kit_init(&k);
		k.options.segment_bytes = 16 << 10;
	}
}

static void
put_takes_keys_and_batches_up_to_their_limits(void **state)
{
	static char key[UINT16_MAX + 2], data[1 << 20];
	struct spool_record r;
	struct spool *spool;
	size_t left;

	(void)state;
	data[0] = 'd';
	k.options.max_bytes = 1 << 20;
	kit_open(&k);
	spool = k.spool;
	memset(key, 'k', UINT16_MAX + 1);
	assert_int_equal(spool_put(spool, &(struct encoded_record){ TOPIC_RUN, 1, 0, key, data, 1 }), -EMSGSIZE);
	key[UINT16_MAX] = '\0';
	assert_int_equal(spool_put(spool, &(struct encoded_record){ TOPIC_RUN, 1, 0, key, data, 1 }), 0);
	/* A batch is at most half of what there may be. */
	left = (1 << 19) - spool_batch_head_size(TOPIC_COUNT) - spool_entry_size(UINT16_MAX, 1) -
	    spool_entry_size(1, 0);
	assert_int_equal(spool_put(spool, &(struct encoded_record){ TOPIC_RUN, 1, 1, "k", data, left + 1 }), -EMSGSIZE);
	assert_int_equal(spool_put(spool, &(struct encoded_record){ TOPIC_RUN, 1, 1, "k", data, left }), 0);
	assert_int_equal(spool_put(spool, &(struct encoded_record){ TOPIC_RUN, 1, 2, "", data, 0 }), -EMSGSIZE);
	assert_int_equal(spool_put(spool, &(struct encoded_record){ TOPIC_USAGE, 1, 0, "", data, 0 }), 0);	/* in a batch of its own */
	assert_int_equal(kit_stats(&k).put, 3);
	kit_commit(&k);
	assert_int_equal(kit_stats(&k).records, 3);
	assert_true(spool_next(k.spool, &r));
	assert_string_equal(r.key, key);
	assert_int_equal(r.len, 1);
	assert_memory_equal(r.data, "d", 1);
	assert_true(spool_next(k.spool, &r));
	assert_string_equal(r.key, "k");
	assert_int_equal(r.len, left);
	assert_true(spool_next(k.spool, &r));
	assert_string_equal(r.key, "");
	assert_int_equal(r.len, 0);
	for (int reason = 0; reason < SPOOL_DROPS; reason++)
		assert_non_null(strstr(spool_drop_name(reason), "spool_"));
	assert_null(spool_drop_name(SPOOL_DROPS));
}

static void
the_oldest_is_of_whichever_queue(void **state)
{
	(void)state;
	kit_open(&k);
	k.seq[TOPIC_PROGRAM] = 10;	/* a record's time rises with its seq */
	k.seq[TOPIC_USAGE] = 5;
	kit_batch(&k, TOPIC_PROGRAM, 3);
	assert_true(kit_stats(&k).oldest_us == KIT_TIME + 10);
	kit_batch(&k, TOPIC_USAGE, 3);
	assert_true(kit_stats(&k).oldest_us == KIT_TIME + 5);
	k.seq[TOPIC_TASK] = 1;		/* behind an older one */
	kit_batch(&k, TOPIC_TASK, 1);
	kit_tick(&k);
	assert_true(kit_stats(&k).oldest_us == KIT_TIME + 5);
	assert_int_equal(kit_drain(&k), 7);
	assert_int_equal(kit_stats(&k).oldest_us, 0);	/* at once */
	kit_tick(&k);
	kit_put(&k, TOPIC_PROGRAM);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	assert_true(kit_stats(&k).oldest_us == KIT_TIME + 13);
}

static void
a_disk_that_fails_is_tried_once_a_second(void **state)
{
	uint64_t now = 100 * KIT_SECOND, errors;

	(void)state;
	kit_open(&k);
	spool_tick(k.spool, now);
	fault = (struct fault){ .calls = FAULT_CREATE, .times = 1000, .error = ENOSPC };
	kit_batch(&k, TOPIC_PROGRAM, 1);
	errors = kit_stats(&k).write_errors;
	assert_int_equal(errors, 1);
	for (int i = 0; i < 3; i++) {
		kit_batch(&k, TOPIC_PROGRAM, 1);	/* which do not try */
		spool_tick(k.spool, now + SPOOL_RETRY_NS - 1);
		assert_int_equal(kit_stats(&k).write_errors, errors);
		now += SPOOL_RETRY_NS;
		spool_tick(k.spool, now);
		assert_int_equal(kit_stats(&k).write_errors, ++errors);
	}
	/* A clock that has gone back. */
	now = 5 * KIT_SECOND;
	spool_tick(k.spool, now);
	assert_int_equal(kit_stats(&k).write_errors, ++errors);
	spool_tick(k.spool, now);
	assert_int_equal(kit_stats(&k).write_errors, errors);
	assert_int_equal(kit_stats(&k).last_error, -ENOSPC);
	fault.calls = 0;
	spool_tick(k.spool, now + SPOOL_RETRY_NS);
	assert_int_equal(kit_stats(&k).last_error, 0);
	assert_int_equal(kit_stats(&k).memory_bytes, 0);
	assert_int_equal(kit_drain(&k), 4);
}

static void
the_folder_is_looked_at_once_a_second(void **state)
{
	uint64_t now = 100 * KIT_SECOND;

	(void)state;
	kit_open(&k);
	spool_tick(k.spool, now);
	for (int i = 0; i < 2; i++) {
		tree_done(&k.tree);
		spool_tick(k.spool, now + SPOOL_RETRY_NS - 1);
		assert_int_equal(access(k.dir, F_OK), -1);
		assert_int_equal(kit_stats(&k).last_error, 0);
		now += SPOOL_RETRY_NS;
		spool_tick(k.spool, now);
		assert_int_equal(access(k.dir, F_OK), 0);
		assert_int_equal(kit_stats(&k).write_errors, i + 1);
	}
	tree_done(&k.tree);
	spool_tick(k.spool, 5 * KIT_SECOND);	/* a clock that has gone back */
	assert_int_equal(access(k.dir, F_OK), 0);
}

static void
what_was_put_last_is_committed_at_the_end(void **state)
{
	(void)state;
	kit_open(&k);
	kit_put(&k, TOPIC_PROGRAM);
	kit_put(&k, TOPIC_USAGE);
	kit_close(&k);
	kit_open(&k);
	assert_int_equal(k.recovery.records, 2);
	assert_int_equal(kit_drain(&k), 2);
}

static void
an_end_that_is_not_on_the_disk_is_reported(void **state)
{
	static const unsigned calls[] = { FAULT_REWRITE, FAULT_SYNC };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		kit_open(&k);
		fault = (struct fault){ .calls = calls[i], .times = 100, .error = EDQUOT };
		assert_int_equal(spool_close(k.spool), -EDQUOT);
		fault.calls = 0;
		k.spool = NULL;
		kit_open(&k);
		kit_close(&k);
	}
	/* What was in memory gets its place on the disk at the end. */
	kit_open(&k);
	fault = (struct fault){ .calls = FAULT_CREATE, .times = 1, .error = ENOSPC };
	kit_batch(&k, TOPIC_PROGRAM, 3);
	assert_int_equal(kit_stats(&k).last_error, -ENOSPC);
	kit_close(&k);
	kit_open(&k);
	assert_true(k.recovery.was_clean);
	assert_int_equal(kit_drain(&k), 3);
}

static void
what_is_given_up_in_memory_is_a_small_part_of_it(void **state)
{
	static const struct { uint64_t memory, step; } cases[] = {
		{ 1 << 20, 64 << 10 }, { 4 << 20, 256 << 10 }, { 32 << 20, 1 << 20 },
	};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		uint64_t largest = 0, each = 0;
		const struct spool_segment *seg;

		k.options.memory_bytes = cases[i].memory;
		kit_open(&k);
		fault = (struct fault){ .calls = FAULT_CREATE, .times = 1000000, .error = ENOSPC };
		while (kit_stats(&k).memory_bytes < cases[i].memory - cases[i].step) {
			uint64_t before = kit_stats(&k).memory_bytes;

			assert_int_equal(kit_put_len(&k, TOPIC_PROGRAM, 10000), 0);
			kit_commit(&k);
			each = kit_stats(&k).memory_bytes - before;
		}
		TAILQ_FOREACH(seg, &k.spool->queues[SPOOL_MAIN].segments, at)
			largest = seg->size > largest ? seg->size : largest;
		assert_in_range(largest, cases[i].step - 2 * each, cases[i].step);
		fault.calls = 0;
		kit_done(&k);
		kit_init(&k);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(heads_say_what_is_behind_them),
		T(an_offset_or_a_seq_alone_outlives_a_crash),
		T(entries_want_a_checkpoint_at_a_quarter_of_a_segment),
		T(a_large_checkpoint_is_wanted_again_after_four_times_its_size),
		T(put_takes_keys_and_batches_up_to_their_limits),
		T(the_oldest_is_of_whichever_queue),
		T(a_disk_that_fails_is_tried_once_a_second),
		T(the_folder_is_looked_at_once_a_second),
		T(what_was_put_last_is_committed_at_the_end),
		T(an_end_that_is_not_on_the_disk_is_reported),
		T(what_is_given_up_in_memory_is_a_small_part_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
