/*
 * SPDX-License-Identifier: Apache-2.0
 * bench_stream ROUNDS RECORDS: CPU time per record of encoding to Avro binary, of the stream, and of
 * the file lake (including deflate and write(2)).
 */
#include <stdlib.h>
#include <string.h>

#include "../unit/samples.h"
#include "sample.h"
#include "codec/encode.h"
#include "lake/writer.h"

#define ROUNDS_MAX 1000
#define IDS 4096		/* different programs: as redundant as a real lake */

static char ids[IDS][24], parents[IDS][24];

/* An output that discards records, so that only the stream is measured. */
static int
forget(void *to, const struct encoded_record *r)
{
	(void)to, (void)r;
	return 0;
}

/* Fills in the i-th record: START and END alternate, no two are equal. */
static void
vary(struct program_record *r, struct usage *usage, unsigned long i)
{
	unsigned long program = i / 2;

	r->head.time_us = SAMPLE_TIME + (int64_t)(i * 173);
	r->id.pid = 1000 + (uint32_t)(program % 30000);
	r->id.start_time_us = r->head.time_us - 400;
	r->id.program_start_time_us = r->head.time_us - 300;
	r->id.program_id = ids[program % IDS];
	r->id.parent_program_id = parents[program % IDS];
	if (r->phase != PHASE_END)
		return;
	r->end_time_us.value = (uint64_t)r->head.time_us;
	for (int f = 0; f < USAGE_FIELDS; f++)
		usage->value[f] = (program * 2654435761u + (unsigned)f * 40503u) % 3000000;
	r->usage = usage;
}

static int
fill(struct stream *s, unsigned long n)
{
	struct program_record records[2] = { sample_program_start(), sample_program_end() };
	struct usage usage = *sample_usage();
	int r = 0;

	for (unsigned long i = 0; i < n && r == 0; i++) {
		vary(&records[i % 2], &usage, i);
		r = stream_program(s, &records[i % 2]);
	}
	return r;
}

static int
bench_encode(const struct agent_identity *id, unsigned rounds, unsigned long n)
{
	struct program_record records[2] = { sample_program_start(), sample_program_end() };
	struct usage usage = *sample_usage();
	struct encoder *e;
	double values[ROUNDS_MAX], sizes[ROUNDS_MAX];
	const uint8_t *data;
	char err[256];
	size_t len;

	if (encoder_open(id, &e, err, sizeof(err)) < 0) {
		fprintf(stderr, "bench_stream: %s\n", err);
		return -1;
	}
	for (unsigned round = 0; round < rounds; round++) {
		double start = sample_cpu_ns(), bytes = 0;

		for (unsigned long i = 0; i < n; i++) {
			vary(&records[i % 2], &usage, i);
			if (encode(e, TOPIC_PROGRAM, &records[i % 2], i, &data, &len) < 0)
				return -1;
			bytes += (double)len;
		}
		values[round] = (sample_cpu_ns() - start) / (double)n;
		sizes[round] = bytes / (double)n;
	}
	encoder_close(e);
	sample_print("encode", values, rounds);
	sample_print("record_bytes", sizes, rounds);
	return 0;
}

static int
bench_stream(const struct agent_identity *id, unsigned rounds, unsigned long n)
{
	struct stream *s;
	double values[ROUNDS_MAX];

	if (stream_open(id, (struct record_writer){ forget, NULL }, &s) < 0)
		return -1;
	for (unsigned round = 0; round < rounds; round++) {
		double start = sample_cpu_ns();

		if (fill(s, n) < 0)
			return -1;
		values[round] = (sample_cpu_ns() - start) / (double)n;
	}
	stream_close(s);
	sample_print("stream", values, rounds);
	return 0;
}

/* Uses a new lake for each round; opening and closing it are measured too. */
static int
bench_file(const struct agent_identity *id, unsigned rounds, unsigned long n)
{
	double values[ROUNDS_MAX];

	for (unsigned round = 0; round < rounds; round++) {
		char folder[64];
		struct lake_writer_stats stats = { 0 };
		struct lake_writer_options o = { .appender = { .host_id = SAMPLE_HOST, .agent_id = SAMPLE_AGENT },
			.put_wait_ms = 60000, .final_stats = &stats };
		struct lake_writer *writer;
		struct stream *s;
		double start;

		o.appender.lake = sample_folder(folder);
		if (o.appender.lake == NULL)
			return -1;
		start = sample_cpu_ns();
		if (lake_writer_open(&o, &writer) < 0 ||
		    stream_open(id, (struct record_writer){ lake_writer_put, writer }, &s) < 0 || fill(s, n) < 0)
			return -1;
		stream_close(s);
		if (lake_writer_close(writer, -1) < 0)
			return -1;
		values[round] = (sample_cpu_ns() - start) / (double)n;
		sample_remove(folder);
		if (stats.written != n)
			return -1;
	}
	sample_print("file", values, rounds);
	return 0;
}

int
main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
	unsigned long n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	struct agent_identity id = sample_identity();

	if (rounds == 0 || rounds > ROUNDS_MAX || n == 0) {
		fputs("usage: bench_stream ROUNDS RECORDS\n", stderr);
		return 2;
	}
	for (unsigned i = 0; i < IDS; i++) {
		snprintf(ids[i], sizeof(ids[i]), "%08x-%u-0", i * 2654435761u, 1000 + i);
		snprintf(parents[i], sizeof(parents[i]), "%08x-%u-1", i / 16 * 2654435761u, 900 + i / 16);
	}
	if (bench_encode(&id, rounds, n) < 0 || bench_stream(&id, rounds, n) < 0 ||
	    bench_file(&id, rounds, n) < 0) {
		fputs("bench_stream: failed\n", stderr);
		return 1;
	}
	return 0;
}
