/*
 * SPDX-License-Identifier: Apache-2.0
 * incarnation: tells a machine and a folder on it from copies of both.
 *
 * An id that is kept in a folder is copied with it: by an image of a disk, a snapshot, cp(1). What is read here differs
 * in the copy, and stays over a reboot, an upgrade, and a file system that is mounted elsewhere. All of it is text
 * without newlines; "": unknown.
 */
#ifndef SLUICE_BASE_INCARNATION_H
#define SLUICE_BASE_INCARNATION_H

#include <stdbool.h>
#include <stddef.h>

struct incarnation {
	char machine_id[64];	/* /etc/machine-id */
	char hardware[64];	/* derived from an id that the firmware or the hypervisor gives to each machine */
	char host_name[72];	/* counts only where neither incarnation has an id of the hardware */
	char folder[64];	/* when it was made; its inode number where the file system does not keep that */
};

enum {
	INCARNATION_TEXT_MAX = 512,
};

/* Reads what is known of the machine below root ("": the real one). Root may read more of it than others. */
void incarnation_read_machine(const char *root, struct incarnation *ret);
/* Reads what is known of a folder. */
void incarnation_read_folder(const char *path, struct incarnation *ret);

/*
 * Returns true if a fact that both have differs: the second is a copy, or another machine. why is then a phrase that
 * names what differs.
 */
bool incarnation_differs(const struct incarnation *before, const struct incarnation *now, char *why, size_t size);

/* Takes over facts that are unknown now, so that a later one can be compared with them. */
void incarnation_keep(struct incarnation *now, const struct incarnation *before);

/* Writes an incarnation as lines of text, without unknown facts. Returns text. */
char *incarnation_pack(const struct incarnation *i, char text[INCARNATION_TEXT_MAX]);
/* Reads such lines; others are ignored. */
void incarnation_unpack(const char *text, struct incarnation *ret);

#endif
