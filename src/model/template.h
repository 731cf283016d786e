/*
 * SPDX-License-Identifier: Apache-2.0
 * template: a name made of parts: "samtools {subcommand}". A literal brace is written twice.
 */
#ifndef SLUICE_MODEL_TEMPLATE_H
#define SLUICE_MODEL_TEMPLATE_H

#include "model/ruleset.h"

struct template;

/* Makes a template in the set's memory. NULL: error has the fault. */
const struct template *template_new(struct ruleset *set, const char *text, size_t len, char *error,
    size_t error_size);

/* Returns the i-th name in it, in their order and with repetitions; NULL: there are no more. */
const char *template_name(const struct template *t, size_t i);

/*
 * Writes the text to out, cut at a whole character. value() gives the bytes for a name, or returns false where
 * it is unknown. Returns false, with "" in out, where a name is unknown.
 */
bool template_fill(const struct template *t, char *out, size_t size,
    bool (*value)(const char *name, const char **ret, size_t *ret_len, void *arg), void *arg);

#endif
