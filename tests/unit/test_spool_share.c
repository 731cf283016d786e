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
	assert_int_equal(kit_put_of(&k, topic, LEN, (struct opt_u64){ uid, true }, is_end), 0);
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
	assert_int_equal(spool_user_losses(k.spool, losses), 1);
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(one_who_fills_it_loses_its_own_records),
		T(what_is_delivered_makes_room_again),
		T(the_log_gives_way_too_and_the_next_agent_knows),
		T(users_of_the_system_have_no_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
