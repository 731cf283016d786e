/*
 * SPDX-License-Identifier: Apache-2.0
 * truth_cases: the children that `truth all` starts, and their expected values.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "truth.h"

static char room[PATH_MAX];	/* directory for files of the cases, readable by all */

struct simple {
	const char *name;
	enum birth birth;
	const char *ops;	/* operations; @ is replaced by room */
	int programs;
};

static const struct simple simple[] = {
	{ "plain_spawn", BY_SPAWN, "exit 0", 1 },
	{ "plain_fork_exec", BY_FORK_EXEC, "exit 0", 1 },
	{ "plain_vfork_exec", BY_VFORK_EXEC, "exit 0", 1 },
	{ "exit_1", BY_SPAWN, "exit 1", 1 },
	{ "exit_17", BY_SPAWN, "exit 17", 1 },	/* the number of SIGCHLD */
	{ "exit_255", BY_SPAWN, "exit 255", 1 },
	{ "cpu_user", BY_SPAWN, "spin 60", 1 },
	{ "cpu_system", BY_SPAWN, "system 60", 1 },
	{ "cpu_both", BY_FORK_EXEC, "spin 20 system 20 spin 20", 1 },
	{ "sleeper", BY_SPAWN, "sleep 300", 1 },
	{ "many_sleeps", BY_SPAWN, "sleep 2 sleep 2 sleep 2 sleep 2 sleep 2 sleep 2", 1 },
	{ "memory_8_freed", BY_SPAWN, "touch 8", 1 },
	{ "memory_96_freed", BY_SPAWN, "touch 96", 1 },
	{ "memory_48_kept", BY_SPAWN, "keep 48", 1 },
	{ "memory_freed_then_kept", BY_FORK_EXEC, "touch 64 keep 16", 1 },
	{ "large_parent", BY_SPAWN, "keep 200 spawn 3", 1 },
	{ "large_parent_forks", BY_SPAWN, "keep 64 tree 1", 1 },
	{ "threads_16", BY_SPAWN, "threads 16 5 spin 5", 1 },
	{ "threads_twice", BY_SPAWN, "threads 3 5 threads 7 2 exit 3", 1 },
	{ "threads_killed", BY_SPAWN, "hang 8", 1 },
	{ "leader_gone_first", BY_SPAWN, "leader-gone", 1 },
	{ "leader_exit_thread", BY_SPAWN, "leader-exit", 1 },
	{ "worker_execs", BY_SPAWN, "spin 5 worker-next spin 8 exit 12", 2 },
	{ "fork_short", BY_FORK, "exit 4", 1 },
	{ "fork_spin", BY_FORK, "spin 15 keep 8", 1 },
	{ "fork_then_exec_twice", BY_FORK_EXEC, "spin 5 next spin 6", 2 },
	{ "exec_chain", BY_SPAWN, "touch 96 spin 5 next keep 8 spin 10 next touch 32 spin 15", 3 },
	{ "exec_chain_system", BY_FORK_EXEC, "system 12 next spin 12 next system 12 exit 5", 3 },
	{ "exec_chain_files", BY_SPAWN, "files @ next files @ files @", 2 },
	{ "kill_sigkill", BY_SPAWN, "spin 3 die 9", 1 },
	{ "kill_sigterm", BY_SPAWN, "spin 3 die 15", 1 },
	{ "kill_sigpipe", BY_SPAWN, "die 13", 1 },
	{ "kill_realtime", BY_SPAWN, "die 40", 1 },
	{ "abort", BY_SPAWN, "abort", 1 },
	{ "segv_no_core", BY_SPAWN, "segv", 1 },
	{ "segv_core", BY_SPAWN, "chdir @ core", 1 },
	{ "reaps_three", BY_SPAWN, "spin 5 spawn 3 exit 6", 1 },
	{ "reaps_then_execs", BY_SPAWN, "spawn 2 next spin 5 spawn 1", 2 },
	{ "fork_tree", BY_SPAWN, "tree 6", 1 },
	{ "daemon", BY_SPAWN, "daemon", 1 },
	{ "subreaper", BY_SPAWN, "subreaper", 1 },
	{ "new_pid_ns", BY_SPAWN, "new-pid-ns 4", 1 },
	{ "new_mnt_net_ns", BY_SPAWN, "new-ns next spin 2", 2 },
	{ "pid_reused", BY_SPAWN, "reuse-pid", 1 },
	{ "sigchld_ignored", BY_SPAWN, "ignore 4", 1 },
	{ "zombie_left", BY_SPAWN, "leave-zombie", 1 },
	{ "zombie_preempted", BY_SPAWN, "hold-zombies 3", 1 },
	{ "exit_signal_0", BY_SPAWN, "silent-clone 3", 1 },
	{ "setuid_nobody", BY_SPAWN, "nobody next spin 2", 2 },
	{ "cwd_moved", BY_SPAWN, "chdir @ next spin 2", 2 },
	{ "cwd_deleted", BY_SPAWN, "lose-cwd @ next spin 2", 2 },
	{ "renames_itself", BY_SPAWN, "rename other-name spin 2", 1 },
	{ "net_tcp", BY_SPAWN, "tcp", 1 },
	{ "net_udp", BY_SPAWN, "udp", 1 },
	{ "net_unix", BY_SPAWN, "unix", 1 },
	{ "net_two_ends", BY_SPAWN, "two-ends", 1 },
	{ "net_netlink", BY_SPAWN, "netlink", 1 },
	{ "net_over_exec", BY_SPAWN, "tcp next udp next unix tcp", 3 },
	{ "files", BY_SPAWN, "files @", 1 },
	{ "direct_io", BY_SPAWN, "direct @", 1 },
	{ "major_faults", BY_SPAWN, "major @", 1 },
};

/* Replaces "@" by the path of the room. */
static const char *
in_room(const char *ops)
{
	static char text[3 * PATH_MAX];
	size_t n = 0;

	for (; *ops && n + sizeof(room) < sizeof(text); ops++) {
		if (*ops == '@')
			n += (size_t)sprintf(text + n, "%s", room);
		else
			text[n++] = *ops;
	}
	text[n] = '\0';
	return text;
}

int
end(pid_t pid, const char *name, int programs, bool forked)
{
	struct child c = { .pid = pid, .name = name, .programs = programs, .forked = forked, .oom_killed = -1 };

	return reap(&c);
}

void
wait_stopped(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
		fail("a stopped child");
}

const char *
room_path(const char *name)
{
	static char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", room, name);
	return path;
}

/* Runs a copy of this binary under another name. */
void
copy_self(const char *name)
{
	static char buf[65536];
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int to = open(room_path(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	ssize_t n;

	if (from < 0 || to < 0)
		fail(room_path(name));
	while ((n = read(from, buf, sizeof(buf))) > 0)
		if (write(to, buf, (size_t)n) != n)
			fail(room_path(name));
	fchmod(to, 0755);
	close(from);
	close(to);
}

static void
run_simple(const struct simple *s)
{
	end(start(s->birth, in_room(s->ops)), s->name, s->programs, s->birth == BY_FORK);
}

/* A child that lives for about 100 us in its parent's memory and never execs. */
static void
vfork_short(void)
{
	struct child c = { .name = case_name, .programs = 1, .forked = true, .shared_mm = true, .oom_killed = -1 };

	for (int i = 0; i < 5; i++) {
		c.pid = vfork();
		if (c.pid == 0)
			_exit(5);
		if (c.pid < 0)
			fail("vfork");
		reap(&c);
	}
}

/* The last threads exit at the same time: each may see itself as the last one. */
static void
threads_leave_together(void)
{
	for (int i = 0; i < 8; i++)
		end(start(BY_SPAWN, "all-at-once"), case_name, 1, false);
}

static void
killed_from_outside(void)
{
	pid_t pid = start(BY_SPAWN, "keep 8 wait-kill");

	wait_stopped(pid);
	kill(pid, SIGKILL);
	end(pid, case_name, 1, false);
}

/* A stopped process has not ended. */
static void
stopped(void)
{
	pid_t pid = start(BY_SPAWN, "stop spin 3");

	wait_stopped(pid);
	sleep_ms(20);
	kill(pid, SIGCONT);
	end(pid, case_name, 1, false);
}

struct special {
	const char *name;
	void (*run)(void);
};

static const struct special special[] = {
	{ "argv_bytes", case_argv_bytes },
	{ "argv_100k", case_argv_100k },
	{ "argv_3000", case_argv_3000 },
	{ "argc_0", case_argc_0 },
	{ "long_name", case_long_name },
	{ "odd_name", case_odd_name },
	{ "deleted_exe", case_deleted_exe },
	{ "memfd", case_from_memfd },
	{ "script_own", case_script_own },
	{ "script_sh", case_script_sh },
	{ "script_env", case_script_env },
	{ "shell_execs", case_shell_execs },
	{ "path_search", case_path_search },
	{ "exec_fails", case_exec_fails },
	{ "vfork_short", vfork_short },
	{ "threads_leave_together", threads_leave_together },
	{ "killed_from_outside", killed_from_outside },
	{ "stopped", stopped },
	{ "cgroup_v1", case_cgroup_v1 },
	{ "cgroup_v2", case_cgroup_v2 },
	{ "out_of_memory", case_out_of_memory },
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/*
 * Zombies, whose ends are recorded before a process waits for them. The first figure of a process that works
 * in the kernel, read at its start, is all user time, and later tick samples are not: the kernel never
 * reduces a value that it has reported.
 */
#define ZOMBIES 8

static void
name_case(const char *name)
{
	case_name = name;
	setenv("TRUTH_CASE", name, 1);
}

/* Uses a child of this binary, which reports its usage, since rm(1) does not. */
static void
remove_room(void)
{
	umount2(room_path("cgroup"), MNT_DETACH);
	end(start(BY_FORK, in_room("remove @")), case_name, 1, true);
}

int
cases_run(const char *only)
{
	pid_t fork_long = 0, long_lived = 0, zombies[ZOMBIES] = { 0 };
	int run = 0;

	snprintf(room, sizeof(room), "/tmp/truth-XXXXXX");
	if (!mkdtemp(room) || chmod(room, 0755) < 0)
		fail(room);
	copy_self("truth");	/* to a directory where every user may run it */
	self_path = strdup(room_path("truth"));
	setenv("TRUTH_SELF", self_path, 1);

	/* these run as long as the other cases */
	if (!only || !strcmp(only, "fork_long")) {
		name_case("fork_long");
		fork_long = start(BY_FORK, "sleep 3000 exit 6");
		run++;
	}
	if (!only || !strcmp(only, "long_lived")) {
		name_case("long_lived");	/* works for several intervals, then sleeps for more than one */
		long_lived = start(BY_SPAWN, in_room("spin 300 system 100 files @ sleep 1500 touch 8 spin 200 rest 2500"));
		run++;
	}
	if (!only || !strcmp(only, "zombie_until_end")) {
		name_case("zombie_until_end");
		for (int i = 0; i < ZOMBIES; i++)
			zombies[i] = start(BY_SPAWN, i & 1 ? "spin 5 exit 7" : "system 9 exit 7");
		run++;
	}
	for (size_t i = 0; i < COUNT(simple); i++)
		if (!only || !strcmp(only, simple[i].name)) {
			name_case(simple[i].name);
			run_simple(&simple[i]);
			run++;
		}
	for (size_t i = 0; i < COUNT(special); i++)
		if (!only || !strcmp(only, special[i].name)) {
			name_case(special[i].name);
			special[i].run();
			run++;
		}
	for (int i = 0; i < ZOMBIES && zombies[i]; i++)
		end(zombies[i], "zombie_until_end", 1, false);
	if (fork_long)
		end(fork_long, "fork_long", 1, true);
	if (long_lived)
		end(long_lived, "long_lived", 1, false);
	name_case("clean_up");
	remove_room();
	return run;
}

void
cases_list(void)
{
	puts("fork_long\nlong_lived\nzombie_until_end");
	for (size_t i = 0; i < COUNT(simple); i++)
		puts(simple[i].name);
	for (size_t i = 0; i < COUNT(special); i++)
		puts(special[i].name);
}
