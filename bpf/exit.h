/*
 * SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
 * A thread or a process ends: the work of on_exit, and the sums kept in case that on_free never runs.
 */
#ifndef SLUICE_EXIT_H
#define SLUICE_EXIT_H

#include "exec.h"

static __always_inline void
thread_read(struct thread_sums *sums, struct task_struct *t, struct task_delay_info *d)
{
#define COUNTER_TASK(name, thread) sums->name = t->thread;
#define COUNTER_DELAY(name, thread) sums->name = d ? DELAY_OF(d, thread) : 0;
#define COUNTER_LIFE(name) sums->name = life_of(t->start_boottime, 0);
#include "resources.h"
}

/* Adds atomically, because threads exit on several CPUs at once. */
static __always_inline void
thread_add(struct thread_sums *sums, struct task_struct *t, struct task_delay_info *d)
{
	struct thread_sums one;

	thread_read(&one, t, d);
#define COUNTER_TASK(name, thread) __sync_fetch_and_add(&sums->name, one.name);
#define COUNTER_DELAY(name, thread) __sync_fetch_and_add(&sums->name, one.name);
#define COUNTER_LIFE(name) __sync_fetch_and_add(&sums->name, one.name);
#include "resources.h"
}

/* Keeps the sums of a process when all threads but the leader and k are gone or about to be. */
static __always_inline void
end_sums(struct proc *p, const struct task *k)
{
	struct signal_struct *signal = k->signal;
	struct task_struct *leader = k->leader, *t = k->t;
	u64 sum, unaccounted = counters_unaccounted(k, &sum);
	u64 runtime = signal->sum_sched_runtime + unaccounted + (t == leader ? sum : leader->se.sum_exec_runtime);
#define COUNTER_SIGNAL(name, thread, gone) u64 name = signal->gone + leader->thread;
#include "resources.h"

	if (t->pid != t->tgid && !t->exit_state) {	/* a worker that is not released yet */
		runtime += sum;
#define COUNTER_SIGNAL(name, thread, gone) name += t->thread;
#include "resources.h"
	}
#define COUNTER_SIGNAL(name, thread, gone) p->end_##name = name;
#define COUNTER_GONE(name, gone) p->end_##name = signal->gone;
#include "resources.h"
	p->end_runtime_ns = runtime;	/* includes what the scheduler has not accounted for yet */
	thread_read(&p->leader, leader, leader->delays);
	p->has_end_sums = 1;
}

/* Returns what the parent does with SIGCHLD: an address, or SIG_IGN. */
static __always_inline u64
handler_of_parent(const struct task *k)
{
	u64 handler;

	READ_POINTER(handler, (u64)k->parent->sighand->action[SIGCHLD - 1].sa.sa_handler);
	return handler;
}

/*
 * Keeps peak and size of the memory before the last thread drops mm. A vfork child that never exec'd has no
 * memory of its own.
 */
static __always_inline void
memory_keep(struct proc *p, struct task_struct *parent, struct mm_struct *mm)
{
	u64 high, now;

	if (!p->execed && parent->mm == mm) {
		p->shares_mm = 1;
		return;
	}
	high = mm->hiwater_rss;
	if (!pages_resident(mm, true, &now))
		return;
	p->rss = now;
	p->peak = high > now ? high : now;
	p->has_peak = 1;
}

/*
 * Handles the exit of a thread: its own I/O and delays are lost once it is gone. The leader's task stays until
 * the process is freed, and files that it closes last still count, so it is read then. The mm is dropped with
 * the last thread (from 6.16 it still exists at this hook, see on_taskstats_exit). is_preemptible: another program
 * may have missed an event of this process, see lifecycle.bpf.c.
 */
static __always_inline int
exit_seen(struct task_struct *t, bool group_dead, bool is_preemptible)
{
	struct task_delay_info *delays;
	struct signal_struct *signal;
	struct thread_key key = { (u64)t, t->start_boottime };
	struct proc *p;
	struct task k;
	bool is_last;
	u64 handler;
	u8 one = 1;

	task_read(&k, t);
	signal = k.signal;
	task_follow(&k);
	handler = handler_of_parent(&k);	/* seldom in a cache: fetched while the entry is looked up */
	p = proc_of_task(&k);
	if (exit_has_group_dead)
		is_last = group_dead;
	else			/* two last threads may both see 0: the first one reports */
		is_last = signal->live.counter == 0;
	if (is_preemptible && !p && is_last)
		p = adopt_at_exit(&k);
	if (!p) {
		if (is_last)
			refused_ends(&k, is_preemptible || !exit_has_group_dead);
		return 0;
	}
	/* no program saw its exec: report it late */
	if (is_preemptible && is_last && !p->end_ns && p->exec_id != exec_id_of(t))
		exec_seen(&k, t->pid, EVENT_ARGV_MAX, p, environ_table, true);
	if (!p->reported) {		/* only keep that it ended */
		if (is_last && !p->end_ns)
			p->end_ns = bpf_ktime_get_boot_ns();
		return 0;
	}
	READ_POINTER(delays, k.untrusted->delays);
	if (delays) {
		p->has_block_io = 1;
		if (odd_delay_flag(delays->blkio_delay, life_of(t->start_boottime, 0)))
			p->has_odd_block_io = 1;
	}
	if (t->pid != t->tgid || !is_last) {
		if (is_preemptible && bpf_map_update_elem(&threads_exited, &key, &one, BPF_NOEXIST) == -EEXIST)
			return 0;	/* another copy was first */
		if (t->pid != t->tgid)
			thread_add(&p->dead, t, delays);
		else		/* counts only if another thread execs and takes over from it */
			thread_read(&p->leader, t, delays);
	}
	if (!is_last)
		return 0;
	if (p->end_ns)
		return 0;
	p->end_ns = bpf_ktime_get_boot_ns();
	program_catch_up(p, t);
	p->ppid = k.parent->tgid;
	/* the status is final here, whether or not its parent will be signalled */
	p->end_status = status_of(signal, k.leader);
	p->end_oom = signal->oom_mm != NULL;
	__builtin_memcpy(p->end_comm, k.leader->comm, sizeof(p->end_comm));
	/* on_signal runs later, unless the parent wants no signal or ignores this one */
	if (!has_on_signal || k.leader->exit_signal != SIGCHLD || handler == SIG_IGN)
		end_sums(p, &k);
	if (!p->execed) {
		struct context context = {};
		struct scratch *s = scratch_get();

		context_ids(&context, &k);
		if (s)
			context_announce(s, &context, p);
		p->uid = context.uid;
		p->gid = context.gid;
		p->pid_ns = context.pid_ns;
		p->mnt_ns = context.mnt_ns;
		p->net_ns = context.net_ns;
		p->elevated = context.elevated;
		user_follow(p, k.untrusted);
	}
	if (k.mm)
		memory_keep(p, k.parent, k.mm);
	return 0;
}

#endif
