/*
 * SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
 * The events that bpf/ writes and src/collect/ reads, and nothing else.
 *
 * Members have fixed widths and are ordered so that nothing needs padding; text follows the struct.
 */
#ifndef SLUICE_EVENT_H
#define SLUICE_EVENT_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define EVENT_VERSION	 1
#define EVENT_COMM_LEN	 16
#define EVENT_PATH_MAX	 4096
#define EVENT_ARGV_MAX	 32768
#define EVENT_ENV_NAMES	 8	/* variables of the environment that can be configured */
#define EVENT_ENV_NAME_MAX 63
#define EVENT_ENV_VALUE_MAX 512	/* a longer value is left out: half an id is another id */
#define EVENT_ENV_MAX	 (EVENT_ENV_NAMES * (EVENT_ENV_NAME_MAX + 1 + EVENT_ENV_VALUE_MAX + 1))

enum event_kind {		/* 0 is not used: an all-zero event is never valid */
	EVENT_EXEC = 1,		/* struct event_exec: a program starts, maybe in place of another */
	EVENT_EXIT = 2,		/* struct event_state: the kernel frees a process; totals are final */
	EVENT_SNAPSHOT = 3,	/* struct event_state, from the iterator: totals so far */
	EVENT_ALIVE = 4,	/* struct event_state, from the iterator: a process that is not followed */
	EVENT_DISCOVERED = 7,	/* struct event_found, from the iterator: discovered while running, now followed */
	EVENT_STALE = 6,	/* struct event_state: ended long ago, but the kernel has not called on_free */
	EVENT_CGROUP = 5,	/* struct event_cgroup: the path of a cgroup id, before its first use */
	EVENT_SIGNAL = 8,	/* struct event_signal: a process will end, of a signal that it did not send itself */
};

enum event_flag {
	EVENT_EXECED = 1 << 0,		/* the process has exec'd since it was forked */
	EVENT_REPLACED = 1 << 1,	/* exec: prev holds the totals of the program that it replaced */
	EVENT_ARGV_CUT = 1 << 2,
	EVENT_ARGV_FAULT = 1 << 3,	/* argv could not be read to its end; the part before is there */
	EVENT_EXE_CUT = 1 << 4,		/* deeper or longer than the walk allows */
	EVENT_CWD_CUT = 1 << 5,
	EVENT_HAS_PEAK = 1 << 6,	/* counters.peak_rss and .rss are the program's own */
	EVENT_HAS_BLOCK_IO = 1 << 7,	/* the kernel keeps delay accounting for its threads */
	EVENT_ENDED = 1 << 8,		/* snapshot: a zombie; totals are final but for EVENT_ON_CPU */
	EVENT_OOM = 1 << 9,		/* chosen by the OOM killer */
	EVENT_THREADS_CUT = 1 << 10,	/* counters are too low: too many threads for the walk, or no end sums */
	EVENT_NO_CREDENTIALS = 1 << 11,	/* uid, gid, namespaces, cgroups were not read */
	/*
	 * exec: the rules leave the new program out; only head, self and prev are set. Sent only if the process was
	 * reported before: its program was, or a snapshot had it before its first exec, and that index is the new
	 * program's too. EVENT_REPLACED is set in both cases.
	 *
	 * snapshot: the rules leave it out since it began; only its snapshots and its end are reported.
	 */
	EVENT_EXCLUDED = 1 << 12,
	EVENT_CANARY = 1 << 13,		/* a child that the agent forked to see whether it is reported */
	EVENT_ON_CPU = 1 << 14,		/* snapshot of a zombie: its last steps are yet to come */
	EVENT_EXE_OF_ROOT = 1 << 15,	/* the host's root owns the executable: see is_exe_of_root() in judge.h */
	EVENT_ELEVATED = 1 << 16,	/* with credentials: it may do more than its user, see elevated_of() */
	EVENT_TORN = 1 << 17,		/* snapshot: it has threads that were released meanwhile twice, or not at all */
	EVENT_HAS_THRASHING = 1 << 18,	/* with EVENT_HAS_BLOCK_IO: this kernel counts these delays too */
	EVENT_HAS_COMPACT = 1 << 19,
	EVENT_ODD_BLOCK_IO = 1 << 20,	/* counters.block_io_delay_ns is wrong: see odd_delay_flag() */
};

enum event_net {		/* the classes of sockets that are counted separately */
	EVENT_NET_TCP,
	EVENT_NET_UDP,
	EVENT_NET_OTHER,	/* any other internet protocol */
	EVENT_NET_UNIX,
	EVENT_NET_COUNT,
};

/* Programs and reasons by which the kernel side counts what failed; P(id, name of the program). */
#define EVENT_PROGRAMS(P)		\
	P(FORK, "on_fork")		\
	P(EXEC, "on_exec")		\
	P(EXIT, "on_exit")		\
	P(FREE, "on_free")		\
	P(ITER, "on_task")		\
	P(CGROUP, "cgroup_announce")	\
	P(SIGNAL, "on_signal")

enum event_program {
#define EVENT_PROGRAM(id, name) EVENT_PROG_##id,
	EVENT_PROGRAMS(EVENT_PROGRAM)
#undef EVENT_PROGRAM
	EVENT_PROG_COUNT,
};

enum event_loss {
	EVENT_LOSS_RING,	/* the ring was full: a record is lost */
	EVENT_LOSS_MAP,		/* no room for a process: it and its children are not followed */
	EVENT_LOSS_READ,	/* a field could not be read: it is null or cut in its record */
	EVENT_LOSS_CUT,		/* a limit of ours was reached: of a path, or of the threads of a process */
	EVENT_LOSS_SKIPPED,	/* the kernel did not run the program: see copies in lifecycle.bpf.c */
	EVENT_LOSS_COUNT,
};

struct event_head {
	__u16	version;	/* EVENT_VERSION */
	__u16	kind;		/* enum event_kind */
	__u32	size;		/* of the whole record, text included */
	__u64	time_ns;	/* CLOCK_BOOTTIME */
};

/* Identifies one program: pids are reused, (start, pid) is not; index counts execs after the first. */
struct event_id {
	__u64	start_ns;	/* start of the process, CLOCK_BOOTTIME */
	__u32	pid;		/* thread group id in the host's namespace */
	__u32	index;
};

/*
 * Totals of a process since its fork, over all threads, living and dead, without the children that it reaped;
 * see resources.h.
 */
struct event_counters {
#define COUNTER(name) __u64 name;
#include "resources.h"
	__u32	threads;
	__u32	threads_peak;	/* of the current program only */
};

enum event_counter {		/* index of each counter of resources.h in struct event_counters, in words of 8 bytes */
#define COUNTER(name) EVENT_COUNTER_##name,
#include "resources.h"
	EVENT_COUNTERS,
};

struct event_exec {
	struct event_head	head;
	struct event_id		self;
	struct event_id		parent;		/* the process that forked this one, as it was at that time */
	struct event_id		anchor;		/* the nearest ancestor that has exec'd, itself included */
	__u32	flags;		/* enum event_flag */
	__u32	ppid;
	__u32	uid;
	__u32	gid;
	__u64	cgroup_v2;	/* id; 0: none */
	__u64	cgroup_v1;	/* id in the memory hierarchy; 0: none */
	__u32	pid_ns;
	__u32	mnt_ns;
	__u32	net_ns;
	__u32	argc;
	char	comm[EVENT_COMM_LEN];	/* NUL-terminated */
	__u32	exe_len;	/* bytes of text after the struct, in this order: */
	__u32	cwd_len;	/*   paths as components, leaf first, each NUL-terminated */
	__u32	argv_len;	/*   arguments, each NUL-terminated unless cut */
	__u32	env_len;	/* NAME=value of the configured variables, each NUL-terminated */
	__u32	user_uid;	/* whose share it takes, see share.h; 0: uid's */
	__u32	pad;
	struct event_counters	prev;		/* valid with EVENT_REPLACED */
};

struct event_state {
	struct event_head	head;
	struct event_id		self;
	struct event_id		parent;
	struct event_id		anchor;
	__u64	program_start_ns;
	__u64	end_ns;		/* when the last thread began to exit; 0: alive */
	__u32	flags;
	__s32	status;		/* as wait(2) reports it */
	__u32	ppid;
	__u32	uid;		/* set for programs that never exec'd, else 0 with EVENT_NO_CREDENTIALS */
	__u32	gid;
	__u32	pid_ns;
	__u32	mnt_ns;
	__u32	net_ns;
	__u64	cgroup_v2;
	__u64	cgroup_v1;
	char	comm[EVENT_COMM_LEN];
	__u32	user_uid;	/* with uid; as that of an exec */
	__u32	pad;
	__u64	key;		/* EVENT_STALE: the entry to remove, together with self.start_ns */
	struct event_counters	counters;
};

struct event_found {
	struct event_state	state;		/* EVENT_EXE_CUT and EVENT_CWD_CUT as for an exec */
	__u32	exe_len;	/* bytes of text after the struct, in this order, as those of an exec; then up to 7 */
	__u32	cwd_len;	/*   without meaning, up to the next multiple of 8 */
};

struct event_cgroup {
	struct event_head	head;
	__u64	id;
	__u32	is_v2;
	__u32	path_len;	/* bytes after the struct: components, leaf first, NUL-terminated */
};

struct event_signal {
	struct event_head	head;
	struct event_id		self;
	struct event_id		sender;		/* pid 0: it is not followed, or the kernel sent it */
	struct event_id		anchor;		/* the sender's, as in struct event_state */
	__u32	signal;
	__u32	is_of_program;	/* else the kernel sent it, and the rest is 0 */
	__u32	sender_pid;
	__u32	sender_uid;
	char	comm[EVENT_COMM_LEN];	/* of the sending thread, NUL-terminated */
};

_Static_assert(sizeof(struct event_head) == 16, "event_head changed size");
_Static_assert(sizeof(struct event_id) == 16, "event_id changed size");
_Static_assert(sizeof(struct event_counters) == 8 * EVENT_COUNTERS + 8, "event_counters changed size");
_Static_assert(sizeof(struct event_exec) == 64 + 88 + sizeof(struct event_counters), "event_exec changed size");
_Static_assert(__builtin_offsetof(struct event_exec, prev) == 152, "hidden padding");
_Static_assert(sizeof(struct event_state) == 64 + 16 + 32 + 16 + 16 + 8 + 8 + sizeof(struct event_counters),
    "event_state changed size");
_Static_assert(sizeof(struct event_found) == sizeof(struct event_state) + 8, "event_found changed size");
_Static_assert(sizeof(struct event_cgroup) == 32, "event_cgroup changed size");
_Static_assert(sizeof(struct event_signal) == 64 + 16 + EVENT_COMM_LEN, "event_signal changed size");

#endif
