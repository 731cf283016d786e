/*
 * SPDX-License-Identifier: Apache-2.0
 * clock: what a time namespace adds to the clocks (time_namespaces(7)), and how far one is ahead of another.
 */
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/namespaces.h"

int64_t clock_added_ns[CLOCK_BOOTTIME + 1];

void
clock_open(void)
{
	char name[16];
	long long s, ns;
	FILE *f;

	if (namespace_is_hosts(NAMESPACE_TIME))
		return;
	/* It has the offsets of the namespace of children, which after an exec is that of the process too. */
	f = fopen("/proc/self/timens_offsets", "re");
	while (f != NULL && fscanf(f, "%15s %lld %lld", name, &s, &ns) == 3) {
		if (strcmp(name, "monotonic") == 0)
			clock_added_ns[CLOCK_MONOTONIC] = s * 1000000000 + ns;
		else if (strcmp(name, "boottime") == 0)
			clock_added_ns[CLOCK_BOOTTIME] = s * 1000000000 + ns;
	}
	if (f != NULL)
		fclose(f);
}

int64_t
clock_wall_ahead_ns(int64_t known_ns)
{
	uint64_t before, wall, after, least = UINT64_MAX;
	int64_t ahead = 0;

	/* Take the closest of several pairs of readings: this thread may have lost the CPU between others. */
	for (int i = 0; i < 5; i++) {
		before = clock_ns(CLOCK_BOOTTIME);
		wall = clock_ns(CLOCK_REALTIME);
		after = clock_ns(CLOCK_BOOTTIME);
		if (after - before < least) {
			least = after - before;
			ahead = (int64_t)(wall - before);
		}
	}
	return llabs(ahead - known_ns) < CLOCK_NOISE_NS ? known_ns : ahead;
}
