/*
 * SPDX-License-Identifier: Apache-2.0
 * producer_calls: the calls of librdkafka by which src/kafka opens a producer, gives it messages and gets reports.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/decode_head.h"
#include "kafka/frame.h"
#include "producer.h"
#include "spool/spool.h"

/* What src/kafka has set; one output at a time. */
static void (*on_delivery)(rd_kafka_t *rk, const rd_kafka_message_t *m, void *opaque);
static void (*on_error)(rd_kafka_t *rk, int err, const char *reason, void *opaque);
static void *conf_opaque;

/* --- configuration --- */

SIM_WRAP(void, rd_kafka_conf_set_dr_msg_cb, rd_kafka_conf_t *conf,
    void (*cb)(rd_kafka_t *rk, const rd_kafka_message_t *m, void *opaque))
{
	(void)conf;
	on_delivery = cb;
}

SIM_WRAP(void, rd_kafka_conf_set_error_cb, rd_kafka_conf_t *conf,
    void (*cb)(rd_kafka_t *rk, int err, const char *reason, void *opaque))
{
	(void)conf;
	on_error = cb;
}

SIM_WRAP(void, rd_kafka_conf_set_opaque, rd_kafka_conf_t *conf, void *opaque)
{
	(void)conf;
	conf_opaque = opaque;
}

static long
property(const rd_kafka_conf_t *conf, const char *name)
{
	char text[64];
	size_t size = sizeof(text);

	if (rd_kafka_conf_get(conf, name, text, &size) != RD_KAFKA_CONF_OK)
		sim_broken("librdkafka has no property %s", name);
	return atol(text);
}

/* --- a producer --- */

SIM_WRAP(rd_kafka_t *, rd_kafka_new, rd_kafka_type_t type, rd_kafka_conf_t *conf, char *error, size_t error_size)
{
	struct rd_kafka_s *rk = calloc(1, sizeof(*rk));
	int i = 0;

	(void)type;
	(void)error;
	(void)error_size;
	while (i < PRODUCERS && sim_producers[i] != NULL)
		i++;
	if (rk == NULL || i == PRODUCERS)
		sim_broken("more than %d producers", PRODUCERS);
	sim_producers[i] = rk;
	rk->is_used = true;
	rk->opaque = conf_opaque;
	rk->fd = -1;
	rk->main = (struct rd_kafka_queue_s){ rk, true };
	rk->admin = (struct rd_kafka_queue_s){ rk, false };
	rk->messages_max = (size_t)property(conf, "queue.buffering.max.messages");
	rk->batch_max = (size_t)property(conf, "batch.size");
	rk->timeout_us = property(conf, "message.timeout.ms") * SIM_MS;
	rd_kafka_conf_destroy(conf);
	rk->client = ++world->cluster.next_client;
	rk->created_us = INT64_MAX;
	rk->look_us = world->now_us;
	TAILQ_INIT(&rk->done);
	for (int t = 0; t < TOPIC_COUNT; t++) {
		for (int p = 0; p < SIM_PARTITIONS; p++) {
			TAILQ_INIT(&rk->partitions[t][p].queue);
			TAILQ_INIT(&rk->partitions[t][p].sent);
		}
	}
	return rk;
}

SIM_WRAP(void *, rd_kafka_opaque, const rd_kafka_t *rk)
{
	return rk->opaque;
}

SIM_WRAP(rd_kafka_resp_err_t, rd_kafka_set_log_queue, rd_kafka_t *rk, rd_kafka_queue_t *queue)
{
	(void)rk;
	(void)queue;
	return RD_KAFKA_RESP_ERR_NO_ERROR;
}

SIM_WRAP(rd_kafka_queue_t *, rd_kafka_queue_get_main, rd_kafka_t *rk)
{
	return &rk->main;
}

SIM_WRAP(rd_kafka_queue_t *, rd_kafka_queue_new, rd_kafka_t *rk)
{
	return &rk->admin;
}

SIM_WRAP(void, rd_kafka_queue_destroy, rd_kafka_queue_t *queue)
{
	(void)queue;
}

SIM_WRAP(void, rd_kafka_queue_io_event_enable, rd_kafka_queue_t *queue, int fd, const void *payload, size_t size)
{
	(void)payload;
	(void)size;
	queue->rk->fd = fd;
}

SIM_WRAP(rd_kafka_topic_conf_t *, rd_kafka_default_topic_conf_dup, rd_kafka_t *rk)
{
	(void)rk;
	return calloc(1, sizeof(struct rd_kafka_topic_conf_s));
}

SIM_WRAP(void, rd_kafka_topic_conf_set_opaque, rd_kafka_topic_conf_t *conf, void *opaque)
{
	conf->opaque = opaque;
}

SIM_WRAP(rd_kafka_topic_t *, rd_kafka_topic_new, rd_kafka_t *rk, const char *name, rd_kafka_topic_conf_t *conf)
{
	struct rd_kafka_topic_s *t = calloc(1, sizeof(*t));

	if (t == NULL)
		abort();
	t->rk = rk;
	snprintf(t->name, sizeof(t->name), "%s", name);
	t->opaque = conf->opaque;
	free(conf);
	return t;
}

SIM_WRAP(void, rd_kafka_topic_destroy, rd_kafka_topic_t *t)
{
	free(t);
}

SIM_WRAP(const char *, rd_kafka_topic_name, const rd_kafka_topic_t *t)
{
	return t->name;
}

SIM_WRAP(void *, rd_kafka_topic_opaque, const rd_kafka_topic_t *t)
{
	return t->opaque;
}

/* --- messages --- */

static void
free_message(struct rd_kafka_s *rk, struct message *m)
{
	rk->messages--;
	free(m->m.payload);
	free(m->m.key);
	free(m);
}

/* Reads what a broker gets of a message, and checks that it is what was put into the spool. */
static void
describe(struct message *m, enum topic topic, const rd_kafka_headers_t *headers)
{
	const uint8_t *payload = m->m.payload;
	struct spool_record r = { .topic = topic, .data = payload + KAFKA_FRAME_BYTES,
		.len = m->m.len - KAFKA_FRAME_BYTES };
	struct decoded_head head;
	const void *value;
	size_t size;

	sim_check(decode_head(r.data, r.len, &head), "a message has no head");
	r.seq = head.seq;
	r.is_again = rd_kafka_header_get_last(headers, "redelivery", &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR;
	sim_check_handed_over(&r);
	m->sent.topic = sim_topic(topic);
	m->sent.partition = (unsigned)(sim_hash(m->m.key, m->m.key_len) % SIM_PARTITIONS);
	m->sent.seq = head.seq;
	m->sent.hash = sim_hash(r.data, r.len);
	m->sent.schema_id = kafka_frame_id(payload);
	m->sent.bytes = m->m.len + m->m.key_len;
	m->sent.is_again = r.is_again;
	m->sent.is_poison = world->checks.topics[m->sent.topic].records[head.seq].is_poison;
}

static void *
copy(const void *data, size_t len)
{
	void *to = malloc(len + 1);

	if (to == NULL)
		abort();
	memcpy(to, data, len);
	return to;
}

SIM_WRAP(rd_kafka_resp_err_t, rd_kafka_producev, rd_kafka_t *rk, ...)
{
	struct message *m = calloc(1, sizeof(*m));
	rd_kafka_headers_t *headers = NULL;
	struct partition *p;
	enum topic topic;
	va_list args;
	int kind;

	sim_point();
	if (m == NULL)
		abort();
	va_start(args, rk);
	while ((kind = va_arg(args, int)) != RD_KAFKA_VTYPE_END) {
		switch (kind) {
		case RD_KAFKA_VTYPE_RKT:
			m->m.rkt = va_arg(args, rd_kafka_topic_t *);
			break;
		case RD_KAFKA_VTYPE_MSGFLAGS:
			(void)va_arg(args, int);
			break;
		case RD_KAFKA_VTYPE_VALUE:
			m->m.payload = va_arg(args, void *);
			m->m.len = va_arg(args, size_t);
			break;
		case RD_KAFKA_VTYPE_KEY:
			m->m.key = va_arg(args, void *);
			m->m.key_len = va_arg(args, size_t);
			break;
		case RD_KAFKA_VTYPE_TIMESTAMP:
			m->sent.time_ms = va_arg(args, int64_t);
			break;
		case RD_KAFKA_VTYPE_HEADERS:
			headers = va_arg(args, rd_kafka_headers_t *);
			break;
		case RD_KAFKA_VTYPE_OPAQUE:
			m->m._private = va_arg(args, void *);
			break;
		default:
			sim_broken("rd_kafka_producev() is not modelled with %d", kind);
		}
	}
	va_end(args);
	topic = (enum topic)(uintptr_t)m->m.rkt->opaque;
	kind = rk->is_fatal ? RD_KAFKA_RESP_ERR__FATAL :
	    rk->messages >= rk->messages_max ? RD_KAFKA_RESP_ERR__QUEUE_FULL :
	    rk->is_missing[topic] && world->now_us - rk->missing_since_us[topic] > GONE_US ?
	    RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC : rk->is_refused[topic] ? RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED :
	    RD_KAFKA_RESP_ERR_NO_ERROR;
	if (kind != RD_KAFKA_RESP_ERR_NO_ERROR) {
		free(m);
		return (rd_kafka_resp_err_t)kind;
	}
	describe(m, topic, headers);
	rd_kafka_headers_destroy(headers);
	m->m.payload = copy(m->m.payload, m->m.len);
	m->m.key = copy(m->m.key, m->m.key_len);
	m->m.partition = (int32_t)m->sent.partition;
	m->put_us = world->now_us;
	m->until_us = world->now_us + rk->timeout_us;
	rk->messages++;
	p = &rk->partitions[topic][m->sent.partition];
	if (TAILQ_EMPTY(&p->queue))
		p->linger_us = world->now_us + 10 * SIM_MS;
	TAILQ_INSERT_TAIL(&p->queue, m, at);
	return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* --- calls --- */

SIM_WRAP(void, rd_kafka_yield, rd_kafka_t *rk)
{
	rk->yields = true;
}

SIM_WRAP(int, rd_kafka_poll, rd_kafka_t *rk, int timeout_ms)
{
	struct message *m;
	int n = 0;

	(void)timeout_ms;
	rk->yields = false;
	if (rk->is_fatal_due) {
		rk->is_fatal_due = false;
		on_error(rk, RD_KAFKA_RESP_ERR__FATAL, "fatal", rk->opaque);
	}
	while (!rk->yields && (m = TAILQ_FIRST(&rk->done)) != NULL) {
		TAILQ_REMOVE(&rk->done, m, at);
		on_delivery(rk, &m->m, rk->opaque);
		free_message(rk, m);
		sim_point();
		n++;
	}
	return n;
}

SIM_WRAP(int64_t, rd_kafka_message_latency, const rd_kafka_message_t *m)
{
	/* A report is a member of the message. */
	const char *message = (const char *)m - offsetof(struct message, m);

	return world->now_us - ((const struct message *)(uintptr_t)message)->put_us;
}

SIM_WRAP(rd_kafka_resp_err_t, rd_kafka_fatal_error, rd_kafka_t *rk, char *error, size_t error_size)
{
	(void)rk;
	snprintf(error, error_size, "a sequence of messages is broken");
	return RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER;
}

SIM_WRAP(rd_kafka_resp_err_t, rd_kafka_flush, rd_kafka_t *rk, int timeout_ms)
{
	for (int t = 0; t < TOPIC_COUNT; t++)
		for (int i = 0; i < SIM_PARTITIONS; i++)
			rk->partitions[t][i].linger_us = world->now_us;
	(void)__wrap_rd_kafka_poll(rk, timeout_ms);
	return rk->messages > 0 ? RD_KAFKA_RESP_ERR__TIMED_OUT : RD_KAFKA_RESP_ERR_NO_ERROR;
}

SIM_WRAP(rd_kafka_resp_err_t, rd_kafka_purge, rd_kafka_t *rk, int flags)
{
	for (int t = 0; t < TOPIC_COUNT; t++) {
		for (int i = 0; i < SIM_PARTITIONS; i++) {
			struct partition *p = &rk->partitions[t][i];

			if (flags & RD_KAFKA_PURGE_F_QUEUE) {
				p->again = 0;
				sim_producer_report_all(rk, &p->queue, RD_KAFKA_RESP_ERR__PURGE_QUEUE);
			}
			if ((flags & RD_KAFKA_PURGE_F_INFLIGHT) && p->request != 0) {
				sim_producer_forget_request(p);
				sim_producer_report_all(rk, &p->sent, RD_KAFKA_RESP_ERR__PURGE_INFLIGHT);
			}
		}
	}
	return RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* Runs on a thread of its own, which may take a while. */
SIM_WRAP(void, rd_kafka_destroy_flags, rd_kafka_t *rk, int flags)
{
	struct message *m;

	(void)flags;
	sim_wait_until(world->now_us + (int64_t)sim_below(500 * SIM_MS));
	for (int i = 0; i < PRODUCERS; i++)
		if (sim_producers[i] == rk)
			sim_producers[i] = NULL;
	(void)__wrap_rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
	while ((m = TAILQ_FIRST(&rk->done)) != NULL) {
		TAILQ_REMOVE(&rk->done, m, at);
		free_message(rk, m);
	}
	free(rk->creating);
	free(rk);
}

