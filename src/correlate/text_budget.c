/*
 * SPDX-License-Identifier: Apache-2.0
 * text_budget: bounds the memory of all texts that are kept.
 */
#include "correlate/text_budget.h"

#include "correlate/state.h"

bool
text_budget_has(const struct correlator *c, size_t bytes, size_t limit)
{
	return c->text_bytes + bytes <= limit;
}

void
text_budget_take(struct correlator *c, size_t bytes)
{
	c->text_bytes += bytes;
}

void
text_budget_give_back(struct correlator *c, size_t bytes)
{
	c->text_bytes -= bytes;
}

void
text_budget_count_cut(struct correlator *c)
{
	c->texts_cut++;
}
