/*
 * SPDX-License-Identifier: Apache-2.0
 * topics: the calls of librdkafka by which src/kafka looks at the cluster's topics and creates them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "producer.h"

SIM_WRAP(rd_kafka_resp_err_t, rd_kafka_metadata, rd_kafka_t *rk, int all_topics, rd_kafka_topic_t *only,
    const struct rd_kafka_metadata **ret, int timeout_ms)
{
	struct sim_cluster *c = &world->cluster;
	struct rd_kafka_metadata *md;
	int64_t until_us = world->now_us + (c->is_up ? (int64_t)sim_below((uint64_t)c->rtt_us) : timeout_ms * SIM_MS);

	(void)rk;
	(void)all_topics;
	(void)only;
	sim_wait_until(until_us);
	if (!c->is_up)
		return RD_KAFKA_RESP_ERR__TRANSPORT;
	md = calloc(1, sizeof(*md));
	if (md == NULL || (md->topics = calloc(TOPIC_COUNT, sizeof(*md->topics))) == NULL)
		abort();
	for (int t = 0; t < TOPIC_COUNT; t++) {
		const struct sim_topic *topic = &c->topics[sim_topic((enum topic)t)];

		/* The library has the names as char *, and does not change them. */
		md->topics[md->topic_cnt].topic = (char *)(uintptr_t)topic_name((enum topic)t);
		md->topics[md->topic_cnt++].err = !topic->may_describe ? RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED :
		    !topic->is_there ? RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART : RD_KAFKA_RESP_ERR_NO_ERROR;
	}
	*ret = md;
	return RD_KAFKA_RESP_ERR_NO_ERROR;
}

SIM_WRAP(void, rd_kafka_metadata_destroy, const struct rd_kafka_metadata *md)
{
	free(md->topics);
	free((void *)(uintptr_t)md);
}

SIM_WRAP(rd_kafka_AdminOptions_t *, rd_kafka_AdminOptions_new, rd_kafka_t *rk, rd_kafka_admin_op_t op)
{
	(void)op;
	return (rd_kafka_AdminOptions_t *)rk;
}

SIM_WRAP(rd_kafka_resp_err_t, rd_kafka_AdminOptions_set_request_timeout, rd_kafka_AdminOptions_t *o, int timeout_ms,
    char *error, size_t error_size)
{
	(void)o;
	(void)timeout_ms;
	(void)error;
	(void)error_size;
	return RD_KAFKA_RESP_ERR_NO_ERROR;
}

SIM_WRAP(void, rd_kafka_AdminOptions_destroy, rd_kafka_AdminOptions_t *o)
{
	(void)o;
}

SIM_WRAP(rd_kafka_NewTopic_t *, rd_kafka_NewTopic_new, const char *name, int partitions, int replication, char *error,
    size_t error_size)
{
	(void)partitions;
	(void)replication;
	(void)error;
	(void)error_size;
	return (rd_kafka_NewTopic_t *)strdup(name);
}

SIM_WRAP(void, rd_kafka_NewTopic_destroy_array, rd_kafka_NewTopic_t **topics, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(topics[i]);
}

SIM_WRAP(void, rd_kafka_CreateTopics, rd_kafka_t *rk, rd_kafka_NewTopic_t **topics, size_t n,
    const rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *queue)
{
	struct sim_cluster *c = &world->cluster;
	struct rd_kafka_op_s *op = calloc(1, sizeof(*op));

	(void)options;
	(void)queue;
	if (op == NULL)
		abort();
	op->err = c->is_up ? RD_KAFKA_RESP_ERR_NO_ERROR : RD_KAFKA_RESP_ERR__TIMED_OUT;
	for (; op->n < n; op->n++) {
		struct rd_kafka_topic_result_s *r = &op->results[op->n];

		snprintf(r->name, sizeof(r->name), "%s", (const char *)topics[op->n]);
		r->err = c->may_create ? RD_KAFKA_RESP_ERR_NO_ERROR : RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
		op->list[op->n] = r;
		for (int t = 0; t < TOPIC_COUNT && c->is_up && c->may_create; t++)
			if (strcmp(topic_name((enum topic)t), r->name) == 0)
				c->topics[sim_topic((enum topic)t)].is_there = true;
	}
	free(rk->creating);
	rk->creating = op;
	rk->created_us = world->now_us + (int64_t)sim_below((uint64_t)c->rtt_us * 4);
}

SIM_WRAP(rd_kafka_event_t *, rd_kafka_queue_poll, rd_kafka_queue_t *queue, int timeout_ms)
{
	struct rd_kafka_s *rk = queue->rk;
	struct rd_kafka_op_s *op = rk->creating;

	(void)timeout_ms;
	if (op == NULL || rk->created_us > world->now_us)
		return NULL;
	rk->creating = NULL;
	return op;
}

SIM_WRAP(const rd_kafka_CreateTopics_result_t *, rd_kafka_event_CreateTopics_result, rd_kafka_event_t *event)
{
	return (const rd_kafka_CreateTopics_result_t *)event;
}

SIM_WRAP(const rd_kafka_topic_result_t **, rd_kafka_CreateTopics_result_topics,
    const rd_kafka_CreateTopics_result_t *result, size_t *n)
{
	struct rd_kafka_op_s *op = (struct rd_kafka_op_s *)(uintptr_t)result;

	*n = op->err == RD_KAFKA_RESP_ERR_NO_ERROR ? op->n : 0;
	return op->list;
}

SIM_WRAP(rd_kafka_resp_err_t, rd_kafka_topic_result_error, const rd_kafka_topic_result_t *r)
{
	return r->err;
}

SIM_WRAP(const char *, rd_kafka_topic_result_error_string, const rd_kafka_topic_result_t *r)
{
	return rd_kafka_err2str(r->err);
}

SIM_WRAP(const char *, rd_kafka_topic_result_name, const rd_kafka_topic_result_t *r)
{
	return r->name;
}

SIM_WRAP(rd_kafka_resp_err_t, rd_kafka_event_error, rd_kafka_event_t *event)
{
	return event->err;
}

SIM_WRAP(const char *, rd_kafka_event_error_string, rd_kafka_event_t *event)
{
	return rd_kafka_err2str(event->err);
}

SIM_WRAP(void, rd_kafka_event_destroy, rd_kafka_event_t *event)
{
	free(event);
}
