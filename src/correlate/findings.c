/*
 * SPDX-License-Identifier: Apache-2.0
 * Decides which failures are reported, when, and in which words; see findings.h.
 */
#include "correlate/findings.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "correlate/episodes.h"
#include "correlate/facts.h"
#include "correlate/finding_draft.h"
#include "correlate/kills.h"
#include "correlate/process.h"
#include "correlate/program_record.h"
#include "correlate/program_text.h"
#include "correlate/runs.h"
#include "correlate/state.h"
#include "correlate/tasks.h"
#include "correlate/wal.h"
#include "correlate/work.h"

/* Adds the chain from f down to the program that it goes back to. */
static void
add_chain(struct correlator *c, struct finding_draft *d, const struct failure *f)
{
	const struct failure *chain[FAILURE_CHAIN_MAX + 1], *leaf = failure_leaf(f);
	uint64_t left_out = 0;
	size_t n = 0;

	for (; f != leaf; f = f->of) {
		left_out += f->skipped;
		if (n < FAILURE_CHAIN_MAX)
			chain[n++] = f;
		else
			left_out++;
	}
	for (size_t i = n; i-- > 0;)
		draft_cause(c, d, &chain[i]->program);
	draft_program(c, d, &leaf->program, leaf->tool);
	if (leaf->is_oom) {
		draft_append(d, " was killed by the kernel because memory ran out");
		draft_append_memory(d, leaf->peak_bytes, leaf->limit_bytes);
	} else {
		draft_append_status(d, leaf->status);
	}
	draft_status(d, "exit_code", "exit_signal", leaf->status);
	if (leaf->is_oom)
		draft_number(d, "oom_killed", 1);
	draft_number(d, "wall_ns", (double)(leaf->end_ns - leaf->begin_ns));
	draft_bytes(d, "peak_rss_bytes", leaf->peak_bytes);
	draft_bytes(d, "memory_limit_bytes", leaf->limit_bytes);
	if (left_out > 0)
		draft_number(d, "causes_left_out", (double)left_out);
}

/* Emits FAILED: the program where it began, and what followed from it. t: the failed task; NULL: run r failed. */
static void
emit_failed(struct correlator *c, struct run *r, const struct task *t, const struct failure *f, int32_t status,
    uint64_t end_ns)
{
	static const char unknown[] = "a program without a record";
	struct finding_draft d = { .r.kind = "FAILED", .r.severity = SEVERITY_ERROR };
	const struct failure *leaf = f != NULL ? failure_leaf(f) : NULL;

	if (!finding_is_allowed(c, r))
		return;
	draft_head(c, &d, r, t, end_ns);
	if (t == NULL && leaf != NULL) {
		d.r.head.task_id = name_or_null(leaf->task_id);
		d.r.head.task = name_or_null(leaf->task);
		d.r.head.sample = name_or_null(leaf->sample);
	}
	if (f != NULL) {
		add_chain(c, &d, f);
		draft_number(&d, "before_ns", (double)(end_ns - leaf->end_ns));
	} else {
		draft_append(&d, "%s", unknown);
		draft_append_status(&d, status);
	}
	draft_status(&d, t != NULL ? "task_exit_code" : "run_exit_code", t != NULL ? "task_exit_signal" : "run_exit_signal",
	    status);
	if (t != NULL && t->attempt.known)
		draft_number(&d, "attempt", t->attempt.value);
	if (t != NULL && t->oom_kills > 0)
		draft_number(&d, "oom_kills", t->oom_kills);
	if (t != NULL) {
		draft_append(&d, "; task ");
		draft_append_task(&d, t);
	} else {
		draft_append(&d, "; the run");
	}
	draft_append(&d, " failed because of it");
	draft_emit(c, &d);
}

static void
emit_oom(struct correlator *c, const struct process *p, const struct program_end *end)
{
	const struct opt_u64 limit = failure_memory_limit(p);
	struct finding_draft d = { .r.kind = "OOM_KILLED", .r.severity = SEVERITY_ERROR };

	draft_begin(c, &d, p, end);
	draft_append(&d, " was killed by the kernel because memory ran out");
	draft_append_memory(&d, end->peak_bytes, limit);
	draft_bytes(&d, "peak_rss_bytes", end->peak_bytes);
	draft_bytes(&d, "memory_limit_bytes", limit);
	draft_bytes(&d, "host_memory_bytes", c->options.host_memory_bytes);
	draft_number(&d, "exit_signal", WTERMSIG(end->status));
	if (end->end_ns > p->program_start_ns)
		draft_number(&d, "wall_ns", (double)(end->end_ns - p->program_start_ns));
	draft_emit(c, &d);
}

void
finding_oom(struct correlator *c, const struct process *p, const struct program_end *end)
{
	struct task *t = p->is_overhead ? NULL : p->task;

	if (c->ops.finding == NULL || !end->is_oom)
		return;
	if (t != NULL) {
		wal_task(c, t);
		if (t->oom_kills++ >= FINDINGS_OF_TASK_MAX) {
			finding_leave_out(c, process_owner(p));
			return;
		}
	}
	if (p->run != NULL ? finding_is_allowed(c, p->run) : finding_is_allowed_alone(c, p, end->end_ns))
		emit_oom(c, p, end);
}

/* A later attempt succeeded: attempts of this task that failed before no longer count. */
static void
recover(struct correlator *c, const struct task *t)
{
	struct run *r = t->run;
	uint32_t failed;

	if (!t->attempt.known || t->attempt.value < 2 || r->failed_tasks == 0)
		return;
	failed = (uint32_t)fact_attempt(c, r, t->name, t->sample) - 1;
	r->failed_tasks -= failed < r->failed_tasks ? failed : r->failed_tasks;
	wal_run(c, r);
}

void
finding_task_ended(struct correlator *c, struct task *t, const struct process *p, int32_t status)
{
	struct failure *f = failure_of(p);

	if (c->ops.finding == NULL || t->failing != FAILING_NOT || !task_is_driven(t))
		return;
	if (status == 0) {
		recover(c, t);
		return;
	}
	t->failing = FAILING_DUE;
	t->failure = failure_ref(f);
	t->run->failed_tasks++;
	c->findings_due++;
	if (f != NULL) {
		f->task_root = t->number;
		wal_mark(c, MARKED_FAILURES, &f->mark, NEWS_ALL);
	}
	wal_task(c, t);
	wal_run(c, t->run);
}

void
finding_run_ended(struct correlator *c, struct run *r, const struct process *p, int32_t status)
{
	struct failure *f = p != NULL ? failure_of(p) : NULL;

	if (c->ops.finding == NULL || r->failing != FAILING_NOT || status == 0)
		return;
	r->failing = FAILING_DUE;
	r->failure = failure_ref(f);
	c->findings_due++;
	if (f != NULL) {
		f->is_run_root = true;
		wal_mark(c, MARKED_FAILURES, &f->mark, NEWS_ALL);
	}
	wal_run(c, r);
}

/*
 * Returns true if f is the failure of another task: of one in its chain, or, if an engine failed of itself, of any of
 * the others, which is the number of failed tasks of the run.
 */
static bool
is_anothers(const struct failure *f, uint32_t others)
{
	const struct failure *leaf = failure_leaf(f), *g = f;

	while (g != leaf) {
		g = g->of;
		if (g->task_root != 0)
			return true;
	}
	return leaf == f && f->is_engine && others > 0;
}

static void
settle(struct correlator *c, enum failing *failing, struct failure **failure)
{
	*failing = FAILING_OVER;
	failure_unref(c, *failure);
	*failure = NULL;
	c->findings_due--;
}

static uint64_t
ended_ns(const struct failure *f, const struct work *w)
{
	return f != NULL ? f->end_ns : w->last_ns;
}

static void
task_settles(struct correlator *c, struct task *t)
{
	struct run *r = t->run;

	episodes_settled(c, r, t, t->failure);
	if (t->failure != NULL && is_anothers(t->failure, r->failed_tasks > 0 ? r->failed_tasks - 1 : 0)) {
		r->failed_tasks -= r->failed_tasks > 0;
		wal_run(c, r);
	} else {
		emit_failed(c, r, t, t->failure, t->status, ended_ns(t->failure, &t->work));
	}
	settle(c, &t->failing, &t->failure);
	wal_task(c, t);
}

static void
run_settles(struct correlator *c, struct run *r)
{
	episodes_settled(c, r, NULL, r->failure);
	if (r->failed_tasks == 0 && (r->failure == NULL || !is_anothers(r->failure, 0)))
		emit_failed(c, r, NULL, r->failure, r->status, ended_ns(r->failure, &r->work));
	settle(c, &r->failing, &r->failure);
	wal_run(c, r);
}

/* Returns true if f may go back to a child that has ended and is not reported yet. */
static bool
is_ending(struct correlator *c, const struct failure *f)
{
	const struct process *p;

	for (; f != NULL; f = f->of) {
		p = process_of(c, &f->program);
		if (p != NULL && p->ending_in != 0 && p->ending_in == c->pass)
			return true;
	}
	return false;
}

static bool
is_settled(struct correlator *c, const struct failure *f, const struct work *w, uint64_t now_ns)
{
	return now_ns >= ended_ns(f, w) + FAILURE_SETTLE_NS && !is_ending(c, f);
}

void
findings_tick(struct correlator *c, uint64_t now_ns, bool all)
{
	struct task *t;
	struct run *r;

	if (c->findings_due == 0)
		return;
	for (t = c->tasks; t != NULL; t = t->hh.next) {
		if (t->failing == FAILING_DUE && t->has_started &&
		    (all || is_settled(c, t->failure, &t->work, now_ns)))
			task_settles(c, t);
	}
	for (r = c->runs; r != NULL; r = r->hh.next) {
		if (r->failing == FAILING_DUE && r->has_started &&
		    (all || is_settled(c, r->failure, &r->work, now_ns)))
			run_settles(c, r);
	}
	wal_flush(c);
}

void
finding_task_gone(struct correlator *c, struct task *t)
{
	if (t->failing == FAILING_DUE)
		settle(c, &t->failing, &t->failure);
}

void
finding_run_gone(struct correlator *c, struct run *r)
{
	if (r->failing == FAILING_DUE)
		settle(c, &r->failing, &r->failure);
}

uint64_t
findings_held(const struct correlator *c, uint64_t since_ns)
{
	const struct task *t;
	const struct run *r;
	uint64_t n = 0;

	if (c->findings_due == 0)
		return 0;
	for (t = c->tasks; t != NULL; t = t->hh.next)
		n += t->failing == FAILING_DUE && t->has_started && ended_ns(t->failure, &t->work) <= since_ns;
	for (r = c->runs; r != NULL; r = r->hh.next)
		n += r->failing == FAILING_DUE && r->has_started && ended_ns(r->failure, &r->work) <= since_ns;
	return n;
}

static bool
is_of(const struct failure *f, const struct process_id *root)
{
	return root->pid == f->program.pid && root->start_ns == f->program.start_ns;
}

void
finding_attach(struct correlator *c, struct failure *f)
{
	struct task *t = f->task_root != 0 ? task_find(c, f->task_root) : NULL;
	struct run *r;

	if (t != NULL && t->failing == FAILING_DUE && t->failure == NULL && is_of(f, &t->root))
		t->failure = failure_ref(f);
	for (r = f->is_run_root ? c->runs : NULL; r != NULL; r = r->hh.next) {
		if (r->failing == FAILING_DUE && r->failure == NULL && is_of(f, &r->root))
			r->failure = failure_ref(f);
	}
}

void
findings_replayed(struct correlator *c)
{
	const struct task *t;
	const struct run *r;

	c->findings_due = 0;
	for (t = c->tasks; t != NULL; t = t->hh.next)
		c->findings_due += t->failing == FAILING_DUE;
	for (r = c->runs; r != NULL; r = r->hh.next)
		c->findings_due += r->failing == FAILING_DUE;
}
