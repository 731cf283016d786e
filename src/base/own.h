/*
 * SPDX-License-Identifier: Apache-2.0
 * own: the resources that this process and its children use, and its command line. Its own CPU time is
 * clock_ns(CLOCK_PROCESS_CPUTIME_ID).
 */
#ifndef SLUICE_BASE_OWN_H
#define SLUICE_BASE_OWN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct rusage;

uint64_t own_rss_bytes(void);	/* 0: /proc cannot be read */
/* Returns the CPU time of children that were reaped, but for others' work. Both are for the main thread. */
uint64_t own_reaped_cpu_ns(void);
/* Records that a child was reaped which did others' work, as COMMAND does. usage: of wait4(2). */
void own_reaped_others(const struct rusage *usage);
/* Return the CPU time of a child that was not, and its memory without that of files, which others share; 0: unknown. */
uint64_t own_child_cpu_ns(pid_t pid);
uint64_t own_child_rss_bytes(pid_t pid);
/* Returns how long the child's only thread has waited for a CPU; 0: unknown. */
uint64_t own_child_run_delay_ns(pid_t pid);
/* Returns whether a child runs, or would if it had a CPU; false also if that is unknown. */
bool own_child_is_runnable(pid_t pid);

/* Empties the command line of this process: a copy that was forked must not be found by the name of its program. */
void own_forget_arguments(void);

#endif
