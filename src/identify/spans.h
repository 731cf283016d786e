/*
 * SPDX-License-Identifier: Apache-2.0
 * spans: the parts of one argument that have to go; shared by the files that find them.
 */
#ifndef SLUICE_IDENTIFY_SPANS_H
#define SLUICE_IDENTIFY_SPANS_H

#include <stddef.h>

#include "identify/secret.h"

#define SPANS_MAX	64	/* an argument with more secrets goes from there to its end */

struct arena;
struct redaction;

struct span {
	size_t start, end;
};

struct spans {
	struct span s[SPANS_MAX];
	size_t n;
	size_t len;	/* of the whole argument */
};

void spans_init(struct spans *spans, size_t len);
/* In any order, and they may overlap; an empty one is none. */
void spans_add(struct spans *spans, size_t start, size_t end);

/* text with each span replaced by REDACTED, in a; or REDACTED alone where a is full. */
const char *spans_replace(const char *text, struct spans *spans, struct arena *a);

/*
 * redaction.c: what the user's own patterns find. *strikes counts the searches that took too long:
 * such an argument goes as a whole, and after a few of them all that are left do, unread.
 */
void redaction_find(const struct redaction *r, struct slice t, unsigned *strikes, struct spans *spans);
/* Do the shipped patterns count, and are there others? NULL: only they. */
bool redaction_has_builtin(const struct redaction *r);
bool redaction_has_patterns(const struct redaction *r);

#endif
