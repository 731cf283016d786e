/*
 * SPDX-License-Identifier: Apache-2.0
 * sandbox: a seccomp filter from a list of system calls, and a Landlock ruleset by the kernel's version of it.
 */
#include "base/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "seccomp's name of this architecture is missing here"
#endif

enum {
	CALLS_MAX = 64,
	HEAD = 3,		/* instructions before the list */
	TAIL = 2,
};

int
sandbox_system_calls(const int *allowed, size_t n)
{
	/* A number of the x32 ABI has a bit that none of the list has. */
	struct sock_filter code[HEAD + CALLS_MAX + TAIL] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 0, (uint8_t)(n + 1)),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog program = { .len = (unsigned short)(HEAD + n + TAIL), .filter = code };

	if (n > CALLS_MAX)
		return -E2BIG;
	for (size_t i = 0; i < n; i++)
		code[HEAD + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)allowed[i],
		    (uint8_t)(n - i), 0);
	code[HEAD + n] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	code[HEAD + n + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ? -errno : 0;
}

/* struct landlock_ruleset_attr of the newest version that is used here; the system's header may be older. */
struct ruleset {
	uint64_t files;
	uint64_t net;		/* from version 4 on: TCP */
	uint64_t scopes;	/* from version 6 on: abstract sockets, signals */
};

/* Returns what a version restricts, and the size of what that kernel knows of it. */
static struct ruleset
all_of(int version, size_t *ret_size)
{
	static const unsigned rights[] = { 0, 13, 14, 15, 15, 16 };	/* each right of files is a bit */
	const int last = sizeof(rights) / sizeof(rights[0]) - 1;

	*ret_size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
	return (struct ruleset){
		.files = (UINT64_C(1) << rights[version < last ? version : last]) - 1,
		.net = version >= 4 ? 3 : 0,
		.scopes = version >= 6 ? 3 : 0,
	};
}

int
sandbox_read_below(const char *folder)
{
	int version = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	struct landlock_path_beneath_attr below = {
		.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR };
	struct ruleset all;
	size_t size;
	int rules, r = 0;

	if (version <= 0)
		return -EOPNOTSUPP;
	all = all_of(version, &size);
	rules = (int)syscall(SYS_landlock_create_ruleset, &all, size, 0);
	if (rules < 0)
		return -errno;
	below.parent_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (below.parent_fd < 0 ||
	    syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &below, 0) < 0 ||
	    syscall(SYS_landlock_restrict_self, rules, 0) < 0)
		r = -errno;
	if (below.parent_fd >= 0)
		close(below.parent_fd);
	close(rules);
	return r;
}
