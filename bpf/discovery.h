/*
 * SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
 * Follows processes that run already, and judges again those that are followed.
 */
#ifndef SLUICE_DISCOVERY_H
#define SLUICE_DISCOVERY_H

#include "pass.h"
#include "share.h"

#define ABOVE_MAX 8		/* nested programs that are left out, after which the search for a parent stops */

struct found_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct proc);
};
struct found_map found_proc SEC(".maps");

/*
 * Returns how many programs a process ran, before the present one, while there was no room for it. Of one that is older
 * than the probes, and of a child that runs its parent's program, there are none.
 */
static __always_inline u64
refused_before(const struct task_struct *leader)
{
	if (!follow_all || !was_refused(leader) || leader->start_boottime < since_ns || leader->flags & PF_FORKNOEXEC)
		return 0;
	return exec_id_of(leader) - forker_exec_id_of(leader) - 1;
}

/*
 * Returns true of a process that is among all others already, but that its parent has not yet reported at
 * sched_process_fork, after which it is woken for the first time.
 */
static __always_inline bool
is_being_forked(const struct task_struct *t)
{
	return task_state(t) & TASK_NEW;
}

/* Follows a process that runs already. Its totals so far are the base of its usage. */
static __always_inline struct proc *
enter_found(const struct task *k)
{
	struct task_struct *t = k->t;
	struct proc_key key = { (u64)k->signal, t->start_boottime };
	u32 zero = 0;
	u64 refused_before_it;
	struct proc *p;
	long error;

	/* A process whose last thread has begun to exit may be past on_exit, and would never be reported as ended. */
	if (t->flags & PF_KTHREAD || k->signal->live.counter == 0 || (u32)t->tgid == own_tgid)
		return NULL;
	/*
	 * A child is entered at its fork, where that is still to be seen: it runs no program of its own. After a gap
	 * that fork may have been in it, and there is only this pass.
	 */
	if (!quiet_since_ns && t->start_boottime >= since_ns && is_being_forked(t))
		return NULL;
	if (follow_all && (u32)k->parent->tgid == own_tgid)	/* as is_wanted(): a canary that found no room */
		return NULL;
	p = bpf_map_lookup_elem(&found_proc, &zero);	/* zero but for the members set here */
	if (!p)
		return NULL;
	p->self.start_ns = t->start_boottime;
	p->self.pid = t->tgid;
	refused_before_it = refused_before(t);
	p->self.index = refused_before_it;
	p->exec_id = exec_id_of(t);
	p->program_start_ns = t->start_boottime;
	p->execed = 1;
	p->threads_peak = k->signal->live.counter;
	p->excluded = EXCLUDED_PENDING;	/* until it is judged */
	p->inside_generation = generation_now() - 1;
	/* A parent with a higher pid has no entry yet (pids wrap around), so this is read from its task. */
	p->forker_start_ns = k->parent->group_leader->start_boottime;
	p->user = p->user_uid = 0;
	if (follow_all)
		user_read(&p->user, &p->user_uid, k->untrusted);
	error = entry_make(&key, p);
	if (!error) {
		if (refused_before_it)
			refused_count(EVENT_PROG_EXEC, refused_before_it, p->user, p->user_uid);
	} else if (error != -EEXIST)	/* on_fork was faster */
		refuse(t, p->user);
	p = proc_of_task(k);
	if (p && k->signal->live.counter == 0)	/* by now: on_exit may have been before the entry */
		p->zombie_ns = bpf_ktime_get_boot_ns();
	return p;
}

/*
 * Continues the entry of a process after a time in which no load had the lease. If it exec'd meanwhile, it now runs a
 * program that is to be discovered; if it ended, it is a zombie.
 */
static __always_inline void
entry_retake(const struct task *k, struct proc *p)
{
	u64 exec_id = exec_id_of(k->t);

	p->swept_ns = stale_sweep_ns;
	/* The last: all threads of which one was seen may have begun and ended meanwhile. */
	if (p->threads_peak > 1 || k->signal->nr_threads > 1 || k->signal->sum_sched_runtime)
		p->is_cut = 1;
	if (k->signal->live.counter == 0 && !p->end_ns)
		p->end_ns = bpf_ktime_get_boot_ns();
	if (exec_id == p->exec_id)
		return;
	p->self.index += exec_id - p->exec_id;
	p->exec_id = exec_id;
	p->exec_maxrss = k->signal->maxrss;
	p->execed = 1;
	p->reported = 0;
	p->excluded = 1;		/* until it is judged */
	p->inside_generation = generation_now() - 1;
}

/* Returns the entry of the process that forked it, while that lives and therefore is its parent. */
static __always_inline struct proc *
forker_of(struct task_struct *parent, const struct proc *p)
{
	struct proc *up = proc_of(parent);

	return up && up->self.start_ns == p->forker_start_ns ? up : NULL;
}

/*
 * Judges a program that runs already by the rules of generation now. Here and below, what the task points to is read
 * again right before it is used, since a task that runs on another CPU may free it.
 */
static __always_inline u32
judge_running(struct task *k, struct proc *p, const struct filter_slot *slot, u32 now, bool has_loop)
{
	u32 at = ncpu;
	struct context c = {};
	struct scratch *s;

	if (!slot->is_on)
		return FILTER_MAYBE;
	s = bpf_map_lookup_elem(&scratches, &at);
	if (!s)
		return FILTER_MAYBE;
	task_follow(k);
	return judge_rules(k, p, &c, s, at, now, has_loop);
}

/*
 * Decides whether a process descends from an included program, by the rules of now. A child may be seen before
 * its parent, so user space repeats the pass until nothing changes. A process whose forker is gone keeps its
 * state.
 */
static __always_inline void
judge_inside(struct task *k, struct proc *p, bool has_loop)
{
	u32 now = generation_now();
	const struct filter_slot *slot = &filter_slots[now & (FILTER_SLOTS - 1)];
	bool is_judged = p->inside_generation == now, is_inside;
	struct proc *up = forker_of(k->parent, p);

	if (is_judged && p->inside)
		return;
	is_inside = up ? up->inside && up->inside_generation == now : !is_judged && p->inside;
	if (!is_judged && judge_running(k, p, slot, now, has_loop) & (FILTER_INCLUDE | FILTER_MAYBE))
		is_inside = true;
	if (is_judged && !is_inside)
		return;
	p->inside = is_inside;
	p->inside_generation = now;
	snapshot_changes++;
}

/*
 * Sets the parent of p to the nearest process above that is reported, or will be when this pass sees it, which
 * may be later.
 */
static __always_inline void
above_of(const struct task *k, struct proc *p)
{
	const struct proc *of = p, *up;
	struct task_struct *parent;

	READ_POINTER(parent, k->parent);	/* not by the instruction that reads the next ones, from tasks */
	for (int i = 0; i < ABOVE_MAX; i++) {
		up = forker_of(parent, of);
		if (!up)
			break;
		if (up->reported || up->excluded == EXCLUDED_PENDING) {
			p->parent = up->self;
			p->anchor = !up->reported || up->execed ? up->self : up->anchor;
			break;
		}
		p->parent = up->parent;
		p->anchor = up->anchor;
		parent = parent->real_parent;
		of = up;
	}
}

/*
 * Returns true if the process was not reported before and is from now on. If the iterator's buffer had no room for it,
 * the kernel calls again, and it is still new in that pass.
 */
static __always_inline bool
judge_anew(struct task *k, struct proc *p, bool has_loop)
{
	u32 now = generation_now();
	const struct filter_slot *slot = &filter_slots[now & (FILTER_SLOTS - 1)];
	bool is_mark = snapshot_judge == FILTER_JUDGE_ENTERED;

	if (p->end_ns || !k->mm || k->signal->live.counter == 0)	/* too late to report it */
		return false;
	if (is_mark && p->reported)
		return false;
	if (p->reported && !p->excluded && p->swept_ns == stale_sweep_ns)
		return true;
	p->excluded = slot->is_on && !p->kept &&
	    is_left_out(p, slot, judge_running(k, p, slot, now, has_loop), now);
	if (p->excluded || p->reported)
		return false;
	if (is_mark) {
		p->excluded = EXCLUDED_PENDING;
		return false;
	}
	p->reported = 1;
	p->swept_ns = stale_sweep_ns;
	p->execed = 1;		/* a child that runs its parent's program counts as a program of its own now */
	above_of(k, p);
	return true;
}

/* Walks a path of a task, given as an address, and appends it to the iterator's scratch. Returns as path_append(). */
static __always_inline u32
found_path(struct scratch *s, const struct path *path, const struct path *root, u32 off, bool has_loop)
{
	volatile u64 *wash = s->wash;

	wash[0] = (u64)BPF_CORE_READ(path, dentry);
	wash[1] = (u64)BPF_CORE_READ(path, mnt);
	wash[2] = (u64)BPF_CORE_READ(root, dentry);
	wash[3] = (u64)BPF_CORE_READ(root, mnt);
	s->n_names = 0;
	return has_loop ? path_append(ncpu, off) : path_append_until_5_16(ncpu, off);
}

/*
 * Sets the paths of a discovered process, as its exec would have reported them: user space may not be allowed to read
 * them. task is its address.
 */
static __always_inline void
found_paths(u64 task, bool has_loop)
{
	struct task_struct *t = (void *)task;
	struct mm_struct *mm = BPF_CORE_READ(t, mm);
	struct fs_struct *fs = BPF_CORE_READ(t, fs);
	struct file *exe = BPF_CORE_READ(mm, exe_file);
	u32 at = ncpu, zero = 0, exe_len = 0, cwd_len;
	struct event_found *f = bpf_map_lookup_elem(&snapshot_state, &zero);
	struct scratch *s = bpf_map_lookup_elem(&scratches, &at);

	if (!f)
		return;
	f->exe_len = f->cwd_len = 0;
	f->state.flags |= EVENT_CWD_CUT;
	if (!s || !fs)
		return;
	if (exe) {
		if (!BPF_CORE_READ(exe, f_inode, i_uid.val) && !BPF_CORE_READ(t, real_cred, user_ns, level) &&
		    !(BPF_CORE_READ(exe, f_path.mnt, mnt_flags) & MNT_NOSUID))
			f->state.flags |= EVENT_EXE_OF_ROOT;
		exe_len = found_path(s, &exe->f_path, &fs->root, 0, has_loop);
		if (exe_len & PATH_CUT)
			f->state.flags |= EVENT_EXE_CUT;
		exe_len &= 0x1fff;
	}
	cwd_len = found_path(s, &fs->pwd, &fs->root, exe_len, has_loop);
	if (!(cwd_len & PATH_CUT))
		f->state.flags &= ~EVENT_CWD_CUT;
	f->exe_len = exe_len;
	f->cwd_len = cwd_len & 0x1fff;
}

__noinline int
found_paths_of(u64 task)
{
	found_paths(task, true);
	return 0;
}

__noinline int
found_paths_until_5_16(u64 task)
{
	found_paths(task, false);
	return 0;
}

#endif
