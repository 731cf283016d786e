/*
 * SPDX-License-Identifier: Apache-2.0
 * reader: what reads files of rules. Private to rules/.
 *
 * A file is a mapping of sections, each a list of rules. A section's read function is called once for
 * each rule, in the order in which rules count. What a rule may hold is a table of struct rules_key,
 * over which rules_read_keys() loops. All memory is the set's unless a comment says otherwise.
 */
#ifndef SLUICE_RULES_READER_H
#define SLUICE_RULES_READER_H

#include "config/config.h"
#include "config/errors.h"
#include "config/suggest.h"
#include "config/yaml.h"
#include "model/engine_rules.h"
#include "model/placement_rules.h"
#include "model/ruleset.h"
#include "model/template.h"
#include "model/tool_rules.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Rules of one section, until they are copied into the set. */
struct rules_follow_list {
	struct follow_rule *rules;	/* owned by the list, on the heap */
	size_t n, cap;
};

struct rules_reader {
	struct ruleset *set;
	const char *path;		/* of the current file, for errors */
	const char *file;		/* its base name */
	const char *stem;		/* its base name without .yaml, which precedes the names of tool rules */
	struct config_errors *errors;
	int error;			/* 0 or -ENOMEM, after which nothing more is read */
	struct rules_follow_list include, exclude;
	struct tool_key *last_key;	/* through next to those before it */
	struct tool_key *first_general, **next_general;	/* of tool rules that no name leads to, in their order */
	size_t n_keys, n_tool_rules;
	struct wrapper_item *last_wrapper;	/* through next to those before it */
	size_t n_wrappers;		/* their names */
	const struct engine **next_engine;		/* where the next item of each list is linked */
	const struct placement_rule **next_scheduler, **next_container;
};

/* Each reads one rule of a section. */
void rules_read_follow(struct rules_reader *r, const struct yaml_node *item, enum rule_section section);
void rules_read_tool(struct rules_reader *r, const struct yaml_node *item, enum rule_section section);
void rules_read_engine(struct rules_reader *r, const struct yaml_node *item, enum rule_section section);
void rules_read_placement(struct rules_reader *r, const struct yaml_node *item, enum rule_section section);
void rules_read_wrapper(struct rules_reader *r, const struct yaml_node *item, enum rule_section section);

/* Each puts its part into the set, unless r->error is set; rules_finish_follow() also frees the lists. */
void rules_finish_follow(struct rules_reader *r);
void rules_finish_tools(struct rules_reader *r);
void rules_finish_wrappers(struct rules_reader *r);

/* These return zeroed memory and a copy of a text, both owned by the set; or NULL, with r->error set. */
void *rules_alloc(struct rules_reader *r, size_t size);
const char *rules_string(struct rules_reader *r, const char *text);

/* Adds an error at a node. Returns false, as all that add one. */
bool rules_error(struct rules_reader *r, const struct yaml_node *n, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same at the name of a node in a mapping. */
bool rules_name_error(struct rules_reader *r, const struct yaml_node *n, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds the error "this is a list: expected WANTED" about a value, with the name of its key. Returns false. */
bool rules_wrong_kind(struct rules_reader *r, const struct yaml_node *n, const char *wanted);
/* Returns whether n is of that kind; if not, adds the error "this is a list: WANTED". */
bool rules_want(struct rules_reader *r, const struct yaml_node *n, enum yaml_node_kind kind, const char *wanted);

enum rules_type {
	RULES_ELSEWHERE,	/* the caller reads it: the row says only that the key exists */
	RULES_TEXT,		/* const char *, not empty */
	RULES_TEXTS,		/* const char *const *, NULL-terminated: one text or a list of them */
	RULES_BOOL,		/* bool */
	RULES_SHARE,		/* double from 0 to 1 */
	RULES_TEMPLATE,		/* const struct template *, whose names the caller checks */
	RULES_CONDITION,	/* const struct condition *: a mapping of conditions, all of which must hold */
	RULES_KEYS,		/* a mapping by the table `keys`, into the struct at the field */
	RULES_ITEMS,		/* linked list: one item, or a list of them */
	RULES_LIST,		/* linked list: a list of items */
	RULES_MAP,		/* linked list: a mapping, each value an item that has a name */
	RULES_OWN,		/* read() does it */
};

/* What a function of a table reads. */
struct rules_value {
	const struct yaml_node *n;
	const struct rules_key *key;	/* the row */
	void *context;			/* as given to rules_read_keys() or rules_read_items() */
};

/*
 * Reads a value into the field of its key (RULES_OWN), or into a zeroed item of a list. False: an error
 * was added, or r->error is set.
 */
typedef bool rules_read(struct rules_reader *r, const struct rules_value *v, void *into);

/* A table ends with a row without a name. Errors list the keys in its order, and they are read in it. */
struct rules_key {
	const char *name;
	enum rules_type type;
	size_t field;			/* offset of the field in what is read */
	unsigned in;			/* bits of the mappings that may have the key; 0: all */
	rules_read *read;
	unsigned of;			/* for read(); of RULES_CONDITION the condition_kind that may not be used */
	const struct rules_key *keys;
	size_t size, next;		/* of a linked list: bytes of an item, offset of its pointer to the next */
	const char *wanted;		/* of a linked list: the text of an error, "expected a list" */
};

/* The size and next of a linked list of such structs. */
#define RULES_LIST_OF(type) .size = sizeof(struct type), .next = offsetof(struct type, next)

/* Returns whether map is a mapping that has only keys of the table. in: the bit of this mapping, for rows with `in`. */
bool rules_check_keys(struct rules_reader *r, const struct yaml_node *map, const struct rules_key *keys, unsigned in);
/* Reads the keys of such a mapping. All errors are added, not only the first; false: there was one. */
bool rules_read_keys(struct rules_reader *r, const struct yaml_node *map, const struct rules_key *keys, unsigned in,
    void *into, void *context);
/* Appends to the linked list that begins at field what n holds, by a row of one of the three list types. */
bool rules_read_items(struct rules_reader *r, const struct rules_key *k, const struct yaml_node *n, void *field,
    void *context);

/* Sets a field of any pointer type, by memcpy, since pointers of different types may not alias. */
void rules_set_pointer(void *field, const void *p);

/* Returns the value of a key of a mapping; NULL: the mapping has none. */
const struct yaml_node *rules_child(const struct yaml_node *map, const char *key);

/* These read single values. They return NULL or false where an error was added or r->error is set. */
const char *rules_text(struct rules_reader *r, const struct yaml_node *n);
const char *const *rules_texts(struct rules_reader *r, const struct yaml_node *n, size_t *ret_n);
bool rules_bool(struct rules_reader *r, const struct yaml_node *n, bool *ret);
bool rules_share(struct rules_reader *r, const struct yaml_node *n, double *ret);	/* a number from 0 to 1 */
struct pattern *rules_pattern(struct rules_reader *r, const struct yaml_node *n);
/* Reads a template. names: those that it may use, NULL-terminated; NULL: it may use any. */
const struct template *rules_template(struct rules_reader *r, const struct yaml_node *n, const char *const *names);

/*
 * Reads a mapping of conditions. without: a kind that it may not use, or 0. others: keys of the mapping that are no
 * conditions, which are ignored; NULL-terminated, or NULL.
 */
const struct condition *rules_condition(struct rules_reader *r, const struct yaml_node *n,
    enum condition_kind without, const char *const *others);
/*
 * Returns the bits, by rule_name_bit(), of the names of which a program must have one for the condition to hold;
 * 0: it may have any. kinds: bits 1 << enum condition_kind of the conditions that look at names.
 */
uint64_t rules_name_bits(const struct condition *c, uint64_t kinds);

/* Returns the location of a rule, and its name: the value of its key `name`, or else file:line. */
struct rule_location rules_location(struct rules_reader *r, const struct yaml_node *item);

#endif
