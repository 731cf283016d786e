/*
 * SPDX-License-Identifier: Apache-2.0
 * child: runs a program to its end, within a time, and collects what it prints.
 */
#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"

enum {
	POLL_MS = 20,		/* how late the end of a child is noticed whose children keep its output open */
};

static _Noreturn void
become(const struct child_options *o, int out, pid_t parent)
{
	int null = open("/dev/null", O_RDWR);
	sigset_t none;

	setpgid(0, 0);
	if (o->ends_with_us && (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent))
		_exit(CHILD_NOT_EXECUTED);
	for (int signo = 1; signo < NSIG; signo++)
		signal(signo, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
	    (!o->is_quiet || dup2(null, STDERR_FILENO) >= 0) && descriptors_close_from(3) == 0)
		execve(o->path, o->argv, o->environment != NULL ? o->environment : environ);
	_exit(CHILD_NOT_EXECUTED);
}

/*
 * Reads what is there, into nothing but out: it may be a secret. Returns 1 while the pipe is open, 0 at its end, or a
 * negative errno.
 */
static int
collect(int fd, size_t max, struct bytes *out)
{
	for (;;) {
		char dropped[CHILD_PIECE];
		ssize_t n;

		if (out != NULL && bytes_reserve(out, CHILD_PIECE) < 0)
			return -ENOMEM;
		n = read(fd, out != NULL ? (char *)out->data + out->len : dropped, CHILD_PIECE);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 1 : -errno;
		if (n == 0)
			return 0;
		if (out == NULL)
			continue;
		out->len += (size_t)n;
		if (out->len > max) {
			out->len = max;
			return -EFBIG;
		}
	}
}

static int
wait_for(pid_t pid, int fd, const struct child_options *o, struct bytes *out, int *ret_status)
{
	int64_t until = clock_ms(CLOCK_MONOTONIC) + (int64_t)o->timeout_ms;
	bool is_open = true;

	for (;;) {
		struct pollfd p = { .fd = is_open ? fd : -1, .events = POLLIN };
		pid_t ended = waitpid(pid, ret_status, WNOHANG);
		int r = 0;

		/* Also after its end: its last output is still in the pipe. */
		if (is_open) {
			r = collect(fd, o->output_max, out);
			is_open = r == 1;
		}
		if (ended == pid)
			return r < 0 ? r : 0;
		if (r >= 0 && ended < 0 && errno != EINTR)
			r = -errno;
		if (r >= 0 && o->stop != NULL && *o->stop != 0)
			r = -EINTR;
		if (r >= 0 && clock_ms(CLOCK_MONOTONIC) >= until)
			r = -ETIMEDOUT;
		if (r < 0) {
			kill(-pid, SIGKILL);
			kill(pid, SIGKILL);	/* it may not have a process group of its own yet */
			while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
				;
			return r;
		}
		poll(&p, 1, POLL_MS);
	}
}

int
child_run(const struct child_options *o, struct bytes *out, int *ret_status)
{
	pid_t parent = getpid(), pid;
	int fds[2], r;

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	/* The child's end blocks, as every program expects of its output. */
	fcntl(fds[1], F_SETFL, 0);
	pid = fork();
	if (pid == 0)
		become(o, fds[1], parent);
	r = pid < 0 ? -errno : 0;
	close(fds[1]);
	if (r == 0)
		r = wait_for(pid, fds[0], o, out, ret_status);
	close(fds[0]);
	if (r == 0 && out != NULL) {
		r = bytes_append(out, "", 1);
		if (r == 0)
			out->len--;
	}
	return r;
}
