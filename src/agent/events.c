/*
 * SPDX-License-Identifier: Apache-2.0
 * events: from the ring and the iterators to the correlator, and its records to the stream.
 */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/host.h"
#include "agent/state.h"
#include "agent/subscription.h"
#include "attach/filter.h"
#include "base/clock.h"
#include "collect/cgroup.h"

#define DRAIN_RECORDS 32
#define COMMIT_BYTES (1u << 20)		/* of the ring; what comes after a commit waits for the next fdatasync */
#define COMMIT_PART 8			/* but one part in so many at most: only then the kernel side has it back */
/*
 * Then the event loop has a turn, whatever is left. With a fifth of it, the passes that `ctl settle` asks for took half
 * of the loop's time, and the ring overflowed when 50,000 processes ended at once.
 */
#define DRAIN_NS UINT64_C(500000000)
#define SNAPSHOT_BYTES (256u << 10)
/* The age at which a zombie has its END. Most processes are reaped before, and then the kernel reports their end. */
#define ZOMBIE_NS UINT64_C(200000000)

/* collect → correlate */

static void
on_exec_event(const struct exec_event *s, void *arg)
{
	struct agent *a = arg;

	if (a->scope->leaves_out != NULL && a->scope->leaves_out(a, &s->self))
		return;
	a->counts.exec++;
	subscriptions_before(a, &s->self);
	correlator_exec(a->correlator, s);
	subscriptions_after(a, &s->self);
}

/*
 * Removes the kernel side's entry, all that is left of such a process, once the records made from it are safe. If there
 * is no room here, the next pass sweeps the process again.
 */
static void
forget_later(struct agent *a, const struct state_event *s)
{
	if (a->n_forget < sizeof(a->forget) / sizeof(a->forget[0]))
		a->forget[a->n_forget++] = (struct stale_entry){ s->entry, s->self.start_ns };
}

/* Counts an ended process, whose last event is yet to arrive, for each settling since its end. */
static void
count_ending(struct agent *a, const struct state_event *s)
{
	for (size_t i = 0; i < a->n_settling; i++) {
		struct agent_settling *settling = &a->settling[i];

		settling->ends += s->end_ns <= settling->since_ns &&
		    (settling->run_id == NULL || correlator_is_of_run(a->correlator, &s->self, settling->run_id));
	}
}

static void
on_state_event(const struct state_event *s, void *arg)
{
	struct agent *a = arg;
	struct state_event young;

	if (s->is_canary) {
		canary_event(&a->sight.canary, s);
		if (s->kind == STATE_STALE && s->entry != 0)
			forget_later(a, s);
		return;
	}
	if (a->scope->leaves_out != NULL && a->scope->leaves_out(a, &s->self))
		return;
	if (a->scope->takes_state != NULL && a->scope->takes_state(a, s))
		return;
	if (s->kind == STATE_STALE) {
		if (a->is_sweeping && correlator_has_seen(a->correlator, &s->self))
			return;		/* a zombie */
		if (a->is_sweeping && s->entry == 0) {
			count_ending(a, s);
			correlator_ending(a->correlator, s);
			subscriptions_after(a, &s->self);
			return;
		}
		if (a->is_sweeping && a->probes != NULL)
			forget_later(a, s);
		a->counts.synthesized++;
	} else if (s->kind == STATE_EXIT) {
		a->counts.exit++;
	} else {
		a->counts.snapshot++;
		if (s->kind == STATE_UNTRACKED) {
			a->pass.untracked++;
			a->pass.untracked_threads += s->counters.threads;
			return;
		}
		a->pass.seen++;
		a->pass.seen_threads += s->counters.threads;
		a->pass.seen_ended += s->kind == STATE_ZOMBIE;
		if (s->kind == STATE_ZOMBIE && (s->is_on_cpu || s->is_torn || s->time_ns < s->end_ns + ZOMBIE_NS)) {
			a->pass.seen_ending++;
			count_ending(a, s);
			young = *s;
			young.kind = STATE_LIVE;
			s = &young;
		}
	}
	subscriptions_before(a, &s->self);
	correlator_state(a->correlator, s);
	subscriptions_after(a, &s->self);
}

void
agent_learn_cgroup(struct agent *a, struct cgroup_event *s)
{
	struct cgroup_limits limits = { 0 };

	if (a->mounts != NULL)
		cgroup_limits_read(a->mounts, s->is_v2 ? s->path : NULL, s->is_v2 ? NULL : s->path, a->cpus,
		    a->host_last.memory_bytes, &limits);
	s->cpus = limits.cpus;
	s->memory_bytes = limits.memory_bytes;
	s->memory_high = limits.memory_high;
	s->users_names = limits.users_names;
	correlator_cgroup(a->correlator, s);
	if (a->probes != NULL)
		probes_learn_cgroup(a->probes, s->id, s->is_v2, s->path);
}

static void
on_cgroup_event(const struct cgroup_event *s, void *arg)
{
	struct cgroup_event with_limits = *s;
	struct agent *a = arg;

	a->counts.cgroup++;
	agent_learn_cgroup(a, &with_limits);
}

static void
on_signal_event(const struct signal_event *s, void *arg)
{
	struct agent *a = arg;

	if (a->scope->leaves_out != NULL && a->scope->leaves_out(a, &s->self))
		return;
	subscriptions_before(a, &s->self);
	correlator_signal(a->correlator, s);
	subscriptions_after(a, &s->self);
}

const struct decode_ops agent_decode_ops = {
	.exec = on_exec_event,
	.state = on_state_event,
	.cgroup = on_cgroup_event,
	.signal = on_signal_event,
};

/* correlate → stream */

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

void
agent_record_ops(struct correlator_ops *ops)
{
	ops->program = on_program_record;
	ops->usage = on_usage_record;
	ops->task = on_task_record;
	ops->run = on_run_record;
	ops->finding = on_finding_record;
}

void
agent_lose(struct agent *a, uint64_t n)
{
	stream_skip(a->stream, TOPIC_PROGRAM, n);
	a->lost_records += n;
	a->is_entry_due = true;
	correlator_lose(a->correlator, n);
	subscriptions_lost(a, n);
}

/* Records that the kernel side lost, and malformed ones, leave a hole in seq before the next record. */
static void
lost_to_holes(struct agent *a)
{
	uint64_t kernel = probes_lost_records(a->probes);
	uint64_t lost = kernel - a->kernel_lost_seen + a->counts.malformed - a->malformed_seen;

	if (lost == 0)
		return;
	a->kernel_lost_seen = kernel;
	a->malformed_seen = a->counts.malformed;
	agent_lose(a, lost);
}

static void
on_ring_record(const void *data, size_t len, void *arg)
{
	struct agent *a = arg;

	data = probes_former_record(a->probes, data, &len);
	if (decode(a->decoder, data, len) < 0)
		a->counts.malformed++;
}

bool
agent_drain(struct agent *a)
{
	uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + DRAIN_NS, step = probes_ring_bytes(a->probes) / COMMIT_PART;
	bool is_over;
	size_t n;

	step = step < COMMIT_BYTES ? step : COMMIT_BYTES;
	a->counts.drains++;
	do {
		uint64_t begin = ring_position(a->ring);

		do {
			n = ring_drain(a->ring, on_ring_record, a, DRAIN_RECORDS);
			is_over = clock_ns(CLOCK_MONOTONIC) >= until_ns;
		} while (n == DRAIN_RECORDS && !is_over && ring_position(a->ring) - begin < step);
		lost_to_holes(a);
		a->scope->commit(a);
	} while (n == DRAIN_RECORDS && !is_over);
	probes_wake_rearm(a->probes);
	return n < DRAIN_RECORDS;
}

void
agent_drain_all(struct agent *a)
{
	uint64_t end = ring_end(a->ring);

	while (ring_position(a->ring) < end && !agent_drain(a))
		continue;
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
 * The ring is drained first, so that an exec is known before its usage. Followed processes that the pass does not
 * see are exiting, or their exit was not reported.
 */
bool
agent_snapshot(struct agent *a, bool with_usage, bool with_untracked)
{
	bool is_whole = true;
	uint64_t gone;
	int fd;

	agent_drain_all(a);
	gone = probes_gone(a->probes);
	fd = probes_snapshot_open(a->probes, with_untracked);
	if (fd < 0) {
		a->counts.broken_passes++;
		return false;
	}
	a->pass = (struct agent_pass){ 0 };
	subscriptions_mark(a, SUBSCRIPTION_PASS);
	correlator_snapshot_begin(a->correlator, with_usage);
	if (!agent_read_states(a, fd)) {
		a->counts.broken_passes++;
		return false;	/* processes that it did not reach are not gone */
	}
	agent_class_waits(a);
	if (with_untracked) {
		a->other_processes = a->pass.untracked;
		a->other_threads = a->pass.untracked_threads;
	}
	/* The count is certain only if no process that the pass saw is freed during it. */
	if (a->n_settling > 0 || probes_gone(a->probes) != gone || probes_followed(a->probes) > a->pass.seen) {
		fd = probes_stale_open(a->probes);
		subscriptions_mark(a, SUBSCRIPTION_SWEEP);
		a->is_sweeping = true;
		is_whole = fd >= 0 && agent_read_states(a, fd);
		a->counts.broken_passes += !is_whole;
		a->is_sweeping = false;
	}
	/* What was freed before the sweep reached it, and what children did meanwhile whose parent has ended. */
	agent_drain_all(a);
	lost_to_holes(a);
	correlator_snapshot_end(a->correlator, clock_ns(CLOCK_BOOTTIME));
	subscriptions_passed(a);
	if (a->n_forget == 0)
		return is_whole;
	a->scope->commit(a);
	for (size_t i = 0; i < a->n_forget; i++)
		probes_forget(a->probes, a->forget[i].key, a->forget[i].start_ns);
	a->n_forget = 0;
	return is_whole;
}
