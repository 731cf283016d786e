/*
 * SPDX-License-Identifier: Apache-2.0
 * disk_space: the room of a file system, as those without privileges have it.
 */
#ifndef SLUICE_MODEL_DISK_SPACE_H
#define SLUICE_MODEL_DISK_SPACE_H

#include <stdint.h>

struct disk_space {
	uint64_t free_bytes;
	uint64_t total_bytes;
	uint64_t free_files;
	uint64_t total_files;	/* 0: it has no limit of them */
};

#endif
