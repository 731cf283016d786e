/*
 * SPDX-License-Identifier: Apache-2.0
 * sight: the proof that the agent sees. Once a second it looks whether its canaries come back (agent/canary.h), and
 * whether its programs still have the lease. A time in which it did not see has a GAP record.
 */
#ifndef SLUICE_AGENT_SIGHT_H
#define SLUICE_AGENT_SIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/canary.h"

struct host_agent;

struct sight {
	struct canary canary;
	uint64_t blind_since_ns;	/* CLOCK_BOOTTIME; 0: it sees */
	bool is_taken;			/* another agent took over */
	uint64_t gaps;			/* since the start, as is the next */
	uint64_t gaps_ns;
};

/* Begins: the agent sees, at now_ns. */
void sight_begin(struct sight *s, uint64_t now_ns);
/* Looks at lease and canary, and restores sight. To be called after each pass of the second timer. */
void sight_look(struct host_agent *h, uint64_t now_ns);
/* Writes a GAP record of the time from since_ns to now_ns, CLOCK_BOOTTIME. message may be NULL. */
void sight_write_gap(struct host_agent *h, uint64_t since_ns, uint64_t now_ns, const char *message);

#endif
