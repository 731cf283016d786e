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
#include <time.h>
#include <unistd.h>
#include <uuid/uuid.h>

#include "agent_state.h"
#include "base/text.h"
#include "collect/cgroup.h"
#include "correlate/redact.h"
#include "base/arena.h"
#include "stream/file_sink.h"

#define DRAIN_MS 50
#define DRAIN_BATCH 512			/* records between two looks at the loop's other events */
#define DRAIN_BATCHES 16
#define INTERVAL_MS_DEFAULT 10000
#define SNAPSHOT_BYTES (256u << 10)
/*
 * A zombie may still be on its way out of the CPU, and a tick may yet fall on it; after this its
 * counters are final. Most processes are reaped long before.
 */
#define ZOMBIE_NS UINT64_C(200000000)
#define FINISH_MS 20
#define FINISH_MS_LATER 200		/* once it has taken half a second */
#define FINISH_LIMIT_NS UINT64_C(10000000000)	/* for the kernel to let go of what has ended */
#define COMMAND_TEXT_MAX 8192

uint64_t
agent_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static int64_t
wall_minus_boot_ns(void)
{
	struct timespec wall;
	uint64_t boot = agent_now_ns();

	clock_gettime(CLOCK_REALTIME, &wall);
	return (int64_t)wall.tv_sec * 1000000000 + wall.tv_nsec - (int64_t)boot;
}

static int64_t
wall_us(void)
{
	struct timespec wall;

	clock_gettime(CLOCK_REALTIME, &wall);
	return (int64_t)wall.tv_sec * 1000000 + wall.tv_nsec / 1000;
}

/* collect → correlate */

static void
on_exec_signal(const struct exec_signal *s, void *arg)
{
	struct agent *a = arg;

	a->counts.exec++;
	correlator_exec(a->correlator, s);
}

static void
on_state_signal(const struct state_signal *s, void *arg)
{
	struct agent *a = arg;
	struct state_signal young;

	if (s->kind == STATE_STALE) {
		if (a->is_sweeping && correlator_was_met(a->correlator, &s->self))
			return;		/* a zombie */
		if (a->is_sweeping)
			probes_forget(a->probes, s->entry);
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
			young = *s;
			young.kind = STATE_LIVE;
			s = &young;
		}
	}
	correlator_state(a->correlator, s);
}

static void
on_cgroup_signal(const struct cgroup_signal *s, void *arg)
{
	struct agent *a = arg;

	a->counts.cgroup++;
	correlator_cgroup(a->correlator, s);
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

/* What the kernel side lost since the last look becomes a hole in seq before the next record. */
static void
lost_to_holes(struct agent *a)
{
	uint64_t lost = probes_lost_records(a->probes) + a->counts.malformed;

	if (lost == a->lost_records_seen)
		return;
	stream_skip(a->stream, TOPIC_PROGRAM, lost - a->lost_records_seen);
	a->lost_records_seen = lost;
	correlator_set_lost(a->correlator, lost);
}

static void
on_ring_record(const void *data, size_t len, void *arg)
{
	struct agent *a = arg;

	if (decode(a->decoder, data, len) < 0)
		a->counts.malformed++;
}

/* True when the ring is empty. Bounded: a flood leaves the loop time for the rest. */
static bool
drain(struct agent *a)
{
	a->counts.drains++;
	probes_wake_rearm(a->probes);
	for (int i = 0; i < DRAIN_BATCHES; i++) {
		size_t n = ring_drain(a->ring, on_ring_record, a, DRAIN_BATCH);

		lost_to_holes(a);
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
	drain(arg);	/* not empty: the level-triggered fd calls again */
}

static void
on_drain_timer(evutil_socket_t fd, short what, void *arg)
{
	struct agent *a = arg;

	(void)fd;
	(void)what;
	probes_calibrate(a->probes);	/* first: we have just slept */
	if (!drain(a))
		event_active(a->on_drain, EV_TIMEOUT, 0);
}

/* Reads what an iterator writes; false where it broke off. */
static bool
read_states(struct agent *a, int fd)
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
static void
snapshot(struct agent *a, bool with_usage, bool with_bystanders)
{
	int fd;

	while (!drain(a))
		continue;
	fd = probes_snapshot_open(a->probes, with_bystanders);
	if (fd < 0) {
		a->counts.broken_passes++;
		return;
	}
	a->bystanders = a->bystander_threads = 0;
	a->met = a->met_ended = a->met_ending = a->met_threads = 0;
	correlator_snapshot_begin(a->correlator, with_usage);
	if (!read_states(a, fd)) {
		a->counts.broken_passes++;
		return;		/* whoever it did not reach is not gone for that */
	}
	if (with_bystanders) {
		a->other_processes = a->bystanders;
		a->other_threads = a->bystander_threads;
	}
	if (probes_followed(a->probes) > a->met) {
		fd = probes_stale_open(a->probes);
		a->is_sweeping = true;
		if (fd >= 0)
			read_states(a, fd);
		a->is_sweeping = false;
	}
	correlator_snapshot_end(a->correlator, agent_now_ns());
	lost_to_holes(a);
}

static void
on_second_timer(evutil_socket_t fd, short what, void *arg)
{
	struct agent *a = arg;
	uint64_t now = agent_now_ns();
	bool is_due = now - a->last_record_ns + 50000000 >= a->interval_ns;
	struct usage usage;

	(void)fd;
	(void)what;
	if (a->is_finishing)
		return;		/* on_finish does it more often */
	correlator_set_clock(a->correlator, wall_minus_boot_ns());
	snapshot(a, is_due, is_due);
	now = agent_now_ns();
	usage = correlator_run_usage(a->correlator);
	if (now > a->last_second_ns && usage_cpu_ns(&usage) >= usage_cpu_ns(&a->usage_last_second))
		a->cores_now = (double)(usage_cpu_ns(&usage) - usage_cpu_ns(&a->usage_last_second)) /
		    (double)(now - a->last_second_ns);
	a->usage_last_second = usage;
	a->last_second_ns = now;
	correlator_tick(a->correlator, now, is_due);
	if (is_due) {
		agent_write_host(a, now);
		agent_write_agent(a, "LIVE", now);
		a->last_record_ns = now;
	}
	stream_tick(a->stream, wall_us());
}

/* The command line as one string, redacted; the caller frees it. NULL: no memory. */
static char *
command_text(const char *const *command)
{
	struct arena arena;
	const char *argv[256];
	size_t argc = 0, used = 0;
	char *out = malloc(COMMAND_TEXT_MAX);

	if (out == NULL || arena_init(&arena, 1u << 20) < 0) {
		free(out);
		return NULL;
	}
	for (; command[argc] != NULL && argc < 256; argc++) {
		size_t len = strlen(command[argc]);
		char *escaped = arena_bytes(&arena, TEXT_ESCAPE_MAX(len));

		if (escaped == NULL)
			break;
		text_escape(command[argc], len, escaped, TEXT_ESCAPE_MAX(len), NULL);
		argv[argc] = escaped;
	}
	redact_argv(argv, argc, &arena);
	out[0] = '\0';
	for (size_t i = 0; i < argc; i++) {
		size_t room = COMMAND_TEXT_MAX - used;
		int n = snprintf(out + used, room, "%s%s", i > 0 ? " " : "", argv[i]);

		if (n < 0 || (size_t)n >= room) {
			out[used] = '\0';	/* whole arguments only */
			break;
		}
		used += (size_t)n;
	}
	arena_done(&arena);
	return out;
}

static void
uuid_new(char out[UUID_TEXT_SIZE])
{
	uuid_t id;

	uuid_generate_random(id);
	uuid_unparse_lower(id, out);
}

static int
open_correlator(struct agent *a, const struct agent_options *o)
{
	static const struct correlator_ops ops = { on_program_record, on_usage_record, on_task_record,
		on_run_record };
	struct correlator_options c = { 0 };
	struct cgroup_mounts *mounts = NULL;
	struct cgroup_limits limits = { 0 };
	char *command = command_text(o->command), *cwd = getcwd(NULL, 0), *work_dir = NULL;
	int r;

	if (cwd != NULL) {
		size_t space = TEXT_ESCAPE_MAX(strlen(cwd));

		work_dir = malloc(space);
		if (work_dir != NULL)
			text_escape(cwd, strlen(cwd), work_dir, space, NULL);
	}
	if (cgroup_mounts_open("/proc", &mounts) == 0) {
		cgroup_limits_of_pid(mounts, "/proc", (uint32_t)getpid(), a->cpus,
		    a->host_last.memory_bytes, &limits);
		cgroup_mounts_close(mounts);
	}
	c.boot_id = a->host_id.boot_id;
	c.run_id = a->run_id;
	c.pipeline = o->pipeline;
	c.task = o->task;
	c.sample = o->sample;
	c.command = command;
	c.work_dir = work_dir;
	c.has_network = probes_have(a->probes, "network");
	c.host_memory_bytes = (struct opt_u64){ a->host_last.memory_bytes, a->host_last.memory_bytes > 0 };
	c.memory_limit_bytes = limits.memory_bytes;
	c.cpu_limit = limits.cpus;
	r = correlator_new(&c, &ops, a, &a->correlator);
	free(command);
	free(cwd);
	free(work_dir);
	return r;
}

static int
open_stream(struct agent *a, const struct agent_options *o, char *error, size_t error_size)
{
	struct file_sink_options sink_options = { .lake = o->lake, .host_id = a->host_id.id,
		.agent_id = a->agent_id };
	struct stream_identity identity = { .host_id = a->host_id.id, .host_name = a->host_id.name,
		.boot_id = a->host_id.boot_id, .agent_id = a->agent_id };
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

int
agent_open(struct event_base *base, const struct agent_options *options, struct agent **ret,
    char *error, size_t error_size)
{
	static const struct decode_ops decode_to = { on_exec_signal, on_state_signal, on_cgroup_signal };
	struct probes_options probes_options = { .ring_bytes = options->ring_bytes };
	struct agent *a = calloc(1, sizeof(*a));
	int r;

	snprintf(error, error_size, "out of memory");
	if (a == NULL)
		return -ENOMEM;
	a->base = base;
	a->interval_ns = (options->interval_ms > 0 ? options->interval_ms : INTERVAL_MS_DEFAULT) * 1000000;
	if (options->pipeline != NULL)
		a->pipeline = strdup(options->pipeline);
	uuid_new(a->agent_id);
	if (options->run_id != NULL)
		snprintf(a->run_id, sizeof(a->run_id), "%s", options->run_id);
	else
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
	r = open_stream(a, options, error, error_size);
	if (r < 0)
		goto fail;
	snprintf(error, error_size, "out of memory");
	r = open_correlator(a, options);
	if (r < 0)
		goto fail;
	r = decoder_new(&decode_to, a, &a->decoder);
	if (r < 0)
		goto fail;
	r = ring_open(probes_ring_fd(a->probes), probes_ring_bytes(a->probes), &a->ring);
	if (r < 0) {
		snprintf(error, error_size, "cannot map the ring: %s", strerror(-r));
		goto fail;
	}
	r = open_timers(a);
	if (r < 0)
		goto fail;

	correlator_set_clock(a->correlator, wall_minus_boot_ns());
	snapshot(a, false, true);	/* who is alive already */
	a->start_ns = a->last_record_ns = a->last_second_ns = agent_now_ns();
	agent_write_agent(a, "START", a->start_ns);
	agent_write_host(a, a->start_ns);
	correlator_run_start(a->correlator, a->start_ns);
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
	correlator_free(a->correlator);
	decoder_free(a->decoder);
	host_close(a->host);
	free(a->pipeline);
	free(a);
	return r;
}

void
agent_adopt(struct agent *a, bool on)
{
	probes_adopt(a->probes, on ? getpid() : 0);
}

static void
finish(struct agent *a)
{
	uint64_t now = agent_now_ns();

	correlator_run_end(a->correlator, now, a->wait_status);
	agent_write_host(a, now);
	agent_write_agent(a, "STOP", now);
	stream_tick(a->stream, wall_us());
	event_del(a->on_finish);
	event_del(a->on_drain);
	event_del(a->on_second);
	event_del(a->on_ring);
	a->on_done(a->done_arg);
}

/*
 * Between a process's end and its record lie its parent's wait(2) and the kernel's grace period. A
 * process that is followed but that the pass did not meet is in between: wait for it, within reason.
 */
static void
on_finish_timer(evutil_socket_t fd, short what, void *arg)
{
	struct agent *a = arg;
	uint64_t now;
	bool is_settled;

	(void)fd;
	(void)what;
	snapshot(a, false, false);
	now = agent_now_ns();
	is_settled = probes_followed(a->probes) == a->met && a->met_ending == 0;
	correlator_tick(a->correlator, now, false);
	if (is_settled && (!a->wait_for_all || a->met == a->met_ended)) {
		while (!drain(a))
			continue;
		finish(a);
	} else if (!a->wait_for_all && now - a->finish_since_ns > FINISH_LIMIT_NS) {
		finish(a);
	} else if (a->wait_for_all && now - a->last_record_ns >= a->interval_ns) {
		agent_write_host(a, now);
		agent_write_agent(a, "LIVE", now);
		a->last_record_ns = now;
		stream_tick(a->stream, wall_us());
	} else if (!a->is_finish_slow && now - a->finish_since_ns > 500000000) {
		const struct timeval later = { 0, FINISH_MS_LATER * 1000 };

		a->is_finish_slow = true;
		event_add(a->on_finish, &later);
	}
}

void
agent_finish(struct agent *a, int wait_status, bool wait_for_all, void (*on_done)(void *arg), void *arg)
{
	const struct timeval every = { 0, FINISH_MS * 1000 };

	a->is_finishing = true;
	a->wait_status = wait_status;
	a->wait_for_all = wait_for_all;
	a->on_done = on_done;
	a->done_arg = arg;
	a->finish_since_ns = agent_now_ns();
	a->on_finish = event_new(a->base, -1, EV_PERSIST, on_finish_timer, a);
	if (a->on_finish == NULL || event_add(a->on_finish, &every) < 0)
		finish(a);
}

void
agent_finish_now(struct agent *a)
{
	a->wait_for_all = false;
	a->finish_since_ns = agent_now_ns();
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

struct correlator *
agent_correlator(struct agent *a)
{
	return a->correlator;
}

struct run_totals
agent_totals(const struct agent *a)
{
	return correlator_totals(a->correlator, agent_now_ns());
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
