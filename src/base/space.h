/*
 * SPDX-License-Identifier: Apache-2.0
 * space: the room of a file system, and its floor, the part of it that stays free.
 *
 *	floor + 2 margins	below it the lake's oldest files give way
 *	floor + margin		below it the spool does not grow
 *	floor			below it nothing is written
 *
 * The lake may use the last margin, since what is written to it leaves the spool: a spool that had taken all of the
 * room would keep the lake from that.
 */
#ifndef SLUICE_BASE_SPACE_H
#define SLUICE_BASE_SPACE_H

#include <stdint.h>

struct space {
	uint64_t free_bytes;	/* for those without privileges */
	uint64_t total_bytes;
};

/* Asks the file system of an open file or folder, which may wait for its disk. 0, or a negative errno. */
int space_read(int fd, struct space *ret);
/* Returns how much of it stays free: free_min, or a twentieth of a file system that is smaller than 20 free_min. */
uint64_t space_floor(const struct space *s, uint64_t free_min);
/* Returns the margin: 128 MiB, or an eighth of a smaller file system than 1 GiB. */
uint64_t space_margin(const struct space *s);

#endif
