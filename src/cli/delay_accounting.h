/*
 * SPDX-License-Identifier: Apache-2.0
 * delay_accounting: the kernel's delay accounting, kernel.task_delayacct, on while runs have asked for it.
 *
 * Each run has a process aside that ends after it, also if the run is killed. The first switches it on, the last puts
 * back what it was, or what an administrator has set meanwhile. Where a run and its process were killed together and no
 * other is left to do so, the next run with --delay-accounting does, by DELAY_ACCOUNTING_STATE. Containers whose /run
 * or /proc is their own are not known of.
 */
#ifndef SLUICE_CLI_DELAY_ACCOUNTING_H
#define SLUICE_CLI_DELAY_ACCOUNTING_H

#include <stddef.h>

struct aside;

#define DELAY_ACCOUNTING_STATE "/run/sluice-delay-accounting"

/*
 * Switches it on, for threads that begin from now on, until delay_accounting_end(). To be called as root, while this
 * thread is the only one. 0, or a negative errno with a sentence in error.
 */
int delay_accounting_begin(struct aside *ret, char *error, size_t error_size);

/* Puts it back if no other run needs it. 0, also if none had begun, or a negative errno with a sentence in error. */
int delay_accounting_end(struct aside *a, char *error, size_t error_size);

#endif
