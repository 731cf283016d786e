/*
 * SPDX-License-Identifier: Apache-2.0
 * dead_letter_writer: the files of dead letters, as the thread of dead_letter.h writes them. Each call may wait for the
 * disk.
 */
#ifndef SLUICE_DELIVER_DEAD_LETTER_WRITER_H
#define SLUICE_DELIVER_DEAD_LETTER_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "model/record.h"

struct dead_letter_writer;

/*
 * Uses memory only. max_bytes limits the files in the folder, and free_min bytes of its file system stay free (0: none,
 * base/space.h). 0 or a negative errno.
 */
int dead_letter_writer_new(const char *dir, uint64_t max_bytes, uint64_t free_min, struct dead_letter_writer **ret);
void dead_letter_writer_free(struct dead_letter_writer *d);	/* NULL is fine */

/*
 * Writes an encoded letter of a topic into the file of the day of a time. 0; -EDQUOT: the folder is full; -ENOSPC: its
 * file system is; or the error of the write.
 */
int dead_letter_writer_put(struct dead_letter_writer *d, enum topic topic, int64_t now_us, const void *letter,
    size_t len);
/* Syncs what was written. 0, or the first negative errno since the last call. */
int dead_letter_writer_sync(struct dead_letter_writer *d);
/* Sums up the folder's size again before the next letter. */
void dead_letter_writer_scan(struct dead_letter_writer *d);

#endif
