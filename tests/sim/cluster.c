/*
 * SPDX-License-Identifier: Apache-2.0
 * cluster: brokers that take batches or refuse them, and may be asked in vain. What a broker has taken is delivered.
 */
#include <librdkafka/rdkafka.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define LATE_US (20 * SIM_S)		/* for how long a network may keep a batch */

void
sim_cluster_init(struct sim_cluster *c)
{
	c->is_up = true;
	c->may_create = sim_dice(700);
	c->rtt_us = 5 * SIM_MS;
	for (unsigned t = 0; t < SIM_TOPICS; t++) {
		struct sim_topic *topic = &c->topics[t];

		topic->is_there = !c->may_create || sim_dice(300);
		topic->may_write = topic->may_describe = true;
		for (int p = 0; p < SIM_PARTITIONS; p++)
			topic->has_leader[p] = true;
	}
}

struct sim_request *
sim_cluster_request(struct sim_cluster *c)
{
	for (int i = 0; i < SIM_REQUESTS; i++) {
		struct sim_request *q = &c->requests[i];

		if (q->state != SIM_REQUEST_FREE)
			continue;
		memset(q, 0, sizeof(*q));
		q->id = ++c->next_request;
		return q;
	}
	return NULL;
}

void
sim_cluster_send(struct sim_cluster *c, struct sim_request *q)
{
	q->state = SIM_REQUEST_SENT;
	q->sent_us = world->now_us;
	q->at_us = world->now_us + 1 + (int64_t)sim_below((uint64_t)c->rtt_us);
	if (c->lost_requests > 0 && sim_dice(100))
		q->at_us += (int64_t)sim_below((uint64_t)LATE_US);	/* a network that passes it on after all */
}

void
sim_cluster_forget(struct sim_cluster *c)
{
	for (int i = 0; i < SIM_REQUESTS; i++)
		c->requests[i].is_forgotten = true;
}

/* Returns why a batch is refused as a whole; 0: it is not. */
static int
refusal(const struct sim_cluster *c, const struct sim_request *q)
{
	const struct sim_topic *t = &c->topics[q->topic];
	int64_t now_ms = (world->now_us + c->clock_us) / SIM_MS;

	if (!t->is_there)
		return RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
	if (!t->may_write)
		return RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
	if (!t->has_leader[q->partition])
		return RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION;
	if (c->batch_max > 0 && q->bytes > c->batch_max)
		return RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE;
	for (size_t i = 0; i < q->n && c->ahead_max_us > 0; i++)
		if (q->messages[i].time_ms >= 0 && q->messages[i].time_ms > now_ms + c->ahead_max_us / SIM_MS)
			return q->n > 1 ? RD_KAFKA_RESP_ERR_INVALID_RECORD : RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP;
	for (size_t i = 0; i < q->n; i++)
		if (q->messages[i].is_poison)
			return RD_KAFKA_RESP_ERR_INVALID_RECORD;
	return 0;
}

/* A broker judges a batch that arrives, and appends it or not. Returns the error of the answer. */
static int
judge(struct sim_cluster *c, struct sim_request *q)
{
	struct sim_topic *t = &c->topics[q->topic];
	unsigned p = q->partition;
	bool is_same = t->client[p] == q->client && t->epoch[p] == q->epoch;
	int error = refusal(c, q);

	q->offset = -1;
	if (error != 0)
		return error;
	if (t->client[p] == q->client && q->epoch < t->epoch[p])
		return RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH;
	if (is_same && q->sequence + q->n <= t->sequence[p]) {
		q->offset = t->log[p] - 1;	/* a repetition */
		return 0;
	}
	if (is_same && q->sequence != t->sequence[p])
		return RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER;
	if (sim_dice(c->forgets))
		return 0;
	t->client[p] = q->client;
	t->epoch[p] = q->epoch;
	t->sequence[p] = q->sequence + q->n;
	q->offset = t->log[p];
	t->log[p] += (int64_t)q->n;
	for (size_t i = 0; i < q->n; i++)
		sim_check_arrived(&q->messages[i], q->is_forgotten);
	return 0;
}

/* A batch arrives at a broker, which answers. */
static void
arrive(struct sim_cluster *c, struct sim_request *q)
{
	if (!c->is_up || sim_dice(c->lost_requests)) {
		q->is_lost = true;
		return;
	}
	q->error = judge(c, q);
	sim_say_record("a broker answers %d to batch %llu of producer %u.%u: %zu of %s in partition %u from %llu on",
	    q->error, (llu)q->id, q->client, q->epoch, q->n, sim_topic_name(q->topic), q->partition,
	    (llu)q->messages[0].seq);
	if (sim_dice(c->fatal))
		q->error = RD_KAFKA_RESP_ERR__FATAL;
	q->names_record = sim_dice(500);
	q->state = SIM_REQUEST_ANSWERED;
	q->at_us = world->now_us + 1 + (int64_t)sim_below((uint64_t)c->rtt_us);
	q->is_lost = sim_dice(c->lost_answers);
}

void
sim_cluster_work(struct sim_cluster *c)
{
	for (int i = 0; i < SIM_REQUESTS; i++) {
		struct sim_request *q = &c->requests[i];

		if (q->state == SIM_REQUEST_SENT && !q->is_lost && q->at_us <= world->now_us)
			arrive(c, q);
		if (q->is_forgotten && (q->is_lost || q->state == SIM_REQUEST_ANSWERED))
			q->state = SIM_REQUEST_FREE;
	}
}

int64_t
sim_cluster_next_us(const struct sim_cluster *c)
{
	int64_t next_us = INT64_MAX;

	for (int i = 0; i < SIM_REQUESTS; i++) {
		const struct sim_request *q = &c->requests[i];

		if (q->state != SIM_REQUEST_FREE && !q->is_lost && q->at_us < next_us)
			next_us = q->at_us;
	}
	return next_us;
}
