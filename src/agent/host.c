/*
 * SPDX-License-Identifier: Apache-2.0
 * host: restores the state of the previous agent, and commits records, state and ring position together.
 */
#include "agent/host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/host_state.h"
#include "agent/subscription.h"
#include "attach/filter.h"
#include "attach/variables.h"
#include "base/clock.h"
#include "model/losses.h"
#include "runtime/container_resolver.h"
#include "runtime/kubelet.h"
#include "spool/spool.h"

/* The first byte of an entry in the spool: whose entry it is. */
enum wal_owner {
	WAL_AGENT = 'a',
	WAL_CORRELATOR = 'c',
};

/*
 * State of the agent itself for the next agent: the entry of WAL_AGENT, in this machine's byte order. Its size is that
 * of the first release, which reads no other.
 */
struct agent_entry {
	char owner;
	char version;			/* AGENT_ENTRY_VERSION */
	uint16_t ahead_s;		/* struct sign_of_life; a release that wrote none left it 0 */
	uint32_t ring_id;		/* probes of which kernel_lost_seen counts */
	uint64_t kernel_lost_seen;
	uint64_t lost_records;
	int64_t alive_us;
};
#define AGENT_ENTRY_VERSION 2

static void
on_wal_entry(const void *data, size_t len, void *arg)
{
	struct host_agent *h = arg;
	char entry[64 << 10];

	if (len + 1 > sizeof(entry))
		return;		/* longer than any entry of the correlator */
	entry[0] = WAL_CORRELATOR;
	memcpy(entry + 1, data, len);
	if (spool_put_wal(h->spool, entry, len + 1) < 0)
		h->is_checkpoint_due = true;	/* later entries may refer to the lost one */
}

static void
put_agent_entry(struct host_agent *h)
{
	struct agent *a = &h->agent;
	struct sign_of_life alive = sign_of_life(clock_us(CLOCK_REALTIME), clock_us(CLOCK_BOOTTIME));
	struct agent_entry entry = { .owner = WAL_AGENT, .version = AGENT_ENTRY_VERSION, .ahead_s = alive.ahead_s,
		.ring_id = probes_ring_id(a->probes), .kernel_lost_seen = a->kernel_lost_seen,
		.lost_records = a->lost_records, .alive_us = alive.wall_us };

	spool_put_wal(h->spool, &entry, sizeof(entry));
	a->is_entry_due = false;
}

static void
on_replay(const void *data, size_t len, void *arg)
{
	const char *bytes = data;
	struct host_agent *h = arg;
	struct agent *a = &h->agent;
	struct agent_entry entry;
	int r;

	if (len > 1 && bytes[0] == WAL_CORRELATOR) {
		r = correlator_replay(a->correlator, bytes + 1, len - 1);
		if (r < 0 && r != -ESTALE)	/* -ESTALE: of another boot, whose processes are gone */
			a->counts.refused_entries++;
		return;
	}
	if (len != sizeof(entry) || bytes[0] != WAL_AGENT || bytes[1] != AGENT_ENTRY_VERSION) {
		a->counts.refused_entries++;
		return;
	}
	memcpy(&entry, data, sizeof(entry));
	h->last_alive = (struct sign_of_life){ entry.alive_us, h->is_boot_spooled ? entry.ahead_s : 0 };
	a->lost_records = h->is_renewed ? 0 : entry.lost_records;	/* holes of this agent_id */
	if (entry.ring_id != probes_ring_id(a->probes))
		return;
	a->kernel_lost_seen = entry.kernel_lost_seen;
	/* It may have those of a later version too, whose pins are gone. */
	if (a->kernel_lost_seen > probes_lost_records(a->probes))
		a->kernel_lost_seen = probes_lost_records(a->probes);
}

/*
 * Returns true if the restored state is of processes that the kernel side has followed ever since. It is not without
 * the maps of the agent before, nor if the agent that made these maps was killed before its first batch.
 */
static bool
is_continued(const struct host_agent *h)
{
	enum probes_origin origin = probes_origin(h->agent.probes);

	return origin != PROBES_FRESH && origin != PROBES_WERE_OTHER && h->is_ring_spooled;
}

/*
 * Returns true if the restored state reaches up to what the ring still holds, too. It does not if a batch was in memory
 * only, without a disk, or the disk has lost it. Programs that began or ended in it are found by the passes: unknown,
 * or unseen.
 */
static bool
is_restored(const struct host_agent *h)
{
	return is_continued(h) && h->unspooled_bytes == 0 && !spool_lacks_batches(h->spool);
}

static bool
is_self(const struct agent *a, const struct program_key *key)
{
	const struct host_agent *h = host_agent_const(a);

	return key->pid == h->own_pid && proc_reader_ticks(key->start_ns) == h->own_start_ticks;
}

/* Commits the spool's batch, up to where the ring was read. 0 or a negative errno. */
static int
commit_batch(struct agent *a)
{
	uint64_t next_seq[TOPIC_COUNT];
	struct ring_offset offset;

	for (int t = 0; t < TOPIC_COUNT; t++)
		next_seq[t] = stream_next_seq(a->stream, (enum topic)t);
	memcpy(offset.boot_id, a->host_id.boot_id, sizeof(offset.boot_id));
	offset.ring_id = probes_ring_id(a->probes);
	offset.position = ring_position(a->ring);
	/* If the disk is full or failing, the batch is kept in memory: either way the spool owns it now. */
	return spool_commit(host_agent(a)->spool, &offset, next_seq);
}

static void
commit(struct agent *a)
{
	struct host_agent *h = host_agent(a);
	uint64_t lost_entries = correlator_lost_entries(a->correlator);
	bool is_log_whole = !h->is_checkpoint_due && lost_entries == h->lost_entries_seen &&
	    !spool_is_log_lost(h->spool);
	int r;

	if (!is_log_whole || spool_wants_checkpoint(h->spool)) {
		/* So that memory has one of the two, the batch or the whole state. */
		if (is_log_whole) {
			if (a->is_entry_due)
				put_agent_entry(h);
			(void)commit_batch(a);
		}
		h->is_checkpoint_due = false;
		h->lost_entries_seen = lost_entries;
		spool_checkpoint_begin(h->spool);
		put_agent_entry(h);
		correlator_checkpoint(a->correlator);
	} else if (a->is_entry_due) {
		put_agent_entry(h);
	}
	r = commit_batch(a);
	if (h->is_lacking && h->is_announced && r == 0 && spool_set_lacking(h->spool, false) == 0)
		h->is_lacking = false;
	if (h->is_gap_written)
		probes_quiet_recorded(a->probes);
	h->is_gap_written = false;
	ring_release(a->ring);
	if (h->owner.committed != NULL)
		h->owner.committed(h->owner.arg);
}

static void
tick(struct agent *a, uint64_t now_ns)
{
	struct host_agent *h = host_agent(a);

	sight_look(h, now_ns);
	host_discover_refused(h, now_ns);
	if (h->owner.tick != NULL)
		h->owner.tick(h->owner.arg);
}

static void
describe(struct agent *a, struct agent_record *r)
{
	const struct host_agent *h = host_agent(a);
	struct spool_stats spool;

	spool_stats(h->spool, &spool);
	r->delivered = spool_delivered(h->spool);
	r->spool_records = (struct opt_u64){ spool.records, true };
	r->spool_bytes = (struct opt_u64){ spool.bytes, true };
	if (spool.oldest_us != 0 && r->head.time_us > spool.oldest_us)
		r->spool_age_ns = (struct opt_u64){ (uint64_t)(r->head.time_us - spool.oldest_us) * 1000, true };
	if (h->owner.describe != NULL)
		h->owner.describe(r, h->owner.arg);
}

static void
losses(const struct agent *a, struct loss_list *to)
{
	const struct host_agent *h = host_agent_const(a);
	struct spool_stats spool;

	spool_stats(h->spool, &spool);
	for (int topic = 0; topic < TOPIC_COUNT; topic++) {
		for (int reason = 0; reason < SPOOL_DROPS; reason++)
			losses_add(to, topic_name(topic), spool_drop_name(reason), spool.dropped[topic][reason]);
	}
	losses_add(to, "spool", "state_too_large", spool.abandoned);
	for (size_t i = 0; i < spool.n_unknown; i++)
		losses_add(to, spool.unknown[i].topic, "unknown_topic", spool.unknown[i].dropped);
	if (h->owner.losses != NULL)
		h->owner.losses(to, h->owner.arg);
}

static size_t
user_losses(const struct agent *a, struct user_loss list[USER_LOSSES], size_t n)
{
	return spool_user_losses(host_agent_const(a)->spool, list, n);
}

static int
on_close(struct agent *a)
{
	struct host_agent *h = host_agent(a);

	container_resolver_close(h->names);
	kubelet_close(h->kubelet);
	proc_reader_free(h->found);
	free(h->unknown);
	return 0;
}

static const struct agent_scope scope = {
	.leaves_out = is_self,
	.takes_state = host_discover_state,
	.commit = commit,
	.tick = tick,
	.describe = describe,
	.settle = agent_settle,
	.losses = losses,
	.user_losses = user_losses,
	.close = on_close,
};

/* Finds out whether the spool has batches of this very ring. Returns the position up to which it has; 0: none. */
static uint64_t
spooled_position(struct host_agent *h)
{
	const struct agent *a = &h->agent;
	struct ring_offset offset;
	bool has = spool_ring_offset(h->spool, &offset) && strcmp(offset.boot_id, a->host_id.boot_id) == 0;

	/* An agent that ended before the pins of another version were removed has read that one's ring. */
	if (has && offset.ring_id == probes_own_ring_id(a->probes))
		probes_leave_former(a->probes);
	h->is_boot_spooled = has;
	h->is_ring_spooled = has && offset.ring_id == probes_ring_id(a->probes);
	return h->is_ring_spooled ? offset.position : 0;
}

/* Opens a correlator and replays the write-ahead log into it. 0 or a negative errno. */
static int
open_correlator(struct host_agent *h, const struct agent_host_options *o)
{
	struct agent *a = &h->agent;
	struct correlator_options c = { .boot_id = a->host_id.boot_id, .host_id = a->host_id.id,
		.cluster = o->cluster, .rules = a->rules,
		.start_after_ns = o->agent.start_after_ms * 1000000, .finding_limits = o->agent.finding_limits };
	struct correlator_ops ops = agent_correlator_ops(&o->agent);
	int r;

	for (int i = 0; i < OPTIONAL_SIGNALS; i++)
		c.known_since_ns[i] = probes_known_since_ns(a->probes, i);
	c.host_cpus = (struct opt_double){ a->cpus, a->cpus > 0 };
	c.host_memory_bytes = (struct opt_u64){ a->host_last.memory_bytes, a->host_last.memory_bytes > 0 };
	ops.wal = on_wal_entry;
	ops.container = host_on_container;
	ops.pod = host_on_pod;
	ops.group = agent_group;
	c.max_processes = probes_max_processes(a->probes);
	r = correlator_new(&c, &ops, h, &a->correlator);
	if (r == 0)
		r = proc_reader_new("/proc", &h->found);
	if (r < 0)
		return r;
	h->own_pid = (uint32_t)probes_own_pid(a->probes);
	h->own_start_ticks = proc_reader_start_ticks(h->found, h->own_pid);
	spool_replay(h->spool, on_replay, h);
	correlator_replay_done(a->correlator, NULL);
	a->is_entry_due = true;
	return 0;
}

/*
 * Writes a GAP record if the previous agent did not see, or did not keep, everything up to now, or was another one.
 */
static void
write_first_gap(struct host_agent *h, const char *renewed)
{
	struct agent *a = &h->agent;
	struct sign_of_life now = sign_of_life(clock_us(CLOCK_REALTIME), clock_us(CLOCK_BOOTTIME));
	uint64_t gap_ns = gap_between(&h->last_alive, &now);
	uint64_t since_ns = a->start_ns > gap_ns ? a->start_ns - gap_ns : 0;
	bool was_quiet = probes_origin(a->probes) == PROBES_WERE_QUIET;
	bool is_migrated = probes_origin(a->probes) == PROBES_MIGRATED;

	if (renewed == NULL && (h->last_alive.wall_us == 0 || (is_restored(h) && !was_quiet && !is_migrated)))
		return;
	if (h->last_alive.wall_us == 0)
		since_ns = a->start_ns;		/* unknown */
	else if (is_restored(h) && probes_quiet_since_ns(a->probes) != 0)	/* events before are in the ring */
		since_ns = probes_quiet_since_ns(a->probes);
	sight_write_gap(h, since_ns, a->start_ns, renewed != NULL ? renewed :
	    h->unspooled_bytes > 0 || spool_lacks_batches(h->spool) ?
	    "the last events did not reach the spool's disk" : was_quiet ?
	    "the watchdog had stopped the probes of the agent before" : is_migrated && is_restored(h) ?
	    "the state of another version's probes was copied" : NULL);
}

int
agent_open_host(struct event_base *base, const struct agent_host_options *o, struct agent **ret, char *error,
    size_t error_size)
{
	struct probes_options probes = { .max_processes = o->max_processes, .follow_all = true,
		.pin_dir = o->pin_dir, .watchdog_ns = o->watchdog_ns };
	struct host_agent *h = calloc(1, sizeof(*h));
	uint64_t first_seq[TOPIC_COUNT], position;
	struct agent *a = &h->agent;
	struct ring_offset spooled;
	int r;

	snprintf(error, error_size, "out of memory");
	if (h == NULL)
		return -ENOMEM;
	h->spool = o->spool;
	h->owner = o->owner;
	h->is_renewed = o->renewed != NULL;
	snprintf(a->agent_id, sizeof(a->agent_id), "%s", o->agent_id);
	for (int t = 0; t < TOPIC_COUNT; t++)
		first_seq[t] = spool_next_seq(o->spool, (enum topic)t);
	if (spool_ring_offset(o->spool, &spooled))	/* of an earlier boot there are no pins */
		probes.spooled_ring_id = spooled.ring_id;
	r = agent_init(a, base, &scope, &o->agent, &probes, error, error_size);
	if (r == 0)
		r = agent_open_stream(a, (struct record_writer){ spool_put, h->spool }, first_seq, error, error_size);
	position = r == 0 ? spooled_position(h) : 0;
	if (r == 0)
		r = agent_open_ring(a, position, error, error_size);
	if (r < 0)
		goto fail;
	if (position != 0 && position < ring_position(a->ring))
		h->unspooled_bytes = ring_position(a->ring) - position;
	snprintf(error, error_size, "out of memory");
	r = open_correlator(h, o);
	if (r == 0) {
		probes_follow_all(a->probes);
		r = agent_begin(a, &o->agent, error, error_size);
	}
	if (r < 0)
		goto fail;
	/* Until the first pass is committed the next agent would have to know of what this one did not restore. */
	h->is_lacking = spool_lacks_batches(h->spool) || (is_continued(h) && !is_restored(h));
	if (h->is_lacking)
		(void)spool_set_lacking(h->spool, true);
	write_first_gap(h, o->renewed);		/* in the first batch: a later agent could not know of it */
	r = agent_leave_former(a, error, error_size);
	if (r < 0)
		goto fail;
	if (!is_continued(h))
		correlator_forget_live(a->correlator);	/* they may have ended without being seen */
	else if (!is_restored(h))
		correlator_doubt_usage(a->correlator);	/* batches that no disk had may have been delivered */
	r = host_discover(h);
	if (r < 0)
		goto fail;
	sight_begin(&a->sight, clock_ns(CLOCK_BOOTTIME));
	agent_announce(a);
	h->is_announced = true;
	commit(a);
	*ret = a;
	return 0;

fail:
	agent_close(a);
	return r;
}

void
agent_stop(struct agent *a)
{
	uint64_t now;

	agent_drain_all(a);
	agent_unsubscribe_all(a);
	now = clock_ns(CLOCK_BOOTTIME);
	correlator_write_starts(a->correlator, now, now);
	agent_write_host(a);
	agent_write_agent(a, "STOP", now);
	a->is_entry_due = true;
	if (spool_is_log_cut(host_agent(a)->spool))	/* else the next agent would record a gap */
		host_agent(a)->is_checkpoint_due = true;
	commit(a);
}

void
agent_learn_facts(struct agent *a, const struct host_facts *facts)
{
	host_facts_override(&a->facts, facts);
	host_facts_override(&a->facts, &a->configured);
}

uint64_t
agent_ring_end(const struct agent *a)
{
	return ring_end(a->ring);
}

bool
agent_settle(struct agent *a, struct agent_settling *settling, size_t n)
{
	uint64_t latest_ns = 0, now;
	bool is_whole;

	for (size_t i = 0; i < n; i++)
		settling[i].ends = 0;
	a->settling = settling;
	a->n_settling = n;
	is_whole = agent_snapshot(a, false, false);
	a->n_settling = 0;
	/* A process whose last event arrived during the pass was in neither of its halves. */
	agent_drain_all(a);
	now = clock_ns(CLOCK_BOOTTIME);
	for (size_t i = 0; i < n; i++) {
		if (settling[i].run_id == NULL && settling[i].since_ns > latest_ns)
			latest_ns = settling[i].since_ns;
	}
	if (latest_ns > 0)
		correlator_write_starts(a->correlator, latest_ns, now);
	agent_tick(a, now, false);
	for (size_t i = 0; i < n; i++) {
		settling[i].is_read = ring_position(a->ring) >= settling[i].ring_end;
		correlator_held(a->correlator, settling[i].since_ns, &settling[i].held);
	}
	commit(a);
	return is_whole;
}

bool
agent_lacks_room(const struct agent *a)
{
	return probes_refused(a->probes) != host_agent_const(a)->refused_seen;
}

const struct sight *
agent_sight(const struct agent *a)
{
	return &a->sight;
}

uint64_t
agent_unspooled_bytes(const struct agent *a)
{
	return host_agent_const(a)->unspooled_bytes;
}

void
agent_tell(struct agent *a, const char *event, const char *message)
{
	a->message = message;
	agent_write_agent(a, event, clock_ns(CLOCK_BOOTTIME));
	a->message = NULL;
	commit(a);
}

void
agent_commit(struct agent *a)
{
	commit(a);
}

void
agent_set_interval(struct agent *a, uint64_t interval_ms)
{
	a->interval_ns = interval_ms * 1000000;
}

void
agent_set_start_after(struct agent *a, uint64_t start_after_ms)
{
	correlator_set_start_after(a->correlator, start_after_ms * 1000000);
}

void
agent_set_finding_limits(struct agent *a, const struct finding_limits *limits)
{
	correlator_set_finding_limits(a->correlator, limits);
}

void
agent_set_argv_max(struct agent *a, uint64_t bytes)
{
	decoder_set_argv_max(a->decoder, bytes);
}

int
agent_set_variables(struct agent *a, const char *const *names, size_t n)
{
	return probes_set_variables(a->probes, names, n);
}

static void
on_rules_in_kernel(int error, uint64_t generation, void *arg)
{
	struct host_agent *h = arg;

	if (error == 0)
		error = host_discover_included(h);
	if (h->on_rules != NULL)
		h->on_rules(error, generation, h->on_rules_arg);
}

int
agent_set_rules(struct agent *a, struct ruleset *rules, void (*done)(int error, uint64_t generation, void *arg),
    void *arg)
{
	struct host_agent *h = host_agent(a);
	struct ruleset *old = a->rules;

	agent_drain_all(a);	/* events under the old rules are judged by these */
	a->rules = ruleset_ref(rules);
	ruleset_unref(old);
	h->on_rules = done;
	h->on_rules_arg = arg;
	/* First, so that the correlator never records a program that the kernel would have excluded. */
	correlator_set_rules(a->correlator, rules);
	return probes_set_rules(a->probes, a->base, rules, on_rules_in_kernel, h);
}

void
agent_meet_all(struct agent *a)
{
	(void)agent_snapshot(a, false, false);
}

void
agent_confine_readers(struct agent *a)
{
	reader_confine(a->reader);
}
