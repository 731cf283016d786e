/*
 * SPDX-License-Identifier: Apache-2.0
 * delay_accounting: the kernel's delay accounting, kernel.task_delayacct, on while runs have asked for it.
 */
#include "cli/delay_accounting.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/privileges.h"
#include "base/aside.h"
#include "base/sandbox.h"

#ifndef __has_feature
#define __has_feature(name) 0		/* gcc */
#endif

#define ANY(call) { .number = SYS_##call }
#define SETTING "/proc/sys/kernel/task_delayacct"
#define BOOT_LEN 36
#define SWITCH "`sysctl kernel.task_delayacct="

/* All that the process aside does once its files are open. */
static const struct sandbox_call calls[] = {
	ANY(read), ANY(write), ANY(pread64), ANY(pwrite64), ANY(fcntl), ANY(ftruncate), ANY(ppoll), ANY(exit_group),
	ANY(restart_syscall),	/* after SIGSTOP, a freezer or a debugger */
#ifdef __x86_64__
	ANY(poll),
#endif
#if __has_feature(address_sanitizer) || defined(__SANITIZE_ADDRESS__)
	ANY(gettid), ANY(sigaltstack),	/* before a function that does not return */
#endif
};

/* Bytes of DELAY_ACCOUNTING_STATE that are locked. */
enum {
	OF_CHANGES,	/* while the setting or the state is changed */
	OF_USERS,	/* by each run, shared */
};

/* What is in DELAY_ACCOUNTING_STATE while there are users. */
struct state {
	char put_back;		/* '0' or '1': what the setting is to be after the last user; '\0': there is none */
	unsigned char writes;	/* of users to the setting: a write that is none of these is an administrator's */
	char boot[BOOT_LEN];	/* /run may outlive a boot, as a container's may; the setting does not */
};

struct user {
	int setting;
	int file;		/* DELAY_ACCOUNTING_STATE */
	int written;		/* inotify: the setting was written */
	unsigned char writes;	/* those of users that are known of */
	char boot[BOOT_LEN];	/* the id of this boot; NULs: unknown */
};

/* The first thing that the process sends. */
struct answer {
	int error;		/* 0 or a negative errno */
	bool is_setting;	/* it is about SETTING, not DELAY_ACCOUNTING_STATE */
};

/* type: F_RDLCK, F_WRLCK or F_UNLCK; how: F_OFD_SETLK or F_OFD_SETLKW. 0 or a negative errno. */
static int
lock(int fd, short type, off_t byte, int how)
{
	struct flock l = { .l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1 };

	return fcntl(fd, how, &l) < 0 ? -errno : 0;
}

/* Returns '0' or '1'. */
static char
read_setting(const struct user *u)
{
	char c = '0';

	return pread(u->setting, &c, 1, 0) == 1 ? c : '0';
}

static int
write_setting(const struct user *u, char c)
{
	return pwrite(u->setting, (const char[]){ c, '\n' }, 2, 0) == 2 ? 0 : -errno;
}

static struct state
read_state(const struct user *u)
{
	struct state s;

	if (pread(u->file, &s, sizeof(s), 0) != sizeof(s) || memcmp(s.boot, u->boot, sizeof(s.boot)) != 0) {
		s = (struct state){ 0 };
		memcpy(s.boot, u->boot, sizeof(s.boot));
	}
	return s;
}

static int
write_state(const struct user *u, struct state s)
{
	return pwrite(u->file, &s, sizeof(s), 0) == sizeof(s) ? 0 : -EIO;
}

/* Returns whether the setting was written since the last call. */
static bool
was_written(const struct user *u)
{
	char events[256];
	bool is_written = false;

	while (read(u->written, events, sizeof(events)) > 0)
		is_written = true;
	return is_written;
}

/* Takes its part. What is locked is released when the process ends. 0 or a negative errno. */
static int
join(struct user *u, bool *ret_is_setting)
{
	int r = lock(u->file, F_WRLCK, OF_CHANGES, F_OFD_SETLKW);
	bool is_first = lock(u->file, F_WRLCK, OF_USERS, F_OFD_SETLK) == 0;
	struct state s = read_state(u);
	char now = read_setting(u);

	/* A state that the first user finds is of users that were all killed: it still counts. */
	if (now == '0' || (is_first && s.put_back == '\0'))
		s.put_back = now;
	s.writes += now == '0';
	u->writes = s.writes;
	/* First, so that all that is on has a state. */
	if (r == 0)
		r = write_state(u, s);
	if (r == 0)
		r = lock(u->file, F_RDLCK, OF_USERS, F_OFD_SETLK);
	if (r == 0 && now == '0') {
		*ret_is_setting = true;
		r = write_setting(u, '1');
		(void)was_written(u);
	}
	if (r < 0 && is_first)
		(void)!ftruncate(u->file, 0);
	lock(u->file, F_UNLCK, OF_CHANGES, F_OFD_SETLK);
	return r;
}

/* Notes what an administrator has set. OF_CHANGES is locked. */
static struct state
note_written(struct user *u)
{
	struct state s = read_state(u);

	if (was_written(u) && s.writes == u->writes) {
		s.put_back = read_setting(u);
		write_state(u, s);
	}
	u->writes = s.writes;
	return s;
}

/* The last one puts back what was set. 0 or a negative errno. */
static int
leave(struct user *u)
{
	int r = lock(u->file, F_WRLCK, OF_CHANGES, F_OFD_SETLKW);
	struct state s = note_written(u);

	if (r < 0 || lock(u->file, F_WRLCK, OF_USERS, F_OFD_SETLK) < 0)
		return r;
	if (s.put_back == '0' && read_setting(u) != '0')
		r = write_setting(u, '0');
	if (r == 0 && ftruncate(u->file, 0) < 0)
		r = -errno;
	return r;
}

static void
read_boot(struct user *u)
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (read(fd, u->boot, sizeof(u->boot)) != sizeof(u->boot))
		memset(u->boot, 0, sizeof(u->boot));
	close(fd);
}

static int
open_files(struct user *u, bool *ret_is_setting)
{
	read_boot(u);
	*ret_is_setting = true;
	u->setting = open(SETTING, O_RDWR | O_CLOEXEC);
	if (u->setting < 0)
		return -errno;
	*ret_is_setting = false;
	u->file = open(DELAY_ACCOUNTING_STATE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (u->file < 0)
		return -errno;
	u->written = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	return u->written < 0 || inotify_add_watch(u->written, SETTING, IN_MODIFY) < 0 ? -errno : 0;
}

/* Gives up all but what the setting takes. 0 or a negative errno. */
static int
give_up(void)
{
	struct privileges_options o = { .no_new_privs = true };
	char error[256];
	uint64_t held;
	int r = privileges_held(CAP_PERMITTED, &held);

	o.keep = held & PRIVILEGE(CAP_SYS_ADMIN);
	if (r == 0)
		r = privileges_drop(&o, error, sizeof(error));
	return r == 0 ? sandbox_system_calls(calls, sizeof(calls) / sizeof(calls[0])) : r;
}

/* The process aside. */
static int
use(int fd, void *arg)
{
	struct user u = { 0 };
	struct answer answer = { 0 };
	struct pollfd polled[2] = { { .fd = fd, .events = POLLIN }, { .events = POLLIN } };

	(void)arg;
	answer.error = open_files(&u, &answer.is_setting);
	if (answer.error == 0)
		answer.error = give_up();
	if (answer.error == 0)
		answer.error = join(&u, &answer.is_setting);
	(void)!write(fd, &answer, sizeof(answer));
	if (answer.error < 0)
		return answer.error;
	polled[1].fd = u.written;
	while (polled[0].revents == 0) {
		if (poll(polled, 2, -1) < 0 && errno != EINTR)
			break;
		if (polled[1].revents != 0 && lock(u.file, F_WRLCK, OF_CHANGES, F_OFD_SETLKW) == 0) {
			note_written(&u);
			lock(u.file, F_UNLCK, OF_CHANGES, F_OFD_SETLK);
		}
	}
	return leave(&u);
}

static void
explain(const struct answer *a, char *error, size_t error_size)
{
	if (!a->is_setting)
		snprintf(error, error_size, "the process that switches delay accounting cannot begin, or not keep "
		    DELAY_ACCOUNTING_STATE ": %s%s", strerror(-a->error),
		    a->error == -EMFILE ? ": see fs.inotify.max_user_instances" : "");
	else if (a->error == -ENOENT)
		snprintf(error, error_size, "this kernel has no " SETTING ": before 5.14 it counts delays unless it was booted with "
		    "nodelayacct, later unless it was built without; leave --delay-accounting out");
	else
		snprintf(error, error_size, "cannot write " SETTING ": %s: in a container, leave --delay-accounting out, and use "
		    SWITCH "1` on the host", strerror(-a->error));
}

int
delay_accounting_begin(struct aside *ret, char *error, size_t error_size)
{
	struct answer answer = { .error = -EIO };
	ssize_t n;
	int r = aside_start("run-delays", use, NULL, ret);

	if (r < 0) {
		snprintf(error, error_size, "cannot start a process that switches delay accounting: %s", strerror(-r));
		return r;
	}
	while ((n = read(ret->fd, &answer, sizeof(answer))) < 0 && errno == EINTR)
		continue;
	if (answer.error == 0)
		return 0;
	explain(&answer, error, error_size);
	aside_end(ret);
	return answer.error;
}

int
delay_accounting_end(struct aside *a, char *error, size_t error_size)
{
	int r = aside_end(a);

	if (r < 0)
		snprintf(error, error_size, "delay accounting may still be on, for %s: " SWITCH "0` switches it off", r == -ECHILD ?
		    "the process that puts it back was killed" : strerror(-r));
	return r;
}
