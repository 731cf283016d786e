/*
 * SPDX-License-Identifier: Apache-2.0
 * producer: what the sources of the model of librdkafka share: producer.c, producer_calls.c, topics.c.
 */
#ifndef SLUICE_TESTS_SIM_PRODUCER_H
#define SLUICE_TESTS_SIM_PRODUCER_H

#include <librdkafka/rdkafka.h>
#include <sys/queue.h>

#include "sim.h"

#define GONE_US (5 * SIM_S)		/* for how long a topic is missing before its messages fail */

enum {
	PRODUCERS = 16,
};

struct message {
	TAILQ_ENTRY(message) at;
	rd_kafka_message_t m;
	struct sim_message sent;
	int64_t put_us, until_us;
};

TAILQ_HEAD(messages, message);

struct rd_kafka_topic_s {
	struct rd_kafka_s *rk;
	char name[64];
	void *opaque;
};

struct rd_kafka_topic_conf_s {
	void *opaque;
};

struct rd_kafka_queue_s {
	struct rd_kafka_s *rk;
	bool is_main;
};

struct rd_kafka_topic_result_s {
	char name[64];
	rd_kafka_resp_err_t err;
};

/* The event of an answer to CreateTopics, and the answer. */
struct rd_kafka_op_s {
	struct rd_kafka_topic_result_s results[TOPIC_COUNT];
	const rd_kafka_topic_result_t *list[TOPIC_COUNT];
	size_t n;
	rd_kafka_resp_err_t err;
};

struct partition {
	struct messages queue;
	struct messages sent;		/* of the request */
	uint64_t sequence;		/* of the next message that is sent for the first time */
	uint64_t first;			/* of the batch that is to be sent again; with again */
	size_t again;			/* messages at the queue's head that were sent in one batch */
	uint64_t request;		/* 0: none is on its way */
	int64_t request_until_us;
	int64_t linger_us;		/* until when the next batch waits for more */
};

struct rd_kafka_s {
	bool is_used;
	void *opaque;
	struct rd_kafka_queue_s main, admin;
	int fd;				/* of the main queue; -1: none */
	size_t messages, messages_max;
	size_t batch_max;
	int64_t timeout_us;
	unsigned client, epoch;
	bool is_fatal;
	bool is_fatal_due;		/* the error callback is to be called */
	bool yields;
	struct messages done;
	struct partition partitions[TOPIC_COUNT][SIM_PARTITIONS];
	int64_t look_us;
	bool is_missing[TOPIC_COUNT], is_refused[TOPIC_COUNT];
	int64_t missing_since_us[TOPIC_COUNT];
	int64_t created_us;		/* when the answer to CreateTopics is there; INT64_MAX: none */
	struct rd_kafka_op_s *creating;	/* owned */
};

extern struct rd_kafka_s *sim_producers[PRODUCERS];	/* those that are open, at any index */

/* Wakes the loop if the queue has had no events. To be called before one is added. */
void sim_producer_wake(struct rd_kafka_s *rk);
/* Ends all messages of a list with a report. */
void sim_producer_report_all(struct rd_kafka_s *rk, struct messages *list, rd_kafka_resp_err_t err);
/* No answer to the partition's request is waited for any more. */
void sim_producer_forget_request(struct partition *p);

#endif
