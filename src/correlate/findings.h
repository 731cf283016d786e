/*
 * SPDX-License-Identifier: Apache-2.0
 * findings: what went wrong, told when it is known for sure. Private to correlate/.
 *
 *   FAILED      a task that an engine started, or where no such task failed the run, whose first program
 *               ended by a signal or with a code other than 0: told of the program that this began with
 *   OOM_KILLED  a program that the kernel killed for want of memory
 *
 * Each program of a run that ends badly is a struct failure, and offered to the program that started it.
 * If that ends badly too, it passed the failure of a child on:
 *
 *   of the children that ended before it, and after whose end it began no other, the first to end; if any of
 *   these has its status (as a shell's $?), or if it ended within FAILURE_PROMPT_NS of its last child;
 *   else the last to end that has its status, if that is neither 0 nor 1: then a trap ran;
 *   but before all these the first whose failure goes back to the OOM killer;
 *
 * or else it failed of itself. A program that ends well passes nothing on: a grep that found nothing is no
 * finding. So a chain leads from a task's first program down to the one that it failed of.
 *
 * The kernel tells ends in any order, and zombies' a pass later: FAILED waits for FAILURE_SETTLE_NS after the
 * end of the first program, and as long as a child of one of the chain has ended and is not told yet
 * (correlator_ending()). It is never later than the END of its task or run.
 *
 * No finding is made of a task whose chain leads into another task that has one of its own, nor of an engine
 * that failed of itself while tasks of its run have some, nor of a run as long as tasks of it failed that no
 * later attempt made good: as the engine counts attempts.
 */
#ifndef SLUICE_CORRELATE_FINDINGS_H
#define SLUICE_CORRELATE_FINDINGS_H

#include "correlate/state.h"

#define FAILURE_PROMPT_NS UINT64_C(2000000000)
#define FAILURE_SETTLE_NS UINT64_C(1000000000)
#define FAILURES_MAX 16384		/* known at once */
#define FAILURES_BELOW_MAX 8		/* of a program's children: those that it may yet pass on */
#define FAILURE_CHAIN_MAX 16		/* programs that passed one on; of more the inner ones are left out */
#define FINDINGS_OF_RUN_MAX 1000
#define FINDINGS_OF_TASK_MAX 16		/* OOM_KILLED */
#define FINDINGS_OF_NONE_MAX 60		/* a minute, of programs in no run */

/* A program that ended badly. */
struct failure {
	UT_hash_handle hh;
	struct program_key program;	/* the key */
	struct program_key parent;	/* who may pass it on; pid 0: nobody any more */
	struct failure *of;		/* counted there: whose failure it passed on; NULL: of itself */
	unsigned refs;
	uint32_t skipped;		/* in the chain between it and of */
	int32_t status;			/* wait(2)'s */
	bool is_oom;
	bool is_engine;
	bool is_run_root;
	uint64_t task_root;		/* number of the task that began with it, and has a finding; 0: none */
	uint64_t begin_ns;
	uint64_t end_ns;
	struct opt_u64 peak_bytes;
	struct opt_u64 limit_bytes;	/* of memory, where it ran */
	const char *tool;		/* in text, as the next three; "" unknown */
	const char *task_id;
	const char *task;
	const char *sample;
	struct mark mark;
	char text[];
};

/* What a process has of them. */
struct failures {
	struct failure *own;		/* counted, as all here; NULL: it has not ended badly */
	struct failure *below[FAILURES_BELOW_MAX];
	unsigned n_below;
	uint64_t last_end_ns;		/* of its children, from the first of these on */
	bool has_left_out;		/* one more, for which there was no room */
};

/* How the last program of a process ended. */
struct program_end {
	int32_t status;			/* wait(2)'s */
	bool is_oom;			/* the kernel killed it for want of memory */
	uint64_t end_ns;
	struct opt_u64 peak_bytes;
	const char *comm;		/* UTF-8 */
};

/* failures.c */

/* A program of p's begins: its parent has gone on. */
void failures_begin(struct correlator *c, const struct process *p);
/* p's last program has ended; before its task and its run hear of it. */
void failures_end(struct correlator *c, struct process *p, const struct program_end *end);
/* p runs another program: what became of the children of the one before is its affair no more. */
void failures_exec(struct correlator *c, struct process *p);
void failures_forget(struct correlator *c, struct process *p);
void failures_free(struct correlator *c);	/* nobody may refer to any */
struct failure *failure_ref(struct failure *f);	/* NULL is fine, as for the next */
void failure_unref(struct correlator *c, struct failure *f);
/* p's own; NULL: it has not ended badly. */
struct failure *failure_of(const struct process *p);
/* The one that all of its chain goes back to. */
const struct failure *failure_leaf(const struct failure *f);

/* Of memory, where p runs; else its run's. */
struct opt_u64 failure_memory_limit(const struct process *p);

/* For the write-ahead log, as what follows. text: tool, task_id, task, sample; NULL: there is no room. */
struct failure *failure_find(struct correlator *c, const struct program_key *program);
struct failure *failure_get(struct correlator *c, const struct program_key *program, const char *const text[4]);
/* NULL: of itself. -EBADMSG: it would go round in a circle. */
int failure_set_of(struct correlator *c, struct failure *f, struct failure *of);
/* Gives one that was replayed to those who hold it; by: who may pass it on, pid 0: nobody. */
void failure_attach(struct correlator *c, struct failure *f, const struct program_key *by);
/* failures_begin(), if its program has. */
void failures_known_begin(struct correlator *c, const struct process *p);
/* p has had one of them at least, and a child that ended then. */
void failures_child_ended(struct process *p, uint64_t end_ns);
void failures_replayed(struct correlator *c);	/* after the last entry */

/* findings.c */

/* The first program of t, or of r, has ended: p's last. status: wait(2)'s. */
void finding_task_ended(struct correlator *c, struct task *t, const struct process *p, int32_t status);
void finding_run_ended(struct correlator *c, struct run *r, const struct process *p, int32_t status);
void finding_oom(struct correlator *c, const struct process *p, const struct program_end *end);
/* Tells what has settled; all: what has not, too. */
void findings_tick(struct correlator *c, uint64_t now_ns, bool all);
/* It will be freed. */
void finding_task_gone(struct correlator *c, struct task *t);
void finding_run_gone(struct correlator *c, struct run *r);
uint64_t findings_due(const struct correlator *c);	/* counted anew */
/* Failures up to then that are not told yet. */
uint64_t findings_held(const struct correlator *c, uint64_t since_ns);

#endif
