/*
 * SPDX-License-Identifier: Apache-2.0
 * event: what the kernel reported, checked: the values that collect/ hands to correlate/.
 *
 * Text is bytes as the kernel has them, NUL-terminated, of any encoding; it lives until the
 * callback returns. Times are nanoseconds of CLOCK_BOOTTIME.
 */
#ifndef SLUICE_MODEL_EVENT_H
#define SLUICE_MODEL_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/opt.h"

#define EVENT_COMM_SIZE 17

/* A program: index counts the execs of the process after its first. pid 0: none. */
struct program_key {
	uint64_t start_ns;
	uint32_t pid;
	uint32_t index;
};

/* Totals of a process since its fork, without reaped children; see bpf/resources.h. */
struct counters {
#define COUNTER(name) uint64_t name;
#define COUNTER_PAGES(name, entry) uint64_t name##_bytes;
#include "resources.h"
	uint32_t threads;
	uint32_t threads_peak;
	bool has_peak;
	bool has_block_io;	/* the delays of block I/O, swap and reclaim; of thrashing and compaction apart */
	bool has_thrashing;
	bool has_compact;
	bool has_odd_block_io;	/* a thread has more than it lived: the sum means nothing */
	bool is_reaped;		/* the counters are those that the parent's wait(2) returned */
	bool is_complete;	/* false: more threads than the kernel side walks */
};

/* Who runs it and where. */
struct program_context {
	uint32_t uid;
	uint32_t gid;
	uint32_t pid_ns;	/* inode numbers; 0 unknown */
	uint32_t mnt_ns;
	uint32_t net_ns;
	uint64_t cgroup_v2;	/* ids; 0 none */
	uint64_t cgroup_v1;
	uint32_t user_uid;	/* of the user behind it, see model/user.h */
	bool is_exe_of_root;	/* the host's root owns the executable; false also where that is unknown */
	bool is_elevated;	/* it may do more than its user: by another id, or capabilities of its file */
};

/* A variable of the environment that the configuration names; all others are never read. */
struct exec_variable {
	const char *name;
	const char *value;
};

struct exec_event {
	uint64_t time_ns;
	struct program_key self;
	struct program_key parent;	/* who forked the process */
	struct program_key anchor;	/* its nearest ancestor that has exec'd */
	uint32_t ppid;
	struct program_context context;
	char comm[EVENT_COMM_SIZE];
	const char *exe;		/* NULL: unknown */
	const char *cwd;		/* NULL: unknown */
	const char *const *argv;	/* NULL: unknown */
	const size_t *argv_len;		/* each argument's bytes */
	size_t argc;			/* in argv; fewer than there were when truncated */
	bool argv_truncated;
	bool has_replaced;		/* replaced holds the totals at the end of the program before */
	bool is_discovered;		/* it ran before we watched: time_ns is when it was discovered, replaced
					 * holds its own totals then, has_replaced is false */
	struct counters replaced;
	/*
	 * The kernel's filter leaves this program out: it has no record, and only the end of the program that it
	 * replaced is reported. Only self and time_ns of it are known. Without has_replaced: a snapshot reported the
	 * process before its first exec, and no other event follows.
	 */
	bool is_excluded;
	const struct exec_variable *variables;
	size_t n_variables;
};

enum state_kind {
	STATE_EXIT,		/* final, and it was reaped */
	STATE_ZOMBIE,		/* final but for is_on_cpu, not yet reaped */
	STATE_LIVE,		/* so far */
	STATE_STALE,		/* ended, perhaps a zombie; nearly final. key tells it from its successors */
	STATE_DISCOVERED,	/* so far, of a process that ran before we watched; becomes an exec_event */
	STATE_UNTRACKED,	/* a process that we do not follow: key, ppid, comm, threads only */
};

struct state_event {
	enum state_kind kind;
	uint64_t time_ns;
	struct program_key self;
	struct program_key parent;
	struct program_key anchor;
	uint64_t program_start_ns;
	uint64_t end_ns;		/* 0: alive */
	int32_t status;			/* as wait(2) reports it; of ended ones */
	uint32_t ppid;
	uint64_t entry;			/* of STATE_STALE: the kernel side's key; 0: STATE_EXIT may still come */
	bool has_execed;
	bool has_context;
	bool oom_killed;
	bool is_excluded;		/* the kernel's filter leaves it out since it began: no usage of it */
	const char *exe;		/* of STATE_DISCOVERED; NULL: unknown, as is the next */
	const char *cwd;
	bool is_on_cpu;			/* of STATE_ZOMBIE: its last steps are yet to come */
	bool is_torn;			/* counters are of no use: they may have threads twice or not at all */
	bool is_canary;			/* the agent's own child, which has no record; see agent/canary.h */
	struct program_context context;
	char comm[EVENT_COMM_SIZE];
	struct counters counters;
};

struct cgroup_event {
	uint64_t id;
	bool is_v2;
	const char *path;		/* "/" for the root */
	struct opt_double cpus;		/* its limits, its own or the strictest of those above it */
	struct opt_u64 memory_bytes;
	struct opt_u64 memory_high;
	uint32_t users_names;		/* as in struct cgroup_limits of collect/cgroup.h */
};

/* A process will end, of a signal that it did not send itself. */
struct signal_event {
	uint64_t time_ns;
	struct program_key self;
	uint32_t signal;
	bool is_of_program;		/* else the kernel sent it, and nothing follows */
	struct program_key sender;	/* pid 0: it is not followed */
	struct program_key anchor;	/* the sender's */
	uint32_t sender_pid;
	uint32_t sender_uid;
	char comm[EVENT_COMM_SIZE];	/* of the sending thread */
};

/* What decode() calls, one of them for each event; arg is its caller's. */
struct decode_ops {
	void (*exec)(const struct exec_event *event, void *arg);
	void (*state)(const struct state_event *event, void *arg);
	void (*cgroup)(const struct cgroup_event *event, void *arg);
	void (*signal)(const struct signal_event *event, void *arg);
};

#endif
