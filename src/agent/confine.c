/*
 * SPDX-License-Identifier: Apache-2.0
 * confine: the system calls of an agent, and a ruleset of its files.
 */
#include "agent/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/bpf.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "collect/proctext.h"

#ifndef __has_feature
#define __has_feature(name) 0		/* gcc */
#endif

#define ANY(call) { .number = SYS_##call }
#define IF(call, ...) { .number = SYS_##call, .terms = { __VA_ARGS__ } }
#define EQUAL(i, v) { .is = SANDBOX_EQUAL, .argument = (i), .value = (v) }
#define OTHER(i, v) { .is = SANDBOX_OTHER, .argument = (i), .value = (v) }
#define WITHOUT(i, v) { .is = SANDBOX_WITHOUT, .argument = (i), .value = (v) }
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define NAMESPACES (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | \
    CLONE_NEWNET)

/* As systemd's @system-service, without what neither the agent nor a library in it does: it executes no program. */
static const struct sandbox_call calls[] = {
	/* files */
	ANY(read), ANY(write), ANY(pread64), ANY(pwrite64), ANY(readv), ANY(writev), ANY(preadv), ANY(pwritev),
	ANY(preadv2), ANY(pwritev2), ANY(lseek), ANY(openat), ANY(openat2), ANY(close), ANY(close_range), ANY(dup),
	ANY(dup3), ANY(fcntl), ANY(flock), ANY(pipe2), ANY(eventfd2), ANY(fstat), ANY(newfstatat), ANY(statx),
	ANY(statfs), ANY(fstatfs), ANY(faccessat), ANY(faccessat2), ANY(getdents64), ANY(getcwd), ANY(readlinkat),
	ANY(mkdirat), ANY(unlinkat), ANY(renameat), ANY(renameat2), ANY(linkat), ANY(ftruncate),
	ANY(fallocate), ANY(fadvise64), ANY(fsync), ANY(fdatasync), ANY(sync_file_range), ANY(syncfs), ANY(fchmod),
	ANY(fchmodat), ANY(fchown), ANY(fchownat), ANY(utimensat), ANY(umask), ANY(getxattr), ANY(fgetxattr),
	ANY(inotify_init1), ANY(inotify_add_watch), ANY(inotify_rm_watch), ANY(sendfile), ANY(copy_file_range),
	ANY(splice), ANY(memfd_create),
#ifdef __x86_64__
	ANY(open), ANY(dup2), ANY(pipe), ANY(eventfd), ANY(stat), ANY(lstat), ANY(access), ANY(getdents), ANY(readlink),
	ANY(mkdir), ANY(rmdir), ANY(unlink), ANY(rename), ANY(link), ANY(chmod), ANY(chown), ANY(utime), ANY(utimes),
	ANY(futimesat), ANY(inotify_init), ANY(creat),
#endif
	/* waiting */
	ANY(epoll_create1), ANY(epoll_ctl), ANY(epoll_pwait), ANY(epoll_pwait2), ANY(ppoll), ANY(pselect6),
	ANY(timerfd_create), ANY(timerfd_settime), ANY(timerfd_gettime), ANY(signalfd4),
#ifdef __x86_64__
	ANY(epoll_create), ANY(epoll_wait), ANY(poll), ANY(select), ANY(alarm), ANY(pause), ANY(time),
#endif
	/* what is done with sockets that are there */
	ANY(getsockname), ANY(getpeername), ANY(getsockopt), ANY(setsockopt), ANY(sendto), ANY(recvfrom), ANY(sendmsg),
	ANY(recvmsg), ANY(sendmmsg), ANY(recvmmsg), ANY(shutdown),
	/* not what puts text into the terminal in which it was started */
	IF(ioctl, OTHER(1, TIOCSTI), OTHER(1, TIOCLINUX)),
	/* memory; libraries may be loaded, but none is both written and executed */
	IF(mmap, WITHOUT(2, PROT_EXEC)), IF(mmap, WITHOUT(2, PROT_WRITE)), IF(mprotect, WITHOUT(2, PROT_EXEC)),
	ANY(brk), ANY(munmap), ANY(mremap), ANY(madvise), ANY(msync), ANY(mincore), ANY(membarrier),
	/* threads, and the canary, which is a process */
	IF(clone, WITHOUT(0, NAMESPACES)), ANY(futex), ANY(set_robust_list), ANY(get_robust_list), ANY(set_tid_address),
#ifdef SYS_futex_waitv
	ANY(futex_waitv),
#endif
#ifdef SYS_rseq
	ANY(rseq),
#endif
#ifdef __x86_64__
	ANY(arch_prctl), ANY(getpgrp),
#endif
	ANY(sched_yield), ANY(sched_getaffinity), ANY(sched_getparam), ANY(sched_getscheduler),
	ANY(sched_get_priority_max), ANY(sched_get_priority_min), ANY(getcpu), ANY(gettid), ANY(getpid), ANY(getppid),
	ANY(getpgid), ANY(getsid), ANY(exit), ANY(exit_group), ANY(wait4), ANY(waitid), ANY(kill), ANY(tkill),
	ANY(tgkill), ANY(prctl),
	/* signals */
	ANY(rt_sigaction), ANY(rt_sigprocmask), ANY(rt_sigreturn), ANY(rt_sigpending), ANY(rt_sigsuspend),
	ANY(rt_sigtimedwait), ANY(rt_sigqueueinfo), ANY(rt_tgsigqueueinfo), ANY(sigaltstack), ANY(restart_syscall),
	/* who and what it is, and the time */
	ANY(getuid), ANY(geteuid), ANY(getgid), ANY(getegid), ANY(getgroups), ANY(getresuid), ANY(getresgid),
	ANY(capget), ANY(getpriority), ANY(getrusage), ANY(getrlimit), ANY(prlimit64), ANY(uname), ANY(sysinfo),
	ANY(times), ANY(getrandom), ANY(clock_gettime), ANY(clock_getres), ANY(clock_nanosleep), ANY(nanosleep),
	ANY(gettimeofday), ANY(getitimer), ANY(setitimer),
	/* new maps of rules, and what is in maps; no new program, link or pin, and nothing by an id of the kernel's */
	IF(bpf, EQUAL(0, BPF_MAP_CREATE)), IF(bpf, EQUAL(0, BPF_MAP_LOOKUP_ELEM)),
	IF(bpf, EQUAL(0, BPF_MAP_UPDATE_ELEM)), IF(bpf, EQUAL(0, BPF_MAP_DELETE_ELEM)),
	IF(bpf, EQUAL(0, BPF_MAP_GET_NEXT_KEY)), IF(bpf, EQUAL(0, BPF_MAP_LOOKUP_BATCH)),
	IF(bpf, EQUAL(0, BPF_MAP_UPDATE_BATCH)), IF(bpf, EQUAL(0, BPF_MAP_DELETE_BATCH)),
	IF(bpf, EQUAL(0, BPF_ITER_CREATE)), IF(bpf, EQUAL(0, BPF_PROG_TEST_RUN)),
	IF(bpf, EQUAL(0, BPF_OBJ_GET_INFO_BY_FD)),
#if __has_feature(address_sanitizer) || defined(__SANITIZE_ADDRESS__)
	ANY(ptrace),		/* by which it stops all threads and looks for leaks, at the end */
#endif
};

/* New sockets; of netlink's families only the one that getaddrinfo(3) asks. */
static const struct sandbox_call socket_calls[] = {
	IF(socket, EQUAL(0, AF_UNIX)), IF(socket, EQUAL(0, AF_INET)), IF(socket, EQUAL(0, AF_INET6)),
	IF(socket, EQUAL(0, AF_NETLINK), EQUAL(2, NETLINK_ROUTE)), IF(socketpair, EQUAL(0, AF_UNIX)), ANY(bind),
	ANY(listen), ANY(accept), ANY(accept4), ANY(connect),
};

int
confine_allow(struct confinement *c, const char *path, enum sandbox_access access)
{
	int r = c->files >= 0 ? sandbox_files_allow(c->files, path, access) : 0;

	if (r < 0)
		snprintf(c->error, sizeof(c->error), "%s: %s", path, strerror(-r));
	return r;
}

int
confine_allow_beside(struct confinement *c, const char *path, enum sandbox_access access)
{
	char folder[PATH_MAX];
	const char *slash = strrchr(path, '/');

	if (slash == NULL || slash == path || (size_t)snprintf(folder, sizeof(folder), "%s", path) >= sizeof(folder))
		return confine_allow(c, path, access);
	folder[slash - path] = '\0';
	return confine_allow(c, folder, access);
}

int
confine_allow_around(struct confinement *c, const char *path, enum sandbox_access access)
{
	char *real = realpath(path, NULL);
	int r = confine_allow_beside(c, path, access);

	if (r == 0 && real != NULL && strcmp(real, path) != 0)
		r = confine_allow_beside(c, real, access);
	free(real);
	return r;
}

void
confine_allow_reading(struct confinement *c, const char *path)
{
	if (path != NULL && path[0] == '/')
		(void)confine_allow_around(c, path, SANDBOX_READ);
}

/* Where the system's libraries, their configuration, names, certificates and the kernel's files are. */
static void
allow_system(struct confinement *c)
{
	static const char *const paths[] = { "/etc", "/usr", "/lib", "/lib64", "/proc", "/sys", "/run",
		"/var/lib/sss", "/var/lib/ca-certificates", "/nix/store", "/dev/random", "/dev/urandom" };
	static const char *const links[] = { "/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/localtime" };
	static const char *const variables[] = { "SSL_CERT_FILE", "SSL_CERT_DIR", "OPENSSL_CONF" };

	for (size_t i = 0; i < COUNT(paths); i++)
		(void)confine_allow(c, paths[i], SANDBOX_READ);
	(void)confine_allow(c, "/dev/null", SANDBOX_WRITE);
	for (size_t i = 0; i < COUNT(links); i++)
		confine_allow_reading(c, links[i]);
	for (size_t i = 0; i < COUNT(variables); i++)
		confine_allow_reading(c, getenv(variables[i]));
}

/* Control groups may be mounted anywhere. */
static void
allow_cgroups(struct confinement *c)
{
	struct proc_cgroup_mount mount;
	struct file_text t = { 0 };
	char point[PATH_MAX];
	const char *text;
	size_t len;
	int r = file_read(AT_FDCWD, "/proc/self/mountinfo", &t, SIZE_MAX - 1);

	text = t.text;
	len = t.len;
	while (r >= 0 && (r = proctext_next_cgroup_mount(&text, &len, &mount)) != 0) {
		if (r > 0 && proctext_unescape(mount.point, point, sizeof(point)) >= 0)
			(void)confine_allow(c, point, SANDBOX_READ);
		r = 0;
	}
	file_text_done(&t);
}

int
confine_begin(struct confinement *ret)
{
	int files = sandbox_files_begin(false);	/* not alone: the readers, which it kills, are not in it */

	*ret = (struct confinement){ .files = -1, .lacks = files < 0 ? sandbox_lacks(files) : NULL };
	if (files < 0 && ret->lacks == NULL) {
		snprintf(ret->error, sizeof(ret->error), "Landlock: %s", strerror(-files));
		return files;
	}
	if (files >= 0) {
		ret->files = files;
		allow_system(ret);
		allow_cgroups(ret);
	}
	return 0;
}

void
confine_begin_without_files(struct confinement *ret, const char *why)
{
	*ret = (struct confinement){ .files = -1, .lacks = why };
}

void
confine_abandon(struct confinement *c)
{
	if (c->files >= 0)
		close(c->files);
	c->files = -1;
}

int
confine_enforce(struct confinement *c, bool makes_sockets)
{
	struct sandbox_call all[COUNT(calls) + COUNT(socket_calls)];
	int r = 0;

	if (c->files >= 0) {
		r = sandbox_files_enforce(c->files);
		c->files = -1;
		if (r < 0) {
			snprintf(c->error, sizeof(c->error), "Landlock: %s", strerror(-r));
			return r;
		}
	}
	memcpy(all, calls, sizeof(calls));
	memcpy(all + COUNT(calls), socket_calls, sizeof(socket_calls));
	r = sandbox_system_calls(all, makes_sockets ? COUNT(all) : COUNT(calls));
	if (r < 0)
		snprintf(c->error, sizeof(c->error), "seccomp: %s", strerror(-r));
	return r;
}
