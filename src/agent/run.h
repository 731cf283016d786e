/*
 * SPDX-License-Identifier: Apache-2.0
 * run: the agent of `sluice run`: one command and its descendants, in one run, into a lake of files.
 */
#ifndef SLUICE_AGENT_RUN_H
#define SLUICE_AGENT_RUN_H

#include "agent/agent.h"

struct agent_run_options {
	struct agent_options agent;
	bool is_subscriber;		/* loads no probes: the agent of the host has the events, see agent_receive() */
	const char *lake;
	const char *run_id;		/* NULL: a new UUID */
	const char *run_suffix;		/* what follows it; NULL: nothing */
	const char *pipeline;
	const char *task;
	const char *sample;
	const char *const *command;	/* NULL-terminated, for the Run record */
};

/*
 * Loads the probes, opens the lake and starts the timers; no process is followed yet. base must outlive the agent.
 * 0, or a negative errno with *ret untouched and a sentence in error.
 */
int agent_open_run(struct event_base *base, const struct agent_run_options *options, struct agent **ret,
    char *error, size_t error_size);

/* While on, children that this process forks begin the run. Does nothing without probes. */
void agent_adopt(struct agent *a, bool on);

/*
 * Receives the events of the run from a connection to the agent of the host (subscription.h), which a owns from now on.
 * Only with is_subscriber; without this call there are none. 0 or -ENOMEM.
 */
int agent_receive(struct agent *a, int fd);
/* Returns false if the agent of the host ended before the run: what ran after that is not in the lake. */
bool agent_received_all(const struct agent *a);
/* Returns true once COMMAND itself was seen. A run that ended without that counts one event, at least, as lost. */
bool agent_saw_command(const struct agent *a);

/*
 * Returns how many programs of the run are not recorded here because they run, or may run, as another user than the
 * one to whom the agent of the host passes events on. Programs of sudo are such.
 */
uint64_t agent_withheld(const struct agent *a);

/*
 * Ends the run after the command has ended with this wait(2) status: handles pending events, waits for descendants
 * if wait_for_all, writes the END records and calls on_done on the loop.
 */
void agent_finish(struct agent *a, int wait_status, bool wait_for_all,
    void (*on_done)(void *arg), void *arg);
/* Stops waiting for descendants after agent_finish(). */
void agent_finish_now(struct agent *a);

/* Returns the number of CPUs that the run has used over the last second. */
double agent_cores_now(const struct agent *a);
/*
 * Closes the lake, after which no record may be written; agent_close() would do so, too. Returns one line on records
 * that it lacks; "" if there are none. Valid until the next call.
 */
const char *agent_close_lake(struct agent *a);

#endif
