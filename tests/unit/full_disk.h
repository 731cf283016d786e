/*
 * SPDX-License-Identifier: Apache-2.0
 * full_disk: a disk of any size, most of which others use. The linker redirects fstatvfs(3) of a test that includes
 * this file (CMakeLists.txt).
 */
#ifndef SLUICE_TESTS_UNIT_FULL_DISK_H
#define SLUICE_TESTS_UNIT_FULL_DISK_H

#include <ftw.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

enum { FULL_DISK_BLOCK = 4096 };

/* Set by the test. */
static struct {
	const char *folder;	/* all that this process has on the disk */
	uint64_t total;
	uint64_t others;	/* bytes that others have on it */
} full_disk;

static uint64_t full_disk_used;

static inline int
full_disk_add(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)path;
	(void)flag;
	(void)ftw;
	if (S_ISREG(st->st_mode))
		full_disk_used += ((uint64_t)st->st_size + FULL_DISK_BLOCK - 1) / FULL_DISK_BLOCK * FULL_DISK_BLOCK;
	return 0;
}

static inline uint64_t
full_disk_free(void)
{
	full_disk_used = full_disk.others;
	(void)nftw(full_disk.folder, full_disk_add, 16, FTW_PHYS);
	return full_disk.total > full_disk_used ? full_disk.total - full_disk_used : 0;
}

int __wrap_fstatvfs(int fd, struct statvfs *st);

int
__wrap_fstatvfs(int fd, struct statvfs *st)
{
	(void)fd;
	memset(st, 0, sizeof(*st));
	st->f_bsize = st->f_frsize = FULL_DISK_BLOCK;
	st->f_blocks = full_disk.total / FULL_DISK_BLOCK;
	st->f_bavail = st->f_bfree = full_disk_free() / FULL_DISK_BLOCK;
	return 0;
}

#endif
