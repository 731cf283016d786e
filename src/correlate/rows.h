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

struct row {
	UT_hash_handle hh;
	char *key;			/* owned: task NUL sample NUL tool */
	size_t key_len;
	struct summary_row shown;
	struct work work;
};

/* Finds or makes the row of p's program; it belongs to c. NULL: there is no table, or no room. */
struct row *row_of(struct correlator *c, const struct process *p);
/* Frees all rows, and what correlator_summary() returned. */
void rows_free(struct correlator *c);

#endif
