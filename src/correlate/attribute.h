/*
 * SPDX-License-Identifier: Apache-2.0
 * attribute: what attribute.c and attribute_run.c share. No other file includes it.
 */
#ifndef SLUICE_CORRELATE_ATTRIBUTE_H
#define SLUICE_CORRELATE_ATTRIBUTE_H

#include "correlate/state.h"

/* A copy, where there is none yet; NULL and "" say nothing. */
void attribute_learn(char **to, const char *text);
/* Is p the process that this run began with? r may be NULL. */
bool attribute_is_root(const struct run *r, const struct process *p);

/* What p is part of before it says anything itself; NULL: of no run. */
struct run *attribute_run_around(struct correlator *c, struct process *p, const struct process *parent);
/*
 * The run of a program that has exec'd, inside of run (may be NULL) and of the task around it (likewise).
 * A verdict without a run to be of becomes none. Sets p->is_driver.
 */
struct run *attribute_run(struct correlator *c, struct process *p, struct run *run, const struct task *around,
    const struct subject *s, struct engine_verdict *v);

#endif
