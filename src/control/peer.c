/*
 * SPDX-License-Identifier: Apache-2.0
 * peer: credentials and groups of the process that connected.
 */
#include "control/peer.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

/* The groups that the kernel has for a process, not those that /etc/group has for its user. */
struct groups {
	gid_t few[64];
	gid_t *list;		/* few, or allocated */
	size_t n;
};

static void
groups_of(int fd, struct groups *ret)
{
	socklen_t len = sizeof(ret->few);
	int r;

	ret->list = ret->few;
	r = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, ret->list, &len);
	if (r < 0 && errno == ERANGE) {
		ret->list = malloc(len);
		r = ret->list != NULL ? getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, ret->list, &len) : -1;
	}
	ret->n = r == 0 ? len / sizeof(gid_t) : 0;
}

static bool
has_group(const struct groups *groups, gid_t primary, gid_t wanted)
{
	bool found = primary == wanted;

	for (size_t i = 0; i < groups->n; i++)
		found |= groups->list[i] == wanted;
	return found && wanted != PEER_NO_GROUP;
}

int
peer_of(int fd, const struct peer_rights *rights, struct control_peer *ret)
{
	struct groups groups;
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return -errno;
	*ret = (struct control_peer){ .pid = peer.pid, .uid = peer.uid, .gid = peer.gid };
	if (peer.uid == 0 || peer.uid == rights->owner || peer.uid == rights->account) {
		ret->access = CONTROL_ADMIN;
		return 0;
	}
	groups_of(fd, &groups);
	if (has_group(&groups, peer.gid, rights->admins))
		ret->access = CONTROL_ADMIN;
	else if (has_group(&groups, peer.gid, rights->readers))
		ret->access = CONTROL_READ;
	else
		ret->access = rights->is_public ? CONTROL_OWN : CONTROL_NONE;
	if (groups.list != groups.few)
		free(groups.list);
	return 0;
}
