/*
 * SPDX-License-Identifier: Apache-2.0
 * filter_cgroups: the cgroups that exist, by the names that the kernel uses.
 */
#ifndef SLUICE_ATTACH_FILTER_CGROUPS_H
#define SLUICE_ATTACH_FILTER_CGROUPS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Calls each for every cgroup of v2 and of v1's memory hierarchy, parents first. mountinfo is
 * "/proc/self/mountinfo". Calls it for none in a cgroup namespace of our own, whose paths are not the kernel's.
 */
void filter_cgroups_walk(const char *mountinfo,
    void (*each)(uint64_t id, bool is_v2, const char *path, void *arg), void *arg);

#endif
