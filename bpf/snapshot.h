/*
 * SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
 * Reads every process at once, like a file: iter/task costs a sixteenth of /proc. These programs are in the object of
 * lifecycle.bpf.c, because the linker of libbpf 1.1 refuses two objects that call the same kernel function.
 */
#ifndef SLUICE_SNAPSHOT_H
#define SLUICE_SNAPSHOT_H

#include "judge.h"
#include "pages.h"
#include "share.h"

/* Threads that are walked for one process; more set EVENT_THREADS_CUT. */
#define THREADS_MAX 65536
#define THREADS_MAX_UNTIL_5_16 512

#define TORN_MAX 16		/* times that a process is read again because one of its threads is being released */
#define STALE_MAX 64		/* ended processes that one call of on_stale finds */
#define ABOVE_MAX 8		/* nested programs that are left out, after which the search for a parent stops */

struct snapshot_map {		/* one reader at a time: ours */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct event_found);	/* of most, only the state */
};
struct found_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct proc);
};
struct snapshot_map snapshot_state SEC(".maps");
struct found_map found_proc SEC(".maps");

u32 snapshot_all = 0;		/* also write the processes that are not followed */
u32 snapshot_enter = 0;		/* follow those from now on, instead */
u32 snapshot_judge = FILTER_JUDGE_NOT;	/* enum filter_judging */
u32 snapshot_changes = 0;	/* FILTER_JUDGE_INSIDE: processes whose state it has changed */
u32 snapshot_left_out = 0;	/* processes that it saw and did not write */
u32 snapshot_torn = 0;		/* times that the present process was read in vain, see is_torn() */

u64 stale_sweep_ns = 0;		/* CLOCK_BOOTTIME when the sweep, or the pass that judges, began: its number */
u32 stale_n = 0;		/* of stale_found, which are filled in */
struct event_state stale_found[STALE_MAX] = {};

/*
 * Adds one of several threads, reached by list: an untyped address, read through helpers. It is a separate
 * function, so that the verifier checks it once and not in each iteration of the walk.
 */
__noinline int
add_thread(u64 task)
{
	struct task_struct *t = (void *)task;
	struct task_delay_info *d;
	struct event_counters *c;
	struct event_state *e;
	u32 zero = 0;

	e = bpf_map_lookup_elem(&snapshot_state, &zero);
	if (!e)
		return 1;
	c = &e->counters;
#define COUNTER_SIGNAL(name, thread, gone) c->name += BPF_CORE_READ(t, thread);
#include "resources.h"
	if (BPF_CORE_READ(t, flags) & PF_EXITING && BPF_CORE_READ(t, pid) != BPF_CORE_READ(t, tgid))
		return 0;	/* on_exit has added the rest, or will */
#define COUNTER_TASK(name, thread) c->name += BPF_CORE_READ(t, thread);
#include "resources.h"
	d = BPF_CORE_READ(t, delays);
	if (d) {
#define COUNTER_DELAY(name, thread) c->name += BPF_CORE_READ(d, thread);
#include "resources.h"
		e->flags |= EVENT_HAS_BLOCK_IO;
	}
	return 0;
}

/* The walk from one thread to the next; addresses are numbers. */
struct walk {
	u64 head;
	u64 node;
	u64 is_done;
};

static __always_inline bool
walk_step(struct walk *w)
{
	struct list_head *node = (void *)w->node;	/* a local variable: CO-RE would relocate our own struct */

	if (!node || (u64)node == w->head) {
		w->is_done = 1;
		return false;
	}
	add_thread((u64)node - bpf_core_field_offset(struct task_struct, thread_node));
	w->node = (u64)BPF_CORE_READ(node, next);
	return true;
}

static long
on_thread(u32 index, void *ctx)
{
	return walk_step(ctx) ? 0 : 1;
}

/* Walks the threads before 5.17, where there is no bpf_loop(). */
__noinline int
add_threads_until_5_16(u64 head)
{
	struct walk w = { .head = head };

	w.node = (u64)BPF_CORE_READ((struct list_head *)head, next);
	for (int i = 0; i < THREADS_MAX_UNTIL_5_16 && walk_step(&w); i++)
		;
	return !w.is_done;
}

/*
 * Returns how many programs a process ran, before the present one, while there was no room for it. Of one that is older
 * than the probes, and of a child that runs its parent's program, there are none.
 */
static __always_inline u64
refused_before(const struct task_struct *leader)
{
	if (!follow_all || !was_refused(leader) || leader->start_boottime < since_ns || leader->flags & PF_FORKNOEXEC)
		return 0;
	return leader->self_exec_id - leader->parent_exec_id - 1;
}

/*
 * Returns true of a process that is among all others already, but that its parent has not yet reported at
 * sched_process_fork, after which it is woken for the first time.
 */
static __always_inline bool
is_being_forked(const struct task_struct *t)
{
	const struct task_struct___from_5_14 *now = (const void *)t;
	const struct task_struct___until_5_13 *old = (const void *)t;

	return (bpf_core_field_exists(now->__state) ? now->__state : (u32)old->state) & TASK_NEW;
}

/* Follows a process that runs already. Its totals so far are the base of its usage. */
static __always_inline struct proc *
enter_found(const struct task *k)
{
	struct task_struct *t = k->t;
	struct proc_key key = { (u64)k->signal, t->start_boottime };
	u32 zero = 0;
	u64 refused_programs;
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
	refused_programs = refused_before(t);
	p->self.index = refused_programs;
	p->exec_id = t->self_exec_id;
	p->program_start_ns = t->start_boottime;
	p->execed = 1;
	p->threads_peak = k->signal->live.counter;
	p->excluded = EXCLUDED_PENDING;	/* until it is judged */
	p->inside_generation = generation_now() - 1;
	/* A parent with a higher pid has no entry yet (pids wrap around), so this is read from its task. */
	p->forker_start_ns = k->parent->group_leader->start_boottime;
	p->user = 0;
	if (follow_all)
		user_read(&p->user, &p->user_uid, k->untrusted);
	error = entry_make(&key, p);
	if (!error) {
		if (refused_programs) {
			count_loss(EVENT_PROG_EXEC, EVENT_LOSS_MAP);
			__sync_fetch_and_add(&lost_records, 2 * refused_programs);
			USER_COUNT(p->user, p->user_uid, refused, refused_programs);
		}
	} else if (error != -EEXIST)	/* on_fork was faster */
		refuse(t, p->user);
	return proc_of_task(k);
}

/*
 * Continues the entry of a process after a time in which no load had the lease. If it exec'd meanwhile, it now runs a
 * program that is to be discovered; if it ended, it is a zombie.
 */
static __always_inline void
entry_retake(const struct task *k, struct proc *p)
{
	u64 exec_id = k->t->self_exec_id;

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

	if (p->end_ns || !k->mm)	/* too late to report it */
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

		context_ids(&c, k);
		e->flags &= ~EVENT_NO_CREDENTIALS;
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

static __always_inline void
add_only_thread(struct event_state *e, const struct task *k)
{
	struct task_delay_info *delays;
	u32 flags = 0;

	READ_POINTER(delays, k->untrusted->delays);
	counters_add_thread(&e->counters, k->t);
	counters_add_own(&e->counters, k->t, delays, &flags);
	e->flags |= flags;
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
		if (!BPF_CORE_READ(exe, f_inode, i_uid.val) && !BPF_CORE_READ(t, cred, user_ns, level))
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
 * A thread that is released, also the last one, leaves its counters to signal_struct, and is removed from the list
 * then: a pass that reads both meanwhile has them twice, or not at all. The kernel has a sequence lock for its own
 * readers. Its number is odd while a thread is being released, and another one afterwards.
 */
static __always_inline u32
sums_sequence(const struct task *k)
{
	u32 sequence = READ_NOW(k->signal->stats_lock.seqcount.seqcount.sequence);

	barrier();
	return sequence;
}

/* Returns true if the sums have changed, or are changing, since sums_sequence() returned sequence. */
static __always_inline bool
is_torn(const struct task *k, u32 sequence)
{
	barrier();
	return sequence & 1 || READ_NOW(k->signal->stats_lock.seqcount.seqcount.sequence) != sequence;
}

/*
 * Writes the record; sequence is that of before its counters were read. Returns 1 if the kernel shall call again with
 * the same process: a hypervisor may have taken away the CPU that releases the thread, so it is not waited for.
 */
static __always_inline int
process_write(struct bpf_iter__task *ctx, struct event_state *e, const struct task *k, const struct proc *p,
    u32 sequence, bool has_loop)
{
	struct mm_struct *mm;
	u64 high, now;

	if (!is_torn(k, sequence)) {
		snapshot_torn = 0;
	} else if (snapshot_torn++ < TORN_MAX) {
		return 1;
	} else {
		snapshot_torn = 0;
		if (e->head.kind != EVENT_DISCOVERED)	/* the next pass sees it again */
			return 0;
	}
	READ_POINTER(mm, k->untrusted->mm);
	if (mm && (p->execed || k->parent->mm != mm)) {
		high = mm->hiwater_rss;
		pages_resident(mm, false, &now);
		e->counters.rss = now;
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

	if (!t || t->pid != t->tgid)
		return 0;
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

	if (!t || t->pid != t->tgid)
		return 0;
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

/*
 * Returns whether a process that the pass of a retake did not see has ended without that its end was seen before the
 * retake. After the second pass that are those that the first one had seen: entries that were made since may be of
 * processes that the pass was too early for.
 */
static __always_inline bool
is_gone_unseen(const struct proc *p)
{
	if (p->swept_ns == stale_sweep_ns || (p->end_ns && p->end_ns < retake_ns))
		return false;
	return snapshot_judge == FILTER_JUDGE_RETAKE || p->swept_ns == retake_ns;
}

/*
 * Of processes that ended more than stale_ns ago, have not been zombies since, and still have an entry: user space
 * removes them. Younger ones have no key: on_free may still run, so user space must not remove them.
 *
 * Returns whether the end of the process is to be reported; an entry without a report is removed here once it is stale.
 */
static __always_inline bool
sweep_entry(const struct proc_key *key, const struct proc *p, bool *ret_is_young)
{
	struct proc_key gone = *key;
	u64 last_ns = p->zombie_ns > p->end_ns ? p->zombie_ns : p->end_ns;

	if (snapshot_judge == FILTER_JUDGE_RETAKE || snapshot_judge == FILTER_JUDGE_RETAKEN) {
		if (is_gone_unseen(p))
			entry_remove(&gone, p);
		return false;
	}
	if (!p->end_ns)
		return false;
	*ret_is_young = bpf_ktime_get_boot_ns() - last_ns < stale_ns;
	if (p->reported)
		return true;
	if (!*ret_is_young)
		entry_remove(&gone, p);
	return false;
}

static long
on_stale_entry(struct bpf_map *map, const struct proc_key *key, struct proc *p, void *ctx)
{
	u32 n = stale_n;
	bool is_young;

	if (p->swept_ns == stale_sweep_ns || !sweep_entry(key, p, &is_young))
		return 0;
	if (n >= STALE_MAX)
		return 1;
	p->swept_ns = stale_sweep_ns;
	state_fill_from_entry(&stale_found[n], p, is_young ? 0 : key->signal);
	stale_n = n + 1;
	return 0;
}

/*
 * Fills stale_found; user space calls again until it is no longer full, with the same stale_sweep_ns. It does not use
 * an iterator over the map, since there are kernels that allow only those iterators that cannot write.
 */
SEC("syscall")
int on_stale(void *ctx)
{
	stale_n = 0;
	bpf_for_each_map_elem(&procs, on_stale_entry, NULL, 0);
	return 0;
}

/* Writes the same as a file before 5.14, where programs cannot walk a map when user space calls them. */
SEC("iter/bpf_map_elem")
int on_stale_until_5_13(struct bpf_iter__bpf_map_elem *ctx)
{
	struct proc *p = ctx->value;
	struct proc_key *key = ctx->key;
	struct event_state *e;
	bool is_young;
	u32 zero = 0;

	if (!p || !key || !sweep_entry(key, p, &is_young))
		return 0;
	e = bpf_map_lookup_elem(&snapshot_state, &zero);
	if (!e)
		return 0;
	state_fill_from_entry(e, p, is_young ? 0 : key->signal);
	bpf_seq_write(ctx->meta->seq, e, sizeof(*e));
	return 0;
}

#endif
