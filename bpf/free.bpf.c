// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/* Sends the last event of a process, when the kernel frees it. */
#include "entry.h"

/*
 * Counts a process that ends without an entry since all copies missed an event of it. One that lived long may have had
 * an entry that on_stale removed, after a snapshot had seen it.
 */
static __always_inline void
unseen_count(struct task_struct *t)
{
	struct task_struct *parent = t->real_parent;

	if (!can_be_preempted || was_refused(t) || t->start_boottime < since_ns ||
	    bpf_ktime_get_boot_ns() - t->start_boottime > stale_ns)
		return;
	if ((u32)t->tgid == own_tgid || (!proc_of(parent) && !is_wanted(parent, t)))
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
	struct signal_struct *signal;
	struct event_state *e;
	struct proc_key key;
	struct proc *p;
	bool is_scarce;
	u32 flags;

	if (!has_lease())
		return 0;
	if (t->pid != t->tgid)		/* handle a process once, by its leader */
		return 0;
	READ_POINTER(signal, t->signal);
	READ_POINTER(flags, signal->flags);	/* seldom in a cache: fetched while the entry is looked up */
	key = (struct proc_key){ (u64)signal, t->start_boottime };
	p = bpf_map_lookup_elem(&procs, &key);
	if (!p) {
		unseen_count(t);
		return 0;
	}
	if (can_be_preempted && p->exec_id != exec_id_of(t)) {
		count_loss(EVENT_PROG_EXEC, EVENT_LOSS_SKIPPED);
		__sync_fetch_and_add(&lost_records, 2);
	}
	program_catch_up(p, t);
	if (!p->reported) {
		unreported_remove(&key, p);
		return 0;
	}
	if (!p->end_ns)
		count_loss(EVENT_PROG_EXIT, EVENT_LOSS_SKIPPED);
	/*
	 * If no hook saw the mm, signal_struct has its peak, unless a program before had a larger one, or all of it is
	 * the parent's.
	 */
	if (!p->has_peak && (p->execed || !p->shares_mm) && signal->maxrss > p->exec_maxrss) {
		p->peak = signal->maxrss;
		p->has_peak = 1;
	}
	is_scarce = ring_is_scarce(p);
	e = NULL;
	if (!is_scarce || ring_room_of(p->user) < RING_NONE)
		e = bpf_ringbuf_reserve(&ring, sizeof(*e), 0);
	if (e) {
		flags = 0;
		waits_settle(p);
		state_fill(e, t, signal, p);
		counters_add_own(&e->counters, t, t->delays, p->end_ns, &flags);
		e->flags |= flags;
		e->head.kind = EVENT_EXIT;
		bpf_ringbuf_submit(e, wake_flags(e->head.time_ns));
		if (is_scarce)
			ring_charge(p->user, sizeof(*e));
	} else if (p->is_canary) {
		canary_lost_ns = p->self.start_ns;
	} else {
		count_loss(EVENT_PROG_FREE, EVENT_LOSS_RING);
		__sync_fetch_and_add(&lost_records, p->execed ? 1 : 2);
		USER_COUNT(p->user, p->user_uid, lost, 1);
	}
	entry_remove(&key, p);
	return 0;
}
