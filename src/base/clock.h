/*
 * SPDX-License-Identifier: Apache-2.0
 * clock: the time of one of the kernel's clocks, in the unit that the caller uses.
 */
#ifndef SLUICE_BASE_CLOCK_H
#define SLUICE_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Returns the time of a clock, such as CLOCK_BOOTTIME, in nanoseconds. */
static inline uint64_t
clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
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

#endif
