/* SPDX-License-Identifier: Apache-2.0 */
/* registry: the client's requests, its reactions to answers, and its status. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include "faults.h"
#include "registry_kit.h"
#include "registry/answer.h"
#include "registry/cache.h"
#include "timers.h"

static void
an_id_is_asked_for_once(void **state)
{
	const char *urls[] = { url };
	struct registry_options o = options(urls, 1);
	char *question = registry_request_body(SCHEMA);

	(void)state;
	o.cache_file = cache;
	opens(&o);
	assert_int_equal(status().state, REGISTRY_IDLE);
	assert_int_equal(id_of("a-value", 15), -EAGAIN);
	assert_int_equal(status().state, REGISTRY_ASKING);
	assert_int_equal(status().wanted, 1);
	assert_true(wait_for(is_ok));
	assert_int_equal(id_of("a-value", 15), 7);
	assert_int_equal(server.method, EVHTTP_REQ_POST);
	assert_string_equal(server.uri, "/base/subjects/a-value/versions");
	assert_string_equal(server.asked, question);
	assert_string_equal(server.type, "application/vnd.schemaregistry.v1+json");
	assert_non_null(strstr(server.accept, "application/json"));
	assert_string_equal(server.agent, "sluice/" SLUICE_VERSION);
	assert_string_equal(server.authorization, "");
	assert_int_equal(changes, 1);
	assert_int_equal(status().requests, 1);
	assert_int_equal(status().failures, 0);
	assert_int_equal(status().known, 1);
	assert_int_equal(status().wanted, 0);
	assert_string_equal(status().error, "");
	assert_int_equal(status().error_us, 0);
	turn_for(100);
	assert_int_equal(server.requests, 1);	/* it is not asked again before recheck_ms */
	free(question);

	/* What was learnt is kept, and given out by the next one that runs once it is verified. */
	registry_close(r);
	server.status = 503;
	opens(&o);
	assert_int_equal(id_of("a-value", 15), -EAGAIN);
	assert_int_equal(status().unverified, 1);
	assert_true(wait_for(is_asked_twice));
	assert_int_equal(id_of("a-value", 15), -EAGAIN);
	server.status = 200;
	assert_true(wait_for(is_ok));
	assert_int_equal(id_of("a-value", 15), 7);
	assert_int_equal(status().unverified, 0);
	assert_int_equal(status().known, 1);
}

static bool
is_trusted(void)
{
	return status().state == REGISTRY_OK;
}

/* A missing answer proves nothing about an id, nor does a refusal that does not concern the schema. */
static void
a_kept_id_is_trusted_after_a_while_without_a_verdict(void **state)
{
	static const int statuses[] = { 503, 401 };
	const char *urls[] = { url };
	struct registry_options o = options(urls, 1);

	(void)state;
	o.cache_file = cache;
	opens(&o);
	id_of("a-value", 15);
	assert_true(wait_for(is_ok));
	registry_close(r);
	for (size_t i = 0; i < 2; i++) {
		int64_t began_us = clock_us(CLOCK_MONOTONIC);

		server.status = statuses[i];
		o.trust_ms = 100;
		opens(&o);
		assert_int_equal(id_of("a-value", 15), -EAGAIN);
		changes = 0;
		assert_true(wait_for(is_trusted));
		assert_true(clock_us(CLOCK_MONOTONIC) - began_us >= 100000);
		assert_true(changes > 0);
		assert_int_equal(id_of("a-value", 15), 7);
		assert_int_equal(status().unverified, 1);
		assert_int_equal(registry_epoch(r), 0);
		server.status = 200;
		server.body = i == 0 ? "{\"id\":7}" : "{\"id\":8}";
		assert_true(wait_for(is_ok));
		assert_int_equal(id_of("a-value", 15), 7 + i);
		assert_int_equal(registry_epoch(r), i);		/* only a change begins one */
		registry_close(r);
	}
	/* An id that is wanted later does not wait as long again. */
	server.status = 503;
	o.trust_ms = 300;
	opens(&o);
	assert_int_equal(id_of("b-value", 15), -EAGAIN);
	assert_true(wait_for(is_away));
	turn_for(300);
	assert_int_equal(id_of("a-value", 15), -EAGAIN);	/* not within the call */
	for (int i = 0; i < 20 && id_of("a-value", 15) != 8; i++)
		turn_for(5);
	assert_int_equal(id_of("a-value", 15), 8);
	registry_close(r);
	/* No answer at all, for longer. */
	server.status = 200;
	o.trust_ms = 100;
	server.is_silent = true;
	opens(&o);
	assert_int_equal(id_of("a-value", 15), -EAGAIN);
	assert_true(wait_for(is_trusted));
	assert_int_equal(id_of("a-value", 15), 8);
}

static bool
is_held(void)
{
	return server.held != NULL;
}

/* Answers the request that the server holds. */
static void
answer_held(void)
{
	struct evbuffer *answer = evbuffer_new();

	evbuffer_add_printf(answer, "%s", server.body);
	evhttp_send_reply(server.held, 200, NULL, answer);
	server.held = NULL;
	evbuffer_free(answer);
}

/* A registry that is slow has a verdict on each: an id that it has replaced is not given out before its turn comes. */
static void
no_id_is_trusted_while_the_registry_answers_for_others(void **state)
{
	const char *urls[] = { url };
	struct registry_options o = options(urls, 1);

	(void)state;
	o.cache_file = cache;
	opens(&o);
	id_of("a-value", 15);
	id_of("b-value", 15);
	assert_true(wait_for(is_ok));
	registry_close(r);
	server.is_silent = true;
	o.trust_ms = 100;
	timers.now_us = START_US;
	opens(&o);
	assert_int_equal(id_of("a-value", 15), -EAGAIN);
	assert_int_equal(id_of("b-value", 15), -EAGAIN);
	assert_true(wait_for(is_held));
	timers.now_us += 90 * MS;
	answer_held();
	assert_true(wait_for(is_held));		/* with the request for the other id */
	timers.now_us += 50 * MS;
	turn_for(150);
	assert_int_equal(status().unverified, 1);
	assert_true((id_of("a-value", 15) == 7) != (id_of("b-value", 15) == 7));
	timers.now_us += 100 * MS;
	assert_true(wait_for(is_trusted));
	assert_int_equal(id_of("a-value", 15), 7);
	assert_int_equal(id_of("b-value", 15), 7);
	timers.now_us = 0;
}

/* While the agent did not run, the registry may have answered. */
static void
no_id_is_trusted_because_the_agent_was_stopped(void **state)
{
	const char *urls[] = { url };
	struct registry_options o = options(urls, 1);

	(void)state;
	o.cache_file = cache;
	opens(&o);
	id_of("a-value", 15);
	assert_true(wait_for(is_ok));
	registry_close(r);
	server.is_silent = true;
	o.trust_ms = 100;
	timers.now_us = START_US;
	opens(&o);
	assert_int_equal(id_of("a-value", 15), -EAGAIN);
	assert_true(wait_for(is_held));
	timers.now_us += 60 * 1000 * MS;
	turn_for(150);
	assert_int_equal(id_of("a-value", 15), -EAGAIN);
	/* Where that happens again and again, it is trusted at last. */
	timers.now_us += 60 * 1000 * MS;
	assert_true(wait_for(is_trusted));
	assert_int_equal(id_of("a-value", 15), 7);
	timers.now_us = 0;
}

static bool
has_new_epoch(void)
{
	return registry_epoch(r) > 0;
}

static void
with_one_id_changed_the_others_wait_until_they_are_verified(void **state)
{
	const char *urls[] = { url };
	struct registry_options o = options(urls, 1);
	uint64_t epoch;

	(void)state;
	o.cache_file = cache;
	o.recheck_ms = 20;
	o.trust_ms = 50;
	opens(&o);
	id_of("d-value", 4);
	assert_true(wait_for(is_ok));
	registry_close(r);
	/* Of an id that this agent does not ask for, the cache alone knows. */
	opens(&o);
	id_of("a-value", 1);
	id_of("b-value", 2);
	id_of("c-value", 3);
	assert_true(wait_for(is_ok));
	assert_int_equal(registry_epoch(r), 0);
	server.refuses = "/a-value";
	server.refusal = 503;
	server.body = "{\"id\":8}";
	changes = 0;
	assert_true(wait_for(has_new_epoch));
	assert_true(changes > 0);
	assert_int_equal(id_of("a-value", 1), -EAGAIN);
	/* However long that takes: it is not trusted, nor is it by the next agent, which sees no change. */
	server.refuses = NULL;
	server.status = 503;
	turn_for(200);
	assert_int_equal(id_of("a-value", 1), -EAGAIN);
	registry_close(r);
	opens(&o);
	id_of("a-value", 1);
	id_of("d-value", 4);
	turn_for(200);
	assert_int_equal(id_of("a-value", 1), -EAGAIN);
	assert_int_equal(id_of("d-value", 4), -EAGAIN);
	registry_close(r);
	/* Each of them has changed, and is asked for once. */
	server.status = 200;
	server.body = "{\"id\":7}";
	o.trust_ms = 0;
	opens(&o);
	id_of("a-value", 1);
	id_of("b-value", 2);
	id_of("c-value", 3);
	assert_true(wait_for(is_ok));
	epoch = registry_epoch(r);
	server.body = "{\"id\":9}";
	for (int i = 0; i < 200 && registry_epoch(r) == epoch; i++)
		turn_for(10);
	assert_true(wait_for(is_ok));
	turn_for(100);
	assert_int_equal(registry_epoch(r), epoch + 1);
	assert_int_equal(id_of("a-value", 1), 9);
	assert_int_equal(id_of("b-value", 2), 9);
	assert_int_equal(id_of("c-value", 3), 9);
}

/* Ids that were trusted while the registry was away are no better than ids that it has confirmed. */
static void
with_one_id_changed_the_others_are_no_longer_trusted(void **state)
{
	const char *urls[] = { url };
	struct registry_options o = options(urls, 1);

	(void)state;
	o.cache_file = cache;
	o.trust_ms = 500;
	opens(&o);
	id_of("a-value", 1);
	id_of("b-value", 2);
	assert_true(wait_for(is_ok));
	registry_close(r);
	server.status = 503;
	opens(&o);
	id_of("a-value", 1);
	id_of("b-value", 2);
	assert_true(wait_for(is_trusted));
	assert_int_equal(id_of("b-value", 2), 7);
	/* What answers is another registry, and does so for one of them. */
	server.status = 200;
	server.body = "{\"id\":8}";
	server.refuses = "/b-value";
	server.refusal = 503;
	assert_true(wait_for(has_new_epoch));
	assert_int_equal(id_of("a-value", 1), 8);
	assert_int_equal(id_of("b-value", 2), -EAGAIN);
	server.refuses = NULL;
	assert_true(wait_for(is_ok));
	assert_int_equal(id_of("b-value", 2), 8);
}

/* However many are known, one is asked for in each interval, in turn. */
static void
known_ids_are_asked_for_again_in_turn(void **state)
{
	static const int64_t want_ms[] = { 1500, 1500, 1500, 1500, 1500, 1500 };
	const char *urls[] = { url };
	struct registry_options o = options(urls, 1);

	(void)state;
	o.recheck_ms = 3000;
	opens_at_once(&o, false);
	id_of("s0", 1);
	id_of("s1", 1);
	timers.n = 0;
	timers.waits_us[0] = 0;
	id_of("s2", 1);
	expect_waits(want_ms, 6);
	for (unsigned i = 3; i < 8; i++)
		assert_int_equal(server.uris[i][strlen("/base/subjects/s")], '0' + (char)(i % 3));
}

static void
a_lookup_registers_nothing(void **state)
{
	const char *urls[] = { url };
	struct registry_options o = options(urls, 1);

	(void)state;
	o.lookup_only = true;
	opens(&o);
	id_of("a-value", 0);	/* which is a fingerprint as any other */
	assert_true(wait_for(is_ok));
	assert_string_equal(server.uri, "/base/subjects/a-value");
}

static void
credentials_go_with_each_question(void **state)
{
	char with_user[96];
	const char *plain[] = { url }, *own[] = { with_user };
	const struct {
		const char *const *urls;
		const char *user, *password, *token, *want;
	} cases[] = {
		{ plain, "me", "hunter2", NULL, "Basic bWU6aHVudGVyMg==" },
		{ plain, NULL, NULL, "t0ken", "Bearer t0ken" },
		{ own, "me", "hunter2", NULL, "Basic eW91OnNlY3JldA==" },	/* the URL's win */
		{ own, NULL, NULL, "t0ken", "Basic eW91OnNlY3JldA==" },
	};

	(void)state;
	snprintf(with_user, sizeof(with_user), "http://you:secret@%s", url + strlen("http://"));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct registry_options o = options(cases[i].urls, 1);

		o.user = cases[i].user;
		o.password = cases[i].password;
		o.token = cases[i].token;
		opens(&o);
		id_of("a-value", i);
		assert_true(wait_for(is_ok));
		assert_string_equal(server.authorization, cases[i].want);
		registry_close(r);
		r = NULL;
	}
}

static void
credentials_that_the_server_repeats_are_in_no_error(void **state)
{
	char with_user[96];
	const char *plain[] = { url }, *own[] = { with_user };
	const struct {
		const char *const *urls;
		const char *user, *password, *token, *secret, *header;
	} cases[] = {
		{ plain, "me", "hunter2", NULL, "hunter2", "bWU6aHVudGVyMg==" },
		{ plain, NULL, NULL, "t0ken", "t0ken", "t0ken" },
		{ own, "me", "hunter2", NULL, "S3cret", "eW91OlMzY3JldA==" },
	};

	(void)state;
	snprintf(with_user, sizeof(with_user), "http://you:S3cret@%s", url + strlen("http://"));
	server.status = 401;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct registry_options o = options(cases[i].urls, 1);
		char body[128];

		snprintf(body, sizeof(body), "{\"message\":\"neither %s nor %s\"}", cases[i].secret, cases[i].header);
		server.body = body;
		o.user = cases[i].user;
		o.password = cases[i].password;
		o.token = cases[i].token;
		opens(&o);
		id_of("a-value", i);
		assert_true(wait_for(is_refused));
		assert_non_null(strstr(status().error, "neither *"));
		assert_null(strstr(status().error, cases[i].secret));
		assert_null(strstr(status().error, cases[i].header));
		registry_close(r);
		r = NULL;
	}
}

static void
a_no_is_asked_again_until_it_is_a_yes(void **state)
{
	const char *urls[] = { url };
	struct registry_options o = options(urls, 1);
	unsigned before;

	(void)state;
	server.status = 409;
	server.body = "{\"error_code\":409,\"message\":\"incompatible\"}";
	o.cache_file = cache;
	opens(&o);
	id_of("a-value", 15);
	assert_true(wait_for(is_refused));
	assert_int_equal(id_of("a-value", 15), -EACCES);
	assert_non_null(strstr(status().error, "answers 409 (\"incompatible\")"));
	assert_true(status().error_us > 0);
	assert_int_equal(changes, 1);
	assert_true(wait_for(is_failed_each_time));
	assert_true(wait_for(is_asked_four_times));
	assert_int_equal(changes, 1);		/* the same no is no news */
	for (int i = 2; i < 4; i++)		/* by chance half as late */
		assert_true(server.at_us[i] - server.at_us[i - 1] >= 9000);
	assert_true(wait_for(is_failed_each_time));
	server.status = 200;
	server.body = "{\"id\":9}";
	before = status().failures;
	assert_true(wait_for(is_ok));
	assert_int_equal(id_of("a-value", 15), 9);
	assert_int_equal(status().failures, before);
	assert_int_equal(changes, 2);
	id_of("b-value", 15);		/* nothing is left of it */
	assert_int_equal(status().state, REGISTRY_ASKING);
}

static bool
is_refused_twice(void)
{
	return status().failures == 2;
}

/* The sentence and the state are what they were, and yet one more id is known to be refused. */
static void
each_schema_that_is_refused_is_news(void **state)
{
	const char *urls[] = { url };
	struct registry_options o = options(urls, 1);

	(void)state;
	server.status = 409;
	o.retry_max_ms = 3600000;
	opens(&o);
	id_of("a-value", 1);
	id_of("a-value", 2);
	assert_true(wait_for(is_refused_twice));
	assert_int_equal(id_of("a-value", 1), -EACCES);
	assert_int_equal(id_of("a-value", 2), -EACCES);
	assert_int_equal(changes, 2);
}

static void
an_answer_of_any_kind_ends_being_away(void **state)
{
	const char *urls[] = { url };
	struct registry_options o = options(urls, 1);

	(void)state;
	server.status = 503;
	opens(&o);
	id_of("a-value", 1);
	assert_true(wait_for(is_away));
	server.status = 409;
	assert_true(wait_for(is_refused));
}

static void
silence_is_reported_with_the_time_that_there_was(void **state)
{
	const char *urls[] = { url };
	struct registry_options o = options(urls, 1);

	(void)state;
	server.is_silent = true;
	o.timeout_ms = 1;
	opens(&o);
	id_of("a-value", 1);
	assert_true(wait_for(is_away));
	assert_non_null(strstr(status().error, " within 1 ms"));
}

static void
a_ca_file_that_is_given_is_the_one_in_use(void **state)
{
	char https[72], there[128], want[256];
	const char *urls[] = { https };
	struct registry_options o = options(urls, 1);

	(void)state;
	snprintf(https, sizeof(https), "https%s", url + strlen("http"));
	tree_write(&tree, "there", "x");
	snprintf(there, sizeof(there), "%s", tree_path(&tree, "there"));
	o.ca_file = there;
	opens(&o);
	id_of("a-value", 1);
	assert_true(wait_for(is_away));
	snprintf(want, sizeof(want), "the CA file %s cannot be used", there);
	assert_non_null(strstr(status().error, want));
}

static void
an_id_that_is_taken_back_is_forgotten_on_disk_too(void **state)
{
	const char *urls[] = { url };
	struct registry_options o = options(urls, 1);
	int32_t id;
	struct registry_cache *c;

	(void)state;
	o.cache_file = cache;
	o.recheck_ms = 20;
	opens(&o);
	id_of("a-value", 15);
	assert_true(wait_for(is_ok));
	server.body = "{\"id\":8}";	/* set up anew, with other ids */
	for (int i = 0; i < 200 && id_of("a-value", 15) != 8; i++)
		turn_for(10);
	assert_int_equal(id_of("a-value", 15), 8);
	assert_int_equal(changes, 2);
	assert_int_equal(registry_epoch(r), 1);
	server.status = 422;
	server.body = "{\"error_code\":42201}";
	assert_true(wait_for(is_refused));
	assert_int_equal(id_of("a-value", 15), -EACCES);
	assert_int_equal(changes, 3);
	assert_int_equal(registry_epoch(r), 2);
	registry_close(r);
	r = NULL;
	assert_int_equal(registry_cache_open(cache, &c, error, sizeof(error)), 0);
	assert_int_equal(registry_cache_get(c, url, "a-value", 15, &id), -ENOENT);
	registry_cache_close(c);
}

static void
without_an_answer_the_next_has_its_turn(void **state)
{
	/* A port without a listener, then the server. */
	const char *urls[] = { "http://127.0.0.1:9/none", url };
	struct registry_options o = options(urls, 2);

	(void)state;
	opens(&o);
	assert_string_equal(status().url, "http://127.0.0.1:9/none");
	id_of("a-value", 15);
	assert_true(wait_for(is_ok));
	assert_string_equal(status().url, url);
	assert_int_equal(status().requests, 2);
	assert_int_equal(status().failures, 1);
	assert_int_equal(changes, 2);		/* away, and known */
	assert_non_null(strstr(status().error, "http://127.0.0.1:9/none"));
	assert_non_null(strstr(status().error, "port 9"));	/* libcurl's own, more specific message */
}

static void
who_does_not_let_us_in_is_passed_by(void **state)
{
	char other[72];
	const char *urls[] = { url, other };
	struct registry_options o = options(urls, 2);

	(void)state;
	snprintf(other, sizeof(other), "%s/2", url);
	server.status = 401;
	o.retry_max_ms = 1000;
	opens(&o);
	id_of("a-value", 15);
	assert_true(wait_for(is_refused));
	assert_int_equal(server.requests, 2);		/* both, at once, and then a pause */
	assert_string_equal(server.uri, "/base/2/subjects/a-value/versions");
	assert_true(server.at_us[1] - server.at_us[0] < 500000);
	turn_for(100);
	assert_int_equal(server.requests, 2);
}

static bool
is_asked_at_the_first(void)
{
	return strncmp(server.uri, "/base/subjects", 14) == 0;
}

/* A success ends the series of refusals, after which there is a pause. */
static void
who_let_nobody_in_before_a_yes_does_not_count(void **state)
{
	char other[72];
	const char *urls[] = { url, other };
	struct registry_options o = options(urls, 2);

	(void)state;
	snprintf(other, sizeof(other), "%s/2", url);
	server.refuses = "/base/subjects";
	server.refusal = 401;
	o.retry_max_ms = 3600000;
	o.recheck_ms = 20;
	opens(&o);
	id_of("a-value", 15);
	assert_true(wait_for(is_ok));
	assert_string_equal(status().url, other);
	server.refuses = "/base/2/";
	assert_true(wait_for(is_asked_at_the_first));
	assert_true(wait_for(is_ok));
}

static void
all_that_are_wanted_are_asked_for(void **state)
{
	const char *urls[] = { url };
	struct registry_options o = options(urls, 1);

	(void)state;
	opens(&o);
	for (unsigned i = 0; i < 10; i++) {
		char subject[16];

		snprintf(subject, sizeof(subject), "s%u", i);
		assert_int_equal(id_of(subject, i), -EAGAIN);
	}
	assert_int_equal(id_of("s0", 1), -EAGAIN);	/* another schema of the same subject */
	assert_true(wait_for(is_ok));
	assert_int_equal(server.requests, 11);
	assert_int_equal(status().known, 11);
	assert_int_equal(id_of("s3", 3), 7);
	assert_int_equal(id_of("s4", 3), -EAGAIN);
}

static void
what_cannot_work_is_a_sentence(void **state)
{
	const char *urls[] = { url };
	char there[128];
	const struct {
		struct registry_options o;
		int error;
		const char *says;
	} cases[] = {
		{ { .urls = urls }, -EINVAL, "registry.urls is empty" },
		{ { .user = "u", .token = "t" }, -EINVAL, "registry.user and registry.token are both set" },
		{ { .password = "p" }, -EINVAL, "registry.password is set without registry.user" },
		{ { .user = "a:b", .password = "p" }, -EINVAL, "a colon" },
		{ { .user = "a\n", .password = "p" }, -EINVAL, "control character" },
		{ { .user = "a", .password = "p\x7f" }, -EINVAL, "control character" },
		{ { .token = "t\x1f" }, -EINVAL, "control character" },
		{ { .cert_file = there }, -EINVAL, "registry.cert_file and registry.key_file is set without the other" },
		{ { .key_file = there }, -EINVAL, "registry.cert_file and registry.key_file is set without the other" },
		{ { .ca_file = "/no/ca" }, -ENOENT, "registry.ca_file: /no/ca cannot be read" },
		{ { .cert_file = "/no/cert", .key_file = there }, -ENOENT, "registry.cert_file: /no/cert cannot be read" },
		{ { .cert_file = there, .key_file = "/no/key" }, -ENOENT, "registry.key_file: /no/key cannot be read" },
	};
	struct registry_options fine = { .urls = urls, .n_urls = 1, .user = " ~", .password = "p", .ca_file = there,
		.cert_file = there, .key_file = there };

	(void)state;
	tree_write(&tree, "there", "x");
	snprintf(there, sizeof(there), "%s", tree_path(&tree, "there"));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct registry_options o = cases[i].o;

		o.n_urls = i > 0;
		o.urls = urls;
		assert_int_equal(registry_open(base, &o, on_change, &changes, &r, error, sizeof(error)),
		    cases[i].error);
		assert_null(r);
		if (strstr(error, cases[i].says) == NULL)
			fail_msg("%s", error);
	}
	urls[0] = "gopher://x";
	assert_int_equal(registry_open(base, &fine, on_change, &changes, &r, error, sizeof(error)), -EINVAL);
	assert_non_null(strstr(error, "gopher"));
	assert_null(strstr(error, "no memory"));
	urls[0] = url;
	opens(&fine);
	assert_string_equal(error, "");
}

static void
a_cache_that_cannot_be_written_is_reported_once(void **state)
{
	const char *urls[] = { url };
	struct registry_options o = options(urls, 1);

	(void)state;
	tree_mkdir(&tree, "dir");
	o.cache_file = tree_path(&tree, "dir");
	opens(&o);
	id_of("a-value", 15);
	assert_true(wait_for(is_ok));
	turn_for(20);
	assert_non_null(strstr(status().error, "schema ids cannot be saved (Is a directory)"));
	assert_int_equal(id_of("a-value", 15), 7);
	assert_int_equal(changes, 2);
	id_of("b-value", 15);
	assert_true(wait_for(is_ok));
	turn_for(20);
	assert_int_equal(changes, 3);
	/* The end is one more occasion. */
	assert_int_equal(rmdir(o.cache_file), 0);
	registry_close(r);
	r = NULL;
	assert_int_equal(access(o.cache_file, F_OK), 0);
}

static bool
is_failed_again(void)
{
	return status().failures >= 2;
}

static bool
is_not_kept(void)
{
	return strstr(status().error, "schema ids cannot be saved") != NULL;
}

static void
a_cache_that_can_be_written_no_more_is_reported_and_hides_no_other_error(void **state)
{
	const char *urls[] = { url };
	struct registry_options o = options(urls, 1);

	(void)state;
	o.cache_file = cache;
	opens(&o);
	id_of("a-value", 15);
	assert_true(wait_for(is_ok));
	assert_string_equal(status().error, "");
	assert_int_equal(unlink(cache), 0);
	tree_mkdir(&tree, "ids.json");
	id_of("b-value", 15);
	assert_true(wait_for(is_not_kept));
	server.status = 503;
	id_of("c-value", 15);
	assert_true(wait_for(is_away));
	assert_true(wait_for(is_failed_again));
	assert_non_null(strstr(status().error, "answers 503"));
}

static void
each_state_has_a_name(void **state)
{
	(void)state;
	assert_string_equal(registry_state_name(REGISTRY_IDLE), "idle");
	assert_string_equal(registry_state_name(REGISTRY_OK), "ok");
	assert_string_equal(registry_state_name(REGISTRY_ASKING), "asking");
	assert_string_equal(registry_state_name(REGISTRY_AWAY), "away");
	assert_string_equal(registry_state_name(REGISTRY_REFUSED), "refused");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_id_is_asked_for_once),
		T(a_kept_id_is_trusted_after_a_while_without_a_verdict),
		T(no_id_is_trusted_while_the_registry_answers_for_others),
		T(no_id_is_trusted_because_the_agent_was_stopped),
		T(with_one_id_changed_the_others_wait_until_they_are_verified),
		T(with_one_id_changed_the_others_are_no_longer_trusted),
		T(known_ids_are_asked_for_again_in_turn),
		T(a_lookup_registers_nothing),
		T(credentials_go_with_each_question),
		T(credentials_that_the_server_repeats_are_in_no_error),
		T(a_no_is_asked_again_until_it_is_a_yes),
		T(each_schema_that_is_refused_is_news),
		T(an_answer_of_any_kind_ends_being_away),
		T(silence_is_reported_with_the_time_that_there_was),
		T(a_ca_file_that_is_given_is_the_one_in_use),
		T(an_id_that_is_taken_back_is_forgotten_on_disk_too),
		T(without_an_answer_the_next_has_its_turn),
		T(who_does_not_let_us_in_is_passed_by),
		T(who_let_nobody_in_before_a_yes_does_not_count),
		T(all_that_are_wanted_are_asked_for),
		T(what_cannot_work_is_a_sentence),
		T(a_cache_that_cannot_be_written_is_reported_once),
		T(a_cache_that_can_be_written_no_more_is_reported_and_hides_no_other_error),
		T(each_state_has_a_name),
	};

	prepare_libraries();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
