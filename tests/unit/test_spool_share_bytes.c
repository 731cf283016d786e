/* SPDX-License-Identifier: Apache-2.0 */
/* spool: from which byte on a user's records give way, and whether the state is put then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "faults.h"
#include "one_spool.h"

#define MAX_BYTES (UINT64_C(1) << 20)
#define LEN 1000
#define HEAVY 1001

/* Opens a spool with so many records of a user, each in a batch of its own. */
static void
begin(uint32_t uid, int n)
{
	k.options.max_bytes = MAX_BYTES;
	k.options.segment_bytes = 16 << 10;
	kit_open(&k);
	for (; n > 0; n--) {
		assert_int_equal(kit_put_of(&k, TOPIC_PROGRAM, LEN, (struct opt_u64){ uid, true }, true), 0);
		kit_commit(&k);
	}
}

/* Of limit, so much is free: what is missing to that is set aside of topics that this version does not know. */
static void
leave(uint64_t limit, uint64_t free)
{
	assert_true(k.spool->bytes + free <= limit);
	k.spool->max_bytes = limit;
	k.spool->unknown_bytes = limit - free - k.spool->bytes;
}

/* Returns whether a record of a user is refused. */
static bool
is_over(uint32_t uid, bool is_end)
{
	return spool_share_is_over(k.spool, &(struct encoded_record){ .topic = TOPIC_PROGRAM,
	    .user = { uid, true }, .is_end = is_end });
}

static void
an_eighth_that_is_free_is_enough_and_for_ends_a_sixteenth(void **state)
{
	(void)state;
	begin(HEAVY, 200);
	leave(MAX_BYTES, MAX_BYTES / 8);
	assert_false(is_over(HEAVY, false));
	leave(MAX_BYTES, MAX_BYTES / 8 - 1);
	assert_true(is_over(HEAVY, false));
	leave(MAX_BYTES, MAX_BYTES / 16);
	assert_false(is_over(HEAVY, true));
	leave(MAX_BYTES, MAX_BYTES / 16 - 1);
	assert_true(is_over(HEAVY, true));
}

static void
a_user_may_have_as_much_as_is_free_or_a_64th(void **state)
{
	(void)state;
	begin(HEAVY, 1);
	leave(MAX_BYTES, MAX_BYTES / 20);
	k.spool->shares.of[HEAVY] = MAX_BYTES / 20;
	assert_false(is_over(HEAVY, true));
	k.spool->shares.of[HEAVY]++;
	assert_true(is_over(HEAVY, true));
	leave(MAX_BYTES, 0);
	k.spool->shares.of[HEAVY] = MAX_BYTES / 64;
	assert_false(is_over(HEAVY, true));
	k.spool->shares.of[HEAVY]++;
	assert_true(is_over(HEAVY, true));
}

/* Ids that are equal modulo 4096 are one user's, and 0 is one of these numbers. */
static void
every_id_but_those_of_the_system_has_its_bytes_counted(void **state)
{
	(void)state;
	begin(USERS_APART, 100);
	assert_true(k.spool->shares.of[0] >= 100 * LEN);
	leave(MAX_BYTES, LEN);
	assert_true(is_over(USERS_APART, true));
	assert_false(is_over(HEAVY, true));
}

/* Acknowledges records in their order until no more than so many wait in a segment. */
static void
acknowledge_until(const struct spool_segment *seg, uint64_t left)
{
	while (spool_waiting(seg) > left)
		spool_ack(k.spool, kit_next(&k).id);
}

/* Acknowledges all records of the last segment, and none before them. */
static void
acknowledge_last(void)
{
	const struct spool_segment *last = TAILQ_LAST(&k.spool->queues[SPOOL_MAIN].segments, spool_segments);

	for (uint64_t before = kit_stats(&k).records - spool_waiting(last); before > 0; before--)
		(void)kit_next(&k);
	acknowledge_until(last, 0);
}

/* Where only the log needs it: not the last segment, which is added to, nor one in which a record waits. */
static void
the_state_is_put_if_an_eighth_is_free_without_what_is_delivered(void **state)
{
	const struct spool_segment *first, *second;
	uint64_t logs;

	(void)state;
	begin(HEAVY, 100);
	first = TAILQ_FIRST(&k.spool->queues[SPOOL_MAIN].segments);
	second = TAILQ_NEXT(first, at);
	acknowledge_until(second, 0);
	acknowledge_until(TAILQ_NEXT(second, at), 1);
	acknowledge_last();
	logs = first->size + second->size;
	for (uint64_t free = 0; free < 3; free++) {
		leave(8 * (logs + free), free);
		assert_true(spool_share_takes_state(k.spool));
		leave(8 * (logs + free + 1), free);
		assert_false(spool_share_takes_state(k.spool));
	}
	/* Above the limit nothing is free, either. */
	leave(8 * (logs + 1), 0);
	k.spool->unknown_bytes += LEN;
	assert_false(spool_share_takes_state(k.spool));
}

static void
a_state_of_less_than_a_32nd_is_put_if_it_makes_room(void **state)
{
	(void)state;
	begin(HEAVY, 1);
	leave(MAX_BYTES, 0);
	k.spool->needs_checkpoint = true;
	k.spool->checkpoint_bytes = MAX_BYTES / 32 - 1;
	assert_true(spool_share_takes_state(k.spool));
	k.spool->checkpoint_bytes++;
	assert_false(spool_share_takes_state(k.spool));
	k.spool->checkpoint_bytes = 0;
	k.spool->needs_checkpoint = false;
	assert_false(spool_share_takes_state(k.spool));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_eighth_that_is_free_is_enough_and_for_ends_a_sixteenth),
		T(a_user_may_have_as_much_as_is_free_or_a_64th),
		T(every_id_but_those_of_the_system_has_its_bytes_counted),
		T(the_state_is_put_if_an_eighth_is_free_without_what_is_delivered),
		T(a_state_of_less_than_a_32nd_is_put_if_it_makes_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
