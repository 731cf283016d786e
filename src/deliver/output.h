/*
 * SPDX-License-Identifier: Apache-2.0
 * output: where delivery hands the spool's records on to: Kafka (kafka.h) or files (file_output.h).
 * Everything happens on the loop's thread; nothing here waits.
 */
#ifndef SLUICE_DELIVER_OUTPUT_H
#define SLUICE_DELIVER_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/health.h"
#include "spool/spool.h"

struct output;

enum output_failure {
	OUTPUT_AGAIN,		/* its time ran out, or retries did: it will be handed over again */
	OUTPUT_NEVER,		/* too large, not allowed, not valid: to the dead letters */
};

/* What an output tells delivery. Never called from within put(). */
struct output_events {
	void (*delivered)(enum topic topic, uint64_t id, void *arg);
	/*
	 * reason: a short word for counting ("msg_size_too_large"), static; detail: a sentence. r has
	 * its id and topic, and for OUTPUT_NEVER all that was put; valid during the call.
	 */
	void (*failed)(const struct spool_record *r, enum output_failure failure, const char *reason,
	    const char *detail, void *arg);
	void (*ready)(void *arg);	/* put() is worth another try */
	void *arg;
};

struct output_status {
	const char *kind;		/* "kafka", "files" */
	enum output_state state;
	char error[512];		/* the last one, also after it is UP again */
	int64_t error_us;		/* when; 0: never */
	uint64_t delivered;
	uint64_t retried;		/* by the output itself, where it can tell */
	uint64_t in_flight;
	uint64_t queued_bytes;		/* in memory */
};

struct output_ops {
	/*
	 * Takes a copy. 0: delivered() or failed() will come with its id, later. -EAGAIN: not now,
	 * ready() will come. Any other negative errno: never, as OUTPUT_NEVER; *reason names it (static).
	 */
	int (*put)(struct output *o, const struct spool_record *r, const char **reason);
	void (*tick)(struct output *o, int64_t now_us);		/* about ten times a second */
	/* Sends what waits in memory as soon as it can: the agent is about to stop. */
	void (*flush)(struct output *o);
	/*
	 * Gives back all that is not delivered: failed(OUTPUT_AGAIN) comes for each, on the loop, or
	 * delivered() where it was under way. put() says -EAGAIN until all have come.
	 */
	void (*recall)(struct output *o);
	void (*status)(const struct output *o, struct output_status *ret);
	/*
	 * Bounded in time. Of what is in flight, what this still delivers is told; the rest is neither
	 * delivered nor failed. NULL is fine.
	 */
	void (*close)(struct output *o);
};

struct output {
	const struct output_ops *ops;
};

#endif
