/*
 * SPDX-License-Identifier: Apache-2.0
 * place_rules: the rules `schedulers` and `containers` as plain data: how a job or a container shows
 * in a cgroup's path and in what programs are called with.
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

/* What a rule may find out: schedulers the first half, containers the other. */
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
	PLACE_FIELDS_JOB = PLACE_ID,	/* below it: of schedulers */
};

enum {
	PLACE_GROUPS_MAX = 16,		/* named groups of one pattern */
};

/* What is done to a value that was found; bits. */
enum place_change {
	PLACE_UNESCAPE = 1 << 0,	/* systemd's \x2d is a hyphen */
	PLACE_DASHES = 1 << 1,		/* _ is a hyphen */
};

/* One regular expression, and what its groups tell. */
struct place_finder {
	const struct pattern *pattern;			/* NULL: nothing is searched, what is found stands in value */
	int8_t group[PLACE_FIELDS];			/* of pattern_group(); -1 none */
	const struct template *value[PLACE_FIELDS];	/* in place of the group; NULL none */
	uint8_t change[PLACE_FIELDS];			/* enum place_change */
	double confidence;
	const char *source;				/* the evidence, for records */
	const struct place_finder *next;
};

/* What a finder of programs looks at. */
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
	bool is_outside;		/* it is none of the container's, what it starts is */
	bool has_group;			/* and that only once it is in another control group */
	const struct place_program *next;
};

struct place_rule {
	struct rule_location location;
	const char *system;		/* slurm, docker ...; NULL: what is found does not tell */
	bool is_batch;
	bool is_outside;		/* such a control group holds what serves containers */
	const struct place_finder *cgroup;	/* linked list: the first that is found counts */
	const struct place_program *programs;	/* likewise */
	const struct place_rule *next;
};

/* In the order of the files. */
struct place_rules {
	const struct place_rule *schedulers, *containers;
};

#endif
