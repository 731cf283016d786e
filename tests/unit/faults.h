/*
 * SPDX-License-Identifier: Apache-2.0
 * faults: calls of the C library that fail. The linker redirects the calls listed in FAULTS_WRAPPED
 * (CMakeLists.txt) for a test that includes this file. A fault only affects the thread that set it.
 */
#ifndef SLUICE_TESTS_UNIT_FAULTS_H
#define SLUICE_TESTS_UNIT_FAULTS_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>

enum fault_call {
	FAULT_MEMORY = 1 << 0,		/* malloc, calloc, realloc, strdup */
	FAULT_OPEN = 1 << 1,		/* open, openat without O_CREAT */
	FAULT_DIR = 1 << 2,		/* mkdir, mkdirat */
	FAULT_LOCK = 1 << 3,
	FAULT_READ = 1 << 4,		/* pread */
	FAULT_WRITE = 1 << 5,		/* write, pwritev */
	FAULT_ROOM = 1 << 6,		/* posix_fallocate */
	FAULT_CUT = 1 << 7,		/* ftruncate */
	FAULT_SYNC = 1 << 8,		/* fdatasync, fsync */
	FAULT_NAME = 1 << 9,		/* rename, renameat */
	FAULT_UNLINK = 1 << 10,		/* unlink, unlinkat */
	FAULT_DUP = 1 << 11,		/* fcntl */
	FAULT_THREAD = 1 << 12,		/* pthread_create */
	FAULT_REWRITE = 1 << 13,	/* pwrite */
	FAULT_CREATE = 1 << 14,		/* open, openat with O_CREAT */
	FAULT_TEXT = 1 << 15,		/* asprintf */
	FAULT_EVENT = 1 << 16,		/* eventfd */
	FAULT_LIBRARY = 1 << 17,	/* memory of a library that allocates by the functions below */
};

struct fault {
	unsigned calls;			/* enum fault_call: the calls that may fail */
	unsigned skip;			/* calls that succeed first */
	unsigned times;			/* calls that fail after that */
	size_t size;			/* bytes of the allocations that may fail; 0: all */
	int error;			/* errno of the failure; 0: a short read or write instead */
	int then;			/* not 0: one more call fails, with this errno */
	unsigned count;			/* calls so far */
	unsigned hit;			/* enum fault_call: the calls that failed */
};

static _Thread_local struct fault fault;

/* Returns whether this call is to fail, and sets errno. */
static inline bool
fault_is_due(enum fault_call call)
{
	unsigned n;

	if (!(fault.calls & (unsigned)call))
		return false;
	n = fault.count++;
	if (fault.then != 0 && n == fault.skip + fault.times)
		fault.error = fault.then;
	else if (n < fault.skip || n - fault.skip >= fault.times)
		return false;
	fault.hit |= (unsigned)call;
	errno = fault.error;
	return true;
}

/* The same for memory. A size keeps libraries that abort without memory out of it. */
static inline bool
fault_is_due_for(size_t size)
{
	return (fault.size == 0 || fault.size == size) && fault_is_due(FAULT_MEMORY);
}

#define FAULT_WRAP(type, name, ...)				\
	type __real_##name(__VA_ARGS__);			\
	type __wrap_##name(__VA_ARGS__);			\
	type __wrap_##name(__VA_ARGS__)

FAULT_WRAP(void *, malloc, size_t size)
{
	return fault_is_due_for(size) ? NULL : __real_malloc(size);
}

FAULT_WRAP(void *, calloc, size_t n, size_t size)
{
	return fault_is_due_for(n * size) ? NULL : __real_calloc(n, size);
}

FAULT_WRAP(void *, realloc, void *data, size_t size)
{
	return fault_is_due_for(size) ? NULL : __real_realloc(data, size);
}

FAULT_WRAP(char *, strdup, const char *text)
{
	return fault_is_due_for(strlen(text) + 1) ? NULL : __real_strdup(text);
}

FAULT_WRAP(int, asprintf, char **ret, const char *format, ...)
{
	va_list args;
	int r;

	/* The value of *ret is undefined on failure. */
	*ret = (char *)1;
	if (fault_is_due(FAULT_TEXT))
		return -1;
	va_start(args, format);
	r = vasprintf(ret, format, args);
	va_end(args);
	return r;
}

FAULT_WRAP(int, eventfd, unsigned value, int flags)
{
	return fault_is_due(FAULT_EVENT) ? -1 : __real_eventfd(value, flags);
}

FAULT_WRAP(int, open, const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	return fault_is_due(flags & O_CREAT ? FAULT_CREATE : FAULT_OPEN) ? -1 : __real_open(path, flags, mode);
}

FAULT_WRAP(int, openat, int dir, const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	return fault_is_due(flags & O_CREAT ? FAULT_CREATE : FAULT_OPEN) ? -1 : __real_openat(dir, path, flags, mode);
}

FAULT_WRAP(int, mkdir, const char *path, mode_t mode)
{
	return fault_is_due(FAULT_DIR) ? -1 : __real_mkdir(path, mode);
}

FAULT_WRAP(int, mkdirat, int dir, const char *path, mode_t mode)
{
	return fault_is_due(FAULT_DIR) ? -1 : __real_mkdirat(dir, path, mode);
}

FAULT_WRAP(int, flock, int fd, int how)
{
	return fault_is_due(FAULT_LOCK) ? -1 : __real_flock(fd, how);
}

FAULT_WRAP(ssize_t, pread, int fd, void *data, size_t len, off_t at)
{
	if (!fault_is_due(FAULT_READ))
		return __real_pread(fd, data, len, at);
	return fault.error != 0 ? -1 : __real_pread(fd, data, (len + 1) / 2, at);
}

FAULT_WRAP(ssize_t, write, int fd, const void *data, size_t len)
{
	if (!fault_is_due(FAULT_WRITE))
		return __real_write(fd, data, len);
	return fault.error != 0 ? -1 : __real_write(fd, data, (len + 1) / 2);
}

FAULT_WRAP(ssize_t, pwrite, int fd, const void *data, size_t len, off_t at)
{
	if (!fault_is_due(FAULT_REWRITE))
		return __real_pwrite(fd, data, len, at);
	return fault.error != 0 ? -1 : __real_pwrite(fd, data, (len + 1) / 2, at);
}

FAULT_WRAP(ssize_t, pwritev, int fd, const struct iovec *iov, int n, off_t at)
{
	struct iovec some[8];
	size_t len = 0;

	if (!fault_is_due(FAULT_WRITE))
		return __real_pwritev(fd, iov, n, at);
	if (fault.error != 0)
		return -1;
	if (n == 1)
		return __real_pwrite(fd, iov->iov_base, (iov->iov_len + 1) / 2, at);
	/* Writes all but the last two bytes, which are in the last non-empty part. */
	for (int i = 0; i < n && i < 8; i++) {
		some[i] = iov[i];
		len = iov[i].iov_len > 0 ? (size_t)i : len;
	}
	some[len].iov_len -= some[len].iov_len > 2 ? 2 : 0;
	return __real_pwritev(fd, some, (int)len + 1, at);
}

FAULT_WRAP(int, posix_fallocate, int fd, off_t at, off_t len)
{
	return fault_is_due(FAULT_ROOM) ? fault.error : __real_posix_fallocate(fd, at, len);
}

FAULT_WRAP(int, ftruncate, int fd, off_t len)
{
	return fault_is_due(FAULT_CUT) ? -1 : __real_ftruncate(fd, len);
}

FAULT_WRAP(int, fdatasync, int fd)
{
	return fault_is_due(FAULT_SYNC) ? -1 : __real_fdatasync(fd);
}

FAULT_WRAP(int, fsync, int fd)
{
	return fault_is_due(FAULT_SYNC) ? -1 : __real_fsync(fd);
}

FAULT_WRAP(int, renameat, int from_dir, const char *from, int to_dir, const char *to)
{
	return fault_is_due(FAULT_NAME) ? -1 : __real_renameat(from_dir, from, to_dir, to);
}

FAULT_WRAP(int, rename, const char *from, const char *to)
{
	return fault_is_due(FAULT_NAME) ? -1 : __real_rename(from, to);
}

FAULT_WRAP(int, unlink, const char *path)
{
	return fault_is_due(FAULT_UNLINK) ? -1 : __real_unlink(path);
}

FAULT_WRAP(int, unlinkat, int dir, const char *path, int flags)
{
	return fault_is_due(FAULT_UNLINK) ? -1 : __real_unlinkat(dir, path, flags);
}

FAULT_WRAP(int, fcntl, int fd, int command, ...)
{
	va_list args;
	long arg;

	va_start(args, command);
	arg = va_arg(args, long);
	va_end(args);
	return fault_is_due(FAULT_DUP) ? -1 : __real_fcntl(fd, command, arg);
}

FAULT_WRAP(int, pthread_create, pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	return fault_is_due(FAULT_THREAD) ? EAGAIN : __real_pthread_create(thread, attr, run, arg);
}

static inline void *
fault_library_alloc(size_t size)
{
	return fault_is_due(FAULT_LIBRARY) ? NULL : __real_malloc(size);
}

static inline void *
fault_library_grow(void *data, size_t size)
{
	return fault_is_due(FAULT_LIBRARY) ? NULL : __real_realloc(data, size);
}

static inline void *
fault_library_zeroes(size_t n, size_t size)
{
	return fault_is_due(FAULT_LIBRARY) ? NULL : __real_calloc(n, size);
}

static inline char *
fault_library_copy(const char *text)
{
	return fault_is_due(FAULT_LIBRARY) ? NULL : __real_strdup(text);
}

#endif
