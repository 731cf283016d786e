/*
 * SPDX-License-Identifier: Apache-2.0
 * storm: the loads of the benchmarks, reduced to what is measured:
 *
 *	storm spawn N WORKERS TINY	N times posix_spawn(TINY) and wait, shared among WORKERS processes
 *	storm pace N RATE TINY		N times the same, one after the other, RATE per second
 *	storm hold N TINY		N processes that stay alive; "ready" on stdout; ends with stdin
 *	storm talk N			N messages through a socket pair
 */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static int
fail(const char *what, int error)
{
	fprintf(stderr, "storm: %s: %s\n", what, strerror(error));
	return 1;
}

/* Spawns one after the other, so that a worker keeps one CPU busy with fork, exec and exit only. */
static int
spawn_all(unsigned long n, char *tiny)
{
	char *argv[] = { tiny, NULL };

	for (unsigned long i = 0; i < n; i++) {
		int status, r;
		pid_t pid;

		r = posix_spawn(&pid, tiny, NULL, NULL, argv, environ);
		if (r != 0)
			return fail(tiny, r);
		while (waitpid(pid, &status, 0) < 0) {
			if (errno != EINTR)
				return fail("waitpid", errno);
		}
		if (status != 0)
			return fail(tiny, ECANCELED);
	}
	return 0;
}

static int
spawn(unsigned long n, unsigned long workers, char *tiny)
{
	int status, result = 0;

	if (workers == 1)
		return spawn_all(n, tiny);
	for (unsigned long i = 0; i < workers; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return fail("fork", errno);
		if (pid == 0)
			_exit(spawn_all(n / workers + (i < n % workers), tiny));
	}
	while (wait(&status) > 0)
		result |= status != 0;
	return result;
}

/* Spawns at a rate; delays are caught up, so that it holds on average. */
static int
pace(unsigned long n, unsigned long rate, char *tiny)
{
	struct timespec begin, until;
	int result = 0;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (unsigned long i = 0; i < n && result == 0; i++) {
		unsigned long long ns = (unsigned long long)begin.tv_nsec + i * 1000000000ull / rate;

		until.tv_sec = begin.tv_sec + (time_t)(ns / 1000000000);
		until.tv_nsec = (long)(ns % 1000000000);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
		result = spawn_all(1, tiny);
	}
	return result;
}

static int
hold(unsigned long n, char *tiny)
{
	char word[] = "wait", *argv[] = { tiny, word, NULL };
	pid_t *pids = calloc(n, sizeof(*pids));
	unsigned long started = 0;
	int result = 0;
	char c;

	if (pids == NULL)
		return fail("calloc", ENOMEM);
	for (; started < n; started++) {
		int r = posix_spawn(&pids[started], tiny, NULL, NULL, argv, environ);

		if (r != 0) {
			result = fail(tiny, r);
			break;
		}
	}
	if (result == 0) {
		puts("ready");
		fflush(stdout);
		while (read(STDIN_FILENO, &c, 1) > 0)
			continue;
	}
	for (unsigned long i = 0; i < started; i++)
		kill(pids[i], SIGKILL);
	for (unsigned long i = 0; i < started; i++)
		waitpid(pids[i], NULL, 0);
	free(pids);
	return result;
}

static int
talk(unsigned long n)
{
	char message[64] = "x";
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		return fail("socketpair", errno);
	for (unsigned long i = 0; i < n; i++) {
		if (send(pair[0], message, sizeof(message), 0) != sizeof(message) ||
		    recv(pair[1], message, sizeof(message), 0) != sizeof(message))
			return fail("socket", errno);
	}
	return 0;
}

int
main(int argc, char **argv)
{
	unsigned long n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	unsigned long workers = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;

	if (n > 0 && argc == 5 && workers > 0 && strcmp(argv[1], "spawn") == 0)
		return spawn(n, workers, argv[4]);
	if (n > 0 && argc == 5 && workers > 0 && strcmp(argv[1], "pace") == 0)
		return pace(n, workers, argv[4]);
	if (n > 0 && argc == 4 && strcmp(argv[1], "hold") == 0)
		return hold(n, argv[3]);
	if (n > 0 && argc == 3 && strcmp(argv[1], "talk") == 0)
		return talk(n);
	fputs("usage: storm spawn N WORKERS TINY | storm pace N RATE TINY | storm hold N TINY | storm talk N\n", stderr);
	return 2;
}
