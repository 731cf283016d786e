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
what_the_kubelet_is_sent_goes_over_tls(void **state)
{
	(void)state;
	wrong_is("containers: {kubelet: {url: \"https://127.0.0.1:10250\", ca_file: /c, token_file: /t, server_name: node-1.x}}\n", "");
	wrong_is("containers: {kubelet: {url: \"http://127.0.0.1:10255\"}}\n", "");
	wrong_is("containers: {kubelet: {url: \"http://[::1]:10255\"}}\n", "");
	wrong_is("containers: {kubelet: {url: \"\"}}\n", "");
	wrong_is("containers: {kubelet: {url: \"http://127.0.0.1:10255\", token_file: /t}}\n", "f:1:55: "
	    "containers.kubelet.token_file has no effect without TLS: change containers.kubelet.url to https://, or remove it\n");
	wrong_is("containers: {kubelet: {token_file: /t}}\n", "f:1:24: containers.kubelet.token_file has no effect without "
	    "containers.kubelet.url: add `url: \"https://127.0.0.1:10250\"`\n");
	wrong_is("containers: {kubelet: {url: \"http://10.0.0.1:10255\"}}\n", "f:1:29: containers.kubelet.url: "
	    "'http://10.0.0.1:10255' has no TLS and is not this host: write https://, or http://127.0.0.1:10255\n");
	wrong_is("containers: {kubelet: {url: \"https://u:secret@h:1\"}}\n", "f:1:29: containers.kubelet.url: the URL of a "
	    "kubelet has no credentials in it: use containers.kubelet.token_file\n");
	for (const char *const *text = (const char *const[]){ "https://h", "https://h:0", "https://h:1/pods", "h:1", "https://h:1?x",
	    "ftp://h:1", "https://:1", NULL }; *text != NULL; text++) {
		char file[128], want[256];

		snprintf(file, sizeof(file), "containers: {kubelet: {url: \"%s\"}}\n", *text);
		snprintf(want, sizeof(want), "f:1:29: containers.kubelet.url: '%s' is not the URL of a kubelet: write "
		    "https://127.0.0.1:10250\n", *text);
		wrong_is(file, want);
	}
	wrong_is("containers: {kubelet: {url: \"https://127.0.0.1:10250\", server_name: \"a b\"}}\n", "f:1:69: "
	    "containers.kubelet.server_name: 'a b' is not the name of a host\n");
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
		cmocka_unit_test(what_the_kubelet_is_sent_goes_over_tls),
		cmocka_unit_test(metrics_leave_the_host_only_on_demand),
		cmocka_unit_test(each_folder_is_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
