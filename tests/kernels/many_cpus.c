/*
 * SPDX-License-Identifier: Apache-2.0
 * many_cpus ROUNDS: programs that start, move and end on all CPUs at once, so that whatever the BPF programs share
 * between CPUs is in use at the same time. Each CPU has a worker that stays on it, in a folder of its own. In each
 * round it has four children, whose arguments are unlike those of any other program:
 *
 *	stay	starts and ends on the worker's CPU
 *	move	is forked there, moves to the next CPU, starts and ends there
 *	fork	moves too and ends with 7, without an exec
 *	twice	starts on the worker's CPU, moves and starts another program, `again`
 *
 * Prints the number of CPUs.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FORK_STATUS 7
#define PAD_MAX 3000	/* of argv, so that it is read from one page or from two */

static int cpus[CPU_SETSIZE];
static int n_cpus;

static void
die(const char *what)
{
	fprintf(stderr, "many_cpus: %s: %s\n", what, strerror(errno));
	_exit(1);
}

/* The CPU is an index of cpus, of which the first follows the last. */
static void
move_to(int at)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpus[at % n_cpus], &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		die("sched_setaffinity");
}

/* Undoes what move_to() of a parent did. */
static void
allow_all(void)
{
	cpu_set_t set;

	memset(&set, 0xff, sizeof(set));
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		die("sched_setaffinity");
}

static void
read_cpus(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		die("sched_getaffinity");
	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (CPU_ISSET(i, &set))
			cpus[n_cpus++] = i;
	}
}

static void
start(const char *kind, int at, int round)
{
	char cpu[16], number[16], pad[PAD_MAX + 1];
	char *argv[] = { (char *)"many_cpus", (char *)kind, cpu, number, pad, NULL };
	int length = (at * 37 + round * 101) % PAD_MAX;

	snprintf(cpu, sizeof(cpu), "%d", at);
	snprintf(number, sizeof(number), "%d", round);
	memset(pad, 'a' + at % 26, (size_t)length);
	pad[length] = '\0';
	execv("/proc/self/exe", argv);
	die("exec");
}

static void
child(const char *kind, int at, int round)
{
	if (strcmp(kind, "move") == 0)
		move_to(at + 1);
	if (strcmp(kind, "fork") == 0) {
		move_to(at + n_cpus / 2);
		_exit(FORK_STATUS);
	}
	start(kind, at, round);
}

static void
work(int at, int rounds)
{
	static const char *const kinds[] = { "stay", "move", "fork", "twice" };
	char folder[64];

	snprintf(folder, sizeof(folder), "folder-of-%d", at);
	if (mkdir(folder, 0755) < 0 || chdir(folder) < 0)
		die(folder);
	move_to(at);
	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < 4; i++) {
			int status, expected = strcmp(kinds[i], "fork") == 0 ? FORK_STATUS : 0;
			pid_t pid = fork();

			if (pid < 0)
				die("fork");
			if (pid == 0)
				child(kinds[i], at, round);
			if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != expected)
				die(kinds[i]);
		}
	}
	_exit(0);
}

int
main(int argc, char **argv)
{
	int status, result = 0;

	if (argc == 5) {
		if (strcmp(argv[1], "twice") == 0) {
			allow_all();
			read_cpus();
			move_to(atoi(argv[2]) + 1);
			start("again", atoi(argv[2]), atoi(argv[3]));
		}
		return 0;
	}
	if (argc != 2 || atoi(argv[1]) <= 0) {
		fputs("usage: many_cpus ROUNDS\n", stderr);
		return 2;
	}
	read_cpus();
	for (int at = 0; at < n_cpus; at++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (pid == 0)
			work(at, atoi(argv[1]));
	}
	while (wait(&status) > 0)
		result |= status != 0;
	printf("%d\n", n_cpus);
	return result;
}
