/*
 * SPDX-License-Identifier: Apache-2.0
 * labelled_file: kinds of work that read and write a file; what they wait for is what the file is on.
 */
#include "labelled.h"

#include <err.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define WRITTEN_BLOCKS 64	/* of the file, over and over */

static uint64_t
size_of(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || st.st_size <= BLOCK)
		errx(1, "%s: of a MiB or less", path);
	return (uint64_t)st.st_size;
}

/* Touches a mapped file; is_cold: page by page, each of which is read from the disk. */
static uint64_t
mapped(bool is_cold)
{
	int fd = open_file(O_RDONLY);
	uint64_t size = size_of(fd), rounds = 0;

	for (; is_time(); rounds++) {
		const volatile unsigned char *m;
		uint64_t sum = 0;

		if (is_cold)
			posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		m = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
		if (m == MAP_FAILED)
			err(1, "%s", path);
		madvise((void *)(uintptr_t)m, size, is_cold ? MADV_RANDOM : MADV_NORMAL);
		for (uint64_t at = 0; at < size && is_time(); at += is_cold ? PAGE : 64)
			sum += m[at];
		sink = sum;
		munmap((void *)(uintptr_t)m, size);
	}
	return rounds;
}

static uint64_t
mmap_cold(void)
{
	return mapped(true);
}

static uint64_t
mmap_warm(void)
{
	return mapped(false);
}

struct reading {
	int flags;
	size_t part;		/* of the file, a call */
	bool is_cold;		/* dropped from the page cache at the beginning of each round */
	bool is_random;
};

static uint64_t
reads(struct reading r)
{
	int fd = open_file(O_RDONLY | r.flags);
	uint64_t size = size_of(fd), n = 0, at = 0, x = (uint64_t)(now() * 1e9) | 1;
	char *buf = memory(r.part);

	for (; is_time(); n++) {
		if (r.is_cold && at == 0)
			posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		if (pread(fd, buf, r.part, (off_t)at) < 0)
			err(1, "%s", path);
		x = x * 6364136223846793005u + 1442695040888963407u;
		at = r.is_random ? (x >> 32) % (size / r.part) * r.part : at + r.part;
		if (at + r.part > size)
			at = 0;
	}
	return n;
}

static uint64_t
read_warm(void)
{
	return reads((struct reading){ .part = BLOCK });
}

static uint64_t
read_cold(void)
{
	return reads((struct reading){ .part = BLOCK, .is_cold = true });
}

static uint64_t
read_direct(void)
{
	return reads((struct reading){ .flags = O_DIRECT, .part = BLOCK });
}

static uint64_t
read_random(void)
{
	return reads((struct reading){ .flags = O_DIRECT, .part = PAGE, .is_random = true });
}

static void *
reader(void *index)
{
	(void)index;
	reads((struct reading){ .flags = O_DIRECT, .part = 16 * PAGE, .is_random = true });
	return NULL;
}

static uint64_t
read_threads(void)
{
	return in_threads(MOST_THREADS, reader);
}

static uint64_t
writes(int flags, bool is_synced)
{
	int fd = open_file(O_WRONLY | O_CREAT | flags);
	char *buf = memory(BLOCK);
	uint64_t n = 0;

	memset(buf, 'w', BLOCK);
	for (; is_time(); n++) {
		if (pwrite(fd, buf, BLOCK, (off_t)(n % WRITTEN_BLOCKS * BLOCK)) < 0)
			err(1, "%s", path);
		if (is_synced && fdatasync(fd) < 0)
			err(1, "%s", path);
	}
	return n;
}

static uint64_t
write_direct(void)
{
	return writes(O_DIRECT, false);
}

static uint64_t
write_sync(void)
{
	return writes(0, true);
}

/* It computes for as long as it has read. */
static uint64_t
read_and_compute(void)
{
	int fd = open_file(O_RDONLY | O_DIRECT);
	uint64_t size = size_of(fd), n = 0;
	char *buf = memory(BLOCK);

	for (; is_time(); n++) {
		double begin = now();

		if (pread(fd, buf, BLOCK, (off_t)(n * BLOCK % (size - BLOCK) / PAGE * PAGE)) < 0)
			err(1, "%s", path);
		compute_for(now() - begin);
	}
	return n;
}

static uint64_t
stats(void)
{
	struct stat st;
	uint64_t n = 0;

	for (; is_time(); n++)
		if (stat(path, &st) < 0)
			err(1, "%s", path);
	return n;
}

const struct kind file_kinds[] = {
	{ "mmap_cold", mmap_cold }, { "mmap_warm", mmap_warm }, { "read_warm", read_warm }, { "read_cold", read_cold },
	{ "read_direct", read_direct }, { "read_random", read_random }, { "read_threads", read_threads },
	{ "write_direct", write_direct }, { "write_sync", write_sync }, { "read_and_compute", read_and_compute },
	{ "stats", stats }, { NULL, NULL },
};
