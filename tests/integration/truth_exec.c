/*
 * SPDX-License-Identifier: Apache-2.0
 * truth_exec: cases about exec: arguments, names, scripts, searches, memfd.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "truth.h"

extern char **environ;

/* Forks and execs path with this argv; TRUTH_OPS in its environment: the operations of this binary. */
static pid_t
start_path(const char *path, char *const *argv, const char *ops, int index)
{
	char text[16];
	pid_t pid = fork();

	if (pid < 0)
		fail("fork");
	if (pid == 0) {
		setenv("TRUTH_OPS", ops, 1);
		snprintf(text, sizeof(text), "%d", index);
		setenv("TRUTH_IMAGE", text, 1);
		execve(path, argv, environ);
		_exit(121);
	}
	return pid;
}

/* Does the same and reaps it, with the expected values for program 0. */
static void
run_path(const char *path, char *const *argv, const char *ops, const struct want *want)
{
	struct child c = { .name = case_name, .programs = 1, .oom_killed = -1 };

	c.pid = start_path(path, argv, ops, 0);
	c.wants = want;
	c.n_wants = want ? 1 : 0;
	reap(&c);
}

static void
write_script(const char *name, const char *text)
{
	int fd = open(room_path(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		fail(name);
	close(fd);
}

void
case_argv_bytes(void)
{
	char *const argv[] = { (char *)"truth", (char *)"new\nline", (char *)"tab\there", (char *)"quote\"'`",
		(char *)"back\\slash", (char *)"\\x41 \\n \\\\", (char *)"bad\xff\xfe\x80utf8", (char *)"cut\xe2\x82",
		(char *)"over\xc0\xaf", (char *)"surrogate\xed\xa0\x80", (char *)"\xe2\x82\xac \xf0\x9f\xa7\xac",
		(char *)"", (char *)"\x01\x1f\x7f", (char *)" blanks  ", NULL };
	const struct want want = { .exe = self_path, .argv = argv };

	run_path(self_path, argv, "spin 1", &want);
}

void
case_argv_100k(void)
{
	static char big[100 * 1024 + 1];
	char *const argv[] = { (char *)"truth", big, (char *)"after", NULL };
	const struct want want = { .exe = self_path, .argv = argv };

	for (size_t i = 0; i < sizeof(big) - 1; i++)
		big[i] = "abcdefghij klmnopqrst"[i % 21];
	run_path(self_path, argv, "exit 0", &want);
}

void
case_argv_3000(void)
{
	static char words[3000][8];
	static char *argv[3002];
	const struct want want = { .exe = self_path, .argv = argv };

	argv[0] = (char *)"truth";
	for (int i = 0; i < 3000; i++) {
		snprintf(words[i], sizeof(words[i]), "a%d", i);
		argv[i + 1] = words[i];
	}
	run_path(self_path, argv, "exit 0", &want);
}

void
case_argc_0(void)
{
	char *const argv[] = { NULL };

	run_path(self_path, argv, "spin 1 exit 3", NULL);
}

void
case_long_name(void)
{
	char *const argv[] = { (char *)"short", NULL };

	copy_self("a-program-whose-name-is-longer-than-fifteen");
	run_path(room_path("a-program-whose-name-is-longer-than-fifteen"), argv, "spin 1", NULL);
}

void
case_odd_name(void)
{
	char *const argv[] = { (char *)"odd", NULL };

	copy_self("odd \xff\n\"\\");
	run_path(room_path("odd \xff\n\"\\"), argv, "spin 1", NULL);
}

/* The file of the program is deleted while it runs. */
void
case_deleted_exe(void)
{
	char *const argv[] = { (char *)"deleted", NULL };
	pid_t pid;

	copy_self("deleted");
	pid = start_path(room_path("deleted"), argv, "stop spin 1 next spin 1", 0);
	wait_stopped(pid);
	unlink(room_path("deleted"));
	kill(pid, SIGCONT);
	end(pid, case_name, 2, false);
}

void
case_from_memfd(void)
{
	static char buf[65536];
	char *const argv[] = { (char *)"hidden", (char *)"argument", NULL };
	struct child c = { .name = case_name, .programs = 1, .oom_killed = -1 };
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int fd = (int)syscall(SYS_memfd_create, "hidden tool", 1u /* MFD_CLOEXEC */);
	ssize_t n;

	if (from < 0 || fd < 0)
		fail("memfd");
	while ((n = read(from, buf, sizeof(buf))) > 0)
		if (write(fd, buf, (size_t)n) != n)
			fail("memfd");
	close(from);
	c.pid = fork();
	if (c.pid < 0)
		fail("fork");
	if (c.pid == 0) {
		setenv("TRUTH_OPS", "spin 5 exit 2", 1);
		syscall(SYS_execveat, fd, "", argv, environ, 0x1000 /* AT_EMPTY_PATH */);
		_exit(121);
	}
	close(fd);
	reap(&c);
}

/* A script with this binary as interpreter: one program, whose exe is the interpreter. */
void
case_script_own(void)
{
	char text[PATH_MAX + 16];
	char *const argv[] = { (char *)"ignored", (char *)"argument", NULL };

	snprintf(text, sizeof(text), "#!%s one-word\n", self_path);
	write_script("script-own", text);
	run_path(room_path("script-own"), argv, "spin 2", NULL);
}

void
case_script_sh(void)
{
	char shell[PATH_MAX], path[2 * PATH_MAX];
	char *const argv[] = { (char *)"ignored", NULL };
	char *const seen[] = { (char *)"/bin/sh", path, NULL };
	struct want want = { .exe = shell, .comm = "script-sh", .argv = seen };

	if (!realpath("/bin/sh", shell)) {
		report_skip(case_name, "no /bin/sh");
		return;
	}
	write_script("script-sh", "#!/bin/sh\n: nothing\nexit 3\n");
	strcpy(path, room_path("script-sh"));
	run_path(path, argv, "", &want);
}

/* A script whose interpreter env(1) finds: env is program 0, the interpreter program 1. */
void
case_script_env(void)
{
	char env[PATH_MAX], path[2 * PATH_MAX], search[3 * PATH_MAX];
	char *const argv[] = { (char *)"ignored", (char *)"argument", NULL };
	char *const seen[] = { (char *)"/usr/bin/env", (char *)"found-by-env", path, (char *)"argument", NULL };
	const struct want want = { .exe = env, .comm = "script-env", .argv = seen };
	struct child c = { .name = case_name, .programs = 2, .oom_killed = -1, .wants = &want, .n_wants = 1 };

	if (!realpath("/usr/bin/env", env)) {
		report_skip(case_name, "no /usr/bin/env");
		return;
	}
	copy_self("found-by-env");
	write_script("script-env", "#!/usr/bin/env found-by-env\n");
	snprintf(search, sizeof(search), "/nonexistent:%s", room_path("."));
	strcpy(path, room_path("script-env"));
	c.pid = fork();
	if (c.pid == 0) {
		setenv("PATH", search, 1);
		setenv("TRUTH_OPS", "spin 4", 1);
		setenv("TRUTH_IMAGE", "1", 1);
		execve(path, argv, environ);
		_exit(121);
	}
	if (c.pid < 0)
		fail("fork");
	reap(&c);
}

void
case_shell_execs(void)
{
	char shell[PATH_MAX], command[2 * PATH_MAX];
	char *const argv[] = { (char *)"sh", (char *)"-c", command, NULL };
	const struct want want = { .exe = shell, .comm = "sh", .argv = argv };
	struct child c = { .name = case_name, .programs = 2, .oom_killed = -1, .wants = &want, .n_wants = 1 };

	if (!realpath("/bin/sh", shell)) {
		report_skip(case_name, "no /bin/sh");
		return;
	}
	snprintf(command, sizeof(command), "exec '%s' do spin 20 keep 24 exit 9", self_path);
	c.pid = start_path("/bin/sh", argv, "", 1);
	reap(&c);
}

/* A search along PATH: execs that fail, then one that succeeds. */
void
case_path_search(void)
{
	char *const argv[] = { (char *)"found", NULL };
	char search[3 * PATH_MAX];
	pid_t pid;

	copy_self("found");
	snprintf(search, sizeof(search), "/nonexistent/a:/nonexistent/b:/etc:/nonexistent/c:%s",
	    room_path("."));
	pid = fork();
	if (pid < 0)
		fail("fork");
	if (pid == 0) {
		setenv("TRUTH_OPS", "spin 2", 1);
		setenv("PATH", search, 1);
		execvp("found", argv);
		_exit(121);
	}
	end(pid, case_name, 1, false);
}

void
case_exec_fails(void)
{
	char *const argv[] = { (char *)"nothing", NULL };
	pid_t pid = fork();

	if (pid < 0)
		fail("fork");
	if (pid == 0) {
		execve("/nonexistent/nothing", argv, environ);
		_exit(127);
	}
	end(pid, case_name, 1, true);
}
