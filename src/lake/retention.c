/*
 * SPDX-License-Identifier: Apache-2.0
 * retention: removes the oldest files of the lake.
 *
 * Sizes are counted once, and added up as files are completed. Others may remove files, too, so that all are counted
 * anew before any is removed for lack of room. Of files only those of one day are in memory, oldest day first.
 */
#include "lake/retention.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/space.h"
#include "base/worker.h"
#include "codec/ocf.h"
#include "lake/folders.h"
#include "model/record.h"

#define DAY_US INT64_C(86400000000)
#define AHEAD_SHARE 8		/* of the margin: what is removed at once for it beyond what has to be */
#define SLACK_SHARE 20		/* of the limit: what is removed at once beyond what has to be */
#define KEPT_SHARE 10		/* of the limit: the newest files, which stay even if the disk is at its floor */
#define WITHIN_SHARE 2		/* of all files: what those of records within their users' shares may have */
#define FILES_MIN 16		/* files that the limit has room for at least */
#define LOOK_PAUSE_US INT64_C(3000000)		/* after less could be removed than had to be */
#define AGE_PAUSE_US INT64_C(600000000)		/* between two looks for files that are too old */

/* A complete file of the day that is being removed. */
struct file {
	enum topic	 topic;
	struct timespec	 mtime;
	uint64_t	 bytes;
	bool		 is_over;	/* of records beyond their users' shares */
	char		 name[NAME_MAX + 1];
};

struct files {
	struct file	*list;		/* owned */
	size_t		 n;
	size_t		 cap;
};

struct lake_retention {
	struct lake_limits	 limits;
	char			 host[NAME_MAX + 1];	/* "host=<host_id>" */
	const char		*lake;		/* the appender's; NULL: it is not open */
	int			 lake_fd;	/* during a call */
	struct worker_call	*call;		/* the writer's */
	uint64_t		 total_bytes;	/* of the disk; 0: unknown */
	uint64_t		 reserved_bytes;	/* of it: below so much, old files are removed */
	uint64_t		 open_within, open_over;	/* bytes of open files, at the last tick */
	int64_t			 look_at_us;	/* monotonic: no look for files to remove before */
	int64_t			 age_at_us;	/* monotonic: the next look for files that are too old */
	struct lake_retention_stats stats;
};

/* What a removal is for. It ends when enough is free, or nothing is left that it may remove. */
struct goal {
	enum lake_removal	 reason;
	uint64_t		 bytes;		/* that are to be freed */
	uint64_t		 keep_bytes;	/* of complete files that stay; 0: none have to */
	uint64_t		 within_bytes;	/* of those of records within shares that stay while others are there */
	char			 until[16];	/* day before which files are removed; "": any */
	uint64_t		 freed;
};

const char *
lake_removal_name(enum lake_removal reason)
{
	static const char *const names[LAKE_REMOVALS] = {
		[LAKE_FULL] = "lake_full",
		[LAKE_TOO_OLD] = "lake_too_old",
		[LAKE_DISK_FLOOR] = "disk_floor",
		[LAKE_OVER_SHARE] = "lake_over_share",
	};

	return (unsigned)reason < LAKE_REMOVALS ? names[reason] : NULL;
}

static void
failed(struct lake_retention *r, int error)
{
	r->stats.errors++;
	r->stats.last_error = error;
}

/* Returns whether a folder's name is that of a day, "date=YYYY-MM-DD". */
static bool
is_day(const char *name)
{
	static const char form[] = "date=####-##-##";

	for (size_t i = 0; i < sizeof(form); i++) {
		if (form[i] == '#' ? name[i] < '0' || name[i] > '9' : name[i] != form[i])
			return false;
	}
	return true;
}

/* Opens a folder below dir_fd for reading; NULL: it is not there, or cannot be read, which is counted. */
static DIR *
open_dir(struct lake_retention *r, int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (dir == NULL && errno != ENOENT)
		failed(r, -errno);
	if (dir == NULL && fd >= 0)
		close(fd);
	return dir;
}

/* Finds the oldest day after `after` that any topic has. False: there is none. */
static bool
next_day(struct lake_retention *r, const char *after, char ret[16])
{
	ret[0] = '\0';
	for (int t = 0; t < TOPIC_COUNT; t++) {
		DIR *dir = open_dir(r, r->lake_fd, topic_name(t));
		const struct dirent *e;

		while (dir != NULL && (e = readdir(dir)) != NULL) {
			if (is_day(e->d_name) && strcmp(e->d_name, after) > 0 &&
			    (ret[0] == '\0' || strcmp(e->d_name, ret) < 0))
				memcpy(ret, e->d_name, 16);
		}
		if (dir != NULL)
			closedir(dir);
	}
	return ret[0] != '\0';
}

/* Returns the bytes of the index of a complete file; 0: it has none. */
static uint64_t
index_bytes(int dir_fd, const char *name)
{
	char index[NAME_MAX + 1];
	struct stat st;

	return lake_index_name(name, index, sizeof(index)) && fstatat(dir_fd, index, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}

void
lake_retention_add(struct lake_retention *r, uint64_t bytes, bool is_over)
{
	r->stats.bytes += bytes;
	r->stats.over_bytes += is_over ? bytes : 0;
}

uint64_t
lake_retention_within(const struct lake_retention *r)
{
	return r->stats.bytes > r->stats.over_bytes ? r->stats.bytes - r->stats.over_bytes : 0;
}

/* Returns whether a file is one that a writer has left, which is no more open, and becomes complete by a repair. */
static bool
is_left(int dir_fd, const char *name)
{
	int fd = lake_is_part(name) ? openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
	const bool is_left = fd >= 0 && !lake_is_open(fd);

	if (fd >= 0)
		close(fd);
	return is_left;
}

/* Counts the files of a day and topic that are complete or will be, or adds the complete ones to files. */
static void
add_files(struct lake_retention *r, enum topic topic, const char *day, struct files *files)
{
	char path[64 + NAME_MAX];
	const struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%s/%s", topic_name(topic), day, r->host);
	dir = open_dir(r, r->lake_fd, path);
	while (dir != NULL && (e = readdir(dir)) != NULL) {
		struct file f = { .topic = topic };
		struct stat st;

		if (!lake_is_complete(e->d_name) && (files != NULL || !is_left(dirfd(dir), e->d_name)))
			continue;
		if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
		    st.st_uid != geteuid())
			continue;
		f.bytes = (uint64_t)st.st_size + index_bytes(dirfd(dir), e->d_name);
		f.mtime = st.st_mtim;
		snprintf(f.name, sizeof(f.name), "%s", e->d_name);
		f.is_over = lake_is_over(e->d_name);
		if (files == NULL) {
			lake_retention_add(r, f.bytes, f.is_over);
			continue;
		}
		if (files->n == files->cap) {
			size_t cap = files->cap > 0 ? 2 * files->cap : 64;
			struct file *list = reallocarray(files->list, cap, sizeof(*list));

			if (list == NULL)
				break;		/* the others are removed later */
			files->list = list;
			files->cap = cap;
		}
		files->list[files->n++] = f;
	}
	if (dir != NULL)
		closedir(dir);
}

/* Opens the lake for one call: its folder may be another than at the last one. False: it cannot be opened. */
static bool
enter(struct lake_retention *r, const char *what)
{
	if (r->lake == NULL)
		return false;
	worker_call_begin(r->call, what);
	r->lake_fd = open(r->lake, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->lake_fd < 0)
		worker_call_end(r->call);
	return r->lake_fd >= 0;
}

static void
leave(struct lake_retention *r)
{
	close(r->lake_fd);
	worker_call_end(r->call);
}

/* Counts the bytes of all files of this host that are complete, or will be. */
static void
count(struct lake_retention *r)
{
	char day[16], before[16] = "";

	r->stats.bytes = r->stats.over_bytes = 0;
	while (next_day(r, before, day)) {
		for (int t = 0; t < TOPIC_COUNT; t++)
			add_files(r, t, day, NULL);
		memcpy(before, day, sizeof(before));
	}
}

/* Oldest first: by the time of the last write. */
static int
compare(const void *left, const void *right)
{
	const struct file *a = left, *b = right;

	if (a->mtime.tv_sec != b->mtime.tv_sec)
		return a->mtime.tv_sec < b->mtime.tv_sec ? -1 : 1;
	if (a->mtime.tv_nsec != b->mtime.tv_nsec)
		return a->mtime.tv_nsec < b->mtime.tv_nsec ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* Counts the records of a file. False: it has no header of one, or a writer has it open. */
static bool
count_records(int dir_fd, const char *name, uint64_t *ret)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct ocf_reader *reader = NULL;
	struct ocf_error error;
	bool is_ours;

	if (fd < 0)
		return false;
	is_ours = !lake_is_open(fd) && ocf_reader_open(fd, &reader, &error) == 0;
	if (is_ours)
		*ret = ocf_reader_count(reader);
	ocf_reader_close(reader);
	close(fd);
	return is_ours;
}

/* Removes one file with its index, and counts that. False: it stays. */
static bool
remove_file(struct lake_retention *r, int dir_fd, const struct file *f, struct goal *goal)
{
	const bool is_first = goal->within_bytes > 0 && f->is_over;
	struct lake_removed *removed = &r->stats.removed[is_first ? LAKE_OVER_SHARE : goal->reason];
	char index[NAME_MAX + 1];
	uint64_t records = 0;

	if (!count_records(dir_fd, f->name, &records))
		return false;
	if (unlinkat(dir_fd, f->name, 0) < 0) {
		if (errno != ENOENT)
			failed(r, -errno);
		return false;
	}
	if (lake_index_name(f->name, index, sizeof(index)))
		(void)unlinkat(dir_fd, index, 0);
	removed->files++;
	removed->records += records;
	removed->bytes += f->bytes;
	r->stats.bytes -= f->bytes < r->stats.bytes ? f->bytes : r->stats.bytes;
	if (f->is_over)
		r->stats.over_bytes -= f->bytes < r->stats.over_bytes ? f->bytes : r->stats.over_bytes;
	goal->freed += f->bytes;
	return true;
}

/* Removes the folders of a day that are empty. A writer that is about to use one makes it again. */
static void
remove_folders(const struct lake_retention *r, const char *day)
{
	for (int t = 0; t < TOPIC_COUNT; t++) {
		char path[64 + NAME_MAX];

		snprintf(path, sizeof(path), "%s/%s/%s", topic_name(t), day, r->host);
		if (unlinkat(r->lake_fd, path, AT_REMOVEDIR) < 0 && errno != ENOENT)
			continue;
		snprintf(path, sizeof(path), "%s/%s", topic_name(t), day);
		(void)unlinkat(r->lake_fd, path, AT_REMOVEDIR);
	}
}

static bool
is_reached(const struct lake_retention *r, const struct goal *goal)
{
	return goal->freed >= goal->bytes || (goal->keep_bytes > 0 && r->stats.bytes <= goal->keep_bytes);
}

/* Returns whether a file stays although it may be the oldest. */
static bool
is_kept(const struct lake_retention *r, const struct file *f, const struct goal *goal)
{
	return goal->within_bytes > 0 && !f->is_over && lake_retention_within(r) <= goal->within_bytes;
}

/* Removes files of a day, of all topics, oldest first. */
static void
remove_of_day(struct lake_retention *r, const char *day, struct goal *goal)
{
	struct files files = { 0 };
	bool has_removed = false;

	for (int t = 0; t < TOPIC_COUNT; t++)
		add_files(r, t, day, &files);
	if (files.n > 0)
		qsort(files.list, files.n, sizeof(*files.list), compare);
	for (size_t i = 0; i < files.n && !is_reached(r, goal); i++) {
		char path[64 + NAME_MAX];
		int fd;

		if (is_kept(r, &files.list[i], goal))
			continue;
		snprintf(path, sizeof(path), "%s/%s/%s", topic_name(files.list[i].topic), day, r->host);
		fd = openat(r->lake_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			continue;
		has_removed = remove_file(r, fd, &files.list[i], goal) || has_removed;
		close(fd);
	}
	free(files.list);
	if (has_removed)
		remove_folders(r, day);
}

/* Locks the lake's old days, as `sluice lake` does. -1: there is nothing to lock; -2: another process has the lock. */
static int
lock_days(const struct lake_retention *r)
{
	int fd = openat(r->lake_fd, "compact/.lock", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
		close(fd);
		return -2;
	}
	return fd;
}

/* Removes the oldest of the files that do not have to stay, until the goal is reached. */
static void
remove_days(struct lake_retention *r, struct goal *goal)
{
	char day[16], before[16] = "";

	while (!is_reached(r, goal) && next_day(r, before, day) &&
	    (goal->until[0] == '\0' || strcmp(day, goal->until) < 0)) {
		remove_of_day(r, day, goal);
		memcpy(before, day, sizeof(before));
	}
}

/* Removes files until the goal is reached. */
static void
remove_oldest(struct lake_retention *r, struct goal *goal)
{
	int lock = lock_days(r);

	if (lock == -2)
		return;
	if (goal->reason != LAKE_TOO_OLD && r->stats.over_bytes > 0) {
		goal->within_bytes = (r->stats.bytes + r->open_within + r->open_over) / WITHIN_SHARE;
		goal->within_bytes -= r->open_within < goal->within_bytes ? r->open_within : goal->within_bytes - 1;
		remove_days(r, goal);
		goal->within_bytes = 0;
	}
	remove_days(r, goal);
	if (lock >= 0)
		close(lock);
}

/* Returns the limit of the lake: what may be, or all of a smaller disk; 0: unknown. */
static uint64_t
limit(const struct lake_retention *r)
{
	uint64_t max = r->limits.max_bytes;

	return max == 0 || (r->total_bytes > 0 && r->total_bytes < max) ? r->total_bytes : max;
}

/* Removes files of days that ended too long ago. */
static void
remove_old(struct lake_retention *r, int64_t now_us)
{
	struct goal goal = { .reason = LAKE_TOO_OLD, .bytes = UINT64_MAX };
	time_t until = (time_t)(lake_day(now_us - r->limits.keep_us) * (DAY_US / 1000000));
	struct tm tm;

	if (gmtime_r(&until, &tm) == NULL || strftime(goal.until, sizeof(goal.until), "date=%Y-%m-%d", &tm) == 0)
		return;
	remove_oldest(r, &goal);
}

void
lake_retention_tick(struct lake_retention *r, int64_t now_us, uint64_t open_within, uint64_t open_over)
{
	const int64_t monotonic_us = clock_us(CLOCK_MONOTONIC);
	const uint64_t max = r->limits.max_bytes, open_bytes = open_within + open_over;
	struct goal goal = { .reason = LAKE_FULL };

	r->open_within = open_within;
	r->open_over = open_over;
	if (!enter(r, "removing old files"))
		return;
	if (r->limits.keep_us > 0 && monotonic_us >= r->age_at_us) {
		r->age_at_us = monotonic_us + AGE_PAUSE_US;
		remove_old(r, now_us);
	}
	if (max > 0 && r->stats.bytes + open_bytes > max && monotonic_us >= r->look_at_us) {
		count(r);
		if (r->stats.bytes + open_bytes > max) {
			goal.bytes = r->stats.bytes + open_bytes - max + max / SLACK_SHARE;
			remove_oldest(r, &goal);
			if (goal.freed < goal.bytes)
				r->look_at_us = monotonic_us + LOOK_PAUSE_US;
		}
	}
	leave(r);
}

/* Asks for the disk's room. False: it does not say. */
static bool
look(struct lake_retention *r, struct space *ret)
{
	if (space_read(r->lake_fd, ret) < 0)
		return false;
	r->total_bytes = ret->total_bytes;
	r->stats.free_bytes = ret->free_bytes;
	r->stats.floor_bytes = space_floor(ret, r->limits.free_min);
	r->reserved_bytes = r->stats.floor_bytes + 2 * space_margin(ret);
	return true;
}

/* Removes the oldest files if less than two margins would stay free above the floor. */
static void
keep_margins(struct lake_retention *r, struct space *space, uint64_t bytes)
{
	const int64_t monotonic_us = clock_us(CLOCK_MONOTONIC);
	const uint64_t margin = space_margin(space), wanted = r->reserved_bytes + bytes;
	struct goal goal = { .reason = LAKE_DISK_FLOOR, .keep_bytes = limit(r) / KEPT_SHARE };

	if (space->free_bytes >= wanted || monotonic_us < r->look_at_us)
		return;
	count(r);
	goal.bytes = wanted - space->free_bytes + margin / AHEAD_SHARE;
	remove_oldest(r, &goal);
	if (goal.freed < goal.bytes)
		r->look_at_us = monotonic_us + LOOK_PAUSE_US;
	if (goal.freed > 0)
		(void)look(r, space);
}

int
lake_retention_make_room(struct lake_retention *r, uint64_t bytes)
{
	struct space space;

	if (r->limits.free_min == 0 || !enter(r, "looking for room"))
		return 0;
	r->stats.is_at_floor = false;
	if (look(r, &space)) {
		keep_margins(r, &space, bytes);
		r->stats.is_at_floor = space.free_bytes < r->stats.floor_bytes + bytes;
	}
	leave(r);
	return r->stats.is_at_floor ? -ENOSPC : 0;
}

uint64_t
lake_retention_capacity(const struct lake_retention *r, uint64_t open_bytes)
{
	const uint64_t most = limit(r), least = most / KEPT_SHARE;
	uint64_t all = r->stats.bytes + open_bytes + r->stats.free_bytes;

	if (r->limits.free_min == 0 || r->stats.floor_bytes == 0 || all >= most + r->reserved_bytes)
		return most;
	all -= all < r->reserved_bytes ? all : r->reserved_bytes;
	return all > least ? all : least;
}

uint64_t
lake_retention_file_max(const struct lake_retention *r)
{
	return r->limits.max_bytes > 0 || r->limits.free_min > 0 ? limit(r) / FILES_MIN : 0;
}

void
lake_retention_open(struct lake_retention *r, const char *lake)
{
	struct space space;

	r->lake = lake;
	if ((r->limits.max_bytes == 0 && r->limits.free_min == 0) || !enter(r, "counting files"))
		return;
	(void)look(r, &space);
	count(r);
	leave(r);
}

int
lake_retention_new(const struct lake_limits *limits, const char *host_id, struct worker_call *call,
    struct lake_retention **ret)
{
	struct lake_retention *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return -ENOMEM;
	r->limits = *limits;
	r->call = call;
	snprintf(r->host, sizeof(r->host), "host=%s", host_id);
	*ret = r;
	return 0;
}

void
lake_retention_free(struct lake_retention *r)
{
	free(r);
}

const struct lake_retention_stats *
lake_retention_stats(const struct lake_retention *r)
{
	return &r->stats;
}
