/*
 * SPDX-License-Identifier: Apache-2.0
 * process: adds processes to the table, links them to their parents, and removes them.
 */
#include "correlate/process.h"

#include <stdlib.h>
#include <string.h>

#include "correlate/findings.h"
#include "correlate/location.h"
#include "correlate/program_text.h"
#include "correlate/runs.h"
#include "correlate/state.h"
#include "correlate/tasks.h"
#include "correlate/title.h"
#include "correlate/wal.h"

void
process_set_text(struct correlator *c, struct process *p, struct text *t)
{
	program_text_unref(c, p->text);
	title_forget(p);
	p->text = t;
	p->is_text_logged = false;
}

void
process_gone(struct correlator *c, struct process *p)
{
	DL_APPEND2(c->gone, p, prev_gone, next_gone);
	c->gone_count++;
}

void
process_remove(struct correlator *c, struct process *p)
{
	HASH_DEL(c->processes, p);
	if (p->prev_gone != NULL) {
		DL_DELETE2(c->gone, p, prev_gone, next_gone);
		c->gone_count--;
	}
	program_text_unref(c, p->text);
	title_forget(p);
	failures_forget(c, p);
	task_assign(c, p, NULL);
	run_assign(c, p, NULL);
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
	if (c->whole != NULL && parent->pid == 0 && c->whole->root.pid == 0) {
		c->whole->root = p->id;	/* COMMAND, which the agent itself forked */
		wal_run(c, c->whole);
	}
	wal_process(c, p, NEWS_ALL);
	return p;
}
