/* SPDX-License-Identifier: Apache-2.0 */
/* client: one request after the other over libcurl. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "faults.h"
#include "http_kit.h"
#include "timers.h"

static void
an_answer_comes_once_and_whole(void **state)
{
	struct http_client *h = http_opens(5000);

	(void)state;
	server.body = "the answer";
	server.status = 418;
	server.retry_after = "17";
	posts(h);
	assert_int_equal(answer.code, 0);
	assert_int_equal(answer.status, 418);
	assert_int_equal(answer.retry_after_s, 17);
	assert_string_equal(answer.body, "the answer");
	assert_string_equal(server.asked, "what?");
	server.body = "";
	server.retry_after = NULL;
	posts(h);
	assert_int_equal(answer.len, 0);
	assert_string_equal(answer.body, "");
	assert_int_equal(answer.retry_after_s, 0);
	http_client_disconnect(h);			/* and it continues after that */
	http_client_disconnect(h);
	posts(h);				/* nor is there a body then, as yet */
	assert_int_equal(answer.len, 0);
	server.body = "again";
	posts(h);
	assert_string_equal(answer.body, "again");
	answer.n = 0;
	answer.again = h;
	assert_int_equal(http_client_send(h, &question), 0);
	for (int i = 0; i < 500 && answer.n < 3; i++)
		turn_for(5);
	assert_int_equal(answer.n, 3);
	http_client_close(h);
	http_client_close(NULL);
}

static void
an_answer_has_a_largest_size(void **state)
{
	struct http_client *h = http_opens(5000);

	(void)state;
	server.body_bytes = BODY_MAX;
	posts(h);
	assert_int_equal(answer.code, 0);
	assert_int_equal(answer.len, BODY_MAX);
	server.body_bytes++;
	posts(h);
	assert_int_equal(answer.code, CURLE_WRITE_ERROR);
	assert_true(answer.detail[0] != '\0');
	assert_int_equal(answer.len, 0);
	server.body_bytes = 0;
	server.body = "";
	posts(h);
	server.header_bytes = 128 * 1024 - server.answer_bytes;
	posts(h);
	assert_int_equal(server.answer_bytes, 128 * 1024);
	assert_int_equal(answer.code, 0);
	server.header_bytes++;
	posts(h);
	assert_int_equal(answer.code, CURLE_WRITE_ERROR);
	server.header_bytes--;
	posts(h);				/* counted anew for each */
	assert_int_equal(answer.code, 0);
	http_client_close(h);
}

/* In parts, as the connection takes it. */
static void
a_long_question_arrives_whole(void **state)
{
	const size_t len = 8 * 1024 * 1024;
	char *text = malloc(len + 1);
	struct http_client *h = http_opens(5000);

	(void)state;
	memset(text, 'q', len);
	text[len] = '\0';
	question.body = text;
	posts(h);
	question.body = "what?";
	free(text);
	assert_int_equal(answer.code, 0);
	assert_int_equal(server.asked_bytes, len);
	http_client_close(h);
}

static void
one_connection_is_kept_and_no_other(void **state)
{
	struct http_client *h = http_opens(5000);
	char other[64];

	(void)state;
	assert_int_equal(evhttp_bind_socket(http, "127.0.0.2", (uint16_t)atoi(strrchr(url, ':') + 1)), 0);
	snprintf(other, sizeof(other), "http://127.0.0.2%s", strrchr(url, ':'));
	posts(h);
	posts(h);
	assert_int_equal(server.ports[0], server.ports[1]);
	question.url = other;
	posts(h);
	question.url = url;
	posts(h);
	assert_int_equal(server.requests, 4);
	assert_int_not_equal(server.ports[0], server.ports[3]);
	http_client_close(h);
}

static void
nothing_but_http_is_spoken(void **state)
{
	struct http_client *h = http_opens(5000);

	(void)state;
	question.url = "file:///etc/hostname";
	posts(h);
	assert_int_equal(answer.code, CURLE_UNSUPPORTED_PROTOCOL);
	http_client_close(h);
}

static void
requests_that_cannot_be_made_are_refused(void **state)
{
	struct http_client *h = http_opens(5000);
	char path[200], bad[80];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		snprintf(bad, sizeof(bad), "%s%s", url, i == 0 ? "/a b" : "/a\r\nHost: y");
		question.url = bad;
		posts(h);
		assert_int_equal(answer.code, CURLE_URL_MALFORMAT);
		assert_int_equal(answer.error, -EBADMSG);
	}
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	question.url = url;
	question.unix_socket = path;
	posts(h);
	question.unix_socket = NULL;
	assert_int_not_equal(answer.code, 0);
	assert_int_equal(server.requests, 0);
	posts(h);
	assert_int_equal(answer.error, 0);
	http_client_close(h);
}

/* No server at a port or a socket, one that may not be opened, no answer, too long an answer. */
static void
a_failure_has_the_systems_number(void **state)
{
	struct http_client *h = http_opens(5000);
	char none[128], there[128];
	const struct {
		const char *url, *unix_socket;
		int error;
	} cases[] = {
		{ "http://127.0.0.1:9", NULL, -ECONNREFUSED },
		{ "http://localhost", none, -ENOENT },
		{ "http://localhost", there, -ECONNREFUSED },
	};

	(void)state;
	snprintf(none, sizeof(none), "%s", tree_path(&tree, "none"));
	tree_write(&tree, "there", "x");
	snprintf(there, sizeof(there), "%s", tree_path(&tree, "there"));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		question.url = cases[i].url;
		question.unix_socket = cases[i].unix_socket;
		posts(h);
		assert_int_equal(answer.error, cases[i].error);
	}
	question.url = url;
	question.unix_socket = NULL;
	server.body_bytes = BODY_MAX + 1;
	posts(h);
	assert_int_equal(answer.error, -EFBIG);
	http_client_close(h);
	h = http_opens(100);
	server.is_silent = true;
	posts(h);
	assert_int_equal(answer.error, -ETIMEDOUT);
	http_client_close(h);
}

static void
without_a_body_it_is_a_get(void **state)
{
	struct http_client *h = http_opens(5000);

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		question.body = i == 1 ? NULL : "what?";
		posts(h);
		assert_int_equal(server.method, i == 1 ? EVHTTP_REQ_GET : EVHTTP_REQ_POST);
		assert_string_equal(server.asked, i == 1 ? "" : "what?");
	}
	http_client_close(h);
}

static void
a_method_and_a_header_are_those_of_this_question(void **state)
{
	static const char *const own[] = { "Content-Type: text/own", NULL };
	struct http_client_options o = { .timeout_ms = 5000, .body_max = BODY_MAX, .headers = own };
	struct http_client *h = http_opens(5000);

	(void)state;
	http_client_close(h);
	assert_int_equal(http_client_open(base, &o, on_answer, &answer, &h), 0);
	question.body = NULL;
	for (size_t i = 0; i < 4; i++) {
		question.method = i == 1 ? "PUT" : NULL;
		question.header = i % 2 == 1 ? "Accept: text/this" : NULL;
		posts(h);
		assert_int_equal(answer.status, 200);
		assert_int_equal(server.method, i == 1 ? EVHTTP_REQ_PUT : EVHTTP_REQ_GET);
		assert_string_equal(server.accept, i % 2 == 1 ? "text/this" : "*/*");
		assert_string_equal(server.type, "text/own");	/* the client's are sent with each */
		assert_int_equal(server.asked_bytes, 0);
	}
	http_client_disconnect(h);
	question.method = "PUT";
	posts(h);
	assert_int_equal(server.method, EVHTTP_REQ_PUT);
	question.method = NULL;
	question.body = "what?";
	posts(h);
	assert_int_equal(server.method, EVHTTP_REQ_POST);
	http_client_close(h);
}

static void
a_redirect_keeps_the_question_and_the_scheme(void **state)
{
	struct http_client *h = http_opens(5000);
	char elsewhere[80];

	(void)state;
	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", url);
	server.status = 302;
	server.location = elsewhere;
	posts(h);			/* in a circle: three and no more */
	assert_int_equal(answer.code, CURLE_TOO_MANY_REDIRECTS);
	assert_int_equal(server.requests, 4);
	assert_int_equal(server.method, EVHTTP_REQ_POST);
	assert_string_equal(server.asked, "what?");
	assert_string_equal(server.uri, "/base/elsewhere");
	server.location = "https://127.0.0.1:9/";
	posts(h);
	assert_int_equal(answer.code, CURLE_UNSUPPORTED_PROTOCOL);
	server.location = "file:///etc/passwd";
	posts(h);
	assert_int_equal(answer.code, CURLE_UNSUPPORTED_PROTOCOL);
	http_client_close(h);
}

static void
credentials_are_those_of_this_question(void **state)
{
	struct http_client *h = http_opens(5000);

	(void)state;
	question.user = "me";
	question.password = "hunter2";
	posts(h);
	assert_string_equal(server.authorization, "Basic bWU6aHVudGVyMg==");
	question.token = "t0ken";	/* wins */
	posts(h);
	assert_string_equal(server.authorization, "Bearer t0ken");
	question.user = question.password = question.token = NULL;
	posts(h);
	assert_string_equal(server.authorization, "");
	http_client_close(h);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_answer_comes_once_and_whole),
		T(an_answer_has_a_largest_size),
		T(a_long_question_arrives_whole),
		T(one_connection_is_kept_and_no_other),
		T(nothing_but_http_is_spoken),
		T(requests_that_cannot_be_made_are_refused),
		T(a_failure_has_the_systems_number),
		T(without_a_body_it_is_a_get),
		T(a_method_and_a_header_are_those_of_this_question),
		T(a_redirect_keeps_the_question_and_the_scheme),
		T(credentials_are_those_of_this_question),
	};

	prepare_libraries();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
