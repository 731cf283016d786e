/*
 * SPDX-License-Identifier: Apache-2.0
 * namespaces: whether this process sees PIDs, times and users as the kernel counts them for the whole host.
 */
#ifndef SLUICE_BASE_NAMESPACES_H
#define SLUICE_BASE_NAMESPACES_H

#include <stdbool.h>

#define NAMESPACE_PID_OF_HOST 0xeffffffcu	/* inode number of the host's pid namespace, always */

enum namespace_type {
	NAMESPACE_PID,
	NAMESPACE_TIME,
	NAMESPACE_CGROUP,
	NAMESPACE_USER,
};

/* Returns true if this process is in the host's namespace of that type, or if this kernel has no such type. */
bool namespace_is_hosts(enum namespace_type type);

#endif
