/*
 * SPDX-License-Identifier: Apache-2.0
 * attribute_task: which task a program belongs to, once its run is known; see attribute.c.
 */
#include "correlate/attribute_task.h"

#include <stdio.h>
#include <string.h>

#include "correlate/facts.h"
#include "correlate/location.h"
#include "correlate/process.h"
#include "correlate/program_text.h"
#include "correlate/runs.h"
#include "correlate/state.h"
#include "correlate/tasks.h"
#include "correlate/wal.h"
#include "correlate/work.h"
#include "identify/jobs.h"

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
take_location(struct correlator *c, struct task *t, const struct process *p)
{
	if (p->location != NULL) {
		t->cpus = p->location->cpus;
		t->memory_bytes = p->location->memory_bytes;
		t->memory_high = p->location->memory_high;
		if (p->location->placement.is_batch) {
			state_learn_string(c, &t->scheduler, p->location->placement.scheduler);
			state_learn_string(c, &t->job_id, p->location->placement.job);
		}
	}
	if (!t->cpus.known)
		t->cpus = t->run->cpus;
	if (!t->memory_bytes.known)
		t->memory_bytes = t->run->memory_bytes;
	if (!t->memory_high.known)
		t->memory_high = t->run->memory_high;
}

void
attribute_task_limits(struct correlator *c, struct task *t, const struct location *l)
{
	const struct run *r = t->run;
	bool has_own_cpus = t->cpus.known && !(r->cpus.known && r->cpus.value <= t->cpus.value);
	bool has_own_memory = t->memory_bytes.known &&
	    !(r->memory_bytes.known && r->memory_bytes.value <= t->memory_bytes.value);
	bool has_own_high = t->memory_high.known &&
	    !(r->memory_high.known && r->memory_high.value <= t->memory_high.value);
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
	if (!has_own_high && l->memory_high.known &&
	    !(t->memory_high.known && t->memory_high.value <= l->memory_high.value)) {
		t->memory_high = l->memory_high;
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
	take_location(c, t, p);
	return t;
}

struct task *
attribute_task_by_hand(struct correlator *c, struct run *r, const struct process *p)
{
	char name[ENGINE_NAME_SIZE];
	struct task *t;

	copy_name(name, r->task);
	t = task_find_id(c, r, name);
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
	const struct placement *placement = p->location != NULL ? &p->location->placement : NULL;
	char id[ENGINE_NAME_SIZE];
	struct task *t;

	if (r->strength != STRENGTH_JOB || placement == NULL || placement->step[0] == '\0' ||
	    r->job_id == NULL || strcmp(placement->job, r->job_id) != 0)
		return NULL;
	snprintf(id, sizeof(id), "%s.%s", placement->job, placement->step);
	t = task_find_id(c, r, id);
	if (t != NULL && t->root.pid == 0 && placement->task[0] != '\0') {
		t->root = p->id;
		wal_task(c, t);
	}
	if (t != NULL)
		return t;
	t = task_begin(c, r, p);
	if (t == NULL)
		return NULL;
	if (placement->task[0] == '\0')
		t->root = (struct process_id){ 0, 0 };	/* it starts the step, and ends well even if the step fails */
	copy_name(t->task_id, id);
	copy_name(t->name, placement->step);
	t->engine = r->engine;
	t->source = placement->scheduler_source;
	t->confidence = placement->scheduler_confidence;
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
	return parent != NULL && parent->is_driver && parent->run == p->run && !process_is(p, &p->run->root);
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

/* Finds or makes the task that the verdict names. */
static struct task *
task_of_verdict(struct correlator *c, struct process *p, struct task *around, const struct engine_verdict *v)
{
	struct opt_i32 attempt = v->attempt;
	struct task *t = NULL;
	bool is_other;

	if (around != NULL && around->is_named && strcmp(around->task_id, v->task_id) == 0)
		return around;		/* the shell around it was attributed to the same task */
	if (v->task_id[0] != '\0')
		t = task_find_id(c, p->run, v->task_id);
	is_other = t != NULL && attempt.known && t->attempt.known && attempt.value != t->attempt.value;
	if (t != NULL && !is_other && (!t->root_ended || v->role == ENGINE_JOINS))
		return t;
	if (t != NULL)
		task_unset_id_key(c, t);	/* that attempt is over: this is the next one */
	/* A task that had only the name of its first program gets its own name now. */
	if (p->task != NULL && p->task->run == p->run && !p->task->is_named && process_is(p, &p->task->root))
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
	if (v->header[0] != '\0' && t->name[0] == '\0' && c->ops.header != NULL && p->has_context) {
		const struct header_place at = { v->engine, v->header, p->context.uid };
		char sample[ENGINE_NAME_SIZE] = "";

		if (c->ops.header(&at, t->name, sample, c->arg) && t->sample[0] == '\0')
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
		state_learn_string(c, &t->work_dir, v->work_dir);
	wal_task(c, t);
	return t;
}

/* A task works where its first program does. */
static struct task *
with_work_dir(struct correlator *c, struct task *t, const struct process *p, const struct candidate *s)
{
	if (t != NULL && t->work_dir == NULL && s->cwd != NULL && process_is(p, &t->root)) {
		state_learn_string(c, &t->work_dir, s->cwd);
		wal_task(c, t);
	}
	return t;
}

static struct task *
find_task(struct correlator *c, struct process *p, const struct process *parent, struct task *around,
    const struct candidate *s, const struct engine_verdict *v)
{
	bool is_command = p->run->strength == STRENGTH_EXPLICIT && process_is(p, &p->run->root);

	if (p->run->task != NULL)
		return attribute_task_by_hand(c, p->run, p);
	if ((v->role == ENGINE_TASK || v->role == ENGINE_JOINS) && !is_command)
		return task_of_verdict(c, p, around, v);
	if (begins_task(p, parent) && !p->is_overhead) {
		if (p->task == NULL)
			return task_default(c, p, s);
		if (process_is(p, &p->task->root) && !p->task->is_named && !p->task->has_started) {
			/* When it forked it had its parent's name. */
			engine_default_task(c->rules, s, p->task->name);
			wal_task(c, p->task);
		}
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

struct task *
attribute_task(struct correlator *c, struct process *p, const struct process *parent, struct task *around,
    const struct candidate *s, const struct engine_verdict *v)
{
	return with_work_dir(c, find_task(c, p, parent, around, s, v), p, s);
}

struct task *
attribute_task_fork(struct correlator *c, const struct process *p, const struct process *parent)
{
	struct candidate s = { 0 };

	if (p->run->task != NULL)
		return attribute_task_by_hand(c, p->run, p);
	if (begins_task(p, parent) && !p->is_overhead) {
		if (parent->text != NULL) {
			s.tool = parent->text->tool;
			s.is_tool = true;
		}
		return task_default(c, p, &s);
	}
	return parent != NULL && parent->task != NULL && parent->task->run == p->run ? parent->task : NULL;
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

struct task *
attribute_task_title(struct correlator *c, struct process *p, const struct candidate *s, struct engine_verdict *v)
{
	struct task *t = p->task;

	if (v->task_id[0] == '\0')
		title_task_id(c, p, v);
	if (t == NULL || strcmp(t->task_id, v->task_id) != 0)
		t = task_of_verdict(c, p, NULL, v);
	return with_work_dir(c, t, p, s);
}

void
attribute_task_of_job(struct correlator *c, struct task *t, const struct job_found *f)
{
	copy_name(t->name, f->task);
	copy_name(t->sample, f->sample[0] != '\0' ? f->sample : t->run->sample);
	t->source = kept_name(c, f->source);
	t->confidence = f->confidence;
	wal_task(c, t);
}

void
attribute_task_failed(struct correlator *c, struct task *t, uint64_t end_ns)
{
	struct task *later;
	int32_t next;

	fact_add_failure(c, t->run, t->name, t->sample);
	next = fact_attempt(c, t->run, t->name, t->sample);
	for (later = c->tasks; later != NULL; later = later->hh.next) {
		if (later == t || later->run != t->run || !later->attempt.known || later->work.start_ns < end_ns ||
		    strcmp(later->name, t->name) != 0 || strcmp(later->sample, t->sample) != 0)
			continue;
		/* One that was counted lacks this failure; one that the engine stated has it. */
		if (later->attempt.value >= next)
			continue;
		later->attempt.value++;
		wal_task(c, later);
	}
}
