/*
 * SPDX-License-Identifier: Apache-2.0
 * groups: finds which control groups are a task's alone. The definition is in groups.h.
 */
#include "correlate/groups.h"

#include <stdbool.h>
#include <stdint.h>

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

/* What is known of a group is no longer the task's that had it to itself. */
static void
drop(struct correlator *c, const struct cgroup_path *g)
{
	struct task *t = task_find(c, g->only_task);

	if (t == NULL || !t->has_group || g->key.id != (g->key.is_v2 ? t->group_of.v2 : t->group_of.v1))
		return;
	t->has_group = false;
	t->group = (struct group_use){ 0 };
	wal_task(c, t);
}

/* Notes of whose task, if any, a program in a group is. */
static void
see(struct correlator *c, struct cgroup_path *g, const struct process *p)
{
	uint64_t number = p->task != NULL ? p->task->number : SHARED;

	if (g == NULL || g->only_task == number || g->only_task == SHARED)
		return;
	/* One that was not seen to begin: the group may have had others before. */
	if (g->only_task == 0 && p->observed_us != 0)
		number = SHARED;
	if (g->only_task != 0)
		drop(c, g);
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

/* Takes over a number if it is known. Returns whether that changed anything. */
static bool
take(struct opt_u64 *to, const struct opt_u64 *number)
{
	bool is_new = number->known && (!to->known || to->value != number->value);

	if (is_new)
		*to = *number;
	return is_new;
}

static bool
take_all(struct group_use *to, const struct group_use *use)
{
	bool is_new = false;

#define TAKE(name) is_new |= take(&to->name, &use->name);
	GROUP_USE_EACH(TAKE)
#undef TAKE
	return is_new;
}

static void
keep(struct correlator *c, struct task *t, const struct apart *a, const struct group_use *use)
{
	uint64_t v2 = a->v2 != NULL ? a->v2->key.id : 0, v1 = a->v1 != NULL ? a->v1->key.id : 0;
	bool is_same = t->has_group && t->group_of.v2 == v2 && t->group_of.v1 == v1;

	if (t->has_group && !is_same && use->memory_peak_bytes.value <= t->group.memory_peak_bytes.value)
		return;
	if (!is_same)
		t->group = (struct group_use){ 0 };
	t->group_of.v2 = v2;
	t->group_of.v1 = v1;
	t->has_group = true;
	if (take_all(&t->group, use) || !is_same)
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
