/*
 * SPDX-License-Identifier: Apache-2.0
 * process: adds processes to the table, links them to their parents, records what they run, and removes them.
 */
#include "correlate/process.h"

#include <stdlib.h>
#include <string.h>

#include "correlate/cputime.h"
#include "correlate/findings.h"
#include "correlate/kills.h"
#include "correlate/location.h"
#include "correlate/program_text.h"
#include "correlate/runs.h"
#include "correlate/state.h"
#include "correlate/tasks.h"
#include "correlate/title.h"
#include "correlate/wal.h"
#include "model/user.h"

struct process *
process_new(struct correlator *c, const struct process_id *id)
{
	size_t most = 2 * (size_t)c->options.max_processes;
	struct process *p = NULL;

	if (c->n_processes < (most > PROCESSES_MAX ? most : PROCESSES_MAX))
		p = calloc(1, sizeof(*p));

	if (p == NULL) {
		c->refused++;
		return NULL;
	}
	p->id = *id;
	p->pass = c->pass;
	LL_PREPEND2(c->by_pid[process_slot(id->pid)], p, same_slot);
	DL_APPEND(c->processes, p);
	c->n_processes++;
	return p;
}

void
process_remove(struct correlator *c, struct process *p)
{
	LL_DELETE2(c->by_pid[process_slot(p->id.pid)], p, same_slot);
	DL_DELETE(c->processes, p);
	c->n_processes--;
	if (p->prev_gone != NULL) {
		DL_DELETE2(c->gone, p, prev_gone, next_gone);
		c->gone_count--;
	}
	program_text_unref(c, p->text);
	title_forget(p);
	failures_forget(c, p);
	kill_forget(p);
	task_release(c, p->task);
	run_release(c, p->run);
	location_unref(c, p->location);
	free(p);
}

void
process_forget(struct correlator *c, struct process *p)
{
	wal_forget(c, p);
	process_remove(c, p);
}

struct program_key
process_above(struct correlator *c, const struct program_key *parent)
{
	const struct process *p = process_of(c, parent);

	return p != NULL && p->is_excluded && p->self.index == parent->index ? p->above : *parent;
}

struct process *
process_add(struct correlator *c, const struct program_key *self, const struct program_key *parent,
    const struct program_key *anchor)
{
	struct process *p = process_new(c, &(struct process_id){ self->start_ns, self->pid });

	if (p == NULL)
		return NULL;
	p->self = *self;
	p->parent = *parent;
	p->above = process_above(c, parent);
	p->anchor = *anchor;
	p->is_forked = true;
	p->is_base_known = self->index == 0;
	p->start_us = state_wall_us(c, self->start_ns);
	p->program_start_us = p->start_us;
	p->program_start_ns = self->start_ns;
	if (c->whole != NULL && parent->pid == 0 && c->whole->root.pid == 0)
		run_set_root(c, c->whole, &p->id);	/* COMMAND, which the agent itself forked */
	wal_process(c, p, NEWS_ALL);
	return p;
}

/* Records when the program was discovered, and that its usage counts from there. */
static void
set_observed(struct correlator *c, struct process *p, const struct counters *counters, uint64_t time_ns)
{
	usage_base_set(&p->base, counters);
	p->is_base_known = true;
	p->observed_us = state_wall_us(c, time_ns);
}

/* Sets when the program began, and the counters that its usage is counted from. */
static void
set_base(struct correlator *c, struct process *p, const struct exec_event *s)
{
	p->observed_us = 0;
	if (s->is_discovered) {
		set_observed(c, p, &s->replaced, s->time_ns);
	} else if (s->has_replaced) {
		usage_base_set(&p->base, &s->replaced);
		p->is_base_known = true;
		p->program_start_us = state_wall_us(c, s->time_ns);
		p->program_start_ns = s->time_ns;
	} else {
		p->base = (struct usage_base){ 0 };
		p->is_base_known = s->self.index == 0;	/* a snapshot may have been ahead of the ring */
	}
}

void
process_discovered(struct correlator *c, struct process *p, const struct state_event *s)
{
	p->ppid = s->ppid;
	p->context = s->context;
	p->has_context = s->has_context;
	set_observed(c, p, &s->counters, s->time_ns);
	wal_process(c, p, NEWS_ALL);
}

void
process_exec(struct correlator *c, struct process *p, const struct exec_event *s, const struct program_key *above)
{
	if (p->self.index != s->self.index) {
		failures_exec(c, p);
		if (s->is_discovered) {		/* its exec was not seen */
			p->program_start_ns = s->self.start_ns;
			p->program_start_us = p->start_us;
		}
	}
	p->self = s->self;
	p->parent = s->parent;
	p->anchor = s->anchor;
	p->above = *above;
	p->ppid = s->ppid;
	p->context = s->context;
	p->has_context = true;
	p->is_elevated = s->context.is_elevated;
	p->is_forked = false;
	set_base(c, p, s);
	wal_process(c, p, NEWS_ALL);
}

void
process_exec_lost(struct correlator *c, struct process *p, const struct state_event *s, bool had_record)
{
	if (p->self.index != s->self.index) {
		if (had_record)
			p->above = p->self;
		failures_exec(c, p);
		p->self = s->self;
		p->is_base_known = false;
		p->program_start_ns = s->program_start_ns;
		p->program_start_us = state_wall_us(c, s->program_start_ns);
		p->observed_us = 0;
	}
	p->is_forked = false;
	p->is_elevated = true;	/* for all that is known */
	process_set_text(c, p, NULL);	/* unknown; the one that it had is of the program before, or its parent's */
}

void
process_set_text(struct correlator *c, struct process *p, struct text *t)
{
	program_text_unref(c, p->text);
	title_forget(p);
	p->text = t;
	wal_process_text(c, p);
}

void
process_set_parent(struct correlator *c, struct process *p, const struct program_key *parent)
{
	struct program_key above = process_above(c, parent);

	if (memcmp(&p->parent, parent, sizeof(*parent)) == 0 && memcmp(&p->above, &above, sizeof(above)) == 0)
		return;
	p->parent = *parent;
	p->above = above;
	wal_process(c, p, NEWS_ALL);
}

void
process_set_ppid(struct correlator *c, struct process *p, uint32_t ppid)
{
	if (p->ppid == ppid)
		return;
	p->ppid = ppid;
	wal_process(c, p, NEWS_ALL);
}

static bool
is_same_context(const struct program_context *a, const struct program_context *b)
{
	return a->uid == b->uid && a->gid == b->gid && a->pid_ns == b->pid_ns && a->mnt_ns == b->mnt_ns &&
	    a->net_ns == b->net_ns && a->cgroup_v2 == b->cgroup_v2 && a->cgroup_v1 == b->cgroup_v1 &&
	    a->user_uid == b->user_uid;
}

void
process_set_context(struct correlator *c, struct process *p, const struct program_context *context)
{
	bool is_elevated = p->is_elevated || context->is_elevated;

	if (p->has_context && is_same_context(&p->context, context) && p->is_elevated == is_elevated)
		return;
	p->is_elevated = is_elevated;
	p->context = *context;
	p->has_context = true;
	wal_process(c, p, NEWS_ALL);
}

void
process_set_elevated(struct correlator *c, struct process *p)
{
	if (p->is_elevated)
		return;
	p->is_elevated = true;
	wal_process(c, p, NEWS_ALL);
}

void
process_seen(struct correlator *c, struct process *p)
{
	p->pass = c->pass;
	if (p->unseen_since_ns == 0)
		return;
	p->unseen_since_ns = 0;
	wal_process(c, p, NEWS_ALL);
}

void
process_unseen(struct correlator *c, struct process *p, uint64_t now_ns)
{
	if (p->unseen_since_ns != 0)
		return;
	p->unseen_since_ns = now_ns;
	wal_process(c, p, NEWS_ALL);
}

void
process_over(struct correlator *c, struct process *p)
{
	p->is_over = true;
	wal_process(c, p, NEWS_ALL);
}

void
process_gone(struct correlator *c, struct process *p, uint64_t gone_ns)
{
	if (p->prev_gone == NULL) {
		DL_APPEND2(c->gone, p, prev_gone, next_gone);
		c->gone_count++;
	}
	p->gone_ns = gone_ns;
	wal_process(c, p, NEWS_ALL);
}
