/*
 * SPDX-License-Identifier: Apache-2.0
 * state: what the parts of the spool share, and nobody else includes.
 *
 *	spool.c     the API: batches in, ticks, closing
 *	format.c    bytes of a segment
 *	segment.c   one segment: make, append, read, put on disk
 *	walk.c      through its batches and entries, past what is broken
 *	queue.c      segments in their order, and the cursor in them
 *	recover.c   what an earlier owner left
 *	disk.c      the directory, and a disk that takes nothing
 *	marks.c     the state file
 *	sync.c      the thread that waits for the disk
 *	mark.c      what has become of all up to a moment
 *	room.c      what is removed, and what is given up
 *	read.c      records out
 *	flight.c    handed out and not yet acknowledged
 *	schema.c    texts by fingerprint
 *
 * A segment is a file, or, while the disk takes nothing, the same bytes in memory; offsets do not
 * change when it gets its file. Only the last segment of a queue is appended to.
 */
#ifndef SLUICE_SPOOL_STATE_H
#define SLUICE_SPOOL_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/bytes.h"
#include "spool/format.h"
#include "spool/spool.h"

enum {
	SPOOL_READ_BYTES = 256 * 1024,
	SPOOL_FDS_KEPT = 64,		/* segments beyond these are opened when they are read */
	SPOOL_SKIPS = 128,		/* ranges that the state file has room for */
	SPOOL_SCHEMA_MAX = 1 << 20,
};

#define SPOOL_RETRY_NS UINT64_C(1000000000)
#define SPOOL_READ_PATIENCE_NS UINT64_C(10000000000)
#define SPOOL_HANDED_AHEAD 8192

struct spool_segment {
	TAILQ_ENTRY(spool_segment) at;
	enum spool_queue	 queue;
	uint64_t	 number;
	int		 fd;			/* -1: not open */
	bool		 is_on_disk;
	bool		 is_dirty;		/* written, and no sync asked for since */
	bool		 is_syncing;
	bool		 has_sync_failed;	/* what it holds may not be on the disk, and stays so */
	uint64_t	 syncing_to;		/* size when the sync was asked for */
	uint64_t	 synced_to;
	bool		 is_sealed;		/* nothing is appended any more */
	struct bytes	 memory;		/* head and batches, while it is not on disk */
	uint64_t	 size;			/* of whole batches, and the head */
	uint64_t	 start;			/* length of the head */
	uint64_t	 first;			/* number of its first record, once it has one */
	uint64_t	 waiting[TOPIC_COUNT];	/* records not acknowledged */
	bool		 has_wal;
	unsigned	 n_topics;
	enum topic	 topics[SPOOL_TOPICS_MAX];	/* of the indices in its entries */
	uint64_t	 schemas[SPOOL_TOPICS_MAX];
};

TAILQ_HEAD(spool_segments, spool_segment);

/* A window on a segment's file. What it returns is valid until the next call. */
struct spool_reader {
	uint8_t		*data;			/* owned */
	size_t		 cap;
	size_t		 len;
	struct spool_segment *seg;		/* whose bytes these are, NULL: none */
	uint64_t	 at;			/* offset of data in it */
};

/*
 * A walk through the entries of one segment, past what cannot be read. Recovery, replay and the
 * output's cursor all walk by this one, so that they agree on what is there.
 */
struct spool_walk {
	struct spool_segment *seg;		/* NULL: nowhere */
	uint64_t	 at;			/* the next byte */
	bool		 is_in_batch;
	uint64_t	 batch_at;		/* of its head */
	uint64_t	 batch_end;
	uint32_t	 entries;		/* left in it */
	uint64_t	 number;		/* of the next record; never falls */
	uint64_t	 number_end;		/* behind its last record */
	uint64_t	 passed_at;		/* what the last spool_walk_batch() passed over */
	uint64_t	 passed;
};

struct spool_handed {
	uint64_t	 number;
	struct spool_segment *seg;		/* NULL: given up while the output had it */
	int64_t		 time_us;
	uint32_t	 at;
	uint8_t		 topic;
	uint8_t		 flags;			/* enum spool_handed_flag */
};

enum spool_handed_flag {
	SPOOL_IS_OUT = 1,			/* the output has it */
	SPOOL_IS_AGAIN = 2,			/* it had it before */
	SPOOL_IS_DONE = 4,			/* acknowledged or given up */
};

/* A ring of what was read for the output, by rising number; indices count from 0 without end. */
struct spool_flight {
	struct spool_handed *ring;		/* owned; cap is 0 or a power of two */
	size_t		 cap;
	uint64_t	 head;
	uint64_t	 tail;
	uint64_t	 redo;			/* none before this one waits to be handed out again */
	uint64_t	 n_out;
};

/* Numbers from..from+count-1 were acknowledged out of order by an earlier owner. */
struct spool_skip {
	uint64_t	 from;
	uint64_t	 count;
};

struct spool_queue_state {
	struct spool_segments segments;		/* oldest first */
	uint64_t	 next_segment;
	uint64_t	 next_number;
	bool		 has_limit;
	uint64_t	 limit;			/* with has_limit: none from here on is handed out */
	/* the batch under way; room for its head in front */
	struct bytes	 batch;
	uint32_t	 entries;
	uint32_t	 records;
	uint32_t	 counts[TOPIC_COUNT];
	int64_t		 first_us;		/* of the first record in it */
	uint64_t	 wal_bytes;		/* since the checkpoint in it, if there is one */
	bool		 has_wal;
	bool		 has_checkpoint;
	/* to the output */
	struct spool_reader reader;
	struct spool_walk cursor;		/* the next record to be read */
	bool		 has_passed_over;	/* bytes in the cursor's segment */
	struct spool_flight flight;
	uint64_t	 done_below;		/* every number below is acknowledged */
	uint64_t	 again_below;		/* an earlier owner may have handed these out */
	uint64_t	 handed_mark;		/* in the state file: none from here on was handed out */
	struct spool_skip *skips;		/* owned, rising */
	size_t		 n_skips;
	int64_t		 oldest_us;		/* of what waits, 0: nothing does */
	uint64_t	 read_failing_ns;	/* since when reads fail, 0: they do not */
	bool		 is_read_failing;	/* no other try before the next tick */
};

struct spool_checkpoint {
	struct spool_segment *seg;		/* NULL: there is none */
	uint64_t	 at;			/* offset of its batch */
};

struct spool_text {
	struct spool_text *next;
	uint64_t	 fingerprint;
	char		 text[];
};

struct spool_syncer;

struct spool {
	char		*dir;			/* owned */
	int		 dir_fd;
	int		 state_fd;		/* -1: cannot be written now */
	uint64_t	 generation;		/* of the state file */
	bool		 is_state_moved;
	uint64_t	 max_bytes;
	uint64_t	 segment_bytes;
	uint64_t	 memory_max;
	uint64_t	 batch_max;
	uint64_t	 sync_ns;
	bool		 has_new_names;		/* in the directory, not yet synced */
	bool		 is_sync_first;		/* nothing is handed out before */
	char		 boot_id[37];
	const char	*schemas[TOPIC_COUNT];	/* the caller's */
	uint64_t	 fingerprints[TOPIC_COUNT];
	struct spool_text *texts;		/* owned: of older versions, once asked for */
	struct spool_queue_state queues[SPOOL_QUEUES];
	uint64_t	 next_seq[TOPIC_COUNT];
	uint64_t	 committed_seq[TOPIC_COUNT];	/* of the last batch: heads promise no more */
	bool		 has_seq_moved;		/* since the last batch */
	bool		 has_place;
	struct spool_place place;
	struct spool_checkpoint checkpoint;	/* the latest */
	struct spool_checkpoint safe;		/* the latest that the disk has for certain */
	uint64_t	 checkpoint_bytes;	/* of the latest */
	uint64_t	 since_checkpoint;	/* bytes of main batches */
	uint64_t	 wal_bytes_since;		/* bytes of entries */
	bool		 needs_checkpoint;
	enum spool_queue	 last_queue;		/* of the record that spool_next() returned last */
	uint64_t	 last_index;
	bool		 has_last;
	bool		 was_ungot;		/* last_queue comes first */
	uint64_t	 bytes;			/* of all segments */
	uint64_t	 memory_bytes;
	uint64_t	 waiting;		/* records */
	uint64_t	 committed;		/* records since opening */
	unsigned	 open_fds;		/* of segments */
	int		 failed;		/* a negative errno: the disk takes nothing; 0: it does */
	int		 sync_failed;		/* the last fdatasync, a negative errno */
	uint64_t	 now_ns;		/* of the last tick */
	uint64_t	 retry_ns;
	uint64_t	 synced_ns;
	uint64_t	 looked_ns;		/* at the directory */
	struct spool_syncer *syncer;		/* owned; NULL: no thread */
	struct spool_stats stats;		/* counters; the rest is filled when asked for */
};

/* segment.c */

/* A segment of s without file or bytes, not in its queue yet. NULL: no memory. */
struct spool_segment *spool_segment_new(struct spool *s, enum spool_queue queue, uint64_t number);
/* Closes its file, which stays. */
void spool_segment_free(struct spool *s, struct spool_segment *seg);
void spool_segment_name(const struct spool_segment *seg, char name[64]);
/* The oldest segment that a replay needs, NULL: none. */
struct spool_segment *spool_needed_from(const struct spool *s);
/* 0, or a negative errno. */
int spool_segment_open(struct spool *s, struct spool_segment *seg, int flags);
/* The fd is not needed for a while: closed where many are open. */
void spool_segment_rest(struct spool *s, struct spool_segment *seg);
/*
 * Writes one batch to the end of seg, with its head in front where it is the first. 0, or a negative
 * errno with nothing of it left in the file.
 */
int spool_segment_write(struct spool *s, struct spool_segment *seg, const void *batch, size_t len);
/* The same to memory. 0 or -ENOMEM. */
int spool_segment_remember(struct spool *s, struct spool_segment *seg, const void *batch, size_t len);
/* Gives a segment in memory its file. 0, or a negative errno with all as it was. */
int spool_segment_settle(struct spool *s, struct spool_segment *seg);
/* len bytes at offset at; -ENODATA behind the end. *ret is valid until the next call. */
int spool_read(struct spool *s, struct spool_reader *r, struct spool_segment *seg, uint64_t at,
    size_t len, const uint8_t **ret);
void spool_reader_done(struct spool_reader *r);

/* walk.c */
void spool_walk_start(struct spool_walk *w, struct spool_segment *seg, uint64_t at, uint64_t number);
/* Goes on to the next batch. 1; 0: the segment's end; or a negative errno: reading failed. */
int spool_walk_batch(struct spool *s, struct spool_reader *r, struct spool_walk *w,
    struct spool_batch_head *ret);
/*
 * The entry at w. 1; 0: the batch has ended; -EBADMSG: the rest of the batch is not as it was
 * written; another negative errno: reading failed.
 */
int spool_walk_entry(struct spool *s, struct spool_reader *r, const struct spool_walk *w,
    struct spool_entry *ret);
void spool_walk_on(struct spool_walk *w, const struct spool_entry *e);
/* Passes over the rest of the batch. */
void spool_walk_leave(struct spool_walk *w);
/* Over an entry that is not whole, where it is the only one of its batch. False: nothing has moved. */
bool spool_walk_over(struct spool *s, struct spool_reader *r, struct spool_walk *w);
/* The entry at an offset that a walk has been at. 0, -EBADMSG or another negative errno. */
int spool_read_entry(struct spool *s, struct spool_reader *r, struct spool_segment *seg, uint64_t at,
    uint64_t end, struct spool_entry *ret);

/* queue.c */

/* Makes seg the last of its queue. */
void spool_queue_append(struct spool *s, struct spool_segment *seg);
/* Moves the queue's cursor to the segment behind seg, if it is there. */
void spool_cursor_leave(struct spool *s, struct spool_segment *seg);
/* Every number that was ever handed out is below. */
uint64_t spool_handed_below(const struct spool *s, enum spool_queue queue);
/* Every number below is acknowledged. */
uint64_t spool_done_below(struct spool *s, enum spool_queue queue);
bool spool_is_skipped(const struct spool_queue_state *q, uint64_t number);

/* recover.c */
int spool_recover(struct spool *s, struct spool_recovery *recovery);

/* disk.c */
int spool_dir_open(struct spool *s, char *error, size_t error_size);
/* Entries that the disk did not take something, and passes r on. */
int spool_disk_failed(struct spool *s, int r);
/* Is the directory that we write to still the one of that name? */
bool spool_dir_is_there(const struct spool *s);
/* Takes the disk into use again: directory, state, schemas, what is in memory. */
int spool_disk_retry(struct spool *s);

/* marks.c */
struct spool_marks {
	bool is_there;
	bool is_clean;
	char boot_id[37];
};
/* Reads the newer whole slot into s. */
void spool_marks_read(struct spool *s, struct spool_marks *ret);
/* Opens or makes the file. 0 or a negative errno. */
int spool_marks_open(struct spool *s);
/* Writes one slot. 0 or a negative errno; s->is_state_moved stays set then. */
int spool_marks_write(struct spool *s, bool is_clean);

/* sync.c */
int spool_sync_start(struct spool *s);
void spool_sync_stop(struct spool *s);
/* Takes note of a sync that has ended, and asks for the next when it is due. */
void spool_sync_poll(struct spool *s, bool is_due);
/* Waits for all of it. 0 or the first negative errno. */
int spool_sync_all(struct spool *s);

/* room.c */
/* Removes segments of which everything is acknowledged. */
void spool_reap(struct spool *s);
/* Makes room for more bytes: below max_bytes by giving up the oldest. */
void spool_make_room(struct spool *s, uint64_t more);
/* The same for memory. False: more alone is too much. */
bool spool_make_memory(struct spool *s, uint64_t more);
void spool_give_up(struct spool *s, struct spool_segment *seg, enum spool_drop reason);

/* read.c */
/* Finds the time of the oldest record that waits. */
void spool_find_oldest(struct spool *s, enum spool_queue queue);

/* flight.c */
struct spool_handed *spool_flight_at(const struct spool_flight *f, uint64_t index);
/* The one of that number, NULL: none. *index is where. */
struct spool_handed *spool_flight_find(const struct spool_flight *f, uint64_t number, uint64_t *index);
/* 0 or -ENOMEM. */
int spool_flight_push(struct spool_flight *f, const struct spool_handed *h);
/* It is acknowledged or given up; the segment's count is the caller's. */
void spool_flight_finish(struct spool_flight *f, struct spool_handed *h);
/* Frees a large ring that is empty. */
void spool_flight_shrink(struct spool_flight *f);
void spool_flight_done(struct spool_flight *f);

/* schema.c */
void spool_schemas_init(struct spool *s, const char *const schemas[TOPIC_COUNT]);
int spool_schemas_write(struct spool *s);
void spool_schemas_done(struct spool *s);

/* Records of a segment that are not acknowledged. */
static inline uint64_t
spool_waiting(const struct spool_segment *seg)
{
	uint64_t n = 0;

	for (int t = 0; t < TOPIC_COUNT; t++)
		n += seg->waiting[t];
	return n;
}

#endif
