/*
 * SPDX-License-Identifier: Apache-2.0
 * Looks at tasks and runs that live, and records what keeps them from their work; see episodes.h.
 */
#include "correlate/episodes.h"

#include <stdlib.h>
#include <string.h>

#include "correlate/episode_words.h"
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
#define HARDLY 0.1
#define ABOVE_MAX 64			/* programs above one that are looked at */
#define OF_WORK ((1u << EPISODES) - 1 - (1u << EPISODE_DISK))	/* all kinds that follow from what programs do */

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

static uint64_t
more(uint64_t now, uint64_t then)
{
	return now > then ? now - then : 0;
}

static struct look
look_at(const struct subject *s, uint64_t now_ns)
{
	static const enum usage_field moved[] = { USAGE_READ_BYTES, USAGE_WRITE_BYTES, USAGE_RCHAR, USAGE_WCHAR,
		USAGE_NET_RX_BYTES, USAGE_NET_TX_BYTES };
	struct usage u = s->work->done;
	struct look l = { .at_ns = now_ns, .programs = 2 * s->work->programs - s->work->live };
	struct bill bill;
	uint64_t delays;

	usage_add(&u, s->live);
	bill = bill_of_threads(&u);
	l.cpu_ns = usage_cpu_ns(&u);
	l.delay_ns = episode_number(&u, USAGE_RUN_DELAY_NS);
	l.throttled_ns = bill_ns(&bill, BILL_THROTTLED);
	delays = episode_number(&u, USAGE_RECLAIM_DELAY_NS) + episode_number(&u, USAGE_SWAPIN_DELAY_NS) +
	    episode_number(&u, USAGE_THRASHING_DELAY_NS);
	l.pressure_ns = bill_ns(&bill, BILL_SWAP) + bill_ns(&bill, BILL_RECLAIM);
	if (delays > l.pressure_ns)
		l.pressure_ns = delays;
	l.reclaim_ns = more(episode_number(&u, USAGE_RECLAIM_DELAY_NS), bill_ns(&bill, BILL_RECLAIM));
	l.system_ns = episode_number(&u, USAGE_CPU_SYSTEM_NS);
	l.uninterruptible_ns = episode_number(&u, USAGE_WAIT_UNINTERRUPTIBLE_NS);
	l.switches = episode_number(&u, USAGE_VOLUNTARY_SWITCHES) + episode_number(&u, USAGE_INVOLUNTARY_SWITCHES);
	for (size_t i = 0; i < sizeof(moved) / sizeof(moved[0]); i++)
		l.bytes += episode_number(&u, moved[i]);
	for (size_t i = 0; i < EPISODE_WAITS; i++)
		l.waited_ns[episode_waits[i].part] = episode_number(&u, episode_waits[i].field);
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

static bool
is_stuck(const struct subject *s, const struct look *d)
{
	double wall = (double)d->at_ns, stuck = 0;

	if (!episode_is_still(d))
		return false;
	if (episode_is_in_io(d) || (double)d->waited_ns[BILL_NETWORK_FS] >= EPISODE_MOST * wall)
		return true;
	if (!s->is_driven || (double)(d->waited_ns[BILL_TIMER] + d->waited_ns[BILL_POLL]) >= HARDLY * wall)
		return false;
	for (size_t i = 0; i < EPISODE_WAITS; i++)
		stuck += episode_waits[i].is_stuck ? (double)d->waited_ns[episode_waits[i].part] : 0;
	return stuck >= EPISODE_MOST * wall;
}

static bool
is_idle(const struct subject *s, const struct look *d)
{
	const struct episode_wait *w = episode_largest_wait(d);
	double wall = (double)d->at_ns;

	return s->is_driven && w != NULL && w->is_idle && (double)d->waited_ns[w->part] >= EPISODE_MOST * wall &&
	    (double)d->cpu_ns < IDLE_CPUS * wall && (double)d->bytes * 1e9 < IDLE_BYTES_PER_S * wall;
}

static bool
is_throttled(const struct look *d, double part)
{
	double wanted = (double)(d->cpu_ns + d->delay_ns), throttled = (double)d->throttled_ns;

	return throttled > 0 && throttled >= part * THROTTLED_SHARE * wanted &&
	    throttled >= part * THROTTLED_WALL_SHARE * (double)d->at_ns;
}

static bool
is_under_pressure(const struct look *d, double part)
{
	double wanted = episode_wanted_ns(d), pressure = (double)d->pressure_ns;

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
	if (!episode_describe(c, s, kind, change, &d)) {
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
	if (!episode_is_in_io(&d))
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
