/*
 * SPDX-License-Identifier: Apache-2.0
 * host_state: what the files of a host's agent share: host.c, discover.c and containers.c.
 */
#ifndef SLUICE_AGENT_HOST_STATE_H
#define SLUICE_AGENT_HOST_STATE_H

#include "agent/host.h"
#include "agent/state.h"

struct host_agent {
	struct agent agent;		/* first: an agent of this scope is cast */
	struct spool *spool;		/* the caller's */
	struct agent_owner owner;
	struct container_resolver *names;	/* owned; NULL: nobody is asked */
	void (*on_rules)(int error, uint64_t generation, void *arg);
	void *on_rules_arg;

	bool is_checkpoint_due;		/* an entry was lost: all of them again */
	uint64_t lost_entries_seen;
	int64_t last_alive_us;		/* of the agent before; 0: there was none */
	uint64_t unspooled_bytes;	/* of the ring: taken from it, and in no batch of the spool */

	uint32_t own_pid;
	uint64_t own_start_ticks;
	struct proc_reader *found;		/* owned; while the processes that ran before are met */
	struct state_event *unknown;	/* owned: processes that the first pass met, to be found */
	size_t n_unknown;
};

static inline struct host_agent *
host_agent(struct agent *a)
{
	return (struct host_agent *)a;
}

static inline const struct host_agent *
host_agent_const(const struct agent *a)
{
	return (const struct host_agent *)a;
}

/* discover.c: processes that ran before the probes begin as programs that are found. */

/* All that run now. 0 or a negative errno. */
int host_discover(struct host_agent *h);
/* Those that the rules before left out, and that these do not. */
int host_discover_included(struct host_agent *h);
/* A state of the first pass: true if it was dealt with. */
bool host_discover_state(struct agent *a, const struct state_event *s);

/* containers.c: as of correlator_ops. */
void host_on_container(const char *runtime, const char *id, void *arg);

#endif
