/*
 * SPDX-License-Identifier: Apache-2.0
 * confine: what a running agent may still do: the system calls that it and its libraries make, and the files that its
 * configuration names. Of a hole in a parser no more than that is left to use.
 *
 * Files are allowed by the folder around them, so that one that is replaced, as by an editor, a certificate's renewal
 * or `rm -r` of the spool, is the agent's again when it is back. Who may do what there is still up to their modes.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/bpf.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/sandbox.h"
#include "collect/proctext.h"
#include "control/listen.h"
#include "daemon/state.h"

#ifndef __has_feature
#define __has_feature(name) 0		/* gcc */
#endif

#define ANY(call) { .number = SYS_##call }
#define IF(call, ...) { .number = SYS_##call, .terms = { __VA_ARGS__ } }
#define EQUAL(i, v) { .is = SANDBOX_EQUAL, .argument = (i), .value = (v) }
#define OTHER(i, v) { .is = SANDBOX_OTHER, .argument = (i), .value = (v) }
#define WITHOUT(i, v) { .is = SANDBOX_WITHOUT, .argument = (i), .value = (v) }
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
	/* sockets; of netlink's families only the one that getaddrinfo(3) asks */
	IF(socket, EQUAL(0, AF_UNIX)), IF(socket, EQUAL(0, AF_INET)), IF(socket, EQUAL(0, AF_INET6)),
	IF(socket, EQUAL(0, AF_NETLINK), EQUAL(2, NETLINK_ROUTE)), IF(socketpair, EQUAL(0, AF_UNIX)), ANY(bind),
	ANY(listen), ANY(accept), ANY(accept4), ANY(connect), ANY(getsockname), ANY(getpeername), ANY(getsockopt),
	ANY(setsockopt), ANY(sendto), ANY(recvfrom), ANY(sendmsg), ANY(recvmsg), ANY(sendmmsg), ANY(recvmmsg),
	ANY(shutdown),
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

/* Allows what is with the file or folder of a name; of one in / that alone. */
static int
allow_beside(int files, const char *path, enum sandbox_access access)
{
	char folder[PATH_MAX];
	const char *slash = strrchr(path, '/');

	if (slash == NULL || slash == path || (size_t)snprintf(folder, sizeof(folder), "%s", path) >= sizeof(folder))
		return sandbox_files_allow(files, path, access);
	folder[slash - path] = '\0';
	return sandbox_files_allow(files, folder, access);
}

/* Allows what is with a name, and where its symbolic links lead. 0 or a negative errno. */
static int
allow_around(int files, const char *path, enum sandbox_access access)
{
	char *real = realpath(path, NULL);
	int r = allow_beside(files, path, access);

	if (r == 0 && real != NULL && strcmp(real, path) != 0)
		r = allow_beside(files, real, access);
	free(real);
	return r;
}

/* What is missing, or may not be reached, needs no rule: it cannot be opened either. */
static void
allow_reading(int files, const char *path)
{
	if (path != NULL && path[0] == '/')
		(void)allow_around(files, path, SANDBOX_READ);
}

/* Where the system's libraries, their configuration, names, certificates and the kernel's files are. */
static void
allow_system(int files)
{
	static const char *const paths[] = { "/etc", "/usr", "/lib", "/lib64", "/proc", "/sys", "/run",
		"/var/lib/sss", "/var/lib/ca-certificates", "/nix/store", "/dev/null", "/dev/random", "/dev/urandom" };
	static const char *const links[] = { "/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/localtime" };
	static const char *const variables[] = { "SSL_CERT_FILE", "SSL_CERT_DIR", "OPENSSL_CONF" };

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		(void)sandbox_files_allow(files, paths[i], SANDBOX_READ);
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		allow_reading(files, links[i]);
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		allow_reading(files, getenv(variables[i]));
}

/* Control groups may be mounted anywhere. */
static void
allow_cgroups(int files)
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
			(void)sandbox_files_allow(files, point, SANDBOX_READ);
		r = 0;
	}
	file_text_done(&t);
}

/* The folder of rules, and where links in it lead. */
static void
allow_rules(int files, const char *folder)
{
	DIR *dir = opendir(folder);
	const struct dirent *e;
	char path[PATH_MAX];

	allow_reading(files, folder);
	(void)sandbox_files_allow(files, folder, SANDBOX_READ);
	while (dir != NULL && (e = readdir(dir)) != NULL) {
		if (e->d_type == DT_LNK && snprintf(path, sizeof(path), "%s/%s", folder, e->d_name) < (int)sizeof(path))
			allow_reading(files, path);
	}
	if (dir != NULL)
		closedir(dir);
}

static void
allow_configured(int files, const struct daemon *d)
{
	const struct config *c = d->config;

	allow_reading(files, d->options->config != NULL ? d->options->config : CONFIG_PATH);
	for (size_t i = 0; i < c->files.n; i++)
		allow_reading(files, c->files.list[i]);
	allow_rules(files, c->rules);
	allow_reading(files, c->registry.ca_file);
	allow_reading(files, c->registry.cert_file);
	allow_reading(files, c->registry.key_file);
	for (size_t i = 0; i < c->kafka.properties.n; i++)
		allow_reading(files, c->kafka.properties.list[i].value);
}

/* Where it writes. 0 or a negative errno. */
static int
allow_writing(int files, const struct daemon *d)
{
	const struct config *c = d->config;
	const char *const folders[] = { c->spool.dir, c->dead_letters, c->kafka.is_set ? NULL : c->lake };
	int r = 0;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && r == 0; i++) {
		if (folders[i] != NULL)
			r = allow_around(files, folders[i], SANDBOX_WRITE);
	}
	return r;
}

/* Its sockets are there: they are removed at the end, and a port that was taken is tried again. */
static void
allow_sockets(int files, const struct config *c)
{
	(void)allow_beside(files, c->control, SANDBOX_REMOVE);
	(void)allow_beside(files, c->run_socket, SANDBOX_REMOVE);	/* "off" is no file */
	for (size_t i = 0; i < c->metrics.n; i++) {
		const char *address = c->metrics.list[i], *colon = strrchr(address, ':');

		if (listen_is_unix(address))
			(void)allow_beside(files, listen_unix_path(address), SANDBOX_REMOVE);
		else if (colon != NULL)
			(void)sandbox_files_allow_listening(files, (uint16_t)strtoul(colon + 1, NULL, 10));
	}
}

static int
confine_files(const struct daemon *d)
{
	/* Not alone: the readers, which it kills, are not in it. */
	int files = sandbox_files_begin(false), r;

	if (files < 0)
		return files;
	allow_system(files);
	allow_cgroups(files);
	allow_configured(files, d);
	allow_sockets(files, d->config);
	r = allow_writing(files, d);
	if (r == 0)
		return sandbox_files_enforce(files);
	close(files);
	return r;
}

int
daemon_confine(struct daemon *d)
{
	size_t used = strlen(d->privileges);
	const char *why = NULL;
	int r;

	/* Even to look the folder up would wait for its disk. */
	if (d->lake_maker != 0)
		why = "the lake's disk hangs";
	r = why == NULL ? confine_files(d) : 0;
	if (r == -EOPNOTSUPP)
		why = "this kernel has no Landlock";
	else if (r < 0) {
		log_event(LOG_LEVEL_ERROR, "agent.confine", "cannot confine the agent to its files: %s", strerror(-r));
		return -1;
	}
	r = sandbox_system_calls(calls, sizeof(calls) / sizeof(calls[0]));
	if (r < 0) {
		log_event(LOG_LEVEL_ERROR, "agent.confine", "cannot confine the agent to its system calls: %s", strerror(-r));
		return -1;
	}
	snprintf(d->privileges + used, sizeof(d->privileges) - used, ", own system calls%s%s%s",
	    why == NULL ? " and files" : " but not files (", why != NULL ? why : "", why != NULL ? ")" : "");
	return 0;
}
