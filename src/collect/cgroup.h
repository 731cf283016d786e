/*
 * SPDX-License-Identifier: Apache-2.0
 * cgroup: where the cgroup hierarchies are mounted, and what limits a cgroup path lives under.
 */
#ifndef SLUICE_COLLECT_CGROUP_H
#define SLUICE_COLLECT_CGROUP_H

#include "model/record.h"

struct cgroup_mounts;		/* opaque: the mount points of v2 and of v1's cpu, cpuset and memory */

/* What a cgroup and its ancestors allow; unknown: no limit. */
struct cgroup_limits {
	struct opt_double cpus;		/* the lesser of the CFS quota and the cpuset's CPUs that are online */
	struct opt_u64 memory_bytes;
};

/*
 * Reads PROC/self/mountinfo. 0 or a negative errno with *ret untouched; a host without any cgroup
 * mount is no error.
 */
int cgroup_mounts_open(const char *proc, struct cgroup_mounts **ret);
void cgroup_mounts_close(struct cgroup_mounts *m);	/* NULL is fine */

/*
 * The tightest limits on the way from each path up to its hierarchy's root. v2_path is the path in
 * the v2 hierarchy; v1_path the one in v1's memory hierarchy, also tried for cpu and cpuset (the
 * schedulers use one path in all). Either may be NULL. A path that is gone is skipped up to its first
 * ancestor that exists. online is the host's CPU count: a cpuset of all of them, a quota above it
 * and memory above memory_bytes are no limits (0: not known, do not compare).
 */
void cgroup_limits_read(const struct cgroup_mounts *m, const char *v2_path, const char *v1_path,
    uint32_t online, uint64_t memory_bytes, struct cgroup_limits *ret);

/* The same for a live process, by its PROC/PID/cgroup, each hierarchy with its own path. */
int cgroup_limits_of_pid(const struct cgroup_mounts *m, const char *proc, uint32_t pid,
    uint32_t online, uint64_t memory_bytes, struct cgroup_limits *ret);

#endif
