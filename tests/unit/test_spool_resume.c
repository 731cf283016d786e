/* SPDX-License-Identifier: Apache-2.0 */
/* spool: the next owner continues where the last one stopped: records handed out and acknowledged, numbers, schemas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "base/endian.h"
#include "faults.h"
#include "one_spool.h"
#include "recover_kit.h"
#include "spool/format.h"

static void
hand_out_some(struct kit *at)
{
	struct spool_record r;

	put_batches(at);
	for (int i = 0; i < 5; i++)
		spool_next(at->spool, &r);
	spool_ack(at->spool, r.id);	/* out of order: forgotten in a crash */
}

static void
after_a_crash_what_was_handed_out_is_marked(void **state)
{
	struct spool_record r;

	(void)state;
	kit_crash(&k, hand_out_some);
	kit_open(&k);
	for (uint64_t seq = 0; seq < BATCHES * EACH; seq++) {
		assert_true(spool_next(k.spool, &r));
		assert_int_equal(r.seq, seq);
		/* Marked ahead: not one too few. */
		if (seq < 5)
			assert_true(r.is_again);
	}
	kit_batch(&k, TOPIC_PROGRAM, 1);
	assert_true(spool_next(k.spool, &r));
	assert_false(r.is_again);
}

static void
acknowledge_and_tick(struct kit *at)
{
	struct spool_record r;

	put_batches(at);
	for (int i = 0; i < 5; i++) {
		spool_next(at->spool, &r);
		spool_ack(at->spool, r.id);
	}
	kit_tick(at);
}

static void
after_a_crash_acknowledged_records_stay_away(void **state)
{
	struct spool_record r;

	(void)state;
	kit_crash(&k, acknowledge_and_tick);
	kit_open(&k);
	assert_int_equal(k.recovery.records, BATCHES * EACH - 5);
	assert_true(spool_next(k.spool, &r));
	assert_int_equal(r.seq, 5);
}

static void
after_a_clean_close_exactly_the_rest_comes(void **state)
{
	uint64_t ids[300];
	struct spool_record r;
	unsigned n = 0;

	(void)state;
	kit_open(&k);
	for (int i = 0; i < 30; i++)
		kit_batch(&k, TOPIC_PROGRAM, 10);
	for (int i = 0; i < 200; i++) {
		assert_true(spool_next(k.spool, &r));
		ids[i] = r.id;
	}
	for (int i = 0; i < 200; i++)
		if (i % 4 == 3 || i > 150)
			spool_ack(k.spool, ids[i]);
	for (int round = 0; round < 3; round++) {
		kit_reopen(&k);
		assert_true(k.recovery.was_clean);
		assert_int_equal(k.recovery.records, 300 - 49 - 37);
	}
	for (uint64_t seq = 0; seq < 300; seq++) {
		if (seq < 200 && (seq % 4 == 3 || seq > 150))
			continue;
		assert_true(spool_next(k.spool, &r));
		assert_true(kit_is_whole(&r));
		assert_int_equal(r.seq, seq);
		assert_int_equal(r.is_again, seq < 200);
		spool_ack(k.spool, r.id);
		n++;
	}
	assert_false(spool_next(k.spool, &r));
	assert_int_equal(kit_stats(&k).records, 0);
}

static void
damage_state(int slot)
{
	char path[512];
	struct kit_file f;

	snprintf(path, sizeof(path), "%s/state", k.dir);
	f = kit_load(path);
	assert_int_equal(f.len, 8192);
	f.data[slot * 4096 + 70] ^= 0xff;
	kit_store(path, f.data, f.len);
	free(f.data);
}

static void
a_torn_state_file_costs_only_repetition(void **state)
{
	(void)state;
	kit_open(&k);
	put_batches(&k);
	kit_drain(&k);
	for (int slots = 1; slots <= 3; slots++) {
		kit_tick(&k);		/* one slot; closing writes the other */
		spool_close(k.spool);
		if (slots & 1)
			damage_state(0);
		if (slots & 2)
			damage_state(1);
		kit_open(&k);
		assert_int_equal(k.seq[TOPIC_PROGRAM], BATCHES * EACH);
		assert_int_equal(k.recovery.records, slots == 3 ? BATCHES * EACH : 0);
		if (slots == 3) {
			struct spool_record r;

			assert_true(spool_next(k.spool, &r));
			assert_true(r.is_again);
			spool_unget(k.spool);
		}
		kit_drain(&k);
	}
}

static void
old_schemas_outlive_a_new_one(void **state)
{
	struct spool_record r;

	(void)state;
	kit_open(&k);
	kit_batch(&k, TOPIC_PROGRAM, 2);
	spool_close(k.spool);
	k.options.schemas[TOPIC_PROGRAM] = "the next version";
	kit_open(&k);
	kit_batch(&k, TOPIC_PROGRAM, 2);
	for (int i = 0; i < 4; i++) {
		assert_true(spool_next(k.spool, &r));
		assert_true(kit_is_whole(&r));
		assert_string_equal(spool_schema(k.spool, r.schema),
		    i < 2 ? "sluice.program" : "the next version");
	}
	assert_int_equal(kit_files(&k, "main-", ".seg", NULL), 2);
	/* A text that does not match its name is not used. */
	spool_close(k.spool);
	char path[600];
	snprintf(path, sizeof(path), "%s/schemas/%016" PRIx64 ".avsc", k.dir,
	    spool_fingerprint("sluice.program", 14));
	kit_store(path, "sluice.progrAm", 14);
	kit_open(&k);
	assert_true(spool_next(k.spool, &r));
	assert_null(spool_schema(k.spool, r.schema));
}

static void
a_topic_of_a_newer_program_is_left_alone(void **state)
{
	struct spool_segment_head h = { .queue = SPOOL_MAIN, .number = 9, .needed_from = 9,
	    .n_topics = 1, .topics = { { .name = "sluice.gpu" } } };
	uint8_t head[SPOOL_SEGMENT_HEAD_MAX];
	char path[512];

	(void)state;
	kit_open(&k);
	spool_close(k.spool);
	snprintf(path, sizeof(path), "%s/main-0000000009.seg", k.dir);
	kit_store(path, head, spool_segment_head_pack(head, &h));
	kit_open(&k);
	assert_int_equal(k.recovery.unreadable, 0);
	assert_int_equal(kit_files(&k, "unknown-main-", ".seg", NULL), 1);	/* its next seq */
	kit_batch(&k, TOPIC_PROGRAM, 1);
	kit_files(&k, "main-", ".seg", path);
	assert_non_null(strstr(path, "main-0000000010.seg"));
}

static void
seq_counts_without_records(void **state)
{
	(void)state;
	kit_open(&k);
	k.seq[TOPIC_HOST] = 77;
	kit_commit(&k);
	spool_close(k.spool);
	k.spool = NULL;
	kit_open(&k);
	assert_int_equal(spool_next_seq(k.spool, TOPIC_HOST), 77);
}

/* The number of the slot that was written last. */
static int
newer_slot(const struct kit_file *f)
{
	return le_get64(f->data + 4096 + 8) > le_get64(f->data + 8);
}

static void
a_state_that_claims_more_than_there_was_is_not_believed(void **state)
{
	struct spool_record r[6];
	struct kit_file f;
	uint8_t *slot;
	char path[512];

	(void)state;
	kit_open(&k);
	kit_batch(&k, TOPIC_PROGRAM, 6);
	for (int i = 0; i < 6; i++)
		assert_true(spool_next(k.spool, &r[i]));
	spool_ack(k.spool, r[2].id);
	spool_ack(k.spool, r[3].id);
	assert_int_equal(spool_close(k.spool), 0);
	k.spool = NULL;
	snprintf(path, sizeof(path), "%s/state", k.dir);
	f = kit_load(path);
	slot = f.data + newer_slot(&f) * 4096;
	assert_int_equal(le_get32(slot + 132), 1);	/* a range: two records from number 2 on */
	assert_int_equal(le_get64(slot + 2048), 2);
	assert_int_equal(le_get32(slot + 2056), 2);
	le_put32(slot + 2056, 1000);
	le_put32(slot + 132, 2);			/* and one that begins at an unused position */
	le_put64(slot + 2064, 2000);
	le_put32(slot + 2072, 5);
	le_put32(slot + 4, crc32c(0, slot + 8, 4096 - 8));
	kit_store(path, f.data, f.len);
	free(f.data);
	kit_open(&k);
	assert_true(k.recovery.was_clean);
	assert_int_equal(k.recovery.records, 2);
	kit_batch(&k, TOPIC_PROGRAM, 10);
	assert_int_equal(kit_drain(&k), 12);
	assert_int_equal(kit_stats(&k).records, 0);
}

static void
acknowledged_out_of_order_by_two_owners_stays_away(void **state)
{
	struct spool_record r[12];

	(void)state;
	kit_open(&k);
	kit_batch(&k, TOPIC_PROGRAM, 12);
	for (int i = 0; i < 12; i++)
		assert_true(spool_next(k.spool, &r[i]));
	spool_ack(k.spool, r[4].id);
	spool_ack(k.spool, r[5].id);
	spool_ack(k.spool, r[8].id);
	kit_reopen(&k);
	for (int i = 0; i < 9; i++)
		assert_true(spool_next(k.spool, &r[i]));
	assert_int_equal(r[7].seq, 10);
	spool_ack(k.spool, r[7].id);
	spool_ack(k.spool, r[3].id);	/* beside one that the first owner had acknowledged */
	for (int round = 0; round < 2; round++) {
		static const uint64_t rest[] = { 0, 1, 2, 6, 7, 9, 11 };

		kit_reopen(&k);
		assert_int_equal(k.recovery.records, 7);
		for (size_t i = 0; i < 7; i++) {
			assert_true(spool_next(k.spool, &r[i]));
			assert_int_equal(r[i].seq, rest[i]);
		}
		assert_false(spool_next(k.spool, &r[7]));
	}
}

static void
numbering_goes_on_from_a_segments_head(void **state)
{
	char path[512], first[512];
	struct kit_file f;
	size_t at;

	(void)state;
	k.options.segment_bytes = 4096;
	kit_open(&k);
	kit_batch(&k, TOPIC_TASK, 7);
	kit_files(&k, "main-", ".seg", first);
	for (int i = 0; kit_files(&k, "main-", ".seg", path) < 2; i++)
		kit_batch(&k, TOPIC_PROGRAM, 10);
	assert_int_equal(spool_close(k.spool), 0);
	k.spool = NULL;
	/* All that is left is the head of the last segment: not even its one batch is whole. */
	f = kit_load(path);
	for (at = 0; memcmp(f.data + at, SPOOL_BATCH_MAGIC, 4) != 0; at++)
		;
	kit_store(path, f.data, at + 20);
	free(f.data);
	assert_int_equal(unlink(first), 0);
	snprintf(path, sizeof(path), "%s/state", k.dir);
	assert_int_equal(unlink(path), 0);
	kit_open(&k);
	assert_int_equal(k.recovery.torn_bytes, 20);
	assert_int_equal(spool_next_seq(k.spool, TOPIC_TASK), 7);
	assert_int_equal(spool_next_seq(k.spool, TOPIC_PROGRAM) % 10, 0);
	assert_true(spool_next_seq(k.spool, TOPIC_PROGRAM) > 0);
}

static void
texts_that_somebody_removes_are_there_again_after_a_failure(void **state)
{
	const uint64_t old = spool_fingerprint("sluice.program", 14);
	struct tree schemas;
	struct spool_record r;

	(void)state;
	kit_open(&k);
	kit_batch(&k, TOPIC_PROGRAM, 2);
	spool_close(k.spool);
	k.options.schemas[TOPIC_PROGRAM] = "the next version";
	k.options.schemas[TOPIC_USAGE] = NULL;		/* one that has none */
	kit_open(&k);
	assert_string_equal(spool_schema(k.spool, old), "sluice.program");
	snprintf(schemas.root, sizeof(schemas.root), "%s/schemas", k.dir);
	tree_done(&schemas);
	spool_disk_failed(k.spool, -EIO);
	k.now_ns += 10 * KIT_SECOND;
	kit_tick(&k);
	assert_int_equal(kit_stats(&k).last_error, 0);
	kit_reopen(&k);
	assert_true(spool_next(k.spool, &r));
	assert_int_equal(r.schema, old);
	assert_string_equal(spool_schema(k.spool, r.schema), "sluice.program");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(after_a_crash_what_was_handed_out_is_marked),
		T(after_a_crash_acknowledged_records_stay_away),
		T(after_a_clean_close_exactly_the_rest_comes),
		T(a_torn_state_file_costs_only_repetition),
		T(old_schemas_outlive_a_new_one),
		T(a_topic_of_a_newer_program_is_left_alone),
		T(seq_counts_without_records),
		T(a_state_that_claims_more_than_there_was_is_not_believed),
		T(acknowledged_out_of_order_by_two_owners_stays_away),
		T(numbering_goes_on_from_a_segments_head),
		T(texts_that_somebody_removes_are_there_again_after_a_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
