/*
 * SPDX-License-Identifier: Apache-2.0
 * Fills the fields that all records on a program share: identity, names, context and attribution.
 */
#include "correlate/program_record.h"

#include <string.h>

#include "correlate/cgroups.h"
#include "correlate/location.h"
#include "correlate/process.h"
#include "correlate/program_text.h"
#include "correlate/runs.h"
#include "correlate/state.h"
#include "correlate/tasks.h"
#include "model/user.h"

void
program_head_fill(const struct correlator *c, const struct process *p, struct record_head *head)
{
	const struct task *t = p->is_overhead ? NULL : p->task;

	(void)c;
	head->user = p->has_context ? user_share(p->context.uid, p->context.user_uid) : (struct opt_u64){ 0 };
	if (p->run != NULL) {
		head->run_id = p->run->id;
		head->pipeline = p->run->pipeline;
		head->sample = p->run->sample;
	}
	if (t == NULL)
		return;
	head->task_id = name_or_null(t->task_id);
	head->task = name_or_null(t->name);
	head->sample = name_or_null(t->sample);
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
	if (p->above.pid != 0) {
		program_id_format(c, &p->above, parent);
		id->parent_program_id = parent;
	}
	id->forked = p->is_forked;
}

static void
fill(struct correlator *c, const struct process *p, struct program_record *r, char self[PROGRAM_ID_SIZE],
    char parent[PROGRAM_ID_SIZE])
{
	const struct text *x = p->text;
	const struct location *l = p->location;
	const struct cgroup_path *v1, *v2;

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
		r->trace_id = x->trace_id;
		r->span_id = x->span_id;
		r->variables = x->variables;
		r->n_variables = x->n_variables;
	}
	if (p->has_context) {
		r->uid = (struct opt_u64){ p->context.uid, true };
		r->gid = (struct opt_u64){ p->context.gid, true };
		r->pid_ns = (struct opt_u64){ p->context.pid_ns, p->context.pid_ns != 0 };
		r->mnt_ns = (struct opt_u64){ p->context.mnt_ns, p->context.mnt_ns != 0 };
		r->net_ns = (struct opt_u64){ p->context.net_ns, p->context.net_ns != 0 };
		v2 = cgroup_use(c, p->context.cgroup_v2, true);
		v1 = cgroup_use(c, p->context.cgroup_v1, false);
		r->cgroup_v1 = v1 != NULL ? v1->path : NULL;
		r->cgroup = v2 == NULL || (strcmp(v2->path, "/") == 0 && v1 != NULL) ? r->cgroup_v1 : v2->path;
	}
	if (l != NULL) {
		r->scheduler = l->placement.scheduler;
		r->job_id = name_or_null(l->placement.job);
		r->job_step = name_or_null(l->placement.step);
		if (!l->placement.is_outside) {
			r->container_runtime = l->placement.runtime;
			r->container_id = name_or_null(l->placement.container);
		}
		r->container_name = location_name(l);
		r->container_image = location_image(l);
		r->k8s_pod_uid = name_or_null(l->placement.pod);
		r->k8s_pod_name = location_k8s_pod(l);
		r->k8s_namespace = location_k8s_namespace(l);
		r->k8s_container_name = location_k8s_container(l);
	}
	r->overhead = p->is_overhead;
	if (p->run != NULL)
		r->run_source = p->run->source;
	r->observed_time_us = (struct opt_u64){ (uint64_t)p->observed_us, p->observed_us != 0 };
	if (p->task != NULL && !p->is_overhead) {
		r->task_source = p->task->source;
		r->confidence = (struct opt_double){ p->task->confidence, !p->is_unjudged };
	} else if (p->run != NULL) {
		r->confidence = (struct opt_double){ p->run->confidence, !p->is_unjudged };
	}
}

void
program_emit(struct correlator *c, const struct process *p, struct program_record *r)
{
	char self[PROGRAM_ID_SIZE], parent[PROGRAM_ID_SIZE];

	fill(c, p, r, self, parent);
	c->ops.program(r, c->arg);
}

void
program_show(struct correlator *c, const struct process *p, void (*fn)(const struct program_record *r, void *arg),
    void *arg)
{
	char self[PROGRAM_ID_SIZE], parent[PROGRAM_ID_SIZE];
	struct program_record r = { .phase = PHASE_START };

	fill(c, p, &r, self, parent);
	fn(&r, arg);
}

void
program_candidate(struct correlator *c, const struct process *p, struct candidate *s)
{
	program_candidate_of(c, p, p->text, s);
}

void
program_candidate_of(struct correlator *c, const struct process *p, const struct text *x, struct candidate *s)
{
	*s = (struct candidate){ 0 };
	if (x != NULL)
		program_text_candidate(x, s);
	program_candidate_context(c, p, s);
}

void
program_candidate_context(struct correlator *c, const struct process *p, struct candidate *s)
{
	const struct cgroup_path *v1, *v2;

	s->image = location_image(p->location);
	if (!p->has_context)
		return;
	v2 = cgroup_find(c, p->context.cgroup_v2, true);
	v1 = cgroup_find(c, p->context.cgroup_v1, false);
	s->cgroup = v2 != NULL ? v2->path : NULL;
	s->cgroup_v1 = v1 != NULL ? v1->path : NULL;
	s->has_uid = true;
	s->uid = p->context.uid;
	s->user_uid = p->context.user_uid;
	s->is_exe_of_root = p->context.is_exe_of_root;
}
