/*
 * SPDX-License-Identifier: Apache-2.0
 * file: reads small files whole, such as the kernel's text files, writes ranges whole, and makes files in memory.
 */
#ifndef SLUICE_BASE_FILE_H
#define SLUICE_BASE_FILE_H

#include <stddef.h>
#include <stdint.h>

struct iovec;

/* A buffer that is reused from one read to the next. A zeroed one is valid and empty. */
struct file_text {
	char *text;	/* owned; always has a NUL after len */
	size_t len;
	size_t cap;
};

/* Frees the buffer and leaves t empty; it may be used again. */
void file_text_done(struct file_text *t);

/*
 * Reads all of fd from its beginning, in as few reads as the buffer allows. Returns 0, or a negative errno with
 * t empty; -EFBIG: more than max bytes.
 */
int file_read_fd(int fd, struct file_text *t, size_t max);

/* Reads a file as file_read_fd() does, by path, relative to dir_fd (AT_FDCWD: the working directory). */
int file_read(int dir_fd, const char *path, struct file_text *t, size_t max);

/*
 * Creates a file in memory that has no path; name is for readers of /proc/PID/fd alone. Returns the fd, which is the
 * caller's and is closed by exec, or a negative errno.
 */
int file_in_memory(const char *name);

/* Writes all of data to fd at an offset. Returns 0, or a negative errno after which a part may be written. */
int file_write(int fd, const void *data, size_t len, uint64_t offset);

/* Writes n buffers like file_write(), with one write if the kernel takes them whole. Changes iov. */
int file_writev(int fd, struct iovec *iov, int n, uint64_t offset);

#endif
