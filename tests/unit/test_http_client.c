/* SPDX-License-Identifier: Apache-2.0 */
/* client: one request after the other over libcurl. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <curl/curl.h>
#include <event2/listener.h>
#include "faults.h"
#include "registry_kit.h"
#include "http/client.h"
#include "timers.h"

static struct {
	unsigned n;
	int code, error;
	long status;
	int64_t retry_after_s;
	size_t len;
	char body[64], detail[256];
	struct http_client *again;	/* to post by once more, from within */
} answer;

#define BODY_MAX (1024 * 1024)

static struct http_client_request question = { .body = "what?" };

static void
on_answer(const struct http_client_answer *a, void *arg)
{
	assert_ptr_equal(arg, &answer);
	answer.n++;
	answer.code = a->code;
	answer.error = a->error;
	answer.status = a->status;
	answer.retry_after_s = a->retry_after_s;
	answer.len = a->len;
	assert_int_equal(a->body == NULL, a->code != 0);
	snprintf(answer.body, sizeof(answer.body), "%.*s", (int)a->len, a->body != NULL ? a->body : "");
	snprintf(answer.detail, sizeof(answer.detail), "%s", a->detail != NULL ? a->detail : "");
	if (answer.again != NULL && answer.n < 3)
		assert_int_equal(http_client_send(answer.again, &question), 0);
}

static bool
is_answered(void)
{
	return answer.n > 0;
}

static struct http_client *
http_opens(uint32_t timeout_ms)
{
	struct http_client_options o = { .timeout_ms = timeout_ms, .body_max = BODY_MAX };
	struct http_client *h;

	memset(&answer, 0, sizeof(answer));
	question.url = url;
	assert_int_equal(http_client_open(base, &o, on_answer, &answer, &h), 0);
	return h;
}

static void
posts(struct http_client *h)
{
	answer.n = 0;
	assert_int_equal(http_client_send(h, &question), 0);
	assert_int_equal(http_client_send(h, &question), -EBUSY);
	assert_int_equal(answer.n, 0);		/* never from within */
	assert_true(wait_for(is_answered));
	assert_int_equal(answer.n, 1);
}

static void
an_answer_comes_once_and_whole(void **state)
{
	struct http_client *h = http_opens(5000);

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
	http_client_disconnect(h);			/* and it continues after that */
	http_client_disconnect(h);
	posts(h);				/* nor is there a body then, as yet */
	assert_int_equal(answer.len, 0);
	server.body = "again";
	posts(h);
	assert_string_equal(answer.body, "again");
	answer.n = 0;
	answer.again = h;
	assert_int_equal(http_client_send(h, &question), 0);
	for (int i = 0; i < 500 && answer.n < 3; i++)
		turn_for(5);
	assert_int_equal(answer.n, 3);
	http_client_close(h);
	http_client_close(NULL);
}

static void
an_answer_has_a_largest_size(void **state)
{
	struct http_client *h = http_opens(5000);

	(void)state;
	server.body_bytes = BODY_MAX;
	posts(h);
	assert_int_equal(answer.code, 0);
	assert_int_equal(answer.len, BODY_MAX);
	server.body_bytes++;
	posts(h);
	assert_int_equal(answer.code, CURLE_WRITE_ERROR);
	assert_true(answer.detail[0] != '\0');
	assert_int_equal(answer.len, 0);
	server.body_bytes = 0;
	server.body = "";
	posts(h);
	server.header_bytes = 128 * 1024 - server.answer_bytes;
	posts(h);
	assert_int_equal(server.answer_bytes, 128 * 1024);
	assert_int_equal(answer.code, 0);
	server.header_bytes++;
	posts(h);
	assert_int_equal(answer.code, CURLE_WRITE_ERROR);
	server.header_bytes--;
	posts(h);				/* counted anew for each */
	assert_int_equal(answer.code, 0);
	http_client_close(h);
}

/* In parts, as the connection takes it. */
static void
a_long_question_arrives_whole(void **state)
{
	const size_t len = 8 * 1024 * 1024;
	char *text = malloc(len + 1);
	struct http_client *h = http_opens(5000);

	(void)state;
	memset(text, 'q', len);
	text[len] = '\0';
	question.body = text;
	posts(h);
	question.body = "what?";
	free(text);
	assert_int_equal(answer.code, 0);
	assert_int_equal(server.asked_bytes, len);
	http_client_close(h);
}

static void
one_connection_is_kept_and_no_other(void **state)
{
	struct http_client *h = http_opens(5000);
	char other[64];

	(void)state;
	assert_int_equal(evhttp_bind_socket(http, "127.0.0.2", (uint16_t)atoi(strrchr(url, ':') + 1)), 0);
	snprintf(other, sizeof(other), "http://127.0.0.2%s", strrchr(url, ':'));
	posts(h);
	posts(h);
	assert_int_equal(server.ports[0], server.ports[1]);
	question.url = other;
	posts(h);
	question.url = url;
	posts(h);
	assert_int_equal(server.requests, 4);
	assert_int_not_equal(server.ports[0], server.ports[3]);
	http_client_close(h);
}

static void
nothing_but_http_is_spoken(void **state)
{
	struct http_client *h = http_opens(5000);

	(void)state;
	question.url = "file:///etc/hostname";
	posts(h);
	assert_int_equal(answer.code, CURLE_UNSUPPORTED_PROTOCOL);
	http_client_close(h);
}

static void
requests_that_cannot_be_made_are_refused(void **state)
{
	struct http_client *h = http_opens(5000);
	char path[200], bad[80];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		snprintf(bad, sizeof(bad), "%s%s", url, i == 0 ? "/a b" : "/a\r\nHost: y");
		question.url = bad;
		posts(h);
		assert_int_equal(answer.code, CURLE_URL_MALFORMAT);
		assert_int_equal(answer.error, -EBADMSG);
	}
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	question.url = url;
	question.unix_socket = path;
	posts(h);
	question.unix_socket = NULL;
	assert_int_not_equal(answer.code, 0);
	assert_int_equal(server.requests, 0);
	posts(h);
	assert_int_equal(answer.error, 0);
	http_client_close(h);
}

/* No server at a port or a socket, one that may not be opened, no answer, too long an answer. */
static void
a_failure_has_the_systems_number(void **state)
{
	struct http_client *h = http_opens(5000);
	char none[128], there[128];
	const struct {
		const char *url, *unix_socket;
		int error;
	} cases[] = {
		{ "http://127.0.0.1:9", NULL, -ECONNREFUSED },
		{ "http://localhost", none, -ENOENT },
		{ "http://localhost", there, -ECONNREFUSED },
	};

	(void)state;
	snprintf(none, sizeof(none), "%s", tree_path(&tree, "none"));
	tree_write(&tree, "there", "x");
	snprintf(there, sizeof(there), "%s", tree_path(&tree, "there"));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		question.url = cases[i].url;
		question.unix_socket = cases[i].unix_socket;
		posts(h);
		assert_int_equal(answer.error, cases[i].error);
	}
	question.url = url;
	question.unix_socket = NULL;
	server.body_bytes = BODY_MAX + 1;
	posts(h);
	assert_int_equal(answer.error, -EFBIG);
	http_client_close(h);
	h = http_opens(100);
	server.is_silent = true;
	posts(h);
	assert_int_equal(answer.error, -ETIMEDOUT);
	http_client_close(h);
}

static void
without_a_body_it_is_a_get(void **state)
{
	struct http_client *h = http_opens(5000);

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		question.body = i == 1 ? NULL : "what?";
		posts(h);
		assert_int_equal(server.method, i == 1 ? EVHTTP_REQ_GET : EVHTTP_REQ_POST);
		assert_string_equal(server.asked, i == 1 ? "" : "what?");
	}
	http_client_close(h);
}

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
what_is_in_flight_when_it_closes_is_not_told(void **state)
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
a_redirect_keeps_the_question_and_the_scheme(void **state)
{
	struct http_client *h = http_opens(5000);
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
	http_client_close(h);
}

static void
credentials_are_those_of_this_question(void **state)
{
	struct http_client *h = http_opens(5000);

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
	http_client_close(h);
}

/* Signed by itself; its key was thrown away. */
static const char certificate[] =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBbjCCARWgAwIBAgIUbIb48rBW1gZ12sum/0vp8P54K1owCgYIKoZIzj0EAwIw\n"
    "DDEKMAgGA1UEAwwBeDAgFw0yNjExMjMwNjA2MzFaGA8yMTI2MTAzMDA2MDYzMVow\n"
    "DDEKMAgGA1UEAwwBeDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABLN/c2hWrvTh\n"
    "bOV/LCWa5or4HTQuC6p6xwZ7ZLopS+X65Nvpo10MBUPwjq8Wrc2yCRjde624/sGj\n"
    "aoIPQm1kN52jUzBRMB0GA1UdDgQWBBQBvAAYnHjqVGEHOQgxL8nLcxNMBTAfBgNV\n"
    "HSMEGDAWgBQBvAAYnHjqVGEHOQgxL8nLcxNMBTAPBgNVHRMBAf8EBTADAQH/MAoG\n"
    "CCqGSM49BAMCA0cAMEQCIFV5vn5pFFfVdfnYEkDXZPasMrfDu3EIFTstX0WXRTs6\n"
    "AiAUx7z5y1fsvMXkCzcBSJH25io1klRP740ynJgPwC/kIA==\n"
    "-----END CERTIFICATE-----\n";

static void
files_of_tls_are_used(void **state)
{
	char none[128], there[128];
	struct http_client_options cases[] = { { .ca_file = none }, { .cert_file = none, .key_file = none },
		{ .cert_file = there, .key_file = none } };
	static const int codes[] = { CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CERTPROBLEM };

	(void)state;
	snprintf(none, sizeof(none), "%s", tree_path(&tree, "none"));
	tree_write(&tree, "there", certificate);
	snprintf(there, sizeof(there), "%s", tree_path(&tree, "there"));
	for (size_t i = 0; i < 3; i++) {
		struct http_client *h;
		char https[64];

		memset(&answer, 0, sizeof(answer));
		cases[i].timeout_ms = 5000;
		assert_int_equal(http_client_open(base, &cases[i], on_answer, &answer, &h), 0);
		/* They are read once a connection is established, with any server. */
		snprintf(https, sizeof(https), "https%s", url + strlen("http"));
		question.url = https;
		posts(h);
		assert_int_equal(answer.code, codes[i]);
		http_client_close(h);
	}
	assert_non_null(strstr(answer.detail, none));	/* the key, not one beside the certificate */
}

/* The first bytes of a TLS client. */
static struct {
	struct bufferevent *connection;
	unsigned char text[4096];
	size_t len;
} hello;

static void
on_hello(struct bufferevent *connection, void *arg)
{
	(void)arg;
	hello.len = bufferevent_read(connection, hello.text, sizeof(hello.text));
}

static void
on_connection(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *at, int at_len, void *arg)
{
	(void)listener;
	(void)at;
	(void)at_len;
	(void)arg;
	hello.connection = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
	bufferevent_setcb(hello.connection, on_hello, NULL, NULL, NULL);
	bufferevent_enable(hello.connection, EV_READ);
}

static bool
is_greeted(void)
{
	return hello.len > 0;
}

/* However much more this host's OpenSSL lets its programs offer. */
static void
tls_is_offered_from_1_2_on_with_http_1_1_in_it(void **state)
{
	static const char versions[] = "\x00\x2b\x00\x05\x04\x03\x04\x03\x03", protocols[] = "\x00\x09\x08http/1.1";
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(at);
	struct http_client *h = http_opens(5000);
	struct evconnlistener *listener = evconnlistener_new_bind(base, on_connection, NULL, LEV_OPT_CLOSE_ON_FREE, 1,
	    (struct sockaddr *)&at, len);
	char https[64];

	(void)state;
	assert_int_equal(getsockname(evconnlistener_get_fd(listener), (struct sockaddr *)&at, &len), 0);
	snprintf(https, sizeof(https), "https://127.0.0.1:%u", ntohs(at.sin_port));
	question.url = https;
	assert_int_equal(http_client_send(h, &question), 0);
	assert_true(wait_for(is_greeted));
	assert_non_null(memmem(hello.text, hello.len, versions, sizeof(versions) - 1));
	assert_non_null(memmem(hello.text, hello.len, protocols, sizeof(protocols) - 1));
	http_client_close(h);
	bufferevent_free(hello.connection);
	evconnlistener_free(listener);
}

/* Read by OpenSSL when it begins: old versions too, which each program must refuse by itself then. */
static void
let_openssl_offer_all(void)
{
	char path[32];
	int fd = memfd_create("openssl.cnf", MFD_CLOEXEC);

	dprintf(fd, "openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\nsystem_default = default\n"
	    "[default]\nMinProtocol = TLSv1\nCipherString = DEFAULT:@SECLEVEL=0\n");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	setenv("OPENSSL_CONF", path, 1);
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
		T(an_answer_comes_once_and_whole),
		T(an_answer_has_a_largest_size),
		T(a_long_question_arrives_whole),
		T(one_connection_is_kept_and_no_other),
		T(nothing_but_http_is_spoken),
		T(requests_that_cannot_be_made_are_refused),
		T(a_failure_has_the_systems_number),
		T(without_a_body_it_is_a_get),
		T(a_name_server_that_is_silent_does_not_hold_up_the_end),
		T(silence_has_an_end),
		T(what_is_in_flight_when_it_closes_is_not_told),
		T(a_redirect_keeps_the_question_and_the_scheme),
		T(credentials_are_those_of_this_question),
		T(files_of_tls_are_used),
		T(tls_is_offered_from_1_2_on_with_http_1_1_in_it),
		T(without_memory_a_question_has_an_end_too),
		T(a_question_that_cannot_be_timed_ends_at_once),
		T(between_two_questions_nothing_is_watched),
		T(without_memory_in_libcurl_a_question_is_refused),
		T(silence_is_waited_for_as_long_as_was_asked),
		T(libcurl_is_given_up_as_often_as_it_is_begun),
	};

	let_openssl_offer_all();
	prepare_libraries();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
