/*
 * SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
 * Makes the entry of a process: at its fork, or later where no program saw the fork.
 */
#ifndef SLUICE_ENTRY_H
#define SLUICE_ENTRY_H

#include "judge.h"
#include "share.h"

/* Sends the paths of cgroups that are new to the process. Returns true if it tried: scratch.text may have changed. */
static __always_inline bool
context_announce(struct scratch *s, const struct context *c, struct proc *p)
{
	volatile u64 *wash = s->wash;
	bool is_new = false;

	if (c->kn_v2 && c->cgroup_v2 != p->cgroup_v2) {
		is_new = true;
		wash[0] = (u64)c->kn_v2;
		if (cgroup_announce(c->cgroup_v2, 1))
			p->cgroup_v2 = c->cgroup_v2;
	}
	if (c->kn_v1 && c->cgroup_v1 != p->cgroup_v1) {
		is_new = true;
		wash[0] = (u64)c->kn_v1;
		if (cgroup_announce(c->cgroup_v1, 0))
			p->cgroup_v1 = c->cgroup_v1;
	}
	return is_new;
}

/*
 * Sets the program of a process that ends to the one that it runs. They differ if only the first pass of a retake has
 * seen it, and it exec'd after that and before the lease was taken. An exec that fails late, and ends its process, does
 * not count.
 */
static __always_inline void
program_catch_up(struct proc *p, const struct task_struct *t)
{
	u64 missed;

	if (!retake_ns || p->swept_ns != retake_ns)
		return;
	missed = exec_id_of(t) - p->exec_id;
	if (!missed)
		return;
	p->exec_id += missed;
	p->self.index += missed - !p->execed;
	p->execed = 1;
}

/* The agent's own child, while it asks for that: COMMAND of a run, or a canary. */
static __always_inline bool
is_adopted(struct task_struct *parent)
{
	return adopt_tgid && (u32)parent->tgid == adopt_tgid;
}

/* Decides whether to follow a process whose parent is not followed, or had no room for an entry. */
static __always_inline bool
is_wanted(struct task_struct *parent, struct task_struct *child)
{
	if (is_adopted(parent))
		return true;
	return follow_all && !(child->flags & PF_KTHREAD) && (u32)parent->tgid != own_tgid;
}

/* A reader of the agent: its child, but its nursery forks it (CLONE_PARENT). */
static __always_inline bool
is_reader(struct task_struct *parent, struct task_struct *child)
{
	return (u32)child->real_parent->tgid == own_tgid && (u32)parent->tgid != own_tgid;
}

/*
 * Makes the entry of a process. up: its parent's entry, NULL: unknown. shares_mm: as in struct proc. Returns false if
 * it made none.
 */
static __always_inline bool
enter(struct task_struct *child, const struct proc *up, u64 exec_id, bool shares_mm)
{
	struct proc_key key = { (u64)child->signal, child->start_boottime };
	struct proc *p;
	u32 zero = 0;
	long error;

	p = bpf_map_lookup_elem(&fresh_proc, &zero);	/* zero but for the members set here */
	if (!p)
		return false;
	p->self.start_ns = child->start_boottime;
	p->self.pid = child->tgid;
	p->exec_id = exec_id;
	p->program_start_ns = p->self.start_ns;
	p->threads_peak = 1;
	p->shares_mm = shares_mm;
	p->is_canary = !up && follow_all && is_adopted(child->real_parent);
	p->user = p->user_uid = 0;
	if (follow_all && !p->is_canary)
		user_read(&p->user, &p->user_uid, child);
	if (up) {
		/* A program that is left out is skipped: its child's parent is the nearest reported one above it. */
		p->parent = up->reported ? up->self : up->parent;
		p->anchor = up->reported && up->execed ? up->self : up->anchor;
		p->cgroup_v2 = up->cgroup_v2;
		p->cgroup_v1 = up->cgroup_v1;
		p->excluded = up->excluded;	/* until its exec the child runs the same program */
		p->reported = !up->excluded;
		p->inside = up->inside;
		p->inside_generation = up->inside_generation;
		p->kept = up->kept;
		p->user_stays = up->user_stays;
		if (up->user_stays) {
			p->user = up->user;
			p->user_uid = up->user_uid;
		}
		p->forker_start_ns = up->self.start_ns;
		p->cgroup_verdict = up->cgroup_verdict;
	} else {
		p->cgroup_v2 = p->cgroup_v1 = 0;
		p->excluded = p->inside = p->kept = p->user_stays = 0;
		p->reported = 1;
		p->inside_generation = generation_now();
		p->forker_start_ns = 0;
		p->cgroup_verdict.generation = 0;
		__builtin_memset(&p->parent, 0, sizeof(p->parent));
		__builtin_memset(&p->anchor, 0, sizeof(p->anchor));
	}
	error = entry_make(&key, p);
	if (error == -EEXIST)
		return false;	/* another copy was first */
	if (error) {
		if (p->is_canary) {
			canary_lost_ns = p->self.start_ns;
			return false;
		}
		refuse(child, p->user);
		if (!follow_all) {	/* it stays out, with its descendants */
			count_loss(EVENT_PROG_FORK, EVENT_LOSS_MAP);
			__sync_fetch_and_add(&lost_records, 2);
		}
		return false;
	}
	return true;
}

/*
 * Returns how many programs ran in a process of the host's agent while there was no room for it: of one that ran before
 * the probes, the one that was to be discovered. execs: of the process, that they are of.
 */
static __always_inline u64
refused_programs(const struct task_struct *leader, u64 execs)
{
	return leader->start_boottime < since_ns ? 1 : execs;
}

/*
 * Enters a process that is to be followed and has no entry as it execs: there was no room before, all copies of on_fork
 * were skipped, or a kernel thread forked it. Of a run it stays out if there was no room: it is counted.
 */
static __always_inline struct proc *
adopt_at_exec(const struct task *k)
{
	struct task_struct *leader = k->leader, *parent = leader->real_parent;
	bool is_refused = was_refused(leader);
	struct proc *up, *p;
	bool is_new;
	u64 execs;

	if (is_refused ? !follow_all : !can_be_preempted && !(follow_all && parent->flags & PF_KTHREAD))
		return NULL;
	if ((u32)leader->tgid == own_tgid)
		return NULL;
	up = proc_of(parent);
	if (!up && !is_wanted(parent, leader))
		return NULL;
	is_new = enter(leader, up, exec_id_of(leader) - 1, false);
	p = proc_of_task(k);
	if (!p || !is_refused || !is_new)	/* a pass may have been faster, and has counted them */
		return p;
	p->is_cut = k->signal->sum_sched_runtime != 0;	/* threads of it have ended, uncounted */
	execs = exec_id_of(leader) - forker_exec_id_of(leader) - 1;	/* before this one */
	if (execs) {
		execs = refused_programs(leader, execs);
		refused_count(EVENT_PROG_EXEC, execs, p->user, p->user_uid);
		p->self.index = execs - 1;
		p->execed = 1;
	}
	return p;
}

/*
 * Enters a process that ends, of which no program saw the fork: all copies were skipped. One that never exec'd runs
 * what the process does that forked it; the exec of another is reported late.
 */
static __always_inline struct proc *
adopt_at_exit(const struct task *k)
{
	struct task_struct *leader = k->leader, *parent = leader->real_parent;
	struct proc *up;

	if (was_refused(leader) || (u32)leader->tgid == own_tgid)
		return NULL;
	up = proc_of(parent);
	if (!up && !is_wanted(parent, leader))
		return NULL;
	enter(leader, up, exec_id_of(leader) - !(leader->flags & PF_FORKNOEXEC), false);
	return proc_of_task(k);
}

/*
 * Counts a process of the host's agent that ends and for which there was never room. At its exit, which cannot be
 * missed: there are kernels that run no on_free for some processes, and on_stale knows only those that have an entry.
 * is_twice: more than one program may see its exit.
 */
static __always_inline void
refused_ends(const struct task *k, bool is_twice)
{
	struct task_struct *leader = k->leader;
	struct thread_key key = { (u64)leader, leader->start_boottime };
	u32 user, uid;
	u64 execs;
	u8 one = 1;

	if (!follow_all || !was_refused(leader) || leader->flags & PF_KTHREAD)
		return;
	if ((u32)leader->tgid == own_tgid || (u32)k->parent->tgid == own_tgid)	/* among them canaries, and readers */
		return;
	if (is_twice && bpf_map_update_elem(&threads_exited, &key, &one, BPF_NOEXIST) == -EEXIST)
		return;
	execs = leader->flags & PF_FORKNOEXEC ? 1 : exec_id_of(leader) - forker_exec_id_of(leader);
	user_read(&user, &uid, k->untrusted);
	refused_count(EVENT_PROG_FORK, refused_programs(leader, execs ? execs : 1), user, uid);
}

/*
 * Returns whether a child runs in the memory of the task that forks it, as by vfork. Asked where there may be no hook
 * that sees it as the child ends, see memory_keep().
 */
static __always_inline bool
runs_in(struct task_struct *parent, struct task_struct *child)
{
	struct mm_struct *mm, *of_parent;

	if (exit_has_group_dead)
		return false;
	READ_POINTER(mm, task_untrusted(child)->mm);
	READ_POINTER(of_parent, task_untrusted(parent)->mm);
	return mm && mm == of_parent;
}

/*
 * A child is followed when its parent is, whatever process becomes its parent later: a daemon that forks twice,
 * setsid(2), a subreaper or a new pid namespace change nothing. current is the forking task.
 */
static __always_inline int
fork_seen(struct task_struct *parent, struct task_struct *child)
{
	struct signal_struct *signal = child->signal;
	struct proc *up;

	/*
	 * The watchdog expired: no agent has read for long. Without a lease all programs return after a nanosecond. The
	 * agent's timers do not count a suspended host's time, so this does not either.
	 */
	if (heartbeat_ns && child->start_time > heartbeat_ns + watchdog_ns) {
		if (!quiet_since_ns)
			quiet_since_ns = child->start_boottime;
		lease = 0;
		network_lease = 0;
		return 0;
	}
	if (parent->signal == signal) {		/* a thread */
		up = proc_of(parent);
		/* live falls before a join returns; nr_threads only falls when the thread is released */
		if (up && (u32)signal->live.counter > up->threads_peak)
			up->threads_peak = signal->live.counter;
		return 0;
	}
	up = proc_of(parent);
	if (up || (is_wanted(parent, child) && !is_reader(parent, child)))
		enter(child, up, exec_id_of(child), runs_in(parent, child));
	return 0;
}

#endif
