/*
 * SPDX-License-Identifier: Apache-2.0
 * aside: a process that undoes something when this one ends, however it ends.
 */
#include "base/aside.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/own.h"

static _Noreturn void
be_aside(const char *name, int (*work)(int fd, void *arg), void *arg, int fd)
{
	int r = 0;

	prctl(PR_SET_NAME, name);
	own_forget_arguments();
	if (setsid() < 0 || dup3(fd, 0, 0) < 0 || chdir("/") < 0)
		r = -errno;
	if (r == 0)
		r = descriptors_close_from(1);
	if (r == 0)
		r = work(0, arg);
	_exit(-r);
}

int
aside_start(const char *name, int (*work)(int fd, void *arg), void *arg, struct aside *ret)
{
	sigset_t all, before;
	int fds[2], error;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid = fork();
	error = errno;
	if (pid == 0)
		be_aside(name, work, arg, fds[1]);
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return -error;
	}
	*ret = (struct aside){ pid, fds[0] };
	return 0;
}

int
aside_end(struct aside *a)
{
	int status = 0;

	if (a->pid == 0)
		return 0;
	close(a->fd);
	while (waitpid(a->pid, &status, 0) < 0 && errno == EINTR)
		continue;
	*a = (struct aside){ 0 };
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD;
}
