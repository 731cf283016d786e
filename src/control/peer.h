/*
 * SPDX-License-Identifier: Apache-2.0
 * peer: who is at the other end of a unix socket, as the kernel reports it, and what that process may ask for.
 */
#ifndef SLUICE_CONTROL_PEER_H
#define SLUICE_CONTROL_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PEER_NO_GROUP ((gid_t)-1)

/* What a command does; each is allowed to whom the next one is. */
enum control_access {
	CONTROL_NONE,
	CONTROL_OWN,	/* concerns processes of the client's own, which the command itself checks */
	CONTROL_READ,	/* reads what the agent knows */
	CONTROL_ADMIN,	/* changes what the agent does or records */
};

/* Those who may do more than anyone. */
struct peer_rights {
	uid_t owner;		/* may do everything, as root may */
	uid_t account;		/* the same */
	gid_t admins;		/* PEER_NO_GROUP: none, as the next one */
	gid_t readers;
	bool is_public;		/* anyone else may do CONTROL_OWN */
};

struct control_peer {
	int32_t pid;
	uint32_t uid;
	uint32_t gid;
	enum control_access access;
};

/* Finds out who is connected to fd. Returns 0, or a negative errno: the kernel does not report it. */
int peer_of(int fd, const struct peer_rights *rights, struct control_peer *ret);

#endif
