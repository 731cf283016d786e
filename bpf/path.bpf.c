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

/* A walk from a leaf to its root. */
struct ascent {
	struct dentry *dentry;		/* the next to be written */
	struct vfsmount *mnt;
	struct dentry *root;
	struct vfsmount *root_mnt;
	struct dentry *mnt_root;	/* of mnt */
	u32 at;				/* index of the scratch */
	u32 off;			/* where the next name begins in its text */
	u32 limit;			/* of off */
	u32 cut;			/* PATH_CUT until the root is reached */
};

/* Writes the next name or crosses a mount. Returns 1 at the end. */
static __always_inline long
ascend(struct ascent *a, struct scratch *s)
{
	struct dentry *dentry = a->dentry, *parent;
	struct vfsmount *mnt = a->mnt;
	const unsigned char *name;
	u32 off = a->off, n;
	u64 near[3];
	long len;

	BOUND(off);
	if (dentry == a->root && mnt == a->root_mnt)
		goto end;
	if (off > a->limit)
		return 1;
	if (dentry == a->mnt_root) {
		struct mount *m = mount_of(mnt);
		struct mount *up = BPF_CORE_READ(m, mnt_parent);

		if (up == m)	/* the top of all mounts: outside our root */
			goto end;
		a->dentry = BPF_CORE_READ(m, mnt_mountpoint);
		mnt = (void *)up + bpf_core_field_offset(struct mount, mnt);
		a->mnt = mnt;
		a->mnt_root = BPF_CORE_READ(mnt, mnt_root);
		return 0;
	}
	if (bpf_core_field_offset(struct dentry, d_name.name) == bpf_core_field_offset(struct dentry, d_parent) + 16) {
		/* adjacent in every kernel so far, so one read serves both */
		if (bpf_probe_read_kernel(near, sizeof(near), (void *)dentry +
		    bpf_core_field_offset(struct dentry, d_parent)))
			return 1;
		parent = (void *)near[0];
		name = (void *)near[2];
	} else {
		parent = BPF_CORE_READ(dentry, d_parent);
		name = BPF_CORE_READ(dentry, d_name.name);
	}
	len = bpf_probe_read_kernel_str(&s->text[off], NAME_SPACE, name);
	if (len <= 0)
		return 1;
	n = *(volatile u32 *)&s->n_names;	/* in memory: each iteration looks the same to the verifier */
	s->name_at[n & (NAMES_MAX - 1)] = off;
	s->n_names = n + 1;
	a->off = off + (len & 0x1ff);
	a->dentry = parent;
	if (parent != dentry)
		return 0;
	/* its own root without a mount, as for a memfd */
end:
	a->cut = 0;
	return 1;
}

static long
on_component(u32 i, void *arg)
{
	struct ascent *a = arg;
	struct scratch *s = bpf_map_lookup_elem(&scratches, &a->at);

	return s ? ascend(a, s) : 1;
}

static __always_inline u32
path_walk(u32 at, u32 off, bool has_loop)
{
	struct scratch *s = bpf_map_lookup_elem(&scratches, &at);
	struct vfsmount *mnt;
	struct ascent a;

	if (!s)
		return PATH_CUT;
	BOUND(off);
	mnt = (void *)s->wash[1];
	a.dentry = (void *)s->wash[0];
	a.mnt = mnt;
	a.root = (void *)s->wash[2];
	a.root_mnt = (void *)s->wash[3];
	a.mnt_root = BPF_CORE_READ(mnt, mnt_root);
	a.at = at;
	a.off = off;
	a.limit = off + EVENT_PATH_MAX - NAME_SPACE;
	a.cut = PATH_CUT;
	if (has_loop) {
		bpf_loop(COMPONENTS_MAX, on_component, &a, 0);
	} else {
		for (u32 i = 0; i < COMPONENTS_MAX; i++)
			if (ascend(&a, s))
				break;
	}
	return ((a.off - off) & 0xffff) | a.cut;
}

__noinline u32
path_append(u32 at, u32 off)
{
	return path_walk(at, off, true);
}

__noinline u32
path_append_until_5_16(u32 at, u32 off)
{
	return path_walk(at, off, false);
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
