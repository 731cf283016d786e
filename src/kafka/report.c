/*
 * SPDX-License-Identifier: Apache-2.0
 * report: callbacks of librdkafka: deliveries, errors, its log, its statistics.
 *
 * All run within rd_kafka_poll(), on the loop's thread. They do not touch the producer: kafka.c applies their
 * results after the poll.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/decode_head.h"
#include "kafka/client.h"
#include "kafka/frame.h"

/* Returns an explanation to put before librdkafka's text, so that truncation cannot remove it; "": none. */
static const char *
hint(const struct kafka *k, const char *text)
{
	/* A TLS alert is only a number; Java brokers send "certificate unknown" for an expired certificate. */
	if (strstr(text, "alert certificate") != NULL || strstr(text, "alert bad certificate") != NULL ||
	    strstr(text, "alert unknown ca") != NULL || strstr(text, "certificate required") != NULL)
		return "the broker does not accept our certificate (ssl.certificate.location): none, expired, or of a "
		    "CA that it does not trust: ";
	if (k->is_scram_broken)
		return "this librdkafka is older than 2.6.1: its SCRAM is refused by Kafka 4 (see `sluice "
		    "doctor`): ";
	return "";
}

/* Restores the record that a message was made of, as far as the message has its fields. */
static struct spool_record
message_record(struct kafka *k, const rd_kafka_message_t *m)
{
	enum topic topic = (enum topic)(uintptr_t)rd_kafka_topic_opaque(m->rkt);
	struct spool_record r = { .id = (uint64_t)(uintptr_t)m->_private, .topic = topic, .key = "" };
	const struct kafka_topic *t = &k->topics[topic];
	struct decoded_head head;
	uint64_t epoch = 0;

	if (m->payload == NULL || m->len < KAFKA_FRAME_BYTES)
		return r;
	r.data = (const uint8_t *)m->payload + KAFKA_FRAME_BYTES;
	r.len = m->len - KAFKA_FRAME_BYTES;
	if (decode_head(r.data, r.len, &head)) {
		r.time_us = head.time_us;
		r.seq = head.seq;
	}
	for (size_t i = 0; i < sizeof(t->ids) / sizeof(t->ids[0]); i++) {
		/* The last epoch that had this id. */
		if (t->ids[i].is_set && t->ids[i].id == kafka_frame_id(m->payload) && t->ids[i].epoch >= epoch) {
			epoch = t->ids[i].epoch;
			r.schema = t->ids[i].fingerprint;
		}
	}
	if (m->key_len >= k->key_size) {
		char *grown = realloc(k->key, m->key_len + 1);

		if (grown == NULL)
			return r;
		k->key = grown;
		k->key_size = m->key_len + 1;
	}
	memcpy(k->key, m->key, m->key_len);
	k->key[m->key_len] = '\0';
	r.key = k->key;
	return r;
}

/*
 * Decides about a message that brokers have not taken in time, or not for now. If they have taken others since it was
 * put, that is no outage. If all of those are of other topics, it is its topic that has no leader: it waits alone. If
 * some are of its own, only some of its partitions have none: librdkafka cannot give up the messages of one topic, and
 * those of the other partitions would have to wait until all of its messages have timed out.
 */
static enum output_failure
judge_passing(struct kafka *k, const rd_kafka_message_t *m, enum topic topic)
{
	int64_t latency_us = rd_kafka_message_latency(m);
	bool is_own = kafka_share_delivered_since(k, topic, latency_us), is_any = is_own;

	if (m->err == RD_KAFKA_RESP_ERR__PURGE_QUEUE || m->err == RD_KAFKA_RESP_ERR__PURGE_INFLIGHT)
		return OUTPUT_AGAIN;
	for (int t = 0; t < TOPIC_COUNT; t++)
		is_any |= kafka_share_delivered_since(k, (enum topic)t, latency_us);
	/* If the output is down already, its error is more specific than a record's timeout. */
	if (k->status.state != OUTPUT_DOWN && !kafka_batches_want_other(k)) {
		if (is_any)
			kafka_set_error(k, "%s: %s", k->topics[topic].name, rd_kafka_err2str(m->err));
		else
			kafka_set_down(k, "%s: %s", k->topics[topic].name, rd_kafka_err2str(m->err));
	}
	return m->err == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT && is_any && !is_own ? OUTPUT_TOPIC_AGAIN : OUTPUT_AGAIN;
}

static void
on_message_failed(struct kafka *k, const rd_kafka_message_t *m)
{
	struct kafka_failure f = kafka_failure(m->err);
	struct spool_record r = message_record(k, m);
	enum output_failure failure = OUTPUT_AGAIN;
	/*
	 * Not rd_kafka_message_produce_errstr(): the broker's own text is freed before this call, as of librdkafka
	 * 2.8.0.
	 */
	const char *detail = rd_kafka_err2str(m->err);

	kafka_topic_answered(k, r.topic, false);
	switch (f.remedy) {
	case KAFKA_TOPIC_GONE:
		failure = OUTPUT_TOPIC_AGAIN;
		kafka_topic_lost(k, r.topic);
		break;
	case KAFKA_TOPIC_WAITS:
		failure = OUTPUT_TOPIC_AGAIN;
		kafka_topic_refused(k, r.topic, f.reason, detail);
		break;
	case KAFKA_BATCH_TOO_LARGE:
	case KAFKA_BATCH_REFUSED:
	case KAFKA_TIME_REFUSED:
		failure = kafka_batch_refused(k, &r, m->len + m->key_len, &f);
		kafka_set_error(k, "%s: %s", k->topics[r.topic].name, detail);
		break;
	case KAFKA_RECORD_AT_FAULT:
		failure = OUTPUT_NEVER;
		kafka_set_error(k, "%s: %s", k->topics[r.topic].name, detail);
		break;
	case KAFKA_PASSES:
		failure = judge_passing(k, m, r.topic);
		break;
	}
	k->events.failed(&r, failure, f.reason, detail, k->events.arg);
}

/*
 * Returns whether a broker has returned the record's offset. librdkafka reports a batch as delivered, without
 * an offset, when a later batch of its partition was: a broker that keeps the idempotent producer's state would
 * have refused the later one. A broker without state of this producer for the partition, as after a restart,
 * accepts the later batch, and the first one is lost. Only with acks=0 are there no offsets at all.
 */
static bool
is_confirmed(const struct kafka *k, const rd_kafka_message_t *m)
{
	return m->offset >= 0 || k->is_unacknowledged;
}

static void
on_message_unconfirmed(struct kafka *k, const rd_kafka_message_t *m)
{
	struct spool_record r = message_record(k, m);

	kafka_topic_answered(k, r.topic, false);
	k->events.failed(&r, OUTPUT_AGAIN, "unconfirmed", "no broker has returned an offset", k->events.arg);
}

static void
on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *m, void *arg)
{
	struct kafka *k = arg;

	kafka_share_answered(k, (enum topic)(uintptr_t)rd_kafka_topic_opaque(m->rkt), m->len + m->key_len,
	    rd_kafka_message_latency(m));
	if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR && !is_confirmed(k, m)) {
		on_message_unconfirmed(k, m);
	} else if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
		k->status.delivered++;
		k->status.state = OUTPUT_UP;
		kafka_share_delivered(k, (enum topic)(uintptr_t)rd_kafka_topic_opaque(m->rkt));
		kafka_batches_delivered(k, (enum topic)(uintptr_t)rd_kafka_topic_opaque(m->rkt));
		kafka_topic_answered(k, (enum topic)(uintptr_t)rd_kafka_topic_opaque(m->rkt), true);
		k->events.delivered((enum topic)(uintptr_t)rd_kafka_topic_opaque(m->rkt),
		    (uint64_t)(uintptr_t)m->_private, k->events.arg);
	} else {
		on_message_failed(k, m);
	}
	if (--k->budget == 0) {
		k->has_more = true;
		rd_kafka_yield(rk);
	}
}

static void
on_error(rd_kafka_t *rk, int err, const char *text, void *arg)
{
	struct kafka *k = arg;
	char fatal[200];
	const char *why;

	switch (err) {
	case RD_KAFKA_RESP_ERR__FATAL:
		rd_kafka_fatal_error(rk, fatal, sizeof(fatal));
		kafka_set_down(k, "%s; the producer is replaced", fatal);
		k->is_failed = true;
		break;
	case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
		/* The reason was reported before, by a broker's connection. */
		if (k->cause[0] != '\0')
			text = k->cause;
		why = hint(k, text);
		kafka_set_down(k, "no broker can be reached: %s%s", why[0] != '\0' ? why : "check kafka.brokers, and that "
		    "a broker runs there which accepts connections from this host: ", text);
		break;
	default:
		snprintf(k->cause, sizeof(k->cause), "%s", text);
		/* It is no outage while other brokers are up, but refused credentials are one. */
		if (err == RD_KAFKA_RESP_ERR__AUTHENTICATION || err == RD_KAFKA_RESP_ERR__SSL)
			kafka_set_down(k, "%s%s", hint(k, text), text);
	}
}

static void
on_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
	const struct kafka *k = rd_kafka_opaque(rk);

	if (k->on_log != NULL)
		k->on_log(level, facility, text, k->arg);
}

static int64_t
number(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

/* Adds one broker of librdkafka's statistics. */
static void
add_broker(struct kafka_stats *s, uint64_t *retried, const json_t *broker)
{
	const char *state = json_string_value(json_object_get(broker, "state"));
	const json_t *rtt = json_object_get(broker, "rtt");

	*retried += (uint64_t)number(broker, "txretries");
	s->request_timeouts += (uint64_t)number(broker, "req_timeouts");
	if (number(broker, "nodeid") < 0)	/* a configured address, not a broker of the cluster */
		return;
	s->brokers++;
	if (state != NULL && strcmp(state, "UP") == 0)
		s->brokers_up++;
	if (number(rtt, "cnt") == 0)
		return;
	if (number(rtt, "avg") > s->rtt_us)
		s->rtt_us = number(rtt, "avg");
	if (number(rtt, "p99") > s->rtt_p99_us)
		s->rtt_p99_us = number(rtt, "p99");
}

static int
on_stats(rd_kafka_t *rk, char *text, size_t len, void *arg)
{
	struct kafka *k = arg;
	json_t *root = json_loadb(text, len, 0, NULL), *broker;
	struct kafka_stats s = k->stats;
	const char *name;
	uint64_t retried = 0;

	(void)rk;
	s.brokers = s.brokers_up = 0;
	s.request_timeouts = 0;
	s.rtt_us = s.rtt_p99_us = 0;
	json_object_foreach(json_object_get(root, "brokers"), name, broker) {
		(void)name;
		add_broker(&s, &retried, broker);
	}
	json_decref(root);
	if (s.rtt_us == 0) {	/* nothing was sent since the last report: keep the figures */
		s.rtt_us = k->stats.rtt_us;
		s.rtt_p99_us = k->stats.rtt_p99_us;
	}
	k->retried_now = retried;
	s.retried = k->retried_before + retried;
	k->status.retried = s.retried;
	k->stats = s;
	return 0;	/* librdkafka frees text */
}

void
kafka_report_set(rd_kafka_conf_t *conf)
{
	rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
	rd_kafka_conf_set_error_cb(conf, on_error);
	rd_kafka_conf_set_log_cb(conf, on_log);
	rd_kafka_conf_set_stats_cb(conf, on_stats);
}
