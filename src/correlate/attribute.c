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

#include <stdio.h>
#include <string.h>

#include "correlate/account.h"
#include "correlate/attribute_run.h"
#include "correlate/facts.h"
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

static const char by_descent[] = "child of the driver";

static void
copy_name(char out[ENGINE_NAME_SIZE], const char *from)
{
	size_t len = from != NULL ? strlen(from) : 0;

	if (len >= ENGINE_NAME_SIZE) {
		len = ENGINE_NAME_SIZE - 1;
		while (len > 0 && ((unsigned char)from[len] & 0xc0) == 0x80)
			len--;		/* do not cut within a character */
	}
	if (len > 0)
		memcpy(out, from, len);
	out[len] = '\0';
}

/* Takes the scheduler, job and limits from where the task's first program runs. */
static void
take_location(struct task *t, const struct process *p)
{
	if (p->location != NULL) {
		t->cpus = p->location->cpus;
		t->memory_bytes = p->location->memory_bytes;
		if (p->location->place.is_batch) {
			state_learn_string(&t->scheduler, p->location->place.scheduler);
			state_learn_string(&t->job_id, p->location->place.job);
		}
	}
	if (!t->cpus.known)
		t->cpus = t->run->cpus;
	if (!t->memory_bytes.known)
		t->memory_bytes = t->run->memory_bytes;
}

/* A container in a task has limits of its own; the shell that started it has only those of the run. */
static void
learn_limits(struct correlator *c, struct task *t, const struct location *l)
{
	const struct run *r = t->run;
	bool has_own_cpus = t->cpus.known && !(r->cpus.known && r->cpus.value <= t->cpus.value);
	bool has_own_memory = t->memory_bytes.known &&
	    !(r->memory_bytes.known && r->memory_bytes.value <= t->memory_bytes.value);
	bool is_news = false;

	if (!has_own_cpus && l->cpus.known && !(t->cpus.known && t->cpus.value <= l->cpus.value)) {
		t->cpus = l->cpus;
		is_news = true;
	}
	if (!has_own_memory && l->memory_bytes.known &&
	    !(t->memory_bytes.known && t->memory_bytes.value <= l->memory_bytes.value)) {
		t->memory_bytes = l->memory_bytes;
		is_news = true;
	}
	if (is_news)
		wal_task(c, t);
}

static struct task *
task_begin(struct correlator *c, struct run *r, const struct process *p)
{
	struct task *t = task_new(c, r, c->next_task + 1);

	if (t == NULL)
		return NULL;
	t->root = p->id;
	take_location(t, p);
	return t;
}

/* Returns the one task of a run that was given a task name by hand. */
static struct task *
task_of_run(struct correlator *c, struct run *r, const struct process *p)
{
	static const struct opt_i32 no_attempt;
	char name[ENGINE_NAME_SIZE];
	struct task *t;

	copy_name(name, r->task);
	t = task_find_id(c, r, name, no_attempt);
	if (t != NULL)
		return t;
	t = task_begin(c, r, p);
	if (t == NULL)
		return NULL;
	t->root = (struct process_id){ 0, 0 };
	copy_name(t->name, name);
	copy_name(t->task_id, name);
	copy_name(t->sample, r->sample);
	t->engine = r->engine;
	t->source = kept_name(c, "--task");
	t->confidence = 1;
	t->is_named = true;
	task_set_id_key(c, t);
	wal_task(c, t);
	return t;
}

/* In a job without an engine the job's step is the task: 4711.batch. */
static struct task *
task_of_step(struct correlator *c, struct run *r, const struct process *p)
{
	static const struct opt_i32 no_attempt;
	const struct place *place = p->location != NULL ? &p->location->place : NULL;
	char id[ENGINE_NAME_SIZE];
	struct task *t;

	if (r->strength != STRENGTH_JOB || place == NULL || place->step[0] == '\0' ||
	    r->job_id == NULL || strcmp(place->job, r->job_id) != 0)
		return NULL;
	snprintf(id, sizeof(id), "%s.%s", place->job, place->step);
	t = task_find_id(c, r, id, no_attempt);
	if (t != NULL && t->root.pid == 0 && place->task[0] != '\0') {
		t->root = p->id;
		wal_task(c, t);
	}
	if (t != NULL)
		return t;
	t = task_begin(c, r, p);
	if (t == NULL)
		return NULL;
	if (place->task[0] == '\0')
		t->root = (struct process_id){ 0, 0 };	/* it starts the step, and ends well even if the step fails */
	copy_name(t->task_id, id);
	copy_name(t->name, place->step);
	t->engine = r->engine;
	t->source = place->scheduler_source;
	t->confidence = place->scheduler_confidence;
	t->is_named = true;
	task_set_id_key(c, t);
	wal_task(c, t);
	return t;
}

/* Returns true if each program that parent forks is a task of its own. */
static bool
begins_task(const struct process *p, const struct process *parent)
{
	/* A run's own root is the driver and belongs to no task. */
	if (attribute_is_root(p->run, p))
		return false;
	return parent != NULL && parent->is_driver && parent->run == p->run && p->run != NULL;
}

/* Names a task after the program that it began with. */
static void
program_task_id(const struct correlator *c, const struct process *p, char out[ENGINE_NAME_SIZE])
{
	struct program_key root = { p->id.start_ns, (uint32_t)p->id.pid, 0 };
	char id[PROGRAM_ID_SIZE];

	program_id_format(c, &root, id);
	copy_name(out, id);
}

static struct task *
task_default(struct correlator *c, const struct process *p, const struct candidate *s)
{
	struct task *t = task_begin(c, p->run, p);

	if (t == NULL)
		return NULL;
	engine_default_task(c->rules, s, t->name);
	program_task_id(c, p, t->task_id);
	copy_name(t->sample, p->run->sample);
	t->engine = p->run->inner != NULL ? p->run->inner : p->run->engine;
	t->source = kept_name(c, by_descent);
	t->confidence = 0.5;
	wal_task(c, t);
	return t;
}

static bool
is_task_root(const struct task *t, const struct process *p)
{
	return t->root.pid == p->id.pid && t->root.start_ns == p->id.start_ns;
}

/* Finds or makes the task that the verdict names. */
static struct task *
task_of_verdict(struct correlator *c, struct process *p, struct task *around, const struct engine_verdict *v)
{
	struct opt_i32 attempt = v->attempt;
	struct task *t = NULL;

	if (around != NULL && around->is_named && strcmp(around->task_id, v->task_id) == 0)
		return around;		/* the shell around it was attributed to the same task */
	if (v->task_id[0] != '\0')
		t = task_find_id(c, p->run, v->task_id, attempt);
	if (t != NULL && (!t->root_ended || v->role == ENGINE_JOINS))
		return t;
	if (t != NULL)
		task_unset_id_key(c, t);	/* that attempt is over: this is the next one */
	/* A task that had only the name of its first program gets its own name now. */
	if (p->task != NULL && p->task->run == p->run && !p->task->is_named && is_task_root(p->task, p))
		t = p->task;
	else
		t = task_begin(c, p->run, p);
	if (t == NULL)
		return NULL;
	if (v->task_id[0] != '\0')
		copy_name(t->task_id, v->task_id);
	else
		program_task_id(c, p, t->task_id);	/* the engine shows no id */
	copy_name(t->name, v->task);
	copy_name(t->sample, v->sample);
	if (v->header[0] != '\0' && t->name[0] == '\0' && c->ops.header != NULL) {
		char sample[ENGINE_NAME_SIZE] = "";

		if (c->ops.header(v->engine, v->header, t->name, sample, c->arg) && t->sample[0] == '\0')
			copy_name(t->sample, sample);
	}
	if (t->sample[0] == '\0')
		copy_name(t->sample, p->run->sample);
	task_set_id_key(c, t);
	if (!attempt.known && v->counts_attempts && t->name[0] != '\0')
		attempt = (struct opt_i32){ fact_attempt(c, p->run, t->name, t->sample), true };
	t->attempt = attempt;
	t->engine = kept_name(c, v->engine);
	t->source = kept_name(c, v->source);
	t->confidence = v->confidence;
	t->is_named = true;
	if (t->work_dir == NULL)
		state_learn_string(&t->work_dir, v->work_dir);
	wal_task(c, t);
	return t;
}

static struct task *
of_run(struct task *t, const struct run *r)
{
	return t != NULL && t->run == r ? t : NULL;
}

/* Finds a process's task once its run is known. around: the task of its ancestors, of the same run, or NULL. */
static struct task *
find_task(struct correlator *c, struct process *p, const struct process *parent, struct task *around,
    const struct candidate *s, const struct engine_verdict *v)
{
	bool is_command = p->run->strength == STRENGTH_EXPLICIT && attribute_is_root(p->run, p);

	if (p->run->task != NULL) {
		p->is_driver = false;
		return task_of_run(c, p->run, p);
	}
	p->is_driver = p->is_driver || is_command;
	if ((v->role == ENGINE_TASK || v->role == ENGINE_JOINS) && !is_command) {
		p->is_driver = false;
		return task_of_verdict(c, p, around, v);
	}
	if (begins_task(p, parent) && !p->is_overhead) {
		if (p->task == NULL)
			return task_default(c, p, s);
		if (is_task_root(p->task, p) && !p->task->is_named && !p->task->has_started)
			engine_default_task(c->rules, s, p->task->name);	/* when it forked it had its
										 * parent's name */
		return p->task;
	}
	/*
	 * The task of a step may have begun with the program that starts the step: then p is the first of the step
	 * itself.
	 */
	if (around == NULL || around->root.pid == 0) {
		struct task *t = task_of_step(c, p->run, p);

		if (t != NULL)
			return t;
	}
	return around;
}

static const char *
engine_of(const struct run *r)
{
	return r == NULL ? NULL : r->inner != NULL ? r->inner : r->engine;
}

static void
attribute(struct correlator *c, struct process *p, struct process *parent, const struct candidate *s)
{
	struct task *around = p->task != NULL ? p->task : parent != NULL ? parent->task : NULL, *t;
	struct run *run = attribute_run_around(c, p, parent);
	struct engine_verdict v;

	engine_judge(c->rules, s, engine_of(run), &v);
	p->is_engine = v.role == ENGINE_DRIVER;
	run = attribute_run(c, p, run, of_run(around, run), s, &v);
	p->is_driver = v.role == ENGINE_DRIVER && v.has_tasks;
	around = of_run(around, run);
	/* Descendants of the engine's own programs are overhead too, until one is a task. */
	p->is_overhead = run != NULL && v.role != ENGINE_TASK && v.role != ENGINE_JOINS && v.role != ENGINE_DRIVER &&
	    (v.is_overhead || p->is_overhead || (parent != NULL && parent->is_overhead));
	if (of_run(p->task, run) == NULL)
		task_assign(c, p, NULL);
	run_assign(c, p, run);
	if (run == NULL)
		return;
	t = find_task(c, p, parent, around, s, &v);
	if (t != NULL && t->work_dir == NULL && s->cwd != NULL && is_task_root(t, p)) {
		state_learn_string(&t->work_dir, s->cwd);
		wal_task(c, t);
	}
	task_assign(c, p, t);
}

void
attribute_exec(struct correlator *c, struct process *p, struct process *parent, const struct text *before,
    struct candidate *s)
{
	struct process *above = before != NULL ? parent : parent != NULL ? attribute_parent(c, parent) : NULL;
	bool is_inside = p->is_inside || (parent != NULL && parent->is_inside), is_excluded;
	struct candidate up, higher;
	struct location *begun;

	location_set(c, p, parent, true);
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
	p->is_excluded = is_excluded && !p->is_announced;	/* its START was emitted */
	attribute(c, p, parent, s);
	wal_process(c, p, NEWS_ALL);
	if (p->task != NULL && p->location != NULL && !p->is_overhead)
		learn_limits(c, p->task, p->location);
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
	struct candidate s = { 0 };

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
	if (p->run == NULL || p->task != NULL)
		return;
	if (p->run->task != NULL) {
		task_assign(c, p, task_of_run(c, p->run, p));
	} else if (begins_task(p, parent) && !p->is_overhead) {
		if (parent->text != NULL) {
			s.tool = parent->text->tool;
			s.is_tool = true;
		}
		task_assign(c, p, task_default(c, p, &s));
	} else if (parent != NULL && parent->task != NULL && parent->task->run == p->run) {
		task_assign(c, p, parent->task);
	}
}

/*
 * Returns the process that p descends from, for its task: its parent; or, where the parent was never seen (it
 * forked and did not exec), an entry made for it as a child of p's nearest ancestor that did exec.
 */
struct process *
attribute_parent(struct correlator *c, const struct process *p)
{
	struct process *parent = process_of(c, &p->parent), *anchor;

	if (parent != NULL || p->parent.pid == 0)
		return parent;
	anchor = process_of(c, &p->anchor);
	if (anchor == NULL ||
	    (p->anchor.pid == p->parent.pid && p->anchor.start_ns == p->parent.start_ns))
		return anchor;
	parent = process_add(c, &p->parent, &p->anchor, &p->anchor);
	if (parent == NULL)
		return anchor;
	process_set_text(c, parent, program_text_ref(anchor->text));
	if (anchor->has_context)
		process_set_context(c, parent, &anchor->context);
	attribute_fork(c, parent, anchor);
	return parent;
}

/* Makes an id for a title without one: work of one process under one name is one task as long as it lasts. */
static void
title_task_id(const struct correlator *c, const struct process *p, struct engine_verdict *v)
{
	char id[ENGINE_NAME_SIZE], all[2 * ENGINE_NAME_SIZE];

	program_task_id(c, p, id);
	snprintf(all, sizeof(all), "%s/%s", id, v->task);
	copy_name(v->task_id, all);
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
	    (around->strength == STRENGTH_EXPLICIT && attribute_is_root(around, p))))
		return;
	run = attribute_run(c, p, around, of_run(p->task, around), s, &v);
	if (run == NULL || (v.role == ENGINE_NONE && !is_overhead))
		return;
	if (!is_overhead && v.task_id[0] == '\0')
		title_task_id(c, p, &v);

	has_moved = run != p->run;
	if (has_moved) {
		if (p->is_announced)
			account_withdraw(c, p);
		task_assign(c, p, NULL);
		run_assign(c, p, run);
	}
	if (!is_overhead && p->task != NULL && strcmp(p->task->task_id, v.task_id) == 0)
		t = p->task;
	else if (!is_overhead)
		t = task_of_verdict(c, p, NULL, &v);
	if (t != NULL && t->work_dir == NULL && s->cwd != NULL && is_task_root(t, p)) {
		state_learn_string(&t->work_dir, s->cwd);
		wal_task(c, t);
	}
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
		task_assign(c, p, task_of_run(c, r, p));
	if (p->is_announced)
		account_enter(c, p, now_ns);
	wal_process(c, p, NEWS_ALL);
}
