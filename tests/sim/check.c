/*
 * SPDX-License-Identifier: Apache-2.0
 * check: what must be so. Each record that was put is known by its topic and seq, with a hash of its bytes.
 *
 *	a record that survives is delivered, or a dead letter, at the end; under the id that the registry has
 *	no seq is used twice, and next_seq is behind all that left the process or survives
 *	what is handed over again is marked as a redelivery
 *	first deliveries of a partition are in the order of seq, but for those that are marked as redeliveries
 *	a topic that can be delivered is, whatever happens to others
 *	the ring is released only once the disk has the batch, unless the disk refused it
 *	for each program the sum of Usage and the rest in its END are the total
 */
#include <string.h>

#include "sim.h"
#include "spool/spool.h"

/* A topic that can be delivered has its records delivered within this time, whatever waits. */
#define PROGRESS_US (120 * SIM_S)
/* Each id may take some seconds; a registry that was away is asked again after 30 s at most. */
#define SLOW_US (120 * SIM_S)
#define AWAY_US (45 * SIM_S)

static struct sim_record *
record_of(unsigned topic, uint64_t seq, const char *what)
{
	if (seq >= SIM_SEQS || world->checks.topics[topic].records[seq].durable == SIM_NOT_PUT)
		sim_broken("%s %llu %s, and was never put", sim_topic_name(topic), (llu)seq, what);
	return &world->checks.topics[topic].records[seq];
}

/* Whether a record left the process, so that its seq may not be used again. */
static bool
is_outside(const struct sim_record *r)
{
	return !r->is_excused && (r->was_out || r->arrived > 0 || r->is_dead);
}

void
sim_check_put(unsigned topic, uint64_t seq, const struct sim_record *r)
{
	struct sim_topic_check *t = &world->checks.topics[topic];
	struct sim_record *old = &t->records[seq];
	bool was_excused;

	if (old->durable != SIM_NOT_PUT && old->durable != SIM_PERHAPS)
		sim_broken("%s %llu is used twice: the first one survives", sim_topic_name(topic), (llu)seq);
	if (old->durable != SIM_NOT_PUT && is_outside(old))
		sim_broken("%s %llu is used twice: the first one was handed over", sim_topic_name(topic), (llu)seq);
	was_excused = old->is_excused || old->was_excused;
	*old = *r;
	old->was_excused = was_excused;
	old->durable = SIM_PUT;
	old->put_us = world->now_us;
	old->life = world->life;
	if (seq < t->first[SIM_PUT])
		t->first[SIM_PUT] = seq;
	if (seq >= t->next)
		t->next = seq + 1;
}

static void
raise(uint8_t from, uint8_t to, const uint64_t below[SIM_TOPICS])
{
	for (unsigned topic = 0; topic < SIM_TOPICS; topic++) {
		struct sim_topic_check *t = &world->checks.topics[topic];

		uint64_t seq = t->first[from];

		for (; seq < t->next && (below == NULL || seq < below[topic]); seq++)
			if (t->records[seq].durable == from)
				t->records[seq].durable = to;
		if (t->first[to] > t->first[from])
			t->first[to] = t->first[from];
		t->first[from] = seq;
	}
}

/* Whether the spool may take the disk for failed: it tries again after a second, and a slow one in rounds. */
static bool
has_failed_lately(void)
{
	const struct sim_disk *d = &world->disk;

	return d->write_errors > 0 || d->sync_errors > 0 || world->now_us < d->hangs_until_us || d->call_us > 0 ||
	    (d->healed_us > 0 && world->now_us - d->healed_us < 6 * SIM_S);
}

void
sim_check_commits(void)
{
	/* A kill may come when the batch is in memory, and the state file has its next seqs already. */
	world->checks.is_memory_only |= world->disk.is_full || has_failed_lately();
}

void
sim_check_committed(int error, struct spool *s)
{
	struct spool_stats stats;

	spool_stats(s, &stats);
	for (unsigned t = 0; t < TOPIC_COUNT; t++)
		for (int reason = 0; reason < SPOOL_DROPS; reason++)
			if (reason != SPOOL_DROP_CORRUPT || !world->checks.had_power_cut)
				sim_check(stats.dropped[t][reason] == 0, "%llu records of %s are dropped: %s",
				    (llu)stats.dropped[t][reason], sim_topic_name(sim_topic(t)),
				    spool_drop_name((enum spool_drop)reason));
	world->checks.is_memory_only = error < 0 || stats.memory_bytes > 0;
	if (world->checks.is_memory_only)
		return;
	world->checks.was_memory_only = false;
	raise(SIM_PUT, SIM_COMMITTED, NULL);
}

void
sim_check_synced(const uint64_t next_seq[TOPIC_COUNT])
{
	uint64_t below[SIM_TOPICS] = { 0 };	/* none of a topic that this version does not have */

	for (unsigned t = 0; t < TOPIC_COUNT; t++)
		below[sim_topic(t)] = next_seq[t];
	raise(SIM_COMMITTED, SIM_SYNCED, below);
}

void
sim_check_closed(void)
{
	raise(SIM_PUT, SIM_COMMITTED, NULL);
	raise(SIM_COMMITTED, SIM_SYNCED, NULL);
	world->checks.is_memory_only = false;
}

void
sim_check_gap(void)
{
	sim_check(world->checks.was_memory_only || world->checks.has_gap,
	    "the ring was released before its batch was on the disk");
	world->checks.has_gap = true;
}

void
sim_check_gap_told(void)
{
	world->checks.has_gap = false;
}

/* A disk that takes no file keeps the spool from setting records of an unknown topic aside, which it counts. */
static void
excuse_unknown(void)
{
	unsigned topic = world->is_newer ? (unsigned)TOPIC_AGENT : (unsigned)TOPIC_COUNT;
	struct sim_topic_check *t = &world->checks.topics[topic];

	for (uint64_t seq = 0; seq < t->next; seq++) {
		t->records[seq].is_excused = true;
		t->records[seq].durable = SIM_PERHAPS;
	}
}

void
sim_check_opened(struct spool *s)
{
	const struct sim_disk *d = &world->disk;

	if (world->has_versions && (d->is_full || d->write_errors > 0 || d->sync_errors > 0))
		excuse_unknown();
	for (unsigned own = 0; own < TOPIC_COUNT; own++) {
		unsigned topic = sim_topic(own);
		const struct sim_topic_check *t = &world->checks.topics[topic];
		uint64_t next = spool_next_seq(s, own);

		for (uint64_t seq = next; seq < t->next; seq++)
			sim_check(t->records[seq].durable != SIM_COMMITTED && t->records[seq].durable != SIM_SYNCED &&
			    !is_outside(&t->records[seq]), "the next seq of %s is %llu, but %llu %s",
			    sim_topic_name(topic), (llu)next, (llu)seq,
			    is_outside(&t->records[seq]) ? "was handed over" : "was to survive");
	}
}

/* Whether the spool has its state file, which it cannot begin on a full disk. */
static bool
has_state(void)
{
	int dir = sim_disk_find(&world->disk, 0, "spool");

	return dir >= 0 && sim_disk_find(&world->disk, dir, "state") >= 0;
}

void
sim_check_handed_over(const struct spool_record *r)
{
	struct sim_record *known = record_of(sim_topic(r->topic), r->seq, "is handed over");
	const char *name = sim_topic_name(sim_topic(r->topic));

	sim_check(known->hash == sim_hash(r->data, r->len), "%s %llu is handed over with other bytes", name,
	    (llu)r->seq);
	/* Where the state file cannot be written, the next owner does not know what was handed out. */
	sim_check(r->is_again || !known->was_out || known->is_unmarked, "%s %llu is handed over again without a mark",
	    name, (llu)r->seq);
	sim_say_record("%s %llu is handed over%s", name, (llu)r->seq, r->is_again ? ", again" : "");
	known->was_out = true;
	known->is_unmarked = known->is_unmarked || has_failed_lately();
	/* On a disk that fails the spool hands out what it has in memory only, and its seq may be given out again. */
	if (known->durable == SIM_PUT && (world->disk.write_errors > 0 || world->disk.sync_errors > 0 ||
	    !has_state()))
		known->is_excused = true;
	/* What the Usage covers is in the main batch, which a kill takes with it. */
	if (known->durable == SIM_PUT && sim_topic(r->topic) == TOPIC_USAGE && has_failed_lately())
		world->programs[known->program].is_excused = true;
}

void
sim_check_sent(const struct sim_message *m)
{
	const struct sim_record *r = record_of(m->topic, m->seq, "is sent");
	const struct sim_schema *s = &world->registry.schemas[m->topic][r->schema];
	int64_t stale_us, most_us;

	if (s->id == m->schema_id)
		return;
	for (size_t i = 0; i < SIM_FORMER; i++) {
		const struct sim_former *f = &s->former[i];

		if (f->id != m->schema_id)
			continue;
		/* A cached id is asked for before it is used, unless the registry does not answer. */
		stale_us = world->registry.answers_us - f->since_us;
		most_us = f->most_us;
		if (f->life < world->life) {
			stale_us = world->registry.answers_us - world->registry.life_us;
			most_us = world->registry.was_down ? most_us : -1;
		}
		if (world->registry.was_down)
			most_us += AWAY_US;
		if (world->registry.slow_us > 0 && world->now_us - world->registry.slow_us < SLOW_US)
			most_us += SLOW_US;
		sim_check(stale_us <= most_us,
		    "%s %llu has the id %d, which the registry has replaced by %d %llu s ago", sim_topic_name(m->topic),
		    (llu)m->seq, m->schema_id, s->id,
		    (llu)(stale_us / SIM_S));
		return;
	}
	sim_broken("%s %llu has the id %d, which was never that of its schema", sim_topic_name(m->topic),
	    (llu)m->seq, m->schema_id);
}

static void
count_usage(unsigned topic, const struct sim_record *r)
{
	struct sim_program *p = &world->programs[r->program];

	p->is_excused = p->is_excused || r->is_excused;
	if (topic == TOPIC_USAGE) {
		p->sum += r->used;
	} else if (topic == TOPIC_PROGRAM) {
		p->has_ended = true;
		p->total = r->total;
		p->rest = r->used;
	}
}

void
sim_check_arrived(const struct sim_message *m, bool is_late)
{
	struct sim_record *r = record_of(m->topic, m->seq, "is delivered");
	struct sim_topic_check *t = &world->checks.topics[m->topic];

	if (r->hash != m->hash && r->was_excused)
		return;
	sim_check(r->hash == m->hash, "%s %llu is delivered with other bytes: its seq was used twice",
	    sim_topic_name(m->topic), (llu)m->seq);
	sim_say_record("%s %llu arrives%s", sim_topic_name(m->topic), (llu)m->seq, m->is_again ? ", again" : "");
	if (r->arrived < UINT16_MAX)
		r->arrived++;
	world->checks.delivered++;
	world->checks.redelivered += m->is_again;
	if (r->arrived > 1)
		return;
	if (!m->is_again && !is_late && !r->is_dead && !r->is_excused && !r->was_excused) {
		sim_check(m->seq >= t->newest[m->partition], "%s %llu is first delivered after %llu of its partition",
		    sim_topic_name(m->topic), (llu)m->seq, (llu)t->newest[m->partition] - 1);
		t->newest[m->partition] = m->seq + 1;
	}
	if (!r->is_dead && !r->is_lost)
		count_usage(m->topic, r);
}

void
sim_check_dead(unsigned topic, uint64_t seq, uint64_t hash, const char *reason, int error)
{
	struct sim_record *r = record_of(topic, seq, "is a dead letter");

	sim_check(r->hash == hash, "the dead letter of %s %llu has other bytes", sim_topic_name(topic), (llu)seq);
	sim_check(reason != NULL && reason[0] != '\0', "the dead letter of %s %llu has no reason",
	    sim_topic_name(topic), (llu)seq);
	/* A schema that is written later than at the start, since the disk refused it then, is not synced. */
	sim_check(r->is_poison || (strcmp(reason, "schema_unknown") == 0 && world->disk.had_faults &&
	    world->checks.had_power_cut),
	    "%s %llu is given up (%s), and no broker would refuse it for good", sim_topic_name(topic),
	    (llu)seq, reason);
	sim_say("%s %llu is a dead letter: %s", sim_topic_name(topic), (llu)seq, reason);
	if (r->arrived == 0 && !r->is_dead && !r->is_lost)
		count_usage(topic, r);
	if (error != 0) {
		sim_check(world->disk.had_faults, "a dead letter is not written: %s",
		    strerror(-error));
		r->is_lost = true;
		return;
	}
	r->is_dead = true;
	world->checks.dead++;
}

void
sim_check_letter(const char *topic, uint64_t seq, uint64_t hash)
{
	for (unsigned t = 0; t < SIM_TOPICS; t++) {
		struct sim_record *r;

		if (strcmp(topic, sim_topic_name(t)) != 0)
			continue;
		r = record_of(t, seq, "is a dead letter");
		r->is_letter = r->is_letter || r->hash == hash;
	}
}

/* Whether nothing is broken that keeps a topic's records from being delivered. */
static bool
is_healthy(unsigned topic)
{
	const struct sim_topic *t = &world->cluster.topics[topic];
	bool has_leaders = true;

	for (int i = 0; i < SIM_PARTITIONS; i++)
		has_leaders = has_leaders && t->has_leader[i];
	return (topic < TOPIC_COUNT ? !world->is_newer || topic != TOPIC_AGENT : world->is_newer) &&
	    world->calm_since_us <= world->now_us && t->is_there && t->may_write && has_leaders &&
	    world->registry.refuses[topic] == 0;
}

void
sim_check_progress(struct spool *s)
{
	(void)s;
	for (unsigned topic = 0; topic < SIM_TOPICS; topic++) {
		struct sim_topic_check *t = &world->checks.topics[topic];

		if (!is_healthy(topic)) {
			t->healthy_since_us = INT64_MAX;
			continue;
		}
		if (t->healthy_since_us == INT64_MAX)
			t->healthy_since_us = world->now_us;
		if (t->healthy_since_us < world->calm_since_us)
			t->healthy_since_us = world->calm_since_us;
		if (world->now_us - t->healthy_since_us < PROGRESS_US)
			continue;
		for (uint64_t seq = t->delivered_below; seq < t->next; seq++) {
			const struct sim_record *r = &t->records[seq];

			if (seq == t->delivered_below && r->durable == SIM_SYNCED && (r->arrived > 0 || r->is_dead))
				t->delivered_below++;
			if ((r->durable != SIM_COMMITTED && r->durable != SIM_SYNCED) || r->arrived > 0 || r->is_dead ||
			    r->is_lost)
				continue;
			sim_check(world->now_us - r->put_us < PROGRESS_US,
			    "%s %llu is not delivered after %d s in which nothing keeps its topic from it",
			    sim_topic_name(topic), (llu)seq, (int)((world->now_us - r->put_us) / SIM_S));
		}
	}
}

/* The kernel has taken for written what a failed sync left: any of it may be gone. */
static void
excuse(void)
{
	raise(SIM_SYNCED, SIM_PERHAPS, NULL);
	for (unsigned topic = 0; topic < SIM_TOPICS; topic++) {
		struct sim_topic_check *t = &world->checks.topics[topic];

		for (uint64_t seq = 0; seq < t->next; seq++)
			t->records[seq].is_excused = t->records[seq].was_cut = true;
	}
}

void
sim_check_ended(enum sim_end end, bool is_power_cut)
{
	struct sim_checks *c = &world->checks;

	c->lives++;
	c->kills += end == SIM_END_KILLED && !is_power_cut;
	c->power_cuts += is_power_cut;
	c->was_memory_only |= c->is_memory_only;
	c->is_memory_only = false;
	c->had_power_cut |= is_power_cut;
	if (is_power_cut)
		for (unsigned t = 0; t < SIM_TOPICS; t++)
			for (uint64_t seq = 0; seq < c->topics[t].next; seq++)
				c->topics[t].records[seq].was_cut |= c->topics[t].records[seq].durable == SIM_COMMITTED;
	raise(SIM_PUT, SIM_PERHAPS, NULL);
	if (is_power_cut)
		raise(SIM_COMMITTED, SIM_PERHAPS, NULL);
	if (is_power_cut && world->disk.has_lost)
		excuse();
	for (unsigned t = 0; t < SIM_TOPICS; t++)
		c->topics[t].healthy_since_us = INT64_MAX;
}

void
sim_check_all(void)
{
	for (unsigned topic = 0; topic < SIM_TOPICS; topic++) {
		const struct sim_topic_check *t = &world->checks.topics[topic];

		for (uint64_t seq = 0; seq < t->next; seq++) {
			const struct sim_record *r = &t->records[seq];

			/* A power cut may take a Usage record and leave the END: the hole in seq shows that. */
			if (topic == TOPIC_USAGE && r->durable == SIM_PERHAPS && r->was_cut && r->arrived == 0 &&
			    !r->is_dead)
				world->programs[r->program].is_excused = true;
			if (r->durable != SIM_COMMITTED && r->durable != SIM_SYNCED)
				continue;
			sim_check(r->arrived > 0 || r->is_letter || r->is_lost,
			    "%s %llu was spooled in life %u, and is gone%s", sim_topic_name(topic), (llu)seq, r->life,
			    r->is_dead ? ": it was a dead letter" : "");
		}
	}
	for (unsigned i = 0; i < world->n_programs; i++) {
		const struct sim_program *p = &world->programs[i];

		sim_check(!p->has_ended || p->is_excused || p->sum + p->rest == p->total,
		    "program %u: Usage has %llu and the rest is %llu, but its END has %llu", i, (llu)p->sum,
		    (llu)p->rest, (llu)p->total);
	}
}
