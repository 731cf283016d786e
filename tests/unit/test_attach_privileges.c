/* SPDX-License-Identifier: Apache-2.0 */
/*
 * privileges: operations that a process cannot do any more after it dropped its privileges. Each attempt runs
 * in a child process, which reports errors on standard error. Needs root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/privileges.h"

#define MUST(claim)                                                                                \
	do {                                                                                       \
		if (!(claim)) {                                                                    \
			fprintf(stderr, "%s:%d: not so: %s (errno %s)\n", __FILE__, __LINE__,      \
			    #claim, strerror(errno));                                              \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static void
in_child(void (*body)(void))
{
	pid_t pid;
	int status;

	if (geteuid() != 0)
		skip();
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(30);
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void
drop(const char *user, uint64_t keep)
{
	struct privileges_options o = { .user = user, .keep = keep, .no_new_privs = true };
	char error[512] = "";

	if (privileges_drop(&o, error, sizeof(error)) < 0) {
		fprintf(stderr, "privileges_drop: %s\n", error);
		_exit(1);
	}
}

/* ENOSYS: a kernel that has no modules at all. */
static bool
modules_are_closed(void)
{
	return syscall(SYS_init_module, "", 0, "") < 0 && (errno == EPERM || errno == ENOSYS);
}

/* A map of a type that always takes CAP_BPF. An fd or -1. */
static int
make_map(void)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_LPM_TRIE, .key_size = 8, .value_size = 8, .max_entries = 1,
		.map_flags = BPF_F_NO_PREALLOC,
	};

	return (int)syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
}

static void
try_system(void)
{
	/* SEIZE, not ATTACH: should it work after all, pid 1 does not stop. */
	MUST(ptrace(PTRACE_SEIZE, 1, NULL, NULL) < 0 && errno == EPERM);
	MUST(modules_are_closed());
	/* Arguments that the kernel looks at last: with the privilege each of these is another error. */
	MUST(mount("none", "/", "no-such-type", 0, NULL) < 0 && errno == EPERM);
	MUST(syscall(SYS_sethostname, "", 65536) < 0 && errno == EPERM);
	MUST(syscall(SYS_reboot, 0, 0, 0, NULL) < 0 && errno == EPERM);
	MUST(make_map() < 0 && errno == EPERM);
}

static void
as_nobody(void)
{
	char text[8] = "";
	int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), other;

	MUST(fd >= 0);
	/* What is tried below works before. */
	other = open("/etc/shadow", O_RDONLY | O_CLOEXEC);
	MUST(other >= 0 && close(other) == 0);
	other = open("/etc/passwd", O_WRONLY | O_APPEND | O_CLOEXEC);
	MUST(other >= 0 && close(other) == 0);
	other = make_map();
	MUST(other >= 0 && close(other) == 0);

	drop("nobody", 0);
	MUST(open("/etc/shadow", O_RDONLY) < 0 && errno == EACCES);
	MUST(open("/etc/passwd", O_WRONLY) < 0 && errno == EACCES);
	MUST(open("/etc/sluice-test", O_CREAT | O_WRONLY, 0600) < 0 && errno == EACCES);
	MUST(unlink("/etc/passwd") < 0);
	MUST(setuid(0) < 0 && errno == EPERM);
	MUST(seteuid(0) < 0 && setresuid(-1, 0, -1) < 0);
	MUST(setgid(0) < 0 && setgroups(0, NULL) < 0);
	MUST(kill(1, 0) < 0 && errno == EPERM);
	MUST(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
	try_system();
	/* What is open stays open. */
	MUST(write(fd, "data", 4) == 4 && pread(fd, text, 4, 0) == 4 && strcmp(text, "data") == 0);
	MUST(geteuid() != 0 && getegid() != 0);
}

static void
an_account_can_do_nothing_of_roots(void **state)
{
	(void)state;
	in_child(as_nobody);
}

static void
as_root(void)
{
	char text[256];

	drop("root", 0);
	MUST(geteuid() == 0);
	try_system();
	privileges_text(text, sizeof(text));
	MUST(strcmp(text, "uid 0 (root), capabilities none, no new privileges") == 0);
	/* Nor does executing something as uid 0 give them back. */
	MUST(system("grep -q '^CapEff:.*[1-9a-f]' /proc/self/status") == 1 << 8);
	MUST(system("grep -q '^CapBnd:.*[1-9a-f]' /proc/self/status") == 1 << 8);
}

static void
uid_0_without_capabilities_rules_nothing(void **state)
{
	(void)state;
	in_child(as_root);
}

static void
bounding(void)
{
	struct privileges_options o = { .keep = PRIVILEGE(CAP_FOWNER) | PRIVILEGE(CAP_KILL),
		.bound = PRIVILEGE(CAP_FOWNER), .no_new_privs = true };
	char error[512];

	MUST(privileges_drop(&o, error, sizeof(error)) == 0);
	for (const char *const *set = (const char *const[]){ "Prm", "Eff", "Bnd", NULL }; *set != NULL; set++) {
		char command[64];

		snprintf(command, sizeof(command), "grep -q '^Cap%s:.*\\b0*8$' /proc/self/status", *set);
		MUST(system(command) == 0);
	}
	/* The rest can be given up later; that part, too, though the bounding set then stays. */
	o.keep = o.bound;
	MUST(privileges_drop(&o, error, sizeof(error)) == 0);
	o.keep = o.bound = 0;
	MUST(privileges_drop(&o, error, sizeof(error)) == 0);
	MUST(system("grep -q '^Cap[PE]..:.*[1-9a-f]' /proc/self/status") == 1 << 8);
}

static void
programs_of_root_have_a_part_of_what_is_kept(void **state)
{
	(void)state;
	in_child(bounding);
}

static void
keeping(void)
{
	char text[256];
	int fd;

	drop("nobody", PRIVILEGE(CAP_BPF) | PRIVILEGE(CAP_SYS_PTRACE));
	fd = make_map();
	MUST(fd >= 0 && close(fd) == 0);
	MUST(setuid(0) < 0 && errno == EPERM);
	MUST(modules_are_closed());
	MUST(open("/etc/shadow", O_RDONLY) < 0 && errno == EACCES);
	privileges_text(text, sizeof(text));
	MUST(strstr(text, "(nobody), capabilities sys_ptrace bpf, no new privileges") != NULL);
	/* They are this process's: not those of what it executes. */
	MUST(system("grep -q '^CapEff:.*[1-9a-f]' /proc/self/status") == 1 << 8);
}

static void
what_is_kept_works_and_nothing_else(void **state)
{
	(void)state;
	in_child(keeping);
}

static void
twice(void)
{
	struct privileges_options o = { .keep = PRIVILEGE(CAP_SYS_ADMIN), .no_new_privs = true };
	char error[512];

	drop("nobody", PRIVILEGE(CAP_BPF));
	drop(NULL, 0);		/* less is always possible */
	drop("nobody", 0);	/* the same is no change */
	MUST(make_map() < 0 && errno == EPERM);
	MUST(privileges_drop(&o, error, sizeof(error)) == -EPERM);
	MUST(strstr(error, "sys_admin") != NULL);
	o.keep = 0;
	o.user = "daemon";
	MUST(privileges_drop(&o, error, sizeof(error)) == -EPERM);
	MUST(strstr(error, "daemon") != NULL);
}

static void
less_can_be_given_up_later_and_more_never_comes_back(void **state)
{
	(void)state;
	in_child(twice);
}

static void
unknown_account(void)
{
	struct privileges_options o = { .user = "no-such-account", .no_new_privs = true };
	char error[512];

	MUST(privileges_drop(&o, error, sizeof(error)) == -ENOENT);
	MUST(strstr(error, "useradd --system") != NULL && strstr(error, "no-such-account") != NULL);
	MUST(geteuid() == 0);
	MUST(open("/etc/shadow", O_RDONLY | O_CLOEXEC) >= 0);	/* nothing was given up */
}

static void
an_unknown_account_is_an_error_with_its_hint(void **state)
{
	(void)state;
	in_child(unknown_account);
}

static void *
waits(void *arg)
{
	pause();
	return arg;
}

static void
threaded(void)
{
	struct privileges_options o = { .user = "nobody" };
	char error[512];
	pthread_t t;

	MUST(pthread_create(&t, NULL, waits, NULL) == 0);
	MUST(privileges_drop(&o, error, sizeof(error)) == -EBUSY);
	MUST(geteuid() == 0);
}

static void
with_threads_it_is_refused(void **state)
{
	(void)state;
	in_child(threaded);
}

static void
needing(void)
{
	struct privilege_need needs[PRIVILEGES_NEEDED];
	size_t n = privileges_needed(needs, PRIVILEGES_NEEDED);

	MUST(n > 0 && needs[0].cap == CAP_BPF && needs[0].is_must && needs[0].is_held);
	MUST(privileges_needed(needs, 1) == 1);
	MUST(privileges_maps_ask() == 0 || privileges_maps_ask() == 1);
	MUST(geteuid() == 0 && make_map() >= 0);	/* asking gave nothing up */
	drop("nobody", 0);
	MUST(privileges_needed(needs, PRIVILEGES_NEEDED) == n);
	for (size_t i = 0; i < n; i++)
		MUST(!needs[i].is_held);
	MUST(privileges_maps_ask() < 0);
}

static void
what_is_needed_is_reported_with_what_is_here(void **state)
{
	(void)state;
	in_child(needing);
}

static void
ids_of_accounts_are_found(void **state)
{
	char error[512];
	uid_t uid = 1;
	gid_t gid = 1;

	(void)state;
	assert_int_equal(privileges_user_ids("root", &uid, &gid, error, sizeof(error)), 0);
	assert_int_equal(uid, 0);
	assert_int_equal(gid, 0);
	assert_int_equal(privileges_user_ids("no-such-account", &uid, &gid, error, sizeof(error)), -ENOENT);
	assert_non_null(strstr(error, "there is no account 'no-such-account'"));
}

/* Of root, too, who may write in both. */
static void
a_folder_is_judged_by_its_mode_alone(void **state)
{
	char folder[] = "/tmp/sluice-test-privileges-XXXXXX", below[sizeof(folder) + 6];
	uint64_t before, after;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(below, sizeof(below), "%s/below", folder);
	assert_int_equal(mkdir(below, 0700), 0);
	assert_int_equal(privileges_held(CAP_EFFECTIVE, &before), 0);
	assert_true(privileges_may_write(below));
	assert_int_equal(chmod(below, 0500), 0);
	assert_false(privileges_may_write(below));
	assert_int_equal(chmod(below, 0700), 0);
	assert_int_equal(chmod(folder, 0600), 0);
	assert_false(privileges_may_write(below));
	assert_int_equal(chmod(folder, 0700), 0);
	assert_false(privileges_may_write("/nonexistent"));
	assert_int_equal(privileges_held(CAP_EFFECTIVE, &after), 0);
	assert_int_equal(after, before);
	assert_int_equal(rmdir(below), 0);
	assert_int_equal(rmdir(folder), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_account_can_do_nothing_of_roots),
		cmocka_unit_test(uid_0_without_capabilities_rules_nothing),
		cmocka_unit_test(programs_of_root_have_a_part_of_what_is_kept),
		cmocka_unit_test(what_is_kept_works_and_nothing_else),
		cmocka_unit_test(less_can_be_given_up_later_and_more_never_comes_back),
		cmocka_unit_test(an_unknown_account_is_an_error_with_its_hint),
		cmocka_unit_test(with_threads_it_is_refused),
		cmocka_unit_test(what_is_needed_is_reported_with_what_is_here),
		cmocka_unit_test(ids_of_accounts_are_found),
		cmocka_unit_test(a_folder_is_judged_by_its_mode_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
