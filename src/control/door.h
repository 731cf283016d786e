/*
 * SPDX-License-Identifier: Apache-2.0
 * door: a listening socket whose connections are accepted at a limited rate, a few in each turn of the loop. What
 * comes faster waits in the kernel, where it costs the agent nothing.
 */
#ifndef SLUICE_CONTROL_DOOR_H
#define SLUICE_CONTROL_DOOR_H

#include <stdint.h>

struct door;
struct event_base;

struct door_options {
	uint32_t per_second;	/* connections that are accepted, whatever becomes of them */
	uint32_t burst;		/* of connections after a rest */
	void (*on_accept)(int fd, void *arg);	/* owns fd, which is non-blocking; on the loop */
	void *arg;
};

/* Accepts from fd, which it owns from now on, also on failure. Returns 0 or -ENOMEM. */
int door_open(struct event_base *base, int fd, const struct door_options *o, struct door **ret);
void door_close(struct door *d);	/* NULL is fine */
/* Returns how often connections had to wait, because they came faster. */
uint64_t door_waits(const struct door *d);

#endif
