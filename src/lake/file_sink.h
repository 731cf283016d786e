/*
 * SPDX-License-Identifier: Apache-2.0
 * file_sink: the lake as a folder of Avro object container files.
 *
 *	<lake>/<topic>/date=YYYY-MM-DD/host=<host_id>/<agent_id>-<first seq>.avro
 *
 * While a file is open its name has a dot in front and .part behind, so that readers pass over it,
 * and its writer holds a write lock (fcntl, of the open file description) on it. It gets its real
 * name once it is whole on disk. The date is that of the records' time, in UTC; a record that comes
 * up to an hour late for a new day stays in the newer file, so that files never break the order.
 */
#ifndef SLUICE_LAKE_FILE_SINK_H
#define SLUICE_LAKE_FILE_SINK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "stream/sink.h"

struct file_sink_stats {
	uint64_t accepted;		/* records that put took */
	uint64_t refused;		/* that it did not take */
	uint64_t delivered;		/* in written blocks */
	uint64_t dropped;		/* taken, but never written before close */
	uint64_t files;			/* that got their real names */
	uint64_t errors;		/* failed attempts to make, write or rename a file */
	int last_error;			/* the last of those, a negative errno; 0: none */
};

struct file_sink_options {
	const char *lake;		/* created when missing; strings are copied */
	const char *host_id;
	const char *agent_id;
	uint64_t rotate_bytes;		/* 0: 128 MiB */
	int64_t rotate_us;		/* 0: one hour */
	int64_t retry_us;		/* pause after a failed write; 0: one second */
	bool has_owner;			/* files and folders that we make go to owner and group */
	uid_t owner;
	gid_t group;
	struct file_sink_stats *final_stats;	/* NULL, or filled at close: the caller's */
	/*
	 * NULL, or told of each attempt to write a topic's block: 0 with the number of its records,
	 * which are the oldest that put took and that were not told yet; or a negative errno and no
	 * records, with the block kept. Also from within put and close.
	 */
	void (*on_block)(enum topic topic, uint64_t records, int error, void *arg);
	void *on_block_arg;
};

/* What was done about files that earlier agents of this host left open. */
struct file_sink_repair {
	unsigned files;			/* repaired, now under their real names */
	unsigned empty;			/* removed: not one whole block */
	unsigned live;			/* left alone: their writer is alive */
	unsigned failed;		/* left alone: unreadable, foreign, or no permission */
	uint64_t records;		/* kept */
	uint64_t torn_bytes;		/* cut off, or removed */
	int error;			/* of the first that failed, a negative errno */
	char failed_path[256];		/* the first that failed, cut if longer */
};

/*
 * Makes the lake, checks that it can be written, repairs what this host's dead agents left. 0, or a
 * negative errno with *ret untouched. Close with (*ret)->ops->close(). repair may be NULL.
 */
int file_sink_open(const struct file_sink_options *o, struct sink **ret,
    struct file_sink_repair *repair);
void file_sink_stats(const struct sink *s, struct file_sink_stats *ret);
/*
 * The records of topic that follow were encoded with this schema: they go to a file of their own.
 * text must stay as long as s; NULL: the one built in. 0, or a negative errno with all as it was.
 */
int file_sink_set_schema(struct sink *s, enum topic topic, const char *text);
/* Forgets what put took and no block has: how many records. For a caller that still has them. */
uint64_t file_sink_discard(struct sink *s, enum topic topic);

/* The parts of file_sink_open() that stand alone. */

/* Repairs the files that dead writers left in the folders of host_id. 0 or a negative errno. */
int file_sink_repair_lake(const char *lake, const char *host_id, struct file_sink_repair *ret);
/* Is somebody writing the file behind fd? Takes no lock itself. */
bool file_sink_is_live(int fd);

#endif
