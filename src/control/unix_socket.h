/*
 * SPDX-License-Identifier: Apache-2.0
 * unix_socket: a listening socket in the file system that has its owner and mode from its first moment.
 */
#ifndef SLUICE_CONTROL_UNIX_SOCKET_H
#define SLUICE_CONTROL_UNIX_SOCKET_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Listens at path; its directory is made 0755 if it is missing (one level). Replaces a socket at which no
 * process listens any more; one that is in use: -EADDRINUSE; another kind of file: -EEXIST. Returns the fd,
 * which is non-blocking and the caller's, or a negative errno with a sentence in error.
 */
int unix_socket_listen(const char *path, gid_t gid, mode_t mode, int backlog, char *error,
    size_t error_size);

enum {
	UNIX_SOCKET_GROUPS = 2,
};

/*
 * Admits a user (0: none beside the owner) and groups to the socket of that mode, which then shows rw for its group;
 * the group that owns it has what the mode says if it is one of them, and nothing otherwise. Returns 0, or a negative
 * errno: -EOPNOTSUPP where the file system has no access control lists.
 */
int unix_socket_admit(const char *path, mode_t mode, uid_t uid, const gid_t *groups, size_t n_groups);

#endif
