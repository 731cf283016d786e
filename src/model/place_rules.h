/*
 * SPDX-License-Identifier: Apache-2.0
 * place_rules: the rules `schedulers` and `containers` as plain data: how a job or a container is recognized
 * by a cgroup's path and by a program's arguments.
 *
 * All memory is the set's.
 */
#ifndef SLUICE_MODEL_PLACE_RULES_H
#define SLUICE_MODEL_PLACE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pattern.h"
#include "model/ruleset.h"
#include "model/template.h"

/* The fields that a rule may find: the first are of schedulers, the others of containers. */
enum place_field {
	PLACE_JOB,
	PLACE_STEP,
	PLACE_TASK,
	PLACE_USER,
	PLACE_CLUSTER,
	PLACE_NODE,
	PLACE_ID,
	PLACE_POD,
	PLACE_NAME,
	PLACE_IMAGE,
	PLACE_FIELDS,
	PLACE_FIELDS_JOB = PLACE_ID,	/* the number of fields of schedulers */
};

enum {
	PLACE_GROUPS_MAX = 16,		/* named groups of one pattern */
};

/* Changes that are made to a value that was found; bits. */
enum place_change {
	PLACE_UNESCAPE = 1 << 0,	/* systemd's \x2d is a hyphen */
	PLACE_DASHES = 1 << 1,		/* _ is a hyphen */
};

/* One regular expression, and the fields that its groups hold. */
struct place_finder {
	const struct pattern *pattern;			/* NULL: nothing is searched, value has all that is found */
	int8_t group[PLACE_FIELDS];			/* index for pattern_group(); -1: none */
	const struct template *value[PLACE_FIELDS];	/* used instead of the group; NULL: none */
	uint8_t change[PLACE_FIELDS];			/* enum place_change */
	double confidence;
	const char *source;				/* kind of evidence, for records */
	const struct place_finder *next;
};

/* The text that a finder of programs searches. */
enum place_text {
	PLACE_TEXT_NONE,
	PLACE_TEXT_ARGV,		/* each argument behind argv[0] */
	PLACE_TEXT_COMMAND,		/* all of argv, joined by spaces */
	PLACE_TEXT_SCRIPT,		/* path of what an interpreter runs */
	PLACE_TEXT_EXE,			/* path of the executable */
	PLACE_TEXT_CWD,
};

/* Evidence in a program. */
struct place_program {
	const struct condition *when;	/* NULL holds */
	uint64_t exes;			/* rule_name_bit() of each executable of which it may hold; 0: of any */
	enum place_text text;
	struct place_finder find;
	bool is_outside;		/* it is not in the container, but its children are */
	bool has_group;			/* with is_outside: they are once they are in another control group */
	const struct place_program *next;
};

struct place_rule {
	struct rule_location location;
	const char *system;		/* slurm, docker ...; NULL: unknown */
	bool is_batch;
	bool is_outside;		/* such a control group holds programs that serve containers */
	const struct place_finder *cgroup;	/* linked list: the first that is found counts */
	const struct place_program *programs;	/* likewise */
	const struct place_rule *next;
};

/* In the order of the files. */
struct place_rules {
	const struct place_rule *schedulers, *containers;
};

#endif
