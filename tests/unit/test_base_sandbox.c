/*
 * SPDX-License-Identifier: Apache-2.0
 * sandbox: what a child can still do in one. No root.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "child_kit.h"
#include "base/sandbox.h"

enum {
	LACKING = 77,		/* a child's status: the kernel has no Landlock */
};

static int
allow_some(void)
{
	static const struct sandbox_call calls[] = { { .number = SYS_getppid }, { .number = SYS_exit_group } };

	if (sandbox_system_calls(calls, 2) < 0)
		return 1;
	if (syscall(SYS_getppid) <= 0)
		return 2;
	if (syscall(SYS_getpid) != -1 || errno != EPERM)
		return 3;
	if (syscall(SYS_socket, AF_INET, SOCK_STREAM, 0) != -1 || errno != EPERM)
		return 4;
#ifdef __x86_64__
	/* The same call by its number in another ABI. */
	if (syscall(0x40000000 + SYS_getppid) != -1 || errno != EPERM)
		return 5;
#endif
	return 0;
}

static void
no_other_system_call_is_made(void **state)
{
	(void)state;
	assert_int_equal(in_child(allow_some), 0);
}

static int
allow_with_terms(void)
{
	static const struct sandbox_call calls[] = {
		{ .number = SYS_exit_group }, { .number = SYS_close },
		{ .number = SYS_socket, .terms = { { SANDBOX_EQUAL, 0, AF_UNIX } } },
		{ .number = SYS_socket,
		    .terms = { { SANDBOX_EQUAL, 0, AF_NETLINK }, { SANDBOX_EQUAL, 2, NETLINK_ROUTE } } },
		{ .number = SYS_ioctl, .terms = { { SANDBOX_OTHER, 1, TIOCSTI }, { SANDBOX_OTHER, 1, TIOCLINUX } } },
		{ .number = SYS_clone, .terms = { { SANDBOX_WITHOUT, 0, CLONE_NEWUSER | CLONE_NEWNS } } },
	};

	if (sandbox_system_calls(calls, sizeof(calls) / sizeof(calls[0])) < 0)
		return 1;
	if (syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0) < 0 ||
	    syscall(SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE) < 0)
		return 2;
	if (syscall(SYS_socket, AF_NETLINK, SOCK_RAW, NETLINK_AUDIT) != -1 || errno != EPERM ||
	    syscall(SYS_socket, AF_INET, SOCK_STREAM, 0) != -1 || errno != EPERM)
		return 3;
	/* -1 is no descriptor: what is allowed comes to that. */
	if (syscall(SYS_ioctl, -1, FIONREAD, NULL) != -1 || errno != EBADF)
		return 4;
	if (syscall(SYS_ioctl, -1, TIOCSTI, NULL) != -1 || errno != EPERM ||
	    syscall(SYS_ioctl, -1, TIOCLINUX, NULL) != -1 || errno != EPERM)
		return 5;
	/* The kernel reads 32 bits of an int: what is above them says nothing. */
	if (syscall(SYS_ioctl, -1, TIOCSTI | UINT64_C(1) << 32, NULL) != -1 || errno != EPERM)
		return 6;
	if (syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL) != -1 || errno != EPERM)
		return 7;
	/* CLONE_THREAD alone is not valid. */
	if (syscall(SYS_clone, CLONE_THREAD, NULL, NULL, NULL, NULL) != -1 || errno != EINVAL)
		return 8;
	return 0;
}

static void
a_call_is_allowed_by_its_arguments(void **state)
{
	(void)state;
	assert_int_equal(in_child(allow_with_terms), 0);
}

static int
call_what_is_unknown(void)
{
	static const struct sandbox_call calls[] = { { .number = SYS_exit_group } };

	if (sandbox_system_calls(calls, 1) < 0)
		return 1;
	if (syscall(SYS_clone3, NULL, 0) != -1 || errno != ENOSYS)
		return 2;
	if (syscall(9999) != -1 || errno != ENOSYS)
		return 3;
	return 0;
}

static void
what_libraries_can_do_without_is_missing(void **state)
{
	(void)state;
	assert_int_equal(in_child(call_what_is_unknown), 0);
}

static int
allow_too_many(void)
{
	static const struct sandbox_call calls[257];

	return sandbox_system_calls(calls, 257) == -E2BIG ? 0 : 1;
}

static void
too_many_are_refused(void **state)
{
	(void)state;
	assert_int_equal(in_child(allow_too_many), 0);
}

static int
read_below_proc(void)
{
	int r = sandbox_read_below("/proc");

	if (r < 0)
		return r == -EOPNOTSUPP ? LACKING : 1;
	if (open("/proc/self/stat", O_RDONLY) < 0)
		return 2;
	if (open("/proc/self/comm", O_WRONLY) >= 0 || errno != EACCES)
		return 3;
	if (open("/etc/passwd", O_RDONLY) >= 0 || errno != EACCES)
		return 4;
	if (open("/tmp/sluice-test-sandbox", O_WRONLY | O_CREAT, 0600) >= 0 || errno != EACCES)
		return 5;
	return 0;
}

static void
no_other_file_is_opened(void **state)
{
	int status = in_child(read_below_proc);

	(void)state;
	if (status == LACKING)
		skip();
	assert_int_equal(status, 0);
}

static char room[] = "/tmp/sluice-test-sandbox-XXXXXX";

/* Writes the path of a name in the room; the last one lasts until four more. */
static const char *
in_room(const char *name)
{
	static char paths[4][128];
	static unsigned n;
	char *path = paths[n++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", room, name);
	return path;
}

static int
write_in_one_folder(void)
{
	int files = sandbox_files_begin(false);

	if (files < 0)
		return files == -EOPNOTSUPP ? LACKING : 1;
	if (sandbox_files_allow(files, in_room("own"), SANDBOX_WRITE) < 0 ||
	    sandbox_files_allow(files, in_room("read"), SANDBOX_READ) < 0 ||
	    sandbox_files_allow(files, in_room("sockets"), SANDBOX_REMOVE) < 0 ||
	    sandbox_files_allow(files, in_room("file"), SANDBOX_WRITE) < 0 ||
	    sandbox_files_allow(files, in_room("nothing"), SANDBOX_READ) != -ENOENT || sandbox_files_enforce(files) < 0)
		return 2;
	if (open(in_room("own/new"), O_RDWR | O_CREAT | O_TRUNC, 0600) < 0 || mkdir(in_room("own/folder"), 0700) < 0 ||
	    rename(in_room("own/new"), in_room("own/renamed")) < 0 || unlink(in_room("own/renamed")) < 0 ||
	    rmdir(in_room("own/folder")) < 0)
		return 3;
	if (symlink("/", in_room("own/link")) == 0 || errno != EACCES)
		return 4;
	if (open(in_room("read/there"), O_RDONLY) < 0 || open(in_room("read/there"), O_WRONLY) >= 0 || errno != EACCES)
		return 5;
	if (unlink(in_room("sockets/old")) < 0 || open(in_room("sockets/new"), O_WRONLY | O_CREAT, 0600) >= 0 ||
	    errno != EACCES)
		return 6;
	if (open(in_room("file"), O_RDWR) < 0 || open(room, O_RDONLY) >= 0 || errno != EACCES)
		return 7;
	/* Of what was refused, it is known by whom. */
	if (!sandbox_refuses(room) || sandbox_refuses(in_room("nothing")))
		return 8;
	execl("/bin/true", "true", NULL);
	return errno == EACCES ? 0 : 9;
}

/* The system calls of Landlock are refused, as by the filter of a container that does not list them. */
static int
begin_where_it_is_refused(void)
{
	static const struct sandbox_call calls[] = { { .number = SYS_exit_group } };

	if (sandbox_system_calls(calls, 1) < 0)
		return 1;
	return sandbox_files_begin(false) == -EPERM ? 0 : 2;
}

static void
what_is_refused_is_not_what_the_kernel_lacks(void **state)
{
	(void)state;
	assert_int_equal(in_child(begin_where_it_is_refused), 0);
	assert_string_equal(sandbox_lacks(-EOPNOTSUPP), "this kernel has no Landlock");
	assert_string_equal(sandbox_lacks(-EPERM), "Landlock is refused here, as the seccomp profile of a container may do");
	assert_null(sandbox_lacks(-EACCES));
}

static void
touch(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static void
files_are_allowed_by_what_may_be_done(void **state)
{
	static const char *const folders[] = { "own", "read", "sockets" };
	int status;

	(void)state;
	assert_non_null(mkdtemp(room));
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(mkdir(in_room(folders[i]), 0700), 0);
	touch(in_room("read/there"));
	touch(in_room("sockets/old"));
	touch(in_room("file"));
	status = in_child(write_in_one_folder);
	unlink(in_room("read/there"));
	unlink(in_room("sockets/old"));
	unlink(in_room("file"));
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(rmdir(in_room(folders[i])), 0);
	assert_int_equal(rmdir(room), 0);
	if (status == LACKING)
		skip();
	assert_int_equal(status, 0);
}

/* Binds a TCP socket to a port of this host. Returns 0 or a negative errno. */
static int
bind_to(uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), r;

	r = fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	return r;
}

static int
listen_at_one_port(void)
{
	int files = sandbox_files_begin(false);

	if (files < 0)
		return files == -EOPNOTSUPP ? LACKING : 1;
	if (sandbox_files_allow_listening(files, 0) < 0 || sandbox_files_enforce(files) < 0)
		return 2;
	if (bind_to(0) < 0)
		return 3;
	return bind_to(39465) == -EACCES ? 0 : syscall(SYS_landlock_create_ruleset, NULL, 0, 1) < 4 ? LACKING : 4;
}

static void
one_port_is_listened_at(void **state)
{
	int status = in_child(listen_at_one_port);

	(void)state;
	if (status == LACKING)
		skip();
	assert_int_equal(status, 0);
}

static int
read_below_nothing(void)
{
	int r = sandbox_read_below("/nonexistent");

	return r == -ENOENT ? 0 : r == -EOPNOTSUPP ? LACKING : 1;
}

static void
a_folder_that_is_missing_is_an_error(void **state)
{
	int status = in_child(read_below_nothing);

	(void)state;
	if (status == LACKING)
		skip();
	assert_int_equal(status, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_other_system_call_is_made),
		cmocka_unit_test(a_call_is_allowed_by_its_arguments),
		cmocka_unit_test(what_libraries_can_do_without_is_missing),
		cmocka_unit_test(too_many_are_refused),
		cmocka_unit_test(no_other_file_is_opened),
		cmocka_unit_test(what_is_refused_is_not_what_the_kernel_lacks),
		cmocka_unit_test(files_are_allowed_by_what_may_be_done),
		cmocka_unit_test(one_port_is_listened_at),
		cmocka_unit_test(a_folder_that_is_missing_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
