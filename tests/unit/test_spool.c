/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>

#include "spool_kit.h"
#include "base/crc32c.h"
#include "spool/format.h"

static struct kit k;

static int
setup(void **state)
{
	(void)state;
	kit_init(&k);
	kit_open(&k);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	kit_done(&k);
	return 0;
}

static void
checksums_are_the_standard_ones(void **state)
{
	static const char text[] = "123456789";
	uint8_t data[1000];

	(void)state;
	assert_int_equal(crc32c(0, text, 9), 0xe3069283);
	assert_int_equal(crc32c_portable(0, text, 9), 0xe3069283);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7);
	for (size_t len = 0; len < sizeof(data); len += 13) {
		assert_int_equal(crc32c(5, data, len), crc32c_portable(5, data, len));
		assert_int_equal(crc32c(crc32c(0, data, len / 2), data + len / 2, len - len / 2),
		    crc32c(0, data, len));
	}
	/* From the Avro specification's Java code: the empty text, and the schema "null". */
	assert_true(spool_fingerprint("", 0) == UINT64_C(0xc15d213aa4d7a795));
	assert_true(spool_fingerprint("\"null\"", 6) == UINT64_C(0x63dd24e7cc258f8a));
}

static void
a_new_spool_is_empty_and_private(void **state)
{
	struct ring_offset ring_offset;
	struct stat st;

	(void)state;
	assert_true(k.recovery.is_fresh);
	assert_false(k.recovery.was_clean);
	kit_expect_none(&k);
	assert_false(spool_ring_offset(k.spool, &ring_offset));
	assert_int_equal(spool_next_seq(k.spool, TOPIC_PROGRAM), 0);
	assert_int_equal(stat(k.dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_true(spool_wants_checkpoint(k.spool));
	assert_string_equal(spool_drop_name(SPOOL_DROP_FULL), "spool_full");
}

static void
records_come_whole_in_order_and_the_main_queue_first(void **state)
{
	struct spool_record r;

	(void)state;
	kit_put(&k, TOPIC_USAGE);
	kit_put(&k, TOPIC_PROGRAM);
	kit_put(&k, TOPIC_TASK);
	kit_expect_none(&k);		/* not before the commit */
	assert_int_equal(kit_commit(&k), 0);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	r = kit_next(&k);
	assert_int_equal(r.topic, TOPIC_PROGRAM);
	assert_int_equal(r.seq, 0);
	assert_false(r.is_again);
	assert_true(r.schema == spool_fingerprint("sluice.program", 14));
	assert_string_equal(spool_schema(k.spool, r.schema), "sluice.program");
	assert_int_equal(kit_next(&k).topic, TOPIC_TASK);
	assert_int_equal(kit_next(&k).seq, 1);
	r = kit_next(&k);
	assert_int_equal(r.topic, TOPIC_USAGE);
	kit_expect_none(&k);
	assert_int_equal(spool_in_flight(k.spool), 4);
	assert_int_equal(kit_stats(&k).records, 4);
	assert_int_equal(kit_stats(&k).put, 4);
	assert_true(kit_stats(&k).bytes > 0);
	assert_null(spool_schema(k.spool, 4711));
}

static void
acknowledgements_come_in_any_order(void **state)
{
	uint64_t ids[100];

	(void)state;
	kit_batch(&k, TOPIC_PROGRAM, 100);
	for (int i = 0; i < 100; i++)
		ids[i] = kit_next(&k).id;
	for (int i = 0; i < 100; i++) {
		assert_int_equal(spool_in_flight(k.spool), 100 - i);
		assert_int_equal(kit_stats(&k).records, 100 - i);
		spool_ack(k.spool, ids[i * 37 % 100]);
		spool_ack(k.spool, ids[i * 37 % 100]);	/* a second time: nothing */
	}
	spool_ack(k.spool, 12345);
	assert_int_equal(kit_stats(&k).acknowledged, 100);
	assert_int_equal(kit_stats(&k).records, 0);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	spool_ack(k.spool, kit_next(&k).id);
}

static void
unget_returns_the_same_record(void **state)
{
	struct spool_record r;

	(void)state;
	kit_batch(&k, TOPIC_USAGE, 3);
	assert_int_equal(kit_next(&k).seq, 0);
	r = kit_next(&k);
	assert_int_equal(r.seq, 1);
	spool_unget(k.spool);
	assert_int_equal(spool_in_flight(k.spool), 1);
	spool_unget(k.spool);		/* only once */
	assert_int_equal(spool_in_flight(k.spool), 1);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	r = kit_next(&k);			/* before the main queue, since it was asked for */
	assert_int_equal(r.topic, TOPIC_USAGE);
	assert_int_equal(r.seq, 1);
	assert_false(r.is_again);
	assert_int_equal(kit_next(&k).topic, TOPIC_PROGRAM);
	assert_int_equal(kit_next(&k).seq, 2);
	kit_expect_none(&k);
	assert_int_equal(kit_stats(&k).handed_again, 0);
}

static void
rewind_hands_out_again_what_is_not_acknowledged(void **state)
{
	uint64_t ids[10];
	struct spool_record r;

	(void)state;
	kit_batch(&k, TOPIC_PROGRAM, 10);
	for (int i = 0; i < 6; i++)
		ids[i] = kit_next(&k).id;
	spool_ack(k.spool, ids[1]);
	spool_ack(k.spool, ids[4]);
	spool_rewind(k.spool);
	assert_int_equal(spool_in_flight(k.spool), 0);
	spool_ack(k.spool, ids[2]);	/* a late report */
	for (uint64_t want = 0; want < 10; want++) {
		if (want == 1 || want == 2 || want == 4)
			continue;
		r = kit_next(&k);
		assert_int_equal(r.seq, want);
		assert_int_equal(r.is_again, want < 6);
		if (want == 3) {	/* in the middle of a second round */
			spool_unget(k.spool);
			r = kit_next(&k);
			assert_int_equal(r.seq, 3);
			assert_true(r.is_again);
		}
	}
	kit_expect_none(&k);
	assert_int_equal(kit_stats(&k).handed_again, 3);
	spool_rewind(k.spool);
	assert_int_equal(kit_drain(&k), 7);
	assert_int_equal(kit_stats(&k).records, 0);
}

static void
what_is_acknowledged_is_removed(void **state)
{
	(void)state;
	spool_close(k.spool);
	k.options.max_bytes = 4 << 20;
	k.options.segment_bytes = 64 << 10;
	kit_open(&k);
	for (int i = 0; i < 100; i++) {
		kit_batch(&k, TOPIC_PROGRAM, 50);
		kit_batch(&k, TOPIC_USAGE, 50);
	}
	assert_true(kit_files(&k, "main-", ".seg", NULL) > 8);
	assert_int_equal(kit_drain(&k), 10000);
	kit_tick(&k);
	assert_int_equal(kit_files(&k, "main-", ".seg", NULL), 1);
	assert_int_equal(kit_files(&k, "usage-", ".seg", NULL), 1);
	assert_true(kit_stats(&k).bytes < 2 * (64 << 10));
	/* Numbering continues, even where no record is left. */
	kit_reopen(&k);
	assert_true(k.recovery.was_clean);
	assert_int_equal(k.recovery.records, 0);
	assert_int_equal(spool_next_seq(k.spool, TOPIC_USAGE), 5000);
	assert_int_equal(spool_next_seq(k.spool, TOPIC_PROGRAM), 5000);
	kit_expect_none(&k);
	spool_close(k.spool);
	char path[512];
	while (kit_files(&k, "", ".seg", path) > 0)
		unlink(path);
	kit_open(&k);
	assert_int_equal(spool_next_seq(k.spool, TOPIC_PROGRAM), 5000);
	kit_batch(&k, TOPIC_PROGRAM, 3);
	assert_int_equal(kit_drain(&k), 3);
}

static void
the_oldest_record_has_an_age(void **state)
{
	struct spool_record r;

	(void)state;
	assert_int_equal(kit_stats(&k).oldest_us, 0);
	kit_batch(&k, TOPIC_PROGRAM, 3);
	assert_true(kit_stats(&k).oldest_us == KIT_TIME);
	r = kit_next(&k);
	spool_ack(k.spool, r.id);
	kit_tick(&k);
	assert_true(kit_stats(&k).oldest_us == KIT_TIME + 1);
	kit_drain(&k);
	kit_tick(&k);
	assert_int_equal(kit_stats(&k).oldest_us, 0);
}

static void
large_records_pass_and_too_large_ones_do_not(void **state)
{
	struct spool_record r;

	(void)state;
	assert_int_equal(kit_put_len(&k, TOPIC_PROGRAM, 0), 0);
	assert_int_equal(kit_put_len(&k, TOPIC_PROGRAM, 1 << 20), 0);
	assert_int_equal(kit_put_len(&k, TOPIC_PROGRAM, 16 << 20), 0);
	assert_int_equal(kit_put_len(&k, TOPIC_PROGRAM, (16 << 20) + 1), -EMSGSIZE);
	assert_int_equal(kit_put_len(&k, TOPIC_PROGRAM, 100), 0);
	assert_int_equal(kit_commit(&k), 0);
	assert_int_equal(kit_next(&k).len, 0);
	assert_int_equal(kit_next(&k).len, 1 << 20);
	assert_true(spool_next(k.spool, &r));
	assert_int_equal(r.len, 16 << 20);
	assert_int_equal(kit_next(&k).seq, 4);
	spool_rewind(k.spool);
	assert_int_equal(kit_next(&k).len, 0);
}

static void
a_batch_is_bounded(void **state)
{
	int r = 0;

	(void)state;
	for (int i = 0; i < 100 && r == 0; i++)
		r = kit_put_len(&k, TOPIC_PROGRAM, 1 << 20);
	assert_int_equal(r, -EMSGSIZE);
	assert_int_equal(kit_stats(&k).put, 63);
}

static void
a_second_owner_is_refused(void **state)
{
	struct spool *other = NULL;
	char error[256];

	(void)state;
	assert_int_equal(spool_open(&k.options, &other, NULL, error, sizeof(error)), -EBUSY);
	assert_null(other);
	assert_non_null(strstr(error, k.dir));
}

static void
a_place_that_cannot_be_is_a_sentence(void **state)
{
	struct spool_options o = k.options;
	struct spool *other = NULL;
	char error[256];

	(void)state;
	o.dir = "/dev/null/spool";
	assert_int_equal(spool_open(&o, &other, NULL, error, sizeof(error)), -ENOTDIR);
	assert_non_null(strstr(error, "/dev/null/spool"));
}

static void
commits_of_nothing_write_nothing(void **state)
{
	uint64_t bytes;

	(void)state;
	kit_batch(&k, TOPIC_PROGRAM, 1);
	assert_int_equal(kit_commit_at(&k, 100), 0);
	bytes = kit_stats(&k).bytes;
	for (int i = 0; i < 10; i++)
		assert_int_equal(kit_commit_at(&k, 100), 0);
	assert_int_equal(kit_stats(&k).bytes, bytes);
	assert_int_equal(kit_commit_at(&k, 101), 0);
	assert_true(kit_stats(&k).bytes > bytes);
}

static void
syncs_happen_no_more_often_than_asked(void **state)
{
	(void)state;
	for (int i = 0; i < 50; i++) {
		kit_batch(&k, TOPIC_PROGRAM, 1);
		spool_tick(k.spool, KIT_SECOND + (uint64_t)i * 10000000);	/* each 10 ms */
		spool_sync_stop(k.spool);	/* waits for it */
		assert_int_equal(kit_stats(&k).syncs, i / 10 + 1);
	}
	spool_close(k.spool);
	k.options.sync_ms = 0;
	kit_open(&k);
	kit_tick(&k);
	spool_sync_stop(k.spool);
	for (uint64_t syncs = kit_stats(&k).syncs; syncs < 20; syncs++) {
		kit_tick(&k);		/* starts the thread, and nothing has to be synced */
		kit_batch(&k, TOPIC_PROGRAM, 1);
		spool_sync_stop(k.spool);
		assert_int_equal(kit_stats(&k).syncs, syncs + 1);
	}
}

static void
sync_first_hands_out_only_what_is_on_the_disk(void **state)
{
	struct spool_record r;
	uint64_t n = 0;

	(void)state;
	spool_close(k.spool);
	k.options.is_sync_first = true;
	kit_open(&k);
	kit_tick(&k);
	kit_batch(&k, TOPIC_PROGRAM, 10);
	assert_false(spool_next(k.spool, &r));
	KIT_UNTIL(&k, (n = kit_drain(&k)) > 0);
	assert_int_equal(n, 10);
	kit_batch(&k, TOPIC_USAGE, 10);
	assert_false(spool_next(k.spool, &r));
	assert_int_equal(kit_stats(&k).records, 10);
}

static void
on_synced(void *arg)
{
	sem_post(arg);
}

/* Without a tick in between: the owner is woken by the sync. */
static void
a_sync_that_ended_is_reported_and_hands_out(void **state)
{
	struct spool_record r;
	sem_t ended;

	(void)state;
	assert_int_equal(sem_init(&ended, 0, 0), 0);
	spool_close(k.spool);
	k.options.is_sync_first = true;
	k.options.on_synced = on_synced;
	k.options.on_synced_arg = &ended;
	kit_open(&k);
	kit_tick(&k);
	for (uint64_t i = 1; i < 4; i++) {
		kit_batch(&k, TOPIC_PROGRAM, 10);
		spool_sync(k.spool, k.now_ns + i * KIT_SECOND);
		sem_wait(&ended);
		assert_false(spool_next(k.spool, &r));
		spool_sync(k.spool, k.now_ns + i * KIT_SECOND);
		assert_int_equal(kit_drain(&k), 10);
	}
	kit_batch(&k, TOPIC_PROGRAM, 10);
	spool_sync(k.spool, k.now_ns + 3 * KIT_SECOND + 99000000);	/* too early */
	spool_sync_stop(k.spool);
	assert_int_equal(sem_trywait(&ended), -1);
	assert_false(spool_next(k.spool, &r));
	sem_destroy(&ended);
}

static void
what_was_committed_up_to_a_mark_is_synced_and_acknowledged(void **state)
{
	uint64_t waiting[TOPIC_COUNT];
	struct spool_record r[8];
	struct spool_mark none, mark;

	(void)state;
	spool_mark(k.spool, &none);
	kit_batch(&k, TOPIC_PROGRAM, 3);
	kit_batch(&k, TOPIC_USAGE, 2);
	spool_mark(k.spool, &mark);
	assert_int_equal(spool_sync_up_to(k.spool, &mark), 5);	/* there is no thread before the first tick */
	kit_batch(&k, TOPIC_PROGRAM, 4);
	assert_true(spool_is_done_up_to(k.spool, &none));
	assert_false(spool_is_done_up_to(k.spool, &mark));
	spool_waiting_up_to(k.spool, &mark, waiting);
	assert_int_equal(waiting[TOPIC_PROGRAM], 3);
	assert_int_equal(waiting[TOPIC_USAGE], 2);
	assert_int_equal(waiting[TOPIC_AGENT], 0);
	for (int i = 0; i < 8; i++)
		r[i] = kit_next(&k);
	/* All of one topic but the first, and some that came later. */
	for (int i = 1; i < 8; i++)
		spool_ack(k.spool, r[i].id);
	assert_false(spool_is_done_up_to(k.spool, &mark));
	spool_ack(k.spool, kit_next(&k).id);
	spool_ack(k.spool, r[0].id);
	assert_true(spool_is_done_up_to(k.spool, &mark));
	spool_waiting_up_to(k.spool, &mark, waiting);
	assert_int_equal(waiting[TOPIC_PROGRAM] + waiting[TOPIC_USAGE], 0);
}

static void
a_mark_hastens_the_sync_and_what_comes_later_does_not_matter(void **state)
{
	struct spool_mark mark;

	(void)state;
	spool_close(k.spool);
	k.options.sync_ms = 3600000;
	kit_open(&k);
	kit_tick(&k);
	kit_batch(&k, TOPIC_PROGRAM, 3);
	spool_mark(k.spool, &mark);
	KIT_UNTIL(&k, spool_sync_up_to(k.spool, &mark) == 0);
	kit_batch(&k, TOPIC_PROGRAM, 3);
	assert_int_equal(spool_sync_up_to(k.spool, &mark), 0);
}

static void
what_comes_after_a_stop_is_for_the_next_owner(void **state)
{
	struct spool_record r;

	(void)state;
	kit_batch(&k, TOPIC_PROGRAM, 3);
	kit_batch(&k, TOPIC_USAGE, 2);
	spool_limit_to_committed(k.spool);
	kit_batch(&k, TOPIC_PROGRAM, 4);
	kit_batch(&k, TOPIC_USAGE, 4);
	assert_false(spool_is_drained(k.spool));
	for (int i = 0; i < 5; i++) {
		r = kit_next(&k);
		assert_false(spool_is_drained(k.spool));
		spool_ack(k.spool, r.id);
	}
	kit_expect_none(&k);
	assert_true(spool_is_drained(k.spool));
	assert_int_equal(kit_stats(&k).records, 8);
	kit_reopen(&k);
	for (int i = 0; i < 8; i++)
		assert_false(kit_next(&k).is_again);
	kit_expect_none(&k);
}

static void
acknowledged_segments_go_under_constant_load(void **state)
{
	unsigned most = 0, files;

	(void)state;
	spool_close(k.spool);
	k.options.segment_bytes = 64 << 10;
	kit_open(&k);
	for (int i = 0; i < 2000; i++) {
		if (spool_wants_checkpoint(k.spool)) {
			spool_checkpoint_begin(k.spool);
			assert_int_equal(spool_put_wal(k.spool, "all", 3), 0);
		}
		kit_batch(&k, TOPIC_PROGRAM, 50);
		kit_drain(&k);
		if (i % 5 == 0) {
			kit_tick(&k);
			spool_sync_stop(k.spool);
			files = kit_files(&k, "main-", ".seg", NULL);
			most = files > most ? files : most;
		}
	}
	assert_in_range(most, 1, 60);
	assert_in_range(kit_files(&k, "main-", ".seg", NULL), 1, 40);
}

static void
delivered_counts_what_is_on_disk(void **state)
{
	struct spool *spool = k.spool;

	(void)state;
	kit_put(&k, TOPIC_PROGRAM);
	assert_int_equal(spool_delivered(spool), 0);
	kit_commit(&k);
	assert_int_equal(spool_delivered(spool), 1);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	assert_int_equal(kit_drain(&k), 2);
}

static void
many_in_flight_over_many_segments(void **state)
{
	static uint64_t ids[60000];
	unsigned n = 0;
	uint32_t x = 1;

	(void)state;
	spool_close(k.spool);
	k.options.segment_bytes = 32 << 10;
	kit_open(&k);
	for (int i = 0; i < 60; i++)
		kit_batch(&k, TOPIC_PROGRAM, 1000);
	while (n < 60000)
		ids[n++] = kit_next(&k).id;
	for (unsigned i = n - 1; i > 0; i--) {
		x = x * 1664525u + 1013904223u;
		unsigned j = (x >> 8) % (i + 1);
		uint64_t swap = ids[i];

		ids[i] = ids[j];
		ids[j] = swap;
	}
	for (unsigned i = 0; i < n / 2; i++)
		spool_ack(k.spool, ids[i]);
	kit_tick(&k);
	spool_rewind(k.spool);
	assert_int_equal(kit_drain(&k), n / 2);
	kit_tick(&k);
	assert_int_equal(kit_files(&k, "main-", ".seg", NULL), 1);
	assert_int_equal(kit_stats(&k).records, 0);
}

static void
what_is_acknowledged_is_done_before_anybody_asks_for_more(void **state)
{
	struct spool_record r[3];
	struct spool_mark mark;

	(void)state;
	kit_batch(&k, TOPIC_PROGRAM, 3);
	for (int i = 0; i < 3; i++)
		r[i] = kit_next(&k);
	spool_ack(k.spool, r[1].id);
	spool_ack(k.spool, r[2].id);
	kit_reopen(&k);
	spool_mark(k.spool, &mark);
	spool_limit_to_committed(k.spool);
	r[0] = kit_next(&k);
	assert_false(spool_is_done_up_to(k.spool, &mark));
	assert_false(spool_is_drained(k.spool));
	spool_ack(k.spool, r[0].id);
	assert_true(spool_is_done_up_to(k.spool, &mark));
	assert_true(spool_is_drained(k.spool));
}

static void
one_queue_that_is_drained_is_not_both(void **state)
{
	struct spool_record main, usage;
	struct spool_mark mark;

	(void)state;
	kit_batch(&k, TOPIC_PROGRAM, 1);
	kit_batch(&k, TOPIC_USAGE, 1);
	assert_false(spool_is_drained(k.spool));	/* no limit was set */
	spool_mark(k.spool, &mark);
	spool_limit_to_committed(k.spool);
	main = kit_next(&k);
	usage = kit_next(&k);
	assert_int_equal(usage.topic, TOPIC_USAGE);
	spool_ack(k.spool, main.id);
	assert_false(spool_is_drained(k.spool));
	assert_false(spool_is_done_up_to(k.spool, &mark));
	kit_batch(&k, TOPIC_PROGRAM, 1);
	spool_ack(k.spool, usage.id);
	assert_true(spool_is_drained(k.spool));
	assert_true(spool_is_done_up_to(k.spool, &mark));
}

static void
a_single_record_has_an_age_at_once(void **state)
{
	(void)state;
	kit_batch(&k, TOPIC_PROGRAM, 1);
	assert_true(kit_stats(&k).oldest_us == KIT_TIME);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	assert_true(kit_stats(&k).oldest_us == KIT_TIME);
	kit_reopen(&k);			/* and before it was requested */
	kit_tick(&k);
	assert_true(kit_stats(&k).oldest_us == KIT_TIME);
	assert_int_equal(kit_drain(&k), 2);
	kit_tick(&k);
	assert_int_equal(kit_stats(&k).oldest_us, 0);
}

static void
a_folder_put_in_its_place_is_taken(void **state)
{
	char aside[160], path[512];

	(void)state;
	kit_batch(&k, TOPIC_PROGRAM, 3);
	kit_tick(&k);
	snprintf(aside, sizeof(aside), "%s-aside", k.dir);
	assert_int_equal(rename(k.dir, aside), 0);
	assert_int_equal(mkdir(k.dir, 0700), 0);
	kit_tick(&k);
	kit_batch(&k, TOPIC_PROGRAM, 2);
	/* Nothing more is written to the folder that is not at the path any more. */
	assert_int_equal(kit_files(&k, "main-", ".seg", path), 1);
	assert_int_equal(kit_files(&k, "state", "", NULL), 1);
	assert_int_equal(kit_stats(&k).last_error, 0);
	kit_reopen(&k);
	assert_int_equal(k.recovery.records, 2);
	assert_int_equal(k.seq[TOPIC_PROGRAM], 5);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(checksums_are_the_standard_ones, setup, teardown),
		cmocka_unit_test_setup_teardown(a_new_spool_is_empty_and_private, setup, teardown),
		cmocka_unit_test_setup_teardown(records_come_whole_in_order_and_the_main_queue_first,
		    setup, teardown),
		cmocka_unit_test_setup_teardown(acknowledgements_come_in_any_order, setup, teardown),
		cmocka_unit_test_setup_teardown(unget_returns_the_same_record, setup, teardown),
		cmocka_unit_test_setup_teardown(rewind_hands_out_again_what_is_not_acknowledged, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(what_is_acknowledged_is_removed, setup, teardown),
		cmocka_unit_test_setup_teardown(the_oldest_record_has_an_age, setup, teardown),
		cmocka_unit_test_setup_teardown(large_records_pass_and_too_large_ones_do_not, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(a_batch_is_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_acknowledged_is_done_before_anybody_asks_for_more,
		    setup, teardown),
		cmocka_unit_test_setup_teardown(one_queue_that_is_drained_is_not_both, setup, teardown),
		cmocka_unit_test_setup_teardown(a_single_record_has_an_age_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(a_folder_put_in_its_place_is_taken, setup, teardown),
		cmocka_unit_test_setup_teardown(a_second_owner_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(a_place_that_cannot_be_is_a_sentence, setup, teardown),
		cmocka_unit_test_setup_teardown(commits_of_nothing_write_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(syncs_happen_no_more_often_than_asked, setup, teardown),
		cmocka_unit_test_setup_teardown(what_was_committed_up_to_a_mark_is_synced_and_acknowledged, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(a_mark_hastens_the_sync_and_what_comes_later_does_not_matter, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(a_sync_that_ended_is_reported_and_hands_out, setup, teardown),
		cmocka_unit_test_setup_teardown(sync_first_hands_out_only_what_is_on_the_disk, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(what_comes_after_a_stop_is_for_the_next_owner, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(acknowledged_segments_go_under_constant_load, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(delivered_counts_what_is_on_disk, setup, teardown),
		cmocka_unit_test_setup_teardown(many_in_flight_over_many_segments, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
