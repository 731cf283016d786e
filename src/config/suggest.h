/*
 * SPDX-License-Identifier: Apache-2.0
 * suggest: the valid name that a wrong one was probably meant to be. Private to config/ and rules/.
 */
#ifndef SLUICE_CONFIG_SUGGEST_H
#define SLUICE_CONFIG_SUGGEST_H

#include <stddef.h>

#define SUGGEST_NAME_MAX 64	/* bytes of a name that are compared */

/*
 * Returns twice the number of letters that must be inserted, left out, changed or swapped with their neighbour to
 * make b of a. A difference in case counts as half a letter. If it is more than most, it is most + 1.
 */
unsigned suggest_distance(const char *a, const char *b, unsigned most);

/* The best candidate so far. A zeroed struct has none. */
struct suggestion {
	const char *name;
	unsigned distance;
};

/*
 * Keeps a candidate if it is near enough to be meant, or one begins with the other, and it is nearer than
 * the one before.
 */
void suggest_offer(struct suggestion *s, const char *wrong, const char *candidate);

enum { SUGGEST_LIST_SIZE = 640 };	/* bytes of names that an error lists */

/* Returns the one of names that wrong was probably meant to be, or NULL. names is NULL-terminated, as below. */
const char *suggest_nearest(const char *wrong, const char *const *names);
/* Writes "a, b, c", as many names as fit into SUGGEST_LIST_SIZE bytes. Returns buf. */
char *suggest_list(const char *const *names, char *buf);
/*
 * Writes "did you mean 'x'?" or "there are a, b, c" into SUGGEST_LIST_SIZE bytes; quotes are "''" or
 * "{}". Returns buf.
 */
char *suggest_hint(const char *wrong, const char *const *names, const char *quotes, char *buf);

#endif
