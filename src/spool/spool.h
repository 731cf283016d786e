/*
 * SPDX-License-Identifier: Apache-2.0
 * spool: records on disk between the stream and an output. A record is written here before it is handed to the
 * output, and is removed only after the output has acknowledged it.
 *
 *	<dir>/main-<number>.seg   <dir>/usage-<number>.seg    segments, oldest first
 *	<dir>/unknown-<segment>.seg                             records of topics that this version does not know
 *	<dir>/state                                           acknowledged up to where, next seq
 *	<dir>/schemas/<fingerprint>.avsc                      schemas that the records were encoded with
 *
 * Records and write-ahead log entries that are put between two commits form one batch, which is written at once, with
 * a checksum: after a crash it is there whole or not at all, together with the ring offset up to which it was made. The
 * caller moves the ring's consumer position only after spool_commit().
 *
 * There are two queues: one for Usage records, one for all others, so that dropping Usage records when the disk
 * is full never affects the others. Records of a topic are handed out in the order in which they were put; a topic that
 * the output does not take can be held back while the others go on. The spool is used from one thread; a thread of its
 * own calls fdatasync(2).
 */
#ifndef SLUICE_SPOOL_SPOOL_H
#define SLUICE_SPOOL_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/record.h"

struct disk;
struct spool;

enum spool_queue {
	SPOOL_MAIN,
	SPOOL_USAGE,
	SPOOL_QUEUES,
};

struct spool_options {
	const char *dir;		/* created if missing, mode 0700; strings are copied */
	uint64_t max_bytes;		/* limit for all segments; 0: 1 GiB */
	uint64_t segment_bytes;		/* 0: 8 MiB; never more than an eighth of max_bytes */
	uint64_t memory_bytes;		/* limit for batches in memory while the disk cannot be written; 0: 16 MiB */
	uint32_t sync_ms;		/* fdatasync at most this often; 0: after each commit */
	/*
	 * Hand out only records that fdatasync has put on the disk. Without it, a power cut (not a crash of the
	 * process) within sync_ms can lose records that were delivered already, and later ones get their seq
	 * again. Costs up to sync_ms and the time that the disk needs.
	 */
	bool is_sync_first;
	/* Called on the syncing thread when a sync has ended: spool_sync() hands its records out. NULL: none. */
	void (*on_synced)(void *arg);
	void *on_synced_arg;
	uint32_t patience_ms;		/* of the disk, see base/disk.h; 0: a call takes as long as it takes */
	uint64_t free_min;		/* bytes of the file system that stay free, see base/space.h; 0: none */
	const char *schemas[TOPIC_COUNT];	/* .avsc text of each topic; the caller's, must outlive the spool */
};

/* Offset in the kernel's ring where a batch ends; ring_id is the map's id, unique within a boot. */
struct ring_offset {
	char boot_id[37];
	uint32_t ring_id;
	uint64_t position;
};

/* Result of opening a spool. */
struct spool_recovery {
	bool is_fresh;			/* no spool was there */
	bool was_clean;			/* the previous owner closed it, since the host was started */
	uint64_t records;		/* waiting for an output */
	uint64_t torn_bytes;		/* cut off the end of a queue's last segment */
	uint64_t corrupt_batches;	/* skipped because their checksum is wrong */
	uint64_t corrupt_bytes;		/* skipped because they could not be read */
	unsigned unreadable;		/* segments renamed to <name>.bad */
	uint64_t unknown;		/* records of unknown topics that are set aside, see struct spool_unknown */
};

/* A record that waits in the spool. Pointers are valid until the next call on the spool. */
struct spool_record {
	uint64_t id;			/* for spool_ack(): ascending within a topic */
	enum topic topic;
	bool is_again;			/* a redelivery: it was handed out before */
	uint64_t schema;		/* fingerprint of the schema it was encoded with */
	uint64_t seq;
	int64_t time_us;
	struct opt_u64 user;		/* whose record it is; unknown: root's, or no user's */
	const char *key;		/* "<host_id>:<run_id>", NUL-terminated */
	const void *data;		/* Avro binary, without framing */
	size_t len;
};

/*
 * Opens or creates a spool and recovers its contents. The directory is locked (flock): -EBUSY if another
 * process has it open. Returns 0, or a negative errno with *ret untouched and a sentence that names the path in
 * error.
 */
int spool_open(const struct spool_options *o, struct spool **ret, struct spool_recovery *recovery,
    char *error, size_t error_size);
/*
 * Commits, syncs, marks the spool clean and frees it. Records that are not acknowledged stay for the next
 * owner. NULL is fine.
 */
int spool_close(struct spool *s);

/* Returns the seq of the topic's next record. To be called after opening, before anything is put. */
uint64_t spool_next_seq(const struct spool *s, enum topic topic);
/* Returns the ring offset of the last whole batch; false: none. To be called after opening. */
bool spool_ring_offset(const struct spool *s, struct ring_offset *ret);
/*
 * Returns whether an owner before had batches in memory only, of which records may have been delivered: they are gone,
 * and with them entries of the write-ahead log. So it is for each next owner, until one has called the function below.
 */
bool spool_lacks_batches(const struct spool *s);
/*
 * Sets what spool_lacks_batches() returns to the next owner in this boot: false, once all that depends on the missing
 * batches is committed. It stays true while users' shares keep entries out (share.c). 0, or a negative errno: it is
 * written later.
 */
int spool_set_lacking(struct spool *s, bool is_lacking);
/* Returns whether users' shares keep entries out of the write-ahead log, up to the next checkpoint. */
bool spool_is_log_cut(const struct spool *s);
/*
 * Returns whether entries of the write-ahead log, or its checkpoint, were dropped or are in a folder that was replaced:
 * a batch is then not to reach the disk before one that has a checkpoint.
 */
bool spool_is_log_lost(const struct spool *s);
/* Calls cb for the write-ahead log entries since the last checkpoint, oldest first. To be called after opening. */
void spool_replay(struct spool *s, void (*cb)(const void *data, size_t len, void *arg), void *arg);

/*
 * Adds a record to the current batch, or counts it as dropped, if the spool is almost full and its user has its share.
 * spool is a struct spool; the function has the type of a stream output's put. Returns 0; -EMSGSIZE: too large for any
 * batch; -ENOMEM.
 */
int spool_put(void *spool, const struct encoded_record *r);
/*
 * Adds a record that was in this spool, or in one before it, to the current batch: with its own seq, time and schema,
 * which spool_schema() must know. Returns 0; -EAGAIN: the batch has to be committed first, because its records have
 * another schema or leave no room; -ENOKEY: the schema is unknown; -EMSGSIZE: too large for any batch; -ENOMEM. The
 * caller commits the batch before it calls spool_put() again.
 */
int spool_put_again(struct spool *s, const struct spool_record *r);
/*
 * Returns how many records would survive the process: all but those in memory because the disk cannot be
 * written.
 */
uint64_t spool_delivered(const struct spool *s);

/*
 * Adds a write-ahead log entry to the current batch; spool_replay() returns it, uninterpreted. 0 or -ENOMEM. While the
 * spool is almost full, and users' records are not put, the entry is not either (share.c).
 */
int spool_put_wal(struct spool *s, const void *data, size_t len);
/*
 * Returns whether the next batch should begin with the whole state, because the log has grown or a new segment
 * was begun. The caller then calls spool_checkpoint_begin(), puts an entry for each object and calls
 * spool_commit(). Entries before the checkpoint are dropped once that batch is safely written.
 */
bool spool_wants_checkpoint(const struct spool *s);
/*
 * Begins a checkpoint in the current batch: entries before it are not replayed. All entries from here to
 * spool_commit() belong to it. One that becomes too large is abandoned: its entries are taken out of the batch, those
 * that follow are not taken, without an error, and the last whole checkpoint is replayed, with the entries since then.
 * The next one is wanted only after four times as many bytes, or when the disk can be written again.
 */
void spool_checkpoint_begin(struct spool *s);
/*
 * Writes the current batch. next_seq of each topic is stored with it, even if no record was put. ring_offset may be
 * NULL if there is no ring. Returns 0, or a negative errno if the disk could not be written: the batch is then
 * kept in memory (bounded, oldest Usage dropped first, counted) and still reaches the output.
 */
int spool_commit(struct spool *s, const struct ring_offset *ring_offset, const uint64_t next_seq[TOPIC_COUNT]);

/*
 * Processes a sync that has ended, and requests the next one for what was committed, if sync_ms have passed since the
 * last request. Does nothing before the first spool_tick().
 */
void spool_sync(struct spool *s, uint64_t now_ns);
/*
 * Syncs, retries a failed disk and removes acknowledged segments. To be called several times a second. The
 * first call starts the thread that syncs: until then the process may have only one.
 */
void spool_tick(struct spool *s, uint64_t now_ns);

/*
 * Returns the next record for the output, main queue first; false: none. Unreadable records are skipped and
 * counted.
 */
bool spool_next(struct spool *s, struct spool_record *ret);
/*
 * Returns whether the last spool_next() ended because it had passed over as much as one call may: another one may
 * find a record at once.
 */
bool spool_is_interrupted(const struct spool *s);
/* Puts back the record that spool_next() returned last, if the output is full: the next call returns it again. */
void spool_unget(struct spool *s);
/*
 * Hands out no more records of a topic until spool_release(), because the output does not take them; those of the other
 * topics are handed out. The order within the topic stays.
 */
void spool_hold(struct spool *s, enum topic topic);
void spool_release(struct spool *s, enum topic topic);	/* does nothing if it is not held */
/*
 * Releases a record that was delivered, or given up and counted elsewhere, in any order. Unknown ids are
 * ignored.
 */
void spool_ack(struct spool *s, uint64_t id);
/*
 * Makes spool_next() return all records that were handed out and are not acknowledged once more, in order, with
 * is_again set.
 */
void spool_rewind(struct spool *s);
/* The same for the records of one topic. */
void spool_rewind_topic(struct spool *s, enum topic topic);
/* Stops handing out records that are committed from now on; they stay for the next owner. */
void spool_limit_to_committed(struct spool *s);
/* Returns whether all records before spool_limit_to_committed() are acknowledged, or given up and counted. */
bool spool_is_drained(struct spool *s);
/* The end of everything that was committed when spool_mark() was called. */
struct spool_mark {
	uint64_t number[SPOOL_QUEUES];		/* number of the next record */
	uint64_t segment[SPOOL_QUEUES];		/* last segment and its size; 0: none */
	uint64_t size[SPOOL_QUEUES];
	uint64_t next_seq[TOPIC_COUNT];
};
/* Returns the current mark. */
void spool_mark(const struct spool *s, struct spool_mark *ret);
/*
 * Returns how many records up to the mark are neither synced to the disk nor acknowledged, and requests a sync
 * for them. At least 1 until the last sync has succeeded.
 */
uint64_t spool_sync_up_to(struct spool *s, const struct spool_mark *m);
/* Returns whether each record up to the mark is acknowledged, or given up and counted. */
bool spool_is_done_up_to(struct spool *s, const struct spool_mark *m);
/*
 * Counts the records up to the mark that are not acknowledged, by topic. Exact as long as records are
 * acknowledged in order; meant for messages.
 */
void spool_waiting_up_to(const struct spool *s, const struct spool_mark *m, uint64_t ret[TOPIC_COUNT]);
/* Returns how many records are handed out and not yet acknowledged. */
uint64_t spool_in_flight(const struct spool *s);
/* Returns whether a record of a topic that is not held waits and is not handed out; it may have to be synced first. */
bool spool_has_more(const struct spool *s);
/*
 * Returns a schema's text by its fingerprint, also of older versions; owned by the spool. NULL and errno: ENOENT: it is
 * lost; another: it cannot be read now.
 */
const char *spool_schema(struct spool *s, uint64_t fingerprint);
/*
 * Returns the disk that calls on the spool's files go through, for another file on it; owned by the spool. NULL: there
 * is no patience, or no thread. May start that thread.
 */
struct disk *spool_disk(struct spool *s);

enum spool_drop {
	SPOOL_DROP_FULL,	/* more than max_bytes: the oldest was dropped */
	SPOOL_DROP_MEMORY,	/* the disk could not be written and memory is full */
	SPOOL_DROP_CORRUPT,	/* damaged when it was read back */
	SPOOL_DROP_SHARE,	/* not put: the spool was almost full, and its user had its share */
	SPOOL_DROPS,
};
const char *spool_drop_name(enum spool_drop reason);	/* "spool_full", ...; static */

/* Records of a topic that a later version wrote, and that a later version will hand out. */
struct spool_unknown {
	const char *topic;		/* owned by the spool */
	uint64_t records;		/* set aside on disk */
	uint64_t dropped;		/* since opening: for lack of room, or because they could not be written */
};

enum {
	SPOOL_UNKNOWN_TOPICS = 32,
};

struct spool_stats {
	uint64_t records;		/* waiting, handed out or not */
	uint64_t waiting[TOPIC_COUNT];	/* the same by topic */
	bool is_full[TOPIC_COUNT];	/* no more are handed out until the oldest one is acknowledged */
	uint64_t bytes;			/* size of the segments, on disk or in memory, and of what is set aside */
	uint64_t memory_bytes;		/* part of bytes that is in memory because the disk cannot be written */
	int64_t oldest_us;		/* time of the oldest waiting record; 0: none */
	uint64_t put;			/* since opening */
	uint64_t acknowledged;
	uint64_t handed_again;
	uint64_t dropped[TOPIC_COUNT][SPOOL_DROPS];
	struct spool_unknown unknown[SPOOL_UNKNOWN_TOPICS];
	size_t n_unknown;
	uint64_t commits;
	uint64_t syncs;
	uint64_t write_errors;		/* failed writes */
	uint64_t abandoned;		/* checkpoints that were too large for max_bytes or a batch */
	int last_error;			/* a negative errno while the disk cannot be written; 0: it can */
	uint64_t free_bytes;		/* of the file system; 0: not known */
	uint64_t floor_bytes;		/* of them those that stay free; 0: none, or not known */
	bool is_at_floor;		/* the files do not grow: records give way, or batches are in memory */
};
/* Adds the records that were dropped, since their users had their shares, to a list of n, as user_losses_add(). */
size_t spool_user_losses(const struct spool *s, struct user_loss list[USER_LOSSES], size_t n);
/* Fills in the figures as they are now. */
void spool_stats(const struct spool *s, struct spool_stats *ret);

#endif
