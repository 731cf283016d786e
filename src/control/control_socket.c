/*
 * SPDX-License-Identifier: Apache-2.0
 * control_socket: finds the groups, binds, and lets those connect who may send a command.
 */
#include "control/control_socket.h"

#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "control/unix_socket.h"

enum {
	BACKLOG = 128,
};

/* Returns the group of that name; if there is none, adds a sentence about that to error. */
static gid_t
find_group(const char *name, const char *may, char *error, size_t error_size)
{
	struct group *g = name != NULL && name[0] != '\0' ? getgrnam(name) : NULL;
	size_t used = strlen(error);

	if (g != NULL)
		return g->gr_gid;
	if (name != NULL && name[0] != '\0')
		snprintf(error + used, error_size - used,
		    "%sthere is no group '%s', whose members could %s: `groupadd --system %s` and start again",
		    used > 0 ? "; " : "", name, may, name);
	return PEER_NO_GROUP;
}

/* Binds, and admits all who may connect. Returns the fd, or a negative errno with a sentence in error. */
static int
bind_socket(const struct control_options *o, const struct peer_rights *rights, char *error, size_t error_size)
{
	bool has_admins = rights->admins != PEER_NO_GROUP;
	mode_t mode = rights->is_public ? 0666 : has_admins ? 0660 : 0600;
	gid_t second = rights->readers != rights->admins ? rights->readers : PEER_NO_GROUP, groups[UNIX_SOCKET_GROUPS];
	size_t n_groups = 0, used = strlen(error);
	char why[512] = "";
	int fd, r;

	fd = unix_socket_listen(o->path, has_admins ? rights->admins : getegid(), mode, BACKLOG, why, sizeof(why));
	if (fd < 0) {
		snprintf(error, error_size, "%s", why);
		return fd;
	}
	if (rights->is_public || (second == PEER_NO_GROUP && rights->account == rights->owner))
		return fd;
	if (has_admins)
		groups[n_groups++] = rights->admins;
	if (second != PEER_NO_GROUP)
		groups[n_groups++] = second;
	r = unix_socket_admit(o->path, mode, rights->account == rights->owner ? 0 : rights->account, groups, n_groups);
	if (r < 0)
		snprintf(error + used, error_size - used, "%s%s: its file system has no access control lists, so that it "
		    "opens only to root and one group: %s", used > 0 ? "; " : "", o->path, strerror(-r));
	return fd;
}

int
control_bind(const struct control_options *o, struct peer_rights *ret, char *error, size_t error_size)
{
	error[0] = '\0';
	ret->owner = geteuid();
	ret->account = o->account != 0 ? o->account : ret->owner;
	ret->admins = find_group(o->group, "send every command", error, error_size);
	ret->is_public = o->is_public;
	ret->readers = find_group(o->read_group, "read the state of the agent", error, error_size);
	return bind_socket(o, ret, error, error_size);
}
