/*
 * SPDX-License-Identifier: Apache-2.0
 * secret_ranges: the parts of one argument to redact, shared by the files that find them.
 */
#ifndef SLUICE_IDENTIFY_SECRET_RANGES_H
#define SLUICE_IDENTIFY_SECRET_RANGES_H

#include <stddef.h>

#include "identify/secret.h"

#define SECRET_RANGES_MAX	64	/* with more secrets, the rest of the argument is redacted */

struct arena;
struct redaction;

struct secret_range {
	size_t start, end;
};

struct secret_ranges {
	struct secret_range s[SECRET_RANGES_MAX];
	size_t n;
	size_t len;	/* bytes of the whole argument */
};

/* Empties ranges, for an argument of len bytes. */
void secret_ranges_init(struct secret_ranges *ranges, size_t len);
/* Adds a range; ranges may overlap and be added in any order, and an empty one is ignored. */
void secret_ranges_add(struct secret_ranges *ranges, size_t start, size_t end);

/* Returns text with each range replaced by REDACTED, as a string in a; where a is full, REDACTED alone. */
const char *secret_ranges_replace(const char *text, struct secret_ranges *ranges, struct arena *a);

/*
 * Adds the matches of the user's own patterns (redaction.c). *strikes counts the searches that took too
 * long: such an argument is redacted as a whole, and after a few of them all others are too, unread.
 */
void redaction_find(const struct redaction *r, struct slice t, unsigned *strikes, struct secret_ranges *ranges);
/* Returns whether the shipped patterns are in use; true for NULL. */
bool redaction_has_builtin(const struct redaction *r);
/* Returns whether the user has patterns of their own; false for NULL. */
bool redaction_has_patterns(const struct redaction *r);

#endif
