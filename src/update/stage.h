/*
 * SPDX-License-Identifier: Apache-2.0
 * stage: puts a program in the place of another, in the same folder, so that its path always names one of them, whole.
 *
 *	.NAME.update		the new one, until it is swapped; only root may read it
 *	.NAME.update.old	the old one, from the swap to the verdict
 *	NAME.previous		the old one after that
 *	.NAME.update.lock	locked meanwhile; from the swap on it has one line about the agent
 *
 * After a kill the next stage_open() finds what is left: before the swap it is removed; after it the caller learns
 * that the verdict is still to be given.
 */
#ifndef SLUICE_UPDATE_STAGE_H
#define SLUICE_UPDATE_STAGE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum {
	STAGE_NOTE_SIZE = 32,
};

struct stage {
	char folder[PATH_MAX];
	char name[NAME_MAX + 1];
	char path[PATH_MAX + NAME_MAX];	/* of the new one, until it is swapped */
	char update[NAME_MAX + 1], old[NAME_MAX + 1], previous[NAME_MAX + 1], lock[NAME_MAX + 1];
	int dir, lock_fd;		/* -1: not open */
	bool is_swapped;		/* an update that was killed after its swap has left its verdict to us */
	char note[STAGE_NOTE_SIZE];	/* what that one wrote, without its newline */
};

/*
 * Locks the folder of a program by its absolute path, and removes what a killed update left there before its swap.
 * The folder and the program must be such that no other than root and this user can change them. 0; or a negative
 * errno with a sentence in error and nothing to close: -EBUSY: another update is under way.
 */
int stage_open(const char *target, struct stage *s, char *error, size_t error_size);
/* Removes what is not in use, unlocks and closes; it may be called twice. */
void stage_close(struct stage *s);

/* Writes the new program, to s->path, and syncs it: it can be executed there. 0 or a negative errno. */
int stage_write(struct stage *s, const void *data, size_t len);
/* Puts the new program in the place of the old one, and keeps the note. 0; or a negative errno, see is_swapped. */
int stage_swap(struct stage *s, const char *note);
/* The verdict: the old one becomes NAME.previous; or it comes back. 0 or a negative errno. */
int stage_keep(struct stage *s);
int stage_back(struct stage *s);

#endif
