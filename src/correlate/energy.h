/*
 * SPDX-License-Identifier: Apache-2.0
 * energy: the share of each task and run in the energy that the host's meter counted.
 *
 * Each reading of the meter divides what was counted since the one before by CPU time. CPU time of a program costs
 *
 *   share = energy * CPU time / capacity	capacity = CPUs * interval
 *
 * so that all CPU time of an interval costs the same, and idle CPUs, as well as programs in no run, keep theirs: it
 * is the residue that Host records show. No share depends on what its neighbours do, and all shares and the residue
 * add up to what was counted. It is no measurement of the task: which part of the energy a busy CPU uses beyond an
 * idle one is known only by calibration, and instructions differ.
 *
 * CPU time counts as it is known: that of a program that lives from pass to pass, and what it used since the last
 * pass when it ends. While there is no reading, CPU time costs nothing: it is not known what it would.
 */
#ifndef SLUICE_CORRELATE_ENERGY_H
#define SLUICE_CORRELATE_ENERGY_H

#include <stdint.h>

#include "model/record.h"

struct correlator;
struct process;
struct usage;

/* Of a program that lives. */
struct charged {
	uint64_t seen_ns;		/* its CPU time by the last pass */
	uint64_t cpu_ns;		/* what was charged, or never will be; UINT64_MAX: what the next pass sees */
	uint64_t run_uj;		/* microjoules that it has in the sums of its run, as the next of its task */
	uint64_t task_uj;
};

/* Of a task or run. */
struct energy {
	uint64_t uj;			/* microjoules of its programs */
	enum energy_source source;	/* of the last reading that it has a share of; UNKNOWN: there was none */
	uint64_t due_ns;		/* CPU time of programs that ended since the last reading */
	uint64_t logged_uj;		/* in the write-ahead log, but for what is logged by chance */
};

/* Takes the CPU time of p's program, which lives. */
void energy_seen(struct process *p, const struct usage *usage);
/* Takes that of p's program, which ends, for the next reading, before it leaves its task and run. */
void energy_ended(struct process *p, const struct usage *usage);
/* p's program is now one of these, with what it has; once it leaves it is none of them, and takes that along. */
void energy_enter_run(struct process *p);
void energy_leave_run(struct process *p);
void energy_enter_task(struct process *p);
void energy_leave_task(struct process *p);
/* p's program leaves what it has to its task, and is about to enter another one. */
void energy_split_task(struct process *p);
/* What live programs used before the agent began costs nothing, after a replay. */
void energy_replayed(struct correlator *c);
/* Marks for the write-ahead log what grew, so that the next agent reports no less than LIVE records that follow. */
void energy_log(struct correlator *c);

#endif
