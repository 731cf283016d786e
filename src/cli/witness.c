/*
 * SPDX-License-Identifier: Apache-2.0
 * witness: a process that sleeps in our process group and reports which signals it receives. It can do nothing else.
 */
#include "cli/witness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/privileges.h"
#include "base/descriptors.h"
#include "base/own.h"
#include "base/sandbox.h"

#ifndef __has_feature
#define __has_feature(name) 0		/* gcc */
#endif

#define ANY(call) { .number = SYS_##call }

/* All that it does once it is ready. */
static const struct sandbox_call calls[] = {
	ANY(rt_sigtimedwait), ANY(write), ANY(exit_group),
#if __has_feature(address_sanitizer) || defined(__SANITIZE_ADDRESS__)
	ANY(gettid), ANY(sigaltstack),	/* before a function that does not return */
#endif
};

/* What the witness writes; shorter than PIPE_BUF, so that it is read whole. */
struct report {
	int signo;	/* it received this; 0: it answers a question */
	int answered;	/* the question's number; 0: none was asked, it is ready */
};

/* Gives up all but the ids: by the uid, signals that others send to the group reach it as they reach us. */
static bool
give_up(pid_t parent)
{
	const struct privileges_options o = { .no_new_privs = true };
	char error[256];

	if (privileges_drop(&o, error, sizeof(error)) < 0)
		return false;
	/* Again: the kernel may forget it as the credentials change. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		return false;
	return sandbox_system_calls(calls, sizeof(calls) / sizeof(calls[0])) == 0;
}

/*
 * The main loop of the witness: reports the group's signals, one by one, until its parent dies or kills it. A
 * question is a SIGRTMAX with its number, because the kernel hands out the pending signal of the lowest number first,
 * and signals of one number in their order (signal(7)): so what was pending when the question came is reported before
 * its answer.
 */
static _Noreturn void
be_witness(int fd, pid_t parent)
{
	struct report report = { 0 };
	siginfo_t info;
	sigset_t all;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	prctl(PR_SET_NAME, "run-witness");
	setpriority(PRIO_PROCESS, 0, -20);	/* it must report in time on a busy host */
	own_forget_arguments();	/* pkill -f must find sluice but not the witness */
	/* No file of COMMAND's may stay open, least of all its pipes. */
	if (dup3(fd, 0, 0) < 0 || descriptors_close_from(1) < 0 || !give_up(parent))
		_exit(0);
	sigfillset(&all);
	while (write(0, &report, sizeof(report)) >= 0 || errno == EAGAIN) {
		do
			report = (struct report){ .signo = sigwaitinfo(&all, &info) };
		while (report.signo < 0 && errno == EINTR);
		if (report.signo < 0)
			break;
		if (report.signo == SIGRTMAX && info.si_code == SI_QUEUE && info.si_pid == parent)
			report = (struct report){ .answered = info.si_value.sival_int };
	}
	_exit(0);
}

/* Returns whether it is ready: it has given up what it does not need. */
static bool
await_ready(const struct witness *w)
{
	struct pollfd pipe = { .fd = w->fd, .events = POLLIN };

	while (poll(&pipe, 1, -1) < 0 && errno == EINTR)
		continue;
	return witness_read(w) == WITNESS_HAS_ANSWERED;
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
	if (!await_ready(ret))
		witness_stop(ret);
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

bool
witness_ask(struct witness *w)
{
	w->asked++;
	return sigqueue(w->pid, SIGRTMAX, (union sigval){ .sival_int = w->asked }) == 0;
}

int
witness_read(const struct witness *w)
{
	struct report report;
	ssize_t n;

	while ((n = read(w->fd, &report, sizeof(report))) == (ssize_t)sizeof(report)) {
		if (report.signo != 0)
			return report.signo;
		if (report.answered == w->asked)
			return WITNESS_HAS_ANSWERED;
	}
	return n == 0 ? WITNESS_ENDED : WITNESS_NOTHING;
}
