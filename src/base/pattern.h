/*
 * SPDX-License-Identifier: Apache-2.0
 * pattern: a regular expression of a rule, compiled once, in PCRE2's syntax, which Python, Perl and Spark users
 * know. It matches bytes, not characters, since paths and arguments may have any encoding. Matching is bounded,
 * so that no pattern and no text costs more than about a millisecond, and takes its steps from the account of
 * base/steps.h, so that many searches together cost no more than that.
 */
#ifndef SLUICE_BASE_PATTERN_H
#define SLUICE_BASE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

struct pattern;

/*
 * Compiles text. The result is owned by the caller; NULL: error names what is wrong and at which character, from
 * 1.
 */
struct pattern *pattern_new(const char *text, char *error, size_t error_size);
void pattern_free(struct pattern *p);	/* NULL is fine */

/* Returns the text that the pattern was compiled from; it belongs to the pattern. */
const char *pattern_text(const struct pattern *p);

/* Returns the name of a group, owned by the pattern; i begins at 0. NULL: there are no more. */
const char *pattern_group(const struct pattern *p, size_t i);
/* Returns true if the pattern has a group of that name. */
bool pattern_has_group(const struct pattern *p, const char *name);

/* A part of the text that a group matched; at is NULL where the group took no part. */
struct pattern_part {
	const char *at;
	size_t len;
};

/*
 * Returns true if the pattern matches anywhere in text. parts (may be NULL) gets an element for each name of
 * pattern_group(), in its order, n_parts at most. A search that exceeds its steps, or those left in the account,
 * finds none.
 */
bool pattern_find(const struct pattern *p, const char *text, size_t len, struct pattern_part *parts,
    size_t n_parts);

/*
 * Finds the first match that begins at from (at most len) or later, for callers that iterate over matches.
 * Returns 1 with *ret_whole and parts, 0 if there is none, or -1 if the steps were exceeded.
 */
int pattern_find_from(const struct pattern *p, const char *text, size_t len, size_t from,
    struct pattern_part *ret_whole, struct pattern_part *parts, size_t n_parts);

#endif
