/*
 * SPDX-License-Identifier: Apache-2.0
 * tasks: executions of the steps of runs.
 */
#ifndef SLUICE_CORRELATE_TASKS_H
#define SLUICE_CORRELATE_TASKS_H

#include <string.h>
#include <uthash.h>

#include "correlate/findings.h"
#include "correlate/state.h"
#include "identify/engine.h"

#define TASKS_MAX 100000

struct process;
struct row;
struct run;

/* How the job is sought that a task is, see attribute_job.h. */
struct job_search {
	char *folder;			/* owned: in which its shell was started */
	uint32_t uid, user;
	struct process_id driver;
	uint64_t command;
	unsigned tries;			/* while the task runs, that found nothing */
	uint64_t due_ns;		/* of the next one, CLOCK_BOOTTIME */
	bool is_found;			/* while the task runs; its end may show another one */
};

struct task {
	UT_hash_handle hh;
	UT_hash_handle by_id;		/* in tasks_by_id, if it has an id_key */
	uint64_t number;		/* hash key, a running number */
	struct process_id root;		/* first process */
	struct run *run;		/* a reference */
	owner_t owner;			/* whose share it is of */
	char *id_key;			/* owned: run NUL task_id; NULL: found through its processes only */
	size_t id_key_len;
	char task_id[ENGINE_NAME_SIZE];
	char name[ENGINE_NAME_SIZE];	/* "" unknown */
	char sample[ENGINE_NAME_SIZE];	/* "" unknown */
	const char *engine;		/* kept_name() */
	const char *source;		/* kept_name() */
	double confidence;
	struct opt_i32 attempt;
	char *work_dir;			/* owned, as the next two; NULL unknown */
	char *scheduler;		/* of its first program, as job_id */
	char *job_id;
	struct opt_double cpus;
	struct opt_u64 memory_bytes;
	struct opt_u64 memory_high;
	struct group_use group;		/* see groups.h */
	bool has_group;
	struct {
		uint64_t v2, v1;
	} group_of;			/* ids of the control groups of which it is; 0: of none in that hierarchy */
	struct work work;
	struct usage live;		/* of its live programs; see runs_sum_live() */
	struct mark mark;
	unsigned refs;			/* held by processes */
	struct job_search *job;		/* owned; NULL: its job is not sought */
	struct row *rows;		/* while its job is sought: its own, see rows.h */
	bool is_named;			/* by a rule: a program inside does not rename it */
	bool has_started;		/* START was emitted */
	bool has_ended;			/* END was emitted */
	bool root_ended;
	int32_t status;			/* wait(2) status of root */
	enum failing failing;
	struct failure *failure;	/* of its root, a reference while due; NULL unknown */
	uint32_t oom_kills;		/* programs that the kernel killed for lack of memory */
	uint32_t kills;			/* KILLED findings */
	bool has_inner_engine;		/* by the look under way */
	struct vigil *vigil;		/* owned; NULL: none was begun, see episodes.h */
	uint32_t episodes;		/* kinds that have a finding, as bits */
	uint32_t episode_findings;	/* of these kinds, so far */
};

/* Returns the run's task of that id, without a reference; NULL: there is none. */
struct task *task_find_id(struct correlator *c, const struct run *r, const char *task_id);
struct task *task_new(struct correlator *c, struct run *r, uint64_t number);	/* NULL: no room */
void task_set_id_key(struct correlator *c, struct task *t);	/* by run and task_id */
/* Undoes task_set_id_key(): the id finds t no more. Does nothing if it has no key. */
void task_unset_id_key(struct correlator *c, struct task *t);
void task_release(struct correlator *c, struct task *t);		/* drops a reference; t may be NULL */
void task_assign(struct correlator *c, struct process *p, struct task *t);	/* t NULL: none */
void task_reap(struct correlator *c, struct task *t);	/* frees a task that is over and has no references */
/* Returns true if an engine started the task, rather than `sluice run` or "sluice ctl tag". */
static inline bool
task_is_driven(const struct task *t)
{
	return t->engine != NULL && strcmp(t->engine, "sluice") != 0;
}
/* Adds p's program to the task; the first emits its START. */
void task_joined(struct correlator *c, struct task *t, const struct process *p, uint64_t at_ns);
/* Records the end of the task's first program. status: its wait(2) status. */
void task_root_ended(struct correlator *c, struct task *t, int32_t status);
/* Returns whether a task that has started has had no program for long enough to end. */
bool task_is_over(const struct task *t, uint64_t now_ns);
void job_search_free(struct job_search *j);	/* NULL is fine */
/* Emits the END of all tasks, at now_ns also of those whose programs still run. */
void tasks_end(struct correlator *c, uint64_t now_ns);
/* Emits the END of tasks that are over, and a LIVE record of the others if live. */
void tasks_tick(struct correlator *c, uint64_t now_ns, bool live);
/* Frees all tasks; no process may refer to one. */
void tasks_free(struct correlator *c);

#endif
