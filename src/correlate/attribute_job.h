/*
 * SPDX-License-Identifier: Apache-2.0
 * attribute_job: names of tasks that their engine does not show, by what it keeps of its local jobs; see
 * identify/jobs.h.
 */
#ifndef SLUICE_CORRELATE_ATTRIBUTE_JOB_H
#define SLUICE_CORRELATE_ATTRIBUTE_JOB_H

#include <stdint.h>

struct candidate;
struct correlator;
struct process;

/* Begins to seek the job of p's task, if p is the task's first program. parent: its driver, if it is one. */
void attribute_job(struct correlator *c, const struct process *p, const struct process *parent,
    const struct candidate *s);
/*
 * Seeks some of the jobs again that were not found, and all of tasks that are about to end for the last time. now_ns:
 * CLOCK_BOOTTIME.
 */
void attribute_jobs_tick(struct correlator *c, uint64_t now_ns);
/* Seeks all for the last time. */
void attribute_jobs_end(struct correlator *c);

#endif
