/*
 * SPDX-License-Identifier: Apache-2.0
 * bench_snapshot ROUNDS PROCESSES TINY: CPU time per process of one pass of the iterator, and of reading
 * the same values from /proc (stat, schedstat, io), as a poller would. No stack gets a class here, so that each pass
 * reads the stacks of all processes: where an agent runs, those that have not run since have a known one.
 */
#include <fcntl.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/probes.h"
#include "event.h"
#include "sample.h"

#define ROUNDS_MAX 1000

extern char **environ;

static _Alignas(8) char buffer[256u << 10];

/* Reads a file; returns the number of bytes, or a negative errno. */
static long
read_all(int fd)
{
	long total = 0;
	ssize_t n;

	while ((n = read(fd, buffer, sizeof(buffer))) > 0 || (n < 0 && errno == EAGAIN))
		total += n > 0 ? n : 0;
	return n < 0 ? -errno : total;
}

static int
bench_iterator(struct probes *p, unsigned rounds, unsigned processes)
{
	double values[ROUNDS_MAX];

	for (unsigned round = 0; round < rounds; round++) {
		double start = sample_cpu_ns();
		int fd = probes_snapshot_open(p, false);
		long bytes = fd < 0 ? fd : read_all(fd);

		if (fd >= 0)
			close(fd);
		values[round] = (sample_cpu_ns() - start) / processes;
		if (bytes != (long)(processes * sizeof(struct event_state))) {
			fprintf(stderr, "bench_snapshot: %ld bytes for %u processes of %zu\n", bytes, processes,
			    sizeof(struct event_state));
			return -1;
		}
	}
	sample_print("iterator", values, rounds);
	return 0;
}

static int
bench_proc(const pid_t *pids, unsigned rounds, unsigned processes)
{
	static const char *const names[] = { "stat", "schedstat", "io" };
	double values[ROUNDS_MAX];

	for (unsigned round = 0; round < rounds; round++) {
		double start = sample_cpu_ns();

		for (unsigned i = 0; i < processes; i++) {
			for (unsigned k = 0; k < 3; k++) {
				char path[64];
				int fd;

				snprintf(path, sizeof(path), "/proc/%d/%s", (int)pids[i], names[k]);
				fd = open(path, O_RDONLY | O_CLOEXEC);
				if (fd < 0 || read(fd, buffer, sizeof(buffer)) <= 0)
					return -1;
				close(fd);
			}
		}
		values[round] = (sample_cpu_ns() - start) / processes;
	}
	sample_print("proc", values, rounds);
	return 0;
}

int
main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
	unsigned processes = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
	struct probes_options options = { 0 };
	char word[] = "wait", error[512];
	struct probes *p = NULL;
	pid_t *pids = NULL;
	unsigned started = 0;
	int result = 1;

	if (rounds == 0 || rounds > ROUNDS_MAX || processes == 0 || argc != 4) {
		fputs("usage: bench_snapshot ROUNDS PROCESSES TINY\n", stderr);
		return 2;
	}
	pids = calloc(processes, sizeof(*pids));
	if (pids == NULL)
		return 1;
	if (probes_open(&options, &p, error, sizeof(error)) < 0) {
		fprintf(stderr, "bench_snapshot: %s\n", error);
		goto out;
	}
	probes_adopt(p, getpid());
	for (; started < processes; started++) {
		char *child[] = { argv[3], word, NULL };

		if (posix_spawn(&pids[started], argv[3], NULL, NULL, child, environ) != 0)
			goto out;
	}
	usleep(200000);		/* the last processes may still be in exec */
	if (bench_iterator(p, rounds, processes) == 0 && bench_proc(pids, rounds, processes) == 0)
		result = 0;
out:
	for (unsigned i = 0; i < started; i++)
		kill(pids[i], SIGKILL);
	for (unsigned i = 0; i < started; i++)
		waitpid(pids[i], NULL, 0);
	probes_close(p);
	free(pids);
	return result;
}
