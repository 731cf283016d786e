/*
 * SPDX-License-Identifier: Apache-2.0
 * exit_codes: the exit statuses of sluice's commands, beside those of env(1) that `sluice run` passes on.
 */
#ifndef SLUICE_BASE_EXIT_CODES_H
#define SLUICE_BASE_EXIT_CODES_H

#define EXIT_DONE 0
#define EXIT_NO 1		/* the answer is no */
#define EXIT_USAGE 2		/* wrong usage or configuration */
#define EXIT_OWN_FAILURE 125	/* of sluice itself, as env(1) does */

#endif
