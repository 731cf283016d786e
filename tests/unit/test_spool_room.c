/* SPDX-License-Identifier: Apache-2.0 */
/* spool_room: which segment gives way, and which of them the write-ahead log needs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "faults.h"
#include "one_spool.h"

static void
put_state(void)
{
	spool_checkpoint_begin(k.spool);
	kit_put_entry(&k, 100);
	kit_commit(&k);
}

/* The next batch begins a segment. */
static void
begin_segment(enum spool_queue queue)
{
	struct spool_segment *last = TAILQ_LAST(&k.spool->queues[queue].segments, spool_segments);

	if (last != NULL)
		last->is_sealed = true;
}

/* Puts a segment of one batch with so many records of a topic, and if need be an entry of the log. */
static struct spool_segment *
put_segment(enum topic topic, unsigned records, bool has_entry)
{
	const enum spool_queue queue = topic == TOPIC_USAGE ? SPOOL_USAGE : SPOOL_MAIN;

	begin_segment(queue);
	if (has_entry)
		kit_put_entry(&k, 100);
	kit_batch(&k, topic, records);
	return TAILQ_LAST(&k.spool->queues[queue].segments, spool_segments);
}

static unsigned
segments(enum spool_queue queue)
{
	const struct spool_segment *seg;
	unsigned n = 0;

	TAILQ_FOREACH(seg, &k.spool->queues[queue].segments, at)
		n++;
	return n;
}

/* Has one segment give way, however small it is. */
static void
exceed(void)
{
	const unsigned before = segments(SPOOL_MAIN) + segments(SPOOL_USAGE);

	k.spool->max_bytes = k.spool->bytes - 1;
	spool_make_room(k.spool, 0);
	k.spool->max_bytes = UINT64_C(1) << 30;
	kit_check(&k);
	assert_int_equal(segments(SPOOL_MAIN) + segments(SPOOL_USAGE), before - 1);
	assert_int_equal(kit_files(&k, "", ".seg", NULL), before - 1);
}

static uint64_t
dropped(enum topic topic)
{
	return kit_stats(&k).dropped[topic][SPOOL_DROP_FULL];
}

static void
a_segment_with_one_record_of_a_held_topic_goes_before_usage(void **state)
{
	(void)state;
	kit_open(&k);
	put_segment(TOPIC_HOST, 1, false);
	put_segment(TOPIC_USAGE, 2, false);
	put_segment(TOPIC_PROGRAM, 2, false);
	spool_hold(k.spool, TOPIC_HOST);
	exceed();
	assert_int_equal(dropped(TOPIC_HOST), 1);
	assert_int_equal(dropped(TOPIC_USAGE), 0);
	exceed();
	assert_int_equal(dropped(TOPIC_USAGE), 2);
	assert_int_equal(dropped(TOPIC_PROGRAM), 0);
}

static void
one_with_a_record_of_another_topic_does_not(void **state)
{
	(void)state;
	kit_open(&k);
	begin_segment(SPOOL_MAIN);
	kit_put(&k, TOPIC_PROGRAM);
	kit_batch(&k, TOPIC_HOST, 3);
	put_segment(TOPIC_HOST, 2, false);
	put_segment(TOPIC_PROGRAM, 2, false);
	spool_hold(k.spool, TOPIC_HOST);
	exceed();
	assert_int_equal(dropped(TOPIC_HOST), 2);
	assert_int_equal(dropped(TOPIC_PROGRAM), 0);
	assert_int_equal(kit_drain(&k), 3);
}

static void
of_held_topics_usage_goes_first(void **state)
{
	(void)state;
	kit_open(&k);
	put_segment(TOPIC_HOST, 1, false);
	put_segment(TOPIC_USAGE, 1, false);
	spool_hold(k.spool, TOPIC_HOST);
	spool_hold(k.spool, TOPIC_USAGE);
	exceed();
	assert_int_equal(dropped(TOPIC_USAGE), 1);
	assert_int_equal(dropped(TOPIC_HOST), 0);
}

/* In the heads of the last segments are the next numbers. */
static void
the_last_segment_of_a_queue_is_not_set_aside_when_nothing_waits_in_it(void **state)
{
	(void)state;
	kit_open(&k);
	put_segment(TOPIC_USAGE, 1, false);
	assert_int_equal(kit_drain(&k), 1);
	put_segment(TOPIC_HOST, 1, false);
	spool_hold(k.spool, TOPIC_HOST);
	spool_reap(k.spool);
	exceed();
	assert_int_equal(segments(SPOOL_USAGE), 1);
	assert_int_equal(dropped(TOPIC_HOST), 1);
}

/* What the log needs is not dropped for a topic that is held: first Usage goes, and a new state is asked for. */
static void
what_the_log_needs_stays_though_its_topic_is_held(void **state)
{
	(void)state;
	kit_open(&k);
	put_segment(TOPIC_HOST, 1, false);
	begin_segment(SPOOL_MAIN);
	put_state();
	put_segment(TOPIC_HOST, 2, true);
	put_segment(TOPIC_USAGE, 3, false);
	spool_hold(k.spool, TOPIC_HOST);
	exceed();
	assert_int_equal(dropped(TOPIC_HOST), 1);	/* before the state */
	assert_false(spool_is_log_lost(k.spool));
	exceed();
	assert_int_equal(dropped(TOPIC_USAGE), 3);
	assert_int_equal(dropped(TOPIC_HOST), 1);
	assert_false(spool_wants_checkpoint(k.spool));
	k.spool->max_bytes = k.spool->bytes - 1;
	spool_make_room(k.spool, 0);
	k.spool->max_bytes = UINT64_C(1) << 30;
	assert_true(spool_wants_checkpoint(k.spool));
	assert_int_equal(dropped(TOPIC_HOST), 1);
	assert_false(spool_is_log_lost(k.spool));
}

/* The same where all that the log needs is delivered: a state that is to come releases it. */
static void
what_is_delivered_stays_if_the_log_needs_it(void **state)
{
	(void)state;
	kit_open(&k);
	put_state();
	put_segment(TOPIC_PROGRAM, 2, true);
	put_segment(TOPIC_PROGRAM, 2, true);
	put_segment(TOPIC_USAGE, 2, false);
	put_segment(TOPIC_USAGE, 2, false);
	assert_int_equal(kit_drain(&k), 8);
	spool_reap(k.spool);
	assert_int_equal(segments(SPOOL_USAGE), 1);	/* the log is of the main queue */
	assert_int_equal(segments(SPOOL_MAIN), 3);
	k.spool->max_bytes = k.spool->bytes - 1;
	spool_make_room(k.spool, 0);
	k.spool->max_bytes = UINT64_C(1) << 30;
	assert_int_equal(segments(SPOOL_MAIN), 3);
	assert_false(spool_is_log_lost(k.spool));
}

/* Exceeds max_bytes by so little that a new state is asked for, and waited for. */
static void
expect_that_nothing_gives_way(void)
{
	const unsigned before = segments(SPOOL_MAIN);

	k.spool->max_bytes = k.spool->bytes - 1;
	spool_make_room(k.spool, 0);
	k.spool->max_bytes = UINT64_C(1) << 30;
	assert_true(spool_wants_checkpoint(k.spool));
	assert_int_equal(segments(SPOOL_MAIN), before);
	assert_int_equal(dropped(TOPIC_PROGRAM), 0);
	assert_false(spool_is_log_lost(k.spool));
}

static void
before_the_first_state_all_of_the_log_is_needed(void **state)
{
	(void)state;
	kit_open(&k);
	put_segment(TOPIC_PROGRAM, 1, true);
	put_segment(TOPIC_PROGRAM, 1, true);
	expect_that_nothing_gives_way();
}

/* A kill would leave the one before. */
static void
a_state_that_is_in_memory_only_does_not_make_the_log_before_it_superfluous(void **state)
{
	(void)state;
	kit_open(&k);
	put_state();
	put_segment(TOPIC_PROGRAM, 1, true);
	k.spool->failed = -EIO;		/* as after a failed write */
	put_state();
	assert_false(k.spool->checkpoint.seg->is_on_disk);
	expect_that_nothing_gives_way();
}

static void
the_log_is_lost_with_an_entry_since_the_state_or_with_the_state(void **state)
{
	struct spool_segment *before, *with, *without, *after;

	(void)state;
	for (int which = 0; which < 4; which++) {
		kit_open(&k);
		before = put_segment(TOPIC_PROGRAM, 1, true);
		begin_segment(SPOOL_MAIN);
		put_state();
		with = TAILQ_LAST(&k.spool->queues[SPOOL_MAIN].segments, spool_segments);
		without = put_segment(TOPIC_PROGRAM, 1, false);
		after = put_segment(TOPIC_PROGRAM, 1, true);
		put_segment(TOPIC_PROGRAM, 1, false);
		assert_int_equal(kit_drain(&k), 4);
		spool_remove(k.spool, which == 0 ? before : which == 1 ? without : which == 2 ? with : after);
		kit_check(&k);
		assert_int_equal(spool_is_log_lost(k.spool), which >= 2);
		assert_int_equal(k.spool->checkpoint.seg == NULL, which == 2);
		kit_done(&k);
		setup(NULL);
	}
	/* So it is before the first state. */
	kit_open(&k);
	before = put_segment(TOPIC_PROGRAM, 1, true);
	put_segment(TOPIC_PROGRAM, 1, false);
	assert_int_equal(kit_drain(&k), 2);
	spool_remove(k.spool, before);
	assert_true(spool_is_log_lost(k.spool));
}

/* That what was written before it to its segment is on the disk does not make the newer state safe. */
static void
a_state_is_safe_once_its_own_batch_is_synced(void **state)
{
	(void)state;
	kit_open(&k);
	put_state();
	put_segment(TOPIC_PROGRAM, 1, false);
	assert_int_equal(kit_drain(&k), 1);
	assert_int_equal(spool_sync_all(k.spool), 0);
	put_state();
	assert_int_equal(segments(SPOOL_MAIN), 2);
	spool_reap(k.spool);
	assert_int_equal(segments(SPOOL_MAIN), 2);
	assert_int_equal(spool_sync_all(k.spool), 0);
	spool_reap(k.spool);
	assert_int_equal(segments(SPOOL_MAIN), 1);
}

static void
what_is_set_aside_of_unknown_topics_takes_room_too(void **state)
{
	(void)state;
	kit_open(&k);
	put_segment(TOPIC_PROGRAM, 1, false);
	put_segment(TOPIC_PROGRAM, 1, false);
	k.spool->max_bytes = 2 * k.spool->bytes;
	k.spool->unknown_bytes = k.spool->bytes;
	spool_make_room(k.spool, 0);
	assert_int_equal(dropped(TOPIC_PROGRAM), 0);
	k.spool->unknown_bytes++;
	spool_make_room(k.spool, 0);
	assert_int_equal(dropped(TOPIC_PROGRAM), 1);
	k.spool->unknown_bytes = 0;
}

/* The next owner does not look for what was dropped. */
static void
what_was_dropped_is_in_the_state_file_at_the_next_tick(void **state)
{
	uint64_t before;

	(void)state;
	kit_open(&k);
	put_segment(TOPIC_PROGRAM, 1, false);
	put_segment(TOPIC_PROGRAM, 1, false);
	kit_tick(&k);
	before = k.spool->generation;
	kit_tick(&k);
	assert_int_equal(k.spool->generation, before);
	exceed();
	kit_tick(&k);
	assert_int_equal(k.spool->generation, before + 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_segment_with_one_record_of_a_held_topic_goes_before_usage),
		T(one_with_a_record_of_another_topic_does_not),
		T(of_held_topics_usage_goes_first),
		T(the_last_segment_of_a_queue_is_not_set_aside_when_nothing_waits_in_it),
		T(what_the_log_needs_stays_though_its_topic_is_held),
		T(what_is_delivered_stays_if_the_log_needs_it),
		T(before_the_first_state_all_of_the_log_is_needed),
		T(a_state_that_is_in_memory_only_does_not_make_the_log_before_it_superfluous),
		T(the_log_is_lost_with_an_entry_since_the_state_or_with_the_state),
		T(a_state_is_safe_once_its_own_batch_is_synced),
		T(what_is_set_aside_of_unknown_topics_takes_room_too),
		T(what_was_dropped_is_in_the_state_file_at_the_next_tick),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
