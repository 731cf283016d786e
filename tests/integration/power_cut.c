/*
 * SPDX-License-Identifier: Apache-2.0
 * power_cut: a spool alone that logs every step on standard output before it is taken.
 *
 *	power_cut live DIR SEED BATCHES crash|close [careless]
 *	power_cut check DIR
 *
 * live puts records and entries, commits, reads and acknowledges at random, and ends without or with
 * closing the spool. A careless one does not wait for the disk before it reads:
 *	W topic seq batch hash	will be put		H topic seq	was read
 *	A topic seq		will be acknowledged
 * The number of each batch is its entry, and its ring offset. check prints the contents of the spool:
 *	R topic seq hash again	a waiting record	N topic seq	the next seq of a topic
 *	P batch			the last ring offset	T batch		an entry; C batch: the checkpoint
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "spool/spool.h"

enum {
	SEGMENT_BYTES = 6 << 10,	/* small, so that there are many segments */
	RECORD_MAX = 1500,
	WAITING_MAX = 64,		/* records that are read and not acknowledged */
	SYNCS_EACH = 4,			/* average number of batches per sync */
	TURNS_MAX = 10000,		/* milliseconds to wait for a sync */
};

struct waiting {
	uint64_t id;
	uint64_t seq;
	enum topic topic;
};

struct entry {
	char kind;
	uint64_t batch;
};

static const enum topic topics[] = { TOPIC_PROGRAM, TOPIC_USAGE, TOPIC_TASK };
static struct spool *spool;
static struct waiting waiting[WAITING_MAX];
static size_t n_waiting;
static uint64_t batch, now_ns, random_state;

static uint32_t
random_below(uint32_t n)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(random_state >> 33) % n;
}

/* Writes one line with one write(2): the reader orders them with the writes to the disk. */
static void
tell(const char *format, ...)
{
	char line[128];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (write(STDOUT_FILENO, line, (size_t)n) != n)
		exit(3);
}

static void
on_wal_entry(const void *data, size_t len, void *arg)
{
	struct entry entry;

	if (len != sizeof(entry))
		exit(4);
	memcpy(&entry, data, sizeof(entry));
	if (arg != NULL)
		tell("%c %" PRIu64 "\n", entry.kind, entry.batch);
	else
		batch = entry.batch;
}

static void
open_spool(const char *dir, bool tells, bool is_careless)
{
	struct spool_options o = { .dir = dir, .segment_bytes = SEGMENT_BYTES, .is_sync_first = !is_careless };
	char error[512] = "";

	for (int t = 0; t < TOPIC_COUNT; t++)
		o.schemas[t] = topic_name(t);
	if (spool_open(&o, &spool, NULL, error, sizeof(error)) < 0) {
		fprintf(stderr, "power_cut: %s\n", error);
		exit(5);
	}
	spool_replay(spool, on_wal_entry, tells ? &batch : NULL);
}

static void
entry(char kind)
{
	struct entry n = { kind, batch };

	if (spool_put_wal(spool, &n, sizeof(n)) < 0)
		exit(6);
}

static void
put(enum topic topic, uint64_t seq)
{
	static uint8_t data[RECORD_MAX];
	size_t len = 1 + random_below(RECORD_MAX);

	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)random_below(256);
	tell("W %d %" PRIu64 " %" PRIu64 " %" PRIu32 "\n", topic, seq, batch, crc32c(0, data, len));
	if (spool_put(spool, &(struct encoded_record){ topic, 1, seq, "host:run", data, len }) < 0)
		exit(7);
}

static void
put_batch(uint64_t next_seq[TOPIC_COUNT])
{
	struct ring_offset ring_offset = { "b3f1f8a1-0c5e-4f5e-8f7e-2f3f6d1f0b11", 7, 0 };

	ring_offset.position = ++batch;
	if (spool_wants_checkpoint(spool)) {
		spool_checkpoint_begin(spool);
		entry('C');
	} else {
		entry('T');
	}
	for (uint32_t n = random_below(6); n > 0; n--) {
		enum topic topic = topics[random_below(sizeof(topics) / sizeof(*topics))];

		put(topic, next_seq[topic]++);
	}
	if (spool_commit(spool, &ring_offset, next_seq) < 0)
		exit(8);
}

static void
acknowledge(void)
{
	size_t i = random_below((uint32_t)n_waiting);

	tell("A %d %" PRIu64 "\n", waiting[i].topic, waiting[i].seq);
	spool_ack(spool, waiting[i].id);
	waiting[i] = waiting[--n_waiting];
}

static void
hand_out(void)
{
	struct spool_record r;

	while (n_waiting < WAITING_MAX && spool_next(spool, &r)) {
		tell("H %d %" PRIu64 "\n", r.topic, r.seq);
		waiting[n_waiting++] = (struct waiting){ r.id, r.seq, r.topic };
	}
	for (uint32_t n = random_below(12); n > 0 && n_waiting > 0; n--)
		acknowledge();
}

static void
tick(void)
{
	now_ns += UINT64_C(1100000000);
	spool_tick(spool, now_ns);
}

/* Waits until everything written before is on disk. */
static void
sync_spool(void)
{
	struct spool_stats before, s;

	spool_stats(spool, &before);
	for (int i = 0; i < TURNS_MAX; i++) {
		tick();
		spool_stats(spool, &s);
		if (s.syncs > before.syncs)
			return;
		usleep(1000);
	}
	fputs("power_cut: the disk does not sync\n", stderr);
	exit(9);
}

static int
live(uint64_t seed, unsigned batches, bool closes)
{
	uint64_t next_seq[TOPIC_COUNT];

	random_state = seed;
	for (int t = 0; t < TOPIC_COUNT; t++)
		next_seq[t] = spool_next_seq(spool, t);
	for (unsigned i = 0; i < batches; i++) {
		put_batch(next_seq);
		if (random_below(SYNCS_EACH) == 0)
			sync_spool();
		hand_out();
	}
	return closes ? -spool_close(spool) : 0;
}

static int
check(void)
{
	struct ring_offset ring_offset;
	struct spool_stats s;
	struct spool_record r;

	if (spool_ring_offset(spool, &ring_offset))
		tell("P %" PRIu64 "\n", ring_offset.position);
	for (int t = 0; t < TOPIC_COUNT; t++)
		tell("N %d %" PRIu64 "\n", t, spool_next_seq(spool, t));
	/* Sync the recovered records before reading them. */
	for (int i = 0; i < TURNS_MAX; i++) {
		tick();
		while (spool_next(spool, &r)) {
			tell("R %d %" PRIu64 " %" PRIu32 " %d\n", r.topic, r.seq, crc32c(0, r.data, r.len),
			    r.is_again);
			spool_ack(spool, r.id);
		}
		spool_stats(spool, &s);
		if (s.records == 0)
			return 0;
		usleep(1000);
	}
	fprintf(stderr, "power_cut: %" PRIu64 " records are not handed out\n", s.records);
	return 9;
}

int
main(int argc, char **argv)
{
	if (argc >= 6 && strcmp(argv[1], "live") == 0) {
		open_spool(argv[2], false, argc == 7 && strcmp(argv[6], "careless") == 0);
		return live(strtoull(argv[3], NULL, 10), (unsigned)atoi(argv[4]), strcmp(argv[5], "close") == 0);
	}
	if (argc == 3 && strcmp(argv[1], "check") == 0) {
		open_spool(argv[2], true, false);
		return check();
	}
	fputs("usage: power_cut live DIR SEED BATCHES crash|close [careless]\n       power_cut check DIR\n", stderr);
	return 2;
}
