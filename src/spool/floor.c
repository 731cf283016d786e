/*
 * SPDX-License-Identifier: Apache-2.0
 * floor: how large the files of the segments may be, so that the file system keeps its floor free (base/space.h), and
 * a margin above it.
 *
 * The spool looks at the room once a second, and before each commit while it is near that. There it does not grow: the
 * oldest records give way to new ones, as they do at max_bytes (room.c). If the files are too small for that, new
 * batches wait in memory, as on a disk that cannot be written.
 */
#include "base/disk.h"
#include "spool/state.h"

#define NEAR_BYTES (UINT64_C(64) << 20)		/* of room: less may be gone within a second */
#define LEAST_BYTES (UINT64_C(1) << 20)		/* of room, or a quarter of a small floor: less counts as none */
#define LEAST_SEGMENTS 2			/* that the files have room for, or nothing is dropped for a new one */
#define HEAD_BYTES (SPOOL_SEGMENT_HEAD_MAX + 4096)	/* of a new segment, with what its last block takes more */

/* Returns the bytes of the files. */
static uint64_t
files_bytes(const struct spool *s)
{
	return s->bytes - s->memory_bytes + s->unknown_bytes;
}

void
spool_floor_look(struct spool *s)
{
	struct space space;
	uint64_t files = files_bytes(s), floor, stop, room, again;

	if (s->free_min == 0 || disk_space(s->disk, s->dir_fd, &space) < 0)
		return;		/* what was seen last holds */
	floor = space_floor(&space, s->free_min);
	stop = floor + space_margin(&space);
	room = space.free_bytes > stop ? space.free_bytes - stop : 0;
	/*
	 * What was removed may be free only later: the files may be again as large as they have been since they came
	 * here, unless the lake has taken that room. It does not below the floor.
	 */
	s->floor_files = s->is_at_floor && s->floor_files > files ? s->floor_files : files;
	again = s->floor_files;
	if (space.free_bytes > floor && again > files + (space.free_bytes - floor))
		again = files + (space.free_bytes - floor);
	s->files_max = files + room > again ? files + room : again;
	s->is_at_floor = room < (floor / 4 < LEAST_BYTES ? floor / 4 : LEAST_BYTES);
	s->free_bytes = space.free_bytes;
	s->floor_bytes = floor;
}

void
spool_floor_look_if_near(struct spool *s)
{
	if (files_bytes(s) + NEAR_BYTES > s->files_max)
		spool_floor_look(s);
}

bool
spool_floor_has(const struct spool *s, uint64_t more)
{
	return files_bytes(s) + more + HEAD_BYTES <= s->files_max;
}

bool
spool_floor_is_cramped(const struct spool *s, uint64_t more)
{
	return !spool_floor_has(s, more) &&
	    (s->files_max < LEAST_SEGMENTS * s->segment_bytes || more + HEAD_BYTES > s->files_max / 2);
}
