/* SPDX-License-Identifier: Apache-2.0 */
/* http: real requests at a real port, and at a unix socket. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "control/http.h"
#include "status_sample.h"
#include "timers.h"
#include "tree.h"

static struct tree tree;
static struct event_base *base;
static struct http *h;
static char error[512];
static bool is_bad;
static unsigned filled;
static char answer[1 << 16];

static void
fill(struct agent_status *s, void *arg)
{
	assert_ptr_equal(arg, &is_bad);
	filled++;
	if (is_bad)
		status_sample_bad(s);
	else
		status_sample(s);
}

static int
open_at(const char *address, uint32_t timeout_ms)
{
	struct http_options o = { .listen = { .address = address }, .timeout_ms = timeout_ms };

	return http_open(base, &o, fill, &is_bad, &h, error, sizeof(error));
}

static int
setup(void **state)
{
	(void)state;
	tree_init(&tree);
	base = event_base_new();
	is_bad = false;
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	http_close(h);
	h = NULL;
	memset(&timers, 0, sizeof(timers));
	event_base_loop(base, EVLOOP_NONBLOCK);
	event_base_free(base);
	tree_done(&tree);
	return 0;
}

static int
client(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a.sin_port = htons(http_port(h));
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void
turn(void)
{
	for (int i = 0; i < 20; i++)
		event_base_loop(base, EVLOOP_NONBLOCK);
}

/* All up to the end of the connection, which the server ends. Closes fd. */
static const char *
hear(int fd)
{
	size_t len = 0;

	for (int i = 0; i < 5000; i++) {
		ssize_t n;

		event_base_loop(base, EVLOOP_NONBLOCK);
		n = recv(fd, answer + len, sizeof(answer) - 1 - len, MSG_DONTWAIT);
		if (n > 0)
			len += (size_t)n;
		else if (n == 0 || errno == ECONNRESET)
			break;
		else
			usleep(1000);
		if (i == 4999)
			fail_msg("the connection does not end");
	}
	answer[len] = '\0';
	close(fd);
	return answer;
}

static const char *
ask(const char *request)
{
	int fd = client();

	(void)!send(fd, request, strlen(request), MSG_NOSIGNAL);
	return hear(fd);
}

#define GET(path) ask("GET " path " HTTP/1.1\r\nHost: x\r\n\r\n")

static void
metrics_are_served(void **state)
{
	(void)state;
	assert_int_equal(open_at("127.0.0.1:0", 0), 0);
	GET("/metrics");
	assert_memory_equal(answer, "HTTP/1.1 200 OK\r\n", 17);
	assert_non_null(strstr(answer, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
	assert_non_null(strstr(answer, "\r\n\r\n# HELP sluice_build_info"));
	assert_non_null(strstr(answer, "\nsluice_followed_processes 231\n"));
	GET("/metrics?x=1");
	assert_memory_equal(answer, "HTTP/1.1 200 OK\r\n", 17);
}

static void
health_and_readiness_differ(void **state)
{
	(void)state;
	assert_int_equal(open_at("localhost:0", 0), 0);
	timers.now_us = 1000000;
	assert_memory_equal(GET("/readyz"), "HTTP/1.1 200 OK\r\n", 17);
	is_bad = true;
	timers.now_us += 1000000;	/* for so long a status is served again */
	assert_memory_equal(GET("/readyz"), "HTTP/1.1 503 Service Unavailable\r\n", 34);
	assert_non_null(strstr(answer, "\r\n\r\nthe schema registry at http://localhost:8081 is away"));
	assert_memory_equal(GET("/healthz"), "HTTP/1.1 200 OK\r\n", 17);
	assert_non_null(strstr(answer, "\r\n\r\nok\n"));
}

static void
what_is_not_there_is_404_and_what_may_not_be_405(void **state)
{
	(void)state;
	assert_int_equal(open_at("127.0.0.1:0", 0), 0);
	assert_memory_equal(GET("/"), "HTTP/1.1 404 ", 13);
	assert_memory_equal(GET("/metrics/x"), "HTTP/1.1 404 ", 13);
	assert_memory_equal(GET("/../etc/passwd"), "HTTP/1.1 404 ", 13);
	ask("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi");
	assert_memory_equal(answer, "HTTP/1.1 405 ", 13);
	assert_non_null(strstr(answer, "\r\nAllow: GET, HEAD\r\n"));
	assert_memory_equal(ask("DELETE /healthz HTTP/1.1\r\nHost: x\r\n\r\n"), "HTTP/1.1 405 ", 13);
	assert_memory_equal(ask("OPTIONS /healthz HTTP/1.1\r\nHost: x\r\n\r\n"), "HTTP/1.1 405 ", 13);
	ask("HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_memory_equal(answer, "HTTP/1.1 200 ", 13);
	assert_string_equal(strstr(answer, "\r\n\r\n"), "\r\n\r\n");	/* no body */
}

static void
too_much_is_refused(void **state)
{
	static char request[40000];
	size_t len;

	(void)state;
	assert_int_equal(open_at("127.0.0.1:0", 0), 0);
	len = (size_t)sprintf(request, "GET /metrics HTTP/1.1\r\nX: ");
	memset(request + len, 'x', 30000);
	strcpy(request + len + 30000, "\r\n\r\n");
	ask(request);
	assert_null(strstr(answer, "200 OK"));
	ask("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n");
	assert_null(strstr(answer, "200 OK"));
	ask("\x16\x03\x01\x02garbage\r\n\r\n");
	assert_null(strstr(answer, "200 OK"));
	assert_memory_equal(GET("/healthz"), "HTTP/1.1 200 OK\r\n", 17);
}

static struct http_stats
stats(void)
{
	struct http_stats got;

	http_stats(h, &got);
	return got;
}

/* The clock advances by the wait before each check of the connections, which then happens at once. */
static void
a_request_that_drips_is_cut_off(void **state)
{
	int64_t begin_us = 1000000;
	char c = 'x';
	int fd;

	(void)state;
	assert_int_equal(open_at("127.0.0.1:0", 5000), 0);
	timers.arg = h;
	timers.over_at_once = SIZE_MAX;
	timers.now_us = begin_us;
	fd = client();
	(void)!send(fd, "G", 1, MSG_NOSIGNAL);
	for (int looks = 0; recv(fd, &c, 1, MSG_DONTWAIT) != 0; looks++) {
		assert_in_range(looks, 0, 200);
		if (looks % 20 == 19)
			assert_int_equal(send(fd, "E", 1, MSG_NOSIGNAL), 1);
		event_base_loop(base, EVLOOP_NONBLOCK | EVLOOP_ONCE);
	}
	/* To within a tenth; the clock has gone on by the look that is waited for next, too. */
	assert_in_range(timers.now_us - begin_us, 5000000, 6100000);
	assert_int_equal(stats().slow, 1);
	close(fd);
}

/* Else connections without a client would take the room of others. */
static void
a_client_that_leaves_in_its_head_is_let_go(void **state)
{
	int64_t begin_us = 1000000;
	char c = 'x';
	int fd;

	(void)state;
	assert_int_equal(open_at("127.0.0.1:0", 5000), 0);
	timers.arg = h;
	timers.over_at_once = SIZE_MAX;
	timers.now_us = begin_us;
	fd = client();
	assert_int_equal(send(fd, "GET", 3, MSG_NOSIGNAL), 3);
	event_base_loop(base, EVLOOP_NONBLOCK | EVLOOP_ONCE);
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	for (int looks = 0; recv(fd, &c, 1, MSG_DONTWAIT) != 0; looks++) {
		assert_in_range(looks, 0, 10);
		event_base_loop(base, EVLOOP_NONBLOCK | EVLOOP_ONCE);
	}
	assert_in_range(timers.now_us - begin_us, 0, 1000000);
	assert_int_equal(stats().slow, 0);
	close(fd);
}

/* A client that sends it byte by byte does not wake the loop for each of them: looks are 100 ms apart. */
static void
a_request_in_too_many_pieces_is_cut_off(void **state)
{
	int64_t begin_us = 1000000;
	unsigned sent = 0;
	char c = 'x';
	int fd;

	(void)state;
	assert_int_equal(open_at("127.0.0.1:0", 0), 0);
	timers.arg = h;
	timers.over_at_once = SIZE_MAX;
	timers.now_us = begin_us;
	fd = client();
	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)), 0);
	do {
		assert_in_range(sent, 0, 100);
		assert_int_equal(send(fd, "x", 1, MSG_NOSIGNAL), 1);
		sent++;
		event_base_loop(base, EVLOOP_NONBLOCK | EVLOOP_ONCE);
	} while (recv(fd, &c, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	assert_in_range(sent, 16, 20);
	assert_in_range(timers.now_us - begin_us, 15 * 100000, 500000 + 20 * 100000);
	assert_int_equal(stats().malformed, 1);
	close(fd);
}

static void
what_comes_in_pieces_is_answered(void **state)
{
	int fd;

	(void)state;
	assert_int_equal(open_at("127.0.0.1:0", 0), 0);
	fd = client();
	(void)!send(fd, "GET /heal", 9, MSG_NOSIGNAL);
	turn();
	(void)!send(fd, "thz HTTP/1.1\r\nHost: x\r\n", 23, MSG_NOSIGNAL);
	turn();
	(void)!send(fd, "\r\n", 2, MSG_NOSIGNAL);
	assert_memory_equal(hear(fd), "HTTP/1.1 200 OK\r\n", 17);
	assert_int_equal(stats().answered, 1);
}

static void
the_oldest_of_too_many_gives_way(void **state)
{
	int fds[100];
	char c;

	(void)state;
	assert_int_equal(open_at("127.0.0.1:0", 0), 0);
	timers.now_us = 1000000;
	for (int i = 0; i < 100; i++) {
		fds[i] = client();
		timers.now_us += 20000;		/* as fast as they are accepted */
		turn();
	}
	assert_int_equal(recv(fds[0], &c, 1, MSG_DONTWAIT), 0);
	assert_int_equal(recv(fds[60], &c, 1, MSG_DONTWAIT), 0);
	assert_int_equal(recv(fds[99], &c, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(stats().displaced, 100 - 32);
	/* The server still answers. */
	assert_memory_equal(GET("/healthz"), "HTTP/1.1 200 OK\r\n", 17);
	for (int i = 0; i < 100; i++)
		close(fds[i]);
}

/* The clock is stopped, so that no time pays for more. */
static void
connections_that_come_too_fast_wait(void **state)
{
	unsigned answered;
	int fds[80];

	(void)state;
	assert_int_equal(open_at("127.0.0.1:0", 0), 0);
	timers.now_us = 1000000;
	for (int i = 0; i < 80; i++) {
		fds[i] = client();
		(void)!send(fds[i], "GET /metrics HTTP/1.1\r\n\r\n", 25, MSG_NOSIGNAL);
		turn();
	}
	answered = (unsigned)stats().answered;
	assert_in_range(answered, 50, 51);	/* the burst */
	assert_true(stats().waits > 0);
	for (int i = 0; i < 2000 && stats().answered < 80; i++) {
		timers.now_us += 1000;
		usleep(1000);
		turn();
	}
	assert_int_equal(stats().answered, 80);
	for (int i = 0; i < 80; i++)
		close(fds[i]);
}

static void
a_status_is_taken_once_a_second(void **state)
{
	(void)state;
	assert_int_equal(open_at("127.0.0.1:0", 0), 0);
	timers.now_us = 1000000;
	filled = 0;
	for (int i = 0; i < 10; i++) {
		timers.now_us += 99999;
		GET("/metrics");
		GET("/readyz");
	}
	assert_int_equal(filled, 1);
	timers.now_us += 1000000;
	assert_memory_equal(GET("/metrics"), "HTTP/1.1 200 OK\r\n", 17);
	assert_non_null(strstr(answer, "\nsluice_followed_processes 231\n"));
	assert_int_equal(filled, 2);
}

static void
addresses_that_cannot_be_are_errors(void **state)
{
	static const char *const bad[] = { "", "9465", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:99999", "[::1]",
		"::1", "::1:80", "example.org:80", "localhost:" };
	char address[64];
	struct http *other = NULL;
	struct http_options o = { .listen = { .address = address } };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (open_at(bad[i], 0) != -EINVAL)
			fail_msg("%s was taken", bad[i]);
		assert_non_null(strstr(error, "127.0.0.1:PORT"));
	}
	assert_int_equal(open_at("0.0.0.0:0", 0), -EINVAL);
	assert_non_null(strstr(error, "other hosts could read it"));
	assert_int_equal(open_at("[::]:0", 0), -EINVAL);
	assert_null(h);

	assert_int_equal(open_at("127.0.0.1:0", 0), 0);
	snprintf(address, sizeof(address), "127.0.0.1:%u", http_port(h));
	assert_int_equal(http_open(base, &o, fill, &is_bad, &other, error, sizeof(error)), -EADDRINUSE);
	assert_non_null(strstr(error, "is in use by another program"));
	assert_null(other);
}

static void
other_hosts_may_ask_where_it_was_said_so(void **state)
{
	struct http_options o = { .listen = { .address = "0.0.0.0:0", .allow_remote = true } };

	(void)state;
	assert_int_equal(http_open(base, &o, fill, &is_bad, &h, error, sizeof(error)), 0);
	assert_memory_equal(GET("/healthz"), "HTTP/1.1 200 OK\r\n", 17);
}

static void
a_unix_socket_serves_too(void **state)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	char address[128];
	struct stat st;
	int fd;

	(void)state;
	strcpy(a.sun_path, tree_path(&tree, "metrics.sock"));
	snprintf(address, sizeof(address), "unix:%s", a.sun_path);
	assert_int_equal(open_at(address, 0), 0);
	assert_int_equal(http_port(h), 0);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	(void)!send(fd, "GET /healthz HTTP/1.0\r\n\r\n", 25, MSG_NOSIGNAL);
	hear(fd);
	assert_non_null(strstr(answer, "200 OK\r\n"));
	assert_non_null(strstr(answer, "\r\n\r\nok\n"));
	http_close(h);
	h = NULL;
	assert_int_equal(lstat(a.sun_path, &st), -1);
}

static void
closing_in_the_middle_is_clean(void **state)
{
	int fd;

	(void)state;
	assert_int_equal(open_at("127.0.0.1:0", 0), 0);
	fd = client();
	(void)!send(fd, "GET /metr", 9, MSG_NOSIGNAL);
	turn();
	http_close(h);
	h = NULL;
	turn();
	close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(metrics_are_served, setup, teardown),
		cmocka_unit_test_setup_teardown(health_and_readiness_differ, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_not_there_is_404_and_what_may_not_be_405, setup, teardown),
		cmocka_unit_test_setup_teardown(too_much_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(a_request_that_drips_is_cut_off, setup, teardown),
		cmocka_unit_test_setup_teardown(a_client_that_leaves_in_its_head_is_let_go, setup, teardown),
		cmocka_unit_test_setup_teardown(a_request_in_too_many_pieces_is_cut_off, setup, teardown),
		cmocka_unit_test_setup_teardown(what_comes_in_pieces_is_answered, setup, teardown),
		cmocka_unit_test_setup_teardown(the_oldest_of_too_many_gives_way, setup, teardown),
		cmocka_unit_test_setup_teardown(connections_that_come_too_fast_wait, setup, teardown),
		cmocka_unit_test_setup_teardown(a_status_is_taken_once_a_second, setup, teardown),
		cmocka_unit_test_setup_teardown(addresses_that_cannot_be_are_errors, setup, teardown),
		cmocka_unit_test_setup_teardown(other_hosts_may_ask_where_it_was_said_so, setup, teardown),
		cmocka_unit_test_setup_teardown(a_unix_socket_serves_too, setup, teardown),
		cmocka_unit_test_setup_teardown(closing_in_the_middle_is_clean, setup, teardown),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
