/*
 * SPDX-License-Identifier: Apache-2.0
 * writer: writes the lake, a folder of Avro object container files.
 *
 *	<lake>/<topic>/date=YYYY-MM-DD/host=<host_id>/<agent_id>-<first seq>.avro
 *
 * While a file is open its name has a dot in front and .part at the end, so that readers skip it, and its
 * writer holds a write lock (fcntl, of the open file description) on it. It gets its final name once it is
 * whole on disk. The date is that of the records' time, in UTC; a record up to an hour late for a new day stays
 * in the newer file, so that files keep the records' order.
 *
 * Beside a file of some size is an index of its runs (run_index.h), which readers may use and need not.
 */
#ifndef SLUICE_LAKE_WRITER_H
#define SLUICE_LAKE_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lake/repair.h"
#include "model/record.h"


struct lake_writer;

struct lake_writer_stats {
	uint64_t accepted;		/* records taken by put */
	uint64_t refused;		/* records refused by put */
	uint64_t delivered;		/* in written blocks */
	uint64_t dropped;		/* taken, but not written before close */
	uint64_t files;			/* renamed to their final names */
	uint64_t errors;		/* failed attempts to create, write or rename a file */
	int last_error;			/* a negative errno; 0: none */
};

struct lake_writer_options {
	const char *lake;		/* created if missing; strings are copied */
	const char *host_id;
	const char *agent_id;
	uint64_t rotate_bytes;		/* 0: 128 MiB */
	int64_t rotate_us;		/* 0: one hour */
	int64_t retry_us;		/* pause after a failed write; 0: one second */
	bool has_owner;			/* new files and folders are given to owner and group */
	uid_t owner;
	gid_t group;
	struct lake_writer_stats *final_stats;	/* the caller's, filled at close; NULL: not wanted */
	/*
	 * NULL, or called after each attempt to write a topic's block, also from within put and close. error is
	 * 0 and records counts the block's, which are the oldest that were not reported yet; or error is a
	 * negative errno and the block is kept.
	 */
	void (*on_block)(enum topic topic, uint64_t records, int error, void *arg);
	void *on_block_arg;
};

/*
 * Creates the lake if missing, checks that it can be written, and repairs files of this host's dead agents.
 * repair may be NULL. 0, or a negative errno with *ret untouched.
 */
int lake_writer_open(const struct lake_writer_options *o, struct lake_writer **ret,
    struct lake_repair *repair);
/* Writes pending records, closes all files and frees w. 0, or the first negative errno. NULL is fine. */
int lake_writer_close(struct lake_writer *w);
/*
 * Takes a copy of one record. writer is a struct lake_writer; the function has the type of a stream output's
 * put. 0, or a negative errno: the record was refused.
 */
int lake_writer_put(void *writer, const struct encoded_record *r);
/* Writes pending blocks, and closes old or large files. To be called about once a second. now_us: wall clock. */
void lake_writer_tick(struct lake_writer *w, int64_t now_us);
/* Returns how many records are written, so that a crash of this process cannot lose them. */
uint64_t lake_writer_delivered(const struct lake_writer *w);
/* Copies the counters since the writer was opened. */
void lake_writer_stats(const struct lake_writer *w, struct lake_writer_stats *ret);
/*
 * Sets the schema of the topic's following records, which are written to a new file. text must outlive w; NULL:
 * the built-in schema. 0, or a negative errno with nothing changed.
 */
int lake_writer_set_schema(struct lake_writer *w, enum topic topic, const char *text);
/*
 * Discards records that were put and are in no written block, and returns their number. For a caller that still
 * has them.
 */
uint64_t lake_writer_discard(struct lake_writer *w, enum topic topic);

#endif
