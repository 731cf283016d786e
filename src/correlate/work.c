/*
 * SPDX-License-Identifier: Apache-2.0
 * Sums: of a task, of a row of the table, of the run; and which task a process belongs to.
 */
#include <stdio.h>
#include <stdlib.h>
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

struct task *
task_find(struct correlator *c, const struct process_id *root)
{
	struct task *t;

	HASH_FIND(hh, c->tasks, root, sizeof(*root), t);
	return t;
}

struct task *
task_get(struct correlator *c, const struct process_id *root)
{
	struct task *t = task_find(c, root);

	if (t != NULL)
		return t;
	if (HASH_COUNT(c->tasks) >= TASKS_MAX)
		return NULL;
	t = calloc(1, sizeof(*t));
	if (t == NULL)
		return NULL;
	t->root = *root;
	HASH_ADD(hh, c->tasks, root, sizeof(t->root), t);
	return t;
}

static void
name_task(char *out, const char *from)
{
	size_t len = from != NULL ? strlen(from) : 0;

	if (len >= RULE_NAME_SIZE) {
		len = RULE_NAME_SIZE - 1;
		while (len > 0 && ((unsigned char)from[len] & 0xc0) == 0x80)
			len--;		/* not in the middle of a character */
	}
	if (len > 0)
		memcpy(out, from, len);
	out[len] = '\0';
}

/* --task: the whole run is one task, whatever it starts. */
static struct task *
task_of_run(struct correlator *c)
{
	static const struct process_id whole = { 0, 0 };
	struct task *t = task_get(c, &whole);

	if (t != NULL && t->source == NULL) {
		name_task(t->name, c->options.task);
		name_task(t->task_id, c->options.task);
		name_task(t->sample, c->options.sample);
		t->engine = "sluice";
		t->source = "--task";
		t->confidence = 1;
		t->is_named = true;
		journal_task(c, t);
	}
	return t;
}

/* True when what parent forks are tasks of their own. */
static bool
begins_task(const struct correlator *c, const struct process *p, const struct process *parent)
{
	/* The run's own root belongs to no task: it is the driver. */
	if (p->id.pid == c->root.pid && p->id.start_ns == c->root.start_ns)
		return false;
	return parent != NULL && parent->is_driver;
}

static void
task_default(struct correlator *c, struct task *t, const struct process *p, const struct rule_input *in)
{
	struct program_key root = { p->id.start_ns, (uint32_t)p->id.pid, 0 };

	rule_default_task(in, t->name, sizeof(t->name));
	program_id_format(c, &root, t->task_id);
	name_task(t->sample, c->options.sample);
	t->engine = "sluice";
	t->source = "child of the driver";
	t->confidence = 0.5;
	journal_task(c, t);
}

struct task *
task_of_exec(struct correlator *c, struct process *p, const struct process *parent)
{
	const struct text *x = p->text;
	struct rule_verdict v;
	struct rule_input in = { 0 };
	struct task *t = p->task, *around = t == NULL && parent != NULL ? parent->task : t;
	bool is_root = p->id.pid == c->root.pid && p->id.start_ns == c->root.start_ns;

	if (!state_has_run(c))
		return NULL;
	if (x != NULL)
		in = (struct rule_input){ x->tool, x->is_tool, x->argv, x->argv != NULL ? x->argc : 0, x->cwd };
	rule_judge(&in, &v);
	p->is_driver = is_root || v.is_driver;
	if (c->options.task != NULL) {
		p->is_driver = false;
		return task_of_run(c);
	}
	if (v.is_task && !is_root) {
		bool is_same = around != NULL && around->is_named &&
		    strcmp(around->task_id, v.task_id) == 0;	/* the shell around it said so */

		p->is_driver = false;
		t = is_same ? around : task_get(c, &p->id);
		if (t != NULL && !t->is_named) {
			name_task(t->task_id, v.task_id);
			name_task(t->name, v.task);
			name_task(t->sample, v.sample[0] != '\0' ? v.sample : c->options.sample);
			t->engine = v.engine;
			t->source = v.source;
			t->confidence = v.confidence;
			t->is_named = true;
			journal_task(c, t);
		}
	} else if (begins_task(c, p, parent) && (t == NULL || !t->has_started)) {
		t = task_get(c, &p->id);
		if (t != NULL && !t->is_named)
			task_default(c, t, p, &in);
	} else {
		t = around;
	}
	if (t != NULL && t->work_dir == NULL && x != NULL && x->cwd != NULL) {
		t->work_dir = strdup(x->cwd);
		journal_task(c, t);
	}
	return t;
}

struct task *
task_of_fork(struct correlator *c, struct process *p, const struct process *parent)
{
	struct task *t;
	struct rule_input in = { 0 };

	if (!state_has_run(c))
		return NULL;
	if (c->options.task != NULL)
		return task_of_run(c);
	if (!begins_task(c, p, parent))
		return parent != NULL ? parent->task : NULL;
	t = task_get(c, &p->id);
	if (t != NULL && t->source == NULL) {
		if (parent->text != NULL) {
			in.tool = parent->text->tool;
			in.is_tool = true;
		}
		task_default(c, t, p, &in);
	}
	return t;
}

void
task_assign(struct correlator *c, struct process *p, struct task *t)
{
	struct task *old = p->task;

	if (t == old)
		return;
	if (t != NULL)
		t->refs++;
	p->task = t;
	if (old != NULL) {
		old->refs--;
		task_reap(c, old);
	}
}

void
task_reap(struct correlator *c, struct task *t)
{
	if (t->refs > 0 || !(t->has_ended || !t->has_started))
		return;
	journal_forget_task(c, t);
	HASH_DEL(c->tasks, t);
	free(t->work_dir);
	free(t);
}

struct usage
correlator_run_usage(const struct correlator *c)
{
	struct usage u = c->run.done;
	const struct process *p;

	if (!state_has_run(c))		/* nothing is a run's: that much is known */
		return (struct usage){ .known = (UINT32_C(1) << USAGE_FIELDS) - 1 };
	for (p = c->processes; p != NULL; p = p->hh.next) {
		if (p->is_announced)
			usage_add(&u, &p->latest);
	}
	return u;
}

/* All of them in one walk over the processes: there may be thousands of either. */
void
tasks_sum_live(struct correlator *c)
{
	struct process *p;
	struct task *t;

	for (t = c->tasks; t != NULL; t = t->hh.next)
		t->live = (struct usage){ 0 };
	for (p = c->processes; p != NULL; p = p->hh.next) {
		if (p->is_announced && p->task != NULL)
			usage_add(&p->task->live, &p->latest);
	}
}

static void
work_record_fill(const struct correlator *c, const struct work *w, uint64_t now_ns,
    const struct usage *usage, struct work_record *r)
{
	struct bound_limits limits = { c->options.memory_limit_bytes, c->options.host_memory_bytes };
	uint64_t until = r->phase == PHASE_END ? w->end_ns : now_ns;

	r->head.run_id = c->options.run_id;
	r->head.pipeline = c->options.pipeline;
	r->start_time_us = state_wall_us(c, w->start_ns);
	r->wall_ns = until > w->start_ns ? until - w->start_ns : 0;
	if (r->phase == PHASE_END) {
		r->end_time_us = (struct opt_u64){ (uint64_t)state_wall_us(c, until), true };
		r->head.time_us = state_wall_us(c, until);
	} else {
		r->head.time_us = state_wall_us(c, r->phase == PHASE_START ? w->start_ns : now_ns);
	}
	r->requested_cpus = c->options.cpu_limit;
	r->requested_memory_bytes = c->options.memory_limit_bytes;
	r->usage = usage;
	r->parallelism = r->wall_ns > 0 ? (double)usage_cpu_ns(usage) / (double)r->wall_ns : 0;
	r->programs = w->programs;
	r->live_programs = w->live;
	r->failed_programs = w->failed;
	r->bound = bound_decide(usage, r->wall_ns, &limits, &r->shares);
}

static void
set_status(struct work_record *r, int status)
{
	if ((status & 0x7f) != 0)
		r->exit_signal = (struct opt_i32){ status & 0x7f, true };
	else
		r->exit_code = (struct opt_i32){ status >> 8 & 0xff, true };
}

static const char *
or_null(const char *s)
{
	return s != NULL && s[0] != '\0' ? s : NULL;
}

void
task_emit(struct correlator *c, struct task *t, enum record_phase phase, uint64_t now_ns)
{
	struct work_record r = { .phase = phase };
	struct usage usage = t->work.done;

	if (phase != PHASE_START && t->work.live > 0)
		usage_add(&usage, &t->live);
	work_record_fill(c, &t->work, now_ns, &usage, &r);
	r.head.task_id = or_null(t->task_id);
	r.head.task = or_null(t->name);
	r.head.sample = or_null(t->sample);
	r.engine = t->engine;
	r.source = t->source;
	r.confidence = (struct opt_double){ t->confidence, true };
	r.work_dir = t->work_dir;
	if (phase == PHASE_END && t->root_ended)
		set_status(&r, t->status);
	c->ops.task(&r, c->arg);
}

void
run_emit(struct correlator *c, enum record_phase phase, uint64_t now_ns, int status)
{
	struct work_record r = { .phase = phase };
	struct usage usage = correlator_run_usage(c);
	struct work w = c->run;

	/* A run lasts as long as we watched it, not as long as something ran. */
	w.start_ns = c->run_start_ns;
	w.end_ns = now_ns;
	work_record_fill(c, &w, now_ns, &usage, &r);
	r.engine = "sluice";
	r.source = "sluice run";
	r.confidence = (struct opt_double){ 1, true };
	r.command = c->options.command;
	r.work_dir = c->options.work_dir;
	r.lost_events = c->lost_events;
	if (phase == PHASE_END)
		set_status(&r, status);
	c->ops.run(&r, c->arg);
}

struct row *
row_of(struct correlator *c, const struct process *p)
{
	const char *task = p->task != NULL ? or_null(p->task->name) : NULL;
	const char *sample = p->task != NULL ? or_null(p->task->sample) : NULL;
	const char *tool = p->text != NULL && p->text->is_tool ? p->text->tool : NULL;
	size_t task_len = task != NULL ? strlen(task) : 0, sample_len = sample != NULL ? strlen(sample) : 0;
	size_t tool_len = tool != NULL ? strlen(tool) : 0, len = task_len + sample_len + tool_len + 3;
	char *key = state_has_run(c) ? calloc(1, len) : NULL;
	struct row *r;

	if (key == NULL)
		return NULL;
	memcpy(key, task != NULL ? task : "", task_len);
	memcpy(key + task_len + 1, sample != NULL ? sample : "", sample_len);
	memcpy(key + task_len + 1 + sample_len + 1, tool != NULL ? tool : "", tool_len);
	HASH_FIND(hh, c->rows, key, len, r);
	if (r != NULL) {
		free(key);
		return r;
	}
	r = HASH_COUNT(c->rows) < ROWS_MAX ? calloc(1, sizeof(*r)) : NULL;
	if (r == NULL) {
		free(key);
		return NULL;
	}
	r->key = key;
	r->key_len = len;
	r->shown.task = task != NULL ? key : NULL;
	r->shown.sample = sample != NULL ? key + task_len + 1 : NULL;
	r->shown.tool = tool != NULL ? key + task_len + 1 + sample_len + 1 : NULL;
	HASH_ADD_KEYPTR(hh, c->rows, r->key, r->key_len, r);
	return r;
}

size_t
correlator_summary(struct correlator *c, const struct summary_row **ret_rows)
{
	struct bound_limits limits = { c->options.memory_limit_bytes, c->options.host_memory_bytes };
	struct row *r, *next;
	size_t n = 0;

	free(c->summary);
	c->summary = calloc(HASH_COUNT(c->rows) + 1, sizeof(*c->summary));
	*ret_rows = c->summary;
	if (c->summary == NULL)
		return 0;
	HASH_ITER(hh, c->rows, r, next) {
		struct summary_row *s;

		if (r->work.programs == 0)	/* all of them turned out to be another tool */
			continue;
		s = &c->summary[n++];
		*s = r->shown;
		s->programs = r->work.programs;
		s->failed = r->work.failed;
		s->wall_ns = r->work.busy_ns;
		s->usage = r->work.done;
		s->bound = bound_decide(&s->usage, s->wall_ns, &limits, &s->shares);
	}
	return n;
}

void
rows_free(struct correlator *c)
{
	struct row *r, *next;

	HASH_ITER(hh, c->rows, r, next) {
		HASH_DEL(c->rows, r);
		free(r->key);
		free(r);
	}
	free(c->summary);
}

void
tasks_free(struct correlator *c)
{
	struct task *t, *next;

	HASH_ITER(hh, c->tasks, t, next) {
		HASH_DEL(c->tasks, t);
		free(t->work_dir);
		free(t);
	}
}
