/* SPDX-License-Identifier: Apache-2.0 */
/* spool_aside: a topic that was set aside and the others of its queue are read by turns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "faults.h"
#include "one_spool.h"

/* Neither what has waited nor what is new is kept waiting by the other, however much of it there is. */
static void
what_was_held_and_what_is_new_come_by_turns(void **state)
{
	uint64_t seq[TOPIC_COUNT] = { 0 };
	enum topic last;

	(void)state;
	kit_open(&k);
	kit_batch(&k, TOPIC_HOST, 40);
	spool_hold(k.spool, TOPIC_HOST);
	kit_expect_none(&k);
	kit_batch(&k, TOPIC_PROGRAM, 40);
	spool_release(k.spool, TOPIC_HOST);
	last = kit_next(&k).topic;
	seq[last]++;
	for (int i = 1; i < 80; i++) {
		struct spool_record r = kit_next(&k);

		assert_int_equal(r.seq, seq[r.topic]++);
		assert_int_not_equal(r.topic, last);
		last = r.topic;
		spool_ack(k.spool, r.id);
	}
	kit_expect_none(&k);
}

static void
so_do_several_that_were_held(void **state)
{
	static const enum topic held[] = { TOPIC_PROGRAM, TOPIC_TASK, TOPIC_AGENT };
	unsigned came[TOPIC_COUNT] = { 0 };

	(void)state;
	kit_open(&k);
	for (int i = 0; i < 3; i++) {
		kit_batch(&k, held[i], 20);
		spool_hold(k.spool, held[i]);
	}
	kit_expect_none(&k);
	kit_batch(&k, TOPIC_RUN, 60);
	for (int i = 0; i < 3; i++)
		spool_release(k.spool, held[i]);
	/* Every second one is new, and of the others each third is of one topic. */
	for (unsigned i = 0; i < 120; i++) {
		struct spool_record r = kit_next(&k);

		came[r.topic]++;
		spool_ack(k.spool, r.id);
		assert_in_range(2 * came[TOPIC_RUN], i, i + 2);
		for (int j = 0; j < 3; j++)
			assert_in_range(6 * came[held[j]] + 6, i, i + 12);
	}
	kit_expect_none(&k);
}

/* What is read then would only be set aside. */
static void
while_all_topics_of_a_queue_are_held_none_of_it_is_read(void **state)
{
	(void)state;
	kit_open(&k);
	for (int t = 0; t < TOPIC_COUNT; t++) {
		kit_batch(&k, t, 2);
		spool_hold(k.spool, t);
	}
	kit_expect_none(&k);
	kit_expect_none(&k);
	for (int queue = 0; queue < SPOOL_QUEUES; queue++)
		assert_int_equal(k.spool->queues[queue].n_aside, 0);
	spool_release(k.spool, TOPIC_USAGE);
	assert_int_equal(kit_next(&k).topic, TOPIC_USAGE);
	assert_int_equal(kit_next(&k).topic, TOPIC_USAGE);
	kit_expect_none(&k);
	for (int t = 0; t < TOPIC_COUNT; t++)
		spool_release(k.spool, t);
	assert_int_equal(kit_drain(&k), 2 * (TOPIC_COUNT - 1));
}

/* The seq of the oldest record, of which the time tells. */
static int64_t
oldest(void)
{
	kit_tick(&k);
	return kit_stats(&k).oldest_us - KIT_TIME;
}

/* Also if all that was put after it is gone, and whether the output has it or not. */
static void
the_oldest_record_is_one_that_is_held_if_that_is_so(void **state)
{
	struct spool_record program;

	(void)state;
	kit_open(&k);
	k.seq[TOPIC_TASK] = 300;
	k.seq[TOPIC_HOST] = 200;
	k.seq[TOPIC_PROGRAM] = 100;
	k.seq[TOPIC_AGENT] = 400;
	kit_batch(&k, TOPIC_TASK, 1);
	kit_batch(&k, TOPIC_HOST, 1);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	kit_batch(&k, TOPIC_AGENT, 1);
	spool_hold(k.spool, TOPIC_TASK);
	spool_hold(k.spool, TOPIC_HOST);
	program = kit_next(&k);
	assert_int_equal(program.topic, TOPIC_PROGRAM);
	assert_int_equal(oldest(), 100);
	spool_ack(k.spool, program.id);
	assert_int_equal(oldest(), 200);
	spool_ack(k.spool, kit_next(&k).id);
	assert_int_equal(oldest(), 200);
	spool_release(k.spool, TOPIC_HOST);
	spool_ack(k.spool, kit_next(&k).id);
	assert_int_equal(oldest(), 300);
	spool_release(k.spool, TOPIC_TASK);
	program = kit_next(&k);
	assert_int_equal(oldest(), 300);
	spool_ack(k.spool, program.id);
	kit_tick(&k);
	assert_int_equal(kit_stats(&k).oldest_us, 0);
	/* What is not read yet comes last. */
	kit_batch(&k, TOPIC_AGENT, 1);
	assert_int_equal(oldest(), 401);
}

/* Fills the first segment up, until there is a second one, and acknowledges that. */
static void
fill_segment(void)
{
	while (kit_files(&k, "main-", ".seg", NULL) < 2) {
		kit_batch(&k, TOPIC_PROGRAM, 1);
		spool_ack(k.spool, kit_next(&k).id);
	}
}

/* Segments that are acknowledged go, wherever a topic that is held has come to. */
static void
a_segment_that_is_removed_takes_no_place_of_another_one_along(void **state)
{
	(void)state;
	k.options.segment_bytes = 4096;
	kit_open(&k);
	kit_batch(&k, TOPIC_HOST, 3);
	kit_batch(&k, TOPIC_AGENT, 3);
	spool_hold(k.spool, TOPIC_HOST);
	spool_hold(k.spool, TOPIC_AGENT);
	for (int i = 0; i < 200; i++)
		kit_batch(&k, TOPIC_PROGRAM, 1);
	spool_checkpoint_begin(k.spool);
	kit_commit(&k);
	assert_int_equal(spool_sync_all(k.spool), 0);
	assert_int_equal(kit_drain(&k), 200);
	kit_tick(&k);
	assert_int_equal(kit_files(&k, "main-", ".seg", NULL), 2);
	spool_release(k.spool, TOPIC_HOST);
	spool_release(k.spool, TOPIC_AGENT);
	assert_int_equal(kit_drain(&k), 6);
	assert_int_equal(kit_stats(&k).records, 0);
}

/* A topic's own cursor has read a part of the segment that goes, and continues in the next one; many files are open. */
static void
a_segment_that_is_dropped_is_not_read_any_more(void **state)
{
	static const enum topic topics[] = { TOPIC_PROGRAM, TOPIC_RUN, TOPIC_AGENT };

	(void)state;
	for (size_t i = 0; i < sizeof(topics) / sizeof(topics[0]); i++) {
		uint64_t dropped;

		k.options.segment_bytes = 4096;
		kit_open(&k);
		for (int n = 0; n < SPOOL_FDS_KEPT + 20; n++)
			kit_batch(&k, topics[i], 25);
		kit_batch(&k, TOPIC_TASK, 1);
		spool_hold(k.spool, topics[i]);
		spool_ack(k.spool, kit_next(&k).id);
		kit_expect_none(&k);
		spool_release(k.spool, topics[i]);
		spool_ack(k.spool, kit_next(&k).id);
		k.spool->max_bytes = kit_stats(&k).bytes - 1;
		spool_make_room(k.spool, 0);
		k.spool->max_bytes = 1 << 30;
		kit_check(&k);
		dropped = kit_stats(&k).dropped[topics[i]][SPOOL_DROP_FULL];
		assert_in_range(dropped, 1, 50);
		assert_int_equal(kit_next(&k).seq, dropped + 1);
		spool_unget(k.spool);
		assert_int_equal(kit_drain(&k), k.seq[topics[i]] - 1 - dropped);
		kit_done(&k);
		setup(NULL);
	}
}

/* The queue's cursor has no place once the last segment is gone, and the topic's own is in the one before. */
static void
a_record_comes_once_whichever_cursor_is_at_its_segment_first(void **state)
{
	(void)state;
	k.options.segment_bytes = 4096;
	for (int turn = 0; turn < 2; turn++) {
		kit_open(&k);
		kit_batch(&k, TOPIC_TASK, 1);
		(void)kit_next(&k);
		kit_batch(&k, TOPIC_HOST, 2);
		spool_hold(k.spool, TOPIC_HOST);
		fill_segment();
		spool_remove(k.spool, TAILQ_LAST(&k.spool->queues[SPOOL_MAIN].segments, spool_segments));
		spool_release(k.spool, TOPIC_HOST);
		assert_int_equal(kit_drain(&k), 2);
		if (turn == 1)
			kit_expect_none(&k);
		kit_batch(&k, TOPIC_HOST, 2);
		assert_int_equal(kit_next(&k).seq, 2);
		spool_rewind_topic(k.spool, TOPIC_TASK);
		assert_int_equal(kit_next(&k).topic, TOPIC_TASK);
		assert_int_equal(kit_next(&k).seq, 3);
		kit_expect_none(&k);
		kit_check(&k);
		kit_done(&k);
		setup(NULL);
		k.options.segment_bytes = 4096;
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(what_was_held_and_what_is_new_come_by_turns),
		T(so_do_several_that_were_held),
		T(while_all_topics_of_a_queue_are_held_none_of_it_is_read),
		T(the_oldest_record_is_one_that_is_held_if_that_is_so),
		T(a_segment_that_is_removed_takes_no_place_of_another_one_along),
		T(a_segment_that_is_dropped_is_not_read_any_more),
		T(a_record_comes_once_whichever_cursor_is_at_its_segment_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
