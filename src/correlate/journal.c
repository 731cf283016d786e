/*
 * SPDX-License-Identifier: Apache-2.0
 * journal: what changed, as notes; see journal.h. It is marked while an event is taken in, and written at its end.
 */
#include <stdlib.h>
#include <string.h>

#include "correlate/findings.h"
#include "correlate/journal.h"
#include "correlate/note_codec.h"
#include "correlate/note_rows.h"

#define VARINT_MAX 10
#define NOTE_NUMBERS_MAX 200		/* in a note, with their masks; the strings come on top */
#define NOTE_FIXED_MAX (NOTE_NUMBERS_MAX * VARINT_MAX)
_Static_assert(3 * (USAGE_FIELDS + 2) + COUNTERS_NUMBERS + 6 + 40 < NOTE_NUMBERS_MAX, "a process note is longer");

NOTE_WRITER(cgroup, struct cgroup_path, CGROUP_ROWS)
NOTE_WRITER(run, struct run, RUN_ROWS)
NOTE_WRITER(task, struct task, TASK_ROWS)
NOTE_WRITER(process, struct process, PROCESS_ROWS)
NOTE_WRITER(usage, struct process, PROCESS_USAGE_ROWS)
NOTE_WRITER(text, struct text, TEXT_ROWS)
NOTE_WRITER(failure, struct failure, FAILURE_ROWS)

#define OF_MARK(m, type) ((type *)(void *)((char *)(m) - offsetof(type, mark)))

/* Room for a note with so many bytes of strings, its head written; NULL: no memory. */
static uint8_t *
note_begin(struct correlator *c, enum note_kind kind, size_t strings)
{
	struct journal *j = &c->journal;
	size_t want = NOTE_FIXED_MAX + strings;
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
	j->buffer[1] = NOTE_VERSION;
	return j->buffer + 2;
}

static void
note_end(struct correlator *c, const uint8_t *end)
{
	c->ops.note(c->journal.buffer, (size_t)(end - c->journal.buffer), c->arg);
}

static size_t
size_of(const char *s)
{
	return s != NULL ? strlen(s) + 1 : 0;
}

static void
note_beginning(struct correlator *c)
{
	const char *run = c->options.run_id;
	uint8_t *at = note_begin(c, NOTE_BEGIN, size_of(c->options.boot_id) + size_of(run));

	c->journal.has_begun = true;
	c->journal.checkpoint++;
	if (at == NULL)
		return;
	at = note_put_string(at, c->options.boot_id);
	*at++ = run != NULL;
	if (run != NULL)
		at = note_put_string(at, run);
	note_end(c, at);
}

static void
note_losses(struct correlator *c)
{
	uint8_t *at = note_begin(c, NOTE_LOSSES, 0);

	c->journal.has_lost = false;
	if (at != NULL)
		note_end(c, note_put(note_put(at, c->lost_events), c->lost_ends));
}

static void
note_run(struct correlator *c, struct run *r)
{
	uint8_t *at = note_begin(c, NOTE_RUN, run_strings(r));

	if (at == NULL)
		return;
	at = run_write(at, r, run_flags(r) | (r == c->whole ? NOTE_BIT(RUN_IS_WHOLE) : 0));
	r->mark.noted_in = c->journal.checkpoint;
	note_end(c, at);
}

static void
note_fact(struct correlator *c, const struct fact *f)
{
	uint8_t *at = note_begin(c, NOTE_FACT, RUN_ID_SIZE + f->len);

	if (at == NULL)
		return;
	at = note_put_string(at, f->run->id);
	at = note_put(note_put(at, f->n), f->len);
	memcpy(at, f->key, f->len);
	note_end(c, at + f->len);
}

static void
note_cgroup(struct correlator *c, const struct cgroup_path *g)
{
	uint8_t *at = note_begin(c, NOTE_CGROUP, size_of(g->path));

	if (at != NULL)
		note_end(c, note_put_string(cgroup_write(at, g, cgroup_flags(g)), g->path));
}

static void
note_task(struct correlator *c, struct task *t)
{
	uint8_t *at = note_begin(c, NOTE_TASK, RUN_ID_SIZE + task_strings(t));

	if (at == NULL)
		return;
	at = note_put_string(note_put(at, t->number), t->run->id);
	at = task_write(at, t, task_flags(t) | (t->id_key != NULL ? NOTE_BIT(TASK_HAS_ID_KEY) : 0));
	t->mark.noted_in = c->journal.checkpoint;
	note_end(c, at);
}

/*
 * Arguments that grew beyond a note when they were made UTF-8 are not in it: records of the next life have
 * them as truncated.
 */
static uint8_t *
put_text(uint8_t *at, const struct text *t)
{
	size_t tables = t->n_variables * sizeof(*t->variables) +
	    (t->argv != NULL ? (t->argc + 1) * sizeof(*t->argv) : 0);
	bool has_argv = t->argv != NULL && t->size - tables <= NOTE_TEXT_MAX;
	uint64_t flags = text_flags(t);

	if (has_argv)
		flags |= NOTE_BIT(TEXT_HAS_ARGV);
	if (t->argv_truncated || has_argv != (t->argv != NULL))
		flags |= NOTE_BIT(TEXT_ARGV_TRUNCATED);
	if (t->tool_rule != NULL)
		flags |= NOTE_BIT(TEXT_HAS_RULE);
	at = note_put(note_put(note_put(at, flags), has_argv ? t->argc : 0), t->n_variables);
	for (size_t i = 0; has_argv && i < t->argc; i++)
		at = note_put_string(at, t->argv[i]);
	at = text_write(at, t, flags);
	for (size_t i = 0; i < t->n_variables; i++)
		at = note_put_string(note_put_string(at, t->variables[i].name), t->variables[i].value);
	return t->tool_rule != NULL ? note_put_string(at, t->tool_rule) : at;
}

/* True when the notes hold t as the text of the process that noted_by names. */
static bool
text_is_held(struct correlator *c, const struct text *t)
{
	struct process *holder;

	if (t->noted_in != c->journal.checkpoint)
		return false;
	holder = process_find(c, t->noted_by.start_ns, t->noted_by.pid);
	return holder != NULL && holder->text == t && holder->is_text_noted &&
	    holder->mark.noted_in == c->journal.checkpoint;
}

static enum note_text
text_place(struct correlator *c, const struct process *p)
{
	if (p->text == NULL)
		return NOTE_TEXT_NONE;
	if (p->is_text_noted && p->mark.noted_in == c->journal.checkpoint)
		return NOTE_TEXT_KEPT;
	return text_is_held(c, p->text) ? NOTE_TEXT_OF : NOTE_TEXT_HERE;
}

static bool
is_zero(const struct usage_base *base)
{
	static const struct counters none;

	return base->cpu.user_ns == 0 && base->cpu.system_ns == 0 &&
	    memcmp(&base->counters, &none, offsetof(struct counters, is_complete) + 1) == 0;
}

/* Does a run count other usage for it than the last Usage record says? */
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
	    (uint64_t)(p->failures != NULL && p->failures->n_below > 0) << PROCESS_HAS_FAILED_CHILD;
}

static void
note_process(struct correlator *c, struct process *p, bool was_shown)
{
	enum note_text place = text_place(c, p);
	uint64_t flags = flags_of(p, was_shown);
	size_t strings = RUN_ID_SIZE + (place == NOTE_TEXT_HERE ? p->text->size + size_of(p->text->tool_rule) : 0);
	uint8_t *at = note_begin(c, NOTE_PROCESS, strings);

	if (at == NULL)
		return;
	at = process_write(at, p, flags);
	if (p->task != NULL)
		at = note_put(at, p->task->number);
	else if (p->run != NULL)
		at = note_put_string(at, p->run->id);
	at = usage_write(at, p, flags);
	at = note_put(at, place);
	if (place == NOTE_TEXT_OF)
		at = put_id(at, &p->text->noted_by);
	if (place == NOTE_TEXT_HERE) {
		at = put_text(at, p->text);
		p->text->noted_by = p->id;
		p->text->noted_in = c->journal.checkpoint;
	}
	if (flags & NOTE_BIT(PROCESS_HAS_TITLE))
		at = put_usage(at, &p->title->before);
	if (flags & NOTE_BIT(PROCESS_HAS_FAILED_CHILD))
		at = note_put(note_put(at, p->child_begin_ns), p->failures->last_end_ns);
	p->is_text_noted = p->text != NULL;
	p->mark.noted_in = c->journal.checkpoint;
	note_end(c, at);
}

static void
note_usage(struct correlator *c, struct process *p)
{
	uint8_t *at = note_begin(c, NOTE_USAGE, 0);

	if (at == NULL)
		return;
	at = put_id(at, &p->id);
	*at++ = (uint8_t)((p->was_usage_sent ? 1 : 0) | (has_latest(p) ? 2 : 0));
	at = note_put(put_usage(at, &p->sent), p->sent_ns - p->id.start_ns);
	note_end(c, has_latest(p) ? put_usage(at, &p->latest) : at);
}

static void
note_failure(struct correlator *c, struct failure *f)
{
	const char *const text[] = { f->tool, f->task_id, f->task, f->sample };
	uint64_t flags = failure_flags(f) | (uint64_t)(f->of != NULL) << FAILURE_HAS_OF |
	    (uint64_t)(f->parent.pid != 0) << FAILURE_HAS_PARENT;
	uint8_t *at = note_begin(c, NOTE_FAILURE, size_of(f->tool) + size_of(f->task_id) + size_of(f->task) +
	    size_of(f->sample));

	if (at == NULL)
		return;
	at = failure_write(at, f, flags);
	if (f->of != NULL)
		at = put_key(at, &f->of->program);
	if (f->parent.pid != 0)
		at = put_key(at, &f->parent);
	for (int i = 0; i < 4; i++)
		at = note_put_string(at, text[i]);
	f->mark.noted_in = c->journal.checkpoint;
	note_end(c, at);
}

/* Those that it goes back to are noted before it. */
static void
note_chain(struct correlator *c, struct failure *f)
{
	while (f->mark.noted_in != c->journal.checkpoint) {
		struct failure *inner = f;

		while (inner->of != NULL && inner->of->mark.noted_in != c->journal.checkpoint)
			inner = inner->of;
		note_failure(c, inner);
		if (inner->mark.noted_in != c->journal.checkpoint)
			break;		/* no memory */
	}
}

void
journal_mark(struct correlator *c, enum marked kind, struct mark *m, enum news news)
{
	if (!journal_is_on(c))
		return;
	c->journal.has_marked = true;
	if (m->news == NEWS_NONE)
		DL_APPEND(c->journal.marked[kind], m);
	if (news > m->news)
		m->news = news;
}

static void
unmark(struct correlator *c, enum marked kind, struct mark *m)
{
	if (m->news != NEWS_NONE)
		DL_DELETE(c->journal.marked[kind], m);
	m->news = NEWS_NONE;
}

void
journal_run(struct correlator *c, struct run *r)
{
	if (r != NULL)
		journal_mark(c, MARKED_RUNS, &r->mark, NEWS_ALL);
}

void
journal_losses(struct correlator *c)
{
	c->journal.has_lost = journal_is_on(c);
	c->journal.has_marked = c->journal.has_marked || c->journal.has_lost;
}

/* Inline, since kind is known where it is called. */
static inline void
flush_kind(struct correlator *c, enum marked kind)
{
	struct mark *m = c->journal.marked[kind], *next;

	c->journal.marked[kind] = NULL;
	for (; m != NULL; m = next) {
		enum news news = m->news;

		next = m->next;
		m->news = NEWS_NONE;
		switch (kind) {
		case MARKED_RUNS:
			note_run(c, OF_MARK(m, struct run));
			break;
		case MARKED_TASKS:
			note_task(c, OF_MARK(m, struct task));
			break;
		case MARKED_PROCESSES:
			if (news == NEWS_USAGE)
				note_usage(c, OF_MARK(m, struct process));
			else
				note_process(c, OF_MARK(m, struct process), news == NEWS_SHOWN);
			break;
		case MARKED_FAILURES:
			m->noted_in = 0;
			note_chain(c, OF_MARK(m, struct failure));
			break;
		case MARKED_KINDS:
			break;
		}
	}
}

/* In the order in which they were marked, runs before their tasks, these before their processes, then failures. */
void
journal_flush(struct correlator *c)
{
	struct journal *j = &c->journal;

	if (!j->has_marked)
		return;
	j->has_marked = false;
	if (!j->has_begun)
		note_beginning(c);
	if (j->has_lost)
		note_losses(c);
	flush_kind(c, MARKED_RUNS);
	flush_kind(c, MARKED_TASKS);
	flush_kind(c, MARKED_PROCESSES);
	flush_kind(c, MARKED_FAILURES);
}

void
journal_fact(struct correlator *c, const struct fact *f)
{
	if (!journal_is_on(c))
		return;
	if (!c->journal.has_begun)
		note_beginning(c);
	if (f->run->mark.noted_in != c->journal.checkpoint)
		journal_run(c, f->run);
	flush_kind(c, MARKED_RUNS);
	note_fact(c, f);
}

void
journal_cgroup(struct correlator *c, const struct cgroup_path *g)
{
	if (!journal_is_on(c))
		return;
	if (!c->journal.has_begun)
		note_beginning(c);
	note_cgroup(c, g);
}

/* Room for the note that the thing of this mark is gone, of which there is no news any more; NULL: no note is due. */
static uint8_t *
forget(struct correlator *c, enum marked marked, struct mark *m, enum note_kind kind)
{
	unmark(c, marked, m);
	if (!journal_is_on(c) || m->noted_in == 0 || m->noted_in != c->journal.checkpoint)
		return NULL;
	return note_begin(c, kind, RUN_ID_SIZE);
}

void
journal_forget(struct correlator *c, struct process *p)
{
	uint8_t *at = forget(c, MARKED_PROCESSES, &p->mark, NOTE_FORGET);

	if (at != NULL)
		note_end(c, put_id(at, &p->id));
}

void
journal_forget_task(struct correlator *c, struct task *t)
{
	uint8_t *at = forget(c, MARKED_TASKS, &t->mark, NOTE_FORGET_TASK);

	if (at != NULL)
		note_end(c, note_put(at, t->number));
}

void
journal_forget_run(struct correlator *c, struct run *r)
{
	uint8_t *at = forget(c, MARKED_RUNS, &r->mark, NOTE_FORGET_RUN);

	if (at != NULL)
		note_end(c, note_put_string(at, r->id));
}

void
journal_forget_failure(struct correlator *c, struct mark *m)
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

	if (!journal_is_on(c))
		return;
	note_beginning(c);
	for (g = c->cgroups; g != NULL; g = g->hh.next)
		note_cgroup(c, g);
	note_losses(c);
	for (r = c->runs; r != NULL; r = r->hh.next)
		note_run(c, r);
	for (f = c->facts; f != NULL; f = f->hh.next)
		note_fact(c, f);
	for (t = c->tasks; t != NULL; t = t->hh.next)
		note_task(c, t);
	for (p = c->processes; p != NULL; p = p->hh.next) {
		unmark(c, MARKED_PROCESSES, &p->mark);
		note_process(c, p, false);
	}
	for (l = c->failures; l != NULL; l = l->hh.next)
		note_chain(c, l);
}

void
journal_done(struct correlator *c)
{
	free(c->journal.buffer);
}
