/*
 * SPDX-License-Identifier: Apache-2.0
 * account: adds programs to the sums of their task, run, row and the host, and takes them out again.
 */
#ifndef SLUICE_CORRELATE_ACCOUNT_H
#define SLUICE_CORRELATE_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

struct correlator;
struct process;
struct usage;

/* Adds p's program to the sums of its task, run, row and the host. */
void account_enter(struct correlator *c, struct process *p, uint64_t at_ns);
/* Takes p's program out of the sums as if it had never been added, since it belongs elsewhere. */
void account_withdraw(struct correlator *c, struct process *p);
/* Adds the usage of p's program, which ended at end_ns, to the same sums, as one of those that are done. */
void account_leave(struct correlator *c, struct process *p, const struct usage *usage, bool has_failed,
    uint64_t end_ns);
/* Leave or enter the task alone, when p changes task or is_overhead within its run; p->title must be set. */
void account_leave_task(struct correlator *c, struct process *p, uint64_t now_ns);
void account_enter_task(struct correlator *c, struct process *p, uint64_t since_ns, uint64_t at_ns);

#endif
