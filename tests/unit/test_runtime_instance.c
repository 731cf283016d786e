/*
 * SPDX-License-Identifier: Apache-2.0
 * instance: a service on loopback that behaves as EC2's does, and ones that do not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <netinet/in.h>

#include "faults.h"
#include "registry_kit.h"
#include "runtime/instance.h"
#include "timers.h"

#define TOKEN "AQAEAJ7-vJ4qp0pVZ1KQ=="
#define DOCUMENT "{\n  \"accountId\" : \"123456789012\",\n  \"architecture\" : \"x86_64\",\n" \
    "  \"availabilityZone\" : \"eu-central-1b\",\n  \"billingProducts\" : null,\n" \
    "  \"imageId\" : \"ami-5fb8c835\",\n  \"instanceId\" : \"i-1234567890abcdef0\",\n" \
    "  \"instanceType\" : \"m5.4xlarge\",\n  \"region\" : \"eu-central-1\",\n  \"version\" : \"2017-09-30\"\n}"

enum { TOKEN_PATH, DOCUMENT_PATH, LIFECYCLE_PATH, PATHS };

static const char *const paths[PATHS] = { "/latest/api/token", "/latest/dynamic/instance-identity/document",
	"/latest/meta-data/instance-life-cycle" };

/* What the service answers to each path; a test changes it. */
static struct {
	int status[PATHS];
	const char *body[PATHS];
	unsigned asked[PATHS];
	unsigned others;		/* of any other path */
	unsigned without_ttl, without_token;
	int fails_first;		/* so many requests for a token fail */
	unsigned silent_from;		/* no request from this one on is answered; 0: all are */
} service;

static struct instance *asked;
static struct {
	unsigned n;
	bool is_known;
	struct host_facts facts;
	char error[256];
} result;

static void
reply(struct evhttp_request *q, int status, const char *text)
{
	struct evbuffer *body = evbuffer_new();

	evbuffer_add(body, text, strlen(text));
	evhttp_send_reply(q, status, NULL, body);
	evbuffer_free(body);
}

static bool
has_token(struct evhttp_request *q)
{
	const char *token = evhttp_find_header(evhttp_request_get_input_headers(q), "X-aws-ec2-metadata-token");

	return evhttp_request_get_command(q) == EVHTTP_REQ_GET && token != NULL && strcmp(token, TOKEN) == 0;
}

static bool
has_ttl(struct evhttp_request *q)
{
	const char *ttl = evhttp_find_header(evhttp_request_get_input_headers(q), "X-aws-ec2-metadata-token-ttl-seconds");

	return evhttp_request_get_command(q) == EVHTTP_REQ_PUT && ttl != NULL && atoi(ttl) >= 1 && atoi(ttl) <= 21600;
}

/* As the user guide of EC2 has it: 400 to a PUT without a time to live, 401 to a GET without a valid token. */
static void
on_metadata(struct evhttp_request *q, void *arg)
{
	const char *path = evhttp_request_get_uri(q);
	size_t i = 0;

	(void)arg;
	server.requests++;
	while (i < PATHS && strcmp(path, paths[i]) != 0)
		i++;
	if (i == PATHS) {
		service.others++;
		reply(q, 404, "");
		return;
	}
	service.asked[i]++;
	if (service.silent_from != 0 && server.requests >= service.silent_from)
		return;
	if (i == TOKEN_PATH && !has_ttl(q)) {
		service.without_ttl++;
		reply(q, 400, "");
	} else if (i != TOKEN_PATH && !has_token(q)) {
		service.without_token++;
		reply(q, 401, "");
	} else if (i == TOKEN_PATH && service.fails_first-- > 0) {
		reply(q, 503, "");
	} else {
		reply(q, service.status[i], service.body[i]);
	}
}

static void
on_facts(const struct host_facts *facts, const char *why, void *arg)
{
	assert_ptr_equal(arg, &result);
	result.n++;
	result.is_known = facts != NULL;
	if (facts != NULL)
		result.facts = *facts;
	snprintf(result.error, sizeof(result.error), "%s", why);
}

static int
set_up(void **state)
{
	asked = NULL;
	memset(&result, 0, sizeof(result));
	memset(&service, 0, sizeof(service));
	if (setup(state) < 0)
		return -1;
	evhttp_set_gencb(http, on_metadata, NULL);
	url[strlen(url) - strlen("/base")] = '\0';
	for (size_t i = 0; i < PATHS; i++)
		service.status[i] = 200;
	service.body[TOKEN_PATH] = TOKEN;
	service.body[DOCUMENT_PATH] = DOCUMENT;
	service.body[LIFECYCLE_PATH] = "spot";
	return 0;
}

static int
tear_down(void **state)
{
	instance_close(asked);
	return teardown(state);
}

/* Waits for another try end at once, and are recorded. */
static void
asks(const char *at)
{
	memset(&result, 0, sizeof(result));
	assert_int_equal(instance_ask(base, at, on_facts, &result, &asked), 0);
	timers = (struct timers){ .arg = asked, .over_at_once = SIZE_MAX, .now_us = START_US };
	assert_int_equal(result.n, 0);		/* never from within */
}

static void
closes(void)
{
	instance_close(asked);
	asked = NULL;
	timers = (struct timers){ 0 };
}

static bool
is_over(void)
{
	return result.n > 0;
}

static void
three_answers_are_the_facts(void **state)
{
	(void)state;
	asks(url);
	assert_true(wait_for(is_over));
	assert_string_equal(result.error, "");
	assert_true(result.is_known);
	assert_string_equal(result.facts.cloud, "aws");
	assert_string_equal(result.facts.instance_type, "m5.4xlarge");
	assert_string_equal(result.facts.region, "eu-central-1");
	assert_string_equal(result.facts.lifecycle, "spot");
	assert_string_equal(result.facts.cpu_model, "");
	assert_false(result.facts.price_per_hour.known);
	turn_for(20);
	assert_int_equal(result.n, 1);
	assert_int_equal(server.requests, PATHS);	/* nothing but these, each once */
	assert_int_equal(service.others + service.without_ttl + service.without_token, 0);
}

static void
a_service_without_a_lifecycle_still_names_the_type(void **state)
{
	(void)state;
	service.status[LIFECYCLE_PATH] = 404;
	asks(url);
	assert_true(wait_for(is_over));
	assert_true(result.is_known);
	assert_string_equal(result.facts.instance_type, "m5.4xlarge");
	assert_string_equal(result.facts.lifecycle, "");
	assert_int_equal(server.requests, PATHS);
}

static void
it_is_asked_again_with_a_new_token(void **state)
{
	(void)state;
	service.fails_first = INSTANCE_TRIES - 1;
	asks(url);
	assert_true(wait_for(is_over));
	assert_true(result.is_known);
	assert_int_equal(service.asked[TOKEN_PATH], INSTANCE_TRIES);
	assert_int_equal(service.asked[DOCUMENT_PATH], 1);
	assert_int_equal(timers.n, INSTANCE_TRIES - 1);
	for (size_t i = 0; i < timers.n; i++)
		assert_int_equal(timers.waits_us[i], INSTANCE_AGAIN_MS * MS);
}

/* Asks once more, and checks that it is given up with this sentence after so many requests. */
static void
gives_up(const char *sentence, unsigned requests)
{
	server.requests = 0;
	asks(url);
	assert_true(wait_for(is_over));
	if (result.is_known || strstr(result.error, sentence) == NULL)
		fail_msg("'%s' lacks '%s'", result.error, sentence);
	assert_int_equal(timers.n, INSTANCE_TRIES - 1);
	turn_for(5);
	assert_int_equal(result.n, 1);
	assert_int_equal(server.requests, requests);
	closes();
}

static void
answers_that_are_none_are_no_facts(void **state)
{
	static char long_text[INSTANCE_ANSWER_MAX + 2];
	static const char not_one[] = "the answer is not one of EC2's metadata service";
	const struct { int path, status; const char *body, *sentence; } cases[] = {
		{ TOKEN_PATH, 403, "", "/latest/api/token: status 403" },	/* the service is switched off */
		{ TOKEN_PATH, 302, TOKEN, "/latest/api/token: status 302" },
		{ TOKEN_PATH, 200, "", not_one },
		{ TOKEN_PATH, 200, "two words", not_one },
		{ TOKEN_PATH, 200, "a\r\nX-Own: b", not_one },
		{ TOKEN_PATH, 200, "\xc3\xa9", not_one },
		{ TOKEN_PATH, 200, long_text + 1, not_one },
		{ TOKEN_PATH, 200, long_text, "" },		/* more than is read */
		{ TOKEN_PATH, 200, "another token", not_one },
		{ TOKEN_PATH, 200, "another-token", "/latest/dynamic/instance-identity/document: status 401" },
		{ DOCUMENT_PATH, 500, DOCUMENT, "/latest/dynamic/instance-identity/document: status 500" },
		{ DOCUMENT_PATH, 404, "", "status 404" },
		{ DOCUMENT_PATH, 200, "", not_one },
		{ DOCUMENT_PATH, 200, "<html>", not_one },
		{ DOCUMENT_PATH, 200, "{\"instanceType\": \"m5.large\"}", not_one },
		{ DOCUMENT_PATH, 200, "{\"instanceType\": \"m5 large\", \"region\": \"eu\"}", not_one },
		{ LIFECYCLE_PATH, 401, "", "/latest/meta-data/instance-life-cycle: status 401" },
		{ LIFECYCLE_PATH, 200, "", not_one },
		{ LIFECYCLE_PATH, 200, "<html>", not_one },
		{ LIFECYCLE_PATH, 200, "a-name-that-is-longer-than-any-way-to-pay", not_one },
	};

	(void)state;
	memset(long_text, 'a', sizeof(long_text) - 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int path = cases[i].path, status = service.status[path];
		const char *body = service.body[path];
		bool is_other = strcmp(cases[i].body, "another-token") == 0;

		service.status[path] = cases[i].status;
		service.body[path] = cases[i].body;
		gives_up(cases[i].sentence, INSTANCE_TRIES * (unsigned)(path + 1 + is_other));
		service.status[path] = status;
		service.body[path] = body;
	}
}

static void
no_service_is_no_facts(void **state)
{
	(void)state;
	asks("http://127.0.0.1:9");
	assert_true(wait_for(is_over));
	assert_false(result.is_known);
	assert_true(result.error[0] != '\0');
	assert_int_equal(timers.n, INSTANCE_TRIES - 1);
}

/* As behind a bridge, where the answer's hop limit ends. Waits are those of a real clock here. */
static void
a_silent_service_ends_by_its_timeout(void **state)
{
	int64_t began = clock_us(CLOCK_MONOTONIC), took;

	(void)state;
	service.silent_from = 1;
	asks(url);
	timers.now_us = 0;
	timers.over_at_once = 0;
	for (int i = 0; i < 1000 && timers.n == 0; i++)
		turn_for(5);
	took = clock_us(CLOCK_MONOTONIC) - began;
	assert_int_equal(timers.n, 1);
	assert_in_range(took, INSTANCE_TIMEOUT_MS * MS - 100 * MS, (INSTANCE_TIMEOUT_MS + 2000) * MS);
	assert_int_equal(result.n, 0);
	assert_int_equal(service.asked[TOKEN_PATH], 1);
}

static void
it_can_be_closed_at_any_step(void **state)
{
	(void)state;
	for (unsigned step = 0; step < PATHS; step++) {
		server.requests = 0;
		service.silent_from = step + 1;
		asks(url);
		for (int i = 0; i < 1000 && server.requests <= step; i++)
			turn_for(1);
		assert_int_equal(server.requests, step + 1);
		closes();
		turn_for(5);
		assert_int_equal(result.n, 0);
	}
	instance_close(NULL);
}

/* Not by what the environment says of proxies, whose answers would be those of another machine. */
static void
no_proxy_is_asked(void **state)
{
	(void)state;
	setenv("http_proxy", "http://127.0.0.1:9", 1);
	setenv("no_proxy", "", 1);
	asks(url);
	assert_true(wait_for(is_over));
	setenv("no_proxy", "*", 1);
	unsetenv("http_proxy");
	assert_true(result.is_known);
}

static void
a_url_that_is_too_long_is_refused(void **state)
{
	char text[1024] = "http://";

	(void)state;
	memset(text + strlen(text), 'a', sizeof(text) - 1 - strlen(text));
	assert_int_equal(instance_ask(base, text, on_facts, &result, &asked), -EINVAL);
}

static void
without_memory_nothing_is_asked(void **state)
{
	unsigned works = 0;
	int result_of;

	(void)state;
	do {
		fault = (struct fault){ .calls = FAULT_MEMORY, .skip = works++, .times = 1 };
		result_of = instance_ask(base, url, on_facts, &result, &asked);
		fault = (struct fault){ 0 };
		if (result_of < 0) {
			assert_int_equal(result_of, -ENOMEM);
			assert_null(asked);
		}
	} while (result_of < 0);
	assert_true(works > 2);
	assert_true(wait_for(is_over));
}

int
main(void)
{
#define I(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		I(three_answers_are_the_facts),
		I(a_service_without_a_lifecycle_still_names_the_type),
		I(it_is_asked_again_with_a_new_token),
		I(answers_that_are_none_are_no_facts),
		I(no_service_is_no_facts),
		I(a_silent_service_ends_by_its_timeout),
		I(it_can_be_closed_at_any_step),
		I(no_proxy_is_asked),
		I(a_url_that_is_too_long_is_refused),
		I(without_memory_nothing_is_asked),
	};

	prepare_libraries();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
