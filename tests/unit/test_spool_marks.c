/* SPDX-License-Identifier: Apache-2.0 */
/* spool_marks and spool_mark: the bytes of the state file, its validation, and marks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/endian.h"
#include "base/host_id.h"
#include "faults.h"
#include "spool_kit.h"
#include "base/crc32c.h"

enum {
	SLOT = 4096,
	QUEUES_AT = 64,
	SKIPS_AT = 2048,
	SKIPS_MAX = 128,
};

static struct kit k;

static int
setup(void **state)
{
	(void)state;
	kit_init(&k);
	kit_open(&k);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	fault = (struct fault){ 0 };
	kit_done(&k);
	return 0;
}

static struct kit_file
load_state(void)
{
	char path[512];
	struct kit_file f;

	snprintf(path, sizeof(path), "%s/state", k.dir);
	f = kit_load(path);
	assert_int_equal(f.len, 2 * SLOT);
	return f;
}

/* The slot that was written last. */
static uint8_t *
newest(const struct kit_file *f)
{
	return f->data + (le_get64(f->data + SLOT + 8) > le_get64(f->data + 8) ? SLOT : 0);
}

static void
mend(uint8_t *slot)
{
	le_put32(slot + 4, crc32c(0, slot + 8, SLOT - 8));
}

static void
store_state(struct kit_file *f)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/state", k.dir);
	kit_store(path, f->data, f->len);
	free(f->data);
}

/* The spool closes, its state is changed, and it opens with that. */
static void
reopen_with(void (*change)(uint8_t *slot, uint64_t with), uint64_t with)
{
	struct kit_file f;

	kit_close(&k);
	f = load_state();
	change(newest(&f), with);
	mend(newest(&f));
	store_state(&f);
	kit_open(&k);
}

/* Hands out n records; those whose bit is set, by seq modulo 64, are acknowledged. */
static void
hand_out(unsigned n, uint64_t acked)
{
	struct spool_record r;

	for (unsigned i = 0; i < n; i++) {
		assert_true(spool_next(k.spool, &r));
		if (acked >> (r.seq % 64) & 1)
			spool_ack(k.spool, r.id);
	}
}

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
	}
	le_put64(want + 2048, 4);
	le_put32(want + 2056, 2);
	le_put32(want + 2060, SPOOL_MAIN);
	mend(want);
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
	le_put64(slot + at, UINT64_MAX / 4);
}

static void
put65_at(uint8_t *slot, uint64_t at)
{
	le_put64(slot + at, UINT64_MAX / 4 + 1);
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
	reopen_with(flip, 16 + 24);	/* the boot id, which is not looked at after a clean end */
	assert_true(k.recovery.was_clean);
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
		assert_int_equal(le_get32(skips + 12), SPOOL_MAIN);
		assert_int_equal(le_get64(skips + 16), 1);
		assert_int_equal(le_get32(skips + 28), SPOOL_USAGE);
		assert_int_equal(le_get64(skips + 32), 3);
		assert_int_equal(le_get32(skips + 44), SPOOL_USAGE);
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
		{ { 39, 1, 0 }, { 39, 5, 0 }, { 40, 5, 0 }, { 7, 4, 2 }, { UINT64_MAX / 4 + 1, 5, 0 } },
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

static void
a_mark_says_all_of_where_it_is(void **state)
{
	struct spool_mark m, want;
	char path[512];
	struct stat st;

	(void)state;
	for (int turn = 0; turn < 3; turn++) {
		memset(&m, turn, sizeof(m));	/* whatever was there */
		memset(&want, 0, sizeof(want));
		if (turn > 0) {
			kit_batch(&k, TOPIC_PROGRAM, 3);
			k.seq[TOPIC_HOST] = 9;
			kit_commit(&k);
			want.number[SPOOL_MAIN] = (uint64_t)turn * 3;
			want.next_seq[TOPIC_PROGRAM] = (uint64_t)turn * 3;
			want.next_seq[TOPIC_HOST] = 9;
			want.segment[SPOOL_MAIN] = (uint64_t)turn;
		}
		if (turn == 2) {
			kit_batch(&k, TOPIC_USAGE, 4);
			want.number[SPOOL_USAGE] = 4;
			want.next_seq[TOPIC_USAGE] = 4;
			want.segment[SPOOL_USAGE] = 1;
		}
		if (kit_files(&k, "main-", ".seg", path) > 0 && stat(path, &st) == 0)
			want.size[SPOOL_MAIN] = (uint64_t)st.st_size;
		if (kit_files(&k, "usage-", ".seg", path) > 0 && stat(path, &st) == 0)
			want.size[SPOOL_USAGE] = (uint64_t)st.st_size;
		spool_mark(k.spool, &m);
		assert_memory_equal(&m, &want, sizeof(m));
		/* The next turn writes a segment of its own. */
		k.options.schemas[TOPIC_RUN] = turn % 2 ? "another" : "one more";
		kit_reopen(&k);
	}
}

/* Asks until the number of records that wait for the disk changes. */
static uint64_t
sync_up_to(const struct spool_mark *m)
{
	kit_tick(&k);			/* starts the thread */
	(void)spool_sync_up_to(k.spool, m);
	spool_sync_stop(k.spool);	/* waits for it */
	return spool_sync_up_to(k.spool, m);
}

static void
a_mark_waits_for_its_own_records_and_no_others(void **state)
{
	struct spool_mark none, empty, one, both;

	(void)state;
	spool_mark(k.spool, &none);
	assert_int_equal(spool_sync_up_to(k.spool, &none), 0);
	kit_commit_at(&k, 1);
	spool_mark(k.spool, &empty);
	assert_int_equal(spool_sync_up_to(k.spool, &empty), 1);	/* no record, and yet not safe */
	assert_int_equal(sync_up_to(&empty), 0);
	kit_batch(&k, TOPIC_PROGRAM, 3);
	spool_mark(k.spool, &one);
	kit_batch(&k, TOPIC_USAGE, 4);
	spool_mark(k.spool, &both);
	assert_int_equal(spool_sync_up_to(k.spool, &none), 0);
	assert_int_equal(spool_sync_up_to(k.spool, &empty), 0);
	assert_int_equal(spool_sync_up_to(k.spool, &one), 3);
	assert_int_equal(spool_sync_up_to(k.spool, &both), 7);
	hand_out(2, 1);
	assert_int_equal(spool_sync_up_to(k.spool, &both), 6);
	assert_int_equal(sync_up_to(&both), 0);
	assert_int_equal(spool_sync_up_to(k.spool, &one), 0);
	kit_batch(&k, TOPIC_PROGRAM, 3);
	assert_int_equal(spool_sync_up_to(k.spool, &both), 0);
}

static void
what_is_in_memory_is_not_on_the_disk_and_what_could_not_be_synced_never_is(void **state)
{
	struct spool_mark mark;

	(void)state;
	fault = (struct fault){ .calls = FAULT_CREATE, .times = 100, .error = ENOSPC };
	kit_batch(&k, TOPIC_PROGRAM, 3);
	assert_true(kit_stats(&k).memory_bytes > 0);
	spool_mark(k.spool, &mark);
	assert_int_equal(sync_up_to(&mark), 3);
	fault.calls = 0;
	kit_tick(&k);
	assert_int_equal(kit_stats(&k).memory_bytes, 0);
	assert_int_equal(sync_up_to(&mark), 0);
	kit_batch(&k, TOPIC_PROGRAM, 2);
	spool_mark(k.spool, &mark);
	spool_sync_stop(k.spool);
	fault = (struct fault){ .calls = FAULT_SYNC, .times = 100, .error = EIO };
	assert_int_equal(spool_sync_all(k.spool), -EIO);	/* on this thread, which meets the fault */
	fault.calls = 0;
	assert_int_equal(sync_up_to(&mark), 5);
	assert_int_equal(kit_drain(&k), 5);
	assert_true(spool_is_done_up_to(k.spool, &mark));
}

static void
what_waits_up_to_a_mark_is_told_by_topic(void **state)
{
	uint64_t waiting[TOPIC_COUNT];
	struct spool_mark mark;

	(void)state;
	kit_batch(&k, TOPIC_PROGRAM, 3);
	kit_batch(&k, TOPIC_USAGE, 2);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	kit_batch(&k, TOPIC_TASK, 1);
	spool_mark(k.spool, &mark);
	for (int later = 0; later < 6; later++) {
		memset(waiting, 0xee, sizeof(waiting));
		spool_waiting_up_to(k.spool, &mark, waiting);
		for (int t = 0; t < TOPIC_COUNT; t++)
			assert_int_equal(waiting[t], t == TOPIC_PROGRAM ? 4 - (later > 4 ? 4 : later) :
			    t == TOPIC_USAGE ? 2 : t == TOPIC_TASK && later < 5);
		kit_batch(&k, TOPIC_PROGRAM, 1);
		hand_out(1, ~UINT64_C(0));
	}
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
			mend(f.data);
			mend(f.data + SLOT);
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

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

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
		T(as_many_ranges_are_kept_as_there_is_room_for),
		T(ranges_are_of_their_queue_and_go_once_they_are_passed),
		T(ranges_in_any_order_that_overlap_count_once),
		T(more_ranges_than_there_is_room_for_are_not_read),
		T(topics_are_found_by_their_names),
		T(without_memory_for_ranges_what_they_say_comes_again),
		T(only_a_state_of_this_boot_knows_what_was_not_handed_out),
		T(a_mark_says_all_of_where_it_is),
		T(a_mark_waits_for_its_own_records_and_no_others),
		T(what_is_in_memory_is_not_on_the_disk_and_what_could_not_be_synced_never_is),
		T(what_waits_up_to_a_mark_is_told_by_topic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
