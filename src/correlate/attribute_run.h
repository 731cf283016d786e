/*
 * SPDX-License-Identifier: Apache-2.0
 * attribute_run: which run a program belongs to, for attribute.c.
 */
#ifndef SLUICE_CORRELATE_ATTRIBUTE_RUN_H
#define SLUICE_CORRELATE_ATTRIBUTE_RUN_H

struct candidate;
struct correlator;
struct engine_verdict;
struct process;
struct run;
struct task;

/* Returns the run that p belongs to before its own arguments are judged; NULL: none. */
struct run *attribute_run_around(struct correlator *c, struct process *p, const struct process *parent);
/*
 * Returns the run of a program that has exec'd. run: the run around it; around: the task around it; both may be
 * NULL. A verdict that needs a run and has none becomes ENGINE_NONE, and one of a driver that gets no run has no tasks.
 */
struct run *attribute_run(struct correlator *c, struct process *p, struct run *run, const struct task *around,
    const struct candidate *s, struct engine_verdict *v);

#endif
