/* SPDX-License-Identifier: Apache-2.0 */
/* spool_mark: records up to a mark that wait for the disk or for an output. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "faults.h"
#include "marks_kit.h"

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
what_waits_up_to_a_mark_is_counted_by_topic(void **state)
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_mark_says_all_of_where_it_is),
		T(a_mark_waits_for_its_own_records_and_no_others),
		T(what_is_in_memory_is_not_on_the_disk_and_what_could_not_be_synced_never_is),
		T(what_waits_up_to_a_mark_is_counted_by_topic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
