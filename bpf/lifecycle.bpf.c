// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * Programs start, replace one another and end: fork, exec, exit, free.
 *
 * The kernel does not run a BPF program on a CPU on which the same program is under way. Up to 6.19
 * a tracepoint's programs run with preemption off, and that never happens. From 7.0 they can be
 * preempted, and all events on that CPU would be lost until the task runs again: one or two in a
 * hundred in a storm. There each program is attached three times. A copy returns at once where
 * another has been; an event that all three missed is made up for by the next hook of that process,
 * and what cannot be made up for is counted. In their bodies those copies switch preemption off, so
 * that no other shares their scratch; the task may still lose the CPU as it switches it on again.
 */
#include "environ.h"
#include "judge.h"

struct state_map final_state SEC(".maps");
struct state_map stale_state SEC(".maps");
struct fresh_map fresh_proc SEC(".maps");
struct cgroups_map cgroups_sent SEC(".maps");
struct exited_map threads_exited SEC(".maps");

extern void bpf_preempt_disable(void) __ksym __weak;
extern void bpf_preempt_enable(void) __ksym __weak;

/* A copy for kernels that can preempt it. */
#define PROGRAM_7(name, tracepoint, call, args...)	\
	SEC("tp_btf/" tracepoint)			\
	int BPF_PROG(name, args)			\
	{						\
		if (!is_my_turn())			\
			return 0;			\
		bpf_preempt_disable();			\
		call;					\
		bpf_preempt_enable();			\
		return 0;				\
	}

/* A tracepoint's program, and its three copies. */
#define PROGRAMS(name, tracepoint, call, args...)	\
	SEC("tp_btf/" tracepoint)			\
	int BPF_PROG(name, args)			\
	{						\
		return is_my_turn() ? call : 0;		\
	}						\
	PROGRAM_7(name##_7, tracepoint, call, args)	\
	PROGRAM_7(name##_7_again, tracepoint, call, args) \
	PROGRAM_7(name##_7_once_more, tracepoint, call, args)

/*
 * Sends the path of a cgroup, whose kernfs_node stands in wash[0], the first time that its id is seen.
 * A function of its own, so that the verifier sees it once. Returns whether user space has it.
 */
__noinline u32
cgroup_announce(u64 id, u32 is_v2)
{
	u64 key[2] = { id, is_v2 };
	struct scratch *s;
	u32 len;
	u8 one = 1;

	if (bpf_map_lookup_elem(&cgroups_sent, key))
		return true;
	s = scratch_get();
	if (!s)
		return false;
	len = kernfs_append(0);
	if (len & PATH_CUT)
		count_loss(EVENT_PROG_CGROUP, EVENT_LOSS_CUT);
	len &= 0x1fff;
	s->cgroup.head.version = EVENT_VERSION;
	s->cgroup.head.kind = EVENT_CGROUP;
	s->cgroup.head.time_ns = bpf_ktime_get_boot_ns();
	s->cgroup.id = id;
	s->cgroup.is_v2 = is_v2;
	s->cgroup.path_len = len;
	s->cgroup.head.size = sizeof(s->cgroup) + len;
	if (bpf_ringbuf_output(&ring, &s->cgroup, sizeof(s->cgroup) + len,
	    wake_flags(s->cgroup.head.time_ns))) {
		count_loss(EVENT_PROG_CGROUP, EVENT_LOSS_RING);
		return false;
	}
	bpf_map_update_elem(&cgroups_sent, key, &one, BPF_ANY);
	return true;
}

/* True where it had a look: scratch.text may be another now. */
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

static __always_inline void
send_stale(const struct proc *p, u64 key)
{
	struct event_state *e;
	u32 zero = 0;

	__sync_fetch_and_add(&let_go, 1);
	e = bpf_map_lookup_elem(&stale_state, &zero);
	if (!e || !p->told)
		return;
	state_fill_from_entry(e, p, key);
	if (bpf_ringbuf_output(&ring, e, sizeof(*e), wake_flags(e->head.time_ns))) {
		count_loss(EVENT_PROG_STALE, EVENT_LOSS_RING);
		__sync_fetch_and_add(&lost_records, p->execed ? 1 : 2);
	}
}

/* Is a process whose parent is not followed (or has no entry, for want of room) to be? */
static __always_inline bool
is_wanted(struct task_struct *parent, struct task_struct *child)
{
	if (adopt_tgid && (u32)parent->tgid == adopt_tgid)
		return true;
	return follow_all && !(child->flags & PF_KTHREAD) && (u32)parent->tgid != own_tgid;
}

/* Enters a process. up: its parent's entry, NULL unknown. False: not entered now. */
static __always_inline bool
enter(struct task_struct *child, const struct proc *up, u64 exec_id)
{
	u64 key = (u64)child->signal;
	struct proc *p, *old;
	u32 zero = 0;
	long error;

	p = bpf_map_lookup_elem(&fresh_proc, &zero);	/* zero but for what is set here */
	if (!p)
		return false;
	p->self.start_ns = child->start_boottime;
	p->self.pid = child->tgid;
	p->exec_id = exec_id;
	p->program_start_ns = p->self.start_ns;
	p->threads_peak = 1;
	if (up) {
		/* One that is left out is passed through: its child's parent is whoever is told above it. */
		p->parent = up->told ? up->self : up->parent;
		p->anchor = up->told && up->execed ? up->self : up->anchor;
		p->cgroup_v2 = up->cgroup_v2;
		p->cgroup_v1 = up->cgroup_v1;
		p->excluded = up->excluded;	/* till it execs it runs that program */
		p->told = !up->excluded;
		p->inside = up->inside;
		p->inside_generation = up->inside_generation;
		p->forker_start_ns = up->self.start_ns;
		p->cgroup_verdict = up->cgroup_verdict;
	} else {
		p->cgroup_v2 = p->cgroup_v1 = 0;
		p->excluded = p->inside = 0;
		p->told = 1;
		p->inside_generation = generation_now();
		p->forker_start_ns = 0;
		p->cgroup_verdict.generation = 0;
		__builtin_memset(&p->parent, 0, sizeof(p->parent));
		__builtin_memset(&p->anchor, 0, sizeof(p->anchor));
	}
	error = bpf_map_update_elem(&procs, &key, p, BPF_NOEXIST);
	if (error == -EEXIST) {
		old = bpf_map_lookup_elem(&procs, &key);
		if (old && old->self.start_ns == child->start_boottime)
			return false;	/* another copy was here */
		/* The address of one whose end we did not hear of: last chance to tell what it used. */
		if (old)
			send_stale(old, key);
		error = bpf_map_update_elem(&procs, &key, p, BPF_ANY);
	}
	if (error) {
		count_loss(EVENT_PROG_FORK, EVENT_LOSS_MAP);
		__sync_fetch_and_add(&lost_records, 2);
		return false;
	}
	__sync_fetch_and_add(&followed, 1);
	return true;
}

/*
 * A child is followed when its parent is, whoever its parent becomes later: a daemon that forks
 * twice, setsid(2), a subreaper or a new pid namespace change nothing. current is the forking task.
 */
static __always_inline int
fork_seen(struct task_struct *parent, struct task_struct *child)
{
	struct signal_struct *signal = child->signal;
	struct proc *up;

	/* Nobody has read for long: from now on nobody acts, which costs a nanosecond. */
	if (heartbeat_ns && child->start_boottime > heartbeat_ns + deadman_ns) {
		owner = 0;
		return 0;
	}
	if (parent->signal == signal) {		/* a thread */
		up = proc_of(parent);
		/* live falls before a join returns, nr_threads only when the thread is released */
		if (up && (u32)signal->live.counter > up->threads_peak)
			up->threads_peak = signal->live.counter;
		return 0;
	}
	up = proc_of(parent);
	if (up || is_wanted(parent, child))
		enter(child, up, child->self_exec_id);
	return 0;
}

PROGRAMS(on_fork, "sched_process_fork", fork_seen(parent, child),
    struct task_struct *parent, struct task_struct *child)

/*
 * A process whose fork nobody saw, though it is to be followed: its copies were all skipped, there
 * was no room for it then, or a kernel thread made it. exec_id: of the last exec before.
 */
static __always_inline struct proc *
adopt_late(struct task_struct *leader, u64 exec_id)
{
	struct task_struct *parent = leader->real_parent;
	struct proc *up;

	if (!can_be_preempted && !follow_all)
		return NULL;
	if ((u32)leader->tgid == own_tgid)
		return NULL;
	up = proc_of(parent);
	if (!up && !is_wanted(parent, leader))
		return NULL;
	enter(leader, up, exec_id);
	return proc_of(leader);
}

/* The image that an exec is about to replace still has its mm: take its peak. */
static __always_inline int
old_image(struct task_struct *t, struct mm_struct *mm)
{
	struct proc *p;
	u64 high, now;

	/* Before its first exec a child runs on its parent's memory, or on a copy of it. */
	if (t->group_leader->flags & PF_FORKNOEXEC || !mm)
		return 0;
	p = proc_of(t);
	if (!p || !p->told)
		return 0;
	high = mm->hiwater_rss;
	now = pages_resident(mm, true);
	p->old_rss = now;
	p->old_peak = high > now ? high : now;
	return 0;
}

/* From 6.10: called once the exec has a new image, with the old mm still in place. */
PROGRAMS(on_prepare_exec, "sched_prepare_exec", old_image(t, t->mm),
    struct task_struct *t, struct linux_binprm *bprm)

/* Before 6.10 the same moment has no tracepoint, but this function is called at it. */
SEC("fentry/begin_new_exec")
int BPF_PROG(on_begin_new_exec, struct linux_binprm *bprm)
{
	struct task_struct *t = (void *)bpf_get_current_task();
	struct mm_struct *mm = BPF_CORE_READ(t, mm);
	struct proc *p = proc_of_address(t);
	struct mm_struct___until_6_1 *old = (void *)mm;
	u64 high, now;

	if (!p || !p->execed || !p->told || !mm || !is_my_turn())
		return 0;
	high = BPF_CORE_READ(mm, hiwater_rss);
	if (bpf_core_field_exists(old->rss_stat.count))
		now = pages_resident(mm, true);
	else
		now = pages(BPF_CORE_READ(mm, rss_stat[0].count)) +
		    pages(BPF_CORE_READ(mm, rss_stat[1].count)) +
		    pages(BPF_CORE_READ(mm, rss_stat[3].count));
	p->old_rss = now;
	p->old_peak = high > now ? high : now;
	return 0;
}

/*
 * Copies the argument area [from, end) to scratch.text at off, page by page so that one absent page
 * costs only what follows. Returns the bytes copied, with ARGV_FAULT when one was absent.
 */
#define ARGV_FAULT 0x10000

__noinline u32
argv_append(u64 from, u64 end, u32 off)
{
	struct scratch *s = scratch_get();
	u32 copied = 0;

	if (!s)
		return ARGV_FAULT;
	for (int i = 0; i < EVENT_ARGV_MAX / 4096 + 1; i++) {
		u64 len = 4096 - (from & 4095);
		u32 at = off + copied;

		if (from >= end)
			break;
		if (len > end - from)
			len = end - from;
		asm volatile("%0 &= 0xffff" : "+r"(at));
		asm volatile("%0 &= 0x1fff" : "+r"(len));
		if (at > TEXT_MAX - 8192)
			break;
		if (bpf_probe_read_user(&s->text[at], len, (void *)from))
			return copied | ARGV_FAULT;
		copied += len;
		from += len;
	}
	return copied;
}

static __always_inline void
leader_is_dead(struct proc *p)
{
	p->dead.rchar += p->leader.rchar;
	p->dead.wchar += p->leader.wchar;
	p->dead.syscr += p->leader.syscr;
	p->dead.syscw += p->leader.syscw;
	p->dead.read_bytes += p->leader.read_bytes;
	p->dead.write_bytes += p->leader.write_bytes;
	p->dead.run_delay_ns += p->leader.run_delay_ns;
	p->dead.block_io_delay_ns += p->leader.block_io_delay_ns;
	__builtin_memset(&p->leader, 0, sizeof(p->leader));
}

/* What the program used that exec has replaced. Returns the flags that say what there is. */
static __always_inline u32
exec_replaces(struct event_exec *e, struct task_struct *t, const struct proc *p)
{
	u32 flags = EVENT_REPLACED | (p->has_block_io ? EVENT_HAS_BLOCK_IO : 0);

	counters_begin(&e->prev, t->signal, p);
	counters_add_thread(&e->prev, t);
	counters_add_io(&e->prev, t, &flags);
	e->prev.runtime_ns += counters_unaccounted(t);
	e->prev.peak_rss = p->old_peak;
	e->prev.rss = p->old_rss;
	return flags | (p->old_peak ? EVENT_HAS_PEAK : 0);
}

/* A program that is left out starts: what was told of its process ends with it. */
static __always_inline void
exec_left_out(struct scratch *s, struct task_struct *t, struct proc *p)
{
	struct event_exec *e = &s->exec;
	u32 flags = EVENT_EXECED | EVENT_EXCLUDED;
	bool is_end = p->told && (p->execed || p->met);

	__sync_fetch_and_add(&left_out, 1);
	if (is_end) {
		__builtin_memset(e, 0, __builtin_offsetof(struct event_exec, prev));
		if (p->execed)
			flags |= exec_replaces(e, t, p);
	}
	p->self.index += p->execed;
	p->execed = 1;
	p->program_start_ns = bpf_ktime_get_boot_ns();
	p->threads_peak = 1;
	p->old_peak = 0;
	p->excluded = 1;
	p->told = 0;
	if (!is_end)
		return;
	e->head.version = EVENT_VERSION;
	e->head.kind = EVENT_EXEC;
	e->head.time_ns = p->program_start_ns;
	e->head.size = sizeof(*e);
	e->self = p->self;
	e->flags = flags;
	if (bpf_ringbuf_output(&ring, e, sizeof(*e), wake_flags(e->head.time_ns))) {
		count_loss(EVENT_PROG_EXEC, EVENT_LOSS_RING);
		__sync_fetch_and_add(&lost_records, flags & EVENT_REPLACED ? 1 : 0);
	}
}

/*
 * A program starts. The old image's totals, if there is one, travel in the same record. By now
 * all other threads of an old image are gone and pid is the leader's.
 */
static __always_inline int
exec_seen(struct task_struct *t, int old_pid, u32 argc, struct proc *p)
{
	struct signal_struct *signal = t->signal;
	u64 exec_id, missed;
	struct context context = {};
	struct event_exec *e;
	struct scratch *s;
	struct mm_struct *mm;
	struct file *exe;
	struct fs_struct *fs;
	u64 arg_start, arg_end;
	u32 flags, off, len, now, act;
	const struct filter_slot *slot;
	bool is_out;

	if (!p)
		p = adopt_late(t, t->self_exec_id - 1);
	if (!p)
		return 0;
	exec_id = t->self_exec_id;
	if (exec_id == p->exec_id)	/* another copy was here */
		return 0;
	missed = exec_id - p->exec_id - 1;
	p->exec_id = exec_id;
	p->exec_maxrss = signal->maxrss;
	if (can_be_preempted && missed > 0) {
		__sync_fetch_and_add(&lost[EVENT_PROG_EXEC * EVENT_LOSS_COUNT + EVENT_LOSS_SKIPPED], missed);
		__sync_fetch_and_add(&lost_records, 2 * missed);
		p->self.index += missed - !p->execed;
		p->execed = 1;
	}
	s = scratch_get();
	if (!s)
		return 0;
	if (old_pid != t->pid)	/* the leader, whose place this thread took, is gone */
		leader_is_dead(p);
	*(volatile u32 *)&s->exe_len = PATH_NOT_WALKED;
	now = generation_now();
	slot = &filter_slots[now & (FILTER_SLOTS - 1)];
	if (slot->is_on) {
		act = rules_say(t, p, &context, s, scratch_here(), now);
		is_out = is_left_out(p, slot, act, now);
		p->inside |= (act & (FILTER_INCLUDE | FILTER_MAYBE)) != 0;
		if (is_out) {
			if (slot->dims & 1 << FILTER_DIM_CGROUP)	/* a rule may name it */
				context_announce(s, &context, p);
			exec_left_out(s, t, p);
			return 0;
		}
	}
	p->excluded = 0;
	p->told = 1;
	if (!context.mnt_ns)
		context_ids(&context, t);
	if (context_announce(s, &context, p))	/* may send a record of its own: before ours is begun */
		*(volatile u32 *)&s->exe_len = PATH_NOT_WALKED;
	e = &s->exec;
	e->head.version = EVENT_VERSION;
	e->head.kind = EVENT_EXEC;
	e->head.time_ns = bpf_ktime_get_boot_ns();
	flags = EVENT_EXECED;
	if (p->execed) {
		flags |= exec_replaces(e, t, p);
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
	e->ppid = t->real_parent->tgid;
	e->uid = context.uid;
	e->gid = context.gid;
	e->cgroup_v2 = context.cgroup_v2;
	e->cgroup_v1 = context.cgroup_v1;
	e->pid_ns = context.pid_ns;
	e->mnt_ns = context.mnt_ns;
	e->net_ns = context.net_ns;
	e->argc = argc;
	__builtin_memcpy(e->comm, t->comm, sizeof(e->comm));
	e->exe_len = e->cwd_len = e->argv_len = e->env_len = 0;

	off = 0;
	mm = t->mm;
	fs = t->fs;
	if (mm && fs) {
		exe = mm->exe_file;
		if (exe) {
			if (*(volatile u32 *)&s->exe_len == PATH_NOT_WALKED)
				path_of(s, scratch_here(), exe->f_path.dentry, exe->f_path.mnt,
				    fs->root.dentry, fs->root.mnt, off, &s->exe_len);
			len = *(volatile u32 *)&s->exe_len;
			if (len & PATH_CUT) {
				flags |= EVENT_EXE_CUT;
				count_loss(EVENT_PROG_EXEC, EVENT_LOSS_CUT);
			}
			e->exe_len = len & 0xffff;
			off += e->exe_len;
		}
		path_of(s, scratch_here(), fs->pwd.dentry, fs->pwd.mnt, fs->root.dentry, fs->root.mnt, off,
		    &s->cwd_len);
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
		len = argv_append(arg_start, arg_end, off);
		if (len & ARGV_FAULT) {
			flags |= EVENT_ARGV_CUT | EVENT_ARGV_FAULT;
			count_loss(EVENT_PROG_EXEC, EVENT_LOSS_READ);
		}
		e->argv_len = len & 0xffff;
		off += e->argv_len;
		off += environ_of(e, mm, off);
	}
	e->flags = flags;
	asm volatile("%0 &= 0xffff" : "+r"(off));
	e->head.size = sizeof(*e) + off;
	if (bpf_ringbuf_output(&ring, e, sizeof(*e) + off, wake_flags(e->head.time_ns))) {
		count_loss(EVENT_PROG_EXEC, EVENT_LOSS_RING);
		__sync_fetch_and_add(&lost_records, flags & EVENT_REPLACED ? 2 : 1);
	}
	return 0;
}

PROGRAMS(on_exec, "sched_process_exec", exec_seen(t, old_pid, bprm->argc, proc_of(t)),
    struct task_struct *t, int old_pid, struct linux_binprm *bprm)

static __always_inline void
thread_read(struct thread_sums *sums, struct task_struct *t)
{
	struct task_delay_info *d = t->delays;

	sums->rchar = t->ioac.rchar;
	sums->wchar = t->ioac.wchar;
	sums->syscr = t->ioac.syscr;
	sums->syscw = t->ioac.syscw;
	sums->read_bytes = t->ioac.read_bytes;
	sums->write_bytes = t->ioac.write_bytes;
	sums->run_delay_ns = t->sched_info.run_delay;
	sums->block_io_delay_ns = d ? d->blkio_delay : 0;
}

/* Atomic: threads exit on several CPUs at once. */
static __always_inline void
thread_add(struct thread_sums *sums, struct task_struct *t)
{
	struct thread_sums one;

	thread_read(&one, t);
	__sync_fetch_and_add(&sums->rchar, one.rchar);
	__sync_fetch_and_add(&sums->wchar, one.wchar);
	__sync_fetch_and_add(&sums->syscr, one.syscr);
	__sync_fetch_and_add(&sums->syscw, one.syscw);
	__sync_fetch_and_add(&sums->read_bytes, one.read_bytes);
	__sync_fetch_and_add(&sums->write_bytes, one.write_bytes);
	__sync_fetch_and_add(&sums->run_delay_ns, one.run_delay_ns);
	__sync_fetch_and_add(&sums->block_io_delay_ns, one.block_io_delay_ns);
}

/* All threads but the leader and t are gone, or as good as gone. */
static __always_inline void
end_sums(struct proc *p, struct task_struct *t)
{
	struct signal_struct *signal = t->signal;
	struct task_struct *leader = t->group_leader;
	u64 runtime = signal->sum_sched_runtime + leader->se.sum_exec_runtime + counters_unaccounted(t);
	u64 utime = signal->utime + leader->utime, stime = signal->stime + leader->stime;
	u64 voluntary = signal->nvcsw + leader->nvcsw, involuntary = signal->nivcsw + leader->nivcsw;
	u64 minor = signal->min_flt + leader->min_flt, major = signal->maj_flt + leader->maj_flt;

	if (t->pid != t->tgid && !t->exit_state) {	/* a worker that is not released yet */
		runtime += t->se.sum_exec_runtime;
		utime += t->utime;
		stime += t->stime;
		voluntary += t->nvcsw;
		involuntary += t->nivcsw;
		minor += t->min_flt;
		major += t->maj_flt;
	}
	p->end_runtime_ns = runtime;
	p->end_utime = utime;
	p->end_stime = stime;
	p->end_prev_utime = signal->prev_cputime.utime;
	p->end_prev_stime = signal->prev_cputime.stime;
	p->end_voluntary_switches = voluntary;
	p->end_involuntary_switches = involuntary;
	p->end_minor_faults = minor;
	p->end_major_faults = major;
	thread_read(&p->leader, leader);
	p->has_end_sums = 1;
}

/* Not if it asked for no signal, or ignores this one. */
static __always_inline bool
will_tell_parent(struct task_struct *t)
{
	return t->group_leader->exit_signal == SIGCHLD &&
	    (u64)t->real_parent->sighand->action[SIGCHLD - 1].sa.sa_handler != SIG_IGN;
}

/*
 * The parent is told that its child ended: nearly the last that the dying process does, with its
 * memory and files gone. Not every child tells.
 */
SEC("tp_btf/signal_generate")
int BPF_PROG(on_signal, int sig)
{
	struct task_struct *t;
	struct proc *p;

	if (sig != SIGCHLD || !is_my_turn())
		return 0;
	t = (void *)bpf_get_current_task_btf();
	if (!(t->flags & PF_EXITING) || t->signal->live.counter != 0)
		return 0;
	p = proc_of(t);
	if (p && p->end_ns && p->told)
		end_sums(p, t);
	return 0;
}

/*
 * A thread exits: its own I/O and delays are nowhere else once it is gone. The leader's task stays
 * until the process is freed, and files that it closes last still count: it is read then. With the
 * last thread goes the mm (from 6.16 it is still there at this hook, see on_taskstats_exit).
 */
static __always_inline int
exit_seen(struct task_struct *t, bool group_dead)
{
	struct signal_struct *signal = t->signal;
	struct proc *p = proc_of(t);
	struct mm_struct *mm;
	u64 high, now, key = (u64)t;
	bool is_last;
	u8 one = 1;

	if (exit_has_group_dead)
		is_last = group_dead;
	else			/* two last threads may both see 0: the first one tells */
		is_last = signal->live.counter == 0;
	if (!p && is_last)
		p = adopt_late(t->group_leader, t->real_parent->self_exec_id);
	if (!p)
		return 0;
	if (can_be_preempted && is_last && !p->end_ns && p->exec_id != t->self_exec_id)
		exec_seen(t, t->pid, EVENT_ARGV_MAX, p);	/* nobody saw its exec: better late */
	if (!p->told) {		/* only that it ended */
		if (is_last && !p->end_ns)
			p->end_ns = bpf_ktime_get_boot_ns();
		return 0;
	}
	if (t->delays)
		p->has_block_io = 1;
	if (t->pid != t->tgid || !is_last) {
		if (can_be_preempted && bpf_map_update_elem(&threads_exited, &key, &one, BPF_NOEXIST) == -EEXIST)
			return 0;	/* another copy was here */
		if (t->pid != t->tgid)
			thread_add(&p->dead, t);
		else		/* counts only if another thread execs and takes its place */
			thread_read(&p->leader, t);
	}
	if (!is_last)
		return 0;
	if (p->end_ns)
		return 0;
	p->end_ns = bpf_ktime_get_boot_ns();
	p->ppid = t->real_parent->tgid;
	/* how it ended is settled here, whether or not its parent will be told */
	p->end_status = status_of(signal, t->group_leader);
	p->end_oom = signal->oom_mm != NULL;
	__builtin_memcpy(p->end_comm, t->group_leader->comm, sizeof(p->end_comm));
	if (!has_on_signal || !will_tell_parent(t))
		end_sums(p, t);
	if (!p->execed) {
		struct context context = {};
		struct scratch *s = scratch_get();

		context_ids(&context, t);
		if (s)
			context_announce(s, &context, p);
		p->uid = context.uid;
		p->gid = context.gid;
		p->pid_ns = context.pid_ns;
		p->mnt_ns = context.mnt_ns;
		p->net_ns = context.net_ns;
	}
	mm = t->mm;
	if (mm) {
		/* A vfork child that never exec'd has no memory of its own. */
		if (!p->execed && t->real_parent->mm == mm) {
			p->shares_mm = 1;
			return 0;
		}
		high = mm->hiwater_rss;
		now = pages_resident(mm, true);
		p->rss = now;
		p->peak = high > now ? high : now;
		p->has_peak = 1;
	}
	return 0;
}

PROGRAMS(on_exit, "sched_process_exit", exit_seen(t, exit_has_group_dead && ctx[1] & 1),
    struct task_struct *t)

/* Before 6.16 the mm is gone at sched_process_exit; this function runs before that. */
SEC("fentry/taskstats_exit")
int BPF_PROG(on_taskstats_exit, struct task_struct *t, int group_dead)
{
	struct mm_struct *mm = t->mm;
	struct proc *p;
	u64 high, now;

	if (!group_dead || !mm || !is_my_turn())
		return 0;
	p = proc_of(t);
	if (!p || !p->told)
		return 0;
	if (!p->execed && t->real_parent->mm == mm) {
		p->shares_mm = 1;
		return 0;
	}
	high = mm->hiwater_rss;
	now = pages_resident(mm, true);
	p->rss = now;
	p->peak = high > now ? high : now;
	p->has_peak = 1;
	return 0;
}

/*
 * A process that ends without an entry, where all copies can miss an event: was it to be followed? One
 * that lived long may have had an entry that on_stale took away, and was met by a snapshot.
 */
static __always_inline void
unseen_count(struct task_struct *t)
{
	struct task_struct *parent = t->real_parent;

	if (t->start_boottime < since_ns || bpf_ktime_get_boot_ns() - t->start_boottime > STALE_NS)
		return;
	if (lost[EVENT_PROG_FORK * EVENT_LOSS_COUNT + EVENT_LOSS_MAP])	/* there was no room for it: counted */
		return;
	if (!proc_of(parent) && !is_wanted(parent, t))
		return;
	count_loss(EVENT_PROG_FORK, EVENT_LOSS_SKIPPED);
	__sync_fetch_and_add(&lost_records, 2);
}

/*
 * The kernel lets go of a process that was reaped: only now are all its counters final, and
 * equal to what wait4(2) told the parent. Runs in softirq, on top of whatever was there.
 */
SEC("tp_btf/sched_process_free")
int BPF_PROG(on_free, struct task_struct *t)
{
	struct event_state *e;
	struct proc *p;
	u64 key;
	u32 zero = 0, flags = 0;

	if (!is_my_turn())
		return 0;
	if (can_be_preempted) {
		key = (u64)t;
		bpf_map_delete_elem(&threads_exited, &key);
	}
	if (t->pid != t->tgid)		/* once a process: its leader */
		return 0;
	key = (u64)t->signal;
	p = bpf_map_lookup_elem(&procs, &key);
	if (!p) {
		if (can_be_preempted)
			unseen_count(t);
		return 0;
	}
	if (can_be_preempted && p->exec_id != t->self_exec_id) {
		count_loss(EVENT_PROG_EXEC, EVENT_LOSS_SKIPPED);
		__sync_fetch_and_add(&lost_records, 2);
	}
	if (!p->told) {
		bpf_map_delete_elem(&procs, &key);
		__sync_fetch_and_add(&let_go, 1);
		return 0;
	}
	if (!p->end_ns)
		count_loss(EVENT_PROG_EXIT, EVENT_LOSS_SKIPPED);
	/* Where no hook met the mm, signal_struct knows its peak unless one before was larger. */
	if (!p->has_peak && !p->shares_mm && t->signal->maxrss > p->exec_maxrss) {
		p->peak = t->signal->maxrss;
		p->has_peak = 1;
	}
	e = bpf_map_lookup_elem(&final_state, &zero);
	if (!e)
		return 0;
	state_fill(e, t, p);
	counters_add_io(&e->counters, t, &flags);
	e->flags |= flags;
	e->head.kind = EVENT_EXIT;
	if (bpf_ringbuf_output(&ring, e, sizeof(*e), wake_flags(e->head.time_ns))) {
		count_loss(EVENT_PROG_FREE, EVENT_LOSS_RING);
		__sync_fetch_and_add(&lost_records, e->flags & EVENT_EXECED ? 1 : 2);
	}
	bpf_map_delete_elem(&procs, &key);
	__sync_fetch_and_add(&let_go, 1);
	return 0;
}
