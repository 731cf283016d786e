/*
 * SPDX-License-Identifier: Apache-2.0
 * labelled_memory: kinds of work that a limit of memory holds up, and one that it does not.
 */
#include "labelled.h"

#include <err.h>
#include <fcntl.h>
#include <sys/mman.h>

#define HEAP_THREADS 2

static size_t
wanted(void)
{
	return (size_t)number << 20;
}

/* Writes to NUMBER MiB of anonymous memory over and over: what is more than a limit goes to swap and comes back. */
static uint64_t
anon(void)
{
	size_t size = wanted();
	volatile unsigned char *m = memory(size);
	uint64_t n = 0;

	for (; is_time(); n++)
		for (size_t at = 0; at < size && is_time(); at += PAGE)
			m[at]++;
	return n;
}

/* Computes with a heap of NUMBER MiB that is all in use and does not grow. */
static uint64_t
heap(void)
{
	size_t size = wanted();
	volatile unsigned char *m = memory(size);

	for (size_t at = 0; at < size; at += PAGE)
		m[at] = 1;
	return in_threads(HEAP_THREADS, cpu_thread);
}

/* Touches pages of NUMBER MiB of a mapped file at random: what is more than a limit is read anew each time. */
static uint64_t
mmap_again(void)
{
	int fd = open_file(O_RDONLY);
	size_t size = wanted();
	const volatile unsigned char *m = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	uint64_t n = 0, sum = 0, x = 1;

	if (m == MAP_FAILED)
		err(1, "%s", path);
	for (; is_time(); n++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		sum += m[(x >> 32) % (size / PAGE) * PAGE];
	}
	sink = sum;
	return n;
}

const struct kind memory_kinds[] = {
	{ "anon", anon }, { "heap", heap }, { "mmap_again", mmap_again }, { NULL, NULL },
};
