/*
 * SPDX-License-Identifier: Apache-2.0
 * privileges: the capabilities that the agent starts with, those that are held, and what this kernel checks
 * later.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/privileges.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct privilege_need needs[] = {
	{ CAP_BPF, true, "load the probes" },
	{ CAP_PERFMON, true, "attach the probes" },
	{ CAP_SETPCAP, false, "give up unneeded privileges for good" },
	{ CAP_SETUID, true, "change to the account of `user`" },
	{ CAP_SETGID, true, "change to the account of `user`" },
	{ CAP_CHOWN, true, "give that account its folders, and the sockets their group" },
	{ CAP_DAC_READ_SEARCH, false, "open that account's folders, and secrets that only their owner may read" },
	{ CAP_SYS_PTRACE, false, "read exe and cwd of processes that run already" },
	{ CAP_SYS_RESOURCE, false, "lift the limit on locked memory, which maps count against before Linux 5.11" },
	{ CAP_SYS_NICE, false, "run at a slightly higher priority than the programs that it follows" },
};

size_t
privileges_needed(struct privilege_need *ret, size_t max)
{
	uint64_t held;
	size_t n = 0;

	(void)privileges_held(CAP_EFFECTIVE, &held);
	for (; n < COUNT(needs) && n < max; n++) {
		ret[n] = needs[n];
		ret[n].is_held = (held & PRIVILEGE(needs[n].cap)) != 0;
		/* The kernel accepts CAP_SYS_ADMIN for each of these two, which were split from it. */
		if (needs[n].cap == CAP_BPF || needs[n].cap == CAP_PERFMON)
			ret[n].is_held |= (held & PRIVILEGE(CAP_SYS_ADMIN)) != 0;
	}
	return n;
}

uint64_t
privileges_to_keep(void)
{
	struct utsname kernel;
	unsigned major = 0, minor = 0;
	uint64_t permitted;

	(void)privileges_held(CAP_PERMITTED, &permitted);
	if ((permitted & PRIVILEGE(CAP_BPF)) != 0)
		return PRIVILEGE(CAP_BPF);
	if (uname(&kernel) == 0 && sscanf(kernel.release, "%u.%u", &major, &minor) == 2 &&
	    (major > 6 || (major == 6 && minor >= 1)))
		return 0;
	return PRIVILEGE(CAP_SYS_ADMIN);
}

/* Tests, in a child without any capability, whether an open map can be read; the result is the exit status. */
static int
try_lookup(int map)
{
	struct privileges_options o = { .no_new_privs = true };
	uint32_t key = 0;
	uint64_t value;
	union bpf_attr attr = { .map_fd = (uint32_t)map, .key = (uintptr_t)&key, .value = (uintptr_t)&value };
	char error[256];

	if (privileges_drop(&o, error, sizeof(error)) < 0)
		return 2;
	return syscall(SYS_bpf, BPF_MAP_LOOKUP_ELEM, &attr, sizeof(attr)) < 0;
}

int
privileges_maps_ask(void)
{
	union bpf_attr attr = { .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 8, .max_entries = 1 };
	int map, status, r = -EIO;
	pid_t pid;

	map = (int)syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
	if (map < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		_exit(try_lookup(map));
	if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) < 2)
		r = WEXITSTATUS(status);
	close(map);
	return r;
}
