/*
 * SPDX-License-Identifier: Apache-2.0
 * disks: the room of local file systems, without ever waiting for one.
 *
 * Only file systems whose counters are in the kernel's memory are asked; those of a network, of FUSE and of layers may
 * wait for someone else. The mount point of one is reached through what the kernel has in its memory (RESOLVE_CACHED,
 * Linux 5.12), and not through links, and what is reached is asked only if it is that mount: what a user may put in the
 * way is refused, not waited for.
 *
 * A program in another mount namespace, as a container, or the host's if this process is confined, has the folder in a
 * file system with a device number, of which this process may have another mount: that is asked.
 */
#ifndef SLUICE_COLLECT_DISKS_H
#define SLUICE_COLLECT_DISKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/disk_counts.h"
#include "model/disk_space.h"

#define DISKS_ASKED_MAX 16

struct disks;			/* opaque: the mounts of a namespace at a time */

/* Reads a mountinfo file of /proc. 0 or a negative errno with *ret untouched. */
int disks_read(const char *mountinfo, struct disks **ret);
void disks_free(struct disks *d);	/* d may be NULL */
/* Returns the bytes of memory that d takes. */
size_t disks_bytes(const struct disks *d);
/*
 * Asks for the room where a folder is, by the mounts that its program has. own: those of this process, of which each is
 * asked once, and with is_anew again, up to DISKS_ASKED_MAX times; they may be the same. Returns false if it is not
 * known.
 */
bool disks_space(struct disks *own, const struct disks *mounts, const char *folder, bool is_anew,
    struct disk_space *ret);
/*
 * Finds the block device of the local file system where a folder is, by the mounts that its program has, and sets its
 * number. Returns false if it is not known.
 */
bool disks_device(const struct disks *mounts, const char *folder, struct disk_counts *ret);

/* Reads what the device with ret's number has done from a text of /proc/diskstats. Returns false if it has no line. */
bool disks_counts(const char *text, size_t len, struct disk_counts *ret);

#endif
