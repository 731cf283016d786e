/*
 * SPDX-License-Identifier: Apache-2.0
 * libc: calls of glibc that musl, which the static program is linked with, has not.
 */
#ifndef SLUICE_BASE_LIBC_H
#define SLUICE_BASE_LIBC_H

#include <features.h>
#include <stdio.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#else
#include <sys/syscall.h>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1u
#endif

static inline int
renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
	return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

/* Options of glibc's allocator alone. */
#define M_MXFAST 1
#define M_TRIM_THRESHOLD (-1)
#define M_MMAP_THRESHOLD (-3)

static inline int
mallopt(int what, int value)
{
	(void)what;
	(void)value;
	return 0;
}

static inline int
malloc_trim(size_t keep)
{
	(void)keep;
	return 0;
}
#endif

#endif
