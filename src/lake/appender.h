/*
 * SPDX-License-Identifier: Apache-2.0
 * appender: appends records to the lake's open files, syncs them, and gives them their final names.
 * Its functions are private to the lake's writer (writer.h), whose thread makes all calls but lake_appender_new(): each
 * may wait for the disk.
 *
 *	<lake>/<topic>/date=YYYY-MM-DD/host=<host_id>/<agent_id>-<first seq>.avro
 *	<lake>/<topic>/date=YYYY-MM-DD/host=<host_id>/<agent_id>-<first seq>.over.avro
 *
 * Each topic has two series of files, of which one file each is open: the second for records beyond their users' shares
 * (share.h).
 *
 * While a file is open its name has a dot in front and .part at the end, so that readers skip it, and its
 * writer holds a write lock (fcntl, of the open file description) on it. It gets its final name once it is
 * whole on disk. The date is that of the records' time, in UTC; a record up to an hour late for a new day stays
 * in the newer file, so that files keep the records' order.
 *
 * Beside a file of some size is an index of its runs (run_index.h), which readers may use and need not.
 */
#ifndef SLUICE_LAKE_APPENDER_H
#define SLUICE_LAKE_APPENDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/worker.h"
#include "codec/ocf.h"
#include "lake/retention.h"
#include "lake/share.h"
#include "model/record.h"

#define LAKE_RECORD_MAX (OCF_BLOCK_MAX / 2)	/* bytes of a record */

struct lake_appender;

struct lake_appender_options {
	const char *lake;		/* created if missing; strings are copied */
	const char *host_id;
	const char *agent_id;
	uint64_t rotate_bytes;		/* 0: 128 MiB */
	int64_t rotate_us;		/* 0: one hour */
	int64_t retry_us;		/* pause after a failed write; 0: one second */
	bool has_owner;			/* new files and folders are given to owner and group */
	uid_t owner;
	gid_t group;
	struct lake_limits limits;
	bool syncs_folders;		/* syncs the names of new folders, too, and not only those of files */
	struct worker_call *call;	/* the caller's: notes each call that may wait for the disk */
};

/* The series are numbered: those of records within the shares as their topics. */
#define LAKE_SERIES (2 * TOPIC_COUNT)

static inline unsigned
lake_series(const struct encoded_record *r)
{
	return (unsigned)r->topic + (r->is_over ? TOPIC_COUNT : 0);
}

/* Records of one series, since the appender was opened. A record is first written, and then synced or lost. */
struct lake_appender_counts {
	uint64_t written;		/* in blocks of a file: they outlive the process */
	uint64_t synced;		/* on the disk, as the names that lead there: they outlive the host */
	uint64_t lost;			/* the sync failed, or the file was removed before it: they are cut off */
};

struct lake_appender_stats {
	uint64_t files;			/* renamed to their final names */
	uint64_t errors;		/* failed attempts to create, write, sync or rename a file */
	uint64_t left;			/* closed under their .part names, for a repair: a sync or a rename failed */
	int last_error;			/* a negative errno; 0: none */
};

/* Uses no disk. 0, or a negative errno with *ret untouched. */
int lake_appender_new(const struct lake_appender_options *o, struct lake_appender **ret);
/*
 * Creates the lake if missing, and checks that it can be written. 0, or a negative errno: no record may be put, and the
 * call may be repeated.
 */
int lake_appender_open(struct lake_appender *a);
/*
 * Writes pending records, syncs and renames all files, and frees a. Fills in the counts, unless NULL, and the number of
 * records that could not be written. 0, or the first negative errno. NULL is fine.
 */
int lake_appender_close(struct lake_appender *a, struct lake_appender_counts counts[LAKE_SERIES],
    struct lake_appender_stats *stats, uint64_t *dropped);
/*
 * Takes a copy of one record of at most LAKE_RECORD_MAX bytes, and writes blocks that are full. appender is a struct
 * lake_appender; the function has the type of a stream output's put. 0, or a negative errno: it was not taken, and may
 * be put again.
 */
int lake_appender_put(void *appender, const struct encoded_record *r);
/*
 * Writes pending blocks, and closes old or large files. now_us: wall clock. 0, or the first negative errno: what could
 * not be written is kept.
 */
int lake_appender_flush(struct lake_appender *a, int64_t now_us);
/* Syncs what is written. 0, or the first negative errno: the records of that series are counted as lost. */
int lake_appender_sync(struct lake_appender *a);
/* The next attempt to write is not delayed by the pause after a failed one. */
void lake_appender_end_pause(struct lake_appender *a);
/*
 * Sets the schema of a series' following records, which are written to a new file. text must outlive a; NULL:
 * the built-in schema. 0, or a negative errno with nothing changed.
 */
int lake_appender_set_schema(struct lake_appender *a, unsigned series, const char *text);
/* Discards records that were put and are in no written block, and returns their number. */
uint64_t lake_appender_discard(struct lake_appender *a, unsigned series);
/* Returns the lake's absolute path, once it is open; valid until the appender is closed. */
const char *lake_appender_lake(const struct lake_appender *a);
/* Returns how many files are open. */
unsigned lake_appender_open_files(const struct lake_appender *a);
/* Returns the counters of a series; valid until the appender is closed. */
const struct lake_appender_counts *lake_appender_counts(const struct lake_appender *a, unsigned series);
/* Notes which users have their shares. */
void lake_appender_over(const struct lake_appender *a, uint64_t over[LAKE_OVER_SIZE]);
/* Returns what old files were removed, and the room of the disk; valid until the appender is closed. */
const struct lake_retention_stats *lake_appender_retention(const struct lake_appender *a);
/* Returns the counters of files and errors; valid until the appender is closed. */
const struct lake_appender_stats *lake_appender_stats(const struct lake_appender *a);

#endif
