/*
 * SPDX-License-Identifier: Apache-2.0
 * jobs: which of Snakemake's jobs a local shell runs, by what Snakemake itself keeps of them in the folder .snakemake.
 * The log of a run has rule, wildcards and outputs of each job, from its begin on, and the command of one that failed.
 * The record of an output, which is written once its job has ended well, has rule and command. All of it is the word of
 * the user who runs Snakemake, and may be any bytes.
 *
 * Pure functions, from bytes to names; agent/jobs.c reads the files.
 */
#ifndef SLUICE_IDENTIFY_JOBS_H
#define SLUICE_IDENTIFY_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "identify/engine.h"

enum {
	JOB_KEY_SIZE = 255,		/* a longer one is divided into folders, and not read */
	JOB_RECORD_MAX = 65536,		/* bytes of a record; a longer one is not read */
	JOB_FIND_STEPS = 100000,	/* of one search, some 2 ms; then nothing is found */
};

struct job_log;		/* how far a log was read */
struct jobs;		/* the last 128 jobs of one folder */

/* A task whose job is sought. */
struct job_sought {
	const char *folder;	/* in which .snakemake is */
	uint32_t uid;		/* whose program it is, and whose files count */
	uint32_t user;		/* the user behind that id, whose share it takes */
	uint64_t driver_start_ns;	/* of the Snakemake that runs it, as the next */
	uint64_t driver_pid;
	uint64_t task;		/* its number, not 0 */
	uint64_t command;	/* job_command() of what its shell runs */
	const char *text;	/* the same as text, while it runs; NULL: unknown */
	bool is_over;
};

struct job_found {
	char task[ENGINE_NAME_SIZE];
	char sample[ENGINE_NAME_SIZE];	/* "" unknown */
	const char *source;		/* the evidence, static */
	double confidence;
	bool is_sure;			/* the job has this very command */
};

/*
 * Returns a hash of a command, equal for what Snakemake records and for what its shell gets: without spaces around it,
 * the options of Snakemake's shell, and a conda environment's activation. 0: it has none, being escaped or empty.
 */
uint64_t job_command(const char *text, size_t len);

struct jobs *jobs_new(void);		/* NULL: no memory */
void jobs_free(struct jobs *j);		/* NULL is fine */
struct job_log *job_log_new(struct jobs *j);	/* begins a log of j; NULL: no memory */
void job_log_free(struct job_log *l);	/* NULL is fine */

/* Takes the next bytes of a log. */
void job_log_read(struct job_log *l, const char *text, size_t len);
/*
 * Returns whether the logs have rule and outputs of the jobs that run. They have none where Snakemake is quiet about
 * its rules, nor of a job whose rule has a message, which is then all that is logged of it.
 */
bool jobs_are_logged(const struct jobs *j);
/* Takes the name of a file in the folder incomplete: a job began that has this output. */
void jobs_begun(struct jobs *j, const char *key);

/*
 * Writes the name of a file in the folder metadata that may by now be the record of a job whose command is unknown.
 * Returns false where there is none. Each is named three times at most. *at is 0 at first.
 */
bool jobs_next_record(struct jobs *j, size_t *at, char key[JOB_KEY_SIZE]);
/* Takes the record that was named last with this *at. */
void jobs_read_record(struct jobs *j, size_t at, const char *text, size_t len);

/*
 * Finds the job that a task runs. While it runs, that is the one job that runs, is no other task's, and has an output
 * that the command names; or else the last such one that is over; or else the only one that runs and is no other
 * task's. Of a job whose log has a message alone there is no telling: no job is found where it may as well be that one.
 * At its end it is the job with the same command. Returns false where there is none, or several.
 */
bool jobs_find(struct jobs *j, const struct job_sought *s, struct job_found *ret);

#endif
