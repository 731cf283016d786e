/*
 * SPDX-License-Identifier: Apache-2.0
 * delivery: hands the spool's records to an output, and releases delivered ones in the spool.
 *
 *	RUNNING ──a record failed──► RECALLING ──all are answered──► PAUSED ──time──► RUNNING
 *
 * A record that failed for now is not sent again alone, because it would then follow later ones: the output's
 * records are recalled, the spool is rewound to the oldest that is not delivered, and all are handed over again
 * in order, marked as redeliveries. A record that can never be delivered becomes a dead letter. A topic of which the
 * output takes no records now waits in the spool while the others are delivered. All calls and callbacks run on the
 * loop's thread.
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
	uint32_t pause_min_ms;		/* pause after a failure; doubles until a record is delivered; 0: 100 ms */
	uint32_t pause_max_ms;		/* limit of the pause; 0: 5 s */
	struct dead_letters *dead;	/* the caller's, must outlive the delivery; NULL: only counted */
};

enum {
	DELIVERY_REASONS = 16,		/* reasons that are counted separately; the rest is "other" */
};

struct delivery_dead {
	char reason[40];
	uint64_t count[TOPIC_COUNT];
};

/* Why a topic waits, as the output's put() had it. */
struct delivery_wait {
	const char *reason;	/* static; NULL: it does not wait */
	int64_t since_us;
};

struct delivery_stats {
	uint64_t delivered[TOPIC_COUNT];
	uint64_t redelivered[TOPIC_COUNT];	/* handed over again */
	uint64_t rewinds;
	struct delivery_dead dead[DELIVERY_REASONS];	/* given up, by reason, whether written or not */
	size_t n_dead;
	uint64_t lost_full[TOPIC_COUNT];	/* given up, not written: the dead letters' folder or disk is full */
	uint64_t lost_unwritable[TOPIC_COUNT];	/* given up and not written: writing or syncing failed */
	struct delivery_wait waits[TOPIC_COUNT];
	uint64_t in_flight;		/* handed over and not delivered; or given up, and the letter is not synced */
	char failure[256];			/* last failure, as "reason: detail"; "": none */
	int64_t failure_us;			/* time of the last failure; 0: never */
};

/*
 * Creates a delivery. ret_events are the callbacks for the output, which is opened next. base and spool must
 * outlive it. 0 or -ENOMEM.
 */
int delivery_open(struct event_base *base, struct spool *spool, const struct delivery_options *o,
    struct output_events *ret_events, struct delivery **ret);
/* Takes ownership of output, and hands over waiting records from the next turn of the loop on. */
void delivery_set_output(struct delivery *d, struct output *output);
/* Frees the delivery and closes its output. Records that are not delivered stay in the spool. NULL is fine. */
void delivery_close(struct delivery *d);

void delivery_wake(struct delivery *d);		/* to be called after each spool_commit() */
void delivery_tick(struct delivery *d, int64_t now_us);	/* to be called about ten times a second */
void delivery_flush(struct delivery *d);	/* hands over and sends all that it can at once */

/*
 * Flushes the output and calls on_done once, from the loop: when all records committed by now are delivered
 * (is_empty), or after timeout_ms.
 */
void delivery_drain(struct delivery *d, uint32_t timeout_ms,
    void (*on_done)(bool is_empty, void *arg), void *arg);

/* Copies the counters since delivery_open(). */
void delivery_stats(const struct delivery *d, struct delivery_stats *ret);

#endif
