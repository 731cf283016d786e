/*
 * SPDX-License-Identifier: Apache-2.0
 * sandbox: what a process takes from itself for good: system calls (seccomp), and files (Landlock). Both need
 * no_new_privs, and are passed on to children. They hold for the calling thread: call them while it is the only one.
 */
#ifndef SLUICE_BASE_SANDBOX_H
#define SLUICE_BASE_SANDBOX_H

#include <stddef.h>

/*
 * Refuses, with EPERM, all system calls but n allowed ones, and those of every other architecture. Returns 0 or a
 * negative errno.
 */
int sandbox_system_calls(const int *allowed, size_t n);

/*
 * From now on no file can be opened, made or changed but those below a folder, which can be read; from 6.7 on no TCP
 * socket be bound or connected. Returns 0; -EOPNOTSUPP where the kernel has no Landlock (before 5.13, or switched off),
 * or another negative errno. Files of processes that are not in this sandbox are then refused where ptrace(2) would be:
 * /proc/PID/exe and cwd, and with hidepid all of /proc/PID.
 */
int sandbox_read_below(const char *folder);

#endif
