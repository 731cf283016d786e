/* SPDX-License-Identifier: Apache-2.0 */
/* demand: each answer, each threshold from both sides, and the same work beside others. No root, no kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "correlate/bill.h"
#include "correlate/demand.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define WALL (10 * S)

static const struct demand_limits host = {
	.host_memory_bytes = { 10 * GIB, true },
	.cpus = { 2, true },
};

/* Work of `threads` threads for 10 s, which used cpu_ms in all. */
static struct usage
work(unsigned threads, uint64_t cpu_ms)
{
	struct usage u = { .known = 0 };

	usage_set(&u, USAGE_THREAD_NS, threads * WALL);
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

static struct verdict
verdict_within(struct usage u, const struct demand_limits *limits)
{
	struct bill b = bill_of_threads(&u);

	return demand_decide(&u, &b, WALL, limits);
}

static struct verdict
verdict(struct usage u)
{
	return verdict_within(u, &host);
}

static enum demand
demand(struct usage u)
{
	return verdict(u).demand;
}

static void
each_kind_of_work(void **state)
{
	(void)state;
	assert_int_equal(demand(work(1, 6000)), DEMAND_COMPUTE);
	assert_int_equal(demand(with(work(1, 500), USAGE_WAIT_BLOCK_NS, 9 * S)), DEMAND_STORAGE);
	assert_int_equal(demand(with(work(1, 500), USAGE_BLOCK_IO_DELAY_NS, 9 * S)), DEMAND_STORAGE);
	assert_int_equal(demand(with(work(1, 500), USAGE_WAIT_NETWORK_FS_NS, 9 * S)), DEMAND_NETWORK_FS);
	assert_int_equal(demand(with(work(1, 500), USAGE_WAIT_NETWORK_NS, 9 * S)), DEMAND_NETWORK);
	assert_int_equal(demand(with(work(1, 5000), USAGE_WAIT_BLOCK_NS, 5 * S)), DEMAND_MIXED);
}

static void
the_share_that_decides(void **state)
{
	(void)state;
	assert_int_equal(demand(with(work(1, 4000), USAGE_WAIT_BLOCK_NS, 6 * S)), DEMAND_STORAGE);
	assert_int_equal(demand(with(work(1, 4010), USAGE_WAIT_BLOCK_NS, 5990 * MS)), DEMAND_MIXED);
	assert_int_equal(demand(with(work(1, 5990), USAGE_WAIT_PIPE_NS, 4010 * MS)), DEMAND_MIXED);
}

static void
what_it_waits_for(void **state)
{
	static const struct {
		enum usage_field field;
		const char *name;
	} waits[] = {
		{ USAGE_WAIT_PIPE_NS, "PIPE" }, { USAGE_WAIT_LOCK_NS, "LOCK" }, { USAGE_WAIT_CHILD_NS, "CHILD" },
		{ USAGE_WAIT_TIMER_NS, "TIMER" }, { USAGE_WAIT_POLL_NS, "POLL" }, { USAGE_WAIT_STOPPED_NS, "STOPPED" },
		{ USAGE_WAIT_OTHER_NS, "OTHER" },
	};
	struct usage shell;

	(void)state;
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		struct verdict v = verdict(with(work(1, 100), waits[i].field, 9 * S));

		assert_int_equal(v.demand, DEMAND_WAITING_FOR);
		assert_string_equal(v.waiting_for, waits[i].name);
	}
	/* A shell that waits for a child, which sleeps. */
	shell = with(with(work(2, 0), USAGE_WAIT_CHILD_NS, 10 * S), USAGE_WAIT_TIMER_NS, 9 * S);
	assert_string_equal(verdict(shell).waiting_for, "TIMER");
	assert_null(verdict(work(1, 9000)).waiting_for);
}

/* Idle threads of a pool, and a parent, take nothing from the work of another. */
static void
threads_that_wait_beside_work_do_not_count(void **state)
{
	struct usage pool = with(with(work(66, 9500), USAGE_WAIT_LOCK_NS, 640 * S), USAGE_WAIT_CHILD_NS, 9 * S);

	(void)state;
	assert_int_equal(demand(pool), DEMAND_COMPUTE);
	/* 16 threads, each 60 % of its time in a disk's queue, keep six CPUs busy. */
	assert_int_equal(demand(with(work(16, 60000), USAGE_BLOCK_IO_DELAY_NS, 96 * S)), DEMAND_STORAGE);
}

static void
neighbours_change_what_is_denied_not_the_demand(void **state)
{
	/* One thread, alone, beside as many burners as CPUs, and beside many more. */
	static const uint64_t cpu_ms[] = { 9900, 6000, 2000 };
	static const uint64_t storage_ms[] = { 9000, 8000, 5000 };

	(void)state;
	for (size_t i = 0; i < sizeof(cpu_ms) / sizeof(cpu_ms[0]); i++) {
		struct verdict v = verdict(with(work(1, cpu_ms[i]), USAGE_RUN_DELAY_NS, (9900 - cpu_ms[i]) * MS));

		assert_int_equal(v.demand, DEMAND_COMPUTE);
		assert_int_equal(v.denied, i == 0 ? DENIED_NOTHING : DENIED_RUN_QUEUE);
		v = verdict(with(with(work(1, 500), USAGE_WAIT_BLOCK_NS, storage_ms[i] * MS), USAGE_RUN_DELAY_NS,
		    (9000 - storage_ms[i]) * MS));
		assert_int_equal(v.demand, DEMAND_STORAGE);
		assert_int_equal(v.denied, i == 0 ? DENIED_NOTHING : DENIED_RUN_QUEUE);
	}
}

static void
its_own_threads_deny_it_nothing(void **state)
{
	struct demand_limits unknown = host;
	struct usage u = with(work(4, 20000), USAGE_RUN_DELAY_NS, 20 * S);

	(void)state;
	assert_int_equal(verdict(u).denied, DENIED_NOTHING);		/* four threads on two CPUs */
	assert_int_equal(verdict(with(work(4, 10000), USAGE_RUN_DELAY_NS, 30 * S)).denied, DENIED_RUN_QUEUE);
	unknown.cpus.known = false;
	assert_int_equal(verdict_within(u, &unknown).denied, DENIED_RUN_QUEUE);
}

static void
the_share_that_is_denied(void **state)
{
	struct verdict v = verdict(with(work(1, 9000), USAGE_RUN_DELAY_NS, S));

	(void)state;
	assert_int_equal(v.denied, DENIED_RUN_QUEUE);
	assert_float_equal(v.denied_share.value, 0.1, 1e-9);
	v = verdict(with(work(1, 9010), USAGE_RUN_DELAY_NS, 990 * MS));
	assert_int_equal(v.denied, DENIED_NOTHING);
	assert_float_equal(v.denied_share.value, 0.099, 1e-9);
	v = verdict(with(with(work(1, 2000), USAGE_RUN_DELAY_NS, 8 * S), USAGE_WAIT_THROTTLED_NS, 8 * S));
	assert_int_equal(v.denied, DENIED_THROTTLED);
	assert_int_equal(v.demand, DEMAND_COMPUTE);
	v = verdict(with(work(1, 4000), USAGE_WAIT_RECLAIM_NS, 6 * S));
	assert_int_equal(v.denied, DENIED_RECLAIM);
	assert_int_equal(v.demand, DEMAND_COMPUTE);	/* it was others' memory, or a limit far above its own */
}

static void
memory_is_its_own_where_it_is_full(void **state)
{
	struct demand_limits limits = { { 2 * GIB, true }, { 10 * GIB, true }, { 2, true } };
	struct usage seldom, swaps;

	(void)state;
	swaps = with(with(work(1, 4000), USAGE_WAIT_SWAP_NS, 5 * S), USAGE_PEAK_RSS_BYTES, 9 * GIB);
	assert_int_equal(verdict(swaps).demand, DEMAND_MEMORY);
	assert_int_equal(verdict(swaps).denied, DENIED_RECLAIM);
	assert_int_equal(verdict(with(swaps, USAGE_PEAK_RSS_BYTES, 9 * GIB - 1)).demand, DEMAND_COMPUTE);
	assert_int_equal(verdict_within(with(swaps, USAGE_PEAK_RSS_BYTES, 1900 * MIB), &limits).demand, DEMAND_MEMORY);
	seldom = with(with(work(1, 8000), USAGE_WAIT_SWAP_NS, S), USAGE_PEAK_RSS_BYTES, 9 * GIB);
	assert_int_equal(verdict(seldom).demand, DEMAND_COMPUTE);
	/* A heap near its limit is no wait: eight busy threads of a JVM compute. */
	assert_int_equal(verdict_within(with(work(8, 20000), USAGE_PEAK_RSS_BYTES, 2 * GIB), &limits).demand,
	    DEMAND_COMPUTE);
	/* It reads its own pages back: without delay accounting a wait for the disk. */
	swaps = with(with(with(work(1, 500), USAGE_WAIT_BLOCK_NS, 9 * S), USAGE_MAJOR_FAULTS, 1000),
	    USAGE_PEAK_RSS_BYTES, 2 * GIB);
	assert_int_equal(verdict_within(swaps, &limits).demand, DEMAND_MEMORY);
	assert_int_equal(verdict_within(with(swaps, USAGE_MAJOR_FAULTS, 999), &limits).demand, DEMAND_STORAGE);
	assert_int_equal(verdict(swaps).demand, DEMAND_STORAGE);	/* a cold index, with memory to spare */
}

/* Pages of files are no memory of the task's, but they fill its limit: read once, or evicted and read anew. */
static void
files_that_do_not_fit_are_a_lack_of_memory(void **state)
{
	struct demand_limits limits = { .memory_limit_bytes = { 2 * GIB, true },
		.host_memory_bytes = { 64 * GIB, true }, .cpus = { 2, true }, .peak_bytes = { GIB / 16, true } };
	struct usage u = with(with(with(work(1, 500), USAGE_WAIT_BLOCK_NS, 9 * S), USAGE_MAJOR_FAULTS, 5000),
	    USAGE_PEAK_RSS_BYTES, 2 * GIB);

	(void)state;
	assert_int_equal(verdict_within(with(u, USAGE_READ_BYTES, 2 * GIB), &limits).demand, DEMAND_STORAGE);
	u = with(u, USAGE_READ_BYTES, 9 * GIB);
	assert_int_equal(verdict_within(u, &limits).demand, DEMAND_STORAGE);	/* perhaps several files, one by one */
	u = with(u, USAGE_THRASHING_DELAY_NS, S);
	assert_int_equal(verdict_within(u, &limits).demand, DEMAND_MEMORY);
	assert_int_equal(verdict_within(u, &limits).denied, DENIED_RECLAIM);
}

/* Two containers of a run, each with a limit of 2 GiB. */
static void
a_limit_of_each_is_that_of_the_largest_program(void **state)
{
	struct demand_limits limits = { { 2 * GIB, true }, { 10 * GIB, true }, { 2, true }, { 3 * GIB, true } };
	struct usage swaps = with(with(work(1, 4000), USAGE_WAIT_SWAP_NS, 5 * S), USAGE_PEAK_RSS_BYTES, 3 * GIB / 2);

	(void)state;
	assert_int_equal(verdict_within(swaps, &limits).demand, DEMAND_MEMORY);
	limits.is_limit_of_each = true;
	assert_int_equal(verdict_within(swaps, &limits).demand, DEMAND_COMPUTE);
	limits.peak_bytes.value = 9 * GIB;		/* of the host's, which all of them share */
	assert_int_equal(verdict_within(swaps, &limits).demand, DEMAND_MEMORY);
}

/* Eight others read the same disk as much as it does: on an idle host it would wait for a ninth of the time. */
static void
a_disk_that_others_use_is_denied(void **state)
{
	struct demand_limits limits = host;
	struct usage u = with(work(1, 200), USAGE_BLOCK_IO_DELAY_NS, 9700 * MS), half;
	struct verdict v;

	(void)state;
	limits.others_io = (struct opt_double){ 8.0 / 9, true };
	v = verdict_within(u, &limits);
	assert_int_equal(v.demand, DEMAND_STORAGE);
	assert_int_equal(v.denied, DENIED_IO);
	assert_true(v.denied_share.value > 0.85 && v.denied_share.value < 0.88);
	limits.others_io.value = 0.05;
	assert_int_equal(verdict_within(u, &limits).denied, DENIED_NOTHING);
	/* Where some of its time is unknown, most of that is the disk's, too. */
	limits.others_io.value = 8.0 / 9;
	v = verdict_within(with(work(1, 200), USAGE_BLOCK_IO_DELAY_NS, 8200 * MS), &limits);
	assert_int_equal(v.demand, DEMAND_STORAGE);
	assert_int_equal(v.denied, DENIED_IO);
	/* Waits that are known stay. */
	u = with(with(work(1, 0), USAGE_BLOCK_IO_DELAY_NS, 3300 * MS), USAGE_WAIT_PIPE_NS, 3000 * MS);
	v = verdict_within(u, &limits);
	assert_int_equal(v.demand, DEMAND_WAITING_FOR);
	assert_string_equal(v.waiting_for, "PIPE");
	/* It computes for as long as the disk would take without the others. */
	half = with(work(1, 1000), USAGE_BLOCK_IO_DELAY_NS, 9000 * MS);
	assert_int_equal(verdict_within(half, &host).demand, DEMAND_STORAGE);
	limits.others_io.value = 8.0 / 9;
	assert_int_equal(verdict_within(half, &limits).demand, DEMAND_MIXED);
}

/* Work on 4 GiB where it may have 3 at a time: the kernel compresses and finds pages, 4 of 10 s. */
static void
what_swaps_computes_for_its_memory(void **state)
{
	struct demand_limits less = host;
	struct usage u = with(work(1, 8000), USAGE_MAJOR_FAULTS, 1000);
	struct verdict v;

	(void)state;
	less.peak_bytes = (struct opt_u64){ 4 * GIB, true };
	less.memory_limit_bytes = (struct opt_u64){ 3 * GIB, true };
	v = verdict_within(u, &less);
	assert_int_equal(v.demand, DEMAND_MEMORY);
	assert_int_equal(v.denied, DENIED_RECLAIM);
	assert_true(v.denied_share.value == 0.4);
	/* It has room, or reads hardly a page back. */
	less.memory_limit_bytes.value = 4 * GIB;
	assert_int_equal(verdict_within(u, &less).demand, DEMAND_COMPUTE);
	less.memory_limit_bytes.value = 3 * GIB;
	v = verdict_within(with(u, USAGE_MAJOR_FAULTS, 999), &less);
	assert_int_equal(v.demand, DEMAND_COMPUTE);
	assert_int_equal(v.denied, DENIED_NOTHING);
}

/* What the kernel counted of the task's own group is exact, also without delay accounting. */
static void
its_own_group_shows_what_was_denied(void **state)
{
	struct group_use group = { .throttled_ns = { 6 * S, true }, .memory_some_ns = { 4 * S, true } };
	struct demand_limits limits = host;
	struct usage u = with(work(1, 3000), USAGE_RUN_DELAY_NS, 7 * S);

	(void)state;
	assert_int_equal(verdict_within(u, &limits).denied, DENIED_RUN_QUEUE);
	limits.group = &group;
	assert_int_equal(verdict_within(u, &limits).denied, DENIED_THROTTLED);
	assert_true(verdict_within(u, &limits).denied_share.value == 0.7);
	/* Memory of files that are read once is taken back all the time. */
	u = work(1, 9000);
	assert_int_equal(verdict_within(u, &limits).denied, DENIED_NOTHING);
	limits.memory_high = (struct opt_u64){ GIB, true };
	assert_int_equal(verdict_within(u, &limits).denied, DENIED_RECLAIM);
	assert_int_equal(verdict_within(u, &limits).demand, DEMAND_MEMORY);
	/* Waits for files are none for memory, however long. */
	group.memory_some_ns.value = 8 * S;
	u = with(work(2, 9000), USAGE_WAIT_BLOCK_NS, 10 * S);
	assert_int_equal(verdict_within(u, &limits).denied, DENIED_RECLAIM);
}

/* Threads that took CPUs from one another for a while deny it nothing, whatever it did afterwards. */
static void
its_own_threads_are_counted_while_they_are_many(void **state)
{
	struct demand_limits limits = host;
	struct usage u = with(work(4, 10000), USAGE_RUN_DELAY_NS, 10 * S);

	(void)state;
	assert_int_equal(verdict_within(u, &limits).denied, DENIED_RUN_QUEUE);
	limits.own_queue_ns = (struct opt_u64){ 10 * S, true };
	assert_int_equal(verdict_within(u, &limits).denied, DENIED_NOTHING);
}

/* However long its threads waited, others took no more than what they had on the CPUs. */
static void
others_take_what_they_had(void **state)
{
	struct demand_limits limits = host;
	struct usage u = with(work(4, 10000), USAGE_RUN_DELAY_NS, 10 * S);

	(void)state;
	limits.others_cpu_ns = (struct opt_u64){ S, true };
	assert_int_equal(verdict_within(u, &limits).denied, DENIED_NOTHING);
	limits.others_cpu_ns.value = 8 * S;
	assert_int_equal(verdict_within(u, &limits).denied, DENIED_RUN_QUEUE);
	limits.others_cpu_ns.value = 80 * S;
	assert_true(verdict_within(u, &limits).denied_share.value == 0.5);
}

/* Over memory.high, the kernel takes pages back in the program's own time, 4 of 9 s of CPU. */
static void
a_delay_of_reclaim_is_mostly_cpu_time(void **state)
{
	struct demand_limits limits = host;
	struct usage u = with(work(1, 9000), USAGE_RECLAIM_DELAY_NS, 4 * S);
	struct verdict v;

	(void)state;
	assert_int_equal(verdict(u).denied, DENIED_NOTHING);	/* it reads files, and the kernel keeps what fits */
	limits.memory_high = (struct opt_u64){ GIB, true };
	v = verdict_within(u, &limits);
	assert_int_equal(v.demand, DEMAND_MEMORY);
	assert_int_equal(v.denied, DENIED_RECLAIM);
	assert_true(v.denied_share.value == 0.4);
	/* No more than its time in the kernel, and not what it slept for. */
	assert_true(verdict_within(with(u, USAGE_CPU_SYSTEM_NS, S), &limits).denied_share.value == 0.1);
	u = with(with(work(1, 6000), USAGE_RECLAIM_DELAY_NS, 4 * S), USAGE_WAIT_RECLAIM_NS, 4 * S);
	assert_true(verdict_within(u, &limits).denied_share.value == 0.4);
}

static void
unknown_time_is_guessed(void **state)
{
	struct usage u = with(work(1, 500), USAGE_READ_BYTES, 160 * MIB);
	struct verdict v = verdict(u);

	(void)state;
	assert_int_equal(v.demand, DEMAND_STORAGE);
	assert_true(v.confidence.value < 0.06);
	assert_int_equal(demand(with(work(1, 500), USAGE_READ_BYTES, 160 * MIB - 1)), DEMAND_NONE);
	/* A download to a file. */
	u = with(with(u, USAGE_WRITE_BYTES, 600 * MIB), USAGE_NET_RX_BYTES, 600 * MIB);
	assert_int_equal(demand(u), DEMAND_NETWORK);
	/* Rates decide about what is unknown alone. */
	assert_int_equal(demand(with(u, USAGE_WAIT_PIPE_NS, 9 * S)), DEMAND_WAITING_FOR);
	assert_int_equal(demand(with(work(1, 4000), USAGE_WAIT_TIMER_NS, 3100 * MS)), DEMAND_WAITING_FOR);
	assert_int_equal(demand(with(work(1, 4000), USAGE_WAIT_TIMER_NS, 2900 * MS)), DEMAND_NONE);
	assert_int_equal(demand(with(work(1, 0), USAGE_WAIT_TIMER_NS, 4990 * MS)), DEMAND_NONE);
	assert_int_equal(demand(with(work(1, 0), USAGE_WAIT_TIMER_NS, 5010 * MS)), DEMAND_WAITING_FOR);
}

static void
confidence_is_what_is_known_and_how_clear_it_is(void **state)
{
	(void)state;
	assert_float_equal(verdict(work(1, 10000)).confidence.value, 1, 1e-9);
	assert_float_equal(verdict(with(work(1, 6000), USAGE_WAIT_PIPE_NS, 4 * S)).confidence.value, 0.5, 1e-9);
	assert_float_equal(verdict(with(work(1, 8000), USAGE_WAIT_PIPE_NS, 2 * S)).confidence.value, 1, 1e-9);
	assert_float_equal(verdict(work(1, 8000)).confidence.value, 0.8, 1e-9);
}

static void
too_short_or_unknown_is_none(void **state)
{
	struct usage u = work(1, 9), unknown = work(1, 9000);
	struct bill b = bill_of_threads(&u);

	(void)state;
	assert_int_equal(demand_decide(&u, &b, 9 * MS, &host).demand, DEMAND_NONE);
	assert_int_equal(demand_decide(&u, &b, 10 * MS, &host).demand, DEMAND_COMPUTE);
	assert_int_equal(demand_decide(&u, &b, 9 * MS, &host).denied, DENIED_NONE);
	assert_false(demand_decide(&u, &b, 9 * MS, &host).confidence.known);
	unknown.known &= ~USAGE_BIT(USAGE_THREAD_NS);
	assert_int_equal(demand(unknown), DEMAND_NONE);
	/* It did nothing but wait for a CPU. */
	assert_int_equal(demand(with(work(1, 0), USAGE_RUN_DELAY_NS, 10 * S)), DEMAND_NONE);
	assert_int_equal(verdict(with(work(1, 0), USAGE_RUN_DELAY_NS, 10 * S)).denied, DENIED_RUN_QUEUE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_of_work),
		cmocka_unit_test(the_share_that_decides),
		cmocka_unit_test(what_it_waits_for),
		cmocka_unit_test(threads_that_wait_beside_work_do_not_count),
		cmocka_unit_test(neighbours_change_what_is_denied_not_the_demand),
		cmocka_unit_test(its_own_threads_deny_it_nothing),
		cmocka_unit_test(the_share_that_is_denied),
		cmocka_unit_test(memory_is_its_own_where_it_is_full),
		cmocka_unit_test(files_that_do_not_fit_are_a_lack_of_memory),
		cmocka_unit_test(a_limit_of_each_is_that_of_the_largest_program),
		cmocka_unit_test(a_disk_that_others_use_is_denied),
		cmocka_unit_test(what_swaps_computes_for_its_memory),
		cmocka_unit_test(its_own_group_shows_what_was_denied),
		cmocka_unit_test(its_own_threads_are_counted_while_they_are_many),
		cmocka_unit_test(others_take_what_they_had),
		cmocka_unit_test(a_delay_of_reclaim_is_mostly_cpu_time),
		cmocka_unit_test(unknown_time_is_guessed),
		cmocka_unit_test(confidence_is_what_is_known_and_how_clear_it_is),
		cmocka_unit_test(too_short_or_unknown_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
