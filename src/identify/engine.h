/*
 * SPDX-License-Identifier: Apache-2.0
 * engine: what a program is to a workflow engine, by the rules `engines`: the driver of a run, a
 * task, a helper of the engine, or somebody who names a task that will run elsewhere.
 *
 * Pure: one program in, one verdict out. Which run it is in, runs.c finds.
 */
#ifndef SLUICE_IDENTIFY_ENGINE_H
#define SLUICE_IDENTIFY_ENGINE_H

#include "model/opt.h"
#include "model/ruleset.h"
#include "model/subject.h"

enum {
	ENGINE_NAME_SIZE = 256,
	ENGINE_PATH_SIZE = 1024,
};

enum engine_role {
	ENGINE_NONE,
	ENGINE_DRIVER,		/* it begins a run, unless it is inside of one that counts as much */
	ENGINE_TASK,		/* it and what descends from it is the task below */
	ENGINE_JOINS,		/* likewise, but only if that task or its run is known */
	ENGINE_NAMES,		/* it is none itself, but the task below belongs to its run: sbatch */
};

/* A run's claim on its programs: the stronger wins, of equal ones the outer. */
enum engine_strength {
	STRENGTH_NONE,
	STRENGTH_WEAK = 10,	/* make, ninja: a run only where nothing else is */
	STRENGTH_JOB = 20,	/* a scheduler's job */
	STRENGTH_ENGINE = 30,
	STRENGTH_EXPLICIT = 40,	/* by hand */
};

/* "" is unknown; static strings are the ruleset's. */
struct engine_verdict {
	enum engine_role role;
	const struct rule_place *rule;		/* NULL with ENGINE_NONE, unless is_overhead */
	const char *engine;
	enum engine_strength strength;
	bool has_tasks;				/* driver: what it forks are tasks, named after what they run */
	bool is_overhead;			/* the engine's own doing, no task's work; with any role but TASK */
	bool counts_attempts;			/* tasks: a failed one of the same name and sample went before */

	/* of the run: of a driver; of a task what ties it to its run */
	char pipeline[ENGINE_NAME_SIZE];
	char run_name[ENGINE_NAME_SIZE];	/* happy_run */
	char run_key[ENGINE_NAME_SIZE];		/* an id of the run that its programs on all hosts share */
	char root[ENGINE_PATH_SIZE];		/* folder in which all tasks of the run work */

	/* of the task */
	char task_id[ENGINE_NAME_SIZE];
	char task[ENGINE_NAME_SIZE];
	char sample[ENGINE_NAME_SIZE];
	char work_dir[ENGINE_PATH_SIZE];
	char header[ENGINE_PATH_SIZE];		/* file whose first lines name the task, if those may be read */
	struct opt_i32 attempt;

	const char *source;			/* the evidence, static */
	double confidence;
};

/* engine: of the run that the program is in (its parent's); NULL none. */
void engine_judge(const struct ruleset *rules, const struct subject *s, const char *engine,
    struct engine_verdict *ret);

/* Is there an engine whose programs write titles over their arguments, and is this one of those? */
bool engine_has_titles(const struct ruleset *rules);
bool engine_writes_titles(const struct ruleset *rules, const struct subject *s);

/*
 * The task's name and sample out of the first bytes of verdict.header's file. False: not there.
 */
bool engine_read_header(const struct ruleset *rules, const char *engine, const char *text, size_t len,
    char task[ENGINE_NAME_SIZE], char sample[ENGINE_NAME_SIZE]);

/*
 * A name for a step that has none: what a shell's -c script runs first, "bwa mem | samtools sort",
 * else the tool. Writes "" only where there is no tool either.
 */
void engine_default_task(const struct ruleset *rules, const struct subject *s, char task[ENGINE_NAME_SIZE]);

#endif
