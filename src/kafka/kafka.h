/*
 * SPDX-License-Identifier: Apache-2.0
 * kafka: an output over librdkafka: an idempotent producer on the caller's loop.
 *
 * Value: byte 0, the schema's id (four bytes, big-endian), the Avro record. Key: the record's, so that a host's
 * run keeps its order in one partition. Headers: schema_version, agent_version, and redelivery = 1 if the
 * record was handed over before, or may have been. The timestamp is the record's time, or none for a while after a
 * broker has refused such a time.
 *
 * No call waits. Blocking calls of librdkafka (requesting metadata, destroying a producer) run in short-lived
 * threads.
 */
#ifndef SLUICE_KAFKA_KAFKA_H
#define SLUICE_KAFKA_KAFKA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "deliver/output.h"

struct event_base;

struct kafka_property {
	const char *name;
	const char *value;
};

/* Options of the output. Strings are copied; NULL and 0 mean none. */
struct kafka_options {
	const char *const *brokers;	/* host:port */
	size_t n_brokers;
	const struct kafka_property *properties;	/* any of librdkafka's; they override our defaults */
	size_t n_properties;
	const char *topic_prefix;	/* before topic_name() */
	bool create_topics;		/* create missing topics */
	uint32_t partitions;		/* number for a new topic; 0: the broker's default */
	uint32_t replication;		/* factor for a new topic; 0: the broker's default */
	int64_t retention_ms;		/* limit for a new topic; 0: the broker's default */
	const char *agent_version;
	uint32_t stats_ms;		/* interval of updates of kafka_stats(); 0: 30 s */
	/*
	 * Finds the registry's id of the schema that r was encoded with, once an epoch. 0; -ENOENT: the schema is
	 * unknown, and r is refused for good; any other negative errno: not now, and the owner calls
	 * kafka_registry_changed() when the id may be available.
	 */
	int (*schema_id)(void *arg, const char *subject, const struct spool_record *r, int32_t *ret_id);
	/* NULL, or called on the loop for librdkafka's log: syslog(3) level, facility, text. */
	void (*on_log)(int level, const char *facility, const char *text, void *arg);
	void *arg;			/* argument of both callbacks */
};

struct kafka_stats {
	unsigned brokers;		/* known */
	unsigned brokers_up;
	uint64_t retried;		/* produce and other requests sent again */
	uint64_t request_timeouts;
	int64_t rtt_us;			/* largest mean round trip of a broker; 0: not measured yet */
	int64_t rtt_p99_us;
	uint64_t producers;		/* opened so far: more than one after failures */
	char missing_topic[128];	/* a missing topic that records wait for; "": none */
};

/*
 * Prepares malloc and OpenSSL for producers; to be called once, before any other call of librdkafka, libcurl or
 * OpenSSL. OpenSSL would otherwise free its tables at exit while threads are in a handshake.
 */
void kafka_process_init(void);
/*
 * Waits up to about ms milliseconds until closed outputs have released everything; the last call before the
 * process ends. False: some are still open, and end with the process.
 */
bool kafka_process_wait(unsigned ms);
/*
 * Opens the output. 0, or a negative errno with *ret untouched and a sentence in error that names the property.
 * An unreachable broker is no error here: the output's status shows it.
 */
int kafka_open(struct event_base *base, const struct kafka_options *o,
    const struct output_events *events, struct output **ret, char *error, size_t error_size);
/*
 * Checks the options as kafka_open() does, without a thread or a connection. 0 or a negative errno with a
 * sentence.
 */
int kafka_check(const struct kafka_options *o, char *error, size_t error_size);

/*
 * Makes delivery try again, because schema_id() may succeed now. epoch: of the registry's ids. If it is another one,
 * all ids are asked for again, and messages that were not sent yet are recalled.
 */
void kafka_registry_changed(struct output *o, uint64_t epoch);
/* Copies the counters since kafka_open(). */
void kafka_stats(const struct output *o, struct kafka_stats *ret);

enum {
	KAFKA_ABILITIES = 8,
};

/* Abilities of the librdkafka in use, for `sluice doctor`, determined by creating a producer for each. */
struct kafka_library {
	char version[32];
	bool has_modern_scram;	/* 2.6.1 or later: SCRAM with Kafka 4 */
	size_t n;
	struct kafka_ability {
		const char *name;	/* "SCRAM-SHA-512", "zstd" ... */
		bool works;
		char error[192];	/* set if it does not work */
	} abilities[KAFKA_ABILITIES];
};
/* Fills ret; creates and destroys a producer for each ability. */
void kafka_library_describe(struct kafka_library *ret);

#endif
