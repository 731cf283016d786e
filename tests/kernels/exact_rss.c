/*
 * SPDX-License-Identifier: Apache-2.0
 * exact_rss PAGES: touches as many pages on each CPU in turn, and prints the KiB that are resident then, which the
 * kernel counts by a walk over all pages. Each CPU keeps its part of the kernel's counters of them to itself.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void
die(const char *what)
{
	perror(what);
	_exit(1);
}

static void
touch(int cpu, long pages)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	cpu_set_t set;
	char *at;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		die("sched_setaffinity");
	at = mmap(NULL, (size_t)pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		die("mmap");
	madvise(at, (size_t)pages * page, MADV_NOHUGEPAGE);
	for (long i = 0; i < pages; i++)
		at[(size_t)i * page] = 1;
}

static long
resident_kib(void)
{
	static char text[4096];
	FILE *f = fopen("/proc/self/smaps_rollup", "r");
	const char *rss;

	if (f == NULL)
		die("/proc/self/smaps_rollup");
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	rss = strstr(text, "Rss:");
	if (rss == NULL)
		die("Rss");
	return strtol(rss + 4, NULL, 10);
}

int
main(int argc, char **argv)
{
	long pages = argc == 2 ? atol(argv[1]) : 0;
	cpu_set_t all;

	if (pages <= 0) {
		fputs("usage: exact_rss PAGES\n", stderr);
		return 2;
	}
	if (sched_getaffinity(0, sizeof(all), &all) < 0)
		die("sched_getaffinity");
	(void)resident_kib();	/* its own memory is there when it is called again */
	printf("%d ", CPU_COUNT(&all));
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &all))
			touch(cpu, pages);
	}
	printf("%ld\n", resident_kib());
	fflush(stdout);
	_exit(0);
}
