/*
 * SPDX-License-Identifier: Apache-2.0
 * client: one HTTP request at a time over libcurl's multi interface, on the caller's loop.
 *
 * libcurl asks to watch sockets (on_socket) and to be called after a time (on_timer). After each event
 * curl_multi_socket_action() is called, and then the end of the transfer is checked.
 */
#include "http/client.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include <curl/curl.h>
#include <event2/event.h>

#include "base/bytes.h"

enum {
	HEADER_MAX = 128 * 1024,	/* libcurl keeps headers in memory, without a limit of its own */
	REDIRECTS_MAX = 3,
	CA_CACHE_S = 60,		/* a renewed CA file is read after this, not after libcurl's day */
};

/* A socket that libcurl wants to be watched. */
struct watch {
	LIST_ENTRY(watch) link;
	struct http_client *http;
	struct event	*event;		/* owned */
};

struct http_client {
	struct event_base	*base;		/* the caller's */
	http_client_cb	 cb;
	void			*arg;		/* the caller's */
	struct http_client_options o;		/* strings are the caller's */

	CURLM			*multi;		/* owned; NULL while disconnected, like the rest of this block */
	CURL			*easy;		/* owned; of multi while is_busy */
	struct curl_slist	*headers;	/* owned; of the client, behind own_header */
	struct curl_slist	 own_header;	/* of the request */
	struct event		*timer;		/* owned */
	LIST_HEAD(, watch)	 watches;	/* owned */

	bool			 is_busy;
	struct curl_slist	*connect_to;	/* owned; of the request */
	struct bytes		 body;		/* received so far */
	size_t			 body_bytes;	/* the same, also where it is not kept */
	size_t			 header_bytes;
	char			 detail[CURL_ERROR_SIZE];
};

static void check_done(struct http_client *h, CURLMcode r);

static void
act(struct http_client *h, curl_socket_t fd)
{
	int running;

	/* 0: libcurl checks what the socket is ready for. */
	check_done(h, curl_multi_socket_action(h->multi, fd, 0, &running));
}

static void
on_ready(evutil_socket_t fd, short what, void *arg)
{
	struct watch *w = arg;

	(void)what;
	act(w->http, fd);	/* w may be freed by this */
}

static void
on_timeout(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	act(arg, CURL_SOCKET_TIMEOUT);
}

static void
watch_free(struct watch *w)
{
	LIST_REMOVE(w, link);
	if (w->event != NULL)
		event_free(w->event);
	free(w);
}

/*
 * Watches a socket, or stops watching it. A failure is not returned to libcurl, which would then call no
 * callback any more: the request ends by its timeout instead.
 */
static int
on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
	struct http_client *h = arg;
	struct watch *w = socket_arg;
	short events = EV_PERSIST;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (w != NULL)
			watch_free(w);
		return 0;
	}
	if (what & CURL_POLL_IN)
		events |= EV_READ;
	if (what & CURL_POLL_OUT)
		events |= EV_WRITE;
	if (w == NULL) {
		w = calloc(1, sizeof(*w));
		if (w == NULL)
			return 0;
		w->http = h;
		LIST_INSERT_HEAD(&h->watches, w, link);
		curl_multi_assign(h->multi, fd, w);
	}
	if (w->event != NULL)
		event_free(w->event);
	w->event = event_new(h->base, fd, events, on_ready, w);
	if (w->event != NULL)
		event_add(w->event, NULL);
	return 0;
}

/*
 * Sets libcurl's timer. libcurl must not be called from here, so a timeout of 0 ms uses the loop too. A
 * failure must be returned: otherwise not even the request's timeout would work.
 */
static int
on_timer(CURLM *multi, long ms, void *arg)
{
	struct http_client *h = arg;
	struct timeval tv = { .tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000 };

	(void)multi;
	if (ms < 0)
		return event_del(h->timer);
	return event_add(h->timer, &tv);
}

/* Appends a part of the body. Returning less than was received ends the transfer with CURLE_WRITE_ERROR. */
static size_t
on_body(char *data, size_t size, size_t n, void *arg)
{
	struct http_client *h = arg;

	n *= size;
	if (n > h->o.body_max - h->body_bytes)
		return 0;
	h->body_bytes += n;
	if (h->o.part != NULL)
		return h->o.part(data, n, h->arg) ? n : 0;
	return bytes_append(&h->body, data, n) == 0 ? n : 0;
}

static size_t
on_header(char *data, size_t size, size_t n, void *arg)
{
	struct http_client *h = arg;

	(void)data;
	n *= size;
	h->header_bytes += n;
	return h->header_bytes > HEADER_MAX ? 0 : n;
}

/* Clears the body, which may contain more than its reader needs. */
static void
wipe(struct http_client *h)
{
	if (h->body.len > 0)
		explicit_bzero(h->body.data, h->body.len);
	h->body.len = 0;
	h->body_bytes = 0;
}

static int
add_headers(struct http_client *h)
{
	for (const char *const *text = h->o.headers; text != NULL && *text != NULL; text++) {
		struct curl_slist *all = curl_slist_append(h->headers, *text);

		if (all == NULL)
			return -ENOMEM;
		h->headers = all;
	}
	return 0;
}

/* Creates the multi and easy handles, with the options that all requests share. */
static int
set_up(struct http_client *h)
{
	CURLcode r = CURLE_OK;
	CURL *e;

	h->multi = curl_multi_init();
	h->easy = e = curl_easy_init();
	h->timer = evtimer_new(h->base, on_timeout, h);
	if (h->multi == NULL || e == NULL || h->timer == NULL || add_headers(h) < 0)
		goto fail;
	curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h);
	curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, on_timer);
	curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h);
	curl_multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, 1L);

	/* Options with numbers cannot fail; those with strings can, as they are copied. */
	curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	/* Without this, a timeout would wait for the thread that resolves names, if the name server is silent. */
	curl_easy_setopt(e, CURLOPT_QUICK_EXIT, 1L);
	curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)h->o.timeout_ms);
	curl_easy_setopt(e, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(e, CURLOPT_CA_CACHE_TIMEOUT, (long)CA_CACHE_S);
	curl_easy_setopt(e, CURLOPT_MAXREDIRS, (long)REDIRECTS_MAX);
	curl_easy_setopt(e, CURLOPT_POSTREDIR, (long)CURL_REDIR_POST_ALL);	/* otherwise redirected as GET */
	curl_easy_setopt(e, CURLOPT_ERRORBUFFER, h->detail);
	curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(e, CURLOPT_WRITEDATA, h);
	curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(e, CURLOPT_HEADERDATA, h);
	r = curl_easy_setopt(e, CURLOPT_USERAGENT, "sluice/" SLUICE_VERSION);
	if (r == CURLE_OK)
		r = curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
	if (r == CURLE_OK && h->o.ca_file != NULL)
		r = curl_easy_setopt(e, CURLOPT_CAINFO, h->o.ca_file);
	if (r == CURLE_OK && h->o.cert_file != NULL)
		r = curl_easy_setopt(e, CURLOPT_SSLCERT, h->o.cert_file);
	if (r == CURLE_OK && h->o.key_file != NULL)
		r = curl_easy_setopt(e, CURLOPT_SSLKEY, h->o.key_file);
	if (r == CURLE_OK)
		return 0;
fail:
	http_client_disconnect(h);
	return -ENOMEM;
}

/* Sets where to connect instead of the URL's host. libcurl does not copy the list. */
static CURLcode
set_connect_to(struct http_client *h, const char *text)
{
	curl_easy_setopt(h->easy, CURLOPT_CONNECT_TO, NULL);
	curl_slist_free_all(h->connect_to);
	h->connect_to = NULL;
	if (text == NULL)
		return CURLE_OK;
	h->connect_to = curl_slist_append(NULL, text);
	if (h->connect_to == NULL)
		return CURLE_OUT_OF_MEMORY;
	return curl_easy_setopt(h->easy, CURLOPT_CONNECT_TO, h->connect_to);
}

/* Sets the options of one request. */
static CURLcode
set_request(struct http_client *h, const struct http_client_request *q)
{
	CURL *e = h->easy;
	bool is_unix = q->unix_socket != NULL;
	char scheme[sizeof("https")];
	const struct {
		CURLoption option;
		const char *text;
	} texts[] = {
		{ CURLOPT_URL, q->url },
		{ CURLOPT_UNIX_SOCKET_PATH, q->unix_socket },
		/* A redirect must neither downgrade https to http nor change to another protocol. */
		{ CURLOPT_REDIR_PROTOCOLS_STR, scheme },
		{ CURLOPT_USERNAME, q->token == NULL ? q->user : NULL },
		{ CURLOPT_PASSWORD, q->token == NULL ? q->password : NULL },
		{ CURLOPT_XOAUTH2_BEARER, q->token },
		{ CURLOPT_NOPROXY, q->is_direct ? "*" : NULL },
	};
	CURLcode r = set_connect_to(h, q->connect_to);

	snprintf(scheme, sizeof(scheme), "%.*s", (int)strcspn(q->url, ":"), q->url);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]) && r == CURLE_OK; i++)
		r = curl_easy_setopt(e, texts[i].option, texts[i].text);
	curl_easy_setopt(e, CURLOPT_HTTPAUTH, (long)(q->token != NULL ? CURLAUTH_BEARER : CURLAUTH_BASIC));
	/* Requests to a unix socket are rare: HTTP/1.0 closes the connection after the answer. */
	curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)(is_unix ? CURL_HTTP_VERSION_1_0 : CURL_HTTP_VERSION_1_1));
	curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, (long)(!is_unix && !q->is_direct));
	curl_easy_setopt(e, CURLOPT_POSTFIELDS, q->body);
	curl_easy_setopt(e, q->body != NULL ? CURLOPT_POST : CURLOPT_HTTPGET, 1L);
	/* libcurl keeps the list, and changes none of it. */
	h->own_header = (struct curl_slist){ (char *)q->header, h->headers };
	curl_easy_setopt(e, CURLOPT_HTTPHEADER, q->header != NULL ? &h->own_header : h->headers);
	if (r == CURLE_OK)
		r = curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, q->method);
	return r;
}

int
http_client_send(struct http_client *h, const struct http_client_request *q)
{
	if (h->is_busy)
		return -EBUSY;
	if (h->multi == NULL && set_up(h) < 0)
		return -ENOMEM;
	wipe(h);
	h->header_bytes = 0;
	if (set_request(h, q) != CURLE_OK)
		return -ENOMEM;
	if (curl_multi_add_handle(h->multi, h->easy) != CURLM_OK) {	/* calls on_timer with 0 ms */
		http_client_disconnect(h);	/* its state after a failure depends on libcurl's version */
		return -ENOMEM;
	}
	h->is_busy = true;
	return 0;
}

size_t
http_client_received(const struct http_client *h)
{
	return h->body.len;
}

static int
error_of(CURL *e, int code)
{
	long os = 0;

	switch (code) {
	case CURLE_OK:
		return 0;
	case CURLE_OPERATION_TIMEDOUT:
		return -ETIMEDOUT;
	case CURLE_OUT_OF_MEMORY:
		return -ENOMEM;
	case CURLE_WRITE_ERROR:		/* on_body() or on_header() exceeded its limit */
		return -EFBIG;
	case CURLE_COULDNT_CONNECT:
	case CURLE_SEND_ERROR:
	case CURLE_RECV_ERROR:
		curl_easy_getinfo(e, CURLINFO_OS_ERRNO, &os);
		return os > 0 ? (int)-os : -EIO;
	}
	return -EBADMSG;
}

/* Calls the callback if the transfer has ended; r is the result of the libcurl call before. */
static void
check_done(struct http_client *h, CURLMcode r)
{
	struct http_client_answer a = { 0 };
	const CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(h->multi, &left)) != NULL && m->msg != CURLMSG_DONE)
		;
	if (m == NULL && (r == CURLM_OK || !h->is_busy))
		return;
	a.code = m != NULL ? (int)m->data.result : CURLE_OUT_OF_MEMORY;	/* removing the handle frees m */
	curl_multi_remove_handle(h->multi, h->easy);
	h->is_busy = false;
	a.error = error_of(h->easy, a.code);
	a.detail = h->detail[0] != '\0' ? h->detail : curl_easy_strerror((CURLcode)a.code);
	if (a.code == CURLE_OK) {
		curl_easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &a.status);
		curl_easy_getinfo(h->easy, CURLINFO_RETRY_AFTER, &a.retry_after_s);
		a.body = h->body.len > 0 ? (const char *)h->body.data : "";
		a.len = h->body.len;
	}
	h->cb(&a, h->arg);
	if (!h->is_busy)
		wipe(h);	/* otherwise the next request uses it already */
}

void
http_client_disconnect(struct http_client *h)
{
	curl_multi_remove_handle(h->multi, h->easy);	/* no error if it was not added */
	h->is_busy = false;
	curl_easy_cleanup(h->easy);
	curl_multi_cleanup(h->multi);	/* closes the connection, and may call on_socket */
	while (!LIST_EMPTY(&h->watches))
		watch_free(LIST_FIRST(&h->watches));
	if (h->timer != NULL)
		event_free(h->timer);
	curl_slist_free_all(h->headers);
	curl_slist_free_all(h->connect_to);
	wipe(h);
	bytes_done(&h->body);
	h->easy = NULL;
	h->multi = NULL;
	h->timer = NULL;
	h->headers = NULL;
	h->connect_to = NULL;
}

int
http_client_open(struct event_base *base, const struct http_client_options *o,
    http_client_cb cb, void *arg, struct http_client **ret)
{
	struct http_client *h;

	/* libcurl counts these calls: librdkafka's own is independent of this one. */
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return -ENOMEM;
	h = calloc(1, sizeof(*h));
	if (h == NULL) {
		curl_global_cleanup();
		return -ENOMEM;
	}
	h->base = base;
	h->cb = cb;
	h->arg = arg;
	h->o = *o;
	LIST_INIT(&h->watches);
	*ret = h;
	return 0;
}

void
http_client_close(struct http_client *h)
{
	if (h == NULL)
		return;
	http_client_disconnect(h);
	free(h);
	curl_global_cleanup();
}
