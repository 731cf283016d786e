/*
 * SPDX-License-Identifier: Apache-2.0
 * command: starts COMMAND of `sluice run` as if the caller had started it, and ends as it ends.
 *
 * COMMAND is a direct child in our session and process group, with the descriptors, signal dispositions, mask,
 * limits, umask and working directory that we were started with. So the terminal's signals (Ctrl-C, Ctrl-\,
 * Ctrl-Z, a resize, a hang-up) reach it without us; signals that kill(2) sent to us alone are passed on, those
 * that were sent to the whole group are not sent twice. When it stops, we stop in the same way, so that a shell
 * sees the job stopped and takes its terminal back.
 *
 * Started through sudo by root's right but for a user (euid 0, SUDO_UID and SUDO_GID set), COMMAND runs as that
 * user: ids and groups as at a login of that user; HOME, USER, LOGNAME and SHELL from passwd; SUDO_USER,
 * SUDO_UID, SUDO_GID, SUDO_COMMAND, SUDO_HOME, SUDO_TTY and MAIL, which sudo sets, removed. PATH and the rest
 * stay as sudo set them, because their earlier values are unknown.
 */
#ifndef SLUICE_CLI_COMMAND_H
#define SLUICE_CLI_COMMAND_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

struct event_base;
struct persona;
struct command;			/* opaque: a started COMMAND and the signals that are caught for it */

#define COMMAND_FDS_MAX 256

/* The state that this process was started with, and that COMMAND is to be started with. */
struct command_inherited {
	sigset_t mask;
	sigset_t ignored;
	struct rlimit limits[RLIM_NLIMITS];
	bool has_limit[RLIM_NLIMITS];
	int fds[COMMAND_FDS_MAX];	/* fds above 2 that were open at the start: COMMAND's, not ours */
	size_t n_fds;
	bool has_more_fds;		/* more than fit: those stay open in this process too */
};

/*
 * Saves the inherited state; to be called first in main, before any code opens a file, sets a signal or raises a
 * limit. If stdin, stdout or stderr is closed it opens a close-on-exec /dev/null there, so that no file of ours
 * gets that number: COMMAND finds it closed again. In this process it ignores SIGPIPE and SIGXFSZ (a write fails
 * instead) and, if permitted, lifts the limits on CPU time, file size and memory: `ulimit -f` is meant for
 * COMMAND's files, not for the lake.
 */
void command_save_inherited(struct command_inherited *ret);

/* In a child before its exec: becomes the user p (persona.h). 0, or a negative errno, which errno has too. */
int command_become(const struct persona *p);
/* The same: restores limits, signal dispositions and mask. */
void command_restore(const struct command_inherited *in);

struct command_options {
	char *const *argv;	/* NULL-terminated; argv[0] is searched for in PATH */
	bool as_root;		/* stay root instead of becoming sudo's user */
	/*
	 * Called in the parent just before and after the fork, for example to let the kernel side follow the next
	 * child. pid is -1 if the fork failed. The child execs only once after_fork has returned 0; after a negative
	 * errno it is killed instead, which is a failure of the preparation. What after_fork takes from this process,
	 * COMMAND still has. NULL is fine.
	 */
	void (*before_fork)(void *arg);
	int (*after_fork)(pid_t pid, void *arg);
	/*
	 * Called once COMMAND has ended and was reaped, on the loop, never from within command_start. wait_status is
	 * that of wait(2). The loop continues until the callee ends it. Calling command_free is fine.
	 */
	void (*on_exit)(int wait_status, const struct rusage *usage, void *arg);
	/*
	 * Called before we stop because COMMAND has (true), or after we were continued (false): to remove the live
	 * line from the terminal and to draw it again. NULL is fine.
	 */
	void (*on_stop)(bool is_stopping, void *arg);
	/*
	 * Called for INT, QUIT, TERM or HUP after COMMAND's end: the user wants us to stop waiting for the rest
	 * (--wait) and finish. NULL: such a signal does nothing. It must not call command_free.
	 */
	void (*on_interrupt)(int signo, void *arg);
	void *arg;		/* the caller's, passed to all of them */
};

/*
 * Starts COMMAND, and from now on catches our signals for it (they are blocked and read on the loop). Returns
 * once it has exec'd. On failure returns a negative errno with *ret untouched and signals as they were;
 * *ret_is_exec is true if COMMAND itself failed (print NAME: strerror once, exit with command_exec_status) and
 * false if the preparation did (exit 125).
 *
 * In the parent it then gives up COMMAND's files: our stdin, stdout and each fd that was open at our start become
 * /dev/null or are closed, so that a pipe closes when COMMAND closes it. Only stderr is kept. So open files that the
 * command line names (--json /dev/fd/3) before this call. Every other fd of ours must be O_CLOEXEC.
 */
int command_start(struct event_base *base, const struct command_inherited *inherited,
    const struct command_options *options, struct command **ret, bool *ret_is_exec);

/* Frees c; neither waits for nor kills COMMAND. Signals stay blocked. NULL is fine. */
void command_free(struct command *c);

/* Returns env(1)'s exit status for an exec that failed with this errno (positive or negative): 127 or 126. */
int command_exec_status(int error);

/* Returns the exit status for a wait status: the code, or 128 + n for signal n. */
int command_exit_status(int wait_status);

/*
 * Ends this process as COMMAND ended; to be called after the lake is closed, while c still exists. This is
 * exit(command_exit_status()) except if COMMAND died of a SIGINT that we got too (Ctrl-C). Then we die of SIGINT
 * as well (stdio flushed, atexit not run): a shell shows 130 either way, but only so does a script, or a loop at
 * the prompt, stop instead of continuing with its next line.
 */
_Noreturn void command_exit(struct command *c, int wait_status);

/*
 * Returns true if writing to stderr disturbs no other program: it is no terminal, or we are in its foreground.
 * Call it before each draw of the live line. (Writes that are made regardless cannot stop us: SIGTTOU is
 * blocked.)
 */
bool command_in_foreground(void);

#endif
