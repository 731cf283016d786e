/* SPDX-License-Identifier: Apache-2.0 */
/* spool_marks: the bytes of the state file and its validation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/host_id.h"
#include "faults.h"
#include "marks_kit.h"

/* Written by hand from the table in spool/marks.c. */
static void
the_state_of_a_closed_spool_is_as_described(void **state)
{
	uint8_t want[SLOT] = { 0 };
	struct kit_file f;
	struct host_id host;
	size_t generation;

	(void)state;
	kit_batch(&k, TOPIC_PROGRAM, 10);
	kit_batch(&k, TOPIC_USAGE, 6);
	hand_out(10, 0x037);	/* 0, 1, 2; 4, 5; 8, 9 */
	k.options.schemas[TOPIC_RUN] = "another";
	kit_close(&k);
	kit_open(&k);
	hand_out(1, 0);
	k.seq[TOPIC_HOST] = 77;
	kit_commit(&k);
	kit_close(&k);
	f = load_state();
	generation = le_get64(newest(&f) + 8);
	assert_int_equal(host_id_read("", &host), 0);
	memcpy(want, "SLST", 4);
	le_put64(want + 8, generation);
	le_put32(want + 16, 1);
	le_put32(want + 20, 1);
	memcpy(want + 24, host.boot_id, 36);
	le_put64(want + 64, 3);
	le_put64(want + 72, le_get64(newest(&f) + 72));
	le_put64(want + 80, 10);
	le_put64(want + 88, 3);
	le_put64(want + 104, le_get64(newest(&f) + 104));
	le_put64(want + 112, 6);
	le_put64(want + 120, 2);
	le_put32(want + 128, TOPIC_COUNT);
	le_put32(want + 132, 1);
	for (int t = 0; t < TOPIC_COUNT; t++) {
		snprintf((char *)want + 136 + t * 40, 32, "%s", topic_name(t));
		le_put64(want + 136 + t * 40 + 32,
		    t == TOPIC_PROGRAM ? 10 : t == TOPIC_USAGE ? 6 : t == TOPIC_HOST ? 77 : 0);
		/* Of the others up to where the first owner read the queue. */
		le_put64(want + 1416 + t * 8, t == TOPIC_PROGRAM ? 3 : t == TOPIC_USAGE ? 0 : 10);
	}
	le_put64(want + 2048, 4);
	le_put32(want + 2056, 2);
	le_put16(want + 2060, SPOOL_MAIN);
	le_put16(want + 2062, TOPIC_PROGRAM + 1);
	set_checksum(want);
	/* What was handed out is promised ahead while it runs, and exact once it is closed. */
	assert_int_equal(le_get64(newest(&f) + 72), 10);
	assert_int_equal(le_get64(newest(&f) + 104), 0);
	assert_memory_equal(newest(&f), want, SLOT);
	free(f.data);
}

static void
the_two_slots_are_written_in_turn(void **state)
{
	struct kit_file before, after;

	(void)state;
	kit_batch(&k, TOPIC_PROGRAM, 40);
	hand_out(2, 1);
	kit_tick(&k);
	for (int i = 0; i < 6; i++) {
		uint8_t *old, *other;

		before = load_state();
		old = newest(&before);
		other = old == before.data ? before.data + SLOT : before.data;
		/* Each way to write one: a tick, the first owner's end, the next one's beginning. */
		if (k.spool == NULL) {
			kit_open(&k);
		} else if (i % 3 == 1) {
			kit_close(&k);
		} else {
			hand_out(1, ~UINT64_C(0));
			kit_tick(&k);
		}
		after = load_state();
		assert_memory_equal(after.data + (old - before.data), old, SLOT);
		assert_memory_not_equal(after.data + (other - before.data), other, SLOT);
		assert_int_equal(le_get64(newest(&after) + 8), le_get64(old + 8) + 1);
		assert_ptr_equal(newest(&after) - after.data, other - before.data);
		free(before.data);
		free(after.data);
	}
}

static void
put64_at(uint8_t *slot, uint64_t at)
{
	le_put64(slot + at, SPOOL_NUMBER_MAX);
}

static void
put65_at(uint8_t *slot, uint64_t at)
{
	le_put64(slot + at, SPOOL_NUMBER_MAX + 1);
}

static void
a_number_that_nobody_can_have_reached_is_not_believed(void **state)
{
	(void)state;
	for (uint64_t at = QUEUES_AT; at < QUEUES_AT + SPOOL_QUEUES * 32; at += 8) {
		reopen_with(put65_at, at);
		assert_false(k.recovery.was_clean);
		reopen_with(put64_at, at);
		assert_true(k.recovery.was_clean);
		kit_done(&k);
		setup(NULL);
	}
}

static void
flip(uint8_t *slot, uint64_t at)
{
	slot[at] ^= 1;
}

static void
next_segment_is(uint8_t *slot, uint64_t with)
{
	le_put64(slot + QUEUES_AT + 24, with);
}

static void
a_segments_number_is_not_given_twice(void **state)
{
	(void)state;
	reopen_with(next_segment_is, 77);
	kit_put(&k, TOPIC_PROGRAM);
	kit_commit(&k);
	assert_int_equal(TAILQ_FIRST(&k.spool->queues[SPOOL_MAIN].segments)->number, 77);
	reopen_with(next_segment_is, 5);	/* its files know better */
	assert_int_equal(k.spool->queues[SPOOL_MAIN].next_segment, 78);
}

static void
no_other_version_is_believed(void **state)
{
	static const uint64_t at[] = { 0, 3, 16, 19 };

	(void)state;
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		reopen_with(flip, at[i]);
		assert_false(k.recovery.was_clean);
	}
	reopen_with(flip, 24);		/* the boot id */
	assert_false(k.recovery.was_clean);
	reopen_with(flip, 20);
	assert_false(k.recovery.was_clean);
}

static void
any_byte_that_is_another_makes_the_older_slot_count(void **state)
{
	(void)state;
	kit_close(&k);
	for (size_t at = 0; at < SLOT; at += at < 2100 ? 1 : 97) {
		struct kit_file f = load_state();

		newest(&f)[at] ^= 0x40;
		store_state(&f);
		kit_open(&k);
		assert_false(k.recovery.was_clean);
		assert_false(k.recovery.is_fresh);
		kit_close(&k);
	}
	kit_open(&k);
	assert_true(k.recovery.was_clean);
}

static void
a_state_without_its_end_is_half_believed(void **state)
{
	struct kit_file f;
	char path[512];

	(void)state;
	snprintf(path, sizeof(path), "%s/state", k.dir);
	kit_batch(&k, TOPIC_PROGRAM, 3);
	kit_close(&k);
	f = load_state();
	/* The first slot is the only one, and the one that was written last. */
	if (newest(&f) != f.data)
		memcpy(f.data, newest(&f), SLOT);
	kit_store(path, f.data, 2 * SLOT - 1);
	kit_open(&k);
	assert_true(k.recovery.was_clean);
	kit_close(&k);
	kit_store(path, f.data, SLOT - 1);
	kit_open(&k);
	assert_false(k.recovery.was_clean);
	assert_int_equal(kit_drain(&k), 3);
	kit_close(&k);
	free(f.data);
	free(load_state().data);	/* it has its whole length again */
}

/* The slot that the next owner began with was written in part: the clean one before it is not the last state. */
static void
a_clean_slot_beside_a_torn_one_is_none(void **state)
{
	struct kit_file f;

	(void)state;
	kit_batch(&k, TOPIC_PROGRAM, 3);
	kit_close(&k);
	f = load_state();
	assert_int_equal(le_get32(newest(&f) + 20), 1);
	(newest(&f) == f.data ? f.data + SLOT : f.data)[100] ^= 1;
	store_state(&f);
	kit_open(&k);
	assert_false(k.recovery.was_clean);
	assert_false(k.recovery.is_fresh);
	assert_int_equal(kit_drain(&k), 3);
}

static void
put_topics(uint8_t *slot, uint64_t n)
{
	/* First a topic that does not exist any more, last a known one. */
	memset(slot + 136, 0, SKIPS_AT - 136);
	for (uint64_t i = 0; i < n && i < SPOOL_TOPICS_MAX; i++) {
		snprintf((char *)slot + 136 + i * 40, 32, "%s", i == SPOOL_TOPICS_MAX - 1 ? "sluice.task" : "sluice.old");
		le_put64(slot + 136 + i * 40 + 32, 1000 + i);
	}
	le_put32(slot + 128, (uint32_t)n);
}

static void
topics_are_found_by_their_names(void **state)
{
	(void)state;
	reopen_with(put_topics, UINT32_MAX);
	assert_int_equal(k.seq[TOPIC_TASK], 1000 + SPOOL_TOPICS_MAX - 1);
	assert_int_equal(k.seq[TOPIC_PROGRAM], 0);
	reopen_with(put_topics, SPOOL_TOPICS_MAX - 1);
	assert_int_equal(k.seq[TOPIC_TASK], 0);
}

static void
put_three(struct kit *at)
{
	kit_batch(at, TOPIC_PROGRAM, 3);
	kit_batch(at, TOPIC_USAGE, 3);
}

/* The state is not synced: of another boot, or gone, it may not know what was handed out. */
static void
only_a_state_of_this_boot_knows_what_was_not_handed_out(void **state)
{
	(void)state;
	for (int what = 0; what < 3; what++) {
		struct kit_file f;
		char path[512];

		kit_close(&k);
		kit_crash(&k, put_three);
		f = load_state();
		if (what == 1) {
			/* Both, of which only one can be whole where the power was cut. */
			f.data[24] ^= 1;
			f.data[SLOT + 24] ^= 1;
			set_checksum(f.data);
			set_checksum(f.data + SLOT);
		}
		store_state(&f);
		snprintf(path, sizeof(path), "%s/state", k.dir);
		if (what == 2)
			assert_int_equal(unlink(path), 0);
		kit_open(&k);
		assert_int_equal(k.recovery.records, 6);
		for (int i = 0; i < 6; i++) {
			struct spool_record r;

			assert_true(spool_next(k.spool, &r));
			assert_int_equal(r.is_again, what > 0);
		}
		kit_done(&k);
		setup(NULL);
	}
}

/* A power cut brings back a clean state that a later owner could not overwrite, although it handed records out. */
static void
nor_does_a_clean_state_of_another_boot(void **state)
{
	(void)state;
	put_three(&k);
	reopen_with(flip, 24);
	assert_false(k.recovery.was_clean);
	assert_int_equal(k.recovery.records, 6);
	for (int i = 0; i < 6; i++) {
		struct spool_record r;

		assert_true(spool_next(k.spool, &r));
		assert_true(r.is_again);
	}
}

enum what_then { NOTHING, IT_COULD_BE_WRITTEN, THE_NEXT_WAS_WRITTEN };

static enum what_then then;

static void
commit_usage_in_memory(struct kit *at)
{
	kit_batch(at, TOPIC_PROGRAM, 2);
	fault = (struct fault){ .calls = FAULT_WRITE | FAULT_CREATE, .times = 1000000, .error = ENOSPC };
	kit_batch(at, TOPIC_USAGE, 2);
	kit_expect(kit_stats(at).memory_bytes > 0, "batches in memory");
	if (then == NOTHING)
		return;
	fault.calls = 0;
	KIT_UNTIL(at, kit_stats(at).memory_bytes == 0);
	if (then == THE_NEXT_WAS_WRITTEN)
		kit_batch(at, TOPIC_PROGRAM, 1);
}

/* Its records may have been delivered, so that what they cover must not be measured again. */
static void
what_was_in_memory_only_is_missed_after_a_crash(void **state)
{
	(void)state;
	for (then = NOTHING; then <= THE_NEXT_WAS_WRITTEN; then++) {
		kit_close(&k);
		kit_crash(&k, commit_usage_in_memory);
		kit_open(&k);
		assert_int_equal(spool_lacks_batches(k.spool), then == NOTHING);
		assert_int_equal(k.seq[TOPIC_USAGE], 2);	/* they are not given again */
		assert_int_equal(kit_stats(&k).waiting[TOPIC_USAGE], then == NOTHING ? 0 : 2);
		kit_done(&k);
		setup(NULL);
	}
}

/* Whether all that is in memory may be handed out. */
static bool
is_covered(void)
{
	struct spool_segment *seg;
	bool is = true;

	TAILQ_FOREACH(seg, &k.spool->queues[SPOOL_MAIN].segments, at)
		is = is && (seg->is_on_disk ? seg->synced_to : seg->seqs_to) >= seg->size;
	return is;
}

/* A power cut may tear whatever was written since: the seqs of what was handed out must be in the other slot. */
static void
the_slot_with_the_seqs_of_batches_in_memory_is_kept_until_the_other_one_is_synced(void **state)
{
	struct kit_file before, after;

	(void)state;
	kit_close(&k);
	k.options.is_sync_first = true;
	kit_open(&k);
	fault = (struct fault){ .calls = FAULT_CREATE, .times = 1000000, .error = ENOSPC };
	for (int round = 0; round < 3; round++) {
		kit_batch(&k, TOPIC_PROGRAM, 2);
		KIT_UNTIL(&k, is_covered());
		before = load_state();
		k.spool->sync_ns = UINT64_MAX;	/* none is due */
		for (int i = 0; i < 5; i++) {
			kit_batch(&k, TOPIC_PROGRAM, 1);
			kit_tick(&k);
			after = load_state();
			assert_memory_not_equal(newest(&after), newest(&before), SLOT);
			assert_memory_equal(after.data + (newest(&before) - before.data), newest(&before), SLOT);
			free(after.data);
		}
		/* Nor is the slot written that is being synced. */
		free(before.data);
		before = load_state();
		k.spool->is_state_syncing = true;
		kit_batch(&k, TOPIC_PROGRAM, 1);
		after = load_state();
		assert_memory_equal(after.data, before.data, 2 * SLOT);
		assert_true(k.spool->is_state_behind);
		k.spool->is_state_syncing = false;
		free(before.data);
		free(after.data);
		k.spool->sync_ns = 0;
	}
	/* Once segments have the seqs, the slots are written in turn again. */
	fault.calls = 0;
	KIT_UNTIL(&k, kit_stats(&k).memory_bytes == 0);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	KIT_UNTIL(&k, k.spool->generation_safe == 0);
	kit_reopen(&k);
	assert_int_equal(k.seq[TOPIC_PROGRAM], 3 * 8 + 1);
}

static void
open_only(struct kit *at)
{
	kit_expect(!spool_lacks_batches(at->spool), "after a reboot nothing is missed");
}

/* Nothing is continued then, by the first owner or by one after it: what is missing was of the boot before. */
static void
after_a_reboot_it_is_missed_by_none(void **state)
{
	struct kit_file f;

	(void)state;
	kit_close(&k);
	then = NOTHING;
	kit_crash(&k, commit_usage_in_memory);
	f = load_state();
	for (uint8_t *slot = f.data; slot < f.data + f.len; slot += SLOT) {
		slot[24] ^= 1;
		set_checksum(slot);
	}
	store_state(&f);
	for (int owner = 0; owner < 3; owner++)
		kit_crash(&k, open_only);	/* each one before its first batch */
	kit_crash(&k, commit_usage_in_memory);
	kit_open(&k);
	assert_true(spool_lacks_batches(k.spool));
	assert_int_equal(k.seq[TOPIC_USAGE], 2 + 2);
}

static struct kit_file left;

static void
write_beside_what_was_left(struct kit *at)
{
	kit_expect(spool_lacks_batches(at->spool), "what a killed owner had in memory is missed");
	for (int i = 0; i < 3; i++) {
		struct kit_file now;

		at->spool->is_state_moved = true;
		kit_tick(at);
		now = load_state();
		kit_expect(newest(&now) - now.data != newest(&left) - left.data, "the other slot is written");
		kit_expect(memcmp(now.data + (newest(&left) - left.data), newest(&left), SLOT) == 0, "this is kept");
		free(now.data);
	}
}

/* So it is by the next owner, which syncs it first: a killed one's may only be in the page cache. */
static void
the_slot_that_a_killed_owner_left_is_kept_until_a_batch_has_its_seqs(void **state)
{
	(void)state;
	kit_close(&k);
	then = NOTHING;
	kit_crash(&k, commit_usage_in_memory);
	for (int owner = 0; owner < 3; owner++) {
		left = load_state();
		kit_crash(&k, write_beside_what_was_left);
		free(left.data);
	}
	fault = (struct fault){ .calls = FAULT_SYNC };		/* which counts them */
	kit_open(&k);
	assert_int_equal(fault.count, 3);	/* the state file, the folder, the main segment */
	assert_true(spool_lacks_batches(k.spool));
	kit_batch(&k, TOPIC_PROGRAM, 1);
	KIT_UNTIL(&k, k.spool->generation_safe == 0);
	/* Each owner has to know until one has recorded it, however the one before has ended. */
	kit_reopen(&k);
	assert_false(k.recovery.was_clean);
	assert_true(spool_lacks_batches(k.spool));
	kit_close(&k);
	kit_crash(&k, put_three);
	kit_open(&k);
	assert_true(spool_lacks_batches(k.spool));
	assert_int_equal(k.seq[TOPIC_USAGE], 2 + 3);
	assert_int_equal(spool_set_lacking(k.spool, false), 0);
	kit_reopen(&k);
	assert_true(k.recovery.was_clean);
	assert_false(spool_lacks_batches(k.spool));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_state_of_a_closed_spool_is_as_described),
		T(the_two_slots_are_written_in_turn),
		T(a_number_that_nobody_can_have_reached_is_not_believed),
		T(a_segments_number_is_not_given_twice),
		T(no_other_version_is_believed),
		T(any_byte_that_is_another_makes_the_older_slot_count),
		T(a_state_without_its_end_is_half_believed),
		T(a_clean_slot_beside_a_torn_one_is_none),
		T(topics_are_found_by_their_names),
		T(only_a_state_of_this_boot_knows_what_was_not_handed_out),
		T(nor_does_a_clean_state_of_another_boot),
		T(what_was_in_memory_only_is_missed_after_a_crash),
		T(after_a_reboot_it_is_missed_by_none),
		T(the_slot_that_a_killed_owner_left_is_kept_until_a_batch_has_its_seqs),
		T(the_slot_with_the_seqs_of_batches_in_memory_is_kept_until_the_other_one_is_synced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
