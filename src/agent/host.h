/*
 * SPDX-License-Identifier: Apache-2.0
 * host: the agent of `sluice agent`: every process of the host, with the runs that are found on it, into a spool.
 * What it knows of the processes goes to the spool too, so that the next agent continues where this one stopped.
 */
#ifndef SLUICE_AGENT_HOST_H
#define SLUICE_AGENT_HOST_H

#include "agent/agent.h"

struct agent_record;
struct container_resolver_counts;
struct spool;

/* What the owner of the agent is called for, and adds to its records. */
struct agent_owner {
	/* A batch is in the spool: there may be something to deliver. */
	void (*committed)(void *arg);
	/* Adds what the owner knows to an Agent record: generation, delivered, retried. */
	void (*describe)(struct agent_record *r, void *arg);
	/* Appends the owner's losses. */
	void (*losses)(struct loss_list *to, void *arg);
	void *arg;
};

struct agent_host_options {
	struct agent_options agent;
	struct spool *spool;		/* the caller's; outlives the agent */
	const char *agent_id;		/* of this spool */
	const char *cluster;		/* NULL or "": none */
	const char *pin_dir;		/* see attach/pins.h; NULL: probes end with this process */
	uint64_t watchdog_ns;
	uint32_t max_processes;
	struct agent_owner owner;
};

/* As agent_open_run(), but that every process is followed from now on. */
int agent_open_host(struct event_base *base, const struct agent_host_options *options, struct agent **ret,
    char *error, size_t error_size);
/* Collects what is under way, writes STOP, commits. Then agent_close(). */
void agent_stop(struct agent *a);

/* Bytes that an agent before took from the ring and that the spool does not have: a gap, which has its record. */
uint64_t agent_unspooled_bytes(const struct agent *a);
/* Writes an Agent record of an event, e.g. RELOAD. message: NULL is fine. */
void agent_tell(struct agent *a, const char *event, const char *message);

/* The interval of Usage, Host and Agent records from now on. */
void agent_set_interval(struct agent *a, uint64_t interval_ms);
/* Bytes of arguments that a record holds at most, of programs from now on. */
void agent_set_argv_max(struct agent *a, uint64_t bytes);
/* The variables of the environment that are read, of programs that start from now on. */
int agent_set_variables(struct agent *a, const char *const *names, size_t n);
/* How arguments are redacted, likewise. 0, or a negative errno with all as it was and a sentence in error. */
int agent_set_redaction(struct agent *a, const struct redaction_options *options, char *error,
    size_t error_size);
/*
 * The rules from now on, for programs that start; done as of probes_set_rules(), when the kernel has
 * them too. 0 or a negative errno.
 */
int agent_set_rules(struct agent *a, struct ruleset *rules, void (*done)(int error, uint64_t generation, void *arg),
    void *arg);

/*
 * From now on, and as whoever this process is by now, runtimes are asked for the names and images of
 * containers: see runtime/container_resolver.h. 0 or a negative errno.
 */
int agent_ask_sockets(struct agent *a, const char *const *sockets, size_t n);
/* Asks once more for those that are still without: after a socket did not answer. */
void agent_ask_again(struct agent *a);
/* Counts of the runtimes' answers; NULL: no socket is configured. */
const struct container_resolver_counts *agent_container_counts(const struct agent *a);
/* As of container_resolver_state(), of one of these sockets. */
int agent_socket_state(const struct agent *a, size_t i);

/* Takes in all that the ring holds now. */
void agent_drain_all(struct agent *a);
/* Drains the ring, then takes a snapshot, so that children that never called exec are known. */
void agent_meet_all(struct agent *a);

/*
 * Is everything recorded that happened before a moment? Of a process that ended (its last thread has
 * begun to exit) the record is due when the kernel has let go of it, which is tens of milliseconds after its
 * parent has waited for it; or when the kernel has not said so for 5 s; or, while nobody waits for it, when
 * it has been a zombie for 200 ms. Of one that still gives back what it has, nobody was told that it ended.
 */
struct agent_settling {
	uint64_t since_ns;	/* the moment, CLOCK_BOOTTIME */
	uint64_t ring_end;	/* agent_ring_end() of then */
	bool is_read;		/* the ring, up to there */
	uint64_t ends;		/* processes that ended before it, and of which the last is still to come */
	struct correlator_held held;	/* of what ended before it */
};
uint64_t agent_ring_end(const struct agent *a);
/*
 * One pass over all processes for all of these; what is due by now is recorded and spooled. Fills in all but
 * the first two of each. False: the pass broke off, and says nothing.
 */
bool agent_settle(struct agent *a, struct agent_settling *settling, size_t n);

#endif
