/*
 * SPDX-License-Identifier: Apache-2.0
 * template: a name made of parts: "samtools {subcommand}". A brace is written twice to stand for
 * itself.
 */
#ifndef SLUICE_MODEL_TEMPLATE_H
#define SLUICE_MODEL_TEMPLATE_H

#include "model/ruleset.h"

struct template;

/* Of the set's memory. NULL: error says what is wrong. */
const struct template *template_new(struct ruleset *set, const char *text, size_t len, char *error,
    size_t error_size);

/* The names in it, in their order, as often as they stand there; NULL: no more. */
const char *template_name(const struct template *t, size_t i);

/*
 * Writes it to out, cut at a whole character. value: the bytes that stand for a name; false:
 * unknown. False, and "" in out, where any is unknown.
 */
bool template_fill(const struct template *t, char *out, size_t size,
    bool (*value)(const char *name, const char **ret, size_t *ret_len, void *arg), void *arg);

#endif
