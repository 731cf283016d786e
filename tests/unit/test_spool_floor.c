/* SPDX-License-Identifier: Apache-2.0 */
/* spool: on a disk that is almost full, whose floor stays free. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "faults.h"
#include "full_disk.h"
#include "one_spool.h"

#define TOTAL (UINT64_C(1) << 30)
#define FLOOR (UINT64_C(32) << 20)
#define STOP (FLOOR + (UINT64_C(128) << 20))	/* with the margin */
#define SEGMENT (UINT64_C(64) << 10)

/* The disk has so much room above its floor and the margin. */
static void
leave_room(uint64_t bytes)
{
	full_disk.others = 0;
	full_disk.others = full_disk_free() - STOP - bytes;
}

static void
begin(uint64_t room)
{
	full_disk.folder = k.tree.root;
	full_disk.total = TOTAL;
	leave_room(room);
	k.options.free_min = FLOOR;
	k.options.segment_bytes = SEGMENT;
	kit_open(&k);
	kit_tick(&k);
}

static uint64_t
dropped(enum spool_drop reason)
{
	const struct spool_stats st = kit_stats(&k);
	uint64_t n = 0;

	for (int t = 0; t < TOPIC_COUNT; t++)
		n += st.dropped[t][reason];
	return n;
}

static void
the_oldest_give_way_and_the_floor_stays_free(void **state)
{
	uint64_t kept;

	(void)state;
	begin(40 * SEGMENT);
	for (int i = 0; i < 100; i++) {
		for (int n = 0; n < 10; n++)
			assert_int_equal(kit_put_len(&k, i % 2 ? TOPIC_PROGRAM : TOPIC_USAGE, 3000), 0);
		(void)kit_commit(&k);
		assert_true(full_disk_free() >= STOP);
		if (i % 10 == 0)
			kit_tick(&k);
		assert_true(full_disk_free() >= STOP);
	}
	assert_true(kit_stats(&k).is_at_floor);
	assert_int_equal(kit_stats(&k).floor_bytes, FLOOR);
	assert_int_equal(kit_stats(&k).last_error, 0);
	assert_int_equal(dropped(SPOOL_DROP_MEMORY), 0);
	assert_true(dropped(SPOOL_DROP_FULL) > 0);
	assert_int_equal(kit_stats(&k).dropped[TOPIC_PROGRAM][SPOOL_DROP_FULL], 0);	/* Usage gives way first */
	/* There is room again: it grows, and nothing more is lost. */
	leave_room(200 * SEGMENT);
	kept = dropped(SPOOL_DROP_FULL);
	kit_tick(&k);
	assert_false(kit_stats(&k).is_at_floor);
	for (int i = 0; i < 50; i++) {
		for (int n = 0; n < 10; n++)
			assert_int_equal(kit_put_len(&k, TOPIC_PROGRAM, 3000), 0);
		(void)kit_commit(&k);
	}
	assert_int_equal(dropped(SPOOL_DROP_FULL), kept);
	KIT_UNTIL(&k, kit_stats(&k).syncs > 0);
	assert_int_equal(kit_drain(&k) + kept, 1500);
}

static void
what_others_take_costs_no_record_that_is_there(void **state)
{
	(void)state;
	begin(20 * SEGMENT);
	for (int i = 0; i < 20; i++) {
		for (int n = 0; n < 10; n++)
			assert_int_equal(kit_put_len(&k, TOPIC_PROGRAM, 3000), 0);
		(void)kit_commit(&k);
	}
	full_disk.others = TOTAL;
	kit_tick(&k);
	assert_true(kit_stats(&k).is_at_floor);
	assert_int_equal(kit_stats(&k).free_bytes, 0);
	assert_int_equal(kit_stats(&k).records, 200);
	assert_int_equal(dropped(SPOOL_DROP_FULL), 0);
}

static void
a_spool_without_room_keeps_batches_in_memory(void **state)
{
	(void)state;
	begin(SEGMENT);
	leave_room(0);
	kit_tick(&k);
	kit_batch(&k, TOPIC_PROGRAM, 100);
	assert_int_equal(kit_stats(&k).last_error, -ENOSPC);
	assert_true(kit_stats(&k).memory_bytes > 0);
	assert_true(full_disk_free() >= STOP);
	kit_tick(&k);
	assert_true(kit_stats(&k).memory_bytes > 0);
	assert_true(full_disk_free() >= STOP);
	leave_room(100 * SEGMENT);
	kit_tick(&k);
	assert_int_equal(kit_stats(&k).last_error, 0);
	assert_int_equal(kit_stats(&k).memory_bytes, 0);
	assert_int_equal(kit_drain(&k), 100);
	assert_int_equal(dropped(SPOOL_DROP_FULL) + dropped(SPOOL_DROP_MEMORY), 0);
}

static void
a_small_disk_has_a_floor_of_a_twentieth(void **state)
{
	(void)state;
	full_disk.folder = k.tree.root;
	full_disk.total = UINT64_C(64) << 20;
	full_disk.others = 0;
	k.options.free_min = UINT64_C(1) << 30;
	kit_open(&k);
	kit_batch(&k, TOPIC_PROGRAM, 10);
	assert_int_equal(kit_stats(&k).last_error, 0);
	assert_int_equal(kit_stats(&k).floor_bytes, (UINT64_C(64) << 20) / 20);
	assert_false(kit_stats(&k).is_at_floor);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_oldest_give_way_and_the_floor_stays_free),
		T(what_others_take_costs_no_record_that_is_there),
		T(a_spool_without_room_keeps_batches_in_memory),
		T(a_small_disk_has_a_floor_of_a_twentieth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
