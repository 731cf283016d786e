/*
 * SPDX-License-Identifier: Apache-2.0
 * The table of `sluice run`: a row for each task name, sample and tool.
 */
#include "correlate/rows.h"

#include <stdlib.h>
#include <string.h>

#include "correlate/bill.h"
#include "correlate/bound.h"
#include "correlate/contention.h"
#include "correlate/process.h"
#include "correlate/program_text.h"
#include "correlate/state.h"
#include "correlate/tasks.h"
#include "correlate/work.h"

/* What a row is of. number: of the task that has it to itself, 0: none. */
struct row_names {
	const char *task, *sample, *tool;	/* NULL: none */
	uint64_t number;
};

/* Returns the key, to be freed; NULL: no memory. */
static char *
key_of(const struct row_names *n, size_t *ret_len)
{
	const char *const names[] = { n->task, n->sample, n->tool };
	size_t len = sizeof(n->number);
	char *key, *at;

	for (int i = 0; i < 3; i++)
		len += (names[i] != NULL ? strlen(names[i]) : 0) + 1;
	at = key = calloc(1, len);
	if (key == NULL)
		return NULL;
	for (int i = 0; i < 3; i++) {
		if (names[i] != NULL)
			at = stpcpy(at, names[i]);
		at++;
	}
	memcpy(at, &n->number, sizeof(n->number));
	*ret_len = len;
	return key;
}

/* Gives r, which is in no table, these names. */
static void
row_add(struct correlator *c, struct row *r, char *key, size_t len, const struct row_names *n)
{
	char *sample = key + strlen(key) + 1, *tool = sample + strlen(sample) + 1;

	free(r->key);
	r->key = key;
	r->key_len = len;
	r->shown.task = n->task != NULL ? key : NULL;
	r->shown.sample = n->sample != NULL ? sample : NULL;
	r->shown.tool = n->tool != NULL ? tool : NULL;
	HASH_ADD_KEYPTR(hh, c->rows, r->key, r->key_len, r);
}

struct row *
row_of(struct correlator *c, const struct process *p)
{
	struct task *t = p->is_overhead ? NULL : p->task;
	struct row_names n = {
		.task = t != NULL ? name_or_null(t->name) : NULL,
		.sample = t != NULL ? name_or_null(t->sample) : NULL,
		.tool = p->text != NULL && p->text->is_tool ? p->text->tool : NULL,
		.number = t != NULL && t->job != NULL ? t->number : 0,
	};
	size_t len;
	char *key = c->whole != NULL ? key_of(&n, &len) : NULL;
	struct row *r;

	if (key == NULL)
		return NULL;
	HASH_FIND(hh, c->rows, key, len, r);
	if (r != NULL) {
		free(key);
		return r;
	}
	r = HASH_COUNT(c->rows) < ROWS_MAX ? calloc(1, sizeof(*r)) : NULL;
	if (r == NULL) {
		free(key);
		return NULL;
	}
	row_add(c, r, key, len, &n);
	if (n.number != 0) {
		r->next_of_task = t->rows;
		t->rows = r;
	}
	return r;
}

/* Divides the time in which its programs lived, without pauses: they can have no CPUs there. */
static void
row_bill(const struct correlator *c, struct row *r, uint64_t now_ns)
{
	const struct work *w = &r->work;
	struct usage usage = w->done;
	uint64_t busy_ns = w->busy_ns;
	struct bill threads;

	if (w->live > 0) {
		usage_add(&usage, &r->live);
		busy_ns += now_ns > w->busy_since_ns ? now_ns - w->busy_since_ns : 0;
	}
	threads = bill_of_threads(&usage);
	own_bill_add(&r->work.own, &threads, 0, busy_ns, c->options.host_cpus);
}

/* Adds r, a row of t alone, to the one of t's name. While programs of it live it remains one of its own. */
static void
row_settle(struct correlator *c, const struct task *t, struct row *r)
{
	struct row_names n = { name_or_null(t->name), name_or_null(t->sample), r->shown.tool,
		r->work.live > 0 ? t->number : 0 };
	struct row *of_name;
	size_t len;
	char *key = key_of(&n, &len);

	r->next_of_task = NULL;
	if (key == NULL)
		return;
	HASH_FIND(hh, c->rows, key, len, of_name);
	if (of_name == NULL) {
		HASH_DEL(c->rows, r);
		row_add(c, r, key, len, &n);
		return;
	}
	free(key);
	if (of_name == r || r->work.live > 0)
		return;
	row_bill(c, r, r->work.last_ns);
	work_merge(&of_name->work, &r->work);
	HASH_DEL(c->rows, r);
	free(r->key);
	free(r);
}

void
rows_settle(struct correlator *c, struct task *t)
{
	struct row *r = t->rows, *next;

	t->rows = NULL;
	for (; r != NULL; r = next) {
		next = r->next_of_task;
		row_settle(c, t, r);
	}
}

void
rows_bill(struct correlator *c, uint64_t now_ns)
{
	struct row *r;

	for (r = c->rows; r != NULL; r = r->hh.next)
		row_bill(c, r, now_ns);
}

static int
by_start(const struct row *a, const struct row *b)
{
	return a->work.start_ns < b->work.start_ns ? -1 : a->work.start_ns > b->work.start_ns;
}

size_t
correlator_summary(struct correlator *c, const struct summary_row **ret_rows)
{
	const struct correlator_options *o = &c->options;
	struct demand_limits limits = { .memory_limit_bytes = o->memory_limit_bytes,
		.memory_high = o->memory_high_bytes, .host_memory_bytes = o->host_memory_bytes, .cpus = o->host_cpus };
	struct row *r, *next;
	size_t n = 0;

	HASH_SRT(hh, c->rows, by_start);
	free(c->summary);
	c->summary = calloc(HASH_COUNT(c->rows) + 1, sizeof(*c->summary));
	*ret_rows = c->summary;
	if (c->summary == NULL)
		return 0;
	HASH_ITER(hh, c->rows, r, next) {
		struct summary_row *s;

		if (r->work.programs == 0)	/* all of its programs became another tool's */
			continue;
		s = &c->summary[n++];
		*s = r->shown;
		s->programs = r->work.programs;
		s->failed = r->work.failed;
		s->wall_ns = r->work.busy_ns;
		s->usage = r->work.done;
		s->bill = bill_of_threads(&s->usage);
		s->peak_memory_bytes = (struct opt_u64){ r->work.held.peak, r->work.held.peak > 0 };
		row_bill(c, r, r->work.last_ns);
		limits.own_queue_ns = (struct opt_u64){ r->work.own.queue_ns, r->work.own.until_ns != 0 };
		limits.peak_bytes = s->peak_memory_bytes;
		limits.others_io = contention_of(c, &r->work, &s->usage, r->work.last_ns);
		limits.others_cpu_ns = contention_of_cpus(c, &r->work, &s->usage, r->work.last_ns);
		s->verdict = demand_decide(&s->usage, &s->bill, s->wall_ns, &limits);
		s->bound = bound_of(&s->verdict);
		s->shares = bound_shares_of(&s->usage, s->wall_ns, &limits);
	}
	return n;
}

void
rows_free(struct correlator *c)
{
	struct row *r, *next;

	HASH_ITER(hh, c->rows, r, next) {
		HASH_DEL(c->rows, r);
		free(r->key);
		free(r);
	}
	free(c->summary);
}
