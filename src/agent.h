/*
 * SPDX-License-Identifier: Apache-2.0
 * agent: owns all the stages, and moves signals from one to the next on one libevent loop.
 *
 *   probes ──ring──► decoder ──► correlator ──► stream ──► sink
 *      └──iterator────┘              ▲
 *                host ───────────────┴─► Host records
 */
#ifndef SLUICE_AGENT_H
#define SLUICE_AGENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "correlate/correlator.h"

struct agent;
struct event_base;

struct agent_options {
	const char *lake;
	const char *run_id;		/* NULL: a fresh UUID */
	const char *pipeline;
	const char *task;
	const char *sample;
	const char *const *command;	/* NULL-terminated, for the Run record */
	uint64_t interval_ms;		/* of Usage, Host and LIVE records; 0: 10 s */
	size_t ring_bytes;		/* 0: 4 MiB */
	/* Once the probes are in: files are made and opened as this user, who owns the lake then. */
	bool has_file_owner;
	uid_t file_uid;
	gid_t file_gid;
};

/*
 * Loads the probes, opens the lake, starts the timers. Nothing is followed yet. base must outlive
 * it. 0, or a negative errno with *ret untouched and a sentence in error.
 */
int agent_open(struct event_base *base, const struct agent_options *options, struct agent **ret,
    char *error, size_t error_size);
/* Closes the lake. 0, or the sink's error. NULL is fine. */
int agent_close(struct agent *a);

/* Children forked by this process from now on (until false) begin the run. */
void agent_adopt(struct agent *a, bool on);

/*
 * The command has ended with this wait status: collects what is under way, and with wait_for_all
 * whatever still runs, then writes the END records and calls on_done, on the loop.
 */
void agent_finish(struct agent *a, int wait_status, bool wait_for_all,
    void (*on_done)(void *arg), void *arg);
/* While finishing: wait for the rest no longer. */
void agent_finish_now(struct agent *a);

const char *agent_run_id(const struct agent *a);
const char *agent_host_id(const struct agent *a);
struct correlator *agent_correlator(struct agent *a);
struct run_totals agent_totals(const struct agent *a);
uint32_t agent_cpus(const struct agent *a);
/* CPUs that the run has used over the last second. */
double agent_cores_now(const struct agent *a);

/* Lost, by place and reason; those that are not 0. */
struct agent_loss_line {
	const char *place;
	const char *reason;
	uint64_t count;
};
size_t agent_losses(const struct agent *a, struct agent_loss_line *lines, size_t n);

/* One line on the sink's last failure; "" when it works. */
const char *agent_sink_error(struct agent *a);

#endif
