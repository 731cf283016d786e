/*
 * SPDX-License-Identifier: Apache-2.0
 * cputime: CPU time split as the kernel reports it, and the usage of a program from the kernel's totals.
 */
#ifndef SLUICE_CORRELATE_CPUTIME_H
#define SLUICE_CORRELATE_CPUTIME_H

#include <stdbool.h>
#include <stdint.h>

#include "model/event.h"
#include "model/usage.h"

struct cputime {
	uint64_t user_ns;
	uint64_t system_ns;
};

/*
 * Splits a process's exact runtime into user and system time as wait4(2) and /proc do: in proportion to the tick
 * samples utime and stime, never less than reported before (prev). This is the kernel's own formula,
 * cputime_adjust() in kernel/sched/cputime.c.
 */
struct cputime cputime_split(const struct counters *c);

/* Totals of a process at the moment from which the next program's usage is counted. */
struct usage_base {
	struct counters counters;
	struct cputime cpu;
};

/* Moves a base (zeroed at the start) to now, by the amounts that usage_of_program() reports. */
void usage_base_set(struct usage_base *base, const struct counters *now);

/*
 * Returns what a program used: now minus base. Peaks, resident memory and threads are the values of now.
 * has_network: the socket hooks are attached. A value that was not measured is marked unknown.
 */
struct usage usage_of_program(const struct usage_base *base, const struct counters *now,
    bool has_network);

#endif
