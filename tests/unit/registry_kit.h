/*
 * SPDX-License-Identifier: Apache-2.0
 * registry_kit: a client of a registry, and a server on the same loop that a test controls. A test also
 * includes faults.h and timers.h itself, for the linker (CMakeLists.txt).
 */
#ifndef SLUICE_TESTS_UNIT_REGISTRY_KIT_H
#define SLUICE_TESTS_UNIT_REGISTRY_KIT_H

#include <stdlib.h>
#include <unistd.h>

#include <curl/curl.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <jansson.h>

#include "base/clock.h"
#include "faults.h"
#include "registry/registry.h"
#include "timers.h"
#include "tree.h"

#define SCHEMA "\"int\""

/* The server: its answers, and the last request. */
static struct {
	int status;
	const char *body;
	const char *retry_after, *location;
	size_t header_bytes, body_bytes;	/* padding of an answer */
	bool is_silent;
	struct evhttp_request *held;		/* the request that it does not answer while is_silent */
	unsigned requests;
	enum evhttp_cmd_type method;
	char uri[256], asked[512], authorization[128], type[128], accept[128], agent[128];
	size_t asked_bytes, answer_bytes;	/* of the request's body; of the answer with headers */
	int64_t at_us[64];
	const char *refuses;			/* answers 409, or refusal, to a URI that contains this */
	int refusal;
	const char *afters[4];			/* Retry-After of the first answers; then retry_after */
	char uris[64][64];			/* of the first requests */
	uint16_t ports[64];			/* client ports of the first requests: one per connection */
} server;

static struct event_base *base;
static struct evhttp *http;
static struct tree tree;
static char url[64], cache[128];
static struct registry *r;
static unsigned changes;
static char error[512];

static inline void
keep(char *to, size_t size, const struct evkeyvalq *headers, const char *name)
{
	const char *value = evhttp_find_header(headers, name);

	snprintf(to, size, "%s", value != NULL ? value : "");
}

static inline void
on_request(struct evhttp_request *q, void *arg)
{
	struct evkeyvalq *in = evhttp_request_get_input_headers(q), *out = evhttp_request_get_output_headers(q);
	struct evbuffer *body = evhttp_request_get_input_buffer(q), *answer;
	struct bufferevent *connection = evhttp_connection_get_bufferevent(evhttp_request_get_connection(q));
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
	keep(server.agent, sizeof(server.agent), in, "User-Agent");
	server.asked_bytes = evbuffer_get_length(body);
	server.asked[evbuffer_remove(body, server.asked, sizeof(server.asked) - 1)] = '\0';
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
		size_t len = server.header_bytes - i < 1000 ? server.header_bytes - i : 1000;
		char name[16], value[1000];

		snprintf(name, sizeof(name), "X-%zu", i);
		memset(value, 'v', sizeof(value));
		assert_true(len > strlen(name) + 4);
		value[len - strlen(name) - 4] = '\0';	/* len bytes together with ": " and the line end */
		evhttp_add_header(out, name, value);
	}
	answer = evbuffer_new();
	evbuffer_add_printf(answer, "%s", server.body);
	for (size_t i = strlen(server.body); i < server.body_bytes; i++)
		evbuffer_add(answer, " ", 1);
	if (server.refuses != NULL && strstr(server.uri, server.refuses) != NULL)
		evhttp_send_reply(q, server.refusal != 0 ? server.refusal : 409, NULL, answer);
	else
		evhttp_send_reply(q, server.status, NULL, answer);
	server.answer_bytes = evbuffer_get_length(bufferevent_get_output(connection));
	evbuffer_free(answer);
}

static inline void
on_change(void *arg)
{
	(*(unsigned *)arg)++;
}

static inline int
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

static inline int
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

/* --- the client --- */

static inline struct registry_status
status(void)
{
	struct registry_status s;

	registry_status(r, &s);
	return s;
}

/* Returns options with short waits; a test of the waits sets its own. */
static inline struct registry_options
options(const char *const *urls, size_t n)
{
	return (struct registry_options){ .urls = urls, .n_urls = n, .retry_min_ms = 5, .retry_max_ms = 20,
		.timeout_ms = 5000 };
}

static inline void
opens(const struct registry_options *o)
{
	if (registry_open(base, o, on_change, &changes, &r, error, sizeof(error)) < 0)
		fail_msg("%s", error);
}

static inline int
id_of(const char *subject, uint64_t fingerprint)
{
	int32_t id = -1;
	int error_of = registry_id(r, subject, fingerprint, SCHEMA, &id);

	return error_of < 0 ? error_of : id;
}

static inline bool
is_away(void)
{
	return status().state == REGISTRY_AWAY;
}

static inline bool
is_refused(void)
{
	return status().state == REGISTRY_REFUSED;
}

static inline bool
is_ok(void)
{
	return status().state == REGISTRY_OK && status().unverified == 0;
}

/* Every request has failed, and none is pending. */
static inline bool
is_failed_each_time(void)
{
	return status().requests > 0 && status().failures == status().requests;
}

static inline bool
is_asked_twice(void)
{
	return server.requests >= 2;
}

static inline bool
is_asked_four_times(void)
{
	return server.requests >= 4;
}

/* --- the loop --- */

/* Runs the loop until is_so(), or for ten seconds. */
static inline bool
wait_for(bool (*is_so)(void))
{
	for (int i = 0; i < 2000 && !is_so(); i++) {
		struct timeval tv = { 0, 5000 };

		event_base_loopexit(base, &tv);
		event_base_dispatch(base);
	}
	return is_so();
}

/* Runs the loop for ms, in which something must not happen. */
static inline void
turn_for(int ms)
{
	struct timeval tv = { 0, ms * 1000 };

	event_base_loopexit(base, &tv);
	event_base_dispatch(base);
}

/* --- with a clock that advances by each wait --- */

#define MS INT64_C(1000)
#define START_US (INT64_C(1000) * 1000 * MS)

/* Opens the client; its waits end at once, and random numbers are the smallest or the largest. */
static inline void
opens_at_once(const struct registry_options *o, bool is_most)
{
	opens(o);
	timers = (struct timers){ .arg = r, .over_at_once = SIZE_MAX, .now_us = START_US, .has_random = true,
		.random = is_most ? UINT32_MAX : 0 };
}

static unsigned wanted_waits;

static inline bool
has_waited(void)
{
	return timers.n >= wanted_waits;
}

/* Checks the waits after the first one, which is 0. */
static inline void
expect_waits(const int64_t *want_ms, unsigned n)
{
	wanted_waits = n + 1;
	timers.over_at_once = n;		/* the wait after the last does not end */
	assert_true(n < 63 && wait_for(has_waited));
	assert_int_equal(timers.waits_us[0], 0);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(timers.waits_us[i + 1], want_ms[i] * MS);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* Sets up the libraries like main(), before their first use. */
static inline void
prepare_libraries(void)
{
	event_set_mem_functions(fault_library_alloc, fault_library_grow, free);
	json_set_alloc_funcs(malloc, free);
	/* Global, and never undone: it lasts until the program ends. */
	curl_global_init_mem(CURL_GLOBAL_DEFAULT, fault_library_alloc, free, fault_library_grow, fault_library_copy,
	    fault_library_zeroes);
	/* A proxy of the environment would get the requests. */
	setenv("no_proxy", "*", 1);
}

#endif
