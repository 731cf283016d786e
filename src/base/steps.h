/*
 * SPDX-License-Identifier: Apache-2.0
 * steps: an account of the work that may be done for one thing that a stranger made, such as a program with its
 * arguments. Each function that searches in its text takes from the account; once it is spent, the rest is not done.
 *
 * A step is some 20 ns of work. Steps are counted, and no clock is read: the same text always gives the same result.
 * Accounts nest, and the innermost counts. They belong to one thread.
 */
#ifndef SLUICE_BASE_STEPS_H
#define SLUICE_BASE_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STEPS_BYTES 64			/* what one step walks over, if that is all that is done with them */

struct steps {
	uint64_t left;
	bool is_spent;			/* more was asked for than was left */
	struct steps *outer;		/* the account around it; NULL: none */
};

/* Opens an account, the caller's, which must live until steps_end(). */
void steps_begin(struct steps *s, uint64_t n);
/* Closes the innermost account, s. Returns true if it was spent, so that a result may lack something. */
bool steps_end(struct steps *s);

/* Takes n steps. False: fewer are left, which spends the account. Without an account: true. */
bool steps_take(uint64_t n);
/* Takes what it costs to walk over len bytes once. */
static inline bool
steps_walk(size_t len)
{
	return steps_take(1 + len / STEPS_BYTES);
}
/* Returns how many are left; without an account UINT64_MAX. */
uint64_t steps_left(void);
/* Returns true if the innermost account is spent. */
bool steps_are_spent(void);

#endif
