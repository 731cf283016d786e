/* SPDX-License-Identifier: Apache-2.0 */
/* container_resolver: one bounded query per container to the sockets that answer, and the checks of answers. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>

#include "runtime/container_resolver.h"
#include "tree.h"

#define ID "7c1f0be2a94d3856e1d07f2b5a6c93804e8d12f7b03a6c59d4e1f8027b3a6c51"
#define ID2 "00ab34cd56ef78901234567890abcdef0fedcba0987654321fedcba098765432"

static struct tree tree;
static struct event_base *base;
static struct container_resolver *names;

/* A daemon: what it answers with, and what it was asked. */
static struct server {
	struct evconnlistener *listener;
	const char *answer;		/* NULL: it does not answer, and keeps the connection open */
	char asked[512];
	unsigned requests;
} server;

/* The last arguments of the callback. */
static struct {
	unsigned calls;
	char id[80], name[CONTAINER_NAME_SIZE], image[CONTAINER_NAME_SIZE];
} reported;

static void
on_written(struct bufferevent *bev, void *arg)
{
	(void)arg;
	bufferevent_free(bev);
}

static void
on_request(struct bufferevent *bev, void *arg)
{
	struct server *s = arg;
	struct evbuffer *in = bufferevent_get_input(bev);
	size_t len = evbuffer_get_length(in);
	char *text = (char *)evbuffer_pullup(in, -1);

	if (len < 4 || memcmp(text + len - 4, "\r\n\r\n", 4) != 0)
		return;
	snprintf(s->asked, sizeof(s->asked), "%.*s", (int)strcspn(text, "\r"), text);
	evbuffer_drain(in, len);
	s->requests++;
	if (s->answer == NULL)
		return;
	bufferevent_setcb(bev, NULL, on_written, NULL, s);
	bufferevent_write(bev, s->answer, strlen(s->answer));
}

static void
on_end(struct bufferevent *bev, short what, void *arg)
{
	(void)what;
	(void)arg;
	bufferevent_free(bev);
}

static void
on_connection(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *from, int len, void *arg)
{
	struct bufferevent *bev = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);

	(void)l;
	(void)from;
	(void)len;
	bufferevent_setcb(bev, on_request, NULL, on_end, arg);
	bufferevent_enable(bev, EV_READ | EV_WRITE);
}

static void
serve(const char *name, const char *answer)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	memset(&server, 0, sizeof(server));
	server.answer = answer;
	strcpy(at.sun_path, tree_path(&tree, name));
	server.listener = evconnlistener_new_bind(base, on_connection, &server, LEV_OPT_CLOSE_ON_FREE, 16,
	    (struct sockaddr *)&at, sizeof(at));
	assert_non_null(server.listener);
}

static void
on_named(const char *id, const char *name, const char *image, void *arg)
{
	(void)arg;
	reported.calls++;
	snprintf(reported.id, sizeof(reported.id), "%s", id);
	snprintf(reported.name, sizeof(reported.name), "%s", name != NULL ? name : "-");
	snprintf(reported.image, sizeof(reported.image), "%s", image != NULL ? image : "-");
}

static void
open_names(const char *a, const char *b)
{
	const char *sockets[] = { tree_path(&tree, a), b != NULL ? tree_path(&tree, b) : NULL };

	assert_int_equal(container_resolver_open(base, sockets, b != NULL ? 2 : 1, on_named, NULL, &names), 0);
}

/* Runs the loop until the queue is empty, or for some seconds. */
static void
settle(void)
{
	for (int i = 0; i < 300; i++) {
		const struct container_resolver_counts *n = container_resolver_counts(names);
		uint64_t before = n->asked + n->named + n->unknown + n->failed;

		event_base_loop(base, EVLOOP_NONBLOCK);
		usleep(1000);
		if (i > 20 && n->asked + n->named + n->unknown + n->failed == before &&
		    n->named + n->unknown + n->failed > 0)
			return;
	}
}

static int
set_up(void **state)
{
	(void)state;
	tree_init(&tree);
	base = event_base_new();
	names = NULL;
	memset(&server, 0, sizeof(server));
	memset(&reported, 0, sizeof(reported));
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	container_resolver_close(names);
	if (server.listener != NULL)
		evconnlistener_free(server.listener);
	event_base_loop(base, EVLOOP_NONBLOCK);
	event_base_free(base);
	tree_done(&tree);
	return 0;
}

static const char answer[] = "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"
    "[{\"Id\":\"" ID "\",\"Names\":[\"/eager_euler\"],\"Image\":\"quay.io/x/samtools:1.20\",\"Command\":\"secret\"}]";

static void
a_container_is_named_and_asked_for_once(void **state)
{
	const char *name, *image;

	(void)state;
	serve("d.sock", answer);
	open_names("d.sock", NULL);
	assert_false(container_resolver_find(names, ID, &name, &image));
	assert_null(name);
	assert_false(container_resolver_find(names, ID, &name, &image));
	settle();
	assert_int_equal(reported.calls, 1);
	assert_string_equal(reported.id, ID);
	assert_string_equal(reported.name, "eager_euler");
	assert_string_equal(reported.image, "quay.io/x/samtools:1.20");
	assert_true(container_resolver_find(names, ID, &name, &image));
	assert_string_equal(name, "eager_euler");
	assert_string_equal(image, "quay.io/x/samtools:1.20");
	assert_int_equal(server.requests, 1);
	assert_string_equal(server.asked, "GET /containers/json?all=1&filters=%7B%22id%22%3A%5B%22" ID "%22%5D%7D HTTP/1.0");
}

static void
one_that_nobody_knows_is_not_asked_for_again(void **state)
{
	const char *name, *image;

	(void)state;
	serve("d.sock", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n[]");
	open_names("d.sock", NULL);
	container_resolver_find(names, ID, &name, &image);
	settle();
	assert_false(container_resolver_find(names, ID, &name, &image));
	settle();
	assert_int_equal(server.requests, 1);
	assert_int_equal(reported.calls, 0);
	assert_int_equal(container_resolver_counts(names)->unknown, 1);
}

static void
the_next_socket_is_asked_where_one_does_not_know(void **state)
{
	const char *name, *image;

	(void)state;
	serve("d.sock", answer);
	open_names("nobody.sock", "d.sock");
	assert_int_equal(container_resolver_state(names, 0), CONTAINER_RESOLVER_NOT_ASKED);
	assert_int_equal(container_resolver_state(names, 1), CONTAINER_RESOLVER_NOT_ASKED);
	container_resolver_find(names, ID, &name, &image);
	settle();
	assert_int_equal(reported.calls, 1);
	assert_int_equal(container_resolver_state(names, 0), -ENOENT);
	assert_int_equal(container_resolver_state(names, 1), 0);
	/* One that does not answer is left alone for a while. */
	container_resolver_find(names, ID2, &name, &image);
	settle();
	assert_int_equal(container_resolver_counts(names)->asked, 3);
	assert_int_equal(container_resolver_counts(names)->failed, 1);
}

static void
a_socket_without_anybody_costs_one_question(void **state)
{
	const char *name, *image;
	char id[65];

	(void)state;
	open_names("nobody.sock", NULL);
	container_resolver_find(names, ID, &name, &image);
	settle();
	for (unsigned i = 0; i < 100; i++) {
		snprintf(id, sizeof(id), "%064x", i);
		assert_false(container_resolver_find(names, id, &name, &image));
	}
	settle();
	assert_int_equal(container_resolver_counts(names)->asked, 1);
	assert_int_equal(container_resolver_counts(names)->failed, 101);
	assert_int_equal(reported.calls, 0);
}

static void
answers_that_make_no_sense_name_nothing(void **state)
{
	static const char *const answers[] = {
		"HTTP/1.0 500 Internal Server Error\r\n\r\n{\"message\":\"no\"}",
		"HTTP/1.0 200 OK\r\n\r\n{\"Id\":\"" ID "\"}",
		"HTTP/1.0 200 OK\r\n\r\n[{\"Id\":\"" ID "\"",
		"HTTP/1.0 200 OK\r\nContent-Length: 5000\r\n\r\n[]",
		"HTTP/1.0 200 OK\r\n",
		"220 smtp ready\r\n\r\n",
		"",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		const char *name, *image;

		serve("d.sock", answers[i]);
		if (answers[i][0] == '\0')
			server.answer = "\n";
		open_names("d.sock", NULL);
		container_resolver_find(names, ID, &name, &image);
		settle();
		assert_int_equal(container_resolver_counts(names)->failed, 1);
		assert_int_equal(reported.calls, 0);
		container_resolver_close(names);
		names = NULL;
		evconnlistener_free(server.listener);
		server.listener = NULL;
		unlink(tree_path(&tree, "d.sock"));
	}
}

static void
a_silent_daemon_blocks_nobody(void **state)
{
	const char *name, *image;
	char id[65];

	(void)state;
	serve("d.sock", NULL);
	open_names("d.sock", NULL);
	for (unsigned i = 0; i < CONTAINER_RESOLVER_WAITING + 100; i++) {
		snprintf(id, sizeof(id), "%064x", i);
		assert_false(container_resolver_find(names, id, &name, &image));
	}
	assert_int_equal(container_resolver_counts(names)->refused, 100);
	settle();
	assert_int_equal(server.requests, 1);
}

static void
only_ids_are_asked_for(void **state)
{
	const char *name, *image;

	(void)state;
	serve("d.sock", answer);
	open_names("d.sock", NULL);
	assert_false(container_resolver_find(names, "", &name, &image));
	assert_false(container_resolver_find(names, "web-2", &name, &image));
	assert_false(container_resolver_find(names, ID "0", &name, &image));
	assert_false(container_resolver_find(names, "../../../x?7c1f0be2a94d3856e1d07f2b5a6c93804e8d12f7b03a6c59d4e1f8", &name, &image));
	assert_int_equal(container_resolver_counts(names)->asked, 0);
}

static void
what_is_known_is_bounded(void **state)
{
	const char *name, *image;
	char id[65];

	(void)state;
	serve("d.sock", "HTTP/1.0 200 OK\r\n\r\n[]");
	open_names("d.sock", NULL);
	for (unsigned i = 0; i < CONTAINER_RESOLVER_KEPT + 10; i++) {
		snprintf(id, sizeof(id), "%064x", i);
		container_resolver_find(names, id, &name, &image);
		while (container_resolver_counts(names)->unknown <= i)
			event_base_loop(base, EVLOOP_ONCE);
	}
	assert_int_equal(server.requests, CONTAINER_RESOLVER_KEPT + 10);
	container_resolver_find(names, id, &name, &image);	/* the newest is known still */
	snprintf(id, sizeof(id), "%064x", 0);
	container_resolver_find(names, id, &name, &image);	/* the oldest is not */
	settle();
	assert_int_equal(server.requests, CONTAINER_RESOLVER_KEPT + 11);
}

static void
names_are_one_line_of_sensible_length(void **state)
{
	char name[CONTAINER_NAME_SIZE], image[CONTAINER_NAME_SIZE], body[2048];

	(void)state;
	snprintf(body, sizeof(body), "[{\"Id\":\"x\"},{\"Id\":\"" ID "\",\"Names\":[\"/a\\nb\"],\"Image\":\"%0400d\"}]", 1);
	assert_int_equal(container_resolver_parse(body, strlen(body), ID, name, image), 1);
	assert_string_equal(name, "");
	assert_string_equal(image, "");
	strcpy(body, "[{\"Id\":\"" ID "\",\"Names\":[],\"Image\":7}]");
	assert_int_equal(container_resolver_parse(body, strlen(body), ID, name, image), 1);
	assert_string_equal(name, "");
	strcpy(body, "[{\"Id\":\"" ID "\",\"Names\":[\"pod/one\"]}]");
	assert_int_equal(container_resolver_parse(body, strlen(body), ID, name, image), 1);
	assert_string_equal(name, "pod/one");
	assert_int_equal(container_resolver_parse("[]", 2, ID, name, image), 0);
	assert_int_equal(container_resolver_parse("[7,null,{}]", 11, ID, name, image), 0);
	assert_int_equal(container_resolver_parse("{}", 2, ID, name, image), -EBADMSG);
	assert_int_equal(container_resolver_parse("", 0, ID, name, image), -EBADMSG);
}

/* Not by its host, which must not be looked up, nor through a proxy. */
static void
nothing_of_the_environment_stands_between(void **state)
{
	const char *name, *image;

	(void)state;
	serve("d.sock", answer);
	open_names("d.sock", NULL);
	setenv("http_proxy", "http://127.0.0.1:9", 1);
	container_resolver_find(names, ID, &name, &image);
	settle();
	unsetenv("http_proxy");
	assert_int_equal(reported.calls, 1);
	assert_string_equal(server.asked, "GET /containers/json?all=1&filters=%7B%22id%22%3A%5B%22" ID "%22%5D%7D HTTP/1.0");
}

static void
an_answer_has_a_largest_size(void **state)
{
	static const char head[] = "HTTP/1.0 200 OK\r\n\r\n[";
	char *text = malloc(256 * 1024 + sizeof(head));
	const char *name, *image;

	(void)state;
	memset(text, ' ', 256 * 1024 + sizeof(head));
	memcpy(text, head, sizeof(head) - 1);
	text[256 * 1024 + sizeof(head) - 1] = '\0';
	serve("d.sock", text);
	open_names("d.sock", NULL);
	container_resolver_find(names, ID, &name, &image);
	settle();
	assert_int_equal(container_resolver_state(names, 0), -EFBIG);
	free(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_container_is_named_and_asked_for_once),
		TEST(one_that_nobody_knows_is_not_asked_for_again),
		TEST(the_next_socket_is_asked_where_one_does_not_know),
		TEST(a_socket_without_anybody_costs_one_question),
		TEST(answers_that_make_no_sense_name_nothing),
		TEST(a_silent_daemon_blocks_nobody),
		TEST(only_ids_are_asked_for),
		TEST(what_is_known_is_bounded),
		TEST(names_are_one_line_of_sensible_length),
		TEST(nothing_of_the_environment_stands_between),
		TEST(an_answer_has_a_largest_size),
	};

	signal(SIGPIPE, SIG_IGN);	/* as the daemon does */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
