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

bool
text_budget_has_for(const struct correlator *c, owner_t owner, size_t bytes, size_t limit)
{
	return text_budget_has(c, bytes, limit) &&
	    (owner == 0 || c->text_held[owner_at(owner)] + bytes <= limit - c->text_bytes);
}

void
text_budget_take(struct correlator *c, size_t bytes)
{
	c->text_bytes += bytes;
}

void
text_budget_take_for(struct correlator *c, owner_t owner, size_t bytes)
{
	text_budget_take(c, bytes);
	if (owner != 0)
		c->text_held[owner_at(owner)] += (uint32_t)bytes;
}

void
text_budget_give_back(struct correlator *c, size_t bytes)
{
	c->text_bytes -= bytes;
}

void
text_budget_give_back_for(struct correlator *c, owner_t owner, size_t bytes)
{
	text_budget_give_back(c, bytes);
	if (owner != 0)
		c->text_held[owner_at(owner)] -= (uint32_t)bytes;
}

void
text_budget_count_cut(struct correlator *c, owner_t owner)
{
	c->texts_cut++;
	user_cut(c, owner);
}
