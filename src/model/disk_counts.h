/*
 * SPDX-License-Identifier: Apache-2.0
 * disk_counts: what a block device has done since the host was started.
 */
#ifndef SLUICE_MODEL_DISK_COUNTS_H
#define SLUICE_MODEL_DISK_COUNTS_H

#include <stdint.h>

struct disk_counts {
	uint32_t major, minor;
	uint64_t bytes;			/* read and written */
	uint64_t busy_ns;		/* in which a request was under way */
};

#endif
