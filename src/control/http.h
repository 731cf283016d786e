/*
 * SPDX-License-Identifier: Apache-2.0
 * http: metrics for Prometheus and health checks, over libevent's evhttp on the loop.
 *
 *	GET /metrics	Prometheus text
 *	GET /healthz	200 "ok": the loop runs
 *	GET /readyz	200 "ok", or 503 with the reason: records do not reach their destination
 *
 * Any other path: 404; methods other than GET and HEAD: 405. Each answer closes its connection; one that lasts
 * longer than the limit is closed, and if there are too many, the oldest. The process ignores SIGPIPE.
 */
#ifndef SLUICE_CONTROL_HTTP_H
#define SLUICE_CONTROL_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/status.h"

struct event_base;
struct http;

struct http_options {
	const char *address;	/* "127.0.0.1:9465", "[::1]:9465", "localhost:9465", "unix:/run/sluice/metrics.sock" or its path */
	bool allow_remote;	/* permit an address that other hosts can reach: there is no password */
	const char *group;	/* of the unix socket, mode 0660; NULL: mode 0666, as loopback is */
	uint32_t timeout_ms;	/* limit for a connection, from first byte to last; 0: 10 s */
};

/*
 * Listens; fill is called for each request. Returns 0, or a negative errno (-EADDRINUSE, -EINVAL: invalid
 * address) with *ret untouched and a sentence in error.
 */
int http_open(struct event_base *base, const struct http_options *o, status_fill fill, void *arg,
    struct http **ret, char *error, size_t error_size);
void http_close(struct http *h);	/* NULL is fine */
/* Returns the port that was assigned for address "127.0.0.1:0"; 0 for a unix socket. */
uint16_t http_port(const struct http *h);

#endif
