/* SPDX-License-Identifier: Apache-2.0 */
/* own: what a child uses, and whether it lacks a CPU. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own.h"

static pid_t child;

/* A child that computes until it is killed, and in any case for a minute. */
static int
begin(void **state)
{
	(void)state;
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		alarm(60);
		for (volatile unsigned n = 0;; n++)
			continue;
	}
	return 0;
}

static int
end(void **state)
{
	(void)state;
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	return 0;
}

static void
a_child_that_computes_is_runnable(void **state)
{
	(void)state;
	assert_true(own_child_is_runnable(child));
	while (own_child_cpu_ns(child) == 0)
		usleep(1000);
	assert_true(own_child_is_runnable(child));
}

static void
one_that_does_not_run_is_not(void **state)
{
	siginfo_t stopped;

	(void)state;
	assert_int_equal(kill(child, SIGSTOP), 0);
	assert_int_equal(waitid(P_PID, (id_t)child, &stopped, WSTOPPED | WNOWAIT), 0);
	assert_false(own_child_is_runnable(child));
}

static void
one_that_ended_is_not(void **state)
{
	siginfo_t ended;

	(void)state;
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT), 0);
	assert_false(own_child_is_runnable(child));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_child_that_computes_is_runnable, begin, end),
		cmocka_unit_test_setup_teardown(one_that_does_not_run_is_not, begin, end),
		cmocka_unit_test_setup_teardown(one_that_ended_is_not, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
