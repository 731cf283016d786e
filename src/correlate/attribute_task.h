/*
 * SPDX-License-Identifier: Apache-2.0
 * attribute_task: which task a program belongs to, for attribute.c and life.c. Tasks are named here, and nowhere else.
 */
#ifndef SLUICE_CORRELATE_ATTRIBUTE_TASK_H
#define SLUICE_CORRELATE_ATTRIBUTE_TASK_H

#include <stdint.h>

struct candidate;
struct correlator;
struct engine_verdict;
struct job_found;
struct location;
struct process;
struct run;
struct task;

/* The next functions return the task of p's program, whose run is known; NULL: none, or no room. */

/* p has exec'd. around: the task of its ancestors, of the same run, or NULL. */
struct task *attribute_task(struct correlator *c, struct process *p, const struct process *parent, struct task *around,
    const struct candidate *s, const struct engine_verdict *v);
/* p has not exec'd. */
struct task *attribute_task_fork(struct correlator *c, const struct process *p, const struct process *parent);
/* p wrote a title, which s has in place of arguments. */
struct task *attribute_task_title(struct correlator *c, struct process *p, const struct candidate *s,
    struct engine_verdict *v);
/* r was given the name of its one task by hand. */
struct task *attribute_task_by_hand(struct correlator *c, struct run *r, const struct process *p);

/* Names t, which its engine runs without naming it, after the job that it was found to be. */
void attribute_task_of_job(struct correlator *c, struct task *t, const struct job_found *f);

/*
 * Learns limits from where a program of t runs: a container in a task has limits of its own, and the shell that
 * started it has only those of the run.
 */
void attribute_task_limits(struct correlator *c, struct task *t, const struct location *l);
/* Records a failed attempt of the task. Later ones count one more, also those that began before this was reported. */
void attribute_task_failed(struct correlator *c, struct task *t, uint64_t end_ns);

#endif
