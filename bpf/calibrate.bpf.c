// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/* Programs that user space runs on demand (BPF_PROG_TEST_RUN) to learn values that nothing else gives it. */
#include "state.h"

struct cpu_memory_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
};
struct cpu_memory_map cpu_memory SEC(".maps");

u32 caller_tgid = 0;		/* the process that ran it, as the kernel and not its PID namespace counts */
s64 clock_sample = 0;		/* bpf_ktime_get_ns() minus this run queue's clock, at the last run */

SEC("raw_tp/calibrate_pid")
int calibrate_pid(void *ctx)
{
	caller_tgid = bpf_get_current_pid_tgid() >> 32;
	return 0;
}

/*
 * The run queue's clock lags by the time since its last update, so the smallest of many samples, each taken just
 * after a wakeup, is the clocks' true difference. It may be negative.
 */
SEC("raw_tp/calibrate_clock")
int calibrate_clock(void *ctx)
{
	struct task_struct *t = (void *)bpf_get_current_task();
	struct rq *rq;
	u64 clock;

	if (!bpf_core_field_exists(t->se.cfs_rq))
		return 0;
	rq = BPF_CORE_READ(t, se.cfs_rq, rq);
	clock = BPF_CORE_READ(rq, clock);	/* first: an update in between must not make the sample too small */
	clock_sample = bpf_ktime_get_ns() - clock;
	return 0;
}

/* The address of a CPU's copy of a map's value, minus the address that the map holds for all CPUs. */
static long
on_cpu(u32 cpu, u64 *base)
{
	u64 *offset = bpf_map_lookup_elem(&cpu_offsets, &cpu);
	u64 *value;
	u32 zero = 0;

	value = bpf_map_lookup_percpu_elem(&cpu_memory, &zero, cpu);
	if (!value || !offset)
		return 1;
	*(volatile u64 *)offset = (u64)value;	/* storing it in memory turns the pointer into a number */
	*offset = *(volatile u64 *)offset - *base;
	return 0;
}

/*
 * Computes where the memory of each possible CPU is, of those too that are not online. Works without kallsyms. Only
 * needed from 6.2 on, see pages.h.
 */
SEC("raw_tp/calibrate_cpus")
int calibrate_cpus(void *ctx)
{
	u32 zero = 0;
	struct bpf_array *map;
	u64 *value, base = 0;

	value = bpf_map_lookup_elem(&cpu_offsets, &zero);
	if (!value)
		return 0;
	*(volatile u64 *)value = (u64)&cpu_memory;
	map = (void *)*(volatile u64 *)value;
	*value = 0;
	bpf_core_read(&base, sizeof(base), &map->pptrs[0]);
	bpf_loop(ncpu, on_cpu, &base, 0);
	return 0;
}
