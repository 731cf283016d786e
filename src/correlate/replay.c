/*
 * SPDX-License-Identifier: Apache-2.0
 * Notes of the journal back into a fresh correlator; see journal.h. Trusts no length, count or
 * flag: a note is read whole before it changes anything.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "correlate/journal.h"
#include "correlate/state.h"

#define NAMES_MAX 512		/* engines, rules: words of the program that wrote the notes */

struct reader {
	const uint8_t *at;
	const uint8_t *end;
	bool is_bad;
};

static uint64_t
get_u64(struct reader *r)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64 && r->at < r->end; shift += 7) {
		uint64_t byte = *r->at++;

		if (shift == 63 && byte > 1)
			break;
		value |= (byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
	r->is_bad = true;
	return 0;
}

/* At most max, else the note is bad. */
static uint64_t
get_max(struct reader *r, uint64_t max)
{
	uint64_t value = get_u64(r);

	if (value > max)
		r->is_bad = true;
	return value <= max ? value : 0;
}

static uint32_t
get_u32(struct reader *r)
{
	return (uint32_t)get_max(r, UINT32_MAX);
}

/* UTF-8 up to its NUL, in place; "" where there is none. */
static const char *
get_string(struct reader *r)
{
	const char *s = (const char *)r->at;
	const uint8_t *nul = r->at < r->end ? memchr(r->at, '\0', (size_t)(r->end - r->at)) : NULL;
	size_t len = nul != NULL ? (size_t)(nul - r->at) : 0;

	if (nul == NULL) {
		r->is_bad = true;
		return "";
	}
	for (size_t i = 0, width; i < len; i += width) {
		width = (unsigned char)s[i] < 0x80 ? 1 : text_char(s + i, len - i);
		if (width == 0) {
			r->is_bad = true;
			return "";
		}
	}
	r->at = nul + 1;
	return s;
}

static const char *
get_string_if(struct reader *r, bool is_there)
{
	return is_there ? get_string(r) : NULL;
}

static void
get_numbers(struct reader *r, uint64_t *values, size_t n)
{
	uint64_t mask = get_max(r, (UINT64_C(1) << n) - 1);

	for (size_t i = 0; i < n; i++)
		values[i] = mask >> i & 1 ? get_u64(r) : 0;
}

static void
get_usage(struct reader *r, struct usage *u)
{
	u->known = get_u32(r);
	get_numbers(r, u->value, USAGE_FIELDS);
}

static void
get_counters(struct reader *r, struct counters *c)
{
	uint64_t flags = get_max(r, COUNTERS_FLAGS);

	c->has_peak = flags & COUNTERS_HAS_PEAK;
	c->has_block_io = flags & COUNTERS_HAS_BLOCK_IO;
	c->is_reaped = flags & COUNTERS_IS_REAPED;
	c->is_complete = flags & COUNTERS_IS_COMPLETE;
	get_numbers(r, (uint64_t *)(void *)c, COUNTERS_NUMBERS);
	c->threads = get_u32(r);
	c->threads_peak = get_u32(r);
}

static void
get_work(struct reader *r, struct work *w)
{
	uint64_t v[8];

	get_usage(r, &w->done);
	get_numbers(r, v, 8);
	w->programs = v[0];
	w->failed = v[1];
	w->live = v[2];
	w->start_ns = v[3];
	w->last_ns = v[4];
	w->end_ns = v[5];
	w->busy_ns = v[6];
	w->busy_since_ns = v[7];
}

static struct process_id
get_id(struct reader *r)
{
	struct process_id id;

	id.start_ns = get_u64(r);
	id.pid = get_u32(r);
	return id;
}

static struct program_key
get_ancestor(struct reader *r, uint64_t start_ns)
{
	struct program_key key = { 0 };

	key.pid = get_u32(r);
	if (key.pid == 0)
		return key;
	key.index = get_u32(r);
	key.start_ns = start_ns - get_u64(r);
	return key;
}

static int
reader_done(const struct reader *r)
{
	return r->is_bad || r->at != r->end ? -EBADMSG : 0;
}

/* name as a string that lives as long as c; NULL: no room for another. */
static const char *
keep_name(struct correlator *c, const char *name)
{
	size_t len = strlen(name);
	struct kept_name *k;

	HASH_FIND(hh, c->journal.names, name, len, k);
	if (k == NULL && HASH_COUNT(c->journal.names) < NAMES_MAX && len < RULE_NAME_SIZE) {
		k = calloc(1, sizeof(*k) + len + 1);
		if (k == NULL)
			return NULL;
		memcpy(k->text, name, len);
		HASH_ADD(hh, c->journal.names, text, len, k);
	}
	return k != NULL ? k->text : NULL;
}

/* All that notes told so far is void. */
static void
forget_all(struct correlator *c)
{
	struct process *p, *next_p;
	struct cgroup_path *g, *next_g;

	HASH_ITER(hh, c->processes, p, next_p)
		process_remove(c, p);
	HASH_ITER(hh, c->cgroups, g, next_g) {
		HASH_DEL(c->cgroups, g);
		free(g);
	}
	c->cgroup_bytes = 0;
	tasks_free(c);
	c->run = (struct work){ 0 };
	c->root = (struct process_id){ 0 };
	c->run_start_ns = c->lost_events = c->lost_ends = 0;
	c->journal.replayed.incomplete = 0;
}

static int
replay_beginning(struct correlator *c, struct reader *r)
{
	const char *boot = get_string(r), *own = c->options.run_id;
	bool has_run = get_max(r, 1);
	const char *run = get_string_if(r, has_run);

	if (reader_done(r) < 0)
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
replay_cgroup(struct correlator *c, struct reader *r)
{
	uint64_t id = get_u64(r);
	bool is_v2 = get_max(r, 1);
	const char *path = get_string(r);

	if (reader_done(r) < 0 || id == 0)
		return -EBADMSG;
	if (cgroup_find(c, id, is_v2) == NULL && cgroup_add(c, id, is_v2, path, strlen(path)) == NULL)
		return -ENOMEM;
	return 0;
}

static int
replay_run(struct correlator *c, struct reader *r)
{
	uint64_t start_ns = get_u64(r);
	struct process_id root = get_id(r);
	uint64_t lost_events = get_u64(r), lost_ends = get_u64(r);
	struct work work = { 0 };

	get_work(r, &work);
	if (reader_done(r) < 0 || !state_has_run(c))
		return -EBADMSG;
	c->run_start_ns = start_ns;
	c->root = root;
	c->lost_events = lost_events;
	c->lost_ends = lost_ends;
	c->run = work;
	return 0;
}

static const char *
get_name(struct reader *r)
{
	const char *name = get_string(r);

	if (strlen(name) >= RULE_NAME_SIZE)
		r->is_bad = true;
	return name;
}

static int
replay_task(struct correlator *c, struct reader *r)
{
	struct process_id root = get_id(r);
	uint64_t flags = get_max(r, TASK_FLAGS);
	uint32_t status = get_u32(r);
	const char *task_id, *name, *sample, *engine, *source, *work_dir;
	char *own_work_dir = NULL;
	double confidence = 0;
	struct work work = { 0 };
	struct task *t;

	if ((size_t)(r->end - r->at) < sizeof(confidence))
		return -EBADMSG;
	memcpy(&confidence, r->at, sizeof(confidence));
	r->at += sizeof(confidence);
	get_work(r, &work);
	task_id = get_name(r);
	name = get_name(r);
	sample = get_name(r);
	engine = get_string_if(r, flags & TASK_HAS_ENGINE);
	source = get_string_if(r, flags & TASK_HAS_SOURCE);
	work_dir = get_string_if(r, flags & TASK_HAS_WORK_DIR);
	if (reader_done(r) < 0 || !(confidence >= 0 && confidence <= 1) || !state_has_run(c))
		return -EBADMSG;
	if (engine != NULL && (engine = keep_name(c, engine)) == NULL)
		return -ENOMEM;
	if (source != NULL && (source = keep_name(c, source)) == NULL)
		return -ENOMEM;
	if (work_dir != NULL && (own_work_dir = strdup(work_dir)) == NULL)
		return -ENOMEM;
	t = task_get(c, &root);
	if (t == NULL) {
		free(own_work_dir);
		return -ENOMEM;
	}
	strcpy(t->task_id, task_id);
	strcpy(t->name, name);
	strcpy(t->sample, sample);
	free(t->work_dir);
	t->work_dir = own_work_dir;
	t->engine = engine;
	t->source = source;
	t->confidence = confidence;
	t->status = (int32_t)status;
	t->work = work;
	t->is_named = flags & TASK_IS_NAMED;
	t->has_started = flags & TASK_HAS_STARTED;
	t->has_ended = flags & TASK_HAS_ENDED;
	t->root_ended = flags & TASK_ROOT_ENDED;
	t->noted_in = c->journal.checkpoint;
	return 0;
}

/* The text that a note holds, in place but for the table of arguments. */
static void
get_text(struct correlator *c, struct reader *r, struct text_parts *x)
{
	uint64_t flags = get_max(r, TEXT_FLAGS);
	uint64_t argc = get_max(r, (uint64_t)(r->end - r->at));	/* each takes a byte at least */
	const char **argv = NULL;

	x->is_tool = flags & TEXT_IS_TOOL;
	x->argv_truncated = flags & TEXT_ARGV_TRUNCATED;
	if (flags & TEXT_HAS_ARGV) {
		arena_reset(&c->arena);
		argv = arena_alloc(&c->arena, (size_t)(argc + 1) * sizeof(*argv));
		if (argv == NULL)
			r->is_bad = true;
		for (uint64_t i = 0; i < argc && !r->is_bad; i++)
			argv[i] = get_string(r);
	} else if (argc != 0) {
		r->is_bad = true;
	}
	x->argv = argv;
	x->argc = (size_t)argc;
	x->exe = get_string_if(r, flags & TEXT_HAS_EXE);
	x->comm = get_string_if(r, flags & TEXT_HAS_COMM);
	x->cwd = get_string_if(r, flags & TEXT_HAS_CWD);
	x->tool = get_string_if(r, flags & TEXT_HAS_TOOL);
	x->tool_rule = get_string_if(r, flags & TEXT_HAS_RULE);
}

/* A process note, read. */
struct told {
	struct process p;		/* its values; no pointers */
	uint64_t flags;
	struct process_id task;
	enum note_text place;
	struct process_id holder;
	struct text_parts parts;
};

static void
get_process(struct correlator *c, struct reader *r, struct told *t)
{
	struct process *p = &t->p;
	uint64_t start_ns, flags, v[7];

	p->id = get_id(r);
	start_ns = p->id.start_ns;
	t->flags = flags = get_max(r, PROCESS_FLAGS);
	p->self = (struct program_key){ start_ns, (uint32_t)p->id.pid, get_u32(r) };
	p->parent = get_ancestor(r, start_ns);
	p->anchor = flags & PROCESS_ANCHOR_IS_PARENT ? p->parent : get_ancestor(r, start_ns);
	p->ppid = get_u32(r);
	p->start_us = (int64_t)get_u64(r);
	p->program_start_us = (int64_t)((uint64_t)p->start_us + get_u64(r));
	p->program_start_ns = start_ns + get_u64(r);
	if (flags & PROCESS_IS_OBSERVED)
		p->observed_us = (int64_t)((uint64_t)p->start_us + get_u64(r));
	if (flags & PROCESS_IS_GONE)
		p->gone_ns = start_ns + get_u64(r);
	if (flags & PROCESS_IS_UNSEEN)
		p->unseen_since_ns = start_ns + get_u64(r);
	p->has_context = flags & PROCESS_HAS_CONTEXT;
	p->is_forked = flags & PROCESS_IS_FORKED;
	p->is_announced = flags & PROCESS_IS_ANNOUNCED;
	p->is_driver = flags & PROCESS_IS_DRIVER;
	p->is_over = flags & PROCESS_IS_OVER;
	p->is_base_known = flags & PROCESS_IS_BASE_KNOWN;
	p->was_usage_sent = flags & PROCESS_WAS_USAGE_SENT;
	if (p->has_context) {
		get_numbers(r, v, 7);
		for (int i = 0; i < 5; i++)
			r->is_bad |= v[i] > UINT32_MAX;
		p->context = (struct program_context){ (uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2],
			(uint32_t)v[3], (uint32_t)v[4], v[5], v[6] };
	}
	if (flags & PROCESS_HAS_TASK)
		t->task = get_id(r);
	if (flags & PROCESS_HAS_BASE) {
		get_counters(r, &p->base.counters);
		p->base.cpu.user_ns = get_u64(r);
		p->base.cpu.system_ns = get_u64(r);
	}
	if (flags & PROCESS_HAS_SENT) {
		get_usage(r, &p->sent);
		p->sent_ns = start_ns + get_u64(r);
	}
	if (flags & PROCESS_HAS_LATEST)
		get_usage(r, &p->latest);
	t->place = (enum note_text)get_max(r, NOTE_TEXTS - 1);
	if (t->place == NOTE_TEXT_OF)
		t->holder = get_id(r);
	else if (t->place == NOTE_TEXT_HERE)
		get_text(c, r, &t->parts);
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

static int
replay_process(struct correlator *c, struct reader *r)
{
	struct told t = { 0 };
	struct process *p;
	struct task *task = NULL;
	struct text *text = NULL;

	get_process(c, r, &t);
	if (reader_done(r) < 0)
		return -EBADMSG;
	if (t.parts.tool_rule != NULL && (t.parts.tool_rule = keep_name(c, t.parts.tool_rule)) == NULL)
		return -ENOMEM;
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
		task = task_find(c, &t.task);
		c->journal.replayed.incomplete += task == NULL;
	}
	program_text_unref(c, p->text);
	task_assign(c, p, task);
	t.p.hh = p->hh;
	t.p.pass = p->pass;
	t.p.task = task;
	t.p.text = text;
	t.p.is_text_noted = text != NULL;
	t.p.noted_in = c->journal.checkpoint;
	*p = t.p;
	if (t.place == NOTE_TEXT_HERE) {
		text->noted_by = p->id;
		text->noted_in = c->journal.checkpoint;
	}
	if (t.flags & PROCESS_WAS_SHOWN && p->has_context) {	/* in the order of program_emit() */
		cgroup_find(c, p->context.cgroup_v2, true);
		cgroup_find(c, p->context.cgroup_v1, false);
	}
	return 0;
}

static int
replay_usage(struct correlator *c, struct reader *r)
{
	struct process_id id = get_id(r);
	uint64_t flags = get_max(r, 3), after_ns;
	struct usage sent = { 0 }, latest = { 0 };
	struct process *p;

	get_usage(r, &sent);
	after_ns = get_u64(r);
	if (flags & 2)
		get_usage(r, &latest);
	if (reader_done(r) < 0)
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
replay_forget(struct correlator *c, struct reader *r)
{
	struct process_id id = get_id(r);
	struct process *p;

	if (reader_done(r) < 0)
		return -EBADMSG;
	p = process_find(c, id.start_ns, id.pid);
	if (p != NULL)
		process_remove(c, p);
	else
		c->journal.replayed.incomplete++;
	return 0;
}

static int
replay_forget_task(struct correlator *c, struct reader *r)
{
	struct process_id root = get_id(r);
	struct task *t;

	if (reader_done(r) < 0)
		return -EBADMSG;
	t = task_find(c, &root);
	if (t != NULL) {	/* else it went with its last process */
		t->has_ended = true;
		task_reap(c, t);
	}
	return 0;
}

static int
replay(struct correlator *c, enum note_kind kind, struct reader *r)
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
	if (len >= 2 && len <= NOTE_MAX_BYTES && bytes[1] >= 1 && bytes[1] <= NOTE_VERSION)
		error = replay(c, bytes[0], &(struct reader){ bytes + 2, bytes + len, false });
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
	for (p = c->processes; p != NULL && !state_has_run(c); p = p->hh.next)
		c->run.live += p->is_announced;
	told->processes = HASH_COUNT(c->processes);
	if (ret != NULL)
		*ret = *told;
	c->journal.is_replaying = false;
}
