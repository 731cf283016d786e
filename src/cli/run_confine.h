/*
 * SPDX-License-Identifier: Apache-2.0
 * run_confine: what `sluice run` keeps of its privileges while its command runs.
 */
#ifndef SLUICE_CLI_RUN_CONFINE_H
#define SLUICE_CLI_RUN_CONFINE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Gives up, for good, all capabilities but those that signals, the probes and the lake need, and confines this process
 * to the system calls that an agent makes and to the lake: it can execute nothing, make no socket, and write nowhere
 * else. COMMAND, whose process must exist by then, is not concerned. To be called while this thread is the only one. 0,
 * or a negative errno with a sentence in error; the process may then be half-way, and should end.
 *
 * lake: its folder, which exists. has_probes: of its own.
 */
int run_confine(const char *lake, bool has_probes, char *error, size_t error_size);

#endif
