/*
 * SPDX-License-Identifier: Apache-2.0
 * exit_codes: the exit statuses of sluice's commands; `sluice run` also passes on those of env(1).
 */
#ifndef SLUICE_BASE_EXIT_CODES_H
#define SLUICE_BASE_EXIT_CODES_H

#define EXIT_DONE 0
#define EXIT_NO 1		/* the answer is no */
#define EXIT_USAGE 2		/* wrong usage or configuration */
#define EXIT_OWN_FAILURE 125	/* a failure of sluice itself, the status that env(1) uses */

#endif
