/*
 * SPDX-License-Identifier: Apache-2.0
 * shapes: finds tokens of a known shape in one pass over a text, and whether it may hold other secrets.
 *
 * A table over the first two characters says which literals may begin at a place; what is on both sides of a
 * literal is checked only where it was found. Each place of a text is looked at by a bounded number of rows, and what
 * a row reads is bounded by the longest token, so that the time is linear in the length of the text.
 */
#ifndef SLUICE_IDENTIFY_SHAPES_H
#define SLUICE_IDENTIFY_SHAPES_H

#include <stdbool.h>

#include "identify/secret.h"
#include "identify/secret_ranges.h"

/* What else a text may hold; most arguments nothing, and need not be read again. */
enum {
	SHAPES_NAME = 1 << 0,	/* a name or a mark of a secret, for patterns.h and words.h */
	SHAPES_BLANK = 1 << 1,	/* a blank: it may be a script, for words.h */
};

/* Adds all tokens in the text, which ends in a NUL. Returns bits of the above. */
unsigned shapes_find(struct slice text, struct secret_ranges *ranges);

#endif
