/*
 * SPDX-License-Identifier: Apache-2.0
 * The road of a signal, from the ring to the sink, and the timers that move it along.
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
#include "attach/filter.h"
#include "attach/variables.h"
#include "base/clock.h"
#include "collect/cgroup.h"
#include "lake/file_sink.h"
#include "runtime/container_names.h"
#include "spool/spool.h"

#define DRAIN_MS 50
#define DRAIN_SLOW_MS 250
#define QUIET_DRAINS 20			/* after which the ring is drained less often, till something comes */
#define CALIBRATE_EACH 5		/* drains of a host-wide agent: several times a second will do */
#define DRAIN_BATCH 512			/* records between two looks at the loop's other events */
#define DRAIN_BATCHES 16
#define INTERVAL_MS_DEFAULT 10000
#define SNAPSHOT_BYTES (256u << 10)
/*
 * A zombie may still be on its way out of the CPU, and a tick may yet fall on it; after this its
 * counters are final. Most processes are reaped long before.
 */
#define ZOMBIE_NS UINT64_C(200000000)
#define HURRY_NICE (-10)

static int64_t
wall_minus_boot_ns(void)
{
	uint64_t before, wall, after, least = UINT64_MAX;
	int64_t difference = 0;

	/* Of several pairs of readings the closest: between others this thread may have lost the CPU. */
	for (int i = 0; i < 5; i++) {
		before = clock_ns(CLOCK_BOOTTIME);
		wall = clock_ns(CLOCK_REALTIME);
		after = clock_ns(CLOCK_BOOTTIME);
		if (after - before < least) {
			least = after - before;
			difference = (int64_t)(wall - before);
		}
	}
	return difference;
}

/* collect → correlate */

static void
on_exec_signal(const struct exec_signal *s, void *arg)
{
	struct agent *a = arg;

	if (a->is_host_wide && agent_is_self(a, &s->self))
		return;
	a->counts.exec++;
	correlator_exec(a->correlator, s);
}

/*
 * The kernel side's entry is all that is left of such a process: it goes once what was made of it is
 * safe. Who finds no room here is swept again, and known then.
 */
static void
forget_later(struct agent *a, const struct state_signal *s)
{
	if (a->n_forget < sizeof(a->forget) / sizeof(a->forget[0]))
		a->forget[a->n_forget++] = (struct stale_entry){ s->entry, s->self.start_ns };
}

/* Of a process that has ended there is more to come, for those who asked after its end. */
static void
count_ending(struct agent *a, const struct state_signal *s)
{
	for (size_t i = 0; i < a->n_settling; i++)
		a->settling[i].ends += s->end_ns <= a->settling[i].since_ns;
}

static void
on_state_signal(const struct state_signal *s, void *arg)
{
	struct agent *a = arg;
	struct state_signal young;

	if (a->is_host_wide && agent_is_self(a, &s->self))
		return;
	if (a->found != NULL && agent_find_state(a, s))
		return;
	if (s->kind == STATE_STALE) {
		if (a->is_sweeping && correlator_was_met(a->correlator, &s->self))
			return;		/* a zombie */
		if (a->is_sweeping && s->entry == 0) {
			count_ending(a, s);
			correlator_ending(a->correlator, s);
			return;
		}
		if (a->is_sweeping)
			forget_later(a, s);
		a->swept++;
	} else if (s->kind == STATE_EXIT) {
		a->counts.exit++;
	} else {
		a->counts.snapshot++;
		if (s->kind == STATE_BYSTANDER) {
			a->bystanders++;
			a->bystander_threads += s->counters.threads;
			return;
		}
		a->met++;
		a->met_threads += s->counters.threads;
		a->met_ended += s->kind == STATE_ZOMBIE;
		if (s->kind == STATE_ZOMBIE && s->time_ns < s->end_ns + ZOMBIE_NS) {
			a->met_ending++;
			count_ending(a, s);
			young = *s;
			young.kind = STATE_LIVE;
			s = &young;
		}
	}
	correlator_state(a->correlator, s);
}

void
agent_learn_cgroup(struct agent *a, struct cgroup_signal *s)
{
	struct cgroup_limits limits = { 0 };

	if (a->mounts != NULL)
		cgroup_limits_read(a->mounts, s->is_v2 ? s->path : NULL, s->is_v2 ? NULL : s->path, a->cpus,
		    a->host_last.memory_bytes, &limits);
	s->cpus = limits.cpus;
	s->memory_bytes = limits.memory_bytes;
	correlator_cgroup(a->correlator, s);
	probes_learn_cgroup(a->probes, s->id, s->is_v2, s->path);
}

static void
on_cgroup_signal(const struct cgroup_signal *s, void *arg)
{
	struct cgroup_signal with_limits = *s;
	struct agent *a = arg;

	a->counts.cgroup++;
	agent_learn_cgroup(a, &with_limits);
}

/* correlate → stream; what fails is counted there */

static void
on_program_record(const struct program_record *r, void *arg)
{
	stream_program(((struct agent *)arg)->stream, r);
}

static void
on_usage_record(const struct usage_record *r, void *arg)
{
	stream_usage(((struct agent *)arg)->stream, r);
}

static void
on_task_record(const struct work_record *r, void *arg)
{
	stream_task(((struct agent *)arg)->stream, r);
}

static void
on_run_record(const struct work_record *r, void *arg)
{
	stream_run(((struct agent *)arg)->stream, r);
}

static void
on_finding_record(const struct finding_record *r, void *arg)
{
	stream_finding(((struct agent *)arg)->stream, r);
}

/* What the kernel side lost since the last look becomes a hole in seq before the next record. */
static void
lost_to_holes(struct agent *a)
{
	uint64_t kernel = probes_lost_records(a->probes);
	uint64_t lost = kernel - a->kernel_lost_seen + a->counts.malformed - a->malformed_seen;

	if (lost == 0)
		return;
	stream_skip(a->stream, TOPIC_PROGRAM, lost);
	a->kernel_lost_seen = kernel;
	a->malformed_seen = a->counts.malformed;
	a->lost_records += lost;
	a->is_note_due = true;
	correlator_set_lost(a->correlator, a->lost_records);
}

static void
on_ring_record(const void *data, size_t len, void *arg)
{
	struct agent *a = arg;

	if (decode(a->decoder, data, len) < 0)
		a->counts.malformed++;
}

bool
agent_drain(struct agent *a)
{
	a->counts.drains++;
	probes_wake_rearm(a->probes);
	for (int i = 0; i < DRAIN_BATCHES; i++) {
		size_t n = ring_drain(a->ring, on_ring_record, a, DRAIN_BATCH);

		lost_to_holes(a);
		agent_commit(a);
		if (n < DRAIN_BATCH)
			return true;
	}
	return false;
}

static void
on_ring_ready(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	agent_drain(arg);	/* not empty: the level-triggered fd calls again */
}

/* An agent that serves an idle host for months wakes up less often. */
static void
set_pace(struct agent *a, bool is_slow)
{
	const struct timeval every = { 0, (is_slow ? DRAIN_SLOW_MS : DRAIN_MS) * 1000 };

	if (is_slow == a->is_slow)
		return;
	a->is_slow = is_slow;
	event_add(a->on_drain, &every);
}

static void
on_drain_timer(evutil_socket_t fd, short what, void *arg)
{
	struct agent *a = arg;
	uint64_t position;

	(void)fd;
	(void)what;
	if (!a->is_host_wide || a->counts.drains % CALIBRATE_EACH == 0)
		probes_calibrate(a->probes);	/* first: we have just slept */
	position = ring_position(a->ring);
	if (!agent_drain(a))
		event_active(a->on_drain, EV_TIMEOUT, 0);
	a->quiet_drains = ring_position(a->ring) == position ? a->quiet_drains + 1 : 0;
	set_pace(a, a->is_host_wide && a->quiet_drains >= QUIET_DRAINS);
}

bool
agent_read_states(struct agent *a, int fd)
{
	static _Alignas(8) char buffer[SNAPSHOT_BYTES];	/* one thread, one agent */
	size_t have = 0;
	ssize_t n;

	for (;;) {
		size_t used;

		n = read(fd, buffer + have, sizeof(buffer) - have);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			break;
		have += (size_t)n;
		used = decode_stream(a->decoder, buffer, have, &a->counts.malformed);
		memmove(buffer, buffer + used, have - used);
		have -= used;
	}
	close(fd);
	return n == 0;
}

/*
 * One pass over all processes. The ring is drained first: an exec is known before its usage. Those
 * that are followed but were not met are on their way out, or were forgotten on it.
 */
bool
agent_snapshot(struct agent *a, bool with_usage, bool with_bystanders)
{
	bool is_whole = true;
	int fd;

	while (!agent_drain(a))
		continue;
	fd = probes_snapshot_open(a->probes, with_bystanders);
	if (fd < 0) {
		a->counts.broken_passes++;
		return false;
	}
	a->bystanders = a->bystander_threads = 0;
	a->met = a->met_ended = a->met_ending = a->met_threads = 0;
	correlator_snapshot_begin(a->correlator, with_usage);
	if (!agent_read_states(a, fd)) {
		a->counts.broken_passes++;
		return false;	/* whoever it did not reach is not gone for that */
	}
	if (with_bystanders) {
		a->other_processes = a->bystanders;
		a->other_threads = a->bystander_threads;
	}
	/* The count tells for certain only while none ends in the course of the pass. */
	if (a->n_settling > 0 || probes_followed(a->probes) > a->met) {
		fd = probes_stale_open(a->probes);
		a->is_sweeping = true;
		is_whole = fd >= 0 && agent_read_states(a, fd);
		a->is_sweeping = false;
		while (!agent_drain(a))		/* who was freed before the sweep came to it */
			continue;
	}
	correlator_snapshot_end(a->correlator, clock_ns(CLOCK_BOOTTIME));
	lost_to_holes(a);
	if (a->n_forget == 0)
		return is_whole;
	agent_commit(a);
	for (size_t i = 0; i < a->n_forget; i++)
		probes_forget(a->probes, a->forget[i].key, a->forget[i].start_ns);
	a->n_forget = 0;
	return is_whole;
}

static void
on_second_timer(evutil_socket_t fd, short what, void *arg)
{
	struct agent *a = arg;
	uint64_t now = clock_ns(CLOCK_BOOTTIME);
	bool is_due = now - a->last_record_ns + 50000000 >= a->interval_ns;
	struct usage usage;

	(void)fd;
	(void)what;
	if (a->is_finishing)
		return;		/* on_finish does it more often */
	probes_heartbeat(a->probes, now);
	correlator_set_clock(a->correlator, wall_minus_boot_ns());
	(void)agent_snapshot(a, is_due, is_due);
	agent_read_titles(a);
	now = clock_ns(CLOCK_BOOTTIME);
	usage = correlator_attributed_usage(a->correlator);
	if (now > a->last_second_ns && usage_cpu_ns(&usage) >= usage_cpu_ns(&a->usage_last_second))
		a->cores_now = (double)(usage_cpu_ns(&usage) - usage_cpu_ns(&a->usage_last_second)) /
		    (double)(now - a->last_second_ns);
	a->usage_last_second = usage;
	a->last_second_ns = now;
	correlator_tick(a->correlator, now, is_due);
	if (is_due) {
		agent_write_host(a);
		agent_write_agent(a, "LIVE", now);
		a->last_record_ns = now;
		a->is_note_due = true;
	}
	stream_tick(a->stream, clock_us(CLOCK_REALTIME));
	agent_commit(a);
}

static void
uuid_new(char out[UUID_TEXT_SIZE])
{
	uuid_t id;

	uuid_generate_random(id);
	uuid_unparse_lower(id, out);
}

static int
open_lake(struct agent *a, const struct agent_options *o, char *error, size_t error_size)
{
	struct file_sink_options sink_options = { .lake = o->lake, .host_id = a->host_id.id,
		.agent_id = a->agent_id };
	struct file_sink_repair repair = { 0 };
	int r;

	r = file_sink_open(&sink_options, &a->sink, &repair);
	if (r < 0) {
		snprintf(error, error_size, "cannot write the lake %s: %s; name another with --lake DIR",
		    o->lake, strerror(-r));
		return r;
	}
	if (repair.files > 0 || repair.empty > 0)
		fprintf(stderr, "sluice: repaired %u file%s that a dead agent left in %s: %llu records "
		    "kept, %llu torn bytes cut off\n", repair.files + repair.empty,
		    repair.files + repair.empty == 1 ? "" : "s", o->lake,
		    (unsigned long long)repair.records, (unsigned long long)repair.torn_bytes);
	if (repair.failed > 0)
		fprintf(stderr, "sluice: cannot repair %s: %s\n", repair.failed_path, strerror(-repair.error));
	return 0;
}

static int
open_stream(struct agent *a, const struct agent_options *o, char *error, size_t error_size)
{
	struct agent_identity identity = { .host_id = a->host_id.id, .host_name = a->host_id.name,
		.boot_id = a->host_id.boot_id, .agent_id = a->agent_id };
	int r;

	if (o->spool != NULL) {
		a->sink = spool_sink(o->spool);
		for (int t = 0; t < TOPIC_COUNT; t++)
			identity.first_seq[t] = spool_next_seq(o->spool, (enum topic)t);
	} else {
		r = open_lake(a, o, error, error_size);
		if (r < 0)
			return r;
	}
	r = stream_open(&identity, a->sink, &a->stream);
	if (r < 0) {
		a->sink = NULL;
		snprintf(error, error_size, "%s", stream_open_error());
	}
	return r;
}

static int
open_timers(struct agent *a)
{
	const struct timeval drain_every = { 0, DRAIN_MS * 1000 }, second = { 1, 0 };

	a->on_ring = event_new(a->base, probes_ring_fd(a->probes), EV_READ | EV_PERSIST, on_ring_ready, a);
	a->on_drain = event_new(a->base, -1, EV_PERSIST, on_drain_timer, a);
	a->on_second = event_new(a->base, -1, EV_PERSIST, on_second_timer, a);
	if (a->on_ring == NULL || a->on_drain == NULL || a->on_second == NULL ||
	    event_add(a->on_ring, NULL) < 0 || event_add(a->on_drain, &drain_every) < 0 ||
	    event_add(a->on_second, &second) < 0)
		return -ENOMEM;
	return 0;
}

/* Where the batches in the spool end, if they were made from this very ring; 0: no idea. */
static uint64_t
ring_place(const struct agent *a)
{
	struct spool_place place;

	if (a->spool == NULL || !spool_place(a->spool, &place) ||
	    place.ring_id != probes_ring_id(a->probes) || strcmp(place.boot_id, a->host_id.boot_id) != 0)
		return 0;
	return place.position;
}

int
agent_open(struct event_base *base, const struct agent_options *options, struct agent **ret,
    char *error, size_t error_size)
{
	static const struct decode_ops decode_to = { on_exec_signal, on_state_signal, on_cgroup_signal };
	struct correlator_ops ops = { .program = on_program_record, .usage = on_usage_record,
		.task = on_task_record, .run = on_run_record,
		.header = options->reads_headers ? agent_read_header : NULL,
		.container = options->is_host_wide ? agent_on_container : NULL,
		.finding = on_finding_record };
	struct probes_options probes_options = { .ring_bytes = options->ring_bytes,
		.max_processes = options->max_processes, .follow_all = options->is_host_wide,
		.variables = options->variables, .n_variables = options->n_variables,
		.pin_dir = options->pin_dir, .deadman_ns = options->deadman_ns };
	struct agent *a = calloc(1, sizeof(*a));
	uint64_t place;
	int r;

	snprintf(error, error_size, "out of memory");
	if (a == NULL)
		return -ENOMEM;
	a->base = base;
	a->interval_ns = (options->interval_ms > 0 ? options->interval_ms : INTERVAL_MS_DEFAULT) * 1000000;
	if (options->pipeline != NULL)
		a->pipeline = strdup(options->pipeline);
	a->is_host_wide = options->is_host_wide;
	a->rules = ruleset_ref(options->rules);
	a->cluster = options->cluster;
	a->spool = options->spool;
	a->owner = options->owner;
	if (options->agent_id != NULL)
		snprintf(a->agent_id, sizeof(a->agent_id), "%s", options->agent_id);
	else
		uuid_new(a->agent_id);
	if (options->run_id != NULL)
		snprintf(a->run_id, sizeof(a->run_id), "%s", options->run_id);
	else if (!options->is_host_wide)
		uuid_new(a->run_id);

	r = host_id_read("", &a->host_id);
	if (r < 0) {
		snprintf(error, error_size, "this host has neither a machine-id nor a name");
		goto fail;
	}
	r = probes_open(&probes_options, &a->probes, error, error_size);
	if (r < 0)
		goto fail;
	r = host_open("/proc", "/sys", &a->host);
	if (r == 0)
		r = host_sample(a->host, &a->host_last);
	if (r < 0) {
		snprintf(error, error_size, "cannot read /proc: %s", strerror(-r));
		goto fail;
	}
	if (options->has_file_owner) {
		/* What we write is the caller's, and we can write only where the caller can. */
		setfsgid(options->file_gid);
		setfsuid(options->file_uid);
	}
	a->cpus = a->host_last.cpus;
	(void)cgroup_mounts_open("/proc", &a->mounts);	/* without them limits are not known */
	r = open_stream(a, options, error, error_size);
	if (r < 0)
		goto fail;
	place = ring_place(a);
	r = ring_open(probes_ring_fd(a->probes), probes_ring_bytes(a->probes), place, &a->ring);
	if (r < 0) {
		snprintf(error, error_size, "cannot map the ring: %s", strerror(-r));
		goto fail;
	}
	if (place != 0 && place < ring_position(a->ring))
		a->unspooled_bytes = ring_position(a->ring) - place;
	snprintf(error, error_size, "out of memory");
	r = a->is_host_wide ? agent_open_host(a, &ops) : agent_open_run(a, options, &ops);
	if (r < 0)
		goto fail;
	if (options->redaction != NULL)		/* before any program is told of */
		r = agent_set_redaction(a, options->redaction, error, error_size);
	if (r < 0)
		goto fail;
	r = decoder_new(&decode_to, a, &a->decoder);
	if (r < 0)
		goto fail;
	r = open_timers(a);
	if (r < 0)
		goto fail;

	correlator_set_clock(a->correlator, wall_minus_boot_ns());
	a->start_ns = a->last_record_ns = a->last_second_ns = clock_ns(CLOCK_BOOTTIME);
	if (a->is_host_wide) {
		r = agent_find(a);
		if (r < 0)
			goto fail;
	}
	agent_snapshot(a, false, true);	/* who is alive already */
	agent_write_agent(a, "START", a->start_ns);
	agent_write_host(a);
	if (!a->is_host_wide)
		correlator_run_start(a->correlator, a->start_ns);
	agent_commit(a);
	*ret = a;
	return 0;

fail:
	agent_close(a);
	return r;
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
	event_free_if(a->on_ring);
	event_free_if(a->on_drain);
	event_free_if(a->on_second);
	event_free_if(a->on_finish);
	ring_close(a->ring);
	probes_close(a->probes);
	r = stream_close(a->stream);
	container_names_close(a->names);
	correlator_free(a->correlator);
	decoder_free(a->decoder);
	host_close(a->host);
	found_free(a->found);
	found_free(a->titles);
	cgroup_mounts_close(a->mounts);
	ruleset_unref(a->rules);
	free(a->unknown);
	free(a->pipeline);
	free(a);
	return r;
}

void
agent_hurry(void)
{
	/* A storm that saturates all CPUs is what must be seen best. Refused: then as everybody. */
	setpriority(PRIO_PROCESS, 0, HURRY_NICE);
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

void
agent_set_interval(struct agent *a, uint64_t interval_ms)
{
	a->interval_ns = interval_ms * 1000000;
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

int
agent_set_redaction(struct agent *a, const struct redaction_options *options, char *error,
    size_t error_size)
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

uint64_t
agent_unspooled_bytes(const struct agent *a)
{
	return a->unspooled_bytes;
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

double
agent_cores_now(const struct agent *a)
{
	return a->cores_now;
}
