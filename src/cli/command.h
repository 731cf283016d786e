/*
 * SPDX-License-Identifier: Apache-2.0
 * command: starts COMMAND of `sluice run` as if the caller had started it, and ends as it ends.
 *
 * COMMAND is our direct child in our own session and process group, with the descriptors, signal
 * dispositions, mask, limits, umask and working directory that we were started with. So the
 * terminal's signals (Ctrl-C, Ctrl-\, Ctrl-Z, a resize, a hang-up) reach it without us; what is
 * sent by kill(2) to us alone is passed on, what was sent to all of us is not sent twice. When it
 * stops, we stop in the same way, so that a shell sees the job stopped and takes its terminal back.
 *
 * Started through sudo by root's right but for a user (euid 0, SUDO_UID and SUDO_GID set), COMMAND
 * runs as that user: ids and groups as at a login of that user; HOME, USER, LOGNAME and SHELL from
 * passwd; SUDO_USER, SUDO_UID, SUDO_GID, SUDO_COMMAND, SUDO_HOME, SUDO_TTY and MAIL, which sudo
 * sets, removed. PATH and the rest stay as sudo gave them, for what they were before is not known.
 */
#ifndef SLUICE_CLI_COMMAND_H
#define SLUICE_CLI_COMMAND_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

struct event_base;
struct command;			/* opaque: a started COMMAND and the signals that we catch for it */

#define COMMAND_FDS_MAX 256

/* What we were started with and COMMAND is to be started with. */
struct command_inherited {
	sigset_t mask;
	sigset_t ignored;
	struct rlimit limits[RLIM_NLIMITS];
	bool has_limit[RLIM_NLIMITS];
	int fds[COMMAND_FDS_MAX];	/* above 2, open at our start: COMMAND's, not ours */
	size_t n_fds;
	bool has_more_fds;		/* than fit: those stay open in us too */
};

/*
 * To be called first in main, before anything opens a file, sets a signal or raises a limit.
 * Where stdin, stdout or stderr is closed it puts a close-on-exec /dev/null there, so that no file
 * of ours takes that number: COMMAND finds it closed again. In us it ignores SIGPIPE and SIGXFSZ
 * (a write fails instead) and, where we may, lifts the limits on CPU time, file size and memory:
 * `ulimit -f` is meant for COMMAND's files, not for the lake.
 */
void command_save_inherited(struct command_inherited *ret);

struct command_options {
	char *const *argv;	/* NULL-terminated; argv[0] is sought in PATH */
	bool as_root;		/* do not become sudo's user */
	bool keep_stdout;	/* we write to stdout ourselves (--json -) */
	/*
	 * Just before and after the fork, in the parent: the place to tell the kernel side to follow
	 * the next child. pid is -1 where the fork failed. The child execs only once after_fork has
	 * returned. NULL is fine.
	 */
	void (*before_fork)(void *arg);
	void (*after_fork)(pid_t pid, void *arg);
	/*
	 * COMMAND has ended and was reaped; once, on the loop, never from within command_start.
	 * wait_status is wait(2)'s. The loop goes on: the callee ends it. Calling command_free is fine.
	 */
	void (*on_exit)(int wait_status, const struct rusage *usage, void *arg);
	/*
	 * We are about to stop because COMMAND has (true), or have been continued (false): to take the
	 * live line off the terminal and to draw it again. NULL is fine.
	 */
	void (*on_stop)(bool is_stopping, void *arg);
	/*
	 * INT, QUIT, TERM or HUP came after COMMAND's end: somebody wants us to stop waiting for
	 * the rest (--wait) and finish. NULL: such a signal does nothing. No command_free in here.
	 */
	void (*on_interrupt)(int signo, void *arg);
	void *arg;		/* the caller's, given to all of them */
};

/*
 * Starts COMMAND, and from here on catches our signals for it (they are blocked and read on the
 * loop). Returns once it has exec'd. On failure a negative errno, *ret untouched, signals as they
 * were, and *ret_is_exec tells what failed: COMMAND itself (print NAME: strerror once, exit with
 * command_exec_status) or the way there (exit 125).
 *
 * In the parent it then gives away what is COMMAND's: our stdin, stdout (unless keep_stdout) and
 * each fd that was open at our start become /dev/null or closed, so that a pipe closes when
 * COMMAND closes it. Only stderr is kept. So open what the command line names (--json /dev/fd/3)
 * before this call. Every other fd of ours must be O_CLOEXEC.
 */
int command_start(struct event_base *base, const struct command_inherited *inherited,
    const struct command_options *options, struct command **ret, bool *ret_is_exec);

/* Frees what is ours; neither waits for nor kills COMMAND. Signals stay blocked. NULL is fine. */
void command_free(struct command *c);

/* env(1)'s exit status when exec failed with this errno (positive or negative): 127 or 126. */
int command_exec_status(int error);

/* The exit status for a wait status: the code, or 128 + n for signal n. */
int command_exit_status(int wait_status);

/*
 * Ends this process as COMMAND ended, once the lake is closed and c still there: that is
 * exit(command_exit_status()), but for one case: COMMAND died of a SIGINT that we got too (Ctrl-C).
 * Then we die of SIGINT as well (stdio flushed, atexit not run): a shell shows 130 either way, but
 * only so does a script, or a loop at the prompt, stop instead of going on to its next line.
 */
_Noreturn void command_exit(struct command *c, int wait_status);

/*
 * True if writing to stderr disturbs nobody: it is no terminal, or we are in its foreground. Ask
 * before each draw of the live line. (The writes that are made regardless cannot stop us: SIGTTOU
 * is blocked.)
 */
bool command_in_foreground(void);

#endif
