/*
 * SPDX-License-Identifier: Apache-2.0
 * truth_ops: starts a child, and executes its operations, a list of words.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "truth.h"

#define MIB ((size_t)1 << 20)

extern char **environ;

const char *self_path;
const char *case_name;
int image_index;

static volatile unsigned sink_value;
static volatile int *volatile nowhere = (volatile int *)8;

static uint64_t
thread_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Uses CPU time, not wall time: the same on an emulated machine as on a fast one. */
void
spin_ms(unsigned ms)
{
	uint64_t until = thread_cpu_ns() + ms * UINT64_C(1000000);

	while (thread_cpu_ns() < until)
		for (unsigned i = 0; i < 20000; i++)
			sink_value += i;
}

void
sleep_ms(unsigned ms)
{
	struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

static void
system_ms(unsigned ms)
{
	static char buf[65536];
	uint64_t until = thread_cpu_ns() + ms * UINT64_C(1000000);
	int fd = open("/dev/zero", O_RDONLY);

	if (fd < 0)
		fail("/dev/zero");
	while (thread_cpu_ns() < until)
		if (read(fd, buf, sizeof(buf)) < 0)
			fail("/dev/zero");
	close(fd);
}

/* Makes mib MiB of memory resident; keep: until this image ends. */
static void
touch(unsigned mib, bool keep)
{
	volatile char *p = mmap(NULL, mib * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		fail("mmap");
	for (size_t i = 0; i < mib * MIB; i += 4096)
		p[i] = 1;
	if (!keep)
		munmap((void *)p, mib * MIB);
}

struct crew {
	pthread_barrier_t all_here;
	unsigned ms;
	char *const *ops;	/* operations of the worker that execs */
};

static void *
burn(void *arg)
{
	struct crew *crew = arg;

	pthread_barrier_wait(&crew->all_here);
	spin_ms(crew->ms);
	return NULL;
}

static void *
hang(void *arg)
{
	struct crew *crew = arg;

	pthread_barrier_wait(&crew->all_here);
	for (;;)
		pause();
	return NULL;
}

static void *
exec_in_worker(void *arg)
{
	struct crew *crew = arg;

	pthread_barrier_wait(&crew->all_here);
	spin_ms(crew->ms);
	exec_ops(crew->ops);
}

/* Ends the process after its leader has exited. */
static void *
end_group(void *arg)
{
	struct crew *crew = arg;

	pthread_barrier_wait(&crew->all_here);
	sleep_ms(30);
	spin_ms(crew->ms);
	report_end(7);
	_exit(7);
}

/* Does the same with exit(2), which sets the status of one thread only. */
static void *
end_thread(void *arg)
{
	struct crew *crew = arg;

	pthread_barrier_wait(&crew->all_here);
	sleep_ms(30);
	report_end(-1);
	syscall(SYS_exit, 5);
	return NULL;
}

/* Starts n workers, which wait for each other and for the caller in all_here. */
static void
crew_start(struct crew *crew, int n, unsigned ms, void *(*work)(void *), void *(*last)(void *), pthread_t *threads)
{
	pthread_attr_t attr;

	crew->ms = ms;
	if (pthread_barrier_init(&crew->all_here, NULL, (unsigned)n + 1) || pthread_attr_init(&attr))
		fail("a crew of threads");
	pthread_attr_setstacksize(&attr, 65536);
	for (int i = 0; i < n; i++)
		if ((errno = pthread_create(&threads[i], &attr, last && i == n - 1 ? last : work, crew)))
			fail("pthread_create");
	threads_peak = n + 1;
	pthread_barrier_wait(&crew->all_here);
}

static void
file_io(const char *dir)
{
	static char buf[16384];
	char path[4096], copy[4096];
	off_t at = 0;
	int fd, to;

	snprintf(path, sizeof(path), "%s/file.%d", dir, getpid());
	snprintf(copy, sizeof(copy), "%s/copy.%d", dir, getpid());
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	to = open(copy, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || to < 0)
		fail(path);
	for (int i = 0; i < 37; i++)
		if (write(fd, buf, 10000) != 10000)
			fail(path);
	fsync(fd);
	for (int i = 0; i < 11; i++)
		if (pread(fd, buf, 7000, i * 7000) != 7000)
			fail(path);
	if (sendfile(to, fd, &at, 123456) < 0)
		fail(copy);
	if (ftruncate(to, 1000) < 0)	/* cancels writes that have not reached the disk */
		fail(copy);
	unlink(path);
	unlink(copy);
	close(fd);
	close(to);
}

/* Writes without the page cache, if the file system supports that. */
static void
direct_io(const char *dir)
{
	char path[4096];
	char *buf = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd;

	if (buf == MAP_FAILED)
		fail("mmap");
	snprintf(path, sizeof(path), "%s/direct.%d", dir, getpid());
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT, 0600);
	if (fd < 0)
		fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0)
		fail(path);
	memset(buf, 1, MIB);
	for (int i = 0; i < 3; i++)
		if (pwrite(fd, buf, MIB, i * (off_t)MIB) < 0)
			fail(path);
	for (int i = 0; i < 2; i++)
		if (pread(fd, buf, MIB, i * (off_t)MIB) < 0)
			fail(path);
	fsync(fd);
	unlink(path);
	close(fd);
}

/* Causes major faults by reading a mapping whose pages were dropped from the cache. */
static void
major_faults(const char *dir)
{
	static char buf[65536];
	char path[4096];
	volatile char *map;
	int fd;

	snprintf(path, sizeof(path), "%s/major.%d", dir, getpid());
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0)
		fail(path);
	for (int i = 0; i < 64; i++)
		if (write(fd, buf, sizeof(buf)) < 0)
			fail(path);
	fsync(fd);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	map = mmap(NULL, 4 * MIB, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		fail(path);
	madvise((void *)map, 4 * MIB, MADV_RANDOM);
	for (size_t i = 0; i < 4 * MIB; i += 4096)
		sink_value += (unsigned)map[i];
	munmap((void *)map, 4 * MIB);
	unlink(path);
	close(fd);
}

static unsigned
number(char *const **at)
{
	char *word = *(*at)++;
	char *end;
	unsigned long n;

	if (!word || (n = strtoul(word, &end, 10), end == word || *end))
		fail("a word that wants a number");
	return (unsigned)n;
}

char **
split_words(const char *text, const char *first, const char *second)
{
	size_t n = 0, size = strlen(text) / 2 + 4;
	char **words = calloc(size, sizeof(*words));
	char *copy = strdup(text);

	if (!words || !copy)
		fail("memory");
	if (first)
		words[n++] = strdup(first);
	if (second)
		words[n++] = strdup(second);
	for (char *w = strtok(copy, " "); w; w = strtok(NULL, " "))
		words[n++] = w;
	return words;
}

/* Execs this binary again in the same process. */
void
exec_ops(char *const *ops)
{
	char index[16];
	char **argv;
	size_t n = 0;

	while (ops[n])
		n++;
	argv = calloc(n + 3, sizeof(*argv));
	if (!argv)
		fail("memory");
	argv[0] = (char *)"truth";
	argv[1] = (char *)"do";
	memcpy(argv + 2, ops, n * sizeof(*argv));
	snprintf(index, sizeof(index), "%d", image_index + 1);
	setenv("TRUTH_IMAGE", index, 1);
	report_end(-1);
	execve(self_path, argv, environ);
	fail(self_path);
}

/* Executes a word that ends this image. Returns if word is none of these. */
static void
last_op(const char *word, char *const *at)
{
	static struct crew crew;	/* static, since the leader leaves this frame */
	pthread_t threads[64];
	struct rlimit core = { RLIM_INFINITY, RLIM_INFINITY };

	crew.ops = at;
	if (!strcmp(word, "exit")) {
		unsigned code = number(&at);

		report_end((int)code);
		_exit((int)code);
	} else if (!strcmp(word, "next")) {
		exec_ops(at);
	} else if (!strcmp(word, "worker-next")) {
		crew_start(&crew, 5, 10, burn, exec_in_worker, threads);
		for (;;)
			pause();
	} else if (!strcmp(word, "leader-gone")) {
		crew_start(&crew, 3, 10, burn, end_group, threads);
		pthread_exit(NULL);
	} else if (!strcmp(word, "leader-exit")) {
		crew_start(&crew, 2, 5, burn, end_thread, threads);
		syscall(SYS_exit, 0);
	} else if (!strcmp(word, "all-at-once")) {
		threads_peak = 17;
		report_end(-1);		/* the last thread ends the process, and no thread knows that it is the last */
		crew_start(&crew, 16, 0, burn, NULL, threads);
		pthread_exit(NULL);
	} else if (!strcmp(word, "hang")) {
		crew_start(&crew, (int)number(&at), 0, hang, NULL, threads);
		report_end(-1);
		kill(getpid(), SIGKILL);
		for (;;)
			pause();
	} else if (!strcmp(word, "die")) {
		unsigned sig = number(&at);

		report_end(-1);
		kill(getpid(), (int)sig);
		for (;;)
			pause();
	} else if (!strcmp(word, "abort")) {
		report_end(-1);
		abort();
	} else if (!strcmp(word, "segv") || !strcmp(word, "core")) {
		if (!strcmp(word, "segv"))
			core.rlim_cur = core.rlim_max = 0;
		setrlimit(RLIMIT_CORE, &core);
		report_end(-1);
		*nowhere = 1;
	} else if (!strcmp(word, "wait-kill")) {
		report_end(-1);
		raise(SIGSTOP);		/* the signal may arrive now */
		for (;;)
			pause();
	}
}

static int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

void
run_ops(char *const *ops)
{
	char *const *at = ops;

	while (*at) {
		const char *word = *at++;

		last_op(word, at);
		if (!strcmp(word, "spin")) {
			spin_ms(number(&at));
		} else if (!strcmp(word, "system")) {
			system_ms(number(&at));
		} else if (!strcmp(word, "sleep")) {
			sleep_ms(number(&at));
		} else if (!strcmp(word, "rest")) {
			report_rest();
			sleep_ms(number(&at));
		} else if (!strcmp(word, "touch")) {
			touch(number(&at), false);
		} else if (!strcmp(word, "keep")) {
			touch(number(&at), true);
		} else if (!strcmp(word, "threads")) {
			pthread_t threads[64];
			struct crew crew = { 0 };
			int n = (int)number(&at);

			crew_start(&crew, n, number(&at), burn, NULL, threads);
			for (int i = 0; i < n; i++)
				pthread_join(threads[i], NULL);
		} else if (!strcmp(word, "files")) {
			file_io(*at++);
		} else if (!strcmp(word, "remove")) {
			if (nftw(*at++, remove_one, 8, FTW_DEPTH | FTW_PHYS) < 0)
				fail("removing a tree");
		} else if (!strcmp(word, "direct")) {
			direct_io(*at++);
		} else if (!strcmp(word, "major")) {
			major_faults(*at++);
		} else if (!strcmp(word, "rename")) {
			prctl(PR_SET_NAME, *at++);
		} else if (!strcmp(word, "stop")) {
			raise(SIGSTOP);
		} else {
			at--;
			if (!family_op(&at) && !net_op(&at)) {
				errno = EINVAL;
				fail(word);
			}
		}
	}
	report_end(0);
	_exit(0);
}

pid_t
start(enum birth birth, const char *ops)
{
	char **argv = split_words(ops, "truth", "do");
	pid_t pid = -1;

	switch (birth) {
	case BY_SPAWN:
		if ((errno = posix_spawn(&pid, self_path, NULL, NULL, argv, environ)))
			fail("posix_spawn");
		break;
	case BY_FORK_EXEC:
		pid = fork();
		if (pid == 0) {
			execve(self_path, argv, environ);
			_exit(121);
		}
		break;
	case BY_VFORK_EXEC:
		pid = vfork();
		if (pid == 0) {
			execve(self_path, argv, environ);
			_exit(121);
		}
		break;
	case BY_FORK:
		pid = fork();
		if (pid == 0) {
			image_reset();
			image_index = 0;
			report_start(NULL);
			run_ops(argv + 2);
		}
		break;
	}
	if (pid < 0)
		fail("a new process");
	/* argv is not freed: a BY_FORK child still reads its copy */
	return pid;
}
