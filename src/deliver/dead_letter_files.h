/*
 * SPDX-License-Identifier: Apache-2.0
 * dead_letter_files: the files of a folder of dead letters: which there are, and the removal of letters from them while
 * an agent may be writing others.
 *
 * A process that removes letters from a file holds a write lock (fcntl, of the open file description) on it. An agent
 * that finds a file locked writes its next letter to another one.
 */
#ifndef SLUICE_DELIVER_DEAD_LETTER_FILES_H
#define SLUICE_DELIVER_DEAD_LETTER_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Names of files, sorted; a zeroed one is valid and empty. */
struct dead_letter_names {
	char **list;		/* owned, as is each */
	size_t n;
};

/* Returns whether a name in the folder is that of a file with dead letters. */
bool dead_letter_is_name(const char *name);
/* Lists the files of the folder that is open as dir_fd. 0 or a negative errno. */
int dead_letter_names_read(int dir_fd, struct dead_letter_names *ret);
void dead_letter_names_done(struct dead_letter_names *names);

/* Locks fd, which is open for writing, without waiting. False: another process has it locked. */
bool dead_letter_file_lock(int fd);
void dead_letter_file_unlock(int fd);

/*
 * Opens a file of the folder for reading, and locks it until it is closed. Returns a file descriptor, the caller's;
 * -ENOENT: it was removed; -EBUSY: another process removes letters from it; or another negative errno.
 */
int dead_letter_file_take(int dir_fd, const char *name);

/* Letters of a file, from the first byte of one to the last byte of another. */
struct dead_letter_range {
	uint64_t offset;
	uint64_t end;
};

/*
 * Removes ranges, which ascend, from a file that dead_letter_file_take() has opened as fd. All other bytes stay as they
 * are, damaged ones too; a file of which only the header is left, header_end bytes, is removed. The new file is on the
 * disk before it replaces the old one. 0, or a negative errno with the file unchanged.
 */
int dead_letter_file_remove(int dir_fd, const char *name, int fd, const struct dead_letter_range *ranges, size_t n,
    uint64_t header_end);

#endif
