/*
 * SPDX-License-Identifier: Apache-2.0
 * replay: restores a correlator from the entries of the write-ahead log; see wal.h. No length, count or flag is
 * trusted: an entry is read and checked as a whole before it changes anything.
 */
#include "correlate/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "correlate/cgroups.h"
#include "correlate/energy.h"
#include "correlate/facts.h"
#include "correlate/findings.h"
#include "correlate/process.h"
#include "correlate/runs.h"
#include "correlate/state.h"
#include "correlate/tasks.h"
#include "correlate/wal.h"
#include "correlate/wal_rows.h"
#include "correlate/work.h"

WAL_READER(cgroup, struct cgroup_path, CGROUP_ROWS)
WAL_READER(run, struct run, RUN_ROWS)
WAL_KEEPER(run, struct run, RUN_ROWS)
WAL_READER(task, struct task, TASK_ROWS)
WAL_KEEPER(task, struct task, TASK_ROWS)

/* Voids the state of all entries so far. */
static void
forget_all(struct correlator *c)
{
	struct process *p, *next_p;
	struct run *r, *next_r;

	DL_FOREACH_SAFE(c->processes, p, next_p)
		process_remove(c, p);
	cgroups_free(c);
	facts_forget(c, NULL);
	tasks_free(c);
	HASH_ITER(hh, c->runs, r, next_r) {
		if (r != c->whole)
			run_free(c, r);
	}
	if (c->whole != NULL) {
		finding_run_gone(c, c->whole);
		c->whole->failing = FAILING_NOT;
		c->whole->findings = c->whole->failed_tasks = c->whole->episodes = c->whole->episode_findings = 0;
		c->whole->root = (struct process_id){ 0 };
		c->whole->work = (struct work){ 0 };
	}
	failures_free(c);
	c->lost_events = c->lost_ends = 0;
	c->wal.replayed.incomplete = 0;
}

static int
replay_beginning(struct correlator *c, struct wal_reader *r)
{
	const char *boot = wal_get_string(r), *own = c->options.run_id;
	bool has_run = wal_get_max(r, 1);
	const char *run = has_run ? wal_get_string(r) : NULL;

	if (wal_reader_done(r) < 0)
		return -EBADMSG;
	forget_all(c);
	if (strcmp(boot, c->options.boot_id) != 0 || has_run != (own != NULL) ||
	    (has_run && strcmp(run, own) != 0)) {
		c->wal.replay = REPLAY_STALE;
		c->wal.has_begun = false;
		return -ESTALE;
	}
	c->wal.replay = REPLAY_OURS;
	c->wal.has_begun = true;
	c->wal.checkpoint = 1;
	return 0;
}

static int
replay_cgroup(struct correlator *c, struct wal_reader *r)
{
	struct cgroup_path read = { 0 }, *g;
	const char *path;

	cgroup_read(r, &read, 0);
	path = wal_get_string(r);
	if (wal_reader_done(r) < 0 || read.key.id == 0)
		return -EBADMSG;
	g = cgroup_find(c, read.key.id, read.key.is_v2);
	if (g == NULL)
		g = cgroup_add(c, read.key.id, read.key.is_v2, path, strlen(path));
	if (g == NULL)
		return -ENOMEM;
	g->cpus = read.cpus;
	g->memory_bytes = read.memory_bytes;
	g->memory_high = read.memory_high;
	g->users_names = read.users_names;
	g->only_task = read.only_task;
	/* The number of a task that is gone stays taken. */
	if (read.only_task != UINT64_MAX && read.only_task > c->next_task)
		c->next_task = read.only_task;
	return 0;
}

static void
drop_failure(struct correlator *c, struct failure **f)
{
	failure_unref(c, *f);
	*f = NULL;
}

/* Completes what an older log does not have. cpus: that the work was given. */
static void
complete_older(const struct correlator *c, const struct wal_reader *r, struct work *w, struct opt_double cpus)
{
	if (r->version >= WAL_VERSION_OWN_QUEUE)
		return;
	if (w->own.until_ns != 0)
		own_bill_assume(&w->own, w->start_ns, work_cpus(c, cpus));
	if (w->programs > 0)
		w->contention.cpus_ns = UINT64_MAX;
}

static int
replay_run(struct correlator *c, struct wal_reader *r)
{
	struct run read = { 0 }, *run;
	uint64_t flags = run_read(r, &read, 0);
	int error;

	if (wal_reader_done(r) < 0 || read.id[0] == '\0' ||
	    (c->whole != NULL) != ((flags & WAL_BIT(RUN_IS_WHOLE)) != 0) ||
	    (c->whole != NULL && strcmp(read.id, c->whole->id) != 0))
		return -EBADMSG;
	run = run_get(c, read.id, 0);
	if (run == NULL)
		return -ENOMEM;
	if (read.failing != FAILING_DUE)
		drop_failure(c, &run->failure);
	run->mark.logged_in = c->wal.checkpoint;
	complete_older(c, r, &read.work, read.cpus);
	error = run_keep(c, run, &read);
	run_restored(c, run);
	return error;
}

static int
replay_forget_run(struct correlator *c, struct wal_reader *r)
{
	const char *id = wal_get_name(r, RUN_ID_SIZE);
	struct run *run;

	if (wal_reader_done(r) < 0)
		return -EBADMSG;
	run = run_find(c, id);
	if (run == NULL || run->refs > 0 || run == c->whole)
		c->wal.replayed.incomplete++;
	else
		run_free(c, run);
	return 0;
}

static int
replay_losses(struct correlator *c, struct wal_reader *r)
{
	uint64_t events, ends;

	get_u64(r, &events);
	get_u64(r, &ends);

	if (wal_reader_done(r) < 0)
		return -EBADMSG;
	c->lost_events = events;
	c->lost_ends = ends;
	return 0;
}

static int
replay_fact(struct correlator *c, struct wal_reader *r)
{
	const char *id = wal_get_name(r, RUN_ID_SIZE), *key;
	struct run *run;
	uint64_t len;
	uint32_t n;

	get_u32(r, &n);
	get_u64(r, &len);
	if (r->is_bad || len == 0 || len != (uint64_t)(r->end - r->at))
		return -EBADMSG;
	key = (const char *)r->at;
	run = run_find(c, id);
	if (run == NULL) {
		c->wal.replayed.incomplete++;
		return 0;
	}
	return fact_restore(c, run, key, (size_t)len, n) != NULL ? 0 : -ENOMEM;
}

static int
replay_task(struct correlator *c, struct wal_reader *r)
{
	struct task read = { 0 }, *t;
	struct run *run;
	const char *run_id;
	uint64_t flags;

	get_u64(r, &read.number);
	run_id = wal_get_name(r, RUN_ID_SIZE);
	flags = task_read(r, &read, 0);
	if (wal_reader_done(r) < 0 || read.number == 0)
		return -EBADMSG;
	run = run_find(c, run_id);
	if (run == NULL) {
		c->wal.replayed.incomplete++;
		return 0;
	}
	t = task_find(c, read.number);
	if (t != NULL && (t->run != run || (t->id_key != NULL && strcmp(t->task_id, read.task_id) != 0)))
		return -EBADMSG;
	if (t == NULL)
		t = task_new(c, run, read.number);
	if (t == NULL)
		return -ENOMEM;
	if ((flags & WAL_BIT(TASK_HAS_ID_KEY)) == 0)
		task_unset_id_key(c, t);
	if (read.failing != FAILING_DUE)
		drop_failure(c, &t->failure);
	complete_older(c, r, &read.work, read.cpus);
	if (task_keep(c, t, &read) < 0)
		return -ENOMEM;
	if (flags & WAL_BIT(TASK_HAS_ID_KEY))
		task_set_id_key(c, t);
	t->mark.logged_in = c->wal.checkpoint;
	return 0;
}

static int
replay_forget_task(struct correlator *c, struct wal_reader *r)
{
	uint64_t number;
	struct task *t;

	get_u64(r, &number);
	if (wal_reader_done(r) < 0)
		return -EBADMSG;
	t = task_find(c, number);
	if (t != NULL) {	/* otherwise it was freed with its last process */
		t->has_ended = true;
		task_reap(c, t);
	}
	return 0;
}

static int
replay(struct correlator *c, enum wal_kind kind, struct wal_reader *r)
{
	if (kind == WAL_BEGIN)
		return replay_beginning(c, r);
	if (c->wal.replay != REPLAY_OURS)
		return c->wal.replay == REPLAY_STALE ? -ESTALE : -EBADMSG;
	switch (kind) {
	case WAL_BEGIN:
		break;
	case WAL_CGROUP:
		return replay_cgroup(c, r);
	case WAL_RUN:
		return replay_run(c, r);
	case WAL_TASK:
		return replay_task(c, r);
	case WAL_PROCESS:
		return replay_process(c, r);
	case WAL_USAGE:
		return replay_usage(c, r);
	case WAL_FORGET:
		return replay_forget(c, r);
	case WAL_FORGET_TASK:
		return replay_forget_task(c, r);
	case WAL_FORGET_RUN:
		return replay_forget_run(c, r);
	case WAL_LOSSES:
		return replay_losses(c, r);
	case WAL_FACT:
		return replay_fact(c, r);
	case WAL_FAILURE:
		return replay_failure(c, r);
	case WAL_KINDS:
		break;
	}
	return -EBADMSG;
}

int
correlator_replay(struct correlator *c, const void *data, size_t len)
{
	const uint8_t *bytes = data;
	struct replayed *replayed = &c->wal.replayed;
	int error = -EBADMSG;

	c->wal.is_replaying = true;
	if (len >= 2 && len <= WAL_MAX_BYTES && bytes[1] >= WAL_VERSION_FIRST && bytes[1] <= WAL_VERSION)
		error = replay(c, bytes[0], &(struct wal_reader){ bytes + 2, bytes + len, bytes[1], false });
	if (error == 0)
		replayed->entries++;
	else if (error == -ESTALE)
		replayed->stale++;
	else
		replayed->refused++;
	return error;
}

static int
by_gone(const void *a, const void *b)
{
	const struct process *x = *(struct process *const *)a, *y = *(struct process *const *)b;

	return (x->gone_ns > y->gone_ns) - (x->gone_ns < y->gone_ns);
}

/* Queues ended processes in the order in which they ended. */
static void
queue_gone(struct correlator *c)
{
	struct process **gone, *p;
	size_t n = 0;

	for (p = c->processes; p != NULL; p = p->next)
		n += p->gone_ns != 0;
	gone = calloc(n + 1, sizeof(struct process *));
	n = 0;
	for (p = c->processes; p != NULL; p = p->next) {
		if (p->gone_ns == 0)
			continue;
		if (gone != NULL)
			gone[n++] = p;
		else
			process_gone(c, p, p->gone_ns);	/* without memory: in any order */
	}
	if (gone != NULL)
		qsort(gone, n, sizeof(struct process *), by_gone);
	for (size_t i = 0; i < n; i++)
		process_gone(c, gone[i], gone[i]->gone_ns);
	free(gone);
}

void
correlator_replay_done(struct correlator *c, struct replayed *ret)
{
	struct replayed *replayed = &c->wal.replayed;
	struct process *p;
	struct task *t, *next;

	facts_replayed(c);
	queue_gone(c);
	HASH_ITER(hh, c->tasks, t, next)
		task_reap(c, t);	/* frees tasks without a process */
	if (c->whole != NULL) {
		c->all = c->whole->work;
		c->start_ns = c->whole->start_ns;
	}
	for (p = c->processes; p != NULL && c->whole == NULL; p = p->next)
		c->all.live += p->is_announced;
	memory_replayed(c);
	energy_replayed(c);
	replayed->processes = c->n_processes;
	if (ret != NULL)
		*ret = *replayed;
	failures_replayed(c);
	c->wal.is_replaying = false;
	findings_replayed(c);
}
