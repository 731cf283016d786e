/*
 * SPDX-License-Identifier: Apache-2.0
 * ruleset: the rules as plain data: read by rules/, matched by identify/ and correlate/, turned into BPF maps
 * by attach/. A set is not changed once it is made, so that a reload swaps one pointer.
 *
 * All memory of a set, its patterns too, is freed with the last reference.
 */
#ifndef SLUICE_MODEL_RULESET_H
#define SLUICE_MODEL_RULESET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pattern.h"

/* The kind of a condition. A list of values in a file is a CONDITION_ANY of them. */
enum condition_kind {
	CONDITION_ALL,			/* of its children; an empty one holds */
	CONDITION_ANY,			/* of its children; an empty one does not */
	CONDITION_NOT,			/* its only child does not hold */
	CONDITION_PARENT,		/* its only child holds for the program that started this one */
	CONDITION_EXE,			/* the executable's base name is text */
	CONDITION_PATH,			/* the executable's path is text, or below it where text ends in / */
	CONDITION_COMM,			/* the kernel's name is text */
	CONDITION_TOOL,			/* the tool's name is text, or its first word is */
	CONDITION_ARGV,			/* an argument behind argv[0] is text */
	CONDITION_ARGV_CONTAINS,	/* an argument contains text */
	CONDITION_ARGV_MATCHES,		/* pattern is found in an argument */
	CONDITION_COMMAND_MATCHES,	/* pattern is found in all of argv, joined by spaces */
	CONDITION_FIRST_ARG,		/* argv[1] is text */
	CONDITION_SUBCOMMAND,
	CONDITION_SCRIPT,		/* base name of what an interpreter runs */
	CONDITION_JAR,			/* base name, with or without version and .jar */
	CONDITION_CLASS,		/* of java */
	CONDITION_CWD,			/* as CONDITION_PATH; /data itself is below /data/ */
	CONDITION_CWD_MATCHES,
	CONDITION_CGROUP,		/* the path, v2's or v1's, is text or below it; * is a part of one name */
	CONDITION_CGROUP_MATCHES,
	CONDITION_UID,			/* low to high, both included */
	CONDITION_IMAGE,		/* of the container; * matches any characters */
	CONDITION_KINDS,
};

struct condition {
	enum condition_kind kind;
	const char *text;
	struct pattern *pattern;
	uint32_t low, high;
	const struct condition *first, *next;	/* children, in the order of the file */
};

/* The source location of a rule, for explanations and for the field tool_rule of records. */
struct rule_location {
	const char *file;		/* base name */
	unsigned line;
	const char *name;		/* the rule's key `name`, or file:line */
};

/*
 * The programs for which an exclude rule may hold. Any user can give a program a name and arguments, so a rule that
 * looks at them trusts only what the system runs.
 */
enum follow_trust {
	TRUST_ANY,			/* all */
	TRUST_EXE,			/* root owns the executable, or a user of the system runs it */
	TRUST_USER,			/* a user of the system runs it */
};

/* include, exclude */
struct follow_rule {
	struct rule_location location;
	const struct condition *when;
	enum follow_trust trust;
};

struct follow_index;	/* model/follow_index.h */

struct follow_rules {
	const struct follow_rule *include, *exclude;	/* in the order of the files */
	size_t n_include, n_exclude;
	/* Which of them may hold for a candidate; NULL: all. */
	const struct follow_index *include_index, *exclude_index;
};

/*
 * The hash bit of a name of a program, such as its executable's base name. A rule that can hold
 * only for some names has their bits, which spares asking nearly all rules about nearly all programs.
 */
static inline uint64_t
rule_name_bit(const char *name)
{
	uint32_t hash = 2166136261;	/* FNV-1a */

	for (; *name != '\0'; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619;
	return UINT64_C(1) << (hash >> 26);
}

/* The sections of a file: each a list of rules. */
enum rule_section {
	RULE_INCLUDE,
	RULE_EXCLUDE,
	RULE_TOOLS,
	RULE_ENGINES,
	RULE_SCHEDULERS,
	RULE_CONTAINERS,
	RULE_WRAPPERS,
	RULE_SECTIONS,
};

struct tool_rules;	/* model/tool_rules.h */
struct engine_rules;	/* model/engine_rules.h */
struct placement_rules;	/* model/placement_rules.h: schedulers and containers */
struct wrapper_rules;	/* model/wrapper_rules.h */

struct ruleset {
	unsigned refs;
	uint64_t generation;		/* the owner's, from 1 */
	struct follow_rules follow;
	const struct tool_rules *tools;		/* never NULL once read; as all below */
	const struct engine_rules *engines;
	const struct placement_rules *placements;
	const struct wrapper_rules *wrappers;
	size_t n_rules;			/* of all sections: items of their lists */
	size_t counts[RULE_SECTIONS];
	struct ruleset_memory *memory;
};

struct ruleset *ruleset_new(void);		/* one reference; NULL: out of memory */
/* Takes a reference and returns r, which may not be NULL. */
struct ruleset *ruleset_ref(struct ruleset *r);
void ruleset_unref(struct ruleset *r);		/* NULL is fine */

/* Allocate zeroed memory and copy strings into the set while it is made. NULL: out of memory. */
void *ruleset_alloc(struct ruleset *r, size_t size);
const char *ruleset_string(struct ruleset *r, const char *text, size_t len);
/* Makes the set the owner of p, also on failure. 0 or -ENOMEM. */
int ruleset_keep_pattern(struct ruleset *r, struct pattern *p);

/* Return the name in files: "argv_contains"; NULL: there is no such kind or section. */
const char *condition_kind_name(enum condition_kind kind);
const char *rule_section_name(enum rule_section section);

#endif
