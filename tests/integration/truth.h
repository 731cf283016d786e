/*
 * SPDX-License-Identifier: Apache-2.0
 * truth: starts children of every kind and writes the kernel's own figures for each.
 *
 * The output is JSON lines: "process" by the process that reaped it (wait4 and /proc/PID/io, both with the
 * children that it reaped in turn), "image" by the program itself at its start and its end, "clock"
 * and "note" once per run. truth_reported.py reads them. Bytes are written in hex: names may contain any bytes.
 *
 * truth.c         the command line, the storm
 * truth_report.c  the lines
 * truth_ops.c     operations of a child: a list of words such as "spin 30 keep 48 exit 1"
 * truth_family.c  operations with children that are reaped, orphaned, in other namespaces ...
 * truth_net.c     operations that move bytes through sockets
 * truth_cases.c   the children that `truth all` starts
 * truth_exec.c    cases about the file and arguments of an exec
 * truth_cgroup.c  cases in cgroups of their own
 */
#ifndef TRUTH_H
#define TRUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define OUT_FD 200	/* the JSON lines; inherited, O_APPEND, one write(2) a line */

/* The expected values of a program that cannot report them itself (sh, env, one with a huge argv). */
struct want {
	int index;
	const char *exe;	/* NULL: not checked */
	const char *comm;	/* NULL: not checked */
	char *const *argv;	/* NULL: not checked */
};

/* A process about to be reaped. */
struct child {
	pid_t pid;		/* as its parent sees it */
	const char *name;	/* name of the case */
	int programs;
	bool forked;		/* never execs */
	bool shared_mm;		/* runs in its parent's memory, so it has no peak of its own */
	pid_t parent;		/* the process that forked it; 0: the one that reaps it */
	int oom_killed;		/* 1, 0, or -1: not checked */
	const struct want *wants;
	int n_wants;
};

enum birth { BY_SPAWN, BY_FORK_EXEC, BY_VFORK_EXEC, BY_FORK };

enum family { FAMILY_TCP, FAMILY_UDP, FAMILY_UNIX, FAMILIES };

/* truth_report.c */
extern uint64_t net_rx[FAMILIES], net_tx[FAMILIES];	/* bytes moved by this process so far */
extern int threads_peak;				/* most threads of this program so far */
void report_to(const char *path);		/* truncates path and opens it as OUT_FD */
void report_clock(void);
void report_note(const char *name, const char *key, long long value);
void report_skip(const char *name, const char *reason);
/* Writes the first "image" line of the running program. argv NULL: left out. */
void report_start(char *const *argv);
void report_end(int exit_code);			/* the last one; -1: no exit code, or unknown */
void report_rest(void);				/* the program has done its work and only sleeps */
void image_reset(void);				/* after fork: resets the counters */
/* Waits for c, writes its "process" line and returns its wait status. */
int reap(const struct child *c);
void fail(const char *what) __attribute__((noreturn));
pid_t host_pid(pid_t pid);			/* the pid in /proc; 0: this process */
bool read_text(const char *path, char *buf, size_t size);	/* NUL-terminated, may be cut */
bool write_text(const char *path, const char *text);
uint64_t process_cpu_ns(void);

/* truth_ops.c */
extern const char *self_path;			/* this binary */
extern const char *case_name;
extern int image_index;
void run_ops(char *const *ops) __attribute__((noreturn));
/* Starts a child that executes ops (words separated by blanks). BY_FORK: without exec. Returns its pid. */
pid_t start(enum birth birth, const char *ops);
char **split_words(const char *text, const char *first, const char *second);	/* never freed */
void spin_ms(unsigned ms);
void sleep_ms(unsigned ms);
void exec_ops(char *const *ops) __attribute__((noreturn));	/* execs this binary again */

/* truth_family.c, truth_net.c: execute a word. True: *at is after its arguments; false: unknown word. */
bool family_op(char *const **at);
bool net_op(char *const **at);

/* truth_cases.c */
int cases_run(const char *only);		/* NULL: all */
void cases_list(void);
const char *room_path(const char *name);	/* a path in the run's directory; valid until the next call */
void copy_self(const char *name);		/* copies this binary there, under that name */
int end(pid_t pid, const char *name, int programs, bool forked);	/* reap() without expectations */
void wait_stopped(pid_t pid);	/* waits until it has stopped itself */

/* truth_exec.c */
void case_argv_bytes(void);
void case_argv_100k(void);
void case_argv_3000(void);
void case_argc_0(void);
void case_long_name(void);
void case_odd_name(void);
void case_deleted_exe(void);
void case_from_memfd(void);
void case_script_own(void);
void case_script_sh(void);
void case_script_env(void);
void case_shell_execs(void);
void case_path_search(void);
void case_exec_fails(void);

/* truth_cgroup.c */
void case_cgroup_v1(void);
void case_cgroup_v2(void);
void case_out_of_memory(void);

#endif
