/*
 * SPDX-License-Identifier: Apache-2.0
 * agent: opens the stages that every agent has, drives them by timers, and closes them.
 */
#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <uuid/uuid.h>

#include "agent/state.h"
#include "agent/subscription.h"
#include "base/clock.h"
#include "collect/cgroup.h"
#include "collect/meter.h"

/* Before a quarter of the ring is full. A cycle costs as much as 60 programs; a record may be this late. */
#define DRAIN_MS 333
#define SECOND_NS UINT64_C(1000000000)
#define INTERVAL_MS_DEFAULT 10000
#define RAISED_NICE (-10)
#define FORMER_WAITS 1000	/* of a millisecond each */

/* Learns whether the clock was set. */
static void
look_at_clock(struct agent *a)
{
	a->wall_ahead_ns = clock_wall_ahead_ns(a->wall_ahead_ns);
	correlator_set_clock(a->correlator, a->wall_ahead_ns);
}

static void
on_ring_ready(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	agent_drain(arg);	/* if records are left, the level-triggered fd calls again */
}

/*
 * Sets the timer of the next drain, unless the pass of on_second_timer() is sooner, which drains the ring too. It is
 * the only one on a host where nothing happens.
 */
static void
time_drain(struct agent *a)
{
	static const struct timeval after = { 0, DRAIN_MS * 1000 };
	uint64_t since_ns = clock_ns(CLOCK_BOOTTIME) - a->second_ns;

	if (!a->is_quiet && since_ns < SECOND_NS - DRAIN_MS * UINT64_C(1500000))
		event_add(a->on_drain, &after);
}

/*
 * If records are left, the rest is drained in the next turn of the loop. An event that makes itself active is called
 * again in the same turn: as long as events came faster than they are read, no timer, signal or request was served.
 */
static void
on_drain_timer(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval next_turn;
	struct agent *a = arg;

	(void)fd;
	(void)what;
	probes_calibrate(a->probes);	/* first, when there may have been time without a CPU */
	if (agent_drain(a))
		time_drain(a);
	else
		event_add(a->on_drain, &next_turn);
}

/* Drains the ring and makes a pass, and finds out whether there were events since the last one. */
static void
make_pass(struct agent *a, bool is_due)
{
	uint64_t position;

	probes_calibrate(a->probes);
	(void)agent_snapshot(a, is_due, is_due);
	position = ring_position(a->ring);
	a->is_quiet = position == a->second_position && a->subscriptions == NULL;
	a->second_position = position;
	time_drain(a);
}

/*
 * Sets the timer of the next pass: a second from now, within a twentieth. A pass samples what threads wait for, and one
 * that came exactly each second would meet all that has such a period, as the quota of a control group has, at the same
 * moment of it.
 */
static int
time_second(struct agent *a)
{
	struct timeval after = { 0, 950000 };
	uint32_t random;

	evutil_secure_rng_get_bytes(&random, sizeof(random));
	after.tv_usec += random % 100001;
	after.tv_sec = after.tv_usec / 1000000;
	after.tv_usec %= 1000000;
	return event_add(a->on_second, &after);
}

static void
on_second_timer(evutil_socket_t fd, short what, void *arg)
{
	struct agent *a = arg;
	uint64_t now = clock_ns(CLOCK_BOOTTIME);
	bool is_due = agent_is_due(a, a->last_record_ns, now);

	(void)fd;
	(void)what;
	time_second(a);
	a->second_ns = now;
	look_at_clock(a);
	if (a->probes != NULL)
		make_pass(a, is_due);
	agent_read_titles(a);
	reader_look(a->reader);
	now = clock_ns(CLOCK_BOOTTIME);
	agent_tick(a, now, is_due);
	if (is_due) {
		agent_write_host(a);
		agent_write_agent(a, "LIVE", now);
		a->last_record_ns = now;
		a->is_entry_due = true;
	}
	a->scope->tick(a, now);
	a->scope->commit(a);
}

void
agent_tick(struct agent *a, uint64_t now_ns, bool live)
{
	agent_charge(a);
	correlator_tick(a->correlator, now_ns, live);
}

void
agent_uuid_new(char out[UUID_TEXT_SIZE])
{
	uuid_t id;

	uuid_generate_random(id);
	uuid_unparse_lower(id, out);
}

static int
open_probes(struct agent *a, const struct agent_options *options, struct probes_options o, char *error,
    size_t error_size)
{
	o.ring_bytes = options->ring_bytes;
	o.variables = options->variables;
	o.n_variables = options->n_variables;
	return probes_open(&o, &a->probes, error, error_size);
}

int
agent_init(struct agent *a, struct event_base *base, const struct agent_scope *scope,
    const struct agent_options *options, const struct probes_options *probes, char *error, size_t error_size)
{
	int r;

	a->scope = scope;
	a->base = base;
	a->interval_ns = (options->interval_ms > 0 ? options->interval_ms : INTERVAL_MS_DEFAULT) * 1000000;
	a->rules = ruleset_ref(options->rules);
	r = host_id_read("", &a->host_id);
	if (r < 0) {
		snprintf(error, error_size, "this host has neither a machine id nor a host name; create /etc/machine-id with systemd-machine-id-setup");
		return r;
	}
	if (probes != NULL)
		r = open_probes(a, options, *probes, error, error_size);
	if (r < 0)
		return r;
	r = host_open("/proc", "/sys", &a->host);
	if (r == 0)
		r = host_sample(a->host, &a->host_last);
	if (r < 0) {
		snprintf(error, error_size, "cannot read /proc: %s", strerror(-r));
		return r;
	}
	r = meter_open("/sys", clock_ns(CLOCK_BOOTTIME), &a->meter);	/* as root, who alone may read most meters */
	if (r < 0) {
		snprintf(error, error_size, "out of memory");
		return r;
	}
	if (options->has_file_owner) {
		/* Files belong to the calling user, and only paths that this user may write can be reached. */
		setfsgid(options->file_gid);
		setfsuid(options->file_uid);
	}
	host_facts_read("/proc", "/sys", &a->facts);
	if (options->facts != NULL)
		a->configured = *options->facts;
	host_facts_override(&a->facts, &a->configured);
	a->cpus = a->host_last.cpus;
	(void)cgroup_mounts_open("/proc", &a->mounts);	/* without it limits are unknown */
	r = reader_open(base, options->nursery, options->reads_headers, &a->reader);
	if (r < 0)
		snprintf(error, error_size, "out of memory");
	return r;
}

int
agent_open_stream(struct agent *a, struct record_writer output, const uint64_t *first_seq, char *error,
    size_t error_size)
{
	struct agent_identity identity = { .host_id = a->host_id.id, .host_name = a->host_id.name,
		.boot_id = a->host_id.boot_id, .agent_id = a->agent_id };
	int r;

	if (first_seq != NULL)
		memcpy(identity.first_seq, first_seq, sizeof(identity.first_seq));
	r = stream_open(&identity, output, &a->stream);
	if (r < 0)
		snprintf(error, error_size, "%s", stream_open_error());
	return r;
}

int
agent_open_ring(struct agent *a, uint64_t position, char *error, size_t error_size)
{
	int fd = probes_ring_fd(a->probes), r;
	size_t bytes = probes_ring_bytes(a->probes);

	(void)probes_former_ring(a->probes, &fd, &bytes);	/* which is read first: agent_leave_former() */
	r = ring_open(fd, bytes, position, &a->ring);
	if (r < 0)
		snprintf(error, error_size, "cannot map the ring: %s", strerror(-r));
	return r;
}

int
agent_leave_former(struct agent *a, char *error, size_t error_size)
{
	size_t bytes;
	int fd, r;

	if (!probes_former_ring(a->probes, &fd, &bytes))
		return 0;
	agent_drain_all(a);		/* which commits */
	/* A record that is still being written holds up those behind it. */
	for (int i = 0; i < FORMER_WAITS && ring_position(a->ring) < ring_end(a->ring); i++) {
		usleep(1000);
		agent_drain_all(a);
	}
	ring_close(a->ring);
	a->ring = NULL;
	probes_former_is_read(a->probes);
	r = agent_open_ring(a, 0, error, error_size);
	if (r < 0)
		return r;
	a->is_entry_due = true;		/* the next agent finds our ring in the spool, not the one that is removed */
	a->scope->commit(a);
	probes_leave_former(a->probes);
	return 0;
}

struct correlator_ops
agent_correlator_ops(const struct agent_options *options)
{
	struct correlator_ops ops = { .header = options->reads_headers ? agent_read_header : NULL,
		.job = options->reads_headers ? agent_find_job : NULL,
		.space = agent_space, .disk = agent_disk, .cpus = agent_cpus_busy };

	agent_record_ops(&ops);
	return ops;
}

int
agent_set_redaction(struct agent *a, const struct redaction_options *options, char *error, size_t error_size)
{
	struct redaction_options o = *options;
	struct redaction *new = NULL;
	int r;

	o.salt = a->host_id.id;
	r = redaction_new(&o, &new, error, error_size);
	if (r < 0)
		return r;
	correlator_set_redaction(a->correlator, new);
	return 0;
}

static int
open_timers(struct agent *a)
{
	a->on_second = evtimer_new(a->base, on_second_timer, a);
	if (a->on_second == NULL || time_second(a) < 0)
		return -ENOMEM;
	if (a->probes == NULL)
		return 0;
	a->on_ring = event_new(a->base, probes_ring_fd(a->probes), EV_READ | EV_PERSIST, on_ring_ready, a);
	a->on_drain = evtimer_new(a->base, on_drain_timer, a);
	if (a->on_ring == NULL || a->on_drain == NULL || event_add(a->on_ring, NULL) < 0)
		return -ENOMEM;
	time_drain(a);
	return 0;
}

int
agent_begin(struct agent *a, const struct agent_options *options, char *error, size_t error_size)
{
	int r = 0;

	snprintf(error, error_size, "out of memory");
	if (options->redaction != NULL)		/* before any program is recorded */
		r = agent_set_redaction(a, options->redaction, error, error_size);
	if (r == 0)
		r = decoder_new(&agent_decode_ops, a, &a->decoder);
	if (r < 0)
		return r;
	look_at_clock(a);
	a->start_ns = a->last_record_ns = a->second_ns = clock_ns(CLOCK_BOOTTIME);
	return open_timers(a);
}

void
agent_announce(struct agent *a)
{
	if (a->probes != NULL)
		agent_snapshot(a, false, true);		/* discovers live processes */
	/* What was used while no agent ran costs nothing. */
	(void)correlator_charge(a->correlator, 0, ENERGY_UNKNOWN, 0);
	agent_write_agent(a, "START", a->start_ns);
	agent_write_host(a);
}

static void
event_free_if(struct event *ev)
{
	if (ev != NULL)
		event_free(ev);
}

int
agent_close(struct agent *a)
{
	int r;

	if (a == NULL)
		return 0;
	agent_unsubscribe_all(a);
	event_free_if(a->on_ring);
	event_free_if(a->on_drain);
	event_free_if(a->on_second);
	ring_close(a->ring);
	probes_close(a->probes);
	stream_close(a->stream);
	r = a->scope->close(a);
	correlator_free(a->correlator);
	decoder_free(a->decoder);
	host_close(a->host);
	meter_close(a->meter);
	reader_close(a->reader);	/* after the correlator, which may be asking it */
	agent_forget_jobs(a);
	free(a->titles);
	cgroup_mounts_close(a->mounts);
	agent_forget_spaces(a);
	agent_forget_cpus_busy(a);
	ruleset_unref(a->rules);
	free(a->pipeline);
	free(a);
	return r;
}

void
agent_raise_priority(void)
{
	/* When a storm of programs saturates all CPUs, the agent must still keep up. If refused: normal priority. */
	setpriority(PRIO_PROCESS, 0, RAISED_NICE);
}

struct probes *
agent_probes(struct agent *a)
{
	return a->probes;
}

struct stream *
agent_stream(struct agent *a)
{
	return a->stream;
}

const char *
agent_run_id(const struct agent *a)
{
	return a->run_id;
}

const char *
agent_host_id(const struct agent *a)
{
	return a->host_id.id;
}

const char *
agent_host_name(const struct agent *a)
{
	return a->host_id.name;
}

struct correlator *
agent_correlator(struct agent *a)
{
	return a->correlator;
}

struct run_totals
agent_totals(const struct agent *a)
{
	return correlator_totals(a->correlator, clock_ns(CLOCK_BOOTTIME));
}

uint32_t
agent_cpus(const struct agent *a)
{
	return a->cpus;
}
