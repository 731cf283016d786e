/*
 * SPDX-License-Identifier: Apache-2.0
 * dead_letter: a folder of Avro files with records that can never be delivered, and the reason.
 *
 *	<dir>/<topic>-<YYYY-MM-DD>.avro		the UTC day on which they were given up
 *
 * Schema: schemas/avro/dead_letter.avsc. Each dead letter is a block of its own. A thread writes and syncs them, so
 * that no disk stops the loop. The folder's size is bounded; files are never removed from it here. They are read by
 * dead_letter_read.h, and letters are removed as dead_letter_files.h describes.
 */
#ifndef SLUICE_DELIVER_DEAD_LETTER_H
#define SLUICE_DELIVER_DEAD_LETTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spool/spool.h"

struct dead_letters;

/*
 * Opens a folder, which is created with the first dead letter. max_bytes limits the files in it; 0: 100 MiB. free_min
 * bytes of its file system stay free (base/space.h); 0: none. 0 or a negative errno.
 */
int dead_letters_open(const char *dir, uint64_t max_bytes, uint64_t free_min, struct dead_letters **ret);
/*
 * Waits for what was put: 5 s at most for the letters that are being written, and as long for those after them. NULL is
 * fine.
 */
void dead_letters_close(struct dead_letters *d);

/* Takes one dead letter, to be written. 0 or a negative errno. */
int dead_letters_put(struct dead_letters *d, const struct spool_record *r, const char *reason,
    const char *detail);
/*
 * Returns whether it is known what became of the oldest letter that was put and not returned yet. *ret_error: 0: it is
 * on the disk; -EDQUOT: the folder is full, until files are removed from it; -ENOSPC: its file system is; or the error
 * of the write, or of the sync without which a power cut may take it. To be called at each tick until it returns false.
 */
bool dead_letters_next(struct dead_letters *d, int *ret_error);
/* Returns the bytes of letters that are not returned yet. */
size_t dead_letters_waiting(const struct dead_letters *d);

/* Has the folder's size summed up again, after files or letters were removed from it. */
void dead_letters_scan(struct dead_letters *d);

#endif
