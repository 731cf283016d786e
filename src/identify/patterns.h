/*
 * SPDX-License-Identifier: Apache-2.0
 * patterns: secrets that their surroundings in a text tell: name=value, "name": "value", headers, URLs, SQL.
 */
#ifndef SLUICE_IDENTIFY_PATTERNS_H
#define SLUICE_IDENTIFY_PATTERNS_H

#include <stdbool.h>
#include <stddef.h>

#include "identify/secret.h"
#include "identify/secret_ranges.h"

/* Adds all such secrets in the text. is_script: it is a shell's script, where a value ends at a blank. */
void patterns_find(struct slice text, bool is_script, struct secret_ranges *ranges);
/* Adds the value of an HTTP header, which is a part of whole, if its name is that of one with a secret. */
void patterns_find_header(struct slice whole, struct slice header, struct secret_ranges *ranges);
/*
 * Returns the end of a quoted text whose opening quote precedes i, or the text's end. is_escaped: a backslash precedes
 * the quotes.
 */
size_t patterns_quoted_end(struct slice text, size_t i, char quote, bool is_escaped);

#endif
