/*
 * SPDX-License-Identifier: Apache-2.0
 * host_agent: the agent of this host, if one runs: it is informed of the run of COMMAND, so that its records and ours
 * have the same run_id, and can pass on the events of that run, so that no probes need to be loaded.
 */
#ifndef SLUICE_CLI_HOST_AGENT_H
#define SLUICE_CLI_HOST_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct agent_run_options;

enum {
	HOST_AGENT_SUFFIX_SIZE = 32,
};

/*
 * Returns a connection, the caller's, to an agent that would pass on the events of a child of this process, or -1 with
 * a sentence in error; waits briefly for its answer. path: its socket; NULL: one of the two default ones that this
 * user may use. suffix: what the id of the run is to end with.
 */
int host_agent_find(const char *path, char suffix[HOST_AGENT_SUFFIX_SIZE], char *error, size_t error_size);

/*
 * Announces the run of the child pid, which has not called exec, and asks for its events. names: pipeline, task,
 * sample. With true the connection carries the events from now on (agent/subscription.h); else error has a sentence.
 */
bool host_agent_subscribe(int fd, pid_t pid, const char *run_id, const struct agent_run_options *names, char *error,
    size_t error_size);

/*
 * Announces the run without asking for events; likewise before COMMAND execs, so that its first program has the run
 * already. Waits briefly for the agent's answer; prints nothing if there is no agent. Returns the connection if there
 * is no answer yet, to be closed when the run is over, or -1.
 */
int host_agent_announce(const char *path, pid_t pid, const char *run_id, const struct agent_run_options *names);

#endif
