/*
 * SPDX-License-Identifier: Apache-2.0
 * sample: the figures of several rounds as one JSON line.
 */
#ifndef SLUICE_BENCH_SAMPLE_H
#define SLUICE_BENCH_SAMPLE_H

#include <stdint.h>
#include <stdio.h>
#include <time.h>

/* Returns the CPU time of this process in ns, so that other processes do not count. */
static inline double
sample_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static inline void
sample_print(const char *name, const double *values, unsigned n)
{
	printf("{\"name\": \"%s\", \"values\": [", name);
	for (unsigned i = 0; i < n; i++)
		printf("%s%.3f", i > 0 ? ", " : "", values[i]);
	puts("]}");
}

#endif
