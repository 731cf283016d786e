/*
 * SPDX-License-Identifier: Apache-2.0
 * Decides whose work a program is: first by what its own arguments show (the rules of engines), then by where it
 * runs (a scheduler's job), then by its ancestors. A run whose evidence is no stronger than that of the run around
 * it does not begin inside it.
 *
 *   driver     begins a run; programs that it forks are tasks, if its rule has tasks: true
 *   task       belongs to the run of its ancestors, or one that claimed it, or whose folder it works in
 *   none       belongs where its parent does; in a job without an engine the job's step is its task
 */
#include "correlate/attribute.h"

#include "base/steps.h"
#include "correlate/account.h"
#include "correlate/attribute_job.h"
#include "correlate/attribute_run.h"
#include "correlate/attribute_task.h"
#include "correlate/judged.h"
#include "correlate/location.h"
#include "correlate/process.h"
#include "correlate/program_record.h"
#include "correlate/program_text.h"
#include "correlate/runs.h"
#include "correlate/state.h"
#include "correlate/tasks.h"
#include "correlate/title.h"
#include "correlate/wal.h"
#include "identify/match.h"

static struct task *
of_run(struct task *t, const struct run *r)
{
	return t != NULL && t->run == r ? t : NULL;
}

static const char *
engine_of(const struct run *r)
{
	return r == NULL ? NULL : r->inner != NULL ? r->inner : r->engine;
}

/* Returns true if no rule of an engine holds for the program. is_judged: that is known. */
static bool
attribute(struct correlator *c, struct process *p, struct process *parent, const struct candidate *s, bool is_judged)
{
	struct task *around = p->task != NULL ? p->task : parent != NULL ? parent->task : NULL;
	struct run *run = attribute_run_around(c, p, parent);
	struct engine_verdict v;
	bool is_none;

	if (is_judged)
		engine_verdict_none(&v);
	else
		engine_judge(c->rules, s, engine_of(run), &v);
	is_none = v.rule == NULL;
	p->is_engine = v.role == ENGINE_DRIVER;
	run = attribute_run(c, p, run, of_run(around, run), s, &v);
	around = of_run(around, run);
	/* The command of a run that was made by hand drives it, whatever it is. */
	p->is_driver = run != NULL && run->task == NULL && ((v.role == ENGINE_DRIVER && v.has_tasks) ||
	    (run->strength == STRENGTH_EXPLICIT && process_is(p, &run->root)));
	/* Descendants of the engine's own programs are overhead too, until one is a task. */
	p->is_overhead = run != NULL && v.role != ENGINE_TASK && v.role != ENGINE_JOINS && v.role != ENGINE_DRIVER &&
	    (v.is_overhead || p->is_overhead || (parent != NULL && parent->is_overhead));
	if (of_run(p->task, run) == NULL)
		task_assign(c, p, NULL);
	run_assign(c, p, run);
	if (run != NULL)
		task_assign(c, p, attribute_task(c, p, parent, around, s, &v));
	attribute_job(c, p, parent, s);
	return is_none;
}

/* Returns true if l follows from cgroups alone. l may be NULL. */
static bool
is_of_cgroups(const struct location *l)
{
	return l == NULL || l->hh.tbl != NULL;
}

/* Adds a program to the key, if it has no image, which is text that is not in the key. */
static bool
add(struct judged *key, int depth, const struct process *p, struct text *text)
{
	return location_image(p->location) == NULL && judged_add(key, depth, p, text);
}

/* Makes p's key in the table of judged programs. above: of its candidate's parent. False: it cannot be there. */
static bool
judged_key(struct correlator *c, struct process *p, struct process *parent, struct process *above,
    struct text *before, struct judged *ret)
{
	const struct run *run = c->whole != NULL ? c->whole : p->run != NULL ? p->run :
	    parent != NULL ? parent->run : NULL;
	bool has_parent = before != NULL || parent != NULL;

	*ret = (struct judged){ .engine = engine_of(run), .strength = run != NULL ? run->strength : STRENGTH_NONE,
	    .is_inside = p->is_inside || (parent != NULL && parent->is_inside) };
	return p->text != NULL && p->text->is_shared && is_of_cgroups(p->location) &&
	    add(ret, 0, p, p->text) &&
	    (!has_parent || add(ret, 1, before != NULL ? p : parent, before != NULL ? before : parent->text)) &&
	    (!has_parent || above == NULL || add(ret, 2, above, above->text));
}

static void
attributed(struct correlator *c, struct process *p)
{
	p->is_unjudged = steps_are_spent();
	wal_process(c, p, NEWS_ALL);
	if (p->task != NULL && p->location != NULL && !p->is_overhead)
		attribute_task_limits(c, p->task, p->location);
}

void
attribute_exec(struct correlator *c, struct process *p, struct process *parent, struct text *before,
    struct candidate *s)
{
	struct process *above = before != NULL ? parent : parent != NULL ? attribute_parent(c, parent) : NULL;
	bool is_inside = p->is_inside || (parent != NULL && parent->is_inside), is_excluded, has_key, is_none;
	struct candidate up, higher;
	struct location *begun;
	struct judged key;

	location_set(c, p, parent, true);
	has_key = judged_key(c, p, parent, above, before, &key);
	if (has_key && judged_find(c, &key, &p->is_inside)) {
		p->is_excluded = false;
		(void)attribute(c, p, parent, s, true);
		attributed(c, p);
		return;
	}
	program_candidate_context(c, p, s);
	if (before != NULL || parent != NULL) {
		program_candidate_of(c, before != NULL ? p : parent, before != NULL ? before : parent->text, &up);
		s->parent = &up;
	}
	if (s->parent != NULL && above != NULL) {
		program_candidate(c, above, &higher);
		up.parent = &higher;
	}
	begun = location_ref(p->location);	/* up.image points into it */
	location_refine(c, p, s);
	s->image = location_image(p->location);
	p->is_inside = is_inside;
	is_excluded = c->whole == NULL && follow_excludes(&c->rules->follow, s, is_inside, NULL, &p->is_inside);
	p->is_excluded = is_excluded && !p->is_announced;	/* it counts already */
	is_none = attribute(c, p, parent, s, false);
	if (has_key && is_none && !is_excluded && !steps_are_spent() && is_of_cgroups(p->location))
		judged_keep(c, &key, p->is_inside);
	attributed(c, p);
	s->parent = NULL;
	s->image = NULL;
	location_unref(c, begun);
}

static void
set(struct correlator *c, struct process *p, bool *member, bool value)
{
	if (*member == value)
		return;
	*member = value;
	wal_process(c, p, NEWS_ALL);
}

void
attribute_fork(struct correlator *c, struct process *p, struct process *parent)
{
	location_set(c, p, parent, false);
	if (p->run == NULL)
		run_assign(c, p, attribute_run_around(c, p, parent));
	if (parent != NULL) {
		set(c, p, &p->is_inside, parent->is_inside);
		set(c, p, &p->is_excluded, parent->is_excluded);
		set(c, p, &p->is_overhead, parent->is_overhead);
	} else {
		set(c, p, &p->is_excluded, c->whole == NULL && c->rules->follow.n_include > 0);
	}
	if (p->run != NULL && p->task == NULL)
		task_assign(c, p, attribute_task_fork(c, p, parent));
}

/* p never exec'd: it runs the program of its anchor. */
static void
inherit(struct correlator *c, struct process *p, struct process *anchor)
{
	process_set_text(c, p, program_text_ref(anchor->text));
	if (!p->has_context && anchor->has_context)
		process_set_context(c, p, &anchor->context);
	if (anchor->is_elevated)
		process_set_elevated(c, p);
	if (!p->is_announced)
		attribute_fork(c, p, anchor);
}

/*
 * Returns the process that p descends from, for its task: its parent; or, where the parent was never seen (it
 * forked and did not exec), an entry made for it as a child of p's nearest ancestor that did exec.
 */
struct process *
attribute_parent(struct correlator *c, const struct process *p)
{
	struct process *parent = process_of(c, &p->parent), *anchor;

	if (p->parent.pid == 0 || (parent != NULL && (parent->text != NULL || !parent->is_forked)))
		return parent;
	anchor = process_of(c, &p->anchor);
	if (parent != NULL) {
		/* a pass saw it before the exec of its anchor was read */
		if (anchor != NULL && anchor != parent && anchor->text != NULL && anchor->self.index == p->anchor.index)
			inherit(c, parent, anchor);
		return parent;
	}
	if (anchor == NULL ||
	    (p->anchor.pid == p->parent.pid && p->anchor.start_ns == p->parent.start_ns))
		return anchor;
	parent = process_add(c, &p->parent, &p->anchor, &p->anchor);
	if (parent == NULL)
		return anchor;
	inherit(c, parent, anchor);
	return parent;
}

void
attribute_title(struct correlator *c, struct process *p, struct process *parent, const struct candidate *s,
    uint64_t now_ns)
{
	struct run *around = attribute_run_around(c, p, parent), *run;
	struct engine_verdict v;
	bool is_overhead, has_moved;
	struct task *t = NULL;

	engine_judge(c->rules, s, engine_of(around), &v);
	is_overhead = v.role == ENGINE_NONE && v.is_overhead;
	if (v.role != ENGINE_TASK && v.role != ENGINE_JOINS && !is_overhead)
		return;
	/* An attribution by hand takes precedence. */
	if (around != NULL && (around->task != NULL ||
	    (around->strength == STRENGTH_EXPLICIT && process_is(p, &around->root))))
		return;
	run = attribute_run(c, p, around, of_run(p->task, around), s, &v);
	if (run == NULL || (v.role == ENGINE_NONE && !is_overhead))
		return;

	has_moved = run != p->run;
	if (has_moved) {
		if (p->is_announced)
			account_withdraw(c, p);
		task_assign(c, p, NULL);
		run_assign(c, p, run);
	}
	if (!is_overhead)
		t = attribute_task_title(c, p, s, &v);
	if (has_moved || t != p->task || is_overhead != p->is_overhead) {
		uint64_t since_ns = p->title->is_taken ? now_ns : p->program_start_ns;

		if (p->is_announced && !has_moved)
			account_leave_task(c, p, now_ns);
		p->is_overhead = is_overhead;
		p->is_driver = p->is_driver && is_overhead;
		task_assign(c, p, t);
		if (p->is_announced && has_moved)
			account_enter(c, p, now_ns);
		else if (p->is_announced)
			account_enter_task(c, p, since_ns, now_ns);
	}
	title_take(c, p);
}

void
attribute_by_hand(struct correlator *c, struct process *p, struct run *r, bool is_root, uint64_t now_ns)
{
	if (p->is_announced)
		account_withdraw(c, p);
	task_assign(c, p, NULL);
	run_assign(c, p, r);
	p->is_driver = is_root && r->task == NULL;
	if (r->task != NULL)
		task_assign(c, p, attribute_task_by_hand(c, r, p));
	if (p->is_announced)
		account_enter(c, p, now_ns);
	wal_process(c, p, NEWS_ALL);
}
