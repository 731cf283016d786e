/*
 * SPDX-License-Identifier: Apache-2.0
 * shared_texts: the texts of the last programs whose names and arguments are kept just as they came. The next program
 * with the same ones shares the text, instead of having it escaped, redacted and named again. A text that redaction or
 * escaping changed is not here, so that no argument is kept that a record does not have.
 */
#ifndef SLUICE_CORRELATE_SHARED_TEXTS_H
#define SLUICE_CORRELATE_SHARED_TEXTS_H

#include <stddef.h>

#define SHARED_TEXTS 128
#define SHARED_TEXT_BYTES 1024		/* of the largest */

struct candidate;
struct correlator;
struct exec_event;
struct text;

/* Returns a reference to the text of a program that exec'd, and fills in *ret, both as program_text_new() does. */
struct text *shared_text_of(struct correlator *c, const struct exec_event *s, const struct text *known,
    struct candidate *ret);
/* Forgets all, after the rules or the redaction have changed. */
void shared_texts_forget(struct correlator *c);

#endif
