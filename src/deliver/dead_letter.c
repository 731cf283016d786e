/*
 * SPDX-License-Identifier: Apache-2.0
 * dead_letter: a folder of Avro files with records that can never be delivered, and the reason.
 */
#include "deliver/dead_letter.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
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
#include "codec/ocf.h"
#include "codec/schema.h"
#include "codec/varint.h"
#include "deliver/dead_letter_files.h"
#include "deliver/dead_letter_sync.h"
#include "lake/folders.h"

#define DEFAULT_MAX_BYTES (UINT64_C(100) << 20)
#define RESCAN_US INT64_C(10000000)	/* interval of scans of a full folder */

/* The open file of a topic, for one day. */
struct topic_state {
	int		 fd;		/* -1: not open */
	int64_t		 day;
	uint64_t	 size;		/* length of the header and all whole blocks */
	uint64_t	 round;		/* of the syncer, to which fd was added */
	uint8_t		 sync[OCF_SYNC_SIZE];
};

struct dead_letters {
	char			*dir;		/* owned */
	uint64_t		 max_bytes;
	uint64_t		 bytes;		/* size of the files in dir */
	int64_t			 scanned_us;	/* monotonic; of the last scan */
	struct ocf_packer	*packer;	/* owned */
	struct dead_letter_syncer *syncer;	/* owned */
	struct bytes		 record;	/* encoded dead letter */
	struct bytes		 packed;	/* block of the dead letter, or a header */
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

void
dead_letters_scan(struct dead_letters *d)
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
dead_letters_open(const char *dir, uint64_t max_bytes, struct dead_letters **ret)
{
	struct dead_letters *d = calloc(1, sizeof(*d));
	int r = -ENOMEM;

	if (d == NULL)
		return -ENOMEM;
	for (int t = 0; t < TOPIC_COUNT; t++)
		d->topics[t].fd = -1;
	d->max_bytes = max_bytes != 0 ? max_bytes : DEFAULT_MAX_BYTES;
	d->dir = strdup(dir);
	if (d->dir == NULL)
		goto fail;
	d->syncer = dead_letter_syncer_new();
	if (d->syncer == NULL)
		goto fail;
	r = schema() == NULL ? -ENOENT : ocf_packer_new(OCF_DEFLATE, &d->packer);
	if (r < 0)
		goto fail;
	dead_letters_scan(d);
	*ret = d;
	return 0;

fail:
	dead_letters_close(d);
	return r;
}

static void
forget(struct topic_state *ts)
{
	if (ts->fd >= 0)
		close(ts->fd);
	ts->fd = -1;
	ts->round = 0;
}

void
dead_letters_close(struct dead_letters *d)
{
	if (d == NULL)
		return;
	for (int t = 0; t < TOPIC_COUNT; t++)
		forget(&d->topics[t]);
	dead_letter_syncer_free(d->syncer);
	ocf_packer_free(d->packer);
	bytes_done(&d->record);
	bytes_done(&d->packed);
	free(d->dir);
	free(d);
}

uint64_t
dead_letters_bytes(const struct dead_letters *d)
{
	return d->bytes;
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

/* Has the name of a new file synced, and that of the folder, which may be new too. 0 or a negative errno. */
static int
add_folder(struct dead_letters *d)
{
	int fd = open(d->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), parent, r;

	if (fd < 0)
		return -errno;
	parent = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = dead_letter_syncer_add(d->syncer, fd);
	/* A folder above that the agent may not read is not its own. */
	if (r == 0 && parent >= 0)
		r = dead_letter_syncer_add(d->syncer, parent);
	if (parent >= 0)
		close(parent);
	close(fd);
	return r;
}

static int
begin(struct dead_letters *d, struct topic_state *ts)
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

/* Adds the topic's file to the syncer's next round. 0 or a negative errno. */
static int
add_file(struct dead_letters *d, struct topic_state *ts)
{
	uint64_t round = dead_letter_syncer_round(d->syncer);
	int r;

	if (ts->round == round)
		return 0;
	/* A file that this agent has just opened may be one that was never synced. */
	r = ts->round == 0 ? add_folder(d) : 0;
	if (r == 0)
		r = dead_letter_syncer_add(d->syncer, ts->fd);
	if (r == 0)
		ts->round = round;
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
open_day(struct dead_letters *d, enum topic topic, int64_t day)
{
	struct topic_state *ts = &d->topics[topic];
	time_t seconds = (time_t)(day * 86400);
	char path[PATH_MAX], date[16];
	struct stat st;
	struct tm tm;
	int r;

	if (ts->fd >= 0 && ts->day == day && take(ts))
		return 0;
	forget(ts);
	if (gmtime_r(&seconds, &tm) == NULL || strftime(date, sizeof(date), "%Y-%m-%d", &tm) == 0)
		return -EOVERFLOW;
	r = make_folder(d->dir);
	if (r < 0)
		return r;
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
		if (!take(ts)) {
			forget(ts);
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
		forget(ts);
		if (r != -EBADMSG && r != -ENOTSUP)
			return r;
		/* The file is damaged or foreign: leave it unchanged, and try the next name. */
	}
	return r;
}

static int
add_string(struct bytes *b, const char *text)
{
	return varint_append_bytes(b, text, strlen(text));
}

/* Encodes the fields in the order of dead_letter.avsc. */
static int
encode_letter(struct bytes *b, const struct spool_record *r, const char *reason,
    const char *detail, int64_t now_us)
{
	char fingerprint[17];
	int error;

	snprintf(fingerprint, sizeof(fingerprint), "%016" PRIx64, r->schema);
	b->len = 0;
	if ((error = add_string(b, topic_name(r->topic))) < 0 ||
	    (error = add_string(b, reason)) < 0 ||
	    (error = add_string(b, detail)) < 0 ||
	    (error = varint_append(b, now_us)) < 0 ||
	    (error = varint_append(b, r->time_us)) < 0 ||
	    (error = varint_append(b, (int64_t)r->seq)) < 0 ||
	    (error = add_string(b, r->key)) < 0 ||
	    (error = add_string(b, fingerprint)) < 0 ||
	    (error = varint_append_bytes(b, r->data, r->len)) < 0)
		return error;
	return 0;
}

int
dead_letters_put(struct dead_letters *d, const struct spool_record *r, const char *reason,
    const char *detail)
{
	struct topic_state *ts = &d->topics[r->topic];
	int64_t now_us = clock_us(CLOCK_REALTIME);
	int error;

	error = encode_letter(&d->record, r, reason, detail, now_us);
	if (error < 0)
		return error;
	if (d->bytes + d->record.len > d->max_bytes && clock_us(CLOCK_MONOTONIC) - d->scanned_us >= RESCAN_US)
		dead_letters_scan(d);
	if (d->bytes + d->record.len > d->max_bytes)
		return -EDQUOT;
	error = open_day(d, r->topic, lake_day(now_us));
	if (error < 0)
		return error;
	d->packed.len = 0;
	error = ocf_pack_block(d->packer, d->record.data, d->record.len, 1, ts->sync, &d->packed);
	if (error == 0)
		error = add_file(d, ts);
	if (error == 0)
		error = write_at(ts, &d->packed);
	dead_letter_file_unlock(ts->fd);
	if (error < 0)
		return error;
	d->bytes += d->packed.len;
	dead_letter_syncer_put(d->syncer);
	return 0;
}

size_t
dead_letters_synced(struct dead_letters *d, int *ret_error)
{
	return dead_letter_syncer_poll(d->syncer, ret_error);
}
