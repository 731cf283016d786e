/*
 * SPDX-License-Identifier: Apache-2.0
 * kafka: an output over librdkafka: an idempotent producer on the caller's loop.
 *
 * Value: byte 0, the schema's id (four bytes, big-endian), the Avro record. Key: the record's, so
 * that a host's run keeps its order in one partition. Headers: schema_version, agent_version, and
 * redelivery = 1 where the record had been handed over before. The timestamp is the record's time.
 *
 * No call waits. What librdkafka can only do by waiting (asking which topics there are, taking a
 * producer down) is done by a short-lived thread.
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

/* Strings are copied. NULL and 0 where not wanted. */
struct kafka_options {
	const char *const *brokers;	/* host:port */
	size_t n_brokers;
	const struct kafka_property *properties;	/* any of librdkafka's; they win over ours */
	size_t n_properties;
	const char *topic_prefix;	/* before topic_name() */
	bool create_topics;		/* those that are missing */
	uint32_t partitions;		/* of a new topic; 0: the broker's default */
	uint32_t replication;		/* the same */
	int64_t retention_ms;		/* of a new topic; 0: the broker's default */
	const char *agent_version;
	uint32_t stats_ms;		/* how often kafka_stats() gets new figures; 0: 30 s */
	/*
	 * The registry's id of the schema that r was encoded with. 0; -ENOENT: nobody knows that
	 * schema, so r is refused for good; any other negative errno: not now, and the owner calls
	 * kafka_registry_changed() when it may be worth another try.
	 */
	int (*schema_id)(void *arg, const char *subject, const struct spool_record *r, int32_t *ret_id);
	/* NULL, or librdkafka's log: level as of syslog(3), a short word, a sentence. On the loop. */
	void (*on_log)(int level, const char *facility, const char *text, void *arg);
	void *arg;			/* of both */
};

struct kafka_stats {
	unsigned brokers;		/* known */
	unsigned brokers_up;
	uint64_t retried;		/* produce requests and others, sent again */
	uint64_t request_timeouts;
	int64_t rtt_us;			/* the slowest broker's mean round trip; 0: not measured yet */
	int64_t rtt_p99_us;
	uint64_t producers;		/* that were opened: more than one after failures */
	char missing_topic[128];	/* that records wait for; "" none */
};

/*
 * Once, before any other call of librdkafka, libcurl or OpenSSL: what a process with producers needs of
 * malloc, and of OpenSSL, which else gives up its tables at exit under threads that are in a handshake.
 */
void kafka_process_init(void);
/*
 * Waits until the outputs that were closed have let go of all they had, for about so long at most: the last
 * thing before the process ends. False: something is still under way, and ends with the process.
 */
bool kafka_process_wait(unsigned ms);
/*
 * 0, or a negative errno with *ret untouched and a sentence in error that names the property. That
 * no broker can be reached is no error here: see the output's status.
 */
int kafka_open(struct event_base *base, const struct kafka_options *o,
    const struct output_events *events, struct output **ret, char *error, size_t error_size);
/* Checks what kafka_open() would, without a thread or a connection. */
int kafka_check(const struct kafka_options *o, char *error, size_t error_size);

void kafka_registry_changed(struct output *o);
void kafka_stats(const struct output *o, struct kafka_stats *ret);

enum {
	KAFKA_ABILITIES = 8,
};

/* For doctor: what the librdkafka that we run with can do, found out by making a producer for each. */
struct kafka_library {
	char version[32];
	bool has_modern_scram;	/* 2.6.1 or later: SCRAM with Kafka 4 */
	size_t n;
	struct kafka_ability {
		const char *name;	/* "SCRAM-SHA-512", "zstd" ... */
		bool works;
		char error[192];	/* where not */
	} abilities[KAFKA_ABILITIES];
};
void kafka_library_describe(struct kafka_library *ret);

#endif
