/*
 * SPDX-License-Identifier: Apache-2.0
 * space: the room of a file system, and its floor.
 */
#include "base/space.h"

#include <errno.h>
#include <sys/statvfs.h>

#define FLOOR_SHARE 20
#define MARGIN_BYTES (UINT64_C(128) << 20)
#define MARGIN_SHARE 8

int
space_read(int fd, struct space *ret)
{
	struct statvfs st;

	if (fstatvfs(fd, &st) < 0)
		return -errno;
	ret->free_bytes = (uint64_t)st.f_bavail * st.f_frsize;
	ret->total_bytes = (uint64_t)st.f_blocks * st.f_frsize;
	return 0;
}

uint64_t
space_floor(const struct space *s, uint64_t free_min)
{
	uint64_t share = s->total_bytes / FLOOR_SHARE;

	return share < free_min ? share : free_min;
}

uint64_t
space_margin(const struct space *s)
{
	uint64_t share = s->total_bytes / MARGIN_SHARE;

	return share < MARGIN_BYTES ? share : MARGIN_BYTES;
}
