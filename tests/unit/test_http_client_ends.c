/* SPDX-License-Identifier: Apache-2.0 */
/* client: each request ends: without an answer, a name, memory or a timer, and when the client is closed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "faults.h"
#include "http_kit.h"
#include "timers.h"

/* A name that is looked up until it is let go, on a thread of libcurl's. */
#define SILENT "name.silent.example"
static struct {
	atomic_bool is_asked, is_let_go, is_done;
} lookup;

int
getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **ret)
{
	static typeof(getaddrinfo) *real;

	if (name == NULL || strcmp(name, SILENT) != 0) {
		real = (typeof(real))dlsym(RTLD_NEXT, "getaddrinfo");
		return real(name, service, hints, ret);
	}
	lookup.is_asked = true;
	for (int i = 0; i < 4000 && !lookup.is_let_go; i++)
		usleep(1000);
	lookup.is_done = true;
	return EAI_AGAIN;
}

static bool
is_looked_up(void)
{
	return lookup.is_asked;
}

static bool
is_one_thread(void)
{
	struct stat st;

	/* Its own folder, and those of "." and "..". */
	return stat("/proc/self/task", &st) == 0 && st.st_nlink == 3;
}

static void
a_name_server_that_is_silent_does_not_hold_up_the_end(void **state)
{
	struct http_client *h = http_opens(60000);

	(void)state;
	question.url = "http://" SILENT;
	assert_int_equal(http_client_send(h, &question), 0);
	assert_true(wait_for(is_looked_up));
	http_client_close(h);
	assert_false(lookup.is_done);
	lookup.is_let_go = true;
	assert_true(wait_for(is_one_thread));	/* which frees what is its own */
}

static void
silence_has_an_end(void **state)
{
	struct http_client *h = http_opens(100);

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
	http_client_close(h);
}

static void
what_is_in_flight_when_it_closes_is_not_reported(void **state)
{
	struct http_client *h = http_opens(5000);

	(void)state;
	server.is_silent = true;
	assert_int_equal(http_client_send(h, &question), 0);
	for (int i = 0; i < 500 && server.held == NULL; i++)
		turn_for(5);
	assert_non_null(server.held);
	http_client_disconnect(h);
	turn_for(50);
	assert_int_equal(answer.n, 0);
	server.is_silent = false;
	posts(h);			/* the cancelled one blocks no other */
	assert_int_equal(answer.status, 200);
	server.is_silent = true;
	assert_int_equal(http_client_send(h, &question), 0);
	http_client_close(h);
	turn_for(50);
	assert_int_equal(answer.n, 1);
}

static void
without_memory_a_question_has_an_end_too(void **state)
{
	struct http_client *h = http_opens(200);
	unsigned n;

	(void)state;
	server.body = "7";
	/* Its timer, before anything is sent. */
	fault = (struct fault){ .calls = FAULT_LIBRARY, .times = 1, .error = ENOMEM };
	assert_int_equal(http_client_send(h, &question), -ENOMEM);
	assert_int_equal(fault.hit, FAULT_LIBRARY);
	fault.calls = 0;
	posts(h);
	assert_int_equal(answer.code, 0);
	/* What watches its connection, or keeps its answer. */
	for (n = 0; n < 20; n++) {
		http_client_disconnect(h);
		fault = (struct fault){ .calls = FAULT_MEMORY, .skip = n, .times = 1, .error = ENOMEM };
		answer.n = 0;
		assert_int_equal(http_client_send(h, &question), 0);
		assert_true(wait_for(is_answered));
		fault.calls = 0;
		if (fault.hit == 0)
			break;
		assert_int_equal(answer.n, 1);
		assert_true(answer.code == CURLE_OPERATION_TIMEDOUT || answer.code == CURLE_WRITE_ERROR);
	}
	assert_in_range(n, 2, 19);
	assert_int_equal(answer.code, 0);
	assert_string_equal(answer.body, "7");
	http_client_close(h);
}

/* If libcurl's timer were ignored, it would never be called again, not even for its timeout. */
static void
a_question_that_cannot_be_timed_ends_at_once(void **state)
{
	(void)state;
	for (unsigned n = 0; n < 2; n++) {
		struct http_client *h = http_opens(3600000);

		server.is_silent = true;
		timers = (struct timers){ .arg = h, .works = n, .fails = 1 };
		if (n == 0) {
			assert_int_equal(http_client_send(h, &question), -ENOMEM);
			assert_int_equal(answer.n, 0);
		} else {
			assert_int_equal(http_client_send(h, &question), 0);
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
		http_client_close(h);
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
	struct http_client *h = http_opens(5000);

	(void)state;
	posts(h);
	turn_for(5);
	events_before = event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED);
	for (int i = 0; i < 5; i++)
		posts(h);
	assert_true(wait_for(is_as_before));
	http_client_close(h);
}

/* Whatever it is that libcurl has none for, nothing of the question is left out. */
static void
without_memory_in_libcurl_a_question_is_refused(void **state)
{
	/* It is not read for http. */
	struct http_client_options o = { .ca_file = "/ca", .cert_file = "/cert", .key_file = "/key",
		.timeout_ms = 5000, .body_max = BODY_MAX };
	struct http_client *h;
	unsigned n;

	(void)state;
	memset(&answer, 0, sizeof(answer));
	question.url = url;
	question.token = "t0ken";
	assert_int_equal(http_client_open(base, &o, on_answer, &answer, &h), 0);
	for (n = 0; n < 1000; n++) {
		int posted;

		http_client_disconnect(h);
		answer.n = 0;
		fault = (struct fault){ .calls = FAULT_LIBRARY, .skip = n, .times = 1, .error = ENOMEM };
		posted = http_client_send(h, &question);
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
	http_client_close(h);
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
	struct http_client *h = http_opens(3600000);

	(void)state;
	server.is_silent = true;
	timers.arg = h;
	assert_int_equal(http_client_send(h, &question), 0);
	assert_true(wait_for(waits_for_minutes));	/* after shorter ones, of its own */
	gone_us = clock_us(CLOCK_MONOTONIC) - began_us;
	assert_in_range(longest_wait_us(), 3600000 * MS - gone_us - 2 * MS, 3600000 * MS);
	assert_int_equal(longest_wait_us() % MS, 0);
	timers.arg = NULL;
	http_client_close(h);
}

static unsigned pieces;

static void *
count_alloc(size_t size)
{
	pieces++;
	return malloc(size);
}

/* By whom libcurl gets its memory can be said again once it has been given up as often as it was begun. */
static void
libcurl_is_given_up_as_often_as_it_is_begun(void **state)
{
	const struct http_client_options o = { .timeout_ms = 5000, .body_max = BODY_MAX };
	struct http_client *h = http_opens(5000);

	(void)state;
	http_client_close(h);
	fault = (struct fault){ .calls = FAULT_MEMORY, .times = 1, .error = ENOMEM };
	assert_int_equal(http_client_open(base, &o, on_answer, &answer, &h), -ENOMEM);
	fault.calls = 0;
	curl_global_cleanup();		/* that of prepare_libraries() */
	curl_global_init_mem(CURL_GLOBAL_DEFAULT, count_alloc, free, realloc, strdup, calloc);
	pieces = 0;
	curl_slist_free_all(curl_slist_append(NULL, "one"));
	assert_true(pieces > 0);
	curl_global_cleanup();
	prepare_libraries();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_name_server_that_is_silent_does_not_hold_up_the_end),
		T(silence_has_an_end),
		T(what_is_in_flight_when_it_closes_is_not_reported),
		T(without_memory_a_question_has_an_end_too),
		T(a_question_that_cannot_be_timed_ends_at_once),
		T(between_two_questions_nothing_is_watched),
		T(without_memory_in_libcurl_a_question_is_refused),
		T(silence_is_waited_for_as_long_as_was_asked),
		T(libcurl_is_given_up_as_often_as_it_is_begun),
	};

	prepare_libraries();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
