/*
 * SPDX-License-Identifier: Apache-2.0
 * agent: owns one of each stage, and the loop that moves events between them. run.h opens an agent for a command,
 * host.h one for the whole host; both share the calls here.
 *
 *   probes ──ring──► decoder ──► correlator ──► stream ──► lake or spool
 *      └──iterator────┘              ▲
 *                host ───────────────┴─► Host records
 */
#ifndef SLUICE_AGENT_AGENT_H
#define SLUICE_AGENT_AGENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "correlate/correlator.h"
#include "identify/redact.h"
#include "model/finding_limits.h"
#include "model/host_facts.h"

struct agent;
struct event_base;
struct loss_list;
struct meter_state;
struct named_number;
struct nursery;
struct probes;
struct ruleset;
struct stream;

enum {
	AGENT_EVENTS = 11,	/* number of event kinds in agent_events() */
};

/* Options of both kinds of agent; they need to live only until the open call returns. */
struct agent_options {
	struct ruleset *rules;		/* the agent takes a reference */
	bool reads_headers;		/* reads files in which an engine names its tasks */
	struct nursery *nursery;	/* of its readers; the caller's, outlives the agent, has become their account */
	uint64_t interval_ms;		/* of Usage, Host and LIVE records; 0: 10 s */
	uint64_t start_after_ms;	/* see correlator_set_start_after() */
	struct finding_limits finding_limits;
	const struct host_facts *facts;	/* of this host as they are configured; NULL: none. Copied */
	size_t ring_bytes;		/* 0: 8 MiB, or of a host's agent by its CPUs and memory */
	const char *const *variables;	/* names of environment variables that are read at exec, 8 at most */
	size_t n_variables;
	const struct redaction_options *redaction;	/* the salt is set by the agent; NULL: the shipped patterns,
							 * all arguments kept */
	/* If set, files are opened as this user, who then owns the lake, once the probes are attached. */
	bool has_file_owner;
	uid_t file_uid;
	gid_t file_gid;
};

/*
 * Frees the agent and everything that it opened. 0, or the negative errno with which its lake was closed. a may be
 * NULL.
 */
int agent_close(struct agent *a);

/*
 * Sets how arguments are redacted from now on. 0, or a negative errno with nothing changed and a sentence in error.
 */
int agent_set_redaction(struct agent *a, const struct redaction_options *options, char *error, size_t error_size);

/*
 * Raises the priority of this process, if that is allowed. Must be called after COMMAND was forked, which would
 * inherit it.
 */
void agent_raise_priority(void);

/* Handles all events that are in the ring now; those that come meanwhile may wait. */
void agent_drain_all(struct agent *a);

/* Each returned string is valid as long as the agent. The run id is "" for an agent of a host. */
const char *agent_run_id(const struct agent *a);
const char *agent_host_id(const struct agent *a);
const char *agent_host_name(const struct agent *a);
/* Each returned stage belongs to the agent and lives as long as it. */
struct correlator *agent_correlator(struct agent *a);
struct probes *agent_probes(struct agent *a);
struct stream *agent_stream(struct agent *a);
/* Returns the sums of all that the agent has followed up to now. */
struct run_totals agent_totals(const struct agent *a);
/* Returns the number of CPUs of this host. */
uint32_t agent_cpus(const struct agent *a);

/* Handles all events that are in the ring now. */
void agent_drain_all(struct agent *a);
/* Fills in the number of events since the start, by kind. */
void agent_events(const struct agent *a, struct named_number ret[AGENT_EVENTS]);
/* Appends the losses whose count is not 0. */
void agent_losses(const struct agent *a, struct loss_list *to);
/* Fills in the users of whom most was lost, most first. Returns their number. */
size_t agent_user_losses(const struct agent *a, struct user_loss ret[USER_LOSSES]);
/* Fills in by what energy is metered, or why it is not. */
void agent_meter_state(const struct agent *a, struct meter_state *ret);
/* Fills in the CPU time since the start and the memory of the agent, with those of its readers. */
void agent_usage(const struct agent *a, uint64_t *ret_cpu_ns, uint64_t *ret_rss_bytes);

#endif
