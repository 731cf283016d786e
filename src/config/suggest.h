/*
 * SPDX-License-Identifier: Apache-2.0
 * suggest: the right name that a wrong one was probably meant to be. Private to config/.
 */
#ifndef SLUICE_CONFIG_SUGGEST_H
#define SLUICE_CONFIG_SUGGEST_H

#include <stddef.h>

#define SUGGEST_NAME_MAX 64	/* of longer names only so much is compared */

/*
 * How many letters are to be put in, left out, changed or swapped with their neighbour to make b
 * of a; case counts half a letter, so all is doubled.
 */
unsigned suggest_distance(const char *a, const char *b);

/* The best so far. Zeroed is none. */
struct suggestion {
	const char *name;
	unsigned distance;
};

/*
 * Offers a candidate: taken if it is near enough to be meant, or one is the other's beginning, and
 * nearer than the one before.
 */
void suggest_offer(struct suggestion *s, const char *wrong, const char *candidate);

#endif
