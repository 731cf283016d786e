/*
 * SPDX-License-Identifier: Apache-2.0
 * jobs_state: the table of jobs, shared by jobs.c and job_log.c.
 */
#ifndef SLUICE_IDENTIFY_JOBS_STATE_H
#define SLUICE_IDENTIFY_JOBS_STATE_H

#include "identify/jobs.h"

enum {
	JOBS_MAX = 128,
	JOB_RULE_SIZE = 128,
	JOB_WILDCARDS_SIZE = 256,
	JOB_OUTPUTS_SIZE = 1024,
	JOB_READS_MAX = 3,
};

struct job {
	uint64_t number;	/* a running one; 0: free */
	uint64_t command;	/* job_command(); 0: unknown */
	uint64_t task;		/* that runs it; 0: none was found */
	uint64_t log;		/* number of the log that has it; 0: none */
	uint64_t id;		/* jobid in that log; 0 until it is read, and of the job that is the target */
	bool is_over;
	bool is_hidden;		/* its log has a message in place of rule, outputs and wildcards */
	unsigned reads;		/* of its record */
	char rule[JOB_RULE_SIZE];
	char wildcards[JOB_WILDCARDS_SIZE];	/* sample=A, part=1 */
	char outputs[JOB_OUTPUTS_SIZE];		/* paths, ", " between them */
	char key[JOB_KEY_SIZE];			/* of its first output's record; "": it has none */
};

struct jobs {
	uint64_t last;		/* number of a job or log */
	bool are_logged;
	struct job all[JOBS_MAX];
};

/* Returns a cleared job: a free one, or in place of the one that is least needed. */
struct job *job_add(struct jobs *j);
/* Returns the last job of a log with this jobid; NULL: none. */
struct job *job_of_log(struct jobs *j, uint64_t log, uint64_t id);
/* Sets a job's key to that of its first output. */
void job_set_key(struct jobs *j, struct job *job);

#endif
