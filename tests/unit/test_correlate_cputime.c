/* SPDX-License-Identifier: Apache-2.0 */
/* cputime: the kernel's split of CPU time, and a program's part of its process's totals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "correlate/cputime.h"

static struct counters
times(uint64_t runtime, uint64_t utime, uint64_t stime, uint64_t prev_utime, uint64_t prev_stime)
{
	return (struct counters){ .runtime_ns = runtime, .utime = utime, .stime = stime,
		.prev_utime = prev_utime, .prev_stime = prev_stime, .is_complete = true };
}

static void
assert_split(struct counters c, uint64_t user, uint64_t system)
{
	struct cputime got = cputime_split(&c);

	assert_int_equal(got.user_ns, user);
	assert_int_equal(got.system_ns, system);
}

static void
the_split_is_by_ticks_and_its_sum_exact(void **state)
{
	(void)state;
	assert_split(times(1000, 0, 0, 0, 0), 1000, 0);	/* no tick at all: user */
	assert_split(times(1000, 5, 0, 0, 0), 1000, 0);
	assert_split(times(1000, 0, 5, 0, 0), 0, 1000);
	assert_split(times(1000, 4, 4, 0, 0), 500, 500);
	assert_split(times(10000000, 8000000, 4000000, 0, 0), 6666667, 3333333);	/* down, as the kernel */
	assert_split(times(0, 0, 0, 0, 0), 0, 0);
	assert_split(times(0, 4, 4, 0, 0), 0, 0);
}

static void
the_split_never_goes_back(void **state)
{
	(void)state;
	/* the values reported before already cover everything */
	assert_split(times(1000, 1, 1, 600, 400), 600, 400);
	assert_split(times(900, 1, 1, 600, 400), 600, 400);
	/* a higher system part was reported before */
	assert_split(times(1000, 900, 100, 100, 300), 700, 300);
	/* a higher user part was reported before: the system part gets the rest */
	assert_split(times(1000, 100, 900, 300, 100), 300, 700);
	assert_split(times(1000, 0, 5, 999, 0), 999, 1);
	/* neither */
	assert_split(times(1000, 500, 500, 300, 300), 500, 500);
}

static void
large_times_do_not_overflow(void **state)
{
	uint64_t year = UINT64_C(31536000) * 1000000000, half = UINT64_C(1) << 63;

	(void)state;
	/* 500 CPUs for a year, a third of it system: the product needs 128 bits */
	assert_split(times(500 * year, 200 * year, 100 * year, 0, 0),
	    500 * year - (uint64_t)((unsigned __int128)500 * year / 3),
	    (uint64_t)((unsigned __int128)500 * year / 3));
	/* sums that wrap around: no division by zero, nothing above the runtime */
	assert_split(times(1000, half, half, 0, 0), 500, 500);
	assert_split(times(1000, UINT64_MAX, UINT64_MAX, 0, 0), 500, 500);
	assert_split(times(UINT64_MAX, UINT64_MAX, UINT64_MAX, 0, 0), half, half - 1);
	assert_split(times(1000, 1, 1, UINT64_MAX, 2), UINT64_MAX, 2);
}

static void
a_reaped_process_keeps_the_split_that_its_parent_received(void **state)
{
	struct counters c = times(10000000, 1, 9, 6000000, 3500000);

	(void)state;
	assert_split(c, 6000000, 4000000);	/* ticks: no less user time than was reported */
	c = times(10000000, 9, 1, 6000000, 3500000);
	assert_split(c, 6500000, 3500000);
	c.is_reaped = true;			/* half a millisecond came after wait(2): the kernel's */
	assert_split(c, 6000000, 4000000);
	c.prev_stime = 2500000;			/* too much for a tail: the end was not reported */
	assert_split(c, 7500000, 2500000);
}

static struct counters
numbers(uint64_t from)
{
	return (struct counters){ .runtime_ns = 4 * from, .utime = 3, .stime = 1,
		.voluntary_switches = from + 1, .involuntary_switches = from + 2,
		.minor_faults = from + 3, .major_faults = from + 4, .rchar = from + 5,
		.wchar = from + 6, .syscr = from + 7, .syscw = from + 8, .read_bytes = from + 9,
		.write_bytes = from + 10, .run_delay_ns = from + 11, .block_io_delay_ns = from + 12,
		.peak_rss_bytes = from + 13, .rss_bytes = from + 14, .tcp_rx_bytes = from + 15,
		.tcp_tx_bytes = from + 16, .udp_rx_bytes = from + 17, .udp_tx_bytes = from + 18,
		.other_rx_bytes = from + 19, .other_tx_bytes = from + 20, .unix_rx_bytes = from + 21,
		.unix_tx_bytes = from + 22, .cpu_migrations = from + 23,
		.thread_ns = from + 24, .swapin_delay_ns = from + 25, .reclaim_delay_ns = from + 26,
		.thrashing_delay_ns = from + 27, .compact_delay_ns = from + 28,
		.wait_samples = from + 29, .wait_uninterruptible_ns = from + 30,
		.wait_stopped_ns = from + 31, .wait_network_fs_ns = from + 32,
		.wait_swap_ns = from + 33, .wait_reclaim_ns = from + 34, .wait_block_ns = from + 35,
		.wait_network_ns = from + 36, .wait_pipe_ns = from + 37, .wait_lock_ns = from + 38,
		.wait_child_ns = from + 39, .wait_timer_ns = from + 40, .wait_poll_ns = from + 41,
		.wait_other_ns = from + 42, .wait_throttled_ns = from + 43, .anon_bytes = from + 44,
		.shmem_bytes = from + 45, .swap_bytes = from + 46, .threads = 2,
		.threads_peak = 5,
		.has_peak = true, .has_block_io = true, .has_thrashing = true, .has_compact = true,
		.is_complete = true };
}

static void
assert_field(const struct usage *u, enum usage_field field, uint64_t value)
{
	assert_true(usage_has(u, field));
	assert_int_equal(u->value[field], value);
}

static void
the_first_program_has_all_the_totals(void **state)
{
	const struct usage_base nothing = { 0 };
	struct counters now = numbers(100);
	struct usage u = usage_of_program(&nothing, &now, true);

	(void)state;
	assert_field(&u, USAGE_CPU_USER_NS, 300);
	assert_field(&u, USAGE_CPU_SYSTEM_NS, 100);
	assert_field(&u, USAGE_VOLUNTARY_SWITCHES, 101);
	assert_field(&u, USAGE_INVOLUNTARY_SWITCHES, 102);
	assert_field(&u, USAGE_MINOR_FAULTS, 103);
	assert_field(&u, USAGE_MAJOR_FAULTS, 104);
	assert_field(&u, USAGE_RCHAR, 105);
	assert_field(&u, USAGE_WCHAR, 106);
	assert_field(&u, USAGE_SYSCR, 107);
	assert_field(&u, USAGE_SYSCW, 108);
	assert_field(&u, USAGE_READ_BYTES, 109);
	assert_field(&u, USAGE_WRITE_BYTES, 110);
	assert_field(&u, USAGE_RUN_DELAY_NS, 111);
	assert_field(&u, USAGE_BLOCK_IO_DELAY_NS, 112);
	assert_field(&u, USAGE_PEAK_RSS_BYTES, 113);
	assert_field(&u, USAGE_RSS_BYTES, 114);
	assert_field(&u, USAGE_THREADS_PEAK, 5);
	assert_field(&u, USAGE_TCP_RX_BYTES, 115);
	assert_field(&u, USAGE_TCP_TX_BYTES, 116);
	assert_field(&u, USAGE_UDP_RX_BYTES, 117);
	assert_field(&u, USAGE_UDP_TX_BYTES, 118);
	assert_field(&u, USAGE_NET_RX_BYTES, 115 + 117 + 119);
	assert_field(&u, USAGE_NET_TX_BYTES, 116 + 118 + 120);
	assert_field(&u, USAGE_UNIX_RX_BYTES, 121);
	assert_field(&u, USAGE_UNIX_TX_BYTES, 122);
	assert_field(&u, USAGE_CPU_MIGRATIONS, 123);
	assert_field(&u, USAGE_THREAD_NS, 124);
	assert_field(&u, USAGE_SWAPIN_DELAY_NS, 125);
	assert_field(&u, USAGE_RECLAIM_DELAY_NS, 126);
	assert_field(&u, USAGE_THRASHING_DELAY_NS, 127);
	assert_field(&u, USAGE_COMPACT_DELAY_NS, 128);
	assert_field(&u, USAGE_WAIT_SAMPLES, 129);
	assert_field(&u, USAGE_WAIT_UNINTERRUPTIBLE_NS, 130);
	assert_field(&u, USAGE_WAIT_STOPPED_NS, 131);
	assert_field(&u, USAGE_WAIT_NETWORK_FS_NS, 132);
	assert_field(&u, USAGE_WAIT_SWAP_NS, 133);
	assert_field(&u, USAGE_WAIT_RECLAIM_NS, 134);
	assert_field(&u, USAGE_WAIT_BLOCK_NS, 135);
	assert_field(&u, USAGE_WAIT_NETWORK_NS, 136);
	assert_field(&u, USAGE_WAIT_PIPE_NS, 137);
	assert_field(&u, USAGE_WAIT_LOCK_NS, 138);
	assert_field(&u, USAGE_WAIT_CHILD_NS, 139);
	assert_field(&u, USAGE_WAIT_TIMER_NS, 140);
	assert_field(&u, USAGE_WAIT_POLL_NS, 141);
	assert_field(&u, USAGE_WAIT_OTHER_NS, 142);
	assert_field(&u, USAGE_WAIT_THROTTLED_NS, 143);
	assert_int_equal(u.known, USAGE_ALL);
}

static void
the_next_program_has_what_came_after_it_began(void **state)
{
	struct usage_base base = { 0 };
	struct counters then = numbers(100), now = numbers(1000);
	struct usage u;

	(void)state;
	usage_base_set(&base, &then);
	u = usage_of_program(&base, &now, true);
	for (int i = 0; i < USAGE_FIELDS; i++) {
		switch (i) {
		case USAGE_CPU_USER_NS:
			assert_field(&u, i, 2700);
			break;
		case USAGE_PEAK_RSS_BYTES:
			assert_field(&u, i, 1013);
			break;
		case USAGE_RSS_BYTES:
			assert_field(&u, i, 1014);
			break;
		case USAGE_ANON_BYTES:
		case USAGE_SHMEM_BYTES:
		case USAGE_SWAP_BYTES:
			assert_field(&u, i, 1044 + (uint64_t)(i - USAGE_ANON_BYTES));
			break;
		case USAGE_THREADS_PEAK:
			assert_field(&u, i, 5);
			break;
		case USAGE_NET_RX_BYTES:
		case USAGE_NET_TX_BYTES:
			assert_field(&u, i, 2700);
			break;
		default:
			assert_field(&u, i, 900);
		}
	}
}

static void
counters_that_run_backwards_are_zero(void **state)
{
	struct usage_base base = { 0 };
	struct counters then = numbers(1000), now = numbers(100);
	struct usage u;

	(void)state;
	usage_base_set(&base, &then);
	u = usage_of_program(&base, &now, true);
	for (int i = 0; i < USAGE_FIELDS; i++)
		if (i != USAGE_PEAK_RSS_BYTES && i != USAGE_RSS_BYTES && i != USAGE_THREADS_PEAK &&
		    i != USAGE_ANON_BYTES && i != USAGE_SHMEM_BYTES && i != USAGE_SWAP_BYTES)
			assert_field(&u, i, 0);
}

/* For any ticks, the programs of a process add up to the process, and none is negative. */
static void
the_programs_of_a_process_add_up(void **state)
{
	const struct counters ends[] = {
		times(1000000, 4, 0, 0, 0),		/* all user */
		times(1500000, 4, 8, 0, 0),		/* now the ticks call most of it system */
		times(1600000, 400, 8, 0, 0),
		times(9000000, 400, 400, 0, 0),
	};
	struct usage_base base = { 0 };
	uint64_t user = 0, system = 0;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct usage u = usage_of_program(&base, &ends[i], false);
		uint64_t before = i > 0 ? ends[i - 1].runtime_ns : 0;

		assert_int_equal(usage_cpu_ns(&u), ends[i].runtime_ns - before);
		user += u.value[USAGE_CPU_USER_NS];
		system += u.value[USAGE_CPU_SYSTEM_NS];
		usage_base_set(&base, &ends[i]);
	}
	assert_int_equal(user + system, 9000000);
	assert_int_equal(user, cputime_split(&ends[3]).user_ns);	/* made up for in the end */
}

static void
what_was_not_counted_is_not_known(void **state)
{
	const struct usage_base nothing = { 0 };
	struct counters now = numbers(100);
	struct usage u = usage_of_program(&nothing, &now, false);

	(void)state;
	assert_true(usage_has(&u, USAGE_RCHAR));
	for (int i = USAGE_TCP_RX_BYTES; i <= USAGE_UNIX_TX_BYTES; i++)
		assert_false(usage_has(&u, i));
	assert_false(usage_has(&u, USAGE_NET_RX_BYTES));
	assert_false(usage_has(&u, USAGE_NET_TX_BYTES));

	now.has_peak = now.has_block_io = false;
	u = usage_of_program(&nothing, &now, true);
	assert_false(usage_has(&u, USAGE_PEAK_RSS_BYTES));
	assert_false(usage_has(&u, USAGE_RSS_BYTES));
	assert_false(usage_has(&u, USAGE_BLOCK_IO_DELAY_NS));
	assert_false(usage_has(&u, USAGE_SWAPIN_DELAY_NS));
	assert_false(usage_has(&u, USAGE_RECLAIM_DELAY_NS));
	assert_false(usage_has(&u, USAGE_THRASHING_DELAY_NS));	/* whatever the kernel could count */
	assert_false(usage_has(&u, USAGE_COMPACT_DELAY_NS));
	assert_true(usage_has(&u, USAGE_THREAD_NS));
	assert_true(usage_has(&u, USAGE_RUN_DELAY_NS));

	now = numbers(100);
	now.has_odd_block_io = true;	/* the other delays are right */
	u = usage_of_program(&nothing, &now, true);
	assert_int_equal(u.known, USAGE_ALL & ~USAGE_BIT(USAGE_BLOCK_IO_DELAY_NS));

	now = numbers(100);
	now.has_thrashing = now.has_compact = false;	/* an older kernel */
	u = usage_of_program(&nothing, &now, true);
	assert_int_equal(u.known,
	    USAGE_ALL & ~(USAGE_BIT(USAGE_THRASHING_DELAY_NS) | USAGE_BIT(USAGE_COMPACT_DELAY_NS)));

	now = numbers(100);
	now.rss_bytes = 0;		/* no hook saw the memory: the peak is the kernel's own number */
	u = usage_of_program(&nothing, &now, true);
	assert_field(&u, USAGE_PEAK_RSS_BYTES, 113);
	assert_false(usage_has(&u, USAGE_RSS_BYTES));

	now = numbers(100);
	now.is_complete = false;	/* some threads are missing in the sums, but not here: */
	u = usage_of_program(&nothing, &now, true);
	assert_int_equal(u.known, USAGE_BIT(USAGE_PEAK_RSS_BYTES) | USAGE_BIT(USAGE_RSS_BYTES) |
	    USAGE_BIT(USAGE_ANON_BYTES) | USAGE_BIT(USAGE_SHMEM_BYTES) | USAGE_BIT(USAGE_SWAP_BYTES) |
	    USAGE_BIT(USAGE_THREADS_PEAK) | USAGE_BIT(USAGE_NET_RX_BYTES) |
	    USAGE_BIT(USAGE_NET_TX_BYTES) | USAGE_BIT(USAGE_TCP_RX_BYTES) |
	    USAGE_BIT(USAGE_TCP_TX_BYTES) | USAGE_BIT(USAGE_UDP_RX_BYTES) |
	    USAGE_BIT(USAGE_UDP_TX_BYTES) | USAGE_BIT(USAGE_UNIX_RX_BYTES) |
	    USAGE_BIT(USAGE_UNIX_TX_BYTES));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_split_is_by_ticks_and_its_sum_exact),
		cmocka_unit_test(the_split_never_goes_back),
		cmocka_unit_test(large_times_do_not_overflow),
		cmocka_unit_test(a_reaped_process_keeps_the_split_that_its_parent_received),
		cmocka_unit_test(the_first_program_has_all_the_totals),
		cmocka_unit_test(the_next_program_has_what_came_after_it_began),
		cmocka_unit_test(counters_that_run_backwards_are_zero),
		cmocka_unit_test(the_programs_of_a_process_add_up),
		cmocka_unit_test(what_was_not_counted_is_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
