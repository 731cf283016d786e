/*
 * SPDX-License-Identifier: Apache-2.0
 * clock: the time of one of the kernel's clocks, in the unit that the caller uses.
 */
#ifndef SLUICE_BASE_CLOCK_H
#define SLUICE_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* What a time namespace adds to CLOCK_MONOTONIC and CLOCK_BOOTTIME, in nanoseconds; set by clock_open(). */
extern int64_t clock_added_ns[CLOCK_BOOTTIME + 1];

/*
 * Learns what this process's time namespace adds to the clocks, so that clock_ns() agrees with the times of the
 * kernel's events. To be called once, before any other thread.
 */
void clock_open(void);

/* Returns the time of a clock, such as CLOCK_BOOTTIME, in nanoseconds: as the kernel has it outside of namespaces. */
static inline uint64_t
clock_ns(clockid_t id)
{
	struct timespec ts;
	int64_t added = id >= 0 && id <= CLOCK_BOOTTIME ? clock_added_ns[id] : 0;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec - (uint64_t)added;
}

/* Returns the same in microseconds, rounded down. */
static inline int64_t
clock_us(clockid_t id)
{
	return (int64_t)(clock_ns(id) / 1000);
}

/* Returns the same in milliseconds, rounded down. */
static inline int64_t
clock_ms(clockid_t id)
{
	return (int64_t)(clock_ns(id) / 1000000);
}

/* Returns CLOCK_MONOTONIC of this process's namespace in so many milliseconds, for pthread_cond_timedwait(). */
static inline struct timespec
clock_deadline(uint32_t ms)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_sec += ms / 1000;
	ts.tv_nsec += ms % 1000 * 1000000;
	if (ts.tv_nsec >= 1000000000) {
		ts.tv_sec++;
		ts.tv_nsec -= 1000000000;
	}
	return ts;
}

#define CLOCK_NOISE_NS 100000	/* as good as it is measured, also on a busy host */

/*
 * Returns how far CLOCK_REALTIME is ahead of CLOCK_BOOTTIME, in nanoseconds. That is the same until the clock is set:
 * what is measured now counts only if it differs from known_ns, the answer before (0: none), by CLOCK_NOISE_NS. So one
 * moment has one wall-clock time, whenever it is asked for.
 */
int64_t clock_wall_ahead_ns(int64_t known_ns);

#endif
