/*
 * SPDX-License-Identifier: Apache-2.0
 * account: adds programs to the sums of their task, run, row and host, and takes them out again. The first program
 * of a task or of a run makes its START record.
 */
#include "correlate/account.h"

#include "correlate/contention.h"
#include "correlate/energy.h"
#include "correlate/groups.h"
#include "correlate/memory.h"
#include "correlate/process.h"
#include "correlate/rows.h"
#include "correlate/runs.h"
#include "correlate/state.h"
#include "correlate/tasks.h"
#include "correlate/title.h"
#include "correlate/wal.h"
#include "correlate/work.h"

static void
enter(struct correlator *c, struct work *w, const struct process *p, uint64_t since_ns)
{
	bool is_first = w->live == 0 || p->program_start_ns < w->busy_since_ns;

	work_enter(w, since_ns);
	memory_enter(&w->held, p);
	if (is_first)
		contention_reach(c, w, p->program_start_ns);
}

static void
leave(struct correlator *c, struct work *w, const struct process *p, const struct usage *usage, bool has_failed,
    uint64_t end_ns)
{
	work_add(w, usage, has_failed, end_ns);
	memory_leave(&w->held, p);
	if (w->live == 0)
		contention_end(c, w);
}

static void
withdraw(struct correlator *c, struct work *w, const struct process *p)
{
	work_withdraw(w);
	memory_leave(&w->held, p);
	if (w->live == 0)
		contention_end(c, w);
}

void
account_enter_task(struct correlator *c, struct process *p, uint64_t since_ns, uint64_t at_ns)
{
	struct task *t = p->is_overhead ? NULL : p->task;

	p->row = row_of(c, p);
	if (p->row != NULL) {
		enter(c, &p->row->work, p, p->program_start_ns);
		if (p->row->work.live == 1)
			contention_begin(c, &p->row->work, NULL, p);
	}
	if (t == NULL)
		return;
	enter(c, &t->work, p, since_ns);
	energy_enter_task(p);
	groups_joined(c, p);
	task_joined(c, t, p, at_ns);
}

void
account_enter(struct correlator *c, struct process *p, uint64_t at_ns)
{
	work_enter(&c->all, p->program_start_ns);
	if (p->run != NULL) {
		enter(c, &p->run->work, p, p->program_start_ns);
		energy_enter_run(p);
		run_joined(c, p->run, p, at_ns);
	}
	account_enter_task(c, p, p->program_start_ns, at_ns);
}

void
account_leave(struct correlator *c, struct process *p, const struct usage *usage, bool has_failed, uint64_t end_ns)
{
	static const struct usage none;

	work_add(&c->all, p->run != NULL ? usage : &none, has_failed, end_ns);
	energy_ended(p, usage);
	if (p->row != NULL)
		leave(c, &p->row->work, p, usage, has_failed, end_ns);
	if (p->run != NULL) {
		leave(c, &p->run->work, p, usage, has_failed, end_ns);
		wal_run(c, p->run);
	}
	if (p->task != NULL && !p->is_overhead) {
		struct usage own = title_usage(p, usage);

		leave(c, &p->task->work, p, &own, has_failed, end_ns);
		wal_task(c, p->task);
	}
	p->row = NULL;
}

void
account_withdraw(struct correlator *c, struct process *p)
{
	work_withdraw(&c->all);
	if (p->row != NULL)
		withdraw(c, &p->row->work, p);
	if (p->run != NULL) {
		withdraw(c, &p->run->work, p);
		energy_leave_run(p);
		wal_run(c, p->run);
	}
	if (p->task != NULL && !p->is_overhead) {
		withdraw(c, &p->task->work, p);
		energy_leave_task(p);
		wal_task(c, p->task);
	}
	p->row = NULL;
}

void
account_leave_task(struct correlator *c, struct process *p, uint64_t now_ns)
{
	if (p->row != NULL)
		withdraw(c, &p->row->work, p);
	p->row = NULL;
	if (p->task != NULL && !p->is_overhead) {
		struct usage own = title_usage(p, &p->latest);

		if (p->title->is_taken) {
			leave(c, &p->task->work, p, &own, false, now_ns);
		} else {
			withdraw(c, &p->task->work, p);	/* the program did not belong to that task */
			energy_leave_task(p);
		}
		wal_task(c, p->task);
	}
	if (p->title->is_taken) {
		title_split(c, p, &p->latest);
		energy_split_task(p);
	}
}
