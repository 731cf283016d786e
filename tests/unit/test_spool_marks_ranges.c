/* SPDX-License-Identifier: Apache-2.0 */
/* spool_marks: ranges of acknowledged records in the state file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "faults.h"
#include "marks_kit.h"

/* Acknowledged: every other of them. */
static void
as_many_ranges_are_kept_as_there_is_room_for(void **state)
{
	(void)state;
	for (unsigned more = 0; more < 2; more++) {
		const unsigned n = 2 * (SKIPS_MAX + more);
		struct kit_file f;

		kit_batch(&k, TOPIC_PROGRAM, n);
		kit_batch(&k, TOPIC_USAGE, 2);
		hand_out(n, UINT64_C(0xaaaaaaaaaaaaaaaa));
		kit_reopen(&k);
		/* The rest is read again, marked. */
		assert_int_equal(k.recovery.records, n - SKIPS_MAX + 2);
		kit_close(&k);
		f = load_state();
		assert_int_equal(le_get32(newest(&f) + 132), SKIPS_MAX);
		assert_int_equal(le_get64(newest(&f) + SKIPS_AT), 1);
		assert_int_equal(le_get64(newest(&f) + SLOT - 16), 2 * SKIPS_MAX - 1);
		free(f.data);
		kit_open(&k);
		assert_int_equal(kit_drain(&k), n - SKIPS_MAX + 2);
		kit_done(&k);
		setup(NULL);
	}
}

static void
ranges_are_of_their_queue_and_go_once_they_are_passed(void **state)
{
	struct spool_record r;
	struct kit_file f;

	(void)state;
	kit_batch(&k, TOPIC_PROGRAM, 3);
	kit_batch(&k, TOPIC_USAGE, 5);
	hand_out(3, 2);
	hand_out(5, 0xa);
	/* They stay whether the next owner ends well or not. */
	for (int turn = 0; turn < 3; turn++) {
		uint8_t *skips;

		kit_reopen(&k);
		assert_int_equal(k.recovery.records, 2 + 3);
		kit_tick(&k);
		f = load_state();
		skips = newest(&f) + SKIPS_AT;
		assert_int_equal(le_get32(newest(&f) + 132), 3);
		assert_int_equal(le_get64(skips), 1);
		assert_int_equal(le_get32(skips + 8), 1);
		assert_int_equal(le_get32(skips + 12), SPOOL_MAIN | (TOPIC_PROGRAM + 1) << 16);
		assert_int_equal(le_get64(skips + 16), 1);
		assert_int_equal(le_get32(skips + 28), SPOOL_USAGE | (TOPIC_USAGE + 1) << 16);
		assert_int_equal(le_get64(skips + 32), 3);
		assert_int_equal(le_get32(skips + 44), SPOOL_USAGE | (TOPIC_USAGE + 1) << 16);
		free(f.data);
	}
	/* One of another queue's numbers is passed: only what lies above it is kept. */
	for (int i = 0; i < 3; i++) {
		assert_true(spool_next(k.spool, &r));
		spool_ack(k.spool, r.id);
	}
	assert_int_equal(r.topic, TOPIC_USAGE);
	assert_true(spool_next(k.spool, &r));
	assert_int_equal(r.seq, 2);
	spool_ack(k.spool, r.id);
	kit_tick(&k);
	f = load_state();
	assert_int_equal(le_get64(newest(&f) + 64), 3);
	assert_in_range(le_get64(newest(&f) + 96), 3, 4);
	assert_in_range(le_get32(newest(&f) + 132), 0, 1);
	free(f.data);
	assert_int_equal(kit_drain(&k), 1);
	kit_tick(&k);
	f = load_state();
	assert_int_equal(le_get32(newest(&f) + 132), 0);
	free(f.data);
}

/* Reads the ranges of the main queue in the state: from and count of each. */
static uint64_t ranges[SKIPS_MAX][3];

static void
put_ranges(uint8_t *slot, uint64_t n)
{
	for (uint64_t i = 0; i < n && i < SKIPS_MAX; i++) {
		le_put64(slot + SKIPS_AT + i * 16, ranges[i][0]);
		le_put32(slot + SKIPS_AT + i * 16 + 8, (uint32_t)ranges[i][1]);
		le_put32(slot + SKIPS_AT + i * 16 + 12, (uint32_t)ranges[i][2]);
	}
	le_put32(slot + 132, (uint32_t)n);
}

static void
ranges_in_any_order_that_overlap_count_once(void **state)
{
	static const uint64_t lists[][5][3] = {
		{ { 20, 5, 0 }, { 2, 3, 0 }, { 10, 4, 0 }, { 5, 1, 0 }, { 30, 1, 0 } },		/* two that touch */
		{ { 2, 10, 0 }, { 4, 3, 0 }, { 11, 5, 0 }, { 2, 3, 0 }, { 16, 0, 0 } },		/* one in another */
		{ { 1, 1, 0 }, { 3, 1, 0 }, { 5, 1, 0 }, { 7, 1, 0 }, { 9, 1, 0 } },
		{ { 8, 2, 0 }, { 6, 2, 0 }, { 4, 2, 0 }, { 2, 2, 0 }, { 3, 9, 0 } },
		{ { 39, 1, 0 }, { 39, 5, 0 }, { 40, 5, 0 }, { 7, 4, 2 }, { SPOOL_NUMBER_MAX + 1, 5, 0 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		bool is_skipped[40] = { false };
		uint64_t waits = 0;

		kit_batch(&k, TOPIC_PROGRAM, 40);
		kit_batch(&k, TOPIC_USAGE, 40);
		memcpy(ranges, lists[i], sizeof(lists[i]));
		for (int j = 0; j < 5; j++)
			for (uint64_t n = 0; n < lists[i][j][1] && lists[i][j][2] == 0; n++)
				if (lists[i][j][0] + n < 40)
					is_skipped[lists[i][j][0] + n] = true;
		for (int n = 0; n < 40; n++)
			waits += !is_skipped[n];
		reopen_with(put_ranges, 5);
		for (int turn = 0; turn < 2; turn++) {
			struct spool_record r;

			assert_int_equal(k.recovery.records, waits + 40);
			for (uint64_t n = 0; n < 40; n++) {
				if (is_skipped[n])
					continue;
				assert_true(spool_next(k.spool, &r));
				assert_int_equal(r.seq, n);
			}
			assert_true(spool_next(k.spool, &r));
			assert_int_equal(r.topic, TOPIC_USAGE);
			kit_reopen(&k);
		}
		kit_done(&k);
		setup(NULL);
	}
}

static void
more_ranges_than_there_is_room_for_are_not_read(void **state)
{
	(void)state;
	kit_batch(&k, TOPIC_PROGRAM, 300);
	for (uint64_t i = 0; i < SKIPS_MAX; i++)
		memcpy(ranges[i], (uint64_t[3]){ 1 + 2 * i, 1, SPOOL_MAIN }, sizeof(ranges[i]));
	reopen_with(put_ranges, UINT32_MAX);
	assert_true(k.recovery.was_clean);
	assert_int_equal(k.recovery.records, 300 - SKIPS_MAX);
	assert_int_equal(kit_drain(&k), 300 - SKIPS_MAX);
}

static void
without_memory_for_ranges_what_they_say_comes_again(void **state)
{
	struct spool_record r;

	(void)state;
	kit_batch(&k, TOPIC_PROGRAM, 4);
	hand_out(4, 4);
	kit_close(&k);
	/* All that opening asks for, one after the other: one of them is it. */
	for (unsigned n = 0, came = 0;; n++) {
		struct spool *spool = NULL;
		char error[512];
		int r2;

		fault = (struct fault){ .calls = FAULT_MEMORY, .skip = n, .times = 1, .error = ENOMEM };
		r2 = spool_open(&k.options, &spool, &k.recovery, error, sizeof(error));
		fault.calls = 0;
		k.spool = spool;
		if (r2 == 0 && k.recovery.records == 4)
			came++;
		if (r2 == 0 && fault.hit == 0) {
			assert_int_equal(came, 1);
			break;
		}
		if (r2 < 0)
			assert_int_equal(r2, -ENOMEM);
		/* As it was, for the next turn. */
		if (r2 == 0 && k.recovery.records == 4)
			for (int i = 0; i < 4 && spool_next(k.spool, &r); i++)
				if (r.seq == 2)
					spool_ack(k.spool, r.id);
		if (r2 == 0)
			kit_close(&k);
	}
	assert_int_equal(k.recovery.records, 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(as_many_ranges_are_kept_as_there_is_room_for),
		T(ranges_are_of_their_queue_and_go_once_they_are_passed),
		T(ranges_in_any_order_that_overlap_count_once),
		T(more_ranges_than_there_is_room_for_are_not_read),
		T(without_memory_for_ranges_what_they_say_comes_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
