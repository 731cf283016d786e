/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a segment left by an earlier agent: opening, replaying and reading the spool ends for any
 * bytes, with as many records as were counted, and the spool works afterwards.
 *
 * The first byte selects: bit 0 the queue; bit 1 whether checksums are corrected first, so that the code
 * after their check is reached; bit 2 whether a valid segment follows; bit 3 whether the bytes are the
 * state file instead, beside a small segment; bit 4 whether one topic is held until all others are read.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "room.h"
#include "spool/spool.h"
#include "spool/format.h"

static char root[ROOM_SIZE], dir[ROOM_SIZE + 8];

static void
clear(void)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	char path[400];

	while (d != NULL && (e = readdir(d)) != NULL) {
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (e->d_name[0] != '.' && unlink(path) < 0)
			rmdir(path);
	}
	if (d != NULL)
		closedir(d);
}

static void
remove_all(void)
{
	clear();
	rmdir(dir);
	rmdir(root);
}

static void
make_root(void)
{
	room_new(root);
	snprintf(dir, sizeof(dir), "%s/spool", root);
	if (mkdir(dir, 0700) < 0)
		abort();
	atexit(remove_all);
}

static void
store(const char *name, const uint8_t *data, size_t size)
{
	char path[200];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	close(fd);
}

static uint32_t
get32(const uint8_t *from)
{
	uint32_t v;

	memcpy(&v, from, sizeof(v));
	return v;
}

static void
put32(uint8_t *to, uint32_t v)
{
	memcpy(to, &v, sizeof(v));
}

/*
 * Leaves room for more records behind a number of one: 2^58, the limit, is reached by no spool, and a file that claims
 * to be at it cannot be continued.
 */
static void
leave_room(uint8_t *number)
{
	uint64_t v;

	memcpy(&v, number, sizeof(v));
	if (v <= SPOOL_NUMBER_MAX && v > SPOOL_NUMBER_MAX / 2)
		v -= SPOOL_NUMBER_MAX / 2;
	memcpy(number, &v, sizeof(v));
}

/* Writes magics and checksums into heads and entries, as far as their lengths lead. */
static void
put_right(uint8_t *data, size_t size, int queue)
{
	uint32_t head = 44 + 48 * 2;
	size_t at, end;

	if (size < head)
		return;
	memcpy(data, "SLSG\1\0", 6);
	data[6] = (uint8_t)queue;
	data[7] = 0;
	memcpy(data + 8, "\1\0\0\0\0\0\0\0", 8);
	leave_room(data + 16);
	put32(data + 32, head);
	put32(data + 36, 2);
	snprintf((char *)data + 40, 32, "sluice.program");
	snprintf((char *)data + 88, 32, "sluice.usage");
	put32(data + head - 4, crc32c(0, data, head - 4));
	for (at = head; size - at >= spool_batch_head_size(2); at = end) {
		uint8_t *batch = data + at;
		uint64_t offset = at;
		size_t entry = at + spool_batch_head_size(2);

		end = entry + get32(batch + 8) % (size - entry + 1);
		memcpy(batch, SPOOL_BATCH_MAGIC, 4);
		put32(batch + 8, (uint32_t)(end - entry));
		batch[22] = (uint8_t)queue;
		batch[23] = 0;
		memcpy(batch + 24, "\1\0\0\0\0\0\0\0", 8);
		memcpy(batch + 32, &offset, 8);
		leave_room(batch + 40);
		put32(batch + 4, crc32c(0, batch + 8, spool_batch_head_size(2) - 8));
		while (end - entry >= SPOOL_ENTRY_HEAD) {
			size_t len = spool_entry_peek(data + entry, 2);

			if (len == 0 || len > end - entry)
				break;
			put32(data + entry, crc32c(0, data + entry + 4, len - 4));
			entry += len;
		}
	}
}

/* Makes a segment of one batch with one record. */
static void
store_whole(int queue, uint64_t number, const char *name)
{
	uint8_t data[SPOOL_SEGMENT_HEAD_MAX + SPOOL_BATCH_HEAD_MAX + 64];
	struct spool_segment_head h = { .queue = (uint16_t)queue, .number = number, .first = 1 << 20,
	    .needed_from = 1, .n_topics = 1, .topics = { { .name = "sluice.program" } } };
	struct spool_entry e = { .kind = SPOOL_ENTRY_RECORD, .key = "k", .key_len = 1,
	    .data = (const uint8_t *)"d", .data_len = 1, .seq = 9 };
	size_t head = spool_segment_head_pack(data, &h), len = spool_entry_size(1, 1);
	struct spool_batch_head b = { .len = (uint32_t)len, .entries = 1, .records = 1,
	    .queue = (uint16_t)queue, .segment = number, .offset = head, .first = 1 << 20,
	    .next_seq = { 10 }, .counts = { 1 } };

	spool_batch_head_pack(data + head, &b, 1);
	spool_entry_pack(data + head + spool_batch_head_size(1), &e);
	store(name, data, head + spool_batch_head_size(1) + len);
}

/* Reads each byte, which ASan checks at once. */
static void
read_all(const void *data, size_t len)
{
	static uint8_t copy[1 << 20];

	if (len > sizeof(copy))
		abort();
	memcpy(copy, data, len);
	__asm__ volatile("" : : "r"(copy) : "memory");	/* or the copy, which is not used, would not be made */
}

static void
on_wal_entry(const void *data, size_t len, void *arg)
{
	(void)arg;
	read_all(data, len);
}

/* Reads and acknowledges all records; those of Program records after all others, if they are held. */
static uint64_t
drain(struct spool *s, bool is_held)
{
	struct spool_record r;
	uint64_t n = 0;

	for (; spool_next(s, &r); n++) {
		if ((unsigned)r.topic >= TOPIC_COUNT)
			abort();
		if (is_held && r.topic == TOPIC_PROGRAM) {
			spool_unget(s);
			spool_hold(s, TOPIC_PROGRAM);
			continue;
		}
		read_all(r.data, r.len);
		read_all(r.key, strlen(r.key));
		if (n % 3 == 0)
			spool_unget(s);
		else
			spool_ack(s, r.id);
	}
	spool_release(s, TOPIC_PROGRAM);
	return is_held ? n + drain(s, false) : n;
}

static struct spool *
open_spool(struct spool_recovery *recovery)
{
	struct spool_options o = { .dir = dir, .max_bytes = 1 << 20 };
	struct spool *s;
	char error[256];

	if (spool_open(&o, &s, recovery, error, sizeof(error)) < 0) {
		fprintf(stderr, "%s\n", error);
		abort();
	}
	return s;
}

static void
check(bool is_held)
{
	uint64_t seq[TOPIC_COUNT], want;
	struct spool_recovery recovery;
	struct spool_stats stats;
	struct spool *s = open_spool(&recovery);
	struct spool *spool = s;
	bool is_lacking;
	int r;

	spool_replay(s, on_wal_entry, NULL);
	want = recovery.records;
	for (int t = 0; t < TOPIC_COUNT; t++)
		seq[t] = spool_next_seq(s, t);
	if (spool_put(spool, &(struct encoded_record){ TOPIC_RUN, 1, seq[TOPIC_RUN]++, "k", "data", 4 }) != 0)
		abort();
	if (spool_commit(s, NULL, seq) != 0)
		abort();
	drain(s, is_held);
	spool_tick(s, 1);
	spool_stats(s, &stats);
	/* Exactly the counted records must be read. */
	if (stats.acknowledged != want + 1 || stats.records != 0)
		abort();
	is_lacking = spool_lacks_batches(s);	/* as its state has it, if that is one of this boot */
	r = spool_close(s);
	if (r != 0) {
		fprintf(stderr, "closing: %s\n", strerror(-r));
		abort();
	}
	s = open_spool(&recovery);
	if (recovery.was_clean == is_lacking || spool_lacks_batches(s) != is_lacking || recovery.records != 0 ||
	    drain(s, false) != 0)
		abort();
	spool_close(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t copy[1 << 20];
	int queue;

	if (size == 0 || size > sizeof(copy))
		return -1;
	if (root[0] == '\0')
		make_root();
	clear();
	queue = data[0] & 1;
	memcpy(copy, data + 1, size - 1);
	if (data[0] & 8) {
		for (size_t at = 0; (data[0] & 2) && at + 4096 <= size - 1 && at < 8192; at += 4096) {
			memcpy(copy + at, "SLST", 4);
			put32(copy + at + 16, 1);
			for (size_t number = 64; number < 128; number += 8)	/* of the queues */
				leave_room(copy + at + number);
			for (size_t number = 1416; number < 2048 - 7; number += 8)	/* of the topics */
				leave_room(copy + at + number);
			put32(copy + at + 4, crc32c(0, copy + at + 8, 4096 - 8));
		}
		store("state", copy, size - 1);
		store_whole(SPOOL_MAIN, 1, "main-0000000001.seg");
	} else {
		if (data[0] & 2)
			put_right(copy, size - 1, queue);
		store(queue == SPOOL_MAIN ? "main-0000000001.seg" : "usage-0000000001.seg", copy, size - 1);
		if (data[0] & 4)
			store_whole(queue, 2,
			    queue == SPOOL_MAIN ? "main-0000000002.seg" : "usage-0000000002.seg");
	}
	check((data[0] & 16) != 0);
	return 0;
}
