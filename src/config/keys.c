/*
 * SPDX-License-Identifier: Apache-2.0
 * keys: the one table of what can be configured.
 */
#include "config/keys.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "config/checks.h"
#include "config/units.h"

#define F(name) offsetof(struct config, name)
#define S(seconds) (UINT64_C(1000) * (seconds))
#define KIB(n) (UINT64_C(1) * (n) << 10)
#define MIB(n) (UINT64_C(1) * (n) << 20)
#define GIB(n) (UINT64_C(1) * (n) << 30)
#define DAY S(86400)

#define RELOAD true
#define RESTART false

static const char *const log_levels[] = { "error", "warning", "info", "debug", NULL };
static const char *const log_formats[] = { "auto", "text", "json", NULL };
static const char *const argv_keeps[] = { "all", "first", "hash", NULL };

#define LIST_MAX 64
#define MAP_MAX 256

/* A section precedes its keys; the shipped file and the manual page have the same order. */
const struct key config_keys[] = {
	{ "interval", KEY_DURATION, F(interval_ms), "10s", RELOAD, S(1), S(3600) },
	{ "lake", KEY_TEXT, F(lake), "/var/lib/sluice/lake", RESTART, .what = "path",
	    .check = check_path },
	{ "lake_max", KEY_SIZE, F(lake_max_bytes), "20GiB", RESTART, MIB(16), GIB(1048576) },
	{ "lake_keep", KEY_DURATION, F(lake_keep_ms), NULL, RESTART, DAY, 36500 * DAY, .zero_is_none = true },
	{ "disk_free_min", KEY_SIZE, F(disk_free_min_bytes), "1GiB", RESTART, 0, GIB(16384) },
	{ "rules", KEY_TEXT, F(rules), "/etc/sluice/rules.d", RELOAD, .what = "path",
	    .check = check_path },
	{ "cluster", KEY_TEXT, F(cluster), "", RESTART, .what = "text of A-Z a-z 0-9 . _ -", .check = check_prefix },
	{ "control", KEY_TEXT, F(control), "/run/sluice/control.sock", RESTART,
	    .what = "path of a socket", .check = check_socket_path },
	{ "control_group", KEY_TEXT, F(control_group), "sluice-admin", RESTART, .what = "group",
	    .check = check_account },
	{ "control_read_group", KEY_TEXT, F(control_read_group), "sluice", RESTART, .what = "group",
	    .check = check_account },
	{ "run_socket", KEY_TEXT, F(run_socket), "/run/sluice/run.sock", RESTART,
	    .what = "path of a socket, or off", .check = check_socket_or_off },
	{ "metrics", KEY_LIST, F(metrics), "127.0.0.1:9465", RESTART, 0, CONFIG_METRICS_MAX,
	    .what = "HOST:PORT or unix:/PATH, or off", .check = check_listener, .may_be_one = true },
	{ "metrics_group", KEY_TEXT, F(metrics_group), "sluice", RESTART, .what = "group",
	    .check = check_account },
	{ "metrics_public", KEY_BOOL, F(metrics_public), "false", RESTART },
	{ "user", KEY_TEXT, F(user), "sluice", RESTART, .what = "account", .check = check_account },
	{ "drain", KEY_DURATION, F(drain_ms), "10s", RELOAD, 0, S(600) },

	{ "host", KEY_SECTION, NO_FIELD },
	{ "host.cloud", KEY_TEXT, F(host.cloud), NULL, RESTART, .what = "name", .check = check_fact },
	{ "host.region", KEY_TEXT, F(host.region), NULL, RESTART, .what = "name", .check = check_fact },
	{ "host.instance_type", KEY_TEXT, F(host.instance_type), NULL, RESTART, .what = "name", .check = check_fact },
	{ "host.lifecycle", KEY_TEXT, F(host.lifecycle), NULL, RESTART, .what = "name", .check = check_fact },
	{ "host.price_per_hour", KEY_TEXT, F(host.price_per_hour), NULL, RESTART, .what = "amount of money",
	    .check = check_price },
	{ "host.metadata", KEY_TEXT, F(host.metadata), "", RESTART, .what = "http:// URL, such as http://169.254.169.254",
	    .check = check_metadata_url },

	{ "log", KEY_SECTION, NO_FIELD },
	{ "log.level", KEY_CHOICE, F(log.level), "info", RELOAD, .choices = log_levels },
	{ "log.format", KEY_CHOICE, F(log.format), "auto", RELOAD, .choices = log_formats },

	{ "argv", KEY_SECTION, NO_FIELD },
	{ "argv.max_bytes", KEY_SIZE, F(argv.max_bytes), "32KiB", RELOAD, 256, KIB(32) },
	{ "argv.redact", KEY_LIST, F(argv.redact), "builtin", RELOAD, 0, LIST_MAX,
	    .what = "builtin and regular expressions", .check = check_redaction },
	{ "argv.keep", KEY_CHOICE, F(argv.keep), "all", RELOAD, .choices = argv_keeps },
	{ "trace_env", KEY_LIST, F(trace_env), "", RELOAD, 0, 8, .what = "environment variables",
	    .check = check_variable },

	{ "records", KEY_SECTION, NO_FIELD },
	{ "records.start_after", KEY_DURATION, F(records.start_after_ms), "1s", RELOAD, 0, S(3600) },

	{ "findings", KEY_SECTION, NO_FIELD },
	{ "findings.stuck", KEY_DURATION, F(findings.stuck_ms), "5m", RELOAD, 0, DAY },
	{ "findings.stuck_in_io", KEY_DURATION, F(findings.stuck_in_io_ms), "1m", RELOAD, 0, DAY },
	{ "findings.idle", KEY_DURATION, F(findings.idle_ms), "10m", RELOAD, 0, DAY },
	{ "findings.throttled", KEY_DURATION, F(findings.throttled_ms), "1m", RELOAD, 0, DAY },
	{ "findings.memory_pressure", KEY_DURATION, F(findings.memory_pressure_ms), "1m", RELOAD, 0, DAY },
	{ "findings.disk_full", KEY_DURATION, F(findings.disk_full_ms), "10s", RELOAD, 0, DAY },

	{ "engines", KEY_SECTION, NO_FIELD },
	{ "engines.headers", KEY_BOOL, F(engines.headers), "false", RESTART },

	{ "containers", KEY_SECTION, NO_FIELD },
	{ "containers.sockets", KEY_LIST, F(containers.sockets), "", RESTART, 0, CONFIG_SOCKETS_MAX,
	    .what = "paths of sockets", .check = check_socket_path },
	{ "containers.kubelet", KEY_SECTION, NO_FIELD },
	{ "containers.kubelet.url", KEY_TEXT, F(containers.kubelet.url), "", RESTART,
	    .what = "https://HOST:PORT, or http:// with a local one", .check = check_kubelet_url },
	{ "containers.kubelet.server_name", KEY_TEXT, F(containers.kubelet.server_name), NULL, RESTART,
	    .what = "name of a host", .check = check_server_name },
	{ "containers.kubelet.ca_file", KEY_TEXT, F(containers.kubelet.ca_file), NULL, RESTART, .what = "path",
	    .check = check_path },
	{ "containers.kubelet.token_file", KEY_TEXT, F(containers.kubelet.token_file), NULL, RESTART, .what = "path",
	    .check = check_path },

	{ "probes", KEY_SECTION, NO_FIELD },
	{ "probes.detail", KEY_LIST, F(probes.detail), "", RELOAD, 0, 16, .what = "optional signals",
	    .check = check_detail },
	{ "probes.max_processes", KEY_NUMBER, F(probes.max_processes), NULL, RESTART, 1024,
	    4194304, .zero_is_none = true },
	{ "probes.ring", KEY_SIZE, F(probes.ring_bytes), NULL, RESTART, KIB(256), MIB(512),
	    .is_power_of_two = true, .zero_is_none = true },
	{ "probes.watchdog", KEY_DURATION, F(probes.watchdog_ms), "10m", RESTART, S(10), DAY,
	    .former = "probes.deadman" },

	{ "spool", KEY_SECTION, NO_FIELD },
	{ "spool.dir", KEY_TEXT, F(spool.dir), "/var/lib/sluice/spool", RESTART, .what = "path",
	    .check = check_path },
	{ "spool.max", KEY_SIZE, F(spool.max_bytes), "1GiB", RESTART, MIB(16), GIB(16384) },
	{ "spool.sync", KEY_DURATION, F(spool.sync_ms), "100ms", RESTART, 0, S(60) },
	{ "spool.memory", KEY_SIZE, F(spool.memory_bytes), "16MiB", RESTART, MIB(1), GIB(1) },
	{ "dead_letters", KEY_TEXT, F(dead_letters), "/var/lib/sluice/dead-letters", RESTART,
	    .what = "path", .check = check_path },
	{ "dead_letters_max", KEY_SIZE, F(dead_letters_max_bytes), "100MiB", RESTART, MIB(1),
	    GIB(16384) },

	{ "kafka", KEY_SECTION, F(kafka.is_set) },
	{ "kafka.brokers", KEY_LIST, F(kafka.brokers), NULL, RESTART, 1, LIST_MAX,
	    .what = "HOST:PORT", .check = check_broker },
	{ "kafka.properties", KEY_MAP, F(kafka.properties), "", RESTART, 0, MAP_MAX,
	    .what = "librdkafka property: value" },
	{ "kafka.secrets", KEY_SECRETS, F(kafka.secrets), "", RESTART, 0, LIST_MAX,
	    .what = "librdkafka property: secret" },
	{ "kafka.topics", KEY_SECTION, NO_FIELD },
	{ "kafka.topics.create", KEY_BOOL, F(kafka.topics.create), "true", RESTART },
	{ "kafka.topics.partitions", KEY_NUMBER, F(kafka.topics.partitions), "12", RESTART, 1, 100000 },
	{ "kafka.topics.replication", KEY_NUMBER, F(kafka.topics.replication), "3", RESTART, 1, 32 },
	{ "kafka.topics.retention", KEY_DURATION, F(kafka.topics.retention_ms), NULL, RESTART, S(60),
	    36500 * DAY, .zero_is_none = true },
	{ "kafka.topics.prefix", KEY_TEXT, F(kafka.topics.prefix), "", RESTART,
	    .what = "text of A-Z a-z 0-9 . _ -", .check = check_prefix },

	{ "registry", KEY_SECTION, F(registry.is_set) },
	{ "registry.urls", KEY_LIST, F(registry.urls), NULL, RESTART, 1, LIST_MAX,
	    .what = "http:// or https:// URLs", .check = check_url },
	{ "registry.auto_register", KEY_BOOL, F(registry.auto_register), "true", RESTART },
	{ "registry.timeout", KEY_DURATION, F(registry.timeout_ms), "10s", RESTART, 100, S(300) },
	{ "registry.recheck", KEY_DURATION, F(registry.recheck_ms), "1m", RESTART, 1000, S(86400) },
	{ "registry.user", KEY_TEXT, F(registry.user), NULL, RESTART, .what = "name",
	    .check = check_login },
	{ "registry.password", KEY_SECRET, F(registry.password), NULL, RESTART },
	{ "registry.token", KEY_SECRET, F(registry.token), NULL, RESTART },
	{ "registry.ca_file", KEY_TEXT, F(registry.ca_file), NULL, RESTART, .what = "path",
	    .check = check_path },
	{ "registry.cert_file", KEY_TEXT, F(registry.cert_file), NULL, RESTART, .what = "path",
	    .check = check_path },
	{ "registry.key_file", KEY_TEXT, F(registry.key_file), NULL, RESTART, .what = "path",
	    .check = check_path },

	{ "update", KEY_SECTION, F(update.is_set) },
	{ "update.mirror", KEY_TEXT, F(update.mirror), NULL, RELOAD, .what = "URL or path of a folder",
	    .check = check_mirror },
	{ "update.key", KEY_TEXT, F(update.key), "/etc/sluice/release.pub", RELOAD, .what = "path", .check = check_path },
	{ "update.restart", KEY_LIST, F(update.restart), "", RELOAD, 0, LIST_MAX, .what = "words of a command" },
};

const size_t config_keys_n = sizeof(config_keys) / sizeof(config_keys[0]);

_Static_assert(sizeof(config_keys) / sizeof(config_keys[0]) <= CONFIG_KEYS_MAX, "more keys than locations");

const struct key *
key_find(const char *name)
{
	for (size_t i = 0; i < config_keys_n; i++) {
		const struct key *k = &config_keys[i];

		if (strcmp(k->name, name) == 0 || (k->former != NULL && strcmp(k->former, name) == 0))
			return k;
	}
	return NULL;
}

const char *
key_leaf(const struct key *k)
{
	const char *dot = strrchr(k->name, '.');

	return dot != NULL ? dot + 1 : k->name;
}

bool
key_is_in(const struct key *k, const char *section)
{
	const char *leaf = key_leaf(k);
	size_t len = strlen(section);

	if (len == 0)
		return leaf == k->name;
	return (size_t)(leaf - k->name) == len + 1 && strncmp(k->name, section, len) == 0;
}

const struct config_location *
key_location(const struct config *c, const char *name)
{
	return &c->locations[key_find(name) - config_keys];
}

char *
config_where(const struct config *c, const char *name, char *buf, size_t size)
{
	const struct config_location *at = key_location(c, name);

	if (at->line > 0)
		snprintf(buf, size, "%s:%u:%u: %s", c->files.list[at->file], at->line, at->column, name);
	else
		snprintf(buf, size, "%s (default)", name);
	return buf;
}

const char *
config_key_name(size_t i)
{
	return i < config_keys_n ? config_keys[i].name : NULL;
}

char *
key_amount(const struct key *k, uint64_t value, char *buf)
{
	if (k->type == KEY_DURATION)
		return duration_text(value, buf);
	if (k->type == KEY_SIZE)
		return size_text(value, buf);
	snprintf(buf, UNITS_TEXT_SIZE, "%" PRIu64, value);
	return buf;
}

/* Appends to buf, which has size bytes, what fits. */
static void __attribute__((format(printf, 3, 4)))
add(char *buf, size_t size, const char *format, ...)
{
	size_t len = strlen(buf);
	va_list args;

	va_start(args, format);
	vsnprintf(buf + len, size - len, format, args);
	va_end(args);
}

static void
add_type(const struct key *k, char *buf, size_t size)
{
	char low[UNITS_TEXT_SIZE], high[UNITS_TEXT_SIZE];

	switch (k->type) {
	case KEY_SECTION:
		add(buf, size, "section");
		break;
	case KEY_BOOL:
		add(buf, size, "true or false");
		break;
	case KEY_NUMBER:
	case KEY_DURATION:
	case KEY_SIZE:
		add(buf, size, "%s, %s to %s%s", k->type == KEY_NUMBER ? "number" :
		    k->type == KEY_DURATION ? "duration" : "size", key_amount(k, k->min, low),
		    key_amount(k, k->max, high), k->is_power_of_two ? ", a power of two" : "");
		break;
	case KEY_CHOICE:
		add(buf, size, "one of");
		for (const char *const *c = k->choices; *c != NULL; c++)
			add(buf, size, "%s %s", c > k->choices ? "," : "", *c);
		break;
	case KEY_TEXT:
		add(buf, size, "%s", k->what);
		break;
	case KEY_LIST:
		add(buf, size, "list of %s%s", k->what, k->may_be_one ? "; one needs no list" : "");
		break;
	case KEY_MAP:
	case KEY_SECRETS:
		add(buf, size, "mapping of %s", k->what);
		break;
	case KEY_SECRET:
		add(buf, size, "secret");
		break;
	}
}

char *
config_key_facts(size_t i, char *buf, size_t size)
{
	const struct key *k = &config_keys[i];

	if (size == 0)
		return buf;
	buf[0] = '\0';
	add_type(k, buf, size);
	if (k->type == KEY_SECTION)
		return buf;
	if (k->initial == NULL)
		add(buf, size, "; no default");
	else if (k->type == KEY_LIST)
		add(buf, size, "; default [%s]", k->initial);
	else if (k->type == KEY_MAP || k->type == KEY_SECRETS)
		add(buf, size, "; default {}");
	else if (k->initial[0] == '\0')
		add(buf, size, "; default \"\"");
	else
		add(buf, size, "; default %s", k->initial);
	add(buf, size, "; %s", k->is_reloaded ? "reload" : "restart");
	return buf;
}
