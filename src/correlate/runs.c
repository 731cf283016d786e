/*
 * SPDX-License-Identifier: Apache-2.0
 * Runs: made with their first program, ended when idle, and kept for a while after, since a task in a container may
 * join late.
 */
#include "correlate/runs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "correlate/contention.h"
#include "correlate/facts.h"
#include "correlate/findings.h"
#include "correlate/location.h"
#include "correlate/process.h"
#include "correlate/rows.h"
#include "correlate/state.h"
#include "correlate/tasks.h"
#include "correlate/title.h"
#include "correlate/wal.h"
#include "correlate/work.h"

#define DRIVEN_QUIET_NS UINT64_C(1000000000)	/* after its driver's end, without programs */
#define JOB_QUIET_NS UINT64_C(5000000000)	/* without a driver: another step may follow */
#define RUN_KEPT_NS UINT64_C(60000000000)	/* after its end */

struct run *
run_get(struct correlator *c, const char *id, owner_t owner)
{
	struct run *r = run_find(c, id);
	size_t len = strlen(id);

	if (r != NULL)
		return r;
	if (len >= RUN_ID_SIZE || !share_take(c, SHARE_RUNS, owner, HASH_COUNT(c->runs), RUNS_MAX))
		return NULL;
	r = calloc(1, sizeof(*r));
	if (r == NULL) {
		share_give_back(c, SHARE_RUNS, owner);
		return NULL;
	}
	r->owner = owner;
	memcpy(r->id, id, len + 1);
	HASH_ADD_STR(c->runs, id, r);
	return r;
}

owner_t
run_owner_by_hand(uint32_t uid, uint32_t user_uid)
{
	return user_is_of_system(uid, user_uid) ? 0 : owner_of(user_behind(uid, user_uid));
}

void
run_restored(struct correlator *c, struct run *r)
{
	const uint32_t uid = (uint32_t)r->uid.value;

	if (r->owner != 0 || !r->uid.known)
		return;
	r->owner = r->strength == STRENGTH_EXPLICIT ? run_owner_by_hand(uid, r->user_uid) :
	    owner_of(user_behind(uid, r->user_uid));
	share_add(c, SHARE_RUNS, r->owner);
}

struct run *
run_ref(struct run *r)
{
	r->refs++;
	return r;
}

void
run_release(struct correlator *c, struct run *r)
{
	(void)c;
	if (r != NULL && --r->refs == 0)
		r->idle_ns = 0;		/* the next tick sets it again */
}

void
run_assign(struct correlator *c, struct process *p, struct run *r)
{
	struct run *old = p->run;

	if (r == old)
		return;
	p->run = r != NULL ? run_ref(r) : NULL;
	run_release(c, old);
	wal_process(c, p, NEWS_ALL);
}

void
run_free(struct correlator *c, struct run *r)
{
	facts_forget(c, r);
	finding_run_gone(c, r);
	HASH_DEL(c->runs, r);
	share_give_back(c, SHARE_RUNS, r->owner);
	free(r->vigil);
	state_free_string(c, r->pipeline);
	state_free_string(c, r->name);
	state_free_string(c, r->command);
	state_free_string(c, r->work_dir);
	state_free_string(c, r->root_dir);
	state_free_string(c, r->scheduler);
	state_free_string(c, r->job_id);
	state_free_string(c, r->parent_id);
	state_free_string(c, r->task);
	state_free_string(c, r->sample);
	free(r);
}

void
run_emit(struct correlator *c, struct run *r, enum record_phase phase, uint64_t now_ns)
{
	struct work_record rec = { .phase = phase };
	struct usage usage = r->work.done;
	struct work w;

	if (phase != PHASE_START && r->work.live > 0)
		usage_add(&usage, &r->live);
	if (phase != PHASE_START) {
		work_bill(&r->work, &usage, now_ns, work_cpus(c, r->cpus));
		wal_run(c, r);
	}
	w = r->work;
	w.start_ns = r->start_ns;
	if (r == c->whole)
		w.end_ns = now_ns;	/* it lasts as long as it is watched, also without programs */
	rec.requested_cpus = r->cpus;
	rec.requested_memory_bytes = r->memory_bytes;
	work_record_fill(c, r, &w, now_ns, &usage, &rec);
	/* Containers of another's run have limits of their own; a batch job has one for all of it. */
	work_record_judge(c, &w, r->memory_high, r != c->whole && r->job_id == NULL, &rec);
	rec.head.sample = r->sample;
	rec.engine = r->engine;
	rec.source = r->source;
	rec.confidence = (struct opt_double){ r->confidence, true };
	rec.command = r->command;
	rec.work_dir = r->work_dir;
	rec.lost_events = c->lost_events - r->lost_before;
	if (phase == PHASE_END && r->root_ended && r->has_status)
		work_set_status(&rec, r->status);
	c->ops.run(&rec, c->arg);
}

void
run_set_origin(struct correlator *c, struct run *r, const char *engine, enum engine_strength strength,
    const char *source, double confidence)
{
	r->engine = kept_name(c, engine);
	r->strength = strength;
	r->source = kept_name(c, source);
	r->confidence = confidence;
	wal_run(c, r);
}

void
run_set_root(struct correlator *c, struct run *r, const struct process_id *root)
{
	r->root = *root;
	r->root_ended = false;
	wal_run(c, r);
}

void
run_learn(struct correlator *c, struct run *r, const struct run_names *names)
{
	state_learn_string(c, &r->pipeline, names->pipeline);
	state_learn_string(c, &r->name, names->name);
	state_learn_string(c, &r->command, names->command);
	state_learn_string(c, &r->work_dir, names->work_dir);
	state_learn_string(c, &r->root_dir, names->root_dir);
	state_learn_string(c, &r->parent_id, names->parent_id);
	state_learn_string(c, &r->sample, names->sample);
	if (r->inner == NULL)
		r->inner = kept_name(c, names->inner);
	wal_run(c, r);
}

static void
set_user(struct run *r, const struct program_context *of)
{
	r->uid = (struct opt_u64){ of->uid, true };
	r->user_uid = of->user_uid;
}

void
run_take_placement(struct correlator *c, struct run *r, const struct process *p)
{
	const struct location *l = p->location;

	if (p->has_context && !r->uid.known)
		set_user(r, &p->context);
	if (l != NULL && l->placement.is_batch) {
		state_learn_string(c, &r->scheduler, l->placement.scheduler);
		state_learn_string(c, &r->job_id, l->placement.job);
	}
	if (l != NULL) {
		r->cpus = l->cpus;
		r->memory_bytes = l->memory_bytes;
		r->memory_high = l->memory_high;
	}
	wal_run(c, r);
}

/* NULL keeps the old value. */
static int
rename_to(struct correlator *c, char **to, const char *text)
{
	return text != NULL ? state_set_string(c, to, text) : 0;
}

/* Marks r as made by hand. */
static int
set_by_hand(struct correlator *c, struct run *r, const struct tag *tag)
{
	if (rename_to(c, &r->pipeline, tag->pipeline) < 0 || rename_to(c, &r->task, tag->task) < 0 ||
	    rename_to(c, &r->sample, tag->sample) < 0)
		return -ENOMEM;
	wal_run(c, r);
	if (r->has_started || r->strength == STRENGTH_EXPLICIT)
		return 0;		/* it keeps its origin and gains a process */
	run_set_origin(c, r, "sluice", STRENGTH_EXPLICIT, tag->source, 1);
	return 1;
}

int
run_tag(struct correlator *c, struct run *r, const struct tag *tag, const struct process *root)
{
	int is_new = set_by_hand(c, r, tag);

	if (is_new <= 0)
		return is_new;
	run_set_root(c, r, &root->id);
	if (root->has_context)
		set_user(r, &root->context);
	return 0;
}

int
run_open_whole(struct correlator *c)
{
	const struct correlator_options *o = &c->options;
	struct run *r = run_get(c, o->run_id, 0);

	if (r == NULL)
		return -ENOMEM;
	c->whole = r;
	if (set_by_hand(c, r, &(struct tag){ .pipeline = o->pipeline, .task = o->task, .sample = o->sample,
	    .source = "sluice run" }) < 0)
		return -ENOMEM;
	state_learn_string(c, &r->command, o->command);
	state_learn_string(c, &r->work_dir, o->work_dir);
	r->cpus = o->cpu_limit;
	r->memory_bytes = o->memory_limit_bytes;
	r->memory_high = o->memory_high_bytes;
	r->has_started = true;		/* correlator_run_start() emits the START record */
	return 0;
}

void
correlator_run_start(struct correlator *c, uint64_t now_ns)
{
	c->start_ns = now_ns;
	if (c->whole != NULL) {
		c->whole->start_ns = now_ns;
		wal_run(c, c->whole);
		run_emit(c, c->whole, PHASE_START, now_ns);
	}
	wal_flush(c);
}

void
run_joined(struct correlator *c, struct run *r, const struct process *p, uint64_t at_ns)
{
	r->has_ended = false;
	if (r->work.live == 1)
		contention_begin(c, &r->work, r->work_dir, p);
	if (!r->has_started) {
		r->has_started = true;
		r->start_ns = p->program_start_ns;
		r->lost_before = c->lost_events;
		run_emit(c, r, PHASE_START, at_ns);
	}
	wal_run(c, r);
}

void
run_root_ended(struct correlator *c, struct run *r, const int32_t *status)
{
	r->root_ended = true;
	r->has_status = status != NULL;
	r->status = status != NULL ? *status : 0;
	wal_run(c, r);
}

/* One walk over the processes for all tasks and runs: there may be thousands of each. */
void
runs_sum_live(struct correlator *c)
{
	struct process *p;
	struct task *t;
	struct run *r;

	for (r = c->runs; r != NULL; r = r->hh.next)
		r->live = (struct usage){ 0 };
	for (t = c->tasks; t != NULL; t = t->hh.next)
		t->live = (struct usage){ 0 };
	for (struct row *row = c->rows; row != NULL; row = row->hh.next)
		row->live = (struct usage){ 0 };
	for (p = c->processes; p != NULL; p = p->next) {
		if (!p->is_announced)
			continue;
		if (p->run != NULL)
			usage_add(&p->run->live, &p->latest);
		if (p->row != NULL)
			usage_add(&p->row->live, &p->latest);
		if (p->task != NULL && !p->is_overhead) {
			struct usage own = title_usage(p, &p->latest);

			usage_add(&p->task->live, &own);
		}
	}
}

/* Returns true if the run has been idle long enough to be over. */
static bool
is_quiet(const struct run *r, uint64_t now_ns)
{
	uint64_t quiet_ns = r->root.pid != 0 ? DRIVEN_QUIET_NS : JOB_QUIET_NS;

	return run_is_idle(r) && now_ns > r->work.end_ns + quiet_ns;
}

void
runs_tick(struct correlator *c, uint64_t now_ns, bool live)
{
	struct run *r, *next;

	HASH_ITER(hh, c->runs, r, next) {
		if (r->has_started && !r->has_ended && r != c->whole && is_quiet(r, now_ns)) {
			run_emit(c, r, PHASE_END, now_ns);
			r->has_ended = true;
			wal_run(c, r);
		} else if (live && r->has_started && !r->has_ended) {
			run_emit(c, r, PHASE_LIVE, now_ns);
		}
		if (r->refs > 0 || r == c->whole || (r->has_started && !r->has_ended))
			continue;
		if (r->idle_ns == 0)
			r->idle_ns = now_ns;
		if (now_ns - r->idle_ns > RUN_KEPT_NS) {
			wal_flush(c);
			wal_forget_run(c, r);
			run_free(c, r);
		}
	}
	wal_flush(c);
}

void
runs_free(struct correlator *c)
{
	struct run *r, *next;

	HASH_ITER(hh, c->runs, r, next)
		run_free(c, r);
	c->whole = NULL;
}
