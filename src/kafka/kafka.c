/*
 * SPDX-License-Identifier: Apache-2.0
 * kafka: an output over librdkafka: an idempotent producer on the caller's loop.
 *
 * librdkafka's threads write to an eventfd when its queue has an event; rd_kafka_poll() then calls the
 * callbacks of report.c on the loop's thread, for at most POLL_BUDGET messages a turn of the loop.
 *
 * A recall purges queued messages at once. Messages on their way to a broker have INFLIGHT_US to be answered,
 * because purging them would deliver them twice. Purging leaves gaps in an idempotent producer's sequence
 * numbers, so the producer is replaced afterwards.
 */
#include "kafka/kafka.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "codec/decode_head.h"
#include "kafka/client.h"
#include "kafka/frame.h"

#define INFLIGHT_US INT64_C(3000000)
#define REPLACE_US INT64_C(2000000)
#define SET_BACK_US INT64_C(10000000)	/* so much longer a thread of librdkafka may wait */

enum {
	POLL_BUDGET = 4000,
	NO_TIMESTAMP = -1,	/* of a message: brokers compare it with nothing */
};

/* Runs on_readable() in the next turn of the loop; event_active() would run it in the current one. */
static void
wake(struct kafka *k)
{
	(void)!eventfd_write(k->fd, 1);
}

/* --- the producer --- */

static void
replace_client(struct kafka *k)
{
	char error[256];

	kafka_batches_next(k);
	k->replace_at_us = k->now_us + REPLACE_US;
	kafka_client_release(k->client);
	k->retried_before += k->retried_now;
	k->retried_now = 0;
	k->is_creating = false;		/* the answer was lost with the queue */
	k->client = kafka_client_new(k->conf, k->topics, k->fd, error, sizeof(error));
	if (k->client == NULL) {
		kafka_set_down(k, "cannot create a producer: %s", error);
		return;
	}
	wake(k);	/* librdkafka reports only a queue's first event, which may precede enabling our fd */
	k->stats.producers++;
	k->is_failed = k->is_recalling = false;
	k->is_waiting = false;
	k->events.ready(k->events.arg);
}

static void
recall(struct kafka *k)
{
	if (k->is_recalling)
		return;
	k->is_recalling = true;
	k->recalled_us = k->now_us;
	if (k->client != NULL)
		rd_kafka_purge(k->client->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_NON_BLOCKING |
		    (k->is_failed ? RD_KAFKA_PURGE_F_INFLIGHT : 0));
}

/* Messages that were about to be sent may have returned to a queue since the last purge. */
static void
purge_again(struct kafka *k)
{
	int flags = RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_NON_BLOCKING;

	if (k->now_us - k->recalled_us > INFLIGHT_US)
		flags |= RD_KAFKA_PURGE_F_INFLIGHT;
	if (k->is_recalling && k->status.in_flight > 0)
		rd_kafka_purge(k->client->rk, flags);
}

/* Applies the results of callbacks. It replaces producers, so it must not run within a callback. */
static void
apply_results(struct kafka *k)
{
	kafka_topics_work(k);
	if (k->is_failed)
		recall(k);
	if (k->is_recalling && k->status.in_flight > 0)
		return;
	if (k->client == NULL || k->is_recalling || (k->wants_larger && k->status.in_flight == 0)) {
		/*
		 * A producer that fails at once, for example for lack of rights, is not replaced repeatedly
		 * without a pause.
		 */
		if ((k->client != NULL && !k->is_failed) || k->now_us >= k->replace_at_us)
			replace_client(k);
	} else if (k->is_waiting && k->status.in_flight <= k->room) {
		k->is_waiting = false;
		k->events.ready(k->events.arg);
	}
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct kafka *k = arg;
	eventfd_t n;

	(void)what;
	(void)eventfd_read(fd, &n);
	k->now_us = clock_us(CLOCK_MONOTONIC);
	k->budget = POLL_BUDGET;
	k->has_more = false;
	if (k->client != NULL)
		rd_kafka_poll(k->client->rk, 0);
	/* librdkafka reports only a queue's first event: the rest needs another wakeup. */
	if (k->has_more)
		wake(k);
	if (k->is_waiting || k->is_failed || k->is_recalling || k->is_asking || k->is_creating || k->wants_larger)
		apply_results(k);
}

/* --- the output --- */

/* Finds the schema's id in this epoch, as it was asked for or by the option schema_id, whose errors it returns. */
static int
schema_id(struct kafka *k, const struct spool_record *r, int32_t *ret)
{
	struct kafka_topic *t = &k->topics[r->topic];
	size_t n = sizeof(t->ids) / sizeof(t->ids[0]), at = n;
	int error;

	for (size_t i = 0; i < n; i++) {
		if (t->ids[i].is_set && t->ids[i].fingerprint == r->schema && t->ids[i].epoch == k->epoch) {
			*ret = t->ids[i].id;
			return 0;
		}
	}
	error = k->schema_id(k->arg, t->subject, r, ret);
	if (error < 0)
		return error;
	for (size_t i = 0; i < n && at == n; i++) {
		if (t->ids[i].is_set && t->ids[i].fingerprint == r->schema && t->ids[i].id == *ret)
			at = i;		/* it has not changed */
	}
	if (at == n) {
		at = t->next_id;
		t->next_id = (t->next_id + 1) % n;
	}
	t->ids[at].fingerprint = r->schema;
	t->ids[at].id = *ret;
	t->ids[at].epoch = k->epoch;
	t->ids[at].is_set = true;
	return 0;
}

static rd_kafka_headers_t *
new_headers(struct kafka *k, const struct spool_record *r)
{
	rd_kafka_headers_t *h = rd_kafka_headers_new(3);
	struct decoded_head head;

	if (decode_head(r->data, r->len, &head)) {
		if (head.schema_version != k->version || k->version_len == 0) {
			k->version = head.schema_version;
			k->version_len = snprintf(k->version_text, sizeof(k->version_text), "%" PRId32,
			    k->version);
		}
		(void)rd_kafka_header_add(h, "schema_version", -1, k->version_text, k->version_len);
	}
	if (k->agent_version != NULL)
		(void)rd_kafka_header_add(h, "agent_version", -1, k->agent_version, -1);
	if (r->is_again)
		(void)rd_kafka_header_add(h, "redelivery", -1, "1", 1);
	return h;
}

static rd_kafka_resp_err_t
produce(struct kafka *k, const struct spool_record *r, size_t key_len)
{
	rd_kafka_headers_t *headers = new_headers(k, r);
	rd_kafka_resp_err_t err;

	err = rd_kafka_producev(k->client->rk, RD_KAFKA_V_RKT(k->client->topics[r->topic]),
	    RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_VALUE(k->frame.data, k->frame.len),
	    RD_KAFKA_V_KEY(r->key, key_len),
	    RD_KAFKA_V_TIMESTAMP(k->topics[r->topic].is_timeless ? NO_TIMESTAMP : r->time_us / 1000),
	    RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_OPAQUE((void *)(uintptr_t)r->id), RD_KAFKA_V_END);
	if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
		rd_kafka_headers_destroy(headers);	/* on success librdkafka owns them */
	return err;
}

static int
not_now(struct kafka *k, uint64_t room)
{
	k->is_waiting = true;
	k->room = room;
	return -EAGAIN;
}

/* Refuses a record for now: those of its topic because of why, or all (NULL). */
static int
topic_waits(const char *why, const char **reason)
{
	*reason = why;
	return -EAGAIN;
}

static int
on_put(struct output *o, const struct spool_record *r, const char **reason)
{
	struct kafka *k = (struct kafka *)o;
	size_t key_len = strlen(r->key);
	rd_kafka_resp_err_t err;
	struct kafka_failure f;
	int32_t id;
	int error;

	/* Each of these conditions ends with a call of ready(). */
	if (k->is_recalling || k->is_failed || k->wants_larger || k->client == NULL)
		return -EAGAIN;
	if (!kafka_topic_is_there(k, r->topic))
		return topic_waits(k->topics[r->topic].refused_pause_us > 0 ? k->topics[r->topic].refusal :
		    kafka_topics_any_there(k) ? "topic_missing" : NULL, reason);
	if (kafka_share_is_used(k, r->topic))
		return kafka_share_is_late(k, r->topic) ? topic_waits("unacknowledged", reason) :
		    not_now(k, k->status.in_flight - k->topics[r->topic].in_flight / 4);
	error = schema_id(k, r, &id);
	if (error == -ENOENT) {
		*reason = "schema_unknown";
		return error;
	}
	/*
	 * kafka_registry_changed() calls ready(). The other topics are offered even before any id is known: their
	 * schemas are not requested otherwise, and the registry may fail for this one only.
	 */
	if (error < 0)
		return topic_waits(error == -EACCES ? "schema_refused" : "schema_id_unknown", reason);
	if (kafka_frame(&k->frame, id, r->data, r->len) < 0)
		return not_now(k, UINT64_MAX);
	err = produce(k, r, key_len);
	if (err == RD_KAFKA_RESP_ERR_NO_ERROR) {
		kafka_share_put(k, r->topic, k->frame.len + key_len);
		kafka_topic_tried(k, r->topic);
		kafka_batches_handed_over(k, r);
		return 0;
	}
	if (err == RD_KAFKA_RESP_ERR__QUEUE_FULL)
		return not_now(k, k->status.in_flight - k->status.in_flight / 4);
	if (err == RD_KAFKA_RESP_ERR__FATAL) {
		k->is_failed = true;
		wake(k);
		return -EAGAIN;
	}
	f = kafka_failure(err);
	switch (f.remedy) {
	case KAFKA_TOPIC_GONE:
		kafka_topic_lost(k, r->topic);
		return topic_waits("topic_missing", reason);
	case KAFKA_TOPIC_WAITS:
		kafka_topic_refused(k, r->topic, f.reason, rd_kafka_err2str(err));
		return topic_waits(f.reason, reason);
	case KAFKA_BATCH_TOO_LARGE:	/* librdkafka has judged this message alone */
		*reason = f.reason;
		return -EMSGSIZE;
	case KAFKA_RECORD_AT_FAULT:
		*reason = f.reason;
		return -EPERM;
	case KAFKA_BATCH_REFUSED:
	case KAFKA_TIME_REFUSED:
	case KAFKA_PASSES:
		break;
	}
	return not_now(k, UINT64_MAX);
}

/*
 * librdkafka's threads wait until a time of the wall clock (cnd_timedwait). If it is set back, a wait that began before
 * lasts so much longer: its main thread runs no timer, and a topic that was deleted is not missed for hours. Another
 * producer has other threads, and these are woken to end.
 */
static bool
was_clock_set_back(struct kafka *k, int64_t wall_us)
{
	int64_t before_us = k->wall_us, step_us = wall_us - k->wall_us - (k->now_us - k->wall_at_us);

	k->wall_us = wall_us;
	k->wall_at_us = k->now_us;
	return before_us != 0 && step_us < -SET_BACK_US;
}

static void
on_tick(struct output *o, int64_t now_us)
{
	struct kafka *k = (struct kafka *)o;

	k->now_us = clock_us(CLOCK_MONOTONIC);	/* intervals are monotonic: the wall clock may jump */
	if (was_clock_set_back(k, now_us))
		recall(k);
	purge_again(k);
	kafka_share_tick(k);
	kafka_batches_tick(k);
	/*
	 * Delivery has done so already, if it recalls after a failure. Messages to a partition without a leader may be
	 * on their way for minutes, in which no topic would be delivered.
	 */
	if (kafka_batches_want_other(k) || (k->wants_larger && k->now_us - k->wants_larger_us > INFLIGHT_US))
		recall(k);
	apply_results(k);
}

static void
on_flush(struct output *o)
{
	struct kafka *k = (struct kafka *)o;

	/*
	 * Ends lingering. With a timeout of 0 it does not wait, but it may call back, so it must not run within
	 * a poll.
	 */
	k->budget = POLL_BUDGET;
	if (k->client != NULL)
		(void)rd_kafka_flush(k->client->rk, 0);
	wake(k);
}

static void
on_recall(struct output *o)
{
	struct kafka *k = (struct kafka *)o;

	k->now_us = clock_us(CLOCK_MONOTONIC);
	recall(k);
	wake(k);	/* ends the recall if nothing is in flight */
}

static void
on_status(const struct output *o, struct output_status *ret)
{
	*ret = ((const struct kafka *)o)->status;
}

static void
on_close(struct output *o)
{
	struct kafka *k = (struct kafka *)o;

	if (k == NULL)
		return;
	kafka_client_release(k->client);
	if (k->readable != NULL)
		event_free(k->readable);
	kafka_topics_done(k);
	if (k->fd >= 0)
		close(k->fd);
	if (k->conf != NULL)
		rd_kafka_conf_destroy(k->conf);
	bytes_done(&k->frame);
	free(k->key);
	free(k->brokers);
	free(k->agent_version);
	free(k);
}

static const struct output_ops ops = {
	.put = on_put,
	.tick = on_tick,
	.flush = on_flush,
	.recall = on_recall,
	.status = on_status,
	.close = on_close,
};

void
kafka_registry_changed(struct output *o, uint64_t epoch)
{
	struct kafka *k = (struct kafka *)o;

	if (k->epoch != epoch) {
		k->epoch = epoch;
		if (k->status.in_flight > 0)
			on_recall(o);	/* ready() follows */
	}
	k->events.ready(k->events.arg);
}

void
kafka_stats(const struct output *o, struct kafka_stats *ret)
{
	*ret = ((const struct kafka *)o)->stats;
}

/* Warns of acks=0, which the user may set although records can then be lost. */
static void
check_acks(struct kafka *k)
{
	static const char text[] = "with acks=0 a record counts as delivered before a broker has it";
	char acks[16];

	k->is_unacknowledged = kafka_conf_get(k->conf, "acks", acks, sizeof(acks)) != NULL && strcmp(acks, "0") == 0;
	if (k->is_unacknowledged && k->on_log != NULL)
		k->on_log(4, "CONFIG", text, k->arg);
}

static int
start(struct kafka *k, struct event_base *base, const struct kafka_options *o, char *error,
    size_t error_size)
{
	int r;

	k->conf = kafka_conf_new(o, error, error_size);
	if (k->conf == NULL || !kafka_files_can_be_read(o, error, error_size))
		return -EINVAL;
	rd_kafka_conf_set_opaque(k->conf, k);
	kafka_report_set(k->conf);
	k->is_scram_broken = kafka_conf_has_broken_scram(k->conf);
	k->batch_bytes = k->batch_bytes_max = kafka_conf_batch_bytes(k->conf);
	kafka_share_init(k);

	snprintf(error, error_size, "out of memory");
	k->brokers = kafka_join_brokers(o);
	if (k->brokers == NULL)
		return -ENOMEM;
	if (o->agent_version != NULL && (k->agent_version = strdup(o->agent_version)) == NULL)
		return -ENOMEM;
	k->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (k->fd < 0) {
		r = -errno;
		snprintf(error, error_size, "eventfd: %s", strerror(errno));
		return r;
	}
	r = kafka_topics_init(k, o->topic_prefix);
	if (r < 0)
		return r;
	k->readable = event_new(base, k->fd, EV_READ | EV_PERSIST, on_readable, k);
	if (k->readable == NULL || event_add(k->readable, NULL) < 0)
		return -ENOMEM;
	k->client = kafka_client_new(k->conf, k->topics, k->fd, error, error_size);
	if (k->client == NULL)
		return -EINVAL;
	wake(k);	/* as in replace_client() */
	k->stats.producers = 1;
	check_acks(k);
	kafka_topics_work(k);	/* requests the topics' metadata at once */
	return 0;
}

int
kafka_open(struct event_base *base, const struct kafka_options *o,
    const struct output_events *events, struct output **ret, char *error, size_t error_size)
{
	struct kafka *k = calloc(1, sizeof(*k));
	int r;

	if (k == NULL) {
		snprintf(error, error_size, "out of memory");
		return -ENOMEM;
	}
	k->output.ops = &ops;
	k->events = *events;
	k->schema_id = o->schema_id;
	k->on_log = o->on_log;
	k->arg = o->arg;
	k->create_topics = o->create_topics;
	k->partitions = o->partitions != 0 ? (int)o->partitions : -1;
	k->replication = o->replication != 0 ? (int)o->replication : -1;
	k->retention_ms = o->retention_ms;
	k->status.kind = "kafka";
	k->fd = -1;
	k->now_us = clock_us(CLOCK_MONOTONIC);
	r = start(k, base, o, error, error_size);
	if (r < 0) {
		on_close(&k->output);
		return r;
	}
	*ret = &k->output;
	return 0;
}
