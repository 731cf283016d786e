/*
 * SPDX-License-Identifier: Apache-2.0
 * clock: what a time namespace adds to the clocks (time_namespaces(7)).
 */
#include "base/clock.h"

#include <stdio.h>
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
