/*
 * SPDX-License-Identifier: Apache-2.0
 * safe_path: opens a file only if no one but root, and one user who is named, could have written it.
 *
 * Root reads the configuration and runs commands for secrets: a user who can write these files, or put others in
 * their place, is root. As for sshd(8) and sudo(8), each component of the path counts, up to /: the file, its
 * folders, and where a symbolic link is on the way, also the link and the folders of its target. Each must belong to
 * root or to that user, and neither its group nor others may write it; that the group is root's makes no difference.
 * (An access list that lets others write shows in the bits of the group.)
 *
 * A folder in which any user may create files, but where the sticky bit is set, such as /tmp, is accepted above a
 * file if it belongs to root or that user: only the owner of an entry, that of the folder, and root can rename or
 * remove the entry, and the owner of the next component is checked. It is not accepted as the folder of which all
 * files are read, since any user can add one.
 *
 * The path is walked from descriptor to descriptor, and what is checked is what was opened, not a name that
 * may mean something else by then.
 */
#ifndef SLUICE_BASE_SAFE_PATH_H
#define SLUICE_BASE_SAFE_PATH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The component that is wrong. */
struct safe_path_fault {
	char path[PATH_MAX];	/* "": none */
	uid_t uid;		/* its owner */
	mode_t mode;		/* permissions; of a link they mean nothing */
	bool is_foreign;	/* it belongs to another user; otherwise it is writable by others */
	bool is_link;
	bool is_above;		/* a folder or link on the way, not the file itself */
};

/*
 * Opens a file, or with O_DIRECTORY a folder; flags as for open(2), without O_CREAT. owner: the user whose files are
 * accepted beside root's; 0: none. Returns an fd, closed by exec; or a negative errno, which is -EPERM with *ret filled
 * if a component is wrong. What is neither a file nor a folder is opened without a check of its own mode: the caller
 * refuses it.
 */
int safe_path_open(const char *path, int flags, uid_t owner, struct safe_path_fault *ret);

/*
 * Writes what is wrong and the command that repairs it: "its folder /etc/sluice is writable by its group (mode 775), so a member of it
 * could become root: run `chmod g-w /etc/sluice`". harm: what a user could do, "become root". Returns buf.
 */
char *safe_path_text(const struct safe_path_fault *f, const char *harm, char *buf, size_t size);

/*
 * Returns true if root started this process, whatever account it has become, or if it has capabilities, as the service
 * has: it reads on behalf of the host, and only files that pass as safe. A process of any other user, and root of a
 * user namespace, can do no more with a file than that user can anyway.
 */
bool safe_path_is_wanted(void);

#endif
