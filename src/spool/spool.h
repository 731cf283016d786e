/*
 * SPDX-License-Identifier: Apache-2.0
 * spool: the disk between the stream and an output. A record is here before anybody hands it on,
 * and goes only once the output has said that it rests elsewhere.
 *
 *	<dir>/main-<number>.seg   <dir>/usage-<number>.seg    segments, oldest first
 *	<dir>/state                                           acknowledged up to where, next seq
 *	<dir>/schemas/<fingerprint>.avsc                      what the records were encoded with
 *
 * What is put and logged between two commits is one batch, and is written with one write(2): after a
 * crash it is there whole or not at all, with the place in the ring up to which it was made. The
 * owner moves the ring's consumer position only after spool_commit().
 *
 * Two queues: Usage records in one, all else in the other, so that giving up the one when the disk
 * is full never touches the other. One thread; fdatasync(2) is done by a thread of the spool's own.
 */
#ifndef SLUICE_SPOOL_SPOOL_H
#define SLUICE_SPOOL_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/record.h"

struct spool;

enum spool_queue {
	SPOOL_MAIN,
	SPOOL_USAGE,
	SPOOL_QUEUES,
};

struct spool_options {
	const char *dir;		/* made when missing, mode 0700; strings are copied */
	uint64_t max_bytes;		/* of all segments; 0: 1 GiB */
	uint64_t segment_bytes;		/* 0: 8 MiB, and never more than an eighth of max_bytes */
	uint64_t memory_bytes;		/* held in memory while the disk cannot be written; 0: 16 MiB */
	uint32_t sync_ms;		/* fdatasync at most this often; 0: after each commit */
	/*
	 * Hand out only what fdatasync has put on the disk. Without it, a power cut (not a crash of
	 * the process) within sync_ms can lose records that were delivered already, and later ones
	 * get their seq again. Costs up to sync_ms and a tick of latency.
	 */
	bool is_sync_first;
	const char *schemas[TOPIC_COUNT];	/* the .avsc text of each topic; the caller's, must outlive the spool */
};

/* Where in the kernel's ring a batch ends; ring_id is the map's id, unique within a boot. */
struct spool_place {
	char boot_id[37];
	uint32_t ring_id;
	uint64_t position;
};

/* What opening found. */
struct spool_recovery {
	bool is_fresh;			/* no spool was there */
	bool was_clean;			/* the last owner closed it */
	uint64_t records;		/* that wait for an output */
	uint64_t torn_bytes;		/* at the end of a queue's last segment, cut off */
	uint64_t corrupt_batches;	/* whose checksum is wrong; skipped */
	uint64_t corrupt_bytes;		/* passed over */
	unsigned unreadable;		/* segments put aside as <name>.bad */
};

/* One record, as it waits. Pointers are valid until the next call on the spool. */
struct spool_record {
	uint64_t id;			/* for spool_ack(): ascending within a queue */
	enum topic topic;
	bool is_again;			/* was handed out before: a redelivery */
	uint64_t schema;		/* fingerprint of the schema it was encoded with */
	uint64_t seq;
	int64_t time_us;
	const char *key;		/* "<host_id>:<run_id>", NUL-terminated */
	const void *data;		/* Avro binary, without framing */
	size_t len;
};

/*
 * Opens or makes a spool and recovers what is in it. Locked (flock) against a second owner: -EBUSY.
 * 0, or a negative errno with *ret untouched and a sentence that names the path in error.
 */
int spool_open(const struct spool_options *o, struct spool **ret, struct spool_recovery *recovery,
    char *error, size_t error_size);
/* Commits, syncs, marks it clean. What was not acknowledged stays for the next owner. NULL is fine. */
int spool_close(struct spool *s);

/* After opening, before anything is put: */
uint64_t spool_next_seq(const struct spool *s, enum topic topic);	/* where numbering goes on */
bool spool_place(const struct spool *s, struct spool_place *ret);	/* of the last whole batch */
/* Calls cb for the entries since the last checkpoint, oldest first. */
void spool_replay(struct spool *s, void (*cb)(const void *data, size_t len, void *arg), void *arg);

/*
 * Adds a record to the batch under way: the put of a struct stream_output whose `to` is the spool. 0;
 * -EMSGSIZE: too large for any batch; -ENOMEM.
 */
int spool_put(void *spool, const struct encoded_record *r);
/* Records that would survive the process: all but what is in memory for want of a disk. */
uint64_t spool_delivered(const struct spool *s);

/* Adds an entry to the batch: the owner's state, for spool_replay(). Opaque here. 0 or -ENOMEM. */
int spool_put_wal(struct spool *s, const void *data, size_t len);
/*
 * True when the next batch should begin with the whole state: the segment has grown, or a new one
 * was begun. Then: spool_checkpoint_begin(), an entry for each thing, spool_commit(). Entries before it
 * are forgotten, with the batch that replaces them safely written.
 */
bool spool_wants_checkpoint(const struct spool *s);
void spool_checkpoint_begin(struct spool *s);
/*
 * Writes the batch. next_seq of each topic is stored with it, also where no record was put. place
 * may be NULL: no ring is behind it. 0; or a negative errno: the disk did not take it. The batch is
 * then kept in memory (bounded, oldest Usage dropped first, counted) and still reaches the output.
 */
int spool_commit(struct spool *s, const struct spool_place *place, const uint64_t next_seq[TOPIC_COUNT]);

/*
 * About ten times a second: syncs, tries the disk again, removes what is acknowledged. The first
 * one starts the thread that syncs: until then the process may have but one.
 */
void spool_tick(struct spool *s, uint64_t now_ns);

/* To the output: the next record, main queue first; false: none. Records of failed reads are counted. */
bool spool_next(struct spool *s, struct spool_record *ret);
/* Another call of spool_next() will return what this one returned: the output did not take it. */
void spool_unget(struct spool *s);
/* The output has it for good, or it is given up and counted elsewhere. Any order. Unknown ids: ignored. */
void spool_ack(struct spool *s, uint64_t id);
/* Everything handed out and not acknowledged is handed out again, in order, with is_again set. */
void spool_rewind(struct spool *s);
/*
 * From now on only what is committed already is handed out; what comes later is for the next owner.
 * spool_is_drained(): all of that is acknowledged.
 */
void spool_hand_no_more(struct spool *s);
bool spool_is_drained(struct spool *s);
/* All that is committed by now. */
struct spool_mark {
	uint64_t number[SPOOL_QUEUES];		/* of the next record */
	uint64_t segment[SPOOL_QUEUES];		/* the last, and how long it is; 0: none */
	uint64_t size[SPOOL_QUEUES];
	uint64_t next_seq[TOPIC_COUNT];
};
void spool_mark(const struct spool *s, struct spool_mark *ret);
/*
 * Has the disk for certain what was committed up to the mark, or the output acknowledged it? If not, it is
 * synced as soon as it can be. Returns how many records wait for that, at least 1 until it is so.
 */
uint64_t spool_sync_up_to(struct spool *s, const struct spool_mark *m);
/* Is every record up to the mark acknowledged, or given up and counted? */
bool spool_is_done_up_to(struct spool *s, const struct spool_mark *m);
/* How many are not, by topic: to be told, exact while records are acknowledged in their order. */
void spool_waiting_up_to(const struct spool *s, const struct spool_mark *m, uint64_t ret[TOPIC_COUNT]);
/* Handed out and not yet acknowledged. */
uint64_t spool_in_flight(const struct spool *s);
/* Something waits that is not handed out; it may have to be synced first. */
bool spool_has_more(const struct spool *s);
/* The text of a schema by its fingerprint, also of older versions; NULL unknown. The spool's. */
const char *spool_schema(struct spool *s, uint64_t fingerprint);

enum spool_drop {
	SPOOL_DROP_FULL,	/* over max_bytes: the oldest went */
	SPOOL_DROP_MEMORY,	/* the disk took nothing and memory is full */
	SPOOL_DROP_CORRUPT,	/* read back and wrong */
	SPOOL_DROPS,
};
const char *spool_drop_name(enum spool_drop reason);	/* "spool_full" ... */

struct spool_stats {
	uint64_t records;		/* that wait, handed out or not */
	uint64_t bytes;			/* that their segments take up, on disk or in memory */
	uint64_t memory_bytes;		/* of those, in memory for want of a disk */
	int64_t oldest_us;		/* time of the oldest that waits; 0: none */
	uint64_t put;			/* since opening */
	uint64_t acknowledged;
	uint64_t handed_again;
	uint64_t dropped[TOPIC_COUNT][SPOOL_DROPS];
	uint64_t commits;
	uint64_t syncs;
	uint64_t write_errors;		/* failed writes */
	int last_error;			/* a negative errno while the disk is not taking; 0: it is */
};
void spool_stats(const struct spool *s, struct spool_stats *ret);

#endif
