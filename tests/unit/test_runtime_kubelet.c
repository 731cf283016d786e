/* SPDX-License-Identifier: Apache-2.0 */
/* kubelet: when it is asked and with which token, and answers that name nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <netinet/in.h>

#include "faults.h"
#include "registry_kit.h"
#include "runtime/kubelet.h"
#include "timers.h"

#define POD "6a4ce4a0-ba47-11ea-b2a7-0cc47ac5979e"
#define OTHER "7a4ce4a0-ba47-11ea-b2a7-0cc47ac5979e"
#define ID "7c1f0be2a94d3856e1d07f2b5a6c93804e8d12f7b03a6c59d4e1f8027b3a6c51"
#define LATER "8c1f0be2a94d3856e1d07f2b5a6c93804e8d12f7b03a6c59d4e1f8027b3a6c51"
#define LIST(id) "{\"kind\":\"PodList\",\"items\":[{\"metadata\":{\"name\":\"align-0\",\"namespace\":\"genomics\",\"uid\":\"" \
    POD "\"},\"status\":{\"containerStatuses\":[{\"name\":\"bwa\",\"image\":\"bwa:1\",\"containerID\":\"containerd://" id \
    "\"}]}}]}"

static struct kubelet *k;
static unsigned answers;
static const char *wanted;	/* a container of POD that is wanted again after each answer; NULL: none */
static struct pod_names names;

static void
on_names(void *arg)
{
	assert_ptr_equal(arg, &answers);
	answers++;
	if (wanted != NULL)
		kubelet_find(k, POD, wanted, &names);
}

static const struct kubelet_counts *
counts(void)
{
	return kubelet_counts(k);
}

/* Waits end at once, and the clock advances by them. */
static void
opens_kubelet(struct kubelet_options o)
{
	url[strlen(url) - strlen("/base")] = '\0';
	if (o.url == NULL)
		o.url = url;
	assert_int_equal(kubelet_open(base, &o, on_names, &answers, &k), 0);
	assert_int_equal(kubelet_state(k), KUBELET_NOT_ASKED);
	timers = (struct timers){ .arg = k, .over_at_once = SIZE_MAX, .now_us = START_US };
}

static int
set_up(void **state)
{
	answers = 0;
	wanted = NULL;
	k = NULL;
	if (setup(state) < 0)
		return -1;
	server.body = LIST(ID);
	return 0;
}

static int
tear_down(void **state)
{
	kubelet_close(k);
	return teardown(state);
}

static bool
is_settled(void)
{
	return answers > 0 || counts()->failed > 0;
}

static void
names_are_there_after_one_answer(void **state)
{
	(void)state;
	opens_kubelet((struct kubelet_options){ 0 });
	turn_for(20);
	assert_int_equal(server.requests, 0);		/* not before something is wanted */
	assert_false(kubelet_find(k, POD, ID, &names));
	assert_null(names.pod);
	assert_false(kubelet_find(k, POD, ID, &names));
	assert_true(wait_for(is_settled));
	assert_int_equal(server.requests, 1);
	assert_string_equal(server.uri, "/pods");
	assert_int_equal(server.method, EVHTTP_REQ_GET);
	assert_string_equal(server.authorization, "");
	assert_int_equal(kubelet_state(k), 0);
	assert_true(kubelet_find(k, POD, ID, &names));
	assert_string_equal(names.pod, "align-0");
	assert_string_equal(names.name_space, "genomics");
	assert_string_equal(names.container, "bwa");
	assert_string_equal(names.image, "bwa:1");
	assert_true(kubelet_find(k, POD, "", &names));
	turn_for(20);
	assert_int_equal(server.requests, 1);		/* nor afterwards */
	assert_int_equal(counts()->named, 1);
	assert_int_equal(counts()->pods, 1);
	assert_int_equal(counts()->failed, 0);
}

static bool
is_known(void)
{
	return kubelet_find(k, POD, LATER, &names);
}

static bool
has_second_answer(void)
{
	return answers == 2;
}

static void
what_starts_later_is_in_a_later_answer(void **state)
{
	(void)state;
	opens_kubelet((struct kubelet_options){ 0 });
	kubelet_find(k, POD, ID, &names);
	assert_true(wait_for(is_settled));
	server.body = LIST(LATER);
	assert_false(kubelet_find(k, POD, LATER, &names));
	assert_string_equal(names.pod, "align-0");	/* its pod is known by then */
	assert_null(names.container);
	assert_true(wait_for(has_second_answer));
	assert_true(is_known());
	assert_string_equal(names.container, "bwa");
	assert_int_equal(timers.n, 1);
	assert_in_range(timers.waits_us[0], (KUBELET_EACH_MS - 1000) * MS, KUBELET_EACH_MS * MS + 1);
}

static bool
is_unknown(void)
{
	return counts()->unknown > 0;
}

static void
what_it_does_not_have_is_asked_for_some_times(void **state)
{
	(void)state;
	opens_kubelet((struct kubelet_options){ 0 });
	wanted = LATER;
	kubelet_find(k, POD, LATER, &names);
	assert_true(wait_for(is_unknown));
	assert_int_equal(server.requests, KUBELET_TRIES);
	for (int i = 0; i < 100; i++)
		assert_false(kubelet_find(k, POD, LATER, &names));
	turn_for(20);
	assert_int_equal(server.requests, KUBELET_TRIES);
	assert_int_equal(counts()->unknown, 1);
	/* It is still found in an answer to another question. */
	server.body = LIST(LATER);
	wanted = NULL;
	kubelet_find(k, OTHER, ID, &names);
	assert_true(wait_for(is_known));
	assert_int_equal(server.requests, KUBELET_TRIES + 1);
}

/* As many as the root of a container can make up. */
static void
a_flood_of_ids_costs_no_more_than_one_request_each_five_seconds(void **state)
{
	char id[65];

	(void)state;
	opens_kubelet((struct kubelet_options){ 0 });
	server.is_silent = true;
	for (unsigned i = 0; i < 3 * KUBELET_KEPT; i++) {
		snprintf(id, sizeof(id), "%064x", i);
		assert_false(kubelet_find(k, POD, id, &names));
	}
	turn_for(50);
	assert_int_equal(server.requests, 1);
	assert_int_equal(counts()->requests, 1);
	/* What does not fit into a key is no uid. */
	memset(id, 'a', 64);
	assert_false(kubelet_find(k, "a-uid-that-is-longer-than-any-uid-of-kubernetes-has-ever-been-so-that-no-room-is-left", id, &names));
}

static bool
has_failed(void)
{
	return counts()->failed > 0;
}

static void
answers_that_are_none_name_nothing(void **state)
{
	static const struct { int status; const char *body, *error; int state; } cases[] = {
		{ 401, "Unauthorized", "refuses the request (status 401)", -EACCES },
		{ 403, "Forbidden (user=x, verb=get, resource=nodes)", "nodes/pods", -EACCES },
		{ 500, LIST(ID), "status 500", -EBADMSG },
		{ 200, "", "no list of pods", -EBADMSG },
		{ 200, "<html>", "no list of pods", -EBADMSG },
		{ 200, "{\"items\":[{\"metadata\":{\"uid\":\"" POD "\",\"name\":\"x\"}}", "no list of pods", -EBADMSG },
		{ 200, LIST(ID) "{", "no list of pods", -EBADMSG },
		{ 302, LIST(ID), "status 302", -EBADMSG },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		opens_kubelet((struct kubelet_options){ 0 });
		timers.over_at_once = 0;
		timers.now_us = 0;
		server.requests = 0;
		server.status = cases[i].status;
		server.body = cases[i].body;
		server.location = cases[i].status == 302 ? url : NULL;
		kubelet_find(k, POD, ID, &names);
		assert_true(wait_for(has_failed));
		assert_int_equal(kubelet_state(k), cases[i].state);
		if (strstr(kubelet_error(k), cases[i].error) == NULL)
			fail_msg("%s lacks %s", kubelet_error(k), cases[i].error);
		assert_false(kubelet_find(k, POD, ID, &names));
		assert_null(names.pod);
		assert_int_equal(answers, 0);
		turn_for(10);
		assert_int_equal(server.requests, 1);	/* a redirect is not followed */
		assert_int_equal(timers.n, 1);
		assert_true(timers.waits_us[0] > (KUBELET_SKIP_MS - 2000) * MS);
		kubelet_close(k);
		k = NULL;
		strcat(url, "/base");
	}
}

static bool
has_answered(void)
{
	return answers > 0;
}

static void
it_is_asked_again_after_a_failure(void **state)
{
	(void)state;
	opens_kubelet((struct kubelet_options){ 0 });
	server.status = 503;
	kubelet_find(k, POD, ID, &names);
	assert_true(wait_for(has_failed));
	server.status = 200;
	assert_true(wait_for(has_answered));
	assert_string_equal(kubelet_error(k), "");
	assert_true(kubelet_find(k, POD, ID, &names));
}

static void
the_token_is_read_for_each_request(void **state)
{
	struct kubelet_options o = { .token_file = tree_path(&tree, "token") };
	char path[256];

	(void)state;
	snprintf(path, sizeof(path), "%s", o.token_file);
	o.token_file = path;
	tree_write(&tree, "token", "first.TOKEN-1_x=\n");
	opens_kubelet(o);
	memset(path, 'x', 3);				/* options are copied */
	kubelet_find(k, POD, ID, &names);
	assert_true(wait_for(is_settled));
	assert_string_equal(server.authorization, "Bearer first.TOKEN-1_x=");
	tree_write(&tree, "token", "second");
	kubelet_find(k, POD, LATER, &names);
	assert_true(wait_for(has_second_answer));
	assert_string_equal(server.authorization, "Bearer second");
}

static void
a_file_without_a_token_sends_nothing(void **state)
{
	static const char *const texts[] = { "", "\n", "two words", "a\nX-Header: b", "a\r\nb", "\xc3\xa9" };
	char path[256], long_text[20 * 1024];

	(void)state;
	memset(long_text, 'a', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]) + 3; i++) {
		const char *text = i < sizeof(texts) / sizeof(texts[0]) ? texts[i] : long_text;
		bool is_missing = i == sizeof(texts) / sizeof(texts[0]) + 1;
		bool is_folder = i == sizeof(texts) / sizeof(texts[0]) + 2;

		tree_write(&tree, "token", text);
		snprintf(path, sizeof(path), "%s", tree_path(&tree, is_missing ? "none" : is_folder ? "" : "token"));
		opens_kubelet((struct kubelet_options){ .token_file = path });
		timers.over_at_once = 0;
		kubelet_find(k, POD, ID, &names);
		assert_int_equal(counts()->failed, 1);
		assert_true(kubelet_state(k) < 0);
		assert_non_null(strstr(kubelet_error(k), path));
		turn_for(5);
		assert_int_equal(server.requests, 0);
		kubelet_close(k);
		k = NULL;
		strcat(url, "/base");
	}
}

/* Not by what the environment says of proxies. */
static void
nothing_stands_between(void **state)
{
	(void)state;
	opens_kubelet((struct kubelet_options){ 0 });
	setenv("http_proxy", "http://127.0.0.1:9", 1);
	kubelet_find(k, POD, ID, &names);
	assert_true(wait_for(is_settled));
	unsetenv("http_proxy");
	assert_int_equal(answers, 1);
}

static void
an_answer_has_a_largest_size(void **state)
{
	(void)state;
	opens_kubelet((struct kubelet_options){ 0 });
	timers.over_at_once = 0;
	server.body_bytes = KUBELET_ANSWER_MAX;		/* blanks behind the list */
	kubelet_find(k, POD, ID, &names);
	assert_true(wait_for(is_settled));
	assert_int_equal(counts()->failed, 0);
	assert_true(kubelet_find(k, POD, ID, &names));
	server.body_bytes++;
	kubelet_find(k, POD, LATER, &names);
	timers.now_us += 1000 * 1000 * MS;
	kubelet_find(k, POD, LATER, &names);
	assert_true(wait_for(has_failed));
	assert_int_equal(kubelet_state(k), -EFBIG);
	assert_true(kubelet_find(k, POD, ID, &names));	/* those of the last valid answer stay */
}

static void
urls_that_are_none_are_refused(void **state)
{
	static const char *const urls[] = { "", "ftp://a:1", "http://", "http://:1", "https://[::1", "http://a:0", "http://a:65536",
		"http://a:1x", "http://a:1/x", "http://a/x", "http://a", "https://[]:1:2" };
	char own[300];

	(void)state;
	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		struct kubelet_options o = { .url = urls[i] };

		if (kubelet_open(base, &o, NULL, NULL, &k) != -EINVAL)
			fail_msg("%s is taken for a URL", urls[i]);
	}
	memset(own, 'a', sizeof(own) - 1);
	own[sizeof(own) - 1] = '\0';
	assert_int_equal(kubelet_open(base, &(struct kubelet_options){ .url = "https://127.0.0.1:1", .server_name = own }, NULL, NULL,
	    &k), -EINVAL);
	k = NULL;
}

static void
without_memory_none_is_opened(void **state)
{
	struct kubelet_options o = { .url = "https://127.0.0.1:1", .ca_file = "/a", .token_file = "/b" };

	(void)state;
	for (unsigned works = 0; works < 4; works++) {
		fault = (struct fault){ .calls = FAULT_MEMORY, .skip = works, .times = 1 };
		assert_int_equal(kubelet_open(base, &o, NULL, NULL, &k), -ENOMEM);
		fault = (struct fault){ 0 };
	}
	kubelet_close(NULL);
}

int
main(void)
{
#define K(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		K(names_are_there_after_one_answer),
		K(what_starts_later_is_in_a_later_answer),
		K(what_it_does_not_have_is_asked_for_some_times),
		K(a_flood_of_ids_costs_no_more_than_one_request_each_five_seconds),
		K(answers_that_are_none_name_nothing),
		K(it_is_asked_again_after_a_failure),
		K(the_token_is_read_for_each_request),
		K(a_file_without_a_token_sends_nothing),
		K(nothing_stands_between),
		K(an_answer_has_a_largest_size),
		K(urls_that_are_none_are_refused),
		K(without_memory_none_is_opened),
	};

	prepare_libraries();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
