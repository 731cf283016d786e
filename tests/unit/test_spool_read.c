/* SPDX-License-Identifier: Apache-2.0 */
/* spool_read and spool_room: temporarily failing reads, recalled records, and room to the byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "faults.h"
#include "one_spool.h"

static void
tick_at(uint64_t now_ns)
{
	spool_tick(k.spool, now_ns);
	kit_check(&k);
}

static void
fail_reads(int error)
{
	fault = (struct fault){ .calls = FAULT_READ, .times = 1000000, .error = error };
}

static void
a_disk_that_cannot_be_read_is_waited_for_ten_seconds_and_no_more(void **state)
{
	const uint64_t began = 100 * KIT_SECOND, over = began + SPOOL_READ_PATIENCE_NS;

	(void)state;
	kit_open(&k);
	tick_at(began);
	fail_reads(EIO);
	kit_batch(&k, TOPIC_PROGRAM, 3);
	kit_expect_none(&k);
	tick_at(over - 1);
	kit_expect_none(&k);
	assert_int_equal(kit_stats(&k).records, 3);
	/* What can be read once more makes it begin anew. */
	fault.calls = 0;
	tick_at(over - 1);
	spool_ack(k.spool, kit_next(&k).id);
	fail_reads(EIO);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	spool_sync_stop(k.spool);
	k.spool->queues[SPOOL_MAIN].cursor.reader.seg = NULL;	/* nothing of it is in the window */
	tick_at(over);
	kit_expect_none(&k);
	tick_at(over + SPOOL_READ_PATIENCE_NS - 1);
	kit_expect_none(&k);
	assert_int_equal(kit_stats(&k).records, 3);
	tick_at(over + SPOOL_READ_PATIENCE_NS + 1);
	kit_expect_none(&k);
	assert_int_equal(kit_stats(&k).records, 0);
	assert_int_equal(kit_stats(&k).dropped[TOPIC_PROGRAM][SPOOL_DROP_CORRUPT], 3);
	fault.calls = 0;
	kit_batch(&k, TOPIC_PROGRAM, 2);
	assert_int_equal(kit_drain(&k), 2);
}

static void
what_was_out_before_is_given_up_one_by_one(void **state)
{
	const uint64_t began = 100 * KIT_SECOND;

	(void)state;
	kit_open(&k);
	kit_batch(&k, TOPIC_PROGRAM, 2);
	kit_batch(&k, TOPIC_TASK, 1);
	for (int i = 0; i < 3; i++)
		(void)kit_next(&k);
	tick_at(began);
	spool_rewind(k.spool);
	k.spool->queues[SPOOL_MAIN].cursor.reader.seg = NULL;
	fail_reads(EIO);
	kit_expect_none(&k);
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(kit_stats(&k).records, 3 - i);
		tick_at(began + (i + 1) * (SPOOL_READ_PATIENCE_NS + KIT_SECOND));
		kit_expect_none(&k);
	}
	assert_int_equal(kit_stats(&k).records, 0);
	assert_int_equal(kit_stats(&k).dropped[TOPIC_PROGRAM][SPOOL_DROP_CORRUPT], 2);
	assert_int_equal(kit_stats(&k).dropped[TOPIC_TASK][SPOOL_DROP_CORRUPT], 1);
	assert_int_equal(kit_stats(&k).acknowledged, 0);
	assert_int_equal(kit_stats(&k).handed_again, 0);
}

static void
want_of_memory_and_files_and_a_disk_that_hangs_are_nobodys_damage(void **state)
{
	static const int errors[] = { ENOMEM, EMFILE, ENFILE, ETIMEDOUT };

	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		kit_open(&k);
		fail_reads(errors[i]);
		kit_batch(&k, TOPIC_PROGRAM, 3);
		for (int n = 0; n < 30; n++) {
			kit_tick(&k);
			kit_expect_none(&k);
		}
		fault.calls = 0;
		kit_tick(&k);
		assert_int_equal(kit_drain(&k), 3);
		kit_done(&k);
		setup(NULL);
	}
}

static void
nothing_is_recalled_that_is_not_out(void **state)
{
	struct spool_record a, b;

	(void)state;
	kit_open(&k);
	spool_unget(k.spool);			/* of none */
	kit_batch(&k, TOPIC_PROGRAM, 4);
	assert_true(spool_has_more(k.spool));
	a = kit_next(&k);
	b = kit_next(&k);
	spool_ack(k.spool, b.id);
	spool_unget(k.spool);			/* it is acknowledged */
	assert_int_equal(spool_in_flight(k.spool), 1);
	spool_ack(k.spool, a.id);
	spool_unget(k.spool);			/* and gone */
	assert_int_equal(spool_in_flight(k.spool), 0);
	assert_int_equal(kit_next(&k).seq, 2);
	assert_true(spool_has_more(k.spool));
	assert_int_equal(kit_next(&k).seq, 3);
	assert_false(spool_has_more(k.spool));
	spool_rewind(k.spool);
	assert_true(spool_has_more(k.spool));
	spool_unget(k.spool);			/* nor is it out now */
	assert_int_equal(kit_stats(&k).handed_again, 0);
	for (int i = 0; i < 2; i++) {
		a = kit_next(&k);
		assert_int_equal(a.seq, 2);
		assert_true(a.is_again);
		assert_int_equal(kit_stats(&k).handed_again, 1);
		if (i == 0)
			spool_unget(k.spool);
	}
	spool_ack(k.spool, a.id ^ 1);		/* one of the other queue, which is not there */
	assert_int_equal(kit_stats(&k).records, 2);
	kit_batch(&k, TOPIC_USAGE, 1);
	b = kit_next(&k);
	assert_int_equal(b.seq, 3);
	b = kit_next(&k);
	assert_int_equal(b.topic, TOPIC_USAGE);
	spool_unget(k.spool);
	spool_rewind(k.spool);			/* the order is as it ever was */
	assert_int_equal(kit_next(&k).seq, 2);
	assert_int_equal(kit_drain(&k), 2);
	spool_rewind(k.spool);
	assert_int_equal(kit_drain(&k), 1);
	assert_int_equal(kit_stats(&k).acknowledged, 5);
}

/* The older checkpoint's segments go once the newer one is on the disk, and it alone. */
static void
a_checkpoint_counts_once_its_own_bytes_are_synced(void **state)
{
	(void)state;
	kit_open(&k);
	spool_checkpoint_begin(k.spool);
	kit_commit(&k);
	k.options.schemas[TOPIC_RUN] = "another";	/* in a segment of its own */
	kit_reopen(&k);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	assert_int_equal(kit_drain(&k), 1);
	assert_int_equal(spool_sync_all(k.spool), 0);
	spool_checkpoint_begin(k.spool);
	kit_commit(&k);
	spool_reap(k.spool);
	assert_int_equal(kit_files(&k, "main-", ".seg", NULL), 2);
	assert_int_equal(spool_sync_all(k.spool), 0);
	spool_reap(k.spool);
	assert_int_equal(kit_files(&k, "main-", ".seg", NULL), 1);
}

/* A batch of one record that takes so many bytes, in the queue of its topic. */
static void
put_bytes(enum topic topic, size_t bytes)
{
	size_t without = spool_batch_head_size(TOPIC_COUNT) + spool_entry_size(0, 0);
	struct spool *spool = k.spool;
	static uint8_t data[1 << 20];

	assert_in_range(bytes, without, without + sizeof(data));
	assert_int_equal(spool_put(spool, &(struct encoded_record){ topic, KIT_TIME, k.seq[topic]++, "", data, bytes - without }), 0);
	kit_commit(&k);
}

static void
the_spool_fills_up_to_its_last_byte(void **state)
{
	const uint64_t max = 1 << 20, large = 20000;

	(void)state;
	k.options.max_bytes = max;
	for (int more = 0; more < 2; more++) {
		uint64_t left;

		kit_open(&k);
		while ((left = max - kit_stats(&k).bytes) >= 2 * large)
			put_bytes(TOPIC_PROGRAM, large);
		/* The rest to the byte, in a segment that has begun: the head of one is not foreseen. */
		put_bytes(TOPIC_PROGRAM, left - large / 2);
		left = max - kit_stats(&k).bytes;
		put_bytes(TOPIC_PROGRAM, left + (uint64_t)more);
		assert_int_equal(kit_stats(&k).dropped[TOPIC_PROGRAM][SPOOL_DROP_FULL] > 0, more);
		assert_true(kit_stats(&k).bytes <= max);
		kit_done(&k);
		setup(NULL);
		k.options.max_bytes = max;
	}
}

static void
memory_holds_what_it_is_allowed_to_the_byte(void **state)
{
	const uint64_t len = 50000, with_head = len + SPOOL_SEGMENT_HEAD_MAX;

	(void)state;
	for (int less = 0; less < 2; less++) {
		k.options.memory_bytes = with_head - (uint64_t)less;
		kit_open(&k);
		fault = (struct fault){ .calls = FAULT_CREATE, .times = 1000, .error = ENOSPC };
		put_bytes(TOPIC_PROGRAM, len);
		assert_int_equal(kit_stats(&k).dropped[TOPIC_PROGRAM][SPOOL_DROP_MEMORY], less);
		assert_int_equal(kit_stats(&k).records, !less);
		fault.calls = 0;
		kit_done(&k);
		setup(NULL);
	}
	/* A second one, beside the existing one. */
	for (int less = 0; less < 2; less++) {
		kit_open(&k);
		fault = (struct fault){ .calls = FAULT_CREATE, .times = 1000, .error = ENOSPC };
		put_bytes(TOPIC_PROGRAM, len);
		k.spool->memory_max = kit_stats(&k).memory_bytes + with_head - (uint64_t)less;
		put_bytes(TOPIC_PROGRAM, len);
		assert_int_equal(kit_stats(&k).dropped[TOPIC_PROGRAM][SPOOL_DROP_MEMORY], less);
		assert_int_equal(kit_stats(&k).records, 2 - less);
		fault.calls = 0;
		kit_done(&k);
		setup(NULL);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_disk_that_cannot_be_read_is_waited_for_ten_seconds_and_no_more),
		T(what_was_out_before_is_given_up_one_by_one),
		T(want_of_memory_and_files_and_a_disk_that_hangs_are_nobodys_damage),
		T(nothing_is_recalled_that_is_not_out),
		T(a_checkpoint_counts_once_its_own_bytes_are_synced),
		T(the_spool_fills_up_to_its_last_byte),
		T(memory_holds_what_it_is_allowed_to_the_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
