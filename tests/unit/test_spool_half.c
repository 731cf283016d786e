/* SPDX-License-Identifier: Apache-2.0 */
/* spool_recover: a crash between the two writes of a commit leaves neither, and damage is not taken for one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/mman.h>

#include "faults.h"
#include "one_spool.h"

enum {
	COMMITS = 6,
};

/* Sizes of the main segment after each commit, in memory that the child shares. */
static uint64_t *main_size;
static size_t usage_record;	/* bytes of a Usage record */

static void
commit_some(struct kit *at)
{
	for (int i = 0; i < COMMITS; i++) {
		struct stat st;
		char path[512];

		kit_put(at, TOPIC_PROGRAM);
		for (int n = 0; n < 10; n++)
			kit_expect(kit_put_len(at, TOPIC_USAGE, usage_record) == 0, "it is taken");
		kit_put_entry(at, 30);
		kit_expect(kit_commit_at(at, (uint64_t)i + 1) == 0, "it is written");
		kit_expect(kit_files(at, "main-", ".seg", path) == 1 && stat(path, &st) == 0, "one file has the main queue");
		main_size[i] = (uint64_t)st.st_size;
	}
}

/* A spool of some commits, of which only so many main batches are kept, as if it was killed before the next one. */
static void
leave(int kept)
{
	char path[512];

	kit_crash(&k, commit_some);
	assert_int_equal(kit_files(&k, "main-", ".seg", path), 1);
	assert_int_equal(truncate(path, (off_t)main_size[kept - 1]), 0);
}

static int
setup_sizes(void **state)
{
	usage_record = 50;
	main_size = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return main_size == MAP_FAILED ? -1 : setup(state);
}

static int
teardown_sizes(void **state)
{
	munmap(main_size, 4096);
	return teardown(state);
}

static void
usage_without_its_main_batch_is_cut_off(void **state)
{
	(void)state;
	for (int kept = 1; kept <= COMMITS; kept++) {
		struct ring_offset offset;

		leave(kept);
		kit_open(&k);
		assert_true(spool_ring_offset(k.spool, &offset));
		assert_int_equal(offset.position, kept);
		assert_int_equal(k.recovery.records, kept * 11);
		assert_int_equal(kit_stats(&k).waiting[TOPIC_USAGE], kept * 10);
		assert_int_equal(k.recovery.torn_bytes > 0, kept < COMMITS);
		assert_int_equal(k.recovery.corrupt_bytes, 0);
		/* The next owner measures it again, under numbers that were never handed out. */
		assert_int_equal(k.seq[TOPIC_USAGE], kept * 10);
		assert_int_equal(k.seq[TOPIC_PROGRAM], kept);
		kit_batch(&k, TOPIC_USAGE, 10);
		kit_reopen(&k);
		assert_int_equal(k.recovery.records, kept * 11 + 10);
		assert_int_equal(kit_drain(&k), kept * 11 + 10);
		kit_done(&k);
		setup(NULL);
	}
}

static void
commit_two(struct kit *at)
{
	struct stat st;
	char path[512];

	for (int i = 0; i < 2; i++) {
		kit_put(at, TOPIC_PROGRAM);
		if (i == 1)
			kit_put(at, TOPIC_USAGE);
		kit_expect(kit_commit_at(at, (uint64_t)i + 1) == 0, "it is written");
		kit_expect(kit_files(at, "main-", ".seg", path) == 1 && stat(path, &st) == 0, "one file has the main queue");
		main_size[i] = (uint64_t)st.st_size;
	}
}

/* The main batches before it know of no Usage record. */
static void
so_is_the_first_of_all(void **state)
{
	char path[512];

	(void)state;
	kit_crash(&k, commit_two);
	assert_int_equal(kit_files(&k, "main-", ".seg", path), 1);
	assert_int_equal(truncate(path, (off_t)main_size[0]), 0);
	kit_open(&k);
	assert_int_equal(k.recovery.records, 1);
	assert_int_equal(kit_stats(&k).waiting[TOPIC_USAGE], 0);
	assert_int_equal(k.seq[TOPIC_USAGE], 0);
}

/* With a segment for each Usage batch, those of all later commits are cut. */
static void
so_are_later_segments(void **state)
{
	(void)state;
	usage_record = 4000;
	k.options.segment_bytes = 40000;
	leave(2);
	assert_int_equal(kit_files(&k, "usage-", ".seg", NULL), COMMITS);
	kit_open(&k);
	assert_int_equal(k.recovery.records, 22);
	/* Its head has the seq of those before. Several are left only where they were handed out from memory. */
	assert_int_equal(k.seq[TOPIC_USAGE], 50);
	assert_int_equal(kit_drain(&k), 22);
	kit_batch(&k, TOPIC_USAGE, 5);
	assert_int_equal(kit_drain(&k), 5);
	kit_tick(&k);
	assert_int_equal(kit_files(&k, "usage-", ".seg", NULL), 1);
}

/* A damaged batch that waits in the spool does not hide that a later one is missing, also from the owner after next. */
static void
so_it_is_behind_old_damage(void **state)
{
	struct kit_file f;
	char path[512];

	(void)state;
	kit_crash(&k, commit_some);
	assert_int_equal(kit_files(&k, "main-", ".seg", path), 1);
	f = kit_load(path);
	memset(f.data + main_size[1], 0xff, (size_t)(main_size[2] - main_size[1]));
	kit_store(path, f.data, (size_t)main_size[3]);
	free(f.data);
	for (int i = 0; i < 2; i++) {
		kit_open(&k);
		assert_true(k.recovery.corrupt_bytes > 0);
		assert_int_equal(kit_stats(&k).waiting[TOPIC_USAGE], 40);
		assert_int_equal(k.seq[TOPIC_USAGE], 40);
		kit_close(&k);
	}
}

/* A main queue that cannot be read, or of which nothing is left, is no evidence: no record is lost for it. */
static void
nothing_is_cut_for_damage(void **state)
{
	struct kit_file f;
	char path[512];

	(void)state;
	for (int is_gone = 0; is_gone < 2; is_gone++) {
		kit_crash(&k, commit_some);
		assert_int_equal(kit_files(&k, "main-", ".seg", path), 1);
		if (is_gone) {
			assert_int_equal(unlink(path), 0);
		} else {
			f = kit_load(path);
			memset(f.data, 0xff, (size_t)(main_size[5] - main_size[1]));
			kit_store(path, f.data, f.len);
			free(f.data);
		}
		kit_open(&k);
		assert_int_equal(kit_stats(&k).waiting[TOPIC_USAGE], COMMITS * 10);
		assert_int_equal(k.seq[TOPIC_USAGE], COMMITS * 10);
		kit_done(&k);
		setup(NULL);
	}
}

/* A spool that was closed has nothing half. */
static void
nothing_is_cut_after_a_clean_end(void **state)
{
	char path[512];

	(void)state;
	kit_open(&k);
	commit_some(&k);
	kit_close(&k);
	assert_int_equal(kit_files(&k, "main-", ".seg", path), 1);
	assert_int_equal(truncate(path, (off_t)main_size[2]), 0);
	kit_open(&k);
	assert_int_equal(kit_stats(&k).waiting[TOPIC_USAGE], COMMITS * 10);
}

/* After a reboot the state file may be older than what was handed out: the numbers are not given again. */
static void
after_a_reboot_its_numbers_are_not_used_again(void **state)
{
	char path[512];

	(void)state;
	leave(3);
	snprintf(path, sizeof(path), "%s/state", k.dir);
	assert_int_equal(unlink(path), 0);
	kit_open(&k);
	assert_int_equal(k.recovery.records, 33);
	assert_int_equal(k.seq[TOPIC_USAGE], 40);
}

#define S(name) cmocka_unit_test_setup_teardown(name, setup_sizes, teardown_sizes)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		S(usage_without_its_main_batch_is_cut_off),
		S(so_is_the_first_of_all),
		S(so_are_later_segments),
		S(so_it_is_behind_old_damage),
		S(nothing_is_cut_for_damage),
		S(nothing_is_cut_after_a_clean_end),
		S(after_a_reboot_its_numbers_are_not_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
