/*
 * SPDX-License-Identifier: Apache-2.0
 * witness: a process that sleeps in our process group and reports which signals it receives: those that were
 * sent not to us alone, but to the group, the cgroup or every process.
 */
#ifndef SLUICE_CLI_WITNESS_H
#define SLUICE_CLI_WITNESS_H

#include <stdbool.h>
#include <sys/types.h>

struct witness {
	pid_t pid;	/* 0: none */
	int fd;		/* readable when there is something to read, and at its end; -1: none */
	int asked;	/* the number of the last question; 0: none was asked */
};

/* What witness_read returns that is not a signal's number (1 to 64). */
enum {
	WITNESS_NOTHING = 0,
	WITNESS_ENDED = -1,		/* it was killed */
	WITNESS_HAS_ANSWERED = -2,	/* each signal that it had received at the last question has been returned */
};

/*
 * Forks the witness; if that fails *ret has none. It holds no file but its pipe, looks like an idle process
 * without a command line, and dies with us. When this returns it has no_new_privs, no capability, and no system call
 * but those by which it waits for signals, reports them and ends. It keeps our uid: any user who may signal us may
 * signal it.
 */
void witness_start(struct witness *ret);
void witness_stop(struct witness *w);	/* kills and reaps it, closes fd; a witness that was not started is fine */

/*
 * Asks it to report all that it has received so far, however long it has had no CPU; witness_read has the answer.
 * False: it cannot be asked, since no more signals can be queued (RLIMIT_SIGPENDING).
 */
bool witness_ask(struct witness *w);

/* Returns the next signal that it received, or a value of the enum above. Answers to former questions are skipped. */
int witness_read(const struct witness *w);

#endif
