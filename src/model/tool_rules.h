/*
 * SPDX-License-Identifier: Apache-2.0
 * tool_rules: the rules `tools` as plain data: what a program is called, found by its name in one
 * step however many rules there are.
 *
 * Part of a struct ruleset: its memory, its life.
 */
#ifndef SLUICE_MODEL_TOOL_RULES_H
#define SLUICE_MODEL_TOOL_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/ruleset.h"
#include "model/template.h"

/* The role of a program. */
enum tool_role {
	TOOL_PLAIN,
	TOOL_SHELL,
	TOOL_WRAPPER,		/* env, sudo: a moment before the program that counts */
	TOOL_GLUE,		/* cat, mkdir: a small step of a script */
	TOOL_MULTI_CALL,	/* busybox: argv[0], or else the first argument, is the program's name */
	TOOL_ROLES,
};

struct tool_options {
	const char *letters;		/* never NULL */
	const char *const *words;	/* NULL-terminated; NULL: none */
};

/*
 * A program that runs another file's code. Options are single letters, alone or bundled:
 *   inline	the program is on the command line		python -c
 *   module	the rest of the bundle, or the next argument, is its name	python -m
 *   value	takes the rest of the bundle, or the next argument
 *   attached	takes the rest of the bundle and never the next argument	perl -i.bak
 *   next	takes the next argument; the bundle continues	bash -euo pipefail
 *   file	the next argument is the script			R -f
 * and whole words:
 *   value	takes the next argument unless it holds "="
 *   inline	as the letter, shown by its first letter
 *   file	--name=script
 * With words of jar it is java: all options are whole words, and what is no option is a class.
 */
struct tool_interpreter {
	struct tool_options inline_, module, value, attached, next, file, jar;
	bool has_script;		/* the first argument that is no option is the script */
};

struct tool_rule {
	struct rule_location location;
	size_t order;			/* from 0; of two rules that hold the lower one wins */
	enum tool_role role;
	const struct condition *when;	/* NULL: always */
	/* The tool's name; both NULL: the name that led to this rule. */
	const char *tool;
	const struct template *const *templates;	/* that with most names in it first; NULL-terminated */
	const struct tool_interpreter *runs;	/* NULL: no interpreter */
	bool has_versions;		/* python3.11 is python */
	bool has_subcommands;
	const char *const *subcommands;	/* NULL: any plain word. All lists are NULL-terminated */
	const char *const *values;	/* options before it that take the next argument; may be NULL */
	const char *skip;		/* words that begin with one of these are no subcommand; may be NULL */
};

enum tool_key_kind {
	TOOL_KEY_EXE,		/* base name of an executable, a script, or a module's name */
	TOOL_KEY_JAR,		/* base name without version and .jar */
	TOOL_KEY_CLASS,		/* with or without its package */
};

/* A name that leads to a rule. */
struct tool_key {
	enum tool_key_kind kind;
	uint32_t hash;
	const char *name;
	const char *rule_name;		/* "bioinformatics/samtools": file and rule */
	const struct tool_rule *rule;
	struct tool_key *next;		/* of the same bucket, by order; set only while the set is made */
};

struct tool_rules {
	const struct tool_key *const *buckets;
	size_t n_buckets;		/* a power of two */
	const struct tool_key *general;	/* linked list of rules that no name leads to, by order */
	size_t n_rules, n_keys;
};

/* Returns the hash by which keys are in buckets. */
uint32_t tool_key_hash(enum tool_key_kind kind, const char *name);

/* Returns the first key of that name, and the next one of the same name; NULL: there is none. t may be NULL. */
const struct tool_key *tool_rules_find(const struct tool_rules *t, enum tool_key_kind kind, const char *name);
const struct tool_key *tool_key_next(const struct tool_key *k);

/* Returns the name of a role in files: "wrapper". */
const char *tool_role_name(enum tool_role role);

#endif
