/*
 * SPDX-License-Identifier: Apache-2.0
 * attribute_job: seeks the job of a task from the task's first program on, ever more rarely, and at its end. What is
 * sought for, as all that an engine keeps, is the word of the user whose program it is: the files count only where they
 * are that user's. A task that a restart of the agent interrupts keeps the name that it has.
 */
#include "correlate/attribute_job.h"

#include <stdlib.h>
#include <string.h>

#include "correlate/attribute_task.h"
#include "correlate/location.h"
#include "correlate/process.h"
#include "correlate/program_record.h"
#include "correlate/program_text.h"
#include "correlate/rows.h"
#include "correlate/state.h"
#include "correlate/tasks.h"
#include "identify/engine.h"
#include "identify/jobs.h"

enum {
	TRIES_MAX = 30,		/* while a task runs; n seconds after the n-th is the next one */
	A_TICK_MAX = 20,	/* tasks that are sought again in a tick, of all users */
	USERS = 64,		/* users whose ids are equal modulo this have one share of them */
};

#define SECOND UINT64_C(1000000000)

/* A job in a shadow folder, .snakemake/shadow/tmpabc, is one of the folder that has .snakemake. */
static char *
folder_of(const char *cwd)
{
	const char *shadow = strstr(cwd, "/.snakemake/shadow/");

	return shadow != NULL ? strndup(cwd, (size_t)(shadow - cwd)) : strdup(cwd);
}

static bool
can_be_sought(const struct correlator *c, const struct task *t, const struct process *p, const struct candidate *s)
{
	return c->ops.job != NULL && t->job == NULL && !t->is_named && process_is(p, &t->root) && s->cwd != NULL &&
	    s->cwd[0] == '/' && p->has_context &&
	    /* A container's paths are not the host's. */
	    !(p->location != NULL && p->location->placement.has_container);
}

/* A run may have drivers of several engines, so that the run's engine need not be this one's. */
static bool
keeps_jobs(struct correlator *c, const struct process *driver)
{
	struct candidate s;
	struct engine_verdict v;

	program_candidate(c, driver, &s);
	engine_judge(c->rules, &s, NULL, &v);
	return v.role == ENGINE_DRIVER && engine_keeps_jobs(c->rules, v.engine);
}

static void
seek(struct correlator *c, struct task *t, const char *text, bool is_over)
{
	struct job_search *j = t->job;
	struct job_sought s = { .folder = j->folder, .uid = j->uid, .user = j->user,
		.driver_start_ns = j->driver.start_ns, .driver_pid = j->driver.pid, .task = t->number,
		.command = j->command, .text = text, .is_over = is_over };
	struct job_found found;

	if (!c->ops.job(&s, &found, c->arg))
		return;
	j->is_found = true;
	attribute_task_of_job(c, t, &found);
}

void
attribute_job(struct correlator *c, const struct process *p, const struct process *parent, const struct candidate *s)
{
	struct task *t = p->task;
	const char *text;
	struct job_search *j;

	if (t == NULL || parent == NULL || !parent->is_driver || !can_be_sought(c, t, p, s))
		return;
	text = engine_command(c->rules, s);
	j = text != NULL && keeps_jobs(c, parent) ? calloc(1, sizeof(*j)) : NULL;
	if (j == NULL)
		return;
	j->folder = folder_of(s->cwd);
	j->uid = p->context.uid;
	j->user = user_behind(p->context.uid, p->context.user_uid);
	j->driver = parent->id;
	j->command = job_command(text, strlen(text));
	if (j->folder == NULL || j->command == 0) {
		job_search_free(j);
		return;
	}
	t->job = j;
	seek(c, t, text, false);
}

static bool
is_due(const struct task *t, uint64_t now_ns)
{
	return t->job != NULL && t->has_started && !t->job->is_found && t->job->tries < TRIES_MAX &&
	    now_ns >= t->job->due_ns;
}

/* Seeks the job of a task that runs. */
static void
seek_again(struct correlator *c, struct task *t, uint64_t now_ns)
{
	const struct process *p = process_find(c, t->root.start_ns, t->root.pid);
	struct candidate s;
	const char *text;

	t->job->due_ns = now_ns + ++t->job->tries * SECOND;
	if (p == NULL || p->text == NULL || p->is_over)
		return;
	program_text_candidate(p->text, &s);
	text = engine_command(c->rules, &s);
	/* Another program than the one that the search began with is not asked about. */
	if (text != NULL && job_command(text, strlen(text)) == t->job->command)
		seek(c, t, text, false);
}

/* Returns how many tasks of a user may be sought again now, so that one with many of them leaves some to the others. */
static unsigned
share_of_user(const struct correlator *c, uint64_t now_ns)
{
	uint64_t users = 0;
	int n;

	for (const struct task *t = c->tasks; t != NULL; t = t->hh.next)
		users |= is_due(t, now_ns) ? UINT64_C(1) << t->job->user % USERS : 0;
	n = __builtin_popcountll(users);
	return n > A_TICK_MAX / 2 ? 1 : A_TICK_MAX / (n > 0 ? (unsigned)n : 1);
}

static void
seek_at_end(struct correlator *c, struct task *t)
{
	seek(c, t, NULL, true);
	rows_settle(c, t);
	job_search_free(t->job);
	t->job = NULL;
}

void
attribute_jobs_tick(struct correlator *c, uint64_t now_ns)
{
	const unsigned share = c->ops.job != NULL ? share_of_user(c, now_ns) : 0;
	unsigned of_user[USERS] = { 0 }, n = 0;

	for (struct task *t = c->ops.job != NULL ? c->tasks : NULL; t != NULL; t = t->hh.next) {
		if (t->job == NULL || !t->has_started)
			continue;
		if (task_is_over(t, now_ns)) {
			seek_at_end(c, t);
		} else if (is_due(t, now_ns) && n < A_TICK_MAX && of_user[t->job->user % USERS] < share) {
			of_user[t->job->user % USERS]++;
			n++;
			seek_again(c, t, now_ns);
		}
	}
}

void
attribute_jobs_end(struct correlator *c)
{
	for (struct task *t = c->tasks; t != NULL; t = t->hh.next) {
		if (t->job != NULL)
			seek_at_end(c, t);
	}
}
