// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * Programs start, replace one another and end. The work itself is in entry.h, exec.h and exit.h, and for the
 * final event of a process in free.bpf.c.
 *
 * The kernel does not run a BPF program on a CPU on which the same program is running. Up to 6.19 a tracepoint's
 * programs run with preemption off, and that never happens. From 7.0 they can be preempted, and all events on
 * that CPU would be lost until the task runs again: one or two in a hundred under load. There each program is
 * attached three times. A copy returns at once if another was first; an event that all three missed is recovered
 * by the next hook of that process, and what cannot be recovered is counted. In their bodies the copies switch
 * preemption off, so that no other uses their scratch; the task may still lose the CPU as it switches it on
 * again.
 */
#include "exit.h"
#include "kill.h"
#include "snapshot.h"
#include "stale.h"

extern void bpf_preempt_disable(void) __ksym __weak;
extern void bpf_preempt_enable(void) __ksym __weak;

/* Defines a copy for kernels that can preempt it. */
#define PROGRAM_7(name, tracepoint, call, args...)	\
	SEC("tp_btf/" tracepoint)			\
	int BPF_PROG(name, args)			\
	{						\
		enum { IS_PREEMPTIBLE = true };		\
							\
		if (!has_lease())			\
			return 0;			\
		bpf_preempt_disable();			\
		call;					\
		bpf_preempt_enable();			\
		return 0;				\
	}

/* Defines a tracepoint's program and its three copies. */
#define PROGRAMS(name, tracepoint, call, args...)	\
	SEC("tp_btf/" tracepoint)			\
	int BPF_PROG(name, args)			\
	{						\
		enum { IS_PREEMPTIBLE = false };	\
							\
		return has_lease() ? call : 0;		\
	}						\
	PROGRAM_7(name##_7, tracepoint, call, args)	\
	PROGRAM_7(name##_7_again, tracepoint, call, args) \
	PROGRAM_7(name##_7_once_more, tracepoint, call, args)

PROGRAMS(on_fork, "sched_process_fork", fork_seen(parent, child),
    struct task_struct *parent, struct task_struct *child)

/* From 6.10: called once the exec has a new image, while the old mm still exists. */
PROGRAMS(on_prepare_exec, "sched_prepare_exec", old_image(t),
    struct task_struct *t, struct linux_binprm *bprm)

/* Before 6.10 the same moment has no tracepoint; this function is called at it. */
SEC("fentry/begin_new_exec")
int BPF_PROG(on_begin_new_exec, struct linux_binprm *bprm)
{
	struct task_struct *t = (void *)bpf_get_current_task();
	struct mm_struct *mm = BPF_CORE_READ(t, mm);
	struct proc *p = proc_of_address(t);
	struct mm_struct___until_6_1 *old = (void *)mm;
	struct pages_sum sum = {};
	u64 high, now = 0;

	if (!p || !p->execed || !p->reported || !mm || !has_lease())
		return 0;
	high = BPF_CORE_READ(mm, hiwater_rss);
	if (bpf_core_field_exists(old->rss_stat.count)) {
		pages_resident(mm, true, &now);
	} else {
		sum.files = (u64)BPF_CORE_READ(mm, rss_stat[0].counters);
		sum.anons = (u64)BPF_CORE_READ(mm, rss_stat[1].counters);
		sum.shmems = (u64)BPF_CORE_READ(mm, rss_stat[3].counters);
		if (!pages_held_back(&sum))
			return 0;
		now = pages(BPF_CORE_READ(mm, rss_stat[0].count) + sum.file) +
		    pages(BPF_CORE_READ(mm, rss_stat[1].count) + sum.anon) +
		    pages(BPF_CORE_READ(mm, rss_stat[3].count) + sum.shmem);
	}
	p->old_rss = now;
	p->old_peak = high > now ? high : now;
	return 0;
}

PROGRAMS(on_exec, "sched_process_exec", exec_of(t, old_pid, bprm->argc, true),
    struct task_struct *t, int old_pid, struct linux_binprm *bprm)

/* Before 5.17 there is no bpf_loop(). */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec_until_5_16, struct task_struct *t, int old_pid, struct linux_binprm *bprm)
{
	return has_lease() ? exec_of(t, old_pid, bprm->argc, false) : 0;
}

PROGRAMS(on_exit, "sched_process_exit", exit_seen(t, exit_has_group_dead && (ctx[1] & 1), IS_PREEMPTIBLE),
    struct task_struct *t)

/* Before 6.16 the mm is gone at sched_process_exit; this function runs earlier. */
SEC("fentry/taskstats_exit")
int BPF_PROG(on_taskstats_exit, struct task_struct *t, int group_dead)
{
	struct mm_struct *mm = t->mm;
	struct proc *p;

	if (!group_dead || !mm || !has_lease())
		return 0;
	p = proc_of(t);
	if (p && p->reported)
		memory_keep(p, t->real_parent, mm);
	return 0;
}

/* The process that sends it is nearly dead: its memory and files are gone. */
static __always_inline int
parent_signalled(void)
{
	struct task_struct *t = (void *)bpf_get_current_task_btf();
	struct proc *p;
	struct task k;

	if (!(t->flags & PF_EXITING))
		return 0;
	task_read(&k, t);
	if (k.signal->live.counter != 0)
		return 0;
	p = proc_of_task(&k);
	if (!p || !p->end_ns || !p->reported)
		return 0;
	end_sums(p, &k);
	return 0;
}

/*
 * Runs when a signal is sent. That of a child's end to its parent is nearly the last step of the dying process; not
 * every child signals its parent.
 */
SEC("tp_btf/signal_generate")
int BPF_PROG(on_signal, int sig, u64 *info, struct task_struct *task, int group, int result)
{
	if (!has_lease())
		return 0;
	return sig == SIGCHLD ? parent_signalled() : kill_seen(sig, info, task, result);
}
