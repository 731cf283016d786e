/*
 * SPDX-License-Identifier: Apache-2.0
 * keys: the table of all configuration keys. Parsing, defaults, bounds, comparing, the dump and the facts in
 * the manual pages come from it. Private to config/.
 */
#ifndef SLUICE_CONFIG_KEYS_H
#define SLUICE_CONFIG_KEYS_H

#include "config/config.h"

enum key_type {
	KEY_SECTION,	/* a mapping of keys; its field, if any, is a bool: a file has the section */
	KEY_BOOL,	/* bool */
	KEY_NUMBER,	/* uint64_t */
	KEY_DURATION,	/* uint64_t, milliseconds */
	KEY_SIZE,	/* uint64_t, bytes */
	KEY_CHOICE,	/* unsigned, index into choices */
	KEY_TEXT,	/* char *, NULL where it is not set and has no default */
	KEY_LIST,	/* struct config_strings */
	KEY_MAP,	/* struct config_pairs; files add to it name by name */
	KEY_SECRET,	/* struct config_secret */
	KEY_SECRETS,	/* struct config_pairs; files add to it name by name */
};

#define NO_FIELD SIZE_MAX

/* Returns whether text is valid for a key. If not, why has the fault and a hint. */
typedef bool (*key_check)(const char *text, char *why, size_t why_size);

struct key {
	const char *name;		/* with its sections: "kafka.topics.create" */
	enum key_type type;
	size_t field;			/* offset in struct config */
	const char *initial;		/* the default as a file would have it, a list's items by commas; NULL: none */
	bool is_reloaded;		/* else a change needs a restart */
	uint64_t min, max;		/* of numbers, durations, sizes; of the number of items of lists, mappings */
	bool is_power_of_two;
	bool zero_is_none;		/* 0, which is outside min..max, means that it is not set */
	const char *const *choices;	/* NULL-terminated */
	const char *what;		/* of texts, lists, mappings: what an item is, for messages and manuals */
	bool may_be_one;		/* a list that may be written as its only item */
	key_check check;		/* of texts, and of each item of a list; may be NULL */
	const char *former;		/* its name in an earlier version, which is accepted; NULL: none */
};

extern const struct key config_keys[];
extern const size_t config_keys_n;

/* Returns the field of c that holds the key's value; its type follows from k->type. */
static inline void *
key_field(const struct key *k, struct config *c)
{
	return (char *)c + k->field;
}

/* Likewise for a configuration that is only read. */
static inline const void *
key_field_const(const struct key *k, const struct config *c)
{
	return (const char *)c + k->field;
}

/* Returns the key of this full name, or of this former one; NULL: there is none. */
const struct key *key_find(const char *name);
/* Returns the last part of the name: "create". */
const char *key_leaf(const struct key *k);
/* Returns whether a key is directly in that section; "" is the top level. */
bool key_is_in(const struct key *k, const char *section);
/* Writes a number, duration or size as a file would have it into UNITS_TEXT_SIZE bytes. Returns buf. */
char *key_amount(const struct key *k, uint64_t value, char *buf);
/* Returns where a key was set last; line 0: nowhere. */
const struct config_location *key_location(const struct config *c, const char *name);

#endif
