/* SPDX-License-Identifier: Apache-2.0 */
/* bound: each result, and each threshold from both sides. No root, no kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "correlate/bound.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static const struct bound_limits host = {
	.host_memory_bytes = { 10 * GIB, true },
};

/* A second's work of which cpu_ms were on a CPU; each test adds what it is about. */
static struct usage
work(uint64_t cpu_ms)
{
	struct usage u = { .known = 0 };

	usage_set(&u, USAGE_CPU_USER_NS, cpu_ms / 2 * MS);
	usage_set(&u, USAGE_CPU_SYSTEM_NS, (cpu_ms - cpu_ms / 2) * MS);
	usage_set(&u, USAGE_RUN_DELAY_NS, 0);
	usage_set(&u, USAGE_PEAK_RSS_BYTES, GIB);
	usage_set(&u, USAGE_MAJOR_FAULTS, 0);
	return u;
}

static enum bound
decide(struct usage u, uint64_t wall_ns)
{
	return bound_decide(&u, wall_ns, &host, NULL);
}

static struct usage
with(struct usage u, enum usage_field field, uint64_t value)
{
	usage_set(&u, field, value);
	return u;
}

static void
too_short_is_none(void **state)
{
	(void)state;
	assert_int_equal(decide(work(9), 9 * MS), BOUND_NONE);
	assert_int_equal(decide(work(9), 10 * MS), BOUND_COMPUTE);	/* long enough on the clock */
	assert_int_equal(decide(work(10), 9 * MS), BOUND_COMPUTE);	/* or on several CPUs */
	assert_int_equal(decide(work(0), 0), BOUND_NONE);
	assert_int_equal(decide(work(20), 0), BOUND_COMPUTE);
}

static void
unknown_cpu_is_none(void **state)
{
	struct usage u = work(900);
	struct bound_shares s;

	(void)state;
	u.known &= ~USAGE_BIT(USAGE_CPU_SYSTEM_NS);
	assert_int_equal(bound_decide(&u, S, &host, &s), BOUND_NONE);
	assert_false(s.cpu.known);
	assert_false(s.idle.known);
	assert_true(s.memory.known);
}

static void
waiting_for_a_cpu_is_starved(void **state)
{
	(void)state;
	assert_int_equal(decide(with(work(600), USAGE_RUN_DELAY_NS, 300 * MS), S), BOUND_STARVED);
	assert_int_equal(decide(with(work(600), USAGE_RUN_DELAY_NS, 299 * MS), S), BOUND_MIXED);
	/* Two threads on one CPU: half of what they wanted, though the CPU was always busy. */
	assert_int_equal(decide(with(work(1000), USAGE_RUN_DELAY_NS, 1000 * MS), S), BOUND_STARVED);
	/* It takes precedence over memory. */
	assert_int_equal(decide(with(with(work(600), USAGE_RUN_DELAY_NS, 300 * MS),
	    USAGE_PEAK_RSS_BYTES, 10 * GIB), S), BOUND_STARVED);
}

static void
a_full_memory_is_memory(void **state)
{
	struct bound_limits limits = { { 2 * GIB, true }, { 10 * GIB, true } };
	struct usage u = with(work(1000), USAGE_PEAK_RSS_BYTES, 9 * GIB);
	struct bound_shares s;

	(void)state;
	assert_int_equal(decide(u, S), BOUND_MEMORY);
	assert_int_equal(decide(with(u, USAGE_PEAK_RSS_BYTES, 9 * GIB - 1), S), BOUND_COMPUTE);
	/* The smaller of the limits counts, and a share ends at 1. */
	assert_int_equal(bound_decide(&u, S, &limits, &s), BOUND_MEMORY);
	assert_true(s.memory.value == 1.0);
	limits.memory_limit_bytes.value = 20 * GIB;
	bound_decide(&u, S, &limits, &s);
	assert_true(s.memory.value > 0.89 && s.memory.value < 0.91);
	/* No limit known, no share. */
	limits.memory_limit_bytes.known = limits.host_memory_bytes.known = false;
	assert_int_equal(bound_decide(&u, S, &limits, &s), BOUND_COMPUTE);
	assert_false(s.memory.known);
}

static void
page_faults_from_storage_are_memory(void **state)
{
	(void)state;
	assert_int_equal(decide(with(work(699), USAGE_MAJOR_FAULTS, 100), S), BOUND_MEMORY);
	assert_int_equal(decide(with(work(699), USAGE_MAJOR_FAULTS, 99), S), BOUND_MIXED);
	assert_int_equal(decide(with(work(700), USAGE_MAJOR_FAULTS, 5000), S), BOUND_COMPUTE);
	assert_int_equal(decide(with(work(699), USAGE_MAJOR_FAULTS, 199), 2 * S), BOUND_MIXED);
	/* 990 a second, but no more than a cold start has. */
	assert_int_equal(decide(with(work(40), USAGE_MAJOR_FAULTS, 99), 100 * MS), BOUND_MIXED);
}

static void
a_busy_cpu_is_compute(void **state)
{
	(void)state;
	assert_int_equal(decide(work(700), S), BOUND_COMPUTE);
	assert_int_equal(decide(work(699), S), BOUND_MIXED);
	assert_int_equal(decide(work(8000), S), BOUND_COMPUTE);	/* eight threads */
	/* Busy and reading fast at once is busy. */
	assert_int_equal(decide(with(work(700), USAGE_READ_BYTES, 500 * MIB), S), BOUND_COMPUTE);
}

static void
waiting_for_storage_is_io(void **state)
{
	(void)state;
	assert_int_equal(decide(with(work(100), USAGE_BLOCK_IO_DELAY_NS, 300 * MS), S), BOUND_IO);
	assert_int_equal(decide(with(work(100), USAGE_BLOCK_IO_DELAY_NS, 299 * MS), S), BOUND_MIXED);
	/* Without delay accounting, bytes and waiting have to do. */
	assert_int_equal(decide(with(work(500), USAGE_READ_BYTES, 16 * MIB), S), BOUND_IO);
	assert_int_equal(decide(with(work(500), USAGE_WRITE_BYTES, 16 * MIB), S), BOUND_IO);
	assert_int_equal(decide(with(work(500), USAGE_READ_BYTES, 16 * MIB - 1), S), BOUND_MIXED);
	assert_int_equal(decide(with(work(501), USAGE_READ_BYTES, 16 * MIB), S), BOUND_MIXED);
	assert_int_equal(decide(with(work(500), USAGE_READ_BYTES, 16 * MIB), 2 * S), BOUND_MIXED);
	/* Known to be no wait for storage, whatever the bytes. */
	assert_int_equal(decide(with(with(work(100), USAGE_READ_BYTES, 90 * MIB),
	    USAGE_BLOCK_IO_DELAY_NS, 0), S), BOUND_MIXED);
}

static void
waiting_for_sockets_is_network(void **state)
{
	(void)state;
	assert_int_equal(decide(with(work(500), USAGE_NET_RX_BYTES, MIB), S), BOUND_NETWORK);
	assert_int_equal(decide(with(work(0), USAGE_NET_TX_BYTES, MIB), S), BOUND_NETWORK);
	assert_int_equal(decide(with(work(500), USAGE_NET_RX_BYTES, MIB - 1), S), BOUND_MIXED);
	assert_int_equal(decide(with(work(501), USAGE_NET_RX_BYTES, MIB), S), BOUND_MIXED);
	/* A download that is also written: storage is asked first where block I/O is unknown. */
	assert_int_equal(decide(with(with(work(100), USAGE_NET_RX_BYTES, 9 * MIB), USAGE_WRITE_BYTES,
	    90 * MIB), S), BOUND_IO);
	assert_int_equal(decide(with(with(with(work(100), USAGE_NET_RX_BYTES, 9 * MIB),
	    USAGE_WRITE_BYTES, 90 * MIB), USAGE_BLOCK_IO_DELAY_NS, 10 * MS), S), BOUND_NETWORK);
}

static void
nothing_at_all_is_idle(void **state)
{
	(void)state;
	assert_int_equal(decide(work(49), S), BOUND_IDLE);
	assert_int_equal(decide(work(50), S), BOUND_MIXED);
	assert_int_equal(decide(work(0), S), BOUND_IDLE);
}

static void
shares_add_up_to_one(void **state)
{
	struct usage u = with(with(work(400), USAGE_RUN_DELAY_NS, 100 * MS), USAGE_BLOCK_IO_DELAY_NS,
	    200 * MS);
	struct bound_shares s;

	(void)state;
	bound_decide(&u, S, &host, &s);
	assert_true(s.cpu.value == 0.4 && s.run_delay.value == 0.1 && s.block_io.value == 0.2);
	assert_true(s.idle.known && s.idle.value > 0.299999 && s.idle.value < 0.300001);
	/* More wanted than the clock had: parts of what was wanted, nothing idle. */
	bound_decide(&u, 500 * MS, &host, &s);
	assert_true(s.idle.value < 1e-9 && s.cpu.value > 0.571 && s.cpu.value < 0.572);
	/* What is unknown has no share and counts as idle. */
	u.known &= ~(USAGE_BIT(USAGE_BLOCK_IO_DELAY_NS) | USAGE_BIT(USAGE_RUN_DELAY_NS));
	bound_decide(&u, S, &host, &s);
	assert_false(s.block_io.known || s.run_delay.known);
	assert_true(s.idle.value > 0.599999 && s.idle.value < 0.600001);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(too_short_is_none),
		cmocka_unit_test(unknown_cpu_is_none),
		cmocka_unit_test(waiting_for_a_cpu_is_starved),
		cmocka_unit_test(a_full_memory_is_memory),
		cmocka_unit_test(page_faults_from_storage_are_memory),
		cmocka_unit_test(a_busy_cpu_is_compute),
		cmocka_unit_test(waiting_for_storage_is_io),
		cmocka_unit_test(waiting_for_sockets_is_network),
		cmocka_unit_test(nothing_at_all_is_idle),
		cmocka_unit_test(shares_add_up_to_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
