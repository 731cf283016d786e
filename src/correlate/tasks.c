/*
 * SPDX-License-Identifier: Apache-2.0
 * Tasks: one execution of a step, with all its programs, which need not descend from one another.
 */
#include "correlate/tasks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "correlate/contention.h"
#include "correlate/findings.h"
#include "correlate/process.h"
#include "correlate/runs.h"
#include "correlate/state.h"
#include "correlate/wal.h"
#include "correlate/work.h"

#define TASK_QUIET_NS UINT64_C(1000000000)	/* a task without programs for this long has ended */

#define ID_KEY_SIZE (RUN_ID_SIZE + ENGINE_NAME_SIZE)

static size_t
id_key(char key[ID_KEY_SIZE], const struct run *r, const char *task_id)
{
	int n = snprintf(key, ID_KEY_SIZE, "%s%c%s", r->id, '\0', task_id);

	return n > 0 && n < ID_KEY_SIZE ? (size_t)n : 0;
}

struct task *
task_find_id(struct correlator *c, const struct run *r, const char *task_id)
{
	char key[ID_KEY_SIZE];
	size_t len = id_key(key, r, task_id);
	struct task *t;

	HASH_FIND(by_id, c->tasks_by_id, key, len, t);
	return t;
}

void
task_set_id_key(struct correlator *c, struct task *t)
{
	char key[ID_KEY_SIZE];
	size_t len = id_key(key, t->run, t->task_id);

	if (t->id_key != NULL || task_find_id(c, t->run, t->task_id) != NULL)
		return;
	t->id_key = malloc(len);
	if (t->id_key == NULL)
		return;
	memcpy(t->id_key, key, len);
	t->id_key_len = len;
	HASH_ADD_KEYPTR(by_id, c->tasks_by_id, t->id_key, t->id_key_len, t);
}

struct task *
task_new(struct correlator *c, struct run *r, uint64_t number)
{
	struct task *t;

	if (!share_take(c, SHARE_TASKS, r->owner, HASH_COUNT(c->tasks), TASKS_MAX))
		return NULL;
	t = calloc(1, sizeof(*t));
	if (t == NULL) {
		share_give_back(c, SHARE_TASKS, r->owner);
		return NULL;
	}
	t->owner = r->owner;
	if (number > c->next_task)
		c->next_task = number;
	t->number = number;
	t->run = run_ref(r);
	HASH_ADD(hh, c->tasks, number, sizeof(t->number), t);
	return t;
}

void
task_unset_id_key(struct correlator *c, struct task *t)
{
	if (t->id_key == NULL)
		return;
	HASH_DELETE(by_id, c->tasks_by_id, t);
	free(t->id_key);
	t->id_key = NULL;
	wal_task(c, t);
}

void
job_search_free(struct job_search *j)
{
	if (j != NULL)
		free(j->folder);
	free(j);
}

static void
task_free(struct correlator *c, struct task *t)
{
	if (t->id_key != NULL)
		HASH_DELETE(by_id, c->tasks_by_id, t);
	finding_task_gone(c, t);
	HASH_DEL(c->tasks, t);
	share_give_back(c, SHARE_TASKS, t->owner);
	run_release(c, t->run);
	free(t->id_key);
	free(t->vigil);
	job_search_free(t->job);
	state_free_string(c, t->work_dir);
	state_free_string(c, t->scheduler);
	state_free_string(c, t->job_id);
	free(t);
}

void
task_release(struct correlator *c, struct task *t)
{
	if (t == NULL)
		return;
	t->refs--;
	task_reap(c, t);
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
	task_release(c, old);
	wal_process(c, p, NEWS_ALL);
}

void
task_reap(struct correlator *c, struct task *t)
{
	if (t->refs > 0 || !(t->has_ended || !t->has_started))
		return;
	wal_forget_task(c, t);
	task_free(c, t);
}

static void
task_emit(struct correlator *c, struct task *t, enum record_phase phase, uint64_t now_ns)
{
	struct work_record r = { .phase = phase };
	struct usage usage = t->work.done;

	if (phase != PHASE_START && t->work.live > 0)
		usage_add(&usage, &t->live);
	if (phase != PHASE_START) {
		work_bill(&t->work, &usage, now_ns, work_cpus(c, t->cpus));
		wal_task(c, t);
	}
	r.requested_cpus = t->cpus;
	r.requested_memory_bytes = t->memory_bytes;
	r.cgroup = t->has_group ? &t->group : NULL;
	work_record_fill(c, t->run, &t->work, now_ns, &usage, &r);
	work_record_judge(c, &t->work, t->memory_high, false, &r);
	if (t->scheduler != NULL) {
		r.scheduler = t->scheduler;
		r.job_id = t->job_id;
	}
	r.head.task_id = name_or_null(t->task_id);
	r.head.task = name_or_null(t->name);
	r.head.sample = name_or_null(t->sample);
	r.engine = t->engine;
	r.source = t->source;
	r.confidence = (struct opt_double){ t->confidence, true };
	r.attempt = t->attempt;
	r.work_dir = t->work_dir;
	if (phase == PHASE_END && t->root_ended)
		work_set_status(&r, t->status);
	c->ops.task(&r, c->arg);
}

void
task_joined(struct correlator *c, struct task *t, const struct process *p, uint64_t at_ns)
{
	t->has_ended = false;
	if (t->work.live == 1)
		contention_begin(c, &t->work, t->work_dir, p);
	if (!t->has_started) {
		t->has_started = true;
		task_emit(c, t, PHASE_START, at_ns);
	}
	wal_task(c, t);
}

static void
task_end(struct correlator *c, struct task *t, uint64_t now_ns)
{
	task_emit(c, t, PHASE_END, now_ns);
	t->has_ended = true;
	wal_task(c, t);
}

void
task_root_ended(struct correlator *c, struct task *t, int32_t status)
{
	t->root_ended = true;
	t->status = status;
	wal_task(c, t);
}

bool
task_is_over(const struct task *t, uint64_t now_ns)
{
	return t->work.live == 0 && now_ns > t->work.end_ns + TASK_QUIET_NS;
}

void
tasks_tick(struct correlator *c, uint64_t now_ns, bool live)
{
	struct task *t, *next;

	HASH_ITER(hh, c->tasks, t, next) {
		if (!t->has_started || t->has_ended)
			continue;
		if (task_is_over(t, now_ns)) {
			task_end(c, t, now_ns);
			wal_flush(c);	/* before task_reap() may free it */
			task_reap(c, t);
		} else if (live) {
			task_emit(c, t, PHASE_LIVE, now_ns);
		}
	}
}

void
tasks_end(struct correlator *c, uint64_t now_ns)
{
	struct task *t, *next;

	HASH_ITER(hh, c->tasks, t, next) {
		if (!t->has_started || t->has_ended)
			continue;
		work_cut(&t->work, now_ns);
		task_end(c, t, now_ns);
	}
}

void
tasks_free(struct correlator *c)
{
	struct task *t, *next;

	HASH_ITER(hh, c->tasks, t, next)
		task_free(c, t);
}
