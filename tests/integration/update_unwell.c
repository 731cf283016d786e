/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that passes for sluice until it is to be the agent. The end of its own file names the real one, and how its
 * agent fails: "\nREAL PATH MODE\n". Modes: refuses: it exits at once; mute: it runs, and answers nothing; dies: it is
 * the real agent, which is killed after four seconds.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	TAIL_SIZE = 1024,
	DIES_AFTER_S = 4,
	FAILED = 126,
};

int
main(int argc, char **argv)
{
	char tail[TAIL_SIZE + 1] = "", real[TAIL_SIZE], mode[16], *at;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat st;
	pid_t pid;

	if (fd < 0 || fstat(fd, &st) < 0 || pread(fd, tail, TAIL_SIZE, st.st_size - TAIL_SIZE) != TAIL_SIZE)
		return FAILED;
	/* Where programs ends, there may be zeros. */
	for (size_t i = 0; i < TAIL_SIZE; i++)
		tail[i] = tail[i] == '\0' ? ' ' : tail[i];
	at = strstr(tail, "\nREAL ");
	if (at == NULL || sscanf(at, "\nREAL %1023s %15s\n", real, mode) != 2)
		return FAILED;
	if (argc > 1 && strcmp(argv[1], "agent") == 0 && strcmp(mode, "refuses") == 0)
		return 2;
	if (argc > 1 && strcmp(argv[1], "agent") == 0 && strcmp(mode, "mute") == 0) {
		alarm(120);
		pause();
	}
	if (argc > 1 && strcmp(argv[1], "agent") == 0 && strcmp(mode, "dies") == 0) {
		pid = getpid();
		if (fork() == 0) {
			sleep(DIES_AFTER_S);
			kill(pid, SIGKILL);
			_exit(0);
		}
	}
	execv(real, argv);
	return FAILED;
}
