/*
 * SPDX-License-Identifier: Apache-2.0
 * memory: sums over programs that live at once. The definition is in memory.h.
 */
#include "correlate/memory.h"

#include <stdbool.h>
#include <unistd.h>

#include "correlate/process.h"
#include "correlate/rows.h"
#include "correlate/runs.h"
#include "correlate/state.h"
#include "correlate/tasks.h"
#include "correlate/wal.h"
#include "correlate/work.h"

#define REMEMBERED_SHARE 8		/* what is remembered is within this part of what was seen, */
#define REMEMBERED_BYTES (1u << 20)	/* and within this */
#define RISE_SHARE 64			/* a mark has risen if it is above the one remembered by more than this part */

static uint64_t
at_most(uint64_t value, uint64_t limit)
{
	return value < limit ? value : limit;
}

void
memory_seen(const struct correlator *c, struct process *p, const struct counters *now)
{
	p->held.now.mark = now->peak_rss_bytes;
	p->held.now.pass = now->has_peak && now->rss_bytes > 0 ? c->pass : 0;
	p->held.now.anon = now->anon_bytes;
	p->held.now.swap = now->swap_bytes;
	p->held.now.shmem = now->shmem_bytes;
	p->held.now.file = now->rss_bytes - at_most(now->anon_bytes + now->shmem_bytes, now->rss_bytes);
	p->held.now.faulted = (now->minor_faults + now->major_faults) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static bool
was_seen(const struct correlator *c, const struct process *p)
{
	return p->is_announced && !p->is_over && p->held.now.pass == c->pass;
}

/* Returns the anonymous memory that p, which forked, began with: its parent's, or if that is unknown, all it has. */
static uint64_t
begun_with(struct correlator *c, const struct process *p)
{
	const struct process *parent = process_of(c, &p->parent);
	uint64_t anon = p->held.now.anon;

	if (parent != NULL && was_seen(c, parent))
		anon = at_most(parent->held.now.anon, anon);
	return anon > 0 ? anon : 1;
}

/* Returns the memory that is p's own, by this pass. */
static uint64_t
own_of(const struct process *p)
{
	const struct held *h = &p->held;
	uint64_t anon = h->now.anon, shared = at_most(anon, h->forked);

	if (p->is_forked)
		anon = anon - shared + at_most(shared, h->now.faulted);
	return anon + h->now.swap;
}

static bool
is_near(uint64_t remembered, uint64_t seen)
{
	uint64_t apart = remembered > seen ? remembered - seen : seen - remembered;

	return apart <= remembered / REMEMBERED_SHARE + REMEMBERED_BYTES;
}

/* Returns true if p's mark has risen to this. Where p ran before the agent did, the first one may be of any time. */
static bool
has_risen(const struct process *p, uint64_t mark)
{
	uint64_t known = p->held.mark;

	if (known == 0)
		/* One that has memory, and no mark, is of an older log. */
		return mark > 0 && p->observed_us == 0 && p->held.own == 0 && p->held.file == 0;
	return mark > known + known / RISE_SHARE + REMEMBERED_BYTES;
}

/*
 * Returns what p had of its own at this mark, if the mark has risen to it; else 0. shared: what it had of shared memory
 * and of files, which passes saw. A child that forked begins with its parent's mark.
 */
static uint64_t
own_at(const struct process *p, uint64_t mark, uint64_t shared)
{
	return p->is_forked || !has_risen(p, mark) ? 0 : mark - at_most(shared, mark);
}

/* Calls fn for the sums of p's run, task and row. */
static void
each(struct process *p, void (*fn)(struct held_together *, const struct process *))
{
	if (p->run != NULL)
		fn(&p->run->work.held, p);
	if (p->task != NULL && !p->is_overhead)
		fn(&p->task->work.held, p);
	if (p->row != NULL)
		fn(&p->row->work.held, p);
}

void
memory_enter(struct held_together *t, const struct process *p)
{
	t->own += p->held.own;
}

void
memory_leave(struct held_together *t, const struct process *p)
{
	t->own -= at_most(p->held.own, t->own);
}

static void
see(struct held_together *t, const struct process *p)
{
	const struct held *h = &p->held;
	uint64_t file = h->file > h->now.file ? h->file : h->now.file;
	uint64_t own = own_of(p), risen = own_at(p, h->now.mark, file + h->now.shmem);

	t->now.own += own;
	t->now.risen += risen > own ? risen - own : 0;
	if (p->held.now.shmem > t->now.shmem)
		t->now.shmem = p->held.now.shmem;
}

static void
process_pass(struct correlator *c, struct process *p)
{
	struct held *h = &p->held;
	uint64_t forked = h->forked;

	if (!p->is_forked)
		h->forked = 0;
	else if (h->forked == 0)
		h->forked = begun_with(c, p);
	each(p, see);
	if (h->forked == forked && is_near(h->own, own_of(p)) && is_near(h->file, h->now.file) &&
	    h->mark != 0 && !has_risen(p, h->now.mark))
		return;
	each(p, memory_leave);
	h->own = own_of(p);
	h->file = h->now.file;
	h->mark = h->now.mark;
	each(p, memory_enter);
	if (p->run != NULL)
		wal_process(c, p, NEWS_ALL);
}

static bool
raise_peak(struct held_together *t, uint64_t bytes, enum peak_source source)
{
	if (bytes <= t->peak)
		return false;
	t->peak = bytes;
	t->peak_source = source;
	return true;
}

static void
begin(struct work *w)
{
	w->held.now.own = w->held.now.risen = w->held.now.shmem = 0;
}

static bool
end(struct work *w)
{
	struct held_together *t = &w->held;
	uint64_t held = t->now.own + t->now.risen + t->now.shmem;

	return raise_peak(t, held, t->now.risen > 0 ? PEAK_OF_PROGRAM : PEAK_OF_PASS);
}

void
memory_pass(struct correlator *c)
{
	for (struct run *r = c->runs; r != NULL; r = r->hh.next)
		begin(&r->work);
	for (struct task *t = c->tasks; t != NULL; t = t->hh.next)
		begin(&t->work);
	for (struct row *w = c->rows; w != NULL; w = w->hh.next)
		begin(&w->work);
	for (struct process *p = c->processes; p != NULL; p = p->next) {
		if (was_seen(c, p))
			process_pass(c, p);
	}
	for (struct run *r = c->runs; r != NULL; r = r->hh.next) {
		if (end(&r->work))
			wal_run(c, r);
	}
	for (struct task *t = c->tasks; t != NULL; t = t->hh.next) {
		if (end(&t->work))
			wal_task(c, t);
	}
	for (struct row *w = c->rows; w != NULL; w = w->hh.next)
		end(&w->work);
}

void
memory_ended(struct process *p, const struct usage *usage)
{
	const struct held *h = &p->held;
	uint64_t mark = usage_has(usage, USAGE_PEAK_RSS_BYTES) ? usage->value[USAGE_PEAK_RSS_BYTES] : 0;
	uint64_t most = own_at(p, mark, h->file);
	struct work *works[] = {
		p->run != NULL ? &p->run->work : NULL,
		p->task != NULL && !p->is_overhead ? &p->task->work : NULL,
		p->row != NULL ? &p->row->work : NULL,
	};

	for (size_t i = 0; most > 0 && i < sizeof(works) / sizeof(works[0]); i++) {
		struct held_together *t = works[i] != NULL ? &works[i]->held : NULL;

		if (t != NULL)
			raise_peak(t, t->own - at_most(h->own, t->own) + most, PEAK_OF_PROGRAM);
	}
}

void
memory_merge(struct held_together *to, const struct held_together *from)
{
	raise_peak(to, from->peak, from->peak_source);
}

void
memory_replayed(struct correlator *c)
{
	for (struct process *p = c->processes; p != NULL; p = p->next) {
		if (p->is_announced && !p->is_over)
			each(p, memory_enter);
	}
}
