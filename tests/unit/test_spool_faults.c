/* SPDX-License-Identifier: Apache-2.0 */
/* spool: each system call fails once: every loss is reported, and everything continues afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "faults.h"
#include "spool_kit.h"

enum {
	SEQ_MAX = 64,
	WRITES = FAULT_CREATE | FAULT_DIR | FAULT_WRITE | FAULT_REWRITE | FAULT_ROOM,
	FILES = WRITES | FAULT_OPEN | FAULT_LOCK | FAULT_READ |
	    FAULT_CUT | FAULT_SYNC | FAULT_NAME | FAULT_UNLINK | FAULT_DUP,
};

static struct kit k;
static uint8_t put[TOPIC_COUNT][SEQ_MAX], came[TOPIC_COUNT][SEQ_MAX], acked[TOPIC_COUNT][SEQ_MAX];
static uint64_t dropped, write_errors;
static int last_error;
static bool is_believed, was_unreadable;
static bool knew_boot;		/* each owner did: a state of an unknown boot counts as another boot's */

static int
setup(void **state)
{
	(void)state;
	kit_init(&k);
	memset(put, 0, sizeof(put));
	memset(came, 0, sizeof(came));
	memset(acked, 0, sizeof(acked));
	dropped = write_errors = 0;
	last_error = 0;
	is_believed = knew_boot = true;
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	fault = (struct fault){ 0 };
	kit_done(&k);
	return 0;
}

/* An open that fails returns an error, and succeeds once the fault is over. True: it failed first. */
static bool
open_spool(void)
{
	char error[512] = "";
	struct spool *spool = NULL;
	unsigned files = kit_open_files();
	int r = spool_open(&k.options, &spool, &k.recovery, error, sizeof(error));
	bool is_first = r == 0;

	if (r < 0) {
		assert_int_equal(r, fault.hit == FAULT_MEMORY ? -ENOMEM : -fault.error);
		assert_null(spool);
		assert_non_null(strstr(error, k.dir));
		assert_int_equal(kit_open_files(), files);
		assert_int_equal(spool_open(&k.options, &spool, &k.recovery, error, sizeof(error)), 0);
	}
	k.spool = spool;
	knew_boot = knew_boot && spool->boot_id[0] != '\0';
	was_unreadable = k.recovery.unreadable > 0 || k.recovery.corrupt_batches > 0;
	for (int t = 0; t < TOPIC_COUNT; t++)
		k.seq[t] = spool_next_seq(spool, t);
	kit_check(&k);
	return is_first;
}

static void
look(void)
{
	struct spool_stats st = kit_stats(&k);

	write_errors += st.write_errors;
	for (int t = 0; t < TOPIC_COUNT; t++)
		for (int d = 0; d < SPOOL_DROPS; d++)
			dropped += st.dropped[t][d];
}

static void
put_some(enum topic topic, unsigned n)
{
	while (n-- > 0) {
		uint64_t seq = k.seq[topic];
		int r = kit_put_len(&k, topic, 40);

		assert_true(r == 0 || r == -ENOMEM);
		put[topic][seq] = r == 0;
	}
}

static void
commit(uint64_t position)
{
	int r = kit_commit_at(&k, position);

	if (r < 0)
		last_error = r;
}

static void
tick(void)
{
	kit_tick(&k);
	if (kit_stats(&k).last_error < 0)
		last_error = kit_stats(&k).last_error;
}

static void
take(struct spool_record *r, bool is_acked)
{
	assert_true(kit_is_whole(r));
	assert_true(put[r->topic][r->seq]);
	assert_string_equal(spool_schema(k.spool, r->schema), topic_name(r->topic));
	/* Which of them were, there may have been no memory for. */
	if (acked[r->topic][r->seq] && is_believed)
		assert_int_equal(fault.hit, FAULT_MEMORY);
	if (came[r->topic][r->seq])
		assert_true(r->is_again);
	came[r->topic][r->seq] = 1;
	if (!is_acked)
		return;
	acked[r->topic][r->seq] = 1;
	spool_ack(k.spool, r->id);
}

/* Two owners after each other, and one that makes sure of the rest. */
static void
use(void)
{
	struct spool_record r;
	int closed;

	open_spool();
	put_some(TOPIC_PROGRAM, 3);
	put_some(TOPIC_USAGE, 2);
	commit(1);
	tick();
	if (spool_wants_checkpoint(k.spool)) {
		spool_checkpoint_begin(k.spool);
		(void)spool_put_wal(k.spool, "state", 5);
	}
	put_some(TOPIC_TASK, 2);
	commit(2);
	for (int i = 0; i < 4 && spool_next(k.spool, &r); i++)
		take(&r, i % 2 == 1);
	spool_rewind(k.spool);
	tick();
	look();
	closed = spool_close(k.spool);
	k.spool = NULL;
	if (closed < 0)
		last_error = closed;

	open_spool();
	if (closed == 0)
		assert_true(k.recovery.was_clean || !knew_boot || (fault.hit & FAULT_READ) || (fault.hit & FAULT_OPEN));
	/* Without the end of a state what was acknowledged may come again. */
	is_believed = k.recovery.was_clean;
	put_some(TOPIC_PROGRAM, 2);
	commit(3);
	if (spool_next(k.spool, &r))
		take(&r, true);
	tick();
	fault.calls = 0;
	tick();
	for (int i = 0; i < 2; i++, tick())
		while (spool_next(k.spool, &r))
			take(&r, true);
	assert_int_equal(kit_stats(&k).records, 0);
	assert_int_equal(kit_stats(&k).memory_bytes, 0);
	assert_int_equal(kit_commit_at(&k, 4), 0);
	look();
}

static uint64_t
lost(void)
{
	uint64_t n = 0;

	for (int t = 0; t < TOPIC_COUNT; t++)
		for (int seq = 0; seq < SEQ_MAX; seq++)
			n += put[t][seq] && !acked[t][seq];
	return n;
}

static unsigned
left_over(void)
{
	char path[200];
	unsigned n = 0;
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/schemas", k.dir);
	dir = opendir(path);
	assert_non_null(dir);
	while ((e = readdir(dir)) != NULL)
		n += strstr(e->d_name, ".part") != NULL;
	closedir(dir);
	return n;
}

/* Lets each call of the kind fail in turn, alone, with errno set so; how often that was. */
static unsigned
sweep(unsigned calls, int error, void (*check)(void))
{
	unsigned n = 0;

	for (bool is_over = false; !is_over; n++) {
		unsigned files = kit_open_files();

		fault = (struct fault){ .calls = calls, .skip = n, .times = 1, .error = error };
		use();
		is_over = fault.hit == 0;
		check();
		assert_int_equal(spool_close(k.spool), 0);
		k.spool = NULL;
		assert_int_equal(kit_open_files(), files);
		/* The next agent finds its end. */
		kit_open(&k);
		assert_true(k.recovery.was_clean || !knew_boot);
		/* What could not be read then is there still. */
		if (!was_unreadable)
			assert_int_equal(k.recovery.records, 0);
		assert_int_equal(kit_drain(&k), k.recovery.records);
		assert_int_equal(k.seq[TOPIC_PROGRAM], 5);
		assert_int_equal(k.seq[TOPIC_USAGE], 2);
		assert_int_equal(k.seq[TOPIC_TASK], 2);
		kit_done(&k);
		setup(NULL);
	}
	return n;
}

static void
nothing_is_lost(void)
{
	assert_int_equal(lost(), 0);
	assert_int_equal(dropped, 0);
	assert_int_equal(left_over(), 0);
}

static void
nothing_is_lost_and_it_is_told(void)
{
	nothing_is_lost();
	/* The state that is not written with a record is written at the next tick. */
	if (fault.hit & (FAULT_WRITE | FAULT_ROOM | FAULT_NAME))
		assert_true(last_error == -fault.error || write_errors > 0);
}

static void
nothing_happens(void)
{
	nothing_is_lost();
	assert_int_equal(last_error, 0);
	assert_int_equal(write_errors, 0);
}

static void
a_disk_that_was_full_for_a_moment_loses_nothing(void **state)
{
	(void)state;
	assert_true(sweep(WRITES, ENOSPC, nothing_is_lost_and_it_is_told) > 30);
}

static void
calls_that_were_interrupted_are_made_again(void **state)
{
	(void)state;
	assert_true(sweep(FAULT_WRITE | FAULT_REWRITE, EINTR, nothing_happens) > 15);
}

static void
what_was_written_in_part_is_written_to_its_end(void **state)
{
	(void)state;
	assert_true(sweep(FAULT_WRITE | FAULT_REWRITE, 0, nothing_is_lost) > 15);
}

static void
want_of_memory_for_a_moment_loses_nothing(void **state)
{
	(void)state;
	assert_true(sweep(FAULT_MEMORY, ENOMEM, nothing_is_lost) > 20);
}

static void
a_thread_that_cannot_begin_is_begun_later(void **state)
{
	(void)state;
	assert_int_equal(sweep(FAULT_THREAD, EAGAIN, nothing_is_lost), 3);
}

/* What could not be read at the start is put aside or counted, and nothing else is missing. */
static void
nothing_is_lost_but_what_could_not_be_read(void)
{
	if (!was_unreadable)
		assert_int_equal(lost(), dropped);
	if (fault.hit & (FAULT_WRITE | FAULT_ROOM | FAULT_NAME))
		assert_true(last_error == -fault.error || write_errors > 0);
}

static void
a_disk_with_an_error_loses_nothing_else(void **state)
{
	(void)state;
	assert_true(sweep(FILES, EIO, nothing_is_lost_but_what_could_not_be_read) > 60);
}

static void
texts_are_on_the_disk_before_the_loop_which_waits_for_none(void **state)
{
	(void)state;
	fault = (struct fault){ .calls = FAULT_SYNC };	/* which counts them */
	open_spool();
	assert_true(fault.count >= TOPIC_COUNT);
	tick();
	fault.count = 0;
	put_some(TOPIC_PROGRAM, 3);
	commit(1);
	tree_done(&k.tree);
	tick();
	tick();
	commit(2);
	assert_int_equal(kit_stats(&k).last_error, 0);
	assert_int_equal(kit_files(&k, "schemas", "", NULL), 1);
	assert_int_equal(fault.count, 0);
}

static void
a_cut_that_fails_leaves_what_is_passed_over(void **state)
{
	struct spool_record r;
	char path[512];

	(void)state;
	open_spool();
	put_some(TOPIC_PROGRAM, 3);
	commit(1);
	/* The end of the next batch cannot be written, nor can its beginning be taken back. */
	for (int with_cut = 0; with_cut < 2; with_cut++) {
		fault = (struct fault){ .calls = FAULT_WRITE, .times = 10, .error = ENOSPC };
		fault.calls |= with_cut ? FAULT_CUT : 0;
		put_some(TOPIC_PROGRAM, 2);
		assert_int_equal(kit_commit_at(&k, 2), -ENOSPC);
		fault.calls = 0;
		assert_true(kit_stats(&k).memory_bytes > 0);
		tick();
		assert_int_equal(kit_stats(&k).memory_bytes, 0);
	}
	assert_true(kit_files(&k, "main-", ".seg", path) >= 2);
	kit_reopen(&k);
	assert_int_equal(k.recovery.records, 7);
	assert_int_equal(k.recovery.torn_bytes, 0);
	while (spool_next(k.spool, &r))
		take(&r, true);
	assert_int_equal(lost(), 0);
}

static void
a_folder_that_cannot_be_made_or_locked_says_why(void **state)
{
	static const unsigned calls[] = { FAULT_DIR, FAULT_LOCK, FAULT_OPEN };
	unsigned slashes = 0;
	char error[512];

	(void)state;
	for (const char *c = k.dir; *c != '\0'; c++)
		slashes += *c == '/';
	for (size_t i = 0; i < 3; i++) {
		for (unsigned n = 2; n > 0; n--) {		/* the one above it, and itself */
			struct spool *spool = NULL;
			unsigned files = kit_open_files();

			int r;

			fault = (struct fault){ .calls = calls[i], .times = 1,
			    .skip = calls[i] == FAULT_DIR ? slashes - n : 0,
			    .error = calls[i] == FAULT_DIR ? ENOSPC : ENOLCK };
			r = spool_open(&k.options, &spool, NULL, error, sizeof(error));
			assert_int_equal(r, -fault.error);
			fault.calls = 0;
			assert_null(spool);
			assert_non_null(strstr(error, k.dir));
			assert_non_null(strstr(error, strerror(fault.error)));
			assert_int_equal(kit_open_files(), files);
		}
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_disk_that_was_full_for_a_moment_loses_nothing),
		T(calls_that_were_interrupted_are_made_again),
		T(what_was_written_in_part_is_written_to_its_end),
		T(want_of_memory_for_a_moment_loses_nothing),
		T(a_thread_that_cannot_begin_is_begun_later),
		T(a_disk_with_an_error_loses_nothing_else),
		T(texts_are_on_the_disk_before_the_loop_which_waits_for_none),
		T(a_cut_that_fails_leaves_what_is_passed_over),
		T(a_folder_that_cannot_be_made_or_locked_says_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
