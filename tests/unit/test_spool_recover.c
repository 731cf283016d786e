/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "base/endian.h"
#include "spool_kit.h"
#include "base/crc32c.h"
#include "spool/format.h"

#define BATCHES 4
#define EACH 3		/* records of a batch */

static struct kit k;

static int
setup(void **state)
{
	(void)state;
	kit_init(&k);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	kit_done(&k);
	return 0;
}

/* A few batches with a place each, none of them handed out. */
static void
put_batches(struct kit *at)
{
	for (int i = 1; i <= BATCHES; i++) {
		for (int j = 0; j < EACH; j++)
			kit_put_len(at, TOPIC_PROGRAM, 20);
		if (kit_commit_at(at, (uint64_t)i) != 0)
			_exit(1);
	}
}

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
	assert_int_equal(k.recovery.unreadable, 1);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	kit_files(&k, "main-", ".seg", path);
	assert_non_null(strstr(path, "main-0000000010.seg"));
}

struct entries {
	char text[4096];
};

static void
on_wal_entry(const void *data, size_t len, void *arg)
{
	struct entries *n = arg;

	strncat(n->text, data, len);
	strcat(n->text, " ");
}

static const char *
replay(void)
{
	static struct entries n;

	n.text[0] = '\0';
	spool_replay(k.spool, on_wal_entry, &n);
	return n.text;
}

static void
entry(const char *text)
{
	assert_int_equal(spool_put_wal(k.spool, text, strlen(text)), 0);
}

static void
entries_since_the_checkpoint_are_replayed(void **state)
{
	(void)state;
	kit_open(&k);
	assert_string_equal(replay(), "");
	entry("early");
	kit_commit(&k);
	kit_reopen(&k);
	assert_string_equal(replay(), "early ");
	assert_true(spool_wants_checkpoint(k.spool));
	entry("superseded");
	kit_put(&k, TOPIC_PROGRAM);
	spool_checkpoint_begin(k.spool);
	entry("a1");
	entry("b1");
	kit_put(&k, TOPIC_PROGRAM);
	kit_commit(&k);
	assert_false(spool_wants_checkpoint(k.spool));
	entry("c1");
	kit_commit(&k);
	kit_batch(&k, TOPIC_PROGRAM, 3);
	kit_reopen(&k);
	assert_false(spool_wants_checkpoint(k.spool));
	assert_string_equal(replay(), "a1 b1 c1 ");
	assert_string_equal(replay(), "a1 b1 c1 ");
	assert_int_equal(kit_drain(&k), 5);
	/* Two in one batch: the last counts. */
	spool_checkpoint_begin(k.spool);
	entry("x");
	spool_checkpoint_begin(k.spool);
	entry("y");
	kit_commit(&k);
	kit_reopen(&k);
	assert_string_equal(replay(), "y ");
	/* An empty checkpoint forgets all. */
	spool_checkpoint_begin(k.spool);
	kit_commit(&k);
	kit_reopen(&k);
	assert_string_equal(replay(), "");
	assert_false(spool_wants_checkpoint(k.spool));
}

static void
segments_that_a_replay_needs_are_kept(void **state)
{
	(void)state;
	k.options.segment_bytes = 16 << 10;
	kit_open(&k);
	spool_checkpoint_begin(k.spool);
	entry("whole");
	kit_commit(&k);
	for (int i = 0; i < 20; i++) {
		entry("n");
		kit_batch(&k, TOPIC_PROGRAM, 50);
		kit_drain(&k);
		kit_tick(&k);
	}
	assert_true(kit_files(&k, "main-", ".seg", NULL) > 5);
	assert_true(spool_wants_checkpoint(k.spool));
	kit_reopen(&k);
	assert_string_equal(replay(), "whole n n n n n n n n n n n n n n n n n n n n ");
	spool_checkpoint_begin(k.spool);
	entry("again");
	kit_commit(&k);
	assert_false(spool_wants_checkpoint(k.spool));
	/* Only once it is synced do the old ones go: the first tick just asks for that. */
	kit_tick(&k);
	assert_true(kit_files(&k, "main-", ".seg", NULL) > 5);
	KIT_UNTIL(&k, kit_files(&k, "main-", ".seg", NULL) == 1);
	kit_reopen(&k);
	assert_string_equal(replay(), "again ");
}

static void
many_entries_want_a_checkpoint(void **state)
{
	char text[100] = "";
	int n = 0;

	(void)state;
	k.options.segment_bytes = 64 << 10;
	kit_open(&k);
	spool_checkpoint_begin(k.spool);
	kit_commit(&k);
	for (; !spool_wants_checkpoint(k.spool); n++) {
		assert_int_equal(spool_put_wal(k.spool, text, sizeof(text)), 0);
		kit_commit(&k);
		assert_true(n < 1000);
	}
	assert_in_range(n, 50, 200);
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
			assert_int_equal(r.id >> 1, r.seq);
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
		cmocka_unit_test_setup_teardown(a_torn_tail_loses_only_the_torn_batch, setup, teardown),
		cmocka_unit_test_setup_teardown(a_flipped_byte_costs_what_it_hits_and_is_counted, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(a_flipped_byte_in_the_head_puts_the_segment_aside,
		    setup, teardown),
		cmocka_unit_test_setup_teardown(a_file_that_changes_while_it_is_read_is_counted, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(after_a_crash_what_was_handed_out_is_marked, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(after_a_crash_acknowledged_records_stay_away, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(after_a_clean_close_exactly_the_rest_comes, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(a_torn_state_file_costs_only_repetition, setup, teardown),
		cmocka_unit_test_setup_teardown(what_looks_like_a_batch_inside_of_a_record_is_not_one,
		    setup, teardown),
		cmocka_unit_test_setup_teardown(old_schemas_outlive_a_new_one, setup, teardown),
		cmocka_unit_test_setup_teardown(a_topic_of_a_newer_program_is_left_alone, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(entries_since_the_checkpoint_are_replayed, setup, teardown),
		cmocka_unit_test_setup_teardown(segments_that_a_replay_needs_are_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(many_entries_want_a_checkpoint, setup, teardown),
		cmocka_unit_test_setup_teardown(seq_counts_without_records, setup, teardown),
		cmocka_unit_test_setup_teardown(a_record_that_is_lost_takes_no_others_number, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(a_batch_of_which_nothing_is_left_is_done_with, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(a_state_that_claims_more_than_there_was_is_not_believed,
		    setup, teardown),
		cmocka_unit_test_setup_teardown(acknowledged_out_of_order_by_two_owners_stays_away, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(numbering_goes_on_from_a_segments_head, setup, teardown),
		cmocka_unit_test_setup_teardown(a_file_that_somebody_cuts_is_given_up_at_once, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(
		    texts_that_somebody_removes_are_there_again_after_a_failure, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
