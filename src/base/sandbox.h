/*
 * SPDX-License-Identifier: Apache-2.0
 * sandbox: what a process takes from itself for good: system calls (seccomp), and files (Landlock). Both need
 * no_new_privs, and are passed on to children. They hold for the calling thread: call them while it is the only one.
 */
#ifndef SLUICE_BASE_SANDBOX_H
#define SLUICE_BASE_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SANDBOX_TERMS = 2,
};

enum sandbox_relation {
	SANDBOX_ANY,		/* no condition */
	SANDBOX_EQUAL,
	SANDBOX_OTHER,		/* than the value */
	SANDBOX_WITHOUT,	/* all bits of the value */
};

/* A condition on an argument, by its lower 32 bits: all that the kernel reads of an int. */
struct sandbox_term {
	enum sandbox_relation is;
	unsigned argument;	/* from 0 */
	uint32_t value;
};

/* A system call that is allowed if all its terms hold. Several of one call are alternatives. */
struct sandbox_call {
	int number;
	struct sandbox_term terms[SANDBOX_TERMS];
};

/*
 * Refuses all system calls but n allowed ones, and those of every other architecture: with EPERM, or with ENOSYS those
 * that are newer than this list, and clone3(2), whose flags no filter can read: libraries then fall back to older ones.
 * Returns 0 or a negative errno.
 */
int sandbox_system_calls(const struct sandbox_call *allowed, size_t n);

/* What may still be done with a file, or below a folder. */
enum sandbox_access {
	SANDBOX_READ,
	SANDBOX_WRITE,		/* read, and make, change, rename and remove files and folders; no links, no devices */
	SANDBOX_REMOVE,		/* files, such as sockets */
};

/*
 * Begins a ruleset of files. From its sandbox_files_enforce() on no file can be opened, made, changed or executed but
 * as it allows, and from 6.7 on no TCP socket be bound but to ports that it allows. alone: none can be connected
 * either, and from 6.12 on no other process be signalled. Returns a descriptor; -EOPNOTSUPP where the kernel has no
 * Landlock (before 5.13, or switched off); -EPERM where it is refused; or another negative errno.
 *
 * Files of processes that are not in this sandbox are refused, too, where ptrace(2) would be: /proc/PID/exe and
 * cwd, and with hidepid all of /proc/PID.
 */
int sandbox_files_begin(bool alone);
/* 0 or a negative errno, -ENOENT among them. A path that is removed and made again is another one. */
int sandbox_files_allow(int files, const char *path, enum sandbox_access access);
int sandbox_files_allow_listening(int files, uint16_t port);
/* Puts it in force, and closes it. 0 or a negative errno. */
int sandbox_files_enforce(int files);

/* All of these: from now on only files below a folder can be opened, for reading. 0 or a negative errno. */
int sandbox_read_below(const char *folder);

/*
 * Returns why files cannot be confined here, a static clause, if that is what a negative errno of these functions
 * means; else NULL.
 */
const char *sandbox_lacks(int error);

/* Returns whether it is this process's ruleset that refused to open a path for reading, with EACCES. */
bool sandbox_refuses(const char *path);

#endif
