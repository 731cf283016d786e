/*
 * SPDX-License-Identifier: Apache-2.0
 * Whose work is a program? By what it says itself (the rules of engines), by where it runs (a
 * scheduler's job), by whom it descends from; in this order, but that a run which counts as much as
 * the one around it does not begin inside of that.
 *
 *   driver     begins a run; what it forks are tasks, if its rule says so
 *   task       of the run that it descends from, or that has claimed it, or whose folder it works in
 *   none       what its parent is; in a job without an engine the job's step is its task
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uuid/uuid.h>

#include "base/text.h"
#include "correlate/match.h"
#include "correlate/state.h"

#define KEY_SIZE (2 * ENGINE_PATH_SIZE)

static const char by_descent[] = "child of the driver";

static void
copy_name(char out[ENGINE_NAME_SIZE], const char *from)
{
	size_t len = from != NULL ? strlen(from) : 0;

	if (len >= ENGINE_NAME_SIZE) {
		len = ENGINE_NAME_SIZE - 1;
		while (len > 0 && ((unsigned char)from[len] & 0xc0) == 0x80)
			len--;		/* not in the middle of a character */
	}
	if (len > 0)
		memcpy(out, from, len);
	out[len] = '\0';
}

/* Where there is none yet. */
static void
learn(char **to, const char *text)
{
	if (*to == NULL && text != NULL && text[0] != '\0')
		*to = strdup(text);
}

static bool
is_root(const struct run *r, const struct process *p)
{
	return r != NULL && r->root.pid == p->id.pid && r->root.start_ns == p->id.start_ns;
}

static bool
is_engine(const struct run *r, const char *engine)
{
	return r->engine != NULL && strcmp(r->engine, engine) == 0;
}

/*
 * A run's id, a UUID of version 5: the same for an agent that is started again, and on all hosts
 * where what is put into it is the same.
 */
static void
run_id(char out[UUID_STR_LEN], const char *engine, const char *key)
{
	/* The name space of sluice's runs: random, and never to be changed. */
	static const uuid_t space = { 0x5c, 0x1f, 0x7a, 0x0e, 0x93, 0x4b, 0x4d, 0x21, 0x8a, 0x66, 0xf2, 0x09, 0xd7,
		0x3c, 0xb5, 0x48 };
	char name[KEY_SIZE + ENGINE_NAME_SIZE];
	int n = snprintf(name, sizeof(name), "%s\n%s", engine, key);
	uuid_t id;

	uuid_generate_sha1(id, space, name, n < (int)sizeof(name) ? (size_t)n : sizeof(name) - 1);
	uuid_unparse_lower(id, out);
}

/* A new one is filled with what its kind knows; *is_new tells. */
static struct run *
run_by_key(struct correlator *c, const char *engine, const char *key, bool *is_new)
{
	char id[UUID_STR_LEN];
	struct run *r;

	run_id(id, engine, key);
	r = run_find(c, id);
	*is_new = r == NULL;
	if (r == NULL)
		r = run_get(c, id);
	if (r != NULL && *is_new)
		r->engine = kept_name(c, engine);
	return r;
}

static void
take_place(struct run *r, const struct process *p)
{
	const struct location *l = p->location;

	if (p->has_context && !r->uid.known)
		r->uid = (struct opt_u64){ p->context.uid, true };
	if (l == NULL)
		return;
	if (l->place.is_batch) {
		learn(&r->scheduler, l->place.scheduler);
		learn(&r->job_id, l->place.job);
	}
	r->cpus = l->cpus;
	r->memory_bytes = l->memory_bytes;
}

/* The job that p runs in; NULL: in none. */
static struct run *
run_of_job(struct correlator *c, struct process *p)
{
	const struct place *place = p->location != NULL ? &p->location->place : NULL;
	char key[KEY_SIZE];
	bool is_new;
	struct run *r;

	if (place == NULL || place->scheduler == NULL || !place->is_batch || place->job[0] == '\0')
		return NULL;
	snprintf(key, sizeof(key), "%s\n%s", place->cluster[0] != '\0' || c->options.cluster == NULL ? place->cluster :
	    c->options.cluster, place->job);
	r = run_by_key(c, place->scheduler, key, &is_new);
	if (r == NULL)
		return NULL;
	if (is_new) {
		r->strength = STRENGTH_JOB;
		r->source = place->scheduler_source;
		r->confidence = place->scheduler_confidence;
		take_place(r, p);
	}
	/* The job's script: as it ends, so does the job. What started it is in the job, but in no task of it. */
	if (r->root.pid == 0 && r->strength == STRENGTH_JOB && (place->step[0] == '\0' ||
	    (strcmp(place->step, "batch") == 0 && place->task[0] != '\0')))
		r->root = p->id;
	return r;
}

/* A job that began before its script was met. */
static bool
is_same_job(const struct run *r, const struct run *job)
{
	return r == job || (r->job_id != NULL && job->job_id != NULL && strcmp(r->job_id, job->job_id) == 0);
}

static struct run *
run_of_driver(struct correlator *c, struct process *p, struct run *around, const struct subject *s,
    const struct engine_verdict *v)
{
	char key[KEY_SIZE], command[4096];
	bool is_new;
	struct run *r;

	if (v->run_key[0] != '\0')
		snprintf(key, sizeof(key), "key\n%s", v->run_key);
	else
		snprintf(key, sizeof(key), "%s\n%s\n%u\n%llu", c->options.host_id != NULL ? c->options.host_id : "",
		    c->options.boot_id, p->self.pid, (unsigned long long)p->id.start_ns);
	r = run_by_key(c, v->engine, key, &is_new);
	if (r != NULL && is_root(r, p))
		r->root_ended = false;	/* found again, after nobody watched */
	if (r == NULL || !is_new)
		return r;
	r->strength = v->strength;
	r->source = kept_name(c, v->source);
	r->confidence = v->confidence;
	r->root = p->id;
	learn(&r->pipeline, v->pipeline);
	learn(&r->name, v->run_name);
	learn(&r->work_dir, s->cwd);
	learn(&r->root_dir, v->root);
	if (around != NULL && around->strength == STRENGTH_JOB)
		learn(&r->parent_id, around->id);
	take_place(r, p);
	if (p->text != NULL && p->text->argv != NULL) {
		text_join(p->text->argv, p->text->argc, command, sizeof(command));
		learn(&r->command, command);
	}
	return r;
}

/* The run of a task that says what it is; NULL: nothing ties it to any. */
static struct run *
run_of_task(struct correlator *c, struct process *p, struct run *around, const struct engine_verdict *v)
{
	struct run *r;
	char key[KEY_SIZE];
	bool is_new;

	if (around != NULL && (around->strength == STRENGTH_EXPLICIT || is_engine(around, v->engine)))
		return around;
	r = fact_find_claim(c, v->engine, v->root, v->task_id);
	if (r == NULL)
		r = fact_find_root(c, v->engine, v->run_key);
	if (r == NULL)
		r = fact_find_root(c, v->engine, v->root);
	if (r != NULL || v->role == ENGINE_JOINS)
		return r;
	if (around != NULL)
		return around;
	if (v->run_key[0] == '\0' && v->root[0] == '\0')
		return NULL;
	/* Its driver is on another host, or was never seen: the folder that all its tasks work in. */
	snprintf(key, sizeof(key), "%s\n%s", v->run_key[0] != '\0' ? "key" : "root",
	    v->run_key[0] != '\0' ? v->run_key : v->root);
	r = run_by_key(c, v->engine, key, &is_new);
	if (r != NULL && is_new) {
		r->strength = v->strength;
		r->source = kept_name(c, v->source);
		r->confidence = v->confidence / 2;
		learn(&r->pipeline, v->pipeline);
		learn(&r->name, v->run_name);
		learn(&r->root_dir, v->root);
		take_place(r, p);
	}
	return r;
}

/* Where its first program runs. */
static void
take_location(struct task *t, const struct process *p)
{
	if (p->location != NULL) {
		t->cpus = p->location->cpus;
		t->memory_bytes = p->location->memory_bytes;
		if (p->location->place.is_batch) {
			learn(&t->scheduler, p->location->place.scheduler);
			learn(&t->job_id, p->location->place.job);
		}
	}
	if (!t->cpus.known)
		t->cpus = t->run->cpus;
	if (!t->memory_bytes.known)
		t->memory_bytes = t->run->memory_bytes;
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

/* The whole run is one task, whatever it starts. */
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
	journal_task(c, t);
	return t;
}

/* In a job that no engine drives its step is the task: 4711.batch. */
static struct task *
task_of_step(struct correlator *c, struct run *r, const struct process *p)
{
	static const struct opt_i32 no_attempt;
	const struct place *place = p->location != NULL ? &p->location->place : NULL;
	char id[ENGINE_NAME_SIZE];
	struct task *t;

	if (r->strength != STRENGTH_JOB || place == NULL || place->step[0] == '\0' || strcmp(place->job, r->job_id) != 0)
		return NULL;
	snprintf(id, sizeof(id), "%s.%s", place->job, place->step);
	t = task_find_id(c, r, id, no_attempt);
	if (t != NULL && t->root.pid == 0 && place->task[0] != '\0') {
		t->root = p->id;
		journal_task(c, t);
	}
	if (t != NULL)
		return t;
	t = task_begin(c, r, p);
	if (t == NULL)
		return NULL;
	if (place->task[0] == '\0')
		t->root = (struct process_id){ 0, 0 };	/* what starts the step, and ends well whatever becomes of it */
	copy_name(t->task_id, id);
	copy_name(t->name, place->step);
	t->engine = r->engine;
	t->source = place->scheduler_source;
	t->confidence = place->scheduler_confidence;
	t->is_named = true;
	task_set_id_key(c, t);
	journal_task(c, t);
	return t;
}

/* True when what parent forks are tasks of their own. */
static bool
begins_task(const struct process *p, const struct process *parent)
{
	/* A run's own root belongs to no task: it is the driver. */
	if (is_root(p->run, p))
		return false;
	return parent != NULL && parent->is_driver && parent->run == p->run && p->run != NULL;
}

/* A task's id after the program that it began with. */
static void
program_task_id(const struct correlator *c, const struct process *p, char out[ENGINE_NAME_SIZE])
{
	struct program_key root = { p->id.start_ns, (uint32_t)p->id.pid, 0 };
	char id[PROGRAM_ID_SIZE];

	program_id_format(c, &root, id);
	copy_name(out, id);
}

static struct task *
task_default(struct correlator *c, const struct process *p, const struct subject *s)
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
	journal_task(c, t);
	return t;
}

static bool
is_task_root(const struct task *t, const struct process *p)
{
	return t->root.pid == p->id.pid && t->root.start_ns == p->id.start_ns;
}

/* The task that the verdict names: known already, or new. */
static struct task *
task_of_verdict(struct correlator *c, struct process *p, struct task *around, const struct engine_verdict *v)
{
	struct opt_i32 attempt = v->attempt;
	struct task *t = NULL;

	if (around != NULL && around->is_named && strcmp(around->task_id, v->task_id) == 0)
		return around;		/* the shell around it said so */
	if (v->task_id[0] != '\0')
		t = task_find_id(c, p->run, v->task_id, attempt);
	if (t != NULL && (!t->root_ended || v->role == ENGINE_JOINS))
		return t;
	if (t != NULL)
		task_unset_id_key(c, t);	/* it is over: this one is tried again */
	/* A task that was named after its first program now says its name. */
	if (p->task != NULL && p->task->run == p->run && !p->task->is_named && is_task_root(p->task, p))
		t = p->task;
	else
		t = task_begin(c, p->run, p);
	if (t == NULL)
		return NULL;
	if (v->task_id[0] != '\0')
		copy_name(t->task_id, v->task_id);
	else
		program_task_id(c, p, t->task_id);	/* the engine has none that shows */
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
		learn(&t->work_dir, v->work_dir);
	journal_task(c, t);
	return t;
}

/* What ties a task to its run ties others to it too. */
static void
learn_ties(struct correlator *c, struct run *r, const struct engine_verdict *v)
{
	fact_add_root(c, r, v->engine, v->root);
	fact_add_root(c, r, v->engine, v->run_key);
}

/* A driver begins a run, or says more of the one that it is in. */
static struct run *
drive(struct correlator *c, struct process *p, struct run *run, const struct task *around, const struct subject *s,
    const struct engine_verdict *v)
{
	/* What a named task starts is that task's work, whatever it is. */
	if (run != NULL && run->strength >= v->strength && around != NULL && around->is_named)
		return run;
	if (run == NULL || run->strength < v->strength) {
		struct run *own = run_of_driver(c, p, run, s, v);

		if (own == NULL)
			return run;
		run = own;
	} else {
		if (run->inner == NULL && run->strength == STRENGTH_EXPLICIT)
			run->inner = kept_name(c, v->engine);
		learn(&run->pipeline, v->pipeline);
		learn(&run->name, v->run_name);
	}
	if (run->strength != STRENGTH_EXPLICIT)
		learn(&run->sample, v->sample);		/* of all its tasks */
	journal_run(c, run);
	learn_ties(c, run, v);
	p->is_driver = v->has_tasks;
	return run;
}

/* What p is part of before it says anything itself. */
static struct run *
run_around(struct correlator *c, struct process *p, const struct process *parent)
{
	struct run *run = p->run != NULL ? p->run : parent != NULL ? parent->run : NULL, *job;

	if (c->whole != NULL)
		return c->whole;
	if (run != NULL && run->strength > STRENGTH_JOB)
		return run;
	job = run_of_job(c, p);
	return job != NULL && (run == NULL || run->strength < STRENGTH_JOB || !is_same_job(run, job)) ? job : run;
}

static struct task *
of_run(struct task *t, const struct run *r)
{
	return t != NULL && t->run == r ? t : NULL;
}

/* The run of a program that has exec'd. A verdict without a run to be of becomes none. */
static struct run *
find_run(struct correlator *c, struct process *p, struct run *run, const struct task *around,
    const struct subject *s, struct engine_verdict *v)
{
	struct run *found;

	switch (v->role) {
	case ENGINE_DRIVER:
		return drive(c, p, run, around, s, v);
	case ENGINE_TASK:
	case ENGINE_JOINS:
		/* An engine inside of another's task: all that is that task's work. */
		if (around != NULL && around->is_named && around->engine != NULL && strcmp(around->engine, v->engine) != 0 &&
		    run->strength != STRENGTH_JOB)
			found = NULL;
		else
			found = run_of_task(c, p, run, v);
		if (found == NULL) {
			v->role = ENGINE_NONE;
			return run;
		}
		if (v->role == ENGINE_TASK)
			learn_ties(c, found, v);
		return found;
	case ENGINE_NAMES:
		if (run != NULL) {
			learn_ties(c, run, v);
			fact_add_claim(c, run, v->engine, v->root, v->task_id);
		}
		return run;
	case ENGINE_NONE:
		break;
	}
	return run;
}

/* Its task, once its run is known. around: what it descends from is in, of the same run. */
static struct task *
find_task(struct correlator *c, struct process *p, const struct process *parent, struct task *around,
    const struct subject *s, const struct engine_verdict *v)
{
	bool is_command = is_root(c->whole, p) || (p->run->strength == STRENGTH_EXPLICIT && is_root(p->run, p));

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
			engine_default_task(c->rules, s, p->task->name);	/* its fork was named after its parent */
		return p->task;
	}
	/* A step's task may have begun with what starts the step: then this is its first own program. */
	if (around == NULL || around->root.pid == 0) {
		struct task *t = task_of_step(c, p->run, p);

		if (t != NULL)
			return t;
	}
	return around;
}

static void
attribute(struct correlator *c, struct process *p, struct process *parent, const struct subject *s)
{
	struct task *around = p->task != NULL ? p->task : parent != NULL ? parent->task : NULL, *t;
	struct run *run = run_around(c, p, parent);
	struct engine_verdict v;

	engine_judge(c->rules, s, run == NULL ? NULL : run->inner != NULL ? run->inner : run->engine, &v);
	p->is_driver = false;
	run = find_run(c, p, run, of_run(around, run), s, &v);
	around = of_run(around, run);
	/* What the engine's own doing starts is that too, until it is a task. */
	p->is_overhead = run != NULL && v.role != ENGINE_TASK && v.role != ENGINE_JOINS && v.role != ENGINE_DRIVER &&
	    (v.is_overhead || p->is_overhead || (parent != NULL && parent->is_overhead));
	if (of_run(p->task, run) == NULL)
		task_assign(c, p, NULL);
	run_assign(c, p, run);
	if (run == NULL)
		return;
	t = find_task(c, p, parent, around, s, &v);
	if (t != NULL && t->work_dir == NULL && s->cwd != NULL && is_task_root(t, p)) {
		learn(&t->work_dir, s->cwd);
		journal_task(c, t);
	}
	task_assign(c, p, t);
}

void
attribute_exec(struct correlator *c, struct process *p, struct process *parent, const struct text *before,
    struct subject *s)
{
	struct process *above = before != NULL ? parent : parent != NULL ? process_parent(c, parent) : NULL;
	bool is_inside = p->is_inside || (parent != NULL && parent->is_inside);
	struct subject up, higher;
	struct location *begun;

	location_set(c, p, parent, true);
	program_subject_context(c, p, s);
	if (before != NULL || parent != NULL) {
		program_subject_of(c, before != NULL ? p : parent, before != NULL ? before : parent->text, &up);
		s->parent = &up;
	}
	if (s->parent != NULL && above != NULL) {
		program_subject(c, above, &higher);
		up.parent = &higher;
	}
	begun = location_ref(p->location);	/* where up has its image from */
	p->location = location_refine(c, p->location, s);
	s->image = location_image(p->location);
	p->is_inside = is_inside;
	p->is_excluded = c->whole == NULL && follow_excludes(&c->rules->follow, s, is_inside, NULL, &p->is_inside);
	attribute(c, p, parent, s);
	s->parent = NULL;
	s->image = NULL;
	location_unref(c, begun);
}

void
attribute_fork(struct correlator *c, struct process *p, struct process *parent)
{
	struct subject s = { 0 };

	location_set(c, p, parent, false);
	if (p->run == NULL)
		run_assign(c, p, run_around(c, p, parent));
	if (parent != NULL) {
		p->is_inside = parent->is_inside;
		p->is_excluded = parent->is_excluded;
		p->is_overhead = parent->is_overhead;
	} else {
		p->is_excluded = c->whole == NULL && c->rules->follow.n_include > 0;
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

void
attribute_by_hand(struct correlator *c, struct process *p)
{
	if (p->run->task != NULL)
		task_assign(c, p, task_of_run(c, p->run, p));
}
