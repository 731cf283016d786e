/*
 * SPDX-License-Identifier: Apache-2.0
 * stepped_clock: a preloaded library that gives one process a wall clock which a test can step.
 * STEPPED_CLOCK names a file of eight bytes: the offset from the kernel's clock in nanoseconds.
 *
 * A wait until a time of that clock ends when the stepped clock reaches it, as in the kernel after a step.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)
#define SLICE (SECOND / 20)	/* delay until a waiter notices a step */
#define WALL_CLOCK_MIN 1000000000	/* seconds: 2001 */

static int64_t
kernel_ns(clockid_t clock)
{
	struct timespec ts;

	if (syscall(SYS_clock_gettime, clock, &ts) < 0)
		return -1;
	return ts.tv_sec * SECOND + ts.tv_nsec;
}

static int64_t
offset_ns(void)
{
	static const volatile int64_t *offset;

	if (offset == NULL) {
		static const volatile int64_t none;
		const char *path = getenv("STEPPED_CLOCK");
		int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
		void *at = fd >= 0 ? mmap(NULL, sizeof(*offset), PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

		if (fd >= 0)
			close(fd);
		offset = at != MAP_FAILED ? at : &none;
	}
	return *offset;
}

static struct timespec
timespec_of(int64_t ns)
{
	return (struct timespec){ .tv_sec = ns / SECOND, .tv_nsec = ns % SECOND };
}

int
clock_gettime(clockid_t clock, struct timespec *ret)
{
	if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)
		return (int)syscall(SYS_clock_gettime, clock, ret);
	*ret = timespec_of(kernel_ns(clock) + offset_ns());
	return 0;
}

int
gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
	int64_t us = (kernel_ns(CLOCK_REALTIME) + offset_ns()) / 1000;

	(void)zone;
	*ret = (struct timeval){ .tv_sec = us / 1000000, .tv_usec = us % 1000000 };
	return 0;
}

time_t
time(time_t *ret)
{
	time_t now = (kernel_ns(CLOCK_REALTIME) + offset_ns()) / SECOND;

	if (ret != NULL)
		*ret = now;
	return now;
}

int
timespec_get(struct timespec *ret, int base)
{
	return base == TIME_UTC && clock_gettime(CLOCK_REALTIME, ret) == 0 ? base : 0;
}

static int
wait_until(void *cond, void *mutex, const struct timespec *until, void *next_wait, int timed_out)
{
	int (*next)(void *, void *, const struct timespec *) =
	    (int (*)(void *, void *, const struct timespec *))next_wait;
	int64_t end = until->tv_sec * SECOND + until->tv_nsec;

	/* A condition that waits by CLOCK_MONOTONIC, which counts from the start of the host. */
	if (until->tv_sec < WALL_CLOCK_MIN)
		return next(cond, mutex, until);
	for (;;) {
		int64_t now = kernel_ns(CLOCK_REALTIME), left = end - now - offset_ns();
		struct timespec slice;
		int r;

		if (left <= 0)
			return timed_out;
		slice = timespec_of(now + (left < SLICE ? left : SLICE));
		r = next(cond, mutex, &slice);
		if (r != timed_out)
			return r;
	}
}

int
pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
    const struct timespec *restrict until)
{
	static void *next;

	if (next == NULL)
		next = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
	return wait_until(cond, mutex, until, next, ETIMEDOUT);
}

/* Used by librdkafka. */
int
cnd_timedwait(cnd_t *restrict cond, mtx_t *restrict mutex, const struct timespec *restrict until)
{
	static void *next;

	if (next == NULL)
		next = dlsym(RTLD_NEXT, "cnd_timedwait");
	return wait_until(cond, mutex, until, next, thrd_timedout);
}
