/*
 * SPDX-License-Identifier: Apache-2.0
 * http: three pages, and limits on connections and their duration.
 *
 * libevent 2.1's evhttp limits the size of a request, but neither the number of connections nor their duration,
 * and does not report the end of one. So we hold a reference on the bufferevent of each: once evhttp has freed
 * its own, the callbacks are cleared. A timer checks that while there are connections.
 */
#include "control/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <grp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/text.h"
#include "control/unix_socket.h"

#define DEFAULT_TIMEOUT_MS 10000
#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define PLAIN_TYPE "text/plain; charset=utf-8"

enum {
	CONNECTIONS = 32,
	SWEEP_MS = 500,
	HEADERS_MAX = 8192,
	BODY_MAX = 1024,
};

struct connection {
	TAILQ_ENTRY(connection) entry;
	struct bufferevent *bev;	/* evhttp's, with a reference of ours */
	uint64_t since_ns;
};

struct http {
	struct event_base *base;	/* the caller's */
	struct evhttp *evhttp;		/* owned, with the listener and its fd */
	status_fill fill;
	void *arg;
	char *path;			/* owned; path of a unix socket */
	struct event *on_sweep;		/* owned */
	uint32_t timeout_ms;
	uint16_t port;
	unsigned n_connections;
	TAILQ_HEAD(, connection) connections;	/* oldest first */
};

/* Ends a connection: evhttp sees its end, and frees it. */
static void
shut(struct connection *connection)
{
	evutil_socket_t fd = bufferevent_getfd(connection->bev);

	if (fd >= 0)
		shutdown(fd, SHUT_RDWR);
}

static void
forget(struct http *h, struct connection *connection)
{
	TAILQ_REMOVE(&h->connections, connection, entry);
	h->n_connections--;
	bufferevent_decref(connection->bev);	/* the last reference closes its fd */
	free(connection);
}

/* Forgets connections that evhttp has freed, and ends those that exceed the limit. */
static void
sweep(struct http *h)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct connection *connection, *next;

	for (connection = TAILQ_FIRST(&h->connections); connection != NULL; connection = next) {
		bufferevent_event_cb on_event;

		next = TAILQ_NEXT(connection, entry);
		bufferevent_getcb(connection->bev, NULL, NULL, &on_event, NULL);
		if (on_event == NULL)
			forget(h, connection);
		else if (now - connection->since_ns >= (uint64_t)h->timeout_ms * 1000000)
			shut(connection);
	}
}

static void
sweep_later(struct http *h)
{
	/* So often that a limit is exceeded by a tenth at most, and no fd stays open for long. */
	uint32_t ms = h->timeout_ms / 10 + 1 < SWEEP_MS ? h->timeout_ms / 10 + 1 : SWEEP_MS;

	if (h->n_connections > 0 && !evtimer_pending(h->on_sweep, NULL))
		evtimer_add(h->on_sweep, (&(struct timeval){ ms / 1000, ms % 1000 * 1000 }));
}

static void
on_sweep(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	sweep(arg);
	sweep_later(arg);
}

/* Returns the bufferevent of a connection that was just accepted. NULL: evhttp makes one of its own. */
static struct bufferevent *
on_connection(struct event_base *base, void *arg)
{
	struct http *h = arg;
	struct connection *connection = calloc(1, sizeof(*connection));

	if (connection != NULL)
		connection->bev = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
	if (connection == NULL || connection->bev == NULL) {
		free(connection);
		return NULL;
	}
	sweep(h);
	if (h->n_connections >= CONNECTIONS)
		shut(TAILQ_FIRST(&h->connections));
	bufferevent_incref(connection->bev);
	connection->since_ns = clock_ns(CLOCK_MONOTONIC);
	TAILQ_INSERT_TAIL(&h->connections, connection, entry);
	h->n_connections++;
	sweep_later(h);
	return connection->bev;
}

static void
reply(struct evhttp_request *req, int code, const char *reason, const char *type, const void *body, size_t len)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(req);
	struct evbuffer *out = evbuffer_new();
	char length[32];

	snprintf(length, sizeof(length), "%zu", len);
	evhttp_add_header(headers, "Content-Type", type);
	evhttp_add_header(headers, "Content-Length", length);
	evhttp_add_header(headers, "Cache-Control", "no-store");
	evhttp_add_header(headers, "Connection", "close");
	if (out != NULL && evhttp_request_get_command(req) != EVHTTP_REQ_HEAD)
		evbuffer_add(out, body, len);
	evhttp_send_reply(req, code, reason, out);
	if (out != NULL)
		evbuffer_free(out);
}

static void
reply_text(struct evhttp_request *req, int code, const char *reason, const char *text)
{
	char body[STATUS_PROBLEM_SIZE + 2];

	snprintf(body, sizeof(body), "%s\n", text);
	reply(req, code, reason, PLAIN_TYPE, body, strlen(body));
}

static void
reply_metrics(struct evhttp_request *req, const struct agent_status *s)
{
	struct bytes text = { 0 };

	if (status_metrics(s, &text) == 0)
		reply(req, 200, "OK", METRICS_TYPE, text.data, text.len);
	else
		reply_text(req, 500, "Internal Server Error", "no memory");
	bytes_done(&text);
}

static void
reply_ready(struct evhttp_request *req, const struct agent_status *s)
{
	char reason[STATUS_PROBLEM_SIZE];

	if (status_is_ready(s, reason, sizeof(reason)))
		reply_text(req, 200, "OK", "ok");
	else
		reply_text(req, 503, "Service Unavailable", reason);
}

static void
on_request(struct evhttp_request *req, void *arg)
{
	struct http *h = arg;
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(req));
	enum evhttp_cmd_type method = evhttp_request_get_command(req);
	bool is_metrics, is_ready;
	struct agent_status *s;

	if (path == NULL)
		path = "";
	is_metrics = strcmp(path, "/metrics") == 0;
	is_ready = strcmp(path, "/readyz") == 0;
	if (!is_metrics && !is_ready && strcmp(path, "/healthz") != 0) {
		reply_text(req, 404, "Not Found", "the pages are /metrics, /healthz and /readyz");
		return;
	}
	if (method != EVHTTP_REQ_GET && method != EVHTTP_REQ_HEAD) {
		evhttp_add_header(evhttp_request_get_output_headers(req), "Allow", "GET, HEAD");
		reply_text(req, 405, "Method Not Allowed", "GET and HEAD only");
		return;
	}
	if (!is_metrics && !is_ready) {
		reply_text(req, 200, "OK", "ok");
		return;
	}
	s = calloc(1, sizeof(*s));
	if (s == NULL) {
		reply_text(req, 500, "Internal Server Error", "no memory");
		return;
	}
	h->fill(s, h->arg);
	if (is_metrics)
		reply_metrics(req, s);
	else
		reply_ready(req, s);
	free(s);
}

static bool
is_loopback(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 == 127;
	return address->sa_family == AF_INET6 &&
	    IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

/* Parses "127.0.0.1:9465" or "[::1]:9465"; only numbers, and localhost, so that it never waits for a name server. */
static bool
parse_tcp(const char *text, struct sockaddr_storage *ret, socklen_t *ret_len)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)ret;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)ret;
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN + 2];
	uint64_t port;
	size_t len;

	if (colon == NULL || (size_t)(colon - text) >= sizeof(host) || !text_number(colon + 1, UINT16_MAX, &port))
		return false;
	len = (size_t)(colon - text);
	memcpy(host, text, len);
	host[len] = '\0';
	if (strcmp(host, "localhost") == 0)
		strcpy(host, "127.0.0.1");
	if (host[0] == '[' && host[len - 1] == ']') {
		host[len - 1] = '\0';
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons((uint16_t)port);
		*ret_len = sizeof(*v6);
		return inet_pton(AF_INET6, host + 1, &v6->sin6_addr) == 1;
	}
	v4->sin_family = AF_INET;
	v4->sin_port = htons((uint16_t)port);
	*ret_len = sizeof(*v4);
	return inet_pton(AF_INET, host, &v4->sin_addr) == 1;
}

static int
listen_tcp(const struct http_options *o, uint16_t *ret_port, char *error, size_t size)
{
	struct sockaddr_storage address = { 0 };
	struct sockaddr *sa = (struct sockaddr *)&address;
	socklen_t len, got = sizeof(address);
	int fd, r, one = 1;

	if (!parse_tcp(o->address, &address, &len)) {
		snprintf(error, size, "%s: not an address; use 127.0.0.1:PORT, [::1]:PORT or unix:/PATH", o->address);
		return -EINVAL;
	}
	if (!o->allow_remote && !is_loopback(sa)) {
		snprintf(error, size, "%s: other hosts could read it, and there is no password; "
		    "use 127.0.0.1:PORT, [::1]:PORT or unix:/PATH", o->address);
		return -EINVAL;
	}
	fd = socket(sa->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		r = -errno;
	else if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 || bind(fd, sa, len) < 0 ||
	    listen(fd, CONNECTIONS) < 0 || getsockname(fd, sa, &got) < 0)
		r = -errno;
	else
		r = fd;
	if (r >= 0) {
		*ret_port = ntohs(sa->sa_family == AF_INET ? ((struct sockaddr_in *)(void *)sa)->sin_port :
		    ((struct sockaddr_in6 *)(void *)sa)->sin6_port);
		return fd;
	}
	if (fd >= 0)
		close(fd);
	if (r == -EADDRINUSE)
		snprintf(error, size, "%s: is in use by another program; `ss -ltnp` names it, or choose another port",
		    o->address);
	else
		snprintf(error, size, "%s: cannot listen there: %s", o->address, strerror(-r));
	return r;
}

static int
listen_unix(struct http *h, const char *path, const char *group, char *error, size_t size)
{
	struct group *g = group != NULL ? getgrnam(group) : NULL;
	int fd;

	/* If the group does not exist, only root may connect, rather than every user. */
	fd = unix_socket_listen(path, g != NULL ? g->gr_gid : getegid(), group == NULL ? 0666 : 0660, CONNECTIONS,
	    error, size);
	if (fd < 0)
		return fd;
	h->path = strdup(path);
	if (h->path != NULL)
		return fd;
	close(fd);
	unlink(path);
	return -ENOMEM;
}

int
http_open(struct event_base *base, const struct http_options *o, status_fill fill, void *arg,
    struct http **ret, char *error, size_t error_size)
{
	uint32_t timeout_ms = o->timeout_ms > 0 ? o->timeout_ms : DEFAULT_TIMEOUT_MS;
	struct evconnlistener *listener;
	struct timeval idle = { timeout_ms / 1000, timeout_ms % 1000 * 1000 };
	struct http *h;
	int fd, r;

	snprintf(error, error_size, "no memory for the metrics' server");
	h = calloc(1, sizeof(*h));
	if (h == NULL)
		return -ENOMEM;
	TAILQ_INIT(&h->connections);
	h->base = base;
	h->fill = fill;
	h->arg = arg;
	h->timeout_ms = timeout_ms;

	r = -ENOMEM;
	h->on_sweep = evtimer_new(base, on_sweep, h);
	h->evhttp = evhttp_new(base);
	if (h->on_sweep == NULL || h->evhttp == NULL)
		goto fail;
	evhttp_set_timeout_tv(h->evhttp, &idle);
	evhttp_set_max_headers_size(h->evhttp, HEADERS_MAX);
	evhttp_set_max_body_size(h->evhttp, BODY_MAX);
	/* All methods that it knows, so that other methods get our 405 and not its 501. */
	evhttp_set_allowed_methods(h->evhttp, EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD | EVHTTP_REQ_PUT |
	    EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS | EVHTTP_REQ_TRACE | EVHTTP_REQ_PATCH);
	evhttp_set_bevcb(h->evhttp, on_connection, h);
	evhttp_set_gencb(h->evhttp, on_request, h);

	if (strncmp(o->address, "unix:", 5) == 0)
		r = listen_unix(h, o->address + 5, o->group, error, error_size);
	else if (o->address[0] == '/')
		r = listen_unix(h, o->address, o->group, error, error_size);
	else
		r = listen_tcp(o, &h->port, error, error_size);
	if (r < 0)
		goto fail;
	fd = r;
	r = -ENOMEM;
	listener = evconnlistener_new(base, NULL, NULL, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
	if (listener == NULL) {
		close(fd);
		goto fail;
	}
	if (evhttp_bind_listener(h->evhttp, listener) == NULL) {
		evconnlistener_free(listener);
		goto fail;
	}
	error[0] = '\0';
	*ret = h;
	return 0;

fail:
	http_close(h);
	return r;
}

uint16_t
http_port(const struct http *h)
{
	return h->port;
}

void
http_close(struct http *h)
{
	struct connection *connection;

	if (h == NULL)
		return;
	if (h->evhttp != NULL)
		evhttp_free(h->evhttp);
	while ((connection = TAILQ_FIRST(&h->connections)) != NULL)
		forget(h, connection);
	if (h->on_sweep != NULL)
		event_free(h->on_sweep);
	if (h->path != NULL)
		unlink(h->path);
	free(h->path);
	free(h);
}
