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

enum { SUGGEST_LIST_SIZE = 640 };	/* bytes of names that an error lists */

/* Of names, which are NULL-terminated as below: the one that wrong was probably meant to be, or NULL. */
const char *suggest_nearest(const char *wrong, const char *const *names);
/* Writes "a, b, c", as many names as fit into SUGGEST_LIST_SIZE bytes. Returns buf. */
char *suggest_list(const char *const *names, char *buf);
/*
 * Writes "did you mean 'x'?" or "there are a, b, c" into SUGGEST_LIST_SIZE bytes; quotes are "''" or
 * "{}". Returns buf.
 */
char *suggest_hint(const char *wrong, const char *const *names, const char *quotes, char *buf);

#endif
