/*
 * SPDX-License-Identifier: Apache-2.0
 * child: runs a program to its end, within a time, and collects what it prints.
 */
#ifndef SLUICE_BASE_CHILD_H
#define SLUICE_BASE_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

#define CHILD_NOT_EXECUTED 127	/* exit status if the program cannot be executed, as of a shell */
#define CHILD_PIECE 4096	/* read at once: a buffer with room for output_max and one more is never reallocated */

struct child_options {
	const char *path;		/* executed as it is; PATH is not searched */
	char *const *argv;		/* NULL-terminated */
	char *const *environment;	/* NULL: ours */
	uint64_t timeout_ms;
	size_t output_max;		/* of standard output */
	bool is_quiet;			/* its standard error is dropped, too */
	bool ends_with_us;		/* the kernel sends it SIGTERM if this process ends first */
	const volatile sig_atomic_t *stop;	/* not 0: it is killed; NULL: none */
};

/*
 * Runs it without input, with default signal dispositions, in a process group of its own. Its standard output is
 * appended to out, which ends in a NUL that does not count; NULL: it is dropped. Children that outlive it are left
 * alone. Returns 0 with the status of wait(2); or a negative errno, after which its group was killed: -ETIMEDOUT,
 * -EFBIG: it printed more than output_max; -EINTR: stop was set; or another.
 */
int child_run(const struct child_options *o, struct bytes *out, int *ret_status);

#endif
