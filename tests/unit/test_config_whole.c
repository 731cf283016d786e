/* SPDX-License-Identifier: Apache-2.0 */
/* whole: keys that exclude each other, reported at the source location of the wrong one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "config/checks.h"
#include "configs.h"

#define KAFKA "kafka: {brokers: [\"a:1\"]}\n"
#define URLS "registry:\n  urls: [\"https://h:1\"]\n"
#define SECRET "{file: /s}\n"

static void
kafka_and_registry_need_each_other(void **state)
{
	(void)state;
	wrong_is(KAFKA URLS, "");
	wrong_is(KAFKA, "f:1:1: kafka needs a schema registry: add `registry: {urls: [\"http://HOST:PORT\"]}`\n");
	wrong_is("lake: /a\n" URLS,
	    "f:2:1: registry has no effect without kafka: add a kafka section, or remove this one\n");
	wrong_is("kafka:\n" URLS, "f:1:1: kafka needs brokers: add `brokers: [HOST:PORT]`\n");
	wrong_is(KAFKA "registry: {auto_register: false}\n",
	    "f:2:1: registry needs urls: add `urls: [\"http://HOST:PORT\"]`\n");
	/* One error has one cause: nothing follows from brokers that are wrong. */
	wrong_is("kafka: {brokers: a}\n" URLS, "f:1:18: kafka.brokers: expected a list: write [\"a\"]\n");
}

static void
what_comes_in_pairs_is_asked_for(void **state)
{
	(void)state;
	wrong_is(KAFKA URLS "  user: me\n", "f:4:3: registry.user has no effect without registry.password: add "
	    "`password: {file: /PATH}`\n");
	wrong_is(KAFKA URLS "  password: " SECRET,
	    "f:4:3: registry.password has no effect without registry.user: add `user: NAME`\n");
	wrong_is(KAFKA URLS "  user: me\n  password: " SECRET, "");
	wrong_is(KAFKA URLS "  cert_file: /c\n", "f:4:3: registry.cert_file has no effect without "
	    "registry.key_file: add the certificate's private key\n");
	wrong_is(KAFKA URLS "  key_file: /c\n", "f:4:3: registry.key_file has no effect without "
	    "registry.cert_file: add the key's certificate\n");
	wrong_is(KAFKA URLS "  cert_file: /c\n  key_file: /k\n  ca_file: /a\n  token: " SECRET, "");
	wrong_is(KAFKA URLS "  user: me:you\n  password: " SECRET,
	    "f:4:9: registry.user: a user name for basic authentication has no colon; the password goes to "
	    "registry.password\n");
}

static void
what_excludes_each_other_is_reported(void **state)
{
	(void)state;
	wrong_is(KAFKA URLS "  user: me\n  password: " SECRET "  token: " SECRET, "f:6:3: registry.token and "
	    "registry.user exclude each other: keep the one that the registry asks for\n");
	wrong_is(KAFKA "registry:\n  urls: [\"http://h:1\"]\n  ca_file: /a\n", "f:4:3: registry.ca_file has no effect "
	    "without https:// URLs: change registry.urls, or remove it\n");
	wrong_is("kafka:\n  brokers: [\"a:1\"]\n  properties: {ssl.ca.location: /a}\n  secrets:\n"
		 "    ssl.ca.location: " SECRET URLS,
	    "f:5:5: kafka.secrets: 'ssl.ca.location' is set in kafka.properties too (line 3 of f): keep one\n");
}

static void
metrics_leave_the_host_only_on_demand(void **state)
{
	static const char *const local[] = { "127.0.0.1:1", "127.255.0.9:1", "localhost:1", "[::1]:1",
		"unix:/a", "off" };
	static const char *const public[] = { "0.0.0.0:1", "10.0.0.1:1", "128.0.0.1:1", "[::]:1", "[::2]:1" };

	(void)state;
	for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++)
		assert_true(listener_is_local(local[i]));
	for (size_t i = 0; i < sizeof(public) / sizeof(public[0]); i++)
		assert_false(listener_is_local(public[i]));
	wrong_is("metrics: 0.0.0.0:9465\n", "f:1:1: '0.0.0.0:9465' is reached from other hosts, and metrics name "
	    "what runs here: listen on 127.0.0.1, or allow it by `metrics_public: true`\n");
	wrong_is("metrics: 0.0.0.0:9465\nmetrics_public: true\n", "");
	wrong_is("metrics: [off, 127.0.0.1:1]\n", "f:1:1: metrics are off, or served at an address: remove 'off', or all others\n");
}

static void
each_folder_is_its_own(void **state)
{
	(void)state;
	wrong_is("lake: /var/lib//sluice/spool/\n",
	    "f:1:1: lake and spool.dir are the same folder: give each its own\n");
	wrong_is("spool: {dir: /a}\ndead_letters: /a\n",
	    "f:2:1: spool.dir and dead_letters are the same folder: give each its own\n");
	wrong_is("lake: /a\nspool: {dir: /a/spool}\n", "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kafka_and_registry_need_each_other),
		cmocka_unit_test(what_comes_in_pairs_is_asked_for),
		cmocka_unit_test(what_excludes_each_other_is_reported),
		cmocka_unit_test(metrics_leave_the_host_only_on_demand),
		cmocka_unit_test(each_folder_is_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
