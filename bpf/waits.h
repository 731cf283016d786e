/*
 * SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
 * Where the threads of followed processes wait: each pass samples it, for the time since the pass before.
 *
 * A thread that sleeps is classed by its kernel stack. The kernel side knows stacks by a hash of their addresses, and
 * user space says which class each is: for one that is new, on_wait_places prints the names of its functions, and until
 * they are classed its time is kept apart in the entry of its process.
 */
#ifndef SLUICE_WAITS_H
#define SLUICE_WAITS_H

#include "pass.h"
#include "remote_fs.h"

#define WAIT_WEIGHT_MAX_NS 3000000000ull	/* a sample stands for no longer time, however late the pass is */
#define WAIT_MOVED_BYTES_PER_S 65536	/* over sockets: who polls waits for them */

#define TASK_UNINTERRUPTIBLE 0x2
#define TASK_STOPPED_OR_TRACED 0xc

struct sleeper {
	u64 switches;			/* of the thread, when a pass saw it sleep */
	u64 stack;			/* hash of where it does */
};
struct sleepers_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, WAIT_SLEEPERS_MAX);
	__type(key, struct thread_key);
	__type(value, struct sleeper);
};
struct sleepers_map sleepers SEC(".maps");

u64 waits_pass_ns = 0;		/* CLOCK_BOOTTIME of this pass and the one before; 0: there was none */
u64 waits_before_ns = 0;

u32 waits_unnamed_n = 0;	/* user space sets it to 0 when it has classed them */
struct wait_stack waits_unnamed[WAIT_UNNAMED_MAX] = {};

static __always_inline u64
stack_hash(const u64 *frames)
{
	u64 hash = 0xcbf29ce484222325;

#pragma unroll
	for (int i = 0; i < WAIT_FRAMES; i++) {
		hash = (hash ^ frames[i]) * 0x100000001b3;
		hash ^= hash >> 32;
	}
	return hash;
}

/* Keeps a stack for user space to class. */
static __always_inline void
stack_is_new(u64 hash, const u64 *frames)
{
	u32 n = waits_unnamed_n, class = WAIT_UNNAMED;
	struct wait_stack *s;

	if (n >= WAIT_UNNAMED_MAX)
		return;
	s = &waits_unnamed[n];
	s->hash = hash;
	__builtin_memcpy(s->frames, frames, sizeof(s->frames));
	waits_unnamed_n = n + 1;
	bpf_map_update_elem(&wait_classes, &hash, &class, BPF_ANY);
}

/*
 * Returns the class of the place where a task sleeps; WAIT_UNNAMED: its stack, of that hash, has none yet. One that has
 * not run since the last pass sleeps where it did: reading its stack costs three times as much as all else.
 */
static __always_inline u32
class_of_sleep(struct task_struct *t, u64 *ret_hash)
{
	struct thread_key key = { (u64)t, t->start_boottime };
	struct sleeper now = { .switches = t->nvcsw + t->nivcsw }, *before = bpf_map_lookup_elem(&sleepers, &key);
	u64 frames[WAIT_FRAMES] = {};
	u32 *class;

	if (before && before->switches == now.switches) {
		*ret_hash = before->stack;
		class = bpf_map_lookup_elem(&wait_classes, ret_hash);
		if (class)
			return *class;
	}
	if (bpf_get_task_stack(t, frames, sizeof(frames), 0) <= 0)
		return WAIT_OTHER;
	now.stack = *ret_hash = stack_hash(frames);
	if (before)
		*before = now;
	else
		bpf_map_update_elem(&sleepers, &key, &now, BPF_ANY);
	class = bpf_map_lookup_elem(&wait_classes, ret_hash);
	if (class)
		return *class;
	stack_is_new(*ret_hash, frames);
	return WAIT_UNNAMED;
}

/* Returns true if a runnable task does not run since its control group has used up its quota. */
static __always_inline bool
is_throttled(struct task_struct *untrusted)
{
	struct cfs_rq *cfs_rq;

	if (!bpf_core_field_exists(untrusted->se.cfs_rq))
		return false;
	READ_POINTER(cfs_rq, untrusted->se.cfs_rq);
	return cfs_rq && bpf_core_field_exists(cfs_rq->throttle_count) && cfs_rq->throttle_count > 0;
}

/* Adds ns to what threads of p waited in a class. */
static __always_inline void
waited_add(struct proc *p, u32 class, u64 ns)
{
	if (class == WAIT_POLL)
		class = p->poll_class;
	if (class < WAIT_CLASSES)
		p->waited_ns[class] += ns;
}

/*
 * Samples one thread: adds the time since the last pass, or since it or its program began, to the class in which it
 * waits. It is a function of its own, so that the verifier checks it once for leaders and once for others.
 */
static __noinline int
thread_sample(struct task_struct *t, struct proc *p)
{
	u64 since_ns = waits_before_ns, hash = 0, ns;
	u32 state, class, runs, is_remote = 0;

	if (t->start_boottime > since_ns)
		since_ns = t->start_boottime;
	if (p->program_start_ns > since_ns)
		since_ns = p->program_start_ns;
	if (since_ns >= waits_pass_ns || READ_NOW(t->exit_state))
		return 0;
	/* There its end was reported before it closes its files, for which it may wait. */
	if (exit_has_group_dead && READ_NOW(t->flags) & PF_EXITING)
		return 0;
	ns = waits_pass_ns - since_ns;
	if (ns > WAIT_WEIGHT_MAX_NS)
		ns = WAIT_WEIGHT_MAX_NS;
	runs = bpf_core_field_exists(t->on_cpu) ? READ_NOW(t->on_cpu) : 0;
	state = task_state(t);
	if (runs)
		return 0;
	if (state == 0) {
		if (is_throttled(task_untrusted(t)))
			waited_add(p, WAIT_THROTTLED, ns);
		return 0;
	}
	p->wait_samples++;
	if (state & TASK_UNINTERRUPTIBLE && !(state & TASK_NOLOAD))
		p->uninterruptible_ns += ns;
	class = state & TASK_STOPPED_OR_TRACED ? WAIT_STOPPED : class_of_sleep(t, &hash);
	if (class == WAIT_BLOCK || class == WAIT_UNNAMED)
		is_remote = calls_remote_file(t);
	if (class == WAIT_BLOCK && is_remote)
		class = WAIT_NETWORK_FS;
	if (class != WAIT_UNNAMED) {
		waited_add(p, class, ns);
	} else {
		if (p->unnamed_stack != hash)
			p->unnamed_ns = 0;	/* one at a time is kept */
		p->unnamed_stack = hash;
		p->unnamed_is_remote = is_remote;
		p->unnamed_ns += ns;
	}
	return 0;
}

/* Returns how much has been moved over internet sockets, or over those of this host. */
static __always_inline u64
moved_over_internet(const struct proc *p)
{
	return p->net_rx[EVENT_NET_TCP] + p->net_tx[EVENT_NET_TCP] + p->net_rx[EVENT_NET_UDP] +
	    p->net_tx[EVENT_NET_UDP] + p->net_rx[EVENT_NET_OTHER] + p->net_tx[EVENT_NET_OTHER];
}

/* Samples the leader of a process, once in a pass: the kernel may call again with the same one. */
static __always_inline void
process_sample(struct task_struct *t, struct proc *p)
{
	u64 moved = moved_over_internet(p);
	u64 since_ns = p->sampled_ns ? p->sampled_ns : p->program_start_ns;

	if (!waits_before_ns || p->sampled_ns == waits_pass_ns)
		return;
	waits_settle(p);
	/* A program that moves bytes, and waits for any of several files, waits for those sockets. */
	p->poll_class = WAIT_POLL;
	if ((moved - p->moved_bytes) * 1000000000 >= WAIT_MOVED_BYTES_PER_S * (waits_pass_ns - since_ns))
		p->poll_class = WAIT_NETWORK;
	p->moved_bytes = moved;
	p->sampled_ns = waits_pass_ns;
	thread_sample(t, p);
}

/* Samples a thread that is no leader. */
static __always_inline void
worker_sample(struct task_struct *t)
{
	struct proc *p;
	struct task k;

	if (!waits_before_ns)
		return;
	task_read(&k, t);
	p = proc_of_task(&k);
	if (p && p->reported)
		thread_sample(t, p);
}

/* Prints the stacks that user space is to class: of each its hash, and the name of each function. */
SEC("iter/task")
int on_wait_places(struct bpf_iter__task *ctx)
{
	u64 n = ctx->meta->seq_num;
	struct wait_stack *s;
	u64 *f;

	if (!ctx->task || n >= waits_unnamed_n || n >= WAIT_UNNAMED_MAX)
		return 0;
	s = &waits_unnamed[n];
	f = s->frames;
	BPF_SEQ_PRINTF(ctx->meta->seq, "%llx", s->hash);
	BPF_SEQ_PRINTF(ctx->meta->seq, " %pB %pB %pB %pB %pB %pB %pB %pB %pB %pB %pB %pB\n", f[0], f[1], f[2], f[3], f[4],
	    f[5], f[6], f[7], f[8], f[9], f[10], f[11]);
	return 0;
}

#endif
