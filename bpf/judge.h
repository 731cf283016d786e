/*
 * SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
 * Decides whether a program is reported. Gathers the values that the rules look at and calls filter.bpf.c, whose
 * functions take numbers, so that the verifier checks them once.
 *
 * The path is that of the executable as the process sees it and as records have it: the name that was typed
 * (bprm->filename) may be relative or lead through links, and a rule on it would leave out the wrong programs.
 * It is walked only if base name, user and cgroup do not settle the decision; the record of a reported program
 * uses the same walk.
 */
#ifndef SLUICE_JUDGE_H
#define SLUICE_JUDGE_H

#include "counters.h"
#include "path.h"

#define PATH_NOT_WALKED 0xffffffffu

/*
 * Judge by one dimension after the other, until a simple rule excludes. All return the result so far: enum
 * filter_act.
 */
u32 filter_exe(u32 at, u32 slot_index);		/* the base name */
u32 filter_near(u32 at, u32 slot_index);	/* the user, and the verdict on the cgroup */
u32 filter_far(u32 at, u32 slot_index);		/* the path in s->name_at, where a rule looks at it */
u32 filter_far_until_5_16(u32 at, u32 slot_index);
/* Judges a cgroup for filter_near(). Returns whether user space has added it to the rules. */
u32 filter_cgroup(u32 at, u32 slot_index);

/*
 * Judges the cgroup of a task, by the verdict before if it is the same: most programs run in the cgroup of their
 * predecessor.
 */
static __always_inline void
judge_cgroup(const struct task *k, const struct context *c, struct proc *p, struct filter_facts *f,
    u32 at, u32 now)
{
	struct cgroup_verdict *verdict = &p->cgroup_verdict;
	struct proc *up;

	if (verdict->generation == now && verdict->v2 == c->cgroup_v2 && verdict->v1 == c->cgroup_v1) {
		f->cgroup_act = verdict->act;
		f->cgroup_ids = verdict->ids;
		f->is_cgroup_known = 1;
		return;
	}
	f->cgroup_v2 = c->cgroup_v2;
	f->cgroup_v1 = c->cgroup_v1;
	if (!filter_cgroup(at, now))
		return;		/* may succeed next time */
	verdict->v2 = c->cgroup_v2;
	verdict->v1 = c->cgroup_v1;
	verdict->ids = f->cgroup_ids;
	verdict->act = f->cgroup_act;
	verdict->generation = now;
	up = proc_of(k->parent);	/* its next child needs the same verdict */
	if (up && up->cgroup_verdict.generation != now)
		up->cgroup_verdict = *verdict;
}

/*
 * Returns true if the program is left out whatever else holds, and what it and its children descend from is
 * known too.
 */
static __always_inline bool
is_settled(u32 act, const struct filter_slot *slot, const struct proc *p)
{
	return act & FILTER_EXCLUDE && (!slot->is_include_on || p->inside || act & FILTER_INCLUDE);
}

/*
 * Returns 1 if the host's root owns the executable, as records have it, else 0; without a branch. In a user namespace
 * that is never so: there a user names the files that the process sees, and its root may own some on the disk. Nor on a
 * mount that is nosuid: all are that users may make of a file system of their own, as by FUSE or from an image, and
 * such a file system says itself who owns a file.
 */
static __always_inline u32
is_exe_of_root(struct file *exe, const struct context *c)
{
	u64 differs = exe->f_inode->i_uid.val | (u32)c->user_ns_level | (exe->f_path.mnt->mnt_flags & MNT_NOSUID);

	barrier_var(differs);
	return (differs - 1) >> 63;
}

/*
 * Judges the program that k runs by the rules of generation now, and fills c. at is the index
 * of the scratch s. s->exe_len is set if the executable's path was walked.
 */
static __always_inline u32
judge_rules(const struct task *k, struct proc *p, struct context *c, struct scratch *s, u32 at, u32 now,
    bool has_loop)
{
	const struct filter_slot *slot = &filter_slots[now & (FILTER_SLOTS - 1)];
	struct filter_facts *f = &s->facts;
	struct mm_struct *mm = k->mm;
	struct fs_struct *fs;
	struct file *exe;
	u32 act;
	long size;

	READ_POINTER(fs, k->untrusted->fs);
	if (!mm || !fs)
		return FILTER_MAYBE;
	exe = mm->exe_file;
	f->exe_size = 0;
	if (exe && slot->dims & 1 << FILTER_DIM_EXE) {
		__builtin_memset(&f->exe, 0, sizeof(f->exe));
		f->exe.space = FILTER_EXE;
		size = bpf_probe_read_kernel_str(f->exe.name, sizeof(f->exe.name),
		    exe->f_path.dentry->d_name.name);
		f->exe_size = size > 0 ? size : 0;
	}
	context_ids(c, k);
	f->uid = c->uid;
	f->trusted = filter_trusted(c->uid | p->user_uid, exe ? is_exe_of_root(exe, c) : 0);
	act = filter_exe(at, now);
	if (is_settled(act, slot, p))
		return act;
	if (slot->dims & 1 << FILTER_DIM_CGROUP)
		judge_cgroup(k, c, p, f, at, now);
	act = filter_near(at, now);
	if (is_settled(act, slot, p) || !(slot->dims & 1 << FILTER_DIM_PATH))
		return act;
	s->n_names = 0;
	if (exe) {
		path_of(s, at, exe->f_path.dentry, exe->f_path.mnt, fs->root.dentry, fs->root.mnt, 0, &s->exe_len,
		    has_loop);
		if (*(volatile u32 *)&s->exe_len & PATH_CUT)
			s->n_names = 0;
	}
	return has_loop ? filter_far(at, now) : filter_far_until_5_16(at, now);
}

/* Returns the generation to judge by; to be read once in each judgement. */
static __always_inline u32
generation_now(void)
{
	return *(volatile u32 *)&generation;
}

/* Returns 1 if kept_tgids has that process, else 0; without a branch, which verifiers would follow to the end. */
static __always_inline u32
is_listed(u32 tgid)
{
	u64 found = 0;

	for (u32 i = 0; i < KEPT_TGIDS; i++) {
		u64 differs = kept_tgids[i] ^ tgid;

		barrier_var(differs);
		found |= (differs - 1) >> 63;
	}
	return found;
}

/*
 * Returns whether p's program is left out, given the result of the rules. If it is unknown whether p is inside
 * by these rules, the program is reported.
 */
static __always_inline bool
is_left_out(const struct proc *p, const struct filter_slot *slot, u32 act, u32 now)
{
	if (act & FILTER_EXCLUDE)
		return true;
	return slot->is_include_on && !(act & (FILTER_INCLUDE | FILTER_MAYBE)) && !p->inside &&
	    p->inside_generation == now;
}

#endif
