/*
 * SPDX-License-Identifier: Apache-2.0
 * labelled_cpu: kinds of work that compute, each in another way.
 */
#include "labelled.h"

#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define FEW_THREADS 4
#define THREADS_A_CPU 4

static uint64_t
cpu(void)
{
	uint64_t n = 0;

	for (; is_time(); n++)
		compute();
	return n;
}

void *
cpu_thread(void *index)
{
	(void)index;
	cpu();
	return NULL;
}

/* As many threads as there are CPUs: none waits for another. */
static uint64_t
cpu_threads(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return in_threads(n < MOST_THREADS ? (int)n : MOST_THREADS, cpu_thread);
}

static double half_time;		/* written before the threads begin */

/* The first computes all the time, the others in the first half of it. */
static void *
half_thread(void *index)
{
	while (is_time() && (index == NULL || now() < half_time))
		compute();
	return NULL;
}

/* More threads than it may use CPUs, which take the CPUs from one another, then one. */
static uint64_t
threads_then_one(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		err(1, "sched_getaffinity");
	half_time = now() + left_s() / 2;
	return in_threads(THREADS_A_CPU * CPU_COUNT(&set), half_thread);
}

/* Arrays larger than the caches are added: STREAM's triad. */
static uint64_t
bandwidth(void)
{
	size_t n = 24 << 20;
	double *a = memory(n * 8), *b = memory(n * 8), *c = memory(n * 8);
	uint64_t rounds = 0;

	for (; is_time(); rounds++)
		for (size_t i = 0; i < n; i++)
			a[i] = b[i] + 3.0 * c[i];
	sink = (uint64_t)a[rounds % n];
	return rounds;
}

/* Each load depends on the one before, and misses the caches. The constants pass all entries before one comes again. */
static uint64_t
cache(void)
{
	uint32_t n = 32 << 20, at = 0;
	uint32_t *next = memory((size_t)n * 4);
	uint64_t steps = 0;

	for (uint32_t i = 0; i < n; i++)
		next[i] = (uint32_t)((i * UINT64_C(2654435761) + 12345) % n);
	for (; is_time(); steps++)
		for (int i = 0; i < 100000; i++)
			at = next[at];
	sink = at;
	return steps;
}

static uint64_t
system_calls(void)
{
	uint64_t n = 0;
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	char *buf = memory(BLOCK);

	for (; is_time(); n++)
		if (read(fd, buf, BLOCK) != BLOCK)
			err(1, "/dev/zero");
	return n;
}

/* Two processes of unequal work that wait for each other without sleeping after each round, as ranks of MPI do. */
static uint64_t
spin(void)
{
	volatile uint64_t *done = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t round = 0;
	int me;
	pid_t pid;

	if (done == MAP_FAILED)
		err(1, "shared memory");
	pid = child();
	me = pid == 0;
	while (is_time()) {
		for (int i = 0; i < (me ? 12 : 4); i++)
			compute();
		done[me] = ++round;
		while (done[!me] < round && is_time())
			continue;
	}
	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	return round;
}

/* A stage for each round: children that compute, for which it waits. */
static uint64_t
fork_join(void)
{
	uint64_t n = 0;

	for (; is_time(); n++) {
		pid_t pids[2];

		for (int i = 0; i < 2; i++) {
			pids[i] = child();
			if (pids[i] == 0) {
				for (int k = 0; k < 40; k++)
					compute();
				_exit(0);
			}
		}
		for (int i = 0; i < 2; i++)
			waitpid(pids[i], NULL, 0);
	}
	return n;
}

static pthread_barrier_t barrier;
static volatile bool is_last;		/* written before the barrier, read after it */

/* All wait for the first, which computes. */
static void *
at_barrier(void *index)
{
	do {
		for (int i = 0; index == NULL && i < 20; i++)
			compute();
		if (index == NULL)
			is_last = !is_time();
		pthread_barrier_wait(&barrier);
	} while (!is_last);
	return NULL;
}

static uint64_t
barriers(void)
{
	pthread_barrier_init(&barrier, NULL, FEW_THREADS);
	return in_threads(FEW_THREADS, at_barrier);
}

const struct kind cpu_kinds[] = {
	{ "cpu", cpu }, { "cpu_threads", cpu_threads }, { "threads_then_one", threads_then_one }, { "bandwidth", bandwidth },
	{ "cache", cache }, { "system_calls", system_calls }, { "spin", spin }, { "fork_join", fork_join },
	{ "barriers", barriers }, { NULL, NULL },
};
