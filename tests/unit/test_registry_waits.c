/* SPDX-License-Identifier: Apache-2.0 */
/* registry: the time, the URL and the order of the client's requests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include "faults.h"
#include "registry_kit.h"
#include "timers.h"

static void
waits_grow_while_nobody_answers(void **state)
{
	const char *urls[] = { url };
	struct registry_options o = options(urls, 1);

	(void)state;
	server.status = 500;
	o.retry_min_ms = 1;
	o.retry_max_ms = 100;
	opens(&o);
	id_of("a-value", 15);
	id_of("b-value", 15);
	assert_true(wait_for(is_away));
	assert_int_equal(changes, 1);
	turn_for(400);
	assert_in_range(server.requests, 5, 60);	/* each 1 ms it were some hundred */
	assert_int_equal(changes, 1);
	server.status = 200;
	assert_true(wait_for(is_ok));
	assert_int_equal(status().known, 2);
}

static void
one_who_says_when_is_not_asked_before(void **state)
{
	const char *urls[] = { url };
	struct registry_options o = options(urls, 1);

	(void)state;
	server.status = 429;
	server.retry_after = "1";
	o.retry_max_ms = 300;		/* and no longer than this */
	opens(&o);
	id_of("a-value", 15);
	assert_true(wait_for(is_asked_twice));
	assert_true(server.at_us[1] - server.at_us[0] >= 290000);
	assert_true(server.at_us[1] - server.at_us[0] < 1000000);
	assert_non_null(strstr(status().error, "too many requests"));
}

static void
waits_without_an_answer_double_for_each_round_of_addresses(void **state)
{
	static const int64_t one[] = { 100, 200, 400, 800, 1000, 1000 };
	static const int64_t two[] = { 100, 100, 200, 200, 400, 400, 800, 800, 1000 };
	static const int64_t defaults[] = { 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000 };
	char other[72];
	const char *urls[] = { url, other };
	struct registry_options o = options(urls, 1);

	(void)state;
	snprintf(other, sizeof(other), "%s/2", url);
	server.status = 500;
	o.retry_min_ms = 100;
	o.retry_max_ms = 1000;
	opens_at_once(&o, true);
	id_of("a-value", 15);
	expect_waits(one, 6);
	registry_close(r);
	o.n_urls = 2;
	server.requests = 0;
	opens_at_once(&o, true);
	id_of("a-value", 15);
	expect_waits(two, 9);
	assert_string_equal(server.uris[0], "/base/subjects/a-value/versions");
	assert_string_equal(server.uris[1], "/base/2/subjects/a-value/versions");
	assert_string_equal(server.uris[2], "/base/subjects/a-value/versions");
	registry_close(r);
	o = options(urls, 1);
	o.retry_min_ms = o.retry_max_ms = 0;
	opens_at_once(&o, true);
	id_of("a-value", 15);
	expect_waits(defaults, 8);
}

static void
a_refusal_waits_for_half_of_the_longest_wait_and_by_chance_for_all(void **state)
{
	static const struct {
		uint32_t max_ms;
		bool is_most;
		int64_t want_ms[4];
	} cases[] = {
		{ 1, false, { 1, 1, 1, 1 } },
		{ 1000, false, { 500, 500, 500, 500 } },
		{ 1000, true, { 999, 999, 999, 999 } },
		{ 1001, false, { 501, 501, 501, 501 } },
		{ 10000, false, { 5000, 5000, 5000, 5000 } },	/* as long as a connection is kept */
		{ 10002, false, { 5000, 1, 5000, 1 } },		/* the connection is given up in between */
		{ 20000, false, { 5000, 5000, 5000, 5000 } },
		{ 20000, true, { 5000, 14999, 5000, 14999 } },
	};
	const char *urls[] = { url };

	(void)state;
	server.status = 409;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct registry_options o = options(urls, 1);

		o.retry_max_ms = cases[i].max_ms;
		opens_at_once(&o, cases[i].is_most);
		id_of("a-value", 15);
		expect_waits(cases[i].want_ms, 4);
		registry_close(r);
		r = NULL;
	}
}

static void
an_id_is_asked_for_again_by_chance_half_as_late(void **state)
{
	static const struct {
		uint32_t recheck_ms;
		bool is_most;
		int64_t want_ms[4];
	} cases[] = {
		{ 1, false, { 1, 1, 1, 1 } },
		{ 3000, false, { 1500, 1500, 1500, 1500 } },
		{ 3000, true, { 2999, 2999, 2999, 2999 } },
		{ 3001, false, { 1501, 1501, 1501, 1501 } },
		{ 0, false, { 5000, 25000, 5000, 25000 } },
		{ 0, true, { 5000, 54999, 5000, 54999 } },
	};
	const char *urls[] = { url };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct registry_options o = options(urls, 1);

		o.recheck_ms = cases[i].recheck_ms;
		server.requests = 0;
		opens_at_once(&o, cases[i].is_most);
		id_of("a-value", 15);
		expect_waits(cases[i].want_ms, 4);
		assert_true(wait_for(is_asked_twice));
		/* A connection without a question is given up after five seconds, and not before. */
		if (cases[i].recheck_ms != 0)
			assert_int_equal(server.ports[0], server.ports[1]);
		else
			assert_int_not_equal(server.ports[0], server.ports[1]);
		assert_int_equal(changes, i + 1);	/* the same id is no news */
		registry_close(r);
		r = NULL;
	}
}

static void
who_says_when_is_asked_then(void **state)
{
	static const struct {
		const char *after;
		int64_t want_ms;
		uint32_t max_ms;	/* 0: 30000 */
	} cases[] = { { "2", 2000 }, { "1", 1000 }, { "29", 29000 }, { "30", 30000 }, { "31", 30000 }, { "3600", 30000 },
		{ "0", 100 }, { "2000", 2000000, 2000001 }, { "2001", 2000001, 2000001 } };
	const char *urls[] = { url };

	(void)state;
	server.status = 429;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct registry_options o = options(urls, 1);

		o.retry_min_ms = 100;
		o.retry_max_ms = cases[i].max_ms > 0 ? cases[i].max_ms : 30000;
		server.retry_after = cases[i].after;
		opens_at_once(&o, true);
		id_of("a-value", 15);
		expect_waits(&cases[i].want_ms, 1);
		registry_close(r);
		r = NULL;
	}
}

static void
of_those_that_say_when_the_first_has_its_turn(void **state)
{
	static const int64_t want_ms[] = { 2000, 1000, 4000, 4000 };
	static const bool is_other[] = { false, true, true, false, false };
	char other[72];
	const char *urls[] = { url, other };
	struct registry_options o = options(urls, 2);

	(void)state;
	snprintf(other, sizeof(other), "%s/2", url);
	server.status = 429;
	server.afters[0] = "3";		/* at its second 0 */
	server.afters[1] = "2";		/* of the other, which is asked at once */
	server.afters[2] = "9";		/* of the same, at 2 */
	server.retry_after = "4";	/* of the first, at 3 */
	o.retry_max_ms = 30000;
	opens_at_once(&o, false);
	id_of("a-value", 15);
	expect_waits(want_ms, 4);
	assert_int_equal(server.requests, 5);
	for (int i = 0; i < 5; i++)
		assert_int_equal(strncmp(server.uris[i], "/base/2", 7) == 0, is_other[i]);
}

static void
who_waits_to_be_asked_is_passed_by_in_their_order(void **state)
{
	static const int64_t want_ms[] = { 100, 100, 100, 200, 200, 200 };
	static const char *const want[] = { "/base/subjects/", "/base/2/", "/base/3/", "/base/2/", "/base/3/", "/base/2/" };
	char second[72], third[72];
	const char *urls[] = { url, second, third };
	struct registry_options o = options(urls, 3);

	(void)state;
	snprintf(second, sizeof(second), "%s/2", url);
	snprintf(third, sizeof(third), "%s/3", url);
	server.status = 429;
	server.afters[0] = "3";
	o.retry_min_ms = 100;
	o.retry_max_ms = 30000;
	opens_at_once(&o, true);
	id_of("a-value", 15);
	expect_waits(want_ms, 6);
	for (int i = 0; i < 6; i++)
		assert_memory_equal(server.uris[i], want[i], strlen(want[i]));
}

static void
of_those_that_say_the_same_the_next_has_its_turn(void **state)
{
	static const int64_t want_ms[] = { 1000, 2000, 2000 };
	char other[72];
	const char *urls[] = { url, other };
	struct registry_options o = options(urls, 2);

	(void)state;
	snprintf(other, sizeof(other), "%s/2", url);
	server.status = 429;
	server.afters[0] = "3";		/* at second 0 */
	server.afters[1] = "2";		/* of the other, at 1 */
	o.retry_min_ms = 1000;
	o.retry_max_ms = 30000;
	opens_at_once(&o, true);
	id_of("a-value", 15);
	expect_waits(want_ms, 3);
	assert_string_equal(server.uris[0], "/base/subjects/a-value/versions");
	assert_string_equal(server.uris[1], "/base/2/subjects/a-value/versions");
	assert_string_equal(server.uris[2], "/base/subjects/a-value/versions");
}

static void
a_question_without_an_answer_does_not_hold_up_others(void **state)
{
	static const char *const want[] = { "/s0", "/s1", "/s2", "/s0", "/s1", "/s2" };
	const char *urls[] = { url };
	struct registry_options o = options(urls, 1);

	(void)state;
	server.status = 500;
	opens_at_once(&o, true);
	id_of("s0", 1);
	id_of("s1", 1);
	id_of("s2", 1);
	wanted_waits = timers.over_at_once = 10;
	assert_true(wait_for(has_waited));
	for (int i = 0; i < 6; i++)
		assert_non_null(strstr(server.uris[i], want[i]));
}

static void
what_is_wanted_goes_before_what_is_known(void **state)
{
	const char *urls[] = { url };
	struct registry_options o = options(urls, 1);
	char text[512];

	(void)state;
	snprintf(text, sizeof(text), "{\"version\":1,\"ids\":[{\"url\":\"%s\",\"subject\":\"known\","
	    "\"fingerprint\":\"000000000000000f\",\"id\":5}]}", url);
	tree_write(&tree, "ids.json", text);
	o.cache_file = cache;
	o.retry_max_ms = o.recheck_ms = 1000;
	server.refuses = "/refused";
	opens_at_once(&o, false);
	assert_int_equal(id_of("known", 15), -EAGAIN);
	assert_int_equal(id_of("refused", 1), -EAGAIN);
	wanted_waits = timers.over_at_once = 6;
	assert_true(wait_for(has_waited));
	/* At first both are due and wanted, and half a second later only one is. */
	assert_non_null(strstr(server.uris[0], "/known"));
	assert_non_null(strstr(server.uris[1], "/refused"));
	assert_non_null(strstr(server.uris[2], "/refused"));
	assert_non_null(strstr(server.uris[3], "/known"));
	assert_int_equal(id_of("refused", 1), -EACCES);
	assert_int_equal(id_of("known", 15), 7);
	assert_int_equal(status().known, 1);
	assert_int_equal(status().wanted, 1);
	assert_int_equal(status().unverified, 0);
}

/* Without its turn, another id of the known schema would never be noticed. */
static void
a_schema_for_which_the_registry_always_fails_does_not_hold_up_known_ones(void **state)
{
	const char *urls[] = { url };
	struct registry_options o = options(urls, 1);
	unsigned known = 0;

	(void)state;
	o.retry_min_ms = o.retry_max_ms = 1000;
	o.recheck_ms = 3000;
	server.refuses = "/failing";
	server.refusal = 503;
	opens_at_once(&o, true);
	id_of("failing", 1);
	id_of("known", 15);
	wanted_waits = timers.over_at_once = 24;
	assert_true(wait_for(has_waited));
	for (unsigned i = 0; i < server.requests; i++)
		known += strstr(server.uris[i], "/known") != NULL;
	assert_in_range(known, 3, 8);	/* of about twenty seconds, in each of which there is one request */
	assert_int_equal(id_of("known", 15), 7);
	assert_int_equal(id_of("failing", 1), -EAGAIN);
}

static void
who_lets_nobody_in_is_asked_after_a_pause(void **state)
{
	static const int64_t want_ms[] = { 500, 500, 500 };
	static const char *const want[] = { "/base/subjects/", "/base/2/", "/base/3/" };
	char second[72], third[72];
	const char *urls[] = { url, second, third };

	(void)state;
	snprintf(second, sizeof(second), "%s/2", url);
	snprintf(third, sizeof(third), "%s/3", url);
	server.status = 401;
	for (size_t n = 2; n <= 3; n++) {
		struct registry_options o = options(urls, n);

		o.retry_max_ms = 1000;
		server.requests = 0;
		opens_at_once(&o, false);
		id_of("a-value", 15);
		expect_waits(want_ms, 3);
		assert_int_equal(server.requests, 3 * n);
		for (size_t i = 0; i < 3 * n; i++)
			assert_memory_equal(server.uris[i], want[i % n], strlen(want[i % n]));
		registry_close(r);
		r = NULL;
	}
}

/* For any number of requests without an answer. */
static void
what_was_not_refused_goes_before_what_was(void **state)
{
	const char *urls[] = { url };
	struct registry_options o = options(urls, 1);

	(void)state;
	server.status = 500;
	server.refuses = "/refused";
	o.retry_min_ms = o.retry_max_ms = 1000;
	opens_at_once(&o, true);
	id_of("refused", 1);
	id_of("wanted", 1);
	wanted_waits = timers.over_at_once = 4;
	assert_true(wait_for(has_waited));
	assert_non_null(strstr(server.uris[0], "/refused"));
	assert_non_null(strstr(server.uris[1], "/wanted"));
	assert_non_null(strstr(server.uris[2], "/wanted"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(waits_grow_while_nobody_answers),
		T(one_who_says_when_is_not_asked_before),
		T(waits_without_an_answer_double_for_each_round_of_addresses),
		T(a_refusal_waits_for_half_of_the_longest_wait_and_by_chance_for_all),
		T(an_id_is_asked_for_again_by_chance_half_as_late),
		T(who_says_when_is_asked_then),
		T(of_those_that_say_when_the_first_has_its_turn),
		T(who_waits_to_be_asked_is_passed_by_in_their_order),
		T(of_those_that_say_the_same_the_next_has_its_turn),
		T(a_question_without_an_answer_does_not_hold_up_others),
		T(what_is_wanted_goes_before_what_is_known),
		T(a_schema_for_which_the_registry_always_fails_does_not_hold_up_known_ones),
		T(who_lets_nobody_in_is_asked_after_a_pause),
		T(what_was_not_refused_goes_before_what_was),
	};

	prepare_libraries();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
