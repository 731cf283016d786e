/* SPDX-License-Identifier: Apache-2.0 */
/* spool: entries of the write-ahead log since the checkpoint are replayed, and their segments are kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "faults.h"
#include "one_spool.h"

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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(entries_since_the_checkpoint_are_replayed),
		T(segments_that_a_replay_needs_are_kept),
		T(many_entries_want_a_checkpoint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
