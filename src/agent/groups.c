/*
 * SPDX-License-Identifier: Apache-2.0
 * groups: what the kernel counted of control groups that are tasks' own.
 */
#include "agent/state.h"
#include "collect/cgroup_use.h"

bool
agent_group(const char *v2_path, const char *v1_path, struct group_use *ret, void *arg)
{
	const struct agent *a = arg;

	return a->mounts != NULL && cgroup_use_read(a->mounts, v2_path, v1_path, ret);
}
