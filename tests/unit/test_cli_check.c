/* SPDX-License-Identifier: Apache-2.0 */
/* sluice check: configuration and rules together, its options, and its exit status. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/cli.h"
#include "tree.h"

#define ARGV_MAX 16

/* Standard output and error as one text, which the caller frees. */
static char *
run(const char *const *args, int *ret_status)
{
	char *argv[ARGV_MAX] = { NULL }, *text = calloc(1, 65536);
	size_t len = 0;
	int fds[2], argc = 1;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int status;

		argv[0] = strdup("check");
		for (; args[argc - 1] != NULL; argc++)
			argv[argc] = strdup(args[argc - 1]);
		dup2(fds[1], STDOUT_FILENO);
		dup2(fds[1], STDERR_FILENO);
		status = cli_check(argc, argv);
		fflush(stdout);
		_exit(status);
	}
	close(fds[1]);
	while ((n = read(fds[0], text + len, 65535 - len)) > 0)
		len += (size_t)n;
	close(fds[0]);
	assert_int_equal(waitpid(pid, ret_status, 0), pid);
	assert_true(WIFEXITED(*ret_status));
	*ret_status = WEXITSTATUS(*ret_status);
	return text;
}

/* The output contains want. */
static void
says(const char *const *args, int want_status, const char *want)
{
	int status;
	char *text = run(args, &status);

	if (status != want_status || strstr(text, want) == NULL)
		fail_msg("status %d, and no '%s' in\n%s", status, want, text);
	free(text);
}

#define ARGS(...) (const char *[]){ __VA_ARGS__, NULL }

struct fixture {
	struct tree t;
	char config[128];
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char text[256];

	tree_init(&f->t);
	snprintf(text, sizeof(text), "rules: %s\n", tree_path(&f->t, "rules.d"));
	tree_write(&f->t, "sluice.yaml", text);
	snprintf(f->config, sizeof(f->config), "%s", tree_path(&f->t, "sluice.yaml"));
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	tree_done(&f->t);
	free(f);
	return 0;
}

static void
it_counts_the_rules_of_each_kind(void **state)
{
	struct fixture *f = *state;
	char want[256];

	snprintf(want, sizeof(want), "%s: not there, the shipped rules apply, ", tree_path(&f->t, "rules.d"));
	says(ARGS("-c", f->config), 0, want);
	tree_write(&f->t, "rules.d/a.yaml", "include: [{exe: a}, {exe: b}]\n");
	tree_write(&f->t, "rules.d/exclude.yaml", "exclude: [{exe: c}]\n");
	snprintf(want, sizeof(want), "%s: ok, ", tree_path(&f->t, "rules.d"));
	says(ARGS("-c", f->config), 0, want);
	says(ARGS("-c", f->config), 0, " rules: 2 include, 1 exclude, ");
}

static void
an_error_in_rules_is_reported_with_file_and_line(void **state)
{
	struct fixture *f = *state;
	char want[256];

	tree_write(&f->t, "rules.d/a.yaml", "exclude:\n  - exee: a\n");
	snprintf(want, sizeof(want), "%s:2:5: no condition 'exee': did you mean 'exe'?\n",
	    tree_path(&f->t, "rules.d/a.yaml"));
	says(ARGS("-c", f->config), 2, want);
	says(ARGS("-c", f->config, "--explain", "--", "a"), 2, want);
	says(ARGS("-c", f->config, "--dump"), 2, want);
}

/* The agent may run on another host, where the account exists. */
static void
an_account_that_is_not_here_is_a_warning(void **state)
{
	struct fixture *f = *state;
	char text[256], want[512];

	snprintf(text, sizeof(text), "rules: %s\nuser: no-such-account\n", tree_path(&f->t, "rules.d"));
	tree_write(&f->t, "sluice.yaml", text);
	snprintf(want, sizeof(want), "%s:2:1: user: warning: on this host there is no account 'no-such-account' to run as: "
	    "create it with `useradd --system ", f->config);
	says(ARGS("-c", f->config), 0, want);
	says(ARGS("-c", f->config), 0, "sluice.yaml: ok, 0 drop-ins\n");
	says(ARGS("-c", f->config, "--dump"), 0, want);
	says(ARGS("-c", f->config, "--dump"), 0, "user: \"no-such-account\"");
}

static void
it_explains_a_command_line(void **state)
{
	struct fixture *f = *state;

	tree_write(&f->t, "rules.d/a.yaml", "exclude: [{name: mine, exe: a, uid: 12, cwd: /w/, cgroup: /g}]\n");
	says(ARGS("-c", f->config, "--explain", "--exe", "/x/a", "--uid", "12", "--cwd", "/w", "--cgroup", "/g/h", "--",
	    "a", "-c", "--dump"), 0, "followed     no: exclude, by a.yaml:1 (mine)");
	says(ARGS("-c", f->config, "--explain", "--exe", "/x/a", "--uid", "13", "--cwd", "/w", "--cgroup", "/g/h", "--",
	    "a"), 0, "followed     yes: no exclude rule holds");
	says(ARGS("-c", f->config, "--explain", "--exe", "/x/a", "--uid", "12", "--cwd", "/w", "--cgroup", "", "--",
	    "a"), 0, "followed     yes: no exclude rule holds");
	/* Its options are its own, without -- too. */
	says(ARGS("-c", f->config, "--explain", "--exe", "/x/a", "a", "-c", "--nonsense"), 0,
	    "argv         a -c --nonsense\n");
	says(ARGS("-c", f->config, "--explain", "--uid", "root", "--", "a"), 0, "uid          0\n");
}

static void
wrong_usage_is_reported(void **state)
{
	struct fixture *f = *state;

	says(ARGS("-c", f->config, "--explain"), 2, "--explain needs a command line: -- COMMAND [ARG...]\n");
	says(ARGS("-c", f->config, "--explain", "--dump", "--", "a"), 2, "either --dump or --explain\n");
	says(ARGS("-c", f->config, "--cwd", "/w"), 2, "--cwd needs --explain\n");
	says(ARGS("-c", f->config, "a"), 2, "takes no 'a'; see `sluice check --help`\n");
	says(ARGS("--explain", "--uid", "no-such-user", "--", "a"), 2,
	    "no user 'no-such-user': give a number or a name\n");
	says(ARGS("--help"), 0, "--explain");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_counts_the_rules_of_each_kind, setup, teardown),
		cmocka_unit_test_setup_teardown(an_error_in_rules_is_reported_with_file_and_line, setup, teardown),
		cmocka_unit_test_setup_teardown(an_account_that_is_not_here_is_a_warning, setup, teardown),
		cmocka_unit_test_setup_teardown(it_explains_a_command_line, setup, teardown),
		cmocka_unit_test_setup_teardown(wrong_usage_is_reported, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
