/*
 * SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
 * The only kernel types and fields that sluice reads. What is not declared here cannot be read: no page, no file
 * content, no socket buffer; of an environment only the variables that the user named, see environ.bpf.c. CO-RE
 * finds each field's offset in the running kernel by name; a ___flavour is the same type in other versions of
 * the kernel.
 */
#ifndef SLUICE_KERNEL_H
#define SLUICE_KERNEL_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	s64 counter;
} atomic_long_t;

struct list_head {
	struct list_head *next;
};

typedef struct {
	unsigned int val;
} kuid_t;

typedef struct {
	unsigned int val;
} kgid_t;

struct user_namespace {
	struct user_namespace *parent;	/* NULL: it is the first one */
	int level;			/* how many are around it */
	kuid_t owner;			/* who made it */
};

typedef struct {
	u64 val;			/* before 6.3 two numbers of 32 bits */
} kernel_cap_t;

struct cred {
	kuid_t uid;
	kgid_t gid;
	kuid_t suid;
	kgid_t sgid;
	kuid_t euid;
	kgid_t egid;
	kernel_cap_t cap_permitted;
	kernel_cap_t cap_ambient;
	struct user_namespace *user_ns;
};

struct task_io_accounting {
	u64 rchar;
	u64 wchar;
	u64 syscr;
	u64 syscw;
	u64 read_bytes;
	u64 write_bytes;
};

struct sched_info {
	unsigned long long run_delay;
};

struct task_struct;

struct rq {
	struct task_struct *curr;	/* the task that runs */
	u64 clock;
	u64 clock_task;
};

struct cfs_rq {
	struct rq *rq;			/* of the CPU that the task is on, whatever schedules it */
	int throttle_count;		/* groups around it without quota left; with CONFIG_CFS_BANDWIDTH */
};

struct sched_entity {
	u64 exec_start;
	u64 sum_exec_runtime;
	u64 nr_migrations;
	struct cfs_rq *cfs_rq;		/* with CONFIG_FAIR_GROUP_SCHED */
};

struct task_delay_info {
	u64 blkio_delay;
	u64 swapin_delay;
	u64 freepages_delay;
	u64 thrashing_delay;		/* from 4.20 */
	u64 compact_delay;		/* from 5.18 */
};

/* paths */
struct qstr {
	u32 len;
	const unsigned char *name;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
};

#define MNT_NOSUID 1

struct vfsmount {
	struct dentry *mnt_root;
	int mnt_flags;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct super_block {
	unsigned long s_magic;
};

struct inode {
	kuid_t i_uid;
	struct super_block *i_sb;
};

struct file {
	struct path f_path;
	struct inode *f_inode;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

/* of a system call its first argument and whether there is one: on x86, then on arm64 */
struct pt_regs {
	unsigned long di;
	unsigned long orig_ax;
	u64 orig_x0;
	s32 syscallno;
};

struct fs_struct {
	struct path root;
	struct path pwd;
};

/* memory */
struct percpu_counter {
	s64 count;
	s32 *counters;	/* the part of each CPU that is not added to count yet */
};

struct mm_struct {
	unsigned long hiwater_rss;
	unsigned long arg_start;
	unsigned long arg_end;
	unsigned long env_start;
	unsigned long env_end;
	struct file *exe_file;
	struct percpu_counter rss_stat[4];	/* file, anon, swap, shmem; from 6.2 */
};

struct mm_rss_stat {
	atomic_long_t count[4];
};

struct mm_struct___until_6_1 {
	struct mm_rss_stat rss_stat;
};

/* namespaces */
struct ns_common {
	unsigned int inum;
};

struct mnt_namespace {
	struct ns_common ns;
};

struct net {
	struct ns_common ns;
};

struct pid_namespace {
	struct ns_common ns;
};

struct nsproxy {
	struct mnt_namespace *mnt_ns;
	struct net *net_ns;
};

struct upid {
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

/* cgroups */
struct kernfs_node {
	const char *name;
	u64 id;
	struct kernfs_node *__parent;	/* from 6.15 */
};

struct kernfs_node___until_6_14 {
	struct kernfs_node *parent;
};

struct cgroup {
	struct kernfs_node *kn;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
};

enum cgroup_subsys_id {
	memory_cgrp_id = 4,	/* relocated by CO-RE */
};

struct css_set {
	struct cgroup_subsys_state *subsys[16];
	struct cgroup *dfl_cgrp;
};

/* processes */
struct prev_cputime {
	u64 utime;
	u64 stime;
};

struct signal_struct {
	atomic_t live;
	int nr_threads;
	struct list_head thread_head;
	int group_exit_code;
	unsigned int flags;
	struct prev_cputime prev_cputime;
	struct {
		struct {
			struct {
				unsigned int sequence;
			} seqcount;
		} seqcount;
	} stats_lock;			/* of the sums below, but for maxrss */
	u64 utime;
	u64 stime;
	unsigned long nvcsw;
	unsigned long nivcsw;
	unsigned long min_flt;
	unsigned long maj_flt;
	unsigned long maxrss;
	unsigned long long sum_sched_runtime;
	struct mm_struct *oom_mm;
};

struct signal_struct___until_5_9 {
	struct {
		struct {
			unsigned int sequence;
		} seqcount;
	} stats_lock;
};

struct kernel_siginfo {
	int si_code;
};

struct sigaction {
	void (*sa_handler)(int);
};

struct k_sigaction {
	struct sigaction sa;
};

struct sighand_struct {
	struct k_sigaction action[64];	/* indexed by signal number - 1 */
};

struct task_struct {
	unsigned int flags;
	struct sched_entity se;
	struct sched_info sched_info;
	struct mm_struct *mm;
	int exit_state;
	unsigned int on_rq;	/* a byte on some kernels, to which libbpf narrows the reads of unsigned ones */
	unsigned int on_cpu;	/* the same; with CONFIG_SMP */
	int exit_code;
	int exit_signal;
	int pid;
	int tgid;
	u64 self_exec_id;		/* incremented by each exec */
	u64 parent_exec_id;		/* self_exec_id of the process that forked it, at that time */
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct list_head thread_node;
	u64 utime;
	u64 stime;
	unsigned long nvcsw;
	unsigned long nivcsw;
	u64 start_time;			/* CLOCK_MONOTONIC */
	u64 start_boottime;		/* before 5.5 real_start_time, see core_types.c */
	unsigned long min_flt;
	unsigned long maj_flt;
	const struct cred *real_cred;	/* not overridden while it works for a file system, as cred is */
	char comm[16];
	struct fs_struct *fs;
	struct files_struct *files;
	struct nsproxy *nsproxy;
	struct signal_struct *signal;
	struct sighand_struct *sighand;
	struct task_io_accounting ioac;
	struct css_set *cgroups;
	struct task_delay_info *delays;
};

struct task_struct___until_5_13 {
	long state;
};

/* Red Hat's 4.18: members that were added or became larger are in a struct of their own. */
struct task_struct_rh {
	u64 self_exec_id;
	u64 parent_exec_id;
};

struct task_struct___rhel_8 {
	struct task_struct_rh *task_struct_rh;
};

struct task_struct___from_5_14 {
	unsigned int __state;
};

struct linux_binprm {
	int argc;
};

/* sockets: family, protocol and the length that a call moved; never its bytes */
struct sock_common {
	unsigned short skc_family;
};

struct sock {
	struct sock_common __sk_common;
	u16 sk_protocol;
};

struct socket {
	short type;
	struct sock *sk;
};

struct msghdr;
struct page;

/* types of BPF itself */
struct bpf_array {
	void *pptrs[1];
};

#pragma clang attribute pop

/*
 * What the kernel passes to an iterator. These types are its interface to programs, and the same in every kernel.
 * Without CO-RE, which compares each type that it relocates with all of the kernel's by name, the start is faster.
 */
struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
	u64 session_id;
	u64 seq_num;			/* tasks before this one */
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct bpf_map;

struct bpf_iter__bpf_map_elem {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	void *key;
	void *value;
};

/* Returns TASK_... of a task; 0: it is runnable. */
static __always_inline u32
task_state(const struct task_struct *t)
{
	const struct task_struct___from_5_14 *now = (const void *)t;
	const struct task_struct___until_5_13 *old = (const void *)t;

	return bpf_core_field_exists(now->__state) ? now->__state : (u32)old->state;
}

static __always_inline u64
exec_id_of(const struct task_struct *t)
{
	const struct task_struct___rhel_8 *old = (const void *)t;

	return bpf_core_field_exists(t->self_exec_id) ? t->self_exec_id : old->task_struct_rh->self_exec_id;
}

static __always_inline u64
forker_exec_id_of(const struct task_struct *t)
{
	const struct task_struct___rhel_8 *old = (const void *)t;

	return bpf_core_field_exists(t->parent_exec_id) ? t->parent_exec_id : old->task_struct_rh->parent_exec_id;
}

#define SIGNAL_GROUP_EXIT 0x4
#define PF_EXITING 0x4
#define PF_IO_WORKER 0x10			/* since 5.12 */
#define PF_FORKNOEXEC 0x40
#define TASK_NOLOAD 0x400
#define TASK_NEW 0x800
#define PF_KTHREAD 0x00200000
#define SIGCHLD 17
#define SIG_IGN 1
#define E2BIG 7
#define EEXIST 17
#define PROC_PID_INIT_INO 0xeffffffcu	/* inode number of the first pid namespace, always */
#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
#define IPPROTO_MPTCP 262
#define MSG_PEEK 2
#define SOCK_SEQPACKET 5

#endif
