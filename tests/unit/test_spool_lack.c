/* SPDX-License-Identifier: Apache-2.0 */
/* spool_lack: how long the next owner knows that the write-ahead log lacks something. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "faults.h"
#include "one_spool.h"

#define MAX_BYTES (UINT64_C(1) << 20)
#define MEMORY_BYTES (UINT64_C(64) << 10)
#define LEN 1000
#define HEAVY 1001

static int
put(struct kit *at, bool is_end)
{
	return kit_put_of(at, TOPIC_PROGRAM, LEN, (struct opt_u64){ HEAVY, true }, is_end);
}

static void
put_state(struct kit *at)
{
	spool_checkpoint_begin(at->spool);
	kit_put_entry(at, 1000);
	kit_commit(at);
}

/* The user fills the spool, until the log is cut because its ends are refused. */
static void
cut(struct kit *at)
{
	for (int i = 0; !spool_is_log_cut(at->spool); i++) {
		kit_expect(i < 2000 && put(at, true) == 0, "a record is put");
		if (!spool_is_log_cut(at->spool))
			kit_commit(at);
	}
}

static void
begin(void)
{
	k.options.max_bytes = MAX_BYTES;
	k.options.memory_bytes = MEMORY_BYTES;
	kit_open(&k);
}

/* Opens a spool whose owner before cut the log, and was killed. */
static void
begin_after_a_cut(void)
{
	k.options.max_bytes = MAX_BYTES;
	k.options.memory_bytes = MEMORY_BYTES;
	kit_crash(&k, cut);
	begin();
	assert_true(spool_lacks_batches(k.spool));
	kit_drain(&k);
	kit_tick(&k);
}

static void
fail_disk(void)
{
	fault = (struct fault){ .calls = FAULT_CREATE | FAULT_DIR | FAULT_WRITE | FAULT_REWRITE | FAULT_ROOM,
		.times = 1000000, .error = ENOSPC };
}

static void
mend_disk(void)
{
	fault = (struct fault){ 0 };
	kit_tick(&k);
	assert_int_equal(kit_stats(&k).last_error, 0);
}

/* The states that an owner puts are of what it has seen itself. */
static void
what_an_owner_before_left_out_is_lacking_until_the_caller_has_made_up_for_it(void **state)
{
	(void)state;
	begin_after_a_cut();
	put_state(&k);
	assert_true(spool_lacks_batches(k.spool));
	/* Another cut, which is over with the next state, does not end it. */
	cut(&k);
	KIT_UNTIL(&k, (kit_drain(&k), spool_wants_checkpoint(k.spool)));
	put_state(&k);
	assert_false(spool_is_log_cut(k.spool));
	assert_true(spool_lacks_batches(k.spool));
	kit_reopen(&k);
	assert_true(spool_lacks_batches(k.spool));
	assert_int_equal(spool_set_lacking(k.spool, false), 0);
	kit_reopen(&k);
	assert_false(spool_lacks_batches(k.spool));
}

static void
made_up_for_during_a_cut_it_ends_with_the_cut(void **state)
{
	(void)state;
	begin_after_a_cut();
	put_state(&k);
	cut(&k);
	assert_int_equal(spool_set_lacking(k.spool, false), 0);
	assert_true(spool_lacks_batches(k.spool));
	KIT_UNTIL(&k, (kit_drain(&k), spool_wants_checkpoint(k.spool)));
	put_state(&k);
	assert_false(spool_lacks_batches(k.spool));
	kit_reopen(&k);
	assert_false(spool_lacks_batches(k.spool));
}

/* Fills the spool up to where the next end is refused. */
static void
fill(void)
{
	for (int i = 0; kit_stats(&k).bytes <= MAX_BYTES / 16 * 15; i++) {
		assert_true(i < 2000);
		assert_int_equal(put(&k, true), 0);
		kit_commit(&k);
	}
}

static void
a_cut_is_no_failure_of_the_disk(void **state)
{
	(void)state;
	begin();
	fill();
	assert_int_equal(put(&k, true), 0);
	assert_true(spool_is_log_cut(k.spool));
	assert_int_equal(kit_stats(&k).write_errors, 0);
	assert_int_equal(kit_stats(&k).last_error, 0);
}

static void
nor_is_a_cut_that_waits_for_the_state_file(void **state)
{
	(void)state;
	begin();
	fill();
	k.spool->is_sync_first = k.spool->is_state_syncing = true;
	assert_int_equal(put(&k, true), 0);
	assert_false(spool_is_log_cut(k.spool));
	assert_int_equal(kit_stats(&k).write_errors, 0);
	assert_int_equal(kit_stats(&k).last_error, 0);
	k.spool->is_sync_first = k.spool->is_state_syncing = false;
}

static void
set_lacking_on_a_full_disk(struct kit *at)
{
	fault = (struct fault){ .calls = FAULT_REWRITE, .times = 1, .error = ENOSPC };
	kit_expect(spool_set_lacking(at->spool, true) == -ENOSPC, "the disk has it not yet");
	kit_expect(spool_lacks_batches(at->spool), "it is so");
	kit_tick(at);
}

static void
what_could_not_be_written_is_written_at_the_next_tick(void **state)
{
	(void)state;
	kit_crash(&k, set_lacking_on_a_full_disk);
	kit_open(&k);
	assert_true(spool_lacks_batches(k.spool));
}

/* Though the state that ended the cut is on the disk: entries after it found no room in memory. */
static void
entries_that_are_lost_after_the_state_are_lacking(void **state)
{
	(void)state;
	begin();
	put_state(&k);
	cut(&k);
	KIT_UNTIL(&k, (kit_drain(&k), spool_wants_checkpoint(k.spool)));
	fail_disk();
	put_state(&k);
	assert_false(spool_is_log_cut(k.spool));
	kit_put_entry(&k, MEMORY_BYTES);
	kit_commit(&k);
	assert_true(spool_is_log_lost(k.spool));
	mend_disk();
	kit_batch(&k, TOPIC_PROGRAM, 1);
	assert_true(spool_lacks_batches(k.spool));
	put_state(&k);
	assert_false(spool_lacks_batches(k.spool));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(what_an_owner_before_left_out_is_lacking_until_the_caller_has_made_up_for_it),
		T(made_up_for_during_a_cut_it_ends_with_the_cut),
		T(a_cut_is_no_failure_of_the_disk),
		T(nor_is_a_cut_that_waits_for_the_state_file),
		T(what_could_not_be_written_is_written_at_the_next_tick),
		T(entries_that_are_lost_after_the_state_are_lacking),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
