/*
 * SPDX-License-Identifier: Apache-2.0
 * dead_letter_files: the files of a folder of dead letters, and the removal of letters from them.
 */
#include "deliver/dead_letter_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"

enum {
	COPY_BYTES = 256 * 1024,
};

bool
dead_letter_is_name(const char *name)
{
	size_t len = strlen(name);

	return name[0] != '.' && len > 5 && len < NAME_MAX - 6 && strcmp(name + len - 5, ".avro") == 0 &&
	    strchr(name, '/') == NULL;
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int
dead_letter_names_read(int dir_fd, struct dead_letter_names *ret)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dead_letter_names names = { 0 };
	const struct dirent *entry;

	if (dir == NULL) {
		r = -errno;
		if (fd >= 0)
			close(fd);
		return r;
	}
	while (r == 0 && (entry = readdir(dir)) != NULL) {
		char **grown;

		if (!dead_letter_is_name(entry->d_name))
			continue;
		grown = realloc(names.list, (names.n + 1) * sizeof(*grown));
		if (grown != NULL) {
			names.list = grown;
			grown[names.n] = strdup(entry->d_name);
		}
		if (grown == NULL || grown[names.n] == NULL)
			r = -ENOMEM;
		else
			names.n++;
	}
	closedir(dir);
	if (r < 0) {
		dead_letter_names_done(&names);
		return r;
	}
	if (names.n > 1)
		qsort(names.list, names.n, sizeof(*names.list), by_name);
	*ret = names;
	return 0;
}

void
dead_letter_names_done(struct dead_letter_names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->list[i]);
	free(names->list);
	*names = (struct dead_letter_names){ 0 };
}

static bool
set_lock(int fd, short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET };

	return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

bool
dead_letter_file_lock(int fd)
{
	/* A file system without locks has none that another process could hold. */
	return set_lock(fd, F_WRLCK) || (errno != EAGAIN && errno != EACCES);
}

void
dead_letter_file_unlock(int fd)
{
	(void)set_lock(fd, F_UNLCK);
}

int
dead_letter_file_take(int dir_fd, const char *name)
{
	static const struct timespec moment = { .tv_nsec = 10000000 };
	int fd = openat(dir_fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), r = -EBUSY;
	struct stat st;

	if (fd < 0)
		return -errno;
	/* An agent holds the lock only while it writes one letter. */
	for (int i = 0; i < 100 && r == -EBUSY; i++) {
		if (dead_letter_file_lock(fd))
			r = 0;
		else
			nanosleep(&moment, NULL);
	}
	if (r == 0 && fstat(fd, &st) < 0)
		r = -errno;
	else if (r == 0 && !S_ISREG(st.st_mode))
		r = -EBADMSG;
	else if (r == 0 && st.st_nlink == 0)
		r = -ENOENT;
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

/* Appends the bytes from offset up to end of one file to another, which has *size. 0 or a negative errno. */
static int
copy(int from, uint64_t offset, uint64_t end, int to, uint64_t *size)
{
	char *buffer = offset < end ? malloc(COPY_BYTES) : NULL;
	int r = 0;

	if (offset < end && buffer == NULL)
		return -ENOMEM;
	while (r == 0 && offset < end) {
		size_t len = end - offset < COPY_BYTES ? (size_t)(end - offset) : COPY_BYTES;
		ssize_t n = pread(from, buffer, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			r = n < 0 ? -errno : -EIO;
			break;
		}
		r = file_write(to, buffer, (size_t)n, *size);
		*size += (uint64_t)n;
		offset += (uint64_t)n;
	}
	free(buffer);
	return r;
}

/* Copies all but the ranges of a file of `size` bytes. *ret_size is the size of the copy. 0 or a negative errno. */
static int
copy_rest(int from, uint64_t size, const struct dead_letter_range *ranges, size_t n, int to, uint64_t *ret_size)
{
	uint64_t at = 0;
	int r = 0;

	*ret_size = 0;
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = copy(from, at, ranges[i].offset, to, ret_size);
		at = ranges[i].end;
	}
	return r == 0 ? copy(from, at, size, to, ret_size) : r;
}

/* Writes the rest of a file beside it, with its owner and mode, and syncs it. 0 or a negative errno. */
static int
write_rest(int dir_fd, const char *part, int fd, const struct stat *st, const struct dead_letter_range *ranges,
    size_t n)
{
	uint64_t size;
	int to, r;

	if (unlinkat(dir_fd, part, 0) < 0 && errno != ENOENT)	/* of a process that was killed */
		return -errno;
	to = openat(dir_fd, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return -errno;
	r = copy_rest(fd, (uint64_t)st->st_size, ranges, n, to, &size);
	if (r == 0 && ((geteuid() != st->st_uid && fchown(to, st->st_uid, st->st_gid) < 0) ||
	    fchmod(to, st->st_mode & 07777) < 0 || fdatasync(to) < 0))
		r = -errno;
	close(to);
	if (r < 0)
		unlinkat(dir_fd, part, 0);
	return r;
}

int
dead_letter_file_remove(int dir_fd, const char *name, int fd, const struct dead_letter_range *ranges, size_t n,
    uint64_t header_end)
{
	char part[NAME_MAX + 1];
	uint64_t removed = 0;
	struct stat st;
	int r = 0;

	if (n == 0)
		return 0;
	if (fstat(fd, &st) < 0)
		return -errno;
	for (size_t i = 0; i < n; i++)
		removed += ranges[i].end - ranges[i].offset;
	if (header_end + removed >= (uint64_t)st.st_size) {
		r = unlinkat(dir_fd, name, 0) < 0 ? -errno : 0;
	} else {
		snprintf(part, sizeof(part), ".%.*s.part", NAME_MAX - 6, name);
		r = write_rest(dir_fd, part, fd, &st, ranges, n);
		if (r == 0 && renameat(dir_fd, part, dir_fd, name) < 0)
			r = -errno;
	}
	if (r == 0)
		(void)fsync(dir_fd);	/* without it a power cut brings letters back, which are then repeated */
	return r;
}
