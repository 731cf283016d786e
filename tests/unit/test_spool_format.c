/* SPDX-License-Identifier: Apache-2.0 */
/* spool_format: the bytes that spool/format.h specifies, and bytes that are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/endian.h"
#include "base/crc32c.h"
#include "spool/format.h"

/* Written by hand from the table in spool/format.h. */
static const struct spool_segment_head segment = { .queue = 1, .number = 0x1122334455667788,
    .first = 0x0102030405060708,
	.needed_from = 0x99, .n_topics = 2, .topics = { { "sluice.program", 0xaabbccdd, 77 }, { "x", 5, 6 } } };

static const struct spool_batch_head batch = { .len = 3000, .entries = 50, .records = 40,
    .flags = SPOOL_BATCH_RING_OFFSET,
	.queue = 1, .segment = 0x1234567890, .offset = 0x42, .first = 0x7000,
	.ring_offset = { "b3f1f8a1-0c5e-4f5e-8f7e-2f3f6d1f0b11", 9, 0x123456789abc }, .next_seq = { 1000, 2000 },
	.counts = { 30, 10 } };

static void
mend_segment(uint8_t *head, size_t len)
{
	le_put32(head + len - 4, crc32c(0, head, len - 4));
}

static void
mend_batch(uint8_t *head, size_t len)
{
	le_put32(head + 4, crc32c(0, head + 8, len - 8));
}

static void
a_segments_head_is_as_described(void **state)
{
	uint8_t to[SPOOL_SEGMENT_HEAD_MAX], want[140] = { 0 };
	struct spool_segment_head back;

	(void)state;
	memset(to, 0xee, sizeof(to));
	assert_int_equal(spool_segment_head_pack(to, &segment), 140);
	memcpy(want, "SLSG", 4);
	le_put16(want + 4, 1);
	le_put16(want + 6, 1);
	le_put64(want + 8, segment.number);
	le_put64(want + 16, segment.first);
	le_put64(want + 24, 0x99);
	le_put32(want + 32, 140);
	le_put32(want + 36, 2);
	memcpy(want + 40, "sluice.program", 14);
	le_put64(want + 72, 0xaabbccdd);
	le_put64(want + 80, 77);
	memcpy(want + 88, "x", 1);
	le_put64(want + 120, 5);
	le_put64(want + 128, 6);
	mend_segment(want, 140);
	assert_memory_equal(to, want, 140);
	assert_int_equal(to[140], 0xee);

	assert_int_equal(spool_segment_head_unpack(to, 140, &back), 0);
	assert_int_equal(spool_segment_head_unpack(to, sizeof(to), &back), 0);	/* more may follow */
	assert_int_equal(back.queue, 1);
	assert_true(back.number == segment.number && back.first == segment.first && back.needed_from == 0x99);
	assert_int_equal(back.len, 140);
	assert_int_equal(back.n_topics, 2);
	assert_memory_equal(back.topics, segment.topics, 2 * sizeof(back.topics[0]));
}

static void
a_name_of_any_length_ends(void **state)
{
	struct spool_segment_head h = { .n_topics = 1 }, back;
	uint8_t to[SPOOL_SEGMENT_HEAD_MAX];
	size_t len;

	(void)state;
	memset(h.topics[0].name, 'n', SPOOL_NAME_SIZE);
	len = spool_segment_head_pack(to, &h);
	assert_int_equal(to[40 + SPOOL_NAME_SIZE - 1], 0);
	assert_int_equal(spool_segment_head_unpack(to, len, &back), 0);
	assert_int_equal(strlen(back.topics[0].name), SPOOL_NAME_SIZE - 1);
	/* One that another program wrote to its end. */
	to[40 + SPOOL_NAME_SIZE - 1] = 'n';
	mend_segment(to, len);
	assert_int_equal(spool_segment_head_unpack(to, len, &back), 0);
	assert_int_equal(strlen(back.topics[0].name), SPOOL_NAME_SIZE - 1);
}

static void
no_other_segments_head_is_taken(void **state)
{
	static const struct {
		size_t at;
		uint8_t value;
	} wrong[] = {
		{ 0, 'X' }, { 3, 'T' },		/* magic */
		{ 4, 0 }, { 4, 2 }, { 5, 1 },	/* version */
		{ 6, 2 }, { 7, 1 },		/* queue */
		{ 32, 139 }, { 32, 141 }, { 33, 1 },	/* length */
		{ 36, 1 }, { 36, 3 }, { 36, 33 },	/* topics */
	};
	uint8_t good[SPOOL_SEGMENT_HEAD_MAX + 48] = { 0 }, to[sizeof(good)];
	struct spool_segment_head h = segment, back;

	(void)state;
	assert_int_equal(spool_segment_head_pack(good, &segment), 140);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		memcpy(to, good, sizeof(to));
		to[wrong[i].at] = wrong[i].value;
		mend_segment(to, 140);
		assert_int_equal(spool_segment_head_unpack(to, sizeof(to), &back), -EBADMSG);
	}
	for (size_t i = 0; i < 140; i++) {	/* without another checksum */
		memcpy(to, good, sizeof(to));
		to[i] ^= 0x10;
		assert_int_equal(spool_segment_head_unpack(to, sizeof(to), &back), -EBADMSG);
	}
	for (size_t len = 0; len < 140; len++)
		assert_int_equal(spool_segment_head_unpack(good, len, &back), -EBADMSG);

	/* The most topics, the fewest, and one too many. */
	h.n_topics = SPOOL_TOPICS_MAX;
	assert_int_equal(spool_segment_head_pack(to, &h), SPOOL_SEGMENT_HEAD_MAX);
	assert_int_equal(spool_segment_head_unpack(to, SPOOL_SEGMENT_HEAD_MAX, &back), 0);
	h.n_topics = 0;
	assert_int_equal(spool_segment_head_pack(to, &h), SPOOL_SEGMENT_HEAD_MIN);
	assert_int_equal(spool_segment_head_unpack(to, SPOOL_SEGMENT_HEAD_MIN, &back), 0);
	memset(to, 0, sizeof(to));
	memcpy(to, good, 40);
	le_put32(to + 36, SPOOL_TOPICS_MAX + 1);
	le_put32(to + 32, sizeof(to));
	mend_segment(to, sizeof(to));
	assert_int_equal(spool_segment_head_unpack(to, sizeof(to), &back), -EBADMSG);
}

static void
a_batchs_head_is_as_described(void **state)
{
	uint8_t to[SPOOL_BATCH_HEAD_MAX], want[128] = { 0 };
	struct spool_batch_head back, without = batch;

	(void)state;
	assert_int_equal(spool_batch_head_size(2), 128);
	assert_int_equal(spool_batch_head_size(SPOOL_TOPICS_MAX), SPOOL_BATCH_HEAD_MAX);
	memset(to, 0xee, sizeof(to));
	spool_batch_head_pack(to, &batch, 2);
	memcpy(want, "SLBT", 4);
	le_put32(want + 8, 3000);
	le_put32(want + 12, 50);
	le_put32(want + 16, 40);
	le_put16(want + 20, SPOOL_BATCH_RING_OFFSET);
	le_put16(want + 22, 1);
	le_put64(want + 24, 0x1234567890);
	le_put64(want + 32, 0x42);
	le_put64(want + 40, 0x7000);
	le_put64(want + 48, 0x123456789abc);
	le_put32(want + 56, 9);
	memcpy(want + 60, batch.ring_offset.boot_id, 36);
	le_put64(want + 96, 1000);
	le_put32(want + 104, 30);
	le_put64(want + 112, 2000);
	le_put32(want + 120, 10);
	mend_batch(want, 128);
	assert_memory_equal(to, want, 128);
	assert_int_equal(to[128], 0xee);

	memset(&back, 0xee, sizeof(back));
	assert_int_equal(spool_batch_head_unpack(to, 2, &back), 0);
	assert_int_equal(back.len, 3000);
	assert_int_equal(back.entries, 50);
	assert_int_equal(back.records, 40);
	assert_int_equal(back.flags, SPOOL_BATCH_RING_OFFSET);
	assert_int_equal(back.queue, 1);
	assert_true(back.segment == batch.segment && back.offset == 0x42 && back.first == 0x7000);
	assert_string_equal(back.ring_offset.boot_id, batch.ring_offset.boot_id);
	assert_int_equal(back.ring_offset.ring_id, 9);
	assert_true(back.ring_offset.position == batch.ring_offset.position);
	assert_memory_equal(back.next_seq, batch.next_seq, 2 * sizeof(uint64_t));
	assert_memory_equal(back.counts, batch.counts, 2 * sizeof(uint32_t));

	/* Without its flag there is no place, whatever was in the struct. */
	without.flags = SPOOL_BATCH_WAL;
	spool_batch_head_pack(to, &without, 2);
	memset(want + 48, 0, 48);
	le_put16(want + 20, SPOOL_BATCH_WAL);
	mend_batch(want, 128);
	assert_memory_equal(to, want, 128);
	memset(&back, 0xee, sizeof(back));
	assert_int_equal(spool_batch_head_unpack(to, 2, &back), 0);
	assert_string_equal(back.ring_offset.boot_id, "");
	assert_int_equal(back.ring_offset.position, 0);
}

/* Does a head with this change hold? */
static bool
holds(struct spool_batch_head h)
{
	struct spool_batch_head back;
	uint8_t to[SPOOL_BATCH_HEAD_MAX];

	spool_batch_head_pack(to, &h, 2);
	return spool_batch_head_unpack(to, 2, &back) == 0;
}

static void
counts_that_cannot_be_are_refused(void **state)
{
	struct spool_batch_head h = batch, back;
	uint8_t to[SPOOL_BATCH_HEAD_MAX];

	(void)state;
	assert_true(holds(h));
	h.len = 50 * SPOOL_ENTRY_HEAD;		/* entries without a byte of data */
	assert_true(holds(h));
	h.len--;
	assert_false(holds(h));
	h = batch;
	h.len = SPOOL_BATCH_MAX;
	assert_true(holds(h));
	h.len++;
	assert_false(holds(h));
	h = batch;
	h.records = 50;
	assert_true(holds(h));
	h.records = 51;
	assert_false(holds(h));
	h = batch;
	h.first = SPOOL_NUMBER_MAX;
	assert_true(holds(h));
	h.first++;
	assert_false(holds(h));
	h = batch;
	h.counts[1] = 40;
	assert_true(holds(h));
	h.counts[1] = 41;
	assert_false(holds(h));

	spool_batch_head_pack(to, &batch, 2);
	for (size_t i = 0; i < 128; i++) {
		to[i] ^= 4;
		assert_int_equal(spool_batch_head_unpack(to, 2, &back), -EBADMSG);
		to[i] ^= 4;
	}
}

static void
an_entry_is_as_described(void **state)
{
	const struct spool_entry e = { .kind = SPOOL_ENTRY_RECORD, .topic = 3, .uid = 0xfedcba98,
		.seq = 0x1122334455667788,
		.time_us = -5, .key = "a:key", .key_len = 5, .data = (const uint8_t *)"data", .data_len = 4 };
	const struct spool_entry entry = { .kind = SPOOL_ENTRY_WAL };
	uint8_t to[64], want[42] = { 0 };
	struct spool_entry back;

	(void)state;
	assert_int_equal(spool_entry_size(5, 4), 42);
	memset(to, 0xee, sizeof(to));
	spool_entry_pack(to, &e);
	want[4] = 1;
	want[5] = 3;
	le_put16(want + 6, 5);
	le_put32(want + 8, 4);
	le_put32(want + 12, 0xfedcba98);
	le_put64(want + 16, e.seq);
	le_put64(want + 24, (uint64_t)-5);
	memcpy(want + 32, "a:key", 6);
	memcpy(want + 38, "data", 4);
	le_put32(want, crc32c(0, want + 4, 38));
	assert_memory_equal(to, want, 42);
	assert_int_equal(to[42], 0xee);

	assert_int_equal(spool_entry_peek(to, 4), 42);
	assert_int_equal(spool_entry_unpack(to, 42, &back), 0);
	assert_int_equal(back.kind, SPOOL_ENTRY_RECORD);
	assert_int_equal(back.topic, 3);
	assert_true(back.uid == e.uid);
	assert_true(back.seq == e.seq);
	assert_int_equal(back.time_us, -5);
	assert_string_equal(back.key, "a:key");
	assert_int_equal(back.key_len, 5);
	assert_int_equal(back.data_len, 4);
	assert_memory_equal(back.data, "data", 4);
	assert_int_equal(back.len, 42);
	for (size_t i = 0; i < 42; i++) {
		to[i] ^= 1;
		assert_int_equal(spool_entry_unpack(to, 42, &back), -EBADMSG);
		to[i] ^= 1;
	}

	spool_entry_pack(to, &entry);	/* neither key nor data */
	assert_int_equal(spool_entry_peek(to, 1), 33);
	assert_int_equal(spool_entry_unpack(to, 33, &back), 0);
	assert_string_equal(back.key, "");
	assert_int_equal(back.data_len, 0);
}

static void
what_is_no_entry_has_no_length(void **state)
{
	uint8_t from[SPOOL_ENTRY_HEAD] = { 0 };

	(void)state;
	assert_int_equal(spool_entry_peek(from, 7), 0);
	for (int kind = 1; kind <= 3; kind++) {
		from[4] = (uint8_t)kind;
		assert_int_equal(spool_entry_peek(from, 7), 33);
	}
	from[4] = 4;
	assert_int_equal(spool_entry_peek(from, 7), 0);
	from[4] = SPOOL_ENTRY_RECORD;
	from[5] = 6;
	assert_int_equal(spool_entry_peek(from, 7), 33);
	from[5] = 7;
	assert_int_equal(spool_entry_peek(from, 7), 0);
	from[4] = SPOOL_ENTRY_WAL;	/* which has no topic */
	assert_int_equal(spool_entry_peek(from, 7), 33);
	le_put32(from + 8, SPOOL_RECORD_MAX);
	assert_int_equal(spool_entry_peek(from, 7), 33 + SPOOL_RECORD_MAX);
	le_put32(from + 8, SPOOL_RECORD_MAX + 1);
	assert_int_equal(spool_entry_peek(from, 7), 0);
}

static void
a_key_ends_where_it_says(void **state)
{
	struct spool_entry e = { .kind = SPOOL_ENTRY_RECORD, .key = "ab\0cd", .key_len = 5 }, back;
	uint8_t to[64];

	(void)state;
	spool_entry_pack(to, &e);
	assert_int_equal(spool_entry_unpack(to, spool_entry_size(5, 0), &back), -EBADMSG);	/* early */
	e.key = "abcde";
	spool_entry_pack(to, &e);
	to[SPOOL_ENTRY_HEAD + 5] = 'f';		/* not at all */
	le_put32(to, crc32c(0, to + 4, spool_entry_size(5, 0) - 4));
	assert_int_equal(spool_entry_unpack(to, spool_entry_size(5, 0), &back), -EBADMSG);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_segments_head_is_as_described),
		cmocka_unit_test(a_name_of_any_length_ends),
		cmocka_unit_test(no_other_segments_head_is_taken),
		cmocka_unit_test(a_batchs_head_is_as_described),
		cmocka_unit_test(counts_that_cannot_be_are_refused),
		cmocka_unit_test(an_entry_is_as_described),
		cmocka_unit_test(what_is_no_entry_has_no_length),
		cmocka_unit_test(a_key_ends_where_it_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
