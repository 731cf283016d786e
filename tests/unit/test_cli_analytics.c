/*
 * SPDX-License-Identifier: Apache-2.0
 * analytics: finds and runs real files, shell scripts that print their arguments.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/analytics.h"
#include "cli/cli.h"
#include "cli/command.h"

static char room[] = "/tmp/test-analytics-XXXXXX";

static const char *
at(const char *name)
{
	static char path[4][PATH_MAX];
	static unsigned turn;

	turn = (turn + 1) % 4;
	snprintf(path[turn], PATH_MAX, "%s/%s", room, name);
	return path[turn];
}

static void
script(const char *path, const char *text, mode_t mode)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fprintf(f, "#!/bin/sh\n%s\n", text);
	fclose(f);
	assert_int_equal(0, chmod(path, mode));
}

static void
read_all(const char *path, char *ret, size_t size)
{
	FILE *f = fopen(path, "r");
	size_t n;

	assert_non_null(f);
	n = fread(ret, 1, size - 1, f);
	ret[n] = '\0';
	fclose(f);
}

static int
set_up(void **state)
{
	(void)state;
	strcpy(room + strlen(room) - 6, "XXXXXX");
	if (mkdtemp(room) == NULL || mkdir(at("first"), 0755) < 0 || mkdir(at("second"), 0755) < 0)
		return -1;
	return 0;
}

static int
tear_down(void **state)
{
	char command[PATH_MAX + 16];

	(void)state;
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	setenv("PATH", "/usr/bin:/bin", 1);
	snprintf(command, sizeof(command), "rm -rf %s", room);
	return system(command);
}

static void
path_is(const char *format)
{
	char path[3 * PATH_MAX];

	snprintf(path, sizeof(path), format, room, room);
	setenv("PATH", path, 1);
}

static void
finds_the_first_executable_file_in_path(void **state)
{
	char found[PATH_MAX];

	(void)state;
	script(at("second/sluice-tune"), "", 0755);
	path_is("%s/first:%s/second");
	assert_true(analytics_find("sluice-tune", found));
	assert_string_equal(at("second/sluice-tune"), found);

	script(at("first/sluice-tune"), "", 0755);
	assert_true(analytics_find("sluice-tune", found));
	assert_string_equal(at("first/sluice-tune"), found);
}

static void
passes_over_what_cannot_be_run(void **state)
{
	char found[PATH_MAX];

	(void)state;
	script(at("first/sluice-none"), "", 0644);
	assert_int_equal(0, mkdir(at("second/sluice-none"), 0755));
	path_is("%s/first:%s/second");
	assert_false(analytics_find("sluice-none", found));
	setenv("PATH", "", 1);
	assert_false(analytics_find("sluice-none", found));
	unsetenv("PATH");
	assert_false(analytics_find("sluice-none", found));
}

static void
takes_nothing_from_where_the_user_stands(void **state)
{
	char found[PATH_MAX], before[PATH_MAX];

	(void)state;
	script(at("first/sluice-none"), "", 0755);
	assert_non_null(getcwd(before, sizeof(before)));
	assert_int_equal(0, chdir(at("first")));
	setenv("PATH", ":.:../first", 1);
	assert_false(analytics_find("sluice-none", found));
	assert_int_equal(0, chdir(before));
}

static void
finds_what_lies_beside_this_program(void **state)
{
	char own[PATH_MAX], beside[PATH_MAX + 32], found[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);

	(void)state;
	assert_true(n > 0);
	own[n] = '\0';
	*strrchr(own, '/') = '\0';
	snprintf(beside, sizeof(beside), "%s/sluice-beside", own);
	script(beside, "", 0755);
	path_is("%s/first:%s/second");
	assert_true(analytics_find("sluice-beside", found));
	assert_string_equal("sluice-beside", strrchr(found, '/') + 1);
	assert_int_equal(0, access(found, X_OK));
	unlink(beside);
	assert_false(analytics_find("sluice-beside", found));
}

static int
report(const char *tune, bool as_root)
{
	struct analytics_report o = { .tune = tune,
		.lake = "-the lake",
		.file = at("page.html"),
		.as_root = as_root };
	struct command_inherited inherited = { 0 };

	sigprocmask(SIG_SETMASK, NULL, &inherited.mask);
	sigemptyset(&inherited.ignored);
	assert_int_equal(0, analytics_report_begin(&o, &inherited));
	return analytics_report_write(&o, "--run");
}

static void
names_lake_run_and_file(void **state)
{
	char said[4096], expected[4096];

	(void)state;
	script(at("tune"), "for a; do echo \"$a\"; done >\"$6\"", 0755);
	assert_int_equal(0, report(at("tune"), true));
	read_all(at("page.html"), said, sizeof(said));
	snprintf(expected, sizeof(expected),
	    "--lake\n-the lake\n--format\nhtml\n--output\n%s\n--\n--run\n", at("page.html"));
	assert_string_equal(expected, said);
}

static void
nothing_is_run_without_a_run(void **state)
{
	struct command_inherited inherited = { 0 };
	struct analytics_report o = { .tune = at("tune"), .lake = "lake", .file = at("none.html"), .as_root = true };

	(void)state;
	script(at("tune"), "echo >\"$6\"", 0755);
	analytics_report_abandon(&o);
	assert_int_equal(0, analytics_report_begin(&o, &inherited));
	assert_int_equal(0, kill(o.pid, SIGSTOP));	/* with all of a terminal, of which only sluice is continued */
	analytics_report_abandon(&o);
	assert_int_equal(-1, waitpid(-1, NULL, WNOHANG));
	assert_int_equal(-1, access(at("none.html"), F_OK));
}

/* What comes before the run is over is for the run. */
static void
no_signal_before_ends_or_stops_it(void **state)
{
	struct command_inherited inherited = { 0 };
	struct analytics_report o = { .tune = at("tune"), .lake = "lake", .file = at("page.html"), .as_root = true };

	(void)state;
	script(at("tune"), "echo done >\"$6\"", 0755);
	assert_int_equal(0, analytics_report_begin(&o, &inherited));
	kill(o.pid, SIGINT);
	kill(o.pid, SIGTERM);
	kill(o.pid, SIGHUP);
	kill(o.pid, SIGSTOP);
	assert_int_equal(0, analytics_report_write(&o, "run"));
}

static void
a_failure_is_reported_and_survived(void **state)
{
	(void)state;
	script(at("tune"), "exit 3", 0755);
	assert_int_equal(-1, report(at("tune"), true));
	script(at("tune"), "kill -KILL $$", 0755);
	assert_int_equal(-1, report(at("tune"), true));
	assert_int_equal(-1, report(at("not there"), true));
}

static void
it_is_sudos_user_who_writes(void **state)
{
	char said[256];

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(0, chmod(room, 0777));
	script(
	    at("tune"), "id -u >\"$6\"; id -g >>\"$6\"; echo \"${SUDO_UID-none}\" >>\"$6\"", 0755);
	setenv("PATH", "/usr/bin:/bin", 1);
	setenv("SUDO_UID", "65534", 1);
	setenv("SUDO_GID", "65534", 1);
	assert_int_equal(0, report(at("tune"), false));
	read_all(at("page.html"), said, sizeof(said));
	assert_string_equal("65534\n65534\nnone\n", said);
	unlink(at("page.html"));
	assert_int_equal(0, report(at("tune"), true));
	read_all(at("page.html"), said, sizeof(said));
	assert_string_equal("0\n0\n65534\n", said);
}

/* A signal to this process during the report ends the report, not this process. */
static void
a_signal_is_passed_on(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	script(at("tune"), "kill -TERM $PPID; exec sleep 20", 0755);
	setenv("PATH", "/usr/bin:/bin", 1);
	pid = fork();
	if (pid == 0) {
		alarm(10);
		_exit(report(at("tune"), true) == -1 ? 0 : 1);
	}
	assert_int_equal(pid, waitpid(pid, &status, 0));
	assert_true(WIFEXITED(status));
	assert_int_equal(0, WEXITSTATUS(status));
}

/* `sluice tune` gets its options unchanged, and its help shows the command that called it. */
static void
a_command_knows_how_it_was_called(void **state)
{
	char said[256], expected[PATH_MAX];
	int status;
	pid_t pid;

	(void)state;
	snprintf(expected, sizeof(expected), "echo \"$SLUICE_COMMAND|$*\" >%s", at("said"));
	script(at("first/sluice-sweep"), expected, 0755);
	path_is("%s/first:%s/second");
	pid = fork();
	if (pid == 0) {
		char *argv[] = { (char *)"sweep", (char *)"--by", (char *)"a b", NULL };

		_exit(cli_sweep(3, argv));
	}
	assert_int_equal(pid, waitpid(pid, &status, 0));
	assert_int_equal(0, status);
	read_all(at("said"), said, sizeof(said));
	assert_string_equal("sluice sweep|--by a b\n", said);
}

/* execve(2) fails with ENOENT for a file that exists, too. */
static void
a_missing_interpreter_is_named(void **state)
{
	char said[1024];
	int status;
	FILE *f;
	pid_t pid;

	(void)state;
	f = fopen(at("first/sluice-tune"), "w");
	assert_non_null(f);
	fputs("#!/no/such/interpreter\n", f);
	fclose(f);
	assert_int_equal(0, chmod(at("first/sluice-tune"), 0755));
	path_is("%s/first:%s/second");
	pid = fork();
	if (pid == 0) {
		char *argv[] = { (char *)"tune", NULL };

		if (freopen(at("said"), "w", stderr) == NULL)
			_exit(1);
		status = cli_tune(1, argv);
		fflush(stderr);
		_exit(status);
	}
	assert_int_equal(pid, waitpid(pid, &status, 0));
	assert_int_equal(127, WEXITSTATUS(status));
	read_all(at("said"), said, sizeof(said));
	assert_non_null(strstr(said, "first/sluice-tune: the interpreter that its first line names does not exist; install "));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    finds_the_first_executable_file_in_path, set_up, tear_down),
		cmocka_unit_test_setup_teardown(passes_over_what_cannot_be_run, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
		    takes_nothing_from_where_the_user_stands, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
		    finds_what_lies_beside_this_program, set_up, tear_down),
		cmocka_unit_test_setup_teardown(names_lake_run_and_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nothing_is_run_without_a_run, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_signal_before_ends_or_stops_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_failure_is_reported_and_survived, set_up, tear_down),
		cmocka_unit_test_setup_teardown(it_is_sudos_user_who_writes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_signal_is_passed_on, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
		    a_command_knows_how_it_was_called, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_missing_interpreter_is_named, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
