/*
 * SPDX-License-Identifier: Apache-2.0
 * findings: failures that are certain enough to be reported. Private to correlate/.
 *
 *   FAILED      a task that an engine started, or the run if no such task failed, whose first program ended
 *               by a signal or with a code other than 0; it names the program where the failure began
 *   OOM_KILLED  a program that the kernel killed for lack of memory
 *   KILLED      a program that a signal ended which others sent, see kills.h
 *
 * and, of tasks and runs that live, those of episodes.h.
 *
 * Each program of a run that fails is a struct failure, and offered to the program that started it. If that fails
 * too, it passed on the failure of a child:
 *
 *   of the children that ended before it, and after whose end it started no other, the first to end; if any of
 *   these has its status (as a shell's $?), or if it ended within FAILURE_PROMPT_NS of its last child;
 *   else the last to end that has its status, if that is neither 0 nor 1: then a trap ran;
 *   but before all these the first whose failure goes back to the OOM killer;
 *
 * or else it failed of itself. A program that ends well passes nothing on: a grep without a match is no finding. So
 * a chain leads from a task's first program down to the one where the failure began.
 *
 * The kernel reports ends in any order, and those of zombies one pass later: FAILED waits for FAILURE_SETTLE_NS
 * after the end of the first program, and while a child of a program in the chain has ended and is not reported yet
 * (correlator_ending()). It is never later than the END of its task or run.
 *
 * No finding is made of a task whose chain leads into another task that has a finding of its own; of an engine that
 * failed of itself while tasks of its run have findings; and of a run while it has failed tasks for which no later
 * attempt, as the engine counts them, succeeded.
 */
#ifndef SLUICE_CORRELATE_FINDINGS_H
#define SLUICE_CORRELATE_FINDINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "correlate/users.h"
#include "correlate/wal.h"
#include "model/disk_space.h"
#include "model/event.h"
#include "model/record.h"

struct process;
struct run;
struct task;

#define FAILURE_PROMPT_NS UINT64_C(2000000000)
#define FAILURE_SETTLE_NS UINT64_C(1000000000)
#define FAILURES_MAX 16384		/* at once */
#define FAILURES_BELOW_MAX 8		/* children's failures that a program may still pass on */
#define FAILURE_CHAIN_MAX 16		/* links of a chain; of a longer one inner links are left out */
#define FINDINGS_OF_RUN_MAX 1000
#define FINDINGS_OF_TASK_MAX 16		/* of OOM_KILLED, of KILLED, and of those of episodes.h */
#define FINDINGS_OF_NONE_MAX 60		/* in a minute, of programs in no run; less than 256 */

/* Whether a task's or run's failure is to be reported. */
enum failing {
	FAILING_NOT,
	FAILING_DUE,
	FAILING_OVER,			/* reported, or left out */
};

/* A program that failed: it ended by a signal or with a code other than 0. */
struct failure {
	UT_hash_handle hh;
	struct program_key program;	/* hash key */
	struct program_key parent;	/* the program that may pass it on; pid 0: none any more */
	struct failure *of;		/* the failure that it passed on, a reference; NULL: it failed of itself */
	unsigned refs;
	owner_t owner;			/* whose share it is of: that of its run */
	uint32_t skipped;		/* links left out between it and of */
	int32_t status;			/* wait(2) status */
	bool is_oom;
	bool is_engine;
	bool is_run_root;
	bool is_on_full_disk;		/* of space, as this first program of a task or run ended */
	struct disk_space space;
	uint64_t task_root;		/* number of the task that began with it and has a finding; 0: none */
	uint64_t begin_ns;
	uint64_t end_ns;
	struct opt_u64 peak_bytes;
	struct opt_u64 limit_bytes;	/* memory limit where it ran */
	const char *tool;		/* points into text, as the next three; "" unknown */
	const char *task_id;
	const char *task;
	const char *sample;
	struct mark mark;
	char text[];
};

/* The failures that concern a process. */
struct failures {
	struct failure *own;		/* a reference, as all here; NULL: it did not fail */
	struct failure *below[FAILURES_BELOW_MAX];
	unsigned n_below;
	uint64_t last_end_ns;		/* latest end of a child, counted from the first of these on */
	bool has_left_out;		/* a failure was dropped for lack of room */
};

/* How the last program of a process ended. */
struct program_end {
	int32_t status;			/* wait(2) status */
	bool is_oom;			/* killed by the kernel for lack of memory */
	uint64_t end_ns;
	struct opt_u64 peak_bytes;
	const char *comm;		/* UTF-8 */
};

/* failures.c */

/* Records that a program of p began: its parent started a child after those that failed before. */
void failures_begin(struct correlator *c, const struct process *p);
/* Records the end of p's last program. Must be called before p's task and run learn of the end. */
void failures_end(struct correlator *c, struct process *p, const struct program_end *end);
/* Forgets the failures of p's children, since p runs another program now. */
void failures_exec(struct correlator *c, struct process *p);
/* Frees all that p keeps of failures, its own included; p is about to be freed. */
void failures_forget(struct correlator *c, struct process *p);
void failures_free(struct correlator *c);	/* no reference may remain */
struct failure *failure_ref(struct failure *f);	/* f may be NULL, as for failure_unref() */
void failure_unref(struct correlator *c, struct failure *f);
/* Returns the failure of p's last program, without a reference; NULL: it did not fail. */
struct failure *failure_of(const struct process *p);
/* Returns the failure at the end of f's chain, where it began. */
const struct failure *failure_leaf(const struct failure *f);

/* Returns the memory limit where p runs, else that of its run. */
struct opt_u64 failure_memory_limit(const struct process *p);

/* From here on: for the replay of the write-ahead log. */

/* Returns the failure of a program, without a reference; NULL: none is kept. */
struct failure *failure_find(struct correlator *c, const struct program_key *program);
/*
 * Finds or makes a failure. text: tool, task_id, task, sample. Returns NULL if there is no room for one of that owner,
 * which failures_replayed() sets during a replay.
 */
struct failure *failure_get(struct correlator *c, const struct program_key *program, owner_t owner,
    const char *const text[4]);
/* Sets the failure that f passed on; NULL: it failed of itself. -EBADMSG: the chain would become a circle. */
int failure_set_of(struct correlator *c, struct failure *f, struct failure *of);
/* Gives a replayed failure to its process and parent. by: the program that may pass it on; pid 0: none. */
void failure_attach(struct correlator *c, struct failure *f, const struct program_key *by);
/* Takes p's own failure from it: by its last entry, p's program has not failed. */
void failures_disown(struct correlator *c, struct process *p);
/* Calls failures_begin() if p's program has begun. */
void failures_known_begin(struct correlator *c, const struct process *p);
/* Records that a child of p ended at end_ns, after a failed one. */
void failures_child_ended(struct process *p, uint64_t end_ns);
void failures_replayed(struct correlator *c);	/* after the last entry */

/* finding_limits.c */

/* Counts one more finding of run r, and returns whether the limit allows it. */
bool finding_is_allowed(struct correlator *c, struct run *r);
/* The same of one of FINDINGS_OF_TASK_MAX, of which *count is the number. The caller logs the change. */
bool finding_is_allowed_of(struct correlator *c, struct run *r, uint32_t *count);
/*
 * The same of a program in no run: its user may have another in this minute while having had fewer than are left. What
 * ended in a minute before counts in the present one, since ends are reported in any order.
 */
bool finding_is_allowed_alone(struct correlator *c, const struct process *p, uint64_t now_ns);
/* Counts one that a limit does not allow. */
void finding_leave_out(struct correlator *c, owner_t owner);

/* findings.c */

/*
 * Records that the first program of t ended, which was p's last: a FAILED finding is due if an engine started it and
 * status, its wait(2) status, is not 0.
 */
void finding_task_ended(struct correlator *c, struct task *t, const struct process *p, int32_t status);
/* Records likewise that the first program of run r ended. p NULL: that program was never seen. */
void finding_run_ended(struct correlator *c, struct run *r, const struct process *p, int32_t status);
/* Emits OOM_KILLED if end is of that kind. */
void finding_oom(struct correlator *c, const struct process *p, const struct program_end *end);
/* Emits FAILED findings that have settled; all: also those that have not. */
void findings_tick(struct correlator *c, uint64_t now_ns, bool all);
/* Drops a due finding of a task or run that is about to be freed. */
void finding_task_gone(struct correlator *c, struct task *t);
void finding_run_gone(struct correlator *c, struct run *r);
/* Returns the number of FAILED findings due since since_ns or before, and not yet emitted. */
uint64_t findings_held(const struct correlator *c, uint64_t since_ns);
/* Gives a replayed failure to the task and the run whose first program it is of. */
void finding_attach(struct correlator *c, struct failure *f);
void findings_replayed(struct correlator *c);	/* after the last entry */

#endif
