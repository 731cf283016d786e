/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>

#include "spool_kit.h"

static struct kit k;
static bool is_mounted;

static int
setup(void **state)
{
	(void)state;
	kit_init(&k);
	is_mounted = false;
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	spool_close(k.spool);
	k.spool = NULL;
	if (is_mounted && umount2(k.tree.root, MNT_DETACH) < 0)
		return -1;
	tree_done(&k.tree);
	return 0;
}

/* A disk of one's own that is soon full. False: not allowed here. */
static bool
mount_small(const char *size)
{
	if (mount("sluice-test", k.tree.root, "tmpfs", 0, size) < 0) {
		print_message("needs root, to mount a small file system: %s\n", strerror(errno));
		return false;
	}
	is_mounted = true;
	return true;
}

static void
fill_disk(void)
{
	char path[256], data[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/filler", k.tree.root);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	assert_true(fd >= 0);
	memset(data, 'x', sizeof(data));
	while (write(fd, data, sizeof(data)) > 0)
		;
	assert_int_equal(errno, ENOSPC);
	close(fd);
}

static void
free_disk(void)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/filler", k.tree.root);
	assert_int_equal(unlink(path), 0);
}

/* Everything from seq on, in order, unless marked. Acknowledged. */
static uint64_t
drain_from(enum topic topic, uint64_t seq)
{
	struct spool_record r;

	for (; spool_next(k.spool, &r); seq++) {
		assert_true(kit_is_whole(&r));
		assert_int_equal(r.topic, topic);
		assert_int_equal(r.seq, seq);
		spool_ack(k.spool, r.id);
	}
	return seq;
}

static void
a_full_disk_stops_nothing(void **state)
{
	struct spool_record r;

	(void)state;
	if (!mount_small("size=2m"))
		skip();
	kit_open(&k);
	kit_batch(&k, TOPIC_PROGRAM, 10);
	kit_tick(&k);
	fill_disk();
	for (int i = 0; i < 20; i++)
		kit_batch(&k, TOPIC_PROGRAM, 100);
	assert_int_equal(kit_stats(&k).last_error, -ENOSPC);
	assert_true(kit_stats(&k).write_errors > 0);
	assert_true(kit_stats(&k).memory_bytes > 0);
	assert_int_equal(kit_stats(&k).records, 2010);
	kit_tick(&k);
	assert_int_equal(kit_stats(&k).last_error, -ENOSPC);
	/* Handed out, in order, partly acknowledged, while it is full. */
	for (uint64_t seq = 0; seq < 1000; seq++) {
		assert_true(spool_next(k.spool, &r));
		assert_int_equal(r.seq, seq);
		if (seq < 500)
			spool_ack(k.spool, r.id);
	}
	free_disk();
	kit_tick(&k);
	assert_int_equal(kit_stats(&k).last_error, 0);
	assert_int_equal(kit_stats(&k).memory_bytes, 0);
	assert_int_equal(kit_commit_at(&k, 1), 0);
	kit_batch(&k, TOPIC_PROGRAM, 10);
	spool_rewind(k.spool);
	for (uint64_t seq = 500; seq < 2020; seq++) {
		assert_true(spool_next(k.spool, &r));
		assert_true(kit_is_whole(&r));
		assert_int_equal(r.seq, seq);
		assert_int_equal(r.is_again, seq < 1000);
		if (seq < 1500)
			spool_ack(k.spool, r.id);
	}
	kit_reopen(&k);
	assert_int_equal(k.recovery.records, 520);
	assert_int_equal(k.recovery.corrupt_batches, 0);
	assert_int_equal(k.recovery.torn_bytes, 0);
	assert_int_equal(drain_from(TOPIC_PROGRAM, 1500), 2020);
}

static void
fill_and_put(struct kit *at)
{
	struct spool_record r;

	kit_batch(at, TOPIC_PROGRAM, 10);
	kit_drain(at);
	kit_tick(at);
	fill_disk();
	kit_batch(at, TOPIC_PROGRAM, 3000);
	while (spool_next(at->spool, &r))
		spool_ack(at->spool, r.id);
}

static void
a_crash_on_a_full_disk_reuses_no_seq(void **state)
{
	(void)state;
	if (!mount_small("size=1m"))
		skip();
	kit_crash(&k, fill_and_put);
	kit_open(&k);
	assert_int_equal(spool_next_seq(k.spool, TOPIC_PROGRAM), 3010);
}

static void
a_disk_that_fills_in_the_middle_of_a_batch_keeps_what_is_whole(void **state)
{
	(void)state;
	if (!mount_small("size=512k"))
		skip();
	k.options.segment_bytes = 1 << 20;
	kit_open(&k);
	for (int i = 0; i < 40; i++)	/* about 0.8 MB: the disk is full at some odd place */
		kit_batch(&k, TOPIC_PROGRAM, 150);
	assert_int_equal(kit_stats(&k).last_error, -ENOSPC);
	kit_tick(&k);
	assert_int_equal(drain_from(TOPIC_PROGRAM, 0), 6000);
	/* What is acknowledged makes room for the rest, once the thread that syncs has let go of it. */
	KIT_UNTIL(&k, kit_stats(&k).last_error == 0);
	assert_int_equal(kit_stats(&k).last_error, 0);
	kit_batch(&k, TOPIC_PROGRAM, 5);
	kit_reopen(&k);
	assert_int_equal(k.recovery.records, 5);
	assert_int_equal(k.recovery.torn_bytes, 0);
	assert_int_equal(k.recovery.corrupt_bytes, 0);
}

static void
memory_is_bounded_and_usage_goes_first(void **state)
{
	struct spool_stats st;
	uint64_t usage, main;

	(void)state;
	if (!mount_small("size=1m"))
		skip();
	k.options.memory_bytes = 1 << 20;
	kit_open(&k);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	fill_disk();
	for (int i = 0; i < 20; i++) {
		kit_batch(&k, TOPIC_PROGRAM, 100);
		kit_batch(&k, TOPIC_USAGE, 300);
	}
	st = kit_stats(&k);
	assert_true(st.memory_bytes <= 1 << 20);
	assert_true(st.dropped[TOPIC_USAGE][SPOOL_DROP_MEMORY] > 0);
	assert_int_equal(st.dropped[TOPIC_PROGRAM][SPOOL_DROP_MEMORY], 0);
	for (int i = 0; i < 100; i++)
		kit_batch(&k, TOPIC_PROGRAM, 100);
	st = kit_stats(&k);
	assert_true(st.memory_bytes <= 1 << 20);
	assert_int_equal(st.dropped[TOPIC_USAGE][SPOOL_DROP_MEMORY], 6000);
	assert_true(st.dropped[TOPIC_PROGRAM][SPOOL_DROP_MEMORY] > 0);
	main = st.dropped[TOPIC_PROGRAM][SPOOL_DROP_MEMORY];
	usage = st.dropped[TOPIC_USAGE][SPOOL_DROP_MEMORY];
	assert_int_equal(st.records, 1 + 12000 + 6000 - main - usage);
	/* One batch that is more than all of it. */
	kit_batch(&k, TOPIC_FINDING, 20000);
	assert_int_equal(kit_stats(&k).dropped[TOPIC_FINDING][SPOOL_DROP_MEMORY], 20000);
	assert_int_equal(kit_drain(&k), 1 + 12000 - main);
	free_disk();
}

static void
a_removed_directory_is_made_anew(void **state)
{
	struct spool_record r;

	(void)state;
	kit_open(&k);
	kit_batch(&k, TOPIC_PROGRAM, 10);
	spool_checkpoint_begin(k.spool);
	kit_commit(&k);
	tree_done(&k.tree);
	assert_int_equal(access(k.dir, F_OK), -1);
	kit_batch(&k, TOPIC_PROGRAM, 10);
	assert_int_equal(kit_stats(&k).last_error, -ENOENT);
	assert_int_equal(kit_stats(&k).records, 20);
	kit_tick(&k);
	assert_int_equal(kit_stats(&k).last_error, 0);
	assert_int_equal(access(k.dir, F_OK), 0);
	assert_true(spool_wants_checkpoint(k.spool));
	kit_batch(&k, TOPIC_PROGRAM, 10);
	/* Even what was only in the old one: its file is still open. */
	for (uint64_t seq = 0; seq < 30; seq++) {
		assert_true(spool_next(k.spool, &r));
		assert_true(kit_is_whole(&r));
		assert_int_equal(r.seq, seq);
		if (seq < 15)
			spool_ack(k.spool, r.id);
	}
	kit_reopen(&k);
	assert_int_equal(k.recovery.records, 15);
	assert_int_equal(drain_from(TOPIC_PROGRAM, 15), 30);
	assert_int_equal(k.seq[TOPIC_PROGRAM], 30);
	assert_string_equal(spool_schema(k.spool, r.schema), "sluice.program");
}

static void
a_directory_removed_in_idle_is_noticed(void **state)
{
	(void)state;
	kit_open(&k);
	kit_batch(&k, TOPIC_PROGRAM, 10);
	kit_drain(&k);
	kit_tick(&k);
	tree_done(&k.tree);
	kit_tick(&k);
	kit_tick(&k);
	assert_int_equal(access(k.dir, F_OK), 0);
	assert_int_equal(kit_stats(&k).last_error, 0);
	kit_reopen(&k);
	assert_int_equal(spool_next_seq(k.spool, TOPIC_PROGRAM), 10);
}

static void
a_read_only_disk_is_waited_for(void **state)
{
	struct spool_record r;

	(void)state;
	if (!mount_small("size=4m"))
		skip();
	kit_open(&k);
	kit_batch(&k, TOPIC_PROGRAM, 10);
	spool_close(k.spool);
	k.spool = NULL;
	assert_int_equal(mount(NULL, k.tree.root, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	kit_open(&k);
	assert_int_equal(k.recovery.records, 10);
	kit_batch(&k, TOPIC_PROGRAM, 10);
	kit_tick(&k);
	assert_int_equal(kit_stats(&k).last_error, -EROFS);
	for (uint64_t seq = 0; seq < 15; seq++) {
		assert_true(spool_next(k.spool, &r));
		assert_true(kit_is_whole(&r));
		assert_int_equal(r.seq, seq);
		spool_ack(k.spool, r.id);
	}
	kit_tick(&k);
	assert_int_equal(mount(NULL, k.tree.root, NULL, MS_REMOUNT, NULL), 0);
	kit_tick(&k);
	assert_int_equal(kit_stats(&k).last_error, 0);
	kit_batch(&k, TOPIC_PROGRAM, 10);
	kit_reopen(&k);
	assert_int_equal(k.recovery.records, 15);
	assert_int_equal(drain_from(TOPIC_PROGRAM, 15), 30);
}

static void
the_oldest_usage_goes_first_when_full(void **state)
{
	struct spool_stats st;
	struct spool_record r;
	uint64_t n[TOPIC_COUNT] = { 0 }, last[TOPIC_COUNT] = { 0 };

	(void)state;
	k.options.max_bytes = 4 << 20;
	kit_open(&k);
	for (int i = 0; i < 100; i++) {
		kit_batch(&k, TOPIC_PROGRAM, 100);
		kit_batch(&k, TOPIC_USAGE, 300);
		assert_true(kit_stats(&k).bytes <= 4 << 20);
	}
	st = kit_stats(&k);
	assert_true(st.dropped[TOPIC_USAGE][SPOOL_DROP_FULL] > 0);
	assert_int_equal(st.dropped[TOPIC_PROGRAM][SPOOL_DROP_FULL], 0);
	assert_int_equal(st.records + st.dropped[TOPIC_USAGE][SPOOL_DROP_FULL], 40000);
	for (int i = 0; i < 400; i++)
		kit_batch(&k, i % 2 ? TOPIC_PROGRAM : TOPIC_RUN, 100);
	st = kit_stats(&k);
	assert_true(st.bytes <= 4 << 20);
	assert_int_equal(st.dropped[TOPIC_USAGE][SPOOL_DROP_FULL], 30000);
	assert_true(st.dropped[TOPIC_PROGRAM][SPOOL_DROP_FULL] > 0);
	kit_reopen(&k);
	assert_int_equal(k.recovery.records, st.records);
	assert_int_equal(k.seq[TOPIC_USAGE], 30000);
	while (spool_next(k.spool, &r)) {
		assert_true(kit_is_whole(&r));
		assert_true(n[r.topic] == 0 || r.seq == last[r.topic] + 1);
		last[r.topic] = r.seq;
		n[r.topic]++;
		spool_ack(k.spool, r.id);
	}
	assert_int_equal(n[TOPIC_USAGE], 0);
	assert_int_equal(n[TOPIC_PROGRAM], 30000 - st.dropped[TOPIC_PROGRAM][SPOOL_DROP_FULL]);
	assert_int_equal(n[TOPIC_RUN], 20000 - st.dropped[TOPIC_RUN][SPOOL_DROP_FULL]);
	assert_int_equal(last[TOPIC_RUN], 19999);
	assert_int_equal(kit_stats(&k).records, 0);
}

static void
what_the_output_has_is_not_counted_as_dropped(void **state)
{
	uint64_t ids[100], dropped;
	struct spool_record r;

	(void)state;
	k.options.max_bytes = 1 << 20;
	kit_open(&k);
	kit_batch(&k, TOPIC_USAGE, 200);
	for (int i = 0; i < 100; i++) {
		assert_true(spool_next(k.spool, &r));
		ids[i] = r.id;
	}
	while (kit_stats(&k).dropped[TOPIC_USAGE][SPOOL_DROP_FULL] == 0)
		kit_batch(&k, TOPIC_PROGRAM, 100);
	assert_int_equal(kit_stats(&k).dropped[TOPIC_USAGE][SPOOL_DROP_FULL], 100);
	for (int i = 0; i < 60; i++)
		spool_ack(k.spool, ids[i]);
	assert_int_equal(kit_stats(&k).acknowledged, 60);
	dropped = kit_stats(&k).records;
	/* The output failed to deliver the others: now they are lost, and that is said. */
	spool_rewind(k.spool);
	assert_int_equal(kit_stats(&k).dropped[TOPIC_USAGE][SPOOL_DROP_FULL], 140);
	assert_int_equal(kit_stats(&k).records, dropped - 40);
	dropped = kit_drain(&k);
	assert_int_equal(kit_stats(&k).acknowledged, dropped + 60);
	assert_int_equal(kit_stats(&k).records, 0);
	/* The same for one that is given back at once. */
	kit_batch(&k, TOPIC_USAGE, 1);
	assert_true(spool_next(k.spool, &r));
	kit_batch(&k, TOPIC_PROGRAM, 3000);
	kit_batch(&k, TOPIC_PROGRAM, 3000);
	kit_batch(&k, TOPIC_PROGRAM, 3000);
	dropped = kit_stats(&k).dropped[TOPIC_USAGE][SPOOL_DROP_FULL];
	assert_int_equal(dropped, 140);
	spool_unget(k.spool);
	assert_int_equal(kit_stats(&k).dropped[TOPIC_USAGE][SPOOL_DROP_FULL], 141);
	kit_drain(&k);
	assert_int_equal(kit_stats(&k).records, 0);
}

static void
on_wal_entry(const void *data, size_t len, void *arg)
{
	strncat(arg, data, len);
}

static void
dropping_waits_for_a_new_checkpoint(void **state)
{
	char text[100] = "";

	(void)state;
	k.options.max_bytes = 4 << 20;
	kit_open(&k);
	spool_checkpoint_begin(k.spool);
	spool_put_wal(k.spool, "one", 3);
	kit_commit(&k);
	while (kit_stats(&k).bytes < 4 << 20)
		kit_batch(&k, TOPIC_PROGRAM, 100);
	kit_batch(&k, TOPIC_PROGRAM, 100);
	assert_int_equal(kit_stats(&k).dropped[TOPIC_PROGRAM][SPOOL_DROP_FULL], 0);
	assert_true(spool_wants_checkpoint(k.spool));
	kit_reopen(&k);
	spool_replay(k.spool, on_wal_entry, text);
	assert_string_equal(text, "one");
	assert_true(spool_wants_checkpoint(k.spool));
	spool_checkpoint_begin(k.spool);
	spool_put_wal(k.spool, "two", 3);
	kit_commit(&k);
	assert_true(kit_stats(&k).bytes <= 4 << 20);
	assert_true(kit_stats(&k).dropped[TOPIC_PROGRAM][SPOOL_DROP_FULL] > 0);
	kit_reopen(&k);
	text[0] = '\0';
	spool_replay(k.spool, on_wal_entry, text);
	assert_string_equal(text, "two");
	/* An owner that never makes one: the disk is bounded all the same. */
	for (int i = 0; i < 1000; i++) {
		kit_batch(&k, TOPIC_PROGRAM, 100);
		assert_true(kit_stats(&k).bytes <= (4 << 20) + (1 << 20));
	}
	assert_true(spool_wants_checkpoint(k.spool));
}

static void
segments_beyond_the_open_files_are_read_too(void **state)
{
	(void)state;
	k.options.segment_bytes = 4096;
	kit_open(&k);
	for (int i = 0; i < 300; i++)
		kit_batch(&k, TOPIC_PROGRAM, 30);
	for (int i = 0; i < 100; i++) {
		kit_tick(&k);
		spool_sync_stop(k.spool);
	}
	assert_true(kit_files(&k, "main-", ".seg", NULL) >= 300);
	kit_reopen(&k);
	assert_int_equal(drain_from(TOPIC_PROGRAM, 0), 9000);
	kit_tick(&k);
	assert_int_equal(kit_files(&k, "main-", ".seg", NULL), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_full_disk_stops_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(a_crash_on_a_full_disk_reuses_no_seq, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    a_disk_that_fills_in_the_middle_of_a_batch_keeps_what_is_whole, setup, teardown),
		cmocka_unit_test_setup_teardown(memory_is_bounded_and_usage_goes_first, setup, teardown),
		cmocka_unit_test_setup_teardown(a_removed_directory_is_made_anew, setup, teardown),
		cmocka_unit_test_setup_teardown(a_directory_removed_in_idle_is_noticed, setup, teardown),
		cmocka_unit_test_setup_teardown(a_read_only_disk_is_waited_for, setup, teardown),
		cmocka_unit_test_setup_teardown(the_oldest_usage_goes_first_when_full, setup, teardown),
		cmocka_unit_test_setup_teardown(what_the_output_has_is_not_counted_as_dropped, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(dropping_waits_for_a_new_checkpoint, setup, teardown),
		cmocka_unit_test_setup_teardown(segments_beyond_the_open_files_are_read_too, setup,
		    teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
