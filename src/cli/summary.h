/*
 * SPDX-License-Identifier: Apache-2.0
 * summary: what `sluice run` prints at the end: the table, the run's line, processes that outlived it, losses.
 */
#ifndef SLUICE_CLI_SUMMARY_H
#define SLUICE_CLI_SUMMARY_H

#include <stdbool.h>
#include <stdio.h>

struct agent;

struct summary_options {
	struct agent *agent;
	const char *pipeline;
	const char *lake;
	int wait_status;
	unsigned width;		/* of the terminal; 0: there is none */
};

/* Prints the summary of the run as a table, with losses and with programs that still run. */
void summary_print(FILE *f, const struct summary_options *o);
/* Prints one JSON object. Returns 0, or -1 if it could not be written. */
int summary_print_json(FILE *f, const struct summary_options *o);

/* Returns true for valid UTF-8 without control characters that is not empty. */
bool summary_is_name(const char *s);
/* Prints a blank and s, quoted for a shell if it needs that. */
void summary_print_quoted(FILE *f, const char *s);

#endif
