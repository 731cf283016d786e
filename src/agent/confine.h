/*
 * SPDX-License-Identifier: Apache-2.0
 * confine: what the process of an agent may still do once its probes are attached: the system calls that it and its
 * libraries make, and the files that its caller allows. Of a hole in a parser no more than that is left to use. It
 * comes on top of privileges_drop(), whose no_new_privs it needs, and likewise holds for this thread and those of
 * later: call it while there is no other.
 */
#ifndef SLUICE_AGENT_CONFINE_H
#define SLUICE_AGENT_CONFINE_H

#include <limits.h>
#include <stdbool.h>

#include "base/sandbox.h"

struct confinement {
	int files;			/* the ruleset that is being made; -1: none */
	const char *lacks;		/* why files are not confined, static; NULL: they are */
	char error[PATH_MAX + 128];	/* of the last function that failed: "PATH: Permission denied" */
};

/*
 * Begins with what every agent reads: the system's folders, and those of control groups. 0 or a negative errno. That
 * files cannot be confined here is no error: lacks has the reason.
 */
int confine_begin(struct confinement *ret);
/* The same without any rule for files. why: static. */
void confine_begin_without_files(struct confinement *ret, const char *why);
/* Frees what was begun. */
void confine_abandon(struct confinement *c);

/*
 * Allows a file, or all below a folder: who may do what there is still up to their modes. 0 or a negative errno, as
 * the next two.
 */
int confine_allow(struct confinement *c, const char *path, enum sandbox_access access);
/* Allows what is with the file or folder of a name; of one in / that alone. */
int confine_allow_beside(struct confinement *c, const char *path, enum sandbox_access access);
/*
 * The same, and where its symbolic links lead: what is replaced, as by an editor, a certificate's renewal or `rm -r`,
 * is allowed again when it is back.
 */
int confine_allow_around(struct confinement *c, const char *path, enum sandbox_access access);
/*
 * Allows reading around an absolute path. Another, or NULL, is ignored; what is missing, or may not be reached, needs
 * no rule: it cannot be opened either.
 */
void confine_allow_reading(struct confinement *c, const char *path);

/* Puts it in force, and frees c. makes_sockets: it may make new ones. 0 or a negative errno. */
int confine_enforce(struct confinement *c, bool makes_sockets);

#endif
