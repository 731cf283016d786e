/* SPDX-License-Identifier: Apache-2.0 */
/* registry: the parts that need no server: URLs, requests, waits, and ids from the cache. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include <event2/event.h>
#include <jansson.h>

#include "base/ca_bundle.h"
#include "registry/answer.h"
#include "registry/cache.h"
#include "registry/registry.h"
#include "tree.h"

#define BASE "https://registry.example:8081/apis"
#define SUBJECT "sluice.program-value"

static void
url_is_taken_apart(void **state)
{
	static const struct {
		const char *text, *base, *user, *password;
		bool is_https;
	} cases[] = {
		{ "http://localhost:8081", "http://localhost:8081", NULL, NULL, false },
		{ "http://localhost:8081/", "http://localhost:8081", NULL, NULL, false },
		{ "https://r.example/apis/ccompat/v7//", "https://r.example/apis/ccompat/v7", NULL, NULL, true },
		{ "https://me:p%40ss%3A@r.example/x", "https://r.example/x", "me", "p@ss:", true },
		{ "HTTP://[::1]:8081", "http://[::1]:8081", NULL, NULL, false },
		{ "https://me@r.example", "https://r.example", "me", NULL, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct registry_url u;
		char error[256] = "";

		if (registry_url_parse(cases[i].text, &u, error, sizeof(error)) != 0)
			fail_msg("%s: %s", cases[i].text, error);
		assert_string_equal(cases[i].base, u.base);
		assert_string_equal(
		    cases[i].user != NULL ? cases[i].user : "", u.user != NULL ? u.user : "");
		assert_string_equal(cases[i].password != NULL ? cases[i].password : "",
		    u.password != NULL ? u.password : "");
		assert_int_equal(cases[i].is_https, u.is_https);
		registry_url_done(&u);
	}
}

static void
url_that_is_none_is_refused_without_its_password(void **state)
{
	static const char *const texts[] = { "", "localhost:8081", "localhost", "/path",
		"ftp://a:hunter2@h", "file:///etc", "http://", "http://a:hunter2@",
		"http://a:hunter2@h:99999", "http://a:hunter2@h?x", "http://h#x",
		"http://a:hunter2@h /", "http://h\n", "a:hunter2@h", "http://h/\xff" };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct registry_url u = { 0 };
		char error[256] = "";

		if (registry_url_parse(texts[i], &u, error, sizeof(error)) != -EINVAL)
			fail_msg("%s is taken: %s", texts[i], u.base);
		assert_null(u.base);
		assert_null(strstr(error, "hunter2"));
		assert_non_null(strstr(error, "registry URL \""));
	}
}

static void
url_that_is_none_is_refused_with_what_it_should_be(void **state)
{
	static char longest[255 + 2] = "http://h/";
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "localhost", "it must begin with http:// or https://" },
		{ "/path", "it must begin with http:// or https://" },
		{ "ftp://h", "it must begin with http:// or https://" },
		{ "http://", "write http://host:port or https://host:port" },
		{ "http://h:99999", "write http://host:port or https://host:port" },
		{ "http://h?x", "a base URL contains neither ? nor #" },
		{ "http://h#x", "a base URL contains neither ? nor #" },
		{ "http://h/\xff", "it contains characters that no URL may contain" },
		{ "http://a:hunter2@h?x", "registry URL \"h?x\": a base URL contains neither ? nor #" },
		{ longest, "it is longer than 255 bytes" },
	};
	struct registry_url u = { 0 };
	char error[512];

	(void)state;
	memset(longest + strlen("http://h/"), 'x', 256 - strlen("http://h/"));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(registry_url_parse(cases[i].text, &u, error, sizeof(error)), -EINVAL);
		if (strstr(error, cases[i].says) == NULL)
			fail_msg("%s: %s (no \"%s\")", cases[i].text, error, cases[i].says);
	}
	longest[255] = '\0';
	assert_int_equal(registry_url_parse(longest, &u, error, sizeof(error)), 0);
	registry_url_done(&u);
}

static void
question_has_the_exact_text(void **state)
{
	const char *schema = "{\n\t\"type\": \"record\", \"doc\": \"a \\\"b\\\" é\"\n}\n";
	char *question = registry_request_body(schema), *url;
	json_t *root = json_loads(question, 0, NULL);

	(void)state;
	assert_string_equal(schema, json_string_value(json_object_get(root, "schema")));
	assert_int_equal(1, json_object_size(root));	/* no schemaType: AVRO */
	json_decref(root);
	free(question);
	assert_null(registry_request_body("\xff"));

	url = registry_url_of_subject(BASE, "a/b c?d-value", false);
	assert_string_equal(BASE "/subjects/a%2Fb%20c%3Fd-value/versions", url);
	free(url);
	url = registry_url_of_subject(BASE, SUBJECT, true);
	assert_string_equal(BASE "/subjects/" SUBJECT, url);
	free(url);
}

static void
waits_double_up_to_the_maximum(void **state)
{
	(void)state;
	assert_int_equal(0, registry_wait_ms(500, 30000, 0, 0));
	assert_int_equal(500, registry_wait_ms(500, 30000, 0, UINT32_MAX));
	assert_int_equal(250, registry_wait_ms(500, 30000, 0, UINT32_MAX / 2));
	assert_int_equal(1000, registry_wait_ms(500, 30000, 1, UINT32_MAX));
	assert_int_equal(16000, registry_wait_ms(500, 30000, 5, UINT32_MAX));
	assert_int_equal(30000, registry_wait_ms(500, 30000, 6, UINT32_MAX));
	assert_int_equal(30000, registry_wait_ms(500, 30000, UINT32_MAX, UINT32_MAX));
	assert_int_equal(100, registry_wait_ms(500, 100, 0, UINT32_MAX));
	assert_int_equal(UINT32_MAX, registry_wait_ms(UINT32_MAX, UINT32_MAX, 9, UINT32_MAX));
}

static void
on_change(void *arg)
{
	(*(unsigned *)arg)++;
}

static void
cached_id_is_known_at_the_first_call(void **state)
{
	static const char *const urls[] = { "http://me:hunter2@127.0.0.1:9/other",
		"http://127.0.0.1:9/x/" };
	struct registry_options o = { .urls = urls, .n_urls = 2 };
	struct event_base *base = event_base_new();
	struct registry_status status;
	struct registry *r = NULL;
	struct tree t;
	unsigned changes = 0;
	char error[512], subject[32];
	int32_t id = -1;

	(void)state;
	tree_init(&t);
	tree_write(&t, "ids.json",
	    "{\"version\":1,\"ids\":[{\"url\":\"http://127.0.0.1:9/x\",\"subject\":\"" SUBJECT
	    "\",\"fingerprint\":\"000000000000000f\",\"id\":5}]}");
	o.cache_file = tree_path(&t, "ids.json");
	assert_int_equal(0, registry_open(base, &o, on_change, &changes, &r, error, sizeof(error)));
	assert_string_equal("", error);
	registry_status(r, &status);
	assert_int_equal(REGISTRY_IDLE, status.state);
	assert_string_equal("http://127.0.0.1:9/other", status.url);

	/* It is given out once it is verified. */
	assert_int_equal(-EAGAIN, registry_id(r, SUBJECT, 15, "\"int\"", &id));
	registry_status(r, &status);
	assert_int_equal(REGISTRY_ASKING, status.state);
	assert_int_equal(1, status.known);
	assert_int_equal(1, status.unverified);

	assert_int_equal(-EAGAIN, registry_id(r, "other", 15, "\"int\"", &id));
	assert_int_equal(-EAGAIN, registry_id(r, SUBJECT, 16, "\"int\"", &id));
	assert_int_equal(-1, id);
	assert_int_equal(-EINVAL, registry_id(r, "\xff", 1, "\"int\"", &id));
	assert_int_equal(-EINVAL, registry_id(r, "s", 1, "\xff", &id));
	for (unsigned i = 0; i < REGISTRY_MAX; i++) {
		snprintf(subject, sizeof(subject), "s%u", i);
		assert_int_equal(i < REGISTRY_MAX - 3 ? -EAGAIN : -ENOSPC,
		    registry_id(r, subject, 1, "\"int\"", &id));
	}
	registry_status(r, &status);
	assert_int_equal(REGISTRY_ASKING, status.state);
	assert_int_equal(REGISTRY_MAX, status.wanted);
	assert_int_equal(1, status.known);
	assert_int_equal(0, changes);	/* never from within registry_id() */
	assert_int_equal(0, status.requests);
	registry_close(r);
	registry_close(NULL);
	event_base_free(base);
	tree_done(&t);
}

static void
ca_bundle_is_the_first_that_can_be_read(void **state)
{
	struct tree t;
	const char *paths[4] = { NULL };

	(void)state;
	tree_init(&t);
	tree_mkdir(&t, "dir");
	tree_write(&t, "empty", "");
	tree_write(&t, "ca", "x");
	paths[0] = tree_path(&t, "dir");
	paths[1] = tree_path(&t, "empty");
	assert_null(ca_bundle_find(paths));
	paths[2] = tree_path(&t, "ca");
	assert_string_equal(paths[2], ca_bundle_find(paths));
	tree_done(&t);
}

static void
ca_bundle_is_openssls_default_unless_the_environment_has_one(void **state)
{
	static const char *const none[] = { "/no/such/file", NULL };
	struct tree t;
	const char *paths[2] = { NULL };

	(void)state;
	tree_init(&t);
	tree_write(&t, "ca", "x");
	paths[0] = tree_path(&t, "ca");
	unsetenv("SSL_CERT_FILE");
	ca_bundle_set_default(none);
	assert_null(getenv("SSL_CERT_FILE"));
	ca_bundle_set_default(paths);
	assert_string_equal(paths[0], getenv("SSL_CERT_FILE"));
	setenv("SSL_CERT_FILE", "/the/users.pem", 1);
	ca_bundle_set_default(paths);
	assert_string_equal("/the/users.pem", getenv("SSL_CERT_FILE"));
	unsetenv("SSL_CERT_FILE");
	tree_done(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(url_is_taken_apart),
		cmocka_unit_test(url_that_is_none_is_refused_without_its_password),
		cmocka_unit_test(url_that_is_none_is_refused_with_what_it_should_be),
		cmocka_unit_test(question_has_the_exact_text),
		cmocka_unit_test(waits_double_up_to_the_maximum),
		cmocka_unit_test(cached_id_is_known_at_the_first_call),
		cmocka_unit_test(ca_bundle_is_the_first_that_can_be_read),
		cmocka_unit_test(ca_bundle_is_openssls_default_unless_the_environment_has_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
