/*
 * SPDX-License-Identifier: Apache-2.0
 * aside: a process that undoes something when this one ends, however it ends.
 */
#ifndef SLUICE_BASE_ASIDE_H
#define SLUICE_BASE_ASIDE_H

#include <sys/types.h>

/* Zeroed: none was started. */
struct aside {
	pid_t pid;
	int fd;		/* a socket, of which the process has the other end */
};

/*
 * Forks a process that calls work(fd, arg) and ends with what it returns, 0 or a negative errno. It may write to fd,
 * which this process reads from ret->fd, and fd has no more to read once this process has ended, or has called
 * aside_end(). It is in a session of its own, has no other file, and no signal but SIGKILL and SIGSTOP reaches it,
 * so it outlives what ends this process: a terminal, a key, a signal to the group. It has no command line.
 *
 * name: at most 15 characters. Returns 0, or a negative errno with *ret untouched.
 */
int aside_start(const char *name, int (*work)(int fd, void *arg), void *arg, struct aside *ret);

/* Waits until work() has returned, and returns what it did; -ECHILD: the process was killed. If none was started: 0. */
int aside_end(struct aside *a);

#endif
