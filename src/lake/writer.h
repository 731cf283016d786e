/*
 * SPDX-License-Identifier: Apache-2.0
 * writer: the lake as a folder of Avro object container files.
 *
 *	<lake>/<topic>/date=YYYY-MM-DD/host=<host_id>/<agent_id>-<first seq>.avro
 *
 * While a file is open its name has a dot in front and .part behind, so that readers pass over it,
 * and its writer holds a write lock (fcntl, of the open file description) on it. It gets its real
 * name once it is whole on disk. The date is that of the records' time, in UTC; a record that comes
 * up to an hour late for a new day stays in the newer file, so that files never break the order.
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
	uint64_t accepted;		/* records that put took */
	uint64_t refused;		/* that it did not take */
	uint64_t delivered;		/* in written blocks */
	uint64_t dropped;		/* taken, but never written before close */
	uint64_t files;			/* that got their real names */
	uint64_t errors;		/* failed attempts to make, write or rename a file */
	int last_error;			/* the last of those, a negative errno; 0: none */
};

struct lake_writer_options {
	const char *lake;		/* created when missing; strings are copied */
	const char *host_id;
	const char *agent_id;
	uint64_t rotate_bytes;		/* 0: 128 MiB */
	int64_t rotate_us;		/* 0: one hour */
	int64_t retry_us;		/* pause after a failed write; 0: one second */
	bool has_owner;			/* files and folders that we make go to owner and group */
	uid_t owner;
	gid_t group;
	struct lake_writer_stats *final_stats;	/* NULL, or filled at close: the caller's */
	/*
	 * NULL, or told of each attempt to write a topic's block: 0 with the number of its records,
	 * which are the oldest that put took and that were not told yet; or a negative errno and no
	 * records, with the block kept. Also from within put and close.
	 */
	void (*on_block)(enum topic topic, uint64_t records, int error, void *arg);
	void *on_block_arg;
};

/*
 * Makes the lake, checks that it can be written, repairs what this host's dead agents left. 0, or a
 * negative errno with *ret untouched. repair may be NULL.
 */
int lake_writer_open(const struct lake_writer_options *o, struct lake_writer **ret,
    struct lake_repair *repair);
/* Delivers what is pending and frees w. 0, or the first negative errno. NULL is fine. */
int lake_writer_close(struct lake_writer *w);
/*
 * Takes a copy of one record: the put of a struct stream_output whose `to` is the writer. 0, or a negative
 * errno: it was not taken.
 */
int lake_writer_put(void *writer, const struct encoded_record *r);
/* To be called about once a second: writes what waits, closes what is old or large. now_us: wall clock. */
void lake_writer_tick(struct lake_writer *w, int64_t now_us);
/* Records that rest where a crash of this process cannot lose them. */
uint64_t lake_writer_delivered(const struct lake_writer *w);
void lake_writer_stats(const struct lake_writer *w, struct lake_writer_stats *ret);
/*
 * The records of topic that follow were encoded with this schema: they go to a file of their own.
 * text must stay as long as w; NULL: the one built in. 0, or a negative errno with all as it was.
 */
int lake_writer_set_schema(struct lake_writer *w, enum topic topic, const char *text);
/* Forgets what put took and no block has: how many records. For a caller that still has them. */
uint64_t lake_writer_discard(struct lake_writer *w, enum topic topic);

#endif
