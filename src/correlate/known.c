/*
 * SPDX-License-Identifier: Apache-2.0
 * Which processes are known, for an agent that sees processes that an earlier agent may have recorded.
 */
#include <string.h>

#include "correlate/life.h"
#include "correlate/process.h"
#include "correlate/runs.h"
#include "correlate/state.h"
#include "correlate/wal.h"
#include "model/user.h"

bool
correlator_knows(struct correlator *c, const struct program_key *key)
{
	const struct process *p = process_find(c, key->start_ns, key->pid);

	return p != NULL && p->self.index >= key->index && (p->is_announced || p->is_over);
}

void
correlator_discovered(struct correlator *c, const struct state_event *s)
{
	struct process *p = process_of(c, &s->self);

	if (p == NULL)
		p = process_add(c, &s->self, &s->parent, &s->anchor);
	if (p == NULL || !p->is_forked || p->is_announced || p->is_over)
		return;
	process_discovered(c, p, s);
	wal_flush(c);
}

void
process_belongings(const struct process *p, struct belongings *ret)
{
	const struct run *r = p->run;

	*ret = (struct belongings){ .uid = { p->context.uid, p->has_context && !p->is_elevated },
		.user = user_behind(p->context.uid, p->context.user_uid),
		.cgroup_v2 = p->context.cgroup_v2, .cgroup_v1 = p->context.cgroup_v1 };
	if (r == NULL)
		return;
	ret->run_id = r->id;
	ret->is_by_hand = r->strength == STRENGTH_EXPLICIT;
	ret->run_uid = r->uid;
}

bool
correlator_belongings(struct correlator *c, const struct program_key *key, struct belongings *ret)
{
	const struct process *p = process_find(c, key->start_ns, key->pid);

	if (p != NULL)
		process_belongings(p, ret);
	return p != NULL;
}

bool
correlator_is_of_run(struct correlator *c, const struct program_key *key, const char *run_id)
{
	const struct process *p = process_find(c, key->start_ns, key->pid);

	return p != NULL && p->run != NULL && strcmp(p->run->id, run_id) == 0;
}

void
correlator_forget_live(struct correlator *c)
{
	struct process *p, *next;

	DL_FOREACH_SAFE(c->processes, p, next) {
		process_lose(c, p, p->program_start_ns);
		process_forget(c, p);
	}
}
