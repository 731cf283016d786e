/*
 * SPDX-License-Identifier: Apache-2.0
 * spool_kit: a spool in a directory of its own, distinct records, and checks of the records read back.
 */
#ifndef SLUICE_TESTS_UNIT_SPOOL_KIT_H
#define SLUICE_TESTS_UNIT_SPOOL_KIT_H

#include <dirent.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spool/spool.h"
#include "spool/state.h"
#include "tree.h"

#define KIT_TIME INT64_C(1795257300123456)
#define KIT_SECOND UINT64_C(1000000000)

struct kit {
	struct tree tree;
	char dir[128];
	struct spool *spool;
	struct spool_options options;
	struct spool_recovery recovery;
	uint64_t seq[TOPIC_COUNT];
	uint64_t now_ns;
};

static inline void
kit_expect(bool is_so, const char *claim)
{
	if (is_so)
		return;
	fprintf(stderr, "not so: %s\n", claim);
	abort();
}

/* Checks a flight, and adds up the records of dropped segments that are out. */
static inline void
kit_check_flight(const struct spool_flight *f, uint64_t *waiting)
{
	uint64_t out = 0;

	for (uint64_t i = f->head; i < f->tail; i++) {
		const struct spool_handed *h = spool_flight_at(f, i);

		out += (h->flags & SPOOL_IS_OUT) != 0;
		*waiting += (h->flags & SPOOL_IS_OUT) != 0 && h->seg == NULL;
		kit_expect(i == f->head || spool_flight_at(f, i - 1)->number < h->number, "numbers rise");
		if (i < f->redo)
			kit_expect((h->flags & (SPOOL_IS_OUT | SPOOL_IS_DONE)) != 0, "none waits before redo");
	}
	kit_expect(out == f->n_out, "so many are out");
	kit_expect(f->tail - f->head <= SPOOL_FLIGHT_MAX, "a flight has a limit");
}

/* Checks that the spool's counters match its contents. */
static inline void
kit_check(const struct kit *k)
{
	const struct spool *s = k->spool;
	const struct spool_segment *seg, *marked = NULL, *safe = NULL;
	uint64_t bytes = 0, memory = 0, waiting[TOPIC_COUNT] = { 0 };
	unsigned fds = 0;
	struct stat st;

	for (int q = 0; q < SPOOL_QUEUES; q++) {
		const struct spool_queue_state *queue = &s->queues[q];
		uint64_t number = 0;
		unsigned aside = 0;

		TAILQ_FOREACH(seg, &queue->segments, at) {
			kit_expect(seg->number > number, "segments rise");
			number = seg->number;
			bytes += seg->size;
			memory += seg->is_on_disk ? 0 : seg->size;
			for (int t = 0; t < TOPIC_COUNT; t++)
				waiting[t] += seg->waiting[t];
			fds += seg->fd >= 0;
			if (seg->fd >= 0 && seg->is_on_disk && fstat(seg->fd, &st) == 0 && S_ISREG(st.st_mode))
				kit_expect((uint64_t)st.st_size >= seg->size, "the file has all of the segment");
			marked = seg == s->checkpoint.seg ? seg : marked;
			safe = seg == s->safe.seg ? seg : safe;
		}
		for (int t = 0; t < TOPIC_COUNT; t++) {
			kit_check_flight(&queue->topics[t].flight, &waiting[t]);
			aside += queue->topics[t].is_aside;
		}
		kit_expect(aside == queue->n_aside, "so many topics are set aside");
		kit_expect(number < queue->next_segment, "the next segment has a number of its own");
	}
	kit_expect(bytes == s->bytes, "bytes");
	kit_expect(memory == s->memory_bytes, "bytes in memory");
	kit_expect(memcmp(waiting, s->waiting, sizeof(waiting)) == 0, "records that wait");
	kit_expect(fds == s->open_fds, "open files");
	kit_expect(marked == s->checkpoint.seg, "the checkpoint's segment is there");
	kit_expect(safe == s->safe.seg, "the safe checkpoint's segment is there");
}

static inline void
kit_open(struct kit *k)
{
	char error[512] = "";
	int r = spool_open(&k->options, &k->spool, &k->recovery, error, sizeof(error));

	if (r < 0) {
		fprintf(stderr, "spool_open: %s\n", error);
		abort();
	}
	for (int t = 0; t < TOPIC_COUNT; t++)
		k->seq[t] = spool_next_seq(k->spool, t);
	kit_check(k);
}

static inline void
kit_init(struct kit *k)
{
	memset(k, 0, sizeof(*k));
	/* In memory if possible: some tests open a spool thousands of times. */
	strcpy(k->tree.root, "/dev/shm/sluice-test-XXXXXX");
	if (mkdtemp(k->tree.root) == NULL)
		tree_init(&k->tree);
	snprintf(k->dir, sizeof(k->dir), "%s/deep/spool", k->tree.root);
	k->options = (struct spool_options){ .dir = k->dir, .sync_ms = 100 };
	for (int t = 0; t < TOPIC_COUNT; t++)
		k->options.schemas[t] = topic_name(t);	/* any text will do */
}

static inline void
kit_done(struct kit *k)
{
	spool_close(k->spool);
	k->spool = NULL;
	tree_done(&k->tree);
}

/* Runs use() in a child process that exits without closing the spool. */
static inline void
kit_crash(struct kit *k, void (*use)(struct kit *k))
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		kit_open(k);
		use(k);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status != 0)
		abort();
}

/* Closes the spool, which must succeed. */
static inline void
kit_close(struct kit *k)
{
	kit_expect(spool_close(k->spool) == 0, "the spool is closed");
	k->spool = NULL;
}

static inline void
kit_reopen(struct kit *k)
{
	kit_close(k);
	kit_open(k);
}

static inline void
kit_tick(struct kit *k)
{
	k->now_ns += KIT_SECOND;
	spool_tick(k->spool, k->now_ns);
	kit_check(k);
}

/* Ticks until the condition holds, however slow the thread that syncs is. */
#define KIT_UNTIL(k, condition)						\
	do {								\
		for (int kit_turns = 0; !(condition); kit_turns++) {	\
			kit_expect(kit_turns < 60000, #condition);	\
			kit_tick(k);					\
			usleep(1000);					\
		}							\
	} while (0)

/* The same with a stopped clock: nothing else falls due. */
#define KIT_UNTIL_SYNCED(k, condition)					\
	do {								\
		for (int kit_turns = 0; !(condition); kit_turns++) {	\
			kit_expect(kit_turns < 60000, #condition);	\
			spool_tick((k)->spool, (k)->now_ns);		\
			usleep(1000);					\
		}							\
	} while (0)

static inline struct spool_stats
kit_stats(const struct kit *k)
{
	struct spool_stats st;

	spool_stats(k->spool, &st);
	return st;
}

/* Writes the bytes of a record, which follow from its topic and seq. */
static inline size_t
kit_data(enum topic topic, uint64_t seq, size_t len, uint8_t *data)
{
	uint32_t x = (uint32_t)(seq * 8 + topic) * 2654435761u + 1;

	for (size_t i = 0; i < len; i++) {
		x = x * 1664525u + 1013904223u;
		data[i] = (uint8_t)(x >> 24);
	}
	return len;
}

/* Puts a record of a user, or of none. */
static inline int
kit_put_of(struct kit *k, enum topic topic, size_t len, struct opt_u64 user, bool is_end)
{
	static uint8_t data[17 << 20];
	struct spool *spool = k->spool;
	uint64_t seq = k->seq[topic]++;
	char key[64];

	snprintf(key, sizeof(key), "host:run-%" PRIu64, seq);
	return spool_put(spool, &(struct encoded_record){ .topic = topic, .time_us = KIT_TIME + (int64_t)seq,
	    .seq = seq, .key = key, .data = data, .len = kit_data(topic, seq, len, data), .user = user,
	    .is_end = is_end });
}

static inline int
kit_put_len(struct kit *k, enum topic topic, size_t len)
{
	return kit_put_of(k, topic, len, (struct opt_u64){ 0 }, false);
}

static inline void
kit_put(struct kit *k, enum topic topic)
{
	if (kit_put_len(k, topic, 50 + k->seq[topic] % 100) != 0)
		abort();
}

/* Puts an entry of the write-ahead log, which must be taken. */
static inline void
kit_put_entry(struct kit *k, size_t len)
{
	static const char text[1 << 20];

	kit_expect(len <= sizeof(text) && spool_put_wal(k->spool, text, len) == 0, "an entry is taken");
}

static inline int
kit_commit_at(struct kit *k, uint64_t position)
{
	struct ring_offset ring_offset = { "b3f1f8a1-0c5e-4f5e-8f7e-2f3f6d1f0b11", 7, position };

	int r = spool_commit(k->spool, &ring_offset, k->seq);

	kit_check(k);
	return r;
}

static inline int
kit_commit(struct kit *k)
{
	int r = spool_commit(k->spool, NULL, k->seq);

	kit_check(k);
	return r;
}

/* Puts n records of a topic in a batch of their own. */
static inline void
kit_batch(struct kit *k, enum topic topic, unsigned n)
{
	while (n-- > 0)
		kit_put(k, topic);
	(void)kit_commit(k);
}

/* Returns whether the record equals the one that was put. */
static inline int
kit_is_whole(const struct spool_record *r)
{
	static uint8_t data[1 << 20];
	char key[64];

	snprintf(key, sizeof(key), "host:run-%" PRIu64, r->seq);
	kit_data(r->topic, r->seq, r->len, data);
	return strcmp(r->key, key) == 0 && r->time_us == KIT_TIME + (int64_t)r->seq &&
	    memcmp(r->data, data, r->len) == 0;
}

/* Returns the next record, which must equal the one that was put. */
static inline struct spool_record
kit_next(struct kit *k)
{
	struct spool_record r;

	kit_expect(spool_next(k->spool, &r), "there is a next record");
	kit_expect(kit_is_whole(&r), "the record is what was put");
	return r;
}

static inline void
kit_expect_none(struct kit *k)
{
	struct spool_record r;

	kit_expect(!spool_next(k->spool, &r), "there is no next record");
}

/* Reads and acknowledges all records and returns their number. Aborts where one differs from the one put. */
static inline uint64_t
kit_drain(struct kit *k)
{
	struct spool_record r;
	uint64_t n = 0;

	for (; spool_next(k->spool, &r); n++) {
		if (!kit_is_whole(&r)) {
			fprintf(stderr, "%s %" PRIu64 " is not what was put\n", topic_name(r.topic), r.seq);
			abort();
		}
		spool_ack(k->spool, r.id);
	}
	kit_check(k);
	return n;
}

/* Counts the spool's files with this prefix and suffix; path: the last one by name. */
static inline unsigned
kit_files(const struct kit *k, const char *prefix, const char *suffix, char path[512])
{
	DIR *dir = opendir(k->dir);
	struct dirent *e;
	char best[256] = "";
	unsigned n = 0;

	while (dir != NULL && (e = readdir(dir)) != NULL) {
		size_t len = strlen(e->d_name), tail = strlen(suffix);

		if (strncmp(e->d_name, prefix, strlen(prefix)) != 0 || len < tail ||
		    strcmp(e->d_name + len - tail, suffix) != 0)
			continue;
		n++;
		if (strcmp(e->d_name, best) > 0)
			snprintf(best, sizeof(best), "%s", e->d_name);
	}
	if (dir != NULL)
		closedir(dir);
	if (path != NULL)
		snprintf(path, 512, "%s/%s", k->dir, best);
	return n;
}

/* Returns the number of open files, plus a constant. */
static inline unsigned
kit_open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	kit_expect(dir != NULL, "/proc is there");
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

/* The contents of a file, so that a test can restore it. */
struct kit_file {
	uint8_t *data;
	size_t len;
};

static inline struct kit_file
kit_load(const char *path)
{
	struct kit_file f = { NULL, 0 };
	struct stat st;
	FILE *in = fopen(path, "re");

	if (in == NULL || fstat(fileno(in), &st) < 0)
		abort();
	f.len = (size_t)st.st_size;
	f.data = malloc(f.len + 1);
	if (f.data == NULL || fread(f.data, 1, f.len, in) != f.len)
		abort();
	fclose(in);
	return f;
}

static inline void
kit_store(const char *path, const void *data, size_t len)
{
	FILE *out = fopen(path, "we");

	if (out == NULL || fwrite(data, 1, len, out) != len || fclose(out) != 0)
		abort();
}

#endif
