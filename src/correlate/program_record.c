/*
 * SPDX-License-Identifier: Apache-2.0
 * What every record on a program says of it: who, what, where, and to whom it belongs.
 */
#include <string.h>

#include "correlate/state.h"

void
program_head_fill(const struct correlator *c, const struct process *p, struct record_head *head)
{
	const struct task *t = p->task;

	head->run_id = c->options.run_id;
	head->pipeline = c->options.pipeline;
	if (t == NULL) {
		head->sample = c->options.sample;
		return;
	}
	head->task_id = t->task_id[0] != '\0' ? t->task_id : NULL;
	head->task = t->name[0] != '\0' ? t->name : NULL;
	head->sample = t->sample[0] != '\0' ? t->sample : NULL;
}

void
program_identity_fill(const struct correlator *c, const struct process *p, struct program_identity *id,
    char self[PROGRAM_ID_SIZE], char parent[PROGRAM_ID_SIZE])
{
	id->pid = p->self.pid;
	id->ppid = p->ppid;
	id->start_time_us = p->start_us;
	id->program_start_time_us = p->program_start_us;
	id->program_index = p->self.index;
	program_id_format(c, &p->self, self);
	id->program_id = self;
	if (p->self.index > 0) {
		/* what exec replaced */
		struct program_key before = p->self;

		before.index--;
		program_id_format(c, &before, parent);
		id->parent_program_id = parent;
	} else if (p->parent.pid != 0) {
		program_id_format(c, &p->parent, parent);
		id->parent_program_id = parent;
	}
	id->forked = p->is_forked;
}

void
program_emit(struct correlator *c, const struct process *p, struct program_record *r)
{
	char self[PROGRAM_ID_SIZE], parent[PROGRAM_ID_SIZE];
	const struct text *x = p->text;
	const char *v1, *v2;

	program_head_fill(c, p, &r->head);
	program_identity_fill(c, p, &r->id, self, parent);
	if (x != NULL) {
		r->exe = x->exe;
		if (r->comm == NULL)
			r->comm = x->comm;
		r->argv = x->argv;
		r->argc = x->argc;
		r->argv_truncated = x->argv_truncated;
		r->cwd = x->cwd;
		r->tool = x->tool;
		r->tool_rule = x->tool_rule;
	}
	if (p->has_context) {
		r->uid = (struct opt_u64){ p->context.uid, true };
		r->gid = (struct opt_u64){ p->context.gid, true };
		r->pid_ns = (struct opt_u64){ p->context.pid_ns, p->context.pid_ns != 0 };
		r->mnt_ns = (struct opt_u64){ p->context.mnt_ns, p->context.mnt_ns != 0 };
		r->net_ns = (struct opt_u64){ p->context.net_ns, p->context.net_ns != 0 };
		v2 = cgroup_find(c, p->context.cgroup_v2, true);
		v1 = cgroup_find(c, p->context.cgroup_v1, false);
		r->cgroup_v1 = v1;
		r->cgroup = v2 == NULL || (strcmp(v2, "/") == 0 && v1 != NULL) ? v1 : v2;
	}
	if (state_has_run(c))
		r->run_source = "sluice run";
	r->observed_time_us = (struct opt_u64){ (uint64_t)p->observed_us, p->observed_us != 0 };
	if (p->task != NULL) {
		r->task_source = p->task->source;
		r->confidence = (struct opt_double){ p->task->confidence, true };
	}
	c->ops.program(r, c->arg);
}
