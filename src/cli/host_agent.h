/*
 * SPDX-License-Identifier: Apache-2.0
 * announce: informs the agent of this host, if one runs, which run COMMAND belongs to, so that its records and
 * ours have the same run_id.
 */
#ifndef SLUICE_CLI_ANNOUNCE_H
#define SLUICE_CLI_ANNOUNCE_H

#include <sys/types.h>

struct agent_run_options;

/*
 * Announces the run; to be called before COMMAND execs, so that its first program has the run already. Waits
 * briefly for the agent's answer, and prints nothing if there is no agent. names: pipeline, task, sample.
 * Returns the connection if there is no answer yet, to be closed when the run is over, or -1.
 */
int announce(const char *socket, pid_t pid, const char *run_id, const struct agent_run_options *names);

#endif
