/* SPDX-License-Identifier: Apache-2.0 */
/* unknown: no version uses a seq twice of a topic that the one before it did not know. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "faults.h"
#include "unknown_kit.h"

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

/* What a later version leaves that has delivered all, and used seqs of a topic of its own without a record. */
static void
leave_no_record(enum topic topic)
{
	kit_open(&k);
	put_all(&k);
	kit_drain(&k);
	kit_close(&k);
	rename_topic("main-", topic_name(topic), LATER, 5000);
}

static void
without_a_record_the_next_seq_is_kept(void **state)
{
	(void)state;
	leave_no_record(KNOWN);
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

/*
 * Until it has written a segment, the later version leaves the next seq where the older one does not lose it, wherever
 * the topic is in the head.
 */
static void
a_later_version_that_writes_nothing_loses_no_next_seq(void **state)
{
	static const enum topic topics[] = { KNOWN, TOPIC_PROGRAM };
	char path[512];

	(void)state;
	for (size_t i = 0; i < sizeof(topics) / sizeof(topics[0]); i++) {
		const enum topic topic = topics[i];

		leave_no_record(topic);
		kit_open(&k);
		kit_batch(&k, TOPIC_TASK, 3);
		kit_drain(&k);
		kit_reopen(&k);
		kit_close(&k);
		/* The later version's segment is removed in time; what the older one wrote has no such topic. */
		snprintf(path, sizeof(path), "%s/main-0000000001.seg", k.dir);
		assert_int_equal(unlink(path), 0);
		rename_topic("main-", topic_name(topic), topic_name(TOPIC_AGENT), 0);
		snprintf(path, sizeof(path), "%s/state", k.dir);
		for (int start = 0; start < 2; start++) {
			assert_int_equal(unlink(path), 0);
			rename_topic("unknown-", LATER, topic_name(topic), 0);
			kit_open(&k);
			assert_int_equal(k.seq[topic], 5000);
			kit_close(&k);
			rename_topic("unknown-", topic_name(topic), LATER, 0);
		}
		assert_int_equal(unlink(path), 0);
		rename_topic("unknown-", LATER, topic_name(topic), 0);
		kit_open(&k);
		kit_batch(&k, TOPIC_TASK, 1);
		kit_reopen(&k);
		assert_int_equal(k.seq[topic], 5000);
		assert_int_equal(kit_files(&k, "unknown-", "", NULL), 0);
		kit_close(&k);
		assert_int_equal(unlink(path), 0);
		kit_open(&k);
		assert_int_equal(k.seq[topic], 5000);
		kit_done(&k);
		setup(NULL);
	}
}

/* The segment of which a file was made has earlier next seqs, and is removed in time. */
static void
its_own_segment_is_no_reason_to_remove_a_file(void **state)
{
	char path[512];

	(void)state;
	leave_no_record(KNOWN);
	kit_open(&k);
	kit_close(&k);
	rename_topic("unknown-", LATER, topic_name(KNOWN), 6000);
	rename_topic("main-", LATER, topic_name(KNOWN), 0);
	kit_open(&k);
	kit_close(&k);
	assert_int_equal(kit_files(&k, "unknown-main-0000000001", ".seg", NULL), 1);
	assert_int_equal(kit_files(&k, "main-", ".seg", path), 1);
	assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/state", k.dir);
	assert_int_equal(unlink(path), 0);
	kit_open(&k);
	assert_int_equal(k.seq[KNOWN], 6000);
}

static void
put_two_topics(struct kit *at)
{
	kit_put(at, KNOWN);
	kit_put(at, TOPIC_RUN);
	kit_commit(at);
}

/* An older version yet sets another topic of the same segment aside: the higher one of both counts. */
static void
a_file_that_is_written_again_keeps_its_next_seqs(void **state)
{
	static const char *const higher[] = { "unknown-", "main-" };
	char segment[512];

	(void)state;
	for (size_t i = 0; i < sizeof(higher) / sizeof(higher[0]); i++) {
		kit_crash(&k, put_two_topics);
		assert_int_equal(kit_files(&k, "main-", ".seg", segment), 1);
		downgrade();
		kit_crash(&k, only_open);
		rename_topic(higher[i], LATER, LATER, 6000);
		rename_topic("main-", topic_name(TOPIC_RUN), "sluice.latest", 0);
		rename_topic("unknown-", topic_name(TOPIC_RUN), "sluice.latest", 0);
		kit_crash(&k, only_open);
		/* What the file has, whatever the segment's own head says. */
		assert_int_equal(unlink(segment), 0);
		upgrade();
		kit_open(&k);
		assert_int_equal(k.seq[KNOWN], 6000);
		assert_int_equal(k.recovery.unknown, 1);
		kit_done(&k);
		setup(NULL);
	}
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
	leave_no_record(KNOWN);
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(without_a_record_the_next_seq_is_kept),
		T(a_later_version_that_writes_nothing_loses_no_next_seq),
		T(its_own_segment_is_no_reason_to_remove_a_file),
		T(a_file_that_is_written_again_keeps_its_next_seqs),
		T(next_seqs_that_only_the_state_has_are_kept),
		T(next_seqs_that_cannot_be_kept_stay_in_the_state),
		T(a_topic_of_the_later_version_is_no_missing_batch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
