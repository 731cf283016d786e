/*
 * SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
 * A program starts or replaces another: the work of on_exec, and of on_exit where no program saw the exec.
 */
#ifndef SLUICE_EXEC_H
#define SLUICE_EXEC_H

#include "entry.h"
#include "environ.h"
#include "pages.h"

#define ARGV_FAULT 0x10000

/*
 * Copies the argument area [from, end) to scratch.text at off, page by page, so that one absent page costs only
 * the text after it. Returns the number of bytes copied, with ARGV_FAULT if a page was absent.
 */
u32 argv_append(u64 from, u64 end, u32 off);

/* Keeps the peak of the image that an exec is about to replace, while its mm still exists. */
static __always_inline int
old_image(struct task_struct *t)
{
	struct mm_struct *mm;
	struct proc *p;
	struct task k;
	u64 high, now;

	/* Before its first exec a child runs on its parent's memory or on a copy of it. */
	if (t->group_leader->flags & PF_FORKNOEXEC)
		return 0;
	task_read(&k, t);
	READ_POINTER(mm, k.untrusted->mm);
	if (!mm)
		return 0;
	p = proc_of_task(&k);
	if (!p || !p->reported)
		return 0;
	high = mm->hiwater_rss;
	if (!pages_resident(mm, true, &now))
		return 0;
	p->old_rss = now;
	p->old_peak = high > now ? high : now;
	return 0;
}

static __always_inline void
leader_is_dead(struct proc *p)
{
#define COUNTER_TASK(name, thread) p->dead.name += p->leader.name;
#define COUNTER_DELAY(name, thread) p->dead.name += p->leader.name;
#define COUNTER_LIFE(name) p->dead.name += p->leader.name;
#include "resources.h"
	__builtin_memset(&p->leader, 0, sizeof(p->leader));
}

/* Fills in what the program used that exec has replaced. Returns flags for what is known of it. */
static __always_inline u32
exec_replaces(struct event_exec *e, const struct task *k, const struct proc *p)
{
	u32 flags = EVENT_REPLACED | (p->has_block_io ? delay_flags() : 0) |
	    (p->has_odd_block_io ? EVENT_ODD_BLOCK_IO : 0);
	struct task_delay_info *delays;
	u64 unaccounted, sum;

	READ_POINTER(delays, k->untrusted->delays);
	counters_begin(&e->prev, k->signal, p);
	counters_add_thread(&e->prev, k->t);
	counters_add_own(&e->prev, k->t, delays, 0, &flags);
	unaccounted = counters_unaccounted(k, &sum);
	e->prev.runtime_ns = k->signal->sum_sched_runtime + sum + unaccounted;	/* no other thread is left */
	e->prev.peak_rss = p->old_peak;
	e->prev.rss = p->old_rss;
	return flags | (p->old_peak ? EVENT_HAS_PEAK : 0);
}

/* Counts an event, and the records that are missing without it. */
static __always_inline void
exec_lost(const struct proc *p, u32 records)
{
	count_loss(EVENT_PROG_EXEC, EVENT_LOSS_RING);
	__sync_fetch_and_add(&lost_records, records);
	USER_COUNT(p->user, p->user_uid, lost, 1);
}

/* Handles the start of a program that is left out: the program that was reported for its process ends. */
static __always_inline void
exec_left_out(struct scratch *s, const struct task *k, struct proc *p)
{
	struct event_exec *e = &s->exec;
	u32 flags = EVENT_EXECED | EVENT_EXCLUDED;
	bool is_end = p->reported && (p->execed || p->seen);

	__sync_fetch_and_add(&left_out, 1);
	if (is_end) {
		waits_settle(p);
		__builtin_memset(e, 0, __builtin_offsetof(struct event_exec, prev));
		flags |= exec_replaces(e, k, p);
	}
	p->self.index += p->execed;
	p->execed = 1;
	p->program_start_ns = bpf_ktime_get_boot_ns();
	p->threads_peak = 1;
	p->old_peak = 0;
	p->excluded = 1;
	p->reported = 0;
	if (!is_end)
		return;
	e->head.version = EVENT_VERSION;
	e->head.kind = EVENT_EXEC;
	e->head.time_ns = p->program_start_ns;
	e->head.size = sizeof(*e);
	e->self = p->self;
	e->flags = flags;
	if (READ_NOW(s->ring_room) == RING_NONE ||
	    bpf_ringbuf_output(&ring, e, sizeof(*e), wake_flags(e->head.time_ns))) {
		exec_lost(p, 1);
		return;
	}
	if (ring_is_scarce(p))
		ring_charge(p->user, sizeof(*e));
}

/*
 * Handles the start of a program. The totals of a replaced image are part of the same record. At this point all
 * other threads of an old image are gone and pid is the leader's.
 */
static __always_inline int
exec_seen(const struct task *k, int old_pid, u32 argc, struct proc *p, u32 table, bool has_loop)
{
	struct signal_struct *signal = k->signal;
	struct task_struct *t = k->t;
	u64 exec_id, missed;
	struct context context = {};
	struct event_exec *e;
	struct scratch *s;
	struct mm_struct *mm;
	struct file *exe;
	struct fs_struct *fs;
	u64 arg_start, arg_end;
	u32 flags, off, len, now, act, is_judged, has_end;
	const struct filter_slot *slot;
	bool is_out;

	exec_id = exec_id_of(t);
	if (exec_id == p->exec_id)	/* another copy was first */
		return 0;
	missed = exec_id - p->exec_id - 1;
	p->exec_id = exec_id;
	p->exec_maxrss = signal->maxrss;
	if (can_be_preempted && missed > 0) {
		__sync_fetch_and_add(&lost[EVENT_PROG_EXEC][EVENT_LOSS_SKIPPED], missed);
		__sync_fetch_and_add(&lost_records, 2 * missed);
		p->self.index += missed - !p->execed;
		p->execed = 1;
	}
	s = scratch_get();
	if (!s)
		return 0;
	if (old_pid != t->pid)	/* this thread took over from the leader, which is gone */
		leader_is_dead(p);
	*(volatile u32 *)&s->exe_len = PATH_NOT_WALKED;
	user_follow(p, k->untrusted);
	/* In memory, as other results: the verifier does not follow each of its values by itself. */
	*(volatile u32 *)&s->ring_room = ring_is_scarce(p) ? ring_room_of(p->user) : RING_ALL;
	now = generation_now();
	slot = &filter_slots[now & (FILTER_SLOTS - 1)];
	p->kept |= is_listed(p->self.pid);
	is_judged = slot->is_on & (p->kept ^ 1);	/* both are 0 or 1: one branch for the verifier to follow */
	barrier_var(is_judged);
	if (is_judged) {
		act = judge_rules(k, p, &context, s, scratch_here(), now, has_loop);
		is_out = is_left_out(p, slot, act, now);
		p->inside |= (act & (FILTER_INCLUDE | FILTER_MAYBE)) != 0;
		if (is_out) {
			if (slot->dims & 1 << FILTER_DIM_CGROUP)	/* a rule may name it */
				context_announce(s, &context, p);
			exec_left_out(s, k, p);
			return 0;
		}
	}
	p->excluded = 0;
	p->reported = 1;
	if (!context.mnt_ns)
		context_ids(&context, k);
	if (READ_NOW(s->ring_room) < RING_ENDS &&
	    context_announce(s, &context, p))	/* may send a record of its own, so it runs before ours is begun */
		*(volatile u32 *)&s->exe_len = PATH_NOT_WALKED;
	e = &s->exec;
	e->head.version = EVENT_VERSION;
	e->head.kind = EVENT_EXEC;
	e->head.time_ns = bpf_ktime_get_boot_ns();
	flags = EVENT_EXECED | context.elevated;
	if (p->execed) {
		waits_settle(p);
		flags |= exec_replaces(e, k, p);
		p->self.index++;
		p->program_start_ns = e->head.time_ns;
		p->threads_peak = 1;
	} else {
		p->execed = 1;
	}
	p->old_peak = 0;
	e->self = p->self;
	e->parent = p->parent;
	e->anchor = p->anchor;
	e->ppid = k->parent->tgid;
	e->uid = context.uid;
	e->gid = context.gid;
	e->cgroup_v2 = context.cgroup_v2;
	e->cgroup_v1 = context.cgroup_v1;
	e->pid_ns = context.pid_ns;
	e->mnt_ns = context.mnt_ns;
	e->net_ns = context.net_ns;
	e->user_uid = p->user_uid;
	e->argc = argc;
	__builtin_memcpy(e->comm, t->comm, sizeof(e->comm));
	e->exe_len = e->cwd_len = e->argv_len = e->env_len = 0;

	off = 0;
	mm = k->mm;
	READ_POINTER(fs, k->untrusted->fs);
	if (READ_NOW(s->ring_room) >= RING_ENDS) {	/* only what was replaced is of interest */
		if (flags & EVENT_REPLACED && READ_NOW(s->ring_room) == RING_ENDS) {
			count_loss(EVENT_PROG_EXEC, EVENT_LOSS_CUT);
			USER_COUNT(p->user, p->user_uid, cut, 1);
		}
		flags |= EVENT_EXE_CUT | EVENT_CWD_CUT | EVENT_ARGV_CUT;
	} else if (mm && fs) {
		exe = mm->exe_file;
		if (exe) {
			flags |= is_exe_of_root(exe, &context) * EVENT_EXE_OF_ROOT;
			if (*(volatile u32 *)&s->exe_len == PATH_NOT_WALKED)
				path_of(s, scratch_here(), exe->f_path.dentry, exe->f_path.mnt,
				    fs->root.dentry, fs->root.mnt, off, &s->exe_len, has_loop);
			len = *(volatile u32 *)&s->exe_len;
			if (len & PATH_CUT) {
				flags |= EVENT_EXE_CUT;
				count_loss(EVENT_PROG_EXEC, EVENT_LOSS_CUT);
			}
			e->exe_len = len & 0xffff;
			off += e->exe_len;
		}
		path_of(s, scratch_here(), fs->pwd.dentry, fs->pwd.mnt, fs->root.dentry, fs->root.mnt, off,
		    &s->cwd_len, has_loop);
		len = *(volatile u32 *)&s->cwd_len;
		if (len & PATH_CUT) {
			flags |= EVENT_CWD_CUT;
			count_loss(EVENT_PROG_EXEC, EVENT_LOSS_CUT);
		}
		e->cwd_len = len & 0xffff;
		off += e->cwd_len;
		arg_start = mm->arg_start;
		arg_end = mm->arg_end;
		if (arg_end - arg_start > EVENT_ARGV_MAX) {
			arg_end = arg_start + EVENT_ARGV_MAX;
			flags |= EVENT_ARGV_CUT;
		}
		if (arg_end - arg_start > ARGV_SHORT && READ_NOW(s->ring_room) == RING_SHORT) {
			arg_end = arg_start + ARGV_SHORT;
			flags |= EVENT_ARGV_CUT;
			count_loss(EVENT_PROG_EXEC, EVENT_LOSS_CUT);
			USER_COUNT(p->user, p->user_uid, cut, 1);
		}
		len = argv_append(arg_start, arg_end, off);
		if (len & ARGV_FAULT) {
			flags |= EVENT_ARGV_CUT | EVENT_ARGV_FAULT;
			count_loss(EVENT_PROG_EXEC, EVENT_LOSS_READ);
		}
		e->argv_len = len & 0xffff;
		off += e->argv_len;
		off += environ_of(e, mm, table, off, has_loop);
	}
	e->flags = flags;
	asm volatile("%0 &= 0xffff" : "+r"(off));
	e->head.size = sizeof(*e) + off;
	/* from memory: a verifier that knows the flags here follows each of their combinations by itself */
	has_end = (READ_NOW(e->flags) & EVENT_REPLACED) != 0;
	if (READ_NOW(s->ring_room) >= (has_end ? RING_NONE : RING_ENDS) ||
	    bpf_ringbuf_output(&ring, e, sizeof(*e) + off, wake_flags(e->head.time_ns)))
		exec_lost(p, has_end ? 2 : 1);
	else if (ring_is_scarce(p))
		ring_charge(p->user, sizeof(*e) + off);
	return 0;
}

/* Does the same for the task that a tracepoint names. */
static __always_inline int
exec_of(struct task_struct *t, int old_pid, u32 argc, bool has_loop)
{
	u32 table = READ_NOW(environ_table);	/* seldom in a cache: fetched while the entry is looked up */
	struct proc *p;
	struct task k;

	task_read(&k, t);
	p = proc_of_task(&k);
	if (!p)
		p = adopt_at_exec(&k);
	if (!p)
		return 0;
	task_follow(&k);
	return exec_seen(&k, old_pid, argc, p, table, has_loop);
}

#endif
