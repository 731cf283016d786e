/* SPDX-License-Identifier: Apache-2.0 */
/* registry: the parts that need no server: URLs, answers, messages, waits, the cache. See also test_registry*.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <curl/curl.h>
#include <event2/event.h>
#include <jansson.h>

#include "base/ca_bundle.h"
#include "base/text.h"
#include "registry/registry.h"
#include "registry/answer.h"
#include "registry/cache.h"
#include "tree.h"

#define BASE "https://registry.example:8081/apis"
#define SUBJECT "sluice.program-value"

static struct registry_answer
answer_to(bool lookup_only, long status, const char *body)
{
	struct registry_request q = { .base = BASE, .subject = SUBJECT, .lookup_only = lookup_only,
		.secrets = { "hunter2" } };
	struct registry_answer a;

	memset(&a, 'x', sizeof(a));
	registry_answer_read(&q, status, body, strlen(body), &a);
	return a;
}

static void
assert_says(const struct registry_answer *a, enum registry_verdict verdict, const char *text)
{
	if (a->verdict != verdict || strstr(a->sentence, text) == NULL)
		fail_msg("verdict %d, not %d: %s\n(no \"%s\")", (int)a->verdict, (int)verdict,
		    a->sentence, text);
	assert_true(text_is_plain(a->sentence, strlen(a->sentence)));
}

static void
id_is_read(void **state)
{
	struct registry_answer a = answer_to(false, 200, "{\"id\": 7, \"version\": 1}");

	(void)state;
	assert_int_equal(REGISTRY_ID, a.verdict);
	assert_int_equal(7, a.id);
	assert_string_equal("", a.sentence);
	assert_int_equal(INT32_MAX, answer_to(true, 201, "{\"id\":2147483647}").id);
	a = answer_to(true, 299, "{\"id\":0}");
	assert_int_equal(REGISTRY_ID, a.verdict);
	assert_int_equal(0, a.id);
	assert_int_not_equal(REGISTRY_ID, answer_to(true, 300, "{\"id\":7}").verdict);	/* it is elsewhere */
	assert_int_equal(8, answer_to(true, 200, "{\"id\":7,\"id\":8}").id);	/* as most readers of JSON take it */
}

static void
what_promises_an_id_and_has_none_is_no_answer(void **state)
{
	static const struct {
		const char *body, *has;
	} cases[] = {
		{ "", "a body that is not JSON" },
		{ "7", "a body that is not JSON" },
		{ "null", "a body that is not JSON" },
		{ "[7]", "JSON without an id" },
		{ "{}", "JSON without an id" },
		{ "{\"id\": \"7\"}", "an invalid id" },
		{ "{\"id\": -1}", "an invalid id" },
		{ "{\"id\": 2147483648}", "an invalid id" },
		{ "{\"id\": 7.0}", "an invalid id" },
		{ "{\"id\": 7", "a body that is not JSON" },
		{ "<html>", "a body that is not JSON" },
		{ "{\"id\": 99999999999999999999}", "a body that is not JSON" },
		{ "\xff\xfe", "a body that is not JSON" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct registry_answer a = answer_to(false, 200, cases[i].body);
		char want[256];

		snprintf(want, sizeof(want), "%s answers 200 for subject %s, but with %s: check", BASE, SUBJECT,
		    cases[i].has);
		assert_says(&a, REGISTRY_UNAVAILABLE, want);
	}
}

static void
body_that_is_too_long_is_not_parsed(void **state)
{
	size_t len = 64 * 1024 + 1;
	char *body = malloc(len + 1);
	struct registry_answer a;

	(void)state;
	memset(body, ' ', len);
	body[len] = '\0';
	memcpy(body, "{\"id\": 7}", 9);
	a = answer_to(false, 200, body);
	assert_says(&a, REGISTRY_UNAVAILABLE, "not JSON");
	body[len - 1] = '\0';
	assert_int_equal(REGISTRY_ID, answer_to(false, 200, body).verdict);
	free(body);
}

static void
each_refusal_has_its_sentence(void **state)
{
	static const struct {
		bool lookup_only;
		long status;
		const char *body;
		enum registry_verdict verdict;
		const char *text;
	} cases[] = {
		{ false, 409, "{\"error_code\":409,\"message\":\"no default\"}", REGISTRY_REJECTED,
		    "answers 409 (\"no default\"): the schema of this agent (sluice " SLUICE_VERSION
		    ") is not compatible" },
		{ false, 409, "", REGISTRY_REJECTED, BASE "/config/" SUBJECT },
		{ false, 422, "{\"error_code\":42201,\"message\":\"bad\"}", REGISTRY_REJECTED,
		    "(\"bad\"): it rejects the schema for subject" },
		{ false, 422, "{\"error_code\":42205}", REGISTRY_REJECTED, "is read-only" },
		{ false, 401, "", REGISTRY_DENIED, "does not accept our credentials" },
		{ false, 403, "", REGISTRY_DENIED, "may not register schemas under subject" },
		{ true, 403, "", REGISTRY_DENIED, "may not read subject" },
		{ false, 404, "", REGISTRY_DENIED, "check its path" },
		{ true, 404, "{\"error_code\":404}", REGISTRY_DENIED, "check its path" },
		{ false, 404, "{\"error_code\":40401}", REGISTRY_REJECTED, "does not create it" },
		{ true, 404, "{\"error_code\":40401}", REGISTRY_REJECTED, "has no subject " SUBJECT },
		{ true, 404, "{\"error_code\":40403}", REGISTRY_REJECTED,
		    "has not this agent's schema under " SUBJECT },
		{ true, 404, "{\"error_code\":40401}", REGISTRY_REJECTED,
		    "register it with: jq -Rs '{schema: .}' program.avsc | curl -sS -H "
		    "'Content-Type:"
		    " application/vnd.schemaregistry.v1+json' --data-binary @- " BASE
		    "/subjects/" SUBJECT "/versions" },
		{ false, 407, "", REGISTRY_DENIED, "the proxy before " BASE },
		{ false, 300, "", REGISTRY_DENIED, "redirects elsewhere" },
		{ false, 301, "", REGISTRY_DENIED, "redirects elsewhere" },
		{ false, 399, "", REGISTRY_DENIED, "redirects elsewhere" },
		{ false, 400, "", REGISTRY_DENIED, "answers 400 to the request" },
		{ false, 499, "", REGISTRY_DENIED, "answers 499 to the request" },
		{ false, 405, "{\"message\":\"no\"}", REGISTRY_DENIED,
		    "answers 405 (\"no\") to the request" },
		{ false, 500, "{\"message\":\"db\"}", REGISTRY_UNAVAILABLE,
		    "answers 500 (\"db\"): the registry" },
		{ false, 500, "{\"message\":\"x\"}", REGISTRY_UNAVAILABLE, "answers 500 (\"x\"): the registry" },
		{ false, 500, "{\"message\":\"\"}", REGISTRY_UNAVAILABLE, "answers 500: the registry" },
		{ false, 500, "{\"message\":\"\\nx\"}", REGISTRY_UNAVAILABLE, "answers 500 (\" x\"): the registry" },
		{ false, 503, "<html>", REGISTRY_UNAVAILABLE, "answers 503: the registry" },
		{ false, 408, "", REGISTRY_UNAVAILABLE, "too many requests" },
		{ false, 429, "", REGISTRY_UNAVAILABLE, "too many requests" },
		{ false, 0, "", REGISTRY_UNAVAILABLE, "answers 0" },
		{ false, 999, "", REGISTRY_UNAVAILABLE, "answers 999" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct registry_answer a = answer_to(
		    cases[i].lookup_only, cases[i].status, cases[i].body);

		assert_says(&a, cases[i].verdict, cases[i].text);
	}
}

static void
servers_words_are_one_line_cut_and_without_secrets(void **state)
{
	struct registry_answer a = answer_to(
	    false, 500, "{\"message\":\"a\\nb\\u0007 hunter2 is wrong\"}");
	char body[4096];

	(void)state;
	assert_says(&a, REGISTRY_UNAVAILABLE, "(\"a b  ******* is wrong\")");
	for (int len = 231; len <= 232; len++) {
		char want[256];

		snprintf(body, sizeof(body), "{\"message\":\"%0*d\"}", len, 0);
		a = answer_to(false, 500, body);
		snprintf(want, sizeof(want), "(\"%0231d%s\")", 0, len > 231 ? "…" : "");
		assert_says(&a, REGISTRY_UNAVAILABLE, want);
	}
	snprintf(body, sizeof(body), "{\"message\":\"%0*d hunter2\"}", 225, 0);	/* at the cut */
	a = answer_to(false, 500, body);
	assert_null(strstr(a.sentence, "hunter"));
	for (int pad = 0; pad < 4; pad++) {
		int at = snprintf(body, sizeof(body), "{\"message\":\"%.*s", pad, "xxx");

		for (int i = 0; i < 1000; i++)
			at += snprintf(body + at, sizeof(body) - (size_t)at, "€");
		snprintf(body + at, sizeof(body) - (size_t)at, "\"}");
		a = answer_to(false, 409, body);
		assert_says(&a, REGISTRY_REJECTED, "…\")");
	}
}

static void
credentials_that_come_back_as_they_were_sent_are_hidden(void **state)
{
	/* By another implementation: printf u:p | base64, and so on. */
	static const struct {
		const char *user, *password, *header, *hidden;
	} cases[] = {
		{ "u", "p", "dTpw", "****" },
		{ "user", "hunter2", "dXNlcjpodW50ZXIy", "****************" },
		{ "me", "hunter2", "bWU6aHVudGVyMg==", "****************" },
		{ "you", "hunter2", "eW91Omh1bnRlcjI=", "****************" },
		{ "\xc3\xbf", "\xc3\xbf\xc3\xbe", "w786w7/Dvg==", "************" },
	};
	char body[256], want[256];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct registry_request q = { .base = BASE, .subject = SUBJECT, .user = cases[i].user,
			.secrets = { cases[i].password } };
		struct registry_answer a;

		snprintf(body, sizeof(body), "{\"message\":\"not Basic %s!\"}", cases[i].header);
		snprintf(want, sizeof(want), "(\"not Basic %s!\")", cases[i].hidden);
		registry_answer_read(&q, 401, body, strlen(body), &a);
		assert_says(&a, REGISTRY_DENIED, want);
	}
}

static void
longest_names_leave_a_whole_sentence(void **state)
{
	char base[2048], subject[2048];
	struct registry_request q = { .base = base, .subject = subject, .lookup_only = true };
	struct registry_answer a;

	(void)state;
	for (size_t pad = 0; pad < 3; pad++) {
		memset(base, 'x', sizeof(base));
		for (size_t i = pad; i + 3 < sizeof(subject); i += 3)
			memcpy(subject + i, "€", 3);
		memset(subject, 'y', pad);
		base[300] = subject[pad + 3 * 300] = '\0';
		registry_answer_read(&q, 404, "{\"error_code\":40401}", 20, &a);
		assert_says(&a, REGISTRY_REJECTED, "has no subject");
	}
}

/* One character of three bytes among letters, wherever the end cuts. */
static void
a_sentence_that_is_cut_ends_in_a_whole_character(void **state)
{
	char subject[1200];
	struct registry_request q = { .base = BASE, .subject = subject };
	struct registry_answer a;

	(void)state;
	for (size_t at = 800; at < REGISTRY_SENTENCE; at++) {
		memset(subject, 'x', sizeof(subject));
		memcpy(subject + at, "€", 3);
		subject[sizeof(subject) - 1] = '\0';
		registry_answer_read(&q, 401, "", 0, &a);
		assert_says(&a, REGISTRY_DENIED, "does not accept our credentials for subject xxx");
		assert_in_range(strlen(a.sentence), REGISTRY_SENTENCE - 4, REGISTRY_SENTENCE - 1);
	}
}

static void
each_failure_has_its_mend(void **state)
{
	static const struct {
		int code;
		const char *detail;
		const char *text;
	} cases[] = {
		{ CURLE_COULDNT_RESOLVE_HOST, "Could not resolve host: x", "no answer from " BASE " (\"Could not resolve host: x\"): check the name" },
		{ CURLE_COULDNT_CONNECT, "refused", "check that the registry runs there" },
		{ CURLE_OPERATION_TIMEDOUT, "", "within 1234 ms: check" },
		{ CURLE_PEER_FAILED_VERIFICATION, "self-signed", "compared with /some/ca.pem" },
		{ CURLE_SSL_CACERT_BADFILE, "", "the CA file /some/ca.pem cannot be used" },
		{ CURLE_RECV_ERROR, "tlsv13 alert certificate required", "requires a client certificate" },
		{ CURLE_SSL_CONNECT_ERROR, "wrong version number", "speaks TLS" },
		{ CURLE_SSL_CERTPROBLEM, "", "registry.cert_file" },
		{ CURLE_WRITE_ERROR, "", "too large" },
		{ CURLE_UNSUPPORTED_PROTOCOL, "", "final address" },
		{ CURLE_COULDNT_RESOLVE_PROXY, "", "http_proxy" },
		{ CURLE_OUT_OF_MEMORY, "", "the agent's memory limit" },
		/* A server that closes after a TLS 1.3 handshake may want a certificate, and its alert is too late. */
		{ CURLE_SEND_ERROR, "SSL_write() error", "requires a client certificate" },
		{ CURLE_GOT_NOTHING, "hunter2", "(\"*******\"): it closed the connection after the TLS handshake" },
	};
	struct registry_request q = { .base = BASE,
		.subject = SUBJECT,
		.timeout_ms = 1234,
		.ca = "/some/ca.pem",
		.secrets = { NULL, "hunter2" } };
	struct registry_answer a;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		registry_answer_failed(&q, cases[i].code, cases[i].detail, &a);
		assert_says(&a, REGISTRY_UNAVAILABLE, cases[i].text);
	}
	q.ca = NULL;
	registry_answer_failed(&q, CURLE_PEER_FAILED_VERIFICATION, "", &a);
	assert_says(&a, REGISTRY_UNAVAILABLE, "this system has no CA file");
	q.base = "http://registry.example";
	registry_answer_failed(&q, CURLE_GOT_NOTHING, "hunter2", &a);
	assert_says(&a, REGISTRY_UNAVAILABLE, "(\"*******\"): check that the registry runs");
}

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
url_that_is_none_is_told_what_it_should_be(void **state)
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

/* --- the cache --- */

static void
assert_id(const struct registry_cache *c, const char *url, uint64_t fingerprint, int32_t want)
{
	int32_t id = -1;
	int r = registry_cache_get(c, url, SUBJECT, fingerprint, &id);

	assert_int_equal(want < 0 ? -ENOENT : 0, r);
	assert_int_equal(want, id);
}

static void
cache_gives_back_what_was_put(void **state)
{
	struct registry_cache *c;
	struct tree t;
	struct stat st;
	char error[512];
	char path[128];	/* tree_path() has few buffers */

	(void)state;
	tree_init(&t);
	snprintf(path, sizeof(path), "%s", tree_path(&t, "ids.json"));
	assert_int_equal(0, registry_cache_open(path, &c, error, sizeof(error)));
	assert_string_equal("", error);
	assert_int_equal(0, registry_cache_save(c));
	assert_int_equal(-1, access(path, F_OK));	/* nothing to keep, no file */
	assert_int_equal(0, registry_cache_put(c, "http://a", SUBJECT, UINT64_MAX, 7));
	assert_int_equal(0, registry_cache_put(c, "http://b", SUBJECT, UINT64_MAX, 8));
	assert_int_equal(0, registry_cache_put(c, "http://a", SUBJECT, 1, 0));
	assert_int_equal(0, registry_cache_put(c, "http://a", SUBJECT, 2, 3));
	assert_int_equal(0, registry_cache_put(c, "http://a", SUBJECT, 2, INT32_MAX));
	assert_int_equal(0, registry_cache_put(c, "http://a", SUBJECT, 3, 3));
	registry_cache_drop(c, "http://a", SUBJECT, 3);
	registry_cache_drop(c, "http://a", SUBJECT, 4);
	/* Those behind one that is dropped stay. */
	assert_int_equal(0, registry_cache_put(c, "http://a", SUBJECT, 5, 5));
	assert_int_equal(0, registry_cache_put(c, "http://a", SUBJECT, 6, 6));
	assert_int_equal(0, registry_cache_put(c, "http://a", SUBJECT, 7, 7));
	registry_cache_drop(c, "http://a", SUBJECT, 5);
	assert_id(c, "http://a", 5, -1);
	assert_id(c, "http://a", 6, 6);
	assert_id(c, "http://a", 7, 7);
	registry_cache_drop(c, "http://a", SUBJECT, 6);
	registry_cache_drop(c, "http://a", SUBJECT, 7);
	/* A leftover of an interrupted save, and a link that another user created. */
	tree_write(&t, "victim", "whole");
	assert_int_equal(0, symlink(tree_path(&t, "victim"), tree_path(&t, "ids.json.tmp")));
	errno = EACCES;		/* of something before */
	assert_int_equal(0, registry_cache_save(c));
	registry_cache_close(c);
	assert_int_equal(0, stat(path, &st));
	assert_int_equal(0600, st.st_mode & 07777);
	assert_int_equal(0, stat(tree_path(&t, "victim"), &st));
	assert_int_equal(5, st.st_size);
	assert_int_equal(-1, access(tree_path(&t, "ids.json.tmp"), F_OK));

	assert_int_equal(0, registry_cache_open(path, &c, error, sizeof(error)));
	assert_string_equal("", error);
	assert_int_equal(4, registry_cache_count(c));
	assert_id(c, "http://a", UINT64_MAX, 7);
	assert_id(c, "http://b", UINT64_MAX, 8);
	assert_id(c, "http://a", 1, 0);
	assert_id(c, "http://a", 2, INT32_MAX);
	assert_id(c, "http://a", 3, -1);
	assert_id(c, "http://c", 1, -1);
	registry_cache_close(c);
	tree_done(&t);
}

static void
damaged_cache_gives_what_is_whole_and_tells(void **state)
{
	static const char row[] = "{\"url\":\"http://a\",\"subject\":\"" SUBJECT
				  "\",\"fingerprint\":\"000000000000000f\",\"id\":5}";
	static const struct {
		const char *format;	/* with the good row, or without */
		int32_t id;
		const char *text;	/* of the error */
	} cases[] = {
		{ "{\"version\":1,\"ids\":[%s]}", 5, NULL },
		{ "{\"version\":2,\"version\":1,\"ids\":[%s]}", 5, NULL },	/* the last counts */
		{ "{\"version\":1,\"ids\":[%s,{}]}", 5, "1 of the schema ids" },
		{ "{\"version\":1,\"ids\":[1,%s,null,{\"url\":\"u\",\"subject\":\"s\",\"fingerprint\":\"g000000000000000\",\"id\":1}]}", 5, "3 of" },
		{ "{\"version\":1,\"ids\":[{\"url\":\"u\",\"subject\":\"s\",\"fingerprint\":\"f\",\"id\":1},%s]}", 5, "1 of" },
		{ "{\"version\":1,\"ids\":[{\"url\":\"u\",\"subject\":\"s\",\"fingerprint\":\"000000000000000f\",\"id\":-1},%s]}", 5, "1 of" },
		{ "{\"version\":1,\"ids\":[{\"subject\":\"s\",\"fingerprint\":\"000000000000000f\",\"id\":1},%s]}", 5, "1 of" },
		{ "{\"version\":1,\"ids\":[{\"url\":\"u\",\"fingerprint\":\"000000000000000f\",\"id\":1},%s]}", 5, "1 of" },
		{ "{\"version\":1,\"ids\":[{\"url\":\"u\",\"subject\":\"s\",\"id\":1},%s]}", 5, "1 of" },
		{ "{\"version\":1,\"ids\":[%s]", -1, "damaged: the schema ids" },
		{ "{\"version\":2,\"ids\":[%s]}", -1, "damaged: the schema ids" },
		{ "{\"version\":1,\"ids\":{\"a\":%s}}", -1, "damaged: the schema ids" },
		{ "", -1, "damaged: the schema ids" },
	};
	struct tree t;

	(void)state;
	tree_init(&t);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct registry_cache *c;
		char text[1024], error[512];
		const char *path = tree_path(&t, "ids.json");

		snprintf(text, sizeof(text), cases[i].format, row);
		tree_write(&t, "ids.json", text);
		assert_int_equal(0, registry_cache_open(path, &c, error, sizeof(error)));
		assert_id(c, "http://a", 15, cases[i].id);
		if (cases[i].text == NULL)
			assert_string_equal("", error);
		else if (strstr(error, cases[i].text) == NULL ||
		    strncmp(error, path, strlen(path)) != 0)
			fail_msg("%s", error);
		/* Written anew, whole. */
		assert_int_equal(0, registry_cache_save(c));
		registry_cache_close(c);
		assert_int_equal(0, registry_cache_open(path, &c, error, sizeof(error)));
		assert_string_equal("", error);
		assert_id(c, "http://a", 15, cases[i].id);
		registry_cache_close(c);
	}
	tree_done(&t);
}

static void
cache_that_cannot_be_a_file_of_ours_is_told(void **state)
{
	struct registry_cache *c;
	struct tree t;
	char error[512];
	int fd;

	(void)state;
	tree_init(&t);
	tree_mkdir(&t, "dir");
	assert_int_equal(0, registry_cache_open(tree_path(&t, "dir"), &c, error, sizeof(error)));
	assert_non_null(strstr(error, "cannot be read (Is a directory)"));
	assert_int_equal(0, registry_cache_put(c, "http://a", SUBJECT, 1, 1));
	assert_int_equal(-EISDIR, registry_cache_save(c));
	assert_int_equal(-1, access(tree_path(&t, "dir.tmp"), F_OK));
	registry_cache_close(c);

	fd = open(tree_path(&t, "big"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(0, ftruncate(fd, REGISTRY_CACHE_BYTES + 1));
	close(fd);
	assert_int_equal(0, registry_cache_open(tree_path(&t, "big"), &c, error, sizeof(error)));
	assert_non_null(strstr(error, "too large for schema ids"));
	assert_int_equal(0, registry_cache_save(c));	/* ours takes its place, also with nothing in it */
	registry_cache_close(c);
	assert_int_equal(0, registry_cache_open(tree_path(&t, "big"), &c, error, sizeof(error)));
	assert_string_equal("", error);
	assert_int_equal(0, registry_cache_count(c));
	registry_cache_close(c);
	tree_done(&t);
}

static void
full_cache_loses_its_oldest_and_fits_its_file(void **state)
{
	char url[256], error[512];
	struct registry_cache *c;
	struct tree t;

	(void)state;
	tree_init(&t);
	memset(url, 'u', sizeof(url) - 1);
	url[sizeof(url) - 1] = '\0';
	assert_int_equal(
	    0, registry_cache_open(tree_path(&t, "ids.json"), &c, error, sizeof(error)));
	for (int i = 0; i < REGISTRY_CACHE_MAX + 10; i++)
		assert_int_equal(0, registry_cache_put(c, url, SUBJECT, (uint64_t)i, i));
	assert_int_equal(REGISTRY_CACHE_MAX, registry_cache_count(c));
	assert_id(c, url, 9, -1);
	assert_id(c, url, 10, 10);
	assert_int_equal(0, registry_cache_save(c));
	registry_cache_close(c);
	assert_int_equal(
	    0, registry_cache_open(tree_path(&t, "ids.json"), &c, error, sizeof(error)));
	assert_string_equal("", error);
	assert_int_equal(REGISTRY_CACHE_MAX, registry_cache_count(c));
	for (int i = 10; i < REGISTRY_CACHE_MAX + 10; i++)
		assert_id(c, url, (uint64_t)i, i);
	registry_cache_close(c);
	tree_done(&t);
}

/* --- the client, before its first question --- */

static void
on_change(void *arg)
{
	(*(unsigned *)arg)++;
}

static void
cached_id_is_there_at_the_first_call(void **state)
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

	assert_int_equal(0, registry_id(r, SUBJECT, 15, "\"int\"", &id));
	assert_int_equal(5, id);
	registry_status(r, &status);
	assert_int_equal(REGISTRY_OK, status.state);
	assert_int_equal(1, status.unverified);

	id = -1;
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
	assert_int_equal(0, registry_id(r, SUBJECT, 15, "\"int\"", &id));
	registry_status(r, &status);
	assert_int_equal(REGISTRY_ASKING, status.state);
	assert_int_equal(REGISTRY_MAX - 1, status.wanted);
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(id_is_read),
		cmocka_unit_test(what_promises_an_id_and_has_none_is_no_answer),
		cmocka_unit_test(body_that_is_too_long_is_not_parsed),
		cmocka_unit_test(each_refusal_has_its_sentence),
		cmocka_unit_test(servers_words_are_one_line_cut_and_without_secrets),
		cmocka_unit_test(credentials_that_come_back_as_they_were_sent_are_hidden),
		cmocka_unit_test(longest_names_leave_a_whole_sentence),
		cmocka_unit_test(a_sentence_that_is_cut_ends_in_a_whole_character),
		cmocka_unit_test(each_failure_has_its_mend),
		cmocka_unit_test(url_is_taken_apart),
		cmocka_unit_test(url_that_is_none_is_refused_without_its_password),
		cmocka_unit_test(url_that_is_none_is_told_what_it_should_be),
		cmocka_unit_test(question_has_the_exact_text),
		cmocka_unit_test(waits_double_up_to_the_maximum),
		cmocka_unit_test(cache_gives_back_what_was_put),
		cmocka_unit_test(damaged_cache_gives_what_is_whole_and_tells),
		cmocka_unit_test(cache_that_cannot_be_a_file_of_ours_is_told),
		cmocka_unit_test(full_cache_loses_its_oldest_and_fits_its_file),
		cmocka_unit_test(cached_id_is_there_at_the_first_call),
		cmocka_unit_test(ca_bundle_is_the_first_that_can_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
