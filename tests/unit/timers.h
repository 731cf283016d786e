/*
 * SPDX-License-Identifier: Apache-2.0
 * timers: records the timers that a source sets, without waiting, and controls its clock and random numbers. The
 * linker redirects the calls listed in TIMERS_WRAPPED (CMakeLists.txt) for a test that includes this file.
 */
#ifndef SLUICE_TESTS_UNIT_TIMERS_H
#define SLUICE_TESTS_UNIT_TIMERS_H

#include <event2/event.h>
#include <event2/util.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

static struct timers {
	const void *arg;	/* timers with this argument are recorded; NULL: none */
	size_t fails;		/* timers that cannot be set, as without memory, ... */
	size_t works;		/* ... after so many that can */
	size_t over_at_once;	/* timers that fire at once, while the clock advances by their wait */
	int64_t waits_us[64];	/* waits of the first timers */
	size_t n;		/* timers so far */
	int64_t now_us;		/* time of the monotonic clock; 0: the real one */
	bool has_random;
	uint32_t random;	/* with has_random: every random number */
} timers;

int __real_event_add(struct event *ev, const struct timeval *tv);
int __wrap_event_add(struct event *ev, const struct timeval *tv);
int
__wrap_event_add(struct event *ev, const struct timeval *tv)
{
	static const struct timeval none;

	if (timers.arg == NULL || tv == NULL || event_get_callback_arg(ev) != timers.arg)
		return __real_event_add(ev, tv);
	if (timers.fails > 0 && timers.works-- == 0) {
		timers.fails--;
		timers.works = 0;
		return -1;
	}
	if (timers.n < 64)
		timers.waits_us[timers.n] = (int64_t)tv->tv_sec * 1000000 + tv->tv_usec;
	if (timers.n++ >= timers.over_at_once)
		return __real_event_add(ev, tv);
	timers.now_us += (int64_t)tv->tv_sec * 1000000 + tv->tv_usec;
	return __real_event_add(ev, &none);
}

int __real_clock_gettime(clockid_t id, struct timespec *ret);
int __wrap_clock_gettime(clockid_t id, struct timespec *ret);
int
__wrap_clock_gettime(clockid_t id, struct timespec *ret)
{
	if (timers.now_us == 0 || id != CLOCK_MONOTONIC)
		return __real_clock_gettime(id, ret);
	*ret = (struct timespec){ timers.now_us / 1000000, timers.now_us % 1000000 * 1000 };
	return 0;
}

void __real_evutil_secure_rng_get_bytes(void *data, size_t n);
void __wrap_evutil_secure_rng_get_bytes(void *data, size_t n);
void
__wrap_evutil_secure_rng_get_bytes(void *data, size_t n)
{
	if (!timers.has_random || n != sizeof(timers.random)) {
		__real_evutil_secure_rng_get_bytes(data, n);
		return;
	}
	memcpy(data, &timers.random, n);
}

#endif
