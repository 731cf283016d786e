/*
 * SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
 * The maps and variables that the programs share, and the basic operations on them. Defined in state.bpf.c.
 *
 * A followed process has one entry in procs, made at its fork and removed when the kernel frees its leader. The
 * key is the address of its signal_struct, which all threads share and which survives an exec by a thread that
 * is not the leader (a task's local storage does not, and 5.10 has none for these programs), and the start of
 * the process: the kernel may reuse the address while there is still the entry of a process whose end no program
 * saw.
 */
#ifndef SLUICE_STATE_H
#define SLUICE_STATE_H

#include "kernel.h"
#include "event.h"
#include "filter_map.h"
#include "user.h"
#include "wait.h"

#define RING_BYTES (8 << 20)	/* default; user space may set another before load */
#define PROCS_MAX 16384	/* preallocated: a third of the time at fork and free, 14 MiB */
#define CGROUPS_MAX 4096
#define TEXT_MAX 65536
#define KEPT_TGIDS 16	/* agent/subscription.h has as many subscriptions */
#define NAMES_MAX 128	/* names of a path; more than are ever walked */
#define EXCLUDED_PENDING 2

/* Values that a thread counts for itself and the kernel sums up nowhere (without reaped children). */
struct thread_sums {
#define COUNTER_TASK(name, thread) u64 name;
#define COUNTER_DELAY(name, thread) u64 name;
#define COUNTER_LIFE(name) u64 name;
#include "resources.h"
};

struct proc {
	struct event_id	self;
	struct event_id	parent;
	struct event_id	anchor;		/* inherited by its children: the process itself once it has exec'd */
	u64	exec_id;		/* the last exec that was seen */
	u64	exec_maxrss;		/* pages; signal_struct's peak of all programs before that exec */
	u64	program_start_ns;
	u64	end_ns;
	u64	zombie_ns;		/* when a pass last saw it as a zombie, or as it entered it */
	u64	swept_ns;		/* the last sweep that found it; see on_stale */
	/* Threads on several CPUs store to these: each has a word of its own, so that no store undoes another. */
	u32	execed;			/* since it was forked */
	u32	has_peak;
	u32	shares_mm;		/* it is its parent's, as of a vfork child, unless execed */
	u32	has_end_sums;
	u32	has_block_io;
	u32	has_odd_block_io;
	u32	threads_peak;
	u32	uid;			/* from here to ppid: set at the end of one that never exec'd */
	u32	gid;
	u32	pid_ns;
	u32	mnt_ns;
	u32	net_ns;
	u32	ppid;
	/*
	 * By the rules (filter_map.h). reported: user space gets events of this program, its end too. excluded: the
	 * rules leave it out; both are set if the rules changed while it ran. inside: it descends from a program that
	 * is included, by the rules of inside_generation.
	 */
	u32	excluded;		/* EXCLUDED_PENDING: until the pass under way reaches it */
	u32	reported;
	u32	seen;			/* a snapshot had it before its first exec */
	u32	inside;
	u32	inside_generation;
	u32	kept;			/* no rule leaves it out, see kept_tgids; inherited */
	u32	is_canary;		/* the agent forked it to see whether it is reported */
	u32	is_cut;			/* threads of it may have ended while no load had the lease */
	u32	user;			/* number of the user for whom the entry counts, see share.h; 0: for none */
	u32	user_uid;		/* its id; 0 too if it counts for none */
	u32	user_stays;		/* whatever user it becomes; inherited: see user_follow() */
	u32	elevated;		/* EVENT_ELEVATED or 0; set as uid */
	u64	forker_start_ns;	/* start of the process that forked it; 0: unknown */
	struct cgroup_verdict {		/* verdict of a generation's rules on these cgroups */
		u64	v2, v1;
		u64	ids;
		u32	act;
		u32	generation;
	} cgroup_verdict;
	u64	cgroup_v2;		/* the last one whose path was sent; inherited */
	u64	cgroup_v1;
	u64	old_peak;		/* pages; of the image that the exec under way replaces */
	u64	old_rss;
	u64	peak;			/* pages; read while the mm still existed */
	u64	rss;
	struct thread_sums dead;	/* sums of the threads that have exited, without the leader */
	struct thread_sums leader;	/* sums of a leader that exited before its threads, until one execs */

	/*
	 * The process's own sums when its parent is signalled, or else when its last thread exits: if on_free never
	 * runs (see on_stale), only the last steps of the exit are missing.
	 */
#define COUNTER_SIGNAL(name, thread, gone) u64 end_##name;
#define COUNTER_GONE(name, gone) u64 end_##name;
#include "resources.h"
	s32	end_status;
	u32	end_oom;
	char	end_comm[EVENT_COMM_LEN];
	/* sums over all sockets */
	u64	net_rx[EVENT_NET_COUNT];
	u64	net_tx[EVENT_NET_COUNT];
	/* what passes have seen its threads wait for, see waits.h */
	u64	waited_ns[WAIT_CLASSES];
	u64	uninterruptible_ns;
	u64	wait_samples;
	u64	sampled_ns;		/* the last of these passes */
	u64	moved_bytes;		/* over internet sockets, until then */
	u64	unnamed_stack;		/* a stack whose class was not known, and how long threads waited there */
	u64	unnamed_ns;
	u32	poll_class;		/* enum wait_class: what it waits for that polls */
	u32	unnamed_is_remote;	/* in the unnamed stack it is in a call on a file of remote_fs.h */
};

/* The values that the rules look at, and the results. */
struct filter_facts {
	struct filter_key	exe __attribute__((aligned(8)));	/* the base name */
	u64	ids;
	u64	cgroup_v2;		/* to be looked up */
	u64	cgroup_v1;
	u64	cgroup_ids;
	u32	cgroup_act;
	u32	is_cgroup_known;
	u32	exe_size;		/* bytes of the base name with its NUL; 0: unknown, FILTER_NAME_SIZE: longer */
	u32	uid;
	u32	trusted;		/* FILTER_EXCLUDE_EXE, FILTER_EXCLUDE_USER */
	u32	act;
	u32	unknown;
	u32	pad;
};

/*
 * A record under construction. There is one for each CPU, because these programs run with preemption off, and
 * one for the iterator, which can be preempted and has one reader at a time.
 */
struct scratch {
	u64	wash[4];	/* storing a kernel pointer here turns it into a number */
	u32	n_names;	/* names of the path that was walked last */
	u32	exe_len;	/* result of path_of() for the executable, whose path is at the start of text */
	u32	cwd_len;
	u32	ring_room;	/* enum ring_room, of the exec under way */
	struct filter_facts	facts;
	u16	name_at[NAMES_MAX];	/* offset of each in text, leaf first */
	union {			/* both end where text begins */
		struct event_exec	exec;
		struct {
			char	unused[sizeof(struct event_exec) - sizeof(struct event_cgroup)];
			struct event_cgroup	cgroup;
		};
	};
	char	text[TEXT_MAX];
};

struct proc_key {
	u64	signal;			/* address */
	u64	start_ns;		/* CLOCK_BOOTTIME */
};

struct procs_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PROCS_MAX);
	__type(key, struct proc_key);
	__type(value, struct proc);
};
struct ring_map {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_BYTES);
};
struct scratch_map {	/* max_entries is set to the number of CPUs + 1 */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct scratch);
};
struct fresh_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct proc);
};
struct cpu_offsets_map {	/* where each possible CPU's own memory is; max_entries is set to their number */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);	/* added to an address that holds for all CPUs; 0: unknown */
};
struct users_map {		/* max_entries is USERS but in a run, which has no shares */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, USERS);
	__type(key, u32);
	__type(value, struct user);
};
struct thread_key {
	u64	task;			/* address */
	u64	start_ns;		/* CLOCK_BOOTTIME: the kernel uses the address again */
};
struct exited_map {		/* the last threads that on_exit has counted, where it may see an exit twice */
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, PROCS_MAX);
	__type(key, struct thread_key);
	__type(value, u8);
};
struct cgroups_map {	/* cgroups whose path user space has */
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, CGROUPS_MAX);
	__type(key, u64[2]);
	__type(value, u8);
};

struct wait_classes_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, WAIT_STACKS_MAX);
	__type(key, u64);		/* hash of a stack, see waits.h */
	__type(value, u32);		/* enum wait_class */
};

extern struct procs_map procs SEC(".maps");
extern struct ring_map ring SEC(".maps");
extern struct fresh_map fresh_proc SEC(".maps");	/* an entry under construction */
extern struct exited_map threads_exited SEC(".maps");
extern struct cpu_offsets_map cpu_offsets SEC(".maps");
extern struct users_map users SEC(".maps");
extern struct wait_classes_map wait_classes SEC(".maps");

extern u64 retake_ns;		/* number of the first pass of this load's last retake, see stale.h; 0: none */

/* Set between open and load. */
extern const volatile u32 ncpu;			/* possible CPUs */
extern const volatile u64 wake_at;		/* queued bytes that justify a wakeup: a quarter of the ring */
extern const volatile u32 procs_max;		/* entries for which procs has room */
extern const volatile u32 exit_has_group_dead;	/* from 6.16 sched_process_exit has it as an argument */
extern const volatile u32 rss_slack;		/* pages by which a percpu_counter's count can be off */

extern const volatile u32 has_on_signal;
extern const volatile u32 has_iter_num;		/* the functions bpf_iter_num_…(), from 6.4 */
extern const volatile u32 has_rdonly_cast;	/* the function bpf_rdonly_cast(), from 6.2 */
extern const volatile u32 can_be_preempted;	/* tracepoint programs can be, from 7.0 */
extern const volatile u64 my_epoch;		/* epoch of this load of the programs */
extern const volatile u64 watchdog_ns;

/* Shared with user space while running; where the maps are pinned they outlive it. */
extern u64 lease;		/* epoch of the load that reports events; 0: none does */
extern u64 network_lease;	/* epoch of the load whose socket hooks report; 0: they are off */
extern u64 network_since_ns;	/* set by user space: since when they count without a break; 0: since the first hook */
extern u64 since_ns;		/* CLOCK_BOOTTIME when these hooks were first all attached */
extern u64 heartbeat_ns;	/* CLOCK_MONOTONIC of the reader's last sign of life; 0: not used */
extern u64 quiet_since_ns;	/* CLOCK_BOOTTIME since when no load had the lease; 0: that is in GAP records */
extern u64 canary_lost_ns;	/* start of the last canary that was seen but not reported, for lack of room */
extern u32 follow_all;		/* every process but kernel threads and own_tgid's children */
extern u32 own_tgid;		/* the agent; 0: none */
extern u32 adopt_tgid;		/* its children are followed; set around one fork(2) */
extern u32 kept_tgids[KEPT_TGIDS];	/* at their next exec no rule leaves them out, nor their descendants; 0: free */
extern u64 stale_ns;		/* set by user space, see probes_hurry(): until then on_free may still run */
extern u32 wake_latch;		/* a wakeup is pending: do not send another */
extern s64 clock_offset;	/* bpf_ktime_get_ns() minus the run queues' clock */
extern u64 lost[EVENT_PROG_COUNT][EVENT_LOSS_COUNT];
extern u64 refused;		/* times that procs had no room for a process, which may have one later */
extern u64 refused_from_ns;	/* starts of the oldest and the youngest of these processes, CLOCK_BOOTTIME; 0: none */
extern u64 refused_to_ns;
extern u64 followed;		/* processes that were ever added to procs */
extern u64 removed;		/* processes that were removed from it */
extern u64 lost_records;	/* records of sluice.program that never got a seq */
extern u64 left_out;		/* programs that the rules excluded */
extern u32 generation;		/* generation of the rules in force; its last two bits are the slot */
extern struct filter_slot filter_slots[FILTER_SLOTS];
extern struct filter_table filter_tables[FILTER_SLOTS];

/*
 * Returns whether this load of the programs is the one to act. Two loads share the maps while one takes over
 * from the other, and after the reader is gone for good none acts: see fork_seen().
 */
static __always_inline bool
has_lease(void)
{
	return lease == my_epoch;
}

static __always_inline void
count_loss(enum event_program program, enum event_loss reason)
{
	__sync_fetch_and_add(&lost[program][reason], 1);
}

/*
 * A wakeup costs as much as thirty records: below wake_at user space reads by timer, above it gets one wakeup
 * until it clears the latch. One record in eight, chosen by its time, checks how full the ring is.
 */
static __always_inline u64
wake_flags(u64 time_ns)
{
	if ((time_ns >> 4 & 7) != 0 || wake_latch ||
	    bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) < wake_at)
		return BPF_RB_NO_WAKEUP;
	wake_latch = 1;
	return BPF_RB_FORCE_WAKEUP;
}

/* Adds the time that was kept apart to its class, if that is known by now. */
static __always_inline void
waits_settle(struct proc *p)
{
	u32 *known, class;

	if (!p->unnamed_ns)
		return;
	known = bpf_map_lookup_elem(&wait_classes, &p->unnamed_stack);
	class = known ? *known : WAIT_UNNAMED;
	if (class == WAIT_POLL)
		class = p->poll_class;
	if (class == WAIT_BLOCK)
		class = p->unnamed_is_remote ? WAIT_NETWORK_FS : WAIT_BLOCK;
	if (class >= WAIT_CLASSES)
		return;
	p->waited_ns[class] += p->unnamed_ns;
	p->unnamed_ns = 0;
}

/* Returns the flags of a record whose process has delays. */
static __always_inline u32
delay_flags(void)
{
	struct task_delay_info *d = NULL;

	return EVENT_HAS_BLOCK_IO | (bpf_core_field_exists(d->thrashing_delay) ? EVENT_HAS_THRASHING : 0) |
	    (bpf_core_field_exists(d->compact_delay) ? EVENT_HAS_COMPACT : 0);
}

/* Returns the flags of a record that come from p. */
static __always_inline u32
proc_flags(const struct proc *p)
{
	return (p->execed ? EVENT_EXECED : 0) | (p->has_peak ? EVENT_HAS_PEAK : 0) |
	    (p->has_block_io ? delay_flags() : 0) | (p->has_odd_block_io ? EVENT_ODD_BLOCK_IO : 0) |
	    (p->is_canary ? EVENT_CANARY : 0) |
	    (p->is_cut ? EVENT_THREADS_CUT : 0);
}

static __always_inline struct proc_key
proc_key_of(struct task_struct *t)
{
	return (struct proc_key){ (u64)t->signal, t->group_leader->start_boottime };
}

/* Returns the entry of a task's process. */
static __always_inline struct proc *
proc_of(struct task_struct *t)
{
	struct proc_key key = proc_key_of(t);

	return bpf_map_lookup_elem(&procs, &key);
}

/* Returns whether there was no room for a process without an entry that began at start_ns: for those of that time. */
static __always_inline bool
had_no_room(u64 start_ns)
{
	return refused_from_ns && start_ns >= refused_from_ns && start_ns <= refused_to_ns;
}

static __always_inline bool
was_refused(const struct task_struct *leader)
{
	return had_no_room(leader->start_boottime);
}

extern void *bpf_rdonly_cast(const void *object, u32 type) __ksym __weak;

/*
 * A task and what it points to. The verifier trusts a task that the kernel passes, and whenever it follows a read of a
 * pointer through a trusted one, kernels from 6.2 to 6.18 search all of their types by name, which took half of the
 * time of a start. Pointers are therefore read through an untrusted pointer. All else is read through the trusted one,
 * since a read through an untrusted one checks the address, in 50 bytes of code. That is also why each pointer is read
 * only once, and only where it is needed.
 */
struct task {
	struct task_struct *t;
	struct task_struct *untrusted;	/* the same; t itself before 6.2 */
	struct signal_struct *signal;
	struct task_struct *leader;	/* trusted, for its counters are read */
	/* read by task_follow() */
	struct task_struct *parent;
	struct mm_struct *mm;
};

/* Reads a pointer here, and not where the compiler would rather have it read. */
#define READ_POINTER(to, from)			\
	do {					\
		(to) = (from);			\
		barrier_var(to);		\
	} while (0)

static __always_inline struct task_struct *
task_untrusted(struct task_struct *t)
{
	return has_rdonly_cast ? bpf_rdonly_cast(t, bpf_core_type_id_kernel(struct task_struct)) : t;
}

/* Reads what identifies the process of t. */
static __always_inline void
task_read(struct task *k, struct task_struct *t)
{
	k->t = t;
	k->untrusted = task_untrusted(t);
	READ_POINTER(k->signal, k->untrusted->signal);
	READ_POINTER(k->leader, t->group_leader);
}

/* Reads the other pointers, for a task whose process is followed. */
static __always_inline void
task_follow(struct task *k)
{
	READ_POINTER(k->parent, k->untrusted->real_parent);
	READ_POINTER(k->mm, k->untrusted->mm);
}

/* Returns the entry of the process of a task that was read. */
static __always_inline struct proc *
proc_of_task(const struct task *k)
{
	struct proc_key key = { (u64)k->signal, k->leader->start_boottime };

	return bpf_map_lookup_elem(&procs, &key);
}

/* Returns the entry of the process of a task without a type. */
static __always_inline struct proc *
proc_of_address(struct task_struct *t)
{
	struct proc_key key = { (u64)BPF_CORE_READ(t, signal), BPF_CORE_READ(t, group_leader, start_boottime) };

	return bpf_map_lookup_elem(&procs, &key);
}

#endif
