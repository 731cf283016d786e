/*
 * SPDX-License-Identifier: Apache-2.0
 * correlator: construction, settings and queries. What events change is in life.c.
 */
#include "correlate/attribute_job.h"
#include "correlate/correlator.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "correlate/cgroups.h"
#include "correlate/energy.h"
#include "correlate/episodes.h"
#include "correlate/facts.h"
#include "correlate/findings.h"
#include "correlate/life.h"
#include "correlate/location.h"
#include "correlate/process.h"
#include "correlate/program_text.h"
#include "correlate/rows.h"
#include "correlate/runs.h"
#include "correlate/state.h"
#include "correlate/tasks.h"
#include "correlate/title.h"
#include "correlate/wal.h"
#include "correlate/work.h"
#include "identify/redact.h"

#define ARENA_BYTES (1u << 20)		/* 32 KiB of arguments, all of them escaped, and the pointers to them */

static char *
copy_or_null(const char *s)
{
	return s != NULL ? strdup(s) : NULL;
}

int
correlator_new(const struct correlator_options *options, const struct correlator_ops *ops,
    void *arg, struct correlator **ret)
{
	const size_t arena = options->arena_bytes > 0 ? options->arena_bytes : ARENA_BYTES;
	struct correlator *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return -ENOMEM;
	c->ops = *ops;
	c->arg = arg;
	c->options = *options;
	c->rules = ruleset_ref(options->rules);
	c->options.boot_id = copy_or_null(options->boot_id);
	c->options.host_id = copy_or_null(options->host_id);
	c->options.cluster = copy_or_null(options->cluster);
	c->options.run_id = copy_or_null(options->run_id);
	c->options.pipeline = copy_or_null(options->pipeline);
	c->options.task = copy_or_null(options->task);
	c->options.sample = copy_or_null(options->sample);
	c->options.command = copy_or_null(options->command);
	c->options.work_dir = copy_or_null(options->work_dir);
	if (arena_init(&c->arena, arena) < 0 || c->options.boot_id == NULL ||
	    (options->run_id != NULL && (c->options.run_id == NULL || run_open_whole(c) < 0))) {
		correlator_free(c);
		return -ENOMEM;
	}
	*ret = c;
	return 0;
}

void
correlator_free(struct correlator *c)
{
	struct process *p, *next;

	if (c == NULL)
		return;
	c->ops.wal = NULL;	/* freeing must not be logged */
	DL_FOREACH_SAFE(c->processes, p, next)
		process_remove(c, p);
	shared_texts_forget(c);
	judged_forget(c);
	cgroups_free(c);
	wal_done(c);
	facts_forget(c, NULL);
	tasks_free(c);
	runs_free(c);
	failures_free(c);
	rows_free(c);
	locations_free(c);
	users_free(c);
	kept_names_free(c);
	arena_done(&c->arena);
	ruleset_unref(c->rules);
	redaction_free(c->redaction);
	free((char *)c->options.boot_id);
	free((char *)c->options.host_id);
	free((char *)c->options.cluster);
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

void
correlator_set_known_since(struct correlator *c, enum optional_signal signal, uint64_t since_ns)
{
	c->options.known_since_ns[signal] = since_ns;
}

void
correlator_set_start_after(struct correlator *c, uint64_t start_after_ns)
{
	c->options.start_after_ns = start_after_ns;
}

void
correlator_set_finding_limits(struct correlator *c, const struct finding_limits *limits)
{
	c->options.finding_limits = *limits;
}

void
correlator_set_rules(struct correlator *c, struct ruleset *rules)
{
	struct ruleset *old = c->rules;

	c->rules = ruleset_ref(rules);
	ruleset_unref(old);
	shared_texts_forget(c);
	judged_forget(c);
	titles_judge_anew(c);
}

void
correlator_set_redaction(struct correlator *c, struct redaction *redaction)
{
	redaction_free(c->redaction);
	c->redaction = redaction;
	shared_texts_forget(c);
}

const struct redaction *
correlator_redaction(const struct correlator *c)
{
	return c->redaction;
}

void
correlator_tick(struct correlator *c, uint64_t now_ns, bool live)
{
	if (live) {
		runs_sum_live(c);
		rows_bill(c, now_ns);
		episodes_tick(c, now_ns);
		energy_log(c);
	}
	attribute_jobs_tick(c, now_ns);
	findings_tick(c, now_ns, false);
	tasks_tick(c, now_ns, live);
	runs_tick(c, now_ns, live);
}

void
correlator_held(const struct correlator *c, uint64_t since_ns, struct correlator_held *ret)
{
	const struct task *t;
	const struct run *r;

	*ret = (struct correlator_held){ .failures = findings_held(c, since_ns) };
	for (t = c->tasks; t != NULL; t = t->hh.next)
		ret->tasks += t->has_started && !t->has_ended && t->work.live == 0 && t->work.end_ns <= since_ns;
	for (r = c->runs; r != NULL; r = r->hh.next)
		ret->runs += r->has_started && !r->has_ended && r != c->whole && run_is_idle(r) &&
		    r->work.end_ns <= since_ns;
}

void
correlator_run_end(struct correlator *c, uint64_t now_ns, int status)
{
	processes_lose_unseen(c, now_ns);
	correlator_write_starts(c, now_ns, now_ns);
	if (c->whole != NULL) {
		run_root_ended(c, c->whole, &(int32_t){ status });
		finding_run_ended(c, c->whole, NULL, status);	/* where its root was never seen */
	}
	attribute_jobs_end(c);
	findings_tick(c, now_ns, true);
	runs_sum_live(c);
	tasks_end(c, now_ns);
	if (c->whole != NULL)
		run_emit(c, c->whole, PHASE_END, now_ns);
	wal_flush(c);
}

size_t
correlator_live(const struct correlator *c)
{
	const struct process *p;
	size_t n = 0;

	for (p = c->processes; p != NULL; p = p->next)
		n += !p->is_over;
	return n;
}

void
correlator_each_live(const struct correlator *c,
    void (*fn)(uint32_t pid, const char *comm, const char *exe, void *arg), void *arg)
{
	const struct process *p;

	for (p = c->processes; p != NULL; p = p->next) {
		if (!p->is_over)
			fn(p->self.pid, p->text != NULL ? p->text->comm : NULL,
			    p->text != NULL ? p->text->exe : NULL, arg);
	}
}

struct usage
correlator_attributed_usage(const struct correlator *c)
{
	struct usage u = c->all.done;
	const struct process *p;

	for (p = c->processes; p != NULL; p = p->next) {
		if (p->is_announced && p->run != NULL)
			usage_add(&u, &p->latest);
	}
	if (c->all.programs == 0 || c->whole == NULL)	/* the sum over no programs is known */
		u.known |= USAGE_ALL;
	return u;
}

uint64_t
correlator_attributed_rss(const struct correlator *c)
{
	const struct process *p;
	uint64_t sum = 0;

	for (p = c->processes; p != NULL; p = p->next) {
		if (p->is_announced && !p->is_over && p->run != NULL && usage_has(&p->latest, USAGE_RSS_BYTES))
			sum += p->latest.value[USAGE_RSS_BYTES];
	}
	return sum;
}

struct run_totals
correlator_totals(const struct correlator *c, uint64_t now_ns)
{
	uint64_t peak = c->whole != NULL ? c->whole->work.held.peak : 0;

	return (struct run_totals){
		.peak_memory_bytes = peak,
		.programs = c->all.programs,
		.failed = c->all.failed,
		.live = c->all.live,
		.runs = HASH_COUNT(c->runs),
		.excluded = c->excluded,
		.lost_events = c->lost_events,
		.lost_ends = c->lost_ends,
		.refused = c->refused,
		.runs_refused = c->shares[SHARE_RUNS].n_refused,
		.tasks_refused = c->shares[SHARE_TASKS].n_refused,
		.facts_refused = c->shares[SHARE_FACTS].n_refused,
		.texts_trimmed = c->texts_trimmed,
		.texts_cut = c->texts_cut,
		.findings_left_out = c->findings_left_out,
		.failures_left_out = c->failures_left_out,
		.titles_left_out = c->titles_left_out,
		.rules_gave_up = c->rules_gave_up,
		.wall_ns = now_ns > c->start_ns ? now_ns - c->start_ns : 0,
		.usage = correlator_attributed_usage(c),
	};
}

uint64_t
correlator_lost_entries(const struct correlator *c)
{
	return c->wal.lost;
}
