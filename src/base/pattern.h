/*
 * SPDX-License-Identifier: Apache-2.0
 * pattern: a regular expression of a rule, compiled once (PCRE2: named groups, and the syntax that
 * Python, Perl and Spark users know). Bytes, not characters: paths and arguments may be of any
 * encoding. Matching is bounded, so that no pattern and no text costs more than a millisecond or so.
 */
#ifndef SLUICE_BASE_PATTERN_H
#define SLUICE_BASE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

struct pattern;

/* Owned by the caller. NULL: error says what is wrong and at which character, from 1. */
struct pattern *pattern_new(const char *text, char *error, size_t error_size);
void pattern_free(struct pattern *p);	/* NULL is fine */

const char *pattern_text(const struct pattern *p);

/* Names of its groups, the pattern's; i from 0. NULL: no more. */
const char *pattern_group(const struct pattern *p, size_t i);

/* A part of the text that was matched; NULL: that group took no part. */
struct pattern_part {
	const char *at;
	size_t len;
};

/*
 * Anywhere in text. parts (may be NULL) has an element for each name of pattern_group(), in its
 * order, n_parts of them at most. A match that takes too long is none.
 */
bool pattern_find(const struct pattern *p, const char *text, size_t len, struct pattern_part *parts,
    size_t n_parts);

/*
 * The first match that begins at from (at most len) or later, for those who want one after the other:
 * 1, with *ret_whole and parts; 0: there is none; -1: that takes too long to know.
 */
int pattern_find_from(const struct pattern *p, const char *text, size_t len, size_t from,
    struct pattern_part *ret_whole, struct pattern_part *parts, size_t n_parts);

#endif
