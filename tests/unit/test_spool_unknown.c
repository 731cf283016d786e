/* SPDX-License-Identifier: Apache-2.0 */
/* unknown: records of a topic that only a later version knows are kept for it, and all others are delivered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "base/endian.h"
#include "faults.h"
#include "one_spool.h"

#define LATER "sluice.later"
#define KNOWN TOPIC_FINDING	/* what the later version calls it, and this one does not */
#define SEQ 1000		/* of its first record */
#define LATEST "sluice.latest"
#define SECOND TOPIC_RUN	/* what the latest version calls it, and the two before do not */

/* Gives a topic another name, and at least that next seq, in the heads of all files with these names. */
static void
rename_topic(const char *prefix, const char *from, const char *to, uint64_t next_seq)
{
	DIR *dir = opendir(k.dir);
	struct dirent *e;

	assert_non_null(dir);
	while ((e = readdir(dir)) != NULL) {
		struct spool_segment_head h;
		struct kit_file file;
		char path[512];

		if (strncmp(e->d_name, prefix, strlen(prefix)) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", k.dir, e->d_name);
		file = kit_load(path);
		assert_int_equal(spool_segment_head_unpack(file.data, file.len, &h), 0);
		for (unsigned i = 0; i < h.n_topics; i++) {
			if (strcmp(h.topics[i].name, from) != 0)
				continue;
			snprintf(h.topics[i].name, sizeof(h.topics[i].name), "%s", to);
			if (next_seq > h.topics[i].next_seq)
				h.topics[i].next_seq = next_seq;
		}
		spool_segment_head_pack(file.data, &h);
		kit_store(path, file.data, file.len);
		free(file.data);
	}
	closedir(dir);
}

/* Gives a topic another name in both slots of the state file. */
static void
rename_state(const char *from, const char *to)
{
	struct kit_file file;
	char path[512];

	snprintf(path, sizeof(path), "%s/state", k.dir);
	file = kit_load(path);
	for (size_t slot = 0; slot < file.len; slot += 4096) {
		for (size_t at = slot + 136; at < slot + 1416; at += 40)
			if (strcmp((const char *)file.data + at, from) == 0)
				snprintf((char *)file.data + at, 32, "%s", to);
		le_put32(file.data + slot + 4, crc32c(0, file.data + slot + 8, 4096 - 8));
	}
	kit_store(path, file.data, file.len);
	free(file.data);
}

/* Sets a topic's next seq in both slots of the state file, as after batches that were in memory only. */
static void
raise_state(const char *topic, uint64_t next_seq)
{
	struct kit_file file;
	char path[512];

	snprintf(path, sizeof(path), "%s/state", k.dir);
	file = kit_load(path);
	for (size_t slot = 0; slot < file.len; slot += 4096) {
		for (size_t at = slot + 136; at < slot + 1416; at += 40)
			if (strcmp((const char *)file.data + at, topic) == 0)
				le_put64(file.data + at + 32, next_seq);
		le_put32(file.data + slot + 4, crc32c(0, file.data + slot + 8, 4096 - 8));
	}
	kit_store(path, file.data, file.len);
	free(file.data);
}

/* What a later version leaves: records of its own topic among others, in both queues, and a checkpoint. */
static void
put_all(struct kit *at)
{
	at->seq[KNOWN] = SEQ;
	spool_checkpoint_begin(at->spool);
	kit_put_entry(at, 100);
	for (int i = 0; i < 4; i++) {
		kit_put(at, TOPIC_PROGRAM);
		kit_put(at, KNOWN);
		kit_put(at, KNOWN);
		kit_put(at, TOPIC_USAGE);
		(void)kit_commit_at(at, 100 + (uint64_t)i);
	}
}

static void
downgrade(void)
{
	rename_topic("main-", topic_name(KNOWN), LATER, 0);
	rename_topic("usage-", topic_name(KNOWN), LATER, 0);
}

static void
upgrade(void)
{
	rename_topic("unknown-", LATER, topic_name(KNOWN), 0);
	rename_topic("main-", LATER, topic_name(KNOWN), 0);
	rename_topic("usage-", LATER, topic_name(KNOWN), 0);
}

static uint64_t
unknown_topics(void)
{
	struct spool_stats st = kit_stats(&k);

	if (st.n_unknown == 0)
		return 0;
	assert_int_equal(st.n_unknown, 1);
	assert_string_equal(st.unknown[0].topic, LATER);
	return st.unknown[0].records;
}

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

/* What a later version leaves that has delivered all, and used seqs of its topic without a record. */
static void
leave_no_record(void)
{
	kit_open(&k);
	put_all(&k);
	kit_drain(&k);
	kit_close(&k);
	rename_topic("main-", topic_name(KNOWN), LATER, 5000);
}

static void
without_a_record_the_next_seq_is_kept(void **state)
{
	(void)state;
	leave_no_record();
	kit_open(&k);
	assert_int_equal(k.recovery.unknown, 0);
	assert_int_equal(kit_files(&k, "unknown-main-", ".seg", NULL), 1);
	kit_batch(&k, TOPIC_PROGRAM, 3);
	kit_drain(&k);
	kit_reopen(&k);
	kit_close(&k);
	rename_topic("unknown-", LATER, topic_name(KNOWN), 0);
	kit_open(&k);
	assert_int_equal(k.seq[KNOWN], 5000);
	assert_int_equal(kit_files(&k, "unknown-", "", NULL), 0);
}

/* Until it has written a segment, the later version leaves the next seq where the older one does not lose it. */
static void
a_later_version_that_writes_nothing_loses_no_next_seq(void **state)
{
	char path[512];

	(void)state;
	leave_no_record();
	kit_open(&k);
	kit_batch(&k, TOPIC_PROGRAM, 3);
	kit_drain(&k);
	kit_reopen(&k);
	kit_close(&k);
	/* The later version's segment is removed in time; what the older one wrote has no such topic. */
	snprintf(path, sizeof(path), "%s/main-0000000001.seg", k.dir);
	assert_int_equal(unlink(path), 0);
	rename_topic("main-", topic_name(KNOWN), topic_name(TOPIC_AGENT), 0);
	snprintf(path, sizeof(path), "%s/state", k.dir);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(unlink(path), 0);
		rename_topic("unknown-", LATER, topic_name(KNOWN), 0);
		kit_open(&k);
		assert_int_equal(k.seq[KNOWN], 5000);
		kit_close(&k);
		rename_topic("unknown-", topic_name(KNOWN), LATER, 0);
	}
	assert_int_equal(unlink(path), 0);
	rename_topic("unknown-", LATER, topic_name(KNOWN), 0);
	kit_open(&k);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	kit_reopen(&k);
	assert_int_equal(k.seq[KNOWN], 5000);
	assert_int_equal(kit_files(&k, "unknown-", "", NULL), 0);
	kit_close(&k);
	assert_int_equal(unlink(path), 0);
	kit_open(&k);
	assert_int_equal(k.seq[KNOWN], 5000);
}

static void
only_open(struct kit *at)
{
	(void)at;
}

/* What the later version leaves that was killed with batches in memory, of which its state has the next seqs. */
static void
leave_seqs_in_the_state(void)
{
	kit_crash(&k, put_all);
	downgrade();
	rename_state(topic_name(KNOWN), LATER);
	raise_state(LATER, 5000);
}

/* The state file may be lost once the older version has written batches, which do not have them. */
static void
next_seqs_that_only_the_state_has_are_kept(void **state)
{
	char path[512];
	uint64_t taken;

	(void)state;
	leave_seqs_in_the_state();
	kit_crash(&k, only_open);
	assert_int_equal(kit_files(&k, "unknown-main-", ".seg", NULL), 2);
	snprintf(path, sizeof(path), "%s/state", k.dir);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(unlink(path), 0);
		kit_open(&k);
		taken = k.spool->queues[SPOOL_MAIN].next_segment - 1;
		kit_batch(&k, TOPIC_PROGRAM, 1);
		kit_close(&k);
		assert_int_equal(kit_files(&k, "unknown-main-", ".seg", NULL), 2);
	}
	/* No segment has a number under which something is set aside. */
	snprintf(path, sizeof(path), "main-%010llu.seg", (unsigned long long)taken);
	assert_int_equal(kit_files(&k, path, "", NULL), 1);
	snprintf(path, sizeof(path), SPOOL_UNKNOWN "main-%010llu.seg", (unsigned long long)taken);
	assert_int_equal(kit_files(&k, path, "", NULL), 0);
	rename_topic(SPOOL_UNKNOWN, LATER, topic_name(KNOWN), 0);
	kit_open(&k);
	assert_int_equal(k.seq[KNOWN], 5000);
}

/* Where they cannot be written, the slot of the state file that has them stays as it was synced. */
static void
next_seqs_that_cannot_be_kept_stay_in_the_state(void **state)
{
	struct kit_file file;
	uint64_t safe;
	char path[512];

	(void)state;
	leave_seqs_in_the_state();
	fault = (struct fault){ .calls = FAULT_NAME, .times = 9, .error = ENOSPC };
	kit_open(&k);
	fault = (struct fault){ 0 };
	assert_int_equal(kit_files(&k, SPOOL_UNKNOWN, "", NULL), 0);
	safe = k.spool->generation_safe;
	assert_true(safe > 0);
	for (int i = 0; i < 4; i++) {
		kit_batch(&k, TOPIC_PROGRAM, 1);
		assert_int_equal(spool_sync_all(k.spool), 0);
		assert_int_equal(spool_marks_write(k.spool, false), 0);
	}
	snprintf(path, sizeof(path), "%s/state", k.dir);
	file = kit_load(path);
	kit_close(&k);
	assert_int_equal(le_get64(file.data + (safe & 1) * 4096 + 8), safe);
	memset(file.data + (safe & 1 ? 0 : 4096), 0xff, 4096);	/* the other one was torn */
	kit_store(path, file.data, file.len);
	free(file.data);
	rename_state(LATER, topic_name(KNOWN));
	kit_open(&k);
	assert_int_equal(k.seq[KNOWN], 5000);
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
commit_in_memory_first(struct kit *at)
{
	fault = (struct fault){ .calls = FAULT_WRITE | FAULT_CREATE, .times = 1000000, .error = ENOSPC };
	kit_batch(at, TOPIC_PROGRAM, 2);
	kit_expect(kit_stats(at).memory_bytes > 0, "batches in memory");
	fault.calls = 0;
	KIT_UNTIL(at, kit_stats(at).memory_bytes == 0);
}

/* Batches of the older version have no next seq of the topic, unlike its state: none of them is missing. */
static void
a_topic_of_the_later_version_is_no_missing_batch(void **state)
{
	char path[512];

	(void)state;
	leave_no_record();
	rename_state(topic_name(KNOWN), LATER);
	kit_crash(&k, commit_in_memory_first);
	while (kit_files(&k, "unknown-", ".seg", path) > 0)
		assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/main-0000000001.seg", k.dir);
	assert_int_equal(unlink(path), 0);
	rename_topic("main-", topic_name(KNOWN), "sluice.none", 0);
	rename_state(topic_name(KNOWN), "sluice.none");
	rename_state(LATER, topic_name(KNOWN));
	kit_open(&k);
	assert_int_equal(k.seq[KNOWN], SEQ + 8);
	assert_int_equal(k.recovery.records, 2);
	assert_false(spool_lacks_batches(k.spool));
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
	struct spool_stats st;

	(void)state;
	kit_crash(&k, put_all);
	downgrade();
	fault = (struct fault){ .calls = FAULT_NAME, .times = 9, .error = ENOSPC };
	kit_open(&k);
	fault = (struct fault){ 0 };
	st = kit_stats(&k);
	assert_int_equal(st.n_unknown, 1);
	assert_int_equal(st.unknown[0].records, 0);
	assert_int_equal(st.unknown[0].dropped, 8);
	assert_int_equal(kit_files(&k, "unknown-", "", NULL), 0);
	assert_int_equal(kit_drain(&k), 8);
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
		T(a_part_of_a_file_is_removed),
		T(what_its_own_segment_still_hands_out_is_not_there_twice),
		T(without_a_record_the_next_seq_is_kept),
		T(a_later_version_that_writes_nothing_loses_no_next_seq),
		T(next_seqs_that_only_the_state_has_are_kept),
		T(next_seqs_that_cannot_be_kept_stay_in_the_state),
		T(a_topic_of_the_later_version_is_no_missing_batch),
		T(they_are_marked_also_if_the_owner_that_returned_them_was_killed_first),
		T(they_are_the_first_to_go_when_there_is_no_room),
		T(what_cannot_be_written_is_counted),
		T(a_start_without_memory_sets_aside_all_or_nothing),
		T(a_file_that_is_damaged_is_left_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
