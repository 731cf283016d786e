/*
 * SPDX-License-Identifier: Apache-2.0
 * truth: starts children of every kind and writes down what the kernel itself says of each.
 *
 * The output is JSON lines: "process" by whoever reaped it (wait4 and /proc/PID/io, both with the
 * children that it reaped in turn), "image" by the program itself at its start and its end, "clock"
 * and "note" once a run. truth_told.py reads them. Bytes are written in hex: names may hold
 * anything.
 *
 * truth.c         the command line, the storm
 * truth_report.c  the lines
 * truth_ops.c     what a child does: a list of words such as "spin 30 keep 48 exit 1"
 * truth_family.c  words whose children are themselves reaped, orphaned, renamespaced ...
 * truth_net.c     words that move bytes through sockets
 * truth_cases.c   which children `truth all` starts
 * truth_exec.c    those whose point is what is exec'd
 * truth_cgroup.c  those in control groups of their own
 */
#ifndef TRUTH_H
#define TRUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define OUT_FD 200	/* the JSON lines; inherited, O_APPEND, one write(2) a line */

/* What a launcher knows of a program that cannot say it itself (sh, env, one with huge argv). */
struct want {
	int index;
	const char *exe;	/* NULL: not told */
	const char *comm;	/* NULL: not told */
	char *const *argv;	/* NULL: not told */
};

/* A process about to be reaped. */
struct child {
	pid_t pid;		/* as its parent sees it */
	const char *name;	/* of the case */
	int programs;
	bool forked;		/* never execs */
	bool shared_mm;		/* runs in its parent's memory, so it has no peak of its own */
	pid_t parent;		/* who forked it, if that is not who reaps it; 0: the reaper */
	int oom_killed;		/* 1, 0, or -1: not told */
	const struct want *wants;
	int n_wants;
};

enum birth { BY_SPAWN, BY_FORK_EXEC, BY_VFORK_EXEC, BY_FORK };

enum family { FAMILY_TCP, FAMILY_UDP, FAMILY_UNIX, FAMILIES };

/* truth_report.c */
extern uint64_t net_rx[FAMILIES], net_tx[FAMILIES];	/* moved by this process so far */
extern int threads_peak;				/* of this program */
void report_to(const char *path);		/* opens path as OUT_FD, empty */
void report_clock(void);
void report_note(const char *name, const char *key, long long value);
void report_skip(const char *name, const char *reason);
/* The running program about itself. argv NULL: do not tell it. */
void report_start(char *const *argv);
void report_end(int exit_code);			/* -1: not by exit, or not known */
void report_rest(void);				/* it has done its work, and now only sleeps */
void image_reset(void);				/* after fork: nothing counted yet */
/* Waits for c, writes its "process" line and returns its wait status. */
int reap(const struct child *c);
void fail(const char *what) __attribute__((noreturn));
pid_t host_pid(pid_t pid);			/* as /proc names it; 0 is this process */
bool read_text(const char *path, char *buf, size_t size);	/* NUL-terminated, cut */
bool write_text(const char *path, const char *text);
uint64_t process_cpu_ns(void);

/* truth_ops.c */
extern const char *self_path;			/* this binary */
extern const char *case_name;
extern int image_index;
void run_ops(char *const *ops) __attribute__((noreturn));
/* Starts a child that does ops (words parted by blanks). BY_FORK: in this image. */
pid_t start(enum birth birth, const char *ops);
char **split_words(const char *text, const char *first, const char *second);	/* leaks: lives to the end */
void spin_ms(unsigned ms);
void sleep_ms(unsigned ms);
void exec_ops(char *const *ops) __attribute__((noreturn));	/* the next image of this process */

/* truth_family.c, truth_net.c: true if they know the word; *at then stands after its arguments. */
bool family_op(char *const **at);
bool net_op(char *const **at);

/* truth_cases.c */
int cases_run(const char *only);		/* NULL: all */
void cases_list(void);
const char *room_path(const char *name);	/* in the run's own directory; valid until the next call */
void copy_self(const char *name);		/* this binary there, under that name */
int end(pid_t pid, const char *name, int programs, bool forked);	/* reap() with the usual answers */
void wait_stopped(pid_t pid);	/* until it has stopped itself */

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
