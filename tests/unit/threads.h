/*
 * SPDX-License-Identifier: Apache-2.0
 * threads: a group of tests that ends when the threads have ended that it started and nobody joins, and that leaves no
 * descriptor behind.
 */
#ifndef SLUICE_TESTS_UNIT_THREADS_H
#define SLUICE_TESTS_UNIT_THREADS_H

#include <dirent.h>
#include <stddef.h>
#include <unistd.h>

static unsigned threads_before, descriptors_before;

static inline unsigned
count_names(const char *path)
{
	DIR *dir = opendir(path);
	unsigned n = 0;

	if (dir == NULL)
		return 0;
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

static inline int
threads_begin(void **state)
{
	(void)state;
	threads_before = count_names("/proc/self/task");
	descriptors_before = count_names("/proc/self/fd");
	return 0;
}

/* Until then a sanitizer would tell of what they still hold. */
static inline int
threads_end(void **state)
{
	(void)state;
	for (int i = 0; i < 30000 && count_names("/proc/self/task") > threads_before; i++)
		usleep(1000);
	return count_names("/proc/self/task") > threads_before || count_names("/proc/self/fd") > descriptors_before ? -1 : 0;
}

#endif
