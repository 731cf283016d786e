/*
 * SPDX-License-Identifier: Apache-2.0
 * engine: the role of a program in a workflow engine, by the rules `engines`: the driver of a run, a
 * task, a helper of the engine, or a program that names a task that will run elsewhere.
 *
 * Pure functions: one program in, one verdict out. correlate/runs.c finds the run that it belongs to.
 */
#ifndef SLUICE_IDENTIFY_ENGINE_H
#define SLUICE_IDENTIFY_ENGINE_H

#include "model/opt.h"
#include "model/ruleset.h"
#include "model/candidate.h"

enum {
	ENGINE_NAME_SIZE = 256,
	ENGINE_PATH_SIZE = 1024,
};

enum engine_role {
	ENGINE_NONE,
	ENGINE_DRIVER,		/* begins a run, unless it is inside one of equal or greater strength */
	ENGINE_TASK,		/* the program and its descendants are the task below */
	ENGINE_JOINS,		/* like ENGINE_TASK, but only if that task or its run is known */
	ENGINE_NAMES,		/* no task itself, but the task below belongs to its run: sbatch */
};

/* The strength of a run's claim on its programs: the stronger run wins; of equal ones, the outer. */
enum engine_strength {
	STRENGTH_NONE,
	STRENGTH_WEAK = 10,	/* make, ninja: a run only where there is no other */
	STRENGTH_JOB = 20,	/* a scheduler's job */
	STRENGTH_ENGINE = 30,
	STRENGTH_EXPLICIT = 40,	/* set by the user: sluice run, sluice ctl tag */
};

/* A text of "" is unknown. The pointers belong to the ruleset and are valid as long as it is. */
struct engine_verdict {
	enum engine_role role;
	const struct rule_location *rule;		/* NULL with ENGINE_NONE, unless is_overhead */
	const char *engine;
	enum engine_strength strength;
	bool has_tasks;				/* driver: its children are tasks, named after what they run */
	bool is_overhead;			/* the engine's own work, not a task's; with any role but ENGINE_TASK */
	bool counts_attempts;			/* task: earlier failures of the same name and sample are attempts */

	/* of the run: the one that a driver begins, or the one that a task belongs to */
	char pipeline[ENGINE_NAME_SIZE];
	char run_name[ENGINE_NAME_SIZE];	/* happy_run */
	char run_key[ENGINE_NAME_SIZE];		/* id of the run, shared by its programs on all hosts */
	char root[ENGINE_PATH_SIZE];		/* folder in which all tasks of the run work */

	/* of the task */
	char task_id[ENGINE_NAME_SIZE];
	char task[ENGINE_NAME_SIZE];
	char sample[ENGINE_NAME_SIZE];
	char work_dir[ENGINE_PATH_SIZE];
	char header[ENGINE_PATH_SIZE];		/* file whose first lines name the task */
	struct opt_i32 attempt;

	const char *source;			/* the evidence, static */
	double confidence;
};

/*
 * Judges a program by the engine rules and writes all of *ret. engine: the engine of the run that the
 * program is in (its parent's), or NULL.
 */
void engine_judge(const struct ruleset *rules, const struct candidate *s, const char *engine,
    struct engine_verdict *ret);
/* Writes the verdict on a program for which no rule holds. */
void engine_verdict_none(struct engine_verdict *ret);

/* Returns whether any engine has programs that write titles over their arguments. */
bool engine_has_titles(const struct ruleset *rules);
/* Returns whether the program is one of those that write titles over their arguments. */
bool engine_writes_titles(const struct ruleset *rules, const struct candidate *s);

/*
 * Reads the task's name and its sample from text, the first bytes of the file named by verdict.header.
 * Returns false where text names no task.
 */
bool engine_read_header(const struct ruleset *rules, const char *engine, const char *text, size_t len,
    char task[ENGINE_NAME_SIZE], char sample[ENGINE_NAME_SIZE]);

/* Returns whether an engine of this name keeps records of its local jobs, which identify/jobs.h reads. */
bool engine_keeps_jobs(const struct ruleset *rules, const char *engine);
/* Returns the script that a shell was given with -c; NULL: it is no shell, or has none. */
const char *engine_command(const struct ruleset *rules, const struct candidate *s);

/*
 * Writes a name for a step that has none: the first pipeline of a shell's -c script, such as
 * "bwa mem | samtools sort", or else the tool; "" only where there is no tool either.
 */
void engine_default_task(const struct ruleset *rules, const struct candidate *s, char task[ENGINE_NAME_SIZE]);

#endif
