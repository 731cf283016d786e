/* SPDX-License-Identifier: Apache-2.0 */
/* live_process: a running process read from /proc, sent, and parsed again for the rules. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/arena.h"
#include "explain/live_process.h"
#include "control/control.h"

static pid_t child;
static struct arena arena;

/* Until the child's first argument is this; for ten seconds at most. */
static void
waits_for_name(const char *name)
{
	char path[32], got[64] = "";

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)child);
	for (int i = 0; i < 1000 && strcmp(got, name) != 0; i++) {
		int fd = open(path, O_RDONLY);
		ssize_t n = fd >= 0 ? read(fd, got, sizeof(got) - 1) : 0;

		got[n > 0 ? n : 0] = '\0';
		if (fd >= 0)
			close(fd);
		usleep(10000);
	}
	assert_string_equal(got, name);
}

/*
 * argv[0] is what runs, from /tmp, with a secret in its environment. On return its first argument is name: an exec sets
 * the arguments last, well after it has closed what is to be closed and changed the name of the process.
 */
static void
start(const char *const *argv, const char *name)
{
	const char *const env[] = { "SECRET=env-canary", NULL };

	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (chdir("/tmp") == 0)
			execve(argv[0], (char *const *)argv, (char *const *)env);
		_exit(127);
	}
	waits_for_name(name);
}

static int
teardown(void **state)
{
	(void)state;
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	child = 0;
	arena_done(&arena);
	return 0;
}

static void
what_proc_tells_is_sent_redacted_with_those_above(void **state)
{
	struct live_process p;
	char self[4096] = "", *dump;
	json_t *j;

	(void)state;
	start((const char *[]){ "/usr/bin/env", "sleep", "100", NULL }, "sleep");	/* env execs once more */
	j = live_process_read("/proc", (uint32_t)child);
	assert_non_null(j);
	dump = json_dumps(j, JSON_COMPACT);
	assert_null(strstr(dump, "env-canary"));
	free(dump);
	assert_int_equal(arena_init(&arena, 65536), 0);
	assert_true(live_process_parse(j, (uint32_t)child, &arena, &p));
	assert_string_equal(strrchr(p.candidate[0].exe, '/'), "/sleep");
	assert_string_equal(p.candidate[0].comm, "sleep");
	assert_string_equal(p.candidate[0].cwd, "/tmp");
	assert_int_equal(p.candidate[0].argc, 2);
	assert_string_equal(p.candidate[0].argv[1], "100");
	assert_true(p.candidate[0].has_uid);
	assert_int_equal(p.candidate[0].uid, getuid());
	assert_true(p.candidate[0].cgroup != NULL || p.candidate[0].cgroup_v1 != NULL);
	assert_true(p.n >= 2);
	assert_int_equal(p.pid[1], getpid());
	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	assert_ptr_equal(p.candidate[0].parent, &p.candidate[1]);
	assert_string_equal(p.candidate[1].exe, self);
	json_decref(j);
}

static void
arguments_are_redacted_and_cut(void **state)
{
	static char big[6000];
	struct live_process p;
	char *dump;
	json_t *j;

	(void)state;
	memset(big, '"', sizeof(big) - 1);	/* the dearest in JSON */
	start((const char *[]){ "/bin/sh", "-c", "kill -STOP $$", "--password=hunter2", "\xff\x01", big, big, big, NULL },
	      "/bin/sh");
	j = live_process_read("/proc", (uint32_t)child);
	assert_non_null(j);
	dump = json_dumps(j, JSON_COMPACT);
	assert_null(strstr(dump, "hunter2"));
	assert_true(strlen(dump) < CONTROL_LINE_MAX - 1024);
	free(dump);
	assert_int_equal(arena_init(&arena, 65536), 0);
	assert_true(live_process_parse(j, (uint32_t)child, &arena, &p));
	assert_string_equal(p.candidate[0].argv[3], "--password=***");
	assert_string_equal(p.candidate[0].argv[4], "\\xff\x01");
	assert_int_equal(p.candidate[0].argc, 7);		/* the last was too much */
	json_decref(j);
}

static void
what_is_no_process_is_none(void **state)
{
	struct live_process p;
	pid_t pid;
	json_t *j;

	(void)state;
	assert_null(live_process_read("/proc", 4194303));
	assert_null(live_process_read("/no-such-folder", (uint32_t)getpid()));
	start((const char *[]){ "/bin/sleep", "100", NULL }, "/bin/sleep");
	pid = child;
	teardown(NULL);
	assert_null(live_process_read("/proc", (uint32_t)pid));

	assert_int_equal(arena_init(&arena, 65536), 0);
	assert_false(live_process_parse(NULL, 1, &arena, &p));
	j = json_pack("{si ss s[s i]}", "pid", 7, "exe", "/bin/x", "argv", "x", 3);
	assert_false(live_process_parse(j, 7, &arena, &p));
	json_array_remove(json_object_get(j, "argv"), 1);
	assert_true(live_process_parse(j, 7, &arena, &p));
	assert_false(live_process_parse(j, 8, &arena, &p));
	assert_int_equal(p.n, 1);
	assert_null(p.candidate[0].cwd);
	assert_false(p.candidate[0].has_uid);
	json_object_set_new(j, "argv", json_integer(1));
	assert_false(live_process_parse(j, 7, &arena, &p));
	json_decref(j);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(what_proc_tells_is_sent_redacted_with_those_above, teardown),
		cmocka_unit_test_teardown(arguments_are_redacted_and_cut, teardown),
		cmocka_unit_test_teardown(what_is_no_process_is_none, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
