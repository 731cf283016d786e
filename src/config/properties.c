/*
 * SPDX-License-Identifier: Apache-2.0
 * properties: checks of librdkafka properties by the library itself, before anything connects.
 */
#include "config/properties.h"

#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "config/errors.h"
#include "config/suggest.h"

#define REFUSE(...) (snprintf(why, why_size, __VA_ARGS__), false)

/* Returns whether the value of a property of this name is a secret. */
static bool
is_secret(const char *name)
{
	/* By the end of the name, which covers the secrets of later versions of librdkafka too. */
	return text_ends_with(name, "password") || text_ends_with(name, "secret") ||
	    text_ends_with(name, "passphrase") || text_ends_with(name, "key.pem") || text_ends_with(name, "token");
}

/* Properties that have an effect as soon as they are set, here that libraries are loaded: not tried. */
static bool
is_untried(const char *name)
{
	return strcmp(name, "plugin.library.paths") == 0;
}

/* Tries to set the property: reading one returns "unknown" also for a known one without a value. */
static bool
is_known(const char *name)
{
	rd_kafka_conf_t *conf;
	bool known;

	if (is_untried(name))
		return true;
	conf = rd_kafka_conf_new();
	known = rd_kafka_conf_set(conf, name, "x", NULL, 0) != RD_KAFKA_CONF_UNKNOWN;
	rd_kafka_conf_destroy(conf);
	return known;
}

/* dump: names, each followed by its value. */
static void
offer_all(struct suggestion *s, const char *name, const char *const *dump, size_t n)
{
	for (size_t i = 0; i + 1 < n; i += 2)
		suggest_offer(s, name, dump[i]);
}

static bool
refuse_unknown(const char *name, char *why, size_t why_size)
{
	/* Names that librdkafka accepts but does not list. */
	static const char *const aliases[] = { "acks", "", "linger.ms", "", "retries", "",
		"compression.type", "", "sasl.mechanism", "", "delivery.timeout.ms", "", "max.in.flight", "" };
	rd_kafka_topic_conf_t *topic_conf = rd_kafka_topic_conf_new();
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	struct suggestion s = { 0 };
	char show[SHOWN_SIZE];
	size_t n, n_topic;
	const char **dump = rd_kafka_conf_dump(conf, &n);
	const char **topic_dump = rd_kafka_topic_conf_dump(topic_conf, &n_topic);

	offer_all(&s, name, aliases, sizeof(aliases) / sizeof(aliases[0]));
	offer_all(&s, name, (const char *const *)dump, n);
	offer_all(&s, name, (const char *const *)topic_dump, n_topic);
	if (s.name != NULL)
		snprintf(why, why_size, "librdkafka %s has no property '%s': did you mean '%s'?",
		    rd_kafka_version_str(), shown(name, show), s.name);
	else
		snprintf(why, why_size, "librdkafka %s has no property '%s': its CONFIGURATION.md lists "
		    "them", rd_kafka_version_str(), shown(name, show));
	rd_kafka_conf_dump_free(dump, n);
	rd_kafka_conf_dump_free(topic_dump, n_topic);
	rd_kafka_conf_destroy(conf);
	rd_kafka_topic_conf_destroy(topic_conf);
	return false;
}

bool
property_check_name(const char *name, char *why, size_t why_size)
{
	return is_known(name) || refuse_unknown(name, why, why_size);
}

bool
property_check(const char *name, const char *value, char *why, size_t why_size)
{
	char show[SHOWN_SIZE], problem[512];
	rd_kafka_conf_res_t result;
	rd_kafka_conf_t *conf;

	if (strcmp(name, "bootstrap.servers") == 0 || strcmp(name, "metadata.broker.list") == 0)
		return REFUSE("'%s' is what kafka.brokers is for: list the brokers there", name);
	if (is_secret(name))
		return REFUSE("'%s' is a secret, which must not be written here: use kafka.secrets: "
		    "{%s: {file: /PATH}}", shown(name, show), show);
	if (!is_known(name))
		return refuse_unknown(name, why, why_size);
	if (is_untried(name))
		return true;
	conf = rd_kafka_conf_new();
	result = rd_kafka_conf_set(conf, name, value, problem, sizeof(problem));
	rd_kafka_conf_destroy(conf);
	if (result == RD_KAFKA_CONF_OK)
		return true;
	for (char *p = problem; *p != '\0'; p++) {
		if ((unsigned char)*p < ' ')
			*p = ' ';
	}
	return REFUSE("librdkafka does not take this value: %s", problem);
}
