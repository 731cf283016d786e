/*
 * SPDX-License-Identifier: Apache-2.0
 * summary: what `sluice run` prints at the end: the table, the run's line, what outlived it, what
 * was lost.
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
	unsigned width;		/* of the terminal; 0: none */
};

void summary_print(FILE *f, const struct summary_options *o);
/* One JSON object. 0, or -1 when it could not be written. */
int summary_print_json(FILE *f, const struct summary_options *o);

/* Valid UTF-8 without control characters, and not empty. */
bool summary_is_name(const char *s);
/* A blank and s, quoted for a shell where it needs it. */
void summary_print_quoted(FILE *f, const char *s);

#endif
