/* SPDX-License-Identifier: Apache-2.0 */
/* spool_aside: a topic that is held back for a second time begins anew. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>

#include "faults.h"
#include "one_spool.h"

/* Puts records of two topics, of which one is not taken: it is set aside. */
static void
set_host_aside(void)
{
	for (int i = 0; i < 3; i++) {
		kit_put(&k, TOPIC_HOST);
		kit_put(&k, TOPIC_PROGRAM);
		kit_commit(&k);
	}
	spool_hold(k.spool, TOPIC_HOST);
	assert_int_equal(kit_drain(&k), 3);
	assert_true(k.spool->queues[SPOOL_MAIN].topics[TOPIC_HOST].is_aside);
	spool_release(k.spool, TOPIC_HOST);
}

/* Read with the others, it has no window of its own, which would be as large as theirs. */
static void
once_it_has_caught_up_its_memory_is_free(void **state)
{
	const struct spool_topic_state *host;

	(void)state;
	kit_open(&k);
	host = &k.spool->queues[SPOOL_MAIN].topics[TOPIC_HOST];
	set_host_aside();
	(void)kit_next(&k);
	assert_non_null(host->cursor.reader.data);
	kit_drain(&k);
	kit_expect_none(&k);
	assert_false(host->is_aside);
	assert_null(host->cursor.reader.data);
}

/* From now on the last segment cannot be read. */
static void
break_reads(void)
{
	struct spool_segment *seg = TAILQ_LAST(&k.spool->queues[SPOOL_MAIN].segments, spool_segments);
	int fd = open(k.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);	/* which read(2) refuses */

	assert_true(seg != NULL && seg->fd >= 0 && fd >= 0);
	assert_int_equal(dup3(fd, seg->fd, O_CLOEXEC), seg->fd);
	close(fd);
}

/* The segment in which its records could not be read is dropped because room ran out. */
static void
drop_what_cannot_be_read(void)
{
	set_host_aside();
	break_reads();
	kit_expect_none(&k);
	k.spool->max_bytes = 0;
	spool_make_room(k.spool, 0);
	k.spool->max_bytes = 1 << 30;
	assert_int_equal(kit_stats(&k).dropped[TOPIC_HOST][SPOOL_DROP_FULL], 3);
	assert_int_equal(kit_stats(&k).records, 0);
}

static void
a_failure_before_does_not_keep_it_from_being_read(void **state)
{
	(void)state;
	kit_open(&k);
	kit_tick(&k);
	drop_what_cannot_be_read();
	set_host_aside();
	assert_int_equal(kit_drain(&k), 3);
}

/* Ten seconds are waited for what cannot be read: those of the failure before are none of them. */
static void
nor_does_it_count_as_a_part_of_the_next(void **state)
{
	(void)state;
	kit_open(&k);
	kit_tick(&k);
	drop_what_cannot_be_read();
	for (int i = 0; i < 20; i++)
		kit_tick(&k);
	set_host_aside();
	break_reads();
	for (int i = 0; i < 9; i++) {
		kit_expect_none(&k);
		kit_tick(&k);
		assert_int_equal(kit_stats(&k).dropped[TOPIC_HOST][SPOOL_DROP_CORRUPT], 0);
	}
	for (int i = 0; i < 3; i++) {
		kit_tick(&k);
		kit_expect_none(&k);
	}
	assert_int_equal(kit_stats(&k).dropped[TOPIC_HOST][SPOOL_DROP_CORRUPT], 3);
}

static void
what_was_put_back_and_held_comes_after_the_main_queue(void **state)
{
	(void)state;
	kit_open(&k);
	kit_batch(&k, TOPIC_USAGE, 1);
	assert_int_equal(kit_next(&k).topic, TOPIC_USAGE);
	spool_unget(k.spool);
	spool_hold(k.spool, TOPIC_USAGE);
	kit_expect_none(&k);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	spool_release(k.spool, TOPIC_USAGE);
	assert_int_equal(kit_next(&k).topic, TOPIC_PROGRAM);
	assert_int_equal(kit_next(&k).topic, TOPIC_USAGE);
	/* Nor does it change the order that another one is held which was not put back. */
	kit_batch(&k, TOPIC_USAGE, 1);
	kit_batch(&k, TOPIC_PROGRAM, 1);
	spool_hold(k.spool, TOPIC_HOST);
	assert_int_equal(kit_next(&k).topic, TOPIC_PROGRAM);
	assert_int_equal(kit_next(&k).topic, TOPIC_USAGE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(once_it_has_caught_up_its_memory_is_free),
		T(a_failure_before_does_not_keep_it_from_being_read),
		T(nor_does_it_count_as_a_part_of_the_next),
		T(what_was_put_back_and_held_comes_after_the_main_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
