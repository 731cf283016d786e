/*
 * SPDX-License-Identifier: Apache-2.0
 * bench_wal ROUNDS PROGRAMS: CPU time per program (fork, exec, end) in the correlator of a whole host,
 * without and with a write-ahead log; the bytes of its entries; the time of a checkpoint and of a replay.
 */
#include "../unit/events.h"
#include "sample.h"

#define ROUNDS_MAX 1000
#define ALIVE 500			/* other programs that are alive meanwhile */

static char kept[64u << 20];
static size_t kept_bytes;
static double all_bytes;

static void
forget_program(const struct program_record *r, void *arg)
{
	(void)r, (void)arg;
}

static void
forget_usage(const struct usage_record *r, void *arg)
{
	(void)r, (void)arg;
}

static void
forget_work(const struct work_record *r, void *arg)
{
	(void)r, (void)arg;
}

static void
forget_finding(const struct finding_record *r, void *arg)
{
	(void)r, (void)arg;
}

/* Copies an entry into the current batch, like the spool. */
static void
keep(const void *data, size_t len, void *arg)
{
	(void)arg;
	if (kept_bytes + sizeof(len) + len > sizeof(kept))
		kept_bytes = 0;
	memcpy(kept + kept_bytes, &len, sizeof(len));
	memcpy(kept + kept_bytes + sizeof(len), data, len);
	kept_bytes += sizeof(len) + len;
	all_bytes += (double)len;
}

static void
open_world(struct world *w, bool has_wal)
{
	struct correlator_ops ops = { forget_program, forget_usage, forget_work, forget_work,
		has_wal ? keep : NULL, .finding = forget_finding };
	struct correlator_options options = { .boot_id = BOOT_ID, .rules = rules_shipped() };

	memset(w, 0, sizeof(*w));
	w->now = 1000 * SECOND;
	w->next_pid = 100;
	if (correlator_new(&options, &ops, w, &w->c) < 0)
		exit(1);
	correlator_set_clock(w->c, CLOCK_US * 1000);
}

static void
lives(struct world *w, const struct being *parent, struct being *b, const char *command)
{
	*b = forks(w, parent);
	b->c.minor_faults = 300;
	b->context.pid_ns = b->context.mnt_ns = b->context.net_ns = 4026531836;
	b->context.cgroup_v2 = 4711;
	execs(w, b, command);
}

/* Returns the nanoseconds per program. */
static double
storm(unsigned long programs, bool has_wal)
{
	static struct being alive[ALIVE];
	static const struct being *met[ALIVE];
	struct world w;
	struct being b;
	double start;

	open_world(&w, has_wal);
	for (int i = 0; i < ALIVE; i++) {
		lives(&w, i > 0 ? &alive[i / 2] : NULL, &alive[i], "sleep 1000");
		met[i] = &alive[i];
	}
	kept_bytes = 0;
	all_bytes = 0;
	start = sample_cpu_ns();
	for (unsigned long i = 0; i < programs; i++) {
		lives(&w, &alive[i % ALIVE], &b,
		    "samtools sort -@ 4 -T /scratch/tmp/sample -o /data/out/sample.sorted.bam /data/in/sample.bam");
		works(&w, &b, 1);
		exits(&w, &b, 0);
		if (i % 1000 == 999)
			snapshot(&w, false, met, ALIVE);
	}
	start = (sample_cpu_ns() - start) / (double)programs;
	correlator_free(w.c);
	return start;
}

/* Measures a checkpoint of ALIVE programs, and its replay. */
static void
checkpoint(double *ret_checkpoint, double *ret_replay, double *ret_bytes)
{
	struct being b, last;
	struct world w, next;
	double start;

	open_world(&w, true);
	lives(&w, NULL, &last, "bash");
	for (int i = 0; i < ALIVE; i++) {
		lives(&w, &last, &b, "samtools sort -@ 4 -T /scratch/tmp/sample -o /data/out/sample.bam /data/in/a.bam");
		last = b;
	}
	kept_bytes = 0;
	start = sample_cpu_ns();
	correlator_checkpoint(w.c);
	*ret_checkpoint = (sample_cpu_ns() - start) / ALIVE;
	*ret_bytes = (double)kept_bytes / ALIVE;
	open_world(&next, true);
	start = sample_cpu_ns();
	for (size_t at = 0, len; at < kept_bytes; at += len) {
		memcpy(&len, kept + at, sizeof(len));
		at += sizeof(len);
		if (correlator_replay(next.c, kept + at, len) < 0)
			exit(1);
	}
	correlator_replay_done(next.c, NULL);
	*ret_replay = (sample_cpu_ns() - start) / ALIVE;
	correlator_free(w.c);
	correlator_free(next.c);
}

int
main(int argc, char **argv)
{
	unsigned rounds = argc == 3 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	unsigned long programs = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
	double without[ROUNDS_MAX], with[ROUNDS_MAX], bytes[ROUNDS_MAX], told[ROUNDS_MAX], replayed[ROUNDS_MAX],
	    whole[ROUNDS_MAX];

	if (rounds == 0 || rounds > ROUNDS_MAX || programs == 0) {
		fprintf(stderr, "usage: bench_wal ROUNDS PROGRAMS\n");
		return 2;
	}
	storm(programs, true);		/* warm-up */
	for (unsigned i = 0; i < rounds; i++) {
		without[i] = storm(programs, false);
		with[i] = storm(programs, true);
		bytes[i] = all_bytes / (double)programs;
		checkpoint(&told[i], &replayed[i], &whole[i]);
	}
	sample_print("program_without_wal", without, rounds);
	sample_print("program_with_wal", with, rounds);
	sample_print("wal_bytes", bytes, rounds);
	sample_print("checkpoint_per_program", told, rounds);
	sample_print("replay_per_program", replayed, rounds);
	sample_print("checkpoint_bytes_per_program", whole, rounds);
	return 0;
}
