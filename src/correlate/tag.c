/*
 * SPDX-License-Identifier: Apache-2.0
 * Attribution by hand: gives a process and its descendants to a run.
 */
#include <errno.h>
#include <string.h>

#include "correlate/attribute.h"
#include "correlate/process.h"
#include "correlate/program_record.h"
#include "correlate/runs.h"
#include "correlate/state.h"
#include "correlate/wal.h"

/* Returns the process that has this pid now; a zombie keeps its pid. */
static struct process *
live_process(struct correlator *c, uint32_t pid)
{
	struct process *p, *found = NULL;

	for (p = c->processes; p != NULL; p = p->next) {
		if (p->id.pid == pid && p->gone_ns == 0 && (found == NULL || p->id.start_ns > found->id.start_ns))
			found = p;
	}
	return found;
}

static bool
descends(struct correlator *c, const struct process *p, const struct process *from)
{
	for (unsigned depth = 0; p != NULL && depth < 1024; depth++) {
		if (p == from)
			return true;
		p = process_of(c, &p->parent);
	}
	return false;
}

bool
correlator_has_descendants(struct correlator *c, uint32_t pid)
{
	const struct process *from = live_process(c, pid);

	if (from == NULL)
		return false;
	for (const struct process *p = c->processes; p != NULL; p = p->next) {
		if (p != from && !p->is_over && p->gone_ns == 0 && descends(c, p, from))
			return true;
	}
	return false;
}

static bool
is_left_out(const struct process *p, const struct tag *tag)
{
	struct belongings of;

	if (tag->leaves_out == NULL)
		return false;
	process_belongings(p, &of);
	return tag->leaves_out(&of, tag->arg);
}

int
correlator_tag(struct correlator *c, uint32_t pid, const struct tag *tag, uint64_t now_ns)
{
	struct process *root = live_process(c, pid), *p;
	struct run *r;
	int n = 0;

	if (root == NULL)
		return -ESRCH;
	if (strlen(tag->run_id) >= RUN_ID_SIZE)
		return -EINVAL;
	r = run_get(c, tag->run_id,
	    root->has_context ? run_owner_by_hand(root->context.uid, root->context.user_uid) : 0);
	if (r == NULL)
		return -ENOSPC;
	if (run_tag(c, r, tag, root) < 0)
		return -ENOMEM;
	for (p = c->processes; p != NULL; p = p->next) {
		if (p->is_over || !descends(c, p, root) || (p != root && is_left_out(p, tag)))
			continue;
		attribute_by_hand(c, p, r, p == root, now_ns);
		n++;
	}
	wal_flush(c);
	return n;
}

bool
correlator_show(struct correlator *c, uint32_t pid, void (*fn)(const struct program_record *r, void *arg), void *arg)
{
	struct process *p = live_process(c, pid);

	if (p == NULL || p->is_excluded)
		return false;
	program_show(c, p, fn, arg);
	return true;
}

bool
correlator_surroundings(struct correlator *c, uint32_t pid, struct surroundings *ret)
{
	const struct process *p = live_process(c, pid);

	if (p == NULL)
		return false;
	ret->ppid = p->ppid;
	ret->is_inside = p->is_inside;
	ret->is_forked = p->is_forked;
	process_belongings(p, &ret->of);
	ret->engine = p->run == NULL ? NULL : p->run->inner != NULL ? p->run->inner : p->run->engine;
	return true;
}
