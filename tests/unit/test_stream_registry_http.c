/* SPDX-License-Identifier: Apache-2.0 */
/* One POST after the other over libcurl. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include <curl/curl.h>
#include "faults.h"
#include "registry_kit.h"
#include "stream/registry_http.h"
#include "timers.h"

static struct {
	unsigned n;
	int code;
	long status;
	int64_t retry_after_s;
	size_t len;
	char body[64], detail[256];
	struct registry_http *again;	/* to post by once more, from within */
} answer;

static struct registry_http_request question = { .body = "what?", .len = 5 };

static void
on_answer(const struct registry_http_answer *a, void *arg)
{
	assert_ptr_equal(arg, &answer);
	answer.n++;
	answer.code = a->code;
	answer.status = a->status;
	answer.retry_after_s = a->retry_after_s;
	answer.len = a->len;
	snprintf(answer.body, sizeof(answer.body), "%.*s", (int)a->len, a->body != NULL ? a->body : "");
	snprintf(answer.detail, sizeof(answer.detail), "%s", a->detail != NULL ? a->detail : "");
	if (answer.again != NULL && answer.n < 3)
		assert_int_equal(registry_http_post(answer.again, &question), 0);
}

static bool
is_answered(void)
{
	return answer.n > 0;
}

static struct registry_http *
http_opens(uint32_t timeout_ms)
{
	struct registry_http_options o = { .timeout_ms = timeout_ms };
	struct registry_http *h;

	memset(&answer, 0, sizeof(answer));
	question.url = url;
	assert_int_equal(registry_http_open(base, &o, on_answer, &answer, &h), 0);
	return h;
}

static void
posts(struct registry_http *h)
{
	answer.n = 0;
	assert_int_equal(registry_http_post(h, &question), 0);
	assert_int_equal(registry_http_post(h, &question), -EBUSY);
	assert_int_equal(answer.n, 0);		/* never from within */
	assert_true(wait_for(is_answered));
	assert_int_equal(answer.n, 1);
}

static void
an_answer_comes_once_and_whole(void **state)
{
	struct registry_http *h = http_opens(5000);

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
	registry_http_rest(h);			/* and it goes on after that */
	registry_http_rest(h);
	server.body = "again";
	posts(h);
	assert_string_equal(answer.body, "again");
	answer.n = 0;
	answer.again = h;
	assert_int_equal(registry_http_post(h, &question), 0);
	for (int i = 0; i < 500 && answer.n < 3; i++)
		turn_for(5);
	assert_int_equal(answer.n, 3);
	registry_http_close(h);
	registry_http_close(NULL);
}

static void
an_answer_has_a_largest_size(void **state)
{
	struct registry_http *h = http_opens(5000);

	(void)state;
	server.body_bytes = REGISTRY_HTTP_MAX;
	posts(h);
	assert_int_equal(answer.code, 0);
	assert_int_equal(answer.len, REGISTRY_HTTP_MAX);
	server.body_bytes++;
	posts(h);
	assert_int_equal(answer.code, CURLE_WRITE_ERROR);
	assert_true(answer.detail[0] != '\0');
	assert_int_equal(answer.len, 0);
	server.body_bytes = 0;
	server.header_bytes = 120 * 1000;
	posts(h);
	assert_int_equal(answer.code, 0);
	server.header_bytes = 140 * 1000;
	posts(h);
	assert_int_equal(answer.code, CURLE_WRITE_ERROR);
	server.header_bytes = 0;
	posts(h);				/* counted anew for each */
	assert_int_equal(answer.code, 0);
	registry_http_close(h);
}

static void
silence_has_an_end(void **state)
{
	struct registry_http *h = http_opens(100);

	(void)state;
	server.is_silent = true;
	posts(h);
	assert_int_equal(answer.code, CURLE_OPERATION_TIMEDOUT);
	assert_int_equal(answer.status, 0);
	assert_true(answer.detail[0] != '\0');
	server.is_silent = false;
	posts(h);
	assert_int_equal(answer.code, 0);
	assert_int_equal(answer.status, 200);
	registry_http_close(h);
}

static void
what_is_in_flight_when_it_closes_is_not_told(void **state)
{
	struct registry_http *h = http_opens(5000);

	(void)state;
	server.is_silent = true;
	assert_int_equal(registry_http_post(h, &question), 0);
	for (int i = 0; i < 500 && server.held == NULL; i++)
		turn_for(5);
	assert_non_null(server.held);
	registry_http_rest(h);
	turn_for(50);
	assert_int_equal(answer.n, 0);
	server.is_silent = false;
	posts(h);			/* the one that was given up is in nobody's way */
	assert_int_equal(answer.status, 200);
	server.is_silent = true;
	assert_int_equal(registry_http_post(h, &question), 0);
	registry_http_close(h);
	turn_for(50);
	assert_int_equal(answer.n, 1);
}

static void
a_redirect_keeps_the_question_and_the_scheme(void **state)
{
	struct registry_http *h = http_opens(5000);
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
	registry_http_close(h);
}

static void
credentials_are_those_of_this_question(void **state)
{
	struct registry_http *h = http_opens(5000);

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
	registry_http_close(h);
}

static void
files_of_tls_are_used(void **state)
{
	char none[128];
	struct registry_http_options cases[] = { { .ca_file = none }, { .cert_file = none, .key_file = none } };
	static const int codes[] = { CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CERTPROBLEM };

	(void)state;
	snprintf(none, sizeof(none), "%s", tree_path(&tree, "none"));
	for (size_t i = 0; i < 2; i++) {
		struct registry_http *h;
		char https[64];

		memset(&answer, 0, sizeof(answer));
		cases[i].timeout_ms = 5000;
		assert_int_equal(registry_http_open(base, &cases[i], on_answer, &answer, &h), 0);
		/* They are read once a connection stands, whoever it is that listens there. */
		snprintf(https, sizeof(https), "https%s", url + strlen("http"));
		question.url = https;
		posts(h);
		assert_int_equal(answer.code, codes[i]);
		registry_http_close(h);
	}
}

static void
without_memory_a_question_has_an_end_too(void **state)
{
	struct registry_http *h = http_opens(200);
	unsigned n;

	(void)state;
	server.body = "7";
	/* Its timer, before anything is sent. */
	fault = (struct fault){ .calls = FAULT_LIBRARY, .times = 1, .error = ENOMEM };
	assert_int_equal(registry_http_post(h, &question), -ENOMEM);
	assert_int_equal(fault.hit, FAULT_LIBRARY);
	fault.calls = 0;
	posts(h);
	assert_int_equal(answer.code, 0);
	/* What watches its connection, or keeps its answer. */
	for (n = 0; n < 20; n++) {
		registry_http_rest(h);
		fault = (struct fault){ .calls = FAULT_MEMORY, .skip = n, .times = 1, .error = ENOMEM };
		answer.n = 0;
		assert_int_equal(registry_http_post(h, &question), 0);
		assert_true(wait_for(is_answered));
		fault.calls = 0;
		if (fault.hit == 0)
			break;
		assert_int_equal(answer.n, 1);
		assert_int_not_equal(answer.code, 0);
	}
	assert_in_range(n, 2, 19);
	assert_int_equal(answer.code, 0);
	assert_string_equal(answer.body, "7");
	registry_http_close(h);
}

/* Were libcurl's word not heeded, nobody would call it any more: not even the time that it has would end it. */
static void
a_question_that_cannot_be_timed_ends_at_once(void **state)
{
	(void)state;
	for (unsigned n = 0; n < 2; n++) {
		struct registry_http *h = http_opens(3600000);

		server.is_silent = true;
		timers = (struct timers){ .arg = h, .works = n, .fails = 1 };
		if (n == 0) {
			assert_int_equal(registry_http_post(h, &question), -ENOMEM);
			assert_int_equal(answer.n, 0);
		} else {
			assert_int_equal(registry_http_post(h, &question), 0);
			assert_true(wait_for(is_answered));
			assert_int_equal(answer.n, 1);
			assert_int_equal(answer.code, CURLE_OUT_OF_MEMORY);
			assert_true(answer.detail[0] != '\0');
		}
		assert_int_equal(timers.fails, 0);
		timers.arg = NULL;
		server.is_silent = false;
		posts(h);
		assert_int_equal(answer.code, 0);
		assert_int_equal(answer.status, 200);
		registry_http_close(h);
	}
}

static int events_before;

static bool
is_as_before(void)
{
	return event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED) == events_before;
}

/* What is watched wakes a host that has nothing to do. */
static void
between_two_questions_nothing_is_watched(void **state)
{
	struct registry_http *h = http_opens(5000);

	(void)state;
	posts(h);
	turn_for(5);
	events_before = event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED);
	for (int i = 0; i < 5; i++)
		posts(h);
	assert_true(wait_for(is_as_before));
	registry_http_close(h);
}

/* Whatever it is that libcurl has none for, nothing of the question is left out. */
static void
without_memory_in_libcurl_a_question_is_refused(void **state)
{
	/* Which nobody reads for http. */
	struct registry_http_options o = { .ca_file = "/ca", .cert_file = "/cert", .key_file = "/key", .timeout_ms = 5000 };
	struct registry_http *h;
	unsigned n;

	(void)state;
	memset(&answer, 0, sizeof(answer));
	question.url = url;
	question.token = "t0ken";
	assert_int_equal(registry_http_open(base, &o, on_answer, &answer, &h), 0);
	for (n = 0; n < 1000; n++) {
		int posted;

		registry_http_rest(h);
		answer.n = 0;
		fault = (struct fault){ .calls = FAULT_LIBRARY, .skip = n, .times = 1, .error = ENOMEM };
		posted = registry_http_post(h, &question);
		fault.calls = 0;
		if (fault.hit == 0)
			break;
		assert_int_equal(posted, -ENOMEM);
		assert_int_equal(answer.n, 0);
	}
	assert_in_range(n, 10, 999);
	assert_true(wait_for(is_answered));
	assert_int_equal(answer.code, 0);
	assert_string_equal(server.authorization, "Bearer t0ken");
	question.token = NULL;
	registry_http_close(h);
}

static int64_t
longest_wait_us(void)
{
	int64_t most_us = 0;

	for (size_t i = 0; i < timers.n && i < 64; i++)
		most_us = timers.waits_us[i] > most_us ? timers.waits_us[i] : most_us;
	return most_us;
}

static bool
waits_for_minutes(void)
{
	return longest_wait_us() > 60 * 1000 * MS;
}

/* In milliseconds, as libcurl counts; what has gone by already is not waited for again. */
static void
silence_is_waited_for_as_long_as_was_asked(void **state)
{
	int64_t began_us = clock_us(CLOCK_MONOTONIC), gone_us;
	struct registry_http *h = http_opens(3600000);

	(void)state;
	server.is_silent = true;
	timers.arg = h;
	assert_int_equal(registry_http_post(h, &question), 0);
	assert_true(wait_for(waits_for_minutes));	/* after shorter ones, of its own */
	gone_us = clock_us(CLOCK_MONOTONIC) - began_us;
	assert_in_range(longest_wait_us(), 3600000 * MS - gone_us - 2 * MS, 3600000 * MS);
	assert_int_equal(longest_wait_us() % MS, 0);
	timers.arg = NULL;
	registry_http_close(h);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_answer_comes_once_and_whole),
		T(an_answer_has_a_largest_size),
		T(silence_has_an_end),
		T(what_is_in_flight_when_it_closes_is_not_told),
		T(a_redirect_keeps_the_question_and_the_scheme),
		T(credentials_are_those_of_this_question),
		T(files_of_tls_are_used),
		T(without_memory_a_question_has_an_end_too),
		T(a_question_that_cannot_be_timed_ends_at_once),
		T(between_two_questions_nothing_is_watched),
		T(without_memory_in_libcurl_a_question_is_refused),
		T(silence_is_waited_for_as_long_as_was_asked),
	};

	prepare_libraries();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
