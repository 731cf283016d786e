/*
 * SPDX-License-Identifier: Apache-2.0
 * The life of a process and of its programs.
 *
 *                exec                        exec (replaces: END)
 *   (unknown) ─────────► announced ◄──────────────┐
 *       │ fork seen          │ └──────────────────┘
 *       ▼ (child ran 1 s,    │ zombie: END                 exit
 *     forked   or ended)     ├────────────────► over ────────────► (gone)
 *       │ 1 s, or its end    │ exit: END
 *       └───► announced ─────┴──────────────────────────────────► (gone)
 *
 * An announced program counts at once; its START is due, and is written once the program has lived for start_after:
 * by the exec event itself, or by the first pass that sees it alive then. It is written before that with the first
 * Usage record, when the agent stops or settles, and if the END was lost. A program that ends before its START was
 * written has only an END.
 *
 * A process that ran before the agent is reported by an exec event too (is_discovered). Each call that changes
 * state ends with wal_flush(), so that the next agent continues from there.
 */
#include "correlate/life.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/text.h"
#include "correlate/account.h"
#include "correlate/attribute.h"
#include "correlate/attribute_task.h"
#include "correlate/bill.h"
#include "correlate/cgroups.h"
#include "correlate/cputime.h"
#include "correlate/energy.h"
#include "correlate/episodes.h"
#include "correlate/findings.h"
#include "correlate/groups.h"
#include "correlate/kills.h"
#include "correlate/memory.h"
#include "correlate/process.h"
#include "correlate/program_record.h"
#include "correlate/program_text.h"
#include "correlate/runs.h"
#include "correlate/shared_texts.h"
#include "correlate/state.h"
#include "correlate/tasks.h"
#include "correlate/users.h"
#include "correlate/wal.h"

/*
 * A child that never execs takes its names from its parent, and may be reported only after the parent's end: at its
 * own end, or by the next snapshot (one a second), which mostly ends no later than this after what it reports. What the
 * signal ended that a process was killed by may have gigabytes to give back.
 */
#define GONE_KEPT_NS UINT64_C(500000000)
#define KILLED_KEPT_NS UINT64_C(10000000000)
#define UNSEEN_LIMIT_NS UINT64_C(15000000000)	/* without being seen in any pass: its end was lost */
#define LOST_WINDOW_NS (UNSEEN_LIMIT_NS + UINT64_C(5000000000))
#define FORKED_ANNOUNCED_NS UINT64_C(1000000000)

/*
 * Emits START of the current program. name: the kernel's name of it, for a program whose arguments are unknown; NULL:
 * none.
 */
static void
emit_start(struct correlator *c, struct process *p, uint64_t now_ns, const char *name)
{
	struct program_record r = { .phase = PHASE_START };
	char comm[TEXT_ESCAPE_MAX(EVENT_COMM_SIZE)];

	p->is_start_due = false;
	wal_process(c, p, NEWS_SHOWN);
	r.head.time_us = state_wall_us(c, now_ns);
	if (p->text == NULL && name != NULL && name[0] != '\0') {
		text_escape(name, strlen(name), comm, sizeof(comm), NULL);
		r.comm = comm;
	}
	program_emit(c, p, &r);
}

/* Emits START of the current program, if it is due. */
static void
program_start(struct correlator *c, struct process *p, uint64_t now_ns, const char *name)
{
	if (p->is_start_due)
		emit_start(c, p, now_ns, name);
}

/* Emits START of a program that lives at now_ns, if it has lived for long enough. */
static void
program_lives(struct correlator *c, struct process *p, uint64_t now_ns, const char *name)
{
	uint64_t age_ns = now_ns > p->program_start_ns ? now_ns - p->program_start_ns : 0;

	if (age_ns >= c->options.start_after_ns)
		program_start(c, p, now_ns, name);
}

/* Begins the current program: counts it in its task, row and run. Its START is due. */
static void
program_begin(struct correlator *c, struct process *p, uint64_t at_ns)
{
	if (p->is_excluded) {
		c->excluded++;
		return;
	}
	p->is_announced = true;
	p->is_start_due = true;
	p->was_usage_sent = p->is_sent_unknown = false;
	p->latest = (struct usage){ 0 };
	p->sent = (struct usage){ .known = USAGE_ALL };	/* nothing of every counter */
	p->sent_ns = p->program_start_ns;
	account_enter(c, p, at_ns);
	failures_begin(c, p);
	wal_process(c, p, NEWS_ALL);
}

/* Adds the current program's usage to the sums; it is no longer live. */
static void
program_leave(struct correlator *c, struct process *p, const struct usage *usage, bool has_failed,
    uint64_t end_ns)
{
	account_leave(c, p, usage, has_failed, end_ns);
	p->held = (struct held){ 0 };
	p->is_announced = p->is_start_due = false;
	p->latest = (struct usage){ 0 };
	wal_process(c, p, NEWS_ALL);
}

/* Ends the task and run that began with this process. status: its wait(2) status; NULL: unknown. */
static void
root_ended(struct correlator *c, struct process *p, const int32_t *status, uint64_t end_ns)
{
	struct task *t = p->task;
	struct run *r = p->run;

	if (t != NULL && status != NULL && process_is(p, &t->root)) {
		if (!t->root_ended) {
			if (t->attempt.known && *status != 0)
				attribute_task_failed(c, t, end_ns);
			finding_task_ended(c, t, p, *status);
			episodes_ended(c, t->run, t, p, *status, end_ns);
		}
		task_root_ended(c, t, *status);
	}
	if (r != NULL && process_is(p, &r->root) && !r->root_ended) {
		run_root_ended(c, r, status);
		finding_run_ended(c, r, p, r->status);
		if (status != NULL)
			episodes_ended(c, r, NULL, p, *status, end_ns);
	}
}

void
correlator_lose(struct correlator *c, uint64_t n)
{
	c->lost_events += n;
	c->lost_lately += n;
	wal_losses(c);
	wal_flush(c);
}

/* Returns whether one of the events that were lost of late can have been this end, and counts it off. */
static bool
is_lost_event(struct correlator *c)
{
	uint64_t *from = c->lost_before > 0 ? &c->lost_before : &c->lost_lately;

	if (*from == 0)
		return false;
	--*from;
	return true;
}

/* Ends the current program without its END: that was lost, and with it the usage. It has a START at least. */
static void
program_lose(struct correlator *c, struct process *p, uint64_t end_ns)
{
	const struct usage none = { 0 };

	if (!p->is_announced)
		return;
	program_start(c, p, end_ns > p->program_start_ns ? end_ns : p->program_start_ns, NULL);
	program_leave(c, p, &none, false, end_ns);
	if (is_lost_event(c))		/* each loss is counted once */
		return;
	c->lost_ends++;
	wal_losses(c);
}

void
process_lose(struct correlator *c, struct process *p, uint64_t end_ns)
{
	program_lose(c, p, end_ns);
	root_ended(c, p, NULL, end_ns);
}

/* Ends the current program: emits END, and adds its usage to the sums. r: reason, status, comm. */
static void
program_end(struct correlator *c, struct process *p, struct program_record *r, uint64_t end_ns,
    const struct usage *usage)
{
	bool has_failed = r->exit_signal.known || (r->exit_code.known && r->exit_code.value != 0);
	struct bill bill = bill_of_threads(usage);

	r->phase = PHASE_END;
	r->usage = usage;
	r->bill = bill.part[BILL_CPU].known ? &bill : NULL;
	if (end_ns < p->program_start_ns)
		end_ns = p->program_start_ns;
	r->end_time_us = (struct opt_u64){ (uint64_t)state_wall_us(c, end_ns), true };
	r->head.time_us = (int64_t)r->end_time_us.value;
	wal_process(c, p, NEWS_SHOWN);
	program_emit(c, p, r);
	memory_ended(p, usage);
	program_leave(c, p, usage, has_failed, end_ns);
}

/* A program that never exec'd has its parent's text; only its comm may differ. */
static void
forked_text(struct correlator *c, struct process *p)
{
	struct process *parent = attribute_parent(c, p);

	if (p->text == NULL && parent != NULL && parent->text != NULL)
		process_set_text(c, p, program_text_ref(parent->text));
	if (!p->has_context && parent != NULL && parent->has_context)
		process_set_context(c, p, &parent->context);
	if (parent != NULL && parent->is_elevated)
		process_set_elevated(c, p);
	if (!p->is_announced)
		attribute_fork(c, p, parent);
}

/*
 * Returns true if the fields of an optional signal are filled since the program began. The first program of a process
 * counts from the fork on.
 */
static bool
knows_fields(const struct correlator *c, const struct process *p, enum optional_signal signal)
{
	return (p->self.index == 0 ? p->self.start_ns : p->program_start_ns) >= c->options.known_since_ns[signal];
}

/* Ends the program that an exec replaced. With has_replaced its totals are known, unless an exec was missed. */
static void
replaced(struct correlator *c, struct process *p, const struct exec_event *s)
{
	struct program_record r = { .end_reason = END_REASON_EXEC };
	struct usage usage = { 0 };

	/* An excluded program keeps the index that the process had before its first exec. */
	if (p->is_announced && (p->self.index + 1 == s->self.index ||
	    (s->is_excluded && p->self.index == s->self.index))) {
		if (p->is_base_known)
			usage = usage_of_program(&p->base, &s->replaced, knows_fields(c, p, OPTIONAL_NETWORK));
		program_end(c, p, &r, s->time_ns, &usage);
	} else {
		/* an exec in between was lost, and with it the end of the program that was known */
		program_lose(c, p, s->time_ns);
	}
}

void
correlator_exec(struct correlator *c, const struct exec_event *s)
{
	struct process *p = process_of(c, &s->self);
	const struct text *known = NULL;
	struct candidate candidate;
	struct text *before;
	struct program_key above;
	struct judgement rules;
	struct exec_event trimmed;
	bool was_announced;

	if (p != NULL && (p->is_over || (s->is_discovered && p->is_announced && p->self.index >= s->self.index)))
		return;		/* a dead process cannot exec; a known one is not discovered again */
	if (s->is_excluded) {
		/* The kernel reports no more of it; its children count as those of the nearest recorded ancestor. */
		if (p == NULL)
			return;
		if (s->has_replaced)
			replaced(c, p, s);
		else
			program_lose(c, p, s->time_ns);
		root_ended(c, p, NULL, s->time_ns);	/* it lives on, but its end will not be reported */
		process_forget(c, p);
		wal_flush(c);
		return;
	}
	if (p != NULL && p->is_announced && !p->is_forked)
		above = p->self;	/* the program that the exec replaced */
	else
		above = p != NULL && !p->is_forked ? p->above : process_above(c, &s->parent);
	if (p == NULL) {
		p = process_add(c, &s->self, &s->parent, &s->anchor);
		if (p == NULL)
			return;
	} else if (s->has_replaced) {
		replaced(c, p, s);
	} else if (s->is_discovered && p->self.index != s->self.index) {
		program_lose(c, p, s->time_ns);		/* its exec was not seen */
	}
	/* The program was excluded when it began and is judged anew; /proc may no longer have its exe. */
	if (s->is_discovered && !p->is_forked && p->self.index == s->self.index)
		known = p->text;
	was_announced = p->is_announced;	/* one second after its fork */
	if (was_announced)
		account_withdraw(c, p);
	process_exec(c, p, s, &above);
	cgroups_own(c, &s->context);
	before = s->has_replaced ? program_text_ref(p->text) : NULL;
	judgement_begin(c, &rules, &s->context, s->time_ns);
	process_set_text(c, p, shared_text_of(c, users_trim(c, s, &trimmed), known, &candidate));
	attribute_exec(c, p, attribute_parent(c, p), before, &candidate);
	judgement_end(c, &rules);
	program_text_unref(c, before);
	if (was_announced) {
		account_enter(c, p, s->time_ns);
	} else {
		program_begin(c, p, s->time_ns);
		if (s->is_discovered)
			p->sent_ns = s->time_ns;	/* its first Usage record covers the time since its discovery */
	}
	program_lives(c, p, s->time_ns, s->comm);
	wal_flush(c);
	arena_wipe(&c->arena);	/* it holds arguments before redaction */
}

/* Takes the final totals of a process that was reaped, or of a zombie whose counters no longer change. */
static void
process_ended(struct correlator *c, struct process *p, const struct state_event *s)
{
	struct program_record r = { .end_reason = END_REASON_EXIT };
	struct usage usage = { 0 };
	struct program_end end = { .status = s->status, .end_ns = s->end_ns != 0 ? s->end_ns : s->time_ns };
	uint64_t end_ns = end.end_ns;
	char comm[TEXT_ESCAPE_MAX(EVENT_COMM_SIZE)];

	if (s->ppid != 0)
		process_set_ppid(c, p, s->ppid);
	if (s->has_context)
		process_set_context(c, p, &s->context);
	if (!s->has_execed)
		forked_text(c, p);
	if (p->self.index != s->self.index) {	/* an exec was lost: this program is unknown */
		bool had_record = p->is_announced;

		program_lose(c, p, end_ns);
		process_exec_lost(c, p, s, had_record);
	} else if (s->has_execed && p->is_forked) {	/* its first exec was lost, but not its totals */
		process_exec_lost(c, p, s, p->is_announced);
	}
	if (!p->is_announced && (p->is_forked || !p->is_excluded)) {
		if (p->task == NULL)
			attribute_fork(c, p, attribute_parent(c, p));
		program_begin(c, p, s->has_execed ? s->program_start_ns : end_ns);
		program_lives(c, p, end_ns, s->comm);
	}
	text_escape(s->comm, strlen(s->comm), comm, sizeof(comm), NULL);
	if (p->is_announced) {
		if (p->is_base_known || s->self.index == 0)
			usage = usage_of_program(&p->base, &s->counters, knows_fields(c, p, OPTIONAL_NETWORK));
		end.comm = comm;
		/* A process that was exiting already is marked too; it ended as it would have anyway. */
		end.is_oom = s->oom_killed && WIFSIGNALED(s->status) && WTERMSIG(s->status) == SIGKILL;
		if (usage_has(&usage, USAGE_PEAK_RSS_BYTES))
			end.peak_bytes = (struct opt_u64){ usage.value[USAGE_PEAK_RSS_BYTES], true };
		failures_end(c, p, &end);
	}
	root_ended(c, p, &s->status, end_ns);
	if (!p->is_announced)
		return;		/* it is not recorded */

	if ((s->status & 0x7f) != 0)
		r.exit_signal = (struct opt_i32){ s->status & 0x7f, true };
	else
		r.exit_code = (struct opt_i32){ s->status >> 8 & 0xff, true };
	r.core_dumped = s->status & 0x80;
	r.oom_killed = s->oom_killed;
	r.comm = comm;
	program_end(c, p, &r, end_ns, &usage);
	finding_oom(c, p, &end);
	finding_killed(c, p, &end);
}

static void
process_lives(struct correlator *c, struct process *p, const struct state_event *s)
{
	struct usage usage, moved;

	process_set_ppid(c, p, s->ppid);
	/* A process that never exec'd may differ from its parent; any other keeps the context of its exec. */
	if (!s->has_execed && s->has_context)
		process_set_context(c, p, &s->context);
	if (!s->has_execed && p->text == NULL)
		forked_text(c, p);	/* while its parent is still known */
	/* What was read while it exec'd may have the index of another program, which its START would not be of. */
	if (!s->has_execed && p->is_forked && !p->is_announced && !p->is_excluded &&
	    p->self.index == s->self.index && s->time_ns - s->self.start_ns >= FORKED_ANNOUNCED_NS) {
		program_begin(c, p, s->time_ns);
	}
	if (!p->is_announced || p->self.index != s->self.index)
		return;
	program_lives(c, p, s->time_ns, s->comm);
	memory_seen(c, p, &s->counters);
	if (!p->is_base_known || s->is_torn)
		return;
	usage = usage_of_program(&p->base, &s->counters, knows_fields(c, p, OPTIONAL_NETWORK));
	if (p->is_sent_unknown) {
		p->is_sent_unknown = false;
		p->latest = p->sent = usage;
		p->sent_ns = s->time_ns;
		wal_process(c, p, NEWS_USAGE);
	}
	energy_seen(p, &usage);
	if (!c->pass_with_usage) {
		/*
		 * A status line (no log is kept) needs it now; LIVE and Host records, with the next Usage record.
		 */
		if (c->ops.wal == NULL || p->title != NULL)
			p->latest = usage;
		return;
	}
	if (p->run != NULL && memcmp(&p->latest, &usage, sizeof(usage)) != 0)
		wal_process(c, p, NEWS_USAGE);
	p->latest = usage;
	if (s->is_excluded)
		return;
	moved = usage_since(&usage, &p->sent);
	if (p->was_usage_sent && usage_cpu_ns(&moved) == 0 && moved.value[USAGE_VOLUNTARY_SWITCHES] == 0 &&
	    moved.value[USAGE_RCHAR] == 0 && moved.value[USAGE_WCHAR] == 0)
		return;
	if (s->time_ns > p->sent_ns) {
		char self[PROGRAM_ID_SIZE], parent[PROGRAM_ID_SIZE];
		struct usage_record r = { .usage = &moved, .interval_ns = s->time_ns - p->sent_ns };

		program_start(c, p, s->time_ns, s->comm);
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
		wal_process(c, p, NEWS_USAGE);
	}
}

void
correlator_doubt_usage(struct correlator *c)
{
	for (struct process *p = c->processes; p != NULL; p = p->next)
		p->is_sent_unknown = true;
}

void
correlator_state(struct correlator *c, const struct state_event *s)
{
	struct process *p;

	if (s->kind == STATE_UNTRACKED || s->kind == STATE_DISCOVERED)
		return;
	p = process_of(c, &s->self);
	if (p == NULL) {
		p = process_add(c, &s->self, &s->parent, &s->anchor);
		if (p == NULL)
			return;
	} else if (p->is_forked && !s->has_execed) {
		process_set_parent(c, p, &s->parent);	/* of an entry that was made for a parent */
	}
	process_seen(c, p);
	if (s->kind == STATE_LIVE) {
		if (!p->is_over)
			process_lives(c, p, s);
		wal_flush(c);
		return;
	}
	if (!p->is_over) {
		process_ended(c, p, s);
		process_over(c, p);
	}
	if (s->kind == STATE_EXIT || s->kind == STATE_STALE)
		process_gone(c, p, s->time_ns);
	wal_flush(c);
	while (c->gone_count > GONE_MAX)
		process_forget(c, c->gone);
}

void
correlator_snapshot_begin(struct correlator *c, bool with_usage)
{
	c->pass++;
	c->pass_with_usage = with_usage;
}

/* Returns for how long an ended process is kept: a killed one until what ended with it has been freed. */
static uint64_t
kept_ns(const struct process *p)
{
	return p->kill != NULL && !p->kill->is_own ? KILLED_KEPT_NS : GONE_KEPT_NS;
}

void
correlator_snapshot_end(struct correlator *c, uint64_t now_ns)
{
	struct process *p, *next;

	/* A process that no pass has seen for UNSEEN_LIMIT_NS is gone, and the record of its end was lost. */
	DL_FOREACH_SAFE(c->processes, p, next) {
		if (p->gone_ns != 0) {
			/* Not in the pass that swept it: until its entry is removed the kernel may still free it. */
			if (now_ns > p->gone_ns + kept_ns(p) && p->pass != c->pass && p->ending_in != c->pass)
				process_forget(c, p);
			continue;
		}
		if (p->pass == c->pass)
			continue;
		process_unseen(c, p, now_ns);
		if (now_ns - p->unseen_since_ns < UNSEEN_LIMIT_NS)
			continue;
		process_lose(c, p, now_ns);
		process_forget(c, p);
	}
	memory_pass(c);
	groups_pass(c);
	/* By then passes have found each process whose end was among the events. */
	if (now_ns - c->lost_since_ns > LOST_WINDOW_NS) {
		c->lost_before = c->lost_lately;
		c->lost_lately = 0;
		c->lost_since_ns = now_ns;
	}
	wal_flush(c);
}

void
processes_lose_unseen(struct correlator *c, uint64_t now_ns)
{
	struct process *p;

	for (p = c->processes; p != NULL; p = p->next) {
		if (p->pass != c->pass && !p->is_over) {
			process_lose(c, p, now_ns);
			process_over(c, p);
		}
	}
}

void
correlator_write_starts(struct correlator *c, uint64_t begun_ns, uint64_t now_ns)
{
	struct process *p;

	for (p = c->processes; p != NULL; p = p->next) {
		if (p->program_start_ns <= begun_ns)
			program_start(c, p, now_ns, NULL);
	}
	wal_flush(c);
}

void
correlator_ending(struct correlator *c, const struct state_event *s)
{
	const struct program_key *above[] = { &s->parent, &s->anchor };
	struct process *p;

	for (size_t i = 0; i < sizeof(above) / sizeof(above[0]); i++) {
		p = process_of(c, above[i]);
		if (p != NULL)
			p->ending_in = c->pass;
		if (p != NULL && p->is_excluded && (p = process_of(c, &p->above)) != NULL)
			p->ending_in = c->pass;
	}
}

bool
correlator_has_seen(struct correlator *c, const struct program_key *key)
{
	const struct process *p = process_of(c, key);

	return p != NULL && p->pass == c->pass && p->unseen_since_ns == 0;
}
