/*
 * SPDX-License-Identifier: Apache-2.0
 * state: the spool's internal state, shared by the files of this folder only.
 *
 *	spool.c     the API: batches in, ticks, closing
 *	format.c    binary format of a segment
 *	segment.c   one segment: create, append, read, write to disk
 *	walk.c      iteration over its batches and entries, skipping damage
 *	queue.c     segments in their order, and the cursors in them
 *	recover.c   recovery of an earlier owner's files
 *	unknown.c   records of topics that only a later version knows
 *	disk.c      the directory, and recovery from a failed disk
 *	behind.c    a slow disk, which is written behind the loop
 *	marks.c     the state file
 *	sync.c      the thread that calls fdatasync(2)
 *	mark.c      progress of records up to a moment
 *	floor.c     how large the files may be before the disk is almost full
 *	share.c     whose records are not put while the spool is almost full
 *	lack.c      what the write-ahead log lacks, and whether the next owner knows
 *	room.c      removal of segments, and dropping of records
 *	read.c      records out
 *	aside.c     topics that are read behind the others of their queue
 *	flight.c    records of a topic handed out and not yet acknowledged
 *	schema.c    schema texts by fingerprint
 *
 * A segment is a file, or, while the disk cannot be written, the same bytes in memory; offsets do not change
 * when they are written to the file. Only the last segment of a queue is appended to.
 */
#ifndef SLUICE_SPOOL_STATE_H
#define SLUICE_SPOOL_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/bytes.h"
#include "base/space.h"
#include "model/losses.h"
#include "model/user_bytes.h"
#include "spool/format.h"
#include "spool/spool.h"

enum {
	SPOOL_READ_BYTES = 256 * 1024,
	SPOOL_FDS_KEPT = 64,		/* segments beyond these are opened only to be read */
	SPOOL_SKIPS = 128,		/* ranges that fit into the state file */
	SPOOL_SLOT = 4096,		/* size of one of its two slots */
	SPOOL_SCHEMA_MAX = 1 << 20,
	SPOOL_ID_BITS = 6,		/* of a record's id below its number: the queue and the topic */
};

#define SPOOL_UNKNOWN "unknown-"	/* begins the name of what is set aside of a segment */
#define SPOOL_RETRY_NS UINT64_C(1000000000)
#define SPOOL_READ_PATIENCE_NS UINT64_C(10000000000)
#define SPOOL_HANDED_AHEAD 8192
#define SPOOL_PASS_MAX INT64_C(4194304)	/* bytes that one call passes over at most */
#define SPOOL_FLIGHT_MAX 65536		/* records of a topic from the oldest unacknowledged one to the newest */

struct spool_segment {
	TAILQ_ENTRY(spool_segment) at;
	enum spool_queue	 queue;
	uint64_t	 number;
	int		 fd;			/* -1: not open */
	bool		 is_on_disk;
	bool		 is_dirty;		/* written since the last sync was requested */
	bool		 is_syncing;
	bool		 has_sync_failed;	/* its contents may never reach the disk; permanent */
	bool		 has_wrong_counts;	/* a head counts other records of a topic than its batch has */
	uint64_t	 syncing_to;		/* size when the sync was requested */
	uint64_t	 synced_to;
	bool		 is_sealed;		/* nothing is appended any more */
	struct bytes	 memory;		/* head and batches, while it is not on disk */
	uint64_t	 seqs_to;		/* in memory: the synced state file has the next seqs up to here */
	uint64_t	 seqs_syncing_to;
	uint64_t	 size;			/* length of the head and all whole batches */
	uint64_t	 start;			/* length of the head */
	uint64_t	 first;			/* number of its first record, if it has one */
	uint64_t	 waiting[TOPIC_COUNT];	/* records not acknowledged */
	bool		 has_wal;
	unsigned	 n_topics;
	enum topic	 topics[SPOOL_TOPICS_MAX];	/* maps topic indices of its entries; TOPIC_COUNT: unknown */
	uint64_t	 schemas[SPOOL_TOPICS_MAX];
};

TAILQ_HEAD(spool_segments, spool_segment);

/* A read window on a segment's file. Bytes that spool_read() returns are valid until the next call. */
struct spool_reader {
	uint8_t		*data;			/* owned */
	size_t		 cap;
	size_t		 len;
	struct spool_segment *seg;		/* source of data; NULL: none */
	uint64_t	 at;			/* offset of data in seg */
};

/*
 * An iterator over the entries of one segment that skips damage. Recovery, replay and the cursors all
 * use it, so that they agree on the contents.
 */
struct spool_walk {
	struct spool_segment *seg;		/* NULL: no segment */
	uint64_t	 at;			/* offset of the next byte */
	bool		 is_in_batch;
	uint64_t	 batch_at;		/* offset of the batch head */
	uint64_t	 batch_end;
	uint32_t	 entries;		/* left in the batch */
	uint64_t	 number;		/* number of the next record; never decreases */
	uint64_t	 number_end;		/* one past the batch's last record */
	uint64_t	 passed_at;		/* offset and length that the last spool_walk_batch() skipped */
	uint64_t	 passed;
};

struct spool_handed {
	uint64_t	 number;
	struct spool_segment *seg;		/* NULL: dropped while the output had it */
	int64_t		 time_us;
	uint32_t	 at;
	uint8_t		 topic;
	uint8_t		 flags;			/* enum spool_handed_flag */
};

enum spool_handed_flag {
	SPOOL_IS_OUT = 1,			/* handed to the output */
	SPOOL_IS_AGAIN = 2,			/* was handed out before */
	SPOOL_IS_DONE = 4,			/* acknowledged or given up */
};

/* A ring of a topic's records read for the output, by ascending number; indices count up from 0 and never wrap. */
struct spool_flight {
	struct spool_handed *ring;		/* owned; cap is 0 or a power of two */
	size_t		 cap;
	uint64_t	 head;
	uint64_t	 tail;
	uint64_t	 redo;			/* no record before this index waits to be handed out again */
	uint64_t	 n_out;
};

/* A position in a queue from which records are read for the output. */
struct spool_cursor {
	struct spool_reader reader;
	struct spool_walk walk;			/* at the next record to be read */
	bool		 has_passed_over;	/* damage was skipped in the cursor's segment */
	uint64_t	 failing_ns;		/* when its reads began to fail; 0: they succeed */
	bool		 is_failing;		/* no further attempt before the next tick */
};

/* Numbers from..from+count-1 were acknowledged out of order under an earlier owner. */
struct spool_skip {
	uint64_t	 from;
	uint64_t	 count;
};

struct spool_skips {
	struct spool_skip *list;		/* owned, ascending */
	size_t		 n;
};

/*
 * The records of one topic in a queue. They are read from the queue's cursor, or, while the topic is set aside, from a
 * cursor of its own, which is behind the queue's.
 */
struct spool_topic_state {
	struct spool_flight flight;
	uint64_t	 done_below;		/* its records below are acknowledged */
	struct spool_skips skips;
	bool		 is_aside;
	struct spool_cursor cursor;		/* with is_aside */
};

struct spool_queue_state {
	struct spool_segments segments;		/* oldest first */
	uint64_t	 next_segment;
	uint64_t	 next_number;
	bool		 has_limit;
	uint64_t	 limit;			/* with has_limit: records from this number on are not handed out */
	/* Current batch, with room for its head in front. */
	struct bytes	 batch;
	uint32_t	 entries;
	uint32_t	 records;
	uint32_t	 counts[TOPIC_COUNT];
	int64_t		 first_us;		/* time of the first record in the batch */
	uint64_t	 wal_bytes;		/* since the batch's checkpoint, if it has one */
	bool		 has_wal;
	bool		 has_checkpoint;
	/* What the batch was before its checkpoint, which is taken out again if it becomes too large. */
	struct spool_batch_state {
		size_t		len;
		uint32_t	entries;
		uint64_t	wal_bytes;
		bool		has_wal;
		bool		has_checkpoint;
	} before;
	/* Records to the output. */
	struct spool_cursor cursor;
	struct spool_topic_state topics[TOPIC_COUNT];
	unsigned	 n_aside;		/* topics that are set aside */
	unsigned	 next_aside;		/* the topic whose own cursor is read next */
	bool		 is_asides_turn;	/* own cursors and the queue's are read by turns */
	uint64_t	 done_below;		/* all numbers below are acknowledged */
	uint64_t	 again_below;		/* numbers below may have been handed out by an earlier owner */
	uint64_t	 handed_mark;		/* in the state file: numbers from here on were not handed out */
	struct spool_skips skips;		/* of all topics */
	int64_t		 oldest_us;		/* time of the oldest waiting record; 0: none waits */
};

struct spool_checkpoint {
	struct spool_segment *seg;		/* NULL: no checkpoint */
	uint64_t	 at;			/* offset of its batch */
};

/* A file of records that were set aside, of one segment. */
struct spool_unknown_file {
	enum spool_queue queue;			/* of the segment, and its number */
	uint64_t	 number;
	uint64_t	 head;			/* length of the head, which has the next seq of each topic */
	uint64_t	 size;
	uint64_t	 records[SPOOL_UNKNOWN_TOPICS];	/* by topic, as in struct spool */
};

struct spool_text {
	struct spool_text *next;
	uint64_t	 fingerprint;
	char		 text[];
};

struct spool_syncer;
struct spool_behind;

struct spool {
	char		*dir;			/* owned */
	int		 dir_fd;
	int		 state_fd;		/* -1: cannot be written now */
	uint64_t	 generation;		/* generation of the state file */
	bool		 is_state_moved;
	bool		 is_state_syncing;	/* the current round syncs the file, which is not written then */
	bool		 is_state_needed;	/* it alone may have the next seqs of a batch that was in memory */
	bool		 is_state_earlier;	/* that batch was in memory in an earlier boot */
	bool		 is_state_kept;		/* it alone has next seqs of topics that this version does not know */
	bool		 is_round_enough;	/* the current round syncs a main batch with all next seqs, too */
	uint64_t	 generation_syncing;	/* of the slot that the current round syncs */
	uint64_t	 generation_safe;	/* of a synced slot that is not overwritten; 0: none has to be kept */
	bool		 is_state_behind;	/* it lacks the next seqs of the last batch in memory */
	bool		 has_state_failed;	/* it could not be written or synced, while batches are in memory */
	uint64_t	 max_bytes;
	uint64_t	 segment_bytes;
	uint64_t	 free_min;		/* see base/space.h; 0: the disk may become full */
	uint64_t	 files_max;		/* bytes that files may have by the floor; UINT64_MAX: unknown */
	uint64_t	 floor_files;		/* the largest they were since they came to the floor */
	uint64_t	 free_bytes;		/* of the disk, as last seen, as are the next two */
	uint64_t	 floor_bytes;
	bool		 is_at_floor;
	uint64_t	 memory_max;
	uint64_t	 batch_max;
	uint64_t	 sync_ns;
	bool		 has_new_names;		/* files were created in the directory since its last sync */
	bool		 is_sync_first;		/* records are synced before they are handed out */
	char		 boot_id[37];
	const char	*schemas[TOPIC_COUNT];	/* the caller's */
	uint64_t	 fingerprints[TOPIC_COUNT];
	uint64_t	 batch_schemas[TOPIC_COUNT];	/* of the current batch; others for old records */
	struct spool_text *texts;		/* owned: older versions, loaded when requested */
	struct spool_queue_state queues[SPOOL_QUEUES];
	uint64_t	 next_seq[TOPIC_COUNT];
	uint64_t	 committed_seq[TOPIC_COUNT];	/* next_seq of the last batch; heads have no higher one */
	uint64_t	 found_seq[TOPIC_COUNT];	/* during recovery: next_seq of the last main batch */
	bool		 is_found[TOPIC_COUNT];	/* during recovery: its version knows the topic */
	bool		 is_lacking;		/* see spool_lacks_batches() */
	bool		 has_seq_moved;		/* since the last batch */
	struct spool_other_seq {
		char		name[SPOOL_NAME_SIZE];
		uint64_t	next_seq;
		uint64_t	kept_seq;	/* during recovery: what files of what is set aside have of next_seq */
		uint64_t	done_below;	/* its records below are acknowledged */
	} other_seqs[SPOOL_TOPICS_MAX - TOPIC_COUNT];	/* of topics of other versions, kept in the state file */
	size_t		 n_other_seqs;
	bool		 has_usage_committed;	/* during recovery: the last main batch was read */
	uint64_t	 usage_committed;	/* during recovery: next seq of Usage in the last main batch */
	bool		 was_rebooted;		/* during recovery: since the state file was written; it is gone, too */
	bool		 has_ring_offset;
	struct ring_offset ring_offset;
	struct spool_checkpoint checkpoint;	/* the latest */
	struct spool_checkpoint safe;		/* the latest that is synced to the disk */
	uint64_t	 checkpoint_bytes;	/* size of the latest */
	uint64_t	 since_checkpoint;	/* bytes of main batches */
	uint64_t	 wal_bytes_since;		/* bytes of write-ahead log entries */
	bool		 needs_checkpoint;
	bool		 is_log_lost;		/* entries of the log since the latest, or that one, are gone */
	bool		 is_checkpointing;	/* the current batch has a checkpoint */
	bool		 is_abandoning;		/* the entries of the batch's checkpoint are not taken */
	uint64_t	 abandoned_bytes;	/* size at which the last checkpoint was abandoned; 0: it was written */
	enum spool_queue	 last_queue;		/* queue of the record that spool_next() returned last */
	enum topic	 last_topic;
	uint64_t	 last_index;
	bool		 has_last;
	bool		 was_ungot;		/* the next record is read from last_queue */
	bool		 is_held[TOPIC_COUNT];	/* handed out only after spool_release() */
	int64_t		 pass_left;		/* bytes that the current call may still pass over */
	uint64_t	 bytes;			/* size of all segments */
	struct spool_unknown_file *unknown;		/* owned: oldest first */
	size_t		 n_unknown;
	uint64_t	 unknown_bytes;
	char		 unknown_topics[SPOOL_UNKNOWN_TOPICS][SPOOL_NAME_SIZE];
	uint64_t	 unknown_dropped[SPOOL_UNKNOWN_TOPICS];
	size_t		 n_unknown_topics;
	uint64_t	 memory_bytes;
	uint64_t	 waiting[TOPIC_COUNT];	/* records */
	uint64_t	 committed;		/* records since opening */
	unsigned	 open_fds;		/* open segments */
	int		 failed;		/* a negative errno while the disk cannot be written; 0: it can */
	int		 sync_failed;		/* result of the last fdatasync: 0 or a negative errno */
	uint64_t	 now_ns;		/* time of the last tick */
	uint64_t	 retry_ns;
	uint64_t	 synced_ns;
	uint64_t	 checked_ns;		/* when the directory was last checked */
	struct spool_syncer *syncer;		/* owned; NULL: no thread */
	struct disk	*disk;			/* owned; NULL: calls take as long as they take */
	bool		 is_behind;		/* it failed because it was slow: it is written by rounds of behind.c */
	struct spool_behind *behind;		/* the round in progress; NULL: none */
	uint32_t	 patience_ms;		/* of disk */
	void		(*on_synced)(void *arg);	/* the caller's; NULL: none */
	void		*on_synced_arg;
	struct spool_stats stats;		/* counters; spool_stats() fills in the rest */
	struct user_bytes shares;		/* in the segments and batches */
	bool		 has_shares;		/* some users have bytes in them */
	struct user_losses user_losses;		/* records above their user's share */
	bool		 is_log_cut;		/* entries are not taken, up to the next checkpoint; see lack.c */
	bool		 is_lacking_by_cut;	/* is_lacking is over with it */
};

/* segment.c */

/* Returns a new segment without file or contents, not yet in its queue; the caller's. NULL: no memory. */
struct spool_segment *spool_segment_new(struct spool *s, enum spool_queue queue, uint64_t number);
/* Closes the segment's file, which stays on disk, and frees seg. */
void spool_segment_free(struct spool *s, struct spool_segment *seg);
/* Writes the name of a segment's file. */
void spool_file_name(enum spool_queue queue, uint64_t number, char name[64]);
void spool_segment_name(const struct spool_segment *seg, char name[64]);
/* Removes the segment's file, which stays open. */
void spool_segment_unlink(const struct spool *s, const struct spool_segment *seg);
/* Returns the oldest segment that a replay needs; NULL: none. */
struct spool_segment *spool_needed_from(const struct spool *s);
/* Opens the segment's file unless it is open. 0 or a negative errno. */
int spool_segment_open(struct spool *s, struct spool_segment *seg, int flags);
/* Closes the segment's file descriptor if many are open and seg does not need it soon. */
void spool_segment_close_idle(struct spool *s, struct spool_segment *seg);
/*
 * Writes one batch to the end of seg, after the segment's head if it is the first. 0, or a negative errno with
 * nothing of the batch left in the file.
 */
int spool_segment_write(struct spool *s, struct spool_segment *seg, const void *batch, size_t len);
/* Appends one batch to a segment in memory, as spool_segment_write() does on disk. 0 or -ENOMEM. */
int spool_segment_write_memory(struct spool *s, struct spool_segment *seg, const void *batch, size_t len);
/* Writes a segment that is in memory to its file. 0, or a negative errno with seg unchanged. */
int spool_segment_write_file(struct spool *s, struct spool_segment *seg);
/* Takes over the file that all of a segment in memory was written to. fd: of it; becomes seg's. */
void spool_segment_written(struct spool *s, struct spool_segment *seg, int fd);
/*
 * Reads len bytes at offset at. *ret is valid until the next call. 0; -ENODATA: past the end; or another
 * negative errno.
 */
int spool_read(struct spool *s, struct spool_reader *r, struct spool_segment *seg, uint64_t at,
    size_t len, const uint8_t **ret);
/* Frees the window and leaves r empty; it may be used again. */
void spool_reader_done(struct spool_reader *r);

/* walk.c */

/* Starts a walk at offset at of seg; number: of the first record there, if seg has no higher one. */
void spool_walk_start(struct spool_walk *w, struct spool_segment *seg, uint64_t at, uint64_t number);
/* Advances to the next batch. 1; 0: end of the segment; or a negative errno: reading failed. */
int spool_walk_batch(struct spool *s, struct spool_reader *r, struct spool_walk *w,
    struct spool_batch_head *ret);
/*
 * Reads the entry at w without advancing. 1; 0: end of the batch; -EBADMSG: the rest of the batch is damaged;
 * another negative errno: reading failed.
 */
int spool_walk_entry(struct spool *s, struct spool_reader *r, const struct spool_walk *w,
    struct spool_entry *ret);
/* Advances past the entry e that spool_walk_entry() read. */
void spool_walk_on(struct spool_walk *w, const struct spool_entry *e);
/* Skips the rest of the batch. */
void spool_walk_leave(struct spool_walk *w);
/* Skips a damaged entry if it is the only one of its batch. False: w is unchanged. */
bool spool_walk_over(struct spool *s, struct spool_reader *r, struct spool_walk *w);
/* Reads the entry at an offset that a walk has visited. 0, -EBADMSG or another negative errno. */
int spool_read_entry(struct spool *s, struct spool_reader *r, struct spool_segment *seg, uint64_t at,
    uint64_t end, struct spool_entry *ret);

/* queue.c */

/* Appends seg to its queue. */
void spool_queue_append(struct spool *s, struct spool_segment *seg);
/* Moves a cursor to the segment after its own. */
void spool_cursor_leave(struct spool_cursor *cursor);
/* Moves all cursors that are in seg to the segment after it. */
void spool_cursors_leave(struct spool *s, struct spool_segment *seg);
/* Returns a number that no record which the topic's cursor has still to read is below. */
uint64_t spool_reached(const struct spool_queue_state *q, enum topic topic);
/* Returns a number above those of all records handed out so far, also by earlier owners. */
uint64_t spool_handed_below(const struct spool *s, enum spool_queue queue);
/* Returns a number such that all records of the topic below it are acknowledged. */
uint64_t spool_topic_done_below(struct spool *s, enum spool_queue queue, enum topic topic);
/* Returns a number such that all records below it are acknowledged. */
uint64_t spool_done_below(struct spool *s, enum spool_queue queue);
/* Returns whether a record was acknowledged out of order under an earlier owner. */
bool spool_is_skipped(const struct spool_queue_state *q, enum topic topic, uint64_t number);

/* recover.c */

/* Reads the files of an earlier owner into s. 0 or a negative errno. */
int spool_recover(struct spool *s, struct spool_recovery *recovery);

/* unknown.c */

struct spool_unknown_build;
/* Begins to collect what is to be set aside of a segment. 0, or a negative errno with *ret untouched. */
int spool_unknown_begin(struct spool *s, struct spool_segment *seg, struct spool_unknown_build **ret);
/* Collects the next seq of each topic that a batch has. */
void spool_unknown_batch(struct spool_unknown_build *b, const struct spool_batch_head *h);
/* Collects a record of an unknown topic, unless it is set aside or was acknowledged already. 0 or -ENOMEM. */
int spool_unknown_put(struct spool_unknown_build *b, uint64_t number, const struct spool_entry *e);
/*
 * Writes what was collected, behind what an earlier owner has set aside of the segment, and frees b; NULL is fine.
 * Without a record only the last segment of the main queue has a file, for its next seqs. What cannot be written is
 * counted as dropped.
 */
void spool_unknown_end(struct spool *s, struct spool_unknown_build *b, bool is_last);
/* Frees b and writes nothing; NULL is fine. */
void spool_unknown_forget(struct spool_unknown_build *b);
/*
 * Makes segments, from next_segment on, of what was set aside by a version that did not know a topic which this one
 * knows. To be called once the queue's segments are read. 0 or a negative errno.
 */
int spool_unknown_return(struct spool *s, enum spool_queue queue, struct spool_recovery *recovery);
/*
 * Makes a file of the next seqs of topics that this version does not know, if only the state file has them: of batches
 * that were in memory. To be called once what is set aside is counted.
 */
void spool_unknown_keep_seqs(struct spool *s);
/* Counts what is set aside of a queue, once that is read. 0 or a negative errno. */
int spool_unknown_count(struct spool *s, enum spool_queue queue, struct spool_recovery *recovery);
/* Drops the oldest records that are set aside. False: there are none. */
bool spool_unknown_drop(struct spool *s);
/* Fills in the counts of each topic. */
void spool_unknown_stats(const struct spool *s, struct spool_stats *ret);

/* disk.c */

/* Creates, opens and locks the directory. 0, or a negative errno with a sentence in error. */
int spool_dir_open(struct spool *s, char *error, size_t error_size);
/* Counts a failed write, schedules a retry and returns r. */
int spool_disk_failed(struct spool *s, int r);
/* Returns whether s->dir still names the directory that is open. */
int spool_dir_is_there(const struct spool *s);
/* Resumes writing to the disk: directory, state file, schemas, segments in memory. 0 or a negative errno. */
int spool_disk_retry(struct spool *s);

/* behind.c */

/*
 * Takes over what the last round has written. 0: the disk is no longer slow. -ETIMEDOUT: the next round has begun, or
 * the last one has not ended. Another negative errno: writing failed.
 */
int spool_behind_work(struct spool *s);
/* Has everything written, for which it waits at most so long. */
void spool_behind_close(struct spool *s, uint32_t timeout_ms);
/* Leaves a round that has not ended to the thread. */
void spool_behind_forget(struct spool *s);

/* marks.c */

struct spool_marks {
	bool is_there;
	bool is_clean;
	bool is_needed;			/* batches were in memory only */
	bool is_earlier;		/* that was in a boot before that of boot_id */
	bool is_lacking;		/* an owner before that one had batches in memory only */
	char boot_id[37];
	uint64_t next_seq[TOPIC_COUNT];
};
/* Reads the newer intact slot of the state file into s. */
void spool_marks_read(struct spool *s, struct spool_marks *ret);
/* Opens or creates the state file. 0 or a negative errno. */
int spool_marks_open(struct spool *s);
/*
 * Writes one slot. 0, or a negative errno with s->is_state_moved still set; it is set, too, after a 0 while the file is
 * synced: then the slot is written after that.
 */
int spool_marks_write(struct spool *s, bool is_clean);
/* Packs the next slot, and where it belongs in the file. False: it cannot be written while the file is synced. */
bool spool_marks_pack(struct spool *s, uint8_t slot[SPOOL_SLOT], uint64_t *ret_at);
/* Writes the next seqs of batches in memory. */
void spool_marks_cover(struct spool *s);

/* sync.c */

/* Starts the thread that syncs. 0 or a negative errno. */
int spool_sync_start(struct spool *s);
/* Ends the thread and waits for a sync in progress. */
void spool_sync_stop(struct spool *s);
/* Processes a sync that has ended, and requests the next one if it is due. */
void spool_sync_poll(struct spool *s, bool is_due);
/* Stops the thread and syncs everything here. 0 or the first negative errno. */
int spool_sync_all(struct spool *s);

/* share.c */

/* Returns whether a record's user has its share, so that it is not to be put. */
bool spool_share_is_over(const struct spool *s, const struct encoded_record *r);
/* Counts a record of a user that is not put for that. */
void spool_share_refuse(struct spool *s, const struct encoded_record *r);
/* Returns whether the whole state is to be put, although entries of the log are not: it makes room, or has it. */
bool spool_share_takes_state(const struct spool *s);
/* Counts the bytes of a record that was put. */
void spool_share_take(struct spool *s, const struct encoded_record *r, uint64_t bytes);
/* Gives back those of a segment or batch that is about to be removed. */
void spool_share_give_back(struct spool *s, uint64_t bytes);

/* lack.c */

/* Has entries of the log left out, once the state file has that. False: it has not yet. */
bool spool_lack_begin(struct spool *s);
/* Has that end in the state file as well, if a batch was committed that has all that the log lacked. */
void spool_lack_end(struct spool *s);

/* floor.c */

/* Looks at the disk's room. */
void spool_floor_look(struct spool *s);
/* The same, if the next batch might come near the floor. */
void spool_floor_look_if_near(struct spool *s);
/* Returns whether the floor has room for more bytes in files. */
bool spool_floor_has(const struct spool *s, uint64_t more);
/* Returns whether it has none, and dropping what the files have would make none that is worth it. */
bool spool_floor_is_cramped(const struct spool *s, uint64_t more);

/* room.c */
/* Removes and frees a segment in which no record waits, and removes its file. */
void spool_remove(struct spool *s, struct spool_segment *seg);

/* Removes segments of which everything is acknowledged. */
void spool_reap(struct spool *s);
/* Makes room for more bytes within max_bytes by dropping the oldest segments. */
void spool_make_room(struct spool *s, uint64_t more);
/* Makes room for more bytes within memory_max, likewise. False: more alone exceeds it. */
bool spool_make_memory(struct spool *s, uint64_t more);

/* read.c */

/* Updates the time of the oldest waiting record of a queue. */
void spool_find_oldest(struct spool *s, enum spool_queue queue);

/* aside.c */

/* Returns whether no new record of the topic may be handed out: it is held, or too many are not acknowledged. */
bool spool_is_waiting(const struct spool *s, enum spool_queue queue, enum topic topic);
/* Gives a topic of the queue a cursor of its own, which begins where the queue's cursor is. */
void spool_set_aside(struct spool_queue_state *q, enum topic topic);
/* Makes the queue's cursor read the topic again, if its own cursor has reached that one. */
bool spool_join_up(struct spool_queue_state *q, enum topic topic);

/* flight.c */

/* Returns the record at an index from head to tail; valid until the next push. */
struct spool_handed *spool_flight_at(const struct spool_flight *f, uint64_t index);
/* Returns the record with that number and its index; NULL: none. */
struct spool_handed *spool_flight_find(const struct spool_flight *f, uint64_t number, uint64_t *index);
/* 0 or -ENOMEM. */
int spool_flight_push(struct spool_flight *f, const struct spool_handed *h);
/* Marks a record as acknowledged or given up; the caller updates the segment's count. */
void spool_flight_finish(struct spool_flight *f, struct spool_handed *h);
/* Frees a large ring that is empty. */
void spool_flight_shrink(struct spool_flight *f);
/* Frees the ring with the records in it. */
void spool_flight_done(struct spool_flight *f);

/* schema.c */

/* Sets the current schemas, which must outlive s, and their fingerprints. */
void spool_schemas_init(struct spool *s, const char *const schemas[TOPIC_COUNT]);
/* Writes all known schemas to the directory. 0 or a negative errno. */
int spool_schemas_write(struct spool *s);
/* Frees the texts that were read from the directory. */
void spool_schemas_done(struct spool *s);

/* Returns the queue into which a topic's records are put. */
static inline enum spool_queue
spool_queue_of(enum topic topic)
{
	return topic == TOPIC_USAGE ? SPOOL_USAGE : SPOOL_MAIN;
}

/* Returns how many records are not acknowledged. */
static inline uint64_t
spool_all_waiting(const struct spool *s)
{
	uint64_t n = 0;

	for (int t = 0; t < TOPIC_COUNT; t++)
		n += s->waiting[t];
	return n;
}

/* Returns how many records of a segment are not acknowledged. */
static inline uint64_t
spool_waiting(const struct spool_segment *seg)
{
	uint64_t n = 0;

	for (int t = 0; t < TOPIC_COUNT; t++)
		n += seg->waiting[t];
	return n;
}

#endif
