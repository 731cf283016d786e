/*
 * SPDX-License-Identifier: Apache-2.0
 * dead_letter: a folder of Avro files with records that can never be delivered, and the reason.
 *
 *	<dir>/<topic>-<YYYY-MM-DD>.avro		the UTC day on which they were given up
 *
 * Schema: schemas/avro/dead_letter.avsc. Each dead letter is a block of its own and is written to the file
 * before dead_letters_put() returns; a thread syncs it, and dead_letters_synced() counts it then. The folder's size is
 * bounded; files are never removed from it here. They are read by dead_letter_read.h, and letters are removed as
 * dead_letter_files.h describes.
 */
#ifndef SLUICE_DELIVER_DEAD_LETTER_H
#define SLUICE_DELIVER_DEAD_LETTER_H

#include <stddef.h>
#include <stdint.h>

#include "spool/spool.h"

struct dead_letters;

/*
 * Opens a folder, which is created with the first dead letter. max_bytes limits the files in it; 0: 100 MiB. 0
 * or a negative errno.
 */
int dead_letters_open(const char *dir, uint64_t max_bytes, struct dead_letters **ret);
void dead_letters_close(struct dead_letters *d);	/* NULL is fine */

/*
 * Writes one dead letter. 0; -EDQUOT: the folder is full, until files are removed from it; or the error of the
 * failed write.
 */
int dead_letters_put(struct dead_letters *d, const struct spool_record *r, const char *reason,
    const char *detail);
/*
 * Returns how many letters have been synced since the last call, in the order in which they were put. *ret_error, with
 * more than 0: 0, or a negative errno where a power cut may take them. To be called at each tick.
 */
size_t dead_letters_synced(struct dead_letters *d, int *ret_error);

/* Sums up the folder's size again, after files or letters were removed from it. */
void dead_letters_scan(struct dead_letters *d);
uint64_t dead_letters_bytes(const struct dead_letters *d);	/* in dir, as of the last scan and write */

#endif
