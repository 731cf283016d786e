/*
 * SPDX-License-Identifier: Apache-2.0
 * truth_family: operations with children: reaped, orphaned, left as zombies, in other namespaces. The
 * process that reaps a child writes its "process" line; a child that is not reaped by this binary has only
 * its own "image" lines.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "truth.h"

static int
count(char *const **at)
{
	const char *word = *(*at)++;

	if (!word)
		fail("a word that wants a number");
	return atoi(word);
}

static int
reap_one(pid_t pid, int programs, bool forked)
{
	struct child c = { .pid = pid, .name = case_name, .programs = programs, .forked = forked, .oom_killed = -1 };

	return reap(&c);
}

/* Forks a binary tree of processes, each of which reaps its two children. */
static void
tree(int depth)
{
	pid_t kids[2];

	if (depth == 0)
		return;
	for (int i = 0; i < 2; i++) {
		kids[i] = fork();
		if (kids[i] < 0)
			fail("fork");
		if (kids[i] == 0) {
			image_reset();
			image_index = 0;
			report_start(NULL);
			tree(depth - 1);
			report_end(depth);
			_exit(depth);
		}
	}
	for (int i = 0; i < 2; i++)
		reap_one(kids[i], 1, true);
}

/* Waits until parent is no longer the parent. */
static void
wait_orphaned(pid_t parent)
{
	for (int i = 0; i < 60000 && getppid() == parent; i++)
		sleep_ms(1);
}

/* Waits until the process has ended; a zombie that its new parent has not reaped may be left. */
static void
wait_gone(pid_t pid)
{
	char path[64], text[512], *p;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	for (int i = 0; i < 5000; i++) {
		if (!read_text(path, text, sizeof(text)) || !text[0])
			return;
		p = strrchr(text, ')');
		if (p && p[1] && p[2] == 'Z')
			return;
		sleep_ms(1);
	}
}

/* Forks twice and exits; the grandchild has a session of its own and outlives its parent. */
static void
daemonize(void)
{
	int tell[2];
	pid_t mid, parent, demon;

	if (pipe(tell) < 0)
		fail("pipe");
	mid = fork();
	if (mid < 0)
		fail("fork");
	if (mid == 0) {
		image_reset();
		image_index = 0;
		report_start(NULL);
		setsid();
		parent = getpid();
		demon = fork();
		if (demon == 0) {
			image_reset();
			report_start(NULL);
			wait_orphaned(parent);
			sleep_ms(50);
			spin_ms(5);
			report_end(0);
			_exit(0);
		}
		if (write(tell[1], &demon, sizeof(demon)) < 0)
			fail("pipe");
		report_end(4);
		_exit(4);
	}
	if (read(tell[0], &demon, sizeof(demon)) != sizeof(demon))
		fail("pipe");
	close(tell[0]);
	close(tell[1]);
	reap_one(mid, 1, true);
	wait_gone(demon);
}

/* This process adopts orphans instead of init. */
static void
subreaper(void)
{
	struct child late = { .name = case_name, .programs = 1, .forked = true, .oom_killed = -1 };
	int tell[2];
	pid_t mid;

	if (pipe(tell) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		fail("subreaper");
	mid = fork();
	if (mid < 0)
		fail("fork");
	if (mid == 0) {
		pid_t parent = getpid(), kid;

		image_reset();
		image_index = 0;
		report_start(NULL);
		kid = fork();
		if (kid == 0) {
			image_reset();
			report_start(NULL);
			wait_orphaned(parent);
			sleep_ms(50);
			spin_ms(5);
			report_end(9);
			_exit(9);
		}
		if (write(tell[1], &kid, sizeof(kid)) < 0)
			fail("pipe");
		report_end(0);
		_exit(0);
	}
	if (read(tell[0], &late.pid, sizeof(late.pid)) != sizeof(late.pid))
		fail("pipe");
	late.parent = mid;
	reap_one(mid, 1, true);
	reap(&late);
	close(tell[0]);
	close(tell[1]);
}

/*
 * Zombies that were preempted right as they became that, before their last steps: this process takes their CPU as the
 * kernel wakes it, and keeps it for a second, in which they are looked at. So where the kernel can preempt itself, and
 * lets this process have a real-time priority; elsewhere they are zombies like any other.
 */
static void
hold_zombies(int n)
{
	struct sched_param first = { .sched_priority = 1 }, other = { .sched_priority = 0 };
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one) < 0)
		fail("sched_setaffinity");
	while (n-- > 0) {
		pid_t pid = start(BY_FORK, "spin 20 exit 9");
		siginfo_t zombie;

		/* As a call of its own, since musl's function refuses whatever it is asked. */
		if (syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &first) < 0 && errno != EPERM)
			fail("sched_setscheduler");
		if (waitid(P_PID, (id_t)pid, &zombie, WEXITED | WNOWAIT) < 0)
			fail("waitid");
		spin_ms(1000);
		if (syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &other) < 0)
			fail("sched_setscheduler");
		sleep_ms(50);	/* in which the child leaves its CPU */
		reap_one(pid, 1, true);
	}
}

/* A pid namespace whose init forks n children, which have other pids there than on the host. */
static void
new_pid_ns(int n)
{
	pid_t init;

	if (unshare(CLONE_NEWPID) < 0)
		fail("unshare");
	init = fork();
	if (init < 0)
		fail("fork");
	if (init == 0) {
		image_reset();
		image_index = 0;
		report_start(NULL);
		for (int i = 0; i < n; i++)
			reap_one(start(i & 1 ? BY_FORK : BY_SPAWN, "spin 3 exit 5"), 1, i & 1);
		report_end(6);
		_exit(6);
	}
	reap_one(init, 1, true);
}

/* A pid that is reused at once; only the start time differs. */
static void
reuse_pid(void)
{
	char text[32];
	int again = 0;

	for (int try = 0; try < 40 && again < 2; try++) {
		pid_t first = start(BY_FORK, "spin 2 exit 1"), second;

		reap_one(first, 1, true);
		sleep_ms(15);	/* until the next tick, so that the start times in /proc differ too */
		snprintf(text, sizeof(text), "%d", first - 1);
		if (!write_text("/proc/sys/kernel/ns_last_pid", text)) {
			report_skip(case_name, "ns_last_pid cannot be set");
			return;
		}
		second = start(again ? BY_SPAWN : BY_FORK, "spin 2 exit 2");
		reap_one(second, 1, !again);
		again += second == first;
	}
	report_note(case_name, "reused", again);
}

/* Children that no process waits for: the kernel reaps them itself. */
static void
ignore_children(int n)
{
	signal(SIGCHLD, SIG_IGN);
	for (int i = 0; i < n; i++)
		start(i & 1 ? BY_FORK : BY_SPAWN, "spin 10 exit 3");
	while (wait(NULL) >= 0 || errno == EINTR)
		;
	signal(SIGCHLD, SIG_DFL);
}

/* Forks without an exit signal. */
static void
silent_clone(int n)
{
	for (int i = 0; i < n; i++) {
		pid_t pid = (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0);

		if (pid < 0)
			fail("clone");
		if (pid == 0) {
			image_reset();
			image_index = 0;
			report_start(NULL);
			spin_ms(5);
			report_end(11);
			_exit(11);
		}
		reap_one(pid, 1, true);
	}
}

/* Moves this process to a cgroup, in which its next exec runs. */
static void
join_cgroup(const char *dir)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	if (!write_text(path, "0"))
		fail(path);
}

static void
become_nobody(void)
{
	if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
		fail("setresuid");
}

/* Its working directory has been removed. */
static void
lose_cwd(const char *dir)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/gone.%d", dir, getpid());
	if (mkdir(path, 0700) < 0 || chdir(path) < 0 || rmdir(path) < 0)
		fail(path);
}

bool
family_op(char *const **at)
{
	const char *word = *(*at)++;

	if (!strcmp(word, "spawn")) {
		for (int n = count(at); n > 0; n--)
			reap_one(start(BY_SPAWN, "spin 3 touch 8 exit 2"), 1, false);
	} else if (!strcmp(word, "tree")) {
		tree(count(at));
	} else if (!strcmp(word, "daemon")) {
		daemonize();
	} else if (!strcmp(word, "subreaper")) {
		subreaper();
	} else if (!strcmp(word, "new-pid-ns")) {
		new_pid_ns(count(at));
	} else if (!strcmp(word, "new-ns")) {
		if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) < 0)
			fail("unshare");
	} else if (!strcmp(word, "reuse-pid")) {
		reuse_pid();
	} else if (!strcmp(word, "ignore")) {
		ignore_children(count(at));
	} else if (!strcmp(word, "silent-clone")) {
		silent_clone(count(at));
	} else if (!strcmp(word, "hold-zombies")) {
		hold_zombies(count(at));
	} else if (!strcmp(word, "leave-zombie")) {
		siginfo_t zombie;

		if (waitid(P_PID, (id_t)start(BY_FORK, "spin 3 exit 8"), &zombie, WEXITED | WNOWAIT) < 0)
			fail("waitid");
	} else if (!strcmp(word, "cgroup")) {
		join_cgroup(*(*at)++);
	} else if (!strcmp(word, "nobody")) {
		become_nobody();
	} else if (!strcmp(word, "chdir")) {
		const char *dir = *(*at)++;

		if (chdir(dir) < 0)
			fail(dir);
	} else if (!strcmp(word, "lose-cwd")) {
		lose_cwd(*(*at)++);
	} else {
		(*at)--;
		return false;
	}
	return true;
}
