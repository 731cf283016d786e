/* SPDX-License-Identifier: Apache-2.0 */
/* spool: what is left of damaged segments after a crash. */
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

/* What a crash left in the directory, to be put back time and again. */
struct left {
	char path[512];
	struct kit_file segment;
	struct kit_file state;
	uint64_t ends[BATCHES + 1];	/* of the head, and of each batch */
};

static void
put_back(const struct left *q, size_t len)
{
	char path[512];

	while (kit_files(&k, "", ".seg", path) > 0)
		unlink(path);
	while (kit_files(&k, "", ".bad", path) > 0)
		unlink(path);
	kit_store(q->path, q->segment.data, len);
	snprintf(path, sizeof(path), "%s/state", k.dir);
	kit_store(path, q->state.data, q->state.len);
}

static struct left
leave(void)
{
	struct left q = { .ends = { 0 } };
	char path[512];
	unsigned n = 0;

	kit_crash(&k, put_batches);
	assert_int_equal(kit_files(&k, "main-", ".seg", q.path), 1);
	q.segment = kit_load(q.path);
	snprintf(path, sizeof(path), "%s/state", k.dir);
	q.state = kit_load(path);
	for (size_t i = 0; i + 4 < q.segment.len; i++)
		if (memcmp(q.segment.data + i, SPOOL_BATCH_MAGIC, 4) == 0)
			q.ends[n++] = i;
	assert_int_equal(n, BATCHES);
	q.ends[BATCHES] = q.segment.len;
	return q;
}

static void
forget(struct left *q)
{
	free(q->segment.data);
	free(q->state.data);
}

static void
a_torn_tail_loses_only_the_torn_batch(void **state)
{
	struct left q = leave();

	(void)state;
	for (size_t len = 0; len <= q.segment.len; len++) {
		struct ring_offset ring_offset = { .position = 0 };
		uint64_t whole = 0, tail = len;
		struct spool_record r;

		for (int b = 0; b < BATCHES; b++)
			if (q.ends[b + 1] <= len)
				whole = (uint64_t)b + 1;
		if (len >= q.ends[0])
			tail = len - q.ends[whole];
		put_back(&q, len);
		kit_open(&k);
		assert_int_equal(k.recovery.records, whole * EACH);
		assert_int_equal(k.recovery.torn_bytes, tail);
		assert_int_equal(k.recovery.corrupt_bytes, 0);
		assert_int_equal(kit_stats(&k).bytes, len >= q.ends[0] ? q.ends[whole] : 0);
		assert_int_equal(k.recovery.corrupt_batches, 0);
		assert_int_equal(k.recovery.unreadable, 0);
		assert_false(k.recovery.was_clean);
		assert_int_equal(spool_ring_offset(k.spool, &ring_offset), whole > 0);
		assert_int_equal(ring_offset.position, whole);
		assert_int_equal(k.seq[TOPIC_PROGRAM], whole * EACH);
		/* New records go behind the old ones, and all of them come once and in order. */
		kit_batch(&k, TOPIC_PROGRAM, 2);
		for (uint64_t seq = 0; seq < whole * EACH + 2; seq++) {
			assert_true(spool_next(k.spool, &r));
			assert_true(kit_is_whole(&r));
			assert_int_equal(r.seq, seq);
			assert_false(r.is_again);
			spool_ack(k.spool, r.id);
		}
		assert_false(spool_next(k.spool, &r));
		kit_reopen(&k);
		assert_int_equal(k.recovery.records, 0);
		assert_int_equal(k.recovery.torn_bytes, 0);
		assert_false(spool_next(k.spool, &r));
		spool_close(k.spool);
		k.spool = NULL;
	}
	forget(&q);
}

static void
a_flipped_byte_costs_what_it_hits_and_is_counted(void **state)
{
	const size_t head = spool_batch_head_size(TOPIC_COUNT), entry = spool_entry_size(strlen("host:run-3"), 20);
	struct left q = leave();
	unsigned salvaged = 0, alone = 0;

	(void)state;
	for (size_t at = q.ends[1]; at < q.ends[2]; at++) {
		uint64_t came[BATCHES * EACH] = { 0 }, lost = 0, bytes;
		struct spool_record r;
		struct spool_stats st;

		q.segment.data[at] ^= 0x10;
		put_back(&q, q.segment.len);
		q.segment.data[at] ^= 0x10;
		kit_open(&k);
		assert_int_equal(k.recovery.corrupt_batches, 1);
		bytes = k.recovery.corrupt_bytes;
		assert_int_equal(k.recovery.torn_bytes, 0);
		assert_int_equal(k.seq[TOPIC_PROGRAM], BATCHES * EACH);
		while (spool_next(k.spool, &r)) {
			assert_true(kit_is_whole(&r));
			assert_true(r.seq < BATCHES * EACH);
			came[r.seq]++;
			spool_ack(k.spool, r.id);
		}
		for (int seq = 0; seq < BATCHES * EACH; seq++) {
			if (seq / EACH == 1) {
				assert_in_range(came[seq], 0, 1);
				lost += came[seq] == 0;
			} else {
				assert_int_equal(came[seq], 1);
			}
		}
		assert_in_range(lost, 1, EACH);
		/* All behind what cannot be passed over by itself. */
		if (at < q.ends[1] + head)
			assert_int_equal(bytes, q.ends[2] - q.ends[1]);
		else if (lost == 1)
			assert_int_equal(bytes, entry);
		else
			assert_int_equal(bytes, lost * entry);
		salvaged += lost < EACH;
		alone += lost == 1;
		st = kit_stats(&k);
		/* A valid head of the batch contains the number of lost records. */
		if (at >= q.ends[1] + spool_batch_head_size(TOPIC_COUNT))
			assert_int_equal(st.dropped[TOPIC_PROGRAM][SPOOL_DROP_CORRUPT], lost);
		assert_int_equal(st.records, 0);
		kit_batch(&k, TOPIC_PROGRAM, 2);
		assert_int_equal(kit_drain(&k), 2);
		spool_close(k.spool);
		k.spool = NULL;
	}
	assert_true(salvaged > 0);
	/* All but a batch's head and the lengths in those of its entries. */
	assert_true(alone > (q.ends[2] - q.ends[1] - spool_batch_head_size(TOPIC_COUNT)) * 3 / 4);
	forget(&q);
}

static void
a_flipped_byte_in_the_head_puts_the_segment_aside(void **state)
{
	struct left q = leave();
	char path[512];

	(void)state;
	for (size_t at = 0; at < q.ends[0]; at++) {
		q.segment.data[at] ^= 0x01;
		put_back(&q, q.segment.len);
		q.segment.data[at] ^= 0x01;
		kit_open(&k);
		assert_int_equal(k.recovery.unreadable, 1);
		assert_int_equal(k.recovery.records, 0);
		assert_int_equal(kit_files(&k, "main-", ".bad", path), 1);
		kit_batch(&k, TOPIC_PROGRAM, 2);
		assert_int_equal(kit_drain(&k), 2);
		spool_close(k.spool);
		k.spool = NULL;
	}
	forget(&q);
}

static void
a_file_that_changes_while_it_is_read_is_counted(void **state)
{
	struct spool_record r;
	struct kit_file file;
	char path[512];
	unsigned n = 0;

	(void)state;
	kit_open(&k);
	put_batches(&k);
	kit_files(&k, "main-", ".seg", path);
	file = kit_load(path);
	file.data[file.len - 10] ^= 1;		/* in the last record */
	FILE *out = fopen(path, "r+e");
	assert_non_null(out);
	assert_int_equal(fwrite(file.data, 1, file.len, out), file.len);
	fclose(out);
	for (; spool_next(k.spool, &r); n++)
		assert_true(kit_is_whole(&r));
	assert_int_equal(n, BATCHES * EACH - 1);
	assert_int_equal(kit_stats(&k).dropped[TOPIC_PROGRAM][SPOOL_DROP_CORRUPT], 1);
	assert_int_equal(kit_stats(&k).records, n);
	/* The same for a record that is read again. */
	file.data[file.len - 10] ^= 1;
	for (size_t i = file.len / 2; i < file.len; i++)
		file.data[i] ^= 0xff;
	out = fopen(path, "r+e");
	assert_non_null(out);
	assert_int_equal(fwrite(file.data, 1, file.len, out), file.len);
	fclose(out);
	kit_put(&k, TOPIC_USAGE);	/* makes the window move away */
	spool_rewind(k.spool);
	kit_drain(&k);
	assert_int_equal(kit_stats(&k).records, 0);
	kit_commit(&k);
	assert_int_equal(kit_drain(&k), 1);
	free(file.data);
}

static void
what_looks_like_a_batch_inside_of_a_record_is_not_one(void **state)
{
	struct spool *spool;
	struct left q = leave();
	struct spool_record r;
	struct kit_file file;
	char path[512];
	size_t at = 0;
	int n = 0;

	(void)state;
	/* A record that is a whole segment, in a batch whose head is then broken. */
	kit_open(&k);
	kit_drain(&k);
	spool = k.spool;
	spool_put(spool, &(struct encoded_record){ TOPIC_TASK, 1, 0, "k", q.segment.data, q.segment.len });
	k.seq[TOPIC_TASK] = 1;
	kit_commit(&k);
	kit_batch(&k, TOPIC_PROGRAM, 2);
	assert_int_equal(spool_close(k.spool), 0);
	kit_files(&k, "main-", ".seg", path);
	file = kit_load(path);
	for (size_t i = q.segment.len; at == 0; i++)
		if (memcmp(file.data + i, SPOOL_BATCH_MAGIC, 4) == 0)
			at = i;
	file.data[at + 9] ^= 4;
	kit_store(path, file.data, file.len);
	kit_open(&k);
	assert_int_equal(k.recovery.corrupt_batches, 1);
	assert_true(k.recovery.corrupt_bytes > q.segment.len);
	for (; spool_next(k.spool, &r); n++)
		assert_int_equal(r.seq, BATCHES * EACH + n);
	assert_int_equal(n, 2);
	free(file.data);
	forget(&q);
}

static void
a_record_that_is_lost_takes_no_others_number(void **state)
{
	const size_t head = spool_batch_head_size(TOPIC_COUNT), entry = spool_entry_size(strlen("host:run-3"), 20);

	(void)state;
	for (uint64_t gone = 0; gone < EACH; gone++) {
		struct left q = leave();
		uint64_t waits = EACH + (gone == EACH - 1 ? 0 : EACH - 1), n = 0;
		struct spool_record r;

		/* In the middle of the record's bytes, which are behind all of the entry's lengths. */
		q.segment.data[q.ends[1] + head + (gone + 1) * entry - 10] ^= 1;
		put_back(&q, q.segment.len);
		kit_open(&k);
		assert_int_equal(k.recovery.records, BATCHES * EACH - 1);
		for (; spool_next(k.spool, &r); n++) {
			assert_int_not_equal(r.seq, EACH + gone);
			assert_int_equal(r.id >> SPOOL_ID_BITS, r.seq);
			if (r.seq != waits)
				spool_ack(k.spool, r.id);
		}
		assert_int_equal(n, BATCHES * EACH - 1);
		kit_check(&k);
		kit_reopen(&k);
		assert_int_equal(k.recovery.records, 1);
		assert_true(spool_next(k.spool, &r));
		assert_true(kit_is_whole(&r));
		assert_true(r.is_again);
		assert_int_equal(r.seq, waits);
		spool_ack(k.spool, r.id);
		assert_false(spool_next(k.spool, &r));
		kit_done(&k);
		kit_init(&k);
		forget(&q);
	}
}

static void
a_batch_of_which_nothing_is_left_is_done_with(void **state)
{
	const size_t head = spool_batch_head_size(TOPIC_COUNT);
	struct left q = leave();
	struct spool_mark mark;

	(void)state;
	for (size_t i = q.ends[BATCHES - 1] + head; i < q.segment.len; i++)
		q.segment.data[i] = 0xff;
	put_back(&q, q.segment.len);
	kit_open(&k);
	spool_mark(k.spool, &mark);
	assert_int_equal(k.recovery.corrupt_batches, 1);
	assert_int_equal(kit_stats(&k).dropped[TOPIC_PROGRAM][SPOOL_DROP_CORRUPT], EACH);
	kit_put(&k, TOPIC_USAGE);	/* a waiting record, so that the spool is not empty */
	kit_commit(&k);
	for (uint64_t i = 0; i < (BATCHES - 1) * EACH; i++) {
		struct spool_record r;

		assert_false(spool_is_done_up_to(k.spool, &mark));
		assert_true(spool_next(k.spool, &r));
		spool_ack(k.spool, r.id);
	}
	kit_tick(&k);
	assert_true(spool_is_done_up_to(k.spool, &mark));
	assert_int_equal(kit_stats(&k).records, 1);
	/* The numbers behind it are not used twice. */
	kit_batch(&k, TOPIC_PROGRAM, EACH);
	assert_int_equal(kit_drain(&k), EACH + 1);
	kit_reopen(&k);
	assert_int_equal(k.recovery.records, 0);
	kit_batch(&k, TOPIC_PROGRAM, EACH);
	assert_int_equal(kit_drain(&k), EACH);
	forget(&q);
}

static void
a_file_that_somebody_cuts_is_given_up_at_once(void **state)
{
	struct spool_record r;
	char path[512];

	(void)state;
	kit_open(&k);
	put_batches(&k);
	kit_files(&k, "main-", ".seg", path);
	assert_int_equal(truncate(path, 10), 0);
	errno = EIO;	/* of something before */
	assert_false(spool_next(k.spool, &r));
	assert_int_equal(kit_stats(&k).dropped[TOPIC_PROGRAM][SPOOL_DROP_CORRUPT], BATCHES * EACH);
	assert_int_equal(kit_stats(&k).records, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_torn_tail_loses_only_the_torn_batch),
		T(a_flipped_byte_costs_what_it_hits_and_is_counted),
		T(a_flipped_byte_in_the_head_puts_the_segment_aside),
		T(a_file_that_changes_while_it_is_read_is_counted),
		T(what_looks_like_a_batch_inside_of_a_record_is_not_one),
		T(a_record_that_is_lost_takes_no_others_number),
		T(a_batch_of_which_nothing_is_left_is_done_with),
		T(a_file_that_somebody_cuts_is_given_up_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
