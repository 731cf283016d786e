/* SPDX-License-Identifier: Apache-2.0 */
/* spool: at the limits of its size and memory, and on a disk without room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include "faults.h"
#include "one_spool.h"

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
count_entry(const void *data, size_t len, void *arg)
{
	(void)data;
	(void)len;
	++*(unsigned *)arg;
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
room_is_made_by_a_checkpoint_that_is_asked_for(void **state)
{
	uint64_t most = 0;

	(void)state;
	k.options.max_bytes = 2 << 20;
	k.options.segment_bytes = 256 << 10;
	kit_open(&k);
	spool_checkpoint_begin(k.spool);
	kit_put_entry(&k, 600000);		/* so large that nothing but want of room asks for another soon */
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

static unsigned
replayed(void)
{
	unsigned n = 0;

	spool_replay(k.spool, count_entry, &n);
	return n;
}

/* A state that no batch holds is written neither in part nor again and again; the last whole one is replayed. */
static void
a_checkpoint_that_does_not_fit_is_abandoned(void **state)
{
	uint64_t bytes;

	(void)state;
	kit_open(&k);
	spool_checkpoint_begin(k.spool);
	kit_put_entry(&k, 100);
	kit_put_entry(&k, 100);
	kit_commit(&k);
	bytes = kit_stats(&k).bytes;
	kit_put_entry(&k, 100);
	kit_put(&k, TOPIC_PROGRAM);
	spool_checkpoint_begin(k.spool);
	for (int i = 0; i < 100; i++)
		kit_put_entry(&k, 1 << 20);
	kit_put(&k, TOPIC_PROGRAM);
	kit_commit(&k);
	assert_int_equal(kit_stats(&k).abandoned, 1);
	for (int i = 0; i < 100; i++) {
		assert_false(spool_wants_checkpoint(k.spool));
		kit_put_entry(&k, 100);
		kit_commit(&k);
	}
	assert_in_range(kit_stats(&k).bytes, bytes, bytes + (64 << 10));
	assert_int_equal(replayed(), 103);
	kit_reopen(&k);
	assert_int_equal(replayed(), 103);
	assert_int_equal(kit_drain(&k), 2);
	k.spool->abandoned_bytes = k.spool->since_checkpoint / 4;
	assert_true(spool_wants_checkpoint(k.spool));
	spool_checkpoint_begin(k.spool);
	kit_put_entry(&k, 100);
	kit_commit(&k);
	assert_false(spool_wants_checkpoint(k.spool));
	assert_int_equal(replayed(), 1);
}

/* Where no checkpoint fits, the log gives way to records. */
static void
without_a_checkpoint_the_log_goes_first(void **state)
{
	(void)state;
	k.options.max_bytes = 2 << 20;
	k.options.segment_bytes = 64 << 10;
	kit_open(&k);
	kit_batch(&k, TOPIC_USAGE, 100);
	spool_checkpoint_begin(k.spool);
	kit_put_entry(&k, 100);
	kit_commit(&k);
	for (int i = 0; i < 500; i++) {
		if (i % 100 == 0) {
			spool_checkpoint_begin(k.spool);
			kit_put_entry(&k, 900000);
		}
		kit_put_entry(&k, 20000);
		kit_commit(&k);
		assert_in_range(kit_stats(&k).bytes, 0, (2 << 20) + (2 << 20) / 4);
	}
	assert_int_equal(kit_stats(&k).abandoned, 5);
	assert_int_equal(kit_stats(&k).dropped[TOPIC_USAGE][SPOOL_DROP_FULL], 0);
	assert_int_equal(kit_drain(&k), 100);
}

/* On a disk that fails a large state is not kept in the place of records; once it can be written, it is wanted. */
static void
a_large_checkpoint_waits_for_the_disk(void **state)
{
	(void)state;
	k.options.memory_bytes = 1 << 20;
	kit_open(&k);
	limit_files(8192);
	kit_batch(&k, TOPIC_PROGRAM, 100);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(spool_wants_checkpoint(k.spool), i == 0);
		spool_checkpoint_begin(k.spool);
		kit_put_entry(&k, 600000);
		kit_batch(&k, TOPIC_PROGRAM, 10);
	}
	assert_int_equal(kit_stats(&k).dropped[TOPIC_PROGRAM][SPOOL_DROP_MEMORY], 0);
	lift_limit();
	kit_tick(&k);
	assert_int_equal(kit_stats(&k).last_error, 0);
	assert_true(spool_wants_checkpoint(k.spool));
	assert_int_equal(kit_drain(&k), 200);
}

static void
memory_that_gives_up_entries_wants_a_checkpoint(void **state)
{
	(void)state;
	for (int with_entries = 0; with_entries < 2; with_entries++) {
		k.options.memory_bytes = 1 << 20;
		kit_open(&k);
		spool_checkpoint_begin(k.spool);
		kit_put_entry(&k, 1000000);
		kit_commit(&k);
		limit_files(8192);
		if (with_entries)
			kit_put_entry(&k, 10);
		kit_batch(&k, TOPIC_PROGRAM, 1);
		while (kit_stats(&k).dropped[TOPIC_PROGRAM][SPOOL_DROP_MEMORY] == 0) {
			assert_false(spool_wants_checkpoint(k.spool));
			kit_batch(&k, TOPIC_PROGRAM, 100);
			assert_true(kit_stats(&k).memory_bytes <= 1 << 20);
		}
		assert_int_equal(spool_wants_checkpoint(k.spool), with_entries);
		/* Entries that found no room at all are missed as well. */
		if (!with_entries) {
			kit_put_entry(&k, 10);
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
	while (k.spool->queues[SPOOL_USAGE].topics[TOPIC_USAGE].flight.n_out > 0 &&
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_batch_holds_its_largest_size_to_the_byte),
		T(the_seq_of_what_was_dropped_is_not_given_out_again),
		T(what_a_failed_write_left_is_not_there),
		T(room_is_made_by_a_checkpoint_that_is_asked_for),
		T(a_checkpoint_that_does_not_fit_is_abandoned),
		T(without_a_checkpoint_the_log_goes_first),
		T(a_large_checkpoint_waits_for_the_disk),
		T(memory_that_gives_up_entries_wants_a_checkpoint),
		T(what_the_output_has_of_a_dropped_segment_is_acknowledged_as_ever),
		T(what_lies_in_other_segments_stays_when_one_is_dropped),
		T(one_that_the_output_did_not_take_of_a_dropped_segment_is_dropped),
		T(what_waits_in_memory_is_not_delivered_yet),
		T(what_found_no_room_in_memory_is_not_delivered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
