/*
 * SPDX-License-Identifier: Apache-2.0
 * episodes: findings about tasks and runs that live. Private to correlate/.
 *
 *   STUCK            no program of it has used a CPU, moved a byte, switched or ended, and it waits for something: for
 *                    stuck_in_io_ms if a thread is in uninterruptible sleep, else for stuck_ms
 *   IDLE             it has used less than IDLE_CPUS of a CPU and moved fewer than IDLE_BYTES_PER_S for idle_ms, and
 *                    waits for something that is not its own work
 *   THROTTLED        for throttled_ms its control group has had used up its quota for THROTTLED_SHARE of the time in
 *                    which it wanted a CPU, and for THROTTLED_WALL_SHARE of all time
 *   MEMORY_PRESSURE  for memory_pressure_ms its threads have waited for memory to be made free, or for pages that
 *                    had been evicted, for PRESSURE_SHARE of the time in which they wanted to work, and of all time.
 *                    The kernel's delay of reclaim is mostly CPU time in the kernel, which counts once
 *   DISK_FULL        of a run: where it, or a task of it, works, a local file system has had less than FULL_SHARE and
 *                    less than FULL_BYTES left, or no file, for disk_full_ms. It ends with twice as much. Also at
 *                    once if that is so as the first program of the run, or of the task, ends and it, or another
 *                    program of the run or task before it, has failed: what dies of it may do so in less time. Of
 *                    what is FAILED for that, it is recorded with it, when the program that failed first is known
 *
 * These times are of struct finding_limits. Tasks and runs are judged whenever the programs that live are added up,
 * from what changed since. A state begins when it holds, and is a finding once it has held for its time. From there on
 * it is one episode, until it has not held for as long; a share ends it at half of that at which it begins. Another
 * episode has another finding, up to FINDINGS_OF_TASK_MAX of a task or run. What has a finding is in the write-ahead
 * log: the next agent records none of it twice. How long a state has held is not: that begins anew with it.
 *
 * Of what waits: sleep for a set time, and waits for any of several things, may be as the work wants it, so that they
 * are never STUCK. IDLE is only a task that an engine started: a server, or a command that waits for its user, is
 * neither. Of a run without tasks, and of a task that no engine started, as a step of a job, STUCK is only what is in
 * uninterruptible sleep or waits for a network file system. So is a task in which another engine runs, whose tasks are
 * judged themselves.
 */
#ifndef SLUICE_CORRELATE_EPISODES_H
#define SLUICE_CORRELATE_EPISODES_H

#include <stdbool.h>
#include <stdint.h>

#include "correlate/bill.h"
#include "model/disk_space.h"
#include "model/usage.h"

#define DESCRIBED_MAX 20		/* findings that are made in one tick, each by a walk over all processes */

struct correlator;
struct failure;
struct process;
struct run;
struct task;

#define IDLE_CPUS 0.01
#define IDLE_BYTES_PER_S 4096
#define THROTTLED_SHARE 0.25
#define THROTTLED_WALL_SHARE 0.1
#define PRESSURE_SHARE 0.2
#define FULL_SHARE 0.01
#define FULL_BYTES (UINT64_C(1) << 30)
#define EPISODE_LOW 0.5			/* of a share at which it begins, at which it ends */

enum episode_kind {
	EPISODE_STUCK,
	EPISODE_IDLE,
	EPISODE_THROTTLED,
	EPISODE_PRESSURE,
	EPISODE_DISK,
	EPISODES,
};

/* Sums over all programs of a task or run until a time. */
struct look {
	uint64_t at_ns;			/* CLOCK_BOOTTIME; 0: none was taken */
	uint64_t programs;		/* that began, and that ended */
	uint64_t cpu_ns;
	uint64_t delay_ns;		/* throttled_ns included */
	uint64_t throttled_ns;
	uint64_t pressure_ns;
	uint64_t reclaim_ns;		/* of it, delays of reclaim that are no waits of the bill */
	uint64_t system_ns;		/* of cpu_ns */
	uint64_t uninterruptible_ns;
	uint64_t switches;
	uint64_t bytes;
	uint64_t waited_ns[BILL_PARTS];
};

struct episode {
	struct look since;		/* before which it did not hold; at_ns 0: it does not hold */
	uint64_t calm_ns;		/* of one that is recorded: since when it does not hold; 0: it does */
};

/* Where a run has no room, found in one look, or as something of it ended. */
struct full_disk {
	const char *folder;		/* of the task, or of the run; NULL: there is room */
	const struct task *task;	/* NULL: the run itself */
	struct disk_space space;
	bool has_ended;			/* the task, or the run itself; failure is only known of what has */
	const struct failure *failure;	/* of its first program; NULL: that ended well, or it is not known */
};

/* What is kept of a task or run that lives. */
struct vigil {
	struct look last;
	uint64_t io_ns;			/* since when a thread is in uninterruptible sleep and nothing moves; 0: none */
	struct episode of[EPISODES];
};

/* Judges all tasks and runs. Must be called after runs_sum_live(). */
void episodes_tick(struct correlator *c, uint64_t now_ns);
/*
 * Looks whether there is room where r worked, or its task t, of which the first program p has ended with that wait(2)
 * status. If there is none, records DISK_FULL, or keeps the space in the failure that r or t is to be reported with.
 * t NULL: r itself has ended. Must be called after finding_task_ended() or finding_run_ended().
 */
void episodes_ended(struct correlator *c, struct run *r, const struct task *t, const struct process *p, int32_t status,
    uint64_t end_ns);
/* Records DISK_FULL if r, or its task t, ended without room. f: its failure, which is settled; may be NULL. */
void episodes_settled(struct correlator *c, struct run *r, const struct task *t, const struct failure *f);

#endif
