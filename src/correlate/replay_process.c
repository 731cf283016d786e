/*
 * SPDX-License-Identifier: Apache-2.0
 * What notes tell of processes, and of how they failed.
 */
#include <errno.h>
#include <string.h>

#include "correlate/findings.h"
#include "correlate/journal.h"
#include "correlate/replay.h"

/* Where there is no room for another word it is not known. */
static const char *
get_kept(struct correlator *c, struct note_reader *r, bool is_there)
{
	return is_there ? kept_name(c, note_get_string(r)) : NULL;
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

int
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

int
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

int
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

int
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
