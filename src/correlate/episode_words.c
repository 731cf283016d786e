/*
 * SPDX-License-Identifier: Apache-2.0
 * The words and the evidence of findings about tasks and runs that live; see episode_words.h.
 */
#include "correlate/episode_words.h"

#include "base/format.h"
#include "correlate/findings.h"
#include "correlate/process.h"
#include "correlate/program_text.h"
#include "correlate/runs.h"
#include "correlate/state.h"
#include "correlate/tasks.h"
#include "correlate/work.h"

/* The parts of the bill that are waits, the field of each, and the words for it. */
const struct episode_wait episode_waits[EPISODE_WAITS] = {
	{ BILL_STOPPED, USAGE_WAIT_STOPPED_NS, true, true, "is stopped by a signal, a tracer or a freezer" },
	{ BILL_NETWORK_FS, USAGE_WAIT_NETWORK_FS_NS, true, false, "waits for a network file system" },
	{ BILL_SWAP, USAGE_WAIT_SWAP_NS, true, false, "waits for pages from swap" },
	{ BILL_RECLAIM, USAGE_WAIT_RECLAIM_NS, true, false, "waits until memory is made free" },
	{ BILL_BLOCK_IO, USAGE_WAIT_BLOCK_NS, true, false, "waits for a block device or its file system" },
	{ BILL_NETWORK, USAGE_WAIT_NETWORK_NS, true, true, "waits for the network" },
	{ BILL_PIPE, USAGE_WAIT_PIPE_NS, true, true, "waits for another program, by a pipe, a local socket or a queue" },
	{ BILL_LOCK, USAGE_WAIT_LOCK_NS, true, true, "waits for a lock" },
	{ BILL_TIMER, USAGE_WAIT_TIMER_NS, false, true, "sleeps for a set time" },
	{ BILL_POLL, USAGE_WAIT_POLL_NS, false, true, "waits for any of several files, a request or a signal" },
	{ BILL_OTHER, USAGE_WAIT_OTHER_NS, false, false, "waits in a place of the kernel that has no class" },
};

const struct episode_wait *
episode_largest_wait(const struct look *d)
{
	const struct episode_wait *largest = NULL;
	uint64_t most = 0;

	for (size_t i = 0; i < EPISODE_WAITS; i++) {
		uint64_t ns = d->waited_ns[episode_waits[i].part];

		if (episode_waits[i].part == BILL_POLL)
			ns /= 2;
		if (ns <= most)
			continue;
		most = ns;
		largest = &episode_waits[i];
	}
	return largest;
}

/* Returns true if p counts in what is judged. */
static bool
is_part(const struct subject *s, const struct process *p)
{
	if (!p->is_announced || p->run != s->run)
		return false;
	return s->task == NULL || (p->task == s->task && !p->is_overhead);
}

/* Returns the program that has most of a field; NULL: none. *ret_is_known: the usage of all of them is known. */
static const struct process *
program_with_most(const struct correlator *c, const struct subject *s, enum usage_field field, bool *ret_is_known)
{
	const struct process *p, *most = NULL;

	*ret_is_known = true;
	for (p = c->processes; p != NULL; p = p->next) {
		if (!is_part(s, p))
			continue;
		if (!usage_has(&p->latest, USAGE_CPU_USER_NS))
			*ret_is_known = false;
		if (episode_number(&p->latest, field) > (most != NULL ? episode_number(&most->latest, field) : 0))
			most = p;
	}
	return most;
}

static const char *
name_of(const struct process *p)
{
	if (p->text == NULL)
		return "a program";
	return p->text->tool != NULL ? p->text->tool : p->text->comm != NULL ? p->text->comm : "a program";
}

static void
append_duration(struct finding_draft *d, uint64_t ns)
{
	char text[FORMAT_SIZE];

	draft_append(d, "%s", format_duration(ns, text, sizeof(text)));
}

static void
append_share(struct finding_draft *d, double share)
{
	char text[FORMAT_SIZE];

	draft_append(d, "%s", format_percent(share, text, sizeof(text)));
}

static void
append_subject(struct finding_draft *d, const struct subject *s)
{
	draft_append(d, s->task != NULL ? "task " : "the run");
	if (s->task != NULL)
		draft_append_task(d, s->task);
}

/* Adds what it waits for: "; TOOL (pid N) waits for a lock". */
static void
add_wait(const struct correlator *c, struct finding_draft *d, const struct process *p, const struct episode_wait *w,
    const struct look *change)
{
	static const char *const names[BILL_PARTS] = {
#define BILL_NAME(ID, name) "wait_" #name "_ns",
		BILL_EACH(BILL_NAME)
#undef BILL_NAME
	};

	draft_append(d, "; ");
	draft_program(c, d, &p->self, name_of(p));
	draft_append(d, " %s", w->words);
	draft_number(d, names[w->part], (double)change->waited_ns[w->part]);
}

/* Describes one that makes no progress, or hardly any. Returns false if what is known does not suffice. */
static bool
describe_wait(const struct correlator *c, const struct subject *s, enum episode_kind kind, const struct look *change,
    struct finding_draft *d)
{
	const struct episode_wait *w = episode_largest_wait(change);
	const struct process *p;
	bool is_known, is_io = episode_is_in_io(change);

	if (w == NULL)
		return false;
	p = program_with_most(c, s, is_io ? USAGE_WAIT_UNINTERRUPTIBLE_NS : w->field, &is_known);
	if (p == NULL || !is_known)
		return false;
	append_subject(d, s);
	if (kind == EPISODE_STUCK) {
		draft_append(d, " has made no progress for ");
		append_duration(d, change->at_ns);
		draft_number(d, "no_progress_ns", (double)change->at_ns);
	} else {
		draft_append(d, " has been idle for ");
		append_duration(d, change->at_ns);
		draft_number(d, "idle_ns", (double)change->at_ns);
		draft_number(d, "cpu_ns", (double)change->cpu_ns);
		draft_number(d, "bytes", (double)change->bytes);
	}
	add_wait(c, d, p, w, change);
	if (is_io)
		draft_append(d, ", in uninterruptible sleep");
	if (change->uninterruptible_ns > 0)
		draft_number(d, "uninterruptible_ns", (double)change->uninterruptible_ns);
	return true;
}

static bool
describe_throttled(const struct subject *s, const struct look *change, struct finding_draft *d)
{
	double wanted = (double)(change->cpu_ns + change->delay_ns);
	struct opt_double limit = s->task != NULL && s->task->cpus.known ? s->task->cpus : s->run->cpus;

	append_subject(d, s);
	draft_append(d, " was denied a CPU for ");
	append_share(d, (double)change->throttled_ns / wanted);
	draft_append(d, " of the time in which it wanted one, for ");
	append_duration(d, change->at_ns);
	draft_append(d, ": its control group had used up its quota");
	draft_number(d, "period_ns", (double)change->at_ns);
	draft_number(d, "throttled_ns", (double)change->throttled_ns);
	draft_number(d, "cpu_ns", (double)change->cpu_ns);
	draft_number(d, "run_delay_ns", (double)change->delay_ns);
	if (limit.known)
		draft_number(d, "cpus", limit.value);
	return true;
}

static bool
describe_pressure(const struct correlator *c, const struct subject *s, const struct look *change,
    struct finding_draft *d)
{
	double wanted = episode_wanted_ns(change);

	append_subject(d, s);
	draft_append(d, " lost ");
	append_share(d, (double)change->pressure_ns / wanted);
	draft_append(d, " of its time for ");
	append_duration(d, change->at_ns);
	draft_append(d, ": it had to make memory free, or to read pages back");
	draft_number(d, "period_ns", (double)change->at_ns);
	draft_number(d, "pressure_ns", (double)change->pressure_ns);
	draft_number(d, "cpu_ns", (double)change->cpu_ns);
	if (usage_has(s->live, USAGE_RSS_BYTES))
		draft_number(d, "rss_bytes", (double)s->live->value[USAGE_RSS_BYTES]);
	draft_bytes(d, "memory_limit_bytes", s->task != NULL && s->task->memory_bytes.known ? s->task->memory_bytes :
	    s->run->memory_bytes);
	draft_bytes(d, "host_memory_bytes", c->options.host_memory_bytes);
	return true;
}

static void
append_writer(const struct correlator *c, struct finding_draft *d, const struct subject *where)
{
	bool is_known;
	const struct process *p = program_with_most(c, where, USAGE_WCHAR, &is_known);

	if (p == NULL)
		return;
	draft_append(d, "; ");
	draft_program(c, d, &p->self, name_of(p));
	draft_append(d, " has written most of what runs there");
	draft_number(d, "wchar", (double)episode_number(&p->latest, USAGE_WCHAR));
}

/* Names the program in which what ended has failed. f: the failure of its first program; NULL: that ended well. */
static void
append_failed(const struct correlator *c, struct finding_draft *d, const struct failure *f)
{
	if (f == NULL)
		return;
	f = failure_leaf(f);
	draft_append(d, "; ");
	draft_program(c, d, &f->program, f->tool);
	draft_append_status(d, f->status);
	draft_status(d, "exit_code", "exit_signal", f->status);
}

static bool
describe_full(const struct correlator *c, const struct subject *s, struct finding_draft *d)
{
	const struct full_disk *full = &s->run->full;
	struct subject where = { .run = s->run, .task = (struct task *)(uintptr_t)full->task };
	bool has_files = full->space.total_files == 0 || full->space.free_files > 0;
	char text[FORMAT_SIZE];

	draft_append(d, "the disk of ");
	draft_append_name(d, full->folder);
	if (has_files)
		draft_append(d, ", where ");
	else
		draft_append(d, ", which can have no more files, where ");
	append_subject(d, &where);
	draft_append(d, " works, is full: %s is left", format_bytes(full->space.free_bytes, text, sizeof(text)));
	draft_append(d, " of %s", format_bytes(full->space.total_bytes, text, sizeof(text)));
	if (full->has_ended)
		append_failed(c, d, full->failure);
	else
		append_writer(c, d, &where);
	draft_number(d, "free_bytes", (double)full->space.free_bytes);
	draft_number(d, "total_bytes", (double)full->space.total_bytes);
	if (full->space.total_files > 0)
		draft_number(d, "free_files", (double)full->space.free_files);
	return true;
}

bool
episode_describe(const struct correlator *c, const struct subject *s, enum episode_kind kind, const struct look *change,
    struct finding_draft *d)
{
	if (kind == EPISODE_THROTTLED)
		return describe_throttled(s, change, d);
	if (kind == EPISODE_PRESSURE)
		return describe_pressure(c, s, change, d);
	if (kind == EPISODE_DISK)
		return describe_full(c, s, d);
	return describe_wait(c, s, kind, change, d);
}
