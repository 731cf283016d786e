/*
 * SPDX-License-Identifier: Apache-2.0
 * own: reads /proc/self/statm, proc(5).
 */
#include "base/own.h"

#include <stdio.h>
#include <unistd.h>

uint64_t
own_rss_bytes(void)
{
	unsigned long long pages = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f == NULL)
		return 0;
	if (fscanf(f, "%llu %llu", &pages, &resident) != 2)
		resident = 0;
	fclose(f);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}
