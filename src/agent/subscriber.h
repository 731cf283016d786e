/*
 * SPDX-License-Identifier: Apache-2.0
 * subscriber: reads the events of a run from the agent of the host (subscription.h), in place of probes.
 */
#ifndef SLUICE_AGENT_SUBSCRIBER_H
#define SLUICE_AGENT_SUBSCRIBER_H

#include <stdbool.h>
#include <stdint.h>

struct agent;
struct subscriber;

/*
 * Reads from fd, which it owns from now on, also on failure, and passes events to a's stages, which must be open.
 * on_end is called once, on the loop: with true if all was passed on that was asked for, with false if the connection
 * ended or what it carries is malformed; nothing is read after it. 0 or -ENOMEM.
 */
int subscriber_open(struct agent *a, int fd, void (*on_end)(bool is_settled, void *arg), void *arg,
    struct subscriber **ret);
void subscriber_close(struct subscriber *s);	/* NULL is fine */

/* Asks for what is still due, and for the end: on_end is called once that has arrived. */
void subscriber_finish(struct subscriber *s);
/* Returns the number of passes over all processes that were complete. */
uint64_t subscriber_passes(const struct subscriber *s);
/* Returns the number of programs whose events were not passed on, since they are not this user's. */
uint64_t subscriber_withheld(const struct subscriber *s);

#endif
