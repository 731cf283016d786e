/*
 * SPDX-License-Identifier: Apache-2.0
 * producer: librdkafka's idempotent producer, as far as src/kafka calls it.
 *
 * A message waits in the queue of its partition, is sent in a batch, one at a time for each partition, and ends with a
 * delivery report. A batch that is not answered is sent again with the same sequence numbers. A message that waits too
 * long is given up, also while it is on its way: its batch may arrive later. A topic that brokers do not know for some
 * seconds fails its messages. Properties, headers and texts of errors are those of the real library.
 */
#include <stdlib.h>
#include <string.h>

#include "producer.h"

#define REQUEST_TIMEOUT_US (10 * SIM_S)
#define LOOK_US (2 * SIM_S)		/* how often a producer asks for topics and leaders */

struct rd_kafka_s *sim_producers[PRODUCERS];

/* The queue has events: only the first one wakes the loop. */
void
sim_producer_wake(struct rd_kafka_s *rk)
{
	if (TAILQ_EMPTY(&rk->done) && !rk->is_fatal_due && rk->fd >= 0)
		sim_fd_wake(rk->fd);
}

/* --- messages --- */

/* Ends a message, which is in no list, with a report. */
static void
report(struct rd_kafka_s *rk, struct message *m, rd_kafka_resp_err_t err, int64_t offset)
{
	sim_producer_wake(rk);
	m->m.err = err;
	m->m.offset = offset;
	TAILQ_INSERT_TAIL(&rk->done, m, at);
}

void
sim_producer_report_all(struct rd_kafka_s *rk, struct messages *list, rd_kafka_resp_err_t err)
{
	struct message *m;

	while ((m = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, m, at);
		report(rk, m, err, -1);
	}
}

static struct sim_request *
request_of(const struct partition *p)
{
	for (int i = 0; i < SIM_REQUESTS && p->request != 0; i++)
		if (world->cluster.requests[i].id == p->request)
			return &world->cluster.requests[i];
	return NULL;
}

/* No answer to the request is waited for any more. */
void
sim_producer_forget_request(struct partition *p)
{
	struct sim_request *q = request_of(p);

	if (q != NULL)
		q->is_forgotten = true;
	p->request = 0;
}

/* Puts the messages of a request back to where they were, to be sent again as the same batch. */
static void
take_back(struct partition *p, uint64_t first)
{
	struct message *m;

	p->again = 0;
	p->first = first;
	while ((m = TAILQ_LAST(&p->sent, messages)) != NULL) {
		TAILQ_REMOVE(&p->sent, m, at);
		TAILQ_INSERT_HEAD(&p->queue, m, at);
		p->again++;
	}
}

/* After a gap in the sequence numbers: brokers take what follows from another epoch on. */
static void
begin_epoch(struct rd_kafka_s *rk)
{
	rk->epoch++;
	for (int t = 0; t < TOPIC_COUNT; t++) {
		for (int i = 0; i < SIM_PARTITIONS; i++) {
			struct partition *p = &rk->partitions[t][i];

			sim_producer_forget_request(p);
			take_back(p, 0);
			p->again = 0;
			p->sequence = 0;
		}
	}
}

/* Gives up what has waited too long. */
static void
expire(struct rd_kafka_s *rk)
{
	bool is_gap = false;

	for (int t = 0; t < TOPIC_COUNT; t++) {
		for (int i = 0; i < SIM_PARTITIONS; i++) {
			struct partition *p = &rk->partitions[t][i];
			bool is_gone = rk->is_missing[t] && world->now_us - rk->missing_since_us[t] > GONE_US;
			rd_kafka_resp_err_t err = rk->is_refused[t] ? RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED :
			    is_gone ? RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC : RD_KAFKA_RESP_ERR__MSG_TIMED_OUT;
			bool is_over = err != RD_KAFKA_RESP_ERR__MSG_TIMED_OUT;
			struct message *m = TAILQ_FIRST(&p->sent);

			if (m != NULL && (is_over || m->until_us <= world->now_us)) {
				sim_producer_forget_request(p);
				sim_producer_report_all(rk, &p->sent, err);
				is_gap = true;
			}
			while ((m = TAILQ_FIRST(&p->queue)) != NULL && (is_over || m->until_us <= world->now_us)) {
				is_gap |= p->again > 0;
				p->again = 0;
				TAILQ_REMOVE(&p->queue, m, at);
				report(rk, m, err, -1);
			}
		}
	}
	if (is_gap)
		begin_epoch(rk);
}

static void
become_fatal(struct rd_kafka_s *rk)
{
	sim_producer_wake(rk);
	rk->is_fatal = rk->is_fatal_due = true;
	for (int t = 0; t < TOPIC_COUNT; t++) {
		for (int i = 0; i < SIM_PARTITIONS; i++) {
			sim_producer_forget_request(&rk->partitions[t][i]);
			sim_producer_report_all(rk, &rk->partitions[t][i].sent, RD_KAFKA_RESP_ERR__FATAL);
			sim_producer_report_all(rk, &rk->partitions[t][i].queue, RD_KAFKA_RESP_ERR__FATAL);
		}
	}
}

/* Reports the messages of a batch that a broker has taken or refused. */
static void
end_batch(struct rd_kafka_s *rk, struct partition *p, const struct sim_request *q)
{
	bool has_poison = false;
	int64_t offset = q->offset;
	struct message *m;

	TAILQ_FOREACH(m, &p->sent, at)
		has_poison |= m->sent.is_poison;
	while ((m = TAILQ_FIRST(&p->sent)) != NULL) {
		rd_kafka_resp_err_t err = (rd_kafka_resp_err_t)q->error;

		TAILQ_REMOVE(&p->sent, m, at);
		if (err == RD_KAFKA_RESP_ERR_INVALID_RECORD && q->names_record && has_poison && !m->sent.is_poison)
			err = (rd_kafka_resp_err_t)-138;	/* another record of the batch is at fault */
		report(rk, m, err, err == 0 && offset >= 0 ? offset++ : -1);
	}
}

static void
take_answer(struct rd_kafka_s *rk, struct partition *p, struct sim_request *q)
{
	p->request = 0;
	q->state = SIM_REQUEST_FREE;
	switch (q->error) {
	case RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION:
	case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
		rk->look_us = world->now_us;
		p->linger_us = world->now_us + 100 * SIM_MS;
		take_back(p, q->sequence);
		break;
	case RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER:
	case RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH:
	case RD_KAFKA_RESP_ERR__FATAL:
		become_fatal(rk);
		break;
	case RD_KAFKA_RESP_ERR_NO_ERROR:
		end_batch(rk, p, q);
		break;
	default:
		end_batch(rk, p, q);
		begin_epoch(rk);
	}
}

static void
send_batch(struct rd_kafka_s *rk, enum topic topic, unsigned i)
{
	struct partition *p = &rk->partitions[topic][i];
	struct sim_request *q = sim_cluster_request(&world->cluster);
	struct message *m;

	if (q == NULL)
		return;
	q->client = rk->client;
	q->epoch = rk->epoch;
	q->topic = sim_topic(topic);
	q->partition = i;
	q->sequence = p->again > 0 ? p->first : p->sequence;
	while ((m = TAILQ_FIRST(&p->queue)) != NULL && q->n < SIM_BATCH) {
		if (p->again > 0 ? q->n == p->again : q->n > 0 && q->bytes + m->sent.bytes > rk->batch_max)
			break;
		TAILQ_REMOVE(&p->queue, m, at);
		TAILQ_INSERT_TAIL(&p->sent, m, at);
		q->messages[q->n++] = m->sent;
		if (p->again == 0)
			sim_check_sent(&m->sent);
		q->bytes += m->sent.bytes;
	}
	if (p->again == 0)
		p->sequence += q->n;
	p->again = 0;
	p->request = q->id;
	p->request_until_us = world->now_us + REQUEST_TIMEOUT_US;
	sim_cluster_send(&world->cluster, q);
}

static void
work_on_partition(struct rd_kafka_s *rk, enum topic topic, unsigned i)
{
	struct partition *p = &rk->partitions[topic][i];
	const struct sim_topic *t = &world->cluster.topics[sim_topic(topic)];
	struct sim_request *q = request_of(p);

	if (q != NULL && q->state == SIM_REQUEST_ANSWERED && !q->is_lost && q->at_us <= world->now_us) {
		take_answer(rk, p, q);
	} else if (p->request != 0 && p->request_until_us <= world->now_us) {
		uint64_t sequence = q != NULL ? q->sequence : 0;

		sim_producer_forget_request(p);
		take_back(p, sequence);
	}
	if (p->request == 0 && !TAILQ_EMPTY(&p->queue) && p->linger_us <= world->now_us && !rk->is_missing[topic] &&
	    t->has_leader[i] && world->cluster.is_up)
		send_batch(rk, topic, i);
}

/* Learns which topics are there. */
static void
look(struct rd_kafka_s *rk)
{
	rk->look_us = world->now_us + LOOK_US;
	for (int t = 0; t < TOPIC_COUNT && world->cluster.is_up; t++) {
		const struct sim_topic *topic = &world->cluster.topics[sim_topic((enum topic)t)];

		rk->is_refused[t] = !topic->may_describe;
		if (!topic->is_there && !rk->is_missing[t])
			rk->missing_since_us[t] = world->now_us;
		rk->is_missing[t] = !topic->is_there;
	}
}

void
sim_producers_work(void)
{
	for (int n = 0; n < PRODUCERS; n++) {
		struct rd_kafka_s *rk = sim_producers[n];

		if (rk == NULL || rk->is_fatal)
			continue;
		if (rk->look_us <= world->now_us)
			look(rk);
		expire(rk);
		for (unsigned t = 0; t < TOPIC_COUNT && !rk->is_fatal; t++)
			for (unsigned i = 0; i < SIM_PARTITIONS && !rk->is_fatal; i++)
				work_on_partition(rk, (enum topic)t, i);
	}
}

static int64_t
least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Returns when a producer has to do something with a partition; the cluster has the times of requests. */
static int64_t
partition_next_us(const struct rd_kafka_s *rk, enum topic topic, unsigned i)
{
	const struct partition *p = &rk->partitions[topic][i];
	const struct message *queued = TAILQ_FIRST(&p->queue), *sent = TAILQ_FIRST(&p->sent);
	int64_t next_us = p->request != 0 ? p->request_until_us : INT64_MAX;

	if (sent != NULL)
		next_us = least(next_us, sent->until_us);
	if (queued != NULL)
		next_us = least(next_us, queued->until_us);
	/* Else a look at the topics, or a repaired leader, is what it waits for. */
	if (queued != NULL && p->request == 0 && p->linger_us > world->now_us)
		next_us = least(next_us, p->linger_us);
	return next_us;
}

int64_t
sim_producers_next_us(void)
{
	int64_t next_us = INT64_MAX;

	for (int n = 0; n < PRODUCERS; n++) {
		const struct rd_kafka_s *rk = sim_producers[n];

		if (rk == NULL || rk->messages == 0 || rk->is_fatal)
			continue;
		next_us = least(next_us, rk->look_us);
		for (unsigned t = 0; t < TOPIC_COUNT; t++)
			for (unsigned i = 0; i < SIM_PARTITIONS; i++)
				next_us = least(next_us, partition_next_us(rk, (enum topic)t, i));
	}
	return next_us;
}

