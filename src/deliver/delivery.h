/*
 * SPDX-License-Identifier: Apache-2.0
 * delivery: hands the spool's records to an output, and releases in the spool what that delivered.
 *
 *	RUNNING ──a record failed──► RECALLING ──nothing in flight──► PAUSED ──time──► RUNNING
 *
 * A record that failed for now is not sent again on its own, which would put it behind later ones:
 * the output gives back all that it has, the spool goes back to the oldest that is not delivered,
 * and all is handed over again in order, marked as a redelivery. One that can never be delivered
 * goes to the dead letters. Everything happens on the loop's thread.
 */
#ifndef SLUICE_DELIVER_DELIVERY_H
#define SLUICE_DELIVER_DELIVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "deliver/output.h"

struct dead_letters;
struct delivery;
struct event_base;

struct delivery_options {
	unsigned per_turn;		/* records handed over in one turn of the loop; 0: 2,000 */
	uint32_t pause_min_ms;		/* after a failure; doubles without a delivery; 0: 100 ms */
	uint32_t pause_max_ms;		/* 0: 5 s */
	struct dead_letters *dead;	/* the caller's, must outlive the delivery; NULL: only counted */
};

enum {
	DELIVERY_REASONS = 16,		/* that are told apart; the rest is "other" */
};

struct delivery_dead {
	char reason[40];
	uint64_t count[TOPIC_COUNT];
};

struct delivery_stats {
	uint64_t delivered[TOPIC_COUNT];
	uint64_t redelivered[TOPIC_COUNT];	/* handed over once more */
	uint64_t rewinds;
	struct delivery_dead dead[DELIVERY_REASONS];	/* given up, by reason, wherever they went */
	size_t n_dead;
	uint64_t lost_full[TOPIC_COUNT];	/* given up, and "dead_letters_full" */
	uint64_t lost_unwritable[TOPIC_COUNT];	/* given up, and no dead letter could be written */
	uint64_t in_flight;
	char failure[256];			/* the last, as "reason: detail"; "" never */
	int64_t failure_us;			/* when; 0: never */
};

/* ret_events: for the output, which is opened next. 0 or -ENOMEM. base and spool must outlive it. */
int delivery_open(struct event_base *base, struct spool *spool, const struct delivery_options *o,
    struct output_events *ret_events, struct delivery **ret);
/* output becomes delivery's. Hands over what waits from the next turn of the loop on. */
void delivery_set_output(struct delivery *d, struct output *output);
/* Closes the output too. The spool keeps what is not delivered. NULL is fine. */
void delivery_close(struct delivery *d);

void delivery_wake(struct delivery *d);		/* the spool has more: after each spool_commit() */
void delivery_tick(struct delivery *d, int64_t now_us);	/* about ten times a second */
void delivery_flush(struct delivery *d);	/* all that can be is handed over, and sent at once */

/*
 * Hurries the output on and calls on_done once, from the loop: when the spool has nothing that waits
 * and all is delivered (is_empty), or after timeout_ms.
 */
void delivery_drain(struct delivery *d, uint32_t timeout_ms,
    void (*on_done)(bool is_empty, void *arg), void *arg);

void delivery_stats(const struct delivery *d, struct delivery_stats *ret);

#endif
