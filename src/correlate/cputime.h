/*
 * SPDX-License-Identifier: Apache-2.0
 * cputime: CPU time as the kernel would report it, and the kernel's totals as usage.
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
 * Splits a process's exact runtime into user and system as wait4(2) and /proc do: in proportion to
 * the tick samples utime and stime, never less than what was reported before (prev). The kernel's
 * own formula, cputime_adjust() in kernel/sched/cputime.c.
 */
struct cputime cputime_split(const struct counters *c);

/* Totals of a process at some moment: the base that the next program's usage is counted from. */
struct usage_base {
	struct counters counters;
	struct cputime cpu;
};

/* Moves a base (all 0 at the start) to now, as far as usage_of_program() has told it. */
void usage_base_set(struct usage_base *base, const struct counters *now);

/*
 * What a program used: now minus its base. has_network: the hooks for it are there. Peak, resident
 * memory and threads are now's own. What cannot be told is not known.
 */
struct usage usage_of_program(const struct usage_base *base, const struct counters *now,
    bool has_network);

#endif
