/*
 * SPDX-License-Identifier: Apache-2.0
 * repair: files of a lake that dead writers of this host left open.
 */
#ifndef SLUICE_LAKE_REPAIR_H
#define SLUICE_LAKE_REPAIR_H

#include <stdint.h>

/* What was done about files that earlier agents of this host left open. */
struct lake_repair {
	unsigned files;			/* repaired, now under their real names */
	unsigned empty;			/* removed: not one whole block */
	unsigned live;			/* left alone: their writer is alive */
	unsigned failed;		/* left alone: unreadable, foreign, or no permission */
	uint64_t records;		/* kept */
	uint64_t torn_bytes;		/* cut off, or removed */
	int error;			/* of the first that failed, a negative errno */
	char failed_path[256];		/* the first that failed, cut if longer */
};

/* Repairs the files that dead writers left in the folders of host_id. 0 or a negative errno. */
int lake_repair(const char *lake, const char *host_id, struct lake_repair *ret);

#endif
