/*
 * SPDX-License-Identifier: Apache-2.0
 * sleepers MARK N: starts N child processes, each of which execs and waits, with the arguments "sleeper MARK
 * NUMBER".
 *
 * Prints "ready" once all have called exec; ends them, one after the other, when its standard input ends.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void
sleeps(const char *mark, int number)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", number);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execl("/proc/self/exe", "sleeper", mark, text, NULL);
	_exit(127);
}

int
main(int argc, char **argv)
{
	int n, fds[2], failed = 0, status;
	pid_t *pids;
	char byte;

	if (argc == 3 && strcmp(argv[0], "sleeper") == 0) {
		for (;;)
			pause();
	}
	n = argc == 3 ? atoi(argv[2]) : 0;
	pids = calloc(n > 0 ? (size_t)n : 1, sizeof(*pids));
	if (n <= 0 || pids == NULL || pipe2(fds, O_CLOEXEC) < 0) {
		fputs("usage: sleepers MARK N\n", stderr);
		return 2;
	}
	for (int i = 0; i < n; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			sleeps(argv[1], i);
		if (pids[i] < 0) {
			perror("sleepers: fork");
			n = i;
			failed = 1;
		}
	}
	/* Each exec closes its copy of the pipe; the last one ends it. */
	close(fds[1]);
	while (read(fds[0], &byte, 1) > 0)
		;
	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	for (int i = 0; i < n; i++) {
		kill(pids[i], SIGTERM);
		if (waitpid(pids[i], &status, 0) != pids[i] || !WIFSIGNALED(status) || WTERMSIG(status) != SIGTERM)
			failed = 1;
	}
	free(pids);
	return failed;
}
