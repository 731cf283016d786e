/*
 * SPDX-License-Identifier: Apache-2.0
 * kills: who sent the signal of which a program ends.
 *
 *   KILLED  a program of a run that ended by a signal of a program that does other work: one outside the run, or
 *           outside the task if an engine started that, or of another user, as a scheduler's step daemon. Or by a
 *           signal of the kernel: SIGKILL as its control group was killed, SIGXCPU, SIGHUP as its terminal hung up
 *
 * A program that handles the signal and exits by itself was not ended by it: there is no finding.
 *
 * What a task, or a script, does to its own programs, as timeout(1) does, is no finding, nor is the end of a program
 * whose parent was ended likewise: who signals a whole group has one finding for all of it. As the first process of a
 * container ends, the kernel kills what it leaves: that is none either. Other signals of the kernel are what the user
 * of a terminal asks for, or errors of the program itself. What the kernel kills because memory ran out is OOM_KILLED
 * alone.
 */
#ifndef SLUICE_CORRELATE_KILLS_H
#define SLUICE_CORRELATE_KILLS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/event.h"

struct correlator;
struct process;
struct program_end;

#define KILL_NAME_SIZE 72		/* of a name in UTF-8; a longer one is cut */

/* The signal that ends a process. */
struct kill {
	uint64_t time_ns;
	uint32_t signal;
	bool is_of_program;		/* else the kernel sent it */
	bool is_own;			/* by a program of the same work */
	struct program_key sender;	/* pid 0: it has no record */
	struct program_key starter;	/* the program that started the sender; pid 0: it has no record */
	uint32_t pid;			/* of the sender */
	uint32_t uid;
	char comm[KILL_NAME_SIZE];
	char starter_name[KILL_NAME_SIZE];
};

/* Emits KILLED if p's last program, which ended, is to have one. */
void finding_killed(struct correlator *c, const struct process *p, const struct program_end *end);
void kill_forget(struct process *p);

#define KILL_WAL_STRINGS (2 * KILL_NAME_SIZE)	/* bytes of its strings in the write-ahead log */

/* For the replay of the log: gives p a copy. Without memory it has none. */
void kill_restore(struct process *p, const struct kill *k);

#endif
