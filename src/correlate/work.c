/*
 * SPDX-License-Identifier: Apache-2.0
 * work: sums over programs, and the record fields that are filled from them.
 */
#include "correlate/work.h"

#include <string.h>

#include "correlate/bill.h"
#include "correlate/bound.h"
#include "correlate/contention.h"
#include "correlate/process.h"
#include "correlate/runs.h"
#include "correlate/state.h"

void
work_enter(struct work *w, uint64_t now_ns)
{
	uint64_t since_ns = now_ns > w->end_ns ? now_ns : w->end_ns;

	if (w->programs == 0 && w->live == 0)
		w->start_ns = now_ns;
	if (now_ns < w->start_ns)
		w->start_ns = now_ns;
	if (w->live++ == 0 || since_ns < w->busy_since_ns)	/* some are reported late */
		w->busy_since_ns = since_ns;
	w->programs++;
}

void
work_withdraw(struct work *w)
{
	w->programs--;
	if (w->live == 0 || --w->live > 0)
		return;
	if (w->last_ns > w->busy_since_ns)	/* others have ended meanwhile */
		w->busy_ns += w->last_ns - w->busy_since_ns;
	w->end_ns = w->last_ns;
}

void
work_cut(struct work *w, uint64_t now_ns)
{
	if (w->live > 0)
		w->end_ns = now_ns;
}

/* One fewer is live. */
static void
work_end(struct work *w, uint64_t now_ns)
{
	if (now_ns > w->last_ns)	/* ends are not reported in their order */
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

	ended.known &= ~USAGE_BIT(USAGE_RSS_BYTES);	/* ended programs hold no memory */
	usage_add(&w->done, &ended);
	w->failed += has_failed;
	work_end(w, end_ns);
}

void
work_bill(struct work *w, const struct usage *usage, uint64_t now_ns, struct opt_double cpus)
{
	struct bill threads = bill_of_threads(usage);

	own_bill_add(&w->own, &threads, w->start_ns, w->live > 0 ? now_ns : w->end_ns, cpus);
}

struct opt_double
work_cpus(const struct correlator *c, struct opt_double given)
{
	const struct opt_double *host = &c->options.host_cpus;

	return given.known && !(host->known && host->value < given.value) ? given : *host;
}

void
work_merge(struct work *to, const struct work *from)
{
	uint64_t outside_ns = 0;

	if (from->programs == 0)
		return;
	if (to->programs == 0) {
		*to = *from;
		return;
	}
	if (from->start_ns < to->start_ns)
		outside_ns += (from->end_ns < to->start_ns ? from->end_ns : to->start_ns) - from->start_ns;
	if (from->end_ns > to->end_ns)
		outside_ns += from->end_ns - (from->start_ns > to->end_ns ? from->start_ns : to->end_ns);
	if (outside_ns > from->busy_ns)
		outside_ns = from->busy_ns;
	to->busy_ns += outside_ns;
	usage_add(&to->done, &from->done);
	to->programs += from->programs;
	to->failed += from->failed;
	if (from->start_ns < to->start_ns)
		to->start_ns = from->start_ns;
	if (from->last_ns > to->last_ns)
		to->last_ns = from->last_ns;
	if (from->end_ns > to->end_ns)
		to->end_ns = from->end_ns;
	memory_merge(&to->held, &from->held);
	own_bill_merge(&to->own, &from->own, outside_ns);
	contention_merge(&to->contention, &from->contention);
}

void
work_record_fill(const struct correlator *c, const struct run *run, const struct work *w, uint64_t now_ns,
    const struct usage *usage, struct work_record *r)
{
	uint64_t until = r->phase == PHASE_END ? w->end_ns : now_ns;

	if (run != NULL) {
		r->head.user = run_share(run);
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
	r->bill = bill_of_threads(usage);
	r->own_bill = own_bill_of(&w->own, r->wall_ns);
	if (w->held.peak > 0) {
		r->peak_memory_bytes = (struct opt_u64){ w->held.peak, true };
		r->peak_memory_source = (enum peak_source)w->held.peak_source;
		r->memory_bytes = (struct opt_u64){ w->held.now.own + w->held.now.shmem, r->phase != PHASE_END };
	}
	r->energy_source = w->energy.source;
	r->energy_uj = (struct opt_u64){ w->energy.uj, w->energy.source != ENERGY_UNKNOWN };
}

void
work_record_judge(const struct correlator *c, const struct work *w, struct opt_u64 memory_high, bool is_limit_of_each,
    struct work_record *r)
{
	struct demand_limits limits = {
		.memory_limit_bytes = r->requested_memory_bytes,
		.host_memory_bytes = c->options.host_memory_bytes,
		.cpus = work_cpus(c, r->requested_cpus),
		.peak_bytes = r->peak_memory_bytes,
		.is_limit_of_each = is_limit_of_each,
		.memory_high = memory_high,
		.own_queue_ns = { w->own.queue_ns, w->own.until_ns != 0 },
		.others_cpu_ns = contention_of_cpus(c, w, r->usage, w->start_ns + r->wall_ns),
		.group = r->cgroup,
	};

	/* The disk is only asked about work that has waited for one. */
	if (bill_ns(&r->bill, BILL_BLOCK_IO) > 0)
		limits.others_io = contention_of(c, w, r->usage, w->start_ns + r->wall_ns);
	r->verdict = demand_decide(r->usage, &r->bill, r->wall_ns, &limits);
	r->bound = bound_of(&r->verdict);
	r->shares = bound_shares_of(r->usage, r->wall_ns, &limits);
}

void
work_set_status(struct work_record *r, int status)
{
	if ((status & 0x7f) != 0)
		r->exit_signal = (struct opt_i32){ status & 0x7f, true };
	else
		r->exit_code = (struct opt_i32){ status >> 8 & 0xff, true };
}
