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

/* Where there is no room for another word it is not known. */
static const char *
get_kept(struct correlator *c, struct note_reader *r, bool is_there)
{
	return is_there ? kept_name(c, note_get_string(r)) : NULL;
}

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
	if (t == NULL || state_set_string(&t->work_dir, work_dir) < 0 || state_set_string(&t->scheduler, scheduler) < 0 ||
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

/* The text that a note holds, in place but for the table of arguments. */
static void
get_text(struct correlator *c, struct note_reader *r, struct text_parts *x)
{
	uint64_t flags = note_get_max(r, TEXT_FLAGS);
	uint64_t argc = note_get_max(r, (uint64_t)(r->end - r->at));	/* each takes a byte at least */
	uint64_t n_variables = note_get_max(r, (uint64_t)(r->end - r->at) / 2);
	struct named_text *variables;
	const char **argv = NULL;

	arena_reset(&c->arena);
	x->is_tool = flags & TEXT_IS_TOOL;
	x->argv_truncated = flags & TEXT_ARGV_TRUNCATED;
	if (flags & TEXT_HAS_ARGV) {
		argv = arena_alloc(&c->arena, (size_t)(argc + 1) * sizeof(*argv));
		if (argv == NULL)
			r->is_bad = true;
		for (uint64_t i = 0; i < argc && !r->is_bad; i++)
			argv[i] = note_get_string(r);
	} else if (argc != 0) {
		r->is_bad = true;
	}
	x->argv = argv;
	x->argc = (size_t)argc;
	x->exe = note_get_string_if(r, flags & TEXT_HAS_EXE);
	x->comm = note_get_string_if(r, flags & TEXT_HAS_COMM);
	x->cwd = note_get_string_if(r, flags & TEXT_HAS_CWD);
	x->tool = note_get_string_if(r, flags & TEXT_HAS_TOOL);
	x->words.subcommand = note_get_string_if(r, flags & TEXT_HAS_SUBCOMMAND);
	x->words.script = note_get_string_if(r, flags & TEXT_HAS_SCRIPT);
	x->words.jar = note_get_string_if(r, flags & TEXT_HAS_JAR);
	x->words.class = note_get_string_if(r, flags & TEXT_HAS_CLASS);
	x->trace_id = note_get_string_if(r, flags & TEXT_HAS_TRACE_ID);
	x->span_id = note_get_string_if(r, flags & TEXT_HAS_SPAN_ID);
	variables = arena_alloc(&c->arena, (size_t)(n_variables + 1) * sizeof(*variables));
	if (variables == NULL)
		r->is_bad = true;
	for (uint64_t i = 0; i < n_variables && !r->is_bad; i++) {
		variables[i].name = note_get_string(r);
		variables[i].value = note_get_string(r);
	}
	x->variables = variables;
	x->n_variables = (size_t)n_variables;
	x->tool_rule = get_kept(c, r, flags & TEXT_HAS_RULE);
}

/* A process note, read. */
struct told {
	struct process p;		/* its values; no pointers */
	uint64_t flags;
	uint64_t task;
	const char *run;
	enum note_text place;
	struct process_id holder;
	struct text_parts parts;
	struct usage before;
	uint64_t child_end_ns;
};

static void
get_process(struct correlator *c, struct note_reader *r, struct told *t)
{
	struct process *p = &t->p;
	uint64_t start_ns, flags, v[7];

	p->id = note_get_id(r);
	start_ns = p->id.start_ns;
	t->flags = flags = note_get_max(r, PROCESS_FLAGS);
	p->self = (struct program_key){ start_ns, (uint32_t)p->id.pid, note_get_u32(r) };
	p->parent = note_get_ancestor(r, start_ns);
	p->anchor = flags & PROCESS_ANCHOR_IS_PARENT ? p->parent : note_get_ancestor(r, start_ns);
	p->above = flags & PROCESS_ABOVE_IS_PARENT ? p->parent : note_get_ancestor(r, start_ns);
	p->ppid = note_get_u32(r);
	p->start_us = (int64_t)note_get_u64(r);
	p->program_start_us = (int64_t)((uint64_t)p->start_us + note_get_u64(r));
	p->program_start_ns = start_ns + note_get_u64(r);
	if (flags & PROCESS_IS_OBSERVED)
		p->observed_us = (int64_t)((uint64_t)p->start_us + note_get_u64(r));
	if (flags & PROCESS_IS_GONE)
		p->gone_ns = start_ns + note_get_u64(r);
	if (flags & PROCESS_IS_UNSEEN)
		p->unseen_since_ns = start_ns + note_get_u64(r);
	p->has_context = flags & PROCESS_HAS_CONTEXT;
	p->is_forked = flags & PROCESS_IS_FORKED;
	p->is_announced = flags & PROCESS_IS_ANNOUNCED;
	p->is_driver = flags & PROCESS_IS_DRIVER;
	p->is_over = flags & PROCESS_IS_OVER;
	p->is_base_known = flags & PROCESS_IS_BASE_KNOWN;
	p->was_usage_sent = flags & PROCESS_WAS_USAGE_SENT;
	p->is_overhead = flags & PROCESS_IS_OVERHEAD;
	p->is_excluded = flags & PROCESS_IS_EXCLUDED;
	p->is_inside = flags & PROCESS_IS_INSIDE;
	p->is_engine = flags & PROCESS_IS_ENGINE;
	p->has_failed = flags & PROCESS_HAS_FAILED;
	if (p->has_context) {
		note_get_numbers(r, v, 7);
		for (int i = 0; i < 5; i++)
			r->is_bad |= v[i] > UINT32_MAX;
		p->context = (struct program_context){ (uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2],
			(uint32_t)v[3], (uint32_t)v[4], v[5], v[6] };
	}
	if (flags & PROCESS_HAS_TASK)
		t->task = note_get_u64(r);
	else if (flags & PROCESS_HAS_RUN)
		t->run = note_get_name(r, RUN_ID_SIZE);
	if (flags & PROCESS_HAS_BASE) {
		note_get_counters(r, &p->base.counters);
		p->base.cpu.user_ns = note_get_u64(r);
		p->base.cpu.system_ns = note_get_u64(r);
	}
	if (flags & PROCESS_HAS_SENT) {
		note_get_usage(r, &p->sent);
		p->sent_ns = start_ns + note_get_u64(r);
	}
	if (flags & PROCESS_HAS_LATEST)
		note_get_usage(r, &p->latest);
	else if (p->was_usage_sent)
		p->latest = p->sent;
	t->place = (enum note_text)note_get_max(r, NOTE_TEXTS - 1);
	if (t->place == NOTE_TEXT_OF)
		t->holder = note_get_id(r);
	else if (t->place == NOTE_TEXT_HERE)
		get_text(c, r, &t->parts);
	if (flags & PROCESS_HAS_TITLE)
		note_get_usage(r, &t->before);
	if (flags & PROCESS_HAS_FAILED_CHILD) {
		p->child_begin_ns = note_get_u64(r);
		t->child_end_ns = note_get_u64(r);
	}
	if (p->id.pid == 0 || (p->is_over && p->is_announced))
		r->is_bad = true;
}

static struct text *
told_text(struct correlator *c, const struct told *t)
{
	struct process *holder;

	if (t->place != NOTE_TEXT_OF)
		return program_text_of(c, &t->parts);
	holder = process_find(c, t->holder.start_ns, t->holder.pid);
	if (holder == NULL || holder->text == NULL) {
		c->journal.replayed.incomplete++;
		return NULL;
	}
	return program_text_ref(holder->text);
}

/* What a process has of failures lives through a note of it, but for that of programs before its own. */
static void
keep_failures(struct correlator *c, struct process *p, struct told *t)
{
	if (p->self.index != t->p.self.index || (t->p.is_over && !t->p.has_failed))
		failures_exec(c, p);
	t->p.failures = p->failures;
	if (p->child_begin_ns > t->p.child_begin_ns)
		t->p.child_begin_ns = p->child_begin_ns;	/* as the notes of its children tell */
}

static int
replay_process(struct correlator *c, struct note_reader *r)
{
	struct told t = { 0 };
	struct process *p;
	struct task *task = NULL;
	struct run *run = NULL;
	struct text *text = NULL;
	struct subject s;

	get_process(c, r, &t);
	if (note_reader_done(r) < 0)
		return -EBADMSG;
	p = process_find(c, t.p.id.start_ns, t.p.id.pid);
	if (t.place == NOTE_TEXT_HERE || t.place == NOTE_TEXT_OF) {
		text = told_text(c, &t);
		if (text == NULL && t.place == NOTE_TEXT_HERE)
			return -ENOMEM;
	} else if (t.place == NOTE_TEXT_KEPT) {
		if (p == NULL || p->text == NULL)
			c->journal.replayed.incomplete++;
		else
			text = program_text_ref(p->text);
	}
	if (p == NULL)
		p = process_new(c, &t.p.id);
	if (p == NULL) {
		program_text_unref(c, text);
		return -ENOMEM;
	}
	if (t.flags & PROCESS_HAS_TASK) {
		task = task_find(c, t.task);
		run = task != NULL ? task->run : NULL;
	} else if (t.flags & PROCESS_HAS_RUN) {
		run = run_find(c, t.run);
	}
	c->journal.replayed.incomplete += (t.flags & PROCESS_HAS_RUN) != 0 && run == NULL;
	program_text_unref(c, p->text);
	task_assign(c, p, task);
	run_assign(c, p, run);
	location_unref(c, p->location);
	title_forget(p);
	keep_failures(c, p, &t);
	t.p.hh = p->hh;
	t.p.pass = p->pass;
	t.p.task = task;
	t.p.run = run;
	t.p.location = NULL;
	t.p.text = text;
	t.p.is_text_noted = text != NULL;
	t.p.noted_in = c->journal.checkpoint;
	*p = t.p;
	location_set(c, p, process_of(c, &p->parent), !p->is_forked);
	if (!p->is_forked) {
		program_subject(c, p, &s);
		p->location = location_refine(c, p->location, &s);
	}
	if (t.flags & PROCESS_HAS_TITLE && title_of(p) != NULL) {
		p->title->before = t.before;
		p->title->is_taken = true;
	}
	if (t.place == NOTE_TEXT_HERE) {
		text->noted_by = p->id;
		text->noted_in = c->journal.checkpoint;
	}
	if (t.flags & PROCESS_WAS_SHOWN && p->has_context) {	/* in the order of program_emit() */
		cgroup_use(c, p->context.cgroup_v2, true);
		cgroup_use(c, p->context.cgroup_v1, false);
	}
	failures_known_begin(c, p);
	failures_child_ended(p, t.child_end_ns);
	return 0;
}

static int
replay_failure(struct correlator *c, struct note_reader *r)
{
	struct failure told = { .program = note_get_key(r) }, *f, *of = NULL;
	struct program_key of_key = { 0 };
	const char *text[4];
	uint64_t flags = note_get_max(r, FAILURE_FLAGS);

	told.status = (int32_t)note_get_u32(r);
	told.begin_ns = note_get_u64(r);
	told.end_ns = note_get_u64(r);
	told.task_root = note_get_u64(r);
	told.skipped = note_get_u32(r);
	if (flags & FAILURE_HAS_PEAK)
		told.peak_bytes = (struct opt_u64){ note_get_u64(r), true };
	if (flags & FAILURE_HAS_LIMIT)
		told.limit_bytes = (struct opt_u64){ note_get_u64(r), true };
	if (flags & FAILURE_HAS_OF)
		of_key = note_get_key(r);
	if (flags & FAILURE_HAS_PARENT)
		told.parent = note_get_key(r);
	for (int i = 0; i < 4; i++)
		text[i] = note_get_string(r);
	if (note_reader_done(r) < 0 || told.program.pid == 0 || told.begin_ns > told.end_ns)
		return -EBADMSG;
	if (flags & FAILURE_HAS_OF) {
		of = failure_find(c, &of_key);
		c->journal.replayed.incomplete += of == NULL;
	}
	failure_ref(of);	/* whatever goes to make room */
	f = failure_get(c, &told.program, text);
	if (f == NULL || failure_set_of(c, f, of) < 0) {
		failure_unref(c, of);
		return f == NULL ? -ENOMEM : -EBADMSG;
	}
	failure_unref(c, of);
	f->status = told.status;
	f->begin_ns = told.begin_ns;
	f->end_ns = told.end_ns;
	f->task_root = told.task_root;
	f->skipped = told.skipped;
	f->peak_bytes = told.peak_bytes;
	f->limit_bytes = told.limit_bytes;
	f->is_oom = flags & FAILURE_IS_OOM;
	f->is_engine = flags & FAILURE_IS_ENGINE;
	f->is_run_root = flags & FAILURE_IS_RUN_ROOT;
	f->noted_in = c->journal.checkpoint;
	failure_attach(c, f, &told.parent);
	return 0;
}

static int
replay_usage(struct correlator *c, struct note_reader *r)
{
	struct process_id id = note_get_id(r);
	uint64_t flags = note_get_max(r, 3), after_ns;
	struct usage sent = { 0 }, latest = { 0 };
	struct process *p;

	note_get_usage(r, &sent);
	after_ns = note_get_u64(r);
	if (flags & 2)
		note_get_usage(r, &latest);
	else if (flags & 1)
		latest = sent;
	if (note_reader_done(r) < 0)
		return -EBADMSG;
	p = process_find(c, id.start_ns, id.pid);
	if (p == NULL || !p->is_announced) {
		c->journal.replayed.incomplete++;
		return 0;
	}
	p->sent = sent;
	p->sent_ns = id.start_ns + after_ns;
	p->was_usage_sent = flags & 1;
	p->latest = latest;
	return 0;
}

static int
replay_forget(struct correlator *c, struct note_reader *r)
{
	struct process_id id = note_get_id(r);
	struct process *p;

	if (note_reader_done(r) < 0)
		return -EBADMSG;
	p = process_find(c, id.start_ns, id.pid);
	if (p != NULL)
		process_remove(c, p);
	else
		c->journal.replayed.incomplete++;
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
}

