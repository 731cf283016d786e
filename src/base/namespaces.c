/*
 * SPDX-License-Identifier: Apache-2.0
 * namespaces: the host's namespaces have fixed inode numbers (include/linux/proc_ns.h of the kernel).
 */
#include "base/namespaces.h"

#include <sys/stat.h>

static const struct {
	const char *path;
	ino_t inode;
} hosts[] = {
	[NAMESPACE_PID] = { "/proc/self/ns/pid", NAMESPACE_PID_OF_HOST },
	[NAMESPACE_TIME] = { "/proc/self/ns/time", 0xeffffffa },
	[NAMESPACE_CGROUP] = { "/proc/self/ns/cgroup", 0xeffffffb },
	[NAMESPACE_USER] = { "/proc/self/ns/user", 0xeffffffd },
};

bool
namespace_is_hosts(enum namespace_type type)
{
	struct stat st;

	return stat(hosts[type].path, &st) < 0 || st.st_ino == hosts[type].inode;
}
