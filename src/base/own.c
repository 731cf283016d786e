/*
 * SPDX-License-Identifier: Apache-2.0
 * own: reads /proc/PID/statm, stat and schedstat, proc(5), and the clocks of processes; empties a command line.
 */
#include "base/own.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static uint64_t others_cpu_ns;	/* of children that were reaped, and are not ours */

/* Reads the resident pages of a process, and those of them that are of files. False: /proc cannot be read. */
static bool
read_pages(const char *path, unsigned long long *ret, unsigned long long *ret_of_files)
{
	unsigned long long all;
	FILE *f = fopen(path, "re");
	bool is_read;

	if (f == NULL)
		return false;
	is_read = fscanf(f, "%llu %llu %llu", &all, ret, ret_of_files) == 3;
	fclose(f);
	return is_read;
}

uint64_t
own_rss_bytes(void)
{
	unsigned long long resident, of_files;

	if (!read_pages("/proc/self/statm", &resident, &of_files))
		return 0;
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t
cpu_ns(const struct rusage *u)
{
	return (uint64_t)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) * 1000000000 +
	    (uint64_t)(u->ru_utime.tv_usec + u->ru_stime.tv_usec) * 1000;
}

void
own_reaped_others(const struct rusage *usage)
{
	others_cpu_ns += cpu_ns(usage);
}

uint64_t
own_reaped_cpu_ns(void)
{
	struct rusage u;

	if (getrusage(RUSAGE_CHILDREN, &u) < 0 || cpu_ns(&u) < others_cpu_ns)
		return 0;
	return cpu_ns(&u) - others_cpu_ns;
}

uint64_t
own_child_cpu_ns(pid_t pid)
{
	clockid_t clock;

	return clock_getcpuclockid(pid, &clock) == 0 ? clock_ns(clock) : 0;
}

uint64_t
own_child_rss_bytes(pid_t pid)
{
	unsigned long long resident, of_files;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	if (!read_pages(path, &resident, &of_files) || resident < of_files)
		return 0;
	return (resident - of_files) * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t
own_child_run_delay_ns(pid_t pid)
{
	unsigned long long delay = 0;
	char path[40];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
	f = fopen(path, "re");
	if (f == NULL)
		return 0;
	if (fscanf(f, "%*u %llu", &delay) != 1)
		delay = 0;
	fclose(f);
	return delay;
}

bool
own_child_is_runnable(pid_t pid)
{
	char path[32], state = '?';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (f == NULL)
		return false;
	/* The name is one of ours, without parentheses. */
	if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = '?';
	fclose(f);
	return state == 'R';
}

void
own_forget_arguments(void)
{
	char text[1024], *field;
	FILE *f = fopen("/proc/self/stat", "re");
	unsigned long start, end;

	if (f == NULL)
		return;
	field = fgets(text, sizeof(text), f);
	fclose(f);
	if (field == NULL || (field = strrchr(text, ')')) == NULL)
		return;
	for (int i = 2; i < 48 && field != NULL; i++)	/* fields 48 and 49: arg_start, arg_end */
		field = strchr(field + 1, ' ');
	if (field != NULL && sscanf(field, "%lu %lu", &start, &end) == 2 && start != 0 && end > start)
		memset((void *)start, 0, end - start);	/* where the kernel put argv */
}
