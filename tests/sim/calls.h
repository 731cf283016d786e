/*
 * SPDX-License-Identifier: Apache-2.0
 * calls: what the sources of the calls on files share: calls.c, folders.c.
 */
#ifndef SLUICE_TESTS_SIM_CALLS_H
#define SLUICE_TESTS_SIM_CALLS_H

#include "sim.h"

enum {
	FDS = 512,
	FIRST_FD = 10000,	/* no descriptor of the test itself is so high */
};

/* What open(2) makes, and dup(2) shares. */
struct description {
	unsigned refs;
	int inode;		/* -1: an eventfd */
	bool is_locked;
	int flags;
	uint64_t count;		/* of an eventfd */
};

/* Returns the description, or NULL with errno. */
struct description *sim_fd_of(int fd);
/* Returns the file or folder of a descriptor, which must have one. */
struct sim_inode *sim_fd_inode(int fd);
/* Like openat(2). */
int sim_open(int dir, const char *path, int flags);

/* Finds the folder of a path, and the path's last part. The folder's inode, or a negative errno. */
int sim_path_folder(int dir, const char *path, char name[SIM_NAME_SIZE]);
/* Finds a name in a folder. Its inode, or a negative errno. */
int sim_path_find_in(int dir, const char *name);

#endif
