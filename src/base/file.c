/*
 * SPDX-License-Identifier: Apache-2.0
 * file: the small text files of the kernel, read whole.
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

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
