/*
 * SPDX-License-Identifier: Apache-2.0
 * dead_letter_sync: a thread that waits in fdatasync(2) for dead letters, so that the loop does not. A round syncs all
 * files that were added since the round before it.
 */
#ifndef SLUICE_DELIVER_DEAD_LETTER_SYNC_H
#define SLUICE_DELIVER_DEAD_LETTER_SYNC_H

#include <stddef.h>
#include <stdint.h>

struct dead_letter_syncer;

/* NULL: out of memory. The thread is started for the first round. */
struct dead_letter_syncer *dead_letter_syncer_new(void);
/* Waits at most 5 s for a round that runs, and leaves one that hangs alone. NULL is fine. */
void dead_letter_syncer_free(struct dead_letter_syncer *s);

/* Returns the number of the next round, from 1 on: a file that was added to it need not be added again. */
uint64_t dead_letter_syncer_round(const struct dead_letter_syncer *s);
/* Adds a file or a folder to the next round. fd stays the caller's, who may close it. 0 or a negative errno. */
int dead_letter_syncer_add(struct dead_letter_syncer *s, int fd);
/* Counts a letter that is in a file of the next round, and begins that round if none is running. */
void dead_letter_syncer_put(struct dead_letter_syncer *s);
/*
 * Returns how many letters the round that has ended since the last call was for: the oldest ones; 0: none has ended.
 * *ret_error: 0, or a negative errno where they may be lost in a power cut. Begins the next round.
 */
size_t dead_letter_syncer_poll(struct dead_letter_syncer *s, int *ret_error);

#endif
