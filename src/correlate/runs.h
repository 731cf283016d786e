/*
 * SPDX-License-Identifier: Apache-2.0
 * runs: executions of pipelines.
 */
#ifndef SLUICE_CORRELATE_RUNS_H
#define SLUICE_CORRELATE_RUNS_H

#include <uthash.h>

#include "correlate/episodes.h"
#include "correlate/findings.h"
#include "correlate/state.h"
#include "identify/engine.h"
#include "model/user.h"

#define RUNS_MAX 4096
#define RUN_ID_SIZE 128

struct process;

/* One execution of a pipeline: by an engine, as a scheduler's job, or set by hand. */
struct run {
	UT_hash_handle hh;
	char id[RUN_ID_SIZE];		/* hash key */
	owner_t owner;			/* whose share it is of, with its tasks, facts and failures */
	enum engine_strength strength;
	const char *engine;		/* kept_name(), like source */
	const char *source;
	double confidence;
	char *pipeline;			/* owned, as all strings here; NULL unknown */
	char *name;
	char *command;
	char *work_dir;
	char *root_dir;			/* the folder in which all its tasks work */
	char *scheduler;
	char *job_id;
	char *parent_id;
	char *task;			/* set by hand: the one task of all its programs */
	char *sample;
	struct opt_u64 uid;
	uint32_t user_uid;		/* of the user behind uid, see model/user.h */
	struct opt_double cpus;
	struct opt_u64 memory_bytes;
	struct opt_u64 memory_high;
	struct process_id root;		/* its driver; pid 0: none */
	int32_t status;			/* wait(2) status of root */
	bool root_ended;
	bool has_status;		/* the end of root was seen */
	bool has_started;		/* START was emitted */
	bool has_ended;			/* END was emitted */
	const char *inner;		/* engine that drives a run set by hand; kept_name(); NULL: none */
	uint64_t start_ns;
	uint64_t idle_ns;		/* since when nothing refers to it; 0: unknown */
	uint64_t lost_before;		/* kernel events lost before it began */
	struct work work;
	struct usage live;		/* of its live programs; see runs_sum_live() */
	enum failing failing;
	struct failure *failure;	/* of its root, a reference while due; NULL unknown */
	uint32_t findings;		/* emitted */
	struct vigil *vigil;		/* as in struct task, like the next two */
	uint32_t episodes;
	uint32_t episode_findings;
	bool has_live_task;
	struct full_disk full;		/* of the look under way */
	uint32_t failed_tasks;		/* those with a finding that no later attempt made good */
	unsigned refs;			/* held by processes and tasks */
	struct mark mark;
};

/* Finds or makes a run; NULL if there is no room for one of that owner, which is counted. */
struct run *run_get(struct correlator *c, const char *id, owner_t owner);
/* Returns whose share a run is of that is made by hand for a user: what the system's users begin is of none. */
owner_t run_owner_by_hand(uint32_t uid, uint32_t user_uid);
/* Returns the user whose share records of a run take, as user_share() does. */
static inline struct opt_u64
run_share(const struct run *r)
{
	return r->uid.known ? user_share((uint32_t)r->uid.value, r->user_uid) : (struct opt_u64){ 0 };
}
/* Makes a restored run, with its user, one of that user's share. */
void run_restored(struct correlator *c, struct run *r);
struct run *run_ref(struct run *r);				/* takes a reference */
void run_release(struct correlator *c, struct run *r);		/* drops a reference; r may be NULL */
void run_assign(struct correlator *c, struct process *p, struct run *r);	/* r NULL: none; drops p's task too */
/* Emits a record of r; a LIVE record contains the usage of live programs, see runs_sum_live(). */
void run_emit(struct correlator *c, struct run *r, enum record_phase phase, uint64_t now_ns);
/* Sets the evidence from which a run was made, and the confidence in it: 0 to 1. */
void run_set_origin(struct correlator *c, struct run *r, const char *engine, enum engine_strength strength,
    const char *source, double confidence);
/* Sets the driver of r, which lives. */
void run_set_root(struct correlator *c, struct run *r, const struct process_id *root);

/* Names of a run, as in struct run. NULL and "": unknown. */
struct run_names {
	const char *pipeline;
	const char *name;
	const char *command;
	const char *work_dir;
	const char *root_dir;
	const char *parent_id;
	const char *sample;
	const char *inner;
};
/* Sets those names that r does not have yet. */
void run_learn(struct correlator *c, struct run *r, const struct run_names *names);
/* Sets the user, job and limits of r to those of p. */
void run_take_placement(struct correlator *c, struct run *r, const struct process *p);
/* Names r by hand; a run that is new begins with root. 0, or -ENOMEM. */
int run_tag(struct correlator *c, struct run *r, const struct tag *tag, const struct process *root);
/* Makes the one run of `sluice run`, to which everything seen belongs. 0, or -ENOMEM. */
int run_open_whole(struct correlator *c);
/* Adds a program to the run from start_ns on; the first emits its START. */
void run_joined(struct correlator *c, struct run *r, const struct process *p, uint64_t at_ns);
/* Records the end of the run's driver. status: its wait(2) status; NULL: unknown. */
void run_root_ended(struct correlator *c, struct run *r, const int32_t *status);
/* Returns true if neither the run's driver nor any other program of it runs. */
static inline bool
run_is_idle(const struct run *r)
{
	return r->work.live == 0 && (r->root.pid == 0 || r->root_ended);
}
/* Emits the END of runs that are over, a LIVE record of the others if live, and frees unused runs. */
void runs_tick(struct correlator *c, uint64_t now_ns, bool live);
/* Sums the live programs of runs and tasks: before LIVE records, and before END records while programs still run. */
void runs_sum_live(struct correlator *c);
void run_free(struct correlator *c, struct run *r);		/* and its facts; no reference may remain */
/* Frees all runs; no reference may remain. */
void runs_free(struct correlator *c);

#endif
