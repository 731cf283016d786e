/*
 * SPDX-License-Identifier: Apache-2.0
 * child_kit: runs a part of a test in a process of its own, which it may confine.
 */
#ifndef SLUICE_TESTS_UNIT_CHILD_KIT_H
#define SLUICE_TESTS_UNIT_CHILD_KIT_H

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs a function in a child without new privileges, and returns its status. */
static inline int
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

#endif
