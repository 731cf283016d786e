/* SPDX-License-Identifier: Apache-2.0 */
/* client: files and versions of TLS. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <netinet/in.h>
#include <sys/mman.h>

#include <event2/listener.h>

#include "faults.h"
#include "http_kit.h"
#include "timers.h"

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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(files_of_tls_are_used),
		T(tls_is_offered_from_1_2_on_with_http_1_1_in_it),
	};

	let_openssl_offer_all();
	prepare_libraries();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
