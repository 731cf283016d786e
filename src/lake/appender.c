/*
 * SPDX-License-Identifier: Apache-2.0
 * appender: appends records to the lake's open files, one for each topic, syncs them, and gives them their final names.
 *
 * Each topic has a state of its own: records are collected in its block, whole blocks are written to its file.
 * A block that cannot be written (full disk, folder removed) is kept and tried again after a pause; meanwhile
 * put refuses records that do not fit, so that memory stays bounded and nothing is reordered.
 *
 * What a failed sync leaves on the disk is unknown, and a second one may succeed although the kernel has dropped the
 * pages: the file is cut to what was synced before, and the records since then are lost. A caller that still has them
 * puts them again.
 */
#include "lake/appender.h"

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
#include "lake/folders.h"
#include "lake/retention.h"
#include "lake/run_index.h"

#define DEFAULT_ROTATE_BYTES (UINT64_C(128) << 20)
#define DEFAULT_ROTATE_US (INT64_C(3600) * 1000000)
#define DEFAULT_RETRY_US INT64_C(1000000)
#define LATE_US (INT64_C(3600) * 1000000)	/* a record up to this late stays in the newer day's file */
#define ALL_TOPICS ((1u << TOPIC_COUNT) - 1)

enum {
	BLOCK_BYTES = 64 * 1024,	/* a block is written once it has this many */
	OPEN_TRIES = 8,
	HEAD_BYTES = 64 * 1024,		/* of a new file: its header with the schema, and its folders */
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
	uint64_t	 synced_size;	/* the part of size that is on the disk */
	uint64_t	 unsynced;	/* records behind it */
	unsigned	 new_names;	/* folders from the file's own upwards whose names may not be synced */
	uint8_t		 sync[OCF_SYNC_SIZE];
	struct bytes	 block;		/* records that are not written yet */
	uint64_t	 block_records;
	uint64_t	 block_seq;	/* seq of its first record */
	int64_t		 block_day;
	struct run_index	 index;	/* of the open file */
	int		 error;		/* result of the last attempt: a negative errno or 0 */
	int64_t		 retry_at_us;	/* monotonic; no attempt before while error is set */
};

struct lake_appender {
	char			*lake;		/* owned; absolute once it is open */
	char			*host_id;	/* owned */
	char			*agent_id;	/* owned */
	uint64_t		 rotate_bytes;
	int64_t			 rotate_us;
	int64_t			 retry_us;
	struct lake_owner	 owner;
	bool			 syncs_folders;
	struct worker_call	*call;		/* the caller's, or unused */
	struct worker_call	 unused;
	struct lake_retention	*retention;	/* owned */
	struct ocf_packer	*packer;	/* owned, shared by the topics */
	struct bytes		 packed;	/* block or header that is being written */
	struct lake_appender_stats	 stats;
	struct lake_appender_counts	 counts[TOPIC_COUNT];
	struct topic_state	 topics[TOPIC_COUNT];
};

/* Records the result of an attempt, and returns r. */
static int
record_result(struct lake_appender *s, struct topic_state *ts, int r)
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

/* Forgets the open file. Its records that are not synced are lost. */
static void
forget_file(struct lake_appender *s, struct topic_state *ts)
{
	s->counts[ts->topic].lost += ts->unsynced;
	ts->unsynced = 0;
	if (ts->fd >= 0)
		close(ts->fd);
	if (ts->dir_fd >= 0)
		close(ts->dir_fd);
	ts->fd = ts->dir_fd = -1;
	run_index_end(&ts->index);
	ts->size = ts->records = ts->synced_size = 0;
	ts->new_names = 0;
	ts->opened_us = 0;
}

/*
 * Creates a file and locks it before a repair can take it for a dead writer's. A file descriptor, or a negative
 * errno.
 */
static int
create_part(const struct lake_appender *s, int dir_fd, const char *name)
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
open_file(struct lake_appender *s, struct topic_state *ts, int64_t day, uint64_t seq)
{
	const char *schema;
	size_t len = 0;
	int r;

	r = lake_retention_make_room(s->retention, HEAD_BYTES);
	if (r < 0)
		return r;
	worker_call_begin(s->call, "opening a file");
	ts->dir_fd = lake_open_folder(s->lake, topic_name(ts->topic), day, s->host_id, &s->owner);
	if (ts->dir_fd < 0) {
		r = ts->dir_fd;
		goto fail;
	}
	/* All of them: an attempt that failed before, or an agent that was killed, may have made any. */
	ts->new_names = s->syncs_folders ? LAKE_LEVELS : 1;
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
	worker_call_end(s->call);
	ts->size = s->packed.len;
	ts->day = day;
	run_index_begin(&ts->index, ts->sync, ts->size);
	return 0;

fail:
	forget_file(s, ts);
	worker_call_end(s->call);
	return r;
}

/*
 * Forgets the file if it was removed: its contents are lost, and the next block begins a new one. 0, or -ENOENT: some
 * of its records were not synced, and a caller that has them may put them again before the next block.
 */
static int
check_removed(struct lake_appender *s, struct topic_state *ts)
{
	bool has_unsynced = ts->unsynced > 0, is_removed;
	struct stat st;

	if (ts->fd < 0)
		return 0;
	worker_call_begin(s->call, "looking at a file");	/* on a network, that asks the server */
	is_removed = fstat(ts->fd, &st) == 0 && st.st_nlink == 0;
	if (is_removed)
		forget_file(s, ts);
	worker_call_end(s->call);
	return is_removed && has_unsynced ? record_result(s, ts, -ENOENT) : 0;
}

/* Writes the block. 0, also if there is none; or a negative errno with the block kept. */
static int
flush(struct lake_appender *s, struct topic_state *ts)
{
	int r = 0;

	if (ts->block_records == 0)
		return 0;
	if (is_pausing(ts))
		return ts->error;
	r = check_removed(s, ts);
	if (r < 0)
		return r;
	if (ts->fd < 0)
		r = open_file(s, ts, ts->block_day, ts->block_seq);
	s->packed.len = 0;
	if (r == 0)
		r = ocf_pack_block(s->packer, ts->block.data, ts->block.len, ts->block_records, ts->sync,
		    &s->packed);
	if (r == 0)
		r = lake_retention_make_room(s->retention, s->packed.len);
	if (r == 0) {
		worker_call_begin(s->call, "writing");
		r = file_write(ts->fd, s->packed.data, s->packed.len, ts->size);
		/* If this fails too, the next attempt overwrites from the same offset. */
		if (r < 0)
			(void)!ftruncate(ts->fd, (off_t)ts->size);
		worker_call_end(s->call);
	}
	if (record_result(s, ts, r) < 0)
		return r;
	ts->size += s->packed.len;
	ts->records += ts->block_records;
	ts->unsynced += ts->block_records;
	s->counts[ts->topic].written += ts->block_records;
	worker_call_begin(s->call, "writing");
	run_index_add_block(&ts->index, ts->dir_fd, ts->part, &s->owner, ts->size, ts->block_records);
	worker_call_end(s->call);
	ts->block_records = 0;
	ts->block.len = 0;
	return 0;
}

static bool
is_dirty(const struct topic_state *ts)
{
	return ts->fd >= 0 && ts->size > ts->synced_size;
}

/* Forgets the file under its .part name: readers have its records once it is repaired (repair.h). */
static void
leave_file(struct lake_appender *s, struct topic_state *ts)
{
	s->stats.left++;
	forget_file(s, ts);
}

/* Cuts what may not be on the disk off the file, and leaves the rest. */
static void
cut_off(struct lake_appender *s, struct topic_state *ts)
{
	if (ts->synced_size == 0)
		unlinkat(ts->dir_fd, ts->part, 0);
	else
		(void)!ftruncate(ts->fd, (off_t)ts->synced_size);
	leave_file(s, ts);
}

/* Syncs the contents of the topics' files. 0 or the first negative errno. */
static int
sync_contents(struct lake_appender *s, unsigned topics)
{
	unsigned dirty = 0;
	int first = 0;

	for (int t = 0; t < TOPIC_COUNT; t++)
		dirty |= (topics & 1u << t) && is_dirty(&s->topics[t]) ? 1u << t : 0;
	worker_call_begin(s->call, "fdatasync");
	/* All of them at once: a file system commits its log once then, and not once for each file. */
	for (int t = 0; t < TOPIC_COUNT && (dirty & (dirty - 1)) != 0; t++) {
		if (dirty & 1u << t)
			(void)sync_file_range(s->topics[t].fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	}
	for (int t = 0; t < TOPIC_COUNT; t++) {
		struct topic_state *ts = &s->topics[t];

		if (!(dirty & 1u << t) || fdatasync(ts->fd) == 0)
			continue;
		first = record_result(s, ts, -errno);
		cut_off(s, ts);
	}
	worker_call_end(s->call);
	return first;
}

/* Syncs the names that lead to the topics' files, and counts their records as synced. 0 or the first negative errno. */
static int
sync_names(struct lake_appender *s, unsigned topics)
{
	int first = 0;

	worker_call_begin(s->call, "fsync of a folder");
	for (int t = 0; t < TOPIC_COUNT; t++) {
		struct topic_state *ts = &s->topics[t];
		int r = 0;

		if (!(topics & 1u << t) || ts->fd < 0)
			continue;
		if (ts->new_names > 0)
			r = lake_sync_folders(ts->dir_fd, ts->new_names);
		if (r < 0) {
			first = record_result(s, ts, r);
			leave_file(s, ts);
			continue;
		}
		s->counts[t].synced += ts->unsynced;
		ts->unsynced = 0;
		ts->synced_size = ts->size;
		ts->new_names = 0;
	}
	worker_call_end(s->call);
	return first;
}

/*
 * Syncs the open files of the topics, and gives the files of `done` their final names: these are among the topics, and
 * their blocks must be written. 0, or the first negative errno of a sync.
 */
static int
sync_files(struct lake_appender *s, unsigned topics, unsigned done)
{
	int removed = 0, first, r;

	for (int t = 0; t < TOPIC_COUNT; t++) {
		struct topic_state *ts = &s->topics[t];

		if (!(topics & 1u << t))
			continue;
		r = check_removed(s, ts);
		removed = r < 0 ? r : removed;
		if (ts->fd >= 0 && ts->records == 0) {
			if (done & 1u << t) {
				worker_call_begin(s->call, "removing a file");
				unlinkat(ts->dir_fd, ts->part, 0);
				forget_file(s, ts);
				worker_call_end(s->call);
			}
			topics &= ~(1u << t);
		}
	}
	first = sync_contents(s, topics);
	worker_call_begin(s->call, "renaming");
	for (int t = 0; t < TOPIC_COUNT; t++) {
		struct topic_state *ts = &s->topics[t];

		if (!(topics & done & 1u << t) || ts->fd < 0)
			continue;
		r = lake_publish(ts->dir_fd, ts->part);
		/* After a failure the file keeps its .part name. */
		if (r < 0) {
			s->stats.left++;
			s->stats.errors++;
			s->stats.last_error = r;
			continue;
		}
		s->stats.files++;
		lake_retention_add(s->retention, ts->size + ts->index.size);
		ts->new_names = ts->new_names > 0 ? ts->new_names : 1;
	}
	worker_call_end(s->call);
	r = sync_names(s, topics);
	worker_call_begin(s->call, "closing a file");
	for (int t = 0; t < TOPIC_COUNT; t++) {
		if (topics & done & 1u << t)
			forget_file(s, &s->topics[t]);
	}
	worker_call_end(s->call);
	return first < 0 ? first : r < 0 ? r : removed;
}

/* Syncs the topic's file and gives it its final name. The block must be written. 0, or a negative errno of the sync. */
static int
publish(struct lake_appender *s, const struct topic_state *ts)
{
	return sync_files(s, 1u << ts->topic, 1u << ts->topic);
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

int
lake_appender_put(void *appender, const struct encoded_record *record)
{
	struct lake_appender *s = appender;
	struct topic_state *ts = &s->topics[record->topic];
	int64_t day = day_for(ts, record->time_us);
	int r = 0;

	if (record->len > LAKE_RECORD_MAX)
		return -EMSGSIZE;
	if (day != ts->day && (ts->fd >= 0 || ts->block_records > 0)) {
		r = flush(s, ts);
		if (r == 0)
			r = publish(s, ts);
		if (r < 0)
			return r;
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
lake_appender_flush(struct lake_appender *s, int64_t now_us)
{
	unsigned done = 0;
	uint64_t open_bytes = 0;
	int first = 0, r;

	for (int t = 0; t < TOPIC_COUNT; t++) {
		struct topic_state *ts = &s->topics[t];

		r = flush(s, ts);
		if (first == 0)
			first = r;
		if (r < 0 || ts->fd < 0)
			continue;
		if (ts->opened_us == 0 || now_us < ts->opened_us)	/* new, or the clock was set back */
			ts->opened_us = now_us;
		if (ts->size >= s->rotate_bytes || now_us - ts->opened_us >= s->rotate_us)
			done |= 1u << t;
	}
	r = done != 0 ? sync_files(s, done, done) : 0;
	for (int t = 0; t < TOPIC_COUNT; t++)
		open_bytes += s->topics[t].size + s->topics[t].index.size;
	lake_retention_tick(s->retention, now_us, open_bytes);
	return first < 0 ? first : r;
}

int
lake_appender_sync(struct lake_appender *s)
{
	return sync_files(s, ALL_TOPICS, 0);
}

void
lake_appender_end_pause(struct lake_appender *s)
{
	for (int t = 0; t < TOPIC_COUNT; t++)
		s->topics[t].retry_at_us = 0;
}

int
lake_appender_close(struct lake_appender *s, struct lake_appender_counts counts[TOPIC_COUNT],
    struct lake_appender_stats *stats, uint64_t *dropped)
{
	uint64_t unwritten = 0;
	int first = 0, r;

	if (s == NULL)
		return 0;
	lake_appender_end_pause(s);
	for (int t = 0; t < TOPIC_COUNT; t++) {
		struct topic_state *ts = &s->topics[t];

		r = flush(s, ts);
		if (r < 0)
			unwritten += lake_appender_discard(s, t);
		if (first == 0)
			first = r;
	}
	r = sync_files(s, ALL_TOPICS, ALL_TOPICS);
	if (first == 0)
		first = r;
	for (int t = 0; t < TOPIC_COUNT; t++) {
		bytes_done(&s->topics[t].block);
		run_index_done(&s->topics[t].index);
	}
	if (counts != NULL)
		memcpy(counts, s->counts, sizeof(s->counts));
	if (stats != NULL)
		*stats = s->stats;
	if (dropped != NULL)
		*dropped = unwritten;
	lake_retention_free(s->retention);
	ocf_packer_free(s->packer);
	bytes_done(&s->packed);
	free(s->lake);
	free(s->host_id);
	free(s->agent_id);
	free(s);
	return first;
}

const char *
lake_appender_lake(const struct lake_appender *s)
{
	return s->lake;
}

unsigned
lake_appender_open_files(const struct lake_appender *s)
{
	unsigned n = 0;

	for (int t = 0; t < TOPIC_COUNT; t++)
		n += s->topics[t].fd >= 0;
	return n;
}

const struct lake_appender_counts *
lake_appender_counts(const struct lake_appender *s, enum topic topic)
{
	return &s->counts[topic];
}

const struct lake_retention_stats *
lake_appender_retention(const struct lake_appender *s)
{
	return lake_retention_stats(s->retention);
}

const struct lake_appender_stats *
lake_appender_stats(const struct lake_appender *s)
{
	return &s->stats;
}

int
lake_appender_set_schema(struct lake_appender *s, enum topic topic, const char *text)
{
	struct topic_state *ts = &s->topics[topic];
	int r;

	if (ts->schema == text)
		return 0;
	r = flush(s, ts);
	if (r == 0)
		r = publish(s, ts);	/* a file has one schema */
	if (r == 0)
		ts->schema = text;
	return r;
}

uint64_t
lake_appender_discard(struct lake_appender *s, enum topic topic)
{
	struct topic_state *ts = &s->topics[topic];
	uint64_t n = ts->block_records;

	ts->block_records = 0;
	ts->block.len = 0;
	return n;
}

int
lake_appender_open(struct lake_appender *s)
{
	char *lake = NULL;
	uint64_t file_max;
	int r = lake_make(s->lake, &s->owner);

	if (r == 0) {
		lake = realpath(s->lake, NULL);
		if (lake == NULL || faccessat(AT_FDCWD, lake, W_OK | X_OK, AT_EACCESS) < 0)
			r = -errno;
	}
	if (r < 0) {
		free(lake);
		s->stats.errors++;
		s->stats.last_error = r;
		return r;
	}
	free(s->lake);
	s->lake = lake;
	lake_retention_open(s->retention, s->lake);
	file_max = lake_retention_file_max(s->retention);
	if (file_max > 0 && file_max < s->rotate_bytes)
		s->rotate_bytes = file_max;
	return 0;
}

int
lake_appender_new(const struct lake_appender_options *o, struct lake_appender **ret)
{
	struct lake_appender *s;
	int r = -ENOMEM;

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
	s->syncs_folders = o->syncs_folders;
	s->call = o->call != NULL ? o->call : &s->unused;
	s->lake = strdup(o->lake);
	s->host_id = strdup(o->host_id);
	s->agent_id = strdup(o->agent_id);
	if (s->lake != NULL && s->host_id != NULL && s->agent_id != NULL)
		r = ocf_packer_new(OCF_DEFLATE, &s->packer);
	if (r == 0)
		r = lake_retention_new(&o->limits, s->host_id, s->call, &s->retention);
	if (r < 0)
		lake_appender_close(s, NULL, NULL, NULL);
	else
		*ret = s;
	return r;
}
