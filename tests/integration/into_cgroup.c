/*
 * SPDX-License-Identifier: Apache-2.0
 * into_cgroup FOLDER COMMAND [ARG...]
 * into_cgroup -n FIRST LAST FOLDER COMMAND [ARG...]
 *
 * Starts COMMAND directly in a v2 cgroup, by clone3 with CLONE_INTO_CGROUP, like systemd and newer
 * runtimes: no process is ever moved there. Prints its pid and exits with its status.
 *
 * With -n, runs COMMAND once for each number, one after another, each time in a new cgroup of FOLDER,
 * which is removed afterwards and is named by the number in 64 hex digits; the number is appended to ARG.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAILED 125

static int
fail(const char *what)
{
	fprintf(stderr, "into_cgroup: %s: %s\n", what, strerror(errno));
	return FAILED;
}

/* Runs command in the cgroup and waits for it. Returns its status as a shell does. */
static int
start(const char *folder, char **command, long *ret_pid)
{
	struct clone_args args = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD };
	int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC), status;

	if (fd < 0)
		return fail(folder);
	args.cgroup = (uint64_t)fd;
	*ret_pid = syscall(SYS_clone3, &args, sizeof(args));
	if (*ret_pid == 0) {
		execv(command[0], command);
		_exit(127);
	}
	close(fd);
	if (*ret_pid < 0)
		return fail("clone3");
	if (waitpid((pid_t)*ret_pid, &status, 0) != *ret_pid)
		return fail("waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int
start_each(unsigned long first, unsigned long last, const char *parent, char **command, char **number)
{
	static char digits[32];		/* static: command points to it */
	char folder[4096];
	long pid;

	*number = digits;
	for (unsigned long n = first; n <= last; n++) {
		int status;

		snprintf(folder, sizeof(folder), "%s/%064lx", parent, n);
		snprintf(digits, sizeof(digits), "%lu", n);
		if (mkdir(folder, 0755) < 0)
			return fail(folder);
		status = start(folder, command, &pid);
		/* The last process may still be exiting. */
		while (rmdir(folder) < 0) {
			if (errno != EBUSY)
				return fail(folder);
			usleep(100);
		}
		if (status != 0)
			return status;
	}
	return 0;
}

int
main(int argc, char **argv)
{
	bool is_each = argc >= 6 && strcmp(argv[1], "-n") == 0;
	char **command;
	int status;
	long pid;

	if (argc < 3 || (argv[1][0] == '-' && !is_each)) {
		fprintf(stderr, "usage: into_cgroup [-n FIRST LAST] FOLDER COMMAND [ARG...]\n");
		return FAILED;
	}
	if (!is_each) {
		status = start(argv[1], argv + 2, &pid);
		if (status != FAILED)
			printf("%ld\n", pid);
		return status;
	}
	command = calloc((size_t)argc, sizeof(*command));
	if (command == NULL)
		return fail("calloc");
	memcpy(command, argv + 5, (size_t)(argc - 5) * sizeof(*command));
	status = start_each(strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10), argv[4], command,
	    command + argc - 5);
	free(command);
	return status;
}
