/*
 * SPDX-License-Identifier: Apache-2.0
 * Notes of the journal back into a fresh correlator; see journal.h. Trusts no length, count or
 * flag: a note is read whole before it changes anything.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "correlate/findings.h"
#include "correlate/journal.h"
#include "correlate/note_reader.h"
#include "correlate/replay.h"

/* All that notes told so far is void. */
static void
forget_all(struct correlator *c)
{
	struct process *p, *next_p;
	struct cgroup_path *g, *next_g;
	struct run *r, *next_r;

	HASH_ITER(hh, c->processes, p, next_p)
		process_remove(c, p);
	HASH_ITER(hh, c->cgroups, g, next_g) {
		HASH_DEL(c->cgroups, g);
		free(g);
	}
	c->cgroup_bytes = 0;
	facts_forget(c, NULL);
	tasks_free(c);
	HASH_ITER(hh, c->runs, r, next_r) {
		if (r != c->whole)
			run_free(c, r);
	}
	if (c->whole != NULL) {
		finding_run_gone(c, c->whole);
		c->whole->failing = FAILING_NOT;
		c->whole->findings = c->whole->failed_tasks = 0;
		c->whole->root = (struct process_id){ 0 };
		c->whole->work = (struct work){ 0 };
	}
	failures_free(c);
	c->lost_events = c->lost_ends = 0;
	c->journal.replayed.incomplete = 0;
}

static int
replay_beginning(struct correlator *c, struct note_reader *r)
{
	const char *boot = note_get_string(r), *own = c->options.run_id;
	bool has_run = note_get_max(r, 1);
	const char *run = note_get_string_if(r, has_run);

	if (note_reader_done(r) < 0)
		return -EBADMSG;
	forget_all(c);
	if (strcmp(boot, c->options.boot_id) != 0 || has_run != (own != NULL) ||
	    (has_run && strcmp(run, own) != 0)) {
		c->journal.replay = REPLAY_STALE;
		c->journal.has_begun = false;
		return -ESTALE;
	}
	c->journal.replay = REPLAY_OURS;
	c->journal.has_begun = true;
	c->journal.checkpoint = 1;
	return 0;
}

static int
replay_cgroup(struct correlator *c, struct note_reader *r)
{
	uint64_t id = note_get_u64(r), flags = note_get_max(r, 7);
	struct opt_double cpus = { flags & 2 ? note_get_double(r) : 0, flags & 2 };
	struct opt_u64 memory_bytes = { flags & 4 ? note_get_u64(r) : 0, flags & 4 };
	const char *path = note_get_string(r);
	struct cgroup_path *g;

	if (note_reader_done(r) < 0 || id == 0)
		return -EBADMSG;
	g = cgroup_find(c, id, flags & 1);
	if (g == NULL)
		g = cgroup_add(c, id, flags & 1, path, strlen(path));
	if (g == NULL)
		return -ENOMEM;
	g->cpus = cpus;
	g->memory_bytes = memory_bytes;
	return 0;
}

static enum failing
failing(bool is_due, bool is_over)
{
	return is_over ? FAILING_OVER : is_due ? FAILING_DUE : FAILING_NOT;
}

static void
let_go(struct correlator *c, struct failure **f)
{
	failure_unref(c, *f);
	*f = NULL;
}

static int
replay_run(struct correlator *c, struct note_reader *r)
{
	struct run told = { 0 }, *run;
	const char *id = note_get_name(r, RUN_ID_SIZE), *strings[RUN_STRINGS] = { 0 };
	uint64_t flags = note_get_max(r, RUN_FLAGS);

	told.strength = (enum engine_strength)note_get_max(r, STRENGTH_EXPLICIT);
	told.confidence = note_get_confidence(r);
	told.root = note_get_id(r);
	told.status = (int32_t)note_get_u32(r);
	told.start_ns = note_get_u64(r);
	told.lost_before = note_get_u64(r);
	if (flags & RUN_HAS_UID)
		told.uid = (struct opt_u64){ note_get_u64(r), true };
	if (flags & RUN_HAS_CPUS)
		told.cpus = (struct opt_double){ note_get_double(r), true };
	if (flags & RUN_HAS_MEMORY)
		told.memory_bytes = (struct opt_u64){ note_get_u64(r), true };
	note_get_work(r, &told.work);
	for (int i = 0; i < RUN_STRINGS; i++)
		strings[i] = note_get_string_if(r, flags & (uint64_t)RUN_FIRST_STRING << i);
	if (flags & RUN_HAS_FINDINGS) {
		told.findings = note_get_u32(r);
		told.failed_tasks = note_get_u32(r);
	}
	if (note_reader_done(r) < 0 || id[0] == '\0' || (c->whole != NULL) != ((flags & RUN_IS_WHOLE) != 0))
		return -EBADMSG;
	run = run_get(c, id);
	if (run == NULL)
		return -ENOMEM;
	run->strength = told.strength;
	run->confidence = told.confidence;
	run->root = told.root;
	run->status = told.status;
	run->start_ns = told.start_ns;
	run->lost_before = told.lost_before;
	run->uid = told.uid;
	run->cpus = told.cpus;
	run->memory_bytes = told.memory_bytes;
	run->work = told.work;
	run->root_ended = flags & RUN_ROOT_ENDED;
	run->has_status = flags & RUN_HAS_STATUS;
	run->has_started = flags & RUN_HAS_STARTED;
	run->has_ended = flags & RUN_HAS_ENDED;
	run->findings = told.findings;
	run->failed_tasks = told.failed_tasks;
	run->failing = failing(flags & RUN_FAILING_DUE, flags & RUN_FAILING_OVER);
	if (run->failing != FAILING_DUE)
		let_go(c, &run->failure);
	run->engine = kept_name(c, strings[0]);
	run->source = kept_name(c, strings[1]);
	run->inner = kept_name(c, strings[2]);
	run->noted_in = c->journal.checkpoint;
	if (state_set_string(&run->pipeline, strings[3]) < 0 || state_set_string(&run->name, strings[4]) < 0 ||
	    state_set_string(&run->command, strings[5]) < 0 || state_set_string(&run->work_dir, strings[6]) < 0 ||
	    state_set_string(&run->root_dir, strings[7]) < 0 || state_set_string(&run->scheduler, strings[8]) < 0 ||
	    state_set_string(&run->job_id, strings[9]) < 0 || state_set_string(&run->parent_id, strings[10]) < 0 ||
	    state_set_string(&run->task, strings[11]) < 0 || state_set_string(&run->sample, strings[12]) < 0)
		return -ENOMEM;
	return 0;
}

static int
replay_forget_run(struct correlator *c, struct note_reader *r)
{
	const char *id = note_get_name(r, RUN_ID_SIZE);
	struct run *run;

	if (note_reader_done(r) < 0)
		return -EBADMSG;
	run = run_find(c, id);
	if (run == NULL || run->refs > 0 || run == c->whole)
		c->journal.replayed.incomplete++;
	else
		run_free(c, run);
	return 0;
}

static int
replay_losses(struct correlator *c, struct note_reader *r)
{
	uint64_t events = note_get_u64(r), ends = note_get_u64(r);

	if (note_reader_done(r) < 0)
		return -EBADMSG;
	c->lost_events = events;
	c->lost_ends = ends;
	return 0;
}

static int
replay_fact(struct correlator *c, struct note_reader *r)
{
	const char *id = note_get_name(r, RUN_ID_SIZE), *key;
	uint32_t n = note_get_u32(r);
	uint64_t len = note_get_u64(r);
	struct fact *f;
	struct run *run;

	if (r->is_bad || len == 0 || len != (uint64_t)(r->end - r->at))
		return -EBADMSG;
	key = (const char *)r->at;
	run = run_find(c, id);
	if (run == NULL) {
		c->journal.replayed.incomplete++;
		return 0;
	}
	f = fact_get(c, run, key, (size_t)len);
	if (f == NULL)
		return -ENOMEM;
	f->n = n;
	return 0;
}

static int
replay_task(struct correlator *c, struct note_reader *r)
{
	uint64_t number = note_get_u64(r), flags;
	const char *run_id = note_get_name(r, RUN_ID_SIZE), *task_id, *name, *sample, *engine, *source, *work_dir,
	    *scheduler, *job_id;
	struct process_id root = note_get_id(r);
	struct opt_double cpus = { 0 };
	struct opt_u64 memory_bytes = { 0 };
	struct opt_i32 attempt = { 0 };
	struct work work = { 0 };
	double confidence;
	uint32_t status, oom_kills;
	struct run *run;
	struct task *t;

	flags = note_get_max(r, TASK_FLAGS);
	status = note_get_u32(r);
	confidence = note_get_confidence(r);
	if (flags & TASK_HAS_ATTEMPT)
		attempt = (struct opt_i32){ (int32_t)note_get_u32(r), true };
	if (flags & TASK_HAS_CPUS)
		cpus = (struct opt_double){ note_get_double(r), true };
	if (flags & TASK_HAS_MEMORY)
		memory_bytes = (struct opt_u64){ note_get_u64(r), true };
	note_get_work(r, &work);
	task_id = note_get_name(r, ENGINE_NAME_SIZE);
	name = note_get_name(r, ENGINE_NAME_SIZE);
	sample = note_get_name(r, ENGINE_NAME_SIZE);
	engine = note_get_string_if(r, flags & TASK_HAS_ENGINE);
	source = note_get_string_if(r, flags & TASK_HAS_SOURCE);
	work_dir = note_get_string_if(r, flags & TASK_HAS_WORK_DIR);
	scheduler = note_get_string_if(r, flags & TASK_HAS_SCHEDULER);
	job_id = note_get_string_if(r, flags & TASK_HAS_JOB);
	oom_kills = flags & TASK_HAS_OOM_KILLS ? note_get_u32(r) : 0;
	if (note_reader_done(r) < 0 || number == 0)
		return -EBADMSG;
	run = run_find(c, run_id);
	if (run == NULL) {
		c->journal.replayed.incomplete++;
		return 0;
	}
	t = task_find(c, number);
	if (t != NULL && t->run != run)
		return -EBADMSG;
	if (t == NULL)
		t = task_new(c, run, number);
	if (t == NULL || state_set_string(&t->work_dir, work_dir) < 0 ||
	    state_set_string(&t->scheduler, scheduler) < 0 ||
	    state_set_string(&t->job_id, job_id) < 0)
		return -ENOMEM;
	if (t->id_key != NULL && (strcmp(t->task_id, task_id) != 0))
		return -EBADMSG;
	t->root = root;
	strcpy(t->task_id, task_id);
	strcpy(t->name, name);
	strcpy(t->sample, sample);
	if (flags & TASK_HAS_ID_KEY)
		task_set_id_key(c, t);
	else
		task_unset_id_key(c, t);
	t->attempt = attempt;
	t->cpus = cpus;
	t->memory_bytes = memory_bytes;
	t->engine = kept_name(c, engine);
	t->source = kept_name(c, source);
	t->confidence = confidence;
	t->status = (int32_t)status;
	t->work = work;
	t->is_named = flags & TASK_IS_NAMED;
	t->has_started = flags & TASK_HAS_STARTED;
	t->has_ended = flags & TASK_HAS_ENDED;
	t->root_ended = flags & TASK_ROOT_ENDED;
	t->oom_kills = oom_kills;
	t->failing = failing(flags & TASK_FAILING_DUE, flags & TASK_FAILING_OVER);
	if (t->failing != FAILING_DUE)
		let_go(c, &t->failure);
	t->noted_in = c->journal.checkpoint;
	return 0;
}

static int
replay_forget_task(struct correlator *c, struct note_reader *r)
{
	uint64_t number = note_get_u64(r);
	struct task *t;

	if (note_reader_done(r) < 0)
		return -EBADMSG;
	t = task_find(c, number);
	if (t != NULL) {	/* else it went with its last process */
		t->has_ended = true;
		task_reap(c, t);
	}
	return 0;
}

static int
replay(struct correlator *c, enum note_kind kind, struct note_reader *r)
{
	if (kind == NOTE_BEGIN)
		return replay_beginning(c, r);
	if (c->journal.replay != REPLAY_OURS)
		return c->journal.replay == REPLAY_STALE ? -ESTALE : -EBADMSG;
	switch (kind) {
	case NOTE_BEGIN:
		break;
	case NOTE_CGROUP:
		return replay_cgroup(c, r);
	case NOTE_RUN:
		return replay_run(c, r);
	case NOTE_TASK:
		return replay_task(c, r);
	case NOTE_PROCESS:
		return replay_process(c, r);
	case NOTE_USAGE:
		return replay_usage(c, r);
	case NOTE_FORGET:
		return replay_forget(c, r);
	case NOTE_FORGET_TASK:
		return replay_forget_task(c, r);
	case NOTE_FORGET_RUN:
		return replay_forget_run(c, r);
	case NOTE_LOSSES:
		return replay_losses(c, r);
	case NOTE_FACT:
		return replay_fact(c, r);
	case NOTE_FAILURE:
		return replay_failure(c, r);
	case NOTE_KINDS:
		break;
	}
	return -EBADMSG;
}

int
correlator_replay(struct correlator *c, const void *data, size_t len)
{
	const uint8_t *bytes = data;
	struct replayed *told = &c->journal.replayed;
	int error = -EBADMSG;

	c->journal.is_replaying = true;
	if (len >= 2 && len <= NOTE_MAX_BYTES && bytes[1] >= NOTE_VERSION_FIRST && bytes[1] <= NOTE_VERSION)
		error = replay(c, bytes[0], &(struct note_reader){ bytes + 2, bytes + len, false });
	if (error == 0)
		told->notes++;
	else if (error == -ESTALE)
		told->stale++;
	else
		told->refused++;
	return error;
}

static int
by_gone(const void *a, const void *b)
{
	const struct process *x = *(struct process *const *)a, *y = *(struct process *const *)b;

	return (x->gone_ns > y->gone_ns) - (x->gone_ns < y->gone_ns);
}

/* Those that are gone stand in the order in which they went. */
static void
queue_gone(struct correlator *c)
{
	struct process **gone, *p;
	size_t n = 0;

	for (p = c->processes; p != NULL; p = p->hh.next)
		n += p->gone_ns != 0;
	gone = calloc(n + 1, sizeof(struct process *));
	n = 0;
	for (p = c->processes; p != NULL; p = p->hh.next) {
		if (p->gone_ns == 0)
			continue;
		if (gone != NULL)
			gone[n++] = p;
		else
			process_gone(c, p);	/* in any order, then */
	}
	if (gone != NULL)
		qsort(gone, n, sizeof(struct process *), by_gone);
	for (size_t i = 0; i < n; i++)
		process_gone(c, gone[i]);
	free(gone);
}

void
correlator_replay_done(struct correlator *c, struct replayed *ret)
{
	struct replayed *told = &c->journal.replayed;
	struct process *p;
	struct task *t, *next;

	queue_gone(c);
	HASH_ITER(hh, c->tasks, t, next)
		task_reap(c, t);	/* whoever no process came for */
	if (c->whole != NULL) {
		c->all = c->whole->work;
		c->start_ns = c->whole->start_ns;
	}
	for (p = c->processes; p != NULL && c->whole == NULL; p = p->hh.next)
		c->all.live += p->is_announced;
	told->processes = HASH_COUNT(c->processes);
	if (ret != NULL)
		*ret = *told;
	failures_replayed(c);
	c->findings_due = findings_due(c);
}
