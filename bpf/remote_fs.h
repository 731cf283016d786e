/*
 * SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
 * Whether a thread that waits for a page of a file waits for a file system whose data another machine or program has.
 *
 * A page that is read ahead is asked for once, and what comes to it later waits for the page: no function of the file
 * system is in that stack. The file is then the first argument of its system call, of those that read and write.
 */
#ifndef SLUICE_REMOTE_FS_H
#define SLUICE_REMOTE_FS_H

#include "kernel.h"

/* Returns true if s_magic is that of such a file system, from linux/magic.h, Lustre, GPFS and BeeGFS. */
static __always_inline bool
is_remote_magic(u64 magic)
{
	switch (magic) {
	case 0x6969:			/* NFS */
	case 0x65735546:		/* FUSE */
	case 0x01021997:		/* 9p */
	case 0xfe534d42:		/* SMB 2 and 3 */
	case 0xff534d42:		/* CIFS */
	case 0x00c36400:		/* Ceph */
	case 0x6b414653:		/* AFS */
	case 0x20030528:		/* OrangeFS */
	case 0x0bd00bd0:		/* Lustre */
	case 0x47504653:		/* GPFS */
	case 0x19830326:		/* BeeGFS */
		return true;
	}
	return false;
}

/* Returns true if a call reads or writes its first argument, by its number in the table of x86-64. */
static __always_inline bool
is_call_on_file_x86(s64 number)
{
	switch (number) {
	case 0: case 1:			/* read, write */
	case 17: case 18: case 19: case 20:	/* pread64, pwrite64, readv, writev */
	case 74: case 75:		/* fsync, fdatasync */
	case 217:			/* getdents64 */
	case 295: case 296: case 327: case 328:	/* preadv, pwritev, preadv2, pwritev2 */
		return true;
	}
	return false;
}

/* Likewise, in the table that arm64 and newer machines share. */
static __always_inline bool
is_call_on_file(s64 number)
{
	switch (number) {
	case 61:			/* getdents64 */
	case 63: case 64: case 65: case 66:	/* read, write, readv, writev */
	case 67: case 68: case 69: case 70:	/* pread64, pwrite64, preadv, pwritev */
	case 82: case 83:		/* fsync, fdatasync */
	case 286: case 287:		/* preadv2, pwritev2 */
		return true;
	}
	return false;
}

/* Returns the file that the call is on in which a task is; -1: it is in none such, as in a fault of a page. */
static __always_inline s64
called_file(struct task_struct *t)
{
	struct pt_regs *regs;

	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs) || t->flags & PF_IO_WORKER)
		return -1;	/* before Linux 5.15, or a worker of io_uring, which is in no call */
	regs = (struct pt_regs *)bpf_task_pt_regs(t);
	if (!regs)
		return -1;
	if (bpf_core_field_exists(regs->orig_ax))
		return is_call_on_file_x86((s64)regs->orig_ax) ? (s64)(s32)regs->di : -1;
	if (bpf_core_field_exists(regs->syscallno))
		return is_call_on_file(regs->syscallno) ? (s64)(s32)regs->orig_x0 : -1;
	return -1;
}

/* Returns true if a sleeping task is in a call on a file of such a file system. */
static __always_inline bool
calls_remote_file(struct task_struct *t)
{
	s64 fd = called_file(t);
	struct file *file = NULL;
	struct fdtable *fdt;

	if (fd < 0)
		return false;
	fdt = BPF_CORE_READ(t, files, fdt);
	if (!fdt || fd >= BPF_CORE_READ(fdt, max_fds))
		return false;
	if (bpf_probe_read_kernel(&file, sizeof(file), BPF_CORE_READ(fdt, fd) + fd) < 0 || !file)
		return false;
	return is_remote_magic(BPF_CORE_READ(file, f_inode, i_sb, s_magic));
}

#endif
