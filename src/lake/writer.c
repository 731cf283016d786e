/*
 * SPDX-License-Identifier: Apache-2.0
 * writer: writes the lake, a folder of Avro object container files.
 *
 * Each topic has a state of its own: records are collected in its block, whole blocks are written to its file.
 * A block that cannot be written (full disk, folder removed) is kept and tried again after a pause; meanwhile
 * put refuses records that do not fit, so that memory stays bounded and nothing is reordered.
 */
#include "lake/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "codec/encode.h"
#include "codec/ocf.h"
#include "lake/folders.h"
#include "lake/run_index.h"

#define DEFAULT_ROTATE_BYTES (UINT64_C(128) << 20)
#define DEFAULT_ROTATE_US (INT64_C(3600) * 1000000)
#define DEFAULT_RETRY_US INT64_C(1000000)
#define LATE_US (INT64_C(3600) * 1000000)	/* a record up to this late stays in the newer day's file */

enum {
	BLOCK_BYTES = 64 * 1024,	/* a block is written once it has this many */
	OPEN_TRIES = 8,
};

struct topic_state {
	enum topic	 topic;
	const char	*schema;	/* the caller's, of the records; NULL: the built-in one */
	int		 fd;		/* open file; -1: none */
	int		 dir_fd;	/* folder of the open file; -1: none */
	char		 part[NAME_MAX + 1];
	int64_t		 day;		/* day of the open file, since 1970 */
	int64_t		 opened_us;	/* wall clock of its first tick; 0: none yet */
	uint64_t	 size;		/* length of the header and all whole blocks */
	uint64_t	 records;	/* records in all whole blocks */
	uint8_t		 sync[OCF_SYNC_SIZE];
	struct bytes	 block;		/* records that are not written yet */
	uint64_t	 block_records;
	uint64_t	 block_seq;	/* seq of its first record */
	int64_t		 block_day;
	struct run_index	 index;	/* of the open file */
	int		 error;		/* result of the last attempt: a negative errno or 0 */
	int64_t		 retry_at_us;	/* monotonic; no attempt before while error is set */
};

struct lake_writer {
	char			*lake;		/* owned, absolute */
	char			*host_id;	/* owned */
	char			*agent_id;	/* owned */
	uint64_t		 rotate_bytes;
	int64_t			 rotate_us;
	int64_t			 retry_us;
	struct lake_owner	 owner;
	struct ocf_packer	*packer;	/* owned, shared by the topics */
	struct bytes		 packed;	/* block or header that is being written */
	struct lake_writer_stats	 stats;
	struct lake_writer_stats	*final_stats;	/* the caller's, or NULL */
	void			(*on_block)(enum topic topic, uint64_t records, int error, void *arg);
	void			*on_block_arg;	/* the caller's */
	struct topic_state	 topics[TOPIC_COUNT];
};

/* Records the result of an attempt, and returns r. */
static int
record_result(struct lake_writer *s, struct topic_state *ts, int r)
{
	ts->error = r;
	if (r < 0) {
		s->stats.last_error = r;
		s->stats.errors++;
		ts->retry_at_us = clock_us(CLOCK_MONOTONIC) + s->retry_us;
	}
	return r;
}

static bool
is_pausing(const struct topic_state *ts)
{
	return ts->error < 0 && clock_us(CLOCK_MONOTONIC) < ts->retry_at_us;
}

static void
forget_file(struct topic_state *ts)
{
	if (ts->fd >= 0)
		close(ts->fd);
	if (ts->dir_fd >= 0)
		close(ts->dir_fd);
	ts->fd = ts->dir_fd = -1;
	run_index_end(&ts->index);
	ts->size = ts->records = 0;
	ts->opened_us = 0;
}

/*
 * Creates a file and locks it before a repair can take it for a dead writer's. A file descriptor, or a negative
 * errno.
 */
static int
create_part(const struct lake_writer *s, int dir_fd, const char *name)
{
	for (int i = 0; i < OPEN_TRIES; i++) {
		struct stat st;
		int r, fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0644);

		if (fd < 0)
			return -errno;
		/* A repair that came in between has the lock, and removes the file as empty. */
		r = lake_lock(fd);
		if (r == 0 && fstat(fd, &st) == 0 && st.st_nlink > 0) {
			if (!s->owner.is_set || fchown(fd, s->owner.uid, s->owner.gid) == 0)
				return fd;
			r = -errno;
			unlinkat(dir_fd, name, 0);
		}
		close(fd);
		if (r < 0 && r != -EAGAIN)
			return r;
	}
	return -EBUSY;
}

/* Opens a new file whose first record has that seq. */
static int
open_file(struct lake_writer *s, struct topic_state *ts, int64_t day, uint64_t seq)
{
	const char *schema;
	size_t len = 0;
	int r;

	ts->dir_fd = lake_open_folder(s->lake, topic_name(ts->topic), day, s->host_id, &s->owner);
	if (ts->dir_fd < 0) {
		r = ts->dir_fd;
		goto fail;
	}
	r = lake_part_name(ts->dir_fd, s->agent_id, seq, ts->part, sizeof(ts->part));
	if (r < 0)
		goto fail;
	r = ts->fd = create_part(s, ts->dir_fd, ts->part);
	if (r < 0)
		goto fail;
	schema = ts->schema;
	if (schema != NULL)
		len = strlen(schema);
	else
		schema = encode_schema(ts->topic, &len);
	s->packed.len = 0;
	r = schema == NULL ? -ENOENT : ocf_sync_make(ts->sync);
	if (r == 0)
		r = ocf_pack_header(s->packer, schema, len, ts->sync, &s->packed);
	if (r == 0)
		r = file_write(ts->fd, s->packed.data, s->packed.len, 0);
	if (r < 0) {
		unlinkat(ts->dir_fd, ts->part, 0);
		goto fail;
	}
	ts->size = s->packed.len;
	ts->day = day;
	run_index_begin(&ts->index, ts->sync, ts->size);
	return 0;

fail:
	forget_file(ts);
	return r;
}

/* Forgets the file if it was removed: its contents are lost, and the next block begins a new one. */
static void
check_removed(struct topic_state *ts)
{
	struct stat st;

	if (ts->fd >= 0 && fstat(ts->fd, &st) == 0 && st.st_nlink == 0)
		forget_file(ts);
}

static void
report(const struct lake_writer *s, const struct topic_state *ts, uint64_t records, int error)
{
	if (s->on_block != NULL)
		s->on_block(ts->topic, records, error, s->on_block_arg);
}

/* Writes the block. 0, also if there is none; or a negative errno with the block kept. */
static int
flush(struct lake_writer *s, struct topic_state *ts)
{
	int r = 0;

	if (ts->block_records == 0)
		return 0;
	if (is_pausing(ts))
		return ts->error;
	check_removed(ts);
	if (ts->fd < 0)
		r = open_file(s, ts, ts->block_day, ts->block_seq);
	s->packed.len = 0;
	if (r == 0)
		r = ocf_pack_block(s->packer, ts->block.data, ts->block.len, ts->block_records, ts->sync,
		    &s->packed);
	if (r == 0) {
		r = file_write(ts->fd, s->packed.data, s->packed.len, ts->size);
		/* If this fails too, the next attempt overwrites from the same offset. */
		if (r < 0)
			(void)!ftruncate(ts->fd, (off_t)ts->size);
	}
	if (record_result(s, ts, r) < 0) {
		report(s, ts, 0, r);
		return r;
	}
	ts->size += s->packed.len;
	ts->records += ts->block_records;
	s->stats.delivered += ts->block_records;
	run_index_add_block(&ts->index, ts->dir_fd, ts->part, &s->owner, ts->size, ts->block_records);
	report(s, ts, ts->block_records, 0);
	ts->block_records = 0;
	ts->block.len = 0;
	return 0;
}

/* Gives the file its final name. The block must be written. 0 or a negative errno. */
static int
publish(struct lake_writer *s, struct topic_state *ts)
{
	int r = 0;

	check_removed(ts);
	if (ts->fd < 0)
		return 0;
	if (ts->records == 0) {
		unlinkat(ts->dir_fd, ts->part, 0);
		forget_file(ts);
		return 0;
	}
	if (fdatasync(ts->fd) < 0)
		r = -errno;
	if (r == 0)
		r = lake_publish(ts->dir_fd, ts->part);
	if (r == 0) {
		s->stats.files++;
	} else {
		s->stats.errors++;
		s->stats.last_error = r;
	}
	/* After a failure the file keeps its .part name, readable, and the next start repairs it. */
	forget_file(ts);
	return r;
}

/* Returns the day of the file that a record belongs to: that of its time, unless it is only slightly late. */
static int64_t
day_for(const struct topic_state *ts, int64_t time_us)
{
	int64_t day = lake_day(time_us);

	if ((ts->fd >= 0 || ts->block_records > 0) && day < ts->day &&
	    lake_day(time_us + LATE_US) >= ts->day)
		return ts->day;
	return day;
}

static int
take(struct lake_writer *s, struct topic_state *ts, const struct encoded_record *record)
{
	int64_t day = day_for(ts, record->time_us);
	int r = 0;

	if (record->len > OCF_BLOCK_MAX / 2)
		return -EMSGSIZE;
	if (day != ts->day && (ts->fd >= 0 || ts->block_records > 0)) {
		r = flush(s, ts);
		if (r < 0)
			return r;
		(void)publish(s, ts);
	}
	/* The block is full because an earlier attempt to write it failed. */
	if (ts->block.len >= BLOCK_BYTES) {
		r = flush(s, ts);
		if (r < 0)
			return r;
	}
	if (ts->fd < 0 && ts->block_records == 0) {
		if (is_pausing(ts))
			return ts->error;
		r = record_result(s, ts, open_file(s, ts, day, record->seq));
		if (r < 0)
			return r;
	}
	r = bytes_append(&ts->block, record->data, record->len);
	if (r < 0)
		return r;
	if (ts->block_records++ == 0) {
		ts->block_seq = record->seq;
		ts->block_day = ts->day;
		run_index_clear_block(&ts->index);
	}
	run_index_add_record(&ts->index, record->key);
	/* The record is taken even if this attempt fails. */
	if (ts->block.len >= BLOCK_BYTES && flush(s, ts) == 0 && ts->size >= s->rotate_bytes)
		(void)publish(s, ts);
	return 0;
}

int
lake_writer_put(void *writer, const struct encoded_record *record)
{
	struct lake_writer *s = writer;
	int r = take(s, &s->topics[record->topic], record);

	if (r < 0)
		s->stats.refused++;
	else
		s->stats.accepted++;
	return r;
}

void
lake_writer_tick(struct lake_writer *s, int64_t now_us)
{
	for (int t = 0; t < TOPIC_COUNT; t++) {
		struct topic_state *ts = &s->topics[t];

		if (flush(s, ts) < 0 || ts->fd < 0)
			continue;
		if (ts->opened_us == 0 || now_us < ts->opened_us)	/* new, or the clock was set back */
			ts->opened_us = now_us;
		if (ts->size >= s->rotate_bytes || now_us - ts->opened_us >= s->rotate_us)
			(void)publish(s, ts);
	}
}

uint64_t
lake_writer_delivered(const struct lake_writer *s)
{
	return s->stats.delivered;
}

int
lake_writer_close(struct lake_writer *s)
{
	int first = 0;

	if (s == NULL)
		return 0;
	for (int t = 0; t < TOPIC_COUNT; t++) {
		struct topic_state *ts = &s->topics[t];
		int r;

		ts->error = 0;	/* the last attempt is not delayed by a pause */
		r = flush(s, ts);
		if (r < 0) {
			s->stats.dropped += ts->block_records;
			ts->block_records = 0;
		}
		if (first == 0)
			first = r;
		r = publish(s, ts);
		if (first == 0)
			first = r;
		bytes_done(&ts->block);
		run_index_done(&ts->index);
	}
	if (s->final_stats != NULL)
		*s->final_stats = s->stats;
	ocf_packer_free(s->packer);
	bytes_done(&s->packed);
	free(s->lake);
	free(s->host_id);
	free(s->agent_id);
	free(s);
	return first;
}

void
lake_writer_stats(const struct lake_writer *s, struct lake_writer_stats *ret)
{
	*ret = s->stats;
}

int
lake_writer_set_schema(struct lake_writer *s, enum topic topic, const char *text)
{
	struct topic_state *ts = &s->topics[topic];
	int r;

	if (ts->schema == text)
		return 0;
	r = flush(s, ts);
	if (r < 0)
		return r;
	(void)publish(s, ts);	/* a file has one schema */
	ts->schema = text;
	return 0;
}

uint64_t
lake_writer_discard(struct lake_writer *s, enum topic topic)
{
	struct topic_state *ts = &s->topics[topic];
	uint64_t n = ts->block_records;

	s->stats.accepted -= n;
	ts->block_records = 0;
	ts->block.len = 0;
	return n;
}

int
lake_writer_open(const struct lake_writer_options *o, struct lake_writer **ret,
    struct lake_repair *repair)
{
	struct lake_repair unused;
	struct lake_writer *s;
	int r;

	if (o->lake == NULL || o->host_id == NULL || o->agent_id == NULL ||
	    strchr(o->host_id, '/') != NULL || strchr(o->agent_id, '/') != NULL)
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	for (int t = 0; t < TOPIC_COUNT; t++)
		s->topics[t] = (struct topic_state){ .topic = t, .fd = -1, .dir_fd = -1 };
	s->rotate_bytes = o->rotate_bytes != 0 ? o->rotate_bytes : DEFAULT_ROTATE_BYTES;
	s->rotate_us = o->rotate_us != 0 ? o->rotate_us : DEFAULT_ROTATE_US;
	s->retry_us = o->retry_us != 0 ? o->retry_us : DEFAULT_RETRY_US;
	s->owner = (struct lake_owner){ o->has_owner, o->owner, o->group };
	r = lake_make(o->lake, &s->owner);
	if (r < 0)
		goto fail;
	r = -ENOMEM;
	s->lake = realpath(o->lake, NULL);
	s->host_id = strdup(o->host_id);
	s->agent_id = strdup(o->agent_id);
	if (s->lake == NULL || s->host_id == NULL || s->agent_id == NULL)
		goto fail;
	if (faccessat(AT_FDCWD, s->lake, W_OK | X_OK, AT_EACCESS) < 0) {
		r = -errno;
		goto fail;
	}
	r = ocf_packer_new(OCF_DEFLATE, &s->packer);
	if (r < 0)
		goto fail;
	r = lake_repair(s->lake, s->host_id, repair != NULL ? repair : &unused);
	if (r < 0)
		goto fail;
	s->final_stats = o->final_stats;
	s->on_block = o->on_block;
	s->on_block_arg = o->on_block_arg;
	*ret = s;
	return 0;

fail:
	lake_writer_close(s);
	return r;
}
