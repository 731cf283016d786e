/*
 * SPDX-License-Identifier: Apache-2.0
 * descriptors: closes what a new process inherits and must not keep.
 */
#ifndef SLUICE_BASE_DESCRIPTORS_H
#define SLUICE_BASE_DESCRIPTORS_H

/*
 * Closes all descriptors from first on, also of a process with threads that was just forked. Returns 0 or a negative
 * errno. Before Linux 5.9 those are closed that RLIMIT_NOFILE allows.
 */
int descriptors_close_from(int first);

#endif
