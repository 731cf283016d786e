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
#define LEAST (UINT64_C(1) << 20)		/* of room: less counts as none */
#define NEAR (UINT64_C(64) << 20)
#define HEAD ((uint64_t)SPOOL_SEGMENT_HEAD_MAX + FULL_DISK_BLOCK)	/* of a new segment, and of its last block */

/* The disk has so much free. */
static void
leave_free(uint64_t bytes)
{
	full_disk.others = 0;
	full_disk.others = full_disk_free() - bytes;
}

/* The disk has so much room above its floor and the margin. */
static void
leave_room(uint64_t bytes)
{
	leave_free(STOP + bytes);
}

static void
begin_with(uint64_t floor, uint64_t room)
{
	full_disk.folder = k.tree.root;
	full_disk.total = TOTAL;
	leave_room(room);
	k.options.free_min = floor;
	k.options.segment_bytes = SEGMENT;
	kit_open(&k);
	kit_tick(&k);
}

static void
begin(uint64_t room)
{
	begin_with(FLOOR, room);
}

/* Puts so many batches of half a segment. */
static void
put_halves(enum topic topic, int n)
{
	for (; n > 0; n--) {
		for (int i = 0; i < 10; i++)
			assert_int_equal(kit_put_len(&k, topic, 3000), 0);
		(void)kit_commit(&k);
	}
}

static uint64_t
files(void)
{
	return kit_stats(&k).bytes - kit_stats(&k).memory_bytes;
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

static void
without_a_floor_the_disk_may_become_full(void **state)
{
	(void)state;
	begin_with(0, 0);
	leave_free(SEGMENT);
	kit_tick(&k);
	kit_batch(&k, TOPIC_PROGRAM, 10);
	kit_tick(&k);
	assert_int_equal(kit_stats(&k).last_error, 0);
	assert_int_equal(kit_stats(&k).memory_bytes, 0);
	assert_false(kit_stats(&k).is_at_floor);
	assert_int_equal(kit_stats(&k).floor_bytes, 0);
	assert_int_equal(kit_drain(&k), 10);
}

static void
files_may_grow_by_what_is_free_above_the_floor_and_the_margin(void **state)
{
	(void)state;
	begin(10 * SEGMENT);
	put_halves(TOPIC_PROGRAM, 40);
	/* Less than the files have, and more. */
	for (uint64_t room = files() / 2 / SEGMENT * SEGMENT; room < 100 * SEGMENT; room *= 4) {
		leave_room(room);
		kit_tick(&k);
		assert_int_equal(k.spool->files_max, files() + room);
		assert_true(spool_floor_has(k.spool, room - HEAD));
		assert_false(spool_floor_has(k.spool, room - HEAD + 1));
	}
	/* What is set aside of topics that this version does not know is in files, too. */
	leave_room(20 * SEGMENT);
	k.spool->unknown_bytes = 3 * SEGMENT;
	spool_floor_look(k.spool);
	assert_int_equal(k.spool->files_max, files() + 20 * SEGMENT);
	assert_int_equal(files(), k.spool->bytes + 3 * SEGMENT);
	assert_true(spool_floor_has(k.spool, 20 * SEGMENT - HEAD));
	assert_false(spool_floor_has(k.spool, 20 * SEGMENT - HEAD + 1));
	k.spool->unknown_bytes = 0;
}

/* Which is what they may have at the floor. */
static void
what_is_in_memory_is_in_no_file(void **state)
{
	(void)state;
	begin(SEGMENT);
	leave_room(0);
	kit_tick(&k);
	put_halves(TOPIC_PROGRAM, 4);
	assert_in_range(kit_stats(&k).memory_bytes, SEGMENT, 3 * SEGMENT);
	kit_tick(&k);
	assert_int_equal(k.spool->files_max, files());
	assert_int_equal(files(), kit_stats(&k).bytes - kit_stats(&k).memory_bytes);
}

/* Some file systems free what was removed only later. The lake may have taken it meanwhile, but not below the floor. */
static void
at_the_floor_files_may_be_as_large_again_as_they_were(void **state)
{
	uint64_t before, gone;

	(void)state;
	begin(100 * SEGMENT);
	put_halves(TOPIC_USAGE, 40);
	put_halves(TOPIC_PROGRAM, 60);
	before = files();
	leave_room(0);
	kit_tick(&k);
	assert_true(kit_stats(&k).is_at_floor);
	assert_int_equal(k.spool->files_max, before);
	k.spool->is_held[TOPIC_PROGRAM] = true;
	kit_drain(&k);
	kit_tick(&k);
	gone = before - files();
	assert_in_range(gone, 10 * SEGMENT, 30 * SEGMENT);
	/* Nothing of what is gone is free. */
	leave_room(0);
	kit_tick(&k);
	assert_int_equal(k.spool->files_max, before);
	/* It is not for more, if there were room for more above the floor; ... */
	leave_free(FLOOR + gone / SEGMENT * SEGMENT + 2 * SEGMENT);
	kit_tick(&k);
	assert_int_equal(k.spool->files_max, before);
	/* ... nor for so much, if the lake has taken that. */
	for (uint64_t left = SEGMENT; left < gone; left += 5 * SEGMENT) {
		leave_free(FLOOR + left);
		kit_tick(&k);
		assert_int_equal(k.spool->files_max, files() + left);
	}
	for (int blocks = 0; blocks < 2; blocks++) {
		leave_free(FLOOR - (uint64_t)blocks * FULL_DISK_BLOCK);
		kit_tick(&k);
		assert_int_equal(k.spool->files_max, before);
	}
	/* Away from the floor it is forgotten how large they once were. */
	leave_room(LEAST);
	kit_tick(&k);
	assert_int_equal(k.spool->files_max, before);
	kit_tick(&k);
	assert_int_equal(k.spool->files_max, files() + LEAST);
}

/* A file system with a small floor is at it only where a quarter of that is left. */
static void
less_than_a_mebibyte_of_room_or_a_quarter_of_the_floor_is_none(void **state)
{
	static const struct {
		uint64_t floor, least;
	} cases[] = {
		{ FLOOR, LEAST },
		{ (UINT64_C(9) << 20) / 2, LEAST },
		{ UINT64_C(1) << 20, UINT64_C(256) << 10 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint64_t stop = STOP - FLOOR + cases[i].floor;

		begin_with(cases[i].floor, 10 * LEAST);
		leave_free(stop + cases[i].least);
		kit_tick(&k);
		assert_false(kit_stats(&k).is_at_floor);
		assert_int_equal(kit_stats(&k).free_bytes, stop + cases[i].least);
		leave_free(stop + cases[i].least - FULL_DISK_BLOCK);
		kit_tick(&k);
		assert_true(kit_stats(&k).is_at_floor);
		kit_done(&k);
		setup(NULL);
	}
}

/* Within a second more may be taken than is there: it looks at the disk before each batch. */
static void
near_the_floor_it_looks_before_each_batch(void **state)
{
	uint64_t seen;

	(void)state;
	begin(NEAR);
	leave_room(NEAR);
	kit_tick(&k);
	seen = kit_stats(&k).free_bytes;
	leave_room(NEAR - FULL_DISK_BLOCK);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	assert_int_equal(kit_stats(&k).free_bytes, seen);
	leave_room(NEAR - FULL_DISK_BLOCK);
	kit_tick(&k);
	assert_int_equal(kit_stats(&k).free_bytes, seen - FULL_DISK_BLOCK);
	leave_room(0);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	assert_int_equal(kit_stats(&k).free_bytes, STOP);
	assert_true(kit_stats(&k).is_at_floor);
}

/* Where files are that small, all that waits in them would be dropped for one batch. */
static void
files_give_way_only_if_they_are_two_segments_and_twice_the_batch(void **state)
{
	(void)state;
	begin(100 * SEGMENT);
	put_halves(TOPIC_PROGRAM, 20);
	k.spool->files_max = 2 * SEGMENT;
	assert_false(spool_floor_is_cramped(k.spool, SEGMENT - HEAD));
	assert_true(spool_floor_is_cramped(k.spool, SEGMENT - HEAD + 1));
	k.spool->files_max = 2 * SEGMENT - 1;
	assert_true(spool_floor_is_cramped(k.spool, 1));
	k.spool->files_max = 6 * SEGMENT;
	assert_false(spool_floor_is_cramped(k.spool, 3 * SEGMENT - HEAD));
	assert_true(spool_floor_is_cramped(k.spool, 3 * SEGMENT - HEAD + 1));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_oldest_give_way_and_the_floor_stays_free),
		T(what_others_take_costs_no_record_that_is_there),
		T(a_spool_without_room_keeps_batches_in_memory),
		T(a_small_disk_has_a_floor_of_a_twentieth),
		T(without_a_floor_the_disk_may_become_full),
		T(files_may_grow_by_what_is_free_above_the_floor_and_the_margin),
		T(what_is_in_memory_is_in_no_file),
		T(at_the_floor_files_may_be_as_large_again_as_they_were),
		T(less_than_a_mebibyte_of_room_or_a_quarter_of_the_floor_is_none),
		T(near_the_floor_it_looks_before_each_batch),
		T(files_give_way_only_if_they_are_two_segments_and_twice_the_batch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
