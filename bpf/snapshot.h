/*
 * SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
 * Reads every process at once, like a file: iter/task costs a sixteenth of /proc. These programs are in the object of
 * lifecycle.bpf.c, because the linker of libbpf 1.1 refuses two objects that call the same kernel function.
 */
#ifndef SLUICE_SNAPSHOT_H
#define SLUICE_SNAPSHOT_H

#include "discovery.h"
#include "pages.h"
#include "sums.h"
#include "waits.h"

u32 snapshot_retries = 0;	/* threads that may still be read again in this pass, see is_torn() */

/*
 * Returns EVENT_ENDED for a zombie, and EVENT_ON_CPU for one that has not left its CPU for good. To be called before
 * the counters are read: a process that ends on another CPU meanwhile is written as running.
 */
static __always_inline u32
ended_flags(struct task_struct *t, const struct signal_struct *signal, const struct proc *p)
{
	/* The kernel writes them in this order; a zombie that only waits for a CPU is in a run queue. */
	u32 flags = READ_NOW(t->exit_state), has_steps = READ_NOW(t->on_rq);

	if (bpf_core_field_exists(t->on_cpu))
		has_steps |= READ_NOW(t->on_cpu);
	flags = signal->nr_threads == 1 && flags && p->end_ns ? EVENT_ENDED : 0;
	if (flags && has_steps)
		flags |= EVENT_ON_CPU;
	barrier_var(flags);
	return flags;
}

/* Begins the record of a process, before its threads are added; NULL: there is nothing more to do. */
static __always_inline struct event_state *
process_begin(struct bpf_iter__task *ctx, struct task *k, struct proc **ret_proc, bool has_loop)
{
	struct signal_struct *signal = k->signal;
	struct proc *p = proc_of_task(k);
	struct task_struct *t = k->t;
	struct event_state *e;
	bool is_found = false;
	u32 zero = 0, ended;

	if (snapshot_judge == FILTER_JUDGE_RETAKE || snapshot_judge == FILTER_JUDGE_RETAKEN) {
		if (p)
			entry_retake(k, p);
		return NULL;
	}
	if (p && p->end_ns)
		p->zombie_ns = bpf_ktime_get_boot_ns();
	if ((u32)t->tgid == own_tgid && snapshot_enter) {
		struct proc_key key = { (u64)signal, t->start_boottime };

		if (p)		/* an earlier agent followed us */
			entry_remove(&key, p);
		return NULL;
	}
	if (!p && snapshot_enter) {
		p = enter_found(k);
		if (!p)
			return NULL;
	}
	if (p && (snapshot_judge == FILTER_JUDGE_ENTERED || snapshot_judge == FILTER_JUDGE_ALL))
		is_found = judge_anew(k, p, has_loop);
	if (snapshot_judge == FILTER_JUDGE_ENTERED)
		return NULL;
	if (snapshot_judge == FILTER_JUDGE_INSIDE) {
		if (p && k->mm)
			judge_inside(k, p, has_loop);
		return NULL;
	}
	if (p && !p->reported) {
		snapshot_left_out++;
		return NULL;
	}
	if (!p && !snapshot_all)
		return NULL;
	e = bpf_map_lookup_elem(&snapshot_state, &zero);
	if (!e)
		return NULL;
	if (!p) {
		__builtin_memset(e, 0, sizeof(*e));
		e->head.version = EVENT_VERSION;
		e->head.kind = EVENT_ALIVE;
		e->head.size = sizeof(*e);
		e->head.time_ns = bpf_ktime_get_boot_ns();
		e->self.start_ns = t->start_boottime;
		e->self.pid = t->tgid;
		e->flags = EVENT_NO_CREDENTIALS;
		e->ppid = k->parent->tgid;
		e->counters.threads = signal->live.counter;
		__builtin_memcpy(e->comm, t->comm, sizeof(e->comm));
		bpf_seq_write(ctx->meta->seq, e, sizeof(*e));
		return NULL;
	}
	process_sample(t, p);
	ended = ended_flags(t, signal, p);
	state_fill(e, t, signal, p);
	e->flags |= ended;
	e->head.kind = is_found ? EVENT_DISCOVERED : EVENT_SNAPSHOT;
	if (p->excluded)
		e->flags |= EVENT_EXCLUDED;
	if (!p->execed)
		p->seen = 1;
	/*
	 * Processes that were entered before may be unknown to the reader too, and no event had the credentials of
	 * one that never exec'd. Dead processes have no namespaces.
	 */
	if ((snapshot_enter || is_found || !p->execed) && signal->live.counter > 0) {
		struct context c = {};
		u32 number;

		context_ids(&c, k);
		if (p->user && !p->user_stays)
			user_read(&number, &e->user_uid, k->untrusted);
		e->flags &= ~EVENT_NO_CREDENTIALS;
		e->flags |= c.elevated;
		e->uid = c.uid;
		e->gid = c.gid;
		e->pid_ns = c.pid_ns;
		e->mnt_ns = c.mnt_ns;
		e->net_ns = c.net_ns;
		e->cgroup_v2 = c.cgroup_v2;
		e->cgroup_v1 = c.cgroup_v1;
	}
	if (!p->end_ns)
		e->ppid = k->parent->tgid;
	*ret_proc = p;
	return e;
}

/* Writes a discovered process with its paths. */
static __always_inline void
found_write(struct bpf_iter__task *ctx, struct event_state *e, const struct task *k, bool has_loop)
{
	volatile u64 *wash = &e->key;	/* storing it in memory turns the pointer into a number */
	u32 zero = 0, at = ncpu, len;
	struct event_found *f;
	struct scratch *s;

	*wash = (u64)k->t;
	if (has_loop)
		found_paths_of(*wash);
	else
		found_paths_until_5_16(*wash);
	*wash = 0;
	f = bpf_map_lookup_elem(&snapshot_state, &zero);
	s = bpf_map_lookup_elem(&scratches, &at);
	if (!f || !s)
		return;
	len = (f->exe_len + f->cwd_len + 7) & 0x3ff8;
	f->state.head.size = sizeof(*f) + len;
	bpf_seq_write(ctx->meta->seq, f, sizeof(*f));
	if (len)
		bpf_seq_write(ctx->meta->seq, s->text, len);
}

/*
 * Writes the record; sequence is that of before its counters were read. Returns 1 if the kernel shall call again with
 * the same process: a hypervisor may have taken away the CPU that releases the thread, so it is not waited for. A user
 * can have threads released all the time: what is read again is bounded, and then such a process is marked.
 */
static __always_inline int
process_write(struct bpf_iter__task *ctx, struct event_state *e, const struct task *k, const struct proc *p,
    u32 sequence, bool has_loop)
{
	struct pages_kinds kinds;
	struct mm_struct *mm;
	u64 high, now;
	u32 threads;

	if (is_torn(k, sequence)) {
		threads = 1 + k->signal->nr_threads;
		if (snapshot_retries > threads) {
			snapshot_retries -= threads;
			return 1;
		}
		e->flags |= EVENT_TORN;
	}
	READ_POINTER(mm, k->untrusted->mm);
	if (mm && (p->execed || k->parent->mm != mm)) {
		high = mm->hiwater_rss;
		pages_by_kind(mm, &kinds);
		now = kinds.file + kinds.anon + kinds.shmem;
		e->counters.rss = now;
		e->counters.anon = kinds.anon;
		e->counters.shmem = kinds.shmem;
		e->counters.swap = kinds.swap;
		e->counters.peak_rss = high > now ? high : now;
		e->flags |= EVENT_HAS_PEAK;
	}
	/* If the buffer is full, the kernel calls again with a larger one. */
	if (e->head.kind == EVENT_DISCOVERED)
		found_write(ctx, e, k, has_loop);
	else
		bpf_seq_write(ctx->meta->seq, e, sizeof(*e));
	return 0;
}

SEC("iter/task")
int on_task(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	struct event_state *e;
	struct proc *p = NULL;
	struct walk w = {};
	struct task k;
	volatile u64 *wash;
	u64 time_ns;
	u32 sequence;

	if (!t)
		return 0;
	if (t->pid != t->tgid) {
		worker_sample(t);
		return 0;
	}
	task_read(&k, t);
	task_follow(&k);
	sequence = sums_sequence(&k);
	e = process_begin(ctx, &k, &p, true);
	if (!e || !p)
		return 0;
	if (k.signal->nr_threads == 1) {
		add_only_thread(e, &k);
	} else {
		wash = &e->head.time_ns;	/* storing it in memory turns the pointer into a number */
		time_ns = *wash;
		*wash = (u64)&k.signal->thread_head;
		w.head = *wash;
		*wash = (u64)k.signal->thread_head.next;
		w.node = *wash;
		*wash = time_ns;
		bpf_loop(THREADS_MAX, on_thread, &w, 0);
		if (!w.is_done) {
			e->flags |= EVENT_THREADS_CUT;
			count_loss(EVENT_PROG_ITER, EVENT_LOSS_CUT);
		}
	}
	return process_write(ctx, e, &k, p, sequence, true);
}

SEC("iter/task")
int on_task_until_5_16(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	volatile u64 *wash;
	struct event_state *e;
	struct proc *p = NULL;
	struct task k;
	u64 time_ns;
	u32 sequence;

	if (!t)
		return 0;
	if (t->pid != t->tgid) {
		worker_sample(t);
		return 0;
	}
	task_read(&k, t);
	task_follow(&k);
	sequence = sums_sequence(&k);
	e = process_begin(ctx, &k, &p, false);
	if (!e || !p)
		return 0;
	if (k.signal->nr_threads == 1) {
		add_only_thread(e, &k);
	} else {
		/* Storing the pointer in memory turns it into a number, since pointers may not be passed. */
		time_ns = e->head.time_ns;
		wash = &e->head.time_ns;
		*wash = (u64)&k.signal->thread_head;
		if (add_threads_until_5_16(*wash)) {
			e->flags |= EVENT_THREADS_CUT;
			count_loss(EVENT_PROG_ITER, EVENT_LOSS_CUT);
		}
		e->head.time_ns = time_ns;
	}
	return process_write(ctx, e, &k, p, sequence, false);
}

#endif
