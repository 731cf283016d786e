/* SPDX-License-Identifier: Apache-2.0 */
/* bill: the parts of threads' time, which add up to it whatever was counted. No root, no kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "correlate/bill.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)

/* A program of one thread that lived for 10 s, of which cpu_ms were on a CPU; each test adds what it is about. */
static struct usage
ten_seconds(uint64_t cpu_ms)
{
	struct usage u = { .known = 0 };

	usage_set(&u, USAGE_THREAD_NS, 10 * S);
	usage_set(&u, USAGE_CPU_USER_NS, cpu_ms * MS);
	usage_set(&u, USAGE_CPU_SYSTEM_NS, 0);
	return u;
}

static struct usage
with(struct usage u, enum usage_field field, uint64_t value)
{
	usage_set(&u, field, value);
	return u;
}

/* Returns the bill of u, once it has been seen to add up. */
static struct bill
bill(struct usage u)
{
	struct bill b = bill_of_threads(&u);
	uint64_t sum = 0;

	for (int i = 0; i < BILL_PARTS; i++) {
		assert_true(b.part[i].known);
		sum += b.part[i].value;
	}
	assert_int_equal(sum, u.value[USAGE_THREAD_NS]);
	return b;
}

static void
what_no_pass_saw_is_unknown(void **state)
{
	struct bill b = bill(ten_seconds(1000));

	(void)state;
	assert_int_equal(bill_ns(&b, BILL_CPU), S);
	assert_int_equal(bill_ns(&b, BILL_UNKNOWN), 9 * S);
}

static void
samples_are_their_parts(void **state)
{
	struct usage u = with(with(with(ten_seconds(1000), USAGE_WAIT_PIPE_NS, 5 * S), USAGE_WAIT_NETWORK_FS_NS, 2 * S),
	    USAGE_WAIT_RECLAIM_NS, S);
	struct bill b = bill(u);

	(void)state;
	assert_int_equal(bill_ns(&b, BILL_PIPE), 5 * S);
	assert_int_equal(bill_ns(&b, BILL_NETWORK_FS), 2 * S);
	assert_int_equal(bill_ns(&b, BILL_RECLAIM), S);
	assert_int_equal(bill_ns(&b, BILL_UNKNOWN), S);
}

/* A thread that is on a CPU half of the time, and asleep whenever a pass comes. */
static void
too_many_samples_are_reduced_in_proportion(void **state)
{
	struct bill b = bill(with(with(ten_seconds(5000), USAGE_WAIT_PIPE_NS, 6 * S), USAGE_WAIT_LOCK_NS, 4 * S));

	(void)state;
	assert_int_equal(bill_ns(&b, BILL_CPU), 5 * S);
	assert_int_equal(bill_ns(&b, BILL_PIPE), 3 * S);
	assert_int_equal(bill_ns(&b, BILL_LOCK), 2 * S);
	assert_int_equal(bill_ns(&b, BILL_UNKNOWN), 0);
}

static void
throttling_is_a_part_of_run_delay(void **state)
{
	struct usage u = with(ten_seconds(2000), USAGE_RUN_DELAY_NS, 8 * S);
	struct bill b = bill(with(u, USAGE_WAIT_THROTTLED_NS, 6 * S));

	(void)state;
	assert_int_equal(bill_ns(&b, BILL_THROTTLED), 6 * S);
	assert_int_equal(bill_ns(&b, BILL_RUN_QUEUE), 2 * S);
	b = bill(with(u, USAGE_WAIT_THROTTLED_NS, 10 * S));	/* each sample found it so */
	assert_int_equal(bill_ns(&b, BILL_THROTTLED), 8 * S);
	assert_int_equal(bill_ns(&b, BILL_RUN_QUEUE), 0);
}

static void
delays_beat_samples(void **state)
{
	struct usage u = with(with(ten_seconds(1000), USAGE_BLOCK_IO_DELAY_NS, 3 * S), USAGE_WAIT_BLOCK_NS, 5 * S);
	struct bill b = bill(u);

	(void)state;
	assert_int_equal(bill_ns(&b, BILL_BLOCK_IO), 3 * S);
	assert_int_equal(bill_ns(&b, BILL_UNKNOWN), 6 * S);
}

/* A sum of several programs lacks the delay of one that is no possible one; its samples are there. */
static void
delays_of_less_than_half_of_the_samples_are_not_whole(void **state)
{
	struct usage u = with(ten_seconds(1000), USAGE_BLOCK_IO_DELAY_NS, 2 * S);
	struct bill b = bill(with(u, USAGE_WAIT_BLOCK_NS, 8 * S));

	(void)state;
	assert_int_equal(bill_ns(&b, BILL_BLOCK_IO), 8 * S);
	assert_int_equal(bill_ns(&b, BILL_UNKNOWN), 1 * S);
	b = bill(with(u, USAGE_WAIT_BLOCK_NS, 5 * S));		/* of few samples one or two may be wrong by chance */
	assert_int_equal(bill_ns(&b, BILL_BLOCK_IO), 2 * S);
}

/* Since 5.18 block I/O includes what was read from swap. */
static void
swap_is_no_block_io(void **state)
{
	struct usage u = with(with(with(ten_seconds(1000), USAGE_BLOCK_IO_DELAY_NS, 5 * S),
	    USAGE_SWAPIN_DELAY_NS, 3 * S), USAGE_THRASHING_DELAY_NS, S);
	struct bill b = bill(u);

	(void)state;
	assert_int_equal(bill_ns(&b, BILL_SWAP), 4 * S);
	assert_int_equal(bill_ns(&b, BILL_BLOCK_IO), 5 * S);
	b = bill(with(u, USAGE_COMPACT_DELAY_NS, 0));
	assert_int_equal(bill_ns(&b, BILL_SWAP), 4 * S);
	assert_int_equal(bill_ns(&b, BILL_BLOCK_IO), S);
	b = bill(with(with(u, USAGE_COMPACT_DELAY_NS, 0), USAGE_SWAPIN_DELAY_NS, 6 * S));
	assert_int_equal(bill_ns(&b, BILL_SWAP), 7 * S);
	assert_int_equal(bill_ns(&b, BILL_BLOCK_IO), 0);
}

/* A wait for a page of NFS is block I/O to the kernel. */
static void
block_io_is_divided_as_the_samples_are(void **state)
{
	struct usage u = with(with(ten_seconds(1000), USAGE_BLOCK_IO_DELAY_NS, 6 * S), USAGE_WAIT_NETWORK_FS_NS, 6 * S);
	struct bill b = bill(u);

	(void)state;
	assert_int_equal(bill_ns(&b, BILL_BLOCK_IO), 0);
	assert_int_equal(bill_ns(&b, BILL_NETWORK_FS), 6 * S);
	b = bill(with(u, USAGE_WAIT_BLOCK_NS, 2 * S));
	assert_int_equal(bill_ns(&b, BILL_BLOCK_IO), 6 * S / 4);
	assert_int_equal(bill_ns(&b, BILL_NETWORK_FS), 6 * S);
}

static void
clocks_that_disagree_still_add_up(void **state)
{
	struct bill b = bill(with(with(ten_seconds(10001), USAGE_RUN_DELAY_NS, S), USAGE_WAIT_PIPE_NS, S));

	(void)state;
	assert_int_equal(bill_ns(&b, BILL_CPU), 10 * S);
	assert_int_equal(bill_ns(&b, BILL_RUN_QUEUE), 0);
	assert_int_equal(bill_ns(&b, BILL_PIPE), 0);
}

static void
without_the_whole_there_are_no_parts(void **state)
{
	static const enum usage_field needed[] = { USAGE_THREAD_NS, USAGE_CPU_USER_NS, USAGE_CPU_SYSTEM_NS };

	(void)state;
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		struct usage u = with(ten_seconds(1000), USAGE_WAIT_PIPE_NS, S);
		struct bill b;

		u.known &= ~USAGE_BIT(needed[i]);
		b = bill_of_threads(&u);
		for (int part = 0; part < BILL_PARTS; part++)
			assert_false(b.part[part].known);
	}
}

/* Whatever the numbers are: bill() checks the sum. */
static void
any_numbers_add_up(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		struct usage u = { .known = USAGE_ALL };

		for (int i = 0; i < USAGE_FIELDS; i++) {
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
			u.value[i] = seed >> (seed >> 58);
			if (round % 2 == 0 && seed >> 40 & 1)
				u.known &= ~USAGE_BIT(i);
		}
		u.known |= USAGE_BIT(USAGE_THREAD_NS) | USAGE_BIT(USAGE_CPU_USER_NS) | USAGE_BIT(USAGE_CPU_SYSTEM_NS);
		u.value[USAGE_CPU_USER_NS] >>= 1;
		u.value[USAGE_CPU_SYSTEM_NS] >>= 1;
		for (int i = USAGE_SWAPIN_DELAY_NS; i < USAGE_FIELDS; i++)
			u.value[i] >>= 8;	/* centuries */
		bill(u);
	}
}

/* Returns the bill of a task's own time, once it has been seen to add up. */
static struct bill
own(const struct own_bill *o, uint64_t wall_ns)
{
	struct bill b = own_bill_of(o, wall_ns);
	uint64_t sum = 0;

	for (int i = 0; i < BILL_PARTS; i++)
		sum += bill_ns(&b, i);
	assert_int_equal(sum, wall_ns);
	return b;
}

static const struct opt_double two = { 2, true };	/* CPUs */

static void
a_task_of_one_thread_has_its_bill(void **state)
{
	struct usage u = with(with(ten_seconds(1000), USAGE_RUN_DELAY_NS, S), USAGE_WAIT_PIPE_NS, 7 * S);
	struct bill threads = bill(u), b;
	struct own_bill o = { .until_ns = 0 };

	(void)state;
	own_bill_add(&o, &threads, 100 * S, 110 * S, two);
	b = own(&o, 10 * S);
	for (int i = 0; i < BILL_PARTS; i++)
		assert_int_equal(bill_ns(&b, i), bill_ns(&threads, i));
}

static void
work_comes_before_waits(void **state)
{
	struct usage u = with(with(with(ten_seconds(6000), USAGE_THREAD_NS, 60 * S), USAGE_WAIT_BLOCK_NS, 3 * S),
	    USAGE_WAIT_LOCK_NS, 40 * S);
	struct bill threads = bill(u), b;
	struct own_bill o = { .until_ns = 0 };

	(void)state;
	own_bill_add(&o, &threads, S, 11 * S, two);
	b = own(&o, 10 * S);
	assert_int_equal(bill_ns(&b, BILL_CPU), 6 * S);
	assert_int_equal(bill_ns(&b, BILL_BLOCK_IO), 3 * S);
	assert_int_equal(bill_ns(&b, BILL_LOCK), S);
	/* Two kinds of waits that are more than there was time are reduced in proportion. */
	threads = bill(with(with(u, USAGE_WAIT_BLOCK_NS, 6 * S), USAGE_WAIT_NETWORK_NS, 2 * S));
	o = (struct own_bill){ .until_ns = 0 };
	own_bill_add(&o, &threads, S, 11 * S, two);
	b = own(&o, 10 * S);
	assert_int_equal(bill_ns(&b, BILL_BLOCK_IO), 3 * S);
	assert_int_equal(bill_ns(&b, BILL_NETWORK), S);
	assert_int_equal(bill_ns(&b, BILL_LOCK), 0);
}

/* Five seconds of 16 busy threads, then five of sleep: a single division would have it busy all the time. */
static void
each_interval_is_divided_by_itself(void **state)
{
	struct usage u = with(ten_seconds(80000), USAGE_THREAD_NS, 80 * S);
	struct bill threads = bill(u), b;
	struct own_bill o = { .until_ns = 0 };

	(void)state;
	own_bill_add(&o, &threads, S, 6 * S, two);
	threads = bill(with(with(u, USAGE_THREAD_NS, 85 * S), USAGE_WAIT_TIMER_NS, 5 * S));
	own_bill_add(&o, &threads, S, 11 * S, two);
	b = own(&o, 10 * S);
	assert_int_equal(bill_ns(&b, BILL_CPU), 5 * S);
	assert_int_equal(bill_ns(&b, BILL_TIMER), 5 * S);
}

/* A program of 8 s of CPU time is lost, another one works as before: that is divided as it comes. */
static void
what_is_lost_is_not_waited_for(void **state)
{
	struct bill threads = bill(with(ten_seconds(9000), USAGE_THREAD_NS, 9 * S)), b;
	struct own_bill o = { .until_ns = 0 };

	(void)state;
	own_bill_add(&o, &threads, S, 10 * S, two);
	threads = bill(with(ten_seconds(1000), USAGE_THREAD_NS, S));
	own_bill_add(&o, &threads, S, 11 * S, two);
	threads = bill(with(ten_seconds(5000), USAGE_THREAD_NS, 5 * S));
	own_bill_add(&o, &threads, S, 15 * S, two);
	b = own(&o, 14 * S);
	assert_int_equal(bill_ns(&b, BILL_CPU), 13 * S);
	assert_int_equal(bill_ns(&b, BILL_UNKNOWN), S);
}

/*
 * Sixteen busy threads on two CPUs, then one: they took all but 2 s from one another. Over all the time, 10 s of which
 * one thread alone used half, it would be less.
 */
static void
threads_take_cpus_from_one_another(void **state)
{
	struct usage u = with(with(ten_seconds(10000), USAGE_THREAD_NS, 80 * S), USAGE_RUN_DELAY_NS, 70 * S);
	struct bill threads = bill(u);
	struct own_bill o = { .until_ns = 0 }, other;

	(void)state;
	own_bill_add(&o, &threads, S, 6 * S, two);
	assert_int_equal(o.queue_ns, 70 * S);
	u = with(with(with(u, USAGE_THREAD_NS, 85 * S), USAGE_CPU_USER_NS, 14 * S), USAGE_RUN_DELAY_NS, 71 * S);
	threads = bill(u);
	own_bill_add(&o, &threads, S, 11 * S, two);
	assert_int_equal(o.queue_ns, 70 * S);		/* one thread waits for others' */
	other = o;
	own_bill_merge(&o, &other, S);
	assert_int_equal(o.queue_ns, 140 * S);
	assert_int_equal(o.until_ns, 12 * S);
	/* A log of before has what its threads did, and no more. */
	own_bill_assume(&other, S, two);
	assert_int_equal(other.queue_ns, 65 * S);
	o = (struct own_bill){ .until_ns = 0 };
	own_bill_add(&o, &threads, S, 6 * S, (struct opt_double){ 0 });
	assert_int_equal(o.queue_ns, 0);
}

static void
a_child_counts_where_nothing_else_does(void **state)
{
	struct usage u = with(with(ten_seconds(0), USAGE_WAIT_CHILD_NS, 10 * S), USAGE_THREAD_NS, 20 * S);
	struct bill threads = bill(with(u, USAGE_WAIT_TIMER_NS, 4 * S)), b;
	struct own_bill o = { .until_ns = 0 };

	(void)state;
	own_bill_add(&o, &threads, S, 11 * S, two);
	b = own(&o, 10 * S);
	assert_int_equal(bill_ns(&b, BILL_TIMER), 4 * S);
	assert_int_equal(bill_ns(&b, BILL_CHILD), 6 * S);
}

static void
what_was_not_divided_is_unknown(void **state)
{
	struct bill threads = bill(ten_seconds(2000)), nothing = { 0 }, b;
	struct own_bill o = { .until_ns = 0 };

	(void)state;
	own_bill_add(&o, &nothing, S, 11 * S, two);
	assert_false(own_bill_of(&o, 10 * S).part[BILL_CPU].known);
	own_bill_add(&o, &threads, S, 11 * S, two);
	own_bill_add(&o, &threads, S, 11 * S, two);		/* no time since */
	b = own(&o, 12 * S);
	assert_int_equal(bill_ns(&b, BILL_CPU), 2 * S);
	assert_int_equal(bill_ns(&b, BILL_UNKNOWN), 10 * S);
	/* Its last program ended before the last record. */
	b = own(&o, 9 * S);
	assert_int_equal(bill_ns(&b, BILL_CPU), 2 * S);
	assert_int_equal(bill_ns(&b, BILL_UNKNOWN), 7 * S);
	own(&o, S);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_no_pass_saw_is_unknown),
		cmocka_unit_test(samples_are_their_parts),
		cmocka_unit_test(too_many_samples_are_reduced_in_proportion),
		cmocka_unit_test(throttling_is_a_part_of_run_delay),
		cmocka_unit_test(delays_beat_samples),
		cmocka_unit_test(delays_of_less_than_half_of_the_samples_are_not_whole),
		cmocka_unit_test(swap_is_no_block_io),
		cmocka_unit_test(block_io_is_divided_as_the_samples_are),
		cmocka_unit_test(clocks_that_disagree_still_add_up),
		cmocka_unit_test(without_the_whole_there_are_no_parts),
		cmocka_unit_test(any_numbers_add_up),
		cmocka_unit_test(a_task_of_one_thread_has_its_bill),
		cmocka_unit_test(work_comes_before_waits),
		cmocka_unit_test(each_interval_is_divided_by_itself),
		cmocka_unit_test(what_is_lost_is_not_waited_for),
		cmocka_unit_test(threads_take_cpus_from_one_another),
		cmocka_unit_test(a_child_counts_where_nothing_else_does),
		cmocka_unit_test(what_was_not_divided_is_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
