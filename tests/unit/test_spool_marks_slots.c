/* SPDX-License-Identifier: Apache-2.0 */
/* spool_marks: topics of other versions in a slot, where the slots lie in the file, and who may write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>

#include "faults.h"
#include "marks_kit.h"

enum {
	TOPICS_AT = 136,
	DONE_AT = 1416,
	OTHERS = 3,
};

#define LONGEST "sluice.old.%020u"	/* a name that takes all of its room but the end, and differs at the last letter */

/* Topics that no version has any more before those that this one knows, each with numbers of its own. */
static void
put_others(uint8_t *slot, uint64_t n)
{
	memmove(slot + TOPICS_AT + n * 40, slot + TOPICS_AT, TOPIC_COUNT * 40);
	memmove(slot + DONE_AT + n * 8, slot + DONE_AT, TOPIC_COUNT * 8);
	for (uint64_t i = 0; i < n; i++) {
		memset(slot + TOPICS_AT + i * 40, 0, 40);
		snprintf((char *)slot + TOPICS_AT + i * 40, 32, LONGEST, (unsigned)i);
		le_put64(slot + TOPICS_AT + i * 40 + 32, 1000 + i);
		le_put64(slot + DONE_AT + i * 8, 50 + i);
	}
	le_put32(slot + 128, (uint32_t)(TOPIC_COUNT + n));
}

/* Another version, which has them, uses no seq twice, although no segment has one of it. */
static void
the_next_seqs_of_unknown_topics_are_kept_behind_those_of_all_others(void **state)
{
	(void)state;
	kit_batch(&k, TOPIC_AGENT, 7);
	reopen_with(put_others, OTHERS);
	for (int turn = 0; turn < 3; turn++) {
		const uint8_t *slot;
		struct kit_file f;

		assert_int_equal(k.seq[TOPIC_AGENT], 7 + turn);
		kit_batch(&k, TOPIC_AGENT, 1);
		kit_close(&k);
		f = load_state();
		slot = newest(&f);
		assert_int_equal(le_get32(slot + 128), TOPIC_COUNT + OTHERS);
		for (int t = 0; t < TOPIC_COUNT; t++)
			assert_string_equal((const char *)slot + TOPICS_AT + t * 40, topic_name(t));
		for (unsigned i = 0; i < OTHERS; i++) {
			const size_t at = TOPIC_COUNT + i;
			char name[32] = { 0 };

			assert_int_equal(snprintf(name, sizeof(name), LONGEST, i), sizeof(name) - 1);
			assert_memory_equal(slot + TOPICS_AT + at * 40, name, sizeof(name));
			assert_int_equal(le_get64(slot + TOPICS_AT + at * 40 + 32), 1000 + i);
			assert_int_equal(le_get64(slot + DONE_AT + at * 8), 50 + i);
		}
		free(f.data);
		kit_open(&k);
	}
}

/* So that it can be written on a full disk: a block that is only reserved may still need room for that. */
static void
each_block_of_the_state_is_written_when_the_file_is_made(void **state)
{
	char path[512];
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/state", k.dir);
	kit_close(&k);
	assert_int_equal(unlink(path), 0);
	/* Both slots are filled, and the first one that is more than that is not written. */
	fault = (struct fault){ .calls = FAULT_REWRITE, .skip = 2, .times = 1, .error = EIO };
	kit_open(&k);
	assert_int_equal(fault.hit, FAULT_REWRITE);
	fault.calls = 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(lseek(fd, 0, SEEK_HOLE), 2 * SLOT);
	close(fd);
}

static void
put_two_and_count_one(uint8_t *slot, uint64_t first)
{
	for (uint64_t i = 0; i < 2; i++) {
		le_put64(slot + SKIPS_AT + i * 16, first + 2 * i);
		le_put32(slot + SKIPS_AT + i * 16 + 8, 1);
	}
	le_put32(slot + 132, 1);
}

static void
what_lies_behind_the_last_range_is_none(void **state)
{
	(void)state;
	kit_batch(&k, TOPIC_PROGRAM, 10);
	reopen_with(put_two_and_count_one, 4);
	assert_int_equal(k.recovery.records, 9);
	assert_int_equal(kit_drain(&k), 9);
}

/* There is nothing to wait for then: no sync makes their seqs last. */
static void
where_no_state_can_be_made_records_are_handed_out_from_memory(void **state)
{
	char path[512];

	(void)state;
	snprintf(path, sizeof(path), "%s/state", k.dir);
	kit_close(&k);
	assert_int_equal(unlink(path), 0);
	k.options.is_sync_first = true;
	fault = (struct fault){ .calls = FAULT_CREATE, .times = 1000000, .error = EROFS };
	kit_open(&k);
	kit_batch(&k, TOPIC_PROGRAM, 2);
	assert_int_equal(kit_stats(&k).last_error, -EROFS);
	assert_int_equal(kit_drain(&k), 2);
	fault.calls = 0;
	kit_tick(&k);
	kit_tick(&k);
	assert_int_equal(kit_stats(&k).last_error, 0);
	assert_int_equal(access(path, F_OK), 0);
}

/* The thread that writes behind the loop gets a whole slot and its place, in turn, but not while the file is synced. */
static void
a_slot_is_packed_for_the_thread_unless_the_file_is_synced(void **state)
{
	static uint8_t slot[SLOT], other[SLOT];
	uint64_t at, other_at, generation;

	(void)state;
	kit_batch(&k, TOPIC_PROGRAM, 3);
	for (int i = 0; i < 4; i++) {
		generation = k.spool->generation;
		assert_true(spool_marks_pack(k.spool, slot, &at));
		assert_int_equal(le_get64(slot + 8), generation + 1);
		assert_int_equal(at, (generation + 1) % 2 * SLOT);
		assert_int_equal(le_get32(slot + 20) & 1, 0);	/* it is no clean one */
		memcpy(other, slot, SLOT);
		set_checksum(other);
		assert_memory_equal(slot, other, SLOT);
	}
	generation = k.spool->generation;
	for (int first = 0; first < 2; first++) {
		for (int syncing = 0; syncing < 2; syncing++) {
			k.spool->is_sync_first = first;
			k.spool->is_state_syncing = syncing;
			assert_int_equal(spool_marks_pack(k.spool, slot, &other_at), !(first && syncing));
		}
	}
	assert_int_equal(k.spool->generation, generation + 3);
	k.spool->is_sync_first = k.spool->is_state_syncing = false;
}

/* As many topics as there is room for, none of which is known but the last; the first has no name. */
static void
put_strangers(uint8_t *slot, uint64_t n)
{
	memset(slot + TOPICS_AT, 0, SKIPS_AT - TOPICS_AT);
	for (uint64_t i = 0; i < SPOOL_TOPICS_MAX; i++) {
		uint8_t *to = slot + TOPICS_AT + i * 40;

		if (i > 0)
			snprintf((char *)to, 32, i < n ? "sluice.old%u" : "sluice.agent", (unsigned)i);
		le_put64(to + 32, 1000 + i);
	}
	le_put32(slot + 128, SPOOL_TOPICS_MAX);
	/* Of the last topic, an acknowledged record. */
	le_put64(slot + SKIPS_AT, 1);
	le_put32(slot + SKIPS_AT + 8, 1);
	le_put32(slot + SKIPS_AT + 12, SPOOL_MAIN | SPOOL_TOPICS_MAX << 16);
	le_put32(slot + 132, 1);
}

static void
as_many_unknown_topics_are_kept_as_there_is_room_for(void **state)
{
	struct kit_file f;

	(void)state;
	kit_batch(&k, TOPIC_AGENT, 3);
	reopen_with(put_strangers, SPOOL_TOPICS_MAX - 1);
	assert_int_equal(k.recovery.records, 2);
	assert_int_equal(k.seq[TOPIC_AGENT], 1000 + SPOOL_TOPICS_MAX - 1);
	for (int turn = 0; turn < 2; turn++) {
		const uint8_t *slot;

		kit_reopen(&k);
		f = load_state();
		slot = newest(&f);
		assert_int_equal(le_get32(slot + 128), SPOOL_TOPICS_MAX);
		for (unsigned i = 0; i < SPOOL_TOPICS_MAX - TOPIC_COUNT; i++) {
			const uint8_t *at = slot + TOPICS_AT + (TOPIC_COUNT + i) * 40;
			char name[32] = { 0 };

			snprintf(name, sizeof(name), "sluice.old%u", i + 1);
			assert_memory_equal(at, name, sizeof(name));
			assert_int_equal(le_get64(at + 32), 1000 + i + 1);
		}
		free(f.data);
	}
}

static void
done_of_program_is(uint8_t *slot, uint64_t below)
{
	le_put64(slot + DONE_AT + TOPIC_PROGRAM * 8, below);
}

static void
done_of_an_unknown_topic_is(uint8_t *slot, uint64_t below)
{
	put_others(slot, 1);
	le_put64(slot + DONE_AT, below);
}

static void
a_number_of_a_topic_that_nobody_can_have_reached_is_not_believed(void **state)
{
	(void)state;
	for (uint64_t more = 0; more < 2; more++) {
		struct kit_file f;

		kit_batch(&k, TOPIC_PROGRAM, 3);
		reopen_with(done_of_program_is, SPOOL_NUMBER_MAX + more);
		assert_int_equal(k.recovery.records, more ? 3 : 0);
		kit_done(&k);
		setup(NULL);
		reopen_with(done_of_an_unknown_topic_is, SPOOL_NUMBER_MAX + more);
		kit_reopen(&k);
		f = load_state();
		assert_int_equal(le_get64(newest(&f) + DONE_AT + TOPIC_COUNT * 8), more ? 0 : SPOOL_NUMBER_MAX);
		free(f.data);
		kit_done(&k);
		setup(NULL);
	}
}

/* What was acknowledged out of turn is not handed out again, of whichever topic it is. */
static void
a_range_of_any_topic_is_kept(void **state)
{
	struct spool_record r;

	(void)state;
	for (int t = 0; t < TOPIC_COUNT; t++)
		kit_batch(&k, t, 3);
	hand_out(3 * TOPIC_COUNT, 2);
	for (int turn = 0; turn < 3; turn++) {
		unsigned n = 0;

		kit_reopen(&k);
		assert_int_equal(k.recovery.records, 2 * TOPIC_COUNT);
		for (; turn == 2 && spool_next(k.spool, &r); n++)
			assert_int_not_equal(r.seq, 1);
		assert_int_equal(n, turn == 2 ? 2 * TOPIC_COUNT : 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_next_seqs_of_unknown_topics_are_kept_behind_those_of_all_others),
		T(as_many_unknown_topics_are_kept_as_there_is_room_for),
		T(a_number_of_a_topic_that_nobody_can_have_reached_is_not_believed),
		T(a_range_of_any_topic_is_kept),
		T(what_lies_behind_the_last_range_is_none),
		T(each_block_of_the_state_is_written_when_the_file_is_made),
		T(where_no_state_can_be_made_records_are_handed_out_from_memory),
		T(a_slot_is_packed_for_the_thread_unless_the_file_is_synced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
