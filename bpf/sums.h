/*
 * SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
 * The counters of a process that runs: those of all its threads, and of those that it had.
 */
#ifndef SLUICE_SUMS_H
#define SLUICE_SUMS_H

#include "pass.h"

/* Threads that are walked for one process; more set EVENT_THREADS_CUT. */
#define THREADS_MAX 65536
#define THREADS_MAX_UNTIL_5_16 512

/*
 * Adds one of several threads, reached by list: an untyped address, read through helpers. It is a separate
 * function, so that the verifier checks it once and not in each iteration of the walk.
 */
__noinline int
add_thread(u64 task)
{
	struct task_struct *t = (void *)task;
	struct task_delay_info *d;
	struct event_counters *c;
	struct event_state *e;
	u32 zero = 0;
	u64 life_ns;

	e = bpf_map_lookup_elem(&snapshot_state, &zero);
	if (!e)
		return 1;
	c = &e->counters;
#define COUNTER_SIGNAL(name, thread, gone) c->name += BPF_CORE_READ(t, thread);
#include "resources.h"
	if (BPF_CORE_READ(t, flags) & PF_EXITING && BPF_CORE_READ(t, pid) != BPF_CORE_READ(t, tgid))
		return 0;	/* on_exit has added the rest, or will */
	life_ns = life_of(BPF_CORE_READ(t, start_boottime), e->end_ns);
#define COUNTER_TASK(name, thread) c->name += BPF_CORE_READ(t, thread);
#define COUNTER_LIFE(name) c->name += life_ns;
#include "resources.h"
	d = BPF_CORE_READ(t, delays);
	if (d) {
#define COUNTER_DELAY(name, thread) c->name += bpf_core_field_exists(d->thread) ? BPF_CORE_READ(d, thread) : 0;
#include "resources.h"
		e->flags |= delay_flags() | odd_delay_flag(BPF_CORE_READ(d, blkio_delay), life_ns);
	}
	return 0;
}

/* The walk from one thread to the next; addresses are numbers. */
struct walk {
	u64 head;
	u64 node;
	u64 is_done;
};

static __always_inline bool
walk_step(struct walk *w)
{
	struct list_head *node = (void *)w->node;	/* a local variable: CO-RE would relocate our own struct */

	if (!node || (u64)node == w->head) {
		w->is_done = 1;
		return false;
	}
	add_thread((u64)node - bpf_core_field_offset(struct task_struct, thread_node));
	w->node = (u64)BPF_CORE_READ(node, next);
	return true;
}

static long
on_thread(u32 index, void *ctx)
{
	return walk_step(ctx) ? 0 : 1;
}

/* Walks the threads before 5.17, where there is no bpf_loop(). */
__noinline int
add_threads_until_5_16(u64 head)
{
	struct walk w = { .head = head };

	w.node = (u64)BPF_CORE_READ((struct list_head *)head, next);
	for (int i = 0; i < THREADS_MAX_UNTIL_5_16 && walk_step(&w); i++)
		;
	return !w.is_done;
}

static __always_inline void
add_only_thread(struct event_state *e, const struct task *k)
{
	struct task_delay_info *delays;
	u32 flags = 0;

	READ_POINTER(delays, k->untrusted->delays);
	counters_add_thread(&e->counters, k->t);
	counters_add_own(&e->counters, k->t, delays, e->end_ns, &flags);
	e->flags |= flags;
}

/*
 * A thread that is released, also the last one, leaves its counters to signal_struct, and is removed from the list
 * then: a pass that reads both meanwhile has them twice, or not at all. The kernel has a sequence lock for its own
 * readers. Its number is odd while a thread is being released, and another one afterwards.
 */
static __always_inline u32
sums_sequence_now(const struct task *k)
{
	const struct signal_struct___until_5_9 *old = (const void *)k->signal;

	if (bpf_core_field_exists(k->signal->stats_lock.seqcount.seqcount.sequence))
		return READ_NOW(k->signal->stats_lock.seqcount.seqcount.sequence);
	return READ_NOW(old->stats_lock.seqcount.sequence);
}

static __always_inline u32
sums_sequence(const struct task *k)
{
	u32 sequence = sums_sequence_now(k);

	barrier();
	return sequence;
}

/* Returns true if the sums have changed, or are changing, since sums_sequence() returned sequence. */
static __always_inline bool
is_torn(const struct task *k, u32 sequence)
{
	barrier();
	return sequence & 1 || sums_sequence_now(k) != sequence;
}

#endif
