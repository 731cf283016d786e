/*
 * SPDX-License-Identifier: Apache-2.0
 * What changed, as notes; see journal.h. Marked while a signal is taken in, written at its end.
 */
#include <stdlib.h>
#include <string.h>

#include "correlate/findings.h"
#include "correlate/journal.h"
#include "correlate/note_writer.h"

#define VARINT_MAX 10
#define NOTE_NUMBERS_MAX 200		/* in a note, with their masks; the strings come on top */
#define NOTE_FIXED_MAX (NOTE_NUMBERS_MAX * VARINT_MAX)
_Static_assert(3 * (USAGE_FIELDS + 2) + COUNTERS_NUMBERS + 6 + 40 < NOTE_NUMBERS_MAX, "a process note is longer");

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

	c->journal.are_losses_dirty = false;
	if (at != NULL)
		note_end(c, note_put_u64(note_put_u64(at, c->lost_events), c->lost_ends));
}

static void
note_run(struct correlator *c, struct run *r)
{
	/* In the order of replay_run(). */
	const char *const strings[RUN_STRINGS] = { r->engine, r->source, r->inner, r->pipeline, r->name, r->command,
		r->work_dir, r->root_dir, r->scheduler, r->job_id, r->parent_id, r->task, r->sample };
	size_t size = RUN_ID_SIZE;
	uint64_t flags;
	uint8_t *at;

	flags = (r->root_ended ? RUN_ROOT_ENDED : 0) | (r->has_status ? RUN_HAS_STATUS : 0) |
	    (r->has_started ? RUN_HAS_STARTED : 0) | (r->has_ended ? RUN_HAS_ENDED : 0) |
	    (r->uid.known ? RUN_HAS_UID : 0) | (r->cpus.known ? RUN_HAS_CPUS : 0) |
	    (r->memory_bytes.known ? RUN_HAS_MEMORY : 0) | (r == c->whole ? RUN_IS_WHOLE : 0) |
	    (r->failing == FAILING_DUE ? RUN_FAILING_DUE : 0) | (r->failing == FAILING_OVER ? RUN_FAILING_OVER : 0) |
	    ((r->findings | r->failed_tasks) != 0 ? RUN_HAS_FINDINGS : 0);
	for (int i = 0; i < RUN_STRINGS; i++) {
		size += size_of(strings[i]);
		flags |= strings[i] != NULL ? (uint64_t)RUN_FIRST_STRING << i : 0;
	}
	at = note_begin(c, NOTE_RUN, size);
	if (at == NULL)
		return;
	at = note_put_string(at, r->id);
	at = note_put_u64(at, flags);
	at = note_put_u64(at, r->strength);
	at = note_put_double(at, r->confidence);
	at = note_put_id(at, &r->root);
	at = note_put_u64(at, (uint32_t)r->status);
	at = note_put_u64(at, r->start_ns);
	at = note_put_u64(at, r->lost_before);
	if (r->uid.known)
		at = note_put_u64(at, r->uid.value);
	if (r->cpus.known)
		at = note_put_double(at, r->cpus.value);
	if (r->memory_bytes.known)
		at = note_put_u64(at, r->memory_bytes.value);
	at = note_put_work(at, &r->work);
	for (int i = 0; i < RUN_STRINGS; i++) {
		if (strings[i] != NULL)
			at = note_put_string(at, strings[i]);
	}
	if (flags & RUN_HAS_FINDINGS)
		at = note_put_u64(note_put_u64(at, r->findings), r->failed_tasks);
	r->noted_in = c->journal.checkpoint;
	note_end(c, at);
}

static void
note_fact(struct correlator *c, const struct fact *f)
{
	uint8_t *at = note_begin(c, NOTE_FACT, RUN_ID_SIZE + f->len);

	if (at == NULL)
		return;
	at = note_put_string(at, f->run->id);
	at = note_put_u64(at, f->n);
	at = note_put_u64(at, f->len);
	memcpy(at, f->key, f->len);
	note_end(c, at + f->len);
}

static void
note_cgroup(struct correlator *c, const struct cgroup_path *g)
{
	uint8_t *at = note_begin(c, NOTE_CGROUP, size_of(g->path));

	if (at == NULL)
		return;
	at = note_put_u64(at, g->key.id);
	at = note_put_u64(at, (g->key.is_v2 != 0 ? 1 : 0) | (g->cpus.known ? 2 : 0) |
	    (g->memory_bytes.known ? 4 : 0));
	if (g->cpus.known)
		at = note_put_double(at, g->cpus.value);
	if (g->memory_bytes.known)
		at = note_put_u64(at, g->memory_bytes.value);
	note_end(c, note_put_string(at, g->path));
}

static void
note_task(struct correlator *c, struct task *t)
{
	uint8_t *at = note_begin(c, NOTE_TASK, RUN_ID_SIZE + 3 * ENGINE_NAME_SIZE + size_of(t->engine) +
	    size_of(t->source) + size_of(t->work_dir) + size_of(t->scheduler) + size_of(t->job_id));

	if (at == NULL)
		return;
	at = note_put_u64(at, t->number);
	at = note_put_string(at, t->run->id);
	at = note_put_id(at, &t->root);
	at = note_put_u64(at, (t->is_named ? TASK_IS_NAMED : 0) | (t->has_started ? TASK_HAS_STARTED : 0) |
	    (t->has_ended ? TASK_HAS_ENDED : 0) | (t->root_ended ? TASK_ROOT_ENDED : 0) |
	    (t->engine != NULL ? TASK_HAS_ENGINE : 0) | (t->source != NULL ? TASK_HAS_SOURCE : 0) |
	    (t->work_dir != NULL ? TASK_HAS_WORK_DIR : 0) | (t->id_key != NULL ? TASK_HAS_ID_KEY : 0) |
	    (t->attempt.known ? TASK_HAS_ATTEMPT : 0) | (t->cpus.known ? TASK_HAS_CPUS : 0) |
	    (t->memory_bytes.known ? TASK_HAS_MEMORY : 0) | (t->scheduler != NULL ? TASK_HAS_SCHEDULER : 0) |
	    (t->job_id != NULL ? TASK_HAS_JOB : 0) | (t->failing == FAILING_DUE ? TASK_FAILING_DUE : 0) |
	    (t->failing == FAILING_OVER ? TASK_FAILING_OVER : 0) | (t->oom_kills > 0 ? TASK_HAS_OOM_KILLS : 0));
	at = note_put_u64(at, (uint32_t)t->status);
	at = note_put_double(at, t->confidence);
	if (t->attempt.known)
		at = note_put_u64(at, (uint32_t)t->attempt.value);
	if (t->cpus.known)
		at = note_put_double(at, t->cpus.value);
	if (t->memory_bytes.known)
		at = note_put_u64(at, t->memory_bytes.value);
	at = note_put_work(at, &t->work);
	at = note_put_string(at, t->task_id);
	at = note_put_string(at, t->name);
	at = note_put_string(at, t->sample);
	if (t->engine != NULL)
		at = note_put_string(at, t->engine);
	if (t->source != NULL)
		at = note_put_string(at, t->source);
	if (t->work_dir != NULL)
		at = note_put_string(at, t->work_dir);
	if (t->scheduler != NULL)
		at = note_put_string(at, t->scheduler);
	if (t->job_id != NULL)
		at = note_put_string(at, t->job_id);
	if (t->oom_kills > 0)
		at = note_put_u64(at, t->oom_kills);
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
	/* In the order of the block, which get_text() reads again. */
	const char *const strings[] = { t->exe, t->comm, t->cwd, t->tool, t->words.subcommand, t->words.script,
		t->words.jar, t->words.class, t->trace_id, t->span_id };
	static const uint32_t flags[] = { TEXT_HAS_EXE, TEXT_HAS_COMM, TEXT_HAS_CWD, TEXT_HAS_TOOL,
		TEXT_HAS_SUBCOMMAND, TEXT_HAS_SCRIPT, TEXT_HAS_JAR, TEXT_HAS_CLASS, TEXT_HAS_TRACE_ID,
		TEXT_HAS_SPAN_ID };
	size_t tables = t->n_variables * sizeof(*t->variables) +
	    (t->argv != NULL ? (t->argc + 1) * sizeof(*t->argv) : 0);
	bool has_argv = t->argv != NULL && t->size - tables <= NOTE_TEXT_MAX;
	bool is_cut = t->argv_truncated || has_argv != (t->argv != NULL);
	uint32_t told = (t->is_tool ? TEXT_IS_TOOL : 0) | (is_cut ? TEXT_ARGV_TRUNCATED : 0) |
	    (has_argv ? TEXT_HAS_ARGV : 0) | (t->tool_rule != NULL ? TEXT_HAS_RULE : 0);

	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
		told |= strings[i] != NULL ? flags[i] : 0;
	at = note_put_u64(at, told);
	at = note_put_u64(at, has_argv ? t->argc : 0);
	at = note_put_u64(at, t->n_variables);
	for (size_t i = 0; has_argv && i < t->argc; i++)
		at = note_put_string(at, t->argv[i]);
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
		if (strings[i] != NULL)
			at = note_put_string(at, strings[i]);
	}
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

/* Does a run count other usage for it than the last Usage record says? */
static bool
has_latest(const struct process *p)
{
	static const struct usage none;

	return p->run != NULL && p->is_announced && !p->is_over &&
	    memcmp(&p->latest, p->was_usage_sent ? &p->sent : &none, sizeof(p->latest)) != 0;
}

static uint32_t
flags_of(const struct process *p, bool was_shown)
{
	return (p->has_context ? PROCESS_HAS_CONTEXT : 0) | (p->is_forked ? PROCESS_IS_FORKED : 0) |
	    (p->is_announced ? PROCESS_IS_ANNOUNCED : 0) | (p->is_driver ? PROCESS_IS_DRIVER : 0) |
	    (p->is_over ? PROCESS_IS_OVER : 0) | (p->is_base_known ? PROCESS_IS_BASE_KNOWN : 0) |
	    (p->was_usage_sent ? PROCESS_WAS_USAGE_SENT : 0) |
	    (!p->is_over && !is_zero(&p->base) ? PROCESS_HAS_BASE : 0) |
	    (p->is_announced && !p->is_over ? PROCESS_HAS_SENT : 0) |
	    (has_latest(p) ? PROCESS_HAS_LATEST : 0) | (p->run != NULL ? PROCESS_HAS_RUN : 0) |
	    (p->task != NULL ? PROCESS_HAS_TASK : 0) |
	    (was_shown ? PROCESS_WAS_SHOWN : 0) | (p->is_overhead ? PROCESS_IS_OVERHEAD : 0) |
	    (p->is_excluded ? PROCESS_IS_EXCLUDED : 0) | (p->is_inside ? PROCESS_IS_INSIDE : 0) |
	    (p->observed_us != 0 ? PROCESS_IS_OBSERVED : 0) | (p->gone_ns != 0 ? PROCESS_IS_GONE : 0) |
	    (p->unseen_since_ns != 0 ? PROCESS_IS_UNSEEN : 0) |
	    (memcmp(&p->anchor, &p->parent, sizeof(p->anchor)) == 0 ? PROCESS_ANCHOR_IS_PARENT : 0) |
	    (memcmp(&p->above, &p->parent, sizeof(p->above)) == 0 ? PROCESS_ABOVE_IS_PARENT : 0) |
	    (p->title != NULL && p->title->is_taken ? PROCESS_HAS_TITLE : 0) |
	    (p->is_engine ? PROCESS_IS_ENGINE : 0) | (p->has_failed ? PROCESS_HAS_FAILED : 0) |
	    (p->failures != NULL && p->failures->n_below > 0 ? PROCESS_HAS_FAILED_CHILD : 0);
}

static void
note_process(struct correlator *c, struct process *p, bool was_shown)
{
	enum note_text place = text_place(c, p);
	uint32_t flags = flags_of(p, was_shown);
	uint64_t start_ns = p->id.start_ns;
	size_t strings = RUN_ID_SIZE + (place == NOTE_TEXT_HERE ? p->text->size + size_of(p->text->tool_rule) : 0);
	uint8_t *at = note_begin(c, NOTE_PROCESS, strings);

	p->news = NEWS_NONE;
	if (at == NULL)
		return;
	at = note_put_id(at, &p->id);
	at = note_put_u64(at, flags);
	at = note_put_u64(at, p->self.index);
	at = note_put_ancestor(at, &p->parent, start_ns);
	if ((flags & PROCESS_ANCHOR_IS_PARENT) == 0)
		at = note_put_ancestor(at, &p->anchor, start_ns);
	if ((flags & PROCESS_ABOVE_IS_PARENT) == 0)
		at = note_put_ancestor(at, &p->above, start_ns);
	at = note_put_u64(at, p->ppid);
	at = note_put_u64(at, (uint64_t)p->start_us);
	at = note_put_u64(at, (uint64_t)p->program_start_us - (uint64_t)p->start_us);
	at = note_put_u64(at, p->program_start_ns - start_ns);
	if (flags & PROCESS_IS_OBSERVED)
		at = note_put_u64(at, (uint64_t)p->observed_us - (uint64_t)p->start_us);
	if (flags & PROCESS_IS_GONE)
		at = note_put_u64(at, p->gone_ns - start_ns);
	if (flags & PROCESS_IS_UNSEEN)
		at = note_put_u64(at, p->unseen_since_ns - start_ns);
	if (p->has_context) {
		at = note_put_numbers(at, (const uint64_t[]){ p->context.uid, p->context.gid, p->context.pid_ns,
		    p->context.mnt_ns, p->context.net_ns, p->context.cgroup_v2, p->context.cgroup_v1 }, 7);
	}
	if (p->task != NULL)
		at = note_put_u64(at, p->task->number);
	else if (p->run != NULL)
		at = note_put_string(at, p->run->id);
	if (flags & PROCESS_HAS_BASE) {
		at = note_put_counters(at, &p->base.counters);
		at = note_put_u64(note_put_u64(at, p->base.cpu.user_ns), p->base.cpu.system_ns);
	}
	if (flags & PROCESS_HAS_SENT)
		at = note_put_u64(note_put_usage(at, &p->sent), p->sent_ns - start_ns);
	if (flags & PROCESS_HAS_LATEST)
		at = note_put_usage(at, &p->latest);
	at = note_put_u64(at, place);
	if (place == NOTE_TEXT_OF)
		at = note_put_id(at, &p->text->noted_by);
	if (place == NOTE_TEXT_HERE) {
		at = put_text(at, p->text);
		p->text->noted_by = p->id;
		p->text->noted_in = c->journal.checkpoint;
	}
	if (flags & PROCESS_HAS_TITLE)
		at = note_put_usage(at, &p->title->before);
	if (flags & PROCESS_HAS_FAILED_CHILD)
		at = note_put_u64(note_put_u64(at, p->child_begin_ns), p->failures->last_end_ns);
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
	at = note_put_id(at, &p->id);
	*at++ = (uint8_t)((p->was_usage_sent ? 1 : 0) | (has_latest(p) ? 2 : 0));
	at = note_put_u64(note_put_usage(at, &p->sent), p->sent_ns - p->id.start_ns);
	note_end(c, has_latest(p) ? note_put_usage(at, &p->latest) : at);
}

static void
note_failure(struct correlator *c, struct failure *f)
{
	const char *const text[] = { f->tool, f->task_id, f->task, f->sample };
	uint8_t *at = note_begin(c, NOTE_FAILURE, size_of(f->tool) + size_of(f->task_id) + size_of(f->task) +
	    size_of(f->sample));

	if (at == NULL)
		return;
	at = note_put_key(at, &f->program);
	at = note_put_u64(at, (f->is_oom ? FAILURE_IS_OOM : 0) | (f->is_engine ? FAILURE_IS_ENGINE : 0) |
	    (f->is_run_root ? FAILURE_IS_RUN_ROOT : 0) | (f->peak_bytes.known ? FAILURE_HAS_PEAK : 0) |
	    (f->limit_bytes.known ? FAILURE_HAS_LIMIT : 0) | (f->of != NULL ? FAILURE_HAS_OF : 0) |
	    (f->parent.pid != 0 ? FAILURE_HAS_PARENT : 0));
	at = note_put_u64(at, (uint32_t)f->status);
	at = note_put_u64(at, f->begin_ns);
	at = note_put_u64(at, f->end_ns);
	at = note_put_u64(at, f->task_root);
	at = note_put_u64(at, f->skipped);
	if (f->peak_bytes.known)
		at = note_put_u64(at, f->peak_bytes.value);
	if (f->limit_bytes.known)
		at = note_put_u64(at, f->limit_bytes.value);
	if (f->of != NULL)
		at = note_put_key(at, &f->of->program);
	if (f->parent.pid != 0)
		at = note_put_key(at, &f->parent);
	for (int i = 0; i < 4; i++)
		at = note_put_string(at, text[i]);
	f->noted_in = c->journal.checkpoint;
	note_end(c, at);
}

/* Those that it goes back to stand before it. */
static void
note_chain(struct correlator *c, struct failure *f)
{
	while (f->noted_in != c->journal.checkpoint) {
		struct failure *inner = f;

		while (inner->of != NULL && inner->of->noted_in != c->journal.checkpoint)
			inner = inner->of;
		note_failure(c, inner);
		if (inner->noted_in != c->journal.checkpoint)
			break;		/* no memory */
	}
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
journal_run(struct correlator *c, struct run *r)
{
	struct journal *j = &c->journal;

	if (!journal_is_on(c) || r == NULL || r->is_dirty)
		return;
	r->is_dirty = true;
	*(j->dirty_runs != NULL ? j->dirty_runs_end : &j->dirty_runs) = r;
	j->dirty_runs_end = &r->next_dirty;
	r->next_dirty = NULL;
}

void
journal_failure(struct correlator *c, struct failure *f)
{
	if (!journal_is_on(c) || f->is_dirty)
		return;
	f->is_dirty = true;
	DL_APPEND2(c->journal.dirty_failures, f, prev_dirty, next_dirty);
}

void
journal_forget_failure(struct correlator *c, struct failure *f)
{
	if (f->is_dirty)
		DL_DELETE2(c->journal.dirty_failures, f, prev_dirty, next_dirty);
	f->is_dirty = false;
}

void
journal_losses(struct correlator *c)
{
	c->journal.are_losses_dirty = journal_is_on(c);
}

static void
flush_runs(struct correlator *c)
{
	struct journal *j = &c->journal;

	while (j->dirty_runs != NULL) {
		struct run *r = j->dirty_runs;

		j->dirty_runs = r->next_dirty;
		r->is_dirty = false;
		note_run(c, r);
	}
}

void
journal_fact(struct correlator *c, const struct fact *f)
{
	if (!journal_is_on(c))
		return;
	if (!c->journal.has_begun)
		note_beginning(c);
	if (f->run->noted_in != c->journal.checkpoint)
		journal_run(c, f->run);
	flush_runs(c);
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

void
journal_forget(struct correlator *c, struct process *p)
{
	struct process **dirty = &c->journal.dirty;
	uint8_t *at;

	if (p->news != NEWS_NONE) {
		while (*dirty != p)
			dirty = &(*dirty)->next_dirty;
		*dirty = p->next_dirty;
		if (p->next_dirty == NULL)
			c->journal.dirty_end = dirty;
		p->news = NEWS_NONE;
	}
	if (!journal_is_on(c) || p->noted_in == 0 || p->noted_in != c->journal.checkpoint)
		return;
	at = note_begin(c, NOTE_FORGET, 0);
	if (at != NULL)
		note_end(c, note_put_id(at, &p->id));
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
		note_end(c, note_put_u64(bytes, t->number));
}

void
journal_forget_run(struct correlator *c, struct run *r)
{
	uint8_t *at;

	if (!journal_is_on(c) || r->noted_in == 0 || r->noted_in != c->journal.checkpoint)
		return;
	at = note_begin(c, NOTE_FORGET_RUN, RUN_ID_SIZE);
	if (at != NULL)
		note_end(c, note_put_string(at, r->id));
}

/* In the order in which they were marked, runs before their tasks, these before their processes, then failures. */
void
journal_flush(struct correlator *c)
{
	struct journal *j = &c->journal;

	if (j->dirty == NULL && j->dirty_tasks == NULL && j->dirty_runs == NULL && j->dirty_failures == NULL &&
	    !j->are_losses_dirty)
		return;
	if (!j->has_begun)
		note_beginning(c);
	if (j->are_losses_dirty)
		note_losses(c);
	flush_runs(c);
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
	while (j->dirty_failures != NULL) {
		struct failure *f = j->dirty_failures;

		journal_forget_failure(c, f);
		f->noted_in = 0;
		note_chain(c, f);
	}
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
	for (p = c->processes; p != NULL; p = p->hh.next)
		note_process(c, p, false);
	for (l = c->failures; l != NULL; l = l->hh.next)
		note_chain(c, l);
}

void
journal_done(struct correlator *c)
{
	free(c->journal.buffer);
}
