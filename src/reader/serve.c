/*
 * SPDX-License-Identifier: Apache-2.0
 * serve: a reader's confinement, and its loop.
 */
#include "reader/serve.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/privileges.h"
#include "base/descriptors.h"
#include "base/sandbox.h"
#include "reader/protocol.h"

#define ANY(call) { .number = SYS_##call }

enum {
	SOCKET = 3,		/* where its descriptor is moved */
	LAST_NAMES = 64,	/* that are read of a folder */
	NAMES_MAX = 20000,	/* that a folder may have, so that none takes long */
};

/* What reading takes, with the C library's memory. openat(2) and open(2) open for reading alone, by Landlock. */
static const struct sandbox_call calls[] = {
	ANY(recvfrom), ANY(sendto), ANY(openat), ANY(read), ANY(pread64), ANY(close), ANY(fstat), ANY(newfstatat),
	ANY(readlinkat),
#ifdef SYS_readlink
	ANY(readlink), ANY(open), ANY(stat),
#endif
	ANY(getdents64), ANY(lseek), ANY(fcntl), ANY(brk), ANY(munmap), ANY(mremap), ANY(madvise), ANY(futex),
	{ .number = SYS_mmap, .terms = { { SANDBOX_WITHOUT, 2, PROT_EXEC } } },
	ANY(getpid), ANY(rt_sigreturn), ANY(restart_syscall), ANY(exit), ANY(exit_group),
};

static int
confine(int fd, enum reader_role role, pid_t agent, uint64_t keep)
{
	const struct privileges_options o = { .keep = keep, .no_new_privs = true };
	char error[256];
	int r = privileges_drop(&o, error, sizeof(error));

	if (r < 0)
		return r;
	/* Only now: the kernel forgets it as the credentials change. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != agent)
		return -ECANCELED;
	if (dup2(fd, SOCKET) < 0)
		return -errno;
	r = descriptors_close_from(SOCKET + 1);
	if (r < 0)
		return r;
	if ((keep & PRIVILEGE(CAP_SYS_PTRACE)) == 0)
		r = sandbox_read_below(role == READER_OF_PROCESSES ? "/proc" : "/");
	if (r < 0 && sandbox_lacks(r) == NULL)
		return r;
	return sandbox_system_calls(calls, sizeof(calls) / sizeof(calls[0]));
}

static void
read_process(struct proc_reader *f, uint32_t pid, struct reader_answer *a)
{
	struct proc_texts t;

	if (!proc_reader_texts(f, pid, &t)) {
		a->error = -ESRCH;
		return;
	}
	a->start_ticks = t.start_ticks;
	a->text[READER_BYTES].at = t.cmdline;
	a->text[READER_BYTES].len = t.cmdline_len;
	a->text[READER_EXE].at = t.exe;
	a->text[READER_CWD].at = t.cwd;
	a->text[READER_CGROUP_V1].at = t.cgroup[0];
	a->text[READER_CGROUP_V2].at = t.cgroup[1];
	for (int i = READER_EXE; i < READER_TEXTS; i++)
		a->text[i].len = a->text[i].at != NULL ? strlen(a->text[i].at) : 0;
}

static void
read_title(const struct proc_reader *f, const struct reader_request *q, char *buf, struct reader_answer *a)
{
	size_t len = proc_reader_title(f, q->pid, buf, q->limit);

	a->text[READER_BYTES].at = len > 0 ? buf : NULL;
	a->text[READER_BYTES].len = len;
	a->start_ticks = proc_reader_start_ticks(f, q->pid);	/* last, as of a process that is discovered */
}

/*
 * Opens a path for reading, by one part after the other, of which none may be a link: its user may change each of them
 * at any time. Returns a descriptor, or -1 with errno: ELOOP for a link, or what is no folder in the place of one.
 */
static int
open_resolved(const char *path, int flags)
{
	const int on_the_way = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int folder = open("/", on_the_way), fd = -1, error = errno;
	char name[NAME_MAX + 1];
	size_t len;
	bool is_last;

	while (folder >= 0) {
		path += strspn(path, "/");
		len = strcspn(path, "/");
		is_last = path[len] == '\0';
		if (snprintf(name, sizeof(name), "%.*s", (int)len, path) >= (int)sizeof(name) || strcmp(name, "..") == 0) {
			fd = -1;
			errno = len > NAME_MAX ? ENAMETOOLONG : ELOOP;
		} else {
			fd = openat(folder, name, is_last ? flags | O_NOFOLLOW : on_the_way);
		}
		error = fd < 0 && errno == ENOTDIR && (!is_last || (flags & O_DIRECTORY) != 0) ? ELOOP : errno;
		close(folder);
		folder = is_last ? -1 : fd;
		path += len;
	}
	errno = error;
	return fd;
}

static int
open_path(const struct reader_request *q, int flags)
{
	flags |= O_RDONLY | O_CLOEXEC;
	return q->is_resolved != 0 ? open_resolved(q->path, flags) : open(q->path, flags | O_NOFOLLOW);
}

static void
read_file(const struct reader_request *q, char *buf, struct reader_answer *a)
{
	/* Never a fifo or a device that would block. */
	int fd = open_path(q, O_NONBLOCK | O_NOCTTY);
	ssize_t n = -1;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		a->error = -errno;
	else if (!S_ISREG(st.st_mode) || st.st_uid != q->owner)
		a->error = -EPERM;
	else if ((n = pread(fd, buf, q->limit, (off_t)q->offset)) < 0)
		a->error = -errno;
	else
		a->file = (struct reader_file_facts){ (uint64_t)st.st_size, st.st_mtime };
	a->is_file = a->error == 0;
	if (fd >= 0)
		close(fd);
	a->text[READER_BYTES].at = buf;
	a->text[READER_BYTES].len = n > 0 ? (size_t)n : 0;
}

/* The names that are the last ones of a folder in the order of their bytes. */
struct last_names {
	char name[LAST_NAMES][NAME_MAX + 1];	/* the last one first */
	size_t n;
};

static void
keep_name(struct last_names *l, const char *name)
{
	size_t at = l->n;

	while (at > 0 && strcmp(l->name[at - 1], name) < 0)
		at--;
	if (at == LAST_NAMES)
		return;
	if (l->n < LAST_NAMES)
		l->n++;
	memmove(l->name[at + 1], l->name[at], (l->n - at - 1) * sizeof(l->name[0]));
	snprintf(l->name[at], sizeof(l->name[at]), "%s", name);
}

static void
read_folder(const struct reader_request *q, char *buf, struct reader_answer *a)
{
	static struct last_names last;
	int fd = open_path(q, O_DIRECTORY);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	size_t len = 0, n, n_read = 0;

	if (d == NULL) {
		a->error = -errno;
		if (fd >= 0)
			close(fd);
		return;
	}
	last.n = 0;
	for (const struct dirent *e; n_read <= NAMES_MAX && (e = readdir(d)) != NULL; n_read++)
		keep_name(&last, e->d_name);
	closedir(d);
	if (n_read > NAMES_MAX) {
		a->error = -E2BIG;
		return;
	}
	for (size_t i = 0; i < last.n && len + (n = strlen(last.name[i]) + 1) <= q->limit; i++, len += n)
		memcpy(buf + len, last.name[i], n);
	a->text[READER_BYTES].at = buf;
	a->text[READER_BYTES].len = len;
}

_Noreturn void
reader_serve(int fd, enum reader_role role, pid_t agent, uint64_t keep)
{
	static char message[READER_ANSWER_MAX], buf[READER_FILE_MAX];
	static struct reader_request q;
	struct proc_reader *f;
	ssize_t n;

	prctl(PR_SET_NAME, "sluice-reader");
	if (proc_reader_new("/proc", &f) < 0 || confine(fd, role, agent, keep) < 0)
		_exit(1);
	while ((n = recv(SOCKET, &q, sizeof(q), MSG_TRUNC)) > 0 && reader_request_check(&q, (size_t)n) == 0) {
		struct reader_answer a = { .id = q.id };

		if (q.kind == READER_PROCESS)
			read_process(f, q.pid, &a);
		else if (q.kind == READER_TITLE)
			read_title(f, &q, buf, &a);
		else if (q.kind == READER_FOLDER)
			read_folder(&q, buf, &a);
		else
			read_file(&q, buf, &a);
		if (send(SOCKET, message, reader_answer_encode(&a, message), MSG_NOSIGNAL) < 0)
			break;
	}
	_exit(0);
}
