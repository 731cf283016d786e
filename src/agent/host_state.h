/*
 * SPDX-License-Identifier: Apache-2.0
 * host_state: the state of a host's agent, shared by host.c, discover.c and containers.c.
 */
#ifndef SLUICE_AGENT_HOST_STATE_H
#define SLUICE_AGENT_HOST_STATE_H

#include "agent/host.h"
#include "agent/state.h"

/* When an agent was alive. Two of one boot can be compared, whatever the wall clock was set to between them. */
struct sign_of_life {
	int64_t wall_us;		/* CLOCK_REALTIME; 0: there was none */
	uint16_t ahead_s;		/* seconds from CLOCK_BOOTTIME to CLOCK_REALTIME modulo 65536; 0: unknown */
};

/* A process that is to be discovered. */
struct unknown_process {
	struct host_agent *h;
	struct state_event state;	/* exe and cwd are owned */
};

struct host_agent {
	struct agent agent;		/* first: it is cast to struct host_agent */
	struct spool *spool;		/* the caller's */
	struct agent_owner owner;
	struct container_resolver *names;	/* owned; NULL: no socket is configured */
	struct kubelet *kubelet;	/* owned; NULL: none is configured */
	void (*on_rules)(int error, uint64_t generation, void *arg);
	void *on_rules_arg;

	bool is_renewed;		/* the agent_id is not that of the previous agent */
	bool is_checkpoint_due;		/* an entry was lost: log the whole state again */
	uint64_t lost_entries_seen;
	struct sign_of_life last_alive;	/* of the previous agent */
	bool is_boot_spooled;		/* the last batch in the spool is of this boot */
	bool is_ring_spooled;		/* the spool has batches of this ring */
	uint64_t unspooled_bytes;	/* taken from the ring, but in no batch of the spool */

	uint32_t own_pid;
	uint64_t own_start_ticks;
	struct proc_reader *found;	/* owned; splits arguments; NULL unless processes are discovered */
	struct unknown_process *unknown;	/* owned: those of a pass that are to be discovered */
	size_t n_unknown;
	bool is_gap_written;		/* a GAP record is in the batch that is not committed */
	bool is_lacking;		/* what was not restored is noted in the spool, for the next agent */
	bool is_announced;		/* the first pass has found what ran meanwhile */
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

static inline struct sign_of_life
sign_of_life(int64_t wall_us, int64_t boot_us)
{
	return (struct sign_of_life){ wall_us, (uint16_t)((wall_us - boot_us) / 1000000) };
}

/*
 * Returns the nanoseconds between two signs of life; 0 if they are in the other order. A step of the wall clock between
 * them does not count, if both are of one boot and it was one of up to nine hours; to the second.
 */
static inline uint64_t
gap_between(const struct sign_of_life *last, const struct sign_of_life *now)
{
	int16_t step_s = (int16_t)(uint16_t)(now->ahead_s - last->ahead_s);
	int64_t gap_us = now->wall_us - last->wall_us;

	if (last->ahead_s != 0 && now->ahead_s != 0 && (step_s < -1 || step_s > 1))	/* else it was slewed */
		gap_us -= step_s * INT64_C(1000000);
	return gap_us > 0 ? (uint64_t)gap_us * 1000 : 0;
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

/* containers.c: the callbacks container and pod of struct correlator_ops. */
void host_on_container(const char *runtime, const char *id, void *arg);
void host_on_pod(const char *pod_uid, const char *container_id, void *arg);

#endif
