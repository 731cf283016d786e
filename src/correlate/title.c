/*
 * SPDX-License-Identifier: Apache-2.0
 * title: state of a program that writes titles over its arguments, and its current task's part of the program's
 * usage.
 */
#include "correlate/title.h"

#include <stdlib.h>

#include "base/steps.h"
#include "correlate/process.h"
#include "correlate/program_record.h"
#include "correlate/state.h"
#include "correlate/users.h"
#include "correlate/wal.h"
#include "identify/engine.h"

struct title *
title_of(struct process *p)
{
	if (p->title == NULL)
		p->title = calloc(1, sizeof(*p->title));
	if (p->title != NULL)
		p->title->before.known = USAGE_ALL;	/* all counters known */
	return p->title;
}

bool
title_is_read(struct correlator *c, struct process *p)
{
	struct candidate s;
	struct steps rules;

	if (p->titles == TITLES_UNKNOWN && p->text != NULL) {
		program_candidate(c, p, &s);
		steps_begin(&rules, LEAST_STEPS);	/* a pass may judge thousands */
		p->titles = engine_writes_titles(c->rules, &s) ? TITLES_READ : TITLES_NONE;
		if (steps_end(&rules))
			judgement_gave_up(c, &p->context);
	}
	return p->titles == TITLES_READ;
}

void
titles_judge_anew(struct correlator *c)
{
	struct process *p;

	for (p = c->processes; p != NULL; p = p->next)
		p->titles = TITLES_UNKNOWN;
}

void
title_split(struct correlator *c, struct process *p, const struct usage *before)
{
	p->title->before = *before;
	p->title->before.known = USAGE_ALL;
	wal_process(c, p, NEWS_ALL);
}

void
title_take(struct correlator *c, struct process *p)
{
	p->title->is_taken = true;
	wal_process(c, p, NEWS_ALL);
}

void
title_forget(struct process *p)
{
	free(p->title);
	p->title = NULL;
	p->titles = TITLES_UNKNOWN;
}

struct usage
title_usage(const struct process *p, const struct usage *usage)
{
	return p->title != NULL ? usage_since(usage, &p->title->before) : *usage;
}
