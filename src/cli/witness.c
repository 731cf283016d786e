/*
 * SPDX-License-Identifier: Apache-2.0
 * witness: a process that sleeps in our process group and reports which signals it receives.
 */
#include "cli/witness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Empties our command line, because pkill -f must find sluice but not the witness. */
static void
forget_argv(void)
{
	char text[1024], *field;
	FILE *f = fopen("/proc/self/stat", "re");
	unsigned long start, end;

	if (f == NULL)
		return;
	field = fgets(text, sizeof(text), f);
	fclose(f);
	if (field == NULL || (field = strrchr(text, ')')) == NULL)
		return;
	for (int i = 2; i < 48 && field != NULL; i++)	/* fields 48 and 49: arg_start, arg_end */
		field = strchr(field + 1, ' ');
	if (field != NULL && sscanf(field, "%lu %lu", &start, &end) == 2 && start != 0 && end > start)
		memset((void *)start, 0, end - start);	/* where the kernel put argv */
}

/* The main loop of the witness: reports the group's signals, one by one, until its parent dies or kills it. */
static _Noreturn void
be_witness(int fd, pid_t parent)
{
	sigset_t all;
	int signo;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	prctl(PR_SET_NAME, "run-witness");
	setpriority(PRIO_PROCESS, 0, -20);	/* it must report in time on a busy host */
	forget_argv();
	/* No file of COMMAND's may stay open, least of all its pipes. */
	if (dup3(fd, 0, 0) < 0 || syscall(SYS_close_range, 1U, ~0U, 0U) < 0)
		_exit(0);
	sigfillset(&all);
	for (;;) {
		signo = sigwaitinfo(&all, NULL);
		if (signo > 0 && write(0, &signo, sizeof(signo)) < 0 && errno != EAGAIN)
			_exit(0);
	}
}

void
witness_start(struct witness *ret)
{
	pid_t parent = getpid();
	sigset_t all, before;
	int fds[2];

	*ret = (struct witness){ .fd = -1 };
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);	/* it must neither miss a signal nor die of one */
	ret->pid = fork();
	if (ret->pid == 0)
		be_witness(fds[1], parent);
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(fds[1]);
	if (ret->pid < 0) {
		ret->pid = 0;
		close(fds[0]);
		return;
	}
	ret->fd = fds[0];
}

void
witness_stop(struct witness *w)
{
	if (w->pid > 0) {
		kill(w->pid, SIGKILL);
		while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (w->fd >= 0)
		close(w->fd);
	*w = (struct witness){ .fd = -1 };
}

int
witness_read(const struct witness *w)
{
	int signo;
	ssize_t n = read(w->fd, &signo, sizeof(signo));	/* less than PIPE_BUF is atomic */

	if (n == (ssize_t)sizeof(signo))
		return signo;
	return n == 0 ? -1 : 0;
}
