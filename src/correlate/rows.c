/*
 * SPDX-License-Identifier: Apache-2.0
 * The table of `sluice run`: a row for each task name, sample and tool.
 */
#include "correlate/rows.h"

#include <stdlib.h>
#include <string.h>

#include "correlate/bill.h"
#include "correlate/bound.h"
#include "correlate/process.h"
#include "correlate/program_text.h"
#include "correlate/state.h"
#include "correlate/tasks.h"
#include "correlate/work.h"

struct row *
row_of(struct correlator *c, const struct process *p)
{
	const struct task *t = p->is_overhead ? NULL : p->task;
	const char *task = t != NULL ? name_or_null(t->name) : NULL;
	const char *sample = t != NULL ? name_or_null(t->sample) : NULL;
	const char *tool = p->text != NULL && p->text->is_tool ? p->text->tool : NULL;
	size_t task_len = task != NULL ? strlen(task) : 0, sample_len = sample != NULL ? strlen(sample) : 0;
	size_t tool_len = tool != NULL ? strlen(tool) : 0, len = task_len + sample_len + tool_len + 3;
	char *key = c->whole != NULL ? calloc(1, len) : NULL;
	struct row *r;

	if (key == NULL)
		return NULL;
	memcpy(key, task != NULL ? task : "", task_len);
	memcpy(key + task_len + 1, sample != NULL ? sample : "", sample_len);
	memcpy(key + task_len + 1 + sample_len + 1, tool != NULL ? tool : "", tool_len);
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
	r->key = key;
	r->key_len = len;
	r->shown.task = task != NULL ? key : NULL;
	r->shown.sample = sample != NULL ? key + task_len + 1 : NULL;
	r->shown.tool = tool != NULL ? key + task_len + 1 + sample_len + 1 : NULL;
	HASH_ADD_KEYPTR(hh, c->rows, r->key, r->key_len, r);
	return r;
}

size_t
correlator_summary(struct correlator *c, const struct summary_row **ret_rows)
{
	const struct correlator_options *o = &c->options;
	struct demand_limits limits = { o->memory_limit_bytes, o->host_memory_bytes, o->host_cpus };
	struct row *r, *next;
	size_t n = 0;

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
		limits.peak_bytes = s->peak_memory_bytes;
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
