/*
 * SPDX-License-Identifier: Apache-2.0
 * adversary KIND SECONDS [ARG…]: what a user without rights may do to a host that others share, for so many seconds.
 *
 *	rules           arguments over which the shipped rules take as long as they can
 *	ring            31 KB of random arguments
 *	forks           processes that run no program
 *	storm           programs, as many as can be
 *	processes N     N processes at the same time
 *	titles N        N programs of which the shipped rules have the title read
 *	waits           nothing: one of them
 *	runs MAKE       copies of MAKE, each of which is the driver of a run
 *	paths           programs with long names in folders with long names, which are not UTF-8
 *	connect PATH    connections to a socket, which are kept
 *	ask PORT        requests for the metrics
 *
 * It ends by itself with all that it started, also if its parent ends. Prints how many times it did that.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LONG_ARGUMENT 31000
#define LONG_NAME 250			/* bytes of one component */

static double end;

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
fail(const char *what)
{
	fprintf(stderr, "adversary: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void
runs(const char *path, const char *const *argv)
{
	static char *none[] = { NULL };
	pid_t pid;
	int error = posix_spawn(&pid, path, NULL, NULL, (char *const *)(uintptr_t)argv, none);

	if (error == 0)
		waitpid(pid, NULL, 0);
	else if (error != EAGAIN && error != ENOMEM)
		errno = error, fail(path);
}

static unsigned long
rules(void)
{
	static const char *const words[] = { "--target-jobs",
		"x/.command.run/ab/0123456789abcdef0123456789abcd/.command.sh ", "/execution/script", "_toil_worker",
		"/mnt/miniwdl_task_container/", "/galaxy_1.sh", "multiprocessing.spawn",
		"/call-x/execution/script.submit", "/slurm_script" };
	enum { WORDS = sizeof(words) / sizeof(words[0]), SLASHES = 156 };
	const char *argv[3 + SLASHES + WORDS + 1] = { "bash", "-c", ":" };
	char slashes[201];
	unsigned long n = 0;

	memset(slashes, '/', sizeof(slashes) - 1);
	slashes[sizeof(slashes) - 1] = '\0';
	for (size_t i = 0; i < SLASHES; i++)
		argv[3 + i] = slashes;
	memcpy(argv + 3 + SLASHES, words, sizeof(words));
	for (; now() < end; n++)
		runs("/bin/bash", argv);
	return n;
}

static unsigned long
ring(void)
{
	static char text[LONG_ARGUMENT + 1];
	const char *argv[] = { "true", text, NULL };
	unsigned long n = 0;

	for (; now() < end; n++) {
		for (size_t i = 0; i < LONG_ARGUMENT; i++)
			text[i] = (char)('0' + random() % 64);
		runs("/bin/true", argv);
	}
	return n;
}

static unsigned long
storm(const char *path, const char *name)
{
	const char *argv[] = { name, NULL };
	unsigned long n = 0;

	for (; now() < end; n++)
		runs(path, argv);
	return n;
}

static unsigned long
forks(void)
{
	unsigned long n = 0;

	for (; now() < end; n++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		if (pid > 0)
			waitpid(pid, NULL, 0);
	}
	return n;
}

/* All are in this process's group, which ends at the end, or end with their parent. */
static unsigned long
processes(unsigned long most, const char *path, const char *const *argv)
{
	unsigned long n = 0;

	for (; n < most && now() < end; n++) {
		pid_t pid = fork();

		if (pid == 0) {
			execv(path, (char *const *)(uintptr_t)argv);
			_exit(127);
		}
		if (pid < 0)
			break;
	}
	while (now() < end)
		usleep(100000);
	return n;
}

static unsigned long
sleeps(unsigned long most)
{
	const char *argv[] = { "sleep", "60", NULL };

	return processes(most, "/bin/sleep", argv);
}

static unsigned long
titles(unsigned long most, const char *seconds)
{
	const char *argv[] = { "adversary", "waits", seconds, "multiprocessing.spawn", NULL };

	return processes(most, "/proc/self/exe", argv);
}

/* In a folder of its own below the current one, at whose end is a copy of a program. */
static unsigned long
paths(void)
{
	char name[LONG_NAME + 1], exe[LONG_NAME + 3];
	unsigned long n = 0;

	memset(name, '\xff', LONG_NAME);
	name[LONG_NAME] = '\0';
	for (int i = 0; i < 12; i++) {
		if (mkdir(name, 0700) < 0 && errno != EEXIST)
			fail("mkdir");
		if (chdir(name) < 0)
			fail("chdir");
	}
	snprintf(exe, sizeof(exe), "./%s", name);
	if (symlink("/bin/sleep", exe) < 0 && errno != EEXIST)
		fail("symlink");
	for (; now() < end; n++) {
		pid_t pid = fork();

		if (pid == 0) {
			execl(exe, name, "2", NULL);
			_exit(127);
		}
		if (pid < 0)
			usleep(1000);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			continue;
	}
	return n;
}

static unsigned long
connects(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	unsigned long n = 0;

	snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
	while (now() < end) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

		if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0) {
			(void)!write(fd, "{", 1);
			n++;
		} else {
			if (fd >= 0)
				close(fd);
			usleep(1000);
			if (fd > 900)
				closefrom(3);
		}
	}
	return n;
}

static unsigned long
asks(int port)
{
	static const char request[] = "GET /metrics HTTP/1.0\r\n\r\n";
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct timeval patience = { .tv_sec = 1 };
	char answer[65536];
	unsigned long n = 0;

	while (now() < end) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
		if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 &&
		    write(fd, request, sizeof(request) - 1) > 0) {
			while (read(fd, answer, sizeof(answer)) > 0)
				continue;
			n++;
		}
		close(fd);
	}
	return n;
}

int
main(int argc, char **argv)
{
	const char *kind = argc > 2 ? argv[1] : "", *arg = argc > 3 ? argv[3] : "";
	long seconds = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	unsigned long n;

	if (seconds < 1 || seconds > 120) {
		fprintf(stderr, "usage: adversary KIND SECONDS [ARG]\n");
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	alarm((unsigned)seconds + 10);
	srandom((unsigned)getpid());
	end = now() + (double)seconds;
	if (strcmp(kind, "rules") == 0)
		n = rules();
	else if (strcmp(kind, "ring") == 0)
		n = ring();
	else if (strcmp(kind, "forks") == 0)
		n = forks();
	else if (strcmp(kind, "storm") == 0)
		n = storm("/bin/true", "true");
	else if (strcmp(kind, "processes") == 0)
		n = sleeps(strtoul(arg, NULL, 10));
	else if (strcmp(kind, "titles") == 0)
		n = titles(strtoul(arg, NULL, 10), argv[2]);
	else if (strcmp(kind, "waits") == 0)
		return pause();		/* until its parent ends, or the alarm */
	else if (strcmp(kind, "runs") == 0)
		n = storm(arg, "make");
	else if (strcmp(kind, "paths") == 0)
		n = paths();
	else if (strcmp(kind, "connect") == 0)
		n = connects(arg);
	else if (strcmp(kind, "ask") == 0)
		n = asks((int)strtol(arg, NULL, 10));
	else
		return 2;
	printf("%lu\n", n);
	fflush(stdout);
	signal(SIGTERM, SIG_IGN);
	kill(0, SIGTERM);	/* its children that still run */
	return 0;
}
