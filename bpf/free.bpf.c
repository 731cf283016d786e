// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/* Sends the last event of a process, when the kernel frees it. */
#include "entry.h"

struct state_map final_state SEC(".maps");

/*
 * Counts a process that ends without an entry but was to be followed, where all copies may miss an event. One
 * that lived long may have had an entry that on_stale removed, after a snapshot had seen it.
 */
static __always_inline void
unseen_count(struct task_struct *t)
{
	struct task_struct *parent = t->real_parent;

	if (t->start_boottime < since_ns || bpf_ktime_get_boot_ns() - t->start_boottime > STALE_NS)
		return;
	if (lost[EVENT_PROG_FORK * EVENT_LOSS_COUNT + EVENT_LOSS_MAP])	/* no room for it: counted already */
		return;
	if (!proc_of(parent) && !is_wanted(parent, t))
		return;
	count_loss(EVENT_PROG_FORK, EVENT_LOSS_SKIPPED);
	__sync_fetch_and_add(&lost_records, 2);
}

/*
 * The kernel frees a process that was reaped: only now are all its counters final and equal to those that
 * wait4(2) returned to the parent. Runs in softirq, which may interrupt any other program.
 */
SEC("tp_btf/sched_process_free")
int BPF_PROG(on_free, struct task_struct *t)
{
	struct event_state *e;
	struct proc_key key;
	struct proc *p;
	u64 thread = (u64)t;
	u32 zero = 0, flags = 0;

	if (!has_lease())
		return 0;
	if (can_be_preempted)
		bpf_map_delete_elem(&threads_exited, &thread);
	if (t->pid != t->tgid)		/* handle a process once, by its leader */
		return 0;
	key = (struct proc_key){ (u64)t->signal, t->start_boottime };
	p = bpf_map_lookup_elem(&procs, &key);
	if (!p) {
		if (can_be_preempted)
			unseen_count(t);
		return 0;
	}
	if (can_be_preempted && p->exec_id != t->self_exec_id) {
		count_loss(EVENT_PROG_EXEC, EVENT_LOSS_SKIPPED);
		__sync_fetch_and_add(&lost_records, 2);
	}
	if (!p->reported) {
		bpf_map_delete_elem(&procs, &key);
		__sync_fetch_and_add(&removed, 1);
		return 0;
	}
	if (!p->end_ns)
		count_loss(EVENT_PROG_EXIT, EVENT_LOSS_SKIPPED);
	/* If no hook saw the mm, signal_struct has its peak, unless a program before had a larger one. */
	if (!p->has_peak && !p->shares_mm && t->signal->maxrss > p->exec_maxrss) {
		p->peak = t->signal->maxrss;
		p->has_peak = 1;
	}
	e = bpf_map_lookup_elem(&final_state, &zero);
	if (!e)
		return 0;
	state_fill(e, t, p);
	counters_add_own(&e->counters, t, &flags);
	e->flags |= flags;
	e->head.kind = EVENT_EXIT;
	if (bpf_ringbuf_output(&ring, e, sizeof(*e), wake_flags(e->head.time_ns))) {
		count_loss(EVENT_PROG_FREE, EVENT_LOSS_RING);
		__sync_fetch_and_add(&lost_records, e->flags & EVENT_EXECED ? 1 : 2);
	}
	bpf_map_delete_elem(&procs, &key);
	__sync_fetch_and_add(&removed, 1);
	return 0;
}
