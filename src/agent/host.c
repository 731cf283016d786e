/*
 * SPDX-License-Identifier: Apache-2.0
 * What only a host-wide agent needs: its predecessor's memory, the processes that ran before it, and
 * the commit by which records, memory and the place in the ring become safe together.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/state.h"
#include "attach/filter.h"
#include "base/clock.h"
#include "spool/spool.h"

#define UNKNOWN_MAX 65536

/* Notes in the spool begin with whose they are. */
enum note_owner {
	NOTE_AGENT = 'a',
	NOTE_CORRELATOR = 'c',
};

/* What the next agent must know of this one; a note of NOTE_AGENT, in this machine's byte order. */
struct agent_note {
	char owner;
	char version;			/* AGENT_NOTE_VERSION */
	char pad[2];
	uint32_t ring_id;		/* which probes the count is of */
	uint64_t kernel_lost_seen;
	uint64_t lost_records;
	int64_t alive_us;
};
#define AGENT_NOTE_VERSION 2

static void
on_note(const void *data, size_t len, void *arg)
{
	struct agent *a = arg;
	char note[64 << 10];

	if (len + 1 > sizeof(note))
		return;		/* the correlator makes none that long */
	note[0] = NOTE_CORRELATOR;
	memcpy(note + 1, data, len);
	if (spool_note(a->spool, note, len + 1) < 0)
		a->is_checkpoint_due = true;	/* without this one the others say too little */
}

static void
put_agent_note(struct agent *a)
{
	struct agent_note note = { .owner = NOTE_AGENT, .version = AGENT_NOTE_VERSION,
		.ring_id = probes_ring_id(a->probes), .kernel_lost_seen = a->kernel_lost_seen,
		.lost_records = a->lost_records, .alive_us = clock_us(CLOCK_REALTIME) };

	spool_note(a->spool, &note, sizeof(note));
	a->is_note_due = false;
}

static void
on_replay(const void *data, size_t len, void *arg)
{
	const char *bytes = data;
	struct agent *a = arg;
	struct agent_note note;
	int r;

	if (len > 1 && bytes[0] == NOTE_CORRELATOR) {
		r = correlator_replay(a->correlator, bytes + 1, len - 1);
		if (r < 0 && r != -ESTALE)	/* of another boot: none of those lives */
			a->counts.bad_notes++;
		return;
	}
	if (len != sizeof(note) || bytes[0] != NOTE_AGENT || bytes[1] != AGENT_NOTE_VERSION) {
		a->counts.bad_notes++;
		return;
	}
	memcpy(&note, data, sizeof(note));
	a->last_alive_us = note.alive_us;
	a->lost_records = note.lost_records;
	if (note.ring_id == probes_ring_id(a->probes))
		a->kernel_lost_seen = note.kernel_lost_seen;
}

/*
 * Does what we know of the agent before reach up to what the ring still holds? Not when nobody
 * watched, nor when a batch was in memory only, for want of a disk, or the disk has lost it.
 */
static bool
is_unbroken(const struct agent *a)
{
	return probes_origin(a->probes) == PROBES_RESUMED && a->unspooled_bytes == 0;
}

int
agent_open_host(struct agent *a, const struct correlator_ops *ops)
{
	struct correlator_options c = { .boot_id = a->host_id.boot_id, .host_id = a->host_id.id,
		.cluster = a->cluster, .rules = a->rules };
	struct correlator_ops with_notes = *ops;
	int r;

	c.has_network = probes_have(a->probes, "network");
	c.host_memory_bytes = (struct opt_u64){ a->host_last.memory_bytes, a->host_last.memory_bytes > 0 };
	with_notes.note = on_note;
	r = correlator_new(&c, &with_notes, a, &a->correlator);
	if (r < 0)
		return r;
	r = found_new("/proc", &a->found);
	if (r < 0)
		return r;
	a->own_pid = (uint32_t)getpid();
	a->own_start_ticks = found_start_ticks(a->found, a->own_pid);
	spool_replay(a->spool, on_replay, a);
	correlator_replay_done(a->correlator, NULL);
	if (!is_unbroken(a))
		correlator_forget_live(a->correlator);	/* nobody watched: whether they live is not known */
	a->is_note_due = true;
	return 0;
}

bool
agent_is_self(const struct agent *a, const struct program_key *key)
{
	return key->pid == a->own_pid && found_ticks(key->start_ns) == a->own_start_ticks;
}

/* One that was running already, with what /proc says of it. */
static void
begin_found(struct agent *a, const struct state_signal *s)
{
	struct exec_signal found;

	if (!found_read(a->found, s, &found))
		return;		/* it ended meanwhile; the ring will tell */
	/* Or it exec'd before we read its arguments: then they are its next program's, which the ring tells. */
	while (!agent_drain(a))
		continue;
	if (correlator_knows(a->correlator, &s->self))
		return;
	for (int is_v2 = 0; is_v2 < 2; is_v2++) {
		struct cgroup_signal cgroup = { .is_v2 = is_v2, .path = found_cgroup(a->found, is_v2),
			.id = is_v2 ? s->context.cgroup_v2 : s->context.cgroup_v1 };

		if (cgroup.id != 0 && cgroup.path != NULL)
			agent_learn_cgroup(a, &cgroup);
	}
	correlator_exec(a->correlator, &found);
	a->n_found++;
}

bool
agent_find_state(struct agent *a, const struct state_signal *s)
{
	struct state_signal *grown;

	if (s->kind != STATE_FOUND &&
	    (s->kind != STATE_LIVE || !s->has_execed || correlator_knows(a->correlator, &s->self)))
		return false;
	/* Its exec is perhaps in the ring: ask again once that is read. And parents go first. */
	if (a->n_unknown % 1024 == 0 && a->n_unknown < UNKNOWN_MAX) {
		grown = realloc(a->unknown, (a->n_unknown + 1024) * sizeof(*grown));
		if (grown == NULL)
			return true;
		a->unknown = grown;
	}
	if (a->n_unknown < UNKNOWN_MAX)
		a->unknown[a->n_unknown++] = *s;
	return true;
}

static int
by_start(const void *a, const void *b)
{
	uint64_t x = ((const struct state_signal *)a)->self.start_ns;
	uint64_t y = ((const struct state_signal *)b)->self.start_ns;

	return (x > y) - (x < y);
}

/* All whom a pass over the running processes finds. */
static void
begin_all(struct agent *a, int fd)
{
	correlator_snapshot_begin(a->correlator, false);
	if (!agent_read_states(a, fd))
		a->counts.broken_passes++;
	while (!agent_drain(a))
		continue;
	if (a->n_unknown > 0)
		qsort(a->unknown, a->n_unknown, sizeof(*a->unknown), by_start);
	for (size_t i = 0; i < a->n_unknown; i++) {
		if (!correlator_knows(a->correlator, &a->unknown[i].self))
			begin_found(a, &a->unknown[i]);
	}
	free(a->unknown);
	a->unknown = NULL;
	a->n_unknown = 0;
	found_free(a->found);
	a->found = NULL;
}

int
agent_find_told(struct agent *a)
{
	int fd = probes_judge_open(a->probes), r;

	if (fd < 0)
		return fd;
	r = found_new("/proc", &a->found);
	if (r < 0) {
		close(fd);
		return r;
	}
	begin_all(a, fd);
	agent_commit(a);
	return 0;
}

int
agent_find(struct agent *a)
{
	int fd, r;

	if (probes_origin(a->probes) == PROBES_RESUMED) {
		while (!agent_drain(a))		/* what happened while nobody read */
			continue;
	}
	/* Before they are met: what the rules leave out is not found. */
	r = probes_set_rules_now(a->probes, a->rules);
	fd = r == 0 ? probes_found_open(a->probes) : r;
	if (fd < 0)
		return fd;
	begin_all(a, fd);
	if (a->last_alive_us != 0 && !is_unbroken(a)) {
		int64_t now = clock_us(CLOCK_REALTIME);
		uint64_t gap_ns = now > a->last_alive_us ? (uint64_t)(now - a->last_alive_us) * 1000 : 0;

		a->last_record_ns = a->start_ns > gap_ns ? a->start_ns - gap_ns : 0;
		if (probes_origin(a->probes) == PROBES_RESUMED)
			a->message = "what was seen last did not reach the spool's disk";
		agent_write_agent(a, "GAP", a->start_ns);
		a->message = NULL;
		a->last_record_ns = a->start_ns;
	}
	return 0;
}

void
agent_commit(struct agent *a)
{
	uint64_t next_seq[TOPIC_COUNT], lost_notes;
	struct spool_place place;

	if (a->spool == NULL) {
		ring_release(a->ring);
		return;
	}
	lost_notes = correlator_totals(a->correlator, a->start_ns).lost_notes;
	if (a->is_checkpoint_due || lost_notes != a->lost_notes_seen || spool_wants_checkpoint(a->spool)) {
		a->is_checkpoint_due = false;
		a->lost_notes_seen = lost_notes;
		spool_checkpoint_begin(a->spool);
		put_agent_note(a);
		correlator_checkpoint(a->correlator);
	} else if (a->is_note_due) {
		put_agent_note(a);
	}
	for (int t = 0; t < TOPIC_COUNT; t++)
		next_seq[t] = stream_next_seq(a->stream, (enum topic)t);
	memcpy(place.boot_id, a->host_id.boot_id, sizeof(place.boot_id));
	place.ring_id = probes_ring_id(a->probes);
	place.position = ring_position(a->ring);
	/* Where the disk takes nothing the batch is in memory: either way it is the spool's now. */
	spool_commit(a->spool, &place, next_seq);
	ring_release(a->ring);
	if (a->owner.committed != NULL)
		a->owner.committed(a->owner.arg);
}

void
agent_stop(struct agent *a)
{
	uint64_t now;

	while (!agent_drain(a))
		continue;
	now = clock_ns(CLOCK_BOOTTIME);
	agent_write_host(a);
	agent_write_agent(a, "STOP", now);
	a->is_note_due = true;
	agent_commit(a);
}

uint64_t
agent_ring_end(const struct agent *a)
{
	return ring_end(a->ring);
}

bool
agent_settle(struct agent *a, struct agent_settling *settling, size_t n)
{
	bool is_whole;

	for (size_t i = 0; i < n; i++)
		settling[i].ends = 0;
	a->settling = settling;
	a->n_settling = n;
	is_whole = agent_snapshot(a, false, false);
	a->n_settling = 0;
	/* Those whose last word came while the pass was under way were met by neither half of it. */
	while (!agent_drain(a))
		continue;
	correlator_tick(a->correlator, clock_ns(CLOCK_BOOTTIME), false);
	for (size_t i = 0; i < n; i++) {
		settling[i].is_read = ring_position(a->ring) >= settling[i].ring_end;
		correlator_held(a->correlator, settling[i].since_ns, &settling[i].held);
	}
	agent_commit(a);
	return is_whole;
}
