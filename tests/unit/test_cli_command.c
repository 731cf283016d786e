/*
 * SPDX-License-Identifier: Apache-2.0
 * command: starts real commands. Each case runs in a process of its own, since command_start() passes stdin
 * and stdout on and leaves signals blocked. tests/integration/test_run_terminal.py tests terminals.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/command.h"

/* In the process of a case: what is wrong, and out. */
#define REQUIRE(claim)								\
	do {									\
		if (!(claim)) {							\
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #claim);	\
			_exit(1);						\
		}								\
	} while (0)

struct seen {
	struct event_base *base;
	int status;
	unsigned exits;
	unsigned befores;
	pid_t after;
	int after_result;	/* what after_fork() returns */
	int interrupted;
	long max_rss;
};

static void
before_fork(void *arg)
{
	((struct seen *)arg)->befores++;
}

static int
after_fork(pid_t pid, void *arg)
{
	struct seen *s = arg;

	REQUIRE(s->befores == 1);
	s->after = pid;
	return s->after_result;
}

static void
on_exit_of_command(int status, const struct rusage *usage, void *arg)
{
	struct seen *s = arg;

	s->status = status;
	s->exits++;
	s->max_rss = usage->ru_maxrss;
	event_base_loopbreak(s->base);
}

static void
on_interrupt(int signo, void *arg)
{
	struct seen *s = arg;

	s->interrupted = signo;
	event_base_loopbreak(s->base);
}

static struct command_inherited inherited;

static int
start_with(struct seen *s, int after_result, const char *const *argv, struct command **ret, bool *is_exec)
{
	struct command_options options = { .argv = (char *const *)argv, .as_root = true,
		.before_fork = before_fork, .after_fork = after_fork, .on_exit = on_exit_of_command,
		.on_interrupt = on_interrupt, .arg = s };

	command_save_inherited(&inherited);
	*s = (struct seen){ .base = event_base_new(), .after_result = after_result };
	return command_start(s->base, &inherited, &options, ret, is_exec);
}

static int
start(struct seen *s, const char *const *argv, struct command **ret, bool *is_exec)
{
	return start_with(s, 0, argv, ret, is_exec);
}

/* Runs one case, which must exit with 0 and print nothing. */
static void
in_a_process(void (*body)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(20);
		body();
		_exit(0);
	}
	assert_true(waitpid(pid, &status, 0) == pid);
	assert_int_equal(status, 0);
}

static void
body_refused(void)
{
	static const char *const argv[] = { "sh", "-c", "kill -KILL $PPID", NULL };
	struct command *c = NULL;
	struct seen s;
	bool is_exec;

	REQUIRE(start_with(&s, -EXDEV, argv, &c, &is_exec) == -EXDEV);
	REQUIRE(c == NULL && !is_exec);
	REQUIRE(s.after > 0 && s.exits == 0);
	REQUIRE(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	event_base_free(s.base);
}

static void
it_does_not_run_where_the_caller_refuses(void **state)
{
	(void)state;
	in_a_process(body_refused);
}

static void
body_exit(void)
{
	static const char *const argv[] = { "sh", "-c", "exit 7", NULL };
	struct command *c = NULL;
	struct seen s;
	bool is_exec;

	REQUIRE(start(&s, argv, &c, &is_exec) == 0);
	REQUIRE(s.after > 0);
	REQUIRE(getpgid(s.after) == getpgrp() || errno == ESRCH);
	event_base_dispatch(s.base);
	REQUIRE(s.exits == 1 && command_exit_status(s.status) == 7);
	REQUIRE(s.max_rss > 0);
	command_free(c);
	REQUIRE(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);	/* no child is left */
	event_base_free(s.base);
}

static void
an_exit_is_reported_once(void **state)
{
	(void)state;
	in_a_process(body_exit);
}

static void
body_no_exec(void)
{
	static const char *const argv[] = { "/no/such/program", NULL };
	static const char *const directory[] = { "/", NULL };
	struct command *c = NULL;
	sigset_t before, after;
	struct seen s;
	bool is_exec = false;
	int flags = fcntl(STDIN_FILENO, F_GETFL);

	sigprocmask(SIG_SETMASK, NULL, &before);
	REQUIRE(start(&s, argv, &c, &is_exec) == -ENOENT && is_exec && c == NULL);
	REQUIRE(start(&s, directory, &c, &is_exec) == -EACCES && is_exec && c == NULL);
	REQUIRE(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	sigprocmask(SIG_SETMASK, NULL, &after);
	for (int signo = 1; signo < 32; signo++)
		REQUIRE(sigismember(&before, signo) == sigismember(&after, signo));
	REQUIRE(fcntl(STDIN_FILENO, F_GETFL) == flags);		/* not given away */
	REQUIRE(s.exits == 0);
}

static void
a_failed_exec_leaves_all_as_it_was(void **state)
{
	(void)state;
	in_a_process(body_no_exec);
}

static void
body_signal(void)
{
	static const char *const argv[] = { "sleep", "15", NULL };
	struct command *c = NULL;
	struct seen s;
	bool is_exec;

	REQUIRE(start(&s, argv, &c, &is_exec) == 0);
	kill(getpid(), SIGUSR1);
	event_base_dispatch(s.base);
	REQUIRE(s.exits == 1 && command_exit_status(s.status) == 128 + SIGUSR1);
	kill(getpid(), SIGTERM);	/* after its end: for us */
	event_base_dispatch(s.base);
	REQUIRE(s.interrupted == SIGTERM && s.exits == 1);
	command_free(c);
}

static void
a_signal_for_us_goes_to_it_and_later_to_the_caller(void **state)
{
	(void)state;
	in_a_process(body_signal);
}

static int64_t
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void
body_no_queue(void)
{
	static const char *const argv[] = { "sleep", "15", NULL };
	struct command *c = NULL;
	int64_t before_ms;
	struct seen s;
	bool is_exec;

	REQUIRE(setrlimit(RLIMIT_SIGPENDING, &(struct rlimit){ 0, 0 }) == 0);
	REQUIRE(start(&s, argv, &c, &is_exec) == 0);
	before_ms = now_ms();
	kill(getpid(), SIGUSR1);
	event_base_dispatch(s.base);
	REQUIRE(command_exit_status(s.status) == 128 + SIGUSR1);
	REQUIRE(now_ms() - before_ms < 1500);
	command_free(c);
}

/* The witness cannot be asked then. */
static void
a_signal_is_passed_on_where_none_can_be_queued(void **state)
{
	(void)state;
	in_a_process(body_no_queue);
}

static void
body_repeated(void)
{
	static const char *const argv[] = { "sleep", "15", NULL };
	pid_t parent = getpid(), sender;
	struct command *c = NULL;
	int64_t before_ms;
	struct seen s;
	bool is_exec;

	REQUIRE(start(&s, argv, &c, &is_exec) == 0);
	before_ms = now_ms();
	sender = fork();
	for (int i = 0; i < 300 && sender == 0; i++) {
		kill(parent, SIGUSR1);
		usleep(10000);
	}
	if (sender == 0)
		_exit(0);
	event_base_dispatch(s.base);
	REQUIRE(command_exit_status(s.status) == 128 + SIGUSR1);
	REQUIRE(now_ms() - before_ms < 1500);
	kill(sender, SIGKILL);
	command_free(c);
}

static void
a_signal_that_is_repeated_is_passed_on_meanwhile(void **state)
{
	(void)state;
	in_a_process(body_repeated);
}

static void
body_own_fds(void)
{
	/* sh keeps what it inherits: 7 must be there, 8 not. */
	static const char *const argv[] = { "sh", "-c",
		"test -e /proc/self/fd/7 && test ! -e /proc/self/fd/8 && test -e /dev/fd/0", NULL };
	struct command_options options = { .on_exit = on_exit_of_command, .as_root = true };
	struct seen s = { 0 };
	struct command *c = NULL;
	bool is_exec;

	for (int fd = 3; fd < 64; fd++)
		close(fd);
	s.base = event_base_new();
	REQUIRE(dup2(STDERR_FILENO, 7) == 7);
	command_save_inherited(&inherited);
	REQUIRE(inherited.n_fds >= 1);
	REQUIRE(dup2(STDERR_FILENO, 8) == 8);	/* of a library that forgot O_CLOEXEC */
	options.argv = (char *const *)argv;
	options.arg = &s;
	/* the loop's own fds were open before: not what a main would do */
	inherited.n_fds = 1;
	inherited.fds[0] = 7;
	REQUIRE(command_start(s.base, &inherited, &options, &c, &is_exec) == 0);
	REQUIRE(fcntl(7, F_GETFD) < 0);		/* given away */
	REQUIRE(fcntl(8, F_GETFD) >= 0);
	event_base_dispatch(s.base);
	REQUIRE(s.status == 0);
	command_free(c);
}

static void
it_gets_the_inherited_fds_and_none_of_ours(void **state)
{
	(void)state;
	in_a_process(body_own_fds);
}

static void
body_closed_stdin(void)
{
	static const char *const argv[] = { "sh", "-c", "test ! -e /proc/self/fd/0", NULL };
	struct command *c = NULL;
	struct seen s;
	bool is_exec;

	close(STDIN_FILENO);
	REQUIRE(start(&s, argv, &c, &is_exec) == 0);
	event_base_dispatch(s.base);
	REQUIRE(s.status == 0);
	command_free(c);
}

static void
a_closed_stdin_stays_closed(void **state)
{
	(void)state;
	in_a_process(body_closed_stdin);
}

static void
exec_errors_are_those_of_env(void **state)
{
	(void)state;
	assert_int_equal(command_exec_status(ENOENT), 127);
	assert_int_equal(command_exec_status(-ENOENT), 127);
	assert_int_equal(command_exec_status(-EACCES), 126);
	assert_int_equal(command_exec_status(ENOEXEC), 126);
}

static void
a_status_is_as_a_shell_shows_it(void **state)
{
	(void)state;
	assert_int_equal(command_exit_status(0), 0);
	assert_int_equal(command_exit_status(3 << 8), 3);
	assert_int_equal(command_exit_status(SIGKILL), 137);
	assert_int_equal(command_exit_status(SIGSEGV | 0x80), 139);	/* core dumped */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_exit_is_reported_once),
		cmocka_unit_test(it_does_not_run_where_the_caller_refuses),
		cmocka_unit_test(a_failed_exec_leaves_all_as_it_was),
		cmocka_unit_test(a_signal_for_us_goes_to_it_and_later_to_the_caller),
		cmocka_unit_test(a_signal_is_passed_on_where_none_can_be_queued),
		cmocka_unit_test(a_signal_that_is_repeated_is_passed_on_meanwhile),
		cmocka_unit_test(it_gets_the_inherited_fds_and_none_of_ours),
		cmocka_unit_test(a_closed_stdin_stays_closed),
		cmocka_unit_test(exec_errors_are_those_of_env),
		cmocka_unit_test(a_status_is_as_a_shell_shows_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
