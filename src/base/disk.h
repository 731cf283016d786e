/*
 * SPDX-License-Identifier: Apache-2.0
 * disk: calls on files that return in bounded time, so that the event loop continues when a disk hangs.
 *
 * A thread makes them, one after another, while the caller waits. In any ten times the disk's patience it waits for
 * hardly more than that patience in all, so that a disk which is slow at each call does not stop the loop, either: what
 * is left of it grows by a tenth of the time that passes. A call that takes longer has failed with -ETIMEDOUT, and so
 * has every further one, at once, until it has returned. What it does then has no effect: a file that it made is
 * removed, and what it appended is cut off.
 *
 * One thread may use a disk. With NULL for a disk the caller makes the call itself, and waits as long as it takes.
 */
#ifndef SLUICE_BASE_DISK_H
#define SLUICE_BASE_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct disk;
struct iovec;
struct space;

/* Starts the thread. 0, or a negative errno with *ret untouched. */
int disk_start(uint32_t patience_ms, struct disk **ret);
/* Ends the thread, and frees d; NULL is fine. If a call hangs, both happen once it has returned. */
void disk_stop(struct disk *d);
/* Returns whether the thread is in a call for which the caller no longer waits. NULL: it is not. */
bool disk_hangs(const struct disk *d);
/* Returns the text of a negative errno, which is -ETIMEDOUT of a disk that hangs. */
const char *disk_error_text(int error);

/* What fails returns a negative errno. A name is relative to dir_fd, and at most NAME_MAX bytes long. */

/* Returns a file descriptor, which disk_close() closes. */
int disk_open(struct disk *d, int dir_fd, const char *name, int flags, mode_t mode);
/* If a call hangs, the descriptor is closed after it. */
void disk_close(struct disk *d, int fd);
/* If a call hangs, the name is removed after it, and 0 is returned. */
int disk_unlink(struct disk *d, int dir_fd, const char *name);
/*
 * Writes n buffers to the end of a file, which has so many bytes before, a piece at a time: of what is long the thread
 * has no copy. Changes iov. After a failure other than -ETIMEDOUT a part may be there.
 */
int disk_append(struct disk *d, int fd, struct iovec *iov, int n, uint64_t end);
/* Writes all of data. After -ETIMEDOUT it may still be written. */
int disk_write(struct disk *d, int fd, const void *data, size_t len, uint64_t offset);
/* Returns how many bytes were read, at most len: up to the end of the file, or to where it cannot be read. */
ssize_t disk_read(struct disk *d, int fd, void *to, size_t len, uint64_t offset);
int disk_truncate(struct disk *d, int fd, uint64_t len);
/* Makes a file of that many bytes, for which the file system has room. */
int disk_allocate(struct disk *d, int fd, uint64_t len);
/* Returns how many names a file has. */
int disk_links(struct disk *d, int fd);
/* Fills in the room of the file system that a file or folder is on. */
int disk_space(struct disk *d, int fd, struct space *ret);
/*
 * Calls a function that makes several calls, with a duplicate of dir_fd (or AT_FDCWD), a path and a copy of data, and
 * returns what it returns. After -ETIMEDOUT it may still do what it does.
 */
typedef int disk_function(int dir_fd, const char *path, const void *data, size_t len);
int disk_run(struct disk *d, int dir_fd, const char *path, const void *data, size_t len, disk_function *function);
/*
 * Has the thread call one while the caller continues: until it has returned, disk_hangs(). Data is copied. 0, or a
 * negative errno with nothing done. NULL for a disk: it has returned.
 */
int disk_begin(struct disk *d, int dir_fd, const char *path, const void *data, size_t len, disk_function *function);
/* Waits for at most so long until no call hangs, and gives all of the patience back; NULL is fine. */
void disk_settle(struct disk *d, uint32_t timeout_ms);
/* Calls one that returns a file descriptor, which disk_close() closes, without data. */
int disk_open_by(struct disk *d, int dir_fd, const char *path, disk_function *function);
/* Returns 1 if a directory has that path, 0 if it does not. */
int disk_is_at(struct disk *d, int dir_fd, const char *path);

#endif
