/*
 * SPDX-License-Identifier: Apache-2.0
 * The life of a process and of its programs.
 *
 *                exec                        exec (replaces: END, START)
 *   (unknown) ─────────► announced ◄──────────────┐
 *       │ fork seen          │ └──────────────────┘
 *       ▼ (child ran 1 s,    │ zombie: END                 exit
 *     forked   or ended)     ├────────────────► over ────────────► (gone)
 *       │ 1 s, or its end    │ exit: END
 *       └───► announced ─────┴──────────────────────────────────► (gone)
 *
 * One that ran before we watched comes as an exec too (is_found). Each call that changes something
 * ends with journal_flush(): the next life goes on from there.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "correlate/state.h"

#define ARENA_BYTES (1u << 20)		/* 32 KiB of arguments, all escaped, and their pointers */
#define FORKED_START_NS UINT64_C(1000000000)
#define TASK_QUIET_NS UINT64_C(1000000000)	/* after which a task without programs has ended */
/*
 * A child that never execs takes its names from its parent, and may be heard of only after the
 * parent's end: at its own end, or a snapshot (one a second) later.
 */
#define GONE_KEPT_NS UINT64_C(1500000000)
#define UNSEEN_LIMIT_NS UINT64_C(15000000000)	/* without a process in any pass: its end was lost */

static char *
copy_or_null(const char *s)
{
	return s != NULL ? strdup(s) : NULL;
}

int
correlator_new(const struct correlator_options *options, const struct correlator_ops *ops,
    void *arg, struct correlator **ret)
{
	struct correlator *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return -ENOMEM;
	c->ops = *ops;
	c->arg = arg;
	c->options = *options;
	c->options.boot_id = copy_or_null(options->boot_id);
	c->options.run_id = copy_or_null(options->run_id);
	c->options.pipeline = copy_or_null(options->pipeline);
	c->options.task = copy_or_null(options->task);
	c->options.sample = copy_or_null(options->sample);
	c->options.command = copy_or_null(options->command);
	c->options.work_dir = copy_or_null(options->work_dir);
	if (arena_init(&c->arena, ARENA_BYTES) < 0 || c->options.boot_id == NULL ||
	    (options->run_id != NULL && c->options.run_id == NULL)) {
		correlator_free(c);
		return -ENOMEM;
	}
	*ret = c;
	return 0;
}

void
process_remove(struct correlator *c, struct process *p)
{
	HASH_DEL(c->processes, p);
	if (p->prev_gone != NULL) {
		DL_DELETE2(c->gone, p, prev_gone, next_gone);
		c->gone_count--;
	}
	program_text_unref(c, p->text);
	task_assign(c, p, NULL);
	free(p);
}

void
correlator_free(struct correlator *c)
{
	struct process *p, *next;
	struct cgroup_path *g, *next_g;

	if (c == NULL)
		return;
	c->ops.note = NULL;	/* nothing of this is news */
	HASH_ITER(hh, c->processes, p, next)
		process_remove(c, p);
	HASH_ITER(hh, c->cgroups, g, next_g) {
		HASH_DEL(c->cgroups, g);
		free(g);
	}
	journal_done(c);
	tasks_free(c);
	rows_free(c);
	arena_done(&c->arena);
	free((char *)c->options.boot_id);
	free((char *)c->options.run_id);
	free((char *)c->options.pipeline);
	free((char *)c->options.task);
	free((char *)c->options.sample);
	free((char *)c->options.command);
	free((char *)c->options.work_dir);
	free(c);
}

void
correlator_set_clock(struct correlator *c, int64_t wall_minus_boot_ns)
{
	c->clock_ns = wall_minus_boot_ns;
}

int64_t
state_wall_us(const struct correlator *c, uint64_t boot_ns)
{
	return (int64_t)(boot_ns + (uint64_t)c->clock_ns) / 1000;
}

/* value in lower-case hex at out; returns the end. */
static char *
put_hex(char *out, uint64_t value)
{
	int shift = value != 0 ? (63 - __builtin_clzll(value)) & ~3 : 0;

	for (; shift >= 0; shift -= 4)
		*out++ = "0123456789abcdef"[value >> shift & 15];
	return out;
}

/*
 * Unique among all programs of all boots of a host: the first part of the boot id, pid, start and
 * index, in hex. By hand: there are four in the records of each program.
 */
void
program_id_format(const struct correlator *c, const struct program_key *key, char out[PROGRAM_ID_SIZE])
{
	size_t n = strnlen(c->options.boot_id, 8);

	memcpy(out, c->options.boot_id, n);
	out += n;
	*out++ = '-';
	out = put_hex(out, key->pid);
	*out++ = '-';
	out = put_hex(out, key->start_ns);
	*out++ = '-';
	out = put_hex(out, key->index);
	*out = '\0';
}

/* processes */

struct process *
process_find(struct correlator *c, uint64_t start_ns, uint64_t pid)
{
	struct process_id id = { start_ns, pid };
	struct process *p;

	if (pid == 0)
		return NULL;
	HASH_FIND(hh, c->processes, &id, sizeof(id), p);
	return p;
}

static struct process *
process_of(struct correlator *c, const struct program_key *key)
{
	return process_find(c, key->start_ns, key->pid);
}

struct process *
process_new(struct correlator *c, const struct process_id *id)
{
	struct process *p = HASH_COUNT(c->processes) < PROCESSES_MAX ? calloc(1, sizeof(*p)) : NULL;

	if (p == NULL) {
		c->refused++;
		return NULL;
	}
	p->id = *id;
	p->pass = c->pass;
	HASH_ADD(hh, c->processes, id, sizeof(p->id), p);
	return p;
}

void
process_set_text(struct correlator *c, struct process *p, struct text *t)
{
	program_text_unref(c, p->text);
	p->text = t;
	p->is_text_noted = false;
}

void
process_gone(struct correlator *c, struct process *p)
{
	DL_APPEND2(c->gone, p, prev_gone, next_gone);
	c->gone_count++;
}

/* It is of no more use to anybody. */
static void
process_forget(struct correlator *c, struct process *p)
{
	journal_forget(c, p);
	process_remove(c, p);
}

static struct process *
process_add(struct correlator *c, const struct program_key *self, const struct program_key *parent,
    const struct program_key *anchor)
{
	struct process *p = process_new(c, &(struct process_id){ self->start_ns, self->pid });

	if (p == NULL)
		return NULL;
	p->self = *self;
	p->parent = *parent;
	p->anchor = *anchor;
	p->is_forked = true;
	p->is_base_known = self->index == 0;
	p->start_us = state_wall_us(c, self->start_ns);
	p->program_start_us = p->start_us;
	p->program_start_ns = self->start_ns;
	if (state_has_run(c) && parent->pid == 0 && c->root.pid == 0) {
		c->root = p->id;	/* we forked it ourselves: COMMAND */
		journal_run(c);
	}
	journal_process(c, p, NEWS_ALL);
	return p;
}

/*
 * Who p descends from, for its task: its parent, or where that was never seen (it forked and has
 * not exec'd) a place kept for it, a child of p's nearest ancestor that exec'd.
 */
static struct process *
process_parent(struct correlator *c, const struct process *p)
{
	struct process *parent = process_of(c, &p->parent), *anchor;

	if (parent != NULL || p->parent.pid == 0)
		return parent;
	anchor = process_of(c, &p->anchor);
	if (anchor == NULL ||
	    (p->anchor.pid == p->parent.pid && p->anchor.start_ns == p->parent.start_ns))
		return anchor;
	parent = process_add(c, &p->parent, &p->anchor, &p->anchor);
	if (parent == NULL)
		return anchor;
	process_set_text(c, parent, program_text_ref(anchor->text));
	task_assign(c, parent, task_of_fork(c, parent, anchor));
	return parent;
}

/* The current program has begun: START, and one more in its task, row and the run. */
static void
program_begin(struct correlator *c, struct process *p, uint64_t at_ns)
{
	struct program_record r = { .phase = PHASE_START };

	p->is_announced = true;
	p->was_usage_sent = false;
	p->latest = (struct usage){ 0 };
	p->sent = (struct usage){ .known = UINT32_MAX };	/* of everything nothing */
	p->sent_ns = p->program_start_ns;
	work_begin(&c->run, p->program_start_ns);
	c->run.programs++;
	journal_run(c);
	journal_process(c, p, NEWS_SHOWN);
	p->row = row_of(c, p);
	if (p->row != NULL) {
		work_begin(&p->row->work, p->program_start_ns);
		p->row->work.programs++;
	}
	if (p->task != NULL) {
		work_begin(&p->task->work, p->program_start_ns);
		p->task->work.programs++;
		p->task->has_ended = false;
		journal_task(c, p->task);
		if (!p->task->has_started) {
			p->task->has_started = true;
			task_emit(c, p->task, PHASE_START, at_ns);
		}
	}
	r.head.time_us = state_wall_us(c, at_ns);
	program_emit(c, p, &r);
}

static void
work_add(struct work *w, const struct usage *usage, bool has_failed, uint64_t end_ns)
{
	struct usage ended = *usage;

	ended.known &= ~(UINT32_C(1) << USAGE_RSS_BYTES);	/* what has ended holds no memory */
	usage_add(&w->done, &ended);
	w->failed += has_failed;
	work_end(w, end_ns);
}

/* The current program's end goes to the sums, and it is not live any more. */
static void
program_leave(struct correlator *c, struct process *p, const struct usage *usage, bool has_failed,
    uint64_t end_ns)
{
	if (state_has_run(c))
		work_add(&c->run, usage, has_failed, end_ns);
	else
		work_add(&c->run, &(struct usage){ 0 }, has_failed, end_ns);
	journal_run(c);
	if (p->row != NULL)
		work_add(&p->row->work, usage, has_failed, end_ns);
	if (p->task != NULL)
		work_add(&p->task->work, usage, has_failed, end_ns);
	if (p->task != NULL)
		journal_task(c, p->task);
	p->row = NULL;
	p->is_announced = false;
	p->latest = (struct usage){ 0 };
}

/* The record of the current program's end was lost, and with it what it used. */
static void
program_lose(struct correlator *c, struct process *p, uint64_t end_ns)
{
	const struct usage none = { 0 };

	if (!p->is_announced)
		return;
	program_leave(c, p, &none, false, end_ns);
	c->lost_ends++;
}

/* The current program has ended: END, and its usage goes to the sums. r: reason, status, comm. */
static void
program_end(struct correlator *c, struct process *p, struct program_record *r, uint64_t end_ns,
    const struct usage *usage)
{
	bool has_failed = r->exit_signal.known || (r->exit_code.known && r->exit_code.value != 0);

	r->phase = PHASE_END;
	r->usage = usage;
	if (end_ns < p->program_start_ns)
		end_ns = p->program_start_ns;
	r->end_time_us = (struct opt_u64){ (uint64_t)state_wall_us(c, end_ns), true };
	r->head.time_us = (int64_t)r->end_time_us.value;
	journal_process(c, p, NEWS_SHOWN);
	program_emit(c, p, r);
	program_leave(c, p, usage, has_failed, end_ns);
}

/*
 * A child that was announced as its parent's copy has its own name now: END will tell it, and its
 * sums go to the row of that name. Its task stays what START said.
 */
static void
program_rename(struct correlator *c, struct process *p)
{
	struct row *row = row_of(c, p);

	if (row == p->row)
		return;
	if (p->row != NULL) {
		p->row->work.programs--;
		p->row->work.live--;
	}
	p->row = row;
	if (row != NULL) {
		work_begin(&row->work, p->program_start_ns);
		row->work.programs++;
	}
}

/* A program that never exec'd is what its parent is, under its own name. */
static void
forked_text(struct correlator *c, struct process *p)
{
	struct process *parent = process_parent(c, p);

	if (p->text == NULL && parent != NULL)
		process_set_text(c, p, program_text_ref(parent->text));
	if (p->task == NULL)
		task_assign(c, p, task_of_fork(c, p, parent));
	if (!p->has_context && parent != NULL && parent->has_context) {
		p->context = parent->context;
		p->has_context = true;
	}
}

/* signals */

void
correlator_run_start(struct correlator *c, uint64_t now_ns)
{
	c->run_start_ns = now_ns;
	journal_run(c);
	if (state_has_run(c))
		run_emit(c, PHASE_START, now_ns, 0);
	journal_flush(c);
}

void
correlator_exec(struct correlator *c, const struct exec_signal *s)
{
	struct process *p = process_of(c, &s->self);
	struct task *task;

	if (p != NULL && (p->is_over || (s->is_found && p->is_announced)))
		return;		/* the dead do not exec, and who is known needs no finding */
	if (p == NULL) {
		p = process_add(c, &s->self, &s->parent, &s->anchor);
		if (p == NULL)
			return;
	} else if (s->has_replaced) {
		if (p->is_announced && p->self.index + 1 == s->self.index) {
			struct program_record r = { .end_reason = END_REASON_EXEC };
			struct usage none = { 0 };
			struct usage usage = p->is_base_known ?
			    usage_of_program(&p->base, &s->replaced, c->options.has_network) : none;

			program_end(c, p, &r, s->time_ns, &usage);
		} else {
			/* the exec between was lost: so is the end of the one we knew */
			program_lose(c, p, s->time_ns);
		}
	}
	p->self = s->self;
	p->parent = s->parent;
	p->anchor = s->anchor;
	p->ppid = s->ppid;
	p->context = s->context;
	p->has_context = true;
	p->is_forked = false;
	p->observed_us = 0;
	journal_process(c, p, NEWS_ALL);
	if (s->is_found) {
		p->base = (struct usage_base){ 0 };
		usage_base_set(&p->base, &s->replaced);
		p->is_base_known = true;
		p->observed_us = state_wall_us(c, s->time_ns);
	} else if (s->has_replaced) {
		usage_base_set(&p->base, &s->replaced);
		p->is_base_known = true;
		p->program_start_us = state_wall_us(c, s->time_ns);
		p->program_start_ns = s->time_ns;
	} else {
		p->is_base_known = s->self.index == 0;	/* a snapshot may have been ahead of us */
	}
	process_set_text(c, p, program_text_new(c, s));
	task = task_of_exec(c, p, process_parent(c, p));
	if (p->is_announced) {		/* it lived a second before its first exec */
		if (task != NULL && task != p->task)
			task_reap(c, task);
		program_rename(c, p);
	} else {
		task_assign(c, p, task);
		program_begin(c, p, s->time_ns);
		if (s->is_found)
			p->sent_ns = s->time_ns;	/* its first Usage record covers the time since */
	}
	journal_flush(c);
}

/* The last word on a process: it was reaped, or is a zombie and counts no more. */
static void
process_ended(struct correlator *c, struct process *p, const struct state_signal *s)
{
	struct program_record r = { .end_reason = END_REASON_EXIT };
	struct usage usage = { 0 };
	uint64_t end_ns = s->end_ns != 0 ? s->end_ns : s->time_ns;
	char comm[TEXT_ESCAPE_MAX(SIGNAL_COMM_SIZE)];

	if (s->ppid != 0)
		p->ppid = s->ppid;
	if (s->has_context) {
		p->context = s->context;
		p->has_context = true;
	}
	if (!s->has_execed)
		forked_text(c, p);
	if (p->self.index != s->self.index) {	/* an exec was lost: nothing is known of this program */
		program_lose(c, p, end_ns);
		p->self = s->self;
		p->is_forked = false;
		p->is_base_known = false;
		p->program_start_ns = s->program_start_ns;
		p->program_start_us = state_wall_us(c, s->program_start_ns);
		p->observed_us = 0;
		process_set_text(c, p, NULL);
	} else if (s->has_execed && p->is_forked) {	/* its first exec was lost, its totals were not */
		p->is_forked = false;
		process_set_text(c, p, NULL);	/* its parent's */
	}
	if (!p->is_announced) {
		if (p->task == NULL)
			task_assign(c, p, task_of_fork(c, p, process_parent(c, p)));
		program_begin(c, p, s->has_execed ? s->program_start_ns : end_ns);
	}

	if ((s->status & 0x7f) != 0)
		r.exit_signal = (struct opt_i32){ s->status & 0x7f, true };
	else
		r.exit_code = (struct opt_i32){ s->status >> 8 & 0xff, true };
	r.core_dumped = s->status & 0x80;
	r.oom_killed = s->oom_killed;
	text_escape(s->comm, strlen(s->comm), comm, sizeof(comm), NULL);
	r.comm = comm;
	if (p->is_base_known || s->self.index == 0)
		usage = usage_of_program(&p->base, &s->counters, c->options.has_network);
	if (p->task != NULL && p->task->root.pid == p->id.pid && p->task->root.start_ns == p->id.start_ns) {
		p->task->root_ended = true;
		p->task->status = s->status;
		journal_task(c, p->task);
	}
	program_end(c, p, &r, end_ns, &usage);
}

static void
process_lives(struct correlator *c, struct process *p, const struct state_signal *s)
{
	struct usage usage, moved;

	if (p->ppid != s->ppid)
		journal_process(c, p, NEWS_ALL);
	p->ppid = s->ppid;
	if (!s->has_execed && p->text == NULL) {
		const struct task *task = p->task;
		bool has_context = p->has_context;

		forked_text(c, p);	/* while its parent is still known */
		if (p->text != NULL || p->task != task || p->has_context != has_context)
			journal_process(c, p, NEWS_ALL);
	}
	if (!s->has_execed && p->is_forked && !p->is_announced &&
	    s->time_ns - s->self.start_ns >= FORKED_START_NS) {
		program_begin(c, p, s->time_ns);
	}
	if (!p->is_announced || p->self.index != s->self.index || !p->is_base_known)
		return;
	usage = usage_of_program(&p->base, &s->counters, c->options.has_network);
	p->latest = usage;
	if (state_has_run(c))
		journal_process(c, p, NEWS_USAGE);
	if (!c->pass_with_usage)
		return;
	moved = usage_since(&usage, &p->sent);
	if (p->was_usage_sent && usage_cpu_ns(&moved) == 0 && moved.value[USAGE_VOLUNTARY_SWITCHES] == 0 &&
	    moved.value[USAGE_RCHAR] == 0 && moved.value[USAGE_WCHAR] == 0)
		return;
	if (s->time_ns > p->sent_ns) {
		char self[PROGRAM_ID_SIZE], parent[PROGRAM_ID_SIZE];
		struct usage_record r = { .usage = &moved, .interval_ns = s->time_ns - p->sent_ns };

		program_head_fill(c, p, &r.head);
		r.head.time_us = state_wall_us(c, s->time_ns);
		program_identity_fill(c, p, &r.id, self, parent);
		if (p->text != NULL) {
			r.comm = p->text->comm;
			r.tool = p->text->tool;
		}
		c->ops.usage(&r, c->arg);
		p->sent = usage;
		p->sent_ns = s->time_ns;
		p->was_usage_sent = true;
		journal_process(c, p, NEWS_USAGE);
	}
}

void
correlator_state(struct correlator *c, const struct state_signal *s)
{
	struct process *p;

	if (s->kind == STATE_BYSTANDER || s->kind == STATE_FOUND)
		return;
	p = process_of(c, &s->self);
	if (p == NULL) {
		p = process_add(c, &s->self, &s->parent, &s->anchor);
		if (p == NULL)
			return;
	} else if (p->is_forked && !s->has_execed) {
		if (memcmp(&p->parent, &s->parent, sizeof(p->parent)) != 0)
			journal_process(c, p, NEWS_ALL);
		p->parent = s->parent;	/* a kept place now learns whose child it is */
	}
	p->pass = c->pass;
	if (p->unseen_since_ns != 0)
		journal_process(c, p, NEWS_ALL);
	p->unseen_since_ns = 0;
	if (s->kind == STATE_LIVE) {
		if (!p->is_over)
			process_lives(c, p, s);
		journal_flush(c);
		return;
	}
	if (!p->is_over) {
		process_ended(c, p, s);
		p->is_over = true;
		journal_process(c, p, NEWS_ALL);
	}
	if (s->kind == STATE_EXIT || s->kind == STATE_STALE) {
		if (p->gone_ns == 0)
			process_gone(c, p);
		p->gone_ns = s->time_ns != 0 ? s->time_ns : 1;
		journal_process(c, p, NEWS_ALL);
	}
	journal_flush(c);
	while (c->gone_count > GONE_MAX)
		process_forget(c, c->gone);
}

bool
correlator_was_met(const struct correlator *c, const struct program_key *key)
{
	struct process_id id = { key->start_ns, key->pid };
	struct process *p;

	HASH_FIND(hh, c->processes, &id, sizeof(id), p);
	return p != NULL && p->pass == c->pass && p->unseen_since_ns == 0;
}

void
correlator_snapshot_begin(struct correlator *c, bool with_usage)
{
	c->pass++;
	c->pass_with_usage = with_usage;
}

void
correlator_snapshot_end(struct correlator *c, uint64_t now_ns)
{
	struct process *p, *next;

	/* Whoever no pass has met for a while is gone, and the record of its end was lost. */
	HASH_ITER(hh, c->processes, p, next) {
		if (p->gone_ns != 0) {
			if (now_ns > p->gone_ns + GONE_KEPT_NS)
				process_forget(c, p);
			continue;
		}
		if (p->pass == c->pass)
			continue;
		if (p->unseen_since_ns == 0) {
			p->unseen_since_ns = now_ns;
			journal_process(c, p, NEWS_ALL);
		}
		if (now_ns - p->unseen_since_ns < UNSEEN_LIMIT_NS)
			continue;
		program_lose(c, p, now_ns);
		process_forget(c, p);
	}
	journal_flush(c);
}

void
correlator_tick(struct correlator *c, uint64_t now_ns, bool live)
{
	struct task *t, *next;

	if (live)
		tasks_sum_live(c);
	HASH_ITER(hh, c->tasks, t, next) {
		if (!t->has_started || t->has_ended)
			continue;
		if (t->work.live == 0 && now_ns > t->work.end_ns + TASK_QUIET_NS) {
			task_emit(c, t, PHASE_END, now_ns);
			t->has_ended = true;
			journal_task(c, t);
			journal_flush(c);	/* while it is there */
			task_reap(c, t);
		} else if (live) {
			task_emit(c, t, PHASE_LIVE, now_ns);
		}
	}
	if (live && state_has_run(c))
		run_emit(c, PHASE_LIVE, now_ns, 0);
}

void
correlator_set_lost(struct correlator *c, uint64_t lost_events)
{
	if (lost_events == c->lost_events)
		return;
	c->lost_events = lost_events;
	journal_run(c);
	journal_flush(c);
}

void
correlator_run_end(struct correlator *c, uint64_t now_ns, int status)
{
	struct process *p;
	struct task *t, *next;

	/* Whom the last pass did not meet is not alive, and no record of its end will come any more. */
	for (p = c->processes; p != NULL; p = p->hh.next) {
		if (p->pass != c->pass && !p->is_over) {
			program_lose(c, p, now_ns);
			p->is_over = true;
			journal_process(c, p, NEWS_ALL);
		}
	}
	tasks_sum_live(c);
	HASH_ITER(hh, c->tasks, t, next) {
		if (!t->has_started || t->has_ended)
			continue;
		if (t->work.live > 0)	/* it goes on without us: until now, then */
			t->work.end_ns = now_ns;
		task_emit(c, t, PHASE_END, now_ns);
		t->has_ended = true;
		journal_task(c, t);
	}
	if (state_has_run(c))
		run_emit(c, PHASE_END, now_ns, status);
	journal_flush(c);
}

size_t
correlator_live(const struct correlator *c)
{
	const struct process *p;
	size_t n = 0;

	for (p = c->processes; p != NULL; p = p->hh.next)
		n += !p->is_over;
	return n;
}

void
correlator_each_live(const struct correlator *c,
    void (*fn)(uint32_t pid, const char *comm, const char *exe, void *arg), void *arg)
{
	const struct process *p;

	for (p = c->processes; p != NULL; p = p->hh.next) {
		if (!p->is_over)
			fn(p->self.pid, p->text != NULL ? p->text->comm : NULL,
			    p->text != NULL ? p->text->exe : NULL, arg);
	}
}

uint64_t
correlator_run_rss(const struct correlator *c)
{
	const struct process *p;
	uint64_t sum = 0;

	if (!state_has_run(c))
		return 0;
	for (p = c->processes; p != NULL; p = p->hh.next) {
		if (p->is_announced && !p->is_over && usage_has(&p->latest, USAGE_RSS_BYTES))
			sum += p->latest.value[USAGE_RSS_BYTES];
	}
	return sum;
}

struct run_totals
correlator_totals(const struct correlator *c, uint64_t now_ns)
{
	return (struct run_totals){
		.programs = c->run.programs,
		.failed = c->run.failed,
		.live = c->run.live,
		.lost_events = c->lost_events,
		.lost_ends = c->lost_ends,
		.refused = c->refused,
		.lost_notes = c->journal.lost,
		.wall_ns = now_ns > c->run_start_ns ? now_ns - c->run_start_ns : 0,
		.usage = correlator_run_usage(c),
	};
}
