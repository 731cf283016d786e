/*
 * SPDX-License-Identifier: Apache-2.0
 * labelled KIND SECONDS [FILE [NUMBER]]: one kind of work whose bound is known, because the program is made so that it
 * has no other. workloads.py has the labels.
 *
 * Ends by itself after SECONDS, whatever happens. FILE is read or written by the kinds that need one ("-": none). NUMBER
 * is a size in MiB or a port. Prints how often it did its work.
 */
#include "labelled.h"

#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SPARE_S 20	/* after SECONDS, for a disk that is late */

const char *path;
unsigned long number;
volatile uint64_t sink;
static double until;

double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

double
cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

bool
is_time(void)
{
	return now() < until;
}

double
left_s(void)
{
	return until - now();
}

void
pause_ms(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

void
compute(void)
{
	uint64_t x = 88172645463325252u;

	for (int i = 0; i < 2500000; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	sink = x;
}

void
compute_for(double seconds)
{
	double end = cpu_now() + seconds;

	while (cpu_now() < end && is_time())
		compute();
}

static void
on_alarm(int signo)
{
	(void)signo;
}

void
wake_each_second(void)
{
	sigaction(SIGALRM, &(struct sigaction){ .sa_handler = on_alarm }, NULL);
}

pid_t
child(void)
{
	pid_t pid = fork();

	if (pid < 0)
		err(1, "fork");
	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

void
end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

void *
memory(size_t bytes)
{
	void *m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (m == MAP_FAILED)
		err(1, "%zu bytes", bytes);
	return m;
}

int
open_file(int flags)
{
	int fd;

	if (path == NULL)
		errx(2, "this kind needs a FILE");
	fd = open(path, flags | O_CLOEXEC, 0600);
	if (fd < 0)
		err(1, "%s", path);
	return fd;
}

uint64_t
in_threads(int n, void *(*of)(void *))
{
	pthread_t *threads = calloc((size_t)n, sizeof(*threads));

	if (threads == NULL)
		err(1, "%d threads", n);
	for (int i = 1; i < n; i++)
		if (pthread_create(&threads[i], NULL, of, (void *)(intptr_t)i) != 0)
			errx(1, "pthread_create");
	of(NULL);
	for (int i = 1; i < n; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	return (uint64_t)n;
}

static const struct kind *
find(const char *name)
{
	const struct kind *const tables[] = { cpu_kinds, file_kinds, memory_kinds, net_kinds, wait_kinds };

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct kind *k = tables[i]; k->name != NULL; k++)
			if (strcmp(name, k->name) == 0)
				return k;
	return NULL;
}

int
main(int argc, char **argv)
{
	const struct kind *kind = argc >= 3 ? find(argv[1]) : NULL;
	double seconds = argc >= 3 ? strtod(argv[2], NULL) : 0;

	if (kind == NULL || seconds <= 0) {
		fputs("usage: labelled KIND SECONDS [FILE [NUMBER]]\n", stderr);
		return 2;
	}
	path = argc > 3 && strcmp(argv[3], "-") != 0 ? argv[3] : NULL;
	number = argc > 4 ? strtoul(argv[4], NULL, 10) : 0;
	until = now() + seconds;
	alarm((unsigned)seconds + SPARE_S);
	signal(SIGPIPE, SIG_IGN);
	printf("%llu\n", (unsigned long long)kind->work());
	return 0;
}
