/*
 * SPDX-License-Identifier: Apache-2.0
 * sandbox: what a child can still do in one. No root.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/sandbox.h"

enum {
	LACKING = 77,		/* a child's status: the kernel has no Landlock */
};

/* Runs a function in a child without new privileges, and returns its status. */
static int
in_child(int (*run)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		syscall(SYS_exit_group, run());	/* what sanitizers do in _exit(2) is refused */
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int
allow_some(void)
{
	static const int calls[] = { SYS_getppid, SYS_exit_group };

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
allow_too_many(void)
{
	static const int calls[100];

	return sandbox_system_calls(calls, 100) == -E2BIG ? 0 : 1;
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
		cmocka_unit_test(too_many_are_refused),
		cmocka_unit_test(no_other_file_is_opened),
		cmocka_unit_test(a_folder_that_is_missing_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
