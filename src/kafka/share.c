/*
 * SPDX-License-Identifier: Apache-2.0
 * share: how much of librdkafka's queue the messages of one topic may take, so that those of a topic that is not
 * answered, such as for lack of a leader, leave room for all others.
 *
 * A topic may have as many messages in flight as there is room left: half of the queue, if it is alone; the next topic
 * half of the rest, and so on. A topic that is answered frees its share soon, and the others wait for it, which keeps
 * the order across topics. One that has late messages waits alone: those that were in flight at two marks, which are
 * LATE_US apart. So does one that had them until a recall, which takes them back; otherwise all others would wait for
 * it anew after each recall.
 */
#include <stdlib.h>

#include "kafka/client.h"

#define LATE_US INT64_C(5000000)

static uint64_t
number(const rd_kafka_conf_t *conf, const char *name)
{
	char text[24];
	const char *value = kafka_conf_get(conf, name, text, sizeof(text));

	return value != NULL ? strtoull(value, NULL, 10) : 0;
}

void
kafka_share_init(struct kafka *k)
{
	k->messages_max = number(k->conf, "queue.buffering.max.messages");
	k->bytes_max = number(k->conf, "queue.buffering.max.kbytes") * 1024;
	/* 0 is no limit. */
	if (k->messages_max == 0)
		k->messages_max = UINT64_MAX;
	if (k->bytes_max == 0)
		k->bytes_max = UINT64_MAX;
}

bool
kafka_share_is_used(const struct kafka *k, enum topic topic)
{
	const struct kafka_topic *t = &k->topics[topic];

	/* Without a message in flight there is always room for one, as far as librdkafka takes it. */
	return t->in_flight > 0 && (t->in_flight + k->status.in_flight >= k->messages_max ||
	    t->queued_bytes + k->status.queued_bytes >= k->bytes_max);
}

bool
kafka_share_is_late(const struct kafka *k, enum topic topic)
{
	return k->topics[topic].late > 0 || k->topics[topic].was_late;
}

void
kafka_share_put(struct kafka *k, enum topic topic, size_t bytes)
{
	k->topics[topic].in_flight++;
	k->topics[topic].queued_bytes += bytes;
	k->status.in_flight++;
	k->status.queued_bytes += bytes;
}

void
kafka_share_answered(struct kafka *k, enum topic topic, size_t bytes, int64_t latency_us)
{
	struct kafka_topic *t = &k->topics[topic];

	t->in_flight--;
	t->queued_bytes -= bytes;
	k->status.in_flight--;
	k->status.queued_bytes -= bytes;
	if (t->late > 0 && (latency_us < 0 || k->now_us - latency_us < k->late_us || t->late > t->in_flight))
		t->late--;
	if (t->old > 0 && (latency_us < 0 || k->now_us - latency_us < k->mark_us || t->old > t->in_flight))
		t->old--;
}

void
kafka_share_delivered(struct kafka *k, enum topic topic)
{
	k->topics[topic].delivered_us = k->now_us;
	k->topics[topic].was_late = false;
}

bool
kafka_share_delivered_since(const struct kafka *k, enum topic topic, int64_t latency_us)
{
	return latency_us >= 0 && k->topics[topic].delivered_us > k->now_us - latency_us;
}

void
kafka_share_tick(struct kafka *k)
{
	if (k->now_us - k->mark_us < LATE_US)
		return;
	k->late_us = k->mark_us;
	k->mark_us = k->now_us;
	for (int t = 0; t < TOPIC_COUNT; t++) {
		k->topics[t].late = k->topics[t].old;
		k->topics[t].old = k->topics[t].in_flight;
		k->topics[t].was_late |= k->topics[t].late > 0;
	}
}
