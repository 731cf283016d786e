/*
 * SPDX-License-Identifier: Apache-2.0
 * announce: tells the agent of this host, if one runs, which run COMMAND is, so that its records and
 * ours name the same.
 */
#ifndef SLUICE_CLI_ANNOUNCE_H
#define SLUICE_CLI_ANNOUNCE_H

#include <sys/types.h>

struct agent_run_options;

/*
 * Before COMMAND execs, so that its first program has the run already: waits for the agent's answer,
 * but never long. Says nothing where there is no agent. names: pipeline, task, sample. Returns the
 * connection where there is no answer yet, to be closed when the run is over, or -1.
 */
int announce(const char *socket, pid_t pid, const char *run_id, const struct agent_run_options *names);

#endif
