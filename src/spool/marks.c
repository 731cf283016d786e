/*
 * SPDX-License-Identifier: Apache-2.0
 * marks: the state file. Its blocks are allocated once and it is written in place, so that it can be written on
 * a full disk; two slots are written alternately, so that a torn write leaves the older one. While only this file has
 * the next seqs of records that were handed out, the slot that was synced with them is not overwritten until the other
 * one is synced: the lower bit of the generation is the slot, and a generation may be left out.
 *
 *	slot	 0 u32 "SLST"	 4 u32 CRC of the rest	 8 u64 generation	16 u32 version
 *		20 u32 clean	24 char boot id[40]
 *		64 for each queue: u64 all below is acknowledged, u64 none from here on was handed out,
 *		   u64 number of the next record, u64 number of the next segment
 *		128 u32 topics n	132 u32 skips m
 *		136 n times: char name[32], u64 next seq; those of topics that the version does not know come last, so
 *		   that the next version that knows them uses no seq twice
 *		1416 n times: u64 all of the topic below is acknowledged, as the last version knew that has the topic;
 *		   versions that do not set topics aside write 0, and read only what is acknowledged of the queue
 *		2048 m times: u64 first number, u32 count, u16 queue, u16 topic's index + 1: acknowledged out of
 *		   order; topic 0: records of all topics, written by versions that do not set topics aside
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/disk.h"
#include "base/endian.h"
#include "spool/state.h"

#define NAME "state"
#define IS_CLEAN 1u		/* of a slot */
/* Of an unclean one; an earlier version has none. */
#define IS_NEEDED 2u		/* batches in memory had next seqs that no segment had */
#define IS_LACKING 4u		/* the owner knows that batches are missing, and has not finished telling of it */
#define IS_EARLIER 8u		/* those batches were of an earlier boot */
#define MAGIC "SLST"

enum {
	SLOT = SPOOL_SLOT,
	QUEUES_AT = 64,
	QUEUE_SIZE = 32,
	COUNTS_AT = 128,
	TOPICS_AT = 136,
	TOPIC_SIZE = SPOOL_NAME_SIZE + 8,
	DONE_AT = TOPICS_AT + SPOOL_TOPICS_MAX * TOPIC_SIZE,
	DONE_SIZE = 8,
	SKIPS_AT = 2048,
	SKIP_SIZE = 16,
	VERSION = 1,
};

_Static_assert(QUEUES_AT + SPOOL_QUEUES * QUEUE_SIZE <= COUNTS_AT, "queues overlap");
_Static_assert(DONE_AT + SPOOL_TOPICS_MAX * DONE_SIZE <= SKIPS_AT, "topics overlap");
_Static_assert(SKIPS_AT + SPOOL_SKIPS * SKIP_SIZE <= SLOT, "skips overlap");

/* Adds a range unless it is empty; topic: its index + 1, or 0. False: the slot is full. */
static bool
put_skip(uint8_t *slot, uint32_t *n, enum spool_queue queue, unsigned topic, uint64_t from, uint64_t count)
{
	uint8_t *to = slot + SKIPS_AT + *n * SKIP_SIZE;

	if (*n == SPOOL_SKIPS || count == 0 || count > UINT32_MAX)
		return *n < SPOOL_SKIPS;
	le_put64(to, from);
	le_put32(to + 8, (uint32_t)count);
	le_put16(to + 12, (uint16_t)queue);
	le_put16(to + 14, (uint16_t)topic);
	++*n;
	return true;
}

/* Packs the ranges of a topic that were acknowledged under this owner behind a record that was not. */
static void
pack_own_skips(const struct spool_flight *f, uint8_t *slot, uint32_t *n, enum spool_queue queue, unsigned topic)
{
	uint64_t from = 0, count = 0;

	for (uint64_t i = f->head; i < f->tail; i++) {
		const struct spool_handed *h = spool_flight_at(f, i);

		if (h->flags & SPOOL_IS_DONE) {
			from = count > 0 ? from : h->number;
			count = h->number + 1 - from;
			continue;
		}
		if (!put_skip(slot, n, queue, topic, from, count))
			return;
		count = 0;
	}
	put_skip(slot, n, queue, topic, from, count);
}

/* Packs the ranges of an earlier owner that are not below a number. */
static void
pack_old_skips(const struct spool_skips *skips, uint64_t below, uint8_t *slot, uint32_t *n, enum spool_queue queue,
    unsigned topic)
{
	for (size_t i = 0; i < skips->n; i++)
		if (skips->list[i].from + skips->list[i].count > below)
			put_skip(slot, n, queue, topic, skips->list[i].from, skips->list[i].count);
}

/*
 * Packs the ranges acknowledged above done_below: those of an earlier owner always, those of records handed out
 * by this one only when it closes, because finding them takes a walk.
 */
static void
pack_skips(struct spool *s, uint8_t *slot, bool is_clean)
{
	uint32_t n = 0;

	for (int queue = 0; queue < SPOOL_QUEUES; queue++) {
		const struct spool_queue_state *q = &s->queues[queue];

		for (unsigned t = 0; t < TOPIC_COUNT; t++) {
			if (is_clean)
				pack_own_skips(&q->topics[t].flight, slot, &n, queue, t + 1);
			pack_old_skips(&q->topics[t].skips, q->topics[t].done_below, slot, &n, queue, t + 1);
		}
		pack_old_skips(&q->skips, q->done_below, slot, &n, queue, 0);
	}
	le_put32(slot + COUNTS_AT + 4, n);
}

static void
pack(struct spool *s, uint8_t *slot, bool is_clean)
{
	memset(slot, 0, SLOT);
	memcpy(slot, MAGIC, 4);
	le_put64(slot + 8, s->generation);
	le_put32(slot + 16, VERSION);
	le_put32(slot + 20, is_clean ? IS_CLEAN : (s->is_state_needed ? IS_NEEDED : 0) |
	    (s->is_lacking ? IS_LACKING : 0) | (s->is_state_earlier ? IS_EARLIER : 0));
	memcpy(slot + 24, s->boot_id, sizeof(s->boot_id));
	for (int queue = 0; queue < SPOOL_QUEUES; queue++) {
		struct spool_queue_state *q = &s->queues[queue];
		uint8_t *to = slot + QUEUES_AT + queue * QUEUE_SIZE;

		le_put64(to, spool_done_below(s, queue));
		le_put64(to + 8, q->handed_mark);
		le_put64(to + 16, q->next_number);
		le_put64(to + 24, q->next_segment);
	}
	le_put32(slot + COUNTS_AT, (uint32_t)(TOPIC_COUNT + s->n_other_seqs));
	for (int t = 0; t < TOPIC_COUNT; t++) {
		uint8_t *to = slot + TOPICS_AT + t * TOPIC_SIZE;

		snprintf((char *)to, SPOOL_NAME_SIZE, "%s", topic_name(t));
		le_put64(to + SPOOL_NAME_SIZE, s->committed_seq[t]);	/* what was put since is not handed out */
		le_put64(slot + DONE_AT + t * DONE_SIZE, spool_topic_done_below(s, spool_queue_of(t), t));
	}
	for (size_t i = 0; i < s->n_other_seqs; i++) {
		uint8_t *to = slot + TOPICS_AT + (TOPIC_COUNT + i) * TOPIC_SIZE;

		memcpy(to, s->other_seqs[i].name, SPOOL_NAME_SIZE);
		le_put64(to + SPOOL_NAME_SIZE, s->other_seqs[i].next_seq);
		le_put64(slot + DONE_AT + (TOPIC_COUNT + i) * DONE_SIZE, s->other_seqs[i].done_below);
	}
	pack_skips(s, slot, is_clean);
	le_put32(slot + 4, crc32c(0, slot + 8, SLOT - 8));
}

static int
write_slot(const struct spool *s, int fd, const uint8_t *slot, uint64_t generation)
{
	return disk_write(s->disk, fd, slot, SLOT, (generation & 1) * SLOT);
}

int
spool_marks_open(struct spool *s)
{
	static const uint8_t empty[SLOT];
	int fd, r;

	if (s->state_fd >= 0)
		return 0;
	fd = disk_open(s->disk, s->dir_fd, NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return fd;
	/* Zeros are written, because overwriting a merely reserved block can still need free blocks. */
	if (lseek(fd, 0, SEEK_END) < 2 * (off_t)SLOT) {
		r = disk_allocate(s->disk, fd, 2 * SLOT);
		if (r == 0)
			r = write_slot(s, fd, empty, 0);
		if (r == 0)
			r = write_slot(s, fd, empty, 1);
		if (r < 0) {
			(void)disk_unlink(s->disk, s->dir_fd, NAME);
			disk_close(s->disk, fd);
			return r;
		}
		s->generation_safe = 0;
	}
	s->state_fd = fd;
	s->is_state_moved = true;
	s->is_state_syncing = false;	/* a round that has not ended is that of another file */
	return 0;
}

/* Packs the next slot and returns its generation. */
static uint64_t
pack_next(struct spool *s, uint8_t *slot, bool is_clean)
{
	s->generation++;
	/* The last one is written when the segments are synced, and follows the one before. */
	if (s->generation_safe > 0 && !is_clean && (s->generation & 1) == (s->generation_safe & 1))
		s->generation++;
	pack(s, slot, is_clean);
	return s->generation;
}

bool
spool_marks_pack(struct spool *s, uint8_t slot[SPOOL_SLOT], uint64_t *ret_at)
{
	if (s->is_sync_first && s->is_state_syncing)
		return false;
	*ret_at = (pack_next(s, slot, false) & 1) * SLOT;
	return true;
}

int
spool_marks_write(struct spool *s, bool is_clean)
{
	uint8_t slot[SLOT];
	int r;

	if (s->state_fd < 0)
		return -EBADF;
	if (s->is_sync_first && s->is_state_syncing && !is_clean) {
		s->is_state_moved = true;
		return 0;
	}
	r = write_slot(s, s->state_fd, slot, pack_next(s, slot, is_clean));
	if (r == 0)
		s->is_state_moved = s->is_state_behind = false;
	return r;
}

static int
by_from(const void *a, const void *b)
{
	const struct spool_skip *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

/* Sorts the ranges and merges those that touch, as spool_is_skipped() needs them. */
static void
arrange_skips(struct spool_skips *skips)
{
	size_t n = 0;

	if (skips->n == 0)
		return;
	qsort(skips->list, skips->n, sizeof(*skips->list), by_from);
	for (size_t i = 1; i < skips->n; i++) {
		struct spool_skip *last = &skips->list[n], next = skips->list[i];

		if (next.from > last->from + last->count)
			skips->list[++n] = next;
		else if (next.from + next.count > last->from + last->count)
			last->count = next.from + next.count - last->from;
	}
	skips->n = n + 1;
}

/* Returns the topic of that name; TOPIC_COUNT: unknown. */
static enum topic
find_topic(const uint8_t *name)
{
	unsigned t = 0;

	while (t < TOPIC_COUNT && strncmp((const char *)name, topic_name(t), SPOOL_NAME_SIZE) != 0)
		t++;
	return t;
}

/* Returns the list that a range belongs to; NULL: it is of no queue or topic that is known. */
static struct spool_skips *
skips_of(struct spool *s, const uint8_t *slot, unsigned queue, unsigned index)
{
	enum topic topic;

	if (queue >= SPOOL_QUEUES || index > le_get32(slot + COUNTS_AT) || index > SPOOL_TOPICS_MAX)
		return NULL;
	if (index == 0)
		return &s->queues[queue].skips;
	topic = find_topic(slot + TOPICS_AT + (index - 1) * TOPIC_SIZE);
	return topic < TOPIC_COUNT ? &s->queues[queue].topics[topic].skips : NULL;
}

static void
unpack_skips(struct spool *s, const uint8_t *slot)
{
	uint32_t n = le_get32(slot + COUNTS_AT + 4);

	for (uint32_t i = 0; i < n && i < SPOOL_SKIPS; i++) {
		const uint8_t *from = slot + SKIPS_AT + i * SKIP_SIZE;
		struct spool_skips *skips = skips_of(s, slot, le_get16(from + 12), le_get16(from + 14));

		if (skips == NULL || le_get64(from) > SPOOL_NUMBER_MAX)
			continue;
		if (skips->list == NULL)
			skips->list = calloc(SPOOL_SKIPS, sizeof(*skips->list));
		if (skips->list == NULL)
			return;		/* they are handed out again as redeliveries */
		skips->list[skips->n++] = (struct spool_skip){ le_get64(from), le_get32(from + 8) };
	}
	for (int queue = 0; queue < SPOOL_QUEUES; queue++) {
		arrange_skips(&s->queues[queue].skips);
		for (int t = 0; t < TOPIC_COUNT; t++)
			arrange_skips(&s->queues[queue].topics[t].skips);
	}
}

/* Checks magic, version and CRC, and that the numbers are plausible. */
static bool
is_slot(const uint8_t *slot)
{
	if (memcmp(slot, MAGIC, 4) != 0 || le_get32(slot + 16) != VERSION ||
	    le_get32(slot + 4) != crc32c(0, slot + 8, SLOT - 8))
		return false;
	for (int at = QUEUES_AT; at < QUEUES_AT + SPOOL_QUEUES * QUEUE_SIZE; at += 8)
		if (le_get64(slot + at) > SPOOL_NUMBER_MAX)
			return false;
	return true;
}

/* Keeps the next seq of a topic that this version does not know, and below which number it is acknowledged. */
static void
keep_seq(struct spool *s, const uint8_t *name, uint64_t next_seq, uint64_t done_below)
{
	struct spool_other_seq *o = s->other_seqs;

	while (o < s->other_seqs + s->n_other_seqs && strncmp(o->name, (const char *)name, SPOOL_NAME_SIZE - 1) != 0)
		o++;
	if (o == s->other_seqs + s->n_other_seqs) {
		if (name[0] == '\0' || s->n_other_seqs == sizeof(s->other_seqs) / sizeof(s->other_seqs[0]))
			return;
		s->n_other_seqs++;
		memcpy(o->name, name, SPOOL_NAME_SIZE - 1);
	}
	if (next_seq > o->next_seq)
		o->next_seq = next_seq;
	if (done_below > o->done_below && done_below <= SPOOL_NUMBER_MAX)
		o->done_below = done_below;
}

static void
unpack(struct spool *s, const uint8_t *slot, struct spool_marks *ret)
{
	uint32_t topics = le_get32(slot + COUNTS_AT);

	ret->is_there = true;
	ret->is_clean = le_get32(slot + 20) == IS_CLEAN;
	ret->is_needed = le_get32(slot + 20) & IS_NEEDED;
	ret->is_lacking = le_get32(slot + 20) & IS_LACKING;
	ret->is_earlier = le_get32(slot + 20) & IS_EARLIER;
	memcpy(ret->boot_id, slot + 24, sizeof(ret->boot_id) - 1);
	s->generation = le_get64(slot + 8);
	for (int queue = 0; queue < SPOOL_QUEUES; queue++) {
		struct spool_queue_state *q = &s->queues[queue];
		const uint8_t *from = slot + QUEUES_AT + queue * QUEUE_SIZE;

		q->done_below = le_get64(from);
		for (int t = 0; t < TOPIC_COUNT; t++)
			q->topics[t].done_below = q->done_below;
		q->handed_mark = le_get64(from + 8);
		q->next_number = le_get64(from + 16);
		if (le_get64(from + 24) > q->next_segment)
			q->next_segment = le_get64(from + 24);
	}
	for (uint32_t i = 0; i < topics && i < SPOOL_TOPICS_MAX; i++) {
		const uint8_t *from = slot + TOPICS_AT + i * TOPIC_SIZE;
		uint64_t below = le_get64(slot + DONE_AT + i * DONE_SIZE), *done_below;
		enum topic t = find_topic(from);

		if (t == TOPIC_COUNT) {
			keep_seq(s, from, le_get64(from + SPOOL_NAME_SIZE), below);
			continue;
		}
		s->next_seq[t] = le_get64(from + SPOOL_NAME_SIZE);
		done_below = &s->queues[spool_queue_of(t)].topics[t].done_below;
		if (below > *done_below && below <= SPOOL_NUMBER_MAX)
			*done_below = below;
	}
	unpack_skips(s, slot);
}

void
spool_marks_read(struct spool *s, struct spool_marks *ret)
{
	uint8_t slots[2][SLOT] = { { 0 } };
	int fd = openat(s->dir_fd, NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), best = -1;

	*ret = (struct spool_marks){ 0 };
	if (fd < 0)
		return;
	for (int i = 0; i < 2; i++) {
		const uint8_t *slot = slots[i];

		if (pread(fd, slots[i], SLOT, (off_t)i * SLOT) != SLOT || !is_slot(slot))
			continue;
		if (best < 0 || le_get64(slot + 8) > le_get64(slots[best] + 8))
			best = i;
	}
	if (best >= 0)
		unpack(s, slots[best], ret);
	memcpy(ret->next_seq, s->next_seq, sizeof(ret->next_seq));
	/*
	 * The slot before a clean one is intact. If it is not, a later owner has written a part of it, and what is left
	 * is not the last state.
	 */
	if (best < 0 || !is_slot(slots[!best]) || le_get64(slots[!best] + 8) + 1 != s->generation)
		ret->is_clean = false;
	/*
	 * Of an owner that was killed, the slot may only be in the page cache, and may be all that has the next seqs of
	 * batches that were in memory: it is kept until a batch on the disk has them.
	 */
	if (!ret->is_clean) {
		(void)fdatasync(fd);
		s->is_state_needed = ret->is_needed;
		s->generation_safe = s->generation;
	}
	close(fd);
}

void
spool_marks_cover(struct spool *s)
{
	int r = spool_marks_write(s, false);

	s->is_state_moved = s->is_state_moved || r < 0;
	s->is_state_behind = s->is_state_moved;
	s->has_state_failed = r < 0 && r != -ETIMEDOUT;	/* a disk that hangs is waited for */
}
