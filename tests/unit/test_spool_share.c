/* SPDX-License-Identifier: Apache-2.0 */
/* spool: a user who fills it loses its own records, and none of another's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "faults.h"
#include "one_spool.h"

#define MAX_BYTES (UINT64_C(1) << 20)
#define LEN 1000
#define SYSTEM 0
#define HEAVY 1001
#define LIGHT 1002

static void
put_more(enum topic topic, uint32_t uid, bool is_end)
{
	assert_int_equal(kit_put_of(&k, topic, LEN, (struct opt_u64){ uid, uid != SYSTEM }, is_end), 0);
}

static void
put(enum topic topic, uint32_t uid, bool is_end)
{
	put_more(topic, uid, is_end);
	kit_commit(&k);
}

static uint64_t
dropped(enum topic topic, enum spool_drop reason)
{
	return kit_stats(&k).dropped[topic][reason];
}

static uint64_t
dropped_in_all(enum spool_drop reason)
{
	uint64_t n = 0;

	for (int t = 0; t < TOPIC_COUNT; t++)
		n += dropped(t, reason);
	return n;
}

static void
begin(void)
{
	k.options.max_bytes = MAX_BYTES;
	kit_open(&k);
}

static void
one_who_fills_it_loses_its_own_records(void **state)
{
	struct user_loss losses[USER_LOSSES];
	uint64_t at_first_end, n = 0;

	(void)state;
	begin();
	for (int i = 0; i < 10; i++)
		put(TOPIC_PROGRAM, LIGHT, true);
	/* First what ends make up for, ... */
	for (; dropped_in_all(SPOOL_DROP_SHARE) == 0; n++) {
		assert_true(n < 10000);
		put(TOPIC_PROGRAM, HEAVY, false);
	}
	assert_in_range(kit_stats(&k).bytes, MAX_BYTES / 8 * 7 - 2 * LEN, MAX_BYTES / 8 * 7 + 2 * LEN);
	put(TOPIC_USAGE, HEAVY, false);
	assert_int_equal(dropped(TOPIC_USAGE, SPOOL_DROP_SHARE), 1);
	/* ... then ends, ... */
	for (n = 0; dropped(TOPIC_PROGRAM, SPOOL_DROP_SHARE) == 1; n++)
		put(TOPIC_PROGRAM, HEAVY, true);
	at_first_end = kit_stats(&k).bytes;
	assert_in_range(at_first_end, MAX_BYTES / 16 * 15 - 2 * LEN, MAX_BYTES / 16 * 15 + 2 * LEN);
	for (int i = 0; i < 1000; i++)
		put_more(TOPIC_PROGRAM, HEAVY, i % 2 == 0);
	assert_int_equal(kit_stats(&k).bytes, at_first_end);
	kit_commit(&k);
	/* ... and another user has room for as much as is free, and loses nothing. */
	for (int i = 0; i < 10; i++) {
		put(TOPIC_USAGE, LIGHT, false);
		put(TOPIC_PROGRAM, LIGHT, true);
	}
	assert_int_equal(dropped_in_all(SPOOL_DROP_FULL), 0);
	assert_int_equal(dropped_in_all(SPOOL_DROP_SHARE), 1003);
	assert_int_equal(spool_user_losses(k.spool, losses, 0), 1);
	assert_int_equal(losses[0].uid, HEAVY);
	assert_int_equal(losses[0].lost, 1003);
	assert_int_equal(k.seq[TOPIC_PROGRAM] + k.seq[TOPIC_USAGE] - 1003, kit_drain(&k));
}

static void
what_is_delivered_makes_room_again(void **state)
{
	(void)state;
	begin();
	for (int round = 0; round < 3; round++) {
		uint64_t lost = dropped_in_all(SPOOL_DROP_SHARE);

		for (int i = 0; i < 500; i++)
			put(TOPIC_PROGRAM, HEAVY, true);
		assert_int_equal(dropped_in_all(SPOOL_DROP_SHARE), lost);
		for (int i = 0; dropped_in_all(SPOOL_DROP_SHARE) == lost; i++) {
			assert_true(i < 1000);
			put(TOPIC_PROGRAM, HEAVY, true);
		}
		KIT_UNTIL(&k, (kit_drain(&k), kit_stats(&k).bytes < MAX_BYTES / 4));
	}
	assert_int_equal(dropped_in_all(SPOOL_DROP_FULL), 0);
}

static void
put_state(void)
{
	spool_checkpoint_begin(k.spool);
	kit_put_entry(&k, 10000);
	kit_commit(&k);
}

static void
fill_and_log(struct kit *at)
{
	(void)at;
	put_state();
	assert_false(spool_wants_checkpoint(k.spool));
	while (dropped_in_all(SPOOL_DROP_SHARE) < 200)
		put(TOPIC_PROGRAM, HEAVY, true);
}

/* Else the log of the programs whose records are refused would cost others theirs. */
static void
the_log_gives_way_too_and_the_next_agent_knows(void **state)
{
	uint64_t before;

	(void)state;
	k.options.max_bytes = MAX_BYTES;
	kit_crash(&k, fill_and_log);
	kit_open(&k);
	assert_true(spool_lacks_batches(k.spool));
	(void)spool_set_lacking(k.spool, false);
	fill_and_log(&k);
	before = kit_stats(&k).bytes;
	for (int i = 0; i < 1000; i++)
		kit_put_entry(&k, 1000);
	kit_commit(&k);
	assert_in_range(kit_stats(&k).bytes, before, before + LEN);
	assert_false(spool_wants_checkpoint(k.spool));
	/* As an agent does that has begun after a crash, whose gap is committed. */
	assert_int_equal(spool_set_lacking(k.spool, false), 0);
	assert_true(spool_lacks_batches(k.spool));
	KIT_UNTIL(&k, (kit_drain(&k), spool_wants_checkpoint(k.spool)));
	put_state();
	assert_false(spool_lacks_batches(k.spool));
	before = kit_stats(&k).bytes;
	kit_put_entry(&k, 1000);
	kit_commit(&k);
	assert_true(kit_stats(&k).bytes > before + 1000);
	kit_reopen(&k);
	assert_false(spool_lacks_batches(k.spool));
}

/* As it is with what is no user's: the oldest gives way. */
static void
users_of_the_system_have_no_share(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 3000; i++)
		put(TOPIC_PROGRAM, SYSTEM, true);
	assert_int_equal(dropped_in_all(SPOOL_DROP_SHARE), 0);
	assert_true(dropped(TOPIC_PROGRAM, SPOOL_DROP_FULL) > 1000);
}

/* Those who have no share fill it, and so leave nothing free: that is no reason to refuse the records of all others. */
static void
a_user_who_has_little_in_it_is_never_refused(void **state)
{
	(void)state;
	begin();
	put(TOPIC_PROGRAM, LIGHT, true);
	while (kit_stats(&k).bytes < MAX_BYTES - LEN)
		put(TOPIC_PROGRAM, SYSTEM, true);
	put_more(TOPIC_USAGE, LIGHT, false);
	put_more(TOPIC_PROGRAM, LIGHT, true);
	assert_int_equal(dropped_in_all(SPOOL_DROP_SHARE), 0);
	/* It is a 64th of the spool, after which the user has a share like others. */
	for (int i = 0; i < 100; i++)
		put_more(TOPIC_PROGRAM, LIGHT, true);
	kit_commit(&k);
	assert_in_range(dropped_in_all(SPOOL_DROP_SHARE), 100 - MAX_BYTES / 64 / LEN - 1, 99);
}

static void
nothing_is_left_of_what_a_user_once_had(void **state)
{
	(void)state;
	begin();
	put(TOPIC_PROGRAM, HEAVY, true);
	assert_true(k.spool->shares.of[HEAVY] > LEN);
	for (int i = 0; i < 100 * (int)(MAX_BYTES / LEN) && k.spool->shares.of[HEAVY] > 0; i++)
		put(TOPIC_PROGRAM, SYSTEM, true);
	assert_int_equal(k.spool->shares.of[HEAVY], 0);
}

/* Else the segment of the last one never gives way, and the spool becomes a quarter larger than it may. */
static void
a_small_state_is_put_even_if_there_is_no_room(void **state)
{
	unsigned states = 0;

	(void)state;
	begin();
	fill_and_log(&k);
	assert_true(spool_is_log_cut(k.spool));
	for (int i = 0; i < 3000; i++) {
		put(TOPIC_PROGRAM, SYSTEM, true);
		if (spool_wants_checkpoint(k.spool)) {
			put_state();
			states++;
		}
		put(TOPIC_PROGRAM, HEAVY, true);
		assert_in_range(kit_stats(&k).bytes, 0, MAX_BYTES + 16 * LEN);
	}
	assert_in_range(states, 2, 6);
}

/* What is delivered makes no room by itself while the last state and all since then are needed. */
static void
what_only_the_log_needs_makes_room(void **state)
{
	(void)state;
	begin();
	spool_checkpoint_begin(k.spool);
	kit_put_entry(&k, 100000);
	kit_commit(&k);
	while (dropped_in_all(SPOOL_DROP_SHARE) == 0)
		put(TOPIC_PROGRAM, HEAVY, true);
	assert_false(spool_wants_checkpoint(k.spool));
	kit_drain(&k);
	KIT_UNTIL(&k, kit_stats(&k).records == 0);
	assert_true(spool_wants_checkpoint(k.spool));
	put_state();
	KIT_UNTIL(&k, kit_stats(&k).bytes < MAX_BYTES / 2);
	assert_false(spool_lacks_batches(k.spool));
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

/* Fills the spool, up to where the user's ends are no more put. */
static void
cut_log(void)
{
	begin();
	fill_and_log(&k);
	assert_true(spool_is_log_cut(k.spool));
	assert_true(spool_lacks_batches(k.spool));
}

static void
no_end_is_refused_before_the_disk_has_that_the_log_lacks_it(void **state)
{
	uint64_t lost;

	(void)state;
	begin();
	while (kit_stats(&k).bytes < MAX_BYTES / 16 * 15 - 2 * LEN)
		put(TOPIC_PROGRAM, HEAVY, true);
	fail_disk();
	for (int i = 0; i < 10; i++)
		put_more(TOPIC_PROGRAM, HEAVY, true);
	assert_int_equal(dropped_in_all(SPOOL_DROP_SHARE), 0);
	assert_false(spool_is_log_cut(k.spool));
	assert_true(kit_stats(&k).last_error < 0);
	kit_put_entry(&k, 1000);
	mend_disk();
	/* Nor while the state file is synced, which is not written then. */
	k.spool->is_sync_first = k.spool->is_state_syncing = true;
	put_more(TOPIC_PROGRAM, HEAVY, true);
	assert_int_equal(dropped_in_all(SPOOL_DROP_SHARE), 0);
	k.spool->is_sync_first = k.spool->is_state_syncing = false;
	lost = k.seq[TOPIC_PROGRAM];
	put_more(TOPIC_PROGRAM, HEAVY, true);
	assert_int_equal(dropped_in_all(SPOOL_DROP_SHARE), k.seq[TOPIC_PROGRAM] - lost);
	assert_true(spool_is_log_cut(k.spool));
}

/* As an agent puts the state, once there is room; the disk fails meanwhile. */
static void
put_state_into_memory(void)
{
	KIT_UNTIL(&k, (kit_drain(&k), spool_wants_checkpoint(k.spool)));
	fail_disk();
	spool_checkpoint_begin(k.spool);
	kit_put_entry(&k, 10000);
	kit_commit(&k);
	assert_false(spool_is_log_cut(k.spool));
	assert_true(spool_lacks_batches(k.spool));
}

static void
a_state_that_is_dropped_from_memory_does_not_end_what_the_log_lacks(void **state)
{
	(void)state;
	k.options.memory_bytes = 256 << 10;
	cut_log();
	put_state_into_memory();
	for (int i = 0; !spool_is_log_lost(k.spool); i++) {
		assert_true(i < 1000);
		put_more(TOPIC_PROGRAM, SYSTEM, true);
		kit_commit(&k);
	}
	mend_disk();
	put(TOPIC_PROGRAM, SYSTEM, true);
	assert_true(spool_lacks_batches(k.spool));
	assert_int_equal(spool_set_lacking(k.spool, false), 0);
	assert_true(spool_lacks_batches(k.spool));
	assert_true(spool_wants_checkpoint(k.spool));
	put_state();
	assert_false(spool_is_log_lost(k.spool));
	assert_false(spool_lacks_batches(k.spool));
}

static void
what_the_log_lacks_twice_ends_once_the_state_is_put(void **state)
{
	uint64_t lost;

	(void)state;
	cut_log();
	put_state_into_memory();
	mend_disk();
	lost = dropped_in_all(SPOOL_DROP_SHARE);
	for (int i = 0; dropped_in_all(SPOOL_DROP_SHARE) == lost; i++) {
		assert_true(i < 2000);
		put_more(TOPIC_PROGRAM, HEAVY, true);
	}
	assert_true(spool_is_log_cut(k.spool));
	kit_commit(&k);
	KIT_UNTIL(&k, (kit_drain(&k), spool_wants_checkpoint(k.spool)));
	put_state();
	assert_false(spool_lacks_batches(k.spool));
}

static void
a_batch_that_is_dropped_gives_its_bytes_back(void **state)
{
	(void)state;
	k.options.memory_bytes = 64 << 10;
	begin();
	kit_put_entry(&k, 100);
	put(TOPIC_PROGRAM, HEAVY, true);
	fail_disk();
	for (int i = 0; i < 200; i++)
		put_more(TOPIC_PROGRAM, HEAVY, true);
	kit_put_entry(&k, 100);
	kit_commit(&k);
	assert_int_equal(dropped(TOPIC_PROGRAM, SPOOL_DROP_MEMORY), 200);
	assert_in_range(k.spool->shares.of[HEAVY], 0, 2 * LEN);
	assert_true(spool_is_log_lost(k.spool));
}

/* A disk below its floor has no room for files at all; what is in memory has the same bounds. */
static void
without_room_for_files_memory_is_shared(void **state)
{
	(void)state;
	k.options.memory_bytes = MAX_BYTES / 2;
	begin();
	k.spool->files_max = 0;
	for (int i = 0; i < 400; i++)
		put_more(TOPIC_PROGRAM, HEAVY, true);
	assert_int_equal(dropped_in_all(SPOOL_DROP_SHARE), 0);
	for (int i = 0; i < 400; i++)
		put_more(TOPIC_PROGRAM, HEAVY, false);
	assert_in_range(dropped_in_all(SPOOL_DROP_SHARE), 320, 399);
	put_more(TOPIC_PROGRAM, LIGHT, false);
	assert_in_range(dropped_in_all(SPOOL_DROP_SHARE), 320, 399);
}

static void
whose_a_record_is_comes_back_with_it(void **state)
{
	struct spool_record r;

	(void)state;
	begin();
	put(TOPIC_PROGRAM, HEAVY, true);
	put(TOPIC_PROGRAM, SYSTEM, true);
	kit_batch(&k, TOPIC_HOST, 1);
	kit_reopen(&k);
	assert_true(spool_next(k.spool, &r));
	assert_true(r.user.known);
	assert_int_equal(r.user.value, HEAVY);
	for (int i = 0; i < 2; i++) {
		assert_true(spool_next(k.spool, &r));
		assert_false(r.user.known);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(one_who_fills_it_loses_its_own_records),
		T(what_is_delivered_makes_room_again),
		T(the_log_gives_way_too_and_the_next_agent_knows),
		T(users_of_the_system_have_no_share),
		T(a_user_who_has_little_in_it_is_never_refused),
		T(nothing_is_left_of_what_a_user_once_had),
		T(a_small_state_is_put_even_if_there_is_no_room),
		T(what_only_the_log_needs_makes_room),
		T(no_end_is_refused_before_the_disk_has_that_the_log_lacks_it),
		T(a_state_that_is_dropped_from_memory_does_not_end_what_the_log_lacks),
		T(what_the_log_lacks_twice_ends_once_the_state_is_put),
		T(a_batch_that_is_dropped_gives_its_bytes_back),
		T(without_room_for_files_memory_is_shared),
		T(whose_a_record_is_comes_back_with_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
