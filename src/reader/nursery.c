/*
 * SPDX-License-Identifier: Apache-2.0
 * nursery: its process, and its messages.
 */
#include "reader/nursery.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/privileges.h"
#include "base/descriptors.h"
#include "base/sandbox.h"

enum {
	SOCKET = 3,
	USER_SIZE = 256,
};

enum order_kind {
	ORDER_BECOME = 1,
	ORDER_CONFINE,
	ORDER_READER,
};

/* What the agent says to the nursery, which trusts it. */
struct order {
	enum order_kind kind;
	enum reader_role role;		/* of READER */
	bool reads_all_files;		/* of BECOME, as the rest */
	uid_t uid;
	gid_t gid;
	char user[USER_SIZE];		/* "": uid and gid */
};

/* What it says to the agent, with the descriptor beside it. */
struct birth {
	enum reader_role role;
	int error;
	pid_t pid;
};

struct nursery {
	int fd;
	pid_t pid;
};

/* The process */

#define ANY(call) { .number = SYS_##call }

/* What it takes to fork readers, and what these do until they have confined themselves further. */
static const struct sandbox_call calls[] = {
	ANY(recvfrom), ANY(sendmsg), ANY(sendto), ANY(socketpair),
	{ .number = SYS_clone, .terms = { { SANDBOX_EQUAL, 0, CLONE_PARENT | SIGCHLD } } }, ANY(dup3), ANY(close),
	ANY(close_range), ANY(prctl), ANY(capget), ANY(capset), ANY(prlimit64), ANY(getpid), ANY(getppid), ANY(getuid),
	ANY(geteuid), ANY(getgid), ANY(getegid), ANY(landlock_create_ruleset), ANY(landlock_add_rule),
	ANY(landlock_restrict_self), ANY(openat), ANY(read), ANY(pread64), ANY(fstat), ANY(newfstatat), ANY(readlinkat),
	ANY(getdents64), ANY(lseek), ANY(fcntl), ANY(brk), ANY(munmap), ANY(mremap), ANY(madvise), ANY(futex),
	{ .number = SYS_mmap, .terms = { { SANDBOX_WITHOUT, 2, PROT_EXEC } } },
	{ .number = SYS_mprotect, .terms = { { SANDBOX_WITHOUT, 2, PROT_EXEC } } }, ANY(rt_sigprocmask),
	ANY(rt_sigreturn), ANY(restart_syscall), ANY(exit), ANY(exit_group), ANY(sigaltstack),
	ANY(gettid),	/* a sanitizer's, before a function that does not return */
#ifdef __x86_64__
	ANY(readlink), ANY(dup2), ANY(open), ANY(stat),
#endif
};

/* What the nursery itself knows. */
struct inside {
	pid_t agent;
	uint64_t keeps;		/* capabilities */
	int error;		/* why it did not become the account: then no reader is made */
};

/* Drops all capabilities but some. o: NULL: it stays who it is. */
static int
give_up(uint64_t keep, const struct order *o)
{
	const struct privileges_options options = { .user = o != NULL && o->user[0] != '\0' ? o->user : NULL,
		.has_ids = o != NULL && o->uid != 0, .uid = o != NULL ? o->uid : 0, .gid = o != NULL ? o->gid : 0,
		.keep = keep, .no_new_privs = true };
	char error[256];
	int r = privileges_drop(&options, error, sizeof(error));

	/* Again: the kernel forgets it as the credentials change. */
	if (r == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		r = -errno;
	return r;
}

static void
become(struct inside *in, const struct order *o)
{
	uint64_t held = 0;

	in->keeps = PRIVILEGE(CAP_SYS_PTRACE) | (o->reads_all_files ? PRIVILEGE(CAP_DAC_READ_SEARCH) : 0);
	in->error = privileges_held(CAP_PERMITTED, &held);
	in->keeps &= held;
	if (in->error == 0)
		in->error = give_up(in->keeps, o);
}

/* Confines itself, and all readers of later: these open files for reading alone. */
static int
confine(struct inside *in)
{
	int r;

	in->keeps &= ~PRIVILEGE(CAP_SYS_PTRACE);
	r = give_up(in->keeps, NULL);
	if (r == 0)
		r = sandbox_read_below("/");
	if (r == 0 || sandbox_lacks(r) != NULL)
		r = sandbox_system_calls(calls, sizeof(calls) / sizeof(calls[0]));
	return r;
}

/* Forks a reader, whose parent is the agent. Returns its pid, and the agent's end of its socket. */
static pid_t
fork_reader(const struct inside *in, enum reader_role role, int *ret_fd)
{
	const uint64_t needs = role == READER_OF_FILES ? PRIVILEGE(CAP_DAC_READ_SEARCH) : PRIVILEGE(CAP_SYS_PTRACE);
	int pair[2];
	pid_t pid;

	if (in->error < 0)
		return in->error;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	pid = (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0)
		reader_serve(pair[1], role, in->agent, in->keeps & needs);
	if (pid < 0) {
		pid = -errno;
		close(pair[0]);
	} else {
		*ret_fd = pair[0];
	}
	close(pair[1]);
	return pid;
}

/* Answers with a reader, or with why there is none. Returns false if the agent is gone. */
static bool
send_reader(const struct inside *in, enum reader_role role)
{
	int fd = -1;
	pid_t pid = fork_reader(in, role, &fd);
	struct birth birth = { .role = role, .pid = pid, .error = pid < 0 ? -(int)pid : 0 };
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec part = { &birth, sizeof(birth) };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };
	bool is_sent;

	if (fd >= 0) {
		m.msg_control = control.buf;
		m.msg_controllen = sizeof(control.buf);
		*CMSG_FIRSTHDR(&m) = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN(sizeof(int)) };
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &fd, sizeof(fd));
	}
	is_sent = sendmsg(SOCKET, &m, MSG_NOSIGNAL) >= 0;
	if (fd >= 0)
		close(fd);
	return is_sent;
}

/* Leaves all that it was forked with. Returns a negative errno if that fails. */
static int
leave(int fd, pid_t agent)
{
	sigset_t none;
	int null, r;

	prctl(PR_SET_NAME, "sluice-nursery");
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != agent)
		return -ECANCELED;
	(void)setsid();		/* signals of a terminal are not for it */
	for (int signo = 1; signo < NSIG; signo++)
		signal(signo, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (fd == SOCKET ? fcntl(fd, F_SETFD, 0) < 0 : dup2(fd, SOCKET) < 0)
		return -errno;
	r = descriptors_close_from(SOCKET + 1);
	if (r < 0)
		return r;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int i = 0; i < SOCKET && null >= 0; i++)
		(void)dup2(null, i);
	if (null > SOCKET)
		close(null);
	return chdir("/") < 0 ? -errno : 0;
}

static _Noreturn void
run(int fd, pid_t agent)
{
	struct inside in = { .agent = agent };
	struct order o;

	if (leave(fd, agent) < 0)
		_exit(1);
	while (recv(SOCKET, &o, sizeof(o), 0) == (ssize_t)sizeof(o)) {
		if (o.kind == ORDER_BECOME) {
			become(&in, &o);
		} else if (o.kind == ORDER_CONFINE) {
			if (in.error == 0)
				in.error = confine(&in);
		} else if (!send_reader(&in, o.role)) {
			break;
		}
	}
	_exit(0);
}

/* The agent's side */

int
nursery_start(struct nursery **ret)
{
	struct nursery *n = calloc(1, sizeof(*n));
	const pid_t agent = getpid();
	int pair[2], r;

	if (n == NULL)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		r = -errno;
		free(n);
		return r;
	}
	n->fd = pair[0];
	n->pid = fork();
	if (n->pid == 0)
		run(pair[1], agent);
	r = n->pid < 0 ? -errno : 0;
	close(pair[1]);
	if (r < 0) {
		close(pair[0]);
		free(n);
		return r;
	}
	*ret = n;
	return 0;
}

void
nursery_stop(struct nursery *n)
{
	if (n == NULL)
		return;
	close(n->fd);
	kill(n->pid, SIGKILL);
	while (waitpid(n->pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	free(n);
}

static int
give_order(struct nursery *n, const struct order *o)
{
	return send(n->fd, o, sizeof(*o), MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int
nursery_become(struct nursery *n, const char *user, uid_t uid, gid_t gid, bool reads_all_files)
{
	struct order o = { .kind = ORDER_BECOME, .reads_all_files = reads_all_files, .uid = uid, .gid = gid };

	if (user != NULL && snprintf(o.user, sizeof(o.user), "%s", user) >= (int)sizeof(o.user))
		return -ENAMETOOLONG;
	return give_order(n, &o);
}

int
nursery_confine(struct nursery *n)
{
	const struct order o = { .kind = ORDER_CONFINE };

	return give_order(n, &o);
}

int
nursery_ask(struct nursery *n, enum reader_role role)
{
	const struct order o = { .kind = ORDER_READER, .role = role };

	return give_order(n, &o);
}

int
nursery_fd(const struct nursery *n)
{
	return n->fd;
}

int
nursery_take(struct nursery *n, struct nursling *ret)
{
	struct birth birth;
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec part = { &birth, sizeof(birth) };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.buf,
		.msg_controllen = sizeof(control.buf) };
	ssize_t len = recvmsg(n->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	const struct cmsghdr *c;

	if (len < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (len != (ssize_t)sizeof(birth))
		return -ECONNRESET;
	*ret = (struct nursling){ .role = birth.role, .pid = birth.pid, .fd = -1, .error = birth.error };
	c = CMSG_FIRSTHDR(&m);
	if (c != NULL && c->cmsg_type == SCM_RIGHTS)
		memcpy(&ret->fd, CMSG_DATA(c), sizeof(ret->fd));
	return 1;
}
