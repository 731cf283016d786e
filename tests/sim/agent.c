/*
 * SPDX-License-Identifier: Apache-2.0
 * agent: a small model of the agent above the spool, and of the kernel below it.
 *
 * Programs begin, use something and end, whether an agent runs or not. The ring has their beginning and end, a
 * measurement what they have used so far. Each measured difference is a Usage record, and the END record has the total
 * and the rest since the last measurement. Entries of the write-ahead log have what was measured of each program, so
 * that the next agent continues where the spool ends.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/encode.h"
#include "sim.h"
#include "spool/spool.h"
#include "../unit/samples.h"

enum {
	DRAIN_MAX = 40,			/* events */
	ALIVE_MAX = 24,			/* programs */
};

/* An entry of the write-ahead log. */
struct entry {
	uint32_t program;
	uint32_t is_alive;
	uint64_t reported;
};

/* Follows the Avro bytes of each record. */
struct trailer {
	uint64_t schema;
	uint64_t program;
	uint64_t used;
	uint64_t total;
	uint64_t salt;
};

struct sim_agent {
	struct spool *spool;
	struct encoder *encoder;
	uint64_t position;		/* in the ring */
	uint64_t next_seq[TOPIC_COUNT];
	unsigned schema;
	bool is_lacking;		/* the next agent still has to know of the gap before this one */
	struct { bool is_alive; uint64_t reported; } programs[SIM_PROGRAMS];
};

/* --- the kernel --- */

static void
add_event(enum sim_event_kind kind, unsigned program, uint64_t total)
{
	struct sim_kernel *k = &world->kernel;

	k->ring[k->written++] = (struct sim_event){ kind, program, total };
}

void
sim_programs_work(void)
{
	struct sim_kernel *k = &world->kernel;
	unsigned alive = 0;

	if (world->programs_us > world->now_us)
		return;
	world->programs_us = world->now_us + 200 * SIM_MS + (int64_t)sim_below(SIM_S);
	for (unsigned p = 0; p < world->n_programs; p++) {
		struct sim_program *program = &world->programs[p];

		if (!program->is_alive)
			continue;
		alive++;
		if (sim_dice(500))
			program->used += sim_below(1000);
		if (k->written < SIM_RING && sim_dice(100)) {
			program->is_alive = false;
			add_event(SIM_EVENT_END, p, program->used);
		}
	}
	if (world->n_programs < SIM_PROGRAMS && alive < ALIVE_MAX && k->written < SIM_RING && sim_dice(600)) {
		world->programs[world->n_programs].is_alive = true;
		add_event(SIM_EVENT_START, world->n_programs++, 0);
	}
}

/* --- records --- */

static int
encode_record(struct sim_agent *a, enum topic topic, int64_t now_us, uint64_t seq, const uint8_t **data, size_t *len)
{
	struct program_record program = sample_program_end();
	struct usage_record usage = sample_usage_record();
	struct work_record work = sample_work();
	struct host_record host = sample_host();
	struct finding_record finding = sample_finding();
	struct agent_record agent = sample_agent();
	const void *all[TOPIC_COUNT] = { [TOPIC_PROGRAM] = &program, [TOPIC_USAGE] = &usage, [TOPIC_TASK] = &work,
		[TOPIC_RUN] = &work, [TOPIC_HOST] = &host, [TOPIC_FINDING] = &finding, [TOPIC_AGENT] = &agent };

	program.head.time_us = usage.head.time_us = work.head.time_us = host.head.time_us = finding.head.time_us =
	    agent.head.time_us = now_us;
	return encode(a->encoder, topic, all[topic], seq, data, len);
}

static void
put(struct sim_agent *a, enum topic topic, unsigned program, uint64_t used, uint64_t total)
{
	static uint8_t data[64 << 10];
	int64_t now_us = world->now_us + world->wall_us;
	uint64_t seq = a->next_seq[topic]++;
	struct sim_record r = { .schema = (uint8_t)a->schema, .program = program, .used = used, .total = total,
		.is_poison = sim_dice(world->is_last ? 0 : 2) };
	struct trailer t = { a->schema, program, used, total, sim_below(UINT64_MAX) };
	const uint8_t *bytes;
	size_t len = 0;
	char key[32];
	int error;

	if (seq >= SIM_SEQS)
		return;
	if (encode_record(a, topic, now_us, seq, &bytes, &len) < 0)
		sim_broken("a record is not encoded");
	memcpy(data, bytes, len);
	memcpy(data + len, &t, sizeof(t));
	len += sizeof(t);
	/* Some are larger than others, and a few larger than a broker's batch. */
	if (sim_dice(50)) {
		size_t more = sim_below(3500);

		memset(data + len, (int)t.salt & 0xff, more);
		len += more;
	}
	r.hash = sim_hash(data, len);
	snprintf(key, sizeof(key), "host:run-%u", program % 4);
	error = spool_put(a->spool, &(struct encoded_record){ topic, now_us, seq, key, data, len });
	sim_check(error == 0, "a record is not taken: %s", strerror(-error));
	sim_check_put(sim_topic(topic), seq, &r);
	sim_say_record("%s %llu is put: program %u, %llu of %llu%s", topic_name(topic), (llu)seq, program,
	    (llu)used, (llu)total, r.is_poison ? ", poison" : "");
}

/* Records of the other topics. */
static void
put_others(struct sim_agent *a)
{
	static const enum topic topics[] = { TOPIC_TASK, TOPIC_RUN, TOPIC_HOST, TOPIC_FINDING, TOPIC_AGENT };

	for (unsigned n = (unsigned)sim_below(4); n > 0; n--)
		put(a, topics[sim_below(sizeof(topics) / sizeof(topics[0]))], 0, 0, 0);
}

static void
put_entry(struct sim_agent *a, unsigned program)
{
	struct entry e = { program, a->programs[program].is_alive, a->programs[program].reported };

	sim_check(spool_put_wal(a->spool, &e, sizeof(e)) == 0, "an entry is not taken");
}

static void
commit(struct sim_agent *a)
{
	struct sim_kernel *k = &world->kernel;
	struct ring_offset offset = { .ring_id = k->ring_id, .position = a->position + 1 };
	int r;

	if (spool_wants_checkpoint(a->spool)) {
		spool_checkpoint_begin(a->spool);
		for (unsigned p = 0; p < world->n_programs; p++)
			if (a->programs[p].is_alive)
				put_entry(a, p);
	}
	memcpy(offset.boot_id, k->boot_id, sizeof(offset.boot_id));
	sim_check_commits();
	r = spool_commit(a->spool, &offset, a->next_seq);
	if (a->is_lacking && r == 0 && spool_set_lacking(a->spool, false) == 0) {
		a->is_lacking = false;
		sim_check_gap_told();
	}
	sim_check_committed(r, a->spool);
	k->released = a->position;
}

void
sim_agent_drain(struct sim_agent *a)
{
	struct sim_kernel *k = &world->kernel;

	for (unsigned n = 0; n < DRAIN_MAX && a->position < k->written; n++) {
		const struct sim_event *e = &k->ring[a->position++];
		uint64_t reported = a->programs[e->program].reported;

		a->programs[e->program].is_alive = e->kind == SIM_EVENT_START;
		if (e->kind == SIM_EVENT_START)
			put(a, TOPIC_RUN, e->program, 0, 0);
		else
			put(a, TOPIC_PROGRAM, e->program, e->total - reported, e->total);
		put_entry(a, e->program);
	}
	put_others(a);
	commit(a);
}

void
sim_agent_measure(struct sim_agent *a)
{
	for (unsigned p = 0; p < world->n_programs; p++) {
		uint64_t used = world->programs[p].used;

		if (!a->programs[p].is_alive || used == a->programs[p].reported)
			continue;
		put(a, TOPIC_USAGE, p, used - a->programs[p].reported, 0);
		a->programs[p].reported = used;
		put_entry(a, p);
	}
	commit(a);
}

/* --- the start --- */

static void
on_replay(const void *data, size_t len, void *arg)
{
	struct sim_agent *a = arg;
	struct entry e;

	sim_check(len == sizeof(e), "an entry of the write-ahead log has %zu bytes", len);
	memcpy(&e, data, sizeof(e));
	sim_check(e.program < SIM_PROGRAMS, "an entry of the write-ahead log is of program %u", e.program);
	a->programs[e.program].is_alive = e.is_alive != 0;
	a->programs[e.program].reported = e.reported;
}

struct sim_agent *
sim_agent_open(struct spool *spool, unsigned schema)
{
	const struct sim_kernel *k = &world->kernel;
	struct agent_identity identity = sample_identity();
	struct sim_agent *a = calloc(1, sizeof(*a));
	struct ring_offset offset;
	char error[256];
	bool is_restored;

	if (a == NULL || encoder_open(&identity, &a->encoder, error, sizeof(error)) < 0)
		abort();
	a->spool = spool;
	a->schema = schema;
	for (int t = 0; t < TOPIC_COUNT; t++)
		a->next_seq[t] = spool_next_seq(spool, (enum topic)t);
	spool_replay(spool, on_replay, a);
	is_restored = spool_ring_offset(spool, &offset) && offset.ring_id == k->ring_id &&
	    strcmp(offset.boot_id, k->boot_id) == 0;
	a->position = is_restored ? offset.position - 1 : k->released;
	sim_check(a->position <= k->written, "the ring offset %llu is beyond the ring", (llu)a->position);
	if (a->position < k->released || spool_lacks_batches(spool)) {
		/* What the kernel was allowed to overwrite, and no disk has, is a gap; so is what was measured then. */
		sim_check_gap();
		(void)spool_set_lacking(spool, true);
		a->is_lacking = true;
		a->position = k->released;
		is_restored = false;
		put(a, TOPIC_AGENT, 0, 0, 0);	/* a GAP record: the next batch is not empty */
	}
	/* What is known of programs before a gap does not count any more. */
	for (unsigned p = 0; p < world->n_programs && !is_restored; p++) {
		a->programs[p].is_alive = false;
		world->programs[p].is_excused = true;
	}
	return a;
}

void
sim_agent_close(struct sim_agent *a)
{
	encoder_close(a->encoder);
	free(a);
}
