/*
 * SPDX-License-Identifier: Apache-2.0
 * disks: the room of local file systems, without ever waiting for one.
 *
 * Only file systems whose counters are in the kernel's memory are asked; those of a network, of FUSE and of layers may
 * wait for someone else. The mount point of one is reached through what the kernel has in its memory (RESOLVE_CACHED,
 * Linux 5.12), and not through links: what a user may put in the way is refused, not waited for.
 */
#ifndef SLUICE_COLLECT_DISKS_H
#define SLUICE_COLLECT_DISKS_H

#include <stdbool.h>
#include <stdint.h>

#include "model/disk_space.h"

struct disks;			/* opaque: the mounts of this process's namespace at a time */

/* Reads a mountinfo file of /proc. 0 or a negative errno with *ret untouched. */
int disks_read(const char *mountinfo, struct disks **ret);
void disks_free(struct disks *d);	/* d may be NULL */
/* Asks for the room where a folder is. Each file system is asked once. Returns false if it is not known. */
bool disks_space(struct disks *d, const char *folder, struct disk_space *ret);

#endif
