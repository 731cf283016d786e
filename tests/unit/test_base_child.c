/* SPDX-License-Identifier: Apache-2.0 */
/* child: what a program prints and how it ends come back, and none outlives its limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"

/* Runs a script of the shell. */
static int
run(const char *script, struct child_options o, struct bytes *out, int *status)
{
	char *const argv[] = { (char *)"sh", (char *)"-c", (char *)script, NULL };

	o.path = "/bin/sh";
	o.argv = argv;
	if (o.timeout_ms == 0)
		o.timeout_ms = 20000;
	if (o.output_max == 0)
		o.output_max = 1 << 20;
	return child_run(&o, out, status);
}

static void
output_and_status_come_back(void **state)
{
	struct bytes out = { 0 };
	int status = -1;

	(void)state;
	assert_int_equal(run("echo one; echo two; exit 3", (struct child_options){ 0 }, &out, &status), 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 3);
	assert_string_equal((char *)out.data, "one\ntwo\n");
	assert_int_equal(out.len, 8);
	/* A second one is appended. */
	assert_int_equal(run("kill -9 $$", (struct child_options){ 0 }, &out, &status), 0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_string_equal((char *)out.data, "one\ntwo\n");
	bytes_done(&out);
	assert_int_equal(run("echo dropped", (struct child_options){ 0 }, NULL, &status), 0);
	assert_int_equal(run(":", (struct child_options){ 0 }, &out, &status), 0);
	assert_string_equal((char *)out.data, "");
	bytes_done(&out);
}

static void
a_program_that_is_missing_is_one_that_was_not_executed(void **state)
{
	char *const argv[] = { (char *)"x", NULL };
	const struct child_options o = { .path = "/nonexistent", .argv = argv, .timeout_ms = 20000 };
	int status = -1;

	(void)state;
	assert_int_equal(child_run(&o, NULL, &status), 0);
	assert_int_equal(WEXITSTATUS(status), CHILD_NOT_EXECUTED);
}

static void
it_has_no_input_and_default_signals(void **state)
{
	struct bytes out = { 0 };
	int status;

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	assert_int_equal(run("cat; grep SigIgn /proc/self/status; ls /proc/self/fd | wc -l", (struct child_options){ 0 }, &out,
	    &status), 0);
	assert_string_equal((char *)out.data, "SigIgn:\t0000000000000000\n4\n");	/* the fourth is ls's own */
	bytes_done(&out);
}

static void
its_environment_is_ours_or_the_one_that_is_given(void **state)
{
	char *const environment[] = { (char *)"A=1", NULL };
	struct bytes out = { 0 };
	int status;

	(void)state;
	assert_int_equal(run("echo $A$HOME", (struct child_options){ .environment = environment }, &out, &status), 0);
	assert_string_equal((char *)out.data, "1\n");
	bytes_done(&out);
}

static void
one_that_takes_too_long_is_killed_with_its_children(void **state)
{
	struct bytes out = { 0 };
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(run("sleep 1000 & echo $!; wait", (struct child_options){ .timeout_ms = 300 }, &out, &status),
	    -ETIMEDOUT);
	assert_int_equal(bytes_append(&out, "", 1), 0);
	pid = (pid_t)strtol((char *)out.data, NULL, 10);
	assert_true(pid > 0);
	/* Another reaps it. */
	for (int i = 0; i < 1000 && kill(pid, 0) == 0; i++)
		usleep(10000);
	assert_int_equal(kill(pid, 0), -1);
	bytes_done(&out);
}

static void
one_that_prints_too_much_is_killed(void **state)
{
	struct bytes out = { 0 };
	int status;

	(void)state;
	assert_int_equal(run("while :; do echo 0123456789; done", (struct child_options){ .output_max = 100 }, &out, &status),
	    -EFBIG);
	assert_true(out.len <= 100);
	bytes_done(&out);
}

static void
one_is_killed_when_we_are_to_stop(void **state)
{
	static volatile sig_atomic_t stop = SIGTERM;
	int status;

	(void)state;
	assert_int_equal(run("sleep 1000", (struct child_options){ .stop = &stop }, NULL, &status), -EINTR);
}

static void
children_that_keep_the_output_open_are_not_waited_for(void **state)
{
	int64_t begin = clock_ms(CLOCK_MONOTONIC);
	struct bytes out = { 0 };
	int status;

	(void)state;
	assert_int_equal(run("sleep 15 & echo x", (struct child_options){ 0 }, &out, &status), 0);
	assert_true(clock_ms(CLOCK_MONOTONIC) - begin < 14000);
	assert_string_equal((char *)out.data, "x\n");
	bytes_done(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(output_and_status_come_back),
		cmocka_unit_test(a_program_that_is_missing_is_one_that_was_not_executed),
		cmocka_unit_test(it_has_no_input_and_default_signals),
		cmocka_unit_test(its_environment_is_ours_or_the_one_that_is_given),
		cmocka_unit_test(one_that_takes_too_long_is_killed_with_its_children),
		cmocka_unit_test(one_that_prints_too_much_is_killed),
		cmocka_unit_test(one_is_killed_when_we_are_to_stop),
		cmocka_unit_test(children_that_keep_the_output_open_are_not_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
