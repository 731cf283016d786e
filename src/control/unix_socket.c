/*
 * SPDX-License-Identifier: Apache-2.0
 * unix_socket: binds with the final mode, sets the group, and only then listens. No change by name follows a
 * link, because the folder may belong to another user. A second group is admitted by an access control list.
 */
#include "control/unix_socket.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

static int
fail(int r, char *error, size_t size, const char *path, const char *what)
{
	snprintf(error, size, "%s: %s: %s", path, what, strerror(-r));
	return r;
}

/* Makes the directory of path with mode 0755, independent of the umask. */
static int
make_directory(const char *path)
{
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path)];
	char *slash;

	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	if (slash == NULL || slash == dir)
		return 0;
	*slash = '\0';
	if (mkdir(dir, 0755) < 0)
		return errno == EEXIST ? 0 : -errno;
	return chmod(dir, 0755) < 0 ? -errno : 0;
}

/* Checks whether a process listens at the address. Returns 0 if not, after removing the stale socket. */
static int
clear_stale(const struct sockaddr_un *address, char *error, size_t size)
{
	const char *path = address->sun_path;
	struct stat st;
	int fd, r;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : fail(-errno, error, size, path, "cannot be checked");
	if (!S_ISSOCK(st.st_mode)) {
		snprintf(error, size, "%s: exists and is not a socket; move it away or choose another path", path);
		return -EEXIST;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return fail(-errno, error, size, path, "no socket");
	/* -EAGAIN: its backlog is full, so a process listens. */
	r = connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ? -errno : 0;
	close(fd);
	if (r == 0 || r == -EAGAIN) {
		snprintf(error, size, "%s: another agent listens there; stop it, or give this one another path", path);
		return -EADDRINUSE;
	}
	if (r != -ECONNREFUSED)
		return fail(r, error, size, path, "cannot find out whether it is in use");
	if (unlink(path) < 0 && errno != ENOENT)
		return fail(-errno, error, size, path, "is a stale socket and cannot be removed");
	return 0;
}

int
unix_socket_listen(const char *path, gid_t gid, mode_t mode, int backlog, char *error, size_t size)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	mode_t old;
	int fd, r;

	if (strlen(path) >= sizeof(address.sun_path)) {
		snprintf(error, size, "%s: is too long for a socket, which may have %zu bytes", path,
		    sizeof(address.sun_path) - 1);
		return -ENAMETOOLONG;
	}
	strcpy(address.sun_path, path);
	r = make_directory(path);
	if (r < 0)
		return fail(r, error, size, path, "its directory cannot be created");
	r = clear_stale(&address, error, size);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return fail(-errno, error, size, path, "no socket");
	old = umask(0777 & ~mode);
	r = bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
	umask(old);
	if (r < 0) {
		close(fd);
		return fail(r, error, size, path, "cannot be bound");
	}
	r = lchown(path, geteuid(), gid) < 0 ? -errno : 0;
	/* Only root may give a file to a group that it is not in; any owner may admit the group. */
	if (r == -EPERM)
		r = unix_socket_admit(path, mode, 0, &gid, 1);
	if (r == 0 && listen(fd, backlog) < 0)
		r = -errno;
	if (r < 0) {
		fail(r, error, size, path, "its owner cannot be set");
		close(fd);
		unlink(path);
		return r;
	}
	return fd;
}

/* The form in which the kernel takes an access control list: a version, and entries by tag and id. */
struct acl_entry {
	uint16_t tag;
	uint16_t perm;
	uint32_t id;
};

enum {
	ACL_VERSION = 2,
	ACL_OWNER = 0x01,
	ACL_USER = 0x02,
	ACL_OWNING_GROUP = 0x04,
	ACL_GROUP = 0x08,
	ACL_MASK = 0x10,
	ACL_OTHERS = 0x20,
	ACL_READ_WRITE = 6,
};

int
unix_socket_admit(const char *path, mode_t mode, uid_t uid, const gid_t *groups, size_t n_groups)
{
	const uint32_t nobody = UINT32_MAX;
	struct {
		uint32_t version;
		struct acl_entry entries[5 + UNIX_SOCKET_GROUPS];
	} acl = { .version = ACL_VERSION };
	struct stat st;
	bool is_owning = false;
	size_t n = 0;

	if (lstat(path, &st) < 0)
		return -errno;
	for (size_t i = 0; i < n_groups; i++)
		is_owning |= groups[i] == st.st_gid;

	acl.entries[n++] = (struct acl_entry){ ACL_OWNER, ACL_READ_WRITE, nobody };
	if (uid != 0)
		acl.entries[n++] = (struct acl_entry){ ACL_USER, ACL_READ_WRITE, uid };
	acl.entries[n++] = (struct acl_entry){ ACL_OWNING_GROUP, is_owning ? mode >> 3 & 7 : 0, nobody };
	for (size_t i = 0; i < n_groups && i < UNIX_SOCKET_GROUPS; i++) {
		if (groups[i] != st.st_gid)
			acl.entries[n++] = (struct acl_entry){ ACL_GROUP, ACL_READ_WRITE, groups[i] };
	}
	acl.entries[n++] = (struct acl_entry){ ACL_MASK, ACL_READ_WRITE, nobody };
	acl.entries[n++] = (struct acl_entry){ ACL_OTHERS, mode & 7, nobody };
	if (lsetxattr(path, "system.posix_acl_access", &acl, sizeof(acl.version) + n * sizeof(acl.entries[0]), 0) < 0)
		return -errno;
	return 0;
}
