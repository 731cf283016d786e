/*
 * SPDX-License-Identifier: Apache-2.0
 * writer: writes the lake, a folder of Avro object container files (appender.h), in a thread of its own.
 *
 * The caller's loop only queues records, so that no disk, however slow or hung, stops it. The thread opens the lake and
 * does every write, sync, rename and unlink. All functions are called on one thread, the loop's, as are the callbacks.
 */
#ifndef SLUICE_LAKE_WRITER_H
#define SLUICE_LAKE_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lake/appender.h"
#include "lake/repair.h"
#include "model/record.h"

struct lake_writer;

struct lake_writer_stats {
	uint64_t accepted;		/* records taken by put */
	uint64_t refused;		/* records refused by put */
	uint64_t written;		/* in blocks of a file: they outlive the process */
	uint64_t synced;		/* on the disk: they outlive the host */
	uint64_t dropped;		/* taken, but neither written nor given back */
	uint64_t files;			/* renamed to their final names */
	uint64_t errors;		/* failed attempts to create, write, sync or rename a file */
	int last_error;			/* a negative errno; 0: none */
};

/* What the thread is at. */
struct lake_writer_state {
	bool is_open;			/* the lake; until it is, records are only queued */
	int error;			/* of its last attempt: a negative errno; 0: it succeeded */
	const char *waits_for;		/* the call to the disk that it is in, as a static word; NULL: none */
	uint64_t waits_since_ns;	/* CLOCK_MONOTONIC, with waits_for */
	uint64_t queued_bytes;		/* put and not taken by the thread */
};

struct lake_writer_options {
	struct lake_appender_options appender;	/* syncs_folders and call are the writer's */
	uint64_t queue_bytes;		/* limit of the records that are not in a block yet; 0: 4 MiB */
	/*
	 * How long put waits for room in a full queue, once: a caller that would have to drop the record gives a slow
	 * disk that time. After it has passed in vain, put does not wait again until there was room. 0: not at all.
	 */
	uint32_t put_wait_ms;
	/*
	 * How long lake_writer_open() waits for the disk. After that the thread continues alone; if it cannot open the
	 * lake, the state has the error, and each tick tries again. 0: no thread opens it, and the caller waits.
	 */
	uint32_t open_wait_ms;
	/*
	 * A child process that makes the lake's folder; the writer opens the lake once it has ended. It exits with 0,
	 * or with an errno, with which the lake is never opened. 0: none. With open_wait_ms only.
	 */
	pid_t maker;
	struct lake_writer_stats *final_stats;	/* the caller's, filled at close; NULL: not wanted */
	/*
	 * Called by lake_writer_report() and close, the records of each lake_series() in the order of put: so many of
	 * those that were not reported yet are on the disk, or are given back, because they were recalled or a sync
	 * failed. The caller of a writer with these callbacks keeps each record until then, and may put it again. Files
	 * are then synced at each tick; without them only as they are closed, and what a failed sync leaves out is
	 * dropped.
	 */
	void (*on_synced)(unsigned series, uint64_t records, void *arg);
	void (*on_given_back)(unsigned series, uint64_t records, void *arg);
	int64_t repair_us;		/* until files that are not repaired yet are looked at again; 0: one minute */
	/*
	 * Called when files of this host's dead agents are repaired, which comes first, and when files that this
	 * writer had to leave are. NULL: not wanted.
	 */
	void (*on_repaired)(const struct lake_repair *repair, void *arg);
	void *arg;			/* of the callbacks */
};

/*
 * Creates the lake if missing, and checks that it can be written. Without open_wait_ms the thread starts with the first
 * record that needs it. 0, or a negative errno with *ret untouched.
 */
int lake_writer_open(const struct lake_writer_options *o, struct lake_writer **ret);
/*
 * Writes pending records, syncs and closes all files, reports, and frees w. Waits for that at most timeout_ms,
 * negative: without limit. 0, or the first negative errno. -ETIMEDOUT: the disk hangs; what is not reported may be on
 * the disk or not, and memory and thread are left until the process ends. NULL is fine.
 */
int lake_writer_close(struct lake_writer *w, int timeout_ms);
/*
 * Queues a copy of one record. writer is a struct lake_writer; the function has the type of a stream output's put.
 * 0; -EMSGSIZE: too large for a block; -EAGAIN: the queue is full, or records are being given back; or another
 * negative errno.
 */
int lake_writer_put(void *writer, const struct encoded_record *r);
/*
 * Has pending blocks written, and synced where that is reported; old or large files are closed. To be called about
 * once a second: one sync then serves all records of that second. Reports, too. now_us: wall clock.
 */
void lake_writer_tick(struct lake_writer *w, int64_t now_us);
/* Gives back what is not written, and waits for nothing: put returns -EAGAIN until all is reported. */
void lake_writer_recall(struct lake_writer *w);
/* Returns a file descriptor that is readable when lake_writer_report() is to be called; owned by the writer. */
int lake_writer_fd(const struct lake_writer *w);
/* Calls the callbacks for what the thread has done since the last call. */
void lake_writer_report(struct lake_writer *w);
/* Copies the counters since the writer was opened. */
void lake_writer_stats(struct lake_writer *w, struct lake_writer_stats *ret);
/* Returns whether a user has its share of the lake (share.h): its records are then to be put with is_over. */
bool lake_writer_is_over(struct lake_writer *w, const struct opt_u64 *user);
/* Fills in what the thread is at. */
void lake_writer_state(struct lake_writer *w, struct lake_writer_state *ret);
/* Copies what old files were removed, and the room of the disk. */
void lake_writer_retention(struct lake_writer *w, struct lake_retention_stats *ret);
/*
 * Sets the schema of the topic's following records, which are written to a new file. text is copied; NULL: the built-in
 * schema. 0 or -ENOMEM.
 */
int lake_writer_set_schema(struct lake_writer *w, enum topic topic, const char *text);

#endif
