// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/* Every process at once, read like a file: iter/task costs a sixteenth of /proc. */
#include "counters.h"

#define THREADS_MAX 1024	/* walked for one process; more set EVENT_THREADS_CUT */
#define PF_EXITING 0x4

struct snapshot_map {		/* one reader at a time: ours */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct event_state);
};
struct snapshot_map snapshot_state SEC(".maps");

u32 snapshot_all = 0;		/* also name the processes that are not followed */

/* One of several threads, reached by list: an address without a type, read through helpers. */
static __always_inline void
add_other_thread(struct event_counters *c, struct task_struct *t, u32 *flags)
{
	struct task_delay_info *d;

	c->runtime_ns += BPF_CORE_READ(t, se.sum_exec_runtime);
	c->utime += BPF_CORE_READ(t, utime);
	c->stime += BPF_CORE_READ(t, stime);
	c->voluntary_switches += BPF_CORE_READ(t, nvcsw);
	c->involuntary_switches += BPF_CORE_READ(t, nivcsw);
	c->minor_faults += BPF_CORE_READ(t, min_flt);
	c->major_faults += BPF_CORE_READ(t, maj_flt);
	if (BPF_CORE_READ(t, flags) & PF_EXITING)
		return;		/* on_exit has or will have added the rest */
	c->rchar += BPF_CORE_READ(t, ioac.rchar);
	c->wchar += BPF_CORE_READ(t, ioac.wchar);
	c->syscr += BPF_CORE_READ(t, ioac.syscr);
	c->syscw += BPF_CORE_READ(t, ioac.syscw);
	c->read_bytes += BPF_CORE_READ(t, ioac.read_bytes);
	c->write_bytes += BPF_CORE_READ(t, ioac.write_bytes);
	c->run_delay_ns += BPF_CORE_READ(t, sched_info.run_delay);
	d = BPF_CORE_READ(t, delays);
	if (d) {
		c->block_io_delay_ns += BPF_CORE_READ(d, blkio_delay);
		*flags |= EVENT_HAS_BLOCK_IO;
	}
}

/* A function of its own, so that the verifier sees the long loop once. 1 when it met the limit. */
__noinline int
add_other_threads(u64 head)
{
	struct event_state *e;
	struct list_head *node;
	u32 zero = 0, flags = 0;

	e = bpf_map_lookup_elem(&snapshot_state, &zero);
	if (!e)
		return 1;
	node = BPF_CORE_READ((struct list_head *)head, next);
	for (int i = 0; i < THREADS_MAX; i++) {
		if (!node || (u64)node == head) {
			e->flags |= flags;
			return 0;
		}
		add_other_thread(&e->counters,
		    (void *)node - bpf_core_field_offset(struct task_struct, thread_node), &flags);
		node = BPF_CORE_READ(node, next);
	}
	return 1;
}

SEC("iter/task")
int on_task(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	struct signal_struct *signal;
	struct event_state *e;
	struct mm_struct *mm;
	struct proc *p;
	u64 high, now;
	u32 zero = 0, flags = 0;

	if (!t || t->pid != t->tgid)
		return 0;
	signal = t->signal;
	p = proc_of(signal);
	if (!p && !snapshot_all)
		return 0;
	e = bpf_map_lookup_elem(&snapshot_state, &zero);
	if (!e)
		return 0;
	if (!p) {
		__builtin_memset(e, 0, sizeof(*e));
		e->head.version = EVENT_VERSION;
		e->head.kind = EVENT_ALIVE;
		e->head.size = sizeof(*e);
		e->head.time_ns = bpf_ktime_get_boot_ns();
		e->self.start_ns = t->start_boottime;
		e->self.pid = t->tgid;
		e->flags = EVENT_NO_CREDENTIALS;
		e->ppid = t->real_parent->tgid;
		e->counters.threads = signal->nr_threads;
		__builtin_memcpy(e->comm, t->comm, sizeof(e->comm));
		goto write;
	}
	state_fill(e, t, p);
	e->head.kind = EVENT_SNAPSHOT;
	if (!p->end_ns)
		e->ppid = t->real_parent->tgid;
	if (signal->nr_threads == 1) {
		counters_add_thread(&e->counters, t);
		if (!(t->flags & PF_EXITING))
			counters_add_io(&e->counters, t, &flags);
		if (t->exit_state && p->end_ns)
			flags |= EVENT_ENDED;
	} else {
		/* A trip through memory makes a number of it: pointers may not be passed. */
		volatile u64 *wash = &e->head.time_ns;

		*wash = (u64)&signal->thread_head;
		if (add_other_threads(*wash)) {
			flags |= EVENT_THREADS_CUT;
			count_loss(EVENT_PROG_ITER, EVENT_LOSS_CUT);
		}
		e->head.time_ns = bpf_ktime_get_boot_ns();
	}
	mm = t->mm;
	if (mm && (p->execed || t->real_parent->mm != mm)) {
		high = mm->hiwater_rss;
		now = pages_resident(mm);
		e->counters.rss = now;
		e->counters.peak_rss = high > now ? high : now;
		flags |= EVENT_HAS_PEAK;
	}
	e->flags |= flags;
write:
	/* Full: the kernel calls again with a larger buffer. */
	bpf_seq_write(ctx->meta->seq, e, sizeof(*e));
	return 0;
}
