/*
 * SPDX-License-Identifier: Apache-2.0
 * reaped SECONDS: reads all processes over and over on one CPU, while threads and processes end and are reaped on
 * another. Prints how many were reaped, how many of them were read at all, and how many with more page faults than
 * wait4(2) then returned.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attach/probes.h"
#include "base/clock.h"
#include "event.h"

#define PIDS_MAX (1 << 22)	/* the most that pid_max may be */
#define PAGES 64		/* that each thread faults in */
#define PAGE_BYTES 4096

/* By pid. A pid that is used twice is of no use, see main(). */
struct faults {
	uint32_t reaped;	/* processes of this pid */
	uint32_t at_end;	/* as wait4(2) returned them */
	uint32_t most;		/* of all that were read */
};

static _Alignas(8) char buffer[256u << 10];

static void
use_cpu(unsigned n)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(n, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);	/* with a single one there is less to see */
}

static void *
fault_in(void *arg)
{
	char *pages = mmap(NULL, PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (size_t i = 0; pages != MAP_FAILED && i < PAGES; i++)
		pages[i * PAGE_BYTES] = 1;
	return arg;
}

/* Forks and reaps, one after another, until the deadline; never returns. */
static void
reap(struct faults *of, int64_t until_ms)
{
	while (clock_ms(CLOCK_MONOTONIC) < until_ms) {
		struct rusage usage;
		pid_t pid = fork();
		int status;

		if (pid < 0)
			_exit(1);
		if (pid == 0) {
			pthread_t thread;

			if (pthread_create(&thread, NULL, fault_in, NULL) == 0)
				pthread_join(thread, NULL);
			fault_in(NULL);
			_exit(0);
		}
		if (wait4(pid, &status, 0, &usage) != pid)
			_exit(1);
		if ((uint32_t)pid < PIDS_MAX) {
			of[pid].at_end = (uint32_t)usage.ru_minflt;
			of[pid].reaped++;
		}
	}
	_exit(0);
}

static void
take(struct faults *of, const char *bytes, size_t n)
{
	for (size_t at = 0; at + sizeof(struct event_state) <= n; at += sizeof(struct event_state)) {
		const struct event_state *e = (const struct event_state *)(bytes + at);
		uint64_t minor_faults = (e->flags & EVENT_TORN) == 0 ? e->counters.minor_faults : 0;

		if (e->self.pid < PIDS_MAX && minor_faults > of[e->self.pid].most)
			of[e->self.pid].most = (uint32_t)minor_faults;
	}
}

static int
look(struct probes *p, struct faults *of)
{
	int fd = probes_snapshot_open(p, false);
	size_t have = 0;
	ssize_t n = fd < 0 ? -1 : 1;

	while (n > 0 || (n < 0 && fd >= 0 && errno == EAGAIN)) {
		n = read(fd, buffer + have, sizeof(buffer) - have);
		if (n > 0)
			have += (size_t)n;
	}
	if (fd >= 0)
		close(fd);
	take(of, buffer, have);
	return n < 0 ? -1 : 0;
}

int
main(int argc, char **argv)
{
	int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + 1000 * (argc == 2 ? atoi(argv[1]) : 0);
	struct probes_options options = { 0 };
	unsigned reaped = 0, read = 0, wrong = 0;
	struct probes *p = NULL;
	struct faults *of;
	char error[512];
	int status = 1;
	pid_t pid;

	of = mmap(NULL, PIDS_MAX * sizeof(*of), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1,
	    0);
	if (argc != 2 || of == MAP_FAILED)
		return 2;
	if (probes_open(&options, &p, error, sizeof(error)) < 0) {
		fprintf(stderr, "reaped: %s\n", error);
		return 1;
	}
	probes_adopt(p, getpid());
	pid = fork();
	if (pid == 0) {
		use_cpu(1);
		reap(of, until_ms);
	}
	use_cpu(0);
	while (waitpid(pid, &status, WNOHANG) == 0 && look(p, of) == 0)
		;
	for (uint32_t i = 0; i < PIDS_MAX; i++) {
		if (of[i].reaped != 1)
			continue;
		reaped++;
		read += of[i].most > 0;
		wrong += of[i].most > of[i].at_end;
	}
	printf("%u %u %u\n", reaped, read, wrong);
	probes_close(p);
	return status == 0 ? 0 : 1;
}
