/*
 * SPDX-License-Identifier: Apache-2.0
 * retention: removes the oldest files of the lake when it is too large, they are too old, or its disk is almost full;
 * private to the lake's appender (appender.h), whose thread makes all calls: each may wait for the disk.
 *
 * The oldest go first, but those of records within their users' shares (share.h) stay while they have no more than half
 * of what all have and there are others. Files that are too old go without regard to that.
 *
 * Only complete files of this host are removed, that is, files below host=<host_id> that have the name and the header
 * of one, belong to this process's user, and that no writer has open; an index of runs (run_index.h) and folders that
 * become empty go with them. Nothing is removed while `sluice lake` compacts or deletes old days (compact/.lock).
 */
#ifndef SLUICE_LAKE_RETENTION_H
#define SLUICE_LAKE_RETENTION_H

#include <stdbool.h>
#include <stdint.h>

struct worker_call;

/* All zero: files are never removed, and the disk may become full. */
struct lake_limits {
	uint64_t max_bytes;		/* of this host's files; 0: no limit */
	int64_t keep_us;		/* after the end of a file's day, in UTC; 0: for ever */
	uint64_t free_min;		/* of the disk's floor, see base/space.h; 0: none */
};

/* Why files were removed. Their records had been delivered: none of these is a loss. */
enum lake_removal {
	LAKE_FULL,			/* more than max_bytes */
	LAKE_TOO_OLD,			/* longer than keep_us */
	LAKE_DISK_FLOOR,		/* the disk was near its floor */
	LAKE_OVER_SHARE,		/* for room, and not the oldest of all: their users had their shares */
	LAKE_REMOVALS,
};

struct lake_retention_stats {
	uint64_t bytes;			/* of this host's files that no writer has open, as last counted or added up */
	uint64_t over_bytes;		/* of them those of records beyond their users' shares (share.h) */
	uint64_t free_bytes;		/* of the disk, when it was last asked; with floor_bytes */
	uint64_t floor_bytes;		/* of the disk; 0: it has none, or was not asked yet */
	bool is_at_floor;		/* nothing is written: the disk would have less than its floor free */
	struct lake_removed {
		uint64_t files;
		uint64_t records;
		uint64_t bytes;		/* with their indices */
	} removed[LAKE_REMOVALS];
	uint64_t errors;		/* files that could not be removed, and folders that could not be read */
	int last_error;			/* a negative errno; 0: none */
};

struct lake_retention;

/* Returns "lake_full" and so on; static. */
const char *lake_removal_name(enum lake_removal reason);

/* call: the writer's, notes that the thread waits; host_id is copied. 0 or -ENOMEM. */
int lake_retention_new(const struct lake_limits *limits, const char *host_id, struct worker_call *call,
    struct lake_retention **ret);
void lake_retention_free(struct lake_retention *r);	/* NULL is fine */
/* The lake is open, and its files are counted. lake: its path, which must outlive r. */
void lake_retention_open(struct lake_retention *r, const char *lake);
/* Returns how large a file may become, so that one is a small part of what may be removed; 0: no limit. */
uint64_t lake_retention_file_max(const struct lake_retention *r);
/*
 * A file was completed, or left under its .part name. bytes: its size, with its index; is_over: it has records beyond
 * their users' shares.
 */
void lake_retention_add(struct lake_retention *r, uint64_t bytes, bool is_over);
/* Returns the bytes of files of records within their users' shares that no writer has open. */
uint64_t lake_retention_within(const struct lake_retention *r);
/* Returns what the lake may have in all, beside what others have on its disk; 0: unknown. */
uint64_t lake_retention_capacity(const struct lake_retention *r, uint64_t open_bytes);
/*
 * Removes what is too old, and what is too much beside so many bytes of open files: open_within of records within their
 * users' shares, and open_over of others.
 */
void lake_retention_tick(struct lake_retention *r, int64_t now_us, uint64_t open_within, uint64_t open_over);
/*
 * To be called before so many bytes are written. Removes the oldest files, but for the newest ones, if the disk would
 * come near its floor. 0; -ENOSPC: it would be below it, and nothing may be written.
 */
int lake_retention_make_room(struct lake_retention *r, uint64_t bytes);
/* Valid until r is freed. */
const struct lake_retention_stats *lake_retention_stats(const struct lake_retention *r);

#endif
