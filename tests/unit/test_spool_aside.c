/* SPDX-License-Identifier: Apache-2.0 */
/* spool_aside: a topic that is held back while the others go on, through restarts, damage and a full spool. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/mman.h>

#include "base/crc32c.h"
#include "base/endian.h"
#include "faults.h"
#include "one_spool.h"

/* Puts n batches, each with one record of each of three topics of the main queue. */
static void
put_mixed(struct kit *at, unsigned n)
{
	for (; n > 0; n--) {
		kit_put(at, TOPIC_HOST);
		kit_put(at, TOPIC_PROGRAM);
		kit_put(at, TOPIC_TASK);
		kit_commit(at);
	}
}

/* Hands out all that may be, as an output would that takes no records of the topics in refused, and acknowledges it. */
static void
deliver_but(struct kit *at, unsigned refused, uint64_t delivered[TOPIC_COUNT])
{
	struct spool_record r;

	for (;;) {
		if (!spool_next(at->spool, &r)) {
			if (spool_is_interrupted(at->spool))
				continue;
			break;
		}
		kit_expect(kit_is_whole(&r), "the record is what was put");
		if (refused >> r.topic & 1) {
			spool_unget(at->spool);
			spool_hold(at->spool, r.topic);
			continue;
		}
		kit_expect(r.seq == delivered[r.topic], "each record of a topic comes once and in order");
		delivered[r.topic]++;
		spool_ack(at->spool, r.id);
	}
	kit_check(at);
}

static void
release_all(struct kit *at)
{
	for (int t = 0; t < TOPIC_COUNT; t++)
		spool_release(at->spool, t);
}

static unsigned
aside(enum spool_queue queue)
{
	return k.spool->queues[queue].n_aside;
}

static void
one_topic_is_held_and_the_others_do_not_wait(void **state)
{
	uint64_t delivered[TOPIC_COUNT] = { 0 };

	(void)state;
	k.options.segment_bytes = 4096;
	kit_open(&k);
	for (unsigned round = 1; round <= 5; round++) {
		put_mixed(&k, 20);
		kit_batch(&k, TOPIC_USAGE, 5);
		deliver_but(&k, 1 << TOPIC_HOST, delivered);
		assert_int_equal(delivered[TOPIC_HOST], 0);
		assert_int_equal(delivered[TOPIC_PROGRAM], round * 20);
		assert_int_equal(delivered[TOPIC_TASK], round * 20);
		assert_int_equal(delivered[TOPIC_USAGE], round * 5);
		assert_int_equal(kit_stats(&k).records, round * 20);
		assert_int_equal(kit_stats(&k).waiting[TOPIC_HOST], round * 20);
		assert_int_equal(kit_stats(&k).oldest_us != 0, 1);
		assert_false(spool_has_more(k.spool));
		assert_int_equal(aside(SPOOL_MAIN), 1);
		/* Once in a while it is offered again, and refused again. */
		release_all(&k);
		assert_true(spool_has_more(k.spool));
		deliver_but(&k, 1 << TOPIC_HOST, delivered);
		assert_int_equal(kit_stats(&k).handed_again, 0);
		kit_tick(&k);
	}
	release_all(&k);
	deliver_but(&k, 0, delivered);
	assert_int_equal(delivered[TOPIC_HOST], 100);
	assert_int_equal(kit_stats(&k).records, 0);
	assert_int_equal(kit_stats(&k).acknowledged, 325);
	assert_int_equal(aside(SPOOL_MAIN), 0);
	kit_tick(&k);
	assert_int_equal(kit_stats(&k).oldest_us, 0);
	assert_int_equal(kit_files(&k, "main-", ".seg", NULL), 1);
	/* It is read with the others again. */
	put_mixed(&k, 3);
	deliver_but(&k, 0, delivered);
	assert_int_equal(delivered[TOPIC_HOST], 103);
}

/* The records of its topic that the output already has are in its flight, and come first if they are recalled. */
static void
what_was_out_before_it_was_held_comes_first(void **state)
{
	struct spool_record r[6];

	(void)state;
	kit_open(&k);
	put_mixed(&k, 2);
	for (int i = 0; i < 6; i++)
		r[i] = kit_next(&k);
	assert_int_equal(r[0].topic, TOPIC_HOST);
	put_mixed(&k, 1);
	assert_int_equal(kit_next(&k).topic, TOPIC_HOST);
	spool_unget(k.spool);
	spool_hold(k.spool, TOPIC_HOST);
	assert_int_equal(kit_next(&k).topic, TOPIC_PROGRAM);
	assert_int_equal(kit_next(&k).topic, TOPIC_TASK);
	kit_expect_none(&k);
	spool_ack(k.spool, r[3].id);		/* the second Host record, and not the first */
	spool_rewind(k.spool);
	for (int i = 0; i < 6; i++)
		assert_int_not_equal(kit_next(&k).topic, TOPIC_HOST);
	kit_expect_none(&k);
	spool_release(k.spool, TOPIC_HOST);
	r[0] = kit_next(&k);
	assert_int_equal(r[0].seq, 0);
	assert_true(r[0].is_again);
	r[1] = kit_next(&k);
	assert_int_equal(r[1].seq, 2);
	assert_false(r[1].is_again);		/* it never left */
	kit_expect_none(&k);
}

static uint64_t *shared;		/* by topic: what was delivered, in memory that a child shares */

static void
use_and_die(struct kit *at)
{
	put_mixed(at, 50);
	deliver_but(at, 1 << TOPIC_TASK, shared);
	kit_tick(at);		/* which writes the state file */
}

/* The others' records are not delivered again, whether the owner ended well or was killed. */
static void
after_a_restart_only_its_records_wait(void **state)
{
	uint64_t delivered[TOPIC_COUNT] = { 0 };

	(void)state;
	shared = mmap(NULL, sizeof(delivered), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(shared != MAP_FAILED);
	k.options.segment_bytes = 4096;
	for (uint64_t round = 1; round <= 4; round++) {
		kit_crash(&k, use_and_die);
		kit_open(&k);
		memcpy(delivered, shared, sizeof(delivered));
		assert_int_equal(k.recovery.records, round * 50);
		assert_int_equal(kit_stats(&k).waiting[TOPIC_TASK], round * 50);
		deliver_but(&k, 1 << TOPIC_TASK, delivered);
		kit_reopen(&k);
		assert_int_equal(k.recovery.records, round * 50);
		assert_int_equal(delivered[TOPIC_PROGRAM], round * 50);
		kit_close(&k);
	}
	kit_open(&k);
	deliver_but(&k, 0, delivered);
	assert_int_equal(delivered[TOPIC_TASK], 200);
	assert_int_equal(kit_stats(&k).records, 0);
	munmap(shared, sizeof(delivered));
}

/* An older version reads what is acknowledged of the whole queue, and delivers again what is above that. */
static void
an_older_version_loses_nothing(void **state)
{
	uint64_t delivered[TOPIC_COUNT] = { 0 };
	struct kit_file f;
	char path[512];

	(void)state;
	kit_open(&k);
	put_mixed(&k, 10);
	deliver_but(&k, 1 << TOPIC_PROGRAM, delivered);
	kit_close(&k);
	snprintf(path, sizeof(path), "%s/state", k.dir);
	f = kit_load(path);
	for (int slot = 0; slot < 2; slot++) {
		uint8_t *at = f.data + slot * 4096;

		/* That is record 1, and what follows it. */
		if (le_get32(at + 20) == 1)
			assert_int_equal(le_get64(at + 64), 1);
		memset(at + 1416, 0, 32 * 8);
		le_put32(at + 4, crc32c(0, at + 8, 4096 - 8));
	}
	kit_store(path, f.data, f.len);
	free(f.data);
	kit_open(&k);
	assert_int_equal(k.recovery.records, 29);
	assert_int_equal(kit_stats(&k).waiting[TOPIC_PROGRAM], 10);
	assert_int_equal(kit_drain(&k), 29);
}

/* In a clean end, what was acknowledged beyond an older record of its topic is no waiting record's number. */
static void
ranges_do_not_cover_what_is_aside(void **state)
{
	uint64_t delivered[TOPIC_COUNT] = { 0 };
	struct spool_record r, first = { 0 };

	(void)state;
	kit_open(&k);
	put_mixed(&k, 30);
	/* Host is held; of Program the first one is never acknowledged, all others are. */
	while (spool_next(k.spool, &r)) {
		if (r.topic == TOPIC_HOST) {
			spool_unget(k.spool);
			spool_hold(k.spool, TOPIC_HOST);
		} else if (r.topic == TOPIC_PROGRAM && r.seq == 0) {
			first = r;
		} else {
			spool_ack(k.spool, r.id);
		}
	}
	assert_int_equal(first.topic, TOPIC_PROGRAM);
	kit_reopen(&k);
	assert_int_equal(k.recovery.records, 31);
	while (spool_next(k.spool, &r)) {
		assert_int_equal(r.seq, delivered[r.topic]++);
		spool_ack(k.spool, r.id);
	}
	assert_int_equal(delivered[TOPIC_HOST], 30);
	assert_int_equal(delivered[TOPIC_PROGRAM], 1);
	assert_int_equal(delivered[TOPIC_TASK], 0);
}

static void
several_are_held_and_released_in_any_order(void **state)
{
	uint64_t delivered[TOPIC_COUNT] = { 0 };
	uint32_t random = 7;

	(void)state;
	k.options.segment_bytes = 4096;
	kit_open(&k);
	for (int round = 0; round < 300; round++) {
		random = random * 1664525u + 1013904223u;
		put_mixed(&k, random >> 28);
		if (random >> 20 & 1)
			kit_batch(&k, TOPIC_USAGE, 3);
		release_all(&k);
		deliver_but(&k, random >> 8 & 0x7f, delivered);
		if ((random >> 16 & 15) == 0) {
			spool_rewind(k.spool);
			kit_check(&k);
		}
		if ((random >> 12 & 15) == 0)
			kit_reopen(&k);
		kit_tick(&k);
	}
	release_all(&k);
	deliver_but(&k, 0, delivered);
	for (int t = 0; t < TOPIC_COUNT; t++)
		assert_int_equal(delivered[t], k.seq[t]);
	assert_int_equal(kit_stats(&k).records, 0);
	assert_int_equal(aside(SPOOL_MAIN) + aside(SPOOL_USAGE), 0);
}

/* A held topic costs the others nothing: its oldest records go first, and are counted as its own. */
static void
a_full_spool_drops_the_oldest_of_what_is_held(void **state)
{
	uint64_t delivered[TOPIC_COUNT] = { 0 }, dropped;
	struct spool_stats st;
	struct spool_record r;

	(void)state;
	k.options.max_bytes = 256 << 10;
	k.options.segment_bytes = 16 << 10;
	kit_open(&k);
	for (int i = 0; i < 200; i++) {
		put_mixed(&k, 10);
		kit_batch(&k, TOPIC_USAGE, 2);
		if (spool_wants_checkpoint(k.spool)) {
			spool_checkpoint_begin(k.spool);
			kit_commit(&k);
		}
		release_all(&k);
		/* Its turn comes, but nothing of it is taken. */
		deliver_but(&k, 1 << TOPIC_HOST, delivered);
		kit_tick(&k);
		assert_true(kit_stats(&k).bytes <= k.options.max_bytes);
	}
	assert_int_equal(delivered[TOPIC_PROGRAM], 2000);
	assert_int_equal(delivered[TOPIC_TASK], 2000);
	assert_int_equal(delivered[TOPIC_USAGE], 400);
	st = kit_stats(&k);
	dropped = st.dropped[TOPIC_HOST][SPOOL_DROP_FULL];
	assert_true(dropped > 0);
	for (int t = 0; t < TOPIC_COUNT; t++)
		for (int reason = 0; reason < SPOOL_DROPS; reason++)
			assert_int_equal(st.dropped[t][reason],
			    t == TOPIC_HOST && reason == SPOOL_DROP_FULL ? dropped : 0);
	assert_int_equal(st.records, 2000 - dropped);
	/* What is left are its newest. */
	release_all(&k);
	for (uint64_t seq = dropped; seq < 2000; seq++) {
		do
			kit_expect(spool_next(k.spool, &r) || spool_is_interrupted(k.spool), "one more waits");
		while (spool_is_interrupted(k.spool));
		assert_int_equal(r.topic, TOPIC_HOST);
		assert_int_equal(r.seq, seq);
		spool_ack(k.spool, r.id);
	}
	kit_expect_none(&k);
	assert_int_equal(kit_stats(&k).records, 0);
}

/* What is acknowledged goes first, and nothing is lost while that is enough. */
static void
of_a_full_spool_what_was_delivered_goes_first(void **state)
{
	uint64_t delivered[TOPIC_COUNT] = { 0 };

	(void)state;
	k.options.segment_bytes = 4096;
	kit_open(&k);
	for (int i = 0; i < 40; i++)
		kit_batch(&k, TOPIC_USAGE, 5);
	deliver_but(&k, 0, delivered);
	for (int i = 0; i < 40; i++)
		kit_batch(&k, TOPIC_USAGE, 5);
	deliver_but(&k, 1 << TOPIC_USAGE, delivered);
	k.spool->max_bytes = kit_stats(&k).bytes - 1;
	kit_batch(&k, TOPIC_USAGE, 5);
	assert_int_equal(kit_stats(&k).dropped[TOPIC_USAGE][SPOOL_DROP_FULL], 0);
	release_all(&k);
	deliver_but(&k, 0, delivered);
	assert_int_equal(delivered[TOPIC_USAGE], 405);
	kit_reopen(&k);
	assert_int_equal(k.recovery.records, 0);
}

/* What is put after the last segment was dropped is read, though those before it are still there. */
static void
records_follow_the_last_segment_that_was_dropped(void **state)
{
	uint64_t delivered[TOPIC_COUNT] = { 0 };

	(void)state;
	k.options.segment_bytes = 4096;
	kit_open(&k);
	while (kit_files(&k, "usage-", ".seg", NULL) < 2)
		kit_batch(&k, TOPIC_USAGE, 1);
	deliver_but(&k, 0, delivered);
	spool_remove(k.spool, TAILQ_LAST(&k.spool->queues[SPOOL_USAGE].segments, spool_segments));
	k.spool->segment_bytes = 1 << 20;	/* the one before has room again */
	kit_batch(&k, TOPIC_USAGE, 3);
	kit_reopen(&k);
	assert_int_equal(k.recovery.records, 3);
	kit_batch(&k, TOPIC_USAGE, 3);
	deliver_but(&k, 0, delivered);
	assert_int_equal(delivered[TOPIC_USAGE], k.seq[TOPIC_USAGE]);
}

static void
the_segment_in_which_its_lane_is_may_go(void **state)
{
	static const enum topic topics[] = { TOPIC_HOST, TOPIC_PROGRAM, TOPIC_TASK };

	(void)state;
	for (size_t i = 0; i < sizeof(topics) / sizeof(topics[0]); i++) {
		uint64_t delivered[TOPIC_COUNT] = { 0 };

		k.options.segment_bytes = 4096;
		kit_open(&k);
		put_mixed(&k, 60);
		deliver_but(&k, 1 << topics[i], delivered);
		assert_int_equal(aside(SPOOL_MAIN), 1);
		/* All segments are dropped, the last one, too. */
		k.spool->max_bytes = 0;
		spool_make_room(k.spool, 0);
		k.spool->max_bytes = 1 << 30;
		kit_check(&k);
		assert_int_equal(kit_stats(&k).records, 0);
		assert_int_equal(kit_stats(&k).dropped[topics[i]][SPOOL_DROP_FULL], 60);
		assert_int_equal(aside(SPOOL_MAIN), 0);
		delivered[topics[i]] = 60;
		put_mixed(&k, 10);
		deliver_but(&k, 1 << topics[i], delivered);
		release_all(&k);
		deliver_but(&k, 0, delivered);
		assert_int_equal(delivered[TOPIC_HOST], 70);
		assert_int_equal(delivered[TOPIC_PROGRAM], 70);
		assert_int_equal(delivered[TOPIC_TASK], 70);
		kit_done(&k);
		setup(NULL);
	}
}

/* Without memory all that is in it may go, and with that the segment in which the queue's cursor is. */
static void
the_segment_in_which_the_others_are_may_go(void **state)
{
	uint64_t delivered[TOPIC_COUNT] = { 0 };

	(void)state;
	k.options.segment_bytes = 4096;
	k.options.memory_bytes = 64 << 10;
	kit_open(&k);
	put_mixed(&k, 60);
	deliver_but(&k, 1 << TOPIC_HOST, delivered);
	k.spool->failed = -EIO;		/* as after a failed write */
	k.spool->retry_ns = UINT64_MAX;
	kit_batch(&k, TOPIC_PROGRAM, 3);
	deliver_but(&k, 1 << TOPIC_HOST, delivered);
	assert_int_equal(aside(SPOOL_MAIN), 1);
	assert_int_equal(kit_put_len(&k, TOPIC_PROGRAM, 63500), 0);
	kit_commit(&k);
	release_all(&k);
	deliver_but(&k, 0, delivered);
	assert_int_equal(delivered[TOPIC_HOST], 60);
	assert_int_equal(delivered[TOPIC_PROGRAM], 64);
	assert_int_equal(kit_stats(&k).records, 0);
	kit_expect_none(&k);
	assert_int_equal(aside(SPOOL_MAIN), 0);
}

/* Each damaged record is counted once, as one of its topic, whichever cursor finds the damage. */
static void
damage_is_counted_once(void **state)
{
	(void)state;
	for (int damaged = 0; damaged < 3; damaged++) {
		uint64_t delivered[TOPIC_COUNT] = { 0 };
		struct spool_stats st;
		struct kit_file f;
		char path[512];
		enum topic topic = damaged == 0 ? TOPIC_HOST : damaged == 1 ? TOPIC_PROGRAM : TOPIC_TASK;
		size_t at;

		kit_open(&k);
		put_mixed(&k, 3);
		/* Of the middle batch, the last byte of one record. */
		assert_int_equal(kit_files(&k, "main-", ".seg", path), 1);
		f = kit_load(path);
		at = k.spool->queues[SPOOL_MAIN].cursor.walk.seg->start;
		for (int batch = 0; batch < 2; batch++) {
			size_t head = spool_batch_head_size(TOPIC_COUNT);

			if (batch == 1) {
				size_t entry = at + head;

				for (int i = 0; i <= damaged; i++)
					entry += spool_entry_peek(f.data + entry, TOPIC_COUNT);
				f.data[entry - 1] ^= 1;
			}
			at += head + le_get32(f.data + at + 8);
		}
		kit_store(path, f.data, f.len);
		free(f.data);
		for (int turn = 0; turn < 3; turn++) {
			struct spool_record r;

			if (turn == 2)
				put_mixed(&k, 1);
			while (spool_next(k.spool, &r)) {
				kit_expect(kit_is_whole(&r), "the record is what was put");
				if (turn == 0 && r.topic == TOPIC_HOST) {
					spool_unget(k.spool);
					spool_hold(k.spool, TOPIC_HOST);
					continue;
				}
				delivered[r.topic] += r.topic == topic && delivered[topic] == 1;
				assert_int_equal(r.seq, delivered[r.topic]++);
				spool_ack(k.spool, r.id);
			}
			kit_check(&k);
			release_all(&k);
		}
		st = kit_stats(&k);
		for (int t = 0; t < TOPIC_COUNT; t++)
			assert_int_equal(st.dropped[t][SPOOL_DROP_CORRUPT], t == (int)topic);
		assert_int_equal(st.acknowledged, 11);
		assert_int_equal(st.records, 0);
		kit_done(&k);
		setup(NULL);
	}
}

/* What is damaged of a topic that was delivered is no loss, though another topic of its batch still waits. */
static void
damage_of_what_was_delivered_is_no_loss(void **state)
{
	uint64_t delivered[TOPIC_COUNT] = { 0 };
	struct kit_file f;
	char path[512];
	size_t at;

	(void)state;
	kit_open(&k);
	put_mixed(&k, 3);
	deliver_but(&k, 1 << TOPIC_HOST, delivered);
	at = k.spool->queues[SPOOL_MAIN].cursor.walk.seg->start + spool_batch_head_size(TOPIC_COUNT);
	kit_close(&k);
	assert_int_equal(kit_files(&k, "main-", ".seg", path), 1);
	f = kit_load(path);
	/* Of the first batch, the last byte of the second record. */
	for (int i = 0; i < 2; i++)
		at += spool_entry_peek(f.data + at, TOPIC_COUNT);
	f.data[at - 1] ^= 1;
	kit_store(path, f.data, f.len);
	free(f.data);
	kit_open(&k);
	assert_int_equal(k.recovery.corrupt_batches, 1);
	assert_int_equal(k.recovery.records, 3);
	deliver_but(&k, 0, delivered);
	assert_int_equal(delivered[TOPIC_HOST], 3);
	for (int t = 0; t < TOPIC_COUNT; t++)
		assert_int_equal(kit_stats(&k).dropped[t][SPOOL_DROP_CORRUPT], 0);
}

/* A part of the disk that cannot be read holds up the topic that is read there, and that for ten seconds. */
static void
a_bad_sector_holds_its_topic_alone(void **state)
{
	uint64_t delivered[TOPIC_COUNT] = { 0 }, in_it;
	struct spool_topic_state *host = NULL;
	struct spool_segment *seg;
	struct spool_record r;
	int fd;

	(void)state;
	k.options.segment_bytes = 4096;
	kit_open(&k);
	put_mixed(&k, 60);
	deliver_but(&k, 1 << TOPIC_HOST, delivered);
	host = &k.spool->queues[SPOOL_MAIN].topics[TOPIC_HOST];
	seg = TAILQ_NEXT(host->cursor.walk.seg, at);
	in_it = seg->waiting[TOPIC_HOST];
	assert_in_range(in_it, 1, 59);
	fd = open(k.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);	/* which read(2) refuses */
	assert_true(dup2(fd, seg->fd) >= 0);
	close(fd);
	for (int second = 0; second < 15; second++) {
		put_mixed(&k, 10);
		kit_tick(&k);
		release_all(&k);
		while (spool_next(k.spool, &r) || spool_is_interrupted(k.spool)) {
			if (spool_is_interrupted(k.spool))
				continue;
			delivered[r.topic]++;
			spool_ack(k.spool, r.id);
		}
		assert_int_equal(delivered[TOPIC_PROGRAM], 60 + (second + 1) * 10);
		if (second < 10)
			assert_int_equal(kit_stats(&k).dropped[TOPIC_HOST][SPOOL_DROP_CORRUPT], 0);
	}
	assert_int_equal(kit_stats(&k).dropped[TOPIC_HOST][SPOOL_DROP_CORRUPT], in_it);
	assert_int_equal(delivered[TOPIC_HOST], 60 + 150 - in_it);
	assert_int_equal(kit_stats(&k).records, 0);
}

/* The first record is never acknowledged, all others are, as with a partition without a leader. */
static void
a_record_that_is_never_acknowledged_holds_its_topic_alone(void **state)
{
	const uint64_t more = 3 * SPOOL_FLIGHT_MAX;
	uint64_t programs = 0, hosts = 0;
	struct spool_record r, first = { 0 };

	(void)state;
	kit_open(&k);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	first = kit_next(&k);
	for (uint64_t n = 0; n < more; n += 4096) {
		for (unsigned i = 0; i < 4096; i++)
			assert_int_equal(kit_put_len(&k, TOPIC_PROGRAM, 1), 0);
		kit_put(&k, TOPIC_HOST);
		kit_commit(&k);
		while (spool_next(k.spool, &r) || spool_is_interrupted(k.spool)) {
			if (spool_is_interrupted(k.spool))
				continue;
			programs += r.topic == TOPIC_PROGRAM;
			hosts += r.topic == TOPIC_HOST;
			spool_ack(k.spool, r.id);
		}
	}
	assert_int_equal(hosts, more / 4096);
	assert_int_equal(programs, SPOOL_FLIGHT_MAX - 1);
	assert_true(kit_stats(&k).is_full[TOPIC_PROGRAM]);
	assert_false(kit_stats(&k).is_full[TOPIC_HOST]);
	assert_int_equal(k.spool->queues[SPOOL_MAIN].topics[TOPIC_PROGRAM].flight.cap, SPOOL_FLIGHT_MAX);
	spool_ack(k.spool, first.id);
	assert_false(kit_stats(&k).is_full[TOPIC_PROGRAM]);
	while (spool_next(k.spool, &r) || spool_is_interrupted(k.spool)) {
		if (spool_is_interrupted(k.spool))
			continue;
		programs += r.topic == TOPIC_PROGRAM;
		assert_int_equal(r.seq, programs);
		spool_ack(k.spool, r.id);
	}
	assert_int_equal(programs, more);
	assert_int_equal(kit_stats(&k).records, 0);
	kit_check(&k);
}

/* One call reads a part of the spool only, however far the next record is. */
static void
a_call_passes_over_a_bounded_part(void **state)
{
	uint64_t calls = 0;
	struct spool_record r;

	(void)state;
	kit_open(&k);
	kit_batch(&k, TOPIC_TASK, 1);
	for (int i = 0; i < 40; i++) {
		for (int n = 0; n < 10; n++)
			assert_int_equal(kit_put_len(&k, TOPIC_TASK, 100000), 0);
		kit_commit(&k);
	}
	kit_batch(&k, TOPIC_HOST, 1);
	assert_int_equal(kit_next(&k).topic, TOPIC_TASK);
	spool_unget(k.spool);
	spool_hold(k.spool, TOPIC_TASK);
	while (!spool_next(k.spool, &r)) {
		assert_true(spool_is_interrupted(k.spool));
		calls++;
	}
	assert_int_equal(r.topic, TOPIC_HOST);
	assert_in_range(calls, 1, 40);
	kit_expect_none(&k);
	assert_false(spool_is_interrupted(k.spool));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(one_topic_is_held_and_the_others_do_not_wait),
		T(what_was_out_before_it_was_held_comes_first),
		T(after_a_restart_only_its_records_wait),
		T(an_older_version_loses_nothing),
		T(ranges_do_not_cover_what_is_aside),
		T(several_are_held_and_released_in_any_order),
		T(a_full_spool_drops_the_oldest_of_what_is_held),
		T(of_a_full_spool_what_was_delivered_goes_first),
		T(records_follow_the_last_segment_that_was_dropped),
		T(the_segment_in_which_its_lane_is_may_go),
		T(the_segment_in_which_the_others_are_may_go),
		T(damage_is_counted_once),
		T(damage_of_what_was_delivered_is_no_loss),
		T(a_bad_sector_holds_its_topic_alone),
		T(a_record_that_is_never_acknowledged_holds_its_topic_alone),
		T(a_call_passes_over_a_bounded_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
