/* SPDX-License-Identifier: Apache-2.0 */
/* unknown: the files of what is set aside: what they count, under which names, and what damage to one costs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "faults.h"
#include "unknown_kit.h"

/* Sets 8 records of KNOWN aside, as a version that does not know it, and delivers all others. */
static void
set_aside(void)
{
	kit_crash(&k, put_all);
	downgrade();
	kit_open(&k);
	kit_drain(&k);
	kit_close(&k);
}

static void
topics_beyond_the_limit_are_counted_with_the_last_one(void **state)
{
	struct spool_stats st;

	(void)state;
	for (unsigned i = 0; i < SPOOL_UNKNOWN_TOPICS + 3; i++) {
		char name[32];

		kit_open(&k);
		kit_batch(&k, KNOWN, 1);
		kit_close(&k);
		snprintf(name, sizeof(name), "sluice.later%u", i);
		rename_topic("main-", topic_name(KNOWN), name, 0);
	}
	kit_open(&k);
	assert_int_equal(k.recovery.unknown, SPOOL_UNKNOWN_TOPICS + 3);
	st = kit_stats(&k);
	assert_int_equal(st.n_unknown, SPOOL_UNKNOWN_TOPICS);
	for (size_t i = 0; i < SPOOL_UNKNOWN_TOPICS; i++)
		assert_int_equal(st.unknown[i].records, i + 1 < SPOOL_UNKNOWN_TOPICS ? 1 : 4);
}

/* A segment in which no other record is before it. */
static void
the_first_record_of_all_is_set_aside_as_any_other(void **state)
{
	char path[512];

	(void)state;
	kit_open(&k);
	kit_batch(&k, KNOWN, 2);
	kit_close(&k);
	downgrade();
	kit_open(&k);
	assert_int_equal(unknown_topics(), 2);
	kit_close(&k);
	upgrade();
	assert_int_equal(kit_files(&k, "main-", ".seg", path), 1);
	assert_int_equal(unlink(path), 0);
	kit_open(&k);
	assert_int_equal(kit_drain(&k), 2);
}

/* The state of the segment's other records is no reason to write the file once more, with less. */
static void
a_file_stays_whole_while_the_rest_of_its_segment_is_delivered(void **state)
{
	(void)state;
	kit_crash(&k, put_all);
	downgrade();
	for (int i = 0; i < 9; i++) {
		kit_open(&k);
		assert_int_equal(unknown_topics(), 8);
		if (i < 8)
			spool_ack(k.spool, kit_next(&k).id);
		kit_close(&k);
	}
	upgrade();
	kit_open(&k);
	assert_int_equal(k.recovery.records, 8);
	assert_int_equal(kit_drain(&k), 8);
}

static void
a_file_under_the_name_of_another_one_is_left_alone(void **state)
{
	static const char *const names[] = { "unknown-main-0000000007.seg", "unknown-usage-0000000001.seg" };
	char from[512], to[512];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		set_aside();
		assert_int_equal(kit_files(&k, "unknown-", ".seg", from), 1);
		snprintf(to, sizeof(to), "%s/%s", k.dir, names[i]);
		assert_int_equal(rename(from, to), 0);
		kit_open(&k);
		assert_int_equal(unknown_topics(), 0);
		kit_close(&k);
		upgrade();
		kit_open(&k);
		assert_int_equal(k.recovery.records, 0);
		kit_close(&k);
		assert_int_equal(access(to, F_OK), 0);
		kit_done(&k);
		setup(NULL);
	}
}

/* Such a number takes up all of the ten digits of a name. */
static void
a_segment_may_have_any_number(void **state)
{
	(void)state;
	kit_open(&k);
	k.spool->queues[SPOOL_MAIN].next_segment = 1234567890;
	kit_batch(&k, KNOWN, 3);
	kit_close(&k);
	downgrade();
	for (int i = 0; i < 2; i++) {
		kit_open(&k);
		assert_int_equal(unknown_topics(), 3);
		kit_close(&k);
	}
	assert_int_equal(kit_files(&k, "unknown-main-1234567890", ".seg", NULL), 1);
	upgrade();
	kit_open(&k);
	assert_int_equal(kit_drain(&k), 3);
}

/* One that was put again may have a seq that no head has. */
static void
no_seq_of_a_record_that_was_set_aside_is_given_again(void **state)
{
	static const uint64_t seqs[] = { 0, 9000 };

	(void)state;
	for (size_t i = 0; i < sizeof(seqs) / sizeof(seqs[0]); i++) {
		const struct spool_record again = { .topic = KNOWN, .seq = seqs[i], .time_us = KIT_TIME,
		    .schema = spool_fingerprint(topic_name(KNOWN), strlen(topic_name(KNOWN))), .key = "host:run",
		    .data = "" };

		kit_open(&k);
		assert_int_equal(spool_put_again(k.spool, &again), 0);
		kit_commit(&k);
		kit_close(&k);
		downgrade();
		kit_open(&k);
		assert_int_equal(unknown_topics(), 1);
		kit_close(&k);
		upgrade();
		kit_open(&k);
		assert_int_equal(k.seq[KNOWN], seqs[i] + 1);
		kit_done(&k);
		setup(NULL);
	}
}

/* Else a version that does not know one of the others would take the file for all that is to be set aside of it. */
static void
a_head_names_only_what_its_file_has(void **state)
{
	struct spool_segment_head h;
	struct kit_file f;
	char path[512];

	(void)state;
	kit_crash(&k, put_all);
	downgrade();
	/* Each file is written once, as it is to be. */
	fault = (struct fault){ .calls = FAULT_NAME, .skip = 1, .times = 9, .error = EIO };
	kit_open(&k);
	fault = (struct fault){ 0 };
	assert_int_equal(kit_files(&k, "unknown-", ".seg", path), 1);
	f = kit_load(path);
	assert_int_equal(spool_segment_head_unpack(f.data, f.len, &h), 0);
	assert_int_equal(h.n_topics, TOPIC_COUNT);
	for (unsigned i = 0; i < h.n_topics; i++)
		assert_int_equal(h.topics[i].schema != 0, strcmp(h.topics[i].name, LATER) == 0);
	free(f.data);
}

/* Where an entry begins in a file: the nth of the batch, of which each has two. */
static size_t
entry_at(const struct kit_file *f, unsigned batch, unsigned n, size_t *ret_end)
{
	struct spool_segment_head h;
	struct spool_batch_head b;
	size_t at;

	assert_int_equal(spool_segment_head_unpack(f->data, f->len, &h), 0);
	at = h.len;
	for (;;) {
		assert_int_equal(spool_batch_head_unpack(f->data + at, h.n_topics, &b), 0);
		assert_int_equal(b.records, 2);
		at += spool_batch_head_size(h.n_topics);
		*ret_end = at + b.len;
		if (batch-- == 0)
			break;
		at += b.len;
	}
	while (n-- > 0)
		at += spool_entry_peek(f->data + at, h.n_topics);
	return at;
}

/* What follows a damaged record in its batch is lost with it, and no other. */
static void
damage_to_a_file_costs_the_rest_of_a_batch_and_is_counted(void **state)
{
	(void)state;
	for (unsigned batch = 0; batch < 4; batch++) {
		for (unsigned n = 0; n < 2; n++) {
			uint64_t seq = SEQ;
			struct spool_record r;
			struct kit_file f;
			char path[512];
			size_t at, end;

			set_aside();
			upgrade();
			assert_int_equal(kit_files(&k, "unknown-main-", ".seg", path), 1);
			f = kit_load(path);
			at = entry_at(&f, batch, n, &end);
			f.data[at + SPOOL_ENTRY_HEAD + 20] ^= 1;
			kit_store(path, f.data, f.len);
			free(f.data);
			kit_open(&k);
			assert_int_equal(k.recovery.corrupt_batches, 1);
			assert_int_equal(k.recovery.corrupt_bytes, end - at);
			assert_int_equal(k.recovery.records, 6 + n);
			assert_int_equal(kit_stats(&k).dropped[KNOWN][SPOOL_DROP_CORRUPT], 2 - n);
			while (spool_next(k.spool, &r)) {
				assert_true(kit_is_whole(&r));
				if (seq == SEQ + 2 * batch + n)
					seq += 2 - n;
				assert_int_equal(r.seq, seq++);
				spool_ack(k.spool, r.id);
			}
			assert_int_equal(seq, batch == 3 ? SEQ + 6 + n : SEQ + 8);
			kit_done(&k);
			setup(NULL);
		}
	}
}

/* So it is for a topic that is still unknown, beside one that is not any more. */
static void
of_a_topic_that_stays_unknown_damage_is_counted_too(void **state)
{
	for (unsigned n = 0; n < 2; n++) {
		struct spool_stats st;
		struct kit_file f;
		char path[512];
		size_t at, end;

		(void)state;
		kit_open(&k);
		kit_put(&k, TOPIC_RUN);
		kit_put(&k, KNOWN);
		kit_commit(&k);
		kit_close(&k);
		downgrade();
		rename_topic("main-", topic_name(TOPIC_RUN), "sluice.latest", 0);
		kit_open(&k);
		assert_int_equal(k.recovery.unknown, 2);
		kit_batch(&k, TOPIC_PROGRAM, 1);
		kit_drain(&k);
		kit_close(&k);
		upgrade();
		assert_int_equal(kit_files(&k, "unknown-main-", ".seg", path), 1);
		f = kit_load(path);
		at = entry_at(&f, 0, n, &end);
		f.data[at + SPOOL_ENTRY_HEAD + 20] ^= 1;
		kit_store(path, f.data, f.len);
		free(f.data);
		kit_open(&k);
		st = kit_stats(&k);
		assert_int_equal(st.dropped[KNOWN][SPOOL_DROP_CORRUPT], 1);
		assert_int_equal(st.n_unknown, 1);
		assert_string_equal(st.unknown[0].topic, "sluice.latest");
		assert_int_equal(st.unknown[0].dropped, n == 0);
		assert_int_equal(st.unknown[0].records, n == 1);
		assert_int_equal(kit_drain(&k), 0);
		kit_done(&k);
		setup(NULL);
	}
}

/* A copy of a batch, or one of another segment, is none of the file's. */
static void
a_batch_that_is_not_in_its_place_is_not_taken(void **state)
{
	for (int other = 0; other < 3; other++) {
		struct spool_segment_head h;
		struct spool_batch_head b;
		struct kit_file f;
		char path[512];

		(void)state;
		set_aside();
		upgrade();
		assert_int_equal(kit_files(&k, "unknown-main-", ".seg", path), 1);
		f = kit_load(path);
		assert_int_equal(spool_segment_head_unpack(f.data, f.len, &h), 0);
		assert_int_equal(spool_batch_head_unpack(f.data + h.len, h.n_topics, &b), 0);
		b.offset += other == 1;
		b.segment += other == 2;
		spool_batch_head_pack(f.data + h.len, &b, h.n_topics);
		kit_store(path, f.data, f.len);
		free(f.data);
		kit_open(&k);
		assert_int_equal(k.recovery.records, other == 0 ? 8 : 0);
		kit_done(&k);
		setup(NULL);
	}
}

static void
of_a_file_that_was_cut_off_each_whole_batch_is_there(void **state)
{
	struct kit_file f;
	char path[512];
	size_t end[4], len;

	(void)state;
	set_aside();
	assert_int_equal(kit_files(&k, "unknown-main-", ".seg", path), 1);
	f = kit_load(path);
	for (unsigned i = 0; i < 4; i++)
		(void)entry_at(&f, i, 0, &end[i]);
	assert_int_equal(end[3], f.len);
	for (len = end[0] - 200; len <= f.len; len += 13) {
		uint64_t whole = 0;

		for (unsigned i = 0; i < 4; i++)
			whole += end[i] <= len ? 2 : 0;
		kit_store(path, f.data, len);
		kit_open(&k);
		assert_int_equal(k.recovery.unknown, whole);
		assert_int_equal(unknown_topics(), whole);
		kit_close(&k);
	}
	for (unsigned i = 0; i < 4; i++) {
		kit_store(path, f.data, end[i]);
		kit_open(&k);
		assert_int_equal(unknown_topics(), 2 * i + 2);
		kit_close(&k);
		kit_store(path, f.data, end[i] - 1);
		kit_open(&k);
		assert_int_equal(unknown_topics(), 2 * i);
		kit_close(&k);
	}
	/* The later version takes as much. */
	upgrade();
	kit_open(&k);
	assert_int_equal(k.recovery.records, 6);
	assert_int_equal(kit_drain(&k), 6);
	free(f.data);
}

/* Packs an entry with the record of that seq, and returns its length. */
static size_t
put_entry(uint8_t *to, uint8_t index, enum topic topic, uint64_t seq)
{
	uint8_t data[50];
	char key[64];
	struct spool_entry e = { .kind = SPOOL_ENTRY_RECORD, .topic = index, .seq = seq,
	    .time_us = KIT_TIME + (int64_t)seq, .key = key, .data = data,
	    .data_len = kit_data(topic, seq, sizeof(data), data) };

	e.key_len = (size_t)snprintf(key, sizeof(key), "host:run-%u", (unsigned)seq);
	spool_entry_pack(to, &e);
	return spool_entry_size(e.key_len, e.data_len);
}

static void
a_file_may_have_as_many_topics_as_a_head_has_room_for(void **state)
{
	static uint8_t file[SPOOL_SEGMENT_HEAD_MAX + SPOOL_BATCH_HEAD_MAX + 512];
	const unsigned last = SPOOL_TOPICS_MAX - 1;
	struct spool_segment_head h = { .queue = SPOOL_MAIN, .number = 9, .needed_from = 9,
	    .n_topics = SPOOL_TOPICS_MAX };
	struct spool_batch_head b = { .segment = 9, .first = 5, .entries = 2, .records = 2,
	    .flags = SPOOL_BATCH_RETURNED };
	size_t len, size = spool_batch_head_size(SPOOL_TOPICS_MAX);
	char path[512];

	(void)state;
	for (unsigned i = 0; i < last; i++)
		snprintf(h.topics[i].name, sizeof(h.topics[i].name), "sluice.later%u", i);
	snprintf(h.topics[last].name, sizeof(h.topics[last].name), "%s", topic_name(KNOWN));
	h.topics[0].schema = h.topics[last].schema = 1;
	b.next_seq[last] = h.topics[last].next_seq = 777;
	len = spool_segment_head_pack(file, &h);
	b.offset = len;
	b.len = (uint32_t)put_entry(file + len + size, 0, KNOWN, 3);
	b.len += (uint32_t)put_entry(file + len + size + b.len, (uint8_t)last, KNOWN, 776);
	b.counts[0] = b.counts[last] = 1;
	spool_batch_head_pack(file + len, &b, SPOOL_TOPICS_MAX);
	kit_open(&k);
	kit_close(&k);
	snprintf(path, sizeof(path), "%s/unknown-main-0000000009.seg", k.dir);
	kit_store(path, file, len + size + b.len);
	for (int i = 0; i < 2; i++) {
		kit_open(&k);
		assert_int_equal(k.seq[KNOWN], 777);
		assert_int_equal(k.recovery.unknown, 1);
		assert_int_equal(kit_stats(&k).n_unknown, 1);
		assert_string_equal(kit_stats(&k).unknown[0].topic, "sluice.later0");
		assert_int_equal(k.recovery.records, i == 0);
		if (i == 0)
			assert_int_equal(kit_next(&k).seq, 776);
		spool_rewind(k.spool);
		assert_int_equal(kit_drain(&k), i == 0);
		kit_close(&k);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(topics_beyond_the_limit_are_counted_with_the_last_one),
		T(the_first_record_of_all_is_set_aside_as_any_other),
		T(a_file_stays_whole_while_the_rest_of_its_segment_is_delivered),
		T(a_file_under_the_name_of_another_one_is_left_alone),
		T(a_segment_may_have_any_number),
		T(no_seq_of_a_record_that_was_set_aside_is_given_again),
		T(a_head_names_only_what_its_file_has),
		T(damage_to_a_file_costs_the_rest_of_a_batch_and_is_counted),
		T(of_a_topic_that_stays_unknown_damage_is_counted_too),
		T(a_batch_that_is_not_in_its_place_is_not_taken),
		T(of_a_file_that_was_cut_off_each_whole_batch_is_there),
		T(a_file_may_have_as_many_topics_as_a_head_has_room_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
