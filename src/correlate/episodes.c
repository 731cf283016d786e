/*
 * SPDX-License-Identifier: Apache-2.0
 * Looks at tasks and runs that live, and records what keeps them from their work; see episodes.h.
 */
#include "correlate/episodes.h"

#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "correlate/finding_draft.h"
#include "correlate/findings.h"
#include "correlate/process.h"
#include "correlate/program_text.h"
#include "correlate/runs.h"
#include "correlate/state.h"
#include "correlate/tasks.h"
#include "correlate/wal.h"
#include "correlate/work.h"

#define NS_PER_MS UINT64_C(1000000)
#define LOOK_MIN_NS UINT64_C(500000000)
#define MOST 0.8			/* of a time: nearly all of it, as a sample has it */
#define HARDLY 0.1
#define ABOVE_MAX 64			/* programs above one that are looked at */
#define OF_WORK ((1u << EPISODES) - 1 - (1u << EPISODE_DISK))	/* all kinds that follow from what programs do */

/* What is judged: a task, or a run without tasks. */
struct subject {
	struct run *run;
	struct task *task;		/* NULL: the run itself */
	const struct work *work;
	const struct usage *live;
	struct vigil **vigil;
	uint32_t *recorded;		/* kinds that are recorded, as bits */
	uint32_t *count;		/* findings */
	bool is_driven;			/* an engine started it */
};

static const struct {
	const char *name;
	enum finding_severity severity;
} kinds[EPISODES] = {
	[EPISODE_STUCK] = { "STUCK", SEVERITY_WARNING },
	[EPISODE_IDLE] = { "IDLE", SEVERITY_INFO },
	[EPISODE_THROTTLED] = { "THROTTLED", SEVERITY_WARNING },
	[EPISODE_PRESSURE] = { "MEMORY_PRESSURE", SEVERITY_WARNING },
	[EPISODE_DISK] = { "DISK_FULL", SEVERITY_ERROR },
};

/* The parts of the bill that are waits, the field of each, and the words for it. */
static const struct wait {
	enum bill_part part;
	enum usage_field field;
	bool is_stuck;			/* only something outside the program can end it */
	bool is_idle;			/* in it there is no work of the task */
	const char *words;
} waits[] = {
	{ BILL_STOPPED, USAGE_WAIT_STOPPED_NS, true, true, "is stopped by a signal, a tracer or a freezer" },
	{ BILL_NETWORK_FS, USAGE_WAIT_NETWORK_FS_NS, true, false, "waits for a network file system" },
	{ BILL_SWAP, USAGE_WAIT_SWAP_NS, true, false, "waits for pages from swap" },
	{ BILL_RECLAIM, USAGE_WAIT_RECLAIM_NS, true, false, "waits until memory is made free" },
	{ BILL_BLOCK_IO, USAGE_WAIT_BLOCK_NS, true, false, "waits for a block device or its file system" },
	{ BILL_NETWORK, USAGE_WAIT_NETWORK_NS, true, true, "waits for the network" },
	{ BILL_PIPE, USAGE_WAIT_PIPE_NS, true, true, "waits for another program, by a pipe, a local socket or a queue" },
	{ BILL_LOCK, USAGE_WAIT_LOCK_NS, true, true, "waits for a lock" },
	{ BILL_TIMER, USAGE_WAIT_TIMER_NS, false, true, "sleeps for a set time" },
	{ BILL_POLL, USAGE_WAIT_POLL_NS, false, true, "waits for any of several files, a request or a signal" },
	{ BILL_OTHER, USAGE_WAIT_OTHER_NS, false, false, "waits in a place of the kernel that has no class" },
};

enum { WAITS = sizeof(waits) / sizeof(waits[0]) };

static uint64_t
number(const struct usage *u, enum usage_field field)
{
	return usage_has(u, field) ? u->value[field] : 0;
}

static uint64_t
more(uint64_t now, uint64_t then)
{
	return now > then ? now - then : 0;
}

static struct look
look_at(const struct subject *s, uint64_t now_ns)
{
	struct usage u = s->work->done;
	struct look l = { .at_ns = now_ns, .programs = 2 * s->work->programs - s->work->live };
	struct bill bill;
	uint64_t delays;

	usage_add(&u, s->live);
	bill = bill_of_threads(&u);
	l.cpu_ns = usage_cpu_ns(&u);
	l.delay_ns = number(&u, USAGE_RUN_DELAY_NS);
	l.throttled_ns = bill_ns(&bill, BILL_THROTTLED);
	delays = number(&u, USAGE_RECLAIM_DELAY_NS) + number(&u, USAGE_SWAPIN_DELAY_NS) +
	    number(&u, USAGE_THRASHING_DELAY_NS);
	l.pressure_ns = bill_ns(&bill, BILL_SWAP) + bill_ns(&bill, BILL_RECLAIM);
	if (delays > l.pressure_ns)
		l.pressure_ns = delays;
	l.reclaim_ns = more(number(&u, USAGE_RECLAIM_DELAY_NS), bill_ns(&bill, BILL_RECLAIM));
	l.system_ns = number(&u, USAGE_CPU_SYSTEM_NS);
	l.uninterruptible_ns = number(&u, USAGE_WAIT_UNINTERRUPTIBLE_NS);
	l.switches = number(&u, USAGE_VOLUNTARY_SWITCHES) + number(&u, USAGE_INVOLUNTARY_SWITCHES);
	l.bytes = number(&u, USAGE_READ_BYTES) + number(&u, USAGE_WRITE_BYTES) + number(&u, USAGE_RCHAR) +
	    number(&u, USAGE_WCHAR) + number(&u, USAGE_NET_RX_BYTES) + number(&u, USAGE_NET_TX_BYTES);
	for (size_t i = 0; i < WAITS; i++)
		l.waited_ns[waits[i].part] = number(&u, waits[i].field);
	return l;
}

/* Returns what changed between two looks; at_ns is the time between them. */
static struct look
between(const struct look *then, const struct look *now)
{
	struct look d = { more(now->at_ns, then->at_ns), more(now->programs, then->programs),
		more(now->cpu_ns, then->cpu_ns), more(now->delay_ns, then->delay_ns),
		more(now->throttled_ns, then->throttled_ns), more(now->pressure_ns, then->pressure_ns),
		more(now->reclaim_ns, then->reclaim_ns), more(now->system_ns, then->system_ns),
		more(now->uninterruptible_ns, then->uninterruptible_ns), more(now->switches, then->switches),
		more(now->bytes, then->bytes), { 0 } };

	for (int i = 0; i < BILL_PARTS; i++)
		d.waited_ns[i] = more(now->waited_ns[i], then->waited_ns[i]);
	return d;
}

/*
 * Returns the wait that has most of the time; NULL: there is none. Of BILL_POLL half counts: timeout(1), and others
 * that wait for a signal, wait so for what they have started.
 */
static const struct wait *
largest_wait(const struct look *d)
{
	const struct wait *largest = NULL;
	uint64_t most = 0;

	for (size_t i = 0; i < WAITS; i++) {
		uint64_t ns = d->waited_ns[waits[i].part];

		if (waits[i].part == BILL_POLL)
			ns /= 2;
		if (ns <= most)
			continue;
		most = ns;
		largest = &waits[i];
	}
	return largest;
}

static bool
is_still(const struct look *d)
{
	return d->cpu_ns == 0 && d->switches == 0 && d->bytes == 0 && d->programs == 0;
}

/* Returns true if a thread was in uninterruptible sleep all the time: without a switch it was always the same one. */
static bool
is_in_io(const struct look *d)
{
	return is_still(d) && (double)d->uninterruptible_ns >= MOST * (double)d->at_ns;
}

static bool
is_stuck(const struct subject *s, const struct look *d)
{
	double wall = (double)d->at_ns, stuck = 0;

	if (!is_still(d))
		return false;
	if (is_in_io(d) || (double)d->waited_ns[BILL_NETWORK_FS] >= MOST * wall)
		return true;
	if (!s->is_driven || (double)(d->waited_ns[BILL_TIMER] + d->waited_ns[BILL_POLL]) >= HARDLY * wall)
		return false;
	for (size_t i = 0; i < WAITS; i++)
		stuck += waits[i].is_stuck ? (double)d->waited_ns[waits[i].part] : 0;
	return stuck >= MOST * wall;
}

static bool
is_idle(const struct subject *s, const struct look *d)
{
	const struct wait *w = largest_wait(d);
	double wall = (double)d->at_ns;

	return s->is_driven && w != NULL && w->is_idle && (double)d->waited_ns[w->part] >= MOST * wall &&
	    (double)d->cpu_ns < IDLE_CPUS * wall && (double)d->bytes * 1e9 < IDLE_BYTES_PER_S * wall;
}

static bool
is_throttled(const struct look *d, double part)
{
	double wanted = (double)(d->cpu_ns + d->delay_ns), throttled = (double)d->throttled_ns;

	return throttled > 0 && throttled >= part * THROTTLED_SHARE * wanted &&
	    throttled >= part * THROTTLED_WALL_SHARE * (double)d->at_ns;
}

/* Returns the time in which its threads wanted to work; CPU time that went into making memory free is in it once. */
static double
wanted_with_memory(const struct look *d)
{
	uint64_t twice = d->reclaim_ns < d->system_ns ? d->reclaim_ns : d->system_ns;

	return (double)(more(d->cpu_ns, twice) + d->delay_ns + d->pressure_ns);
}

static bool
is_under_pressure(const struct look *d, double part)
{
	double wanted = wanted_with_memory(d), pressure = (double)d->pressure_ns;

	return pressure > 0 && pressure >= part * PRESSURE_SHARE * wanted &&
	    pressure >= part * PRESSURE_SHARE * (double)d->at_ns;
}

/* Returns true if the state holds in what changed. part: of the shares at which it begins. */
static bool
holds(const struct subject *s, enum episode_kind kind, const struct look *d, double part)
{
	switch (kind) {
	case EPISODE_STUCK:
		return is_stuck(s, d);
	case EPISODE_IDLE:
		return is_idle(s, d);
	case EPISODE_THROTTLED:
		return is_throttled(d, part);
	case EPISODE_PRESSURE:
		return is_under_pressure(d, part);
	case EPISODE_DISK:		/* of runs, in each look: see find_full_disk() */
		return s->task == NULL && s->run->full.folder != NULL;
	case EPISODES:
		break;
	}
	return false;
}

/* Returns for how long a state must hold; 0: it is not judged. */
static uint64_t
window_ns(const struct correlator *c, enum episode_kind kind)
{
	const struct finding_limits *l = &c->options.finding_limits;
	const uint64_t of[EPISODES] = { l->stuck_ms, l->idle_ms, l->throttled_ms, l->memory_pressure_ms,
		l->disk_full_ms };

	return of[kind] * NS_PER_MS;
}

/* Returns true if it has held for long enough for a finding. d: what changed since it began to hold. */
static bool
is_due(const struct correlator *c, const struct vigil *v, enum episode_kind kind, const struct look *d, uint64_t now_ns)
{
	uint64_t in_io_ns = c->options.finding_limits.stuck_in_io_ms * NS_PER_MS;

	if (kind == EPISODE_STUCK && in_io_ns > 0 && v->io_ns != 0 && now_ns - v->io_ns >= in_io_ns)
		return true;
	return window_ns(c, kind) > 0 && d->at_ns >= window_ns(c, kind);
}

/* Returns true if p counts in what is judged. */
static bool
is_part(const struct subject *s, const struct process *p)
{
	if (!p->is_announced || p->run != s->run)
		return false;
	return s->task == NULL || (p->task == s->task && !p->is_overhead);
}

/* Returns the program that has most of a field; NULL: none. *ret_is_known: the usage of all of them is known. */
static const struct process *
program_with_most(const struct correlator *c, const struct subject *s, enum usage_field field, bool *ret_is_known)
{
	const struct process *p, *most = NULL;

	*ret_is_known = true;
	for (p = c->processes; p != NULL; p = p->next) {
		if (!is_part(s, p))
			continue;
		if (!usage_has(&p->latest, USAGE_CPU_USER_NS))
			*ret_is_known = false;
		if (number(&p->latest, field) > (most != NULL ? number(&most->latest, field) : 0))
			most = p;
	}
	return most;
}

static const char *
name_of(const struct process *p)
{
	if (p->text == NULL)
		return "a program";
	return p->text->tool != NULL ? p->text->tool : p->text->comm != NULL ? p->text->comm : "a program";
}

static void
append_duration(struct finding_draft *d, uint64_t ns)
{
	char text[FORMAT_SIZE];

	draft_append(d, "%s", format_duration(ns, text, sizeof(text)));
}

static void
append_share(struct finding_draft *d, double share)
{
	char text[FORMAT_SIZE];

	draft_append(d, "%s", format_percent(share, text, sizeof(text)));
}

static void
append_subject(struct finding_draft *d, const struct subject *s)
{
	draft_append(d, s->task != NULL ? "task " : "the run");
	if (s->task != NULL)
		draft_append_task(d, s->task);
}

/* Adds what it waits for: "; TOOL (pid N) waits for a lock". */
static void
add_wait(const struct correlator *c, struct finding_draft *d, const struct process *p, const struct wait *w,
    const struct look *change)
{
	static const char *const names[BILL_PARTS] = {
#define BILL_NAME(ID, name) "wait_" #name "_ns",
		BILL_EACH(BILL_NAME)
#undef BILL_NAME
	};

	draft_append(d, "; ");
	draft_program(c, d, &p->self, name_of(p));
	draft_append(d, " %s", w->words);
	draft_number(d, names[w->part], (double)change->waited_ns[w->part]);
}

/* Describes one that makes no progress, or hardly any. Returns false if what is known does not suffice. */
static bool
describe_wait(const struct correlator *c, const struct subject *s, enum episode_kind kind, const struct look *change,
    struct finding_draft *d)
{
	const struct wait *w = largest_wait(change);
	const struct process *p;
	bool is_known, is_io = is_in_io(change);

	if (w == NULL)
		return false;
	p = program_with_most(c, s, is_io ? USAGE_WAIT_UNINTERRUPTIBLE_NS : w->field, &is_known);
	if (p == NULL || !is_known)
		return false;
	append_subject(d, s);
	if (kind == EPISODE_STUCK) {
		draft_append(d, " has made no progress for ");
		append_duration(d, change->at_ns);
		draft_number(d, "no_progress_ns", (double)change->at_ns);
	} else {
		draft_append(d, " has been idle for ");
		append_duration(d, change->at_ns);
		draft_number(d, "idle_ns", (double)change->at_ns);
		draft_number(d, "cpu_ns", (double)change->cpu_ns);
		draft_number(d, "bytes", (double)change->bytes);
	}
	add_wait(c, d, p, w, change);
	if (is_io)
		draft_append(d, ", in uninterruptible sleep");
	if (change->uninterruptible_ns > 0)
		draft_number(d, "uninterruptible_ns", (double)change->uninterruptible_ns);
	return true;
}

static bool
describe_throttled(const struct correlator *c, const struct subject *s, const struct look *change,
    struct finding_draft *d)
{
	double wanted = (double)(change->cpu_ns + change->delay_ns);
	struct opt_double limit = s->task != NULL && s->task->cpus.known ? s->task->cpus : s->run->cpus;

	(void)c;
	append_subject(d, s);
	draft_append(d, " was denied a CPU for ");
	append_share(d, (double)change->throttled_ns / wanted);
	draft_append(d, " of the time in which it wanted one, for ");
	append_duration(d, change->at_ns);
	draft_append(d, ": its control group had used up its quota");
	draft_number(d, "period_ns", (double)change->at_ns);
	draft_number(d, "throttled_ns", (double)change->throttled_ns);
	draft_number(d, "cpu_ns", (double)change->cpu_ns);
	draft_number(d, "run_delay_ns", (double)change->delay_ns);
	if (limit.known)
		draft_number(d, "cpus", limit.value);
	return true;
}

static bool
describe_pressure(const struct correlator *c, const struct subject *s, const struct look *change,
    struct finding_draft *d)
{
	double wanted = wanted_with_memory(change);

	append_subject(d, s);
	draft_append(d, " lost ");
	append_share(d, (double)change->pressure_ns / wanted);
	draft_append(d, " of its time for ");
	append_duration(d, change->at_ns);
	draft_append(d, ": it had to make memory free, or to read pages back");
	draft_number(d, "period_ns", (double)change->at_ns);
	draft_number(d, "pressure_ns", (double)change->pressure_ns);
	draft_number(d, "cpu_ns", (double)change->cpu_ns);
	if (usage_has(s->live, USAGE_RSS_BYTES))
		draft_number(d, "rss_bytes", (double)s->live->value[USAGE_RSS_BYTES]);
	draft_bytes(d, "memory_limit_bytes", s->task != NULL && s->task->memory_bytes.known ? s->task->memory_bytes :
	    s->run->memory_bytes);
	draft_bytes(d, "host_memory_bytes", c->options.host_memory_bytes);
	return true;
}

static void
append_writer(const struct correlator *c, struct finding_draft *d, const struct subject *where)
{
	bool is_known;
	const struct process *p = program_with_most(c, where, USAGE_WCHAR, &is_known);

	if (p == NULL)
		return;
	draft_append(d, "; ");
	draft_program(c, d, &p->self, name_of(p));
	draft_append(d, " has written most of what runs there");
	draft_number(d, "wchar", (double)number(&p->latest, USAGE_WCHAR));
}

/* Names the program in which what ended has failed. f: the failure of its first program; NULL: that ended well. */
static void
append_failed(const struct correlator *c, struct finding_draft *d, const struct failure *f)
{
	if (f == NULL)
		return;
	f = failure_leaf(f);
	draft_append(d, "; ");
	draft_program(c, d, &f->program, f->tool);
	draft_append_status(d, f->status);
	draft_status(d, "exit_code", "exit_signal", f->status);
}

static bool
describe_full(const struct correlator *c, const struct subject *s, struct finding_draft *d)
{
	const struct full_disk *full = &s->run->full;
	struct subject where = { .run = s->run, .task = (struct task *)(uintptr_t)full->task };
	bool has_files = full->space.total_files == 0 || full->space.free_files > 0;
	char text[FORMAT_SIZE];

	draft_append(d, "the disk of ");
	draft_append_name(d, full->folder);
	if (has_files)
		draft_append(d, ", where ");
	else
		draft_append(d, ", which can have no more files, where ");
	append_subject(d, &where);
	draft_append(d, " works, is full: %s is left", format_bytes(full->space.free_bytes, text, sizeof(text)));
	draft_append(d, " of %s", format_bytes(full->space.total_bytes, text, sizeof(text)));
	if (full->has_ended)
		append_failed(c, d, full->failure);
	else
		append_writer(c, d, &where);
	draft_number(d, "free_bytes", (double)full->space.free_bytes);
	draft_number(d, "total_bytes", (double)full->space.total_bytes);
	if (full->space.total_files > 0)
		draft_number(d, "free_files", (double)full->space.free_files);
	return true;
}

static bool
describe(const struct correlator *c, const struct subject *s, enum episode_kind kind, const struct look *change,
    struct finding_draft *d)
{
	if (kind == EPISODE_THROTTLED)
		return describe_throttled(c, s, change, d);
	if (kind == EPISODE_PRESSURE)
		return describe_pressure(c, s, change, d);
	if (kind == EPISODE_DISK)
		return describe_full(c, s, d);
	return describe_wait(c, s, kind, change, d);
}

static void
mark(struct correlator *c, const struct subject *s)
{
	if (s->task != NULL)
		wal_task(c, s->task);
	else
		wal_run(c, s->run);
}

/*
 * Records the finding, if a limit does not forbid it. Either way it is one episode from there on. The log is flushed
 * by the caller.
 */
static void
record(struct correlator *c, const struct subject *s, enum episode_kind kind, const struct look *change,
    uint64_t now_ns)
{
	struct finding_draft d = { .r.kind = kinds[kind].name, .r.severity = kinds[kind].severity };

	draft_head(c, &d, s->run, kind == EPISODE_DISK ? s->run->full.task : s->task, now_ns);
	if (!describe(c, s, kind, change, &d)) {
		(*s->vigil)->of[kind].since = (struct look){ 0 };	/* again after as long */
		if (kind == EPISODE_STUCK)
			(*s->vigil)->io_ns = 0;
		return;
	}
	*s->recorded |= 1u << kind;
	mark(c, s);
	if (finding_is_allowed_of(c, s->run, s->count))
		draft_emit(c, &d);
}

static void
end_episode(struct correlator *c, const struct subject *s, enum episode_kind kind)
{
	(*s->vigil)->of[kind] = (struct episode){ 0 };
	*s->recorded &= ~(1u << kind);
	mark(c, s);
}

/* Returns true if another kind has that finding already: what is STUCK is idle, too. */
static bool
is_covered(const struct subject *s, enum episode_kind kind)
{
	return kind == EPISODE_IDLE && (*s->recorded & 1u << EPISODE_STUCK) != 0;
}

/* d: what changed since the last look. */
static void
judge(struct correlator *c, const struct subject *s, enum episode_kind kind, const struct look *d,
    const struct look *now)
{
	struct vigil *v = *s->vigil;
	struct episode *e = &v->of[kind];
	bool is_recorded = *s->recorded >> kind & 1, has_begun = is_recorded || e->since.at_ns != 0;
	struct look change;

	if (!holds(s, kind, d, has_begun ? EPISODE_LOW : 1)) {
		e->since = (struct look){ 0 };
		if (!is_recorded)
			return;
		if (e->calm_ns == 0)
			e->calm_ns = v->last.at_ns;
		if (now->at_ns - e->calm_ns >= window_ns(c, kind))
			end_episode(c, s, kind);
		return;
	}
	e->calm_ns = 0;
	if (is_recorded)
		return;
	if (e->since.at_ns == 0)
		e->since = v->last;
	change = between(&e->since, now);
	if (!is_due(c, v, kind, &change, now->at_ns) || !holds(s, kind, &change, 1) || is_covered(s, kind) ||
	    c->described >= DESCRIBED_MAX)
		return;
	c->described++;
	record(c, s, kind, &change, now->at_ns);
	wal_flush(c);
}

/* of_kinds: those that are judged, as bits. */
static void
look(struct correlator *c, const struct subject *s, unsigned of_kinds, uint64_t now_ns)
{
	struct vigil *v = *s->vigil;
	struct look now, d;

	if (s->work->live == 0 || of_kinds == 0)
		return;
	if (v == NULL) {
		v = *s->vigil = calloc(1, sizeof(*v));
		if (v == NULL)
			return;
		v->last = look_at(s, now_ns);
		return;
	}
	if (now_ns < v->last.at_ns + LOOK_MIN_NS)
		return;
	now = look_at(s, now_ns);
	d = between(&v->last, &now);
	if (!is_in_io(&d))
		v->io_ns = 0;
	else if (v->io_ns == 0)
		v->io_ns = v->last.at_ns;
	for (int kind = 0; kind < EPISODES; kind++) {
		if (of_kinds >> kind & 1)
			judge(c, s, (enum episode_kind)kind, &d, &now);
		else
			v->of[kind].since = (struct look){ 0 };
	}
	v->last = now;
}

/*
 * Returns true if an engine has started the task, for its own work. A step of a job may be a shell, or a server, that
 * waits for its user.
 */
static bool
is_of_engine(const struct task *t)
{
	return task_is_driven(t) && t->run->strength != STRENGTH_JOB && !t->has_inner_engine;
}

/* Returns true if no engine drives the run: its programs are all its work. */
static bool
is_work_itself(const struct correlator *c, const struct run *r)
{
	return r->inner == NULL && (r == c->whole || r->root.pid == 0 || (r->engine != NULL &&
	    strcmp(r->engine, "sluice") == 0));
}

/* Returns true if there is no room. part: of the limits. */
static bool
is_full(const struct disk_space *space, double part)
{
	double limit = FULL_SHARE * (double)space->total_bytes;

	if (limit > FULL_BYTES)
		limit = FULL_BYTES;
	return (double)space->free_bytes < part * limit || (space->total_files > 0 && space->free_files == 0);
}

/*
 * Returns a program above one that has ended which lives and has the same mounts; NULL: none is known. It is the
 * topmost of them: others may have ended, too, and their ends are not reported yet.
 */
static const struct process *
witness_of(struct correlator *c, const struct process *p)
{
	const struct process *above = p, *topmost = NULL;

	for (int depth = 0; depth < ABOVE_MAX; depth++) {
		above = process_of(c, &above->parent);
		if (above == NULL)
			break;
		if (!above->is_over && above->has_context && above->context.mnt_ns == p->context.mnt_ns)
			topmost = above;
	}
	return topmost;
}

/* Records that there was no room where r, or its task t, ended. f: the failure of its first program, if it is known. */
static void
record_full(struct correlator *c, struct run *r, const struct task *t, const struct disk_space *space,
    const struct failure *f, uint64_t end_ns)
{
	struct subject s = { r, NULL, &r->work, &r->live, &r->vigil, &r->episodes, &r->episode_findings, false };
	struct full_disk before = r->full;

	r->full = (struct full_disk){ .folder = t != NULL ? t->work_dir : r->work_dir, .task = t, .space = *space,
		.has_ended = true, .failure = f };
	record(c, &s, EPISODE_DISK, &(struct look){ 0 }, end_ns);
	r->full = before;
}

void
episodes_ended(struct correlator *c, struct run *r, const struct task *t, const struct process *p, int32_t status,
    uint64_t end_ns)
{
	const char *folder = t != NULL ? t->work_dir : r->work_dir;
	const struct work *work = t != NULL ? &t->work : &r->work;
	struct failure *due = t != NULL ? t->failure : r->failure;
	struct disk_space space;
	const struct process *asks;

	if (c->ops.finding == NULL || c->ops.space == NULL || c->options.finding_limits.disk_full_ms == 0 ||
	    !r->has_started || folder == NULL || !p->has_context || (r->episodes >> EPISODE_DISK & 1) ||
	    (status == 0 && work->failed == 0))
		return;
	asks = witness_of(c, p);
	if (!c->ops.space(folder, asks != NULL ? asks->id.pid : 0, asks != NULL ? asks->id.start_ns : p->id.start_ns,
	    p->context.mnt_ns, true, &space, c->arg) || !is_full(&space, 1))
		return;
	if (due == NULL) {
		record_full(c, r, t, &space, failure_of(p), end_ns);
		return;
	}
	due->is_on_full_disk = true;
	due->space = space;
	wal_mark(c, MARKED_FAILURES, &due->mark, NEWS_ALL);
}

void
episodes_settled(struct correlator *c, struct run *r, const struct task *t, const struct failure *f)
{
	if (f != NULL && f->is_on_full_disk && (r->episodes >> EPISODE_DISK & 1) == 0)
		record_full(c, r, t, &f->space, f, f->end_ns);
}

/* Looks whether there is room where a run, or a task of it, works whose first program is known. */
static void
find_full_disk(struct correlator *c, struct run *r, const struct task *t)
{
	const struct process_id *root = t != NULL ? &t->root : &r->root;
	const char *folder = t != NULL ? t->work_dir : r->work_dir;
	const struct process *p = process_find(c, root->start_ns, root->pid);
	bool has_begun = (r->episodes >> EPISODE_DISK & 1) ||
	    (r->vigil != NULL && r->vigil->of[EPISODE_DISK].since.at_ns != 0);
	struct disk_space space;

	if (c->ops.space == NULL || r->full.folder != NULL || folder == NULL || p == NULL || p->is_over ||
	    !p->has_context || c->options.finding_limits.disk_full_ms == 0)
		return;
	if (c->ops.space(folder, p->id.pid, p->id.start_ns, p->context.mnt_ns, false, &space, c->arg) &&
	    is_full(&space, has_begun ? 1 / EPISODE_LOW : 1))
		r->full = (struct full_disk){ .folder = folder, .task = t, .space = space };
}

/* Finds the tasks in which another engine runs, by its driver. */
static void
find_inner_engines(struct correlator *c)
{
	for (struct task *t = c->tasks; t != NULL; t = t->hh.next)
		t->has_inner_engine = false;
	for (struct process *p = c->processes; p != NULL; p = p->next) {
		const struct process *in = p;

		if (!p->is_driver || p->is_over)
			continue;
		if (p->task == NULL)		/* it has a run of its own */
			in = process_of(c, &p->parent);
		if (in != NULL && in->task != NULL)
			in->task->has_inner_engine = true;
	}
}

void
episodes_tick(struct correlator *c, uint64_t now_ns)
{
	struct task *t;
	struct run *r;

	if (c->ops.finding == NULL)
		return;
	c->described = 0;
	find_inner_engines(c);
	for (r = c->runs; r != NULL; r = r->hh.next) {
		r->has_live_task = false;
		r->full = (struct full_disk){ 0 };
	}
	for (t = c->tasks; t != NULL; t = t->hh.next) {
		if (!t->has_started || t->has_ended)
			continue;
		t->run->has_live_task = true;
		find_full_disk(c, t->run, t);
		look(c, &(struct subject){ t->run, t, &t->work, &t->live, &t->vigil, &t->episodes, &t->episode_findings,
		    is_of_engine(t) }, OF_WORK, now_ns);
	}
	for (r = c->runs; r != NULL; r = r->hh.next) {
		unsigned of_kinds = 1u << EPISODE_DISK;

		if (!r->has_started || r->has_ended)
			continue;
		find_full_disk(c, r, NULL);
		if (!r->has_live_task && is_work_itself(c, r))
			of_kinds |= OF_WORK;
		look(c, &(struct subject){ r, NULL, &r->work, &r->live, &r->vigil, &r->episodes, &r->episode_findings,
		    false }, of_kinds, now_ns);
	}
	wal_flush(c);
}
