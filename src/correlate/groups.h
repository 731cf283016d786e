/*
 * SPDX-License-Identifier: Apache-2.0
 * groups: what the kernel counted of the control group that a task has to itself, as that of its container or of its
 * step.
 *
 * A task has the groups of a location to itself if that is a container, or a step of a scheduler, and each program that
 * passes have seen there is the task's. Another program, of no task or of another one, ends that for good: the group's
 * numbers are since it was made, and no longer of one task alone. What was read before stays. Other groups, as those of
 * a session, may have programs that are not followed.
 *
 * After a pass each such group is asked; GROUPS_ASKED_MAX in one pass, so that of more each is asked less often. Of
 * several groups of one task that with the largest peak counts. A group vanishes with its last program: what was read
 * last is less than a second old, if there are no more.
 */
#ifndef SLUICE_CORRELATE_GROUPS_H
#define SLUICE_CORRELATE_GROUPS_H

struct correlator;

#define GROUPS_ASKED_MAX 64

/* Must be called after a pass. */
void groups_pass(struct correlator *c);

#endif
