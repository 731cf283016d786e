/*
 * SPDX-License-Identifier: Apache-2.0
 * title: state of a program that writes titles over its arguments, and its current task's part of the program's
 * usage.
 */
#include "correlate/title.h"

#include <stdlib.h>

#include "correlate/process.h"

struct title *
title_of(struct process *p)
{
	if (p->title == NULL)
		p->title = calloc(1, sizeof(*p->title));
	if (p->title != NULL)
		p->title->before.known = USAGE_ALL;	/* all counters known */
	return p->title;
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
