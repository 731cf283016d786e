/*
 * SPDX-License-Identifier: Apache-2.0
 * analytics: finds and runs sluice-tune, sluice-sweep and sluice-lake, separate programs that read the lake.
 * Each is searched for in PATH, then where they are installed beside sluice, as git does.
 */
#ifndef SLUICE_CLI_ANALYTICS_H
#define SLUICE_CLI_ANALYTICS_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

struct command_inherited;

/* Writes the path of program (such as "sluice-tune") to ret[PATH_MAX]; returns false if it is not installed. */
bool analytics_find(const char *program, char *ret);

/* Prints on stderr that it is not installed, on behalf of who ("sluice run --report"), with a hint. */
void analytics_print_missing(const char *who, const char *program);

struct analytics_report {
	const char *tune; /* path that analytics_find() returned */
	const char *lake;
	const char *file; /* file of the page */
	bool as_root;	  /* stay root instead of becoming sudo's user */
	pid_t pid;	  /* of the reporter; 0: there is none */
	int fd;		  /* a socket to it, with pid */
};

/*
 * Forks the reporter: a process that waits until the run is over, and then becomes sluice-tune, which this process can
 * no longer execute by then. It has no file of this process, and ends with it. When this returns it is the user that
 * COMMAND runs as, has no_new_privs and no capability; as root CAP_DAC_OVERRIDE and CAP_FOWNER. sluice-tune has no
 * more. 0 or a negative errno.
 */
int analytics_report_begin(struct analytics_report *o, const struct command_inherited *inherited);
/*
 * Has the page of a run written that is complete in the lake, as the user that COMMAND ran as, and waits for it;
 * passes on TERM, HUP and QUIT that arrive in the meantime. Returns 0; -1 after an error on stderr.
 */
int analytics_report_write(struct analytics_report *o, const char *run_id);
/* Ends a reporter that has nothing to write. One that was not begun is fine. */
void analytics_report_abandon(struct analytics_report *o);

#endif
