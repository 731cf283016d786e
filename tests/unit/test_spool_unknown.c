/* SPDX-License-Identifier: Apache-2.0 */
/* unknown: records of a topic that only a later version knows are kept for it, and all others are delivered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "faults.h"
#include "unknown_kit.h"

#define LATEST "sluice.latest"
#define SECOND TOPIC_RUN	/* what the latest version calls it, and the two before do not */

static void
count_entry(const void *data, size_t len, void *arg)
{
	(void)data;
	(void)len;
	++*(unsigned *)arg;
}

static void
all_others_are_delivered_and_the_log_is_replayed(void **state)
{
	struct ring_offset offset;
	unsigned entries = 0;

	(void)state;
	kit_crash(&k, put_all);
	downgrade();
	kit_open(&k);
	assert_int_equal(k.recovery.unreadable, 0);
	assert_int_equal(k.recovery.unknown, 8);
	assert_int_equal(k.recovery.records, 8);
	assert_int_equal(unknown_topics(), 8);
	assert_int_equal(k.seq[TOPIC_PROGRAM], 4);
	spool_replay(k.spool, count_entry, &entries);
	assert_int_equal(entries, 1);
	assert_true(spool_ring_offset(k.spool, &offset));
	assert_int_equal(offset.position, 103);
	assert_true(kit_stats(&k).bytes > k.spool->bytes);
	kit_batch(&k, TOPIC_PROGRAM, 3);
	assert_int_equal(kit_drain(&k), 11);
	kit_expect_none(&k);
	/* They are counted once, however often this version starts. */
	for (int i = 0; i < 3; i++) {
		kit_reopen(&k);
		assert_int_equal(k.recovery.records, 0);
		assert_int_equal(unknown_topics(), 8);
	}
}

/* Reads all; the topic's records must be the 8 in order, each as it was put. Returns how many others there were. */
static unsigned
read_later(void)
{
	struct spool_record r;
	unsigned others = 0;
	uint64_t seq = SEQ;

	while (spool_next(k.spool, &r)) {
		assert_true(kit_is_whole(&r));
		if (r.topic == KNOWN) {
			assert_int_equal(r.seq, seq++);
			assert_int_equal(r.schema, spool_fingerprint(topic_name(KNOWN), strlen(topic_name(KNOWN))));
		} else {
			others++;
		}
		spool_ack(k.spool, r.id);
	}
	kit_check(&k);
	assert_int_equal(seq, SEQ + 8);
	return others;
}

static void
the_next_version_that_knows_the_topic_has_them_once(void **state)
{
	struct spool_record r;

	(void)state;
	kit_crash(&k, put_all);
	downgrade();
	kit_open(&k);
	kit_batch(&k, TOPIC_PROGRAM, 3);
	kit_drain(&k);
	kit_tick(&k);
	kit_close(&k);
	upgrade();
	kit_open(&k);
	assert_int_equal(k.recovery.records, 8);
	assert_int_equal(k.seq[KNOWN], SEQ + 8);
	assert_int_equal(kit_stats(&k).n_unknown, 0);
	/* Under the numbers that they had before, they may have been handed out. */
	assert_true(spool_next(k.spool, &r));
	assert_true(r.is_again);
	spool_unget(k.spool);
	assert_int_equal(read_later(), 0);
	kit_batch(&k, KNOWN, 1);
	assert_int_equal(kit_drain(&k), 1);
	assert_int_equal(kit_files(&k, "unknown-", "", NULL), 0);
	kit_reopen(&k);
	assert_int_equal(k.recovery.records, 0);
	kit_expect_none(&k);
}

/* What the latest of three versions leaves: the oldest knows neither topic, the one between them only the first. */
static void
put_both(struct kit *at)
{
	for (int i = 0; i < 4; i++) {
		kit_put(at, TOPIC_PROGRAM);
		kit_put(at, KNOWN);
		kit_put(at, SECOND);
		kit_put(at, SECOND);
		(void)kit_commit(at);
	}
}

static void
name_all(const char *topic, const char *known_as)
{
	rename_topic("main-", topic, known_as, 0);
	rename_topic("usage-", topic, known_as, 0);
	rename_topic("unknown-", topic, known_as, 0);
}

enum version {
	OLDEST,
	MIDDLE,
	NEWEST,
	VERSIONS,
};

/* Names the topics of all files as that version knows them. */
static void
become(enum version v)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/state", k.dir);
	if (access(path, F_OK) == 0) {
		rename_state(v < MIDDLE ? topic_name(KNOWN) : LATER, v < MIDDLE ? LATER : topic_name(KNOWN));
		rename_state(v < NEWEST ? topic_name(SECOND) : LATEST, v < NEWEST ? LATEST : topic_name(SECOND));
	}
	name_all(v < MIDDLE ? topic_name(KNOWN) : LATER, v < MIDDLE ? LATER : topic_name(KNOWN));
	name_all(v < NEWEST ? topic_name(SECOND) : LATEST, v < NEWEST ? LATEST : topic_name(SECOND));
}

/*
 * Starts versions in turn, one for each character: o, m, n; capital: it delivers all that it hands out, and puts
 * records of its own. At the end the newest delivers the rest: none is lost, and only a redelivery comes twice.
 */
static void
play(const char *turns)
{
	uint64_t seen[TOPIC_COUNT] = { 0 };
	struct spool_record r;

	kit_crash(&k, put_both);
	for (const char *turn = turns; ; turn++) {
		bool is_end = *turn == '\0', is_active = is_end || (*turn >= 'A' && *turn <= 'Z');
		enum version v = is_end || *turn == 'n' || *turn == 'N' ? NEWEST :
		    *turn == 'm' || *turn == 'M' ? MIDDLE : OLDEST;

		become(v);
		kit_open(&k);
		while (is_active && spool_next(k.spool, &r)) {
			assert_true(kit_is_whole(&r));
			assert_true(r.seq < 64);
			if (seen[r.topic] >> r.seq & 1 && !r.is_again)
				fail_msg("%s: %s %" PRIu64 " is not a redelivery", turns, topic_name(r.topic), r.seq);
			seen[r.topic] |= UINT64_C(1) << r.seq;
			spool_ack(k.spool, r.id);
		}
		if (is_active && !is_end)
			kit_batch(&k, TOPIC_PROGRAM, 1);
		spool_reap(k.spool);
		kit_close(&k);
		if (is_end)
			break;
	}
	if (seen[KNOWN] != 0xf || seen[SECOND] != 0xff)
		fail_msg("%s: records are lost: %" PRIx64 " %" PRIx64, turns, seen[KNOWN], seen[SECOND]);
}

static void
no_order_of_three_versions_loses_a_record(void **state)
{
	const char kinds[] = "oOmMnN";

	(void)state;
	for (int i = 0; i < 6 * 6 * 6; i++) {
		const char turns[] = { kinds[i % 6], kinds[i / 6 % 6], kinds[i / 36], '\0' };

		play(turns);
		kit_done(&k);
		setup(NULL);
	}
}

/* What the later version has delivered out of turn is not set aside: the older one keeps how far that was. */
static void
what_was_acknowledged_by_topic_is_not_set_aside(void **state)
{
	struct spool_record r;

	(void)state;
	kit_open(&k);
	put_all(&k);
	spool_hold(k.spool, TOPIC_PROGRAM);
	while (spool_next(k.spool, &r))
		spool_ack(k.spool, r.id);
	for (int i = 0; i < 2; i++) {
		kit_close(&k);
		downgrade();
		rename_state(topic_name(KNOWN), LATER);
		kit_open(&k);
		assert_int_equal(k.recovery.unknown, 0);
		assert_int_equal(k.recovery.records, 4);
		kit_close(&k);
		upgrade();
		rename_state(LATER, topic_name(KNOWN));
		kit_open(&k);
		assert_int_equal(k.recovery.records, 4);
	}
}

/* Then nothing else has them. */
static void
what_was_set_aside_of_a_segment_that_is_lost_is_handed_out(void **state)
{
	char path[512];

	(void)state;
	kit_crash(&k, put_all);
	downgrade();
	kit_open(&k);			/* and delivers none */
	kit_close(&k);
	upgrade();
	snprintf(path, sizeof(path), "%s/main-0000000001.seg", k.dir);
	assert_int_equal(unlink(path), 0);
	kit_open(&k);
	assert_int_equal(k.recovery.records, 8 + 4);
	assert_int_equal(read_later(), 4);
}

/* A start that was killed while it made a file leaves no part of it. */
static void
a_part_of_a_file_is_removed(void **state)
{
	static const char *const names[] = { "main-0000000009.seg.part", "usage-0000000009.seg.part",
	    "unknown-main-0000000009.seg.part" };
	char path[512];

	(void)state;
	kit_open(&k);
	kit_close(&k);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", k.dir, names[i]);
		kit_store(path, "SLSG", 4);
	}
	kit_open(&k);
	assert_int_equal(kit_files(&k, "", ".part", NULL), 0);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	assert_int_equal(kit_files(&k, "main-0000000001.seg", "", NULL), 1);
}

static void
what_its_own_segment_still_hands_out_is_not_there_twice(void **state)
{
	(void)state;
	kit_crash(&k, put_all);
	downgrade();
	kit_open(&k);			/* and delivers none */
	assert_int_equal(unknown_topics(), 8);
	kit_close(&k);
	upgrade();
	kit_open(&k);
	assert_int_equal(k.recovery.records, 16);
	assert_int_equal(read_later(), 8);
	kit_reopen(&k);
	assert_int_equal(k.recovery.records, 0);
}

/* Their new numbers are beyond the mark of the state, which is a clean one here. */
static void
they_are_marked_also_if_the_owner_that_returned_them_was_killed_first(void **state)
{
	struct spool_record r;
	struct kit_file file;
	unsigned n = 0;
	char path[512];

	(void)state;
	kit_crash(&k, put_all);
	downgrade();
	kit_open(&k);
	kit_drain(&k);
	kit_close(&k);
	upgrade();
	snprintf(path, sizeof(path), "%s/state", k.dir);
	file = kit_load(path);
	kit_crash(&k, only_open);
	kit_store(path, file.data, file.len);	/* it was not written yet */
	free(file.data);
	kit_open(&k);
	for (; spool_next(k.spool, &r); n++) {
		assert_int_equal(r.topic, KNOWN);
		assert_true(r.is_again);
	}
	assert_int_equal(n, 8);
}

static void
they_are_the_first_to_go_when_there_is_no_room(void **state)
{
	struct spool_stats st;

	(void)state;
	k.options.max_bytes = 64 << 10;
	kit_crash(&k, put_all);
	downgrade();
	kit_open(&k);
	assert_int_equal(unknown_topics(), 8);
	for (int i = 0; i < 1000 && kit_stats(&k).unknown[0].dropped == 0; i++)
		kit_batch(&k, TOPIC_PROGRAM, 1);
	st = kit_stats(&k);
	assert_int_equal(st.n_unknown, 1);
	assert_int_equal(st.unknown[0].records, 0);
	assert_int_equal(st.unknown[0].dropped, 8);
	assert_int_equal(st.dropped[TOPIC_USAGE][SPOOL_DROP_FULL], 0);
	assert_true(st.bytes <= 64 << 10);
	kit_close(&k);
	upgrade();
	kit_open(&k);
	assert_int_equal(k.seq[KNOWN], SEQ + 8);
}

static void
what_cannot_be_written_is_counted(void **state)
{
	static const unsigned calls[] = { FAULT_CREATE, FAULT_WRITE | FAULT_REWRITE, FAULT_SYNC, FAULT_NAME };

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct spool_stats st;

		kit_crash(&k, put_all);
		downgrade();
		fault = (struct fault){ .calls = calls[i], .times = 100, .error = ENOSPC };
		kit_open(&k);
		fault = (struct fault){ 0 };
		st = kit_stats(&k);
		assert_int_equal(st.n_unknown, 1);
		assert_int_equal(st.unknown[0].records, 0);
		assert_int_equal(st.unknown[0].dropped, 8);
		assert_int_equal(kit_files(&k, "unknown-", "", NULL), 0);
		assert_int_equal(kit_drain(&k), 8);
		kit_done(&k);
		setup(NULL);
	}
}

static void
put_one_of_each(struct kit *at)
{
	for (int t = 0; t < TOPIC_COUNT; t++)
		kit_batch(at, t, 1);
}

static void
so_is_a_single_record_of_any_topic(void **state)
{
	(void)state;
	for (int t = 0; t < TOPIC_COUNT; t++) {
		kit_crash(&k, put_one_of_each);
		rename_topic("main-", topic_name(t), LATER, 0);
		rename_topic("usage-", topic_name(t), LATER, 0);
		fault = (struct fault){ .calls = FAULT_NAME, .times = 9, .error = ENOSPC };
		kit_open(&k);
		fault = (struct fault){ 0 };
		assert_int_equal(kit_stats(&k).n_unknown, 1);
		assert_string_equal(kit_stats(&k).unknown[0].topic, LATER);
		assert_int_equal(kit_stats(&k).unknown[0].dropped, 1);
		kit_done(&k);
		setup(NULL);
	}
}

static void
put_large(struct kit *at)
{
	put_all(at);
	for (int i = 0; i < 8; i++) {
		kit_expect(kit_put_len(at, KNOWN, 1000) == 0, "it is taken");
		kit_put(at, TOPIC_PROGRAM);
		(void)kit_commit(at);
	}
}

/* A start that fails because memory ran out leaves nothing behind that the next one takes for the whole. */
static void
a_start_without_memory_sets_aside_all_or_nothing(void **state)
{
	bool is_over = false;

	(void)state;
	for (unsigned n = 0; !is_over; n++) {
		char error[256];

		kit_crash(&k, put_large);
		downgrade();
		fault = (struct fault){ .calls = FAULT_MEMORY, .skip = n, .times = 1, .error = ENOMEM };
		if (spool_open(&k.options, &k.spool, &k.recovery, error, sizeof(error)) == 0)
			spool_close(k.spool);
		k.spool = NULL;
		is_over = fault.hit == 0;
		fault = (struct fault){ 0 };
		kit_open(&k);
		assert_int_equal(unknown_topics(), 16);
		kit_done(&k);
		setup(NULL);
	}
}

static void
a_file_that_is_damaged_is_left_as_it_is(void **state)
{
	struct kit_file file;
	char path[512];

	(void)state;
	kit_crash(&k, put_all);
	downgrade();
	kit_open(&k);
	kit_drain(&k);
	kit_close(&k);
	assert_int_equal(kit_files(&k, "unknown-main-", ".seg", path), 1);
	file = kit_load(path);
	for (size_t at = 0; at < file.len; at += 7) {
		file.data[at] ^= 0x20;
		kit_store(path, file.data, file.len);
		file.data[at] ^= 0x20;
		kit_open(&k);
		assert_in_range(k.recovery.unknown, 0, 8);
		assert_int_equal(k.recovery.records, 0);
		kit_close(&k);
		assert_int_equal(kit_files(&k, "unknown-main-", ".seg", NULL), 1);
	}
	free(file.data);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(all_others_are_delivered_and_the_log_is_replayed),
		T(the_next_version_that_knows_the_topic_has_them_once),
		T(no_order_of_three_versions_loses_a_record),
		T(what_was_acknowledged_by_topic_is_not_set_aside),
		T(what_was_set_aside_of_a_segment_that_is_lost_is_handed_out),
		T(a_part_of_a_file_is_removed),
		T(what_its_own_segment_still_hands_out_is_not_there_twice),
		T(they_are_marked_also_if_the_owner_that_returned_them_was_killed_first),
		T(they_are_the_first_to_go_when_there_is_no_room),
		T(what_cannot_be_written_is_counted),
		T(so_is_a_single_record_of_any_topic),
		T(a_start_without_memory_sets_aside_all_or_nothing),
		T(a_file_that_is_damaged_is_left_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
