/*
 * SPDX-License-Identifier: Apache-2.0
 * bench_delivery sluice|direct BROKERS PREFIX RECORDS FOLDER [NAME=VALUE]...: encoded Program records to Kafka.
 *
 *	sluice	records are put into the spool in FOLDER, opened as by the daemon, and counted when released
 *	direct	librdkafka alone: produce as fast as its queue accepts, and count delivery reports
 *
 * Both send the same bytes with the same keys and headers to the same topic, with the same properties;
 * connecting and the first records are not measured. Prints the rate in records/s, the CPU time per
 * record of all threads and of the main thread, and the bytes of a value.
 */
#include <event2/event.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/samples.h"
#include "sample.h"
#include "deliver/delivery.h"
#include "codec/encode.h"
#include "kafka/client.h"
#include "kafka/frame.h"
#include "spool/spool.h"

enum {
	POOL = 4096,		/* number of different records */
	KEYS = 8,
	WARM_UP = 5000,
	BATCH = 512,		/* records of a commit, and commits of a loop iteration, as in the agent */
	BATCHES = 16,
	WAITING_MAX = 100000,	/* records in the spool: 50 MB, which a disk syncs quickly */
	TICK_MS = 100,
	WAIT_MS = 120000,
	SCHEMA_ID = 1,
	PROPERTIES_MAX = 16,
};

struct bench {
	struct bytes		 values[POOL];	/* framed: the record begins after KAFKA_FRAME_BYTES */
	char			 keys[KEYS][80];
	struct kafka_options	 kafka;
	uint64_t		 n;		/* records that are measured */

	/* at the start of the measured part; then the totals of it */
	double			 wall_ns, cpu_ns, main_ns;

	/* sluice */
	struct event_base	*base;
	struct event		*put_timer, *tick_timer;
	struct spool		*spool;
	struct delivery		*delivery;
	struct output		*output;	/* owned by delivery */
	uint64_t		 due;		/* records that should have been put by now */
	uint64_t		 put;
	uint64_t		 seq[TOPIC_COUNT];

	/* direct */
	uint64_t		 acknowledged;
	uint64_t		 failed;
};

static void
die(const char *what, const char *why)
{
	fprintf(stderr, "bench_delivery: %s: %s\n", what, why);
	exit(1);
}

static double
clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void
begin(struct bench *b)
{
	b->wall_ns = clock_ns(CLOCK_MONOTONIC);
	b->cpu_ns = sample_cpu_ns();
	b->main_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void
end(struct bench *b)
{
	b->wall_ns = clock_ns(CLOCK_MONOTONIC) - b->wall_ns;
	b->cpu_ns = sample_cpu_ns() - b->cpu_ns;
	b->main_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - b->main_ns;
}

/* Encodes STARTs and ENDs of different programs, as in a storm. */
static void
make_records(struct bench *b)
{
	struct agent_identity identity = sample_identity();
	struct program_record records[2] = { sample_program_start(), sample_program_end() };
	struct usage usage = *sample_usage();
	struct encoder *e;
	char error[256], id[32], parent[32];
	const uint8_t *data;
	size_t len;

	if (encoder_open(&identity, &e, error, sizeof(error)) < 0)
		die("encoder", error);
	for (unsigned i = 0; i < POOL; i++) {
		struct program_record *r = &records[i % 2];

		snprintf(id, sizeof(id), "%08x-%u-0", i / 2 * 2654435761u, 1000 + i / 2);
		snprintf(parent, sizeof(parent), "%08x-%u-1", i / 32 * 2654435761u, 900 + i / 32);
		r->head.time_us = SAMPLE_TIME + i * 173;
		r->id.pid = 1000 + i / 2;
		r->id.program_id = id;
		r->id.parent_program_id = parent;
		for (unsigned f = 0; f < USAGE_FIELDS; f++)
			usage.value[f] = (i / 2 * 2654435761u + f * 40503u) % 3000000;
		if (r->phase == PHASE_END)
			r->usage = &usage;
		if (encode(e, TOPIC_PROGRAM, r, i, &data, &len) < 0 ||
		    kafka_frame(&b->values[i], SCHEMA_ID, data, len) < 0)
			die("records", "cannot be encoded");
	}
	encoder_close(e);
	for (unsigned i = 0; i < KEYS; i++)
		snprintf(b->keys[i], sizeof(b->keys[i]), SAMPLE_HOST ":run-%u", i);
}

/* --- sluice --- */

static void
put_one(struct bench *b)
{
	const struct bytes *value = &b->values[b->put % POOL];

	if (spool_put(b->spool, &(struct encoded_record){ TOPIC_PROGRAM, SAMPLE_TIME + (int64_t)b->put,
	    b->seq[TOPIC_PROGRAM]++, b->keys[b->put % KEYS], value->data + KAFKA_FRAME_BYTES,
	    value->len - KAFKA_FRAME_BYTES }) < 0)
		die("spool", "takes no record");
	b->put++;
}

static void
on_put_timer(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval now, later = { 0, 2000 };
	struct bench *b = arg;
	struct spool_stats stats;
	bool has_put = false;

	(void)fd;
	(void)what;
	spool_stats(b->spool, &stats);
	if (b->put == b->due && stats.records == 0) {
		event_base_loopbreak(b->base);
		return;
	}
	for (int i = 0; i < BATCHES && stats.records < WAITING_MAX && b->put < b->due; i++) {
		for (int n = 0; n < BATCH && b->put < b->due; n++)
			put_one(b);
		if (spool_commit(b->spool, NULL, b->seq) < 0)
			die("spool", "the disk takes nothing");
		delivery_wake(b->delivery);
		spool_stats(b->spool, &stats);
		has_put = true;
	}
	if (b->put == b->due)
		b->output->ops->flush(b->output);
	if (clock_ns(CLOCK_MONOTONIC) > b->wall_ns + WAIT_MS * 1e6)
		die("kafka", "did not take everything in time");
	event_add(b->put_timer, has_put ? &now : &later);
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct bench *b = arg;

	(void)fd;
	(void)what;
	spool_tick(b->spool, (uint64_t)clock_ns(CLOCK_MONOTONIC));
	delivery_tick(b->delivery, (int64_t)(clock_ns(CLOCK_REALTIME) / 1000));
}

static int
schema_id(void *arg, const char *subject, const struct spool_record *r, int32_t *ret)
{
	(void)arg;
	(void)subject;
	(void)r;
	*ret = SCHEMA_ID;
	return 0;
}

static void
deliver(struct bench *b, uint64_t n)
{
	static const struct timeval now;

	b->due = b->put + n;
	event_add(b->put_timer, &now);
	event_base_dispatch(b->base);
}

static void
run_sluice(struct bench *b, const char *folder)
{
	static const struct timeval tick = { 0, TICK_MS * 1000 };
	struct spool_options spool = { .dir = folder, .sync_ms = 100, .is_sync_first = true };
	struct delivery_options delivery = { 0 };
	struct output_events events;
	struct delivery_stats stats;
	char error[512];

	b->base = event_base_new();
	for (int t = 0; t < TOPIC_COUNT; t++)
		spool.schemas[t] = encode_schema(t, NULL);
	if (spool_open(&spool, &b->spool, NULL, error, sizeof(error)) < 0)
		die("spool", error);
	if (delivery_open(b->base, b->spool, &delivery, &events, &b->delivery) < 0)
		die("delivery", "out of memory");
	if (kafka_open(b->base, &b->kafka, &events, &b->output, error, sizeof(error)) < 0)
		die("kafka", error);
	delivery_set_output(b->delivery, b->output);
	b->put_timer = evtimer_new(b->base, on_put_timer, b);
	b->tick_timer = event_new(b->base, -1, EV_PERSIST, on_tick, b);
	event_add(b->tick_timer, &tick);
	begin(b);
	deliver(b, WARM_UP);
	begin(b);
	deliver(b, b->n);
	end(b);
	delivery_stats(b->delivery, &stats);
	if (stats.delivered[TOPIC_PROGRAM] != WARM_UP + b->n || stats.rewinds > 0)
		die("delivery", stats.failure);
	event_free(b->put_timer);
	event_free(b->tick_timer);
	delivery_close(b->delivery);
	if (spool_close(b->spool) < 0)
		die("spool", "cannot be closed");
	event_base_free(b->base);
}

/* --- librdkafka alone --- */

static void
on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *m, void *arg)
{
	struct bench *b = arg;

	(void)rk;
	if (m->err != RD_KAFKA_RESP_ERR_NO_ERROR)
		b->failed++;
	b->acknowledged++;
}

/* Produces like rdkafka_performance: headers are made once and copied, a full queue is waited for. */
static void
produce(struct bench *b, rd_kafka_t *rk, rd_kafka_topic_t *topic, const rd_kafka_headers_t *headers, uint64_t n)
{
	uint64_t goal = b->acknowledged + n;

	for (uint64_t i = 0; i < n; i++) {
		const struct bytes *value = &b->values[i % POOL];
		const char *key = b->keys[i % KEYS];

		for (;;) {
			rd_kafka_headers_t *copy = rd_kafka_headers_copy(headers);
			rd_kafka_resp_err_t err = rd_kafka_producev(rk, RD_KAFKA_V_RKT(topic),
			    RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_VALUE(value->data, value->len),
			    RD_KAFKA_V_KEY(key, strlen(key)), RD_KAFKA_V_TIMESTAMP(SAMPLE_TIME / 1000),
			    RD_KAFKA_V_HEADERS(copy), RD_KAFKA_V_OPAQUE((void *)(uintptr_t)i), RD_KAFKA_V_END);

			if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
				break;
			rd_kafka_headers_destroy(copy);
			if (err != RD_KAFKA_RESP_ERR__QUEUE_FULL)
				die("produce", rd_kafka_err2str(err));
			rd_kafka_poll(rk, 10);
		}
		rd_kafka_poll(rk, 0);
	}
	rd_kafka_flush(rk, WAIT_MS);
	if (b->acknowledged != goal || b->failed > 0)
		die("kafka", "did not take everything in time");
}

static void
run_direct(struct bench *b)
{
	char error[512], name[256];
	rd_kafka_conf_t *conf = kafka_conf_new(&b->kafka, error, sizeof(error));
	rd_kafka_headers_t *headers = rd_kafka_headers_new(2);
	rd_kafka_topic_t *topic;
	rd_kafka_t *rk;

	if (conf == NULL)
		die("kafka", error);
	rd_kafka_conf_set_opaque(conf, b);
	rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
	rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, sizeof(error));
	if (rk == NULL)
		die("kafka", error);
	snprintf(name, sizeof(name), "%s%s", b->kafka.topic_prefix, topic_name(TOPIC_PROGRAM));
	topic = rd_kafka_topic_new(rk, name, NULL);
	if (topic == NULL)
		die(name, rd_kafka_err2str(rd_kafka_last_error()));
	rd_kafka_header_add(headers, "schema_version", -1, "1", 1);
	rd_kafka_header_add(headers, "agent_version", -1, SLUICE_VERSION, -1);
	produce(b, rk, topic, headers, WARM_UP);
	begin(b);
	produce(b, rk, topic, headers, b->n);
	end(b);
	rd_kafka_headers_destroy(headers);
	rd_kafka_topic_destroy(topic);
	rd_kafka_destroy(rk);
}

static void
report(const struct bench *b)
{
	double rate = (double)b->n / b->wall_ns * 1e9, cpu = b->cpu_ns / (double)b->n,
	    loop = b->main_ns / (double)b->n, bytes = 0;

	for (int i = 0; i < POOL; i++)
		bytes += (double)b->values[i].len / POOL;
	sample_print("rate", &rate, 1);
	sample_print("cpu_ns", &cpu, 1);
	sample_print("main_ns", &loop, 1);
	sample_print("bytes", &bytes, 1);
}

int
main(int argc, char **argv)
{
	static struct bench b;
	static struct kafka_property properties[PROPERTIES_MAX];

	if (argc >= 6)
		b.n = strtoull(argv[4], NULL, 10);
	if (b.n == 0 || (strcmp(argv[1], "sluice") != 0 && strcmp(argv[1], "direct") != 0)) {
		fputs("usage: bench_delivery sluice|direct BROKERS PREFIX RECORDS FOLDER [NAME=VALUE]...\n", stderr);
		return 2;
	}
	mallopt(M_MXFAST, 0);	/* as in the agent; makes both arms faster */
	b.kafka = (struct kafka_options){ .brokers = (const char *const *)&argv[2], .n_brokers = 1,
		.topic_prefix = argv[3], .agent_version = SLUICE_VERSION, .schema_id = schema_id,
		.properties = properties };
	for (int i = 6; i < argc && b.kafka.n_properties < PROPERTIES_MAX; i++) {
		char *equals = strchr(argv[i], '=');

		if (equals == NULL)
			die(argv[i], "no NAME=VALUE");
		*equals = '\0';
		properties[b.kafka.n_properties++] = (struct kafka_property){ argv[i], equals + 1 };
	}
	make_records(&b);
	if (strcmp(argv[1], "sluice") == 0)
		run_sluice(&b, argv[5]);
	else
		run_direct(&b);
	report(&b);
	for (int i = 0; i < POOL; i++)
		bytes_done(&b.values[i]);
	return 0;
}
