/*
 * SPDX-License-Identifier: Apache-2.0
 * subscription: the events of one run, passed on by the agent of a host to `sluice run`, which then needs no probes of
 * its own (model/subscription.h).
 *
 *	agent:       ring, iterator ──► correlator ──► the agent's records
 *	                            └──► subscription ──► connection
 *	sluice run:  connection ──► subscriber ──► correlator ──► its lake
 */
#ifndef SLUICE_AGENT_SUBSCRIPTION_H
#define SLUICE_AGENT_SUBSCRIPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/subscription.h"

struct agent;
struct bufferevent;
struct program_key;

enum {
	SUBSCRIPTIONS_MAX = 64,			/* at once; a user other than root has as many as are free */
	SUBSCRIPTIONS_BEGINNING = 16,		/* of them those whose COMMAND has not called exec: see kept_tgids */
	SUBSCRIPTIONS_KEPT = 2,			/* of both, that only root can have */
	SUBSCRIPTION_BYTES_MAX = 16 << 20,	/* that may wait for all subscribers; a user has as many as are free */
};

/*
 * Passes on the events of the run from now on, to a connection that it takes over also on failure. pid: the process
 * that begins the run, which has not called exec; the rules in the kernel leave out none of its programs. Events beyond
 * what may wait are lost, which is reported to the subscriber. One that has read nothing for ten minutes, although
 * something waits, whose process has not called exec within ten seconds, or that sends anything, is disconnected. uid:
 * the subscriber's. Any but root gets the events of this user's programs alone: what runs as another user, or may, is
 * withheld and counted. user: the one behind the subscriber (model/user.h), which agent_may_subscribe() has admitted.
 * Returns 0 or -ENOMEM.
 */
int agent_subscribe(struct agent *a, const char *run_id, uint32_t pid, uint32_t uid, uint32_t user,
    struct bufferevent *to);
/* Returns whether a user may have one more subscription; if not, that is counted. */
bool agent_may_subscribe(struct agent *a, uint32_t user);

struct subscription_stats {
	uint64_t crowded;	/* subscriptions beyond the limits */
	uint64_t slow;		/* subscribers that did not read, or whose process did not call exec */
	uint64_t malformed;	/* subscribers that sent something */
};
/* Copies the counters since the start. */
void agent_subscription_stats(const struct agent *a, struct subscription_stats *ret);
/* Ends all subscriptions at once; their connections are closed. */
void agent_unsubscribe_all(struct agent *a);

/* Called by the files of agent/. */

/* Enclose the handling of an event of a process by the correlator: the run may be known before or after it. */
void subscriptions_before(struct agent *a, const struct program_key *key);
void subscriptions_after(struct agent *a, const struct program_key *key);
/* Passes a frame without content on to all. */
void subscriptions_mark(struct agent *a, enum subscription_kind kind);
/* Passes on that a pass is complete. */
void subscriptions_passed(struct agent *a);
/* Passes on that n events were lost in the kernel, of whichever run. */
void subscriptions_lost(struct agent *a, uint64_t n);
/* Passes on since when the fields of a signal are known. */
void subscriptions_known(struct agent *a, uint64_t signal, uint64_t since_ns);

#endif
