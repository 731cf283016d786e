/*
 * SPDX-License-Identifier: Apache-2.0
 * bench_spool ROUNDS RECORDS: CPU time per record in the spool, in batches of 1,000: put and commit
 * (spool_in), read and acknowledge (spool_out), both with an fdatasync every 100 ms (spool_sync), and
 * recovery after a crash (spool_recover).
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit/samples.h"
#include "sample.h"
#include "spool/spool.h"

enum {
	ROUNDS_MAX = 1000,
	BATCH = 1000,
	RECORD_BYTES = 300,
};

static uint64_t seq[TOPIC_COUNT];

static struct spool *
open_spool(const char *folder, uint32_t sync_ms, struct spool_recovery *recovery)
{
	struct spool_options o = { .dir = folder, .sync_ms = sync_ms };
	struct spool *s = NULL;
	char error[256];

	if (spool_open(&o, &s, recovery, error, sizeof(error)) < 0) {
		fprintf(stderr, "bench_spool: %s\n", error);
		return NULL;
	}
	for (int t = 0; t < TOPIC_COUNT; t++)
		seq[t] = spool_next_seq(s, t);
	return s;
}

/* Puts one batch of different records. */
static int
put_batch(struct spool *s, unsigned long i)
{
	static const char key[] = SAMPLE_HOST ":run-1";
	static char data[RECORD_BYTES];
	struct ring_offset ring_offset = { "", 1, i };

	for (unsigned n = 0; n < BATCH; n++) {
		memcpy(data + i % 200, &i, sizeof(i));
		if (spool_put(s, &(struct encoded_record){ TOPIC_PROGRAM, SAMPLE_TIME + (int64_t)i,
			seq[TOPIC_PROGRAM]++, key, data, sizeof(data) }) < 0)
			return -1;
		i++;
	}
	return spool_commit(s, &ring_offset, seq);
}

static unsigned long
take(struct spool *s)
{
	struct spool_record r;
	unsigned long n = 0;

	for (; spool_next(s, &r); n++)
		spool_ack(s, r.id);
	return n;
}

static double
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* Reads and acknowledges each batch, with a tick after some of them, like the agent. */
static int
bench_through(const char *folder, bool is_synced, unsigned rounds, unsigned long n)
{
	double in[ROUNDS_MAX], out[ROUNDS_MAX], both[ROUNDS_MAX];
	struct spool *s = open_spool(folder, is_synced ? 100 : 1000000000, NULL);
	unsigned long done = 0, i;
	unsigned round;

	if (s == NULL)
		return -1;
	for (round = 0; round < rounds; round++) {
		double start = sample_cpu_ns(), middle;

		in[round] = out[round] = 0;
		for (i = 0; i < n; i += BATCH) {
			middle = sample_cpu_ns();
			if (put_batch(s, i) < 0)
				return -1;
			in[round] += sample_cpu_ns() - middle;
			middle = sample_cpu_ns();
			done += take(s);
			out[round] += sample_cpu_ns() - middle;
			if (i / BATCH % 10 == 0)
				spool_tick(s, (uint64_t)now_ns());
		}
		both[round] = (sample_cpu_ns() - start) / (double)i;
		in[round] /= (double)i;
		out[round] /= (double)i;
	}
	if (spool_close(s) < 0 || done != seq[TOPIC_PROGRAM])
		return -1;
	if (is_synced) {
		sample_print("spool_sync", both, rounds);
		return 0;
	}
	sample_print("spool", both, rounds);
	sample_print("spool_in", in, rounds);
	sample_print("spool_out", out, rounds);
	return 0;
}

/* Opens a backlog: CPU time per record, and the rate. */
static int
bench_recover(const char *folder, unsigned rounds, unsigned long n)
{
	double cpu[ROUNDS_MAX], rate[ROUNDS_MAX];
	struct spool *s = open_spool(folder, 1000000000, NULL);
	struct spool_recovery recovery;

	if (s == NULL)
		return -1;
	for (unsigned long i = 0; i < n; i += BATCH)
		if (put_batch(s, i) < 0)
			return -1;
	for (unsigned round = 0; round < rounds; round++) {
		double start, wall;
		struct spool_stats stats;

		if (spool_close(s) < 0)
			return -1;
		start = sample_cpu_ns();
		wall = now_ns();
		s = open_spool(folder, 1000000000, &recovery);
		if (s == NULL || recovery.records < n)
			return -1;
		spool_stats(s, &stats);
		cpu[round] = (sample_cpu_ns() - start) / (double)recovery.records;
		rate[round] = (double)stats.bytes / ((now_ns() - wall) / 1e9) / (1 << 20);
	}
	if (spool_close(s) < 0)
		return -1;
	sample_print("spool_recover", cpu, rounds);
	sample_print("spool_recover_mib_s", rate, rounds);
	return 0;
}

int
main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
	unsigned long n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	char folders[3][64];
	int r = 0;

	if (rounds == 0 || rounds > ROUNDS_MAX || n == 0) {
		fputs("usage: bench_spool ROUNDS RECORDS\n", stderr);
		return 2;
	}
	for (int i = 0; i < 3; i++)
		if (sample_folder(folders[i]) == NULL)
			return 1;
	if (bench_through(folders[0], false, rounds, n) < 0 ||
	    bench_through(folders[1], true, rounds, n) < 0 ||
	    bench_recover(folders[2], rounds, n) < 0) {
		fputs("bench_spool: failed\n", stderr);
		r = 1;
	}
	for (int i = 0; i < 3; i++)
		sample_remove(folders[i]);
	return r;
}
