/*
 * SPDX-License-Identifier: Apache-2.0
 * placement_rules: the rules `schedulers` and `containers` as plain data: how a job or a container is recognized
 * by a cgroup's path and by a program's arguments.
 *
 * All memory is the set's.
 */
#ifndef SLUICE_MODEL_PLACEMENT_RULES_H
#define SLUICE_MODEL_PLACEMENT_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pattern.h"
#include "model/ruleset.h"
#include "model/template.h"

/* The fields that a rule may find: the first are of schedulers, the others of containers. */
enum placement_field {
	PLACEMENT_JOB,
	PLACEMENT_STEP,
	PLACEMENT_TASK,
	PLACEMENT_USER,
	PLACEMENT_CLUSTER,
	PLACEMENT_NODE,
	PLACEMENT_ID,
	PLACEMENT_POD,
	PLACEMENT_NAME,
	PLACEMENT_IMAGE,
	PLACEMENT_FIELDS,
	PLACEMENT_FIELDS_JOB = PLACEMENT_ID,	/* the number of fields of schedulers */
};

enum {
	PLACEMENT_GROUPS_MAX = 16,		/* named groups of one pattern */
};

/* Changes that are made to a value that was found; bits. */
enum placement_change {
	PLACEMENT_UNESCAPE = 1 << 0,	/* systemd's \x2d is a hyphen */
	PLACEMENT_DASHES = 1 << 1,	/* _ is a hyphen */
};

/* One regular expression, and the fields that its groups hold. */
struct placement_finder {
	const struct pattern *pattern;			/* NULL: nothing is searched, value has all that is found */
	int8_t group[PLACEMENT_FIELDS];			/* index for pattern_group(); -1: none */
	const struct template *value[PLACEMENT_FIELDS];	/* used instead of the group; NULL: none */
	uint8_t change[PLACEMENT_FIELDS];		/* enum placement_change */
	double confidence;
	const char *source;				/* kind of evidence, for records */
	const struct placement_finder *next;
};

/* The text that a finder of programs searches. */
enum placement_text {
	PLACEMENT_TEXT_NONE,
	PLACEMENT_TEXT_ARGV,		/* each argument behind argv[0] */
	PLACEMENT_TEXT_COMMAND,		/* all of argv, joined by spaces */
	PLACEMENT_TEXT_SCRIPT,		/* path of what an interpreter runs */
	PLACEMENT_TEXT_EXE,		/* path of the executable */
	PLACEMENT_TEXT_CWD,
};

/* Evidence in a program. */
struct placement_program {
	const struct condition *when;	/* NULL holds */
	uint64_t exes;			/* rule_name_bit() of each executable of which it may hold; 0: of any */
	enum placement_text text;
	struct placement_finder find;
	bool is_outside;		/* it is not in the container, but its children are */
	bool has_group;			/* with is_outside: they are once they are in another control group */
	const struct placement_program *next;
};

struct placement_rule {
	struct rule_location location;
	const char *system;		/* slurm, docker ...; NULL: unknown */
	bool is_batch;
	bool is_outside;		/* such a control group holds programs that serve containers */
	const char *const *daemons;	/* base names of the scheduler's own programs that start jobs; NULL: none */
	const struct placement_finder *cgroup;	/* linked list: the first that is found counts */
	const struct placement_program *programs;	/* likewise */
	const struct placement_rule *next;
};

/* In the order of the files. */
struct placement_rules {
	const struct placement_rule *schedulers, *containers;
};

#endif
