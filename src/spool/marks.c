/*
 * SPDX-License-Identifier: Apache-2.0
 * marks: the state file. Its blocks are allocated once and it is written in place, so that it can be written on
 * a full disk; two slots are written alternately, so that a torn write leaves the older one.
 *
 *	slot	 0 u32 "SLST"	 4 u32 CRC of the rest	 8 u64 generation	16 u32 version
 *		20 u32 clean	24 char boot id[40]
 *		64 for each queue: u64 all below is acknowledged, u64 none from here on was handed out,
 *		   u64 number of the next record, u64 number of the next segment
 *		128 u32 topics n	132 u32 skips m
 *		136 n times: char name[32], u64 next seq
 *		2048 m times: u64 first number, u32 count, u32 queue: acknowledged out of order
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/endian.h"
#include "spool/state.h"

#define NAME "state"
#define MAGIC "SLST"

enum {
	SLOT = 4096,
	QUEUES_AT = 64,
	QUEUE_SIZE = 32,
	COUNTS_AT = 128,
	TOPICS_AT = 136,
	TOPIC_SIZE = SPOOL_NAME_SIZE + 8,
	SKIPS_AT = 2048,
	SKIP_SIZE = 16,
	VERSION = 1,
};

_Static_assert(QUEUES_AT + SPOOL_QUEUES * QUEUE_SIZE <= COUNTS_AT, "queues overlap");
_Static_assert(TOPICS_AT + SPOOL_TOPICS_MAX * TOPIC_SIZE <= SKIPS_AT, "topics overlap");
_Static_assert(SKIPS_AT + SPOOL_SKIPS * SKIP_SIZE <= SLOT, "skips overlap");

/* Adds a range unless it is empty. False: the slot is full. */
static bool
put_skip(uint8_t *slot, uint32_t *n, enum spool_queue queue, uint64_t from, uint64_t count)
{
	uint8_t *to = slot + SKIPS_AT + *n * SKIP_SIZE;

	if (*n == SPOOL_SKIPS || count == 0 || count > UINT32_MAX)
		return *n < SPOOL_SKIPS;
	le_put64(to, from);
	le_put32(to + 8, (uint32_t)count);
	le_put32(to + 12, (uint32_t)queue);
	++*n;
	return true;
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
		uint64_t from = 0, count = 0;

		for (uint64_t i = q->flight.head; is_clean && i < q->flight.tail; i++) {
			const struct spool_handed *h = spool_flight_at(&q->flight, i);

			if (!(h->flags & SPOOL_IS_DONE))
				continue;
			if (count > 0 && h->number == from + count) {
				count++;
				continue;
			}
			if (!put_skip(slot, &n, queue, from, count))
				break;
			from = h->number;
			count = 1;
		}
		put_skip(slot, &n, queue, from, count);
		for (size_t i = 0; i < q->n_skips; i++)
			if (q->skips[i].from + q->skips[i].count > q->done_below)
				put_skip(slot, &n, queue, q->skips[i].from, q->skips[i].count);
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
	le_put32(slot + 20, is_clean);
	memcpy(slot + 24, s->boot_id, sizeof(s->boot_id));
	for (int queue = 0; queue < SPOOL_QUEUES; queue++) {
		struct spool_queue_state *q = &s->queues[queue];
		uint8_t *to = slot + QUEUES_AT + queue * QUEUE_SIZE;

		le_put64(to, spool_done_below(s, queue));
		le_put64(to + 8, q->handed_mark);
		le_put64(to + 16, q->next_number);
		le_put64(to + 24, q->next_segment);
	}
	le_put32(slot + COUNTS_AT, TOPIC_COUNT);
	for (int t = 0; t < TOPIC_COUNT; t++) {
		uint8_t *to = slot + TOPICS_AT + t * TOPIC_SIZE;

		snprintf((char *)to, SPOOL_NAME_SIZE, "%s", topic_name(t));
		le_put64(to + SPOOL_NAME_SIZE, s->next_seq[t]);
	}
	pack_skips(s, slot, is_clean);
	le_put32(slot + 4, crc32c(0, slot + 8, SLOT - 8));
}

static int
write_slot(int fd, const uint8_t *slot, uint64_t generation)
{
	ssize_t n;

	do
		n = pwrite(fd, slot, SLOT, (off_t)(generation & 1) * SLOT);
	while (n < 0 && errno == EINTR);
	return n == SLOT ? 0 : n < 0 ? -errno : -EIO;
}

int
spool_marks_open(struct spool *s)
{
	static const uint8_t empty[SLOT];
	int fd, r;

	if (s->state_fd >= 0)
		return 0;
	fd = openat(s->dir_fd, NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	/* Zeros are written, because overwriting a merely reserved block can still need free blocks. */
	if (lseek(fd, 0, SEEK_END) < 2 * (off_t)SLOT) {
		r = -posix_fallocate(fd, 0, 2 * (off_t)SLOT);
		if (r == 0)
			r = write_slot(fd, empty, 0);
		if (r == 0)
			r = write_slot(fd, empty, 1);
		if (r < 0) {
			unlinkat(s->dir_fd, NAME, 0);
			close(fd);
			return r;
		}
	}
	s->state_fd = fd;
	s->is_state_moved = true;
	return 0;
}

int
spool_marks_write(struct spool *s, bool is_clean)
{
	uint8_t slot[SLOT];
	int r;

	if (s->state_fd < 0)
		return -EBADF;
	s->generation++;
	pack(s, slot, is_clean);
	r = write_slot(s->state_fd, slot, s->generation);
	if (r == 0)
		s->is_state_moved = false;
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
arrange_skips(struct spool_queue_state *q)
{
	size_t n = 0;

	if (q->n_skips == 0)
		return;
	qsort(q->skips, q->n_skips, sizeof(*q->skips), by_from);
	for (size_t i = 1; i < q->n_skips; i++) {
		struct spool_skip *last = &q->skips[n], next = q->skips[i];

		if (next.from > last->from + last->count)
			q->skips[++n] = next;
		else if (next.from + next.count > last->from + last->count)
			last->count = next.from + next.count - last->from;
	}
	q->n_skips = n + 1;
}

static void
unpack_skips(struct spool *s, const uint8_t *slot)
{
	uint32_t n = le_get32(slot + COUNTS_AT + 4);

	for (uint32_t i = 0; i < n && i < SPOOL_SKIPS; i++) {
		const uint8_t *from = slot + SKIPS_AT + i * SKIP_SIZE;
		uint32_t queue = le_get32(from + 12);
		struct spool_queue_state *q;

		if (queue >= SPOOL_QUEUES || le_get64(from) > UINT64_MAX / 4)
			continue;
		q = &s->queues[queue];
		if (q->skips == NULL)
			q->skips = calloc(SPOOL_SKIPS, sizeof(*q->skips));
		if (q->skips == NULL)
			return;		/* they are handed out again as redeliveries */
		q->skips[q->n_skips++] = (struct spool_skip){ le_get64(from), le_get32(from + 8) };
	}
	for (int queue = 0; queue < SPOOL_QUEUES; queue++)
		arrange_skips(&s->queues[queue]);
}

/* Checks magic, version and CRC, and that the numbers are plausible. */
static bool
is_slot(const uint8_t *slot)
{
	if (memcmp(slot, MAGIC, 4) != 0 || le_get32(slot + 16) != VERSION ||
	    le_get32(slot + 4) != crc32c(0, slot + 8, SLOT - 8))
		return false;
	for (int at = QUEUES_AT; at < QUEUES_AT + SPOOL_QUEUES * QUEUE_SIZE; at += 8)
		if (le_get64(slot + at) > UINT64_MAX / 4)
			return false;
	return true;
}

static void
unpack(struct spool *s, const uint8_t *slot, struct spool_marks *ret)
{
	uint32_t topics = le_get32(slot + COUNTS_AT);

	ret->is_there = true;
	ret->is_clean = le_get32(slot + 20) == 1;
	memcpy(ret->boot_id, slot + 24, sizeof(ret->boot_id) - 1);
	s->generation = le_get64(slot + 8);
	for (int queue = 0; queue < SPOOL_QUEUES; queue++) {
		struct spool_queue_state *q = &s->queues[queue];
		const uint8_t *from = slot + QUEUES_AT + queue * QUEUE_SIZE;

		q->done_below = le_get64(from);
		q->handed_mark = le_get64(from + 8);
		q->next_number = le_get64(from + 16);
		if (le_get64(from + 24) > q->next_segment)
			q->next_segment = le_get64(from + 24);
	}
	for (uint32_t i = 0; i < topics && i < SPOOL_TOPICS_MAX; i++) {
		const uint8_t *from = slot + TOPICS_AT + i * TOPIC_SIZE;

		for (int t = 0; t < TOPIC_COUNT; t++)
			if (strncmp((const char *)from, topic_name(t), SPOOL_NAME_SIZE) == 0)
				s->next_seq[t] = le_get64(from + SPOOL_NAME_SIZE);
	}
	unpack_skips(s, slot);
}

void
spool_marks_read(struct spool *s, struct spool_marks *ret)
{
	uint8_t slots[2][SLOT];
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
	close(fd);
	if (best >= 0)
		unpack(s, slots[best], ret);
}
