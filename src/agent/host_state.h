/*
 * SPDX-License-Identifier: Apache-2.0
 * host_state: the state of a host's agent, shared by host.c, discover.c and containers.c.
 */
#ifndef SLUICE_AGENT_HOST_STATE_H
#define SLUICE_AGENT_HOST_STATE_H

#include "agent/host.h"
#include "agent/state.h"

struct host_agent {
	struct agent agent;		/* first: it is cast to struct host_agent */
	struct spool *spool;		/* the caller's */
	struct agent_owner owner;
	struct container_resolver *names;	/* owned; NULL: no socket is configured */
	void (*on_rules)(int error, uint64_t generation, void *arg);
	void *on_rules_arg;

	bool is_renewed;		/* the agent_id is not that of the previous agent */
	bool is_checkpoint_due;		/* an entry was lost: log the whole state again */
	uint64_t lost_entries_seen;
	int64_t last_alive_us;		/* last sign of life of the previous agent; 0: there was none */
	bool is_ring_spooled;		/* the spool has batches of this ring */
	uint64_t unspooled_bytes;	/* taken from the ring, but in no batch of the spool */

	uint32_t own_pid;
	uint64_t own_start_ticks;
	struct proc_reader *reader;	/* owned; while processes are discovered */
	struct state_event *unknown;	/* owned, with exe and cwd: processes of a pass that are to be discovered */
	size_t n_unknown;
	bool is_gap_written;		/* a GAP record is in the batch that is not committed */
	uint64_t refused_seen;		/* probes_refused() before the last pass for those without room */
	uint64_t admit_after_ns;	/* when the next may begin, CLOCK_BOOTTIME */
};

/* Returns the agent of a host that contains a, which must not be the agent of a run. */
static inline struct host_agent *
host_agent(struct agent *a)
{
	return (struct host_agent *)a;
}

/* Likewise for an agent that is only read. */
static inline const struct host_agent *
host_agent_const(const struct agent *a)
{
	return (const struct host_agent *)a;
}

/* discover.c: processes that ran before the probes begin as discovered programs. */

/* Discovers all processes that run now. 0 or a negative errno. */
int host_discover(struct host_agent *h);
/* Discovers those that the old rules excluded and the current ones do not. 0 or a negative errno. */
int host_discover_included(struct host_agent *h);
/* Discovers those that began while the probes reported nothing. 0 or a negative errno. */
int host_discover_missed(struct host_agent *h);
/* Discovers those for which there was no room before, if there is now; called once a second. now_ns: CLOCK_BOOTTIME. */
void host_discover_refused(struct host_agent *h, uint64_t now_ns);
/* Takes a state of a discovery pass; false: it is none, and the correlator's. */
bool host_discover_state(struct agent *a, const struct state_event *s);

/* containers.c: the container callback of struct correlator_ops. */
void host_on_container(const char *runtime, const char *id, void *arg);

#endif
