/*
 * SPDX-License-Identifier: Apache-2.0
 * config: librdkafka's properties: our defaults and the user's; and the abilities of this librdkafka.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/text.h"
#include "kafka/client.h"

#define MODERN_SCRAM_VERSION 0x020601ff	/* 2.6.1: no longer sends the client's nonce twice */

/* Our defaults; the user's properties are set later and override them. */
static const struct kafka_property defaults[] = {
	{ "client.id", "sluice" },
	/* No loss, no duplicates and no reordering, as far as the producer can ensure it. */
	{ "enable.idempotence", "true" },
	{ "acks", "all" },
	{ "compression.type", "lz4" },
	{ "linger.ms", "10" },
	/* The Java client's partitioner, so that Spark and Flink jobs can co-partition. */
	{ "partitioner", "murmur2_random" },
	/* Small buffers: other records wait in the spool, where a crash does not lose them. */
	{ "queue.buffering.max.messages", "20000" },
	{ "queue.buffering.max.kbytes", "16384" },
	{ "socket.keepalive.enable", "true" },
	/* A missing topic is reported soon, and its records then wait in the spool. */
	{ "topic.metadata.propagation.max.ms", "5000" },
	{ "message.timeout.ms", "300000" },
};

char *
kafka_join_brokers(const struct kafka_options *o)
{
	size_t len = 1;
	char *joined;

	for (size_t i = 0; i < o->n_brokers; i++)
		len += strlen(o->brokers[i]) + 1;
	joined = calloc(1, len);
	for (size_t i = 0; joined != NULL && i < o->n_brokers; i++) {
		if (i > 0)
			strcat(joined, ",");
		strcat(joined, o->brokers[i]);
	}
	return joined;
}

/* Sets a property. The error is librdkafka's message, preceded by the name if the message names only an alias. */
static bool
set(rd_kafka_conf_t *conf, const char *name, const char *value, char *error, size_t error_size)
{
	char text[256];

	if (rd_kafka_conf_set(conf, name, value, text, sizeof(text)) == RD_KAFKA_CONF_OK)
		return true;
	if (strstr(text, name) != NULL)
		snprintf(error, error_size, "%s", text);
	else
		snprintf(error, error_size, "%s: %s", name, text);
	return false;
}

/*
 * Disables metrics pushed to brokers (KIP-714, librdkafka from 2.5 on). The agent has its own metrics, and
 * destroying a producer would wait up to a second to push the last ones.
 */
static void
disable_metrics_push(rd_kafka_conf_t *conf)
{
	/* An older library does not know the property, and pushes none. */
	(void)rd_kafka_conf_set(conf, "enable.metrics.push", "false", NULL, 0);
}

/* librdkafka's own error for a file that cannot be opened is only "system lib". */
bool
kafka_files_can_be_read(const struct kafka_options *o, char *error, size_t error_size)
{
	for (size_t i = 0; i < o->n_properties; i++) {
		const struct kafka_property *p = &o->properties[i];

		/* "probe" is a value of ssl.ca.location, not a file. */
		if (!text_ends_with(p->name, ".location") || strcmp(p->value, "probe") == 0 ||
		    access(p->value, R_OK) == 0)
			continue;
		snprintf(error, error_size, "%s: %s cannot be read by uid %u, the agent's account: %s", p->name,
		    p->value, (unsigned)getuid(), strerror(errno));
		return false;
	}
	return true;
}

rd_kafka_conf_t *
kafka_conf_new(const struct kafka_options *o, char *error, size_t error_size)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	char *brokers = kafka_join_brokers(o);
	char stats[16];

	if (conf == NULL || brokers == NULL) {
		snprintf(error, error_size, "out of memory");
		goto fail;
	}
	for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++) {
		if (!set(conf, defaults[i].name, defaults[i].value, error, error_size))
			goto fail;
	}
	disable_metrics_push(conf);
	snprintf(stats, sizeof(stats), "%u", o->stats_ms != 0 ? o->stats_ms : 30000);
	if (!set(conf, "statistics.interval.ms", stats, error, error_size))
		goto fail;
	if (o->n_brokers > 0 && !set(conf, "bootstrap.servers", brokers, error, error_size))
		goto fail;
	for (size_t i = 0; i < o->n_properties; i++) {
		if (!set(conf, o->properties[i].name, o->properties[i].value, error, error_size))
			goto fail;
	}
	/* Logs are read on the loop with other events; a user's false would print them on stderr. */
	if (!set(conf, "log.queue", "true", error, error_size))
		goto fail;
	free(brokers);
	return conf;

fail:
	free(brokers);
	if (conf != NULL)
		rd_kafka_conf_destroy(conf);
	return NULL;
}

const char *
kafka_conf_get(const rd_kafka_conf_t *conf, const char *name, char *buffer, size_t size)
{
	return rd_kafka_conf_get(conf, name, buffer, &size) == RD_KAFKA_CONF_OK ? buffer : NULL;
}

int
kafka_conf_batch_bytes(const rd_kafka_conf_t *conf)
{
	char text[16];
	const char *batch = kafka_conf_get(conf, "batch.size", text, sizeof(text));
	int bytes = batch != NULL ? atoi(batch) : 0;
	const char *message = kafka_conf_get(conf, "message.max.bytes", text, sizeof(text));
	int most = message != NULL ? atoi(message) : 0;

	return most < bytes ? most : bytes;
}

bool
kafka_conf_has_broken_scram(const rd_kafka_conf_t *conf)
{
	char text[64];
	const char *mechanism = kafka_conf_get(conf, "sasl.mechanisms", text, sizeof(text));

	return mechanism != NULL && strncasecmp(mechanism, "SCRAM", 5) == 0 &&
	    rd_kafka_version() < MODERN_SCRAM_VERSION;
}

int
kafka_check(const struct kafka_options *o, char *error, size_t error_size)
{
	rd_kafka_conf_t *conf = kafka_conf_new(o, error, error_size);
	const char *brokers;
	char text[1024];
	int r = 0;

	if (conf == NULL)
		return -EINVAL;
	brokers = kafka_conf_get(conf, "bootstrap.servers", text, sizeof(text));
	if (brokers == NULL || brokers[0] == '\0') {
		snprintf(error, error_size, "no broker is configured");
		r = -EINVAL;
	}
	rd_kafka_conf_destroy(conf);
	return r;
}

/* Properties without which a producer with the ability cannot be created. */
static const struct {
	const char *name;
	struct kafka_property properties[4];
} probes[] = {
	{ "SSL", { { "security.protocol", "ssl" } } },
	{ "PLAIN", { { "security.protocol", "sasl_plaintext" }, { "sasl.mechanisms", "PLAIN" },
	    { "sasl.username", "u" }, { "sasl.password", "p" } } },
	{ "SCRAM-SHA-256", { { "security.protocol", "sasl_plaintext" },
	    { "sasl.mechanisms", "SCRAM-SHA-256" }, { "sasl.username", "u" },
	    { "sasl.password", "p" } } },
	{ "SCRAM-SHA-512", { { "security.protocol", "sasl_plaintext" },
	    { "sasl.mechanisms", "SCRAM-SHA-512" }, { "sasl.username", "u" },
	    { "sasl.password", "p" } } },
	{ "OAUTHBEARER", { { "security.protocol", "sasl_plaintext" },
	    { "sasl.mechanisms", "OAUTHBEARER" },
	    { "enable.sasl.oauthbearer.unsecure.jwt", "true" } } },
	/* A library without libcurl refuses this method. */
	{ "OIDC", { { "security.protocol", "sasl_plaintext" }, { "sasl.mechanisms", "OAUTHBEARER" },
	    { "sasl.oauthbearer.method", "oidc" } } },
	{ "lz4", { { "compression.type", "lz4" } } },
	{ "zstd", { { "compression.type", "zstd" } } },
};

_Static_assert(sizeof(probes) / sizeof(probes[0]) == KAFKA_ABILITIES, "KAFKA_ABILITIES is the number of probes");

static void
on_log_nowhere(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
	(void)rk;
	(void)level;
	(void)facility;
	(void)text;
}

/* Creates a producer, which starts its threads but has no broker to connect to. */
static bool
try_ability(size_t i, char *error, size_t error_size)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	rd_kafka_t *rk;

	rd_kafka_conf_set_log_cb(conf, on_log_nowhere);
	disable_metrics_push(conf);
	for (size_t n = 0; n < 4 && probes[i].properties[n].name != NULL; n++) {
		if (!set(conf, probes[i].properties[n].name, probes[i].properties[n].value, error,
		    error_size)) {
			rd_kafka_conf_destroy(conf);
			return false;
		}
	}
	/*
	 * A library without libcurl refuses these properties. A producer is refused in any case, as others are
	 * missing.
	 */
	if (strcmp(probes[i].name, "OIDC") == 0 &&
	    (!set(conf, "sasl.oauthbearer.client.id", "u", error, error_size) ||
	    !set(conf, "sasl.oauthbearer.client.secret", "p", error, error_size) ||
	    !set(conf, "sasl.oauthbearer.token.endpoint.url", "http://127.0.0.1:9/", error, error_size))) {
		rd_kafka_conf_destroy(conf);
		return false;
	}
	rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, error_size);
	if (rk == NULL) {
		rd_kafka_conf_destroy(conf);
		return false;
	}
	rd_kafka_destroy_flags(rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
	return true;
}

void
kafka_library_describe(struct kafka_library *ret)
{
	*ret = (struct kafka_library){ .n = KAFKA_ABILITIES };
	snprintf(ret->version, sizeof(ret->version), "%s", rd_kafka_version_str());
	ret->has_modern_scram = rd_kafka_version() >= MODERN_SCRAM_VERSION;
	for (size_t i = 0; i < KAFKA_ABILITIES; i++) {
		struct kafka_ability *a = &ret->abilities[i];

		a->name = probes[i].name;
		a->works = try_ability(i, a->error, sizeof(a->error));
	}
}
