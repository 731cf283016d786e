// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/* Every process at once, read like a file: iter/task costs a sixteenth of /proc. */
#include "judge.h"

/* Threads walked for one process; more set EVENT_THREADS_CUT. */
#define THREADS_MAX 65536
#define THREADS_MAX_UNTIL_5_16 512

#define ABOVE_MAX 8		/* who is left out, one above the other, till nobody looks further */

struct snapshot_map {		/* one reader at a time: ours */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct event_state);
};
struct found_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct proc);
};
struct snapshot_map snapshot_state SEC(".maps");
struct found_map found_proc SEC(".maps");

u32 snapshot_all = 0;		/* also name the processes that are not followed */
u32 snapshot_enter = 0;		/* follow those from now on, instead */
u32 snapshot_judge = FILTER_JUDGE_NOT;	/* enum filter_judging */
u32 snapshot_changes = 0;	/* FILTER_JUDGE_INSIDE: processes of which it has found something new */
u32 snapshot_left_out = 0;	/* processes that it met and did not write */

/*
 * One of several threads, reached by list: an address without a type, read through helpers. A
 * function of its own, so that the verifier sees it once and not once a turn of the walk.
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
		return 0;	/* on_exit has or will have added the rest */
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

/* The walk from one thread to the next; addresses as numbers. */
struct walk {
	u64 head;
	u64 node;
	u64 is_done;
};

static __always_inline bool
walk_step(struct walk *w)
{
	struct list_head *node = (void *)w->node;	/* a local: CO-RE would relocate our own struct */

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

/* Before 5.17 there is no bpf_loop(). */
__noinline int
add_threads_until_5_16(u64 head)
{
	struct walk w = { .head = head };

	w.node = (u64)BPF_CORE_READ((struct list_head *)head, next);
	for (int i = 0; i < THREADS_MAX_UNTIL_5_16 && walk_step(&w); i++)
		;
	return !w.is_done;
}

/* Follows a process that runs already. Its totals so far are the base of what it will have used. */
static __always_inline struct proc *
enter_found(struct task_struct *t)
{
	struct proc_key key = proc_key_of(t);
	u32 zero = 0;
	struct proc *p;
	long error;

	/* Whose last thread has begun to exit may be past on_exit: it would never be told as ended. */
	if (t->flags & PF_KTHREAD || t->signal->live.counter == 0 || (u32)t->tgid == own_tgid)
		return NULL;
	p = bpf_map_lookup_elem(&found_proc, &zero);	/* zero but for what is set here */
	if (!p)
		return NULL;
	p->self.start_ns = t->start_boottime;
	p->self.pid = t->tgid;
	p->exec_id = t->self_exec_id;
	p->program_start_ns = t->start_boottime;
	p->execed = 1;
	p->threads_peak = t->signal->live.counter;
	p->excluded = 1;		/* till it is judged */
	p->inside_generation = generation_now() - 1;
	/* Of one with a higher pid too, which is not entered yet: pids come round. */
	p->forker_start_ns = t->real_parent->group_leader->start_boottime;
	error = bpf_map_update_elem(&procs, &key, p, BPF_NOEXIST);
	if (!error)
		__sync_fetch_and_add(&followed, 1);
	else if (error != -EEXIST)	/* on_fork was faster */
		count_loss(EVENT_PROG_ITER, EVENT_LOSS_MAP);
	return proc_of(t);
}

/* Who forked it, while that lives. */
static __always_inline struct proc *
forker_of(struct task_struct *t, const struct proc *p)
{
	struct proc *up = proc_of(t->real_parent);

	return up && up->self.start_ns == p->forker_start_ns ? up : NULL;
}

/* What the rules of generation now say of a program that runs already. */
static __always_inline u32
running_say(struct task_struct *t, struct proc *p, const struct filter_slot *slot, u32 now)
{
	u32 at = ncpu;
	struct context c = {};
	struct scratch *s;

	if (!slot->is_on)
		return FILTER_MAYBE;
	s = bpf_map_lookup_elem(&scratches, &at);
	if (!s)
		return FILTER_MAYBE;
	return rules_say(t, p, &c, s, at, now);
}

/*
 * Does it descend from an included program, by the rules of now? A child may be met before its
 * parent: user space goes over all until nothing changes. Whose forker is gone keeps what it had.
 */
static __always_inline void
judge_inside(struct task_struct *t, struct proc *p)
{
	u32 now = generation_now();
	const struct filter_slot *slot = &filter_slots[now & (FILTER_SLOTS - 1)];
	bool is_judged = p->inside_generation == now, is_inside;
	struct proc *up = forker_of(t, p);

	if (is_judged && p->inside)
		return;
	is_inside = up ? up->inside && up->inside_generation == now : !is_judged && p->inside;
	if (!is_judged && running_say(t, p, slot, now) & (FILTER_INCLUDE | FILTER_MAYBE))
		is_inside = true;
	if (is_judged && !is_inside)
		return;
	p->inside = is_inside;
	p->inside_generation = now;
	snapshot_changes++;
}

/* Whoever is told above p, or will be when this pass meets it, which may be later. */
static __always_inline void
above_of(struct task_struct *t, struct proc *p)
{
	const struct proc *of = p, *up;

	for (int i = 0; i < ABOVE_MAX; i++) {
		up = forker_of(t, of);
		if (!up)
			break;
		if (up->reported || up->excluded == EXCLUDED_YET) {
			p->parent = up->self;
			p->anchor = !up->reported || up->execed ? up->self : up->anchor;
			break;
		}
		p->parent = up->parent;
		p->anchor = up->anchor;
		t = t->real_parent;
		of = up;
	}
}

/* True: from now on it is told, and was not. */
static __always_inline bool
judge_anew(struct task_struct *t, struct proc *p)
{
	u32 now = generation_now();
	const struct filter_slot *slot = &filter_slots[now & (FILTER_SLOTS - 1)];
	bool is_mark = snapshot_judge == FILTER_JUDGE_ENTERED;

	if (p->end_ns || !t->mm)	/* too late */
		return false;
	if (is_mark && p->reported)
		return false;
	p->excluded = slot->is_on && is_left_out(p, slot, running_say(t, p, slot, now), now);
	if (p->excluded || p->reported)
		return false;
	if (is_mark) {
		p->excluded = EXCLUDED_YET;
		return false;
	}
	p->reported = 1;
	p->execed = 1;		/* a child that runs what its parent did is a program of its own now */
	above_of(t, p);
	return true;
}

/* What a process is before its threads are added; NULL: nothing more to do. */
static __always_inline struct event_state *
process_begin(struct bpf_iter__task *ctx, struct task_struct *t, struct proc **ret_proc)
{
	struct signal_struct *signal;
	struct event_state *e;
	bool is_found = false;
	struct proc *p;
	u32 zero = 0, ended;

	signal = t->signal;
	p = proc_of(t);
	if (p && p->end_ns)
		p->zombie_ns = bpf_ktime_get_boot_ns();
	if ((u32)t->tgid == own_tgid && snapshot_enter) {
		struct proc_key key = proc_key_of(t);

		if (p && !bpf_map_delete_elem(&procs, &key))	/* the agent before followed us */
			__sync_fetch_and_add(&let_go, 1);
		return NULL;
	}
	if (!p && snapshot_enter) {
		p = enter_found(t);
		if (!p)
			return NULL;
	}
	if (p && (snapshot_judge == FILTER_JUDGE_ENTERED || snapshot_judge == FILTER_JUDGE_ALL))
		is_found = judge_anew(t, p);
	if (snapshot_judge == FILTER_JUDGE_ENTERED)
		return NULL;
	if (snapshot_judge == FILTER_JUDGE_INSIDE) {
		if (p && t->mm)
			judge_inside(t, p);
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
		e->ppid = t->real_parent->tgid;
		e->counters.threads = signal->live.counter;
		__builtin_memcpy(e->comm, t->comm, sizeof(e->comm));
		bpf_seq_write(ctx->meta->seq, e, sizeof(*e));
		return NULL;
	}
	/* Looked at before anything is read: one that ends meanwhile, on another CPU, was read while it ran. */
	ended = signal->nr_threads == 1 && t->exit_state && p->end_ns ? EVENT_ENDED : 0;
	barrier_var(ended);
	state_fill(e, t, p);
	e->flags |= ended;
	e->head.kind = is_found ? EVENT_FOUND : EVENT_SNAPSHOT;
	if (p->excluded)
		e->flags |= EVENT_EXCLUDED;
	if (!p->execed)
		p->seen = 1;
	/*
	 * The reader may not know those either that were entered before, and of one that never exec'd nobody
	 * has told it. The dead have no namespaces.
	 */
	if ((snapshot_enter || is_found || !p->execed) && signal->live.counter > 0) {
		struct context c = {};

		context_ids(&c, t);
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
		e->ppid = t->real_parent->tgid;
	*ret_proc = p;
	return e;
}

static __always_inline void
add_only_thread(struct event_state *e, struct task_struct *t)
{
	u32 flags = 0;

	counters_add_thread(&e->counters, t);
	counters_add_own(&e->counters, t, &flags);
	e->flags |= flags;
}

static __always_inline int
process_write(struct bpf_iter__task *ctx, struct event_state *e, struct task_struct *t,
    const struct proc *p)
{
	struct mm_struct *mm = t->mm;
	u64 high, now;

	if (mm && (p->execed || t->real_parent->mm != mm)) {
		high = mm->hiwater_rss;
		now = pages_resident(mm, false);
		e->counters.rss = now;
		e->counters.peak_rss = high > now ? high : now;
		e->flags |= EVENT_HAS_PEAK;
	}
	/* Full: the kernel calls again with a larger buffer. */
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
	volatile u64 *wash;
	u64 time_ns;

	if (!t || t->pid != t->tgid)
		return 0;
	e = process_begin(ctx, t, &p);
	if (!e || !p)
		return 0;
	if (t->signal->nr_threads == 1) {
		add_only_thread(e, t);
	} else {
		wash = &e->head.time_ns;	/* a trip through memory makes a number of it */
		time_ns = *wash;
		*wash = (u64)&t->signal->thread_head;
		w.head = *wash;
		*wash = (u64)t->signal->thread_head.next;
		w.node = *wash;
		*wash = time_ns;
		bpf_loop(THREADS_MAX, on_thread, &w, 0);
		if (!w.is_done) {
			e->flags |= EVENT_THREADS_CUT;
			count_loss(EVENT_PROG_ITER, EVENT_LOSS_CUT);
		}
	}
	return process_write(ctx, e, t, p);
}

SEC("iter/task")
int on_task_until_5_16(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	volatile u64 *wash;
	struct event_state *e;
	struct proc *p = NULL;
	u64 time_ns;

	if (!t || t->pid != t->tgid)
		return 0;
	e = process_begin(ctx, t, &p);
	if (!e || !p)
		return 0;
	if (t->signal->nr_threads == 1) {
		add_only_thread(e, t);
	} else {
		/* A trip through memory makes a number of it: pointers may not be passed. */
		time_ns = e->head.time_ns;
		wash = &e->head.time_ns;
		*wash = (u64)&t->signal->thread_head;
		if (add_threads_until_5_16(*wash)) {
			e->flags |= EVENT_THREADS_CUT;
			count_loss(EVENT_PROG_ITER, EVENT_LOSS_CUT);
		}
		e->head.time_ns = time_ns;
	}
	return process_write(ctx, e, t, p);
}

/*
 * Processes that ended more than STALE_NS ago, are no zombies since, and are still entered: user space
 * removes them. Younger ones have no key: on_free may still come, and nobody is to remove them.
 */
SEC("iter/bpf_map_elem")
int on_stale(struct bpf_iter__bpf_map_elem *ctx)
{
	struct proc *p = ctx->value;
	struct proc_key *key = ctx->key;
	struct event_state *e;
	u64 last_ns;
	bool is_young;
	u32 zero = 0;

	if (!p || !key || !p->end_ns)
		return 0;
	last_ns = p->zombie_ns > p->end_ns ? p->zombie_ns : p->end_ns;
	is_young = bpf_ktime_get_boot_ns() - last_ns < STALE_NS;
	if (!p->reported) {		/* nobody waits for its end */
		struct proc_key gone = *key;

		if (!is_young && !bpf_map_delete_elem(&procs, &gone))
			__sync_fetch_and_add(&let_go, 1);
		return 0;
	}
	e = bpf_map_lookup_elem(&snapshot_state, &zero);
	if (!e)
		return 0;
	state_fill_from_entry(e, p, is_young ? 0 : key->signal);
	bpf_seq_write(ctx->meta->seq, e, sizeof(*e));
	return 0;
}
