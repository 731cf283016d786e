/*
 * SPDX-License-Identifier: Apache-2.0
 * file: repeats pread(2) and pwritev(2) until all bytes are transferred.
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8	/* Linux 6.3; a host may refuse files without it: sysctl vm.memfd_noexec=2 */
#endif

void
file_text_done(struct file_text *t)
{
	free(t->text);
	*t = (struct file_text){ 0 };
}

/* Doubles the capacity and keeps the text. */
static int
grow(struct file_text *t)
{
	size_t cap = t->cap > 0 ? t->cap * 2 : 4096;
	char *more = realloc(t->text, cap);

	if (more == NULL)
		return -ENOMEM;
	t->text = more;
	t->cap = cap;
	return 0;
}

int
file_read_fd(int fd, struct file_text *t, size_t max)
{
	ssize_t n;
	int r;

	t->len = 0;
	for (;;) {
		if (t->cap - t->len < 2) {
			r = grow(t);
			if (r < 0)
				goto fail;
		}
		n = pread(fd, t->text + t->len, t->cap - t->len - 1, (off_t)t->len);
		if (n < 0 && errno == EINTR)
			continue;
		r = -errno;
		if (n < 0)
			goto fail;
		if (n == 0)
			break;
		t->len += (size_t)n;
		r = -EFBIG;
		if (t->len > max)
			goto fail;
	}
	t->text[t->len] = '\0';
	return 0;

fail:
	t->len = 0;
	if (t->cap > 0)
		t->text[0] = '\0';
	return r;
}

int
file_read(int dir_fd, const char *path, struct file_text *t, size_t max)
{
	int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC), r;

	if (fd < 0) {
		t->len = 0;
		return -errno;
	}
	r = file_read_fd(fd, t, max);
	close(fd);
	return r;
}

int
file_writev(int fd, struct iovec *iov, int n, uint64_t offset)
{
	size_t left = 0;

	for (int i = 0; i < n; i++)
		left += iov[i].iov_len;
	while (left > 0) {
		ssize_t done = pwritev(fd, iov, n, (off_t)offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		offset += (size_t)done;
		left -= (size_t)done;
		for (int i = 0; i < n && done > 0; i++) {
			size_t part = (size_t)done < iov[i].iov_len ? (size_t)done : iov[i].iov_len;

			iov[i].iov_base = (char *)iov[i].iov_base + part;
			iov[i].iov_len -= part;
			done -= (ssize_t)part;
		}
	}
	return 0;
}

int
file_write(int fd, const void *data, size_t len, uint64_t offset)
{
	struct iovec iov = { (void *)(uintptr_t)data, len };

	return file_writev(fd, &iov, 1, offset);
}

int
file_in_memory(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, MFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}
