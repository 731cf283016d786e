/*
 * SPDX-License-Identifier: Apache-2.0
 * energy: divides each reading of the host's meter. The definition is in energy.h.
 */
#include "correlate/energy.h"

#include "correlate/process.h"
#include "correlate/runs.h"
#include "correlate/state.h"
#include "correlate/tasks.h"
#include "correlate/wal.h"

static struct energy *
task_of(struct process *p)
{
	return p->task != NULL && !p->is_overhead ? &p->task->work.energy : NULL;
}

/* Returns CPU time of p's program that was not charged yet. */
static uint64_t
due_of(const struct charged *c, uint64_t seen_ns)
{
	return seen_ns > c->cpu_ns ? seen_ns - c->cpu_ns : 0;
}

static void
take(struct energy *from, uint64_t uj)
{
	from->uj -= uj < from->uj ? uj : from->uj;
}

void
energy_seen(struct process *p, const struct usage *usage)
{
	p->charged.seen_ns = usage_cpu_ns(usage);
	if (p->charged.cpu_ns == UINT64_MAX)
		p->charged.cpu_ns = p->charged.seen_ns;
}

void
energy_ended(struct process *p, const struct usage *usage)
{
	uint64_t due_ns = due_of(&p->charged, usage_cpu_ns(usage));

	if (p->run != NULL)
		p->run->work.energy.due_ns += due_ns;
	if (task_of(p) != NULL)
		task_of(p)->due_ns += due_ns;
	p->charged = (struct charged){ 0 };
}

void
energy_enter_run(struct process *p)
{
	if (p->run != NULL)
		p->run->work.energy.uj += p->charged.run_uj;
}

void
energy_leave_run(struct process *p)
{
	if (p->run != NULL)
		take(&p->run->work.energy, p->charged.run_uj);
}

void
energy_enter_task(struct process *p)
{
	if (task_of(p) != NULL)
		task_of(p)->uj += p->charged.task_uj;
}

void
energy_leave_task(struct process *p)
{
	if (task_of(p) != NULL)
		take(task_of(p), p->charged.task_uj);
}

void
energy_split_task(struct process *p)
{
	p->charged.task_uj = 0;
}

/* A reading that is divided. */
struct division {
	uint64_t uj;
	uint64_t capacity_ns;
	enum energy_source source;
	uint64_t divided_uj;		/* so far, to runs */
};

static uint64_t
share(const struct division *d, uint64_t cpu_ns)
{
	return d->capacity_ns > 0 ? (uint64_t)((unsigned __int128)d->uj * cpu_ns / d->capacity_ns) : 0;
}

/* Charges what ended since the last reading. Returns microjoules. */
static uint64_t
charge_ended(const struct division *d, struct energy *e)
{
	uint64_t uj = share(d, e->due_ns);

	if (d->source != ENERGY_UNKNOWN && e->due_ns > 0)
		e->source = d->source;
	e->uj += uj;
	e->due_ns = 0;
	return uj;
}

static void
charge_live(struct division *d, struct process *p)
{
	uint64_t uj = p->run != NULL ? share(d, due_of(&p->charged, p->charged.seen_ns)) : 0;

	if (p->charged.seen_ns > p->charged.cpu_ns)
		p->charged.cpu_ns = p->charged.seen_ns;
	if (uj == 0)
		return;
	p->charged.run_uj += uj;
	p->charged.task_uj += uj;
	p->run->work.energy.uj += uj;
	p->run->work.energy.source = d->source;
	d->divided_uj += uj;
	if (task_of(p) != NULL) {
		task_of(p)->uj += uj;
		task_of(p)->source = d->source;
	}
}

uint64_t
correlator_charge(struct correlator *c, uint64_t uj, enum energy_source source, uint64_t capacity_ns)
{
	struct division d = { source != ENERGY_UNKNOWN ? uj : 0, capacity_ns, source, 0 };
	uint64_t used_ns = 0;

	for (const struct run *r = c->runs; r != NULL; r = r->hh.next)
		used_ns += r->work.energy.due_ns;
	for (const struct process *p = c->processes; p != NULL; p = p->next) {
		if (p->is_announced && p->run != NULL)
			used_ns += due_of(&p->charged, p->charged.seen_ns);
	}
	if (used_ns > d.capacity_ns)	/* ends that were reported late */
		d.capacity_ns = used_ns;
	for (struct run *r = c->runs; r != NULL; r = r->hh.next)
		d.divided_uj += charge_ended(&d, &r->work.energy);
	for (struct task *t = c->tasks; t != NULL; t = t->hh.next)
		(void)charge_ended(&d, &t->work.energy);
	for (struct process *p = c->processes; p != NULL; p = p->next) {
		if (p->is_announced)
			charge_live(&d, p);
	}
	return d.divided_uj;
}

void
energy_replayed(struct correlator *c)
{
	for (struct process *p = c->processes; p != NULL; p = p->next)
		p->charged.cpu_ns = p->is_announced ? UINT64_MAX : 0;
}

void
energy_log(struct correlator *c)
{
	for (struct run *r = c->runs; r != NULL; r = r->hh.next) {
		if (r->work.energy.uj != r->work.energy.logged_uj)
			wal_run(c, r);
		r->work.energy.logged_uj = r->work.energy.uj;
	}
	for (struct task *t = c->tasks; t != NULL; t = t->hh.next) {
		if (t->work.energy.uj != t->work.energy.logged_uj)
			wal_task(c, t);
		t->work.energy.logged_uj = t->work.energy.uj;
	}
}
