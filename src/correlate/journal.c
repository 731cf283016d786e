/*
 * SPDX-License-Identifier: Apache-2.0
 * What changed, as notes; see journal.h. Marked while a signal is taken in, written at its end.
 */
#include <stdlib.h>
#include <string.h>

#include "correlate/journal.h"
#include "correlate/state.h"

#define VARINT_MAX 10
#define NOTE_NUMBERS_MAX 200		/* in a note, with their masks; the strings come on top */
#define NOTE_FIXED_MAX (NOTE_NUMBERS_MAX * VARINT_MAX)
_Static_assert(2 * (USAGE_FIELDS + 2) + COUNTERS_NUMBERS + 6 + 40 < NOTE_NUMBERS_MAX, "a process note is longer");

static uint8_t *
put_u64(uint8_t *at, uint64_t value)
{
	while (value >= 0x80) {
		*at++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*at++ = (uint8_t)value;
	return at;
}

/* With its NUL. */
static uint8_t *
put_string(uint8_t *at, const char *s)
{
	size_t size = strlen(s) + 1;

	memcpy(at, s, size);
	return at + size;
}

/* Which of them are not 0, and those. */
static uint8_t *
put_numbers(uint8_t *at, const uint64_t *values, size_t n)
{
	uint64_t mask = 0;

	for (size_t i = 0; i < n; i++)
		mask |= (uint64_t)(values[i] != 0) << i;
	at = put_u64(at, mask);
	for (; mask != 0; mask &= mask - 1)
		at = put_u64(at, values[__builtin_ctzll(mask)]);
	return at;
}

static uint8_t *
put_usage(uint8_t *at, const struct usage *u)
{
	return put_numbers(put_u64(at, u->known), u->value, USAGE_FIELDS);
}

static uint8_t *
put_counters(uint8_t *at, const struct counters *c)
{
	at = put_u64(at, (c->has_peak ? COUNTERS_HAS_PEAK : 0) | (c->has_block_io ? COUNTERS_HAS_BLOCK_IO : 0) |
	    (c->is_reaped ? COUNTERS_IS_REAPED : 0) | (c->is_complete ? COUNTERS_IS_COMPLETE : 0));
	at = put_numbers(at, (const uint64_t *)(const void *)c, COUNTERS_NUMBERS);
	at = put_u64(at, c->threads);
	return put_u64(at, c->threads_peak);
}

static uint8_t *
put_work(uint8_t *at, const struct work *w)
{
	at = put_usage(at, &w->done);
	return put_numbers(at, (const uint64_t[]){ w->programs, w->failed, w->live, w->start_ns, w->last_ns,
	    w->end_ns, w->busy_ns, w->busy_since_ns }, 8);
}

static uint8_t *
put_id(uint8_t *at, const struct process_id *id)
{
	return put_u64(put_u64(at, id->start_ns), id->pid);
}

/* start_ns: of who descends from it, a small step away. */
static uint8_t *
put_ancestor(uint8_t *at, const struct program_key *key, uint64_t start_ns)
{
	at = put_u64(at, key->pid);
	if (key->pid == 0)
		return at;
	return put_u64(put_u64(at, key->index), start_ns - key->start_ns);
}

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
	at = put_string(at, c->options.boot_id);
	*at++ = run != NULL;
	if (run != NULL)
		at = put_string(at, run);
	note_end(c, at);
}

static void
note_run(struct correlator *c)
{
	uint8_t *at = note_begin(c, NOTE_RUN, 0);

	c->journal.is_run_dirty = false;
	if (at == NULL)
		return;
	at = put_u64(at, c->run_start_ns);
	at = put_id(at, &c->root);
	at = put_u64(at, c->lost_events);
	at = put_u64(at, c->lost_ends);
	note_end(c, put_work(at, &c->run));
}

static void
note_cgroup(struct correlator *c, const struct cgroup_path *g)
{
	uint8_t *at = note_begin(c, NOTE_CGROUP, size_of(g->path));

	if (at == NULL)
		return;
	at = put_u64(at, g->key.id);
	*at++ = g->key.is_v2 != 0;
	note_end(c, put_string(at, g->path));
}

static void
note_task(struct correlator *c, struct task *t)
{
	uint8_t *at = note_begin(c, NOTE_TASK, 3 * RULE_NAME_SIZE + size_of(t->engine) +
	    size_of(t->source) + size_of(t->work_dir));

	if (at == NULL)
		return;
	at = put_id(at, &t->root);
	at = put_u64(at, (t->is_named ? TASK_IS_NAMED : 0) | (t->has_started ? TASK_HAS_STARTED : 0) |
	    (t->has_ended ? TASK_HAS_ENDED : 0) | (t->root_ended ? TASK_ROOT_ENDED : 0) |
	    (t->engine != NULL ? TASK_HAS_ENGINE : 0) | (t->source != NULL ? TASK_HAS_SOURCE : 0) |
	    (t->work_dir != NULL ? TASK_HAS_WORK_DIR : 0));
	at = put_u64(at, (uint32_t)t->status);
	memcpy(at, &t->confidence, sizeof(t->confidence));
	at += sizeof(t->confidence);
	at = put_work(at, &t->work);
	at = put_string(at, t->task_id);
	at = put_string(at, t->name);
	at = put_string(at, t->sample);
	if (t->engine != NULL)
		at = put_string(at, t->engine);
	if (t->source != NULL)
		at = put_string(at, t->source);
	if (t->work_dir != NULL)
		at = put_string(at, t->work_dir);
	t->noted_in = c->journal.checkpoint;
	note_end(c, at);
}

/*
 * Arguments that grew beyond a note when they were made UTF-8 are not in it: the next life tells
 * them as truncated.
 */
static uint8_t *
put_text(uint8_t *at, const struct text *t)
{
	const char *after = t->exe != NULL ? t->exe : t->comm != NULL ? t->comm : t->cwd != NULL ? t->cwd : t->tool;
	size_t skip = t->argv != NULL ? (t->argc + 1) * sizeof(*t->argv) : 0;
	bool has_argv = t->argv != NULL && t->size - skip <= NOTE_TEXT_MAX;
	bool is_cut = t->argv_truncated || has_argv != (t->argv != NULL);

	if (t->argv != NULL && !has_argv)
		skip = after != NULL ? (size_t)(after - t->block) : t->size;
	at = put_u64(at, (t->is_tool ? TEXT_IS_TOOL : 0) | (is_cut ? TEXT_ARGV_TRUNCATED : 0) |
	    (has_argv ? TEXT_HAS_ARGV : 0) | (t->exe != NULL ? TEXT_HAS_EXE : 0) |
	    (t->comm != NULL ? TEXT_HAS_COMM : 0) | (t->cwd != NULL ? TEXT_HAS_CWD : 0) |
	    (t->tool != NULL ? TEXT_HAS_TOOL : 0) | (t->tool_rule != NULL ? TEXT_HAS_RULE : 0));
	at = put_u64(at, has_argv ? t->argc : 0);
	memcpy(at, t->block + skip, t->size - skip);
	at += t->size - skip;
	return t->tool_rule != NULL ? put_string(at, t->tool_rule) : at;
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
	    holder->noted_in == c->journal.checkpoint;
}

static enum note_text
text_place(struct correlator *c, const struct process *p)
{
	if (p->text == NULL)
		return NOTE_TEXT_NONE;
	if (p->is_text_noted && p->noted_in == c->journal.checkpoint)
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

static uint32_t
flags_of(const struct correlator *c, const struct process *p, bool was_shown)
{
	bool is_live = p->is_announced && !p->is_over;

	return (p->has_context ? PROCESS_HAS_CONTEXT : 0) | (p->is_forked ? PROCESS_IS_FORKED : 0) |
	    (p->is_announced ? PROCESS_IS_ANNOUNCED : 0) | (p->is_driver ? PROCESS_IS_DRIVER : 0) |
	    (p->is_over ? PROCESS_IS_OVER : 0) | (p->is_base_known ? PROCESS_IS_BASE_KNOWN : 0) |
	    (p->was_usage_sent ? PROCESS_WAS_USAGE_SENT : 0) |
	    (!p->is_over && !is_zero(&p->base) ? PROCESS_HAS_BASE : 0) |
	    (is_live ? PROCESS_HAS_SENT : 0) | (is_live && state_has_run(c) ? PROCESS_HAS_LATEST : 0) |
	    (p->task != NULL ? PROCESS_HAS_TASK : 0) | (was_shown ? PROCESS_WAS_SHOWN : 0) |
	    (p->observed_us != 0 ? PROCESS_IS_OBSERVED : 0) | (p->gone_ns != 0 ? PROCESS_IS_GONE : 0) |
	    (p->unseen_since_ns != 0 ? PROCESS_IS_UNSEEN : 0) |
	    (memcmp(&p->anchor, &p->parent, sizeof(p->anchor)) == 0 ? PROCESS_ANCHOR_IS_PARENT : 0);
}

static void
note_process(struct correlator *c, struct process *p, bool was_shown)
{
	enum note_text place = text_place(c, p);
	uint32_t flags = flags_of(c, p, was_shown);
	uint64_t start_ns = p->id.start_ns;
	size_t strings = place == NOTE_TEXT_HERE ? p->text->size + size_of(p->text->tool_rule) : 0;
	uint8_t *at = note_begin(c, NOTE_PROCESS, strings);

	p->news = NEWS_NONE;
	if (at == NULL)
		return;
	at = put_id(at, &p->id);
	at = put_u64(at, flags);
	at = put_u64(at, p->self.index);
	at = put_ancestor(at, &p->parent, start_ns);
	if ((flags & PROCESS_ANCHOR_IS_PARENT) == 0)
		at = put_ancestor(at, &p->anchor, start_ns);
	at = put_u64(at, p->ppid);
	at = put_u64(at, (uint64_t)p->start_us);
	at = put_u64(at, (uint64_t)p->program_start_us - (uint64_t)p->start_us);
	at = put_u64(at, p->program_start_ns - start_ns);
	if (flags & PROCESS_IS_OBSERVED)
		at = put_u64(at, (uint64_t)p->observed_us - (uint64_t)p->start_us);
	if (flags & PROCESS_IS_GONE)
		at = put_u64(at, p->gone_ns - start_ns);
	if (flags & PROCESS_IS_UNSEEN)
		at = put_u64(at, p->unseen_since_ns - start_ns);
	if (p->has_context) {
		at = put_numbers(at, (const uint64_t[]){ p->context.uid, p->context.gid, p->context.pid_ns,
		    p->context.mnt_ns, p->context.net_ns, p->context.cgroup_v2, p->context.cgroup_v1 }, 7);
	}
	if (p->task != NULL)
		at = put_id(at, &p->task->root);
	if (flags & PROCESS_HAS_BASE) {
		at = put_counters(at, &p->base.counters);
		at = put_u64(put_u64(at, p->base.cpu.user_ns), p->base.cpu.system_ns);
	}
	if (flags & PROCESS_HAS_SENT)
		at = put_u64(put_usage(at, &p->sent), p->sent_ns - start_ns);
	if (flags & PROCESS_HAS_LATEST)
		at = put_usage(at, &p->latest);
	at = put_u64(at, place);
	if (place == NOTE_TEXT_OF)
		at = put_id(at, &p->text->noted_by);
	if (place == NOTE_TEXT_HERE) {
		at = put_text(at, p->text);
		p->text->noted_by = p->id;
		p->text->noted_in = c->journal.checkpoint;
	}
	p->is_text_noted = p->text != NULL;
	p->noted_in = c->journal.checkpoint;
	note_end(c, at);
}

static void
note_usage(struct correlator *c, struct process *p)
{
	uint8_t *at = note_begin(c, NOTE_USAGE, 0);

	p->news = NEWS_NONE;
	if (at == NULL)
		return;
	at = put_id(at, &p->id);
	*at++ = (uint8_t)((p->was_usage_sent ? 1 : 0) | (state_has_run(c) ? 2 : 0));
	at = put_u64(put_usage(at, &p->sent), p->sent_ns - p->id.start_ns);
	if (state_has_run(c))
		at = put_usage(at, &p->latest);
	note_end(c, at);
}

void
journal_process(struct correlator *c, struct process *p, enum process_news news)
{
	struct journal *j = &c->journal;

	if (!journal_is_on(c))
		return;
	if (p->news == NEWS_NONE) {
		*(j->dirty != NULL ? j->dirty_end : &j->dirty) = p;
		j->dirty_end = &p->next_dirty;
		p->next_dirty = NULL;
	}
	if (news > p->news)
		p->news = news;
}

void
journal_task(struct correlator *c, struct task *t)
{
	struct journal *j = &c->journal;

	if (!journal_is_on(c) || t->is_dirty)
		return;
	t->is_dirty = true;
	*(j->dirty_tasks != NULL ? j->dirty_tasks_end : &j->dirty_tasks) = t;
	j->dirty_tasks_end = &t->next_dirty;
	t->next_dirty = NULL;
}

void
journal_run(struct correlator *c)
{
	c->journal.is_run_dirty = journal_is_on(c) && state_has_run(c);
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

void
journal_forget(struct correlator *c, const struct process *p)
{
	uint8_t *at;

	if (!journal_is_on(c) || p->noted_in == 0 || p->noted_in != c->journal.checkpoint)
		return;
	at = note_begin(c, NOTE_FORGET, 0);
	if (at != NULL)
		note_end(c, put_id(at, &p->id));
}

void
journal_forget_task(struct correlator *c, struct task *t)
{
	struct task **at = &c->journal.dirty_tasks;
	uint8_t *bytes;

	if (t->is_dirty) {
		while (*at != t)
			at = &(*at)->next_dirty;
		*at = t->next_dirty;
		if (t->next_dirty == NULL)
			c->journal.dirty_tasks_end = at;
		t->is_dirty = false;
	}
	if (!journal_is_on(c) || t->noted_in == 0 || t->noted_in != c->journal.checkpoint)
		return;
	bytes = note_begin(c, NOTE_FORGET_TASK, 0);
	if (bytes != NULL)
		note_end(c, put_id(bytes, &t->root));
}

/* In the order in which they were marked, tasks before the processes that are theirs. */
void
journal_flush(struct correlator *c)
{
	struct journal *j = &c->journal;

	if (!j->is_run_dirty && j->dirty == NULL && j->dirty_tasks == NULL)
		return;
	if (!j->has_begun)
		note_beginning(c);
	if (j->is_run_dirty)
		note_run(c);
	while (j->dirty_tasks != NULL) {
		struct task *t = j->dirty_tasks;

		j->dirty_tasks = t->next_dirty;
		t->is_dirty = false;
		note_task(c, t);
	}
	while (j->dirty != NULL) {
		struct process *p = j->dirty;

		j->dirty = p->next_dirty;
		if (p->news == NEWS_USAGE)
			note_usage(c, p);
		else
			note_process(c, p, p->news == NEWS_SHOWN);
	}
}

void
correlator_checkpoint(struct correlator *c)
{
	struct cgroup_path *g;
	struct process *p;
	struct task *t;

	if (!journal_is_on(c))
		return;
	note_beginning(c);
	for (g = c->cgroups; g != NULL; g = g->hh.next)
		note_cgroup(c, g);
	if (state_has_run(c))
		note_run(c);
	for (t = c->tasks; t != NULL; t = t->hh.next)
		note_task(c, t);
	for (p = c->processes; p != NULL; p = p->hh.next)
		note_process(c, p, false);
}

void
journal_done(struct correlator *c)
{
	struct kept_name *name, *next;

	HASH_ITER(hh, c->journal.names, name, next) {
		HASH_DEL(c->journal.names, name);
		free(name);
	}
	free(c->journal.buffer);
}
