/*
 * SPDX-License-Identifier: Apache-2.0
 * table: the summary that `sluice run` ends with.
 *
 * Names come from traced programs and may have any content: control characters and invalid UTF-8 are written as
 * \xNN, never raw. Numbers that are unknown are printed as "-".
 */
#ifndef SLUICE_CLI_TABLE_H
#define SLUICE_CLI_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "model/record.h"

/* The row of one task and tool. All pointers are the caller's; NULL: unknown. */
struct table_row {
	const char *task;
	const char *tool;
	uint64_t n;			/* programs */
	uint64_t failed;		/* programs that failed */
	uint64_t wall_ns;
	struct opt_double cpu_cores;	/* CPU time / wall */
	struct opt_u64 peak_memory_bytes;
	const struct usage *usage;
	struct verdict verdict;
};

struct table_summary {
	const char *pipeline;
	uint64_t wall_ns;
	struct opt_i32 exit_code;
	struct opt_i32 exit_signal;
	struct opt_double cpu_cores;
	uint32_t cpus;
	struct opt_u64 peak_memory_bytes;
	const struct usage *usage;	/* of the whole run */
	uint64_t programs;
	uint64_t failed;
	uint64_t lost;			/* kernel events */
};

/*
 * Prints the header and n rows to f. width is the terminal's in columns: long task and tool names are cut to
 * fit; 0: not a terminal, and nothing is cut. Returns 0, or a negative errno.
 */
int table_print(FILE *f, const struct table_row *rows, size_t n, unsigned width);

/* Prints the line about the whole run. */
void table_footer(FILE *f, const struct table_summary *s);

#endif
