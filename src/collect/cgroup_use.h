/*
 * SPDX-License-Identifier: Apache-2.0
 * cgroup_use: reads what the kernel counted of a control group.
 *
 * From v2: memory.peak (Linux 5.19), memory.events, cpu.stat and the files of pressure. From v1:
 * memory.max_usage_in_bytes, memory.oom_control (oom_kill, Linux 4.13) and cpu.stat; it has no pressure.
 */
#ifndef SLUICE_COLLECT_CGROUP_USE_H
#define SLUICE_COLLECT_CGROUP_USE_H

#include <stdbool.h>

#include "model/group_use.h"

struct cgroup_mounts;

/*
 * Fills in what is known of the cgroup with these paths, of which either may be NULL; v1_path is that of v1's memory
 * hierarchy, also tried for cpu. Returns false if nothing is: it is gone, or has no controller.
 */
bool cgroup_use_read(const struct cgroup_mounts *m, const char *v2_path, const char *v1_path, struct group_use *ret);

#endif
