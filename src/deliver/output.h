/*
 * SPDX-License-Identifier: Apache-2.0
 * output: interface of the outputs that delivery hands the spool's records to: Kafka (kafka.h) or files
 * (file_output.h). All calls and callbacks run on the loop's thread, and none waits.
 */
#ifndef SLUICE_DELIVER_OUTPUT_H
#define SLUICE_DELIVER_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/health.h"
#include "spool/spool.h"

struct lake_retention_stats;
struct output;

enum output_failure {
	OUTPUT_AGAIN,		/* retries used up: all that is not delivered is recalled, and handed over again */
	OUTPUT_TOPIC_AGAIN,	/* only records of its topic are handed over again, once none of them is on its way */
	OUTPUT_NEVER,		/* too large, not allowed or invalid: a dead letter */
};

/* Callbacks of an output to delivery, never from within put(). */
struct output_events {
	void (*delivered)(enum topic topic, uint64_t id, void *arg);
	/*
	 * Reports that a record was not delivered. reason: a short static word for counting
	 * ("msg_size_too_large"); detail: a sentence. r has its id and topic, and for OUTPUT_NEVER all members
	 * that were put; valid during the call.
	 */
	void (*failed)(const struct spool_record *r, enum output_failure failure, const char *reason,
	    const char *detail, void *arg);
	void (*ready)(void *arg);	/* called when put() may succeed again */
	void *arg;
};

struct output_status {
	const char *kind;		/* "kafka", "files" */
	enum output_state state;
	char error[512];		/* the last error, also after the state is UP again */
	int64_t error_us;		/* time of the last error; 0: never */
	char warning[320];		/* what is amiss at present although records are delivered; "" */
	uint64_t delivered;
	uint64_t retried;		/* retries of the output itself, if it counts them */
	uint64_t in_flight;
	uint64_t queued_bytes;		/* in memory */
	const struct lake_retention_stats *lake;	/* of files, valid until the next call; NULL: it has none */
};

struct output_ops {
	/*
	 * Takes a copy of a record. 0: delivered() or failed() will be called with its id, later. -EAGAIN: not
	 * now, ready() will be called. If *reason, which is NULL before the call, is then a static word, only records
	 * of this topic are not taken now, and others may be put. Any other negative errno: never, as OUTPUT_NEVER;
	 * *reason is a static word for it.
	 */
	int (*put)(struct output *o, const struct spool_record *r, const char **reason);
	void (*tick)(struct output *o, int64_t now_us);		/* about ten times a second */
	/* Sends records that wait in memory as soon as possible, because the agent is about to stop. */
	void (*flush)(struct output *o);
	/*
	 * Recalls all records that are not delivered: for each, failed(OUTPUT_AGAIN) is called from the loop,
	 * or delivered() if it was already on its way. put() returns -EAGAIN until all are answered.
	 */
	void (*recall)(struct output *o);
	void (*status)(const struct output *o, struct output_status *ret);
	/*
	 * Closes the output within bounded time. Calls delivered() for records in flight that are still
	 * delivered, and nothing for others. NULL is fine.
	 */
	void (*close)(struct output *o);
};

struct output {
	const struct output_ops *ops;
};

#endif
