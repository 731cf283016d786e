/*
 * SPDX-License-Identifier: Apache-2.0
 * analytics: finds and runs sluice-tune, sluice-sweep and sluice-lake, programs of their own that read
 * the lake. Each is sought in PATH, then where they are installed beside sluice, as git does.
 */
#ifndef SLUICE_CLI_ANALYTICS_H
#define SLUICE_CLI_ANALYTICS_H

#include <limits.h>
#include <stdbool.h>

struct command_inherited;

/* Where program (such as "sluice-tune") is, in ret[PATH_MAX]; false where it is not installed. */
bool analytics_find(const char *program, char *ret);

/* Says on stderr that it is not installed, on behalf of who ("sluice run --report"), and the mend. */
void analytics_tell_missing(const char *who, const char *program);

struct analytics_report {
	const char *tune; /* what analytics_find found */
	const char *lake;
	const char *run_id;
	const char *file; /* the page */
	bool as_root;	  /* do not become sudo's user */
};

/*
 * Writes the page of a run that is whole in the lake, as the user that COMMAND ran as, and waits for it; TERM,
 * HUP and QUIT that come meanwhile are passed on. 0; -1 after saying on stderr that there is none.
 */
int analytics_write_report(
    const struct analytics_report *o, const struct command_inherited *inherited);

#endif
