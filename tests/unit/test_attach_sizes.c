/*
 * SPDX-License-Identifier: Apache-2.0
 * How many processes are followed, and how large the ring is, by CPUs and memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "attach/sizes.h"

#define MIB(n) ((uint64_t)(n) << 20)
#define GIB(n) ((uint64_t)(n) << 30)

static void
small_hosts_have_room_for_a_run_of_one_user(void **state)
{
	struct sizes s = sizes_of(2, GIB(4));

	(void)state;
	assert_in_range(s.max_processes, 32000, 32768);
	assert_int_equal(s.ring_bytes, MIB(4));
	s = sizes_of(32, GIB(64));
	assert_int_equal(s.max_processes, 2 * SIZES_PROCESSES);
	assert_int_equal(s.ring_bytes, MIB(4));
}

static void
large_hosts_have_more(void **state)
{
	struct sizes s = sizes_of(384, GIB(1536));

	(void)state;
	assert_int_equal(s.max_processes, 196608);
	assert_int_equal(s.ring_bytes, MIB(64));
	s = sizes_of(128, GIB(512));
	assert_int_equal(s.max_processes, 131072);
	assert_int_equal(s.ring_bytes, MIB(16));
}

/* With what each CPU needs besides (scratches), half of MemoryMax= in ops/systemd/sluice-agent.service. */
static void
the_largest_hosts_have_what_the_service_may_use(void **state)
{
	(void)state;
	for (unsigned cpus = 384; cpus <= 2048; cpus *= 2) {
		struct sizes s = sizes_of(cpus, GIB(65536));

		assert_int_equal(s.max_processes, 196608);
		assert_true((uint64_t)s.max_processes * SIZES_PROCESS_BYTES + s.ring_bytes < MIB(256));
	}
}

static void
both_stay_below_a_hundredth_of_the_memory(void **state)
{
	(void)state;
	for (unsigned cpus = 1; cpus <= 8192; cpus *= 2) {
		for (uint64_t memory = MIB(128); memory <= GIB(65536); memory *= 2) {
			struct sizes s = sizes_of(cpus, memory);

			assert_in_range(s.ring_bytes, 256 << 10, MIB(512));
			assert_int_equal(s.ring_bytes & (s.ring_bytes - 1), 0);
			assert_in_range(s.max_processes, 1024, 4194304);
			assert_true((uint64_t)s.max_processes * SIZES_PROCESS_BYTES + s.ring_bytes <= memory / 100);
		}
	}
}

static void
the_least_is_kept_where_the_memory_is_unknown(void **state)
{
	struct sizes s = sizes_of(4, 0);

	(void)state;
	assert_int_equal(s.max_processes, 1024);
	assert_int_equal(s.ring_bytes, 256 << 10);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_hosts_have_room_for_a_run_of_one_user),
		cmocka_unit_test(large_hosts_have_more),
		cmocka_unit_test(the_largest_hosts_have_what_the_service_may_use),
		cmocka_unit_test(both_stay_below_a_hundredth_of_the_memory),
		cmocka_unit_test(the_least_is_kept_where_the_memory_is_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
