/* SPDX-License-Identifier: Apache-2.0 */
/* bound: a verdict in one word, and the shares of time. No root, no kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "correlate/bound.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)
#define GIB (UINT64_C(1) << 30)

static const struct demand_limits host = {
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

static struct usage
with(struct usage u, enum usage_field field, uint64_t value)
{
	usage_set(&u, field, value);
	return u;
}

static void
a_verdict_in_one_word(void **state)
{
	static const enum bound words[DEMAND_KINDS] = { BOUND_NONE, BOUND_COMPUTE, BOUND_MEMORY, BOUND_IO, BOUND_IO,
		BOUND_NETWORK, BOUND_IDLE, BOUND_MIXED };
	struct verdict v = { .denied = DENIED_NOTHING, .denied_share = { 0.09, true } };

	(void)state;
	for (enum demand d = DEMAND_NONE; d < DEMAND_KINDS; d++) {
		v.demand = d;
		assert_int_equal(bound_of(&v), words[d]);
	}
}

static void
much_of_a_cpu_that_was_denied_is_starved(void **state)
{
	struct verdict v = { .demand = DEMAND_COMPUTE, .denied = DENIED_RUN_QUEUE, .denied_share = { 0.30, true } };

	(void)state;
	assert_int_equal(bound_of(&v), BOUND_STARVED);
	v.denied = DENIED_THROTTLED;
	assert_int_equal(bound_of(&v), BOUND_STARVED);
	v.denied = DENIED_RECLAIM;
	assert_int_equal(bound_of(&v), BOUND_COMPUTE);
	v.denied = DENIED_RUN_QUEUE;
	v.denied_share.value = 0.29;
	assert_int_equal(bound_of(&v), BOUND_COMPUTE);
}

static void
memory_is_a_share_of_the_smaller_limit(void **state)
{
	struct demand_limits limits = { { 2 * GIB, true }, { 10 * GIB, true } };
	struct usage u = with(work(1000), USAGE_PEAK_RSS_BYTES, 9 * GIB);

	(void)state;
	assert_true(bound_shares_of(&u, S, &limits).memory.value == 1.0);	/* it ends there */
	limits.memory_limit_bytes.value = 20 * GIB;
	assert_float_equal(bound_shares_of(&u, S, &limits).memory.value, 0.9, 1e-9);
	limits.memory_limit_bytes.known = limits.host_memory_bytes.known = false;
	assert_false(bound_shares_of(&u, S, &limits).memory.known);
}

static void
without_cpu_time_there_are_no_shares_but_memory(void **state)
{
	struct usage u = work(900);
	struct bound_shares s;

	(void)state;
	u.known &= ~USAGE_BIT(USAGE_CPU_SYSTEM_NS);
	s = bound_shares_of(&u, S, &host);
	assert_false(s.cpu.known || s.idle.known || s.run_delay.known);
	assert_true(s.memory.known);
}

static void
shares_add_up_to_one(void **state)
{
	struct usage u = with(with(work(400), USAGE_RUN_DELAY_NS, 100 * MS), USAGE_BLOCK_IO_DELAY_NS,
	    200 * MS);
	struct bound_shares s;

	(void)state;
	s = bound_shares_of(&u, S, &host);
	assert_true(s.cpu.value == 0.4 && s.run_delay.value == 0.1 && s.block_io.value == 0.2);
	assert_true(s.idle.known && s.idle.value > 0.299999 && s.idle.value < 0.300001);
	/* More wanted than the clock had: parts of what was wanted, nothing idle. */
	s = bound_shares_of(&u, 500 * MS, &host);
	assert_true(s.idle.value < 1e-9 && s.cpu.value > 0.571 && s.cpu.value < 0.572);
	/* What is unknown has no share and counts as idle. */
	u.known &= ~(USAGE_BIT(USAGE_BLOCK_IO_DELAY_NS) | USAGE_BIT(USAGE_RUN_DELAY_NS));
	s = bound_shares_of(&u, S, &host);
	assert_false(s.block_io.known || s.run_delay.known);
	assert_true(s.idle.value > 0.599999 && s.idle.value < 0.600001);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_verdict_in_one_word),
		cmocka_unit_test(much_of_a_cpu_that_was_denied_is_starved),
		cmocka_unit_test(memory_is_a_share_of_the_smaller_limit),
		cmocka_unit_test(without_cpu_time_there_are_no_shares_but_memory),
		cmocka_unit_test(shares_add_up_to_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
