/* SPDX-License-Identifier: Apache-2.0 */
/* share: how much of librdkafka's queue one topic may take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kafka/client.h"

#define SECOND INT64_C(1000000)
#define START (1000 * SECOND)

static struct kafka k;

static int
setup(void **state)
{
	(void)state;
	k = (struct kafka){ .messages_max = 100, .bytes_max = 1 << 20, .now_us = START };
	kafka_share_tick(&k);
	return 0;
}

/* Puts messages of 10 bytes until the topic's share is used; how many. */
static unsigned
fill(enum topic topic)
{
	unsigned n = 0;

	for (; !kafka_share_is_used(&k, topic); n++)
		kafka_share_put(&k, topic, 10);
	return n;
}

static void
answer(enum topic topic, unsigned n, int64_t latency_us)
{
	while (n-- > 0)
		kafka_share_answered(&k, topic, 10, latency_us);
}

static void
tick(int64_t seconds)
{
	for (; seconds > 0; seconds--) {
		k.now_us += SECOND;
		kafka_share_tick(&k);
	}
}

static void
a_topic_leaves_as_much_room_as_it_takes(void **state)
{
	(void)state;
	assert_int_equal(fill(TOPIC_USAGE), 50);
	assert_int_equal(fill(TOPIC_PROGRAM), 25);
	assert_int_equal(fill(TOPIC_HOST), 13);
	/* A topic without any message has room for one, whatever the others take. */
	k.status.in_flight = 100;
	assert_false(kafka_share_is_used(&k, TOPIC_RUN));
	kafka_share_put(&k, TOPIC_RUN, 10);
	assert_true(kafka_share_is_used(&k, TOPIC_RUN));
}

static void
bytes_are_shared_like_messages(void **state)
{
	(void)state;
	k.bytes_max = 400;
	assert_int_equal(fill(TOPIC_USAGE), 20);
	assert_int_equal(fill(TOPIC_PROGRAM), 10);
	answer(TOPIC_USAGE, 20, 1000);
	assert_int_equal(k.status.queued_bytes, 100);
	assert_int_equal(k.status.in_flight, 10);
	assert_int_equal(fill(TOPIC_PROGRAM), 10);
}

/* What a topic has in the queue counts as long as it is there. */
static void
an_answer_gives_bytes_back_to_its_topic(void **state)
{
	(void)state;
	k.bytes_max = 400;
	assert_int_equal(fill(TOPIC_USAGE), 20);
	answer(TOPIC_USAGE, 19, 1000);
	assert_int_equal(fill(TOPIC_USAGE), 19);
}

/* Messages that are answered in time are never late, however many are in flight at a mark. */
static void
a_busy_topic_is_not_late(void **state)
{
	(void)state;
	for (int i = 0; i < 30; i++) {
		(void)fill(TOPIC_USAGE);
		tick(1);
		assert_false(kafka_share_is_late(&k, TOPIC_USAGE));
		answer(TOPIC_USAGE, (unsigned)k.topics[TOPIC_USAGE].in_flight, SECOND);
	}
	assert_int_equal(k.status.in_flight, 0);
}

static void
a_topic_is_late_until_its_old_messages_are_answered(void **state)
{
	(void)state;
	(void)fill(TOPIC_USAGE);
	tick(4);
	assert_false(kafka_share_is_late(&k, TOPIC_USAGE));
	tick(6);
	assert_true(kafka_share_is_late(&k, TOPIC_USAGE));
	assert_false(kafka_share_is_late(&k, TOPIC_PROGRAM));
	/* One of another partition that is answered changes nothing. */
	answer(TOPIC_USAGE, 1, 10 * SECOND);
	kafka_share_put(&k, TOPIC_USAGE, 10);
	answer(TOPIC_USAGE, 1, 1000);
	assert_true(kafka_share_is_late(&k, TOPIC_USAGE));
	answer(TOPIC_USAGE, 48, 10 * SECOND);
	assert_true(kafka_share_is_late(&k, TOPIC_USAGE));
	/* librdkafka does not know the latency of some. */
	answer(TOPIC_USAGE, 1, -1);
	kafka_share_delivered(&k, TOPIC_USAGE);
	assert_false(kafka_share_is_late(&k, TOPIC_USAGE));
	assert_int_equal(k.topics[TOPIC_USAGE].in_flight, 0);
}

/* Sent since the mark, or at it, are none of them; of which it is not known when is one. */
static void
only_answers_of_late_messages_end_that(void **state)
{
	(void)state;
	(void)fill(TOPIC_USAGE);
	tick(10);
	for (int i = 0; i < 4; i++)
		kafka_share_put(&k, TOPIC_USAGE, 10);
	answer(TOPIC_USAGE, 1, 0);
	answer(TOPIC_USAGE, 1, SECOND);
	answer(TOPIC_USAGE, 1, 5 * SECOND);
	kafka_share_delivered(&k, TOPIC_USAGE);
	answer(TOPIC_USAGE, 1, -1);
	answer(TOPIC_USAGE, 48, 10 * SECOND);
	assert_true(kafka_share_is_late(&k, TOPIC_USAGE));
	answer(TOPIC_USAGE, 1, 10 * SECOND);
	assert_false(kafka_share_is_late(&k, TOPIC_USAGE));
	assert_int_equal(k.topics[TOPIC_USAGE].in_flight, 1);
}

static void
nor_do_others_become_late_at_the_next_mark(void **state)
{
	(void)state;
	for (int left = 0; left < 2; left++) {
		setup(NULL);
		(void)fill(TOPIC_USAGE);
		tick(7);	/* the mark was two seconds ago */
		for (int i = 0; i < 4; i++)
			kafka_share_put(&k, TOPIC_USAGE, 10);
		answer(TOPIC_USAGE, 1, 0);
		answer(TOPIC_USAGE, 1, SECOND);
		answer(TOPIC_USAGE, 1, 2 * SECOND);
		answer(TOPIC_USAGE, 1, -1);
		answer(TOPIC_USAGE, 49 - (unsigned)left, 7 * SECOND);
		tick(3);
		assert_int_equal(kafka_share_is_late(&k, TOPIC_USAGE), left);
	}
}

/* Whatever the latencies are: no more of them are late, or old, than are in flight, and as many may be. */
static void
what_is_not_in_flight_is_not_late(void **state)
{
	(void)state;
	(void)fill(TOPIC_USAGE);
	tick(5);
	answer(TOPIC_USAGE, 50, 0);
	kafka_share_put(&k, TOPIC_USAGE, 10);
	tick(5);
	assert_false(kafka_share_is_late(&k, TOPIC_USAGE));
	tick(5);
	assert_true(kafka_share_is_late(&k, TOPIC_USAGE));
	kafka_share_put(&k, TOPIC_USAGE, 10);
	answer(TOPIC_USAGE, 1, 0);
	kafka_share_delivered(&k, TOPIC_USAGE);
	assert_true(kafka_share_is_late(&k, TOPIC_USAGE));
	answer(TOPIC_USAGE, 1, 0);
	assert_false(kafka_share_is_late(&k, TOPIC_USAGE));
}

/* The others would wait for it anew after each recall. */
static void
a_topic_that_was_late_waits_alone_until_one_is_delivered(void **state)
{
	(void)state;
	(void)fill(TOPIC_USAGE);
	tick(10);
	assert_true(kafka_share_is_late(&k, TOPIC_USAGE));
	answer(TOPIC_USAGE, 50, 10 * SECOND);
	assert_int_equal(fill(TOPIC_USAGE), 50);
	assert_true(kafka_share_is_late(&k, TOPIC_USAGE));
	answer(TOPIC_USAGE, 1, SECOND);
	kafka_share_delivered(&k, TOPIC_USAGE);
	assert_false(kafka_share_is_late(&k, TOPIC_USAGE));
}

#define T(name) cmocka_unit_test_setup(name, setup)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_topic_leaves_as_much_room_as_it_takes),
		T(bytes_are_shared_like_messages),
		T(an_answer_gives_bytes_back_to_its_topic),
		T(a_busy_topic_is_not_late),
		T(a_topic_is_late_until_its_old_messages_are_answered),
		T(only_answers_of_late_messages_end_that),
		T(nor_do_others_become_late_at_the_next_mark),
		T(what_is_not_in_flight_is_not_late),
		T(a_topic_that_was_late_waits_alone_until_one_is_delivered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
