/*
 * SPDX-License-Identifier: Apache-2.0
 * truth: the command line, and a storm of short processes.
 */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "truth.h"

extern char **environ;

#define SPAWNERS 4	/* more than the CPUs, to keep all of them busy */
#define IN_FLIGHT 4	/* concurrent children of a spawner */

static const char usage[] =
    "usage: truth all OUT.jsonl         start every kind of child, write what the kernel says of each\n"
    "       truth case NAME OUT.jsonl   one of them\n"
    "       truth list                  their names\n"
    "       truth storm N               N processes that exit at once, as fast as it goes\n"
    "       truth do WORD...            what a child does\n"
    "       truth x                     exit at once\n";

static void
spawn_some(int n)
{
	char *argv[] = { (char *)"truth", (char *)"x", NULL };
	int started = 0, alive = 0, status;
	pid_t pid;

	while (started < n || alive > 0) {
		if (started < n && alive < IN_FLIGHT) {
			if ((errno = posix_spawn(&pid, self_path, NULL, NULL, argv, environ)))
				fail("posix_spawn");
			started++;
			alive++;
		} else if (wait(&status) > 0) {
			alive--;
			if (status != 0)
				_exit(1);
		}
	}
}

/* Prints the number of processes that it started: n and the spawners. */
static int
storm(int n)
{
	int failed = 0, status;

	for (int i = 0; i < SPAWNERS; i++) {
		pid_t pid = fork();

		if (pid < 0)
			fail("fork");
		if (pid == 0) {
			spawn_some(n / SPAWNERS + (i < n % SPAWNERS));
			_exit(0);
		}
	}
	while (wait(&status) > 0)
		failed |= status;
	if (failed) {
		fprintf(stderr, "truth: a spawner failed\n");
		return 1;
	}
	printf("{\"started\": %d, \"spawners\": %d}\n", n, SPAWNERS);
	return 0;
}

static const char *
own_path(void)
{
	static char path[4096];
	const char *told = getenv("TRUTH_SELF");
	ssize_t n;

	if (told)
		return told;
	n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	if (n < 0)
		fail("/proc/self/exe");
	path[n] = '\0';
	return path;
}

/* Runs a child: writes its first line, executes its operations, writes its usage. */
static void __attribute__((noreturn))
be_child(int argc, char **argv)
{
	const char *told = getenv("TRUTH_OPS");
	const char *index = getenv("TRUTH_IMAGE");
	size_t len = 0;

	case_name = getenv("TRUTH_CASE");
	image_index = index ? atoi(index) : 0;
	for (int i = 0; i < argc; i++)
		len += strlen(argv[i]) + 1;
	report_start(len <= 4096 ? argv : NULL);	/* the launcher writes longer ones */
	unsetenv("TRUTH_OPS");
	if (argc > 2 && !strcmp(argv[1], "do"))
		run_ops(argv + 2);
	run_ops(split_words(told ? told : "", NULL, NULL));
}

int
main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "x"))
		return 0;
	self_path = own_path();
	if (getenv("TRUTH_OPS") || (argc > 2 && !strcmp(argv[1], "do")))
		be_child(argc, argv);
	if (argc == 2 && !strcmp(argv[1], "list")) {
		cases_list();
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "storm") && atoi(argv[2]) > 0)
		return storm(atoi(argv[2]));
	if ((argc == 3 && !strcmp(argv[1], "all")) || (argc == 4 && !strcmp(argv[1], "case"))) {
		int run;

		report_to(argv[argc - 1]);
		report_clock();
		run = cases_run(argc == 4 ? argv[2] : NULL);
		if (run == 0) {
			fprintf(stderr, "truth: no case %s\n", argv[2]);
			return 2;
		}
		printf("truth: %d cases\n", run);
		return 0;
	}
	fputs(usage, stderr);
	return 2;
}
