/*
 * SPDX-License-Identifier: Apache-2.0
 * kills: keeps who sent the signal that ends a process until the process has ended, and decides which of these ends is
 * a finding. The definition is in kills.h.
 */
#include "correlate/kills.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/format.h"
#include "base/namespaces.h"
#include "base/text.h"
#include "correlate/correlator.h"
#include "correlate/finding_draft.h"
#include "correlate/findings.h"
#include "correlate/process.h"
#include "correlate/program_record.h"
#include "correlate/program_text.h"
#include "correlate/runs.h"
#include "correlate/state.h"
#include "correlate/tasks.h"
#include "correlate/wal.h"

#define ABOVE_MAX 64		/* programs above one that are looked at */

/* Returns the task of an engine that p belongs to; NULL: none. */
static const struct task *
task_of(const struct process *p)
{
	return p->task != NULL && !p->is_overhead && task_is_driven(p->task) ? p->task : NULL;
}

/* Returns true if a program of p's run from which p descends, below the sender if that is one, has ended. */
static bool
is_left(struct correlator *c, const struct process *p, const struct process *sender)
{
	for (int depth = 0; depth < ABOVE_MAX; depth++) {
		const struct process *above = process_of(c, &p->parent);

		if (p->parent.pid == 0 || (above != NULL && above == sender))
			return false;
		if (above == NULL || above->is_over)
			return true;
		if (above->run != p->run)
			return false;
		p = above;
	}
	return false;
}

/*
 * Returns true if the sender does the same work as p: of one task of an engine, or else of one run and user. The step
 * daemon of a scheduler, which is in its job's control groups, does other work, but for what a script leaves.
 */
static bool
is_of_same_work(struct correlator *c, const struct process *p, const struct process *sender)
{
	const struct task *own = task_of(p);

	if (p->has_context && sender->has_context && p->context.uid != sender->context.uid)
		return p->run != NULL && p->run == sender->run && is_left(c, p, sender);
	return own != NULL ? own == task_of(sender) : p->run != NULL && p->run == sender->run;
}

static const char *
name_of(const struct process *p)
{
	if (p->text == NULL)
		return "";
	return p->text->tool != NULL ? p->text->tool : p->text->comm != NULL ? p->text->comm : "";
}

/* Copies a name in UTF-8; one that is too long is cut between characters. */
static void
keep_name(char to[KILL_NAME_SIZE], const char *name)
{
	size_t len = strlen(name);

	if (len >= KILL_NAME_SIZE) {
		len = KILL_NAME_SIZE - 1;
		while (len > 0 && ((unsigned char)name[len] & 0xc0) == 0x80)
			len--;
	}
	memcpy(to, name, len);
	to[len] = '\0';
}

/* Learns what is known of the program that sent it, which may be forgotten when the signalled one ends. */
static void
learn_sender(struct correlator *c, const struct process *p, const struct program_key *anchor, struct kill *k)
{
	const struct process *sender = process_of(c, &k->sender), *starter;

	/* One that has not exec'd, and not lived for long, has no record: what it forked from has. */
	if (sender == NULL || !sender->is_announced) {
		k->sender = *anchor;
		sender = process_of(c, anchor);
	}
	if (sender != NULL)
		k->is_own = is_of_same_work(c, p, sender);
	if (sender == NULL || sender->self.index != k->sender.index) {
		k->sender = (struct program_key){ 0 };
		return;
	}
	starter = process_of(c, &sender->above);
	if (starter == NULL || starter == sender || starter->self.index != sender->above.index)
		return;
	k->starter = starter->self;
	keep_name(k->starter_name, name_of(starter));
}

void
correlator_signal(struct correlator *c, const struct signal_event *s)
{
	struct process *p = process_of(c, &s->self);
	struct kill *k;

	if (c->ops.finding == NULL || p == NULL || p->is_over || p->kill != NULL)
		return;
	k = calloc(1, sizeof(*k));
	if (k == NULL)
		return;
	k->time_ns = s->time_ns;
	k->signal = s->signal;
	k->is_of_program = s->is_of_program;
	if (s->is_of_program) {
		k->sender = s->sender;
		k->pid = s->sender_pid;
		k->uid = s->sender_uid;
		text_escape(s->comm, strlen(s->comm), k->comm, sizeof(k->comm), NULL);
		learn_sender(c, p, &s->anchor, k);
	}
	p->kill = k;
	wal_process(c, p, NEWS_ALL);
	wal_flush(c);
}

void
kill_forget(struct process *p)
{
	free(p->kill);
	p->kill = NULL;
}

/* Returns true if the program that started p was ended likewise, and p with it. */
static bool
is_with_parent(struct correlator *c, const struct process *p)
{
	const struct process *parent = process_of(c, &p->above);

	return parent != NULL && parent != p && parent->run == p->run && parent->kill != NULL && !parent->kill->is_own;
}

/*
 * Returns true if the kernel ends what the first process of a container, which has ended, leaves. The first one of a
 * namespace is the oldest that is known of it: others may have come into it later, as by docker exec.
 */
static bool
is_left_of_container(struct correlator *c, const struct process *p)
{
	const struct process *parent = process_of(c, &p->parent);

	if (!p->has_context || p->context.pid_ns == NAMESPACE_PID_OF_HOST)
		return false;
	if (parent == NULL || !parent->has_context || parent->context.pid_ns == p->context.pid_ns)
		return true;
	for (const struct process *q = c->processes; q != NULL; q = q->next) {
		if (q != p && q->has_context && q->context.pid_ns == p->context.pid_ns &&
		    q->id.start_ns < p->id.start_ns)
			return true;
	}
	return false;
}

/* Returns true if a signal of the kernel is none that its user or the program itself has caused. */
static bool
is_from_outside(struct correlator *c, const struct process *p)
{
	uint32_t signal = p->kill->signal;

	return signal == SIGXCPU || (signal == SIGHUP && !is_left(c, p, NULL)) ||
	    (signal == SIGKILL && !is_left_of_container(c, p));
}

static void
describe(struct finding_draft *d, const struct kill *k)
{
	const char *name = format_signal((int)k->signal);

	if (name != NULL)
		draft_append(d, " was ended by SIG%s", name);
	else
		draft_append(d, " was ended by signal %u", k->signal);
	if (!k->is_of_program) {
		draft_append(d, ", which the kernel sent");
		return;
	}
	draft_append(d, ", which ");
	draft_append_program(d, k->comm, k->pid);
	draft_append(d, " of uid %u sent", k->uid);
	if (k->starter.pid != 0) {
		draft_append(d, ", started by ");
		draft_append_program(d, k->starter_name, k->starter.pid);
	}
}

static void
emit_killed(struct correlator *c, const struct process *p, const struct program_end *end)
{
	const struct kill *k = p->kill;
	struct finding_draft d = { .r.kind = "KILLED", .r.severity = SEVERITY_ERROR };

	draft_begin(c, &d, p, end);
	describe(&d, k);
	draft_number(&d, "exit_signal", WTERMSIG(end->status));
	draft_number(&d, "sender_is_kernel", !k->is_of_program);
	if (k->is_of_program) {
		draft_number(&d, "sender_pid", k->pid);
		draft_number(&d, "sender_uid", k->uid);
	}
	if (end->end_ns >= k->time_ns)
		draft_number(&d, "after_signal_ns", (double)(end->end_ns - k->time_ns));
	if (end->end_ns > p->program_start_ns)
		draft_number(&d, "wall_ns", (double)(end->end_ns - p->program_start_ns));
	if (k->sender.pid != 0)
		draft_cause(c, &d, &k->sender);
	if (k->starter.pid != 0)
		draft_cause(c, &d, &k->starter);
	draft_emit(c, &d);
}

void
finding_killed(struct correlator *c, const struct process *p, const struct program_end *end)
{
	const struct kill *k = p->kill;
	bool is_allowed;

	if (c->ops.finding == NULL || k == NULL || end->is_oom || k->is_own || p->run == NULL ||
	    !WIFSIGNALED(end->status) || WTERMSIG(end->status) != (int)k->signal || is_with_parent(c, p) ||
	    (!k->is_of_program && !is_from_outside(c, p)))
		return;
	if (p->task != NULL && !p->is_overhead) {
		wal_task(c, p->task);
		is_allowed = finding_is_allowed_of(c, p->run, &p->task->kills);
	} else {
		is_allowed = finding_is_allowed(c, p->run);
	}
	if (is_allowed)
		emit_killed(c, p, end);
}

void
kill_restore(struct process *p, const struct kill *k)
{
	kill_forget(p);
	if (k->signal == 0)
		return;
	p->kill = malloc(sizeof(*k));
	if (p->kill != NULL)
		*p->kill = *k;
}
