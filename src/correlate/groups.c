/*
 * SPDX-License-Identifier: Apache-2.0
 * groups: finds which control groups are a task's alone. The definition is in groups.h.
 */
#include "correlate/groups.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "correlate/cgroups.h"
#include "correlate/correlator.h"
#include "correlate/location.h"
#include "correlate/process.h"
#include "correlate/state.h"
#include "correlate/tasks.h"
#include "correlate/wal.h"

#define SHARED UINT64_MAX

/* The control groups of a program in which a task may be alone; NULL: that one is none, or is not known. */
struct apart {
	struct cgroup_path *v2, *v1;
};

static struct apart
apart_of(struct correlator *c, const struct process *p)
{
	const struct location *l = p->location;
	struct apart a = { 0 };

	if (l == NULL || !p->is_announced || p->is_over)
		return a;
	if (l->is_apart_v2)
		a.v2 = cgroup_find(c, l->key.v2, true);
	if (l->is_apart_v1)
		a.v1 = cgroup_find(c, l->key.v1, false);
	return a;
}

/* Notes of whose task, if any, a program in a group is. */
static void
see(struct correlator *c, struct cgroup_path *g, const struct process *p)
{
	/* A group with a program from before this host was followed may have had others then. */
	uint64_t number = p->task != NULL && p->observed_us == 0 ? p->task->number : SHARED;

	if (g == NULL || g->only_task == number || g->only_task == SHARED)
		return;
	g->only_task = g->only_task == 0 ? number : SHARED;
	wal_cgroup(c, g);
}

void
groups_joined(struct correlator *c, const struct process *p)
{
	struct apart a = apart_of(c, p);

	if (c->ops.group == NULL || p->task == NULL)
		return;
	see(c, a.v2, p);
	see(c, a.v1, p);
}

/* Takes over what is known of use. */
static void
take(struct group_use *to, const struct group_use *use)
{
#define TAKE(name) if (use->name.known) to->name = use->name;
	GROUP_USE_EACH(TAKE)
#undef TAKE
}

static void
keep(struct correlator *c, struct task *t, const struct apart *a, const struct group_use *use)
{
	uint64_t v2 = a->v2 != NULL ? a->v2->key.id : 0, v1 = a->v1 != NULL ? a->v1->key.id : 0;
	struct group_use before = t->group;
	bool is_same = t->has_group && t->group_of.v2 == v2 && t->group_of.v1 == v1;

	if (t->has_group && !is_same && use->memory_peak_bytes.value <= t->group.memory_peak_bytes.value)
		return;
	if (!is_same)
		t->group = (struct group_use){ 0 };
	take(&t->group, use);
	t->group_of.v2 = v2;
	t->group_of.v1 = v1;
	t->has_group = true;
	/* The rest is in the log as of the last record. */
	if (!is_same || before.memory_peak_bytes.value != t->group.memory_peak_bytes.value ||
	    before.oom_kills.value != t->group.oom_kills.value)
		wal_task(c, t);
}

static void
ask(struct correlator *c, struct task *t, const struct apart *a)
{
	struct group_use use;

	if (c->ops.group(a->v2 != NULL ? a->v2->path : NULL, a->v1 != NULL ? a->v1->path : NULL, &use, c->arg))
		keep(c, t, a, &use);
}

void
groups_pass(struct correlator *c)
{
	uint64_t groups = 0, apart = 1 + c->groups / GROUPS_ASKED_MAX;
	unsigned asked = 0;

	if (c->ops.group == NULL)
		return;
	for (struct process *p = c->processes; p != NULL; p = p->next) {
		struct apart a = apart_of(c, p);

		see(c, a.v2, p);
		see(c, a.v1, p);
	}
	for (struct process *p = c->processes; p != NULL; p = p->next) {
		struct apart a = apart_of(c, p);
		struct cgroup_path *first;

		if (p->task == NULL)
			continue;
		if (a.v2 != NULL && a.v2->only_task != p->task->number)
			a.v2 = NULL;
		if (a.v1 != NULL && a.v1->only_task != p->task->number)
			a.v1 = NULL;
		first = a.v2 != NULL ? a.v2 : a.v1;
		if (first == NULL || first->counted_in == c->pass)
			continue;
		first->counted_in = c->pass;
		groups++;
		if (asked < GROUPS_ASKED_MAX && c->pass - first->asked_in >= apart) {
			asked++;
			first->asked_in = c->pass;
			ask(c, p->task, &a);
		}
	}
	c->groups = groups;
}
