/*
 * SPDX-License-Identifier: Apache-2.0
 * witness: a process that sleeps in our process group and tells which signals it gets: those that
 * were sent not to us alone, but to the group, the cgroup or everybody.
 */
#ifndef SLUICE_CLI_WITNESS_H
#define SLUICE_CLI_WITNESS_H

#include <sys/types.h>

struct witness {
	pid_t pid;	/* 0: none */
	int fd;		/* readable when it has something to tell, and at its end; -1: none */
};

/*
 * Forks it, or leaves *ret without one where that fails. It holds no file but its pipe, cannot be
 * told from an idle process without a command line, and dies with us.
 */
void witness_start(struct witness *ret);
void witness_stop(struct witness *w);	/* kills and reaps it, closes fd; none is fine */

/* The next signal that it got; 0: none for now; -1: it has ended (somebody killed it). */
int witness_read(const struct witness *w);

#endif
