/*
 * SPDX-License-Identifier: Apache-2.0
 * disk: the directory, and recovery from a disk that cannot be written. New batches are then kept in memory;
 * the disk is tried again once a second, and the batches are written to it in order. A disk that was merely slow is
 * written behind the loop (behind.c) until it is fast again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/disk.h"
#include "spool/state.h"

/* Creates the directory and its parents. */
static int
make_dirs(const char *dir)
{
	char *path = strdup(dir);
	int r = 0;

	if (path == NULL)
		return -ENOMEM;
	for (char *slash = path + 1; r == 0 && (slash = strchr(slash, '/')) != NULL; slash++) {
		*slash = '\0';
		r = mkdir(path, 0755) < 0 ? -errno : 0;
		/* mkdir(2) can fail on a directory that exists, for example with EROFS. */
		if (r < 0 && access(path, F_OK) == 0)
			r = 0;
		*slash = '/';
	}
	if (r == 0 && mkdir(path, 0700) < 0 && errno != EEXIST)
		r = -errno;
	free(path);
	return r;
}

/* Creates, opens and locks the directory. A file descriptor, or a negative errno. */
static int
lock_dir(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;

	if (fd < 0 && errno == ENOENT) {
		r = make_dirs(dir);
		if (r < 0)
			return r;
		fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		r = errno == EWOULDBLOCK ? -EBUSY : -errno;
		close(fd);
		return r;
	}
	return fd;
}

int
spool_dir_open(struct spool *s, char *error, size_t error_size)
{
	int fd = lock_dir(s->dir);

	if (fd == -EBUSY)
		snprintf(error, error_size, "%s: another agent has this spool open", s->dir);
	else if (fd < 0)
		snprintf(error, error_size, "%s: cannot open or create the spool's directory: %s", s->dir,
		    strerror(-fd));
	if (fd < 0)
		return fd;
	if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) < 0 && errno == EACCES) {
		snprintf(error, error_size, "%s: no permission to write in the spool's directory", s->dir);
		close(fd);
		return -EACCES;
	}
	s->dir_fd = fd;
	return 0;
}

int
spool_disk_failed(struct spool *s, int r)
{
	s->stats.write_errors++;
	s->is_behind = r == -ETIMEDOUT && (s->failed == 0 || s->is_behind);
	s->failed = r;
	s->retry_ns = s->now_ns + SPOOL_RETRY_NS;
	return r;
}

int
spool_dir_is_there(const struct spool *s)
{
	return disk_is_at(s->disk, s->dir_fd, s->dir);
}

/* A disk_function of move_in(). */
static int
lock_path(int dir_fd, const char *path, const void *data, size_t len)
{
	(void)dir_fd;
	(void)data;
	(void)len;
	return lock_dir(path);
}

/* Switches to a new directory of the same name, which contains no file of the spool yet. */
static int
move_in(struct spool *s)
{
	struct spool_segment *seg;
	int fd = disk_open_by(s->disk, s->dir_fd, s->dir, lock_path);

	if (fd < 0)
		return fd;
	disk_close(s->disk, s->dir_fd);
	s->dir_fd = fd;
	if (s->state_fd >= 0)
		disk_close(s->disk, s->state_fd);
	s->state_fd = -1;
	for (int q = 0; q < SPOOL_QUEUES; q++)
		TAILQ_FOREACH(seg, &s->queues[q].segments, at)
			seg->is_sealed = seg->is_sealed || seg->is_on_disk;
	/* A checkpoint in the old directory is not there after a restart. */
	s->safe = (struct spool_checkpoint){ 0 };
	s->needs_checkpoint = s->is_log_lost = true;
	return 0;
}

int
spool_disk_retry(struct spool *s)
{
	struct spool_segment *seg;
	int r = s->is_behind && s->state_fd >= 0 ? spool_behind_work(s) : 0;

	s->checked_ns = s->now_ns;
	if (r < 0)
		return spool_disk_failed(s, r);
	r = spool_dir_is_there(s);
	if (r != -ETIMEDOUT)
		r = r == 1 ? 0 : move_in(s);
	if (r == 0)
		r = spool_marks_open(s);
	if (r == 0 && s->is_state_moved)
		r = spool_marks_write(s, false);
	if (r == 0)
		r = spool_schemas_write(s);
	if (r == 0)
		spool_floor_look(s);
	for (int q = SPOOL_QUEUES - 1; q >= 0; q--) {
		TAILQ_FOREACH(seg, &s->queues[q].segments, at) {
			if (r < 0 || seg->is_on_disk)
				continue;
			r = spool_floor_has(s, seg->size) ? spool_segment_write_file(s, seg) : -ENOSPC;
		}
	}
	if (r < 0)
		return spool_disk_failed(s, r);
	/* What did not fit into memory may fit on the disk. */
	if (s->abandoned_bytes > 0) {
		s->abandoned_bytes = 0;
		s->needs_checkpoint = true;
	}
	s->failed = 0;
	s->is_behind = false;
	return 0;
}
