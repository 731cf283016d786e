/*
 * SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
 * Paths as the process itself sees them. Defined in path.bpf.c; the functions take numbers, not pointers, so
 * that the verifier checks the walk once instead of once for each caller.
 */
#ifndef SLUICE_PATH_H
#define SLUICE_PATH_H

#include "state.h"

#define PATH_CUT 0x10000	/* set in the result when the walk reached a limit */

extern struct scratch_map scratches SEC(".maps");

/* Returns the index of this CPU's scratch, to be passed to functions that take numbers only. */
static __always_inline u32
scratch_here(void)
{
	return bpf_get_smp_processor_id();
}

static __always_inline struct scratch *
scratch_get(void)
{
	u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&scratches, &cpu);
}

/*
 * Appends the path whose dentry, mount, root dentry and root mount are in scratch.wash[0..3] to scratch.text at
 * off (below 16384): components, leaf first, each with its NUL. The offset of each is appended to
 * scratch.name_at. at is the index of the scratch. Returns the number of bytes written, with PATH_CUT if the
 * path is longer.
 */
u32 path_append(u32 at, u32 off);
u32 path_append_until_5_16(u32 at, u32 off);

/* Appends the path of a cgroup, whose kernfs_node is in wash[0], to scratch.text at off, as path_append() does. */
u32 kernfs_append(u32 off);

/*
 * Sends the path of a cgroup, whose kernfs_node is in wash[0], when its id is first seen. Returns whether user
 * space has it.
 */
u32 cgroup_announce(u64 id, u32 is_v2);

#define PATH_NEAR 8	/* components that path_of() walks itself */

/*
 * Does the same as path_append() for typed pointers: it walks the first components, as long as no mount is
 * crossed, with a third of the helper calls, and calls path_append() for the rest. The result is stored in *ret,
 * in a map: the verifier then continues with one state instead of one for each path through this function.
 */
static __always_inline void
path_of(struct scratch *s, u32 at, struct dentry *dentry, struct vfsmount *mnt, struct dentry *root,
    struct vfsmount *root_mnt, u32 off, u32 *ret, bool has_loop)
{
	struct dentry *mnt_root = mnt->mnt_root, *parent;
	volatile u64 *wash = s->wash;
	volatile u32 *len_ret = ret;
	u32 start = off, rest;
	long len;

	s->n_names = 0;
	for (u32 i = 0; i < PATH_NEAR; i++) {
		if (dentry == root && mnt == root_mnt) {
			*len_ret = off - start;
			return;
		}
		if (dentry == mnt_root)
			break;
		parent = dentry->d_parent;
		asm volatile("%0 &= 0x3fff" : "+r"(off));
		len = bpf_probe_read_kernel_str(&s->text[off], 256, dentry->d_name.name);
		if (len <= 0) {
			*len_ret = (off - start) | PATH_CUT;
			return;
		}
		s->name_at[i] = off;
		s->n_names = i + 1;
		off += len & 0x1ff;
		if (parent == dentry) {
			*len_ret = off - start;
			return;
		}
		dentry = parent;
	}
	wash[0] = (u64)dentry;
	wash[1] = (u64)mnt;
	wash[2] = (u64)root;
	wash[3] = (u64)root_mnt;
	rest = has_loop ? path_append(at, off) : path_append_until_5_16(at, off);
	off += rest & 0xffff;
	if (off - start > EVENT_PATH_MAX)
		*len_ret = PATH_CUT;	/* none of it: half a path is another path */
	else
		*len_ret = (off - start) | (rest & PATH_CUT);
}

#endif
