/*
 * SPDX-License-Identifier: Apache-2.0
 * serve: a reader's confinement, and its loop.
 */
#include "reader/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/privileges.h"
#include "base/descriptors.h"
#include "base/sandbox.h"
#include "reader/protocol.h"

#define ANY(call) { .number = SYS_##call }

enum {
	SOCKET = 3,		/* where its descriptor is moved */
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

static void
read_head(const struct reader_request *q, char *buf, struct reader_answer *a)
{
	/* Never a fifo or a device that would block. */
	int fd = open(q->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY);
	ssize_t n = fd >= 0 ? pread(fd, buf, q->limit, 0) : -1;

	if (n < 0)
		a->error = -errno;
	if (fd >= 0)
		close(fd);
	a->text[READER_BYTES].at = buf;
	a->text[READER_BYTES].len = n > 0 ? (size_t)n : 0;
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
		else
			read_head(&q, buf, &a);
		if (send(SOCKET, message, reader_answer_encode(&a, message), MSG_NOSIGNAL) < 0)
			break;
	}
	_exit(0);
}
