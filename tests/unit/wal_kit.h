/*
 * SPDX-License-Identifier: Apache-2.0
 * wal_kit: a correlator with its entries and records, which may be killed and replayed, and events by chance for it.
 */
#ifndef SLUICE_TESTS_UNIT_WAL_KIT_H
#define SLUICE_TESTS_UNIT_WAL_KIT_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "codec/encode.h"
#include "correlate/wal.h"
#include "events.h"
#include "samples.h"

#define BEINGS 48
#define WAL_COPY 512

struct bytes {
	char *data;
	size_t len, cap;
};

/* A correlator, its entries, and its records as they would be stored. */
struct life {
	struct world w;		/* first: callbacks of events.h take it; c is replaced at each death */
	struct correlator_options options;
	struct encoder *encoder;
	struct bytes records;
	struct bytes entries;	/* each behind its length */
	size_t n_entries, n_records, n_findings;
	int64_t clock_ns;
	uint64_t random;
	struct being beings[BEINGS];
	enum { NOT_THERE, ALIVE, A_ZOMBIE } is[BEINGS];
};

static inline void
bytes_add(struct bytes *b, const void *data, size_t len)
{
	if (b->len + len > b->cap) {
		b->cap = 2 * (b->len + len);
		b->data = realloc(b->data, b->cap);
	}
	memcpy(b->data + b->len, data, len);
	b->len += len;
}

static inline void
store(struct life *l, enum topic topic, const void *record)
{
	const uint8_t *data;
	size_t len;

	assert_int_equal(encode(l->encoder, topic, record, l->n_records++, &data, &len), 0);
	bytes_add(&l->records, &len, sizeof(len));
	bytes_add(&l->records, data, len);
}

static inline void
on_program(const struct program_record *r, void *arg)
{
	store(arg, TOPIC_PROGRAM, r);
}

static inline void
on_usage(const struct usage_record *r, void *arg)
{
	store(arg, TOPIC_USAGE, r);
}

static inline void
on_task(const struct work_record *r, void *arg)
{
	store(arg, TOPIC_TASK, r);
}

static inline void
on_run(const struct work_record *r, void *arg)
{
	store(arg, TOPIC_RUN, r);
}

static inline void
on_finding(const struct finding_record *r, void *arg)
{
	struct life *l = arg;

	l->n_findings++;
	store(l, TOPIC_FINDING, r);
}

static inline void
on_wal_entry(const void *data, size_t len, void *arg)
{
	struct life *l = arg;

	assert_true(len <= WAL_MAX_BYTES);
	bytes_add(&l->entries, &len, sizeof(len));
	bytes_add(&l->entries, data, len);
	l->n_entries++;
}

static inline void
begins(struct life *l)
{
	static const struct correlator_ops ops = { on_program, on_usage, on_task, on_run, on_wal_entry,
		.finding = on_finding };

	assert_int_equal(correlator_new(&l->options, &ops, l, &l->w.c), 0);
	correlator_set_clock(l->w.c, l->clock_ns);
}

static inline void
life_open(struct life *l, const struct correlator_options *options)
{
	struct agent_identity id = sample_identity();
	char err[256];

	memset(l, 0, sizeof(*l));
	l->options = *options;
	l->clock_ns = CLOCK_US * 1000;
	l->w.now = 1000 * SECOND;
	l->w.next_pid = 100;
	assert_int_equal(encoder_open(&id, &l->encoder, err, sizeof(err)), 0);
	begins(l);
	correlator_run_start(l->w.c, l->w.now);
}

static inline void
life_close(struct life *l)
{
	correlator_free(l->w.c);
	encoder_close(l->encoder);
	free(l->records.data);
	free(l->entries.data);
}

static inline struct replayed
replay_all(struct life *l, struct correlator *c)
{
	struct replayed result;
	size_t len;

	for (size_t at = 0; at < l->entries.len; at += len) {
		memcpy(&len, l->entries.data + at, sizeof(len));
		at += sizeof(len);
		correlator_replay(c, l->entries.data + at, len);
	}
	correlator_replay_done(c, &result);
	return result;
}

/* kill -9, and the next life. */
static inline void
dies(struct life *l)
{
	size_t entries = l->n_entries, records = l->n_records;
	struct replayed result;

	correlator_free(l->w.c);
	begins(l);
	result = replay_all(l, l->w.c);
	assert_int_equal(result.entries, entries);
	assert_int_equal(result.refused + result.stale + result.incomplete, 0);
	assert_int_equal(l->n_entries, entries);
	assert_int_equal(l->n_records, records);
}

static inline void
checkpoints(struct life *l)
{
	l->entries.len = l->n_entries = 0;
	correlator_checkpoint(l->w.c);
}

/* Events by chance, the same for the same seed. */
static inline uint64_t
chance(struct life *l, uint64_t n)
{
	l->random ^= l->random << 13;
	l->random ^= l->random >> 7;
	l->random ^= l->random << 17;
	return l->random % n;
}

static inline int
pick(struct life *l, int state)
{
	int start = (int)chance(l, BEINGS);

	for (int i = 0; i < BEINGS; i++) {
		if ((int)l->is[(start + i) % BEINGS] == state)
			return (start + i) % BEINGS;
	}
	return -1;
}

static inline void
cgroup_appears(struct life *l, struct being *b)
{
	char path[64];
	struct cgroup_event s = { .id = 1 + chance(l, 20), .is_v2 = chance(l, 3) > 0, .path = path };

	snprintf(path, sizeof(path), chance(l, 9) > 0 ? "/slice/%llu" : "/\xff/%llu", (unsigned long long)s.id);
	correlator_cgroup(l->w.c, &s);
	if (s.is_v2)
		b->context.cgroup_v2 = s.id;
	else
		b->context.cgroup_v1 = s.id;
}

static inline void
a_pass(struct life *l)
{
	const struct being *met[BEINGS];
	size_t n = 0;
	bool with_usage = chance(l, 2);

	for (int i = 0; i < BEINGS; i++) {
		if (l->is[i] == ALIVE && chance(l, 30) > 0)
			met[n++] = &l->beings[i];
	}
	snapshot(&l->w, with_usage, met, n);
	correlator_tick(l->w.c, l->w.now, with_usage);
}

static inline void
is_found(struct life *l, struct being *b)
{
	static const char *const argv[] = { "sshd", "-D" };
	static const size_t argv_len[] = { 4, 2 };
	struct exec_event s = { .exe = "/usr/sbin/sshd", .cwd = "/", .argv = argv, .argv_len = argv_len,
		.argc = 2, .is_discovered = true, .comm = "sshd" };

	works(&l->w, b, chance(l, 500));
	b->execed = true;
	s.time_ns = l->w.now;
	s.self = b->key;
	s.parent = b->parent;
	s.anchor = b->anchor;
	s.replaced = b->c;
	s.context = b->context;
	correlator_exec(l->w.c, &s);
}

static inline void
something_happens(struct life *l)
{
	static const char *const commands[] = { "sh -c bwa_mem_ref.fa_|_samtools_sort", "bwa mem ref.fa a.fq",
		"samtools sort -o out.bam -", "make -j2 all", "python3 align.py --password geheim", "true",
		"nextflow run main.nf", "snakemake --jobs 2", "java -jar picard.jar MarkDuplicates" };
	int there = pick(l, ALIVE), free_slot = pick(l, NOT_THERE), zombie = pick(l, A_ZOMBIE);
	struct being *b = there >= 0 ? &l->beings[there] : NULL;
	uint64_t what = chance(l, 100);

	l->w.now += chance(l, 40) * MS;
	if (b == NULL || (what < 25 && free_slot >= 0)) {
		if (free_slot < 0)
			return;
		l->beings[free_slot] = forks(&l->w, b);
		l->is[free_slot] = ALIVE;
		if (l->options.run_id == NULL && chance(l, 6) == 0)
			is_found(l, &l->beings[free_slot]);
	} else if (what < 50) {
		execs(&l->w, b, commands[chance(l, sizeof(commands) / sizeof(commands[0]))]);
	} else if (what < 70) {
		works(&l->w, b, 1 + chance(l, 300));
		b->c.read_bytes += chance(l, 1 << 20);
		b->c.tcp_rx_bytes += chance(l, 2) * chance(l, UINT64_C(1) << 40);
	} else if (what < 78) {
		tells(&l->w, b, chance(l, 10) > 0 ? STATE_EXIT : STATE_STALE,
		    chance(l, 3) > 0 ? 0 : 0x100 << chance(l, 3));
		l->is[there] = NOT_THERE;
	} else if (what < 80) {
		struct state_event s = state_of(&l->w, b, STATE_ZOMBIE, 9);

		s.oom_killed = chance(l, 2);
		correlator_state(l->w.c, &s);
		l->is[there] = A_ZOMBIE;
	} else if (what < 82 && zombie >= 0) {
		tells(&l->w, &l->beings[zombie], STATE_EXIT, 9);
		l->is[zombie] = NOT_THERE;
	} else if (what < 83) {
		execs_unheard(&l->w, b);
	} else if (what < 84) {
		l->is[there] = NOT_THERE;	/* its end is lost */
	} else if (what < 87) {
		cgroup_appears(l, b);
	} else if (what < 88) {
		correlator_lose(l->w.c, 1);
	} else if (what < 89) {
		l->clock_ns += (int64_t)chance(l, 1000) - 500;
		correlator_set_clock(l->w.c, l->clock_ns);
	} else if (what < 90) {
		l->w.now += chance(l, 20) * SECOND;
	} else {
		a_pass(l);
	}
}

static inline void
tell_story(struct life *l, uint64_t seed, int events, int kill_every, int checkpoint_every)
{
	l->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	for (int i = 1; i <= events; i++) {
		something_happens(l);
		if (checkpoint_every > 0 && i % checkpoint_every == 0)
			checkpoints(l);
		if (kill_every > 0 && i % kill_every == 0)
			dies(l);
	}
}

static inline struct correlator_options
host_options(void)
{
	return (struct correlator_options){ .boot_id = BOOT_ID, .rules = world_options().rules };
}

#endif
