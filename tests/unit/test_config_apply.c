/* SPDX-License-Identifier: Apache-2.0 */
/* apply: every error of a key or its value, with its source location and hint. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <librdkafka/rdkafka.h>

#include "configs.h"

static void
an_unknown_key_gets_the_nearest_right_one(void **state)
{
	(void)state;
	wrong_is("intervall: 1s\n", "f:1:1: no key 'intervall': did you mean 'interval'?\n");
	wrong_is("\nspool:\n  dirr: /a\n  sinc: 1s\n",
	    "f:3:3: no key 'dirr' in spool: did you mean 'dir'?\n"
	    "f:4:3: no key 'sinc' in spool: did you mean 'sync'?\n");
	wrong_is("Control-Group: x\n", "f:1:1: no key 'Control-Group': did you mean 'control_group'?\n");
	wrong_is("log: {levle: info}\n", "f:1:7: no key 'levle' in log: did you mean 'level'?\n");
}

static void
a_key_in_the_wrong_section_is_sent_to_its_own(void **state)
{
	(void)state;
	wrong_is("brokers: [a:1]\n", "f:1:1: no key 'brokers': did you mean 'kafka.brokers', which is "
	    "`brokers:` under `kafka:`?\n");
	wrong_is("spool: {interval: 1s}\n", "f:1:9: no key 'interval' in spool: 'interval' is a top-level key\n");
	wrong_is("spool.max: 1GiB\n", "f:1:1: no key 'spool.max': write `max:` under `spool:`\n");
	wrong_is("log_level: debug\n", "f:1:1: no key 'log_level': did you mean 'log.level', which is "
	    "`level:` under `log:`?\n");
	wrong_is("log: {colour: red}\n", "f:1:7: no key 'colour' in log: there are level, format\n");
	wrong_is("log: {\"\": red, \"a\\nb\": c}\n", "f:1:7: no key '' in log: there are level, format\n"
	    "f:1:16: no key 'a\\nb' in log: there are level, format\n");
}

static void
wrong_types_are_reported(void **state)
{
	(void)state;
	wrong_is("interval: [1s]\nlake: {a: b}\nrules:\ncontrol: ~\n",
	    "f:1:11: interval: this is a list: expected a single value\n"
	    "f:2:7: lake: this is a mapping: expected a single value\n"
	    "f:3:7: rules: no value: give one, or remove the line\n"
	    "f:4:10: control: no value: give one, or remove the line\n");
	wrong_is("log: debug\nspool: [a]\n",
	    "f:1:6: log: this is a single value: expected a mapping of its keys\n"
	    "f:2:8: spool: this is a list: expected a mapping of its keys\n");
	wrong_is("trace_env: TRACEPARENT\n", "f:1:12: trace_env: expected a list: write [\"TRACEPARENT\"]\n");
	wrong_is("trace_env: {A: B}\n",
	    "f:1:12: trace_env: this is a mapping: expected a list, such as [a, b]\n");
	wrong_is("trace_env: [A, [B], ~]\n",
	    "f:1:16: trace_env: this item is a list: expected a single value\n"
	    "f:1:21: trace_env: this item is nothing: expected a single value\n");
	wrong_is("metrics_public: \"true\"\nprobes: {max_processes: '5000'}\n",
	    "f:1:17: metrics_public: this is text in quotes: write it without\n"
	    "f:2:25: probes.max_processes: this is text in quotes: write it without\n");
	wrong_is("metrics_public: yes\n",
	    "f:1:17: metrics_public: 'yes' is neither true nor false: write true\n");
	wrong_is("metrics_public: maybe\n", "f:1:17: metrics_public: 'maybe' is neither true nor false\n");
	wrong_is("probes: {max_processes: 1e4}\n",
	    "f:1:25: probes.max_processes: '1e4' is not a whole number\n");
}

static void
bounds_are_kept_to_the_last_unit(void **state)
{
	(void)state;
	wrong_is("interval: 999ms\n", "f:1:11: interval: '999ms' is out of range: give 1s to 1h\n");
	wrong_is("interval: 1s\n", "");
	wrong_is("interval: 1h\n", "");
	wrong_is("interval: 3600001ms\n", "f:1:11: interval: '3600001ms' is out of range: give 1s to 1h\n");
	wrong_is("argv: {max_bytes: 32769B}\n",
	    "f:1:19: argv.max_bytes: '32769B' is out of range: give 256B to 32KiB\n");
	wrong_is("spool: {sync: 0, max: 16MiB}\ndrain: 0\n", "");
	wrong_is("probes: {max_processes: 1023}\n",
	    "f:1:25: probes.max_processes: '1023' is out of range: give 1024 to 4194304\n");
	wrong_is("probes: {max_processes: -1}\n",
	    "f:1:25: probes.max_processes: '-1' is not a whole number\n");
	wrong_is("probes: {max_processes: 99999999999999999999}\n",
	    "f:1:25: probes.max_processes: '99999999999999999999' is not a whole number\n");
	wrong_is("probes: {ring: 3MiB}\n",
	    "f:1:16: probes.ring: '3MiB' is not a power of two: give 2MiB or 4MiB\n");
	wrong_is("interval: 10\n", "f:1:11: interval: '10' has no unit: add one of ms, s, m, h, d\n");
	wrong_is("spool: {max: 1 GB, memory: 16 MiB}\n", "");
}

static void
choices_are_listed(void **state)
{
	(void)state;
	wrong_is("log: {level: warn}\n", "f:1:14: log.level: 'warn' is not one of error, warning, info, debug: "
	    "did you mean 'warning'?\n");
	wrong_is("log: {format: xml}\n", "f:1:15: log.format: 'xml' is not one of auto, text, json\n");
	wrong_is("argv: {keep: none}\n", "f:1:14: argv.keep: 'none' is not one of all, first, hash\n");
	wrong_is("kafka: {brokers: []}\n" "registry: {urls: [\"http://h\"]}\n",
	    "f:1:18: kafka.brokers: the list is empty: it needs at least one item\n");
	wrong_is("probes: {detail: [sched]}\n", "f:1:19: probes.detail: 'sched' is no optional signal: "
	    "those are network; with a '-' before it, one is left out\n");
}

static void
redactions_are_builtin_or_patterns(void **state)
{
	(void)state;
	wrong_is("argv: {redact: []}\n", "");
	wrong_is("argv: {redact: [builtin, '--pin=(?<secret>.*)', 'x|y']}\n", "");
	wrong_is("argv: {redact: ['a(b']}\n", "f:1:17: argv.redact: 'a(b' is no regular expression: missing "
	    "closing parenthesis, at character 4\n");
	wrong_is("argv: {redact: ['(?<a>x)(?<a>y)']}\n", "f:1:17: argv.redact: '(?<a>x)(?<a>y)' is no regular "
	    "expression: two named subpatterns have the same name (PCRE2_DUPNAMES not set), at character 13\n");
	/* It would be taken for a pattern, and what is shipped would be off. */
	wrong_is("argv: {redact: [buitlin]}\n", "f:1:17: argv.redact: 'buitlin': did you mean 'builtin'?\n");
	wrong_is("argv: {redact: [Builtin]}\n", "f:1:17: argv.redact: 'Builtin': did you mean 'builtin'?\n");
	wrong_is("argv: {redact: [built.n]}\n", "");
}

static void
texts_are_what_their_key_needs(void **state)
{
	char *yaml = NULL;

	(void)state;
	wrong_is("lake: relative\n", "f:1:7: lake: 'relative' is not an absolute path: begin it with /\n");
	wrong_is("lake: ''\n", "f:1:7: lake: it is empty: give a value, or remove it\n");
	wrong_is("lake: \"/a\\nb\"\n", "f:1:7: lake: it holds a control character, such as a line's end: write "
	    "it on one line\n");
	assert_true(asprintf(&yaml, "control: /%0107d\n", 0) > 0);
	wrong_is(yaml, "f:1:10: control: '/00000000000000000000000000000000000000000000000000000000000000000000...' "
	    "is too long for a socket: it may have 107 bytes\n");
	free(yaml);
	assert_true(asprintf(&yaml, "control: /%0106d\n", 0) > 0);
	wrong_is(yaml, "");
	free(yaml);
	wrong_is("user: a b\ncontrol_group: a:b\n",
	    "f:1:7: user: 'a b' is not a name that an account or group can have\n"
	    "f:2:16: control_group: 'a:b' is not a name that an account or group can have\n");
	wrong_is("trace_env: [TRACE*, 1A, A-B, TRACEPARENT, _x1]\n",
	    "f:1:13: trace_env: 'TRACE*' is not the name of an environment variable: expected an exact name, "
	    "such as TRACEPARENT, of up to 63 characters\n"
	    "f:1:21: trace_env: '1A' is not the name of an environment variable: expected an exact name, "
	    "such as TRACEPARENT, of up to 63 characters\n"
	    "f:1:25: trace_env: 'A-B' is not the name of an environment variable: expected an exact name, "
	    "such as TRACEPARENT, of up to 63 characters\n");
	wrong_is("trace_env: [A, B, C, D, E, F, G, H, I]\n", "f:1:12: trace_env: 9 items are too many: give at most 8\n");
	wrong_is("trace_env: [A, B, A]\n", "f:1:19: trace_env: 'A' is already in the list: remove one\n");
}

static void
listeners_are_addresses(void **state)
{
	static const char *const right[] = { "off", "127.0.0.1:9465", "127.9.9.9:1", "localhost:0",
		"\"[::1]:9465\"", "unix:/run/sluice/metrics.sock" };
	static const char *const wrong[] = { "9465", ":9465", "127.0.0.1", "\"127.0.0.1:\"", "127.0.0.1:65536",
		"127.0.0.1:9a", "\"[::1]\"", "\"[::1:1\"", "\"::1:9465\"", "on" };

	(void)state;
	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
		char yaml[128];

		snprintf(yaml, sizeof(yaml), "metrics: %s\n", right[i]);
		wrong_is(yaml, "");
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char yaml[128], *got;

		snprintf(yaml, sizeof(yaml), "metrics: %s\n", wrong[i]);
		got = wrong_with(yaml);
		assert_non_null(strstr(got, "is no listener: write 127.0.0.1:9465, [::1]:9465, unix:/PATH or off"));
		free(got);
	}
	/* One needs no list. */
	wrong_is("metrics: [127.0.0.1:9465, unix:/run/sluice/metrics.sock]\n", "");
	wrong_is("metrics: []\n", "");
	wrong_is("metrics: [127.0.0.1:1, on]\n", "f:1:24: metrics: 'on' is no listener: write 127.0.0.1:9465, [::1]:9465, "
	    "unix:/PATH or off\n");
	wrong_is("metrics: [127.0.0.1:1, 127.0.0.1:1]\n", "f:1:24: metrics: '127.0.0.1:1' is already in the list: remove one\n");
	wrong_is("metrics: {a: b}\n", "f:1:10: metrics: this is a mapping: expected a list, such as [a, b]\n");
	wrong_is("metrics: unix:rel\n", "f:1:10: metrics: 'rel' is not an absolute path: begin it with /\n");
	wrong_is("metrics: host.example:9465\n", "f:1:10: metrics: 'host.example' is a name: write the numeric "
	    "address to listen on, or localhost\n");
}

/* Checks that each of these values is right, or wrong with this sentence. */
static void
values_are(const char *key, const char *const *values, const char *sentence)
{
	for (; *values != NULL; values++) {
		char yaml[512], want[512];

		snprintf(yaml, sizeof(yaml), "host:\n  %s: \"%s\"\n", key, *values);
		snprintf(want, sizeof(want), "f:2:%zu: host.%s: '%s' %s\n", strlen(key) + 5, key, *values, sentence);
		wrong_is(yaml, sentence != NULL ? want : "");
	}
}

#define LIST(...) (const char *const[]){ __VA_ARGS__, NULL }

static void
facts_of_the_host_are_names_an_amount_and_an_address(void **state)
{
	static const char *const names[] = { "cloud", "region", "instance_type", "lifecycle" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		values_are(names[i], LIST("m5.4xlarge", "Standard_D4s_v5", "eu-central-1", "1234567890123456789012345678901"), NULL);
		values_are(names[i], LIST("a b", "a/b", "\xc3\xa9", "12345678901234567890123456789012"),
		    "is not a name that clouds use: it may have up to 31 of A-Z a-z 0-9 . _ -");
	}
	values_are("price_per_hour", LIST("0", "3", "0.768", "123456789.123456789"), NULL);
	values_are("price_per_hour", LIST("-1", ".5", "1.", "1e3", "nan", "0.5 USD", "1,5", "1234567890", "0x10"),
	    "is not an amount of money an hour: write 0.768");
	values_are("metadata", LIST("", "http://169.254.169.254", "http://[fd00:ec2::254]", "http://127.0.0.1:8080"), NULL);
	values_are("metadata", LIST("169.254.169.254", "https://169.254.169.254", "http://", "http://h/latest", "http://h:0",
	    "http://h:1?x", "on"), "is not the URL of a metadata service: write http://169.254.169.254");
	wrong_is("host: {metadata: \"http://u:secret@h\"}\n", "f:1:18: host.metadata: '***' is not the URL of a metadata "
	    "service: write http://169.254.169.254\n");
	wrong_is("host: {instance: m5.large}\n", "f:1:8: no key 'instance' in host: did you mean "
	    "'instance_type'?\n");
}

#define REGISTRY "registry: {urls: [\"http://h:1\"]}\n"
#define KAFKA "kafka:\n  brokers: [\"a:1\"]\n"

static void
brokers_and_urls_hold_no_credentials(void **state)
{
	(void)state;
	wrong_is("kafka:\n  brokers: [\"me:hunter2@host:9092\", \"a:0\", \"a,b\", \"http://a:1\", \"x y\"]\n" REGISTRY,
	    "f:2:13: kafka.brokers: a broker has no credentials in its name: set sasl.username in "
	    "kafka.properties and sasl.password in kafka.secrets\n"
	    "f:2:37: kafka.brokers: 'a:0' is no broker: write HOST:PORT, such as localhost:9092\n"
	    "f:2:44: kafka.brokers: 'a,b' names several brokers: write one an item\n"
	    "f:2:51: kafka.brokers: 'http://a:1' is no broker: write HOST:PORT, such as localhost:9092\n"
	    "f:2:65: kafka.brokers: 'x y' is no broker: write HOST:PORT, such as localhost:9092\n");
	wrong_is("kafka: {brokers: [\"a\", \"b:1\", \"[::1]:9092\", \"SASL_SSL://c:2\", 10.0.0.1]}\n" REGISTRY, "");
	wrong_is("kafka: {brokers: []}\n" REGISTRY,
	    "f:1:18: kafka.brokers: the list is empty: it needs at least one item\n");
	wrong_is(KAFKA "registry: {urls: [\"http://me:hunter2@h:1\", \"ftp://h\", \"http://\", \"http://h/?a\", "
		       "\"http://h:x\", \"https://h/base/path\", \"ftp://me:hunter2@h\"]}\n",
	    "f:3:19: registry.urls: the URL has credentials in it: take them out and use registry.user with "
	    "registry.password, or registry.token\n"
	    "f:3:44: registry.urls: 'ftp://h' is not a URL of a registry: it begins with http:// or https://\n"
	    "f:3:55: registry.urls: 'http://' is not a URL: write http://HOST:PORT\n"
	    "f:3:66: registry.urls: the URL has a ? or # part: a registry's base URL ends with its path\n"
	    "f:3:81: registry.urls: 'http://h:x' is not a URL: write http://HOST:PORT\n"
	    "f:3:118: registry.urls: '***' is not a URL of a registry: it begins with http:// or https://\n");
}

/* Its own words and numbers are librdkafka's, and so is the version. */
static void
properties_are_librdkafkas(void **state)
{
	char want[512];

	(void)state;
	wrong_is(KAFKA "  properties: {linger.ms: 50, acks: all, compression.type: lz4, "
		       "enable.idempotence: true, message.timeout.ms: 300000, partitioner: murmur2_random}\n" REGISTRY, "");
	snprintf(want, sizeof(want), "f:3:16: kafka.properties: librdkafka %s has no property 'lingr.ms': did you "
	    "mean 'linger.ms'?\n", rd_kafka_version_str());
	wrong_is(KAFKA "  properties: {lingr.ms: 5}\n" REGISTRY, want);
	snprintf(want, sizeof(want), "f:3:16: kafka.properties: librdkafka %s has no property 'no.such.thing': its "
	    "CONFIGURATION.md lists them\n", rd_kafka_version_str());
	wrong_is(KAFKA "  properties: {no.such.thing: 5}\n" REGISTRY, want);
	wrong_is(KAFKA "  properties: {acks: [all]}\n" REGISTRY,
	    "f:3:22: kafka.properties: 'acks' is a list: expected a single value\n");
	wrong_is(KAFKA "  properties: {bootstrap.servers: b}\n" REGISTRY, "f:3:16: kafka.properties: "
	    "'bootstrap.servers' is what kafka.brokers is for: list the brokers there\n");
}

static void
a_value_that_librdkafka_refuses_is_reported_in_its_words(void **state)
{
	char *got = wrong_with(KAFKA "  properties: {compression.type: zip}\n" REGISTRY);

	(void)state;
	assert_non_null(strstr(got, "f:3:16: kafka.properties: librdkafka does not take this value: Invalid value"));
	free(got);
}

static void
no_secret_stands_in_the_file_nor_in_an_error(void **state)
{
	static const char *const names[] = { "sasl.password", "ssl.key.password", "ssl.keystore.password",
		"ssl.key.pem", "sasl.oauthbearer.client.secret" };
	char *got;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char yaml[256], want[512];

		snprintf(yaml, sizeof(yaml), KAFKA "  properties: {%s: hunter2}\n" REGISTRY, names[i]);
		snprintf(want, sizeof(want), "f:3:16: kafka.properties: '%s' is a secret, which must not be written "
		    "here: use kafka.secrets: {%s: {file: /PATH}}\n", names[i], names[i]);
		wrong_is(yaml, want);
	}
	got = wrong_with(KAFKA "  secrets: {sasl.password: hunter2}\n"
			       "registry: {urls: hunter2, user: 'a:hunter2', password: hunter2, token: [hunter2], "
			       "cert_file: [hunter2]}\n");
	assert_null(strstr(got, "hunter2 "));
	assert_null(strstr(got, "hunter2\n"));
	assert_non_null(strstr(got, "f:3:28: sasl.password: a secret must not be written here: use {file: /PATH} or {command: [/PATH, ARG]}"));
	assert_non_null(strstr(got, "registry.password: a secret must not be written here: use {file: /PATH} or {command: [/PATH, ARG]}"));
	free(got);
}

static void
a_secret_is_one_file_or_one_command(void **state)
{
#define WRITE "a secret must not be written here: use {file: /PATH} or {command: [/PATH, ARG]}\n"
	(void)state;
	wrong_is(KAFKA "  secrets:\n"
		       "    sasl.password: {file: /a, command: [/b]}\n"
		       "    ssl.key.password: {}\n"
		       "    ssl.keystore.password: {path: /a}\n"
		       "    ssl.key.pem: {file: a}\n" REGISTRY,
	    "f:4:20: sasl.password: " WRITE
	    "f:5:23: ssl.key.password: " WRITE
	    "f:6:28: ssl.keystore.password: " WRITE
	    "f:7:25: ssl.key.pem: file is not an absolute path: begin it with /\n");
	wrong_is(KAFKA "registry:\n  urls: [\"http://h:1\"]\n  token: {command: cat /x}\n",
	    "f:5:20: registry.token: command is a list of words, run without a shell: write [/PATH, ARG]\n");
	wrong_is(KAFKA "registry:\n  urls: [\"http://h:1\"]\n  token: {command: []}\n",
	    "f:5:20: registry.token: command is a list of words, run without a shell: write [/PATH, ARG]\n");
	wrong_is(KAFKA "registry:\n  urls: [\"http://h:1\"]\n  token: {command: [cat, /x]}\n",
	    "f:5:21: registry.token: a command begins with the absolute path of the program\n");
	wrong_is(KAFKA "registry:\n  urls: [\"http://h:1\"]\n  token: {command: [/bin/echo, '', a b, a b]}\n", "");
}

static void
errors_beyond_a_hundred_are_counted(void **state)
{
	char yaml[8192] = "", *got;
	size_t lines = 0;

	(void)state;
	for (int i = 0; i < 150; i++)
		sprintf(yaml + strlen(yaml), "zzzzzzzz%d: 1\n", i);
	got = wrong_with(yaml);
	for (const char *p = got; *p != '\0'; p++)
		lines += *p == '\n';
	assert_int_equal(lines, 101);
	assert_non_null(strstr(got, "\n50 more errors are not shown\n"));
	free(got);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_unknown_key_gets_the_nearest_right_one),
		cmocka_unit_test(a_key_in_the_wrong_section_is_sent_to_its_own),
		cmocka_unit_test(wrong_types_are_reported),
		cmocka_unit_test(bounds_are_kept_to_the_last_unit),
		cmocka_unit_test(choices_are_listed),
		cmocka_unit_test(redactions_are_builtin_or_patterns),
		cmocka_unit_test(texts_are_what_their_key_needs),
		cmocka_unit_test(listeners_are_addresses),
		cmocka_unit_test(facts_of_the_host_are_names_an_amount_and_an_address),
		cmocka_unit_test(brokers_and_urls_hold_no_credentials),
		cmocka_unit_test(properties_are_librdkafkas),
		cmocka_unit_test(a_value_that_librdkafka_refuses_is_reported_in_its_words),
		cmocka_unit_test(no_secret_stands_in_the_file_nor_in_an_error),
		cmocka_unit_test(a_secret_is_one_file_or_one_command),
		cmocka_unit_test(errors_beyond_a_hundred_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
