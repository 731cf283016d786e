/*
 * SPDX-License-Identifier: Apache-2.0
 * self_test_part: the programs of the tree that the self-test runs. Each that has children prints a line about each of
 * them, "NAME EXIT SIGNAL PID CPU_NS", as the kernel reports it to its parent.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/exit_codes.h"
#include "cli/self_test.h"

enum {
	PIPE_BYTES = 1 << 20,
	FORKS = 3,
	FORK_STATUS = 11,	/* exit status of the first child that does not call exec */
	NOT_RUN = 99,
};

const struct self_test_program self_test_programs[] = {
	{ "root", NULL, .wrote = -1, .read = -1 },
	{ "plain", "root", .wrote = 0, .read = -1 },
	{ "seven", "root", .exit_code = 7, .wrote = 0, .read = -1 },
	{ "killed", "root", .exit_signal = SIGKILL, .wrote = 0, .read = -1 },
	{ "first", "root", .is_replaced = true, .wrote = 0, .read = -1 },
	{ "second", "first", .exit_code = 5, .wrote = 0, .read = -1 },
	{ "writer", "root", .wrote = PIPE_BYTES, .read = -1 },
	{ "reader", "root", .wrote = 0, .read = PIPE_BYTES },
	{ "busy", "root", .wrote = 0, .read = -1, .is_busy = true },
	{ "nest", "root", .wrote = -1, .read = -1 },
	{ "leaf", "nest", .exit_code = 3, .wrote = 0, .read = -1 },
	{ "forks", "root", .wrote = -1, .read = -1 },
	{ "forks", "forks", .is_forked = true, .exit_code = FORK_STATUS, .wrote = 0, .read = -1 },
	{ "forks", "forks", .is_forked = true, .exit_code = FORK_STATUS + 1, .wrote = 0, .read = -1 },
	{ "forks", "forks", .is_forked = true, .exit_code = FORK_STATUS + 2, .wrote = 0, .read = -1 },
};

const unsigned self_test_n_programs = sizeof(self_test_programs) / sizeof(self_test_programs[0]);

static _Noreturn void
become(const char *name)
{
	char program[] = "sluice", doctor[] = "doctor", option[] = "--" SELF_TEST_PART;
	char *argv[] = { program, doctor, option, (char *)name, NULL };

	execv("/proc/self/exe", argv);
	_exit(NOT_RUN);
}

/* Starts one with these as its input and output; -1: ours. */
static pid_t
start(const char *name, int in, int out)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	if ((in >= 0 && dup2(in, STDIN_FILENO) < 0) || (out >= 0 && dup2(out, STDOUT_FILENO) < 0))
		_exit(NOT_RUN);
	(void)descriptors_close_from(3);
	become(name);
}

/* Waits for a child and prints its line. */
static int
finish(const char *name, pid_t pid)
{
	struct rusage usage;
	int status, signo;

	while (pid > 0 && wait4(pid, &status, 0, &usage) < 0) {
		if (errno != EINTR)
			return -1;
	}
	if (pid < 0)
		return -1;
	signo = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	return dprintf(STDOUT_FILENO, "%s %d %d %d %lld\n", name, signo == 0 ? WEXITSTATUS(status) : 0, signo, (int)pid,
	    (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000LL +
	    (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000LL);
}

static int
run_pipe(void)
{
	pid_t writer, reader;
	int fds[2];

	if (pipe(fds) < 0)
		return -1;
	writer = start("writer", -1, fds[1]);
	reader = start("reader", fds[0], -1);
	close(fds[0]);
	close(fds[1]);
	if (finish("writer", writer) < 0)
		return -1;
	return finish("reader", reader);
}

static int
root(void)
{
	static const char *const single[] = { "plain", "seven", "killed", "busy", "nest", "forks" };

	dprintf(STDOUT_FILENO, "root 0 0 %d 0\n", (int)getpid());
	for (size_t i = 0; i < sizeof(single) / sizeof(single[0]); i++) {
		if (finish(single[i], start(single[i], -1, -1)) < 0)
			return NOT_RUN;
	}
	/* It becomes the second before it ends. */
	if (finish("second", start("first", -1, -1)) < 0 || run_pipe() < 0)
		return NOT_RUN;
	return 0;
}

static int
forks(void)
{
	for (int i = 0; i < FORKS; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(FORK_STATUS + i);
		if (finish("forks", pid) < 0)
			return NOT_RUN;
	}
	return 0;
}

/* Copies exactly so many bytes to the output, or from the input. */
static int
move(bool writes)
{
	static char buf[16384];
	size_t done = 0;

	while (done < PIPE_BYTES) {
		ssize_t n = writes ? write(STDOUT_FILENO, buf, sizeof(buf)) : read(STDIN_FILENO, buf, sizeof(buf));

		if (n <= 0)
			return NOT_RUN;
		done += (size_t)n;
	}
	return done == PIPE_BYTES ? 0 : NOT_RUN;
}

static int
busy(void)
{
	struct timespec used;
	volatile unsigned turns = 0;

	do {
		for (int i = 0; i < 100000; i++)
			turns = turns + 1;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	} while (used.tv_sec == 0 && used.tv_nsec < SELF_TEST_BUSY_NS);
	return 0;
}

int
self_test_part(const char *name)
{
	if (strcmp(name, "root") == 0)
		return root();
	if (strcmp(name, "plain") == 0)
		return 0;
	if (strcmp(name, "seven") == 0)
		return 7;
	if (strcmp(name, "killed") == 0)
		return kill(getpid(), SIGKILL) == 0 ? 0 : NOT_RUN;
	if (strcmp(name, "first") == 0)
		become("second");
	if (strcmp(name, "second") == 0)
		return 5;
	if (strcmp(name, "writer") == 0 || strcmp(name, "reader") == 0)
		return move(name[0] == 'w');
	if (strcmp(name, "busy") == 0)
		return busy();
	if (strcmp(name, "nest") == 0)
		return finish("leaf", start("leaf", -1, -1)) < 0 ? NOT_RUN : 0;
	if (strcmp(name, "leaf") == 0)
		return 3;
	if (strcmp(name, "forks") == 0)
		return forks();
	return EXIT_USAGE;
}
