/*
 * SPDX-License-Identifier: Apache-2.0
 * http: metrics for Prometheus and health checks, on the loop.
 *
 *	GET /metrics	Prometheus text
 *	GET /healthz	200 "ok": the loop runs
 *	GET /readyz	200 "ok", or 503 with the reason: records do not reach their destination
 *
 * Any other path: 404; methods other than GET and HEAD: 405. Each answer closes its connection. What asking costs the
 * agent is bounded, whatever user asks and however often: 50 connections are accepted in a second, and others wait in
 * the kernel; a request may come in at most 16 pieces; the status is taken once a second at most, and served again in
 * between. A connection that lasts longer than the limit is closed, and if there are too many, the oldest. The process
 * ignores SIGPIPE.
 */
#ifndef SLUICE_CONTROL_HTTP_H
#define SLUICE_CONTROL_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/listen.h"
#include "control/status.h"

struct event_base;
struct http;

struct http_options {
	struct listen_options listen;	/* the backlog is set by http_open() */
	uint32_t timeout_ms;	/* limit for a connection, from first byte to last; 0: 10 s */
};

/*
 * Listens; fill is called for a request, once a second at most. Returns 0, or a negative errno (-EADDRINUSE, -EINVAL:
 * invalid address) with *ret untouched and a sentence in error.
 */
int http_open(struct event_base *base, const struct http_options *o, status_fill fill, void *arg,
    struct http **ret, char *error, size_t error_size);
void http_close(struct http *h);	/* NULL is fine */
/* Returns the port that was assigned for address "127.0.0.1:0"; 0 for a unix socket. */
uint16_t http_port(const struct http *h);

struct http_stats {
	uint64_t answered;
	uint64_t waits;		/* times that connections had to wait, because they came too fast */
	uint64_t displaced;	/* the oldest connection, when there were too many */
	uint64_t slow;		/* connections that took too long */
	uint64_t malformed;	/* requests that are none, too long, or came in too many pieces */
};
/* Copies the counters since http_open(). */
void http_stats(const struct http *h, struct http_stats *ret);

#endif
