/*
 * SPDX-License-Identifier: Apache-2.0
 * threads: a group of tests that waits for its detached threads to end, and fails if a thread or a descriptor is
 * left.
 */
#ifndef SLUICE_TESTS_UNIT_THREADS_H
#define SLUICE_TESTS_UNIT_THREADS_H

#include <dirent.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int threads_before, descriptors_before;

static inline int
count_names(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	if (dir == NULL)
		return 0;
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

static inline void *
no_work(void *arg)
{
	return arg;
}

static inline int
threads_begin(void **state)
{
	pthread_t first;

	(void)state;
	/* ThreadSanitizer starts a thread of its own together with the first. */
	if (pthread_create(&first, NULL, no_work, NULL) == 0)
		pthread_join(first, NULL);
	threads_before = count_names("/proc/self/task");
	descriptors_before = count_names("/proc/self/fd");
	return 0;
}

/* Waits for the threads: a sanitizer would report their memory as leaked. */
static inline int
threads_end(void **state)
{
	int threads, descriptors;

	(void)state;
	for (int i = 0; i < 30000 && count_names("/proc/self/task") > threads_before; i++)
		usleep(1000);
	threads = count_names("/proc/self/task") - threads_before;
	descriptors = count_names("/proc/self/fd") - descriptors_before;
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
	descriptors = 0;	/* ThreadSanitizer has pipes to its symbolizer */
#endif
#endif
	if (threads > 0 || descriptors > 0) {
		/* cmocka ignores a failure of a group's teardown. */
		fprintf(stderr, "%d threads and %d descriptors are left\n", threads, descriptors);
		exit(1);
	}
	return 0;
}

#endif
