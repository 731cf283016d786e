/*
 * SPDX-License-Identifier: Apache-2.0
 * topics: requests which topics exist, creates missing ones, and lets those wait whose records brokers refuse.
 *
 *	request (a thread, rd_kafka_metadata) ──missing──► create (on the queue) ──► request again
 *	     └─ all exist: done, until a broker reports one as unknown, or refuses records of one
 *
 * A topic whose records are refused, such as for lack of rights, is requested again after a pause, since librdkafka
 * takes no record of it before. Then one record is produced; if it is refused too, the next pause is longer.
 *
 * Metadata is requested before anything is created, so that an agent without the right to create topics works
 * with existing ones.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "kafka/client.h"
#include "model/record.h"

enum {
	ASK_TIMEOUT_MS = 5000,
	CREATE_TIMEOUT_MS = 15000,
};

#define PAUSE_MIN_US INT64_C(500000)
#define PAUSE_MAX_US INT64_C(10000000)

/* --- the thread that requests metadata --- */

struct errand {
	struct kafka_client	*client;	/* a reference */
	struct kafka_mailbox	*mailbox;	/* a reference */
};

static void
mailbox_unref(struct kafka_mailbox *m)
{
	if (m == NULL || atomic_fetch_sub(&m->refs, 1) > 1)
		return;
	if (m->fd >= 0)
		close(m->fd);
	free(m);
}

static rd_kafka_resp_err_t
find_topic(const struct rd_kafka_metadata *md, const char *name)
{
	for (int i = 0; i < md->topic_cnt; i++) {
		if (strcmp(md->topics[i].topic, name) == 0)
			return md->topics[i].err;
	}
	return RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
}

static void *
ask(void *arg)
{
	struct errand *e = arg;
	struct kafka_client *c = e->client;
	struct kafka_mailbox *m = e->mailbox;
	const struct rd_kafka_metadata *md = NULL;

	/* Metadata of the topics that this producer has handles of. */
	m->error = rd_kafka_metadata(c->rk, 0, NULL, &md, ASK_TIMEOUT_MS);
	for (int t = 0; t < TOPIC_COUNT && m->error == RD_KAFKA_RESP_ERR_NO_ERROR; t++)
		m->topic_errors[t] = find_topic(md, rd_kafka_topic_name(c->topics[t]));
	atomic_store(&m->is_full, true);
	(void)!eventfd_write(m->fd, 1);
	if (md != NULL)
		rd_kafka_metadata_destroy(md);
	free(e);
	mailbox_unref(m);
	kafka_client_unref(c);
	return NULL;
}

static void
start_asking(struct kafka *k)
{
	struct errand *e = malloc(sizeof(*e));

	k->ask_at_us = k->now_us + k->ask_pause_us;	/* also if no thread can be started */
	if (e == NULL)
		return;
	*e = (struct errand){ k->client, k->mailbox };
	kafka_client_ref(k->client);
	atomic_fetch_add(&k->mailbox->refs, 1);
	if (kafka_thread_start(ask, e) < 0) {
		mailbox_unref(k->mailbox);
		kafka_client_unref(k->client);	/* not the last reference: the loop has one */
		free(e);
		return;
	}
	k->is_asking = true;
}

/* --- creating topics --- */

static bool
is_missing_any(const struct kafka *k)
{
	for (int t = 0; t < TOPIC_COUNT; t++) {
		if (k->topics[t].state == KAFKA_TOPIC_MISSING)
			return true;
	}
	return false;
}

static void
start_creating(struct kafka *k)
{
	rd_kafka_NewTopic_t *topics[TOPIC_COUNT];
	rd_kafka_AdminOptions_t *options;
	char text[256], retention[24];
	size_t n = 0;

	for (int t = 0; t < TOPIC_COUNT; t++) {
		rd_kafka_NewTopic_t *topic;

		if (k->topics[t].state != KAFKA_TOPIC_MISSING)
			continue;
		topic = rd_kafka_NewTopic_new(k->topics[t].name, k->partitions, k->replication, text,
		    sizeof(text));
		if (topic == NULL) {
			snprintf(k->topics[t].error, sizeof(k->topics[t].error), "%s", text);
			continue;
		}
		snprintf(retention, sizeof(retention), "%" PRId64, k->retention_ms);
		if (k->retention_ms != 0)
			rd_kafka_NewTopic_set_config(topic, "retention.ms", retention);
		topics[n++] = topic;
	}
	options = rd_kafka_AdminOptions_new(k->client->rk, RD_KAFKA_ADMIN_OP_CREATETOPICS);
	(void)rd_kafka_AdminOptions_set_request_timeout(options, CREATE_TIMEOUT_MS, text, sizeof(text));
	if (n > 0) {
		rd_kafka_CreateTopics(k->client->rk, topics, n, options, k->client->admin_queue);
		k->is_creating = true;
	}
	rd_kafka_AdminOptions_destroy(options);
	rd_kafka_NewTopic_destroy_array(topics, n);
}

static void
take_result(struct kafka *k, const rd_kafka_topic_result_t *result)
{
	rd_kafka_resp_err_t err = rd_kafka_topic_result_error(result);
	const char *text = rd_kafka_topic_result_error_string(result);

	for (int t = 0; t < TOPIC_COUNT; t++) {
		struct kafka_topic *topic = &k->topics[t];

		if (strcmp(topic->name, rd_kafka_topic_result_name(result)) != 0)
			continue;
		topic->error[0] = '\0';
		if (err != RD_KAFKA_RESP_ERR_NO_ERROR && err != RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
			snprintf(topic->error, sizeof(topic->error), "%s",
			    text != NULL ? text : rd_kafka_err2str(err));
	}
}

static void
take_created(struct kafka *k)
{
	rd_kafka_event_t *event;

	while ((event = rd_kafka_queue_poll(k->client->admin_queue, 0)) != NULL) {
		const rd_kafka_CreateTopics_result_t *created = rd_kafka_event_CreateTopics_result(event);
		const rd_kafka_topic_result_t **results;
		size_t n = 0;

		if (created != NULL) {
			k->is_creating = false;
			k->ask_at_us = k->now_us + PAUSE_MIN_US / 2;	/* brokers need time to learn of them */
			results = rd_kafka_CreateTopics_result_topics(created, &n);
			for (size_t i = 0; i < n; i++)
				take_result(k, results[i]);
			for (int t = 0; t < TOPIC_COUNT && rd_kafka_event_error(event) != 0; t++)
				snprintf(k->topics[t].error, sizeof(k->topics[t].error), "%s",
				    rd_kafka_event_error_string(event));
		}
		rd_kafka_event_destroy(event);
	}
}

/* --- state of the topics --- */

bool
kafka_topics_any_there(const struct kafka *k)
{
	for (int t = 0; t < TOPIC_COUNT; t++) {
		if (k->topics[t].state == KAFKA_TOPIC_THERE)
			return true;
	}
	return false;
}

/*
 * Sets the error for a missing topic that records wait for, with a hint. The output is down only if no topic exists:
 * records of the others are delivered.
 */
static void
report_missing(struct kafka *k, const struct kafka_topic *t)
{
	char partitions[32] = "", replication[40] = "";

	snprintf(k->stats.missing_topic, sizeof(k->stats.missing_topic), "%s", t->name);
	if ((!k->create_topics || t->error[0] != '\0') && !kafka_topics_any_there(k))
		k->status.state = OUTPUT_DOWN;
	if (k->create_topics && t->error[0] != '\0') {
		kafka_set_error(k, "topic %s is missing and cannot be created: %s", t->name, t->error);
		return;
	}
	if (k->create_topics)
		return;		/* it is being created */
	if (k->partitions > 0)
		snprintf(partitions, sizeof(partitions), " --partitions %d", k->partitions);
	if (k->replication > 0)
		snprintf(replication, sizeof(replication), " --replication-factor %d", k->replication);
	kafka_set_error(k, "topic %s is missing; create it: kafka-topics.sh --bootstrap-server %s "
	    "--create --topic %s%s%s", t->name, k->brokers, t->name, partitions, replication);
}

/* Begins or prolongs a pause. */
static void
refuse(struct kafka *k, struct kafka_topic *t, const char *reason, const char *detail)
{
	int64_t pause_us = t->refused_pause_us;

	pause_us = pause_us == 0 ? PAUSE_MIN_US : pause_us > PAUSE_MAX_US / 2 ? PAUSE_MAX_US : 2 * pause_us;
	t->state = KAFKA_TOPIC_REFUSED;
	t->is_wanted = true;
	t->is_tried = false;
	t->refusal = reason;
	t->refused_pause_us = pause_us;
	t->refused_until_us = k->now_us + pause_us;
	if (k->ask_at_us > t->refused_until_us)
		k->ask_at_us = t->refused_until_us;
	if (!kafka_topics_any_there(k))
		k->status.state = OUTPUT_DOWN;
	kafka_set_error(k, "topic %s: its records wait, because brokers refuse them: %s", t->name, detail);
}

/* Takes what the answer has of one topic. Returns whether records may be produced to it since. */
static bool
take_topic(struct kafka *k, struct kafka_topic *t, rd_kafka_resp_err_t err)
{
	struct kafka_failure f = kafka_failure(err);
	bool was_there = t->state == KAFKA_TOPIC_THERE;

	if (f.remedy == KAFKA_TOPIC_GONE && err != RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION) {
		t->state = KAFKA_TOPIC_MISSING;
	} else if (f.remedy == KAFKA_TOPIC_WAITS && (t->is_wanted || t->state == KAFKA_TOPIC_REFUSED)) {
		refuse(k, t, f.reason, rd_kafka_err2str(err));
	} else if (err != RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE &&
	    (t->state != KAFKA_TOPIC_REFUSED || k->now_us >= t->refused_until_us)) {
		/* A delivery report describes any other error better. */
		t->state = KAFKA_TOPIC_THERE;
		t->is_wanted = false;
		return !was_there;
	}
	return false;
}

static void
take_answer(struct kafka *k)
{
	struct kafka_mailbox *m = k->mailbox;
	bool is_new_there = false;

	if (!atomic_load(&m->is_full))
		return;
	atomic_store(&m->is_full, false);
	k->is_asking = false;
	k->ask_at_us = k->now_us + k->ask_pause_us;
	for (int t = 0; t < TOPIC_COUNT && m->error == RD_KAFKA_RESP_ERR_NO_ERROR; t++) {
		bool is_new = take_topic(k, &k->topics[t], m->topic_errors[t]);

		is_new_there |= is_new;
	}
	if (is_new_there) {
		k->ask_pause_us = PAUSE_MIN_US;
		k->is_waiting = false;
		k->stats.missing_topic[0] = '\0';
		k->events.ready(k->events.arg);
	} else if (k->ask_pause_us < PAUSE_MAX_US) {
		k->ask_pause_us *= 2;
	}
	for (int t = 0; t < TOPIC_COUNT; t++) {
		if (k->topics[t].state == KAFKA_TOPIC_MISSING && k->topics[t].is_wanted)
			report_missing(k, &k->topics[t]);
	}
	if (k->create_topics && !k->is_creating && !k->is_recalling && is_missing_any(k))
		start_creating(k);
}

/*
 * Returns whether metadata is needed. At the start it is, so that missing topics are created before they are
 * used.
 */
static bool
wants_to_ask(const struct kafka *k)
{
	for (int t = 0; t < TOPIC_COUNT; t++) {
		const struct kafka_topic *topic = &k->topics[t];

		if (topic->state == KAFKA_TOPIC_UNKNOWN ||
		    (topic->state == KAFKA_TOPIC_REFUSED && k->now_us >= topic->refused_until_us) ||
		    (topic->state == KAFKA_TOPIC_MISSING && (topic->is_wanted || k->create_topics)))
			return true;
	}
	return false;
}

void
kafka_topics_work(struct kafka *k)
{
	if (k->client == NULL)
		return;
	take_created(k);
	take_answer(k);
	if (!k->is_asking && !k->is_creating && !k->is_failed && k->now_us >= k->ask_at_us &&
	    wants_to_ask(k))
		start_asking(k);
}

bool
kafka_topic_is_there(struct kafka *k, enum topic topic)
{
	struct kafka_topic *t = &k->topics[topic];

	if (t->state == KAFKA_TOPIC_THERE)
		return !t->is_tried;
	if (!t->is_wanted && t->state == KAFKA_TOPIC_MISSING)
		report_missing(k, t);
	t->is_wanted = true;
	return false;
}

void
kafka_topic_lost(struct kafka *k, enum topic topic)
{
	struct kafka_topic *t = &k->topics[topic];

	if (t->state != KAFKA_TOPIC_THERE)
		return;
	t->state = KAFKA_TOPIC_MISSING;
	t->is_wanted = true;
	t->error[0] = '\0';
	k->ask_pause_us = PAUSE_MIN_US;
	k->ask_at_us = k->now_us;
	report_missing(k, t);
}

void
kafka_topic_refused(struct kafka *k, enum topic topic, const char *reason, const char *detail)
{
	struct kafka_topic *t = &k->topics[topic];

	if (t->state == KAFKA_TOPIC_THERE)	/* the first of a batch */
		refuse(k, t, reason, detail);
}

void
kafka_topic_tried(struct kafka *k, enum topic topic)
{
	struct kafka_topic *t = &k->topics[topic];

	t->is_tried = t->refused_pause_us > 0;
}

void
kafka_topic_answered(struct kafka *k, enum topic topic, bool is_delivered)
{
	struct kafka_topic *t = &k->topics[topic];

	if (is_delivered)
		t->refused_pause_us = 0;
	if (!t->is_tried)
		return;
	t->is_tried = false;
	if (is_delivered)
		k->events.ready(k->events.arg);
}

int
kafka_topics_init(struct kafka *k, const char *prefix)
{
	struct kafka_mailbox *m;

	k->ask_pause_us = PAUSE_MIN_US;
	for (int t = 0; t < TOPIC_COUNT; t++) {
		struct kafka_topic *topic = &k->topics[t];

		if (asprintf(&topic->name, "%s%s", prefix != NULL ? prefix : "", topic_name(t)) < 0)
			topic->name = NULL;
		if (topic->name == NULL || asprintf(&topic->subject, "%s-value", topic->name) < 0) {
			topic->subject = NULL;
			return -ENOMEM;
		}
	}
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return -ENOMEM;
	atomic_init(&m->refs, 1);
	/* A duplicate of its own: the loop may close its fd before a thread has ended. */
	m->fd = fcntl(k->fd, F_DUPFD_CLOEXEC, 0);
	k->mailbox = m;
	return m->fd < 0 ? -errno : 0;
}

void
kafka_topics_done(struct kafka *k)
{
	mailbox_unref(k->mailbox);
	for (int t = 0; t < TOPIC_COUNT; t++) {
		free(k->topics[t].name);
		free(k->topics[t].subject);
	}
}
