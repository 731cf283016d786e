/* SPDX-License-Identifier: Apache-2.0 */
/* registry and registry_http against a server on the same loop, which says what a test wants it to say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <curl/curl.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <jansson.h>

#include "base/clock.h"
#include "faults.h"
#include "stream/registry.h"
#include "stream/registry_answer.h"
#include "stream/registry_cache.h"
#include "stream/registry_http.h"
#include "timers.h"
#include "tree.h"

#define SCHEMA "\"int\""

/* The server: how it answers, and what it was asked last. */
static struct {
	int status;
	const char *body;
	const char *retry_after, *location;
	size_t header_bytes, body_bytes;	/* that it adds */
	bool is_silent;
	struct evhttp_request *held;		/* while it is silent */
	unsigned requests;
	enum evhttp_cmd_type method;
	char uri[256], asked[512], authorization[128], type[128], accept[128];
	int64_t at_us[64];
	const char *refuses;			/* 409 for what has this in its address */
	const char *afters[4];			/* Retry-After of the first answers, before the one above */
	char uris[64][64];			/* likewise of the first */
	uint16_t ports[64];			/* and where they came from: another is another connection */
} server;

static struct event_base *base;
static struct evhttp *http;
static struct tree tree;
static char url[64], cache[128];
static struct registry *r;
static unsigned changes;
static char error[512];

static void
keep(char *to, size_t size, const struct evkeyvalq *headers, const char *name)
{
	const char *value = evhttp_find_header(headers, name);

	snprintf(to, size, "%s", value != NULL ? value : "");
}

static void
on_request(struct evhttp_request *q, void *arg)
{
	struct evkeyvalq *in = evhttp_request_get_input_headers(q), *out = evhttp_request_get_output_headers(q);
	struct evbuffer *body = evhttp_request_get_input_buffer(q), *answer;
	size_t n = evbuffer_get_length(body);

	const char *after;
	char *address;

	(void)arg;
	if (server.requests < 64) {
		snprintf(server.uris[server.requests], sizeof(server.uris[0]), "%s", evhttp_request_get_uri(q));
		evhttp_connection_get_peer(evhttp_request_get_connection(q), &address, &server.ports[server.requests]);
	}
	server.at_us[server.requests++ % 64] = clock_us(CLOCK_MONOTONIC);
	server.method = evhttp_request_get_command(q);
	snprintf(server.uri, sizeof(server.uri), "%s", evhttp_request_get_uri(q));
	keep(server.authorization, sizeof(server.authorization), in, "Authorization");
	keep(server.type, sizeof(server.type), in, "Content-Type");
	keep(server.accept, sizeof(server.accept), in, "Accept");
	assert_true(n < sizeof(server.asked));
	evbuffer_remove(body, server.asked, n);
	server.asked[n] = '\0';
	if (server.is_silent) {
		server.held = q;
		return;
	}
	after = server.requests <= 4 ? server.afters[server.requests - 1] : NULL;
	if (after == NULL)
		after = server.retry_after;
	if (after != NULL)
		evhttp_add_header(out, "Retry-After", after);
	if (server.location != NULL)
		evhttp_add_header(out, "Location", server.location);
	for (size_t i = 0; i < server.header_bytes; i += 1000) {
		char name[16], value[1000];

		snprintf(name, sizeof(name), "X-%zu", i);
		memset(value, 'v', sizeof(value));
		value[sizeof(value) - strlen(name) - 5] = '\0';	/* with ": " and the line's end 1,000 */
		evhttp_add_header(out, name, value);
	}
	answer = evbuffer_new();
	evbuffer_add_printf(answer, "%s", server.body);
	for (size_t i = strlen(server.body); i < server.body_bytes; i++)
		evbuffer_add(answer, " ", 1);
	evhttp_send_reply(q, server.refuses != NULL && strstr(server.uri, server.refuses) != NULL ? 409 : server.status,
	    NULL, answer);
	evbuffer_free(answer);
}

static void
on_change(void *arg)
{
	(*(unsigned *)arg)++;
}

static int
setup(void **state)
{
	struct evhttp_bound_socket *bound;
	struct sockaddr_in at;
	socklen_t len = sizeof(at);

	(void)state;
	memset(&server, 0, sizeof(server));
	server.status = 200;
	server.body = "{\"id\":7}";
	changes = 0;
	r = NULL;
	timers = (struct timers){ 0 };
	base = event_base_new();
	http = evhttp_new(base);
	bound = evhttp_bind_socket_with_handle(http, "127.0.0.1", 0);
	if (bound == NULL || getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&at, &len) < 0)
		return -1;
	evhttp_set_gencb(http, on_request, NULL);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/base", ntohs(at.sin_port));
	tree_init(&tree);
	snprintf(cache, sizeof(cache), "%s", tree_path(&tree, "ids.json"));
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	fault = (struct fault){ 0 };
	registry_close(r);
	timers = (struct timers){ 0 };
	evhttp_free(http);
	event_base_free(base);
	tree_done(&tree);
	return 0;
}

static struct registry_status
status(void)
{
	struct registry_status s;

	registry_status(r, &s);
	return s;
}

/* Short waits: a test of them says which. */
static struct registry_options
options(const char *const *urls, size_t n)
{
	return (struct registry_options){ .urls = urls, .n_urls = n, .retry_min_ms = 5, .retry_max_ms = 20,
		.timeout_ms = 5000 };
}

static void
opens(const struct registry_options *o)
{
	if (registry_open(base, o, on_change, &changes, &r, error, sizeof(error)) < 0)
		fail_msg("%s", error);
}

static int
id_of(const char *subject, uint64_t fingerprint)
{
	int32_t id = -1;
	int error_of = registry_id(r, subject, fingerprint, SCHEMA, &id);

	return error_of < 0 ? error_of : id;
}

static bool
is_away(void)
{
	return status().state == REGISTRY_AWAY;
}

static bool
is_refused(void)
{
	return status().state == REGISTRY_REFUSED;
}

static bool
is_ok(void)
{
	return status().state == REGISTRY_OK && status().unverified == 0;
}

/* And none is under way. */
static bool
is_failed_each_time(void)
{
	return status().requests > 0 && status().failures == status().requests;
}

static bool
is_asked_twice(void)
{
	return server.requests >= 2;
}

static bool
is_asked_four_times(void)
{
	return server.requests >= 4;
}

/* Turns the loop until it is so, or for ten seconds. */
static bool
wait_for(bool (*is_so)(void))
{
	for (int i = 0; i < 2000 && !is_so(); i++) {
		struct timeval tv = { 0, 5000 };

		event_base_loopexit(base, &tv);
		event_base_dispatch(base);
	}
	return is_so();
}

/* For a time in which something must not happen. */
static void
turn_for(int ms)
{
	struct timeval tv = { 0, ms * 1000 };

	event_base_loopexit(base, &tv);
	event_base_dispatch(base);
}

static void
an_id_is_asked_for_once(void **state)
{
	const char *urls[] = { url };
	struct registry_options o = options(urls, 1);
	char *question = registry_question(SCHEMA);

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

	/* What was learnt is kept, and verified by the next one that runs. */
	registry_close(r);
	server.status = 503;
	opens(&o);
	assert_int_equal(id_of("a-value", 15), 7);
	assert_int_equal(status().unverified, 1);
	assert_true(wait_for(is_asked_twice));
	assert_int_equal(id_of("a-value", 15), 7);	/* no answer says nothing about it */
	server.status = 200;
	assert_true(wait_for(is_ok));
	assert_int_equal(status().unverified, 0);
	assert_int_equal(status().known, 1);
}

static void
a_lookup_registers_nothing(void **state)
{
	const char *urls[] = { url };
	struct registry_options o = options(urls, 1);

	(void)state;
	o.lookup_only = true;
	opens(&o);
	id_of("a-value", 15);
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
	server.status = 422;
	server.body = "{\"error_code\":42201}";
	assert_true(wait_for(is_refused));
	assert_int_equal(id_of("a-value", 15), -EACCES);
	assert_int_equal(changes, 3);
	registry_close(r);
	r = NULL;
	assert_int_equal(registry_cache_open(cache, &c, error, sizeof(error)), 0);
	assert_int_equal(registry_cache_get(c, url, "a-value", 15, &id), -ENOENT);
	registry_cache_close(c);
}

static void
without_an_answer_the_next_has_its_turn(void **state)
{
	/* A port that nobody listens on, then the server. */
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
}

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
	assert_non_null(strstr(status().error, "asked too much"));
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
		{ { .urls = urls }, -EINVAL, "no URL" },
		{ { .user = "u", .token = "t" }, -EINVAL, "both a user and a token" },
		{ { .password = "p" }, -EINVAL, "a password and no user" },
		{ { .user = "a:b", .password = "p" }, -EINVAL, "a colon" },
		{ { .user = "a\n", .password = "p" }, -EINVAL, "control character" },
		{ { .user = "a", .password = "p\x7f" }, -EINVAL, "control character" },
		{ { .token = "t\x1f" }, -EINVAL, "control character" },
		{ { .cert_file = there }, -EINVAL, "a certificate without a key" },
		{ { .key_file = there }, -EINVAL, "a certificate without a key" },
		{ { .ca_file = "/no/ca" }, -ENOENT, "CA file /no/ca cannot be read" },
		{ { .cert_file = "/no/cert", .key_file = there }, -ENOENT, "certificate /no/cert cannot be read" },
		{ { .cert_file = there, .key_file = "/no/key" }, -ENOENT, "key /no/key cannot be read" },
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
a_cache_that_cannot_be_written_is_told_once(void **state)
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
	assert_non_null(strstr(status().error, "schema ids cannot be kept on disk (Is a directory)"));
	assert_int_equal(id_of("a-value", 15), 7);
	assert_int_equal(changes, 2);
	id_of("b-value", 15);
	assert_true(wait_for(is_ok));
	turn_for(20);
	assert_int_equal(changes, 3);
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

/* --- when it asks, by a clock that goes on by what it waits for --- */

#define MS INT64_C(1000)
#define START_US (INT64_C(1000) * 1000 * MS)

/* The waits are over at once; what is drawn is the least or the most. */
static void
opens_at_once(const struct registry_options *o, bool is_most)
{
	opens(o);
	timers = (struct timers){ .arg = r, .over_at_once = SIZE_MAX, .now_us = START_US, .has_random = true,
		.random = is_most ? UINT32_MAX : 0 };
}

static unsigned wanted_waits;

static bool
has_waited(void)
{
	return timers.n >= wanted_waits;
}

/* After the first, which is none: what was asked for goes through the loop. */
static void
expect_waits(const int64_t *want_ms, unsigned n)
{
	wanted_waits = n + 1;
	timers.over_at_once = n;		/* that after the last does not come */
	assert_true(n < 63 && wait_for(has_waited));
	assert_int_equal(timers.waits_us[0], 0);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(timers.waits_us[i + 1], want_ms[i] * MS);
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
		{ 3000, false, { 1500, 1500, 1500, 1500 } },
		{ 3000, true, { 2999, 2999, 2999, 2999 } },
		{ 3001, false, { 1501, 1501, 1501, 1501 } },
		{ 0, false, { 5000, 1795000, 5000, 1795000 } },
		{ 0, true, { 5000, 3594999, 5000, 3594999 } },
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
	} cases[] = { { "2", 2000 }, { "1", 1000 }, { "29", 29000 }, { "30", 30000 }, { "31", 30000 }, { "3600", 30000 },
		{ "0", 100 } };
	const char *urls[] = { url };

	(void)state;
	server.status = 429;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct registry_options o = options(urls, 1);

		o.retry_min_ms = 100;
		o.retry_max_ms = 30000;
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
	assert_int_equal(id_of("known", 15), 5);
	assert_int_equal(id_of("refused", 1), -EAGAIN);
	wanted_waits = timers.over_at_once = 6;
	assert_true(wait_for(has_waited));
	/* At first both are due, and half a second later again. */
	assert_non_null(strstr(server.uris[0], "/refused"));
	assert_non_null(strstr(server.uris[1], "/known"));
	assert_non_null(strstr(server.uris[2], "/refused"));
	assert_non_null(strstr(server.uris[3], "/known"));
	assert_int_equal(id_of("refused", 1), -EACCES);
	assert_int_equal(id_of("known", 15), 7);
	assert_int_equal(status().known, 1);
	assert_int_equal(status().wanted, 1);
	assert_int_equal(status().unverified, 0);
}

static void
who_lets_nobody_in_is_asked_after_a_pause(void **state)
{
	static const int64_t want_ms[] = { 500, 500, 500 };
	char other[72];
	const char *urls[] = { url, other };
	struct registry_options o = options(urls, 2);

	(void)state;
	snprintf(other, sizeof(other), "%s/2", url);
	server.status = 401;
	o.retry_max_ms = 1000;
	opens_at_once(&o, false);
	id_of("a-value", 15);
	expect_waits(want_ms, 3);
	for (unsigned i = 0; i < 4; i++)
		assert_string_equal(server.uris[i], i % 2 ? "/base/2/subjects/a-value/versions" :
		    "/base/subjects/a-value/versions");
}

/* --- without memory --- */

static void *
library_alloc(size_t size)
{
	return fault_is_due(FAULT_LIBRARY) ? NULL : __real_malloc(size);
}

static void *
library_grow(void *data, size_t size)
{
	return fault_is_due(FAULT_LIBRARY) ? NULL : __real_realloc(data, size);
}

static void
without_memory_it_does_not_open(void **state)
{
	const char *urls[] = { url, "http://b/x" };
	char there[128];
	unsigned n;

	(void)state;
	tree_write(&tree, "there", "x");
	snprintf(there, sizeof(there), "%s", tree_path(&tree, "there"));
	for (n = 0; n < 1000; n++) {
		struct registry_options o = options(urls, 2);
		int opened;

		o.user = "me";
		o.password = "hunter2";
		o.ca_file = o.cert_file = o.key_file = there;
		o.cache_file = cache;
		error[0] = '\0';
		fault = (struct fault){ .calls = FAULT_MEMORY | FAULT_TEXT | FAULT_LIBRARY, .skip = n, .times = 1,
			.error = ENOMEM };
		opened = registry_open(base, &o, on_change, &changes, &r, error, sizeof(error));
		fault.calls = 0;
		if (fault.hit == 0)
			break;
		assert_int_equal(opened, -ENOMEM);
		assert_null(r);
		assert_string_equal(error, "no memory for the registry client");
	}
	assert_in_range(n, 10, 999);
	assert_non_null(r);
	assert_string_equal(error, "");
	registry_close(r);
	/* The bearer's word is another copy. */
	for (n = 0; n < 1000; n++) {
		struct registry_options o = options(urls, 1);

		o.token = "t0ken";
		r = NULL;
		fault = (struct fault){ .calls = FAULT_MEMORY, .skip = n, .times = 1, .error = ENOMEM };
		(void)registry_open(base, &o, on_change, &changes, &r, error, sizeof(error));
		fault.calls = 0;
		if (fault.hit == 0)
			break;
		assert_null(r);
	}
	assert_in_range(n, 4, 999);
}

static void
without_memory_an_id_is_asked_for_later(void **state)
{
	const char *urls[] = { url };
	struct registry_options o = options(urls, 1);
	unsigned n;

	(void)state;
	o.retry_max_ms = 700;
	opens_at_once(&o, true);
	for (n = 0; n < 100; n++) {
		int id;

		fault = (struct fault){ .calls = FAULT_MEMORY, .skip = n, .times = 1, .error = ENOMEM };
		id = id_of("a-value", 15);
		fault.calls = 0;
		if (fault.hit == 0)
			break;
		assert_int_equal(id, -ENOMEM);
		assert_int_equal(status().wanted, 0);
	}
	assert_in_range(n, 2, 99);
	assert_int_equal(id_of("a-value", 15), -EAGAIN);
	/* Its address cannot be made: that is tried again after the longest wait. */
	fault = (struct fault){ .calls = FAULT_TEXT, .times = 2, .error = ENOMEM };
	timers.over_at_once = 3;
	assert_true(wait_for(is_ok));
	assert_int_equal(timers.waits_us[1], 700 * MS);
	assert_int_equal(timers.waits_us[2], 700 * MS);
	assert_int_equal(server.requests, 1);
	assert_int_equal(status().requests, 1);
	assert_int_equal(id_of("a-value", 15), 7);
}

/* --- one POST --- */

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
	assert_string_equal(answer.body, "{\"id\":7}");
	registry_http_close(h);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_id_is_asked_for_once),
		T(a_lookup_registers_nothing),
		T(credentials_go_with_each_question),
		T(a_no_is_asked_again_until_it_is_a_yes),
		T(an_id_that_is_taken_back_is_forgotten_on_disk_too),
		T(without_an_answer_the_next_has_its_turn),
		T(waits_grow_while_nobody_answers),
		T(one_who_says_when_is_not_asked_before),
		T(who_does_not_let_us_in_is_passed_by),
		T(all_that_are_wanted_are_asked_for),
		T(what_cannot_work_is_a_sentence),
		T(a_cache_that_cannot_be_written_is_told_once),
		T(each_state_has_a_name),
		T(waits_without_an_answer_double_for_each_round_of_addresses),
		T(a_refusal_waits_for_half_of_the_longest_wait_and_by_chance_for_all),
		T(an_id_is_asked_for_again_by_chance_half_as_late),
		T(who_says_when_is_asked_then),
		T(of_those_that_say_when_the_first_has_its_turn),
		T(a_question_without_an_answer_does_not_hold_up_others),
		T(what_is_wanted_goes_before_what_is_known),
		T(who_lets_nobody_in_is_asked_after_a_pause),
		T(without_memory_it_does_not_open),
		T(without_memory_an_id_is_asked_for_later),
		T(an_answer_comes_once_and_whole),
		T(an_answer_has_a_largest_size),
		T(silence_has_an_end),
		T(what_is_in_flight_when_it_closes_is_not_told),
		T(a_redirect_keeps_the_question_and_the_scheme),
		T(credentials_are_those_of_this_question),
		T(files_of_tls_are_used),
		T(without_memory_a_question_has_an_end_too),
	};

	/* Before these libraries do anything. */
	event_set_mem_functions(library_alloc, library_grow, free);
	json_set_alloc_funcs(malloc, free);
	/* A proxy of the environment would stand between the two. */
	setenv("no_proxy", "*", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
