/*
 * SPDX-License-Identifier: Apache-2.0
 * groups: what the kernel counted of the control group that a task has to itself, as that of its container or of its
 * step.
 *
 * A task has a group to itself if the path is that of a container, or of a step of a scheduler, and each program that
 * was seen there, by passes or as it joined a task, is the task's. Another one, of no task or of another task, ends
 * that for good: the group's numbers are since it was made, and no longer of one task alone. So does one that ran
 * before the host was followed. What was read before is dropped. Other groups, as those of a session, may have programs
 * that are not followed. Which task a group is of is in the write-ahead log.
 *
 * The group is the one in which the programs are: where a step has one for each of its ranks, or a container one below
 * its own, that is one of these. After a pass each such group is asked; GROUPS_ASKED_MAX in one pass, so that of more
 * each is asked less often. Of several groups of one task that with the largest peak counts. A group vanishes with its
 * last program: what was read last is less than a second old, if there are no more.
 */
#ifndef SLUICE_CORRELATE_GROUPS_H
#define SLUICE_CORRELATE_GROUPS_H

struct correlator;
struct process;

#define GROUPS_ASKED_MAX 64

/* Must be called when p joins a task. */
void groups_joined(struct correlator *c, const struct process *p);
/* Must be called after a pass. */
void groups_pass(struct correlator *c);

#endif
