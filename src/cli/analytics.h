/*
 * SPDX-License-Identifier: Apache-2.0
 * analytics: finds and runs sluice-tune, sluice-sweep and sluice-lake, separate programs that read the lake.
 * Each is searched for in PATH, then where they are installed beside sluice, as git does.
 */
#ifndef SLUICE_CLI_ANALYTICS_H
#define SLUICE_CLI_ANALYTICS_H

#include <limits.h>
#include <stdbool.h>

struct command_inherited;

/* Writes the path of program (such as "sluice-tune") to ret[PATH_MAX]; returns false if it is not installed. */
bool analytics_find(const char *program, char *ret);

/* Prints on stderr that it is not installed, on behalf of who ("sluice run --report"), with a hint. */
void analytics_print_missing(const char *who, const char *program);

struct analytics_report {
	const char *tune; /* path that analytics_find() returned */
	const char *lake;
	const char *run_id;
	const char *file; /* file of the page */
	bool as_root;	  /* stay root instead of becoming sudo's user */
};

/*
 * Writes the page of a run that is complete in the lake, as the user that COMMAND ran as, and waits for it;
 * passes on TERM, HUP and QUIT that arrive in the meantime. Returns 0; -1 after an error on stderr.
 */
int analytics_write_report(
    const struct analytics_report *o, const struct command_inherited *inherited);

#endif
