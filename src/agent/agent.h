/*
 * SPDX-License-Identifier: Apache-2.0
 * agent: one of each stage, and the loop that moves events from one to the next. run.h opens one for a
 * command, host.h one for the whole host; what both do is here.
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

struct agent;
struct event_base;
struct loss_list;
struct named_number;
struct probes;
struct ruleset;
struct stream;

enum {
	AGENT_EVENTS = 11,	/* kinds of events that are counted */
};

/* What both kinds of agent are opened with. The caller's, until the call returns. */
struct agent_options {
	struct ruleset *rules;		/* a reference is taken */
	bool reads_headers;		/* of the files in which an engine names its tasks */
	uint64_t interval_ms;		/* of Usage, Host and LIVE records; 0: 10 s */
	size_t ring_bytes;		/* 0: 8 MiB */
	const char *const *variables;	/* names of those that are read at exec, 8 at most */
	size_t n_variables;
	const struct redaction_options *redaction;	/* its salt is set here; NULL: what is shipped, all kept */
	/* Once the probes are in: files are made and opened as this user, who owns the lake then. */
	bool has_file_owner;
	uid_t file_uid;
	gid_t file_gid;
};

/* Frees the agent and all that it opened. 0, or the negative errno with which its lake was closed. NULL is fine. */
int agent_close(struct agent *a);

/* Raises the priority of this process, as far as that is allowed. COMMAND must have been forked before. */
void agent_flush(void);

/* Strings are valid as long as the agent. The run's id is "" where it serves no run. */
const char *agent_run_id(const struct agent *a);
const char *agent_host_id(const struct agent *a);
const char *agent_host_name(const struct agent *a);
struct correlator *agent_correlator(struct agent *a);
struct probes *agent_probes(struct agent *a);
struct stream *agent_stream(struct agent *a);
struct run_totals agent_totals(const struct agent *a);
uint32_t agent_cpus(const struct agent *a);
/* CPUs that all runs have used over the last second. */
double agent_cores_now(const struct agent *a);

/* The numbers of events since the start, by kind. */
void agent_events(const struct agent *a, struct named_number ret[AGENT_EVENTS]);
/* Appends all losses whose count is not 0. */
void agent_losses(const struct agent *a, struct loss_list *to);

#endif
