/*
 * SPDX-License-Identifier: Apache-2.0
 * replay_process: entries of processes, of their usage and of their failures.
 */
#include <errno.h>
#include <string.h>

#include "correlate/cgroups.h"
#include "correlate/cputime.h"
#include "correlate/findings.h"
#include "correlate/kills.h"
#include "correlate/location.h"
#include "correlate/process.h"
#include "correlate/program_record.h"
#include "correlate/program_text.h"
#include "correlate/replay.h"
#include "correlate/runs.h"
#include "correlate/state.h"
#include "correlate/tasks.h"
#include "correlate/title.h"
#include "correlate/wal.h"
#include "correlate/wal_rows.h"
#include "correlate/work.h"

WAL_READER(process, struct process, PROCESS_ROWS)
WAL_READER(usage, struct process, PROCESS_USAGE_ROWS)
WAL_READER(text, struct text_parts, TEXT_ROWS)
WAL_READER(failure, struct failure, FAILURE_ROWS)
WAL_KEEPER(failure, struct failure, FAILURE_ROWS)

/* Reads a text; strings stay in the entry, the table of arguments is in the arena. */
static void
get_text(struct correlator *c, struct wal_reader *r, struct text_parts *x)
{
	uint64_t flags = wal_get_max(r, WAL_BIT(TEXT_FLAGS) - 1);
	uint64_t argc = wal_get_max(r, (uint64_t)(r->end - r->at));	/* each takes at least one byte */
	uint64_t n_variables = wal_get_max(r, (uint64_t)(r->end - r->at) / 2);
	struct named_text *variables;
	const char **argv = NULL;

	arena_reset(&c->arena);
	if (flags & WAL_BIT(TEXT_HAS_ARGV)) {
		argv = arena_alloc(&c->arena, (size_t)(argc + 1) * sizeof(*argv));
		if (argv == NULL)
			r->is_bad = true;
		for (uint64_t i = 0; i < argc && !r->is_bad; i++)
			argv[i] = wal_get_string(r);
	} else if (argc != 0) {
		r->is_bad = true;
	}
	x->argv = argv;
	x->argc = (size_t)argc;
	x->argv_truncated = flags & WAL_BIT(TEXT_ARGV_TRUNCATED);
	text_read(r, x, flags);
	variables = arena_alloc(&c->arena, (size_t)(n_variables + 1) * sizeof(*variables));
	if (variables == NULL)
		r->is_bad = true;
	for (uint64_t i = 0; i < n_variables && !r->is_bad; i++) {
		variables[i].name = wal_get_string(r);
		variables[i].value = wal_get_string(r);
	}
	x->variables = variables;
	x->n_variables = (size_t)n_variables;
	/* Without room for another name the rule is unknown. */
	x->tool_rule = flags & WAL_BIT(TEXT_HAS_RULE) ? kept_name(c, wal_get_string(r)) : NULL;
}

/* A process entry, as read. */
struct process_entry {
	struct process p;		/* values; its pointers are not set */
	uint64_t flags;
	uint64_t task;
	const char *run;
	enum wal_text text_source;
	struct process_id holder;
	struct text_parts parts;
	struct usage before;
	uint64_t child_end_ns;
	struct kill kill;		/* signal 0: none */
};

static void
get_process(struct correlator *c, struct wal_reader *r, struct process_entry *t)
{
	struct process *p = &t->p;
	uint64_t flags = process_read(r, p, 0);

	t->flags = flags;
	p->is_elevated |= r->version < WAL_VERSION_ELEVATED;
	p->self.start_ns = p->id.start_ns;
	p->self.pid = (uint32_t)p->id.pid;
	if (flags & WAL_BIT(PROCESS_ANCHOR_IS_PARENT))
		p->anchor = p->parent;
	if (flags & WAL_BIT(PROCESS_ABOVE_IS_PARENT))
		p->above = p->parent;
	if (flags & WAL_BIT(PROCESS_HAS_TASK))
		get_u64(r, &t->task);
	else if (flags & WAL_BIT(PROCESS_HAS_RUN))
		t->run = wal_get_name(r, RUN_ID_SIZE);
	usage_read(r, p, flags);
	if ((flags & WAL_BIT(PROCESS_HAS_LATEST)) == 0 && p->was_usage_sent)
		p->latest = p->sent;
	t->text_source = (enum wal_text)wal_get_max(r, WAL_TEXTS - 1);
	if (t->text_source == WAL_TEXT_OF)
		get_id(r, &t->holder);
	else if (t->text_source == WAL_TEXT_HERE)
		get_text(c, r, &t->parts);
	if (flags & WAL_BIT(PROCESS_HAS_TITLE))
		get_usage(r, &t->before);
	if (flags & WAL_BIT(PROCESS_HAS_FAILED_CHILD)) {
		get_u64(r, &p->child_begin_ns);
		get_u64(r, &t->child_end_ns);
	}
	if (flags & WAL_BIT(PROCESS_IS_KILLED))
		get_kill(r, &t->kill);
	if (p->id.pid == 0 || (p->is_over && p->is_announced) || (p->is_start_due && !p->is_announced))
		r->is_bad = true;
}

static struct text *
entry_text(struct correlator *c, const struct process_entry *t)
{
	struct process *holder;

	if (t->text_source != WAL_TEXT_OF)
		return program_text_of(c, &t->parts);
	holder = process_find(c, t->holder.start_ns, t->holder.pid);
	if (holder == NULL || holder->text == NULL) {
		c->wal.replayed.incomplete++;
		return NULL;
	}
	return program_text_ref(holder->text);
}

/* Keeps a process's failures across an entry of it, except those of its programs before this one. */
static void
keep_failures(struct correlator *c, struct process *p, struct process_entry *t)
{
	if (p->self.index != t->p.self.index || (t->p.is_over && !t->p.has_failed))
		failures_exec(c, p);
	if (p->self.index != t->p.self.index || !t->p.is_over || !t->p.has_failed)
		failures_disown(c, p);
	t->p.failures = p->failures;
	if (p->child_begin_ns > t->p.child_begin_ns)
		t->p.child_begin_ns = p->child_begin_ns;	/* from entries of its children */
}

int
replay_process(struct correlator *c, struct wal_reader *r)
{
	struct process_entry t = { 0 };
	struct process *p;
	struct task *task = NULL;
	struct run *run = NULL;
	struct text *text = NULL;
	struct candidate s;

	get_process(c, r, &t);
	if (wal_reader_done(r) < 0)
		return -EBADMSG;
	p = process_find(c, t.p.id.start_ns, t.p.id.pid);
	if (t.text_source == WAL_TEXT_HERE || t.text_source == WAL_TEXT_OF) {
		text = entry_text(c, &t);
		if (text == NULL && t.text_source == WAL_TEXT_HERE)
			return -ENOMEM;
	} else if (t.text_source == WAL_TEXT_KEPT) {
		if (p == NULL || p->text == NULL)
			c->wal.replayed.incomplete++;
		else
			text = program_text_ref(p->text);
	}
	if (p == NULL)
		p = process_new(c, &t.p.id);
	if (p == NULL) {
		program_text_unref(c, text);
		return -ENOMEM;
	}
	if (t.flags & WAL_BIT(PROCESS_HAS_TASK)) {
		task = task_find(c, t.task);
		run = task != NULL ? task->run : NULL;
	} else if (t.flags & WAL_BIT(PROCESS_HAS_RUN)) {
		run = run_find(c, t.run);
	}
	c->wal.replayed.incomplete += (t.flags & WAL_BIT(PROCESS_HAS_RUN)) != 0 && run == NULL;
	program_text_unref(c, p->text);
	task_assign(c, p, task);
	run_assign(c, p, run);
	location_unref(c, p->location);
	title_forget(p);
	kill_forget(p);
	keep_failures(c, p, &t);
	t.p.same_slot = p->same_slot;
	t.p.prev = p->prev;
	t.p.next = p->next;
	t.p.pass = p->pass;
	t.p.task = task;
	t.p.run = run;
	t.p.location = NULL;
	t.p.text = text;
	t.p.is_text_logged = text != NULL;
	t.p.mark.logged_in = c->wal.checkpoint;
	*p = t.p;
	location_set(c, p, process_of(c, &p->parent), !p->is_forked);
	if (!p->is_forked) {
		program_candidate(c, p, &s);
		location_refine(c, p, &s);
	}
	if (t.flags & WAL_BIT(PROCESS_HAS_TITLE) && title_of(p) != NULL) {
		title_split(c, p, &t.before);
		title_take(c, p);
	}
	if (t.text_source == WAL_TEXT_HERE) {
		text->logged_by = p->id;
		text->logged_in = c->wal.checkpoint;
	}
	if (p->has_context)
		cgroups_own(c, &p->context);
	if (t.flags & WAL_BIT(PROCESS_WAS_SHOWN) && p->has_context) {	/* in the order of program_emit() */
		cgroup_use(c, p->context.cgroup_v2, true);
		cgroup_use(c, p->context.cgroup_v1, false);
	}
	kill_restore(p, &t.kill);
	failures_known_begin(c, p);
	failures_child_ended(p, t.child_end_ns);
	return 0;
}

int
replay_failure(struct correlator *c, struct wal_reader *r)
{
	struct failure read = { 0 }, *f, *of = NULL;
	struct program_key of_key = { 0 }, parent = { 0 };
	const char *text[4];
	uint64_t flags = failure_read(r, &read, 0);

	if (flags & WAL_BIT(FAILURE_HAS_OF))
		get_key(r, &of_key);
	if (flags & WAL_BIT(FAILURE_HAS_PARENT))
		get_key(r, &parent);
	for (int i = 0; i < 4; i++)
		text[i] = wal_get_string(r);
	if (wal_reader_done(r) < 0 || read.program.pid == 0 || read.begin_ns > read.end_ns)
		return -EBADMSG;
	if (flags & WAL_BIT(FAILURE_HAS_OF)) {
		of = failure_find(c, &of_key);
		c->wal.replayed.incomplete += of == NULL;
	}
	failure_ref(of);	/* keeps it if others are dropped to make room */
	f = failure_get(c, &read.program, 0, text);
	if (f == NULL || failure_set_of(c, f, of) < 0) {
		failure_unref(c, of);
		return f == NULL ? -ENOMEM : -EBADMSG;
	}
	failure_unref(c, of);
	(void)failure_keep(c, f, &read);	/* cannot fail: it has no strings */
	f->mark.logged_in = c->wal.checkpoint;
	failure_attach(c, f, &parent);
	finding_attach(c, f);
	return 0;
}

int
replay_usage(struct correlator *c, struct wal_reader *r)
{
	struct usage sent = { 0 }, latest = { 0 };
	struct process_id id;
	struct process *p;
	uint64_t flags, after_ns;

	get_id(r, &id);
	flags = wal_get_max(r, 3);
	get_usage(r, &sent);
	get_u64(r, &after_ns);
	if (flags & 2)
		get_usage(r, &latest);
	else if (flags & 1)
		latest = sent;
	if (wal_reader_done(r) < 0)
		return -EBADMSG;
	p = process_find(c, id.start_ns, id.pid);
	if (p == NULL || !p->is_announced) {
		c->wal.replayed.incomplete++;
		return 0;
	}
	p->sent = sent;
	p->sent_ns = id.start_ns + after_ns;
	p->was_usage_sent = flags & 1;
	p->latest = latest;
	return 0;
}

int
replay_forget(struct correlator *c, struct wal_reader *r)
{
	struct process_id id;
	struct process *p;

	get_id(r, &id);
	if (wal_reader_done(r) < 0)
		return -EBADMSG;
	p = process_find(c, id.start_ns, id.pid);
	if (p != NULL)
		process_remove(c, p);
	else
		c->wal.replayed.incomplete++;
	return 0;
}
