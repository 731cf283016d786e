/*
 * SPDX-License-Identifier: Apache-2.0
 * witness: a process that sleeps in our process group and reports which signals it receives: those that were
 * sent not to us alone, but to the group, the cgroup or every process.
 */
#ifndef SLUICE_CLI_WITNESS_H
#define SLUICE_CLI_WITNESS_H

#include <sys/types.h>

struct witness {
	pid_t pid;	/* 0: none */
	int fd;		/* readable when a signal is to be read, and at its end; -1: none */
};

/*
 * Forks the witness; if that fails *ret has none. It holds no file but its pipe, looks like an idle process
 * without a command line, and dies with us.
 */
void witness_start(struct witness *ret);
void witness_stop(struct witness *w);	/* kills and reaps it, closes fd; a witness that was not started is fine */

/* Returns the next signal that it received; 0: none for now; -1: it has ended (it was killed). */
int witness_read(const struct witness *w);

#endif
