/*
 * SPDX-License-Identifier: Apache-2.0
 * http: three pages, and limits on connections, their rate and their duration.
 *
 *	reading ──end of the head──► answering ──all written──► closed
 *
 * A head that does not come at once is looked for every 100 ms: bytes that drip in do not wake the loop, and until the
 * head is whole they stay in the kernel, so that its window closes and a flood of them waits with the sender. Of a
 * request only its first line counts: headers and a body are read over. So a parser of HTTP is not needed, and each
 * step has a cost that is known.
 */
#include "control/http.h"

#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "control/door.h"
#include "control/http_request.h"

#define DEFAULT_TIMEOUT_MS 10000
#define KEPT_NS UINT64_C(1000000000)	/* for how long a status that was taken is served */
#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define PLAIN_TYPE "text/plain; charset=utf-8"

enum {
	CONNECTIONS = 32,
	PER_SECOND = 50,
	BURST = 50,
	BACKLOG = 128,
	SWEEP_MS = 500,
	LOOK_MS = 100,
	REQUEST_MAX = 8191,	/* of its head; a NUL follows */
	STEPS_MAX = 16,		/* pieces of one request, or of one answer */
};

struct connection {
	TAILQ_ENTRY(connection) entry;
	struct http *http;
	int fd;				/* owned */
	struct event *on_ready;		/* owned; readable, and then writable */
	uint64_t since_ns;
	unsigned steps;
	bool is_partial;		/* of its head some is missing */
	struct bytes request;
	struct bytes answer;		/* with its head */
	size_t written;
};

/* What is served of the status that was taken last. */
struct kept {
	uint64_t since_ns;		/* 0: none was taken */
	struct bytes metrics;
	bool is_ready;
	char reason[STATUS_PROBLEM_SIZE];	/* why it is not ready */
};

struct http {
	struct event_base *base;	/* the caller's */
	struct door *door;		/* owned */
	status_fill fill;
	void *arg;
	char *path;			/* owned; path of a unix socket */
	struct event *on_sweep;		/* owned */
	uint32_t timeout_ms;
	uint16_t port;
	struct kept kept;
	unsigned n_connections;
	unsigned n_partial;
	TAILQ_HEAD(, connection) connections;	/* oldest first */
	struct http_stats stats;
};

static void
connection_free(struct connection *c)
{
	TAILQ_REMOVE(&c->http->connections, c, entry);
	c->http->n_connections--;
	c->http->n_partial -= c->is_partial;
	event_free(c->on_ready);
	close(c->fd);
	bytes_done(&c->request);
	bytes_done(&c->answer);
	free(c);
}

/* Ends connections that exceed the limit, which are the oldest. */
static void
sweep(struct http *h)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct connection *c;

	while ((c = TAILQ_FIRST(&h->connections)) != NULL && now - c->since_ns >= (uint64_t)h->timeout_ms * 1000000) {
		h->stats.slow++;
		connection_free(c);
	}
}

static void
sweep_later(struct http *h)
{
	/* So often that the limit is exceeded by a tenth at most. */
	uint32_t ms = h->timeout_ms / 10 + 1 < SWEEP_MS ? h->timeout_ms / 10 + 1 : SWEEP_MS;

	if (h->n_partial > 0 && ms > LOOK_MS)
		ms = LOOK_MS;
	if (h->n_connections > 0)
		evtimer_add(h->on_sweep, (&(struct timeval){ ms / 1000, ms % 1000 * 1000 }));
}

static void read_some(struct connection *c);

static void
on_sweep(evutil_socket_t fd, short what, void *arg)
{
	struct http *h = arg;
	struct connection *c, *next;

	(void)fd;
	(void)what;
	sweep(h);
	for (c = TAILQ_FIRST(&h->connections); c != NULL; c = next) {
		next = TAILQ_NEXT(c, entry);
		if (c->is_partial)
			read_some(c);
	}
	sweep_later(h);
}

/* Takes the status, unless the last one is still good. Returns false without memory. */
static bool
refresh(struct http *h)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct agent_status *s;
	struct bytes metrics = { 0 };

	if (h->kept.since_ns != 0 && now - h->kept.since_ns < KEPT_NS)
		return true;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return false;
	h->fill(s, h->arg);
	if (status_metrics(s, &metrics) == 0) {
		bytes_done(&h->kept.metrics);
		h->kept.metrics = metrics;
		h->kept.is_ready = status_is_ready(s, h->kept.reason, sizeof(h->kept.reason));
		h->kept.since_ns = now;
	} else {
		bytes_done(&metrics);
		h->kept.since_ns = 0;
	}
	free(s);
	return h->kept.since_ns != 0;
}

static void
reply(struct connection *c, bool has_body, const char *status, const char *more, const char *type, const void *body,
    size_t len)
{
	char head[512];
	int n = snprintf(head, sizeof(head), "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
	    "Cache-Control: no-store\r\n%sConnection: close\r\n\r\n", status, type, len, more);

	/* Without memory the answer is cut, and the client sees that by its length. */
	if (bytes_append(&c->answer, head, (size_t)n) == 0 && has_body)
		(void)bytes_append(&c->answer, body, len);
}

static void
reply_text(struct connection *c, bool has_body, const char *status, const char *more, const char *text)
{
	char body[STATUS_PROBLEM_SIZE + 2];

	snprintf(body, sizeof(body), "%s\n", text);
	reply(c, has_body, status, more, PLAIN_TYPE, body, strlen(body));
}

/* Answers a request whose head is complete. */
static void
answer(struct connection *c)
{
	struct http *h = c->http;
	const char *method, *path;
	bool is_metrics, is_ready, has_body;

	if (!http_request_split((char *)c->request.data, &method, &path)) {
		h->stats.malformed++;
		reply_text(c, true, "400 Bad Request", "", "this is no request of HTTP/1.1");
		return;
	}
	h->stats.answered++;
	has_body = strcmp(method, "HEAD") != 0;
	is_metrics = strcmp(path, "/metrics") == 0;
	is_ready = strcmp(path, "/readyz") == 0;
	if (!is_metrics && !is_ready && strcmp(path, "/healthz") != 0)
		reply_text(c, has_body, "404 Not Found", "", "the pages are /metrics, /healthz and /readyz");
	else if (has_body && strcmp(method, "GET") != 0)
		reply_text(c, true, "405 Method Not Allowed", "Allow: GET, HEAD\r\n", "GET and HEAD only");
	else if (!is_metrics && !is_ready)
		reply_text(c, has_body, "200 OK", "", "ok");
	else if (!refresh(h))
		reply_text(c, has_body, "500 Internal Server Error", "", "no memory");
	else if (is_metrics)
		reply(c, has_body, "200 OK", "", METRICS_TYPE, h->kept.metrics.data, h->kept.metrics.len);
	else
		reply_text(c, has_body, h->kept.is_ready ? "200 OK" : "503 Service Unavailable", "",
		    h->kept.is_ready ? "ok" : h->kept.reason);
}

/* Writes what the kernel takes. Returns true once nothing is left to do. */
static bool
write_some(struct connection *c)
{
	ssize_t n = send(c->fd, c->answer.data + c->written, c->answer.len - c->written, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0)
		return errno != EAGAIN && errno != EINTR;
	c->written += (size_t)n;
	return c->written == c->answer.len;
}

static void
on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct connection *c = arg;

	(void)fd;
	(void)what;
	if (c->steps++ >= STEPS_MAX)
		c->http->stats.slow++;
	else if (!write_some(c))
		return;
	connection_free(c);
}

static void
begin_answer(struct connection *c)
{
	c->http->n_partial -= c->is_partial;
	c->is_partial = false;
	c->steps = 0;
	answer(c);
	if (write_some(c) ||
	    event_assign(c->on_ready, c->http->base, c->fd, EV_WRITE | EV_PERSIST, on_writable, c) < 0 ||
	    event_add(c->on_ready, NULL) < 0)
		connection_free(c);
}

/* Returns whether the client sends no more, which a head that is only looked at hides. */
static bool
has_hung_up(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) > 0;
}

static void
read_some(struct connection *c)
{
	struct http *h = c->http;
	ssize_t n = recv(c->fd, c->request.data, REQUEST_MAX, MSG_DONTWAIT | MSG_PEEK);

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		if (!c->is_partial)
			event_add(c->on_ready, NULL);
		return;
	}
	if (n <= 0) {
		connection_free(c);
		return;
	}
	if (c->is_partial && (size_t)n == c->request.len) {	/* no more than the last time */
		if (has_hung_up(c->fd))
			connection_free(c);
		return;
	}
	c->request.len = (size_t)n;
	c->request.data[c->request.len] = '\0';
	if (http_request_is_whole((const char *)c->request.data, c->request.len)) {
		n = recv(c->fd, c->request.data, REQUEST_MAX, MSG_DONTWAIT);
		c->request.data[n > 0 ? n : 0] = '\0';
		begin_answer(c);
	} else if (++c->steps >= STEPS_MAX || c->request.len >= REQUEST_MAX) {
		h->stats.malformed++;
		connection_free(c);
	} else if (!c->is_partial) {
		c->is_partial = true;
		h->n_partial++;
		sweep_later(h);
	}
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	read_some(arg);
}

static void
on_accept(int fd, void *arg)
{
	struct http *h = arg;
	struct connection *c;

	sweep(h);
	if (h->n_connections >= CONNECTIONS) {
		h->stats.displaced++;
		connection_free(TAILQ_FIRST(&h->connections));
	}
	c = calloc(1, sizeof(*c));
	if (c != NULL)
		c->on_ready = event_new(h->base, fd, EV_READ, on_readable, c);	/* once */
	if (c == NULL || c->on_ready == NULL || bytes_reserve(&c->request, REQUEST_MAX + 1) < 0 ||
	    event_add(c->on_ready, NULL) < 0) {
		if (c != NULL && c->on_ready != NULL)
			event_free(c->on_ready);
		if (c != NULL)
			bytes_done(&c->request);
		free(c);
		close(fd);
		return;
	}
	c->http = h;
	c->fd = fd;
	c->since_ns = clock_ns(CLOCK_MONOTONIC);
	TAILQ_INSERT_TAIL(&h->connections, c, entry);
	if (h->n_connections++ == 0)
		sweep_later(h);
}

int
http_open(struct event_base *base, const struct http_options *o, status_fill fill, void *arg,
    struct http **ret, char *error, size_t error_size)
{
	struct door_options door = { .per_second = PER_SECOND, .burst = BURST, .on_accept = on_accept };
	struct listen_options listen = o->listen;
	struct http *h = calloc(1, sizeof(*h));
	int r;

	snprintf(error, error_size, "no memory for the metrics' server");
	if (h == NULL)
		return -ENOMEM;
	TAILQ_INIT(&h->connections);
	h->base = base;
	h->fill = fill;
	h->arg = arg;
	h->timeout_ms = o->timeout_ms > 0 ? o->timeout_ms : DEFAULT_TIMEOUT_MS;
	h->on_sweep = evtimer_new(base, on_sweep, h);
	listen.backlog = BACKLOG;
	r = h->on_sweep != NULL ? listen_at(&listen, &h->port, error, error_size) : -ENOMEM;
	if (r < 0)
		goto fail;
	/* Each packet costs, even of one byte: the kernel keeps as many as a request has, of every connection. */
	(void)setsockopt(r, SOL_SOCKET, SO_RCVBUF, &(int){ REQUEST_MAX }, sizeof(int));
	if (listen_is_unix(listen.address))
		h->path = strdup(listen_unix_path(listen.address));
	door.arg = h;
	r = door_open(base, r, &door, &h->door);
	if (r < 0)
		goto fail;
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
http_stats(const struct http *h, struct http_stats *ret)
{
	*ret = h->stats;
	ret->waits = door_waits(h->door);
}

void
http_close(struct http *h)
{
	struct connection *c;

	if (h == NULL)
		return;
	door_close(h->door);
	while ((c = TAILQ_FIRST(&h->connections)) != NULL)
		connection_free(c);
	if (h->on_sweep != NULL)
		event_free(h->on_sweep);
	if (h->path != NULL)
		unlink(h->path);
	free(h->path);
	bytes_done(&h->kept.metrics);
	free(h);
}
