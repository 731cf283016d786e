/*
 * SPDX-License-Identifier: Apache-2.0
 * dead_letter_writer: appends to Avro files, one for each topic and day, each letter as a block of its own.
 */
#include "deliver/dead_letter_writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/space.h"
#include "codec/ocf.h"
#include "codec/schema.h"
#include "deliver/dead_letter_files.h"
#include "lake/folders.h"

#define RESCAN_US INT64_C(10000000)	/* interval of scans of a full folder */
#define BLOCK_BYTES 4096		/* what a file may take more than its size */

/* The open file of a topic, for one day. */
struct topic_state {
	int		 fd;		/* -1: not open */
	int64_t		 day;
	uint64_t	 size;		/* length of the header and all whole blocks */
	bool		 is_dirty;	/* not synced yet */
	bool		 is_new;	/* nor is its name, which another agent may have made */
	uint8_t		 sync[OCF_SYNC_SIZE];
};

struct dead_letter_writer {
	char			*dir;		/* owned */
	uint64_t		 max_bytes;
	uint64_t		 free_min;	/* 0: none */
	uint64_t		 bytes;		/* size of the files in dir */
	int64_t			 scanned_us;	/* monotonic; of the last scan; INT64_MIN: of none */
	int			 sync_error;	/* since dead_letter_writer_sync(): the first negative errno */
	struct ocf_packer	*packer;	/* owned */
	struct bytes		 packed;	/* block of the letter, or a header */
	struct topic_state	 topics[TOPIC_COUNT];
};

static const struct schema_text *
schema(void)
{
	const struct schema_text *s = schema_texts;

	while (s->name != NULL && strcmp(s->name, "dead_letter") != 0)
		s++;
	return s->name != NULL ? s : NULL;
}

static void
scan(struct dead_letter_writer *d)
{
	DIR *dir = opendir(d->dir);
	struct dirent *entry;
	struct stat st;

	d->bytes = 0;
	d->scanned_us = clock_us(CLOCK_MONOTONIC);
	if (dir == NULL)
		return;
	while ((entry = readdir(dir)) != NULL) {
		if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode))
			d->bytes += (uint64_t)st.st_size;
	}
	closedir(dir);
}

int
dead_letter_writer_new(const char *dir, uint64_t max_bytes, uint64_t free_min, struct dead_letter_writer **ret)
{
	struct dead_letter_writer *d = calloc(1, sizeof(*d));
	int r = -ENOMEM;

	if (d == NULL)
		return -ENOMEM;
	for (int t = 0; t < TOPIC_COUNT; t++)
		d->topics[t].fd = -1;
	d->max_bytes = max_bytes;
	d->free_min = free_min;
	d->scanned_us = INT64_MIN;
	d->dir = strdup(dir);
	if (d->dir != NULL)
		r = schema() == NULL ? -ENOENT : ocf_packer_new(OCF_DEFLATE, &d->packer);
	if (r < 0) {
		dead_letter_writer_free(d);
		return r;
	}
	*ret = d;
	return 0;
}

/* Returns a negative errno, or 0, as where this file system cannot sync a folder (EINVAL). */
static int
sync_fd(int fd)
{
	if (fdatasync(fd) < 0 && errno != EINVAL)
		return -errno;
	return 0;
}

/* Syncs the name of a new file, and that of the folder, which may be new too. 0 or a negative errno. */
static int
sync_folder(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), parent, r, error = 0;

	if (fd < 0)
		return -errno;
	parent = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = sync_fd(fd);
	/* A folder above that the agent may not read is not its own. */
	if (parent >= 0) {
		error = sync_fd(parent);
		close(parent);
	}
	close(fd);
	return r < 0 ? r : error;
}

static void
sync_topic(struct dead_letter_writer *d, struct topic_state *ts)
{
	int r, error = 0;

	if (ts->fd < 0 || !ts->is_dirty)
		return;
	r = sync_fd(ts->fd);
	if (ts->is_new)
		error = sync_folder(d->dir);
	ts->is_dirty = false;
	ts->is_new = error < 0;		/* then no later letter is on the disk without it either */
	if (d->sync_error == 0)
		d->sync_error = r < 0 ? r : error;
}

int
dead_letter_writer_sync(struct dead_letter_writer *d)
{
	int error;

	for (int t = 0; t < TOPIC_COUNT; t++)
		sync_topic(d, &d->topics[t]);
	error = d->sync_error;
	d->sync_error = 0;
	return error;
}

static void
forget(struct dead_letter_writer *d, struct topic_state *ts)
{
	sync_topic(d, ts);
	if (ts->fd >= 0)
		close(ts->fd);
	ts->fd = -1;
	ts->is_dirty = ts->is_new = false;
}

void
dead_letter_writer_free(struct dead_letter_writer *d)
{
	if (d == NULL)
		return;
	for (int t = 0; t < TOPIC_COUNT; t++)
		forget(d, &d->topics[t]);
	ocf_packer_free(d->packer);
	bytes_done(&d->packed);
	free(d->dir);
	free(d);
}

static int
write_at(struct topic_state *ts, const struct bytes *b)
{
	int r = file_write(ts->fd, b->data, b->len, ts->size);

	/* If this fails too, the next block overwrites from the same offset. */
	if (r < 0)
		(void)!ftruncate(ts->fd, (off_t)ts->size);
	else
		ts->size += b->len;
	return r;
}

/* Finds the end of the last whole block of an earlier agent's file, and cuts the rest. 0 or a negative errno. */
static int
resume(struct topic_state *ts)
{
	struct ocf_reader *reader = NULL;
	struct ocf_error err;
	struct ocf_block block;
	int r;

	r = ocf_reader_open(ts->fd, &reader, &err);
	if (r < 0)
		return r;
	ts->size = ocf_reader_offset(reader);
	if (pread(ts->fd, ts->sync, sizeof(ts->sync), (off_t)(ts->size - sizeof(ts->sync))) !=
	    (ssize_t)sizeof(ts->sync))
		r = -EIO;
	while (r == 0 && (r = ocf_reader_next(reader, &block, &err)) == 1) {
		ts->size = ocf_reader_offset(reader);
		r = 0;
	}
	ocf_reader_close(reader);
	if (r == -ENODATA)	/* the last block is torn */
		r = 0;
	if (r == 0 && ftruncate(ts->fd, (off_t)ts->size) < 0)
		r = -errno;
	return r;
}

static int
begin(struct dead_letter_writer *d, struct topic_state *ts)
{
	const struct schema_text *s = schema();
	int r = ocf_sync_make(ts->sync);

	ts->size = 0;
	d->packed.len = 0;
	if (r == 0)
		r = ocf_pack_header(d->packer, s->text, s->len, ts->sync, &d->packed);
	if (r == 0 && ftruncate(ts->fd, 0) < 0)
		r = -errno;
	if (r == 0)
		r = write_at(ts, &d->packed);
	if (r == 0)
		d->bytes += d->packed.len;
	return r;
}

/*
 * Creates the folder for the agent's user only, because dead letters contain command lines. 0 or a negative
 * errno.
 */
static int
make_folder(const char *dir)
{
	static const struct lake_owner nobody;
	int r;

	if (mkdir(dir, 0700) == 0 || errno == EEXIST)
		return 0;
	if (errno != ENOENT)
		return -errno;
	r = lake_make(dir, &nobody);
	if (r == 0 && chmod(dir, 0700) < 0)
		r = -errno;
	return r;
}

/* Returns -ENOSPC if so many bytes more would take what stays free of the file system. */
static int
look_at_floor(const struct dead_letter_writer *d, size_t len)
{
	struct space space;
	int fd, r;

	if (d->free_min == 0)
		return 0;
	fd = open(d->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = space_read(fd, &space);
	close(fd);
	if (r < 0)
		return 0;	/* it does not say */
	return space.free_bytes < space_floor(&space, d->free_min) + len + BLOCK_BYTES ? -ENOSPC : 0;
}

/* Locks the open file. False: letters are being removed from it, or were, and it is another file now. */
static bool
take(const struct topic_state *ts)
{
	struct stat st;

	if (!dead_letter_file_lock(ts->fd))
		return false;
	/* After the lock: a process that removes letters replaces the file before it releases the lock. */
	if (fstat(ts->fd, &st) == 0 && st.st_nlink > 0)
		return true;
	dead_letter_file_unlock(ts->fd);
	return false;
}

/* Opens and locks the topic's file of a day. 0 or a negative errno. */
static int
open_day(struct dead_letter_writer *d, enum topic topic, int64_t day)
{
	struct topic_state *ts = &d->topics[topic];
	time_t seconds = (time_t)(day * 86400);
	char path[PATH_MAX], date[16];
	struct stat st;
	struct tm tm;
	int r;

	if (ts->fd >= 0 && ts->day == day && take(ts))
		return 0;
	forget(d, ts);
	if (gmtime_r(&seconds, &tm) == NULL || strftime(date, sizeof(date), "%Y-%m-%d", &tm) == 0)
		return -EOVERFLOW;
	for (int i = 1; i <= 100; i++) {
		char again[8] = "";

		if (i > 1)
			snprintf(again, sizeof(again), ".%d", i);
		if ((size_t)snprintf(path, sizeof(path), "%s/%s-%s%s.avro", d->dir, topic_name(topic),
		    date, again) >= sizeof(path))
			return -ENAMETOOLONG;
		ts->fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (ts->fd < 0)
			return -errno;
		ts->day = day;
		ts->is_new = true;
		if (!take(ts)) {
			forget(d, ts);
			r = -EBUSY;
			continue;
		}
		if (fstat(ts->fd, &st) < 0)
			r = -errno;
		else
			r = st.st_size > 0 ? resume(ts) : -ENODATA;
		if (r == -ENODATA)	/* new, or its header is incomplete */
			r = begin(d, ts);
		if (r == 0)
			return 0;
		forget(d, ts);
		if (r != -EBADMSG && r != -ENOTSUP)
			return r;
		/* The file is damaged or foreign: leave it unchanged, and try the next name. */
	}
	return r;
}

int
dead_letter_writer_put(struct dead_letter_writer *d, enum topic topic, int64_t now_us, const void *letter, size_t len)
{
	struct topic_state *ts = &d->topics[topic];
	bool is_full = d->bytes + len > d->max_bytes;
	int error;

	if (d->scanned_us == INT64_MIN || (is_full && clock_us(CLOCK_MONOTONIC) - d->scanned_us >= RESCAN_US))
		scan(d);
	if (d->bytes + len > d->max_bytes)
		return -EDQUOT;
	error = make_folder(d->dir);
	if (error == 0)
		error = look_at_floor(d, len);
	if (error == 0)
		error = open_day(d, topic, lake_day(now_us));
	if (error < 0)
		return error;
	d->packed.len = 0;
	error = ocf_pack_block(d->packer, letter, len, 1, ts->sync, &d->packed);
	ts->is_dirty = true;
	if (error == 0)
		error = write_at(ts, &d->packed);
	dead_letter_file_unlock(ts->fd);
	if (error == 0)
		d->bytes += d->packed.len;
	return error;
}

void
dead_letter_writer_scan(struct dead_letter_writer *d)
{
	d->scanned_us = INT64_MIN;
}
