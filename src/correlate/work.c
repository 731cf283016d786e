/*
 * SPDX-License-Identifier: Apache-2.0
 * Sums over programs: of a task, of a run, of a row of the table, of the host.
 */
#include <string.h>

#include "correlate/bound.h"
#include "correlate/state.h"

void
work_begin(struct work *w, uint64_t now_ns)
{
	uint64_t since_ns = now_ns > w->end_ns ? now_ns : w->end_ns;

	if (w->programs == 0 && w->live == 0)
		w->start_ns = now_ns;
	if (now_ns < w->start_ns)
		w->start_ns = now_ns;
	if (w->live++ == 0 || since_ns < w->busy_since_ns)	/* some are told late */
		w->busy_since_ns = since_ns;
}

void
work_end(struct work *w, uint64_t now_ns)
{
	if (now_ns > w->last_ns)	/* ends are not told in their order */
		w->last_ns = now_ns;
	if (w->live == 0 || --w->live > 0)
		return;
	if (w->last_ns > w->busy_since_ns)
		w->busy_ns += w->last_ns - w->busy_since_ns;
	w->end_ns = w->last_ns;
}

void
work_add(struct work *w, const struct usage *usage, bool has_failed, uint64_t end_ns)
{
	struct usage ended = *usage;

	ended.known &= ~(UINT32_C(1) << USAGE_RSS_BYTES);	/* what has ended holds no memory */
	usage_add(&w->done, &ended);
	w->failed += has_failed;
	work_end(w, end_ns);
}

static void
work_enter_one(struct work *w, uint64_t at_ns)
{
	work_begin(w, at_ns);
	w->programs++;
}

void
work_enter_task(struct correlator *c, struct process *p, uint64_t since_ns, uint64_t at_ns)
{
	struct task *t = p->is_overhead ? NULL : p->task;

	p->row = row_of(c, p);
	if (p->row != NULL)
		work_enter_one(&p->row->work, p->program_start_ns);
	if (t == NULL)
		return;
	work_enter_one(&t->work, since_ns);
	t->has_ended = false;
	if (!t->has_started) {
		t->has_started = true;
		task_emit(c, t, PHASE_START, at_ns);
	}
	journal_task(c, t);
}

void
work_enter(struct correlator *c, struct process *p, uint64_t at_ns)
{
	work_enter_one(&c->all, p->program_start_ns);
	if (p->run != NULL) {
		work_enter_one(&p->run->work, p->program_start_ns);
		p->run->has_ended = false;
		if (!p->run->has_started) {
			p->run->has_started = true;
			p->run->start_ns = p->program_start_ns;
			p->run->lost_before = c->lost_events;
			run_emit(c, p->run, PHASE_START, at_ns);
		}
		journal_run(c, p->run);
	}
	work_enter_task(c, p, p->program_start_ns, at_ns);
}

void
work_leave(struct correlator *c, struct process *p, const struct usage *usage, bool has_failed, uint64_t end_ns)
{
	static const struct usage none;

	work_add(&c->all, p->run != NULL ? usage : &none, has_failed, end_ns);
	if (p->row != NULL)
		work_add(&p->row->work, usage, has_failed, end_ns);
	if (p->run != NULL) {
		work_add(&p->run->work, usage, has_failed, end_ns);
		journal_run(c, p->run);
	}
	if (p->task != NULL && !p->is_overhead) {
		struct usage own = title_usage(p, usage);

		work_add(&p->task->work, &own, has_failed, end_ns);
		journal_task(c, p->task);
	}
	p->row = NULL;
}

static void
work_withdraw_one(struct work *w)
{
	w->programs--;
	if (w->live > 0 && --w->live == 0)
		w->end_ns = w->last_ns;
}

void
work_withdraw(struct correlator *c, struct process *p)
{
	work_withdraw_one(&c->all);
	if (p->row != NULL)
		work_withdraw_one(&p->row->work);
	if (p->run != NULL) {
		work_withdraw_one(&p->run->work);
		journal_run(c, p->run);
	}
	if (p->task != NULL && !p->is_overhead) {
		work_withdraw_one(&p->task->work);
		journal_task(c, p->task);
	}
	p->row = NULL;
}

void
work_leave_task(struct correlator *c, struct process *p, uint64_t now_ns)
{
	if (p->row != NULL)
		work_withdraw_one(&p->row->work);
	p->row = NULL;
	if (p->task != NULL && !p->is_overhead) {
		struct usage own = title_usage(p, &p->latest);

		if (p->title->is_taken)
			work_add(&p->task->work, &own, false, now_ns);
		else
			work_withdraw_one(&p->task->work);	/* it was never that task's */
		journal_task(c, p->task);
	}
	if (p->title->is_taken) {
		p->title->before = p->latest;
		p->title->before.known = UINT32_MAX;
	}
}

void
work_record_fill(const struct correlator *c, const struct run *run, const struct work *w, uint64_t now_ns,
    const struct usage *usage, struct work_record *r)
{
	struct bound_limits limits = { r->requested_memory_bytes, c->options.host_memory_bytes };
	uint64_t until = r->phase == PHASE_END ? w->end_ns : now_ns;

	if (run != NULL) {
		r->head.run_id = run->id;
		r->head.pipeline = run->pipeline;
		r->run_name = run->name;
		r->scheduler = run->scheduler;
		r->job_id = run->job_id;
		r->parent_run_id = run->parent_id;
		r->uid = run->uid;
	}
	r->start_time_us = state_wall_us(c, w->start_ns);
	r->wall_ns = until > w->start_ns ? until - w->start_ns : 0;
	if (r->phase == PHASE_END) {
		r->end_time_us = (struct opt_u64){ (uint64_t)state_wall_us(c, until), true };
		r->head.time_us = state_wall_us(c, until);
	} else {
		r->head.time_us = state_wall_us(c, r->phase == PHASE_START ? w->start_ns : now_ns);
	}
	r->usage = usage;
	r->parallelism = r->wall_ns > 0 ? (double)usage_cpu_ns(usage) / (double)r->wall_ns : 0;
	r->programs = w->programs;
	r->live_programs = w->live;
	r->failed_programs = w->failed;
	r->bound = bound_decide(usage, r->wall_ns, &limits, &r->shares);
}

void
work_set_status(struct work_record *r, int status)
{
	if ((status & 0x7f) != 0)
		r->exit_signal = (struct opt_i32){ status & 0x7f, true };
	else
		r->exit_code = (struct opt_i32){ status >> 8 & 0xff, true };
}
