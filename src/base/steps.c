/*
 * SPDX-License-Identifier: Apache-2.0
 * steps: the innermost account.
 */
#include "base/steps.h"

static _Thread_local struct steps *innermost;

void
steps_begin(struct steps *s, uint64_t n)
{
	*s = (struct steps){ .left = n, .outer = innermost };
	innermost = s;
}

bool
steps_end(struct steps *s)
{
	innermost = s->outer;
	return s->is_spent;
}

bool
steps_take(uint64_t n)
{
	struct steps *s = innermost;

	if (s == NULL)
		return true;
	if (n > s->left || s->is_spent) {
		s->left = 0;
		s->is_spent = true;
		return false;
	}
	s->left -= n;
	return true;
}

uint64_t
steps_left(void)
{
	return innermost != NULL ? innermost->left : UINT64_MAX;
}

bool
steps_are_spent(void)
{
	return innermost != NULL && innermost->is_spent;
}
