/*
 * SPDX-License-Identifier: Apache-2.0
 * truth_cgroup: cases in cgroups of their own, v1 and v2.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "truth.h"

/* Finds the mount point of the v1 hierarchy with these mount options, or (NULL) of the unified one. */
static bool
cgroup_mount(const char *controller, char *ret_path, size_t size)
{
	static char text[65536];
	char *next;

	if (!read_text("/proc/self/mountinfo", text, sizeof(text)))
		return false;
	for (char *p = text; p && *p; p = next) {
		char target[1024], type[64], options[1024];
		char *dash;

		next = strchr(p, '\n');
		if (next)
			*next++ = '\0';
		dash = strstr(p, " - ");
		if (!dash || sscanf(p, "%*s %*s %*s %*s %1023s", target) != 1 ||
		    sscanf(dash, " - %63s %*s %1023s", type, options) != 2)
			continue;
		if (controller ? !strcmp(type, "cgroup") && strstr(options, controller) : !strcmp(type, "cgroup2")) {
			snprintf(ret_path, size, "%s", target);
			return true;
		}
	}
	return false;
}

/* Creates a cgroup below this process' own one in that hierarchy. False: not possible on this host. */
static bool
cgroup_make(const char *controller, char *ret_dir, size_t size)
{
	char mount_at[1024], text[8192], own[4096] = "/", *next;

	if (!cgroup_mount(controller, mount_at, sizeof(mount_at)))
		return false;
	read_text("/proc/self/cgroup", text, sizeof(text));
	for (char *p = text; *p; p = next) {
		char *list = strchr(p, ':'), *path;

		next = strchr(p, '\n');
		if (next)
			*next++ = '\0';
		else
			next = p + strlen(p);
		path = list ? strchr(list + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = '\0';
		if (controller ? !strcmp(list + 1, controller) : list[1] == '\0')
			snprintf(own, sizeof(own), "%s", path);
	}
	snprintf(ret_dir, size, "%s%s/truth-%d-%s", mount_at, strcmp(own, "/") ? own : "", getpid(),
	    controller ? controller : "v2");
	return mkdir(ret_dir, 0755) == 0;
}

static void
cgroup_remove(const char *dir)
{
	for (int i = 0; i < 100 && rmdir(dir) < 0 && errno == EBUSY; i++)
		sleep_ms(10);
}

static void
cgroup_case(const char *controller)
{
	char dir[8192], ops[9000], self[4096] = "";

	/* a guest may support the unified hierarchy without having it mounted */
	if (!controller && !cgroup_mount(NULL, self, sizeof(self)) && !cgroup_mount("memory", self, sizeof(self))) {
		mkdir(room_path("cgroup"), 0755);
		if (mount("truth", room_path("cgroup"), "cgroup2", 0, NULL) < 0)
			errno = 0;
	}
	if (!cgroup_make(controller, dir, sizeof(dir))) {
		report_skip(case_name, "this hierarchy is not mounted, or takes no directory");
		return;
	}
	snprintf(ops, sizeof(ops), "cgroup %s next spin 3", dir);
	end(start(BY_SPAWN, ops), case_name, 2, false);
	cgroup_remove(dir);
}

void
case_cgroup_v1(void)
{
	cgroup_case("memory");
}

void
case_cgroup_v2(void)
{
	cgroup_case(NULL);
}

/* Returns the number after a word in a file of "word number" lines, or -1. */
static long
counter(const char *dir, const char *file, const char *word)
{
	char path[9000], text[4096], *p;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	if (!read_text(path, text, sizeof(text)) || !(p = strstr(text, word)))
		return -1;
	return atol(p + strlen(word));
}

/* A child that exceeds the memory limit of its cgroup: the kernel kills it. */
void
case_out_of_memory(void)
{
	char dir[8192], ops[9000], path[9000];
	struct child c = { .name = case_name, .programs = 2 };
	bool v1 = cgroup_make("memory", dir, sizeof(dir));
	long kills;

	if (!v1 && !cgroup_make(NULL, dir, sizeof(dir))) {
		report_skip(case_name, "no cgroup hierarchy takes a directory");
		return;
	}
	if (!v1) {
		/* the parent must delegate the controller first */
		snprintf(path, sizeof(path), "%s/../cgroup.subtree_control", dir);
		write_text(path, "+memory");
	}
	snprintf(path, sizeof(path), "%s/%s", dir, v1 ? "memory.limit_in_bytes" : "memory.max");
	if (!write_text(path, "16777216")) {
		report_skip(case_name, "no memory limit can be set");
		cgroup_remove(dir);
		return;
	}
	snprintf(path, sizeof(path), "%s/memory.swap.max", dir);
	if (!v1)
		write_text(path, "0");
	/* the limit is meant for the new image, but must leave enough memory to start it */
	snprintf(ops, sizeof(ops), "cgroup %s next keep 64", dir);
	c.pid = start(BY_SPAWN, ops);
	{
		siginfo_t si;

		waitid(P_PID, (id_t)c.pid, &si, WEXITED | WNOWAIT);
		kills = v1 ? counter(dir, "memory.oom_control", "oom_kill ") : counter(dir, "memory.events", "oom_kill ");
		c.oom_killed = kills < 0 ? -1 : kills > 0;
	}
	reap(&c);
	cgroup_remove(dir);
}
