/* SPDX-License-Identifier: Apache-2.0 */
/* spool_walk: behind damage the next batch is found, wherever it begins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "faults.h"
#include "one_spool.h"

/* Damages the head of the first batch of the only main segment, and opens the spool with that. */
static void
reopen_damaged(void)
{
	const size_t start = k.spool->queues[SPOOL_MAIN].segments.tqh_first->start;
	struct kit_file f;
	char path[512];

	kit_close(&k);
	assert_int_equal(kit_files(&k, "main-", ".seg", path), 1);
	f = kit_load(path);
	f.data[start + 10] ^= 1;
	kit_store(path, f.data, f.len);
	free(f.data);
	kit_open(&k);
}

/* So many bytes behind the damaged one, in which the search reads windows of 4096 bytes that overlap. */
static void
find_at(size_t distance)
{
	const size_t without = spool_batch_head_size(TOPIC_COUNT) + spool_entry_size(strlen("host:run-0"), 0);
	struct spool_record r;

	kit_open(&k);
	assert_int_equal(kit_put_len(&k, TOPIC_PROGRAM, distance - without), 0);
	kit_commit(&k);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	reopen_damaged();
	assert_int_equal(k.recovery.corrupt_batches, 1);
	assert_int_equal(k.recovery.corrupt_bytes, distance);
	assert_int_equal(k.recovery.records, 2);
	r = kit_next(&k);
	assert_int_equal(r.seq, 1);
	assert_int_equal(kit_next(&k).seq, 2);
	kit_expect_none(&k);
	kit_done(&k);
	setup(NULL);
}

static void
the_next_batch_is_found_wherever_it_begins(void **state)
{
	(void)state;
	find_at(300);
	for (size_t distance = 4090; distance < 4102; distance++)
		find_at(distance);
	for (size_t distance = 8180; distance < 8195; distance++)
		find_at(distance);
}

static void
so_it_is_where_the_last_window_is_full(void **state)
{
	const size_t without = spool_batch_head_size(TOPIC_COUNT) + spool_entry_size(strlen("host:run-0"), 0);

	(void)state;
	for (size_t left = 4095; left <= 4098; left++) {
		kit_open(&k);
		assert_int_equal(kit_put_len(&k, TOPIC_PROGRAM, 100), 0);
		kit_commit(&k);
		/* From the second byte of the damaged batch on. */
		assert_int_equal(kit_put_len(&k, TOPIC_PROGRAM, left + 1 - 100 - 2 * without), 0);
		kit_commit(&k);
		reopen_damaged();
		assert_int_equal(k.recovery.records, 1);
		assert_int_equal(kit_next(&k).seq, 1);
		kit_done(&k);
		setup(NULL);
	}
}

/* It has the place in the ring, and no byte follows its head. */
static void
so_is_one_without_entries_at_the_very_end(void **state)
{
	struct ring_offset offset;

	(void)state;
	kit_open(&k);
	kit_put(&k, TOPIC_PROGRAM);
	kit_commit_at(&k, 70);
	kit_commit_at(&k, 80);
	reopen_damaged();
	assert_true(spool_ring_offset(k.spool, &offset));
	assert_int_equal(offset.position, 80);
	assert_int_equal(k.recovery.torn_bytes, 0);
	assert_int_equal(k.recovery.corrupt_batches, 1);
	assert_int_equal(k.recovery.records, 0);
}

/* Their numbers are not waited for: a batch that cannot be read is as one that is acknowledged. */
static void
what_is_left_of_a_damaged_batch_counts_as_done(void **state)
{
	const struct spool_segment *seg;
	struct kit_file f;
	char path[512];
	size_t at;

	(void)state;
	kit_open(&k);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	seg = TAILQ_FIRST(&k.spool->queues[SPOOL_MAIN].segments);
	at = seg->size + spool_batch_head_size(TOPIC_COUNT);
	kit_batch(&k, TOPIC_PROGRAM, 3);
	assert_int_equal(kit_files(&k, "main-", ".seg", path), 1);
	f = kit_load(path);
	f.data[at + SPOOL_ENTRY_HEAD + 3] ^= 1;
	f.data[f.len - 1] ^= 1;
	kit_store(path, f.data, f.len);
	free(f.data);
	assert_int_equal(kit_drain(&k), 1);
	assert_int_equal(kit_stats(&k).dropped[TOPIC_PROGRAM][SPOOL_DROP_CORRUPT], 3);
	assert_int_equal(spool_done_below(k.spool, SPOOL_MAIN), 4);
	assert_int_equal(spool_handed_below(k.spool, SPOOL_MAIN), 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_next_batch_is_found_wherever_it_begins),
		T(so_it_is_where_the_last_window_is_full),
		T(so_is_one_without_entries_at_the_very_end),
		T(what_is_left_of_a_damaged_batch_counts_as_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
