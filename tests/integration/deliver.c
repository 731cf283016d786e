/*
 * SPDX-License-Identifier: Apache-2.0
 * deliver: records through the spool into Kafka or a file lake, without the rest of the agent.
 *
 * For tests and benchmarks of delivery alone. Puts synthetic Program and Usage records at a rate, waits
 * until they are delivered or a timeout, and prints the results as one JSON object. Another run on the
 * same spool continues where it ended. SIGTERM ends the putting and the waiting.
 */
#include <errno.h>
#include <event2/event.h>
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "deliver/dead_letter.h"
#include "deliver/delivery.h"
#include "codec/encode.h"
#include "deliver/file_output.h"
#include "kafka/kafka.h"
#include "spool/spool.h"
#include "stream/stream.h"

#define HOST_ID "0123456789abcdef0123456789abcdef"
#define AGENT_ID "6f1e0a52-7d0f-4c35-9a3d-0d6c3b1f7a10"

enum {
	PROPERTIES_MAX = 32,
	TICK_MS = 100,
	PUT_MS = 5,
	WAITING_MAX = 100000,	/* without a rate: limit of records that wait in the spool */
};

struct driver {
	/* options */
	const char *brokers, *spool_dir, *lake, *dead_dir, *prefix;
	struct kafka_property properties[PROPERTIES_MAX];
	size_t n_properties;
	uint64_t number, rate, dead_max, keys, usage_every, argument_bytes, spool_max;
	int64_t schema_id;
	uint32_t partitions, wait_ms, sync_ms, pause_max_ms, linger_ms;
	bool create, is_quiet;

	struct event_base *base;
	struct event *put_timer, *tick_timer, *term;
	struct spool *spool;
	struct encoder *encoder;
	struct dead_letters *dead;
	struct delivery *delivery;
	struct output *output;
	uint64_t seq[TOPIC_COUNT];
	char *argument;
	uint64_t put, lost;
	struct timespec started;
	uint64_t cpu_started_ns, encode_ns;
	bool is_draining, is_empty;
	char said[512];		/* last status error that was printed */
};

static void
die(const char *what, const char *why)
{
	fprintf(stderr, "deliver: %s: %s\n", what, why);
	exit(125);
}

static double
seconds_since(const struct timespec *then)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - then->tv_sec) + 1e-9 * (double)(now.tv_nsec - then->tv_nsec);
}

static uint64_t
clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

/* Puts one record into the batch. */
static void
put_one(struct driver *d)
{
	bool is_usage = d->usage_every > 0 && d->put % d->usage_every == d->usage_every - 1;
	enum topic topic = is_usage ? TOPIC_USAGE : TOPIC_PROGRAM;
	static struct usage usage;
	const char *argv[] = { "tool", d->argument };
	char run[32], key[80], program_id[32];
	struct record_head head = { .time_us = (int64_t)(clock_ns(CLOCK_REALTIME) / 1000), .run_id = run };
	struct program_identity id = { .pid = 1, .program_id = program_id };
	struct program_record program = { .head = head, .phase = PHASE_START, .id = id,
	    .exe = "/usr/bin/tool", .comm = "tool", .argv = argv, .argc = 2, .cwd = "/data/run" };
	struct usage_record use = { .head = head, .id = id, .comm = "tool", .usage = &usage };
	struct spool *spool = d->spool;
	const uint8_t *data;
	size_t len;

	snprintf(run, sizeof(run), "run-%" PRIu64, d->put % d->keys);
	snprintf(key, sizeof(key), HOST_ID ":%s", run);
	snprintf(program_id, sizeof(program_id), "p-%" PRIu64, d->put);
	if (encode(d->encoder, topic, is_usage ? (void *)&use : (void *)&program, d->seq[topic], &data, &len) < 0 ||
	    spool_put(spool, &(struct encoded_record){ topic, head.time_us, d->seq[topic], key, data, len }) < 0)
		d->lost++;
	d->seq[topic]++;
	d->put++;
}

static void
on_drained(bool is_empty, void *arg)
{
	struct driver *d = arg;

	d->is_empty = is_empty;
	event_base_loopbreak(d->base);
}

static void
drain(struct driver *d)
{
	if (d->is_draining)
		return;
	d->is_draining = true;
	if (!d->is_quiet)
		fprintf(stderr, "deliver: %.1f s: %" PRIu64 " were put\n", seconds_since(&d->started), (uint64_t)d->put);
	event_del(d->put_timer);
	delivery_drain(d->delivery, d->wait_ms, on_drained, d);
}

static void
on_put_timer(evutil_socket_t fd, short what, void *arg)
{
	struct driver *d = arg;
	struct spool_stats stats;
	uint64_t due;

	(void)fd;
	(void)what;
	if (d->rate > 0) {
		due = (uint64_t)(seconds_since(&d->started) * (double)d->rate);
	} else {
		spool_stats(d->spool, &stats);
		due = stats.records < WAITING_MAX ? d->put + 10000 : d->put;
	}
	if (due > d->number)
		due = d->number;
	if (d->put < due) {
		while (d->put < due)
			put_one(d);
		spool_commit(d->spool, NULL, d->seq);
		delivery_wake(d->delivery);
	}
	if (d->put == d->number)
		drain(d);
}

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct driver *d = arg;
	struct output_status status;

	(void)fd;
	(void)what;
	spool_tick(d->spool, clock_ns(CLOCK_MONOTONIC));
	delivery_tick(d->delivery, (int64_t)(clock_ns(CLOCK_REALTIME) / 1000));
	d->output->ops->status(d->output, &status);
	if (!d->is_quiet && strcmp(status.error, d->said) != 0) {
		strcpy(d->said, status.error);
		fprintf(stderr, "deliver: %.1f s: %s\n", seconds_since(&d->started), status.error);
	}
}

static void
on_term(evutil_socket_t fd, short what, void *arg)
{
	struct driver *d = arg;

	(void)fd;
	(void)what;
	d->wait_ms = 1;
	if (d->is_draining)
		event_base_loopbreak(d->base);
	drain(d);
}

static int
schema_id(void *arg, const char *subject, const struct spool_record *r, int32_t *ret)
{
	struct driver *d = arg;

	(void)subject;
	if (spool_schema(d->spool, r->schema) == NULL)
		return -ENOENT;
	*ret = (int32_t)d->schema_id;
	return 0;
}

static const char *
schema_text(void *arg, uint64_t fingerprint)
{
	struct driver *d = arg;

	return spool_schema(d->spool, fingerprint);
}

static void
on_log(int level, const char *facility, const char *text, void *arg)
{
	const struct driver *d = arg;

	if (!d->is_quiet)
		fprintf(stderr, "deliver: %.1f s: %d %s: %s\n", seconds_since(&d->started), level, facility, text);
}

static void
open_output(struct driver *d, const struct output_events *events)
{
	struct kafka_options kafka = { .brokers = &d->brokers, .n_brokers = 1,
	    .properties = d->properties, .n_properties = d->n_properties, .topic_prefix = d->prefix,
	    .create_topics = d->create, .partitions = d->partitions, .agent_version = SLUICE_VERSION,
	    .stats_ms = 1000, .schema_id = schema_id, .on_log = on_log, .arg = d };
	struct file_output_options files = {
	    .writer = { .appender = { .lake = d->lake, .host_id = HOST_ID, .agent_id = AGENT_ID } },
	    .schema = schema_text, .schema_arg = d };
	char error[512] = "";
	int r;

	if (d->lake != NULL) {
		r = file_output_open(d->base, &files, events, &d->output);
		if (r < 0)
			die(d->lake, strerror(-r));
	} else if (kafka_open(d->base, &kafka, events, &d->output, error, sizeof(error)) < 0) {
		die("kafka", error);
	}
	delivery_set_output(d->delivery, d->output);
}

static void
open_all(struct driver *d, struct spool_recovery *recovery)
{
	struct agent_identity identity = { .host_id = HOST_ID, .host_name = "node7",
	    .boot_id = "b3f1f8a1-0c5e-4f5e-8f7e-2f3f6d1f0b11", .agent_id = AGENT_ID };
	struct spool_options spool = { .dir = d->spool_dir, .max_bytes = d->spool_max, .sync_ms = d->sync_ms };
	struct delivery_options delivery = { .pause_max_ms = d->pause_max_ms };
	struct output_events events;
	struct timeval put = { 0, PUT_MS * 1000 }, tick = { 0, TICK_MS * 1000 };
	char error[512] = "";

	d->argument = malloc(d->argument_bytes + 1);
	memset(d->argument, 'x', d->argument_bytes);
	d->argument[d->argument_bytes] = '\0';
	for (int t = 0; t < TOPIC_COUNT; t++)
		spool.schemas[t] = encode_schema(t, NULL);
	d->base = event_base_new();
	if (spool_open(&spool, &d->spool, recovery, error, sizeof(error)) < 0)
		die("spool", error);
	for (int t = 0; t < TOPIC_COUNT; t++)
		d->seq[t] = spool_next_seq(d->spool, t);
	if (encoder_open(&identity, &d->encoder, error, sizeof(error)) < 0)
		die("encoder", error);
	if (d->dead_dir != NULL && dead_letters_open(d->dead_dir, d->dead_max, 0, &d->dead) < 0)
		die(d->dead_dir, "cannot open the dead letters");
	delivery.dead = d->dead;
	if (delivery_open(d->base, d->spool, &delivery, &events, &d->delivery) < 0)
		die("delivery", "out of memory");
	clock_gettime(CLOCK_MONOTONIC, &d->started);
	open_output(d, &events);
	d->put_timer = event_new(d->base, -1, EV_PERSIST, on_put_timer, d);
	d->tick_timer = event_new(d->base, -1, EV_PERSIST, on_tick, d);
	d->term = evsignal_new(d->base, SIGTERM, on_term, d);
	event_add(d->put_timer, &put);
	event_add(d->tick_timer, &tick);
	event_add(d->term, NULL);
}

static json_t *
by_topic(const uint64_t counts[TOPIC_COUNT])
{
	json_t *o = json_object();

	for (int t = 0; t < TOPIC_COUNT; t++) {
		if (counts[t] > 0)
			json_object_set_new(o, topic_name(t), json_integer((json_int_t)counts[t]));
	}
	return o;
}

static uint64_t
sum(const uint64_t counts[TOPIC_COUNT])
{
	uint64_t n = 0;

	for (int t = 0; t < TOPIC_COUNT; t++)
		n += counts[t];
	return n;
}

static void
report(struct driver *d, const struct spool_recovery *recovery)
{
	double seconds = seconds_since(&d->started);
	uint64_t cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - d->cpu_started_ns;
	struct delivery_stats delivery;
	struct output_status status;
	struct spool_stats spool;
	struct kafka_stats kafka = { 0 };
	json_t *dead = json_object(), *root;
	struct kafka_library library;
	struct rusage usage;
	uint64_t delivered;

	kafka_library_describe(&library);
	getrusage(RUSAGE_SELF, &usage);
	delivery_stats(d->delivery, &delivery);
	spool_stats(d->spool, &spool);
	d->output->ops->status(d->output, &status);
	if (d->lake == NULL)
		kafka_stats(d->output, &kafka);
	for (size_t i = 0; i < delivery.n_dead; i++)
		json_object_set_new(dead, delivery.dead[i].reason, by_topic(delivery.dead[i].count));
	delivered = sum(delivery.delivered);
	root = json_pack("{s:b, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:I, s:I, s:I, s:s, s:i, s:I, s:s}",
	    "is_empty", d->is_empty, "put", (json_int_t)d->put, "lost", (json_int_t)d->lost,
	    "delivered", by_topic(delivery.delivered), "redelivered", by_topic(delivery.redelivered),
	    "dead", dead, "lost_full", by_topic(delivery.lost_full),
	    "lost_unwritable", by_topic(delivery.lost_unwritable),
	    "rewinds", (json_int_t)delivery.rewinds, "in_flight", (json_int_t)delivery.in_flight,
	    "waiting", (json_int_t)spool.records, "recovered", (json_int_t)recovery->records,
	    "retried", (json_int_t)status.retried,
	    "seconds", seconds, "records_per_s", seconds > 0 ? (double)delivered / seconds : 0,
	    "cpu_ns_per_record", delivered > 0 ? (double)cpu_ns / (double)delivered : 0,
	    "encode_ns", (json_int_t)d->encode_ns, "max_rss_kib", (json_int_t)usage.ru_maxrss,
	    "producers", (json_int_t)kafka.producers, "error", status.error, "state", (int)status.state,
	    "rtt_us", (json_int_t)kafka.rtt_us, "librdkafka", library.version);
	json_dumpf(root, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(root);
}

static void
close_all(struct driver *d)
{
	event_free(d->put_timer);
	event_free(d->tick_timer);
	event_free(d->term);
	delivery_close(d->delivery);
	dead_letters_close(d->dead);
	encoder_close(d->encoder);
	spool_close(d->spool);
	event_base_free(d->base);
	free(d->argument);
}

static uint64_t
parse(const char *name, const char *text)
{
	char *end;
	uint64_t value = strtoull(text, &end, 10);

	if (*text == '\0' || *end != '\0')
		die(name, "not a number");
	return value;
}

static void
parse_options(struct driver *d, int argc, char **argv)
{
	static const struct option options[] = {
		{ "brokers", 1, NULL, 'b' }, { "spool", 1, NULL, 's' }, { "lake", 1, NULL, 'l' },
		{ "dead", 1, NULL, 'd' }, { "dead-max", 1, NULL, 'D' }, { "prefix", 1, NULL, 'p' },
		{ "property", 1, NULL, 'X' }, { "number", 1, NULL, 'n' }, { "rate", 1, NULL, 'r' },
		{ "keys", 1, NULL, 'k' }, { "usage-every", 1, NULL, 'u' }, { "argument", 1, NULL, 'a' },
		{ "schema-id", 1, NULL, 'i' }, { "create", 1, NULL, 'c' }, { "wait", 1, NULL, 'w' },
		{ "sync", 1, NULL, 'y' }, { "pause-max", 1, NULL, 'P' }, { "spool-max", 1, NULL, 'm' },
		{ "linger", 1, NULL, 'L' }, { "quiet", 0, NULL, 'q' }, { 0 },
	};
	char *equals;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'b': d->brokers = optarg; break;
		case 's': d->spool_dir = optarg; break;
		case 'l': d->lake = optarg; break;
		case 'd': d->dead_dir = optarg; break;
		case 'D': d->dead_max = parse("--dead-max", optarg); break;
		case 'p': d->prefix = optarg; break;
		case 'X':
			equals = strchr(optarg, '=');
			if (equals == NULL || d->n_properties == PROPERTIES_MAX)
				die("--property", "want NAME=VALUE");
			*equals = '\0';
			d->properties[d->n_properties++] = (struct kafka_property){ optarg, equals + 1 };
			break;
		case 'n': d->number = parse("--number", optarg); break;
		case 'r': d->rate = parse("--rate", optarg); break;
		case 'k': d->keys = parse("--keys", optarg); break;
		case 'u': d->usage_every = parse("--usage-every", optarg); break;
		case 'a': d->argument_bytes = parse("--argument", optarg); break;
		case 'i': d->schema_id = (int64_t)parse("--schema-id", optarg); break;
		case 'c':
			d->create = true;
			d->partitions = (uint32_t)parse("--create", optarg);
			break;
		case 'w': d->wait_ms = (uint32_t)parse("--wait", optarg); break;
		case 'y': d->sync_ms = (uint32_t)parse("--sync", optarg); break;
		case 'P': d->pause_max_ms = (uint32_t)parse("--pause-max", optarg); break;
		case 'm': d->spool_max = parse("--spool-max", optarg); break;
		case 'L': d->linger_ms = (uint32_t)parse("--linger", optarg); break;
		case 'q': d->is_quiet = true; break;
		default: exit(2);
		}
	}
	if (d->spool_dir == NULL || (d->brokers == NULL) == (d->lake == NULL) || d->keys == 0) {
		fprintf(stderr, "Usage: deliver --spool DIR --brokers B|--lake DIR [--number N] [--rate PER_S] "
		    "[--keys N] [--usage-every N] [--argument BYTES] [--schema-id N] [--create PARTITIONS] "
		    "[--prefix P] [--property NAME=VALUE]... [--dead DIR] [--dead-max BYTES] [--wait MS] "
		    "[--sync MS] [--pause-max MS] [--spool-max BYTES] [--linger MS] [--quiet]\n");
		exit(2);
	}
}

/* Measures encoding, which is part of cpu_ns_per_record but not of delivery. */
static void
measure_encoding(struct driver *d)
{
	const uint64_t rounds = 2000;
	const char *argv[] = { "tool", d->argument };
	struct program_record program = { .head = { .run_id = "run-1" }, .exe = "/usr/bin/tool",
	    .id = { .program_id = "p-1" }, .comm = "tool", .argv = argv, .argc = 2, .cwd = "/data/run" };
	uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	const uint8_t *data;
	size_t len;

	for (uint64_t i = 0; i < rounds; i++) {
		if (encode(d->encoder, TOPIC_PROGRAM, &program, i, &data, &len) < 0)
			die("encode", "failed");
	}
	d->encode_ns = (clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / rounds;
}

/*
 * Time to sleep at the very end of the process: the libraries have freed their memory, so that a sanitizer
 * detects a thread that still uses it.
 */
static uint32_t linger_ms;

static void
linger(void)
{
	usleep(linger_ms * 1000);
}

int
main(int argc, char **argv)
{
	struct driver d = { .number = 1000, .keys = 8, .schema_id = 1, .argument_bytes = 40,
	    .wait_ms = 60000, .sync_ms = 100, .dead_max = 0 };
	struct spool_recovery recovery = { 0 };

	parse_options(&d, argc, argv);
	/* Registered first, so that it runs last. */
	linger_ms = d.linger_ms;
	atexit(linger);
	kafka_process_init();
	open_all(&d, &recovery);
	measure_encoding(&d);
	d.cpu_started_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	event_base_dispatch(d.base);
	report(&d, &recovery);
	close_all(&d);
	if (linger_ms == 0)
		kafka_process_wait(10000);
	return d.is_empty ? 0 : 1;
}
