/*
 * SPDX-License-Identifier: Apache-2.0
 * dead_letter: a folder of Avro files with the records that can never be delivered, and why.
 *
 *	<dir>/<topic>-<YYYY-MM-DD>.avro		the day on which they were given up, UTC
 *
 * Schema: schemas/avro/dead_letter.avsc. Each letter is a block of its own, in the file before
 * dead_letters_put() returns. The folder is bounded; what is in it is never removed from here.
 */
#ifndef SLUICE_DELIVER_DEAD_LETTER_H
#define SLUICE_DELIVER_DEAD_LETTER_H

#include <stddef.h>
#include <stdint.h>

#include "spool/spool.h"

struct dead_letters;

/* max_bytes: of the files in dir; 0: 100 MiB. The folder is made with the first letter. 0 or a negative errno. */
int dead_letters_open(const char *dir, uint64_t max_bytes, struct dead_letters **ret);
void dead_letters_close(struct dead_letters *d);	/* NULL is fine */

/*
 * Writes one letter. 0; -EDQUOT when the folder is full, until somebody has taken files out of it;
 * or what the disk said.
 */
int dead_letters_put(struct dead_letters *d, const struct spool_record *r, const char *reason,
    const char *detail);

uint64_t dead_letters_bytes(const struct dead_letters *d);	/* in dir, as last seen */

#endif
