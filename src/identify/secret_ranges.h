/*
 * SPDX-License-Identifier: Apache-2.0
 * secret_ranges: the parts of one argument that are redacted; shared by the files that find them.
 */
#ifndef SLUICE_IDENTIFY_SECRET_RANGES_H
#define SLUICE_IDENTIFY_SECRET_RANGES_H

#include <stddef.h>

#include "identify/secret.h"

#define SECRET_RANGES_MAX	64	/* an argument with more secrets goes from there to its end */

struct arena;
struct redaction;

struct secret_range {
	size_t start, end;
};

struct secret_ranges {
	struct secret_range s[SECRET_RANGES_MAX];
	size_t n;
	size_t len;	/* of the whole argument */
};

void secret_ranges_init(struct secret_ranges *ranges, size_t len);
/* In any order, and they may overlap; an empty one is none. */
void secret_ranges_add(struct secret_ranges *ranges, size_t start, size_t end);

/* text with each range replaced by REDACTED, in a; or REDACTED alone where a is full. */
const char *secret_ranges_replace(const char *text, struct secret_ranges *ranges, struct arena *a);

/*
 * redaction.c: what the user's own patterns find. *strikes counts the searches that took too long:
 * such an argument goes as a whole, and after a few of them all that are left do, unread.
 */
void redaction_find(const struct redaction *r, struct slice t, unsigned *strikes, struct secret_ranges *ranges);
/* Do the shipped patterns count, and are there others? NULL: only they. */
bool redaction_has_builtin(const struct redaction *r);
bool redaction_has_patterns(const struct redaction *r);

#endif
