/*
 * SPDX-License-Identifier: Apache-2.0
 * spool: adds records to batches, commits them, and does the periodic work. state.h lists the other files.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/disk.h"
#include "spool/state.h"

#define DEFAULT_MAX_BYTES (UINT64_C(1) << 30)
#define DEFAULT_SEGMENT_BYTES (UINT64_C(8) << 20)
#define DEFAULT_MEMORY_BYTES (UINT64_C(16) << 20)
#define SEGMENT_BYTES_MAX (UINT64_C(1) << 30)	/* offsets in the flight are 32 bits wide */
#define MEMORY_SEGMENT_MAX (UINT64_C(1) << 20)	/* less is dropped at a time */
#define MEMORY_SEGMENT_MIN (UINT64_C(64) << 10)
#define CHECKPOINT_SHARE 3		/* part of max_bytes that a checkpoint may take */
#define CHECKPOINT_MEMORY_SHARE 4	/* part of memory_bytes, while the disk cannot be written */
#define CLOSE_MS 5000			/* for which a stop waits for a slow disk */
#define BATCH_KEPT (UINT64_C(1) << 20)		/* a larger buffer is freed after its batch */

const char *
spool_drop_name(enum spool_drop reason)
{
	static const char *const names[SPOOL_DROPS] = {
		[SPOOL_DROP_FULL] = "spool_full",
		[SPOOL_DROP_MEMORY] = "spool_memory_full",
		[SPOOL_DROP_CORRUPT] = "spool_corrupt",
		[SPOOL_DROP_SHARE] = "spool_over_share",
	};

	return (unsigned)reason < SPOOL_DROPS ? names[reason] : NULL;
}

/* Reserves room for an entry in the current batch. NULL: no memory. */
static uint8_t *
add_entry(struct spool_queue_state *q, size_t len)
{
	size_t head = q->batch.len == 0 ? spool_batch_head_size(TOPIC_COUNT) : 0;
	uint8_t *to;

	if (bytes_reserve(&q->batch, head + len) < 0)
		return NULL;
	to = q->batch.data + q->batch.len + head;
	q->batch.len += head + len;
	q->entries++;
	return to;
}

static void
reset_batch(struct spool_queue_state *q)
{
	q->batch.len = 0;
	if (q->batch.cap > BATCH_KEPT)
		bytes_done(&q->batch);
	q->entries = 0;
	q->records = 0;
	memset(q->counts, 0, sizeof(q->counts));
	q->wal_bytes = 0;
	q->has_wal = false;
	q->has_checkpoint = false;
}

/* Adds a record to the current batch of its queue. 0, -EMSGSIZE: no room in this batch; or -ENOMEM. */
static int
add_record(struct spool *s, const struct encoded_record *r)
{
	struct spool_queue_state *q = &s->queues[spool_queue_of(r->topic)];
	struct spool_entry e = { .kind = SPOOL_ENTRY_RECORD, .topic = (uint8_t)r->topic, .seq = r->seq,
	    .time_us = r->time_us, .key = r->key, .key_len = strlen(r->key), .data = r->data, .data_len = r->len,
	    .uid = r->user.known ? (uint32_t)r->user.value : 0 };
	uint8_t *to;

	if (e.key_len > UINT16_MAX || r->len > SPOOL_RECORD_MAX ||
	    q->batch.len + spool_entry_size(e.key_len, r->len) > s->batch_max)
		return -EMSGSIZE;
	to = add_entry(q, spool_entry_size(e.key_len, r->len));
	if (to == NULL)
		return -ENOMEM;
	spool_entry_pack(to, &e);
	spool_share_take(s, r, spool_entry_size(e.key_len, r->len));
	if (q->records++ == 0)
		q->first_us = r->time_us;
	q->counts[r->topic]++;
	s->stats.put++;
	return 0;
}

int
spool_put(void *spool, const struct encoded_record *r)
{
	struct spool *s = spool;
	int error = 0;

	/* An end that is not put would be missed in the log, unless the next owner knows that it is incomplete. */
	if (spool_share_is_over(s, r) && (!r->is_end || spool_lack_begin(s)))
		spool_share_refuse(s, r);
	else
		error = add_record(s, r);
	if (error == 0 && r->seq >= s->next_seq[r->topic]) {
		s->next_seq[r->topic] = r->seq + 1;
		s->has_seq_moved = true;
	}
	return error;
}

struct disk *
spool_disk(struct spool *s)
{
	if (s->disk == NULL && s->patience_ms > 0)
		(void)disk_start(s->patience_ms, &s->disk);
	return s->disk;
}

int
spool_put_again(struct spool *s, const struct spool_record *r)
{
	struct encoded_record record = { .topic = r->topic, .time_us = r->time_us, .seq = r->seq, .key = r->key,
	    .data = r->data, .len = r->len };
	const struct spool_queue_state *q = &s->queues[spool_queue_of(r->topic)];
	int error;

	if (spool_schema(s, r->schema) == NULL)
		return errno == ENOENT ? -ENOKEY : -errno;
	if (s->batch_schemas[r->topic] != r->schema && q->counts[r->topic] > 0)
		return -EAGAIN;
	error = add_record(s, &record);
	if (error == 0)
		s->batch_schemas[r->topic] = r->schema;
	return error == -EMSGSIZE && q->entries > 0 ? -EAGAIN : error;
}

uint64_t
spool_delivered(const struct spool *s)
{
	uint64_t away = 0;

	for (int q = 0; q < SPOOL_QUEUES; q++) {
		const struct spool_segment *seg;

		TAILQ_FOREACH(seg, &s->queues[q].segments, at)
			if (!seg->is_on_disk)
				away += spool_waiting(seg);
	}
	for (int t = 0; t < TOPIC_COUNT; t++)
		away += s->stats.dropped[t][SPOOL_DROP_MEMORY];
	return s->committed > away ? s->committed - away : 0;
}

static int
add_wal_entry(struct spool *s, enum spool_entry_kind kind, const void *data, size_t len)
{
	struct spool_queue_state *q = &s->queues[SPOOL_MAIN];
	struct spool_entry e = { .kind = kind, .data = data, .data_len = len };
	uint8_t *to;

	if (len > SPOOL_RECORD_MAX || q->batch.len + spool_entry_size(0, len) > SPOOL_BATCH_MAX)
		return -ENOMEM;
	to = add_entry(q, spool_entry_size(0, len));
	if (to == NULL)
		return -ENOMEM;
	spool_entry_pack(to, &e);
	return 0;
}

/* Takes the checkpoint out of the batch. */
static void
abandon(struct spool *s)
{
	struct spool_queue_state *q = &s->queues[SPOOL_MAIN];

	s->abandoned_bytes = q->batch.len - q->before.len;
	q->batch.len = q->before.len;
	q->entries = q->before.entries;
	q->wal_bytes = q->before.wal_bytes;
	q->has_wal = q->before.has_wal;
	q->has_checkpoint = q->before.has_checkpoint;
	s->is_abandoning = true;
	/* Counted from here, so that a state that never fits is not written again and again. */
	s->since_checkpoint = 0;
	s->stats.abandoned += s->failed == 0;
}

/* Returns how large a checkpoint may be: while the disk fails it must leave room for records in memory. */
static uint64_t
checkpoint_max(const struct spool *s)
{
	uint64_t max = s->files_max < s->max_bytes ? s->files_max : s->max_bytes;

	return s->failed < 0 ? s->memory_max / CHECKPOINT_MEMORY_SHARE : max / CHECKPOINT_SHARE;
}

int
spool_put_wal(struct spool *s, const void *data, size_t len)
{
	struct spool_queue_state *q = &s->queues[SPOOL_MAIN];
	int r;

	if (s->is_abandoning || (s->is_log_cut && !s->is_checkpointing))
		return 0;
	r = add_wal_entry(s, SPOOL_ENTRY_WAL, data, len);
	if (s->is_checkpointing && (r < 0 || q->batch.len - q->before.len > checkpoint_max(s))) {
		abandon(s);
		return 0;
	}
	if (r < 0)
		return r;
	q->has_wal = true;
	q->wal_bytes += spool_entry_size(0, len);
	return 0;
}

void
spool_checkpoint_begin(struct spool *s)
{
	struct spool_queue_state *q = &s->queues[SPOOL_MAIN];

	q->before = (struct spool_batch_state){ q->batch.len, q->entries, q->wal_bytes, q->has_wal, q->has_checkpoint };
	s->is_abandoning = false;
	/* Without memory no checkpoint is begun; it is still wanted after the commit. */
	if (add_wal_entry(s, SPOOL_ENTRY_CHECKPOINT, NULL, 0) < 0) {
		abandon(s);
		return;
	}
	s->is_checkpointing = true;
	q->has_checkpoint = true;
	q->has_wal = true;
	q->wal_bytes = 0;
}

bool
spool_wants_checkpoint(const struct spool *s)
{
	const struct spool_segment *last =
	    TAILQ_LAST(&s->queues[SPOOL_MAIN].segments, spool_segments);
	uint64_t large = s->checkpoint_bytes * 4;

	if (s->abandoned_bytes > 0)
		return s->since_checkpoint >= s->abandoned_bytes * 4;
	if (s->is_log_cut)
		return spool_share_takes_state(s);
	if (s->checkpoint.seg == NULL || s->needs_checkpoint)
		return true;
	/* A state that is large relative to a segment is not written for each segment. */
	if (s->checkpoint.seg != last && s->since_checkpoint >= large)
		return true;
	return s->wal_bytes_since > (large > s->segment_bytes / 4 ? large : s->segment_bytes / 4);
}

static uint64_t
memory_segment_bytes(const struct spool *s)
{
	uint64_t bytes = s->memory_max / 16;

	if (bytes > MEMORY_SEGMENT_MAX)
		bytes = MEMORY_SEGMENT_MAX;
	if (bytes < MEMORY_SEGMENT_MIN)
		bytes = MEMORY_SEGMENT_MIN;
	return bytes < s->segment_bytes ? bytes : s->segment_bytes;
}

/* Packs the batch's head into the room in front of its entries. */
static void
pack_batch(struct spool *s, enum spool_queue queue, const struct spool_segment *seg,
    const struct ring_offset *ring_offset)
{
	struct spool_queue_state *q = &s->queues[queue];
	size_t head = spool_batch_head_size(TOPIC_COUNT);
	struct spool_batch_head h = {
		.len = (uint32_t)(q->batch.len - head),
		.entries = q->entries,
		.records = q->records,
		.flags = (uint16_t)((ring_offset != NULL ? SPOOL_BATCH_RING_OFFSET : 0) |
		    (q->has_wal ? SPOOL_BATCH_WAL : 0) |
		    (q->has_checkpoint ? SPOOL_BATCH_CHECKPOINT : 0)),
		.queue = (uint16_t)queue,
		.segment = seg->number,
		.offset = seg->size,
		.first = q->next_number,
	};

	/* The head of a new segment is written together with its first batch. */
	if (seg->size == 0)
		h.offset = SPOOL_SEGMENT_HEAD_MIN + TOPIC_COUNT * 48;
	if (ring_offset != NULL)
		h.ring_offset = *ring_offset;
	for (int t = 0; t < TOPIC_COUNT; t++) {
		h.next_seq[t] = s->next_seq[t];
		h.counts[t] = q->counts[t];
	}
	spool_batch_head_pack(q->batch.data, &h, TOPIC_COUNT);
}

/* Counts the records of a batch that was written to seg. */
static void
count_batch(struct spool *s, struct spool_segment *seg, uint64_t at)
{
	struct spool_queue_state *q = &s->queues[seg->queue];

	for (int t = 0; t < TOPIC_COUNT; t++) {
		seg->waiting[t] += q->counts[t];
		s->waiting[t] += q->counts[t];
	}
	s->committed += q->records;
	q->next_number += q->records;
	if (q->oldest_us == 0 && q->records > 0)
		q->oldest_us = q->first_us;
	seg->has_wal = seg->has_wal || q->has_wal;
	if (seg->queue != SPOOL_MAIN)
		return;
	s->since_checkpoint += q->batch.len;
	s->wal_bytes_since += q->wal_bytes;
	if (q->has_checkpoint) {
		s->checkpoint = (struct spool_checkpoint){ seg, at };
		s->checkpoint_bytes = q->batch.len;
		s->abandoned_bytes = 0;
		s->since_checkpoint = 0;
		s->wal_bytes_since = 0;
		s->needs_checkpoint = s->is_log_lost = false;
		s->is_log_cut = false;
	}
}

/* Returns whether the current batch can be appended to a segment: a segment has one schema for each topic. */
static bool
takes_batch(const struct spool *s, const struct spool_segment *seg, uint64_t limit)
{
	return seg != NULL && !seg->is_sealed && seg->size + s->queues[seg->queue].batch.len <= limit &&
	    memcmp(seg->schemas, s->batch_schemas, sizeof(s->batch_schemas)) == 0;
}

/* Writes the batch to the last segment on disk, or to a new one. 0 or a negative errno. */
static int
commit_disk(struct spool *s, enum spool_queue queue, const struct ring_offset *ring_offset)
{
	struct spool_queue_state *q = &s->queues[queue];
	struct spool_segment *seg = TAILQ_LAST(&q->segments, spool_segments);
	bool is_new = !takes_batch(s, seg, s->segment_bytes);
	uint64_t at;
	int r;

	if (is_new) {
		seg = spool_segment_new(s, queue, q->next_segment);
		if (seg == NULL)
			return -ENOMEM;
		q->next_segment++;
	}
	pack_batch(s, queue, seg, ring_offset);
	r = spool_segment_write(s, seg, q->batch.data, q->batch.len);
	if (r < 0 && is_new) {
		if (seg->fd >= 0)
			spool_segment_unlink(s, seg);
		spool_segment_free(s, seg);
	}
	if (r < 0)
		return r;
	at = seg->size - q->batch.len;
	if (is_new)
		spool_queue_append(s, seg);
	count_batch(s, seg, at);
	if (queue == SPOOL_MAIN)
		s->is_state_needed = s->is_state_earlier = false;
	return 0;
}

/* Appends the batch to the segments in memory. False: no memory. */
static bool
commit_memory(struct spool *s, enum spool_queue queue, const struct ring_offset *ring_offset)
{
	struct spool_queue_state *q = &s->queues[queue];
	struct spool_segment *seg;
	bool is_new;

	if (!spool_make_memory(s, q->batch.len + SPOOL_SEGMENT_HEAD_MAX))
		return false;
	seg = TAILQ_LAST(&q->segments, spool_segments);
	is_new = seg == NULL || seg->is_on_disk || !takes_batch(s, seg, memory_segment_bytes(s));
	if (is_new) {
		seg = spool_segment_new(s, queue, q->next_segment);
		if (seg == NULL)
			return false;
		q->next_segment++;
	}
	pack_batch(s, queue, seg, ring_offset);
	if (spool_segment_write_memory(s, seg, q->batch.data, q->batch.len) < 0) {
		if (is_new)
			spool_segment_free(s, seg);
		return false;
	}
	if (is_new)
		spool_queue_append(s, seg);
	count_batch(s, seg, seg->size - q->batch.len);
	s->is_state_moved = s->is_state_needed = true;
	s->is_state_earlier = false;
	return true;
}

/* Writes a queue's batch to disk, or else to memory. */
static void
commit_queue(struct spool *s, enum spool_queue queue, const struct ring_offset *ring_offset)
{
	struct spool_queue_state *q = &s->queues[queue];
	const struct spool_segment *last;
	int r = s->failed;

	if (q->batch.len == 0) {
		if (queue == SPOOL_USAGE)
			return;
		/*
		 * A batch without entries: it stores the ring offset and the next seq of the other queue's
		 * records.
		 */
		if (bytes_reserve(&q->batch, spool_batch_head_size(TOPIC_COUNT)) < 0)
			return;
		q->batch.len = spool_batch_head_size(TOPIC_COUNT);
	}
	if (r == 0 && spool_floor_is_cramped(s, q->batch.len))
		r = spool_disk_failed(s, -ENOSPC);
	spool_make_room(s, q->batch.len);
	last = TAILQ_LAST(&q->segments, spool_segments);
	if (r == 0 && last != NULL && !last->is_on_disk)
		r = -EAGAIN;	/* segments in memory are written first, to keep the order */
	if (r == 0) {
		r = commit_disk(s, queue, ring_offset);
		if (r < 0)
			spool_disk_failed(s, r);
	}
	if (r < 0 && !commit_memory(s, queue, ring_offset)) {
		for (int t = 0; t < TOPIC_COUNT; t++)
			s->stats.dropped[t][SPOOL_DROP_MEMORY] += q->counts[t];
		s->committed += q->records;	/* like records dropped later: spool_delivered() subtracts all */
		s->needs_checkpoint = s->needs_checkpoint || q->has_wal;
		s->is_log_lost = s->is_log_lost || q->has_wal;
		spool_share_give_back(s, q->batch.len);
	}
	reset_batch(q);
}

int
spool_commit(struct spool *s, const struct ring_offset *ring_offset, const uint64_t next_seq[TOPIC_COUNT])
{
	bool has_moved = s->has_seq_moved;

	s->is_checkpointing = s->is_abandoning = false;
	for (int t = 0; t < TOPIC_COUNT && next_seq != NULL; t++) {
		if (next_seq[t] <= s->next_seq[t])
			continue;
		s->next_seq[t] = next_seq[t];
		has_moved = true;
	}
	if (ring_offset != NULL && (!s->has_ring_offset || ring_offset->position != s->ring_offset.position ||
	    ring_offset->ring_id != s->ring_offset.ring_id ||
	    strcmp(ring_offset->boot_id, s->ring_offset.boot_id) != 0))
		has_moved = true;
	if (!has_moved && s->queues[SPOOL_MAIN].batch.len == 0 && s->queues[SPOOL_USAGE].batch.len == 0)
		return s->failed;
	if (ring_offset != NULL) {
		s->ring_offset = *ring_offset;
		s->has_ring_offset = true;
	}
	s->has_seq_moved = false;
	/*
	 * The main queue has the ring offset and is written last: a crash between the two cannot leave an
	 * offset without the records before it. The next owner then cuts the Usage batch off, so that the two are one.
	 */
	if (s->failed == 0)
		spool_floor_look_if_near(s);
	commit_queue(s, SPOOL_USAGE, NULL);
	commit_queue(s, SPOOL_MAIN, s->has_ring_offset ? &s->ring_offset : NULL);
	memcpy(s->committed_seq, s->next_seq, sizeof(s->committed_seq));
	memcpy(s->batch_schemas, s->fingerprints, sizeof(s->batch_schemas));
	spool_make_room(s, 0);
	spool_lack_end(s);
	s->stats.commits++;
	/* Records in memory are handed out too: their seq must not be used again after a crash. */
	if (s->failed < 0)
		spool_marks_cover(s);
	spool_sync_poll(s, s->sync_ns == 0);
	return s->failed;
}

void
spool_sync(struct spool *s, uint64_t now_ns)
{
	s->now_ns = now_ns;
	spool_sync_poll(s, now_ns < s->synced_ns || now_ns - s->synced_ns >= s->sync_ns);
}

void
spool_tick(struct spool *s, uint64_t now_ns)
{
	s->now_ns = now_ns;
	/* A clock that a test or a suspend has moved must not delay this for long. */
	if (s->retry_ns > now_ns + SPOOL_RETRY_NS)
		s->retry_ns = now_ns;
	(void)spool_disk(s);
	if (s->failed == 0 && (now_ns < s->checked_ns || now_ns - s->checked_ns >= SPOOL_RETRY_NS)) {
		int r = spool_dir_is_there(s);

		s->checked_ns = now_ns;
		spool_floor_look(s);
		if (r != 1) {
			spool_disk_failed(s, r == -ETIMEDOUT ? r : -ENOENT);
			s->retry_ns = now_ns;
		}
	}
	if (s->failed < 0 && now_ns >= s->retry_ns)
		(void)spool_disk_retry(s);
	if (s->syncer == NULL)		/* after a failure: at the next tick */
		s->sync_failed = spool_sync_start(s);
	spool_sync(s, now_ns);
	spool_reap(s);
	for (int queue = 0; queue < SPOOL_QUEUES; queue++) {
		struct spool_queue_state *q = &s->queues[queue];

		q->cursor.is_failing = false;
		for (int t = 0; t < TOPIC_COUNT; t++)
			q->topics[t].cursor.is_failing = false;
		spool_find_oldest(s, queue);
		for (int t = 0; t < TOPIC_COUNT; t++)
			spool_flight_shrink(&q->topics[t].flight);
	}
	if (s->is_state_moved && s->failed == 0) {
		int r = spool_marks_write(s, false);

		if (r < 0)
			spool_disk_failed(s, r);
	}
}

uint64_t
spool_next_seq(const struct spool *s, enum topic topic)
{
	return s->next_seq[topic];
}

bool
spool_ring_offset(const struct spool *s, struct ring_offset *ret)
{
	if (s->has_ring_offset)
		*ret = s->ring_offset;
	return s->has_ring_offset;
}

void
spool_stats(const struct spool *s, struct spool_stats *ret)
{
	*ret = s->stats;
	ret->records = spool_all_waiting(s);
	for (int t = 0; t < TOPIC_COUNT; t++) {
		ret->waiting[t] = s->waiting[t];
		for (int queue = 0; queue < SPOOL_QUEUES; queue++) {
			const struct spool_flight *f = &s->queues[queue].topics[t].flight;

			ret->is_full[t] |= f->tail - f->head >= SPOOL_FLIGHT_MAX;
		}
	}
	ret->bytes = s->bytes + s->unknown_bytes;
	spool_unknown_stats(s, ret);
	ret->memory_bytes = s->memory_bytes;
	for (int queue = 0; queue < SPOOL_QUEUES; queue++) {
		int64_t oldest = s->queues[queue].oldest_us;

		if (oldest != 0 && ret->records > 0 &&
		    (ret->oldest_us == 0 || oldest < ret->oldest_us))
			ret->oldest_us = oldest;
	}
	ret->free_bytes = s->free_bytes;
	ret->floor_bytes = s->floor_bytes;
	ret->is_at_floor = s->is_at_floor;
	ret->last_error = s->failed != 0 ? s->failed : s->sync_failed;
}

/* Frees a spool, also one that is only partly open. */
static void
free_spool(struct spool *s)
{
	spool_sync_stop(s);
	for (int queue = 0; queue < SPOOL_QUEUES; queue++) {
		struct spool_queue_state *q = &s->queues[queue];
		struct spool_segment *seg;

		while ((seg = TAILQ_FIRST(&q->segments)) != NULL) {
			TAILQ_REMOVE(&q->segments, seg, at);
			spool_segment_free(s, seg);
		}
		bytes_done(&q->batch);
		spool_reader_done(&q->cursor.reader);
		for (int t = 0; t < TOPIC_COUNT; t++) {
			spool_reader_done(&q->topics[t].cursor.reader);
			spool_flight_done(&q->topics[t].flight);
			free(q->topics[t].skips.list);
		}
		free(q->skips.list);
	}
	spool_schemas_done(s);
	free(s->unknown);
	if (s->state_fd >= 0)
		disk_close(s->disk, s->state_fd);
	if (s->dir_fd >= 0)
		disk_close(s->disk, s->dir_fd);	/* releases the lock too */
	spool_behind_forget(s);
	disk_stop(s->disk);
	free(s->dir);
	user_losses_free(&s->user_losses);
	free(s);
}

static struct spool *
new_spool(const struct spool_options *o)
{
	struct spool *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->dir_fd = -1;
	s->state_fd = -1;
	s->max_bytes = o->max_bytes != 0 ? o->max_bytes : DEFAULT_MAX_BYTES;
	s->segment_bytes = o->segment_bytes != 0 ? o->segment_bytes : DEFAULT_SEGMENT_BYTES;
	if (s->segment_bytes > s->max_bytes / 8)
		s->segment_bytes = s->max_bytes / 8;
	if (s->segment_bytes > SEGMENT_BYTES_MAX)
		s->segment_bytes = SEGMENT_BYTES_MAX;
	s->memory_max = o->memory_bytes != 0 ? o->memory_bytes : DEFAULT_MEMORY_BYTES;
	s->batch_max = s->max_bytes / 2 < SPOOL_BATCH_MAX ? s->max_bytes / 2 : SPOOL_BATCH_MAX;
	s->sync_ns = (uint64_t)o->sync_ms * 1000000;
	s->is_sync_first = o->is_sync_first;
	s->on_synced = o->on_synced;
	s->on_synced_arg = o->on_synced_arg;
	s->patience_ms = o->patience_ms;
	s->free_min = o->free_min;
	s->files_max = UINT64_MAX;
	for (int queue = 0; queue < SPOOL_QUEUES; queue++) {
		TAILQ_INIT(&s->queues[queue].segments);
		s->queues[queue].next_segment = 1;
	}
	spool_schemas_init(s, o->schemas);
	s->dir = strdup(o->dir);
	if (s->dir == NULL) {
		free_spool(s);
		return NULL;
	}
	return s;
}

int
spool_open(const struct spool_options *o, struct spool **ret, struct spool_recovery *recovery,
    char *error, size_t error_size)
{
	struct spool_recovery unused;
	struct spool *s = new_spool(o);
	int r;

	if (recovery == NULL)
		recovery = &unused;
	*recovery = (struct spool_recovery){ 0 };
	if (s == NULL) {
		snprintf(error, error_size, "%s: no memory for the spool", o->dir);
		return -ENOMEM;
	}
	r = spool_dir_open(s, error, error_size);
	if (r < 0)
		goto fail;
	r = spool_recover(s, recovery);
	if (r < 0) {
		snprintf(error, error_size, "%s: cannot read the spool: %s", o->dir, strerror(-r));
		goto fail;
	}
	spool_reap(s);
	memcpy(s->committed_seq, s->next_seq, sizeof(s->committed_seq));
	/* A disk that cannot be written now is no reason to fail. This also marks the state unclean. */
	(void)spool_disk_retry(s);
	*ret = s;
	return 0;

fail:
	free_spool(s);
	return r;
}

int
spool_close(struct spool *s)
{
	int r, synced;

	if (s == NULL)
		return 0;
	(void)spool_commit(s, NULL, NULL);
	spool_behind_close(s, CLOSE_MS);
	r = s->failed < 0 ? spool_disk_retry(s) : 0;
	synced = spool_sync_all(s);
	spool_reap(s);
	for (int queue = 0; queue < SPOOL_QUEUES; queue++)
		s->queues[queue].handed_mark = spool_handed_below(s, queue);
	/* The slot that is overwritten may be the only one that is synced. */
	if (r == 0 && s->is_state_kept && fdatasync(s->state_fd) < 0)
		r = -errno;
	if (r == 0)
		r = spool_marks_write(s, !s->is_lacking);
	if (r == 0 && fdatasync(s->state_fd) < 0)
		r = -errno;
	free_spool(s);
	return r < 0 ? r : synced;
}
