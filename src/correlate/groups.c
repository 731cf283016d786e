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

#define SHARED UINT64_MAX

/* Returns true if p lives where a task may be alone. */
static bool
is_there(const struct process *p)
{
	const struct location *l = p->location;

	return l != NULL && p->is_announced && !p->is_over && (l->container != NULL || l->placement.step[0] != '\0');
}

/* Notes of whose task, if any, a program is where p is. */
static void
see(struct location *l, const struct process *p)
{
	uint64_t number = p->task != NULL ? p->task->number : SHARED;

	if (l->only_task == 0)
		l->only_task = number;
	else if (l->only_task != number)
		l->only_task = SHARED;
}

static const char *
path_of(struct correlator *c, uint64_t id, bool is_v2)
{
	const struct cgroup_path *g = cgroup_find(c, id, is_v2);

	return g != NULL && strcmp(g->path, "/") != 0 ? g->path : NULL;
}

static void
keep(struct task *t, const struct location *l, const struct group_use *use)
{
	bool is_same = (t->group_of.v2 == l->key.v2 && t->group_of.v1 == l->key.v1) ||
	    (t->group_of.v2 == 0 && t->group_of.v1 == 0);

	if (t->has_group && !is_same && use->memory_peak_bytes.value <= t->group.memory_peak_bytes.value)
		return;
	t->group = *use;
	t->group_of.v2 = l->key.v2;
	t->group_of.v1 = l->key.v1;
	t->has_group = true;
}

static void
ask(struct correlator *c, struct task *t, struct location *l)
{
	const char *v2 = path_of(c, l->key.v2, true), *v1 = path_of(c, l->key.v1, false);
	struct group_use use;

	l->asked_in = c->pass;
	if ((v2 != NULL || v1 != NULL) && c->ops.group(v2, v1, &use, c->arg))
		keep(t, l, &use);
}

void
groups_pass(struct correlator *c)
{
	uint64_t groups = 0, apart = 1 + c->groups / GROUPS_ASKED_MAX;
	unsigned asked = 0;

	if (c->ops.group == NULL)
		return;
	for (struct process *p = c->processes; p != NULL; p = p->next) {
		if (is_there(p))
			see(p->location, p);
	}
	for (struct process *p = c->processes; p != NULL; p = p->next) {
		struct location *l = p->location;

		if (!is_there(p) || p->task == NULL || l->only_task != p->task->number || l->counted_in == c->pass)
			continue;
		l->counted_in = c->pass;
		groups++;
		if (asked < GROUPS_ASKED_MAX && c->pass - l->asked_in >= apart) {
			asked++;
			ask(c, p->task, l);
		}
	}
	c->groups = groups;
}
