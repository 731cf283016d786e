/*
 * SPDX-License-Identifier: Apache-2.0
 * rows: the table of `sluice run`.
 */
#ifndef SLUICE_CORRELATE_ROWS_H
#define SLUICE_CORRELATE_ROWS_H

#include <stddef.h>
#include <uthash.h>

#include "correlate/correlator.h"
#include "correlate/work.h"

#define ROWS_MAX 10000

struct process;
struct task;

/*
 * A row is of all tasks of a name and a sample. A task whose job is sought may get another name: up to its end it has
 * rows of its own.
 */
struct row {
	UT_hash_handle hh;
	char *key;			/* owned: task NUL sample NUL tool NUL, and the number of the task or 0 */
	size_t key_len;
	struct row *next_of_task;
	struct summary_row shown;
	struct work work;
	struct usage live;		/* of its live programs; see runs_sum_live() */
};

/* Finds or makes the row of p's program; it belongs to c. NULL: there is no table, or no room. */
struct row *row_of(struct correlator *c, const struct process *p);
/* Makes a task's own rows, under its name, those of all tasks of that name. */
void rows_settle(struct correlator *c, struct task *t);
/* Divides the time of each row up to now. Must be called after runs_sum_live(). */
void rows_bill(struct correlator *c, uint64_t now_ns);
/* Frees all rows, and what correlator_summary() returned. */
void rows_free(struct correlator *c);

#endif
