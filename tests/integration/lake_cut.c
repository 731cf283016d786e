/*
 * SPDX-License-Identifier: Apache-2.0
 * lake_cut: the lake's writer alone, which logs on standard output what it reports.
 *
 *	lake_cut live LAKE SEED FIRST crash|close [careless]
 *	lake_cut check LAKE
 *
 * live puts records of a few topics, with seq from FIRST on, and ends without or with closing the lake. A careless one
 * takes a record for safe once it is written:
 *	A topic seq	is safe
 * check repairs the lake and prints what is in it:
 *	R topic seq	a record that is whole
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "codec/ocf.h"
#include "lake/files.h"
#include "lake/writer.h"

#define HOST "0123456789abcdef0123456789abcdef"
#define AGENT "6f1e0a52-7d0f-4c35-9a3d-0d6c3b1f7a10"
#define TIME INT64_C(1795257300123456)

enum {
	TICKS = 12,
	RECORDS_MAX = 40,		/* of a topic, between two ticks */
	ROTATE_BYTES = 16 << 10,	/* small, so that files end */
	ROTATE_BYTES_CARELESS = 1 << 20,	/* no file ends: what ends is synced, and more with it */
	TURNS_MAX = 30000,		/* milliseconds to wait for a sync */
};

/* All of a record; random, so that it does not compress. */
struct payload {
	uint64_t seq;
	uint32_t topic;
	uint32_t checksum;		/* of the noise */
	uint8_t noise[112];
};

static const enum topic topics[] = { TOPIC_PROGRAM, TOPIC_USAGE, TOPIC_TASK };
static uint64_t next_seq[TOPIC_COUNT], safe[TOPIC_COUNT];
static uint64_t random_state;

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
on_safe(unsigned series, uint64_t records, void *arg)
{
	(void)arg;
	for (; records > 0; records--)
		tell("A %u %" PRIu64 "\n", series, safe[series]++);
}

static void
on_given_back(unsigned series, uint64_t records, void *arg)
{
	(void)arg;
	fprintf(stderr, "lake_cut: %" PRIu64 " records of series %u are given back\n", records, series);
	exit(4);
}

static void
put(struct lake_writer *w, enum topic topic)
{
	struct payload p = { .seq = next_seq[topic]++, .topic = topic };

	for (size_t i = 0; i < sizeof(p.noise); i++)
		p.noise[i] = (uint8_t)random_below(256);
	p.checksum = crc32c(0, p.noise, sizeof(p.noise));
	if (lake_writer_put(w, &(struct encoded_record){ topic, TIME, p.seq, "host:run", &p, sizeof(p) }) < 0)
		exit(5);
}

static int
live(const char *lake, uint64_t first, bool closes, bool is_careless)
{
	struct lake_writer_options o = {
	    .appender = { .lake = lake, .host_id = HOST, .agent_id = AGENT,
	        .rotate_bytes = is_careless ? ROTATE_BYTES_CARELESS : ROTATE_BYTES },
	    .on_synced = is_careless ? NULL : on_safe, .on_given_back = is_careless ? NULL : on_given_back };
	struct lake_writer_stats stats;
	struct lake_writer *w;

	for (int t = 0; t < TOPIC_COUNT; t++)
		next_seq[t] = safe[t] = first;
	if (lake_writer_open(&o, &w) < 0)
		exit(6);
	for (int tick = 0; tick < TICKS; tick++) {
		uint32_t last = random_below(3);	/* at times it continues before the disk answers */

		for (size_t i = 0; i < sizeof(topics) / sizeof(*topics); i++) {
			for (uint32_t n = random_below(RECORDS_MAX); n > 0; n--)
				put(w, topics[i]);
		}
		lake_writer_tick(w, TIME + tick * INT64_C(1000000));
		for (int i = 0; i < TURNS_MAX; i++) {
			lake_writer_report(w);
			lake_writer_stats(w, &stats);
			if (stats.accepted == (is_careless ? stats.written : stats.synced) || last == 0)
				break;
			usleep(1000);
		}
		for (int t = 0; is_careless && last != 0 && t < TOPIC_COUNT; t++)
			on_safe(t, next_seq[t] - safe[t], NULL);
	}
	return closes ? -lake_writer_close(w, -1) : 0;
}

static void
read_file(const struct lake_file *f)
{
	int fd = open(f->path, O_RDONLY | O_CLOEXEC), r;
	struct ocf_reader *reader = NULL;
	struct ocf_error error;
	struct ocf_block b;

	if (fd < 0 || ocf_reader_open(fd, &reader, &error) < 0)
		exit(7);
	while ((r = ocf_reader_next(reader, &b, &error)) == 1) {
		for (uint64_t i = 0; i < b.count; i++) {
			struct payload p;

			if ((i + 1) * sizeof(p) > b.len)
				exit(8);
			memcpy(&p, (const uint8_t *)b.data + i * sizeof(p), sizeof(p));
			if (p.checksum != crc32c(0, p.noise, sizeof(p.noise)))
				exit(9);
			tell("R %u %" PRIu64 "\n", p.topic, p.seq);
		}
	}
	if (r != 0) {
		fprintf(stderr, "lake_cut: %s is damaged\n", f->path);
		exit(10);
	}
	ocf_reader_close(reader);
	close(fd);
}

static void
on_error(const char *path, int error, void *arg)
{
	(void)arg;
	fprintf(stderr, "lake_cut: %s: %s\n", path, strerror(error));
}

static int
check(const char *lake)
{
	struct lake_repair repair;
	struct lake_files files = { 0 };

	if (access(lake, F_OK) < 0)
		return 0;
	/* Of a file whose header the disk does not have nothing was acknowledged. */
	if (lake_repair(lake, HOST, &repair) < 0 || (repair.failed > 0 && repair.error != -EBADMSG)) {
		fprintf(stderr, "lake_cut: %s cannot be repaired: %s\n", repair.failed_path, strerror(-repair.error));
		return 11;
	}
	if (lake_files_add(&files, lake, on_error, NULL) < 0)
		return 12;
	lake_files_sort(&files);
	for (size_t i = 0; i < files.n; i++)
		read_file(&files.files[i]);
	lake_files_done(&files);
	return 0;
}

int
main(int argc, char **argv)
{
	if (argc >= 6 && strcmp(argv[1], "live") == 0) {
		random_state = strtoull(argv[3], NULL, 10);
		return live(argv[2], strtoull(argv[4], NULL, 10), strcmp(argv[5], "close") == 0,
		    argc == 7 && strcmp(argv[6], "careless") == 0);
	}
	if (argc == 3 && strcmp(argv[1], "check") == 0)
		return check(argv[2]);
	fputs("usage: lake_cut live LAKE SEED FIRST crash|close [careless]\n       lake_cut check LAKE\n", stderr);
	return 2;
}
