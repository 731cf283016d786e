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
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "seccomp's name of this architecture is missing here"
#endif

/* The lower half of an argument: both architectures are little-endian. */
#define ARGUMENT(i) (offsetof(struct seccomp_data, args) + 8 * (i))

enum {
	CALLS_MAX = 256,
	CALL_SIZE = 3 + 2 * SANDBOX_TERMS,	/* instructions */
	HEAD = 3, TAIL = 8,
	X32 = 0x40000000,	/* a bit of the numbers of that ABI */
	NEWEST = 469,		/* file_setattr(2) of Linux 6.17: the last number when this was written */
};

static const struct sock_filter refuse = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
static const struct sock_filter lacks = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
static const struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
static const struct sock_filter load_architecture =
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
static const struct sock_filter load_number =
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));

static struct sock_filter
jump(uint16_t how, uint32_t value, size_t if_true, size_t if_false)
{
	return (struct sock_filter)BPF_JUMP((uint16_t)(BPF_JMP | how | BPF_K), value, (uint8_t)if_true,
	    (uint8_t)if_false);
}

/* Adds what allows a call, or continues behind itself. Returns how many instructions these are. */
static size_t
add_call(const struct sandbox_call *c, struct sock_filter *code)
{
	size_t n = 0, left = 1;		/* instructions up to the end: the last one allows it */

	for (int i = 0; i < SANDBOX_TERMS; i++)
		left += c->terms[i].is != SANDBOX_ANY ? 2 : 0;
	code[n++] = load_number;
	code[n++] = jump(BPF_JEQ, (uint32_t)c->number, 0, left);
	for (int i = 0; i < SANDBOX_TERMS; i++) {
		const struct sandbox_term *t = &c->terms[i];

		if (t->is == SANDBOX_ANY)
			continue;
		left -= 2;
		code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)ARGUMENT(t->argument));
		code[n++] = t->is == SANDBOX_EQUAL ? jump(BPF_JEQ, t->value, 0, left) :
		    jump(t->is == SANDBOX_OTHER ? BPF_JEQ : BPF_JSET, t->value, left, 0);
	}
	code[n++] = allow;
	return n;
}

int
sandbox_system_calls(const struct sandbox_call *allowed, size_t n)
{
	struct sock_fprog program = { 0 };
	struct sock_filter *code;
	int r;

	if (n > CALLS_MAX)
		return -E2BIG;
	code = calloc(HEAD + CALL_SIZE * n + TAIL, sizeof(*code));
	if (code == NULL)
		return -ENOMEM;
	code[program.len++] = load_architecture;
	code[program.len++] = jump(BPF_JEQ, ARCHITECTURE, 1, 0);
	code[program.len++] = refuse;
	for (size_t i = 0; i < n; i++)
		program.len = (unsigned short)(program.len + add_call(&allowed[i], code + program.len));
	code[program.len++] = load_number;
	code[program.len++] = jump(BPF_JGE, X32, 0, 1);
	code[program.len++] = refuse;
	code[program.len++] = jump(BPF_JEQ, SYS_clone3, 1, 0);
	code[program.len++] = jump(BPF_JGT, NEWEST, 0, 1);
	code[program.len++] = lacks;
	code[program.len++] = refuse;
	program.filter = code;
	r = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ? -errno : 0;
	free(code);
	return r;
}

/* struct landlock_ruleset_attr of the newest version that is used here; the system's header may be older. */
struct ruleset {
	uint64_t files;
	uint64_t net;		/* from version 4 on: TCP */
	uint64_t scopes;	/* from version 6 on: abstract sockets, signals */
};

/* The same of struct landlock_net_port_attr. */
struct port_rule {
	uint64_t allowed;
	uint64_t port;
};

enum {
	NET_VERSION = 4, NET_BIND = 1, NET_CONNECT = 2, NET_RULE = 2,
	SCOPE_VERSION = 6, SCOPE_ALL = 3,
	REFER = 1 << 13, TRUNCATE = 1 << 14,	/* rights of later versions */
};

static bool is_enforced;	/* in this process */

static int
landlock_version(void)
{
	return (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

/* Returns the rights of files that a version knows; each is a bit. */
static uint64_t
known_rights(int version)
{
	static const unsigned rights[] = { 0, 13, 14, 15, 15, 16 };
	const int last = sizeof(rights) / sizeof(rights[0]) - 1;

	return (UINT64_C(1) << rights[version < last ? version : last]) - 1;
}

int
sandbox_files_begin(bool alone)
{
	int version = landlock_version(), fd;
	struct ruleset all;
	size_t size;

	if (version <= 0)
		return version < 0 && errno == EPERM ? -EPERM : -EOPNOTSUPP;
	all = (struct ruleset){
		.files = known_rights(version),
		.net = version >= NET_VERSION ? (alone ? NET_BIND | NET_CONNECT : NET_BIND) : 0,
		.scopes = version >= SCOPE_VERSION && alone ? SCOPE_ALL : 0,
	};
	size = version >= SCOPE_VERSION ? sizeof(all) : version >= NET_VERSION ? offsetof(struct ruleset, scopes) :
	    offsetof(struct ruleset, net);
	fd = (int)syscall(SYS_landlock_create_ruleset, &all, size, 0);
	return fd < 0 ? -errno : fd;
}

int
sandbox_files_allow(int files, const char *path, enum sandbox_access access)
{
	static const uint64_t rights[] = {
		[SANDBOX_READ] = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
		[SANDBOX_WRITE] = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR |
		    LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
		    LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | REFER | TRUNCATE,
		[SANDBOX_REMOVE] = LANDLOCK_ACCESS_FS_REMOVE_FILE,
	};
	static const uint64_t of_a_file = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | TRUNCATE;
	const uint64_t known = known_rights(landlock_version());
	struct landlock_path_beneath_attr below = { .allowed_access = rights[access] & known };
	struct stat st;
	int r = 0;

	below.parent_fd = open(path, O_PATH | O_CLOEXEC);
	if (below.parent_fd < 0)
		return -errno;
	if (fstat(below.parent_fd, &st) < 0)
		r = -errno;
	else if (!S_ISDIR(st.st_mode))
		below.allowed_access &= of_a_file;
	if (r == 0 && below.allowed_access != 0 &&
	    syscall(SYS_landlock_add_rule, files, LANDLOCK_RULE_PATH_BENEATH, &below, 0) < 0)
		r = -errno;
	close(below.parent_fd);
	return r;
}

int
sandbox_files_allow_listening(int files, uint16_t port)
{
	const struct port_rule rule = { .allowed = NET_BIND, .port = port };

	if (landlock_version() < NET_VERSION)
		return 0;
	return syscall(SYS_landlock_add_rule, files, NET_RULE, &rule, 0) < 0 ? -errno : 0;
}

int
sandbox_files_enforce(int files)
{
	int r = syscall(SYS_landlock_restrict_self, files, 0) < 0 ? -errno : 0;

	is_enforced |= r == 0;
	close(files);
	return r;
}

int
sandbox_read_below(const char *folder)
{
	int files = sandbox_files_begin(true), r;

	if (files < 0)
		return files;
	r = sandbox_files_allow(files, folder, SANDBOX_READ);
	if (r == 0)
		return sandbox_files_enforce(files);
	close(files);
	return r;
}

const char *
sandbox_lacks(int error)
{
	return error == -EOPNOTSUPP ? "this kernel has no Landlock" :
	    error == -EPERM ? "Landlock is refused here, as the seccomp profile of a container may do" : NULL;
}

bool
sandbox_refuses(const char *path)
{
	/* access(2) goes by the mode, which is not what the ruleset looks at. */
	return is_enforced && access(path, R_OK) == 0;
}
