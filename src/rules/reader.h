/*
 * SPDX-License-Identifier: Apache-2.0
 * reader: what the readers of the kinds of rules share. Private to config/.
 *
 * A file is a mapping of sections: include, exclude, tools, engines, schedulers, containers. Each
 * section's reader is called once a file that has it (and has more there than nothing), in the order
 * in which rules count, then its finish() once, whatever went wrong before: that puts its part into
 * the set, in place of "none" too, and frees what the reader has gathered.
 */
#ifndef SLUICE_RULES_READER_H
#define SLUICE_RULES_READER_H

#include "config/config.h"
#include "config/yaml.h"
#include "model/ruleset.h"
#include "model/template.h"

struct rules_reader {
	struct ruleset *set;
	const char *path;		/* of the file under way, for errors */
	const char *file;		/* its base name, the set's */
	struct config_errors *errors;
	int error;			/* 0 or -ENOMEM: whatever follows is not read */
	struct follow_builder *follow;	/* each owned by its reader, from its first call to its finish() */
	struct tool_builder *tools;
	struct engine_builder *engines;
	struct place_builder *places;
};

void rules_read_include(struct rules_reader *r, const struct yaml_node *section);
void rules_read_exclude(struct rules_reader *r, const struct yaml_node *section);
void rules_read_tools(struct rules_reader *r, const struct yaml_node *section);
void rules_read_engines(struct rules_reader *r, const struct yaml_node *section);
void rules_read_schedulers(struct rules_reader *r, const struct yaml_node *section);
void rules_read_containers(struct rules_reader *r, const struct yaml_node *section);
void rules_finish_follow(struct rules_reader *r);
void rules_finish_tools(struct rules_reader *r);
void rules_finish_engines(struct rules_reader *r);
void rules_finish_places(struct rules_reader *r);

/* An error at a node. */
void rules_error(struct rules_reader *r, const struct yaml_node *n, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A mapping with only these keys, NULL-terminated; else an error with the nearest one. */
bool rules_check_keys(struct rules_reader *r, const struct yaml_node *map, const char *const *keys);
const struct yaml_node *rules_child(const struct yaml_node *map, const char *key);	/* NULL: not there */

/* Each NULL or false with an error added, but for a missing node (NULL), which is none. */
const char *rules_text(struct rules_reader *r, const struct yaml_node *n);		/* the set's, not empty */
/* One text or a list of them; NULL-terminated, the set's. */
const char *const *rules_texts(struct rules_reader *r, const struct yaml_node *n, size_t *ret_n);
bool rules_bool(struct rules_reader *r, const struct yaml_node *n, bool *ret);
bool rules_number(struct rules_reader *r, const struct yaml_node *n, double low, double high, double *ret);
struct pattern *rules_pattern(struct rules_reader *r, const struct yaml_node *n);	/* the set's */
/* names: that may stand in it, NULL-terminated; NULL: any. */
const struct template *rules_template(struct rules_reader *r, const struct yaml_node *n, const char *const *names);

/* A mapping of conditions, all of which must hold. kinds: bits 1 << enum condition_kind that may be there. */
const struct condition *rules_condition(struct rules_reader *r, const struct yaml_node *n, uint64_t kinds);
#define RULES_ANY_CONDITION UINT64_MAX
/* The same of a mapping in which other keys, NULL-terminated, stand too. */
const struct condition *rules_condition_beside(struct rules_reader *r, const struct yaml_node *item,
    uint64_t kinds, const char *const *others);

/* Where a rule stands. item: a list's, whose key `name`, if it has one, names it. */
struct rule_location rules_location(struct rules_reader *r, const struct yaml_node *item);

#endif
