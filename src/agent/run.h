/*
 * SPDX-License-Identifier: Apache-2.0
 * run: the agent of `sluice run`: one command and all that descends from it, in one run, into a lake of files.
 */
#ifndef SLUICE_AGENT_RUN_H
#define SLUICE_AGENT_RUN_H

#include "agent/agent.h"

struct agent_run_options {
	struct agent_options agent;
	const char *lake;
	const char *run_id;		/* NULL: a fresh UUID */
	const char *pipeline;
	const char *task;
	const char *sample;
	const char *const *command;	/* NULL-terminated, for the Run record */
};

/*
 * Loads the probes, opens the lake, starts the timers. Nothing is followed yet. base must outlive
 * it. 0, or a negative errno with *ret untouched and a sentence in error.
 */
int agent_open_run(struct event_base *base, const struct agent_run_options *options, struct agent **ret,
    char *error, size_t error_size);

/* Children that this process forks from now on (until false) begin the run. */
void agent_adopt(struct agent *a, bool on);

/*
 * The command has ended with this wait status: collects what is under way, and with wait_for_all
 * whatever still runs, then writes the END records and calls on_done, on the loop.
 */
void agent_finish(struct agent *a, int wait_status, bool wait_for_all,
    void (*on_done)(void *arg), void *arg);
/* While finishing: wait for the rest no longer. */
void agent_finish_now(struct agent *a);

/* One line on the lake's last failure; "" when it works. Valid until the next call. */
const char *agent_lake_error(struct agent *a);

#endif
