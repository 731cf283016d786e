/*
 * SPDX-License-Identifier: Apache-2.0
 * cgroup: mount points of the cgroup hierarchies, and the limits that apply to a cgroup path.
 */
#ifndef SLUICE_COLLECT_CGROUP_H
#define SLUICE_COLLECT_CGROUP_H

#include "model/record.h"

struct cgroup_mounts;		/* opaque: the mount points of v2 and of v1's cpu, cpuset and memory */

/* Hierarchies that limit CPUs and memory; v1 may mount several of them as one. */
enum cgroup_hierarchy {
	CGROUP_V2,
	CGROUP_CPU,
	CGROUP_CPUSET,
	CGROUP_MEMORY,
	CGROUP_HIERARCHIES,
};

/* Limits of a cgroup and its ancestors (unknown: no limit), and whether root has named it. */
struct cgroup_limits {
	struct opt_double cpus;		/* the smaller of the CFS quota and the number of online CPUs in the cpuset */
	struct opt_u64 memory_bytes;	/* memory.max, or v1's memory.limit_in_bytes */
	struct opt_u64 memory_high;	/* beyond which the kernel takes memory back, and kills nothing */
	/* Names at the end of the path that are below a folder which root does not own: its owner may choose them. */
	uint32_t users_names;
};

/* Reads PROC/self/mountinfo. 0, or a negative errno with *ret untouched; a host without cgroup mounts is no error. */
int cgroup_mounts_open(const char *proc, struct cgroup_mounts **ret);
void cgroup_mounts_close(struct cgroup_mounts *m);	/* m may be NULL */

/*
 * Fills in the tightest limits between each path and its hierarchy's root. v2_path is the path in the v2 hierarchy;
 * v1_path the one in v1's memory hierarchy, also tried for cpu and cpuset (schedulers use one path in all). Either
 * may be NULL. A path that no longer exists is replaced by its nearest existing ancestor. online is the host's
 * number of CPUs and memory_bytes its memory; limits that are not below them are none (0: unknown, not compared).
 */
void cgroup_limits_read(const struct cgroup_mounts *m, const char *v2_path, const char *v1_path,
    uint32_t online, uint64_t memory_bytes, struct cgroup_limits *ret);

/*
 * Fills in the limits of a live process like cgroup_limits_read(), with a path per hierarchy from PROC/PID/cgroup.
 * 0, or a negative errno with *ret untouched.
 */
int cgroup_limits_of_pid(const struct cgroup_mounts *m, const char *proc, uint32_t pid,
    uint32_t online, uint64_t memory_bytes, struct cgroup_limits *ret);

/*
 * Opens the folder of the cgroup with that path, for files below it. Returns an fd (O_PATH), which is the caller's, or
 * a negative errno: -ENOENT if the hierarchy is not mounted, or the mount does not reach the path.
 */
int cgroup_folder_open(const struct cgroup_mounts *m, enum cgroup_hierarchy hierarchy, const char *path);

#endif
