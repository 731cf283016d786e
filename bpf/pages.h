/*
 * SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
 * Counts the resident pages of a process's memory, on any number of CPUs.
 */
#ifndef SLUICE_PAGES_H
#define SLUICE_PAGES_H

#include "state.h"

/* Returns the value of a counter of one kind of page, never below 0. */
static __always_inline u64
pages(s64 count)
{
	return count > 0 ? count : 0;
}

/* The parts of an mm's counters that a CPU has not added yet, in the order of rss_stat. */
struct pages_part {
	s32 file;
	s32 anon;
	s32 swap;
	s32 shmem;
};

/* The sum over the CPUs of the parts that are not added yet. The addresses are those that hold for all CPUs. */
struct pages_sum {
	u64 files;
	u64 anons;
	u64 shmems;
	s64 file;
	s64 anon;
	s64 shmem;
	u64 is_one;	/* the counters are side by side, as from 6.6 on: one read for each CPU has them all */
};

/* An iterator over numbers, from 6.4. Unlike bpf_loop() it may be in programs that older kernels load. */
struct bpf_iter_num {
	u64 opaque;
};
extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __ksym __weak;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym __weak;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym __weak;

/* Adds what one CPU has not added yet. Returns false if it is unknown. */
static __always_inline bool
pages_of_cpu(struct pages_sum *sum, u32 cpu)
{
	u64 *offset = bpf_map_lookup_elem(&cpu_offsets, &cpu);
	struct pages_part part = {};
	long error;

	if (!offset || !*offset)
		return false;
	if (sum->is_one) {
		error = bpf_probe_read_kernel(&part, sizeof(part), (void *)(sum->files + *offset));
	} else {
		error = bpf_probe_read_kernel(&part.file, sizeof(part.file), (void *)(sum->files + *offset)) |
		    bpf_probe_read_kernel(&part.anon, sizeof(part.anon), (void *)(sum->anons + *offset)) |
		    bpf_probe_read_kernel(&part.shmem, sizeof(part.shmem), (void *)(sum->shmems + *offset));
	}
	if (error)
		return false;
	sum->file += part.file;
	sum->anon += part.anon;
	sum->shmem += part.shmem;
	return true;
}

/* Sums up what the CPUs have not added yet. Returns false if it is unknown of one. */
static __always_inline bool
pages_held_back(struct pages_sum *sum)
{
	struct bpf_iter_num it;
	bool is_known = true;
	int *cpu;

	sum->is_one = sum->anons - sum->files == __builtin_offsetof(struct pages_part, anon) &&
	    sum->shmems - sum->files == __builtin_offsetof(struct pages_part, shmem);
	if (!has_iter_num)
		return false;
	bpf_iter_num_new(&it, 0, ncpu);
	while ((cpu = bpf_iter_num_next(&it))) {
		if (!pages_of_cpu(sum, *cpu)) {
			is_known = false;
			break;
		}
	}
	bpf_iter_num_destroy(&it);
	return is_known;
}

/* Pages of an mm by kind, within 3 % from 6.2 on, where what the CPUs hold back is missing. */
struct pages_kinds {
	u64 file;
	u64 anon;
	u64 swap;
	u64 shmem;
};

static __always_inline void
pages_by_kind(struct mm_struct *mm, struct pages_kinds *ret)
{
	struct mm_struct___until_6_1 *old = (void *)mm;

	if (bpf_core_field_exists(old->rss_stat.count)) {
		ret->file = pages(BPF_CORE_READ(old, rss_stat.count[0].counter));
		ret->anon = pages(BPF_CORE_READ(old, rss_stat.count[1].counter));
		ret->swap = pages(BPF_CORE_READ(old, rss_stat.count[2].counter));
		ret->shmem = pages(BPF_CORE_READ(old, rss_stat.count[3].counter));
	} else {
		ret->file = pages(mm->rss_stat[0].count);
		ret->anon = pages(mm->rss_stat[1].count);
		ret->swap = pages(mm->rss_stat[2].count);
		ret->shmem = pages(mm->rss_stat[3].count);
	}
}

/*
 * Writes the resident pages of an mm to ret, as the kernel counts them for ru_maxrss (file + anon + shmem). From 6.2
 * on they are within 3 %, and with is_exact exact for processes so small that what the CPUs hold back matters. Returns
 * false if it is unknown.
 */
static __always_inline bool
pages_resident(struct mm_struct *mm, bool is_exact, u64 *ret)
{
	struct mm_struct___until_6_1 *old = (void *)mm;
	struct pages_sum sum = {};
	s64 file, anon, shmem;
	bool is_known = true;

	if (bpf_core_field_exists(old->rss_stat.count)) {
		*ret = pages(BPF_CORE_READ(old, rss_stat.count[0].counter)) +
		    pages(BPF_CORE_READ(old, rss_stat.count[1].counter)) +
		    pages(BPF_CORE_READ(old, rss_stat.count[3].counter));
		return true;
	}
	file = mm->rss_stat[0].count;
	anon = mm->rss_stat[1].count;
	shmem = mm->rss_stat[3].count;
	if (is_exact && pages(file) + pages(anon) + pages(shmem) < 33 * (u64)rss_slack) {
		sum.files = (u64)mm->rss_stat[0].counters;
		sum.anons = (u64)mm->rss_stat[1].counters;
		sum.shmems = (u64)mm->rss_stat[3].counters;
		is_known = pages_held_back(&sum);
	}
	*ret = pages(file + sum.file) + pages(anon + sum.anon) + pages(shmem + sum.shmem);
	return is_known;
}

#endif
