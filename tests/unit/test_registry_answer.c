/* SPDX-License-Identifier: Apache-2.0 */
/* registry: the answers of a registry, and the messages on refusals and failures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "base/text.h"
#include "registry/answer.h"

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
each_failure_has_its_hint(void **state)
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
		cmocka_unit_test(each_failure_has_its_hint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
