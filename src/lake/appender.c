/*
 * SPDX-License-Identifier: Apache-2.0
 * appender: appends records to the lake's open files, syncs them, and gives them their final names.
 *
 * Each series has a state of its own: records are collected in its block, whole blocks are written to its file.
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
#include "lake/share.h"

#define DEFAULT_ROTATE_BYTES (UINT64_C(128) << 20)
#define DEFAULT_ROTATE_US (INT64_C(3600) * 1000000)
#define DEFAULT_RETRY_US INT64_C(1000000)
#define LATE_US (INT64_C(3600) * 1000000)	/* a record up to this late stays in the newer day's file */
#define SHARES_US INT64_C(60000000)		/* between two writes of the users' shares */
#define ALL_SERIES ((1u << LAKE_SERIES) - 1)

enum {
	BLOCK_BYTES = 64 * 1024,	/* a block is written once it has this many */
	OPEN_TRIES = 8,
	HEAD_BYTES = 64 * 1024,		/* of a new file: its header with the schema, and its folders */
};

struct series {
	unsigned	 number;	/* lake_series() */
	enum topic	 topic;
	bool		 is_over;	/* of records beyond their users' shares (share.h) */
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
	struct lake_users block_users;	/* whose the block's records are */
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
	struct lake_shares	*shares;	/* owned; NULL: there is no limit to share, or the lake is not open */
	int64_t			 shares_at_us;	/* monotonic: they are not written before */
	struct ocf_packer	*packer;	/* owned, shared by the series */
	struct bytes		 packed;	/* block or header that is being written */
	struct lake_appender_stats	 stats;
	struct lake_appender_counts	 counts[LAKE_SERIES];
	struct series		 series[LAKE_SERIES];
};

/* Records the result of an attempt, and returns r. */
static int
record_result(struct lake_appender *s, struct series *f, int r)
{
	f->error = r;
	if (r < 0) {
		s->stats.last_error = r;
		s->stats.errors++;
		f->retry_at_us = clock_us(CLOCK_MONOTONIC) + s->retry_us;
	}
	return r;
}

static bool
is_pausing(const struct series *f)
{
	return f->error < 0 && clock_us(CLOCK_MONOTONIC) < f->retry_at_us;
}

/*
 * Forgets the open file. Its records that are not synced are lost. stays: it is, or will be, a file of the lake, which
 * retention has to know.
 */
static void
forget_file(struct lake_appender *s, struct series *f, bool stays)
{
	if (stays && f->size > 0)
		lake_retention_add(s->retention, f->size + f->index.size, f->is_over);
	s->counts[f->number].lost += f->unsynced;
	f->unsynced = 0;
	if (f->fd >= 0)
		close(f->fd);
	if (f->dir_fd >= 0)
		close(f->dir_fd);
	f->fd = f->dir_fd = -1;
	run_index_end(&f->index);
	f->size = f->records = f->synced_size = 0;
	f->new_names = 0;
	f->opened_us = 0;
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
open_file(struct lake_appender *s, struct series *f, int64_t day, uint64_t seq)
{
	const char *schema;
	size_t len = 0;
	int r;

	r = lake_retention_make_room(s->retention, HEAD_BYTES);
	if (r < 0)
		return r;
	worker_call_begin(s->call, "opening a file");
	f->dir_fd = lake_open_folder(s->lake, topic_name(f->topic), day, s->host_id, &s->owner);
	if (f->dir_fd < 0) {
		r = f->dir_fd;
		goto fail;
	}
	/* All of them: an attempt that failed before, or an agent that was killed, may have made any. */
	f->new_names = s->syncs_folders ? LAKE_LEVELS : 1;
	r = lake_part_name(f->dir_fd, s->agent_id, seq, f->is_over, f->part, sizeof(f->part));
	if (r < 0)
		goto fail;
	r = f->fd = create_part(s, f->dir_fd, f->part);
	if (r < 0)
		goto fail;
	schema = f->schema;
	if (schema != NULL)
		len = strlen(schema);
	else
		schema = encode_schema(f->topic, &len);
	s->packed.len = 0;
	r = schema == NULL ? -ENOENT : ocf_sync_make(f->sync);
	if (r == 0)
		r = ocf_pack_header(s->packer, schema, len, f->sync, &s->packed);
	if (r == 0)
		r = file_write(f->fd, s->packed.data, s->packed.len, 0);
	if (r < 0) {
		unlinkat(f->dir_fd, f->part, 0);
		goto fail;
	}
	worker_call_end(s->call);
	f->size = s->packed.len;
	f->day = day;
	run_index_begin(&f->index, f->sync, f->size);
	return 0;

fail:
	forget_file(s, f, false);
	worker_call_end(s->call);
	return r;
}

/*
 * Forgets the file if it was removed: its contents are lost, and the next block begins a new one. 0, or -ENOENT: some
 * of its records were not synced, and a caller that has them may put them again before the next block.
 */
static int
check_removed(struct lake_appender *s, struct series *f)
{
	bool has_unsynced = f->unsynced > 0, is_removed;
	struct stat st;

	if (f->fd < 0)
		return 0;
	worker_call_begin(s->call, "looking at a file");	/* on a network, that asks the server */
	is_removed = fstat(f->fd, &st) == 0 && st.st_nlink == 0;
	if (is_removed)
		forget_file(s, f, false);
	worker_call_end(s->call);
	return is_removed && has_unsynced ? record_result(s, f, -ENOENT) : 0;
}

/* Writes the block. 0, also if there is none; or a negative errno with the block kept. */
static int
flush(struct lake_appender *s, struct series *f)
{
	int r = 0;

	if (f->block_records == 0)
		return 0;
	if (is_pausing(f))
		return f->error;
	r = check_removed(s, f);
	if (r < 0)
		return r;
	if (f->fd < 0)
		r = open_file(s, f, f->block_day, f->block_seq);
	s->packed.len = 0;
	if (r == 0)
		r = ocf_pack_block(s->packer, f->block.data, f->block.len, f->block_records, f->sync,
		    &s->packed);
	if (r == 0)
		r = lake_retention_make_room(s->retention, s->packed.len);
	if (r == 0) {
		worker_call_begin(s->call, "writing");
		r = file_write(f->fd, s->packed.data, s->packed.len, f->size);
		/* If this fails too, the next attempt overwrites from the same offset. */
		if (r < 0)
			(void)!ftruncate(f->fd, (off_t)f->size);
		worker_call_end(s->call);
	}
	if (record_result(s, f, r) < 0)
		return r;
	f->size += s->packed.len;
	f->records += f->block_records;
	f->unsynced += f->block_records;
	s->counts[f->number].written += f->block_records;
	if (s->shares != NULL && !f->is_over)
		lake_shares_take(s->shares, &f->block_users, s->packed.len, f->block.len);
	worker_call_begin(s->call, "writing");
	run_index_add_block(&f->index, f->dir_fd, f->part, &s->owner, f->size, f->block_records);
	worker_call_end(s->call);
	f->block_records = 0;
	f->block.len = 0;
	return 0;
}

static bool
is_dirty(const struct series *f)
{
	return f->fd >= 0 && f->size > f->synced_size;
}

/* Forgets the file under its .part name: readers have its records once it is repaired (repair.h). */
static void
leave_file(struct lake_appender *s, struct series *f)
{
	s->stats.left++;
	forget_file(s, f, true);
}

/* Cuts what may not be on the disk off the file, and leaves the rest. */
static void
cut_off(struct lake_appender *s, struct series *f)
{
	if (f->synced_size == 0)
		unlinkat(f->dir_fd, f->part, 0);
	else
		(void)!ftruncate(f->fd, (off_t)f->synced_size);
	f->size = f->synced_size;
	leave_file(s, f);
}

/* Syncs the contents of their files. 0 or the first negative errno. */
static int
sync_contents(struct lake_appender *s, unsigned which)
{
	unsigned dirty = 0;
	int first = 0;

	for (unsigned t = 0; t < LAKE_SERIES; t++)
		dirty |= (which & 1u << t) && is_dirty(&s->series[t]) ? 1u << t : 0;
	worker_call_begin(s->call, "fdatasync");
	/* All of them at once: a file system commits its log once then, and not once for each file. */
	for (unsigned t = 0; t < LAKE_SERIES && (dirty & (dirty - 1)) != 0; t++) {
		if (dirty & 1u << t)
			(void)sync_file_range(s->series[t].fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	}
	for (unsigned t = 0; t < LAKE_SERIES; t++) {
		struct series *f = &s->series[t];

		if (!(dirty & 1u << t) || fdatasync(f->fd) == 0)
			continue;
		first = record_result(s, f, -errno);
		cut_off(s, f);
	}
	worker_call_end(s->call);
	return first;
}

/* Syncs the names that lead to their files, and counts their records as synced. 0 or the first negative errno. */
static int
sync_names(struct lake_appender *s, unsigned which)
{
	int first = 0;

	worker_call_begin(s->call, "fsync of a folder");
	for (unsigned t = 0; t < LAKE_SERIES; t++) {
		struct series *f = &s->series[t];
		int r = 0;

		if (!(which & 1u << t) || f->fd < 0)
			continue;
		if (f->new_names > 0)
			r = lake_sync_folders(f->dir_fd, f->new_names);
		if (r < 0) {
			first = record_result(s, f, r);
			leave_file(s, f);
			continue;
		}
		s->counts[t].synced += f->unsynced;
		f->unsynced = 0;
		f->synced_size = f->size;
		f->new_names = 0;
	}
	worker_call_end(s->call);
	return first;
}

/*
 * Syncs the open files of `which` series, and gives the files of `done` their final names: these are among them, and
 * their blocks must be written. 0, or the first negative errno of a sync.
 */
static int
sync_files(struct lake_appender *s, unsigned which, unsigned done)
{
	int removed = 0, first, r;

	for (unsigned t = 0; t < LAKE_SERIES; t++) {
		struct series *f = &s->series[t];

		if (!(which & 1u << t))
			continue;
		r = check_removed(s, f);
		removed = r < 0 ? r : removed;
		if (f->fd >= 0 && f->records == 0) {
			if (done & 1u << t) {
				worker_call_begin(s->call, "removing a file");
				unlinkat(f->dir_fd, f->part, 0);
				forget_file(s, f, false);
				worker_call_end(s->call);
			}
			which &= ~(1u << t);
		}
	}
	first = sync_contents(s, which);
	worker_call_begin(s->call, "renaming");
	for (unsigned t = 0; t < LAKE_SERIES; t++) {
		struct series *f = &s->series[t];

		if (!(which & done & 1u << t) || f->fd < 0)
			continue;
		r = lake_publish(f->dir_fd, f->part);
		/* After a failure the file keeps its .part name. */
		if (r < 0) {
			s->stats.left++;
			s->stats.errors++;
			s->stats.last_error = r;
			continue;
		}
		s->stats.files++;
		f->new_names = f->new_names > 0 ? f->new_names : 1;
	}
	worker_call_end(s->call);
	r = sync_names(s, which);
	worker_call_begin(s->call, "closing a file");
	for (unsigned t = 0; t < LAKE_SERIES; t++) {
		if (which & done & 1u << t)
			forget_file(s, &s->series[t], true);
	}
	worker_call_end(s->call);
	return first < 0 ? first : r < 0 ? r : removed;
}

/* Syncs the series' file and gives it its final name. The block must be written. 0, or a negative errno of the sync. */
static int
publish(struct lake_appender *s, const struct series *f)
{
	return sync_files(s, 1u << f->number, 1u << f->number);
}

/* Returns the day of the file that a record belongs to: that of its time, unless it is only slightly late. */
static int64_t
day_for(const struct series *f, int64_t time_us)
{
	int64_t day = lake_day(time_us);

	if ((f->fd >= 0 || f->block_records > 0) && day < f->day &&
	    lake_day(time_us + LATE_US) >= f->day)
		return f->day;
	return day;
}

int
lake_appender_put(void *appender, const struct encoded_record *record)
{
	struct lake_appender *s = appender;
	struct series *f = &s->series[lake_series(record)];
	int64_t day = day_for(f, record->time_us);
	int r = 0;

	if (record->len > LAKE_RECORD_MAX)
		return -EMSGSIZE;
	if (day != f->day && (f->fd >= 0 || f->block_records > 0)) {
		r = flush(s, f);
		if (r == 0)
			r = publish(s, f);
		if (r < 0)
			return r;
	}
	/* The block is full because an earlier attempt to write it failed. */
	if (f->block.len >= BLOCK_BYTES) {
		r = flush(s, f);
		if (r < 0)
			return r;
	}
	if (f->fd < 0 && f->block_records == 0) {
		if (is_pausing(f))
			return f->error;
		r = record_result(s, f, open_file(s, f, day, record->seq));
		if (r < 0)
			return r;
	}
	r = bytes_append(&f->block, record->data, record->len);
	if (r < 0)
		return r;
	if (f->block_records++ == 0) {
		f->block_seq = record->seq;
		f->block_day = f->day;
		run_index_clear_block(&f->index);
		lake_users_clear(&f->block_users);
	}
	lake_users_add(&f->block_users, &record->user, record->len);
	run_index_add_record(&f->index, record->key);
	/* The record is taken even if this attempt fails. */
	if (f->block.len >= BLOCK_BYTES && flush(s, f) == 0 && f->size >= s->rotate_bytes)
		(void)publish(s, f);
	return 0;
}

/* Returns the bytes of the open files. */
static uint64_t
bytes_of_open(const struct lake_appender *s, bool is_over)
{
	uint64_t bytes = 0;

	for (unsigned t = 0; t < LAKE_SERIES; t++)
		bytes += s->series[t].is_over == is_over ? s->series[t].size + s->series[t].index.size : 0;
	return bytes;
}

/* Writes what each user has, once a minute, or at the end. */
static void
keep_shares(struct lake_appender *s, bool is_end)
{
	const int64_t now_us = clock_us(CLOCK_MONOTONIC);

	if (s->shares == NULL || (!is_end && now_us < s->shares_at_us) ||
	    lake_retention_stats(s->retention)->is_at_floor)
		return;
	s->shares_at_us = now_us + SHARES_US;
	worker_call_begin(s->call, "writing the shares");
	lake_shares_write(s->shares, s->lake, s->host_id, &s->owner);
	worker_call_end(s->call);
}

void
lake_appender_over(const struct lake_appender *s, uint64_t over[LAKE_OVER_SIZE])
{
	uint64_t capacity = s->shares != NULL ?
	    lake_retention_capacity(s->retention, bytes_of_open(s, false) + bytes_of_open(s, true)) : 0;

	lake_shares_over(s->shares, capacity, over);
}

static void
follow(struct lake_appender *s, uint64_t open_bytes)
{
	if (s->shares != NULL)
		lake_shares_follow(s->shares, lake_retention_within(s->retention) + open_bytes);
}

int
lake_appender_flush(struct lake_appender *s, int64_t now_us)
{
	unsigned done = 0;
	uint64_t within_bytes;
	int first = 0, r;

	for (unsigned t = 0; t < LAKE_SERIES; t++) {
		struct series *f = &s->series[t];

		r = flush(s, f);
		if (first == 0)
			first = r;
		if (r < 0 || f->fd < 0)
			continue;
		if (f->opened_us == 0 || now_us < f->opened_us)	/* new, or the clock was set back */
			f->opened_us = now_us;
		if (f->size >= s->rotate_bytes || now_us - f->opened_us >= s->rotate_us)
			done |= 1u << t;
	}
	r = done != 0 ? sync_files(s, done, done) : 0;
	within_bytes = bytes_of_open(s, false);
	follow(s, within_bytes);	/* before it removes files, of which users are to lose all */
	lake_retention_tick(s->retention, now_us, within_bytes, bytes_of_open(s, true));
	follow(s, within_bytes);
	keep_shares(s, false);
	return first < 0 ? first : r;
}

int
lake_appender_sync(struct lake_appender *s)
{
	return sync_files(s, ALL_SERIES, 0);
}

void
lake_appender_end_pause(struct lake_appender *s)
{
	for (unsigned t = 0; t < LAKE_SERIES; t++)
		s->series[t].retry_at_us = 0;
}

int
lake_appender_close(struct lake_appender *s, struct lake_appender_counts counts[LAKE_SERIES],
    struct lake_appender_stats *stats, uint64_t *dropped)
{
	uint64_t unwritten = 0;
	int first = 0, r;

	if (s == NULL)
		return 0;
	lake_appender_end_pause(s);
	for (unsigned t = 0; t < LAKE_SERIES; t++) {
		struct series *f = &s->series[t];

		r = flush(s, f);
		if (r < 0)
			unwritten += lake_appender_discard(s, t);
		if (first == 0)
			first = r;
	}
	r = sync_files(s, ALL_SERIES, ALL_SERIES);
	if (first == 0)
		first = r;
	keep_shares(s, true);
	free(s->shares);
	for (unsigned t = 0; t < LAKE_SERIES; t++) {
		bytes_done(&s->series[t].block);
		lake_users_done(&s->series[t].block_users);
		run_index_done(&s->series[t].index);
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

	for (unsigned t = 0; t < LAKE_SERIES; t++)
		n += s->series[t].fd >= 0;
	return n;
}

const struct lake_appender_counts *
lake_appender_counts(const struct lake_appender *s, unsigned series)
{
	return &s->counts[series];
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
lake_appender_set_schema(struct lake_appender *s, unsigned series, const char *text)
{
	struct series *f = &s->series[series];
	int r;

	if (f->schema == text)
		return 0;
	r = flush(s, f);
	if (r == 0)
		r = publish(s, f);	/* a file has one schema */
	if (r == 0)
		f->schema = text;
	return r;
}

uint64_t
lake_appender_discard(struct lake_appender *s, unsigned series)
{
	struct series *f = &s->series[series];
	uint64_t n = f->block_records;

	f->block_records = 0;
	f->block.len = 0;
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
	if (file_max > 0 && s->shares == NULL) {
		s->shares = calloc(1, sizeof(*s->shares));
		if (s->shares == NULL)
			return -ENOMEM;
		lake_shares_read(s->shares, s->lake, s->host_id, &s->owner);
		follow(s, 0);
	}
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
	for (unsigned t = 0; t < LAKE_SERIES; t++)
		s->series[t] = (struct series){ .number = t, .topic = t % TOPIC_COUNT,
		    .is_over = t >= TOPIC_COUNT, .fd = -1, .dir_fd = -1 };
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
