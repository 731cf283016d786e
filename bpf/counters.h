/*
 * SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
 * Reads the kernel's own counters of a process. The sums are those that wait4(2) reports: signal_struct holds
 * those of released threads, the thread list the others.
 */
#ifndef SLUICE_COUNTERS_H
#define SLUICE_COUNTERS_H

#include "state.h"

/* Begins with what the released threads of a process left in signal_struct, and with our own sums. */
static __always_inline void
counters_begin(struct event_counters *c, struct signal_struct *s, const struct proc *p)
{
	/* signal->ioac cannot be used: it includes the children that were reaped */
#define COUNTER_SIGNAL(name, thread, gone) c->name = s->gone;
#define COUNTER_GONE(name, gone) c->name = s->gone;
#define COUNTER_TASK(name, thread) c->name = p->dead.name;
#define COUNTER_DELAY(name, thread) c->name = p->dead.name;
#define COUNTER_LIFE(name) c->name = p->dead.name;
#define COUNTER_PAGES(name, entry) c->name = p->entry;
#define COUNTER_PAGES_NOW(name) c->name = 0;
#define COUNTER_ENTRY(name, entry) c->name = p->entry;
#include "resources.h"
	c->threads = s->live.counter;
	c->threads_peak = p->threads_peak;
}

/* Adds a thread that is not released yet. t is typed, so these are plain loads without helper calls. */
static __always_inline void
counters_add_thread(struct event_counters *c, struct task_struct *t)
{
#define COUNTER_SIGNAL(name, thread, gone) c->name += t->thread;
#include "resources.h"
}

/* Returns how long a thread has lived by until_ns; 0: by now. Of a thread that has ended until_ns is its end. */
static __always_inline u64
life_of(u64 start_ns, u64 until_ns)
{
	u64 now_ns = until_ns ? until_ns : bpf_ktime_get_boot_ns();

	return now_ns > start_ns ? now_ns - start_ns : 0;
}

/*
 * Returns EVENT_ODD_BLOCK_IO if a thread has waited for longer than it lives, else 0; without a branch, for the
 * verifier's sake. Since 6.12 one that waits for block I/O may be taken off its run queue later, while another runs:
 * the kernel then has the begin of the wait for that other one. The end adds what is since an earlier wait of the
 * thread, or if it had none, since the host was started.
 */
static __always_inline u32
odd_delay_flag(u64 delay_ns, u64 life_ns)
{
	_Static_assert(EVENT_ODD_BLOCK_IO == 1 << 20, "the sign becomes this bit");
	return (life_ns - delay_ns) >> 63 << 20;
}

/* A member of struct task_delay_info, which not every kernel has; 0: it has none. */
#define DELAY_OF(d, thread) (bpf_core_field_exists((d)->thread) ? (d)->thread : 0)

/*
 * Adds the counters that we sum ourselves when a thread exits: for the leader, whose own counters last as long
 * as the process, and for threads that have not exited. d: its delays. end_ns: of the process; 0: it lives.
 */
static __always_inline void
counters_add_own(struct event_counters *c, struct task_struct *t, struct task_delay_info *d, u64 end_ns, u32 *flags)
{
	u64 life_ns = life_of(t->start_boottime, end_ns);

#define COUNTER_TASK(name, thread) c->name += t->thread;
#define COUNTER_LIFE(name) c->name += life_ns;
#include "resources.h"
	if (d) {
#define COUNTER_DELAY(name, thread) c->name += DELAY_OF(d, thread);
#include "resources.h"
		*flags |= delay_flags() | odd_delay_flag(d->blkio_delay, life_ns);
	}
}

/* Reads a word that an interrupt, or another CPU that wakes a task on this one, may write at the same time. */
#define READ_NOW(word) (*(volatile typeof(word) *)&(word))

/*
 * Reads a running task once: its sum_exec_runtime, and the time it has used since that was updated. The
 * scheduler writes clock, clock_task, exec_start and sum in this order; they are read in the reverse order, so
 * that an update in between makes the result too small, never too large. Returns false if there was one.
 */
static __always_inline bool
runtime_read(struct task_struct *t, struct rq *rq, u64 *sum, s64 *since)
{
	u64 start, clock;

	*sum = READ_NOW(t->se.sum_exec_runtime);
	start = READ_NOW(t->se.exec_start);
	*since = READ_NOW(rq->clock_task) - start;
	clock = READ_NOW(rq->clock);
	*since += bpf_ktime_get_ns() - clock_offset - clock;
	return READ_NOW(t->se.exec_start) == start && READ_NOW(rq->clock) == clock;
}

/*
 * Returns the CPU time that the running task has used since the scheduler last updated its sum_exec_runtime (at
 * most a tick ago), and that sum. It is the time since the run queue's clock was read, plus how far that clock
 * has moved since exec_start. clock_task excludes time stolen by a hypervisor, but the kernel does not know
 * either how much was stolen since the clock was read; that time counts until the next tick.
 */
static __always_inline u64
counters_unaccounted(const struct task *current_task, u64 *sum)
{
	struct task_struct *t = current_task->t;
	struct cfs_rq *cfs_rq;
	struct rq *rq = NULL;
	s64 since;

	*sum = t->se.sum_exec_runtime;
	if (clock_offset == 0)
		return 0;
	if (bpf_core_field_exists(t->se.cfs_rq)) {	/* with CONFIG_FAIR_GROUP_SCHED */
		READ_POINTER(cfs_rq, current_task->untrusted->se.cfs_rq);
		if (cfs_rq)
			rq = cfs_rq->rq;
	}
	if (!rq)
		return 0;
	/* Unrolled, because old verifiers treat a loop that is left early as an endless one. */
	if (!runtime_read(t, rq, sum, &since) && !runtime_read(t, rq, sum, &since))
		runtime_read(t, rq, sum, &since);
	return since > 0 && since < 1000000000 ? since : 0;
}

/* The credentials, namespaces and cgroups of a task: reads that are worth doing only once for each program. */
struct context {
	u32 uid;
	u32 gid;
	u32 pid_ns;
	u32 mnt_ns;
	u32 net_ns;
	u32 user_ns_level;		/* 0: the host's */
	u32 elevated;			/* EVENT_ELEVATED, see elevated_of(); else 0 */
	u64 cgroup_v2;
	u64 cgroup_v1;
	struct kernfs_node *kn_v2;	/* NULL: no cgroup */
	struct kernfs_node *kn_v1;	/* NULL: no cgroup, or the same as v2's */
};

/*
 * Returns EVENT_ELEVATED for a program that may do more than its real user: by another effective or saved id, of a user
 * or of a group, or by capabilities of its file. For these the kernel, too, keeps a user from looking into a program
 * (secureexec, dumpable). The user's own are capabilities that are ambient, all that root has, and all in a user
 * namespace. Without a branch, which verifiers would follow to the end.
 */
static __always_inline u32
elevated_of(const struct cred *cred, u32 uid, u32 gid, u32 user_ns_level)
{
	u64 of_file = *(const u64 *)&cred->cap_permitted & ~*(const u64 *)&cred->cap_ambient;
	u64 differs = (cred->euid.val ^ uid) | (cred->suid.val ^ uid) | (cred->egid.val ^ gid) | (cred->sgid.val ^ gid);
	u64 counts = ((u64)user_ns_level - 1) & -(u64)uid;	/* its sign: not root, and in no user namespace */
	u64 has_more;

	barrier_var(differs);
	barrier_var(of_file);
	barrier_var(counts);
	differs |= (of_file | of_file >> 32) & 0xffffffff & -(counts >> 63);
	barrier_var(differs);
	has_more = -differs >> 63;
	_Static_assert(EVENT_ELEVATED == 1 << 16, "the flag is the sign of a number that is not zero");
	return has_more << 16;
}

static __always_inline void
context_ids(struct context *c, const struct task *k)
{
	struct cgroup_subsys_state *memory;
	struct cgroup *v2, *v1;
	struct kernfs_node *kn;
	struct css_set *cgroups;
	const struct cred *cred;
	struct nsproxy *ns;
	struct pid *pid;

	READ_POINTER(cred, k->untrusted->real_cred);
	READ_POINTER(ns, k->untrusted->nsproxy);
	READ_POINTER(pid, k->untrusted->thread_pid);
	READ_POINTER(cgroups, k->untrusted->cgroups);
	if (cred) {
		c->uid = cred->uid.val;
		c->gid = cred->gid.val;
		c->user_ns_level = cred->user_ns->level;
		c->elevated = elevated_of(cred, c->uid, c->gid, c->user_ns_level);
	}
	if (ns && ns->mnt_ns)
		c->mnt_ns = ns->mnt_ns->ns.inum;
	if (ns && ns->net_ns)
		c->net_ns = ns->net_ns->ns.inum;
	if (pid && pid->level == 0) {
		c->pid_ns = PROC_PID_INIT_INO;
	} else if (pid) {
		u32 level = pid->level;
		struct upid *innermost = (void *)pid + bpf_core_field_offset(struct pid, numbers) +
		    level * bpf_core_type_size(struct upid);

		c->pid_ns = BPF_CORE_READ(innermost, ns, ns.inum);
	}
	if (!cgroups)
		return;
	v2 = cgroups->dfl_cgrp;
	kn = v2 ? v2->kn : NULL;
	if (kn) {
		c->cgroup_v2 = kn->id;
		c->kn_v2 = kn;
	}
	if (!bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id))
		return;
	memory = cgroups->subsys[bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id)];
	if (!memory)
		return;
	v1 = memory->cgroup;
	if (!v1 || v1 == v2)
		return;
	kn = BPF_CORE_READ(v1, kn);
	if (kn) {
		c->cgroup_v1 = BPF_CORE_READ(kn, id);
		c->kn_v1 = kn;
	}
}

/* Returns the wait(2) status of a process whose threads have all begun to exit. */
static __always_inline s32
status_of(struct signal_struct *signal, struct task_struct *leader)
{
	return signal->flags & SIGNAL_GROUP_EXIT ? signal->group_exit_code : leader->exit_code;
}

/* Fills in the identity of a record from the entry of its process. */
static __always_inline void
state_fill_identity(struct event_state *e, const struct proc *p)
{
	e->head.version = EVENT_VERSION;
	e->head.size = sizeof(*e);
	e->head.time_ns = bpf_ktime_get_boot_ns();
	e->self = p->self;
	e->parent = p->parent;
	e->anchor = p->anchor;
	e->program_start_ns = p->program_start_ns;
	e->end_ns = p->end_ns;
	e->flags = proc_flags(p) | p->elevated;
	if (p->execed || !p->end_ns || !p->pid_ns)	/* no load had the lease as it ended */
		e->flags |= EVENT_NO_CREDENTIALS;
	e->ppid = p->ppid;
	e->uid = p->uid;
	e->gid = p->gid;
	e->pid_ns = p->pid_ns;
	e->mnt_ns = p->mnt_ns;
	e->net_ns = p->net_ns;
	e->user_uid = p->user_uid;
	e->pad = 0;
	e->cgroup_v2 = p->cgroup_v2;
	e->cgroup_v1 = p->cgroup_v1;
}

/* Fills in identity, status and the counters of signal_struct; the caller adds threads that are not released. */
static __always_inline void
state_fill(struct event_state *e, struct task_struct *leader, struct signal_struct *signal, const struct proc *p)
{
	state_fill_identity(e, p);
	e->status = status_of(signal, leader);
	e->key = 0;
	if (signal->oom_mm)
		e->flags |= EVENT_OOM;
	__builtin_memcpy(e->comm, leader->comm, sizeof(e->comm));
	counters_begin(&e->counters, signal, p);
}

/* Fills in what the entry alone has of an ended process. */
static __always_inline void
state_fill_from_entry(struct event_state *e, const struct proc *p, u64 key)
{
	struct event_counters *c = &e->counters;

	state_fill_identity(e, p);
	e->head.kind = EVENT_STALE;
	e->flags |= (p->has_end_sums ? 0 : EVENT_THREADS_CUT) | (p->end_oom ? EVENT_OOM : 0);
	e->status = p->end_status;
	e->key = key;
	__builtin_memcpy(e->comm, p->end_comm, sizeof(e->comm));
#define COUNTER_SIGNAL(name, thread, gone) c->name = p->end_##name;
#define COUNTER_GONE(name, gone) c->name = p->end_##name;
#define COUNTER_TASK(name, thread) c->name = p->dead.name + p->leader.name;
#define COUNTER_DELAY(name, thread) c->name = p->dead.name + p->leader.name;
#define COUNTER_LIFE(name) c->name = p->dead.name + p->leader.name;
#define COUNTER_PAGES(name, entry) c->name = p->entry;
#define COUNTER_PAGES_NOW(name) c->name = 0;
#define COUNTER_ENTRY(name, entry) c->name = p->entry;
#include "resources.h"
	c->voluntary_switches++;	/* the last switch, which takes it off the CPU for good */
	c->threads = 0;
	c->threads_peak = p->threads_peak;
}

#endif
