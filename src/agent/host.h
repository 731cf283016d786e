/*
 * SPDX-License-Identifier: Apache-2.0
 * host: the agent of `sluice agent`: every process of the host, with the runs discovered on it, into a spool. State
 * of the correlator goes to the spool too, so that the next agent continues where this one stopped.
 */
#ifndef SLUICE_AGENT_HOST_H
#define SLUICE_AGENT_HOST_H

#include "agent/agent.h"

struct agent_record;
struct container_resolver_counts;
struct kubelet;
struct kubelet_options;
struct sight;
struct spool;

/* Callbacks of the agent's owner. Each may be NULL. */
struct agent_owner {
	/* Called after a batch was committed to the spool: there may be records to deliver. */
	void (*committed)(void *arg);
	void (*tick)(void *arg);	/* called once a second */
	/* Adds the owner's fields to an Agent record: generation, delivered, retried. */
	void (*describe)(struct agent_record *r, void *arg);
	/* Appends the owner's losses. */
	void (*losses)(struct loss_list *to, void *arg);
	/* Called when the agent ceases to see, and when it sees again, with a sentence. */
	void (*sight)(const struct sight *s, const char *sentence, void *arg);
	void *arg;
};

struct agent_host_options {
	struct agent_options agent;
	struct spool *spool;		/* the caller's; outlives the agent */
	const char *agent_id;		/* of this spool */
	const char *renewed;		/* why the agent_id is not that of the records in the spool; NULL: it is */
	const char *cluster;		/* of schedulers' job ids; NULL or "": none */
	const char *pin_dir;		/* see attach/pins.h; NULL: probes are detached with this process */
	uint64_t watchdog_ns;
	uint32_t max_processes;		/* 0: by the host's CPUs and memory */
	struct agent_owner owner;
};

/* Opens an agent like agent_open_run(), but follows every process from now on. */
int agent_open_host(struct event_base *base, const struct agent_host_options *options, struct agent **ret,
    char *error, size_t error_size);
/* Handles pending events, writes each START that is due and a STOP record, and commits. agent_close() must follow. */
void agent_stop(struct agent *a);

/*
 * Returns the bytes that an earlier agent took from the ring without a batch in the spool: a gap, which has a GAP
 * record.
 */
uint64_t agent_unspooled_bytes(const struct agent *a);
/* Returns true while there may be processes that are not followed because there was no room for them. */
bool agent_lacks_room(const struct agent *a);
/* Returns whether the agent sees; valid as long as the agent. */
const struct sight *agent_sight(const struct agent *a);
/* Writes an Agent record of an event, e.g. RELOAD. message may be NULL. */
void agent_tell(struct agent *a, const char *event, const char *message);
/* Commits the spool's current batch, with the agent's state and the ring's position. */
void agent_commit(struct agent *a);

/* Sets the interval of Usage, Host and Agent records from now on. */
void agent_set_interval(struct agent *a, uint64_t interval_ms);
/* Sets how long a program must live until its START is written, from now on. */
void agent_set_start_after(struct agent *a, uint64_t start_after_ms);
/* Sets when a state of a task or run is a finding, from now on. */
void agent_set_finding_limits(struct agent *a, const struct finding_limits *limits);
/* Sets the limit of argument bytes in a record, for programs from now on. */
void agent_set_argv_max(struct agent *a, uint64_t bytes);
/* Sets since when the fields of a signal are known; see correlator_set_known_since(). */
void agent_set_known_since(struct agent *a, enum optional_signal signal, uint64_t since_ns);
/* Sets the environment variables that are read, for programs that start from now on. 0 or a negative errno. */
int agent_set_variables(struct agent *a, const char *const *names, size_t n);
/*
 * Sets the rules for programs that start from now on. Calls done once the kernel has them too, as
 * probes_set_rules() does. 0 or a negative errno.
 */
int agent_set_rules(struct agent *a, struct ruleset *rules, void (*done)(int error, uint64_t generation, void *arg),
    void *arg);

/*
 * From now on asks container runtimes on these sockets for names and images, with the current credentials of this
 * process; see runtime/container_resolver.h. 0 or a negative errno.
 */
int agent_ask_sockets(struct agent *a, const char *const *sockets, size_t n);
/* Asks again about containers and pods without an answer, after a socket or the kubelet did not answer. */
void agent_ask_again(struct agent *a);
/* Returns counts of the runtimes' answers; NULL: no socket is configured. */
const struct container_resolver_counts *agent_container_counts(const struct agent *a);
/* Returns the state of socket i, as container_resolver_state() does. */
int agent_socket_state(const struct agent *a, size_t i);
/* From now on asks this node's kubelet for names of pods, likewise; see runtime/kubelet.h. 0 or a negative errno. */
int agent_ask_kubelet(struct agent *a, const struct kubelet_options *options);
/* Returns what is asked, for its state and counts; NULL: no kubelet is configured. */
const struct kubelet *agent_kubelet(const struct agent *a);

/* From now on records have these facts of the host, but those that are configured win. */
void agent_learn_facts(struct agent *a, const struct host_facts *facts);

/* From now on readers have no capability, but one that reads headers. To be called as the agent gives up its own. */
void agent_confine_readers(struct agent *a);

/* Drains the ring, then takes a snapshot, so that children that never called exec are known. */
void agent_meet_all(struct agent *a);

/*
 * Whether everything that happened before a moment is recorded. The record of a process that ended (its last thread
 * has begun to exit) is due when the kernel has freed it, tens of milliseconds after its parent waited for it; or
 * when the kernel has not reported that for 5 s; or, for a zombie, when it is 200 ms old. A process that is still
 * releasing its resources has not been reported to its parent as ended.
 */
struct agent_settling {
	uint64_t since_ns;	/* the moment, CLOCK_BOOTTIME; set by the caller */
	uint64_t ring_end;	/* agent_ring_end() at that moment; set by the caller */
	const char *run_id;	/* only the processes of this run count; NULL: all. Set by the caller */
	bool is_read;		/* the ring was read up to ring_end */
	uint64_t ends;		/* processes that ended before it, and whose last event is yet to arrive */
	struct correlator_held held;	/* tasks, runs and failures that ended before it */
};
uint64_t agent_ring_end(const struct agent *a);
/*
 * Makes one pass over all processes for all n moments; everything due by now is recorded and spooled. Fills in the
 * members that the caller does not set. Returns false if the pass broke off: then they are not valid.
 */
bool agent_settle(struct agent *a, struct agent_settling *settling, size_t n);

#endif
