/*
 * SPDX-License-Identifier: Apache-2.0
 * repair: closes files of a lake that dead writers of this host left open.
 */
#ifndef SLUICE_LAKE_REPAIR_H
#define SLUICE_LAKE_REPAIR_H

#include <stdint.h>

/* Result of a repair of files that earlier agents of this host left open. */
struct lake_repair {
	unsigned files;			/* repaired and renamed to their final names */
	unsigned empty;			/* removed: no whole block */
	unsigned live;			/* unchanged: their writer is alive */
	unsigned failed;		/* unchanged: foreign, or no permission; without a header, and now <name>.bad */
	uint64_t records;		/* in repaired files */
	uint64_t torn_bytes;		/* cut off or removed */
	int error;			/* a negative errno of the first failed file; 0: none */
	char failed_path[256];		/* path of the first failed file, cut if longer */
};

/* Repairs files that dead writers left open in the folders of host_id. 0 or a negative errno. */
int lake_repair(const char *lake, const char *host_id, struct lake_repair *ret);

#endif
