/*
 * SPDX-License-Identifier: Apache-2.0
 * wal: writes changes as entries; see wal.h. A change is marked while an event is handled, and written at its end.
 */
#include "correlate/wal.h"

#include <stdlib.h>
#include <string.h>

#include "correlate/cgroups.h"
#include "correlate/cputime.h"
#include "correlate/facts.h"
#include "correlate/findings.h"
#include "correlate/kills.h"
#include "correlate/process.h"
#include "correlate/program_text.h"
#include "correlate/runs.h"
#include "correlate/state.h"
#include "correlate/tasks.h"
#include "correlate/title.h"
#include "correlate/wal_rows.h"
#include "correlate/work.h"

#define WAL_NUMBERS_MAX 280		/* numbers of an entry, with their masks; strings are extra */
#define WAL_FIXED_MAX (WAL_NUMBERS_MAX * LEB128_MAX_BYTES)
_Static_assert(3 * (USAGE_FIELDS + 2) + COUNTERS_NUMBERS + 6 + 40 < WAL_NUMBERS_MAX, "a process entry is longer");

WAL_WRITER(cgroup, struct cgroup_path, CGROUP_ROWS)
WAL_WRITER(run, struct run, RUN_ROWS)
WAL_WRITER(task, struct task, TASK_ROWS)
WAL_WRITER(process, struct process, PROCESS_ROWS)
WAL_WRITER(usage, struct process, PROCESS_USAGE_ROWS)
WAL_WRITER(text, struct text, TEXT_ROWS)
WAL_WRITER(failure, struct failure, FAILURE_ROWS)

#define OF_MARK(m, type) ((type *)(void *)((char *)(m) - offsetof(type, mark)))

/* Reserves an entry with room for so many bytes of strings, and writes its head; NULL: no memory. */
static uint8_t *
wal_begin(struct correlator *c, enum wal_kind kind, size_t strings)
{
	struct wal *j = &c->wal;
	size_t want = WAL_FIXED_MAX + strings;
	uint8_t *buffer;

	if (want > j->size) {
		buffer = realloc(j->buffer, want);
		if (buffer == NULL) {
			j->lost++;
			return NULL;
		}
		j->buffer = buffer;
		j->size = want;
	}
	j->buffer[0] = (uint8_t)kind;
	j->buffer[1] = WAL_VERSION;
	return j->buffer + 2;
}

static void
wal_end(struct correlator *c, const uint8_t *end)
{
	c->ops.wal(c->wal.buffer, (size_t)(end - c->wal.buffer), c->arg);
}

static size_t
size_of(const char *s)
{
	return s != NULL ? strlen(s) + 1 : 0;
}

static void
wal_beginning(struct correlator *c)
{
	const char *run = c->options.run_id;
	uint8_t *at = wal_begin(c, WAL_BEGIN, size_of(c->options.boot_id) + size_of(run));

	c->wal.has_begun = true;
	c->wal.checkpoint++;
	if (at == NULL)
		return;
	at = wal_put_string(at, c->options.boot_id);
	*at++ = run != NULL;
	if (run != NULL)
		at = wal_put_string(at, run);
	wal_end(c, at);
}

static void
wal_entry_losses(struct correlator *c)
{
	uint8_t *at = wal_begin(c, WAL_LOSSES, 0);

	c->wal.has_lost = false;
	if (at != NULL)
		wal_end(c, wal_put(wal_put(at, c->lost_events), c->lost_ends));
}

static void
wal_entry_run(struct correlator *c, struct run *r)
{
	uint8_t *at = wal_begin(c, WAL_RUN, run_strings(r));

	if (at == NULL)
		return;
	at = run_write(at, r, run_flags(r) | (r == c->whole ? WAL_BIT(RUN_IS_WHOLE) : 0));
	r->mark.logged_in = c->wal.checkpoint;
	wal_end(c, at);
}

static void
wal_entry_fact(struct correlator *c, const struct fact *f)
{
	uint8_t *at = wal_begin(c, WAL_FACT, RUN_ID_SIZE + f->len);

	if (at == NULL)
		return;
	at = wal_put_string(at, f->run->id);
	at = wal_put(wal_put(at, f->n), f->len);
	memcpy(at, f->key, f->len);
	wal_end(c, at + f->len);
}

static void
wal_entry_cgroup(struct correlator *c, const struct cgroup_path *g)
{
	uint8_t *at = wal_begin(c, WAL_CGROUP, size_of(g->path));

	if (at != NULL)
		wal_end(c, wal_put_string(cgroup_write(at, g, cgroup_flags(g)), g->path));
}

static void
wal_entry_task(struct correlator *c, struct task *t)
{
	uint8_t *at = wal_begin(c, WAL_TASK, RUN_ID_SIZE + task_strings(t));

	if (at == NULL)
		return;
	at = wal_put_string(wal_put(at, t->number), t->run->id);
	at = task_write(at, t, task_flags(t) | (t->id_key != NULL ? WAL_BIT(TASK_HAS_ID_KEY) : 0));
	t->mark.logged_in = c->wal.checkpoint;
	wal_end(c, at);
}

/* Leaves out arguments that UTF-8 made too long for an entry: the next agent's records have them as truncated. */
static uint8_t *
put_text(uint8_t *at, const struct text *t)
{
	size_t tables = t->n_variables * sizeof(*t->variables) +
	    (t->argv != NULL ? (t->argc + 1) * sizeof(*t->argv) : 0);
	bool has_argv = t->argv != NULL && t->size - tables <= WAL_TEXT_MAX;
	uint64_t flags = text_flags(t);

	if (has_argv)
		flags |= WAL_BIT(TEXT_HAS_ARGV);
	if (t->argv_truncated || has_argv != (t->argv != NULL))
		flags |= WAL_BIT(TEXT_ARGV_TRUNCATED);
	if (t->tool_rule != NULL)
		flags |= WAL_BIT(TEXT_HAS_RULE);
	at = wal_put(wal_put(wal_put(at, flags), has_argv ? t->argc : 0), t->n_variables);
	for (size_t i = 0; has_argv && i < t->argc; i++)
		at = wal_put_string(at, t->argv[i]);
	at = text_write(at, t, flags);
	for (size_t i = 0; i < t->n_variables; i++)
		at = wal_put_string(wal_put_string(at, t->variables[i].name), t->variables[i].value);
	return t->tool_rule != NULL ? wal_put_string(at, t->tool_rule) : at;
}

/* Returns true if the entries of the process logged_by contain the text t. */
static bool
text_is_held(struct correlator *c, const struct text *t)
{
	struct process *holder;

	if (t->logged_in != c->wal.checkpoint)
		return false;
	holder = process_find(c, t->logged_by.start_ns, t->logged_by.pid);
	return holder != NULL && holder->text == t && holder->is_text_logged &&
	    holder->mark.logged_in == c->wal.checkpoint;
}

static enum wal_text
text_source(struct correlator *c, const struct process *p)
{
	if (p->text == NULL)
		return WAL_TEXT_NONE;
	if (p->is_text_logged && p->mark.logged_in == c->wal.checkpoint)
		return WAL_TEXT_KEPT;
	return text_is_held(c, p->text) ? WAL_TEXT_OF : WAL_TEXT_HERE;
}

static bool
is_zero(const struct usage_base *base)
{
	static const struct counters none;

	return base->cpu.user_ns == 0 && base->cpu.system_ns == 0 &&
	    memcmp(&base->counters, &none, offsetof(struct counters, is_complete) + 1) == 0;
}

/* Returns true if the usage counted for its run differs from that of the last Usage record. */
static bool
has_latest(const struct process *p)
{
	static const struct usage none;

	return p->run != NULL && p->is_announced && !p->is_over &&
	    memcmp(&p->latest, p->was_usage_sent ? &p->sent : &none, sizeof(p->latest)) != 0;
}

static uint64_t
flags_of(const struct process *p, bool was_shown)
{
	bool has_sent = p->is_announced && !p->is_over;

	return process_flags(p) |
	    (uint64_t)(!p->is_over && !is_zero(&p->base)) << PROCESS_HAS_BASE |
	    (uint64_t)has_sent << PROCESS_HAS_SENT |
	    (uint64_t)has_latest(p) << PROCESS_HAS_LATEST |
	    (uint64_t)(p->run != NULL) << PROCESS_HAS_RUN |
	    (uint64_t)(p->task != NULL) << PROCESS_HAS_TASK |
	    (uint64_t)was_shown << PROCESS_WAS_SHOWN |
	    (uint64_t)(memcmp(&p->anchor, &p->parent, sizeof(p->anchor)) == 0) << PROCESS_ANCHOR_IS_PARENT |
	    (uint64_t)(memcmp(&p->above, &p->parent, sizeof(p->above)) == 0) << PROCESS_ABOVE_IS_PARENT |
	    (uint64_t)(p->title != NULL && p->title->is_taken) << PROCESS_HAS_TITLE |
	    (uint64_t)(p->failures != NULL && p->failures->n_below > 0) << PROCESS_HAS_FAILED_CHILD |
	    (uint64_t)(p->kill != NULL) << PROCESS_IS_KILLED;
}

static void
wal_entry_process(struct correlator *c, struct process *p, bool was_shown)
{
	enum wal_text source = text_source(c, p);
	uint64_t flags = flags_of(p, was_shown);
	size_t strings = RUN_ID_SIZE + KILL_WAL_STRINGS +
	    (source == WAL_TEXT_HERE ? p->text->size + size_of(p->text->tool) + size_of(p->text->tool_rule) : 0);
	uint8_t *at = wal_begin(c, WAL_PROCESS, strings);

	if (at == NULL)
		return;
	at = process_write(at, p, flags);
	if (p->task != NULL)
		at = wal_put(at, p->task->number);
	else if (p->run != NULL)
		at = wal_put_string(at, p->run->id);
	at = usage_write(at, p, flags);
	at = wal_put(at, source);
	if (source == WAL_TEXT_OF)
		at = put_id(at, &p->text->logged_by);
	if (source == WAL_TEXT_HERE) {
		at = put_text(at, p->text);
		p->text->logged_by = p->id;
		p->text->logged_in = c->wal.checkpoint;
	}
	if (flags & WAL_BIT(PROCESS_HAS_TITLE))
		at = put_usage(at, &p->title->before);
	if (flags & WAL_BIT(PROCESS_HAS_FAILED_CHILD))
		at = wal_put(wal_put(at, p->child_begin_ns), p->failures->last_end_ns);
	if (flags & WAL_BIT(PROCESS_IS_KILLED))
		at = put_kill(at, p->kill);
	p->is_text_logged = p->text != NULL;
	p->mark.logged_in = c->wal.checkpoint;
	wal_end(c, at);
}

static void
wal_usage(struct correlator *c, struct process *p)
{
	uint8_t *at = wal_begin(c, WAL_USAGE, 0);

	if (at == NULL)
		return;
	at = put_id(at, &p->id);
	*at++ = (uint8_t)((p->was_usage_sent ? 1 : 0) | (has_latest(p) ? 2 : 0));
	at = wal_put(put_usage(at, &p->sent), p->sent_ns - p->id.start_ns);
	wal_end(c, has_latest(p) ? put_usage(at, &p->latest) : at);
}

static void
wal_failure(struct correlator *c, struct failure *f)
{
	const char *const text[] = { f->tool, f->task_id, f->task, f->sample };
	uint64_t flags = failure_flags(f) | (uint64_t)(f->of != NULL) << FAILURE_HAS_OF |
	    (uint64_t)(f->parent.pid != 0) << FAILURE_HAS_PARENT;
	uint8_t *at = wal_begin(c, WAL_FAILURE, size_of(f->tool) + size_of(f->task_id) + size_of(f->task) +
	    size_of(f->sample));

	if (at == NULL)
		return;
	at = failure_write(at, f, flags);
	if (f->of != NULL)
		at = put_key(at, &f->of->program);
	if (f->parent.pid != 0)
		at = put_key(at, &f->parent);
	for (int i = 0; i < 4; i++)
		at = wal_put_string(at, text[i]);
	f->mark.logged_in = c->wal.checkpoint;
	wal_end(c, at);
}

/* Logs the failures that f goes back to, before f itself. */
static void
wal_chain(struct correlator *c, struct failure *f)
{
	while (f->mark.logged_in != c->wal.checkpoint) {
		struct failure *inner = f;

		while (inner->of != NULL && inner->of->mark.logged_in != c->wal.checkpoint)
			inner = inner->of;
		wal_failure(c, inner);
		if (inner->mark.logged_in != c->wal.checkpoint)
			break;		/* no memory */
	}
}

static bool
wal_is_on(const struct correlator *c)
{
	return c->ops.wal != NULL && !c->wal.is_replaying;
}

void
wal_mark(struct correlator *c, enum marked kind, struct mark *m, enum news news)
{
	if (news <= m->news || !wal_is_on(c))
		return;
	c->wal.has_marked = true;
	if (m->news == NEWS_NONE)
		DL_APPEND(c->wal.marked[kind], m);
	m->news = news;
}

static void
unmark(struct correlator *c, enum marked kind, struct mark *m)
{
	if (m->news != NEWS_NONE)
		DL_DELETE(c->wal.marked[kind], m);
	m->news = NEWS_NONE;
}

void
wal_run(struct correlator *c, struct run *r)
{
	if (r != NULL)
		wal_mark(c, MARKED_RUNS, &r->mark, NEWS_ALL);
}

void
wal_task(struct correlator *c, struct task *t)
{
	wal_mark(c, MARKED_TASKS, &t->mark, NEWS_ALL);
}

void
wal_process(struct correlator *c, struct process *p, enum news news)
{
	wal_mark(c, MARKED_PROCESSES, &p->mark, news);
}

void
wal_process_text(struct correlator *c, struct process *p)
{
	p->is_text_logged = false;
	wal_process(c, p, NEWS_ALL);
}

void
wal_losses(struct correlator *c)
{
	c->wal.has_lost = wal_is_on(c);
	c->wal.has_marked = c->wal.has_marked || c->wal.has_lost;
}

/* Inline, since kind is constant at each call. */
static inline void
flush_kind(struct correlator *c, enum marked kind)
{
	struct mark *m = c->wal.marked[kind], *next;

	c->wal.marked[kind] = NULL;
	for (; m != NULL; m = next) {
		enum news news = m->news;

		next = m->next;
		m->news = NEWS_NONE;
		switch (kind) {
		case MARKED_RUNS:
			wal_entry_run(c, OF_MARK(m, struct run));
			break;
		case MARKED_TASKS:
			wal_entry_task(c, OF_MARK(m, struct task));
			break;
		case MARKED_PROCESSES:
			if (news == NEWS_USAGE)
				wal_usage(c, OF_MARK(m, struct process));
			else
				wal_entry_process(c, OF_MARK(m, struct process), news == NEWS_SHOWN);
			break;
		case MARKED_FAILURES:
			m->logged_in = 0;
			wal_chain(c, OF_MARK(m, struct failure));
			break;
		case MARKED_KINDS:
			break;
		}
	}
}

/* Entries are in the order of enum marked, and within a kind in the order in which they were marked. */
void
wal_flush(struct correlator *c)
{
	struct wal *j = &c->wal;

	if (!j->has_marked)
		return;
	j->has_marked = false;
	if (!j->has_begun)
		wal_beginning(c);
	if (j->has_lost)
		wal_entry_losses(c);
	flush_kind(c, MARKED_RUNS);
	flush_kind(c, MARKED_TASKS);
	flush_kind(c, MARKED_PROCESSES);
	flush_kind(c, MARKED_FAILURES);
}

void
wal_fact(struct correlator *c, const struct fact *f)
{
	if (!wal_is_on(c))
		return;
	if (!c->wal.has_begun)
		wal_beginning(c);
	if (f->run->mark.logged_in != c->wal.checkpoint)
		wal_run(c, f->run);
	flush_kind(c, MARKED_RUNS);
	wal_entry_fact(c, f);
}

void
wal_cgroup(struct correlator *c, const struct cgroup_path *g)
{
	if (!wal_is_on(c))
		return;
	if (!c->wal.has_begun)
		wal_beginning(c);
	wal_entry_cgroup(c, g);
}

/* Reserves the entry for a removed thing and clears its mark; NULL: it has no entries, so none is due. */
static uint8_t *
forget(struct correlator *c, enum marked marked, struct mark *m, enum wal_kind kind)
{
	unmark(c, marked, m);
	if (!wal_is_on(c) || m->logged_in == 0 || m->logged_in != c->wal.checkpoint)
		return NULL;
	return wal_begin(c, kind, RUN_ID_SIZE);
}

void
wal_forget(struct correlator *c, struct process *p)
{
	uint8_t *at = forget(c, MARKED_PROCESSES, &p->mark, WAL_FORGET);

	if (at != NULL)
		wal_end(c, put_id(at, &p->id));
}

void
wal_forget_task(struct correlator *c, struct task *t)
{
	uint8_t *at = forget(c, MARKED_TASKS, &t->mark, WAL_FORGET_TASK);

	if (at != NULL)
		wal_end(c, wal_put(at, t->number));
}

void
wal_forget_run(struct correlator *c, struct run *r)
{
	uint8_t *at = forget(c, MARKED_RUNS, &r->mark, WAL_FORGET_RUN);

	if (at != NULL)
		wal_end(c, wal_put_string(at, r->id));
}

void
wal_forget_failure(struct correlator *c, struct mark *m)
{
	unmark(c, MARKED_FAILURES, m);
}

void
correlator_checkpoint(struct correlator *c)
{
	struct cgroup_path *g;
	struct process *p;
	struct failure *l;
	struct fact *f;
	struct task *t;
	struct run *r;

	if (!wal_is_on(c))
		return;
	wal_beginning(c);
	for (g = c->cgroups; g != NULL; g = g->hh.next)
		wal_entry_cgroup(c, g);
	wal_entry_losses(c);
	for (r = c->runs; r != NULL; r = r->hh.next)
		wal_entry_run(c, r);
	for (f = c->facts; f != NULL; f = f->hh.next)
		wal_entry_fact(c, f);
	for (t = c->tasks; t != NULL; t = t->hh.next)
		wal_entry_task(c, t);
	for (p = c->processes; p != NULL; p = p->next) {
		unmark(c, MARKED_PROCESSES, &p->mark);
		wal_entry_process(c, p, false);
	}
	for (l = c->failures; l != NULL; l = l->hh.next)
		wal_chain(c, l);
}

void
wal_done(struct correlator *c)
{
	free(c->wal.buffer);
}
