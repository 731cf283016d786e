/*
 * SPDX-License-Identifier: Apache-2.0
 * run_confine: gives up privileges as the agent of a host does, and takes the same lists, with a lake and without
 * sockets.
 */
#include "cli/run_confine.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include "agent/confine.h"
#include "attach/privileges.h"

/*
 * Returns whether files of another user may be in the way in the lake: root writes there by a capability then. It goes
 * by the lake's own folder: in one that is root's, and that none but root may write, others make none. Folders below it
 * that were given to others before are not looked at.
 */
static bool
is_lake_of_another(const char *lake)
{
	struct stat st;

	return stat(lake, &st) < 0 || st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0 ||
	    !privileges_may_write(lake);
}

/* Returns those of the capabilities which are held that are still needed. */
static uint64_t
to_keep(const char *lake, bool has_probes)
{
	uint64_t held, keep = PRIVILEGE(CAP_KILL);	/* COMMAND may be another user's, as readers are */

	(void)privileges_held(CAP_EFFECTIVE, &held);	/* one who acts for a user has none that are about files */
	keep |= has_probes ? privileges_to_keep() : 0;
	keep |= is_lake_of_another(lake) ? PRIVILEGE(CAP_DAC_OVERRIDE) : 0;
	return keep & held;
}

static int
confine_to_lake(const char *lake, struct confinement *c)
{
	int r = confine_begin(c);

	if (r == 0)
		r = confine_allow(c, lake, SANDBOX_WRITE);
	if (r == 0)
		return confine_enforce(c, false);
	confine_abandon(c);
	return r;
}

int
run_confine(const char *lake, bool has_probes, char *error, size_t error_size)
{
	const struct privileges_options p = { .keep = to_keep(lake, has_probes), .no_new_privs = true };
	struct confinement c;
	int r = privileges_drop(&p, error, error_size);

	if (r < 0)
		return r;
	r = confine_to_lake(lake, &c);
	if (r < 0)
		snprintf(error, error_size, "it cannot be confined to its own system calls and files: %s", c.error);
	return r;
}
