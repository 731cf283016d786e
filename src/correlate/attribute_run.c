/*
 * SPDX-License-Identifier: Apache-2.0
 * attribute_run: which run a program belongs to; see attribute.c.
 */
#include "correlate/attribute_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <uuid/uuid.h>

#include "base/text.h"
#include "correlate/facts.h"
#include "correlate/location.h"
#include "correlate/process.h"
#include "correlate/program_text.h"
#include "correlate/runs.h"
#include "correlate/state.h"
#include "correlate/tasks.h"
#include "model/user.h"

#define KEY_SIZE (2 * ENGINE_PATH_SIZE)

static bool
is_engine(const struct run *r, const char *engine)
{
	return r->engine != NULL && strcmp(r->engine, engine) == 0;
}

/*
 * Makes a run's id, a version 5 UUID: restarted agents and other hosts get the same id for the same engine and key.
 */
static void
run_id(char out[UUID_STR_LEN], const char *engine, const char *key)
{
	/* The namespace of sluice's run ids: random, and never to be changed. */
	static const uuid_t space = { 0x5c, 0x1f, 0x7a, 0x0e, 0x93, 0x4b, 0x4d, 0x21, 0x8a, 0x66, 0xf2, 0x09, 0xd7,
		0x3c, 0xb5, 0x48 };
	char name[KEY_SIZE + ENGINE_NAME_SIZE];
	int n = snprintf(name, sizeof(name), "%s\n%s", engine, key);
	uuid_t id;

	uuid_generate_sha1(id, space, name, n < (int)sizeof(name) ? (size_t)n : sizeof(name) - 1);
	uuid_unparse_lower(id, out);
}

/* The user whose word p's program is; UINT32_MAX: unknown. */
static uint32_t
user_of(const struct process *p)
{
	return p->has_context ? user_witness(p->context.uid, p->context.user_uid) : UINT32_MAX;
}

/* Adds whose word a job is: also of a user of the system, who may be the root of a container. */
static void
key_add_claim(char key[KEY_SIZE], uint32_t uid)
{
	size_t len = strlen(key);

	snprintf(key + len, KEY_SIZE - len, "\nuid %" PRIu32, uid);
}

/*
 * Appends the user to a key that any user can write, so that it finds no run of another. Users of the system are one:
 * they are trusted, and have another number on each host.
 */
static void
key_add_user(char key[KEY_SIZE], uint32_t uid)
{
	if (uid > SYSTEM_UID_MAX)
		key_add_claim(key, uid);
}

/* Finds or makes the run of this key, of p's user. If *is_new is true, the caller fills it in. */
static struct run *
run_by_key(struct correlator *c, const struct process *p, const char *engine, const char *key, bool *is_new)
{
	char id[UUID_STR_LEN];
	struct run *r;

	run_id(id, engine, key);
	r = run_find(c, id);
	*is_new = r == NULL;
	return r != NULL ? r : run_get(c, id, process_owner(p));
}

/*
 * Returns how far to believe that p is in the job of its placement. A path with the job's user that is not p's is
 * another user's job, or names the user by chance.
 */
static double
job_confidence(const struct placement *placement, const struct process *p)
{
	char own[16];

	snprintf(own, sizeof(own), "%" PRIu32, user_of(p));
	if (placement->user[0] == '\0' || user_of(p) <= SYSTEM_UID_MAX || strcmp(placement->user, own) == 0)
		return placement->scheduler_confidence;
	return placement->scheduler_confidence / 2;
}

/* Returns the run of the scheduler's job that p runs in; NULL: p is in no job. */
static struct run *
run_of_job(struct correlator *c, struct process *p)
{
	const struct placement *placement = p->location != NULL ? &p->location->placement : NULL;
	char key[KEY_SIZE];
	bool is_new;
	struct run *r;

	if (placement == NULL || placement->scheduler == NULL || !placement->is_batch || placement->job[0] == '\0')
		return NULL;
	snprintf(key, sizeof(key), "%s\n%s",
	    placement->cluster[0] != '\0' || c->options.cluster == NULL ? placement->cluster : c->options.cluster,
	    placement->job);
	if (placement->scheduler_witness != WITNESS_SYSTEM)
		key_add_claim(key, placement->claimed_by != UINT32_MAX ? placement->claimed_by : user_of(p));
	r = run_by_key(c, p, placement->scheduler, key, &is_new);
	if (r == NULL)
		return NULL;
	if (is_new) {
		run_set_origin(c, r, placement->scheduler, STRENGTH_JOB, placement->scheduler_source,
		    job_confidence(placement, p));
		run_take_placement(c, r, p);
	}
	/* The job ends with its script. The program that started the script is in the job, but in no task of it. */
	if (r->root.pid == 0 && r->strength == STRENGTH_JOB && (placement->step[0] == '\0' ||
	    (strcmp(placement->step, "batch") == 0 && placement->task[0] != '\0')))
		run_set_root(c, r, &p->id);
	return r;
}

/* Returns true also for a job that began before its script was seen. */
static bool
is_same_job(const struct run *r, const struct run *job)
{
	return r == job || (r->job_id != NULL && job->job_id != NULL && strcmp(r->job_id, job->job_id) == 0);
}

static struct run *
run_of_driver(struct correlator *c, struct process *p, struct run *around, const struct candidate *s,
    const struct engine_verdict *v)
{
	char key[KEY_SIZE], command[4096];
	bool is_new;
	struct run *r;

	if (v->run_key[0] != '\0') {
		snprintf(key, sizeof(key), "key\n%s", v->run_key);
		key_add_user(key, user_of(p));
	} else {
		snprintf(key, sizeof(key), "%s\n%s\n%u\n%llu", c->options.host_id != NULL ? c->options.host_id : "",
		    c->options.boot_id, p->self.pid, (unsigned long long)p->id.start_ns);
	}
	r = run_by_key(c, p, v->engine, key, &is_new);
	if (r != NULL && (is_new || process_is(p, &r->root)))
		run_set_root(c, r, &p->id);	/* again, if it was discovered after a time without an agent */
	if (r == NULL || !is_new)
		return r;
	command[0] = '\0';
	if (p->text != NULL && p->text->argv != NULL)
		text_join(p->text->argv, p->text->argc, command, sizeof(command));
	run_set_origin(c, r, v->engine, v->strength, v->source, v->confidence);
	run_learn(c, r, &(struct run_names){ .pipeline = v->pipeline, .name = v->run_name, .command = command,
	    .work_dir = s->cwd, .root_dir = v->root,
	    .parent_id = around != NULL && around->strength == STRENGTH_JOB ? around->id : NULL });
	run_take_placement(c, r, p);
	return r;
}

/*
 * Returns the run of a task whose engine is known from its arguments; NULL: nothing ties the task to a run.
 * *is_contested: several users claim the task, and the run is what is left.
 */
static struct run *
run_of_task(struct correlator *c, struct process *p, struct run *around, const struct engine_verdict *v,
    bool *is_contested)
{
	struct run *r;
	char key[KEY_SIZE];
	bool is_new;

	*is_contested = false;
	if (around != NULL && (around->strength == STRENGTH_EXPLICIT || is_engine(around, v->engine)))
		return around;
	r = fact_find_claim(c, user_of(p), v->engine, v->root, v->task_id);
	if (r == NULL)
		r = fact_find_root(c, user_of(p), v->engine, v->run_key, is_contested);
	if (r == NULL && !*is_contested)	/* of those who claim the key, one may claim the folder, too */
		r = fact_find_root(c, user_of(p), v->engine, v->root, is_contested);
	if (r != NULL || v->role == ENGINE_JOINS)
		return r;
	if (around != NULL)
		return around;
	if (v->run_key[0] == '\0' && v->root[0] == '\0')
		return NULL;
	/*
	 * Its driver is on another host, or was never seen: identify the run by the folder that all its tasks work
	 * in.
	 */
	snprintf(key, sizeof(key), "%s\n%s", v->run_key[0] != '\0' ? "key" : "root",
	    v->run_key[0] != '\0' ? v->run_key : v->root);
	key_add_user(key, user_of(p));
	r = run_by_key(c, p, v->engine, key, &is_new);
	if (r != NULL && is_new) {
		run_set_origin(c, r, v->engine, v->strength, v->source, v->confidence / 2);
		run_learn(c, r, &(struct run_names){ .pipeline = v->pipeline, .name = v->run_name,
		    .root_dir = v->root });
		run_take_placement(c, r, p);
	}
	return r;
}

/* Values that tie one task to its run tie others to it too. */
static void
learn_ties(struct correlator *c, struct run *r, const struct process *p, const struct engine_verdict *v)
{
	fact_add_root(c, r, user_of(p), v->engine, v->root);
	fact_add_root(c, r, user_of(p), v->engine, v->run_key);
}

/* Begins a driver's run, or adds what the driver shows to the run that it is in. */
static struct run *
drive(struct correlator *c, struct process *p, struct run *run, const struct task *around, const struct candidate *s,
    struct engine_verdict *v)
{
	/* Anything that a named task starts is work of that task. */
	if (run != NULL && run->strength >= v->strength && around != NULL && around->is_named) {
		v->has_tasks = false;
		return run;
	}
	if (run == NULL || run->strength < v->strength) {
		struct run *own = run_of_driver(c, p, run, s, v);

		if (own == NULL) {
			v->has_tasks = false;
			return run;
		}
		run = own;
	} else {
		run_learn(c, run, &(struct run_names){ .pipeline = v->pipeline, .name = v->run_name,
		    .inner = run->strength == STRENGTH_EXPLICIT ? v->engine : NULL });
	}
	if (run->strength != STRENGTH_EXPLICIT)
		run_learn(c, run, &(struct run_names){ .sample = v->sample });	/* of all its tasks */
	learn_ties(c, run, p, v);
	return run;
}

struct run *
attribute_run_around(struct correlator *c, struct process *p, const struct process *parent)
{
	struct run *run = p->run != NULL ? p->run : parent != NULL ? parent->run : NULL, *job;

	if (c->whole != NULL)
		return c->whole;
	if (run != NULL && run->strength > STRENGTH_JOB)
		return run;
	job = run_of_job(c, p);
	return job != NULL && (run == NULL || run->strength < STRENGTH_JOB || !is_same_job(run, job)) ? job : run;
}

struct run *
attribute_run(struct correlator *c, struct process *p, struct run *run, const struct task *around,
    const struct candidate *s, struct engine_verdict *v)
{
	struct run *found;
	bool is_contested = false;

	switch (v->role) {
	case ENGINE_DRIVER:
		return drive(c, p, run, around, s, v);
	case ENGINE_TASK:
	case ENGINE_JOINS:
		/* An engine that runs inside another engine's task is work of that task. */
		if (around != NULL && around->is_named && around->engine != NULL &&
		    strcmp(around->engine, v->engine) != 0 &&
		    run->strength != STRENGTH_JOB)
			found = NULL;
		else
			found = run_of_task(c, p, run, v, &is_contested);
		if (found == NULL) {
			v->role = ENGINE_NONE;
			return run;
		}
		/* When the claims of the others are over, its next tasks are of the one user who is left. */
		if (v->role == ENGINE_TASK && !is_contested)
			learn_ties(c, found, p, v);
		return found;
	case ENGINE_NAMES:
		if (run != NULL) {
			learn_ties(c, run, p, v);
			fact_add_claim(c, run, user_of(p), v->engine, v->root, v->task_id);
		}
		return run;
	case ENGINE_NONE:
		break;
	}
	return run;
}
