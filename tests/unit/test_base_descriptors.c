/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors: none is inherited, also by a process of a kernel that cannot close them at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptors.h"

#define FIRST 5
#define FAR 900			/* below the limit of 1024 that a shell has */

/* As before Linux 5.9. Returns whether the kernel does so. */
static bool
without_close_range(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0 &&
	    syscall(SYS_close_range, FAR, FAR, 0) < 0 && errno == ENOSYS;
}

static bool
is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* Exits with 0 if all from FIRST on are closed, and none before. */
static _Noreturn void
close_them(bool is_old)
{
	bool is_right = dup2(0, FIRST - 1) >= 0 && dup2(0, FIRST) >= 0 && dup2(0, FAR) >= 0;

	is_right = is_right && (!is_old || without_close_range()) && descriptors_close_from(FIRST) == 0;
	_exit(is_right && is_open(FIRST - 1) && !is_open(FIRST) && !is_open(FAR) ? 0 : 1);
}

static void
all_are_closed(void **state)
{
	(void)state;
	for (int is_old = 0; is_old < 2; is_old++) {
		pid_t pid = fork();
		int status;

		assert_true(pid >= 0);
		if (pid == 0)
			close_them(is_old);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_are_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
