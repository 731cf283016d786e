// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/* Walks from a leaf to its root, name by name. Tracepoints may not call bpf_d_path(). */
#include "path.h"

#define COMPONENTS_MAX 64
#define NAME_SPACE 256	/* NAME_MAX and a NUL */

struct scratch_map scratches SEC(".maps");
struct cgroups_map cgroups_sent SEC(".maps");

/* Bounds off so that one more name fits; asm, so that the compiler keeps the check for the verifier. */
#define BOUND(off) asm volatile("%0 &= 0x3fff" : "+r"(off))

static __always_inline struct mount *
mount_of(struct vfsmount *mnt)
{
	return (void *)mnt - bpf_core_field_offset(struct mount, mnt);
}

__noinline u32
path_append(u32 at, u32 off)
{
	struct scratch *s = bpf_map_lookup_elem(&scratches, &at);
	struct dentry *dentry, *parent, *root, *mnt_root;
	struct vfsmount *mnt, *root_mnt;
	const unsigned char *name;
	u64 near[3];
	u32 start, limit, n;
	long len;

	if (!s)
		return PATH_CUT;
	BOUND(off);
	start = off;
	limit = start + EVENT_PATH_MAX - NAME_SPACE;
	dentry = (void *)s->wash[0];
	mnt = (void *)s->wash[1];
	root = (void *)s->wash[2];
	root_mnt = (void *)s->wash[3];
	mnt_root = BPF_CORE_READ(mnt, mnt_root);

	for (int i = 0; i < COMPONENTS_MAX; i++) {
		BOUND(off);
		if (dentry == root && mnt == root_mnt)
			return off - start;
		if (off > limit)
			return (off - start) | PATH_CUT;
		if (dentry == mnt_root) {
			struct mount *m = mount_of(mnt);
			struct mount *up = BPF_CORE_READ(m, mnt_parent);

			if (up == m)	/* the top of all mounts: outside our root */
				return off - start;
			dentry = BPF_CORE_READ(m, mnt_mountpoint);
			mnt = (void *)up + bpf_core_field_offset(struct mount, mnt);
			mnt_root = BPF_CORE_READ(mnt, mnt_root);
			continue;
		}
		if (bpf_core_field_offset(struct dentry, d_name.name) ==
		    bpf_core_field_offset(struct dentry, d_parent) + 16) {
			/* adjacent in every kernel so far, so one read serves both */
			if (bpf_probe_read_kernel(near, sizeof(near), (void *)dentry +
			    bpf_core_field_offset(struct dentry, d_parent)))
				return (off - start) | PATH_CUT;
			parent = (void *)near[0];
			name = (void *)near[2];
		} else {
			parent = BPF_CORE_READ(dentry, d_parent);
			name = BPF_CORE_READ(dentry, d_name.name);
		}
		len = bpf_probe_read_kernel_str(&s->text[off], NAME_SPACE, name);
		if (len <= 0)
			return (off - start) | PATH_CUT;
		n = *(volatile u32 *)&s->n_names;	/* in memory: each iteration looks the same to the verifier */
		s->name_at[n & (NAMES_MAX - 1)] = off;
		s->n_names = n + 1;
		off += len & 0x1ff;
		if (parent == dentry)	/* its own root without a mount, as for a memfd */
			return off - start;
		dentry = parent;
	}
	return (off - start) | PATH_CUT;
}

__noinline u32
kernfs_append(u32 off)
{
	struct scratch *s = scratch_get();
	struct kernfs_node *node, *parent;
	u32 start;
	long len;

	if (!s)
		return PATH_CUT;
	BOUND(off);
	start = off;
	node = (void *)s->wash[0];
	for (int i = 0; i < COMPONENTS_MAX; i++) {
		struct kernfs_node___until_6_14 *old = (void *)node;

		BOUND(off);
		if (!node || off > start + EVENT_PATH_MAX - NAME_SPACE)
			break;
		if (bpf_core_field_exists(old->parent))
			parent = BPF_CORE_READ(old, parent);
		else
			parent = BPF_CORE_READ(node, __parent);
		if (!parent)		/* the root has no name */
			return off - start;
		len = bpf_probe_read_kernel_str(&s->text[off], NAME_SPACE, BPF_CORE_READ(node, name));
		if (len <= 0)
			break;
		off += len & 0x1ff;
		node = parent;
	}
	return (off - start) | PATH_CUT;
}

__noinline u32
cgroup_announce(u64 id, u32 is_v2)
{
	u64 key[2] = { id, is_v2 };
	struct scratch *s;
	u32 len;
	u8 one = 1;

	if (bpf_map_lookup_elem(&cgroups_sent, key))
		return true;
	s = scratch_get();
	if (!s)
		return false;
	len = kernfs_append(0);
	if (len & PATH_CUT)
		count_loss(EVENT_PROG_CGROUP, EVENT_LOSS_CUT);
	len &= 0x1fff;
	s->cgroup.head.version = EVENT_VERSION;
	s->cgroup.head.kind = EVENT_CGROUP;
	s->cgroup.head.time_ns = bpf_ktime_get_boot_ns();
	s->cgroup.id = id;
	s->cgroup.is_v2 = is_v2;
	s->cgroup.path_len = len;
	s->cgroup.head.size = sizeof(s->cgroup) + len;
	if (bpf_ringbuf_output(&ring, &s->cgroup, sizeof(s->cgroup) + len,
	    wake_flags(s->cgroup.head.time_ns))) {
		count_loss(EVENT_PROG_CGROUP, EVENT_LOSS_RING);
		return false;
	}
	bpf_map_update_elem(&cgroups_sent, key, &one, BPF_ANY);
	return true;
}
