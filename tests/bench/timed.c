/*
 * SPDX-License-Identifier: Apache-2.0
 * timed OUT COMMAND [ARG…]: runs COMMAND and writes the usage of it and all its reaped descendants as
 * one JSON line. The innermost program of every arm, so that all arms are measured in the same way.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int64_t
monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int64_t
timeval_ns(struct timeval tv)
{
	return (int64_t)tv.tv_sec * 1000000000 + (int64_t)tv.tv_usec * 1000;
}

int
main(int argc, char **argv)
{
	struct rusage used;
	int64_t start, end;
	int status;
	pid_t pid;
	FILE *f;

	if (argc < 3) {
		fputs("usage: timed OUT COMMAND [ARG…]\n", stderr);
		return 2;
	}
	start = monotonic_ns();
	pid = fork();
	if (pid == 0) {
		execvp(argv[2], argv + 2);
		fprintf(stderr, "timed: %s: %s\n", argv[2], strerror(errno));
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &used) != pid) {
		fprintf(stderr, "timed: %s\n", strerror(errno));
		return 125;
	}
	end = monotonic_ns();
	f = fopen(argv[1], "we");
	if (f == NULL ||
	    fprintf(f, "{\"wall_ns\": %lld, \"user_ns\": %lld, \"system_ns\": %lld, \"peak_kib\": %ld}\n",
	    (long long)(end - start), (long long)timeval_ns(used.ru_utime),
	    (long long)timeval_ns(used.ru_stime), used.ru_maxrss) < 0 || fclose(f) != 0) {
		fprintf(stderr, "timed: %s: %s\n", argv[1], strerror(errno));
		return 125;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
