/*
 * SPDX-License-Identifier: Apache-2.0
 * values: one field of struct config, whatever its key's type. Private to config/.
 */
#ifndef SLUICE_CONFIG_VALUES_H
#define SLUICE_CONFIG_VALUES_H

#include "config/keys.h"

/*
 * Checks and sets a bool, number, duration, size, choice or text. 0; -EINVAL with the fault and a hint in
 * why and the field as it was; or -ENOMEM.
 */
int value_set(const struct key *k, void *field, const char *text, char *why, size_t why_size);
/* Checks one item of a list, or a text. False: why has the fault and a hint. */
bool value_check_text(const struct key *k, const char *text, char *why, size_t why_size);
/* Gives the field its default. 0 or -ENOMEM. */
int value_set_default(const struct key *k, void *field);
/* Frees all that the field owns, and zeroes it. */
void value_done(const struct key *k, void *field);
/* Returns true if two fields of that key hold the same value. */
bool value_equal(const struct key *k, const void *a, const void *b);

/* Appends a copy of text. 0, or -ENOMEM with s as it was. */
int strings_add(struct config_strings *s, const char *text);
/* Frees the strings and leaves s empty. */
void strings_done(struct config_strings *s);
/* Frees what s owns, but not s itself. */
void secret_done(struct config_secret *s);

/* Adds a pair, in place of the one of that name. 0: what it holds is the list's; -ENOMEM: it stays the caller's. */
int pairs_set(struct config_pairs *p, struct config_pair *pair);
/* Frees what the pair owns, but not the pair itself. */
void pair_done(struct config_pair *pair);

#endif
