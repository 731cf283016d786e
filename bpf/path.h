/*
 * SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
 * Paths as the process itself would see them. Defined in path.bpf.c; called with numbers, not
 * pointers, so that the verifier checks the walk once instead of once a caller.
 */
#ifndef SLUICE_PATH_H
#define SLUICE_PATH_H

#include "state.h"

#define PATH_CUT 0x10000	/* set in the result when the walk met a limit */

extern struct scratch_map scratches SEC(".maps");

static __always_inline struct scratch *
scratch_get(void)
{
	u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&scratches, &cpu);
}

/*
 * Appends the path whose dentry, mount, root dentry and root mount stand in scratch.wash[0..3]
 * to scratch.text at off (below 16384): components, leaf first, each with its NUL. Returns the
 * bytes written, with PATH_CUT when the path is longer.
 */
u32 path_append(u32 off);

/* The same for a cgroup whose kernfs_node stands in wash[0]. */
u32 kernfs_append(u32 off);

#endif
