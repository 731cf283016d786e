/*
 * SPDX-License-Identifier: Apache-2.0
 * canary: a child of the agent that ends at once, forked every two seconds. Its end must come back by the way of every
 * other event: hooks, map, ring, decoder. It has no record.
 */
#ifndef SLUICE_AGENT_CANARY_H
#define SLUICE_AGENT_CANARY_H

#include <stdbool.h>
#include <stdint.h>

struct probes;
struct state_event;

struct canary {
	uint64_t forked_ns;		/* when the one was forked that has not come back, CLOCK_BOOTTIME; 0: none */
	uint64_t seen_ns;		/* when the last one was forked that came back */
	unsigned looks;			/* since forked_ns */
	int error;			/* why the last one could not be forked, an errno; 0: it was */
};

/* Begins: the agent sees, at now_ns. */
void canary_begin(struct canary *c, uint64_t now_ns);
/* Takes an event of a canary. */
void canary_event(struct canary *c, const struct state_event *s);
/*
 * To be called once a second: forks the next one when it is due. Returns false if the last one has not come back for so
 * long that the probes must be blind. One that was lost for lack of room in the kernel counts as seen: the programs
 * see, and losses of that kind are counted.
 */
bool canary_look(struct canary *c, struct probes *probes, uint64_t now_ns);

#endif
